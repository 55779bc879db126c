"""Reliability of the models' scores on a set of items: random halves that share no item, and Spearman-Brown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.clustered import codes
from auditlib.curation.ranking import correlation, spearman
from auditlib.curation.subsets import subset_averages

NAN = float("nan")


@dataclass(frozen=True)
class SplitHalf:
    """Reliability of the models' scores on one set of items.

    Attributes
    ----------
    items : items. splits : random splits into halves inside each source. half, half_spearman : mean correlation of the
        two halves' scores over splits. low, high : central 95% over splits (how much it depends on the split).
    reliability : Spearman-Brown, ``2 r / (1 + r)`` of ``half``: the reliability of the whole set.
    per_1000 : reliability that 1,000 such items would have.
    """

    items: int
    splits: int
    half: float
    half_spearman: float
    low: float
    high: float
    reliability: float
    per_1000: float

    def as_row(self) -> dict[str, Any]:
        return dict(vars(self))


def split_half(
    rate: ArrayLike,
    source: ArrayLike,
    *,
    rng: np.random.Generator,
    cluster: ArrayLike | None = None,
    splits: int = 200,
) -> SplitHalf:
    """Split-half reliability of benchmark averages, over random halves inside each source.

    Parameters
    ----------
    rate : float array, shape (items, models)
    source : array, shape (items,)
    cluster : array, shape (items,), optional
        Clusters are never split: two halves that share an image would agree too well.
    splits : random splits.

    Notes
    -----
    ``r`` is the mean over splits of the correlation over models of the halves' averages; the whole set has
    ``2 r / (1 + r)``, a set of L times as many items ``L R / (1 + (L - 1) R)`` (Spearman 1910; Brown 1910). The halves
    share no item, so nothing of the correlation is containment. Reliability is about these models: a wider range of
    models raises it.
    """
    x = np.asarray(rate, float)
    halves = random_halves(source, splits, rng, cluster)
    one, two = subset_averages(x, source, halves), subset_averages(x, source, ~halves)
    some = ~(np.isnan(one) | np.isnan(two)).any(axis=0)
    r = correlation(one[:, some], two[:, some]) if some.sum() > 1 else np.full(splits, NAN)
    rho = spearman(one[:, some], two[:, some]) if some.sum() > 1 else np.full(splits, NAN)
    half = _mean(r)
    whole = spearman_brown(half, 2.0)
    low, high = np.nanquantile(r, [0.025, 0.975]) if not np.isnan(r).all() else (NAN, NAN)
    return SplitHalf(len(x), splits, half, _mean(rho), float(low), float(high), whole,
                     spearman_brown(whole, 1000 / len(x)))  # fmt: skip


def spearman_brown(reliability: float, length: float) -> float:
    """Reliability of a test ``length`` times as long; a negative one has no such value (NaN).

    Examples
    --------
    >>> round(spearman_brown(0.5, 2), 4)
    0.6667
    """
    r = float(reliability)
    return length * r / (1 + (length - 1) * r) if r >= 0 else NAN


def random_halves(
    source: ArrayLike, splits: int, rng: np.random.Generator, cluster: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """First halves of random splits inside each source, shape (splits, items); a cluster lies in one half.

    A cluster belongs to the source of its first item. An odd number of units gives either half the one more.
    """
    n = len(np.asarray(source))
    s, names = codes(source, n)
    unit = np.arange(n) if cluster is None else codes(cluster, n)[0]
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    home = s[first]
    out = np.zeros((splits, len(first)), bool)
    for g in range(len(names)):
        here = np.flatnonzero(home == g)
        order = np.argsort(rng.random((splits, len(here))), axis=1)
        extra = rng.integers(0, 2, size=splits) if len(here) % 2 else np.zeros(splits, int)
        out[:, here] = order < (len(here) // 2 + extra)[:, None]
    return out[:, unit.ravel()]


def _mean(values: NDArray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else NAN
