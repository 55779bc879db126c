"""Saturation: items that nearly all draws of the panel get right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditlib.curation.data import Draws
from auditlib.curation.exact import above, fraction, mean_of_means, times
from auditlib.errors import AuditError
from auditlib.stats.intervals import wilson

#: outcomes by the interval of the rate
OUTCOMES = ("saturated", "borderline", "not_saturated")


@dataclass(frozen=True)
class SaturationSettings:
    """Thresholds, read as the exact numbers their texts say.

    Attributes
    ----------
    threshold : removed above this share of right draws. tier : every tier's share must exceed this for ``all_tiers``.
    tiers_remove : an item must also pass ``all_tiers`` to be removed. level : of the interval behind the outcome.
    """

    threshold: str = "0.90"
    tier: str = "0.80"
    tiers_remove: bool = False
    level: float = 0.95


@dataclass(frozen=True)
class Saturation:
    """Saturation of every item, arrays of shape (items,).

    Attributes
    ----------
    removed : the decision. rate, low, high : mean over models of the share of right draws, and its Wilson interval.
    outcome : ``saturated`` (interval above the threshold), ``not_saturated`` (at or below it), ``borderline``, and ""
        without draws.
    models_at_threshold : models whose own share is at or above the threshold, of ``n_models`` with draws.
    all_tiers : every tier's mean exceeds ``settings.tier``; None where no model has a tier.
    tier_names, tier_rates : the tiers and their means, shape (items, tiers).
    """

    removed: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    rate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    outcome: NDArray
    models_at_threshold: NDArray
    n_models: NDArray
    all_tiers: NDArray[np.bool_] | None
    tier_names: tuple[str, ...]
    tier_rates: NDArray[np.float64]
    n_draws: NDArray


def saturation(
    full: Draws, tiers: Sequence[str] | None = None, settings: SaturationSettings | None = None
) -> Saturation:
    """Decide saturation from the panel's draws with the image.

    Parameters
    ----------
    full : counts of the panel, shape (items, models)
    tiers : capability tier of each model of the panel, "" or missing where unknown

    Raises
    ------
    AuditError
        A threshold that is no number from 0 to 1, or ``tiers_remove`` where no model has a tier.

    Notes
    -----
    MMGist, stage 2: removed if ``s > 0.90``, strictly: 87 of 96 draws. The interval takes the draws as independent, as
    if the panel were all models there are; it says how far fresh draws of the same panel could move the decision.
    """
    settings = settings or SaturationSettings()
    cut = fraction(settings.threshold, "saturation threshold")
    rates = mean_of_means(full.hits, full.trials)
    removed = above(rates, cut.numerator, cut.denominator)
    reached = (full.trials > 0) & (times(full.hits, cut.denominator) >= times(full.trials, cut.numerator))
    draws = full.trials.sum(axis=1) // full.unit
    rate = rates.value
    low, high = _interval(rate, draws, settings.level)
    edge = float(cut)
    outcome = np.full(len(rate), "borderline", dtype=object)
    outcome[high <= edge] = "not_saturated"
    outcome[low > edge] = "saturated"
    outcome[~rates.seen] = ""
    names, tier_rates, passes = _tiers(full, tiers, settings)
    if settings.tiers_remove:
        if passes is None:
            raise AuditError("tiers are to decide, but no model of the panel has one", mend="give models a tier")
        removed = removed & passes
    return Saturation(
        removed=removed, judged=rates.seen, rate=rate, low=low, high=high, outcome=outcome,
        models_at_threshold=reached.sum(axis=1), n_models=(full.trials > 0).sum(axis=1), all_tiers=passes,
        tier_names=names, tier_rates=tier_rates, n_draws=draws,
    )  # fmt: skip


def _interval(rate: NDArray, draws: NDArray, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval, computed once for each distinct pair of rate and draws."""
    pairs, of = np.unique(np.stack([np.nan_to_num(rate), draws.astype(float)], 1), axis=0, return_inverse=True)
    ends = [wilson(p * n, n, level) for p, n in pairs]
    low, high = np.array([e.low for e in ends]), np.array([e.high for e in ends])
    return low[of.ravel()], high[of.ravel()]


def _tiers(
    full: Draws, tiers: Sequence[str] | None, settings: SaturationSettings
) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.bool_] | None]:
    """Mean of each tier, and whether all exceed the tier's threshold; tiers without a draw of an item are left out."""
    said = np.array(["" if t is None or t != t else str(t) for t in (() if tiers is None else tiers)], dtype=object)
    names = tuple(dict.fromkeys(t for t in said if t))
    items = len(full.hits)
    if not names:
        return (), np.empty((items, 0)), None
    cut = fraction(settings.tier, "tier threshold")
    values, passes, any_seen = np.empty((items, len(names))), np.ones(items, bool), np.zeros(items, bool)
    for j, name in enumerate(names):
        part = full.of(np.flatnonzero(said == name))
        rates = mean_of_means(part.hits, part.trials)
        values[:, j] = rates.value
        passes &= above(rates, cut.numerator, cut.denominator) | ~rates.seen
        any_seen |= rates.seen
    return names, values, passes & any_seen
