"""Which items the first two stages would keep with other models or other thresholds; each stage is done once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from auditlib.curation.ablation import ablation
from auditlib.curation.saturation import saturation
from auditlib.curation.sensitivity import Thresholds
from auditlib.curation.study import Curation, stage_settings
from auditlib.curation.wrong_removal import wrong_removal
from auditlib.errors import AuditError


def with_models(c: Curation, models: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Items kept by the first two stages when only some models (columns of the pool) inspect and saturate.

    Raises
    ------
    AuditError
        None of the models is on the panel.
    """
    inspectors, panel = np.intersect1d(c.pool.inspectors, models), np.intersect1d(c.pool.panel, models)
    if not len(panel):
        raise AuditError("a half of the providers has no panel model", mend="name more panel models")
    gone = saturation(c.pool.full.of(panel), None, c.settings.saturation).removed
    if c.pool.blind is not None and len(inspectors):
        gone = gone | ablation(c.pool.blind.of(inspectors), c.pool.k, c.settings.ablation).removed
    return ~gone


def at_thresholds(
    c: Curation,
) -> tuple[Callable[[Thresholds], NDArray[np.bool_]], Callable[[Thresholds], float]]:
    """Two functions of thresholds: items kept, and how many of those that ablation removes are expected to be visual.

    Notes
    -----
    The defects that people confirmed stay removed: judges and people have seen the items of the chosen thresholds.
    """
    defect = c.funnel.decisions["stage"].eq("defects").to_numpy()
    full, k = c.pool.full.of(c.pool.panel), c.pool.k
    blind = None if c.pool.blind is None or c.funnel.ablation is None else c.pool.blind.of(c.pool.inspectors)

    def settings(**more: str):
        return stage_settings(c.params.model_copy(update=more))

    @cache
    def solved(saturated: str) -> NDArray[np.bool_]:
        return saturation(full, None, settings(saturation=saturated).saturation).removed

    @cache
    def text(binary: str, other: str) -> tuple[NDArray[np.bool_], float]:
        if blind is None:
            return np.zeros(len(defect), bool), float("nan")
        s = settings(text_binary=binary, text_other=other).ablation
        found = ablation(blind, k, s)
        return found.removed, wrong_removal(blind, k, found, s).expected

    def kept(t: Thresholds) -> NDArray[np.bool_]:
        return ~(text(t.binary, t.other)[0] | solved(t.saturation) | defect)

    return kept, lambda t: text(t.binary, t.other)[1]
