"""Joint tables of full and blind counts, regions of them, and the law of a region count under permutation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: array elements held at once while random tables are drawn
BATCH = 4_000_000


def joint_table(full: ArrayLike, blind: ArrayLike, total: int) -> NDArray[np.int64]:
    """Count items by full and blind count.

    Parameters
    ----------
    full, blind : integer arrays, shape (items,)
        Correct answers of an item over models and draws, with and without the image, in ``0..total``.
    total : int
        Models times draws.

    Returns
    -------
    int array, shape (total + 1, total + 1)
        ``table[F, B]`` items.

    Raises
    ------
    ValueError
        When the arrays differ in length, are no integers, or a count lies outside ``0..total``.

    Examples
    --------
    >>> joint_table([0, 1, 1], [0, 0, 1], 1)
    array([[1, 0],
           [1, 1]])
    """
    f, b = np.asarray(full), np.asarray(blind)
    if f.shape != b.shape or f.ndim != 1:
        raise ValueError(f"full and blind counts must be vectors of one length, not {f.shape} and {b.shape}")
    side = int(total) + 1
    if not f.size:
        return np.zeros((side, side), np.int64)
    if f.dtype.kind not in "iub" or b.dtype.kind not in "iub":
        raise ValueError("counts must be integers")
    if min(int(f.min()), int(b.min())) < 0 or max(int(f.max()), int(b.max())) > total:
        raise ValueError(f"counts must lie in 0..{total}")
    # sums of uint8 hits are uint64, which numpy mixes with signed integers to floats
    return np.bincount(f.astype(np.intp) * side + b.astype(np.intp), minlength=side * side).reshape(side, side)


def group_tables(full: ArrayLike, blind: ArrayLike, total: int, group: ArrayLike) -> NDArray[np.int64]:
    """One joint table per group code ``0..max``, shape (groups, total + 1, total + 1)."""
    g = np.asarray(group, np.intp)
    groups, side = (int(g.max()) + 1 if g.size else 0), int(total) + 1
    flat = joint_table(np.asarray(full), np.asarray(blind), total)  # checks the counts
    if groups == 0:
        return np.zeros((0, *flat.shape), np.int64)
    cell = (g * side + np.asarray(full, np.intp)) * side + np.asarray(blind, np.intp)
    return np.bincount(cell, minlength=groups * side * side).reshape(groups, side, side)


def tie_region(full_levels: int, blind_levels: int | None = None) -> NDArray[np.bool_]:
    """The exact tie ``F = B`` as a region, shape (full_levels, blind_levels)."""
    return np.eye(full_levels, full_levels if blind_levels is None else blind_levels, dtype=bool)


def composition(tables: Sequence[ArrayLike]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Observed and expected items in each cell ``F = B = k``, summed over permutation blocks.

    Notes
    -----
    The expected count of level k in a block of N items is ``f_k b_k / N``; the levels' excesses add up to the excess
    of the tie.  Tables of different sizes are padded at the top.
    """
    arrays = [np.asarray(t) for t in tables]
    levels = max((min(t.shape) for t in arrays), default=0)
    observed, expected = np.zeros(levels, np.int64), np.zeros(levels)
    for t in arrays:
        m, n = min(t.shape), int(t.sum())
        observed[:m] += np.diagonal(t)
        if n:
            expected[:m] += t.sum(1)[:m] * t.sum(0)[:m] / n
    return observed, expected


def as_blocks(tables: ArrayLike | Sequence[ArrayLike], region: ArrayLike | Sequence[ArrayLike]) -> list[tuple]:
    """Pair each non-empty table with its region; one region may serve all tables.

    Raises
    ------
    ValueError
        When shapes or numbers of tables and regions disagree.
    """
    arrays = [np.asarray(t) for t in (tables if _is_many(tables) else [tables])]
    regions = [np.asarray(r, bool) for r in (region if _is_many(region) else [region] * len(arrays))]
    if len(regions) != len(arrays):
        raise ValueError(f"{len(arrays)} tables but {len(regions)} regions")
    for t, r in zip(arrays, regions, strict=True):
        if t.ndim != 2 or t.shape != r.shape:
            raise ValueError(f"table {t.shape} and region {r.shape} must have one shape")
        if t.dtype.kind not in "iu" or (t < 0).any():
            raise ValueError("tables must hold counts of items")
    return [(t.astype(np.int64), r) for t, r in zip(arrays, regions, strict=True) if t.sum() > 0]


def _is_many(x: ArrayLike | Sequence[ArrayLike]) -> bool:
    return x.ndim == 3 if isinstance(x, np.ndarray) else not len(x) or np.asarray(x[0]).ndim == 2


def lump(table: NDArray, region: NDArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Drop empty levels and merge levels that the region does not tell apart.

    Under permutation the merged table is again a random table with fixed margins, and the region count is the same,
    so everything below is computed on the smallest table that will do.
    """
    rows, cols = table.sum(1) > 0, table.sum(0) > 0
    t, a = table[rows][:, cols], region[rows][:, cols]
    for _ in range(2):  # rows, then columns (as rows of the transpose)
        code: dict[bytes, int] = {}
        which = [code.setdefault(row.tobytes(), len(code)) for row in a]
        if len(code) < len(a):
            merged = np.zeros((len(code), t.shape[1]), np.int64)
            np.add.at(merged, which, t)
            t, a = merged, a[[which.index(c) for c in range(len(code))]]
        t, a = t.T, a.T
    return t, a


def moments(table: NDArray, region: NDArray) -> tuple[float, float]:
    """Mean and variance of the region count when blind counts are permuted over the items of one table.

    Notes
    -----
    ``E = f' A b / N`` and, with the doubly centred ``d`` of A, ``Var = sum f_k b_l d_kl^2 / (N - 1)``
    (Hoeffding 1951); for the tie this is the closed form of the matching problem.
    """
    f, b, n = table.sum(1), table.sum(0), int(table.sum())
    by_row, by_col = region @ b, f @ region
    total = int(f @ by_row)
    if n < 2:
        return float(total), 0.0
    d = region - by_row[:, None] / n - by_col[None, :] / n + total / n / n
    return total / n, float(f @ (d * d) @ b) / (n - 1)


def random_counts(table: NDArray, region: NDArray, draws: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Region counts of random tables with the margins of ``table``, in batches that add up to ``draws``."""
    f, b = table.sum(1), table.sum(0)
    if min(table.shape) == 1:  # one level: the table is fixed by its margins
        yield np.full(draws, int(table[region].sum()), np.int64)
        return
    from scipy.stats import random_table  # slow to import

    law, step = random_table(f, b), max(1, BATCH // table.size)
    for start in range(0, draws, step):
        drawn = law.rvs(min(step, draws - start), random_state=rng)
        # a share of one level pair is an exact small float, so the sum is an integer
        yield np.rint(drawn.reshape(-1, table.size) @ region.ravel().astype(float)).astype(np.int64)
