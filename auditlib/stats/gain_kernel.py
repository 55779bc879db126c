"""Counts of models that gain and lose an item through the image: their law given the item, thinning, model noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlogy

Floats = NDArray[np.float64]


def cells(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Gained and lost counts of every cell of the triangle ``gained + lost <= n``, row by row."""
    a, b = np.indices((n + 1, n + 1))
    inside = a + b <= n
    return a[inside], b[inside]


def cell_of(gained: ArrayLike, lost: ArrayLike, n: int) -> NDArray[np.int64]:
    """Place in :func:`cells` of counts."""
    a = np.asarray(gained, np.int64)
    return a * (n + 1) - a * (a - 1) // 2 + np.asarray(lost, np.int64)


def trinomial(n: int, gain: ArrayLike, loss: ArrayLike) -> Floats:
    """Probability of every cell for ``n`` models, shape (points, cells).

    Parameters
    ----------
    gain, loss : shape (points,)
        Probability that a model is right with the image only, and without it only.
    """
    a, b = cells(n)
    x, y = (np.asarray(v, float)[:, None] for v in (gain, loss))
    rest = np.clip(1 - x - y, 0, 1)
    ways = gammaln(n + 1) - gammaln(a + 1) - gammaln(b + 1) - gammaln(n - a - b + 1)
    return np.exp(ways + xlogy(a, x) + xlogy(b, y) + xlogy(n - a - b, rest))


def thinning(n: int, size: int) -> Floats:
    """Law of the counts of ``size`` models drawn from ``n`` without replacement, shape (cells of n, cells of size).

    Multivariate hypergeometric: the mean of any function of the smaller counts over all subsets of models.

    Examples
    --------
    >>> thinning(2, 1).round(2)[:2].tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    """
    a, b = (v[:, None] for v in cells(n))
    x, y = (v[None] for v in cells(size))
    return np.exp(
        _choose(a, x) + _choose(b, y) + _choose(n - a - b, size - x - y) - _choose(np.array(n), np.array(size))
    )


def _choose(n: NDArray, k: NDArray) -> Floats:
    """Logarithm of n over k; minus infinity where there is no way."""
    n, k = np.broadcast_arrays(n, k)
    fits = (k >= 0) & (k <= n)
    j = np.where(fits, k, 0)
    return np.where(fits, gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1), -np.inf)


@dataclass(frozen=True)
class Changes:
    """What the image changes: +1 a model is right with it only, -1 without it only, 0 the same, by item and model.

    ``seen`` marks cells with both runs, None where all have them; ``group`` holds the rows of each number of models.
    """

    change: NDArray[np.int8]
    seen: NDArray[np.bool_] | None
    group: dict[int, NDArray[np.int64]]

    @property
    def items(self) -> int:
        return self.change.shape[0]

    @property
    def models(self) -> int:
        return self.change.shape[1]

    @property
    def least(self) -> int:
        """Models of the item that has fewest."""
        return min(self.group)


def changes(full: ArrayLike, blind: ArrayLike, observed: ArrayLike | None = None) -> Changes:
    """Compare two arrays of 0/1 hits.

    Parameters
    ----------
    full, blind : shape (items, models)
    observed : boolean, same shape, optional
        Cells with both runs; items without any are an error.

    Raises
    ------
    ValueError
        Shapes disagree, values other than 0 and 1, no items, or an item that no model was asked in both runs.
    """
    f, b = np.asarray(full), np.asarray(blind)
    if f.ndim != 2 or f.shape != b.shape or not f.size:
        raise ValueError("two arrays of hits of one shape (items, models) are needed")
    seen = None if observed is None else np.asarray(observed, bool)
    for h in (f, b):
        wrong = (h != 0) & (h != 1)
        if (wrong if seen is None else wrong & seen).any():
            raise ValueError("hits must be 0 or 1: one draw of each model")
    change = (f > 0).astype(np.int8) - (b > 0).astype(np.int8)
    if seen is None or seen.all():
        return Changes(change, None, {f.shape[1]: np.arange(len(f))})
    size = seen.sum(axis=1)
    if not size.all():
        raise ValueError(f"{int((size == 0).sum())} items have no model with both runs")
    return Changes(
        np.where(seen, change, 0).astype(np.int8), seen, {int(n): np.flatnonzero(size == n) for n in np.unique(size)}
    )


def tables(c: Changes) -> dict[int, NDArray[np.int64]]:
    """Items in every cell of :func:`cells`, by number of models."""
    gained, lost = (c.change > 0).sum(axis=1), (c.change < 0).sum(axis=1)
    return {
        n: np.bincount(cell_of(gained[rows], lost[rows], n), minlength=(n + 1) * (n + 2) // 2)
        for n, rows in c.group.items()
    }


def item_cells(c: Changes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Gained and lost counts of each item."""
    return (c.change > 0).sum(axis=1), (c.change < 0).sum(axis=1)


@dataclass(frozen=True)
class Thinned:
    """Mean table over all subsets of models, and how it varies; cells as in :func:`cells`.

    ``mean`` has shape (cells,); ``covariance`` (cells, cells) is of one item's row. ``without`` (models, cells) holds
    what leaving out each model changes, scaled so that squares add to a jackknife variance; ``shared`` (cells, cells)
    is that part of it which items scatter independently of each other, and which ``covariance`` has already.
    """

    mean: Floats
    covariance: Floats
    without: Floats
    shared: Floats


def thinned(c: Changes, size: int) -> Thinned:
    """Thin every item's counts to ``size`` models; items must have more."""
    width = (size + 1) * (size + 2) // 2
    mean, second = np.zeros(width), np.zeros((width, width))
    without, shared = np.zeros((c.models, width)), np.zeros((width, width))
    gained, lost = item_cells(c)
    for n, rows in c.group.items():
        lift, steps = _leave_one_out(n, size)
        at = cell_of(gained[rows], lost[rows], n)
        here = np.bincount(at, minlength=len(lift))
        mean += here @ lift
        second += (lift * here[:, None]).T @ lift
        scale = (n - 1) / n
        for change, (step, times) in steps.items():
            shared += scale * (step * (here * times)[:, None]).T @ step
            for m in range(c.models):
                mine = c.change[rows, m] == change
                if c.seen is not None:
                    mine &= c.seen[rows, m]
                without[m] += math.sqrt(scale) * (np.bincount(at[mine], minlength=len(lift)) @ step)
    mean, without = mean / c.items, without / c.items
    return Thinned(mean, second / c.items - np.outer(mean, mean), without, shared / c.items**2)


def _leave_one_out(n: int, size: int) -> tuple[Floats, dict[int, tuple[Floats, NDArray[np.int64]]]]:
    """Thinning of ``n`` models, and for each kind of model what its leaving changes and how many each cell has."""
    a, b = cells(n)
    lift, fewer = thinning(n, size), thinning(n - 1, size)
    steps = {}
    for change, times in ((1, a), (-1, b), (0, n - a - b)):
        has = times > 0
        step = np.zeros_like(lift)
        left = cell_of(a[has] - (change > 0), b[has] - (change < 0), n - 1)
        step[has] = fewer[left] - lift[has]
        steps[change] = step, times
    return lift, steps
