"""Figures of an audit: ``prepare`` makes the small frame that is drawn, ``draw(frame, ax=None)`` returns the axes.

``FIGURES`` is a plain dict in reading order. :func:`save_figures` writes each as PDF, SVG and PNG beside its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib.figures import abstention, arms, design, nulls, pipeline, profile, strata
from auditlib.figures import captions as say
from auditlib.lookup import Lacking

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FIGURES", "Figure", "Lacking", "save_figures"]


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    name : file name without ending.
    title : a few words.
    prepare : audit -> the numbers drawn; raises :class:`~auditlib.lookup.Lacking` where the pool has none.
    draw : (frame, ax=None) -> axes.
    caption : frame -> how to read it, with the numbers in words; also the alternative text.
    needs : what a pool must hold, in words.
    """

    name: str
    title: str
    prepare: Callable[[Any], pd.DataFrame]
    draw: Callable[..., Axes]
    caption: Callable[[pd.DataFrame], str]
    needs: str


_ALL = (
    Figure("fig1_pipeline", "The audit, step by step", pipeline.prepare_pipeline, pipeline.pipeline, say.pipeline,
           "any run"),
    Figure("fig2a_full_vs_blind", "Accuracy with and without the image", nulls.prepare_full_vs_blind,
           nulls.full_vs_blind, say.full_vs_blind, "full and blind runs"),
    Figure("fig2b_null", "Observed share against its null", nulls.prepare_null, nulls.null_distribution, say.null,
           "full and blind runs"),
    Figure("fig2c_no_gain", "What the zero-gain set is made of", nulls.prepare_no_gain, nulls.no_gain, say.no_gain,
           "full and blind runs"),
    Figure("excess_composition", "Composition of the excess", nulls.prepare_no_gain, nulls.excess_composition,
           say.excess_composition, "full and blind runs"),
    Figure("fig3a_strata_excess", "Zero-gain excess by category", strata.prepare_strata_excess, strata.strata_excess,
           say.strata_excess, "full and blind runs, official categories"),
    Figure("fig3b_strata_unanimous", "Unanimous label conflicts by category", strata.prepare_strata_unanimous,
           strata.strata_unanimous, say.strata_unanimous, "letters of two models, official categories"),
    Figure("fig4a_arm_shares", "Category shares by scoring", arms.prepare_arm_shares, arms.arm_shares, say.arm_shares,
           "full and blind runs"),
    Figure("fig4b_disagreements", "Judge against parser, by model", arms.prepare_disagreements, arms.disagreements,
           say.disagreements, "a judged arm and letters"),
    Figure("arm_flow", "Moves between categories when the judge is replaced", arms.prepare_flow, arms.flow, say.flow,
           "full and blind runs, two arms"),
    Figure("bounds", "How far abstentions and the pool can move each share", arms.prepare_bounds, arms.bounds,
           say.bounds, "full and blind runs"),
    Figure("abstention", "Shares by what an abstention counts as", abstention.prepare_abstention,
           abstention.abstention, say.abstention, "full and blind runs, replies without an answer"),
    Figure("pool_size", "Number of models and the zero-gain share", profile.prepare_pool_size, profile.pool_size,
           say.pool_size, "full and blind runs of three models"),
    Figure("blind_profile", "What each model did with and without the image", profile.prepare_profile,
           profile.profile, say.profile, "any run"),
    Figure("key_letters", "Where the keys are, and which letters models say", profile.prepare_letters,
           profile.letters, say.letters, "letter keys"),
    Figure("fig5a_roc", "Visual gain against design labels", design.prepare_roc, design.roc, say.roc,
           "full and blind runs, design labels"),
    Figure("fig5b_design_excess", "Zero-gain excess by design label", design.prepare_design_excess,
           design.design_excess, say.design_excess, "full and blind runs, design labels"),
)  # fmt: skip

FIGURES: dict[str, Figure] = {f.name: f for f in _ALL}


def save_figures(audit: Any, paths: Any, names: list[str] | None = None) -> pd.DataFrame:
    """Write figures/NAME.pdf .svg .png .csv and figures/index.html; see :func:`auditlib.figures.save.save_figures`."""
    from auditlib.figures.save import save_figures as save

    return save(audit, paths, names)
