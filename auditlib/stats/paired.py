"""Paired differences over prompts or images: sign flips, and bootstrap intervals (percentile and BCa) by clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.intervals import Interval, no_interval, percentile

NAN = float("nan")
#: weights or signs held at once
BATCH = 4_000_000


@dataclass(frozen=True)
class SignFlip:
    """Mean difference and the p of sign flips, two-sided; ``p_method`` is ``exact`` or ``sign flips``."""

    n: int
    clusters: int
    estimate: float
    p: float
    p_method: str

    def as_row(self) -> dict[str, Any]:
        return {"n": self.n, "estimate": self.estimate, "p": self.p, "p_method": self.p_method}


@dataclass(frozen=True)
class Estimate:
    """A statistic, its two bootstrap intervals, the clusters behind it and its value in every draw."""

    value: float
    interval: Interval
    bca: Interval
    clusters: int
    draws: NDArray[np.float64] = field(repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        return {"estimate": self.value, "low": self.interval.low, "high": self.interval.high, "bca_low": self.bca.low,
                "bca_high": self.bca.high, "clusters": self.clusters}  # fmt: skip


def cluster_totals(columns: ArrayLike, cluster: ArrayLike | None = None) -> NDArray[np.float64]:
    """Sums of rows by cluster, shape (clusters, columns); each row is its own cluster where none are given.

    A missing value (NaN) adds nothing; count what is there in a column of its own.
    """
    x = np.asarray(columns, float)
    x = np.where(np.isnan(x), 0.0, x)
    x = x[:, None] if x.ndim == 1 else x
    if cluster is None:
        return x
    _, code = np.unique(np.asarray(cluster).astype(str), return_inverse=True)
    out = np.zeros((int(code.max(initial=-1)) + 1, x.shape[1]))
    np.add.at(out, code.ravel(), x)
    return out


def sign_flip(
    difference: ArrayLike, cluster: ArrayLike | None = None, *, rng: np.random.Generator, draws: int = 10_000
) -> SignFlip:
    """Test whether paired differences are symmetric round 0, whole clusters flipped together.

    Parameters
    ----------
    difference : shape (units,); NaN where a unit has none.
    cluster : shape (units,), units that hang together.

    Notes
    -----
    Statistic: the absolute sum. Clusters that sum to 0 cannot change it. With at most ``log2(draws)`` others all signs
    are enumerated (``exact``); else ``p = (1 + g) / (1 + draws)``.
    """
    d = np.asarray(difference, float)
    known = ~np.isnan(d)
    d = d[known]
    if not len(d):
        return SignFlip(0, 0, NAN, NAN, "")
    sums = cluster_totals(d, None if cluster is None else np.asarray(cluster)[known])[:, 0]
    moving = np.abs(sums[np.abs(sums) > 1e-12])
    seen = abs(float(sums.sum())) - 1e-9 * max(1.0, float(moving.sum()))
    k = len(moving)
    if 2**k <= draws:
        signs = 1 - 2 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)
        p, method = float((np.abs(signs @ moving) >= seen).mean()), "exact"
    else:
        g, step = 0, max(1, BATCH // k)
        for start in range(0, draws, step):
            size = min(step, draws - start)
            positive = rng.integers(2, size=(size, k), dtype=np.int8) @ moving
            g += int((np.abs(2 * positive - moving.sum()) >= seen).sum())
        p, method = (1 + g) / (1 + draws), "sign flips"
    return SignFlip(len(d), len(sums), float(d.mean()), p, method)


def bootstrap(
    totals: ArrayLike,
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    rng: np.random.Generator,
    draws: int = 2_000,
    level: float = 0.95,
) -> Estimate:
    """A statistic of totals over clusters, with percentile and BCa intervals.

    Parameters
    ----------
    totals : shape (clusters, columns), what each cluster adds; see :func:`cluster_totals`.
    function : totals of shape (sets, columns) -> values of shape (sets,); NaN where there is none.

    Notes
    -----
    BCa (Efron 1987): ``z0`` from the share of draws below the estimate, ties counted half, the acceleration from the
    jackknife over clusters. Where ``z0`` is not finite (all draws on one side) there is no BCa interval.
    """
    x = np.asarray(totals, float)
    n = len(x)
    if not n:
        return Estimate(NAN, no_interval("no units", level), no_interval("no units", level), 0, np.zeros(0))
    whole = x.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(function(whole[None])[0])
        if n < 2 or np.isnan(value):
            why = no_interval("one cluster" if n < 2 else "no value", level)
            return Estimate(value, why, why, n, np.zeros(0))
        step, values = max(1, BATCH // max(n, 1)), []
        for start in range(0, draws, step):
            values.append(function(_weights(n, min(step, draws - start), rng) @ x))
        drawn = np.concatenate(values)
        left = function(whole - x)
    return Estimate(value, percentile(drawn, level, "percentile bootstrap over clusters"),
                    _bca(value, drawn, left, level), n, drawn)  # fmt: skip


def _weights(n: int, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How often each of n units is drawn, shape (draws, n)."""
    at = rng.integers(n, size=(draws, n)) + n * np.arange(draws)[:, None]
    return np.bincount(at.ravel(), minlength=draws * n).reshape(draws, n).astype(float)


def _bca(value: float, drawn: NDArray, left: NDArray, level: float) -> Interval:
    from scipy.special import ndtr, ndtri

    d = drawn[~np.isnan(drawn)]
    scale = 1e-12 * max(1.0, abs(value))
    if d.size and np.ptp(d) <= scale:
        return Interval(value, value, level, "BCa")
    below = ((d < value - scale).sum() + 0.5 * (np.abs(d - value) <= scale).sum()) / d.size if d.size else NAN
    if not 0 < below < 1 or np.isnan(left).any():
        return no_interval("BCa needs draws on both sides", level)
    z0 = float(ndtri(below))
    dev = left.mean() - left
    spread = float((dev**2).sum()) ** 1.5
    a = float((dev**3).sum()) / (6 * spread) if spread > 0 else 0.0
    ends = []
    for z in (ndtri(0.5 - level / 2), ndtri(0.5 + level / 2)):
        ends.append(float(ndtr(z0 + (z0 + z) / (1 - a * (z0 + z)))))
    low, high = np.quantile(d, np.clip(ends, 0, 1))
    return Interval(float(low), float(high), level, "BCa bootstrap over clusters")


def mean_ratio(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """First column over second: the mean of what is summed in the first, counted in the second."""
    return np.divide(totals[:, 0], totals[:, 1], out=np.full(len(totals), NAN), where=totals[:, 1] > 0)


def mean_interval(
    values: ArrayLike, cluster: ArrayLike | None = None, *, rng: np.random.Generator, draws: int = 2_000,
    level: float = 0.95,
) -> Estimate:  # fmt: skip
    """Mean over units that have a value, with bootstrap intervals over clusters."""
    x = np.asarray(values, float)
    seen = ~np.isnan(x)
    totals = cluster_totals(np.column_stack([np.where(seen, x, 0.0), seen])[seen],
                            None if cluster is None else np.asarray(cluster)[seen])  # fmt: skip
    return bootstrap(totals, mean_ratio, rng=rng, draws=draws, level=level)


def equivalence(draws: ArrayLike, margin: float) -> float:
    """p of the two one-sided tests that a statistic lies within ``-margin`` and ``margin``, from its bootstrap draws.

    ``max`` over both sides of ``(1 + g) / (1 + draws)``, g draws at or beyond that margin.
    """
    d = np.asarray(draws, float)
    d = d[~np.isnan(d)]
    if not d.size:
        return NAN
    return float((1 + max(int((d >= margin).sum()), int((d <= -margin).sum()))) / (1 + d.size))
