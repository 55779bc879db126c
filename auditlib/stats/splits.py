"""Split halves: how far the excess of one half of the items lies from the other's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.tables import as_blocks, lump

NAN = float("nan")


@dataclass(frozen=True)
class SplitHalves:
    """Median absolute difference of the two halves' excess shares.

    ``differences`` are the absolute differences of all splits; ``expected`` is the mean median over tables drawn from
    the fitted F x B law, ``expected_low`` and ``expected_high`` its central 95%.
    """

    n: int
    median: float
    expected: float
    expected_low: float
    expected_high: float
    differences: NDArray[np.float64] = field(repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        return {"n": self.n, "estimate": self.median, "null": self.expected, "low": self.expected_low,
                "high": self.expected_high}  # fmt: skip


def split_halves(
    tables: ArrayLike | Sequence[ArrayLike],
    region: ArrayLike | Sequence[ArrayLike],
    *,
    rng: np.random.Generator,
    splits: int = 20,
    worlds: int = 400,
) -> SplitHalves:
    """Split the items at random into two halves, many times, and compare the excess shares.

    Parameters
    ----------
    tables, region
        As in :func:`auditlib.stats.null.region_null`; several tables: each half's null is the sum over its blocks.
    splits : int
        Random splits of the pool.
    worlds : int
        Tables drawn from the fitted law, each split as often, for the expected median.

    Notes
    -----
    A random half of the items is a multivariate hypergeometric draw of table cells, so no item is ever moved.  Nulls
    are exact means.  The fitted law is the observed F x B table (and block shares) as cell probabilities: the expected
    median says how far halves of a pool of this size lie apart when nothing but chance separates them.
    """
    parts = [lump(t, a) for t, a in as_blocks(tables, region)]
    n = sum(int(t.sum()) for t, _ in parts)
    if n < 2:
        return SplitHalves(n, NAN, NAN, NAN, NAN, differences=np.full(splits, NAN))
    cells = np.concatenate([t.ravel() for t, _ in parts])
    differences = _differences(cells, parts, splits, rng)
    drawn = rng.multinomial(n, cells / n, size=worlds)
    medians = np.array([np.median(_differences(c, parts, splits, rng)) for c in drawn]) if worlds else np.full(1, NAN)
    low, high = np.quantile(medians, [0.025, 0.975])
    return SplitHalves(
        n, float(np.median(differences)), float(medians.mean()), float(low), float(high), differences=differences
    )


def half_difference(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], region: ArrayLike | Sequence[ArrayLike]
) -> float:
    """Absolute difference of the excess shares of two given halves, for a split protocol of one's own."""
    return abs(_share(first, region) - _share(second, region))


def _share(tables: Sequence[ArrayLike], region: ArrayLike | Sequence[ArrayLike]) -> float:
    parts = as_blocks(tables, region)
    cells = np.concatenate([t.ravel() for t, _ in parts])
    return float(_excess(cells[None], parts)[0])


def _differences(cells: NDArray, parts: Sequence[tuple], splits: int, rng: np.random.Generator) -> NDArray[np.float64]:
    half = rng.multivariate_hypergeometric(cells, int(cells.sum()) // 2, size=splits, method="marginals")
    return np.abs(_excess(half, parts) - _excess(cells - half, parts))


def _excess(cells: NDArray, parts: Sequence[tuple]) -> NDArray[np.float64]:
    """Excess share of each row of cells."""
    out, left = np.zeros(len(cells)), 0
    for t, a in parts:
        part = cells[:, left : left + t.size].reshape(-1, *t.shape).astype(float)
        f, b = part.sum(2), part.sum(1)
        n = f.sum(1)
        null = np.einsum("dr,dr->d", f, b @ a.T.astype(float))
        out += part[:, a].sum(1) - np.divide(null, n, out=np.zeros_like(n), where=n > 0)
        left += t.size
    return out / cells.sum(1)
