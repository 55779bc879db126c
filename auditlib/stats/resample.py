"""Weighted bootstrap draws over distinct patterns instead of units, so that cost follows the patterns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: weights held at once
BATCH = 2_000_000
#: above so many weights in all, and from so many units, totals are drawn from their normal limit
MAX_WEIGHTS, MIN_UNITS = 10_000_000, 2_000

Mode = Literal["auto", "weights", "normal"]


def distinct_rows(rows: ArrayLike) -> tuple[NDArray, NDArray[np.int64]]:
    """Distinct rows of an integer matrix and how often each occurs."""
    a = np.ascontiguousarray(rows)
    first, counts = first_rows(a)
    return a[first], counts


def first_rows(rows: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the first of each kind of row of an integer matrix, and how often the kind occurs."""
    a = np.ascontiguousarray(rows)
    if a.ndim != 2:
        raise ValueError("a matrix is needed")
    if not a.size:
        return np.arange(min(1, len(a))), np.full(min(1, len(a)), len(a), np.int64)
    # rows as single byte strings sort several times faster than np.unique(axis=0)
    packed = a.view(np.dtype((np.void, a.dtype.itemsize * a.shape[1]))).ravel()
    _, first, counts = np.unique(packed, return_index=True, return_counts=True)
    return first.astype(np.int64), counts.astype(np.int64)


def uses_normal(patterns: int, units: int, draws: int, mode: Mode = "auto") -> bool:
    """Whether :func:`weighted_totals` draws from the normal limit."""
    return mode == "normal" or (mode == "auto" and units >= MIN_UNITS and patterns * draws > MAX_WEIGHTS)


def weighted_totals(
    stats: Any, freq: ArrayLike, draws: int, rng: np.random.Generator, mode: Mode = "auto"
) -> Iterator[NDArray[np.float64]]:
    """Bootstrap totals ``sum_u w_u z_u`` in batches.

    Parameters
    ----------
    stats : array or scipy sparse matrix, shape (patterns, statistics)
        What one unit of each pattern adds to each statistic.
    freq : int array, shape (patterns,)
        Units of each pattern.
    draws : int
        Bootstrap draws.
    mode : "auto", "weights" or "normal"
        ``weights`` resamples units: multinomial weights over patterns, the plain bootstrap exactly.  ``normal`` draws
        the totals from the normal law with the bootstrap's mean and covariance, its limit for many units.

    Yields
    ------
    float array, shape (some draws, statistics)
    """
    freq = np.asarray(freq, np.int64)
    n, patterns, width = int(freq.sum()), len(freq), stats.shape[1]
    if not uses_normal(patterns, n, draws, mode):
        step = max(1, BATCH // max(patterns, width, 1))
        for start in range(0, draws, step):
            w = rng.multinomial(n, freq / n, size=min(step, draws - start))
            yield w.astype(float) @ stats
        return
    total = np.asarray(stats.T @ freq.astype(float)).ravel()
    scaled = stats.multiply(freq[:, None]) if hasattr(stats, "multiply") else stats * freq[:, None]
    second = stats.T @ scaled
    second = second.toarray() if hasattr(second, "toarray") else np.asarray(second)
    value, vector = np.linalg.eigh(second - np.outer(total, total) / n)
    root = vector * np.sqrt(np.clip(value, 0, None))
    step = max(1, BATCH // max(width, 1))
    for start in range(0, draws, step):
        yield total + rng.standard_normal((min(step, draws - start), width)) @ root.T
