"""Text ablation: items that inspectors answer without the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.data import Draws
from auditlib.curation.exact import Rates, above, fraction, mean_of_means, times
from auditlib.errors import AuditError


@dataclass(frozen=True)
class AblationSettings:
    """Thresholds, read as the exact numbers their texts say.

    Attributes
    ----------
    binary, other : an item with two distinct valid answers, or any other, is removed above this share of right
        answers. rule : ``mmgist`` uses these two; ``guess_adjusted`` removes above ``1/k + (1 - 1/k) adjusted``, with
        chance 0 for open answers. any_inspector_removes : an item is also removed where one inspector alone passes
        the threshold; otherwise this is a flag.
    """

    binary: str = "0.80"
    other: str = "0.50"
    rule: Literal["mmgist", "guess_adjusted"] = "mmgist"
    adjusted: str = "1/3"
    any_inspector_removes: bool = False


@dataclass(frozen=True)
class Ablation:
    """Text ablation of every item, arrays of shape (items,).

    Attributes
    ----------
    removed : the decision. reason : ``text_ablation``, ``any_inspector`` where only the variant removes, else "".
    rate : mean over inspectors of the share of right draws, no answer counting as wrong. threshold : what the rate
        must exceed. judged : any draw was made.
    undecided : the comparison of the rate comes out otherwise when draws without an answer are left out or score 1/k,
        or no draw holds an answer. rate_answered, rate_guessed : the rates under these two.
    any_inspector : one inspector alone passes the threshold.
    n_draws, n_abstained : draws, and those without an answer.
    """

    removed: NDArray[np.bool_]
    reason: NDArray
    rate: NDArray[np.float64]
    threshold: NDArray[np.float64]
    judged: NDArray[np.bool_]
    undecided: NDArray[np.bool_]
    rate_answered: NDArray[np.float64]
    rate_guessed: NDArray[np.float64]
    any_inspector: NDArray[np.bool_]
    n_draws: NDArray
    n_abstained: NDArray
    rule: str


def whole_k(k: ArrayLike) -> NDArray[np.int64]:
    """Numbers of distinct valid answers as integers, 0 for open answers.

    Raises
    ------
    AuditError
        A number below 1 or with a fraction.
    """
    k = np.asarray(k, float)
    known = ~np.isnan(k)
    bad = known & ~((k >= 1) & (k == np.rint(k)))
    if bad.any():
        at = int(np.argmax(bad))
        raise AuditError(f"item {at + 1} has {k[at]:g} valid answers", mend="give a whole number, or none if open")
    return np.where(known, k, 0).astype(np.int64)


def thresholds(k: ArrayLike, settings: AblationSettings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numerator and denominator of each item's threshold.

    Parameters
    ----------
    k : floats, shape (items,)
        Distinct valid answers, nan for open answers.
    """
    k = whole_k(k)
    if settings.rule == "guess_adjusted":
        share, known = fraction(settings.adjusted, "adjusted threshold"), np.maximum(k, 1)
        p, q = share.numerator, share.denominator
        return np.where(k > 0, q + (k - 1) * p, p), known * q
    if settings.rule != "mmgist":
        raise AuditError(f"unknown rule {settings.rule!r}", mend="give mmgist or guess_adjusted")
    two, more = fraction(settings.binary, "binary threshold"), fraction(settings.other, "threshold")
    return (np.where(k == 2, two.numerator, more.numerator), np.where(k == 2, two.denominator, more.denominator))


def ablation(blind: Draws, k: ArrayLike, settings: AblationSettings | None = None) -> Ablation:
    """Decide text ablation from the inspectors' draws without the image.

    Parameters
    ----------
    blind : counts of the inspectors, shape (items, inspectors)
    k : floats, shape (items,)
        Distinct valid answers, nan for open answers.

    Raises
    ------
    AuditError
        A threshold or a ``k`` that is no such number.

    Notes
    -----
    MMGist, stage 1: removed if ``t > 0.80`` (two answers) or ``t > 0.50``, strictly, on whole numbers. Inspectors are
    the units: with unequal draws ``t`` is the mean of their means.
    """
    settings = settings or AblationSettings()
    num, den = thresholds(k, settings)
    options = whole_k(k)
    rates = mean_of_means(blind.hits, blind.trials)
    point = above(rates, num, den)
    answered = mean_of_means(blind.hits, blind.trials - blind.abstained)
    guessed = _guessed(blind, options)
    changes = (above(answered, num, den) != point) | (above(guessed, num, den) != point) | ~answered.seen
    alone = (times(blind.hits, den[:, None]) > times(blind.trials, num[:, None])).any(axis=1)
    removed = point | alone if settings.any_inspector_removes else point
    reason = np.where(point, "text_ablation", np.where(removed, "any_inspector", "")).astype(object)
    return Ablation(
        removed=removed, reason=reason, rate=rates.value, threshold=num / den, judged=rates.seen,
        undecided=rates.seen & changes, rate_answered=answered.value, rate_guessed=guessed.value, any_inspector=alone,
        n_draws=blind.trials.sum(axis=1) // blind.unit, n_abstained=blind.abstained.sum(axis=1) // blind.unit,
        rule=settings.rule,
    )  # fmt: skip


def _guessed(blind: Draws, options: NDArray[np.int64]) -> Rates:
    """Rates with 1/k for every draw without an answer, 0 for open answers."""
    by, credit = np.maximum(options, 1)[:, None], (options > 0)[:, None]
    return mean_of_means(blind.hits * by + blind.abstained * credit, blind.trials * by)
