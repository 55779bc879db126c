"""Agreement between models: Fleiss' kappa, Krippendorff's alpha, Cohen's kappa, agreement of one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.intervals import Interval, bootstrap_function, no_interval
from auditlib.stats.resample import distinct_rows

NAN = float("nan")


@dataclass(frozen=True)
class Agreement:
    """A chance-corrected agreement.

    ``observed`` and ``expected`` are the two agreement shares that make it, ``n`` the items (or clusters' items) it
    rests on, ``raters`` the models, ``note`` why it is NaN where it is.
    """

    estimate: float
    interval: Interval
    n: int
    raters: int
    observed: float
    expected: float
    note: str = ""

    def as_row(self) -> dict[str, Any]:
        return {"n": self.n, "estimate": self.estimate, "low": self.interval.low, "high": self.interval.high,
                "note": self.note}  # fmt: skip


def category_counts(codes: ArrayLike, levels: int | None = None) -> NDArray[np.int64]:
    """Ratings per category, shape (items, levels), from codes (items, raters); negative codes are no rating."""
    c = np.asarray(codes)
    if c.ndim != 2 or c.dtype.kind not in "iub":
        raise ValueError("codes must be an integer matrix, items x raters")
    if levels is None:
        levels = int(c.max()) + 1 if c.size else 0
    if c.size and int(c.max()) >= levels:
        raise ValueError(f"a code is {int(c.max())} but there are {levels} levels")
    out = np.empty((len(c), max(levels, 0)), np.int64)
    for j in range(out.shape[1]):
        out[:, j] = np.count_nonzero(c == j, axis=1)
    return out


def item_agreement(codes: ArrayLike, levels: int | None = None) -> NDArray[np.float64]:
    """Share of agreeing rater pairs of each item, ``P_i``; NaN for items with fewer than two ratings."""
    counts = category_counts(codes, levels)
    m = counts.sum(1)
    agreeing = (counts * (counts - 1)).sum(1)
    pairs = m * (m - 1)
    return np.divide(agreeing, pairs, out=np.full(len(m), NAN), where=pairs > 0)


def fleiss_kappa(
    codes: ArrayLike,
    levels: int | None = None,
    *,
    rng: np.random.Generator | None = None,
    cluster: ArrayLike | None = None,
    draws: int = 20_000,
    level: float = 0.95,
) -> Agreement:
    """Fleiss' kappa on items that every rater rated, with a percentile bootstrap over items or clusters.

    Parameters
    ----------
    codes : int array, shape (items, raters)
        Category of each rating; negative = none, and the item is left out.
    levels : int, optional
        Number of categories.
    rng : numpy Generator, optional
        Without it there is no interval.
    cluster : array, shape (items,), optional
        Cluster labels; whole clusters are then resampled.

    Notes
    -----
    ``kappa = (P - Pe) / (1 - Pe)``, P the mean of ``P_i``, Pe the sum of squared category shares (Fleiss 1971).  All
    raters agree everywhere on at least two categories: 1.  All ratings in one category: 0/0, given as NaN with a note.
    Each draw weights the distinct vote patterns; draws that fall in one category have no value and are counted.
    """
    c = np.asarray(codes)
    counts = category_counts(c, levels)
    raters = c.shape[1]
    full = counts.sum(1) == raters
    counts = counts[full]
    if raters < 2 or not len(counts):
        why = "fewer than two raters" if raters < 2 else "no item with all ratings"
        return Agreement(NAN, no_interval(why, level), len(counts), raters, NAN, NAN, why)

    def parts(t: NDArray) -> tuple[NDArray, NDArray]:
        items = t[:, 0]
        share = t[:, 2:] / (items[:, None] * raters)
        return t[:, 1] / (items * raters * (raters - 1)), (share * share).sum(1)

    stats = np.column_stack([np.ones(len(counts), np.int64), (counts * (counts - 1)).sum(1), counts])
    return _agreement(stats, parts, len(counts), raters, _keep(cluster, full), rng, draws, level)


def krippendorff_alpha(
    codes: ArrayLike,
    levels: int | None = None,
    *,
    rng: np.random.Generator | None = None,
    cluster: ArrayLike | None = None,
    draws: int = 20_000,
    level: float = 0.95,
) -> Agreement:
    """Krippendorff's alpha for nominal data on all items with at least two ratings.

    Parameters are those of :func:`fleiss_kappa`.

    Notes
    -----
    ``alpha = (Ao - Ae) / (1 - Ae)``, ``Ao = sum_u sum_c n_uc (n_uc - 1) / (m_u - 1) / n`` and
    ``Ae = sum_c n_c (n_c - 1) / (n (n - 1))`` over pairable ratings (Krippendorff 2011).  All ratings in one category:
    NaN with a note.
    """
    c = np.asarray(codes)
    counts = category_counts(c, levels)
    m = counts.sum(1)
    used = m >= 2
    counts, m = counts[used], m[used]
    if not len(counts):
        why = "no item with two ratings"
        return Agreement(NAN, no_interval(why, level), 0, c.shape[1], NAN, NAN, why)

    def parts(t: NDArray) -> tuple[NDArray, NDArray]:
        totals = t[:, m_max:]
        n = totals.sum(1)
        observed = (t[:, :m_max] / np.arange(1, m_max + 1)).sum(1) / n
        return observed, (totals * (totals - 1)).sum(1) / (n * (n - 1))

    # agreeing pairs are kept apart by m - 1, so that all pattern entries are integers
    m_max = int(m.max()) - 1
    pairs = np.zeros((len(m), m_max), np.int64)
    pairs[np.arange(len(m)), m - 2] = (counts * (counts - 1)).sum(1)
    return _agreement(np.column_stack([pairs, counts]), parts, len(m), c.shape[1], _keep(cluster, used), rng, draws,
                      level)  # fmt: skip


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    levels: int | None = None,
    *,
    rng: np.random.Generator | None = None,
    cluster: ArrayLike | None = None,
    draws: int = 20_000,
    level: float = 0.95,
) -> Agreement:
    """Cohen's kappa of two raters on items both rated; one category only on both sides: NaN with a note."""
    x, y = np.asarray(a), np.asarray(b)
    both = (x >= 0) & (y >= 0)
    if not both.any():
        why = "no item with both ratings"
        return Agreement(NAN, no_interval(why, level), 0, 2, NAN, NAN, why)
    x, y = x[both].astype(np.intp), y[both].astype(np.intp)
    side = max(int(max(x.max(), y.max())) + 1, levels or 0)

    def parts(t: NDArray) -> tuple[NDArray, NDArray]:
        n = t[:, 0]
        return t[:, 1] / n, (t[:, 2 : 2 + side] * t[:, 2 + side :]).sum(1) / (n * n)

    eye = np.eye(side, dtype=np.int64)
    stats = np.column_stack([np.ones(len(x), np.int64), x == y, eye[x], eye[y]])
    return _agreement(stats, parts, len(x), 2, _keep(cluster, both), rng, draws, level)


def _agreement(stats: NDArray, parts: Any, n: int, raters: int, cluster: NDArray | None, rng: Any, draws: int,
               level: float) -> Agreement:  # fmt: skip
    def value(t: NDArray) -> NDArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            observed, expected = parts(t)
            # an expected agreement of 1 means one category, where agreement says nothing
            return np.where(expected > 1 - 1e-12, NAN, (observed - expected) / (1 - expected))

    total = stats.sum(0, keepdims=True).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed, expected = (float(x[0]) for x in parts(total))
    estimate = float(value(total)[0])
    if np.isnan(estimate):
        why = "all ratings fall in one category"
        return Agreement(NAN, no_interval(why, level), n, raters, observed, expected, why)
    if rng is None:
        return Agreement(estimate, no_interval("not asked for", level), n, raters, observed, expected)
    if cluster is None:
        what = "percentile bootstrap over items"
    else:
        stats, what = _sum_by(stats, cluster), "percentile bootstrap over clusters"
    rows, freq = distinct_rows(stats)
    interval = bootstrap_function(rows.astype(float), freq, value, rng=rng, draws=draws, level=level, what=what)
    return Agreement(estimate, interval, n, raters, observed, expected)


def _keep(cluster: ArrayLike | None, mask: NDArray) -> NDArray | None:
    return None if cluster is None else np.asarray(cluster)[mask]


def _sum_by(stats: NDArray, cluster: NDArray) -> NDArray[np.int64]:
    _, which = np.unique(cluster, return_inverse=True)
    order = np.argsort(which, kind="stable")
    start = np.flatnonzero(np.diff(which[order], prepend=-1))
    return np.add.reduceat(stats[order], start, axis=0)
