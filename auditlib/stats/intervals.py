"""The one interval type, Wilson's interval, and bootstrap intervals of an excess over its null."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.resample import Mode, first_rows, uses_normal, weighted_totals
from auditlib.stats.tables import as_blocks, lump

NAN = float("nan")
#: strata with fewer items get a jackknife-t interval, with fewer than this none
SMALL, TINY = 50, 10


@dataclass(frozen=True)
class Interval:
    """Two ends, the level, and how it was made; ends are NaN where there is no interval and ``method`` says why."""

    low: float
    high: float
    level: float
    method: str

    def as_row(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "level": self.level, "method": self.method}

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def no_interval(reason: str, level: float = 0.95) -> Interval:
    """An interval that does not exist, with the reason."""
    return Interval(NAN, NAN, level, f"none: {reason}")


def wilson(k: int, n: int, level: float = 0.95) -> Interval:
    """Wilson score interval of a proportion k/n.

    Raises
    ------
    ValueError
        Unless ``0 <= k <= n``.

    Notes
    -----
    ``(p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)`` (Wilson 1927).

    Examples
    --------
    >>> i = wilson(303, 1500)
    >>> round(100 * i.low, 1), round(100 * i.high, 1)
    (18.2, 22.3)
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no proportion")
    if n == 0:
        return no_interval("no items", level)
    from scipy.special import ndtri

    z2 = float(ndtri(0.5 + level / 2)) ** 2
    centre = (k + z2 / 2) / (n + z2)
    half = math.sqrt(z2) * math.sqrt(k * (n - k) / n + z2 / 4) / (n + z2)
    # at the ends the formula is exact, its floats are not
    return Interval(0.0 if k == 0 else centre - half, 1.0 if k == n else centre + half, level, "wilson")


def percentile(values: ArrayLike, level: float, method: str) -> Interval:
    """Percentile interval of bootstrap values; draws without a value (NaN) are left out and counted in ``method``."""
    v = np.asarray(values, float)
    lost = int(np.isnan(v).sum())
    if lost == v.size:
        return no_interval("no draw has a value", level)
    low, high = np.nanquantile(v, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level, f"{method} ({lost} draws without a value)" if lost else method)


def excess_interval(
    tables: ArrayLike | Sequence[ArrayLike],
    region: ArrayLike | Sequence[ArrayLike],
    *,
    rng: np.random.Generator,
    draws: int = 20_000,
    level: float = 0.95,
    mode: Mode = "auto",
) -> Interval:
    """Interval of the excess share (region count minus its null mean, over all items).

    Parameters
    ----------
    tables, region
        As in :func:`auditlib.stats.null.region_null`.  Several tables: items are resampled inside each, and each
        table's null is recomputed from its own resampled margins.
    mode : "auto", "weights" or "normal"
        See :func:`auditlib.stats.resample.weighted_totals`; ``auto`` leaves the plain bootstrap for its normal limit,
        with the excess linearised in the margins, from 2,000 items where weights alone would exceed 10 million.

    Returns
    -------
    Interval
        Percentile bootstrap.  One table under 50 items: jackknife-t; under 10: no interval.

    Notes
    -----
    Each draw's excess is ``(T* - f*' A b* / N) N / (N - 1)`` in each table: resampling N items shrinks the excess by
    ``1 - 1/N``, as it does a covariance, which would pull the interval of many small strata towards 0.  Coverage of
    the nominal 95% in simulated pools (ties of 3 models, 400 to 3,000 pools for each of three strengths of the
    item-level link): percentile 93 to 95% at 60, 100, 250 and 1,500 items, jackknife-t 93 to 95% at 12, 20, 30 and 49.
    """
    parts = [lump(t, a) for t, a in as_blocks(tables, region)]
    n = sum(int(t.sum()) for t, _ in parts)
    if n < TINY:
        return no_interval(f"{n} items" if n else "no items", level)
    if len(parts) == 1 and n < SMALL:
        return _jackknife(*parts[0], level)
    total, cells = np.zeros(draws), [_cells(t, a) for t, a in parts]
    mode, note = _decide(mode, cells, draws)
    for (stats, freq), (_, a) in zip(cells, parts, strict=True):
        total += _draw(stats, freq, [a], draws, rng, mode)[0] * _unshrink(freq, mode)
    return percentile(total / n, level, "percentile bootstrap" + note)


def cluster_excess_interval(
    full: ArrayLike,
    blind: ArrayLike,
    block: ArrayLike,
    cluster: ArrayLike,
    regions: Sequence[ArrayLike],
    *,
    rng: np.random.Generator,
    draws: int = 20_000,
    level: float = 0.95,
    mode: Mode = "auto",
) -> Interval:
    """Interval of the excess share when items come in clusters (one image, one source).

    Parameters
    ----------
    full, blind : int arrays, shape (items,)
    block : int array, shape (items,)
        Code ``0..`` of the permutation block (all 0 for the pooled null).
    cluster : array, shape (items,)
        Cluster of each item, any labels.
    regions : one region for each block code

    Notes
    -----
    Whole clusters are drawn with replacement, inside blocks where no cluster straddles two of them and across the
    pool otherwise; observed count, margins, null and number of items are recomputed in each draw.
    """
    f, b, g = (np.asarray(x, np.intp) for x in (full, blind, block))
    _, c = np.unique(np.asarray(cluster), return_inverse=True)
    regions = [np.asarray(r, bool) for r in regions]
    clusters = int(c.max()) + 1 if c.size else 0
    if clusters < TINY:
        return no_interval(f"{clusters} clusters", level)
    nested = len(np.unique(np.stack([c, g], 1), axis=0)) == clusters
    pools = [g == k for k in np.unique(g)] if nested else [np.ones(len(g), bool)]
    excess, items, patterns, used = np.zeros(draws), np.zeros(draws), [], []
    for part in pools:
        codes = np.unique(g[part])
        used.append([regions[k] for k in codes])
        patterns.append(_clusters(f[part], b[part], np.searchsorted(codes, g[part]), c[part], used[-1]))
    mode, note = _decide(mode, patterns, draws)
    for (stats, freq), a in zip(patterns, used, strict=True):
        drawn = _draw(stats, freq, a, draws, rng, mode)
        excess, items = excess + drawn[0] * _unshrink(freq, mode), items + drawn[1]
    return percentile(excess / items, level, "percentile cluster bootstrap" + note)


def _unshrink(freq: NDArray, mode: Mode) -> float:
    """N / (N - 1) of a block's units: takes back what resampling shrinks (the linearised draws do not shrink)."""
    n = int(freq.sum())
    return n / (n - 1) if mode == "weights" and n > 1 else 1.0


def _decide(mode: Mode, patterns: Sequence[tuple[Any, NDArray]], draws: int) -> tuple[Mode, str]:
    """One mode for all blocks of a pool, and the words that say so."""
    kinds, units = sum(len(freq) for _, freq in patterns), sum(int(freq.sum()) for _, freq in patterns)
    normal = uses_normal(kinds, units, draws, mode)
    return ("normal", ", normal limit of the weights") if normal else ("weights", "")


def _cells(table: NDArray, region: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Occupied cells as patterns: what an item there adds to (region count, row margins, column margins)."""
    k, m = np.nonzero(table)
    stats = np.zeros((len(k), 1 + sum(table.shape)))
    at = np.arange(len(k))
    stats[:, 0] = region[k, m]
    stats[at, 1 + k] = 1
    stats[at, 1 + table.shape[0] + m] = 1
    return stats, table[k, m]


def _clusters(f: NDArray, b: NDArray, g: NDArray, c: NDArray, regions: Sequence[NDArray]) -> tuple[Any, NDArray]:
    """Distinct clusters as patterns: sums of their items' (region count, margins) in every block."""
    from scipy import sparse

    widths = np.array([1 + sum(r.shape) for r in regions])
    offset = np.concatenate([[0], np.cumsum(widths)])
    rows = np.array([r.shape[0] for r in regions])
    hit = np.concatenate([r[f[g == k], b[g == k]] for k, r in enumerate(regions)])
    order = np.concatenate([np.flatnonzero(g == k) for k in range(len(regions))])
    inside = np.empty(len(f), bool)
    inside[order] = hit
    # one cluster's pattern is its sorted list of cells
    cell = (g * rows.max() + f) * max(r.shape[1] for r in regions) + b
    by = np.lexsort((cell, c))
    _, start, size = np.unique(c[by], return_index=True, return_counts=True)
    freqs, entries, base = [], [], 0
    for s in np.unique(size):
        lists = by[start[size == s][:, None] + np.arange(s)]
        first, counts = first_rows(cell[lists])
        freqs.append(counts)
        at, item = np.repeat(base + np.arange(len(first)), s), lists[first].ravel()
        left = offset[g[item]]
        entries += [(at, left, inside[item]), (at, left + 1 + f[item], np.ones(len(at))),
                    (at, left + 1 + rows[g[item]] + b[item], np.ones(len(at)))]  # fmt: skip
        base += len(first)
    i, j, v = (np.concatenate([np.asarray(e[x], float if x == 2 else np.intp) for e in entries]) for x in range(3))
    stats = sparse.csr_array((v, (i, j)), shape=(base, int(offset[-1])))
    dense = base * offset[-1] <= 2_000_000
    return (stats.toarray() if dense else stats), np.concatenate(freqs)


def _draw(stats: Any, freq: NDArray, regions: Sequence[NDArray], draws: int, rng: np.random.Generator, mode: Mode
          ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """Excess count and number of items of each draw of one set of units."""
    if mode == "normal":
        stats, regions = _linear(stats, freq, regions), None
    batches = [_excess_of(t, regions) for t in weighted_totals(stats, freq, draws, rng, mode)]
    return tuple(np.concatenate(x) for x in zip(*batches, strict=True))  # type: ignore[return-value]


def _excess_of(totals: NDArray, regions: Sequence[NDArray] | None) -> tuple[NDArray, NDArray]:
    if regions is None:
        return totals[:, 0], totals[:, 1]
    excess, items, left = np.zeros(len(totals)), np.zeros(len(totals)), 0
    for a in regions:
        r, s = a.shape
        f, b = totals[:, left + 1 : left + 1 + r], totals[:, left + 1 + r : left + 1 + r + s]
        n = f.sum(1)
        null = np.einsum("dr,dr->d", f, b @ a.T.astype(float))
        excess += totals[:, left] - np.divide(null, n, out=np.zeros_like(n), where=n > 0)
        items += n
        left += 1 + r + s
    return excess, items


def _linear(stats: Any, freq: NDArray, regions: Sequence[NDArray]) -> NDArray[np.float64]:
    """What one unit adds to (excess, items), the excess linearised at the observed margins."""
    total = np.asarray(stats.T @ freq.astype(float)).ravel()
    slope, count, left = np.zeros(len(total)), np.zeros(len(total)), 0
    for a in regions:
        r, s = a.shape
        rows, cols = slice(left + 1, left + 1 + r), slice(left + 1 + r, left + 1 + r + s)
        f, b, n = total[rows], total[cols], total[rows].sum()
        slope[left] = 1
        slope[rows] = -(a @ b) / n + (f @ a @ b) / n**2
        slope[cols] = -(f @ a) / n
        count[rows] = 1
        left += 1 + r + s
    return np.column_stack([stats @ slope, stats @ count])


def _jackknife(table: NDArray, region: NDArray, level: float) -> Interval:
    from scipy.special import stdtrit

    n, f, b = int(table.sum()), table.sum(1), table.sum(0)
    by_row, by_col = region @ b, f @ region
    seen, null = int(table[region].sum()), int(f @ by_row)
    k, m = np.nonzero(table)
    a, weight = region[k, m].astype(float), table[k, m]
    without = ((seen - a) - (null - by_row[k] - by_col[m] + a) / (n - 1)) / (n - 1)
    centre = (weight @ without) / n
    se = math.sqrt((n - 1) / n * float(weight @ (without - centre) ** 2))
    half = float(stdtrit(n - 1, 0.5 + level / 2)) * se
    estimate = (seen - null / n) / n
    return Interval(estimate - half, estimate + half, level, "jackknife-t")


def bootstrap_function(
    stats: Any, freq: ArrayLike, function: Callable[[NDArray], NDArray], *, rng: np.random.Generator,
    draws: int = 20_000, level: float = 0.95, mode: Mode = "auto", what: str = "percentile bootstrap",
) -> Interval:  # fmt: skip
    """Percentile interval of ``function(totals)`` over weighted draws of patterns."""
    freq = np.asarray(freq, np.int64)
    normal = uses_normal(len(freq), int(freq.sum()), draws, mode)
    values = np.concatenate([function(t) for t in weighted_totals(stats, freq, draws, rng, mode)])
    return percentile(values, level, what + (", normal limit of the weights" if normal else ""))
