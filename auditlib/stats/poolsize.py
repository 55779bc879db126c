"""How share and excess of ties move with the number of models in the pool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: counts held at once
BATCH = 20_000_000


@dataclass(frozen=True)
class PoolSize:
    """Tie share and pooled excess of every subset of one size; ``complete`` when all subsets were taken."""

    size: int
    complete: bool
    shares: NDArray[np.float64]
    excesses: NDArray[np.float64]

    def as_row(self, what: str = "excess") -> dict[str, Any]:
        """Median, least and greatest value over subsets of ``share`` or ``excess``."""
        v = {"share": self.shares, "excess": self.excesses}[what]
        return {"level": self.size, "n": len(v), "estimate": float(np.median(v)), "low": float(v.min()),
                "high": float(v.max())}  # fmt: skip


def pool_size_curve(
    full: ArrayLike,
    blind: ArrayLike,
    *,
    rng: np.random.Generator,
    sizes: Sequence[int] | None = None,
    most: int = 200,
) -> list[PoolSize]:
    """Tie share and excess over the pooled closed-form null for subsets of models.

    Parameters
    ----------
    full, blind : int arrays, shape (items, models)
        Hits of complete items, one column for each model (sums over draws allowed).
    sizes : pool sizes, by default 1 to all models
    most : int
        All subsets of a size where there are at most so many, else so many distinct random ones.

    Notes
    -----
    A subset's counts are one matrix product with the subsets' indicator; share minus ``sum_k f_k b_k / N^2``.
    Both fall with pool size by construction: more levels, fewer ties.
    """
    f, b = np.asarray(full), np.asarray(blind)
    if f.shape != b.shape or f.ndim != 2:
        raise ValueError("full and blind hits must be matrices of one shape, items x models")
    items, models = f.shape
    out = []
    for size in sizes if sizes is not None else range(1, models + 1):
        chosen, complete = subsets(models, size, most, rng)
        shares, excesses = (np.full(len(chosen), float("nan")) for _ in range(2))
        step = max(1, BATCH // max(items, 1))
        for at in range(0, len(chosen) if items else 0, step):
            pick = np.zeros((models, len(chosen[at : at + step])), np.float32)
            pick[chosen[at : at + step].T, np.arange(pick.shape[1])] = 1
            # float32 products of small integers are exact and use BLAS
            sums = [(pick.T @ x.T.astype(np.float32)).astype(np.int32) for x in (f, b)]
            for j, (u, v) in enumerate(zip(*sums, strict=True)):
                levels = int(max(u.max(), v.max())) + 1
                ties = int(np.count_nonzero(u == v))
                null = int(np.bincount(u, minlength=levels) @ np.bincount(v, minlength=levels)) / items
                shares[at + j], excesses[at + j] = ties / items, (ties - null) / items
        out.append(PoolSize(size, complete, shares, excesses))
    return out


def subsets(models: int, size: int, most: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], bool]:
    """Subsets of ``size`` models, shape (subsets, size): all of them if at most ``most``, else ``most`` distinct."""
    if not 1 <= size <= models:
        raise ValueError(f"a pool of {models} models has no subset of {size}")
    if math.comb(models, size) <= most:
        return np.array(list(combinations(range(models), size)), np.int64), True
    found: dict[tuple[int, ...], None] = {}
    while len(found) < most:
        found[tuple(sorted(rng.permutation(models)[:size].tolist()))] = None
    return np.array(list(found), np.int64), False
