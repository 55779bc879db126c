"""Bounds of a share when every abstained answer may have been right or wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Bounds:
    """Items certainly and possibly in a region, of ``n``; ``always`` and ``possible`` mark them one by one."""

    n: int
    always: NDArray[np.bool_]
    possible: NDArray[np.bool_]

    @property
    def low(self) -> float:
        return int(self.always.sum()) / self.n if self.n else float("nan")

    @property
    def high(self) -> float:
        return int(self.possible.sum()) / self.n if self.n else float("nan")

    def as_row(self) -> dict[str, Any]:
        return {"n": self.n, "low": self.low, "high": self.high}


def attainable_bounds(
    full: ArrayLike,
    full_abstained: ArrayLike,
    blind: ArrayLike,
    blind_abstained: ArrayLike,
    region: ArrayLike,
) -> Bounds:
    """Share of items always in a region and possibly in it.

    Parameters
    ----------
    full, blind : int arrays, shape (items,)
        Correct answers; an abstention counts as wrong here.
    full_abstained, blind_abstained : int arrays, shape (items,)
        Abstained answers, each of which may be 0 or 1.
    region : bool array, shape (levels_F, levels_B)

    Raises
    ------
    ValueError
        When hits and abstentions together exceed the region's levels.

    Notes
    -----
    Abstained cells vary freely, so an item attains the rectangle ``[F, F + a_F] x [B, B + a_B]``; it is always in the
    region if all cells of the rectangle are, possibly if one is.  Cells are counted by two-dimensional prefix sums.
    """
    f, fa, b, ba = (np.asarray(x, np.int64) for x in (full, full_abstained, blind, blind_abstained))
    a = np.asarray(region, bool)
    f1, b1 = f + fa + 1, b + ba + 1
    if f.size and (min(map(np.min, (f, fa, b, ba))) < 0 or f1.max() > a.shape[0] or b1.max() > a.shape[1]):
        raise ValueError("hits and abstentions do not fit the region's levels")
    prefix = np.zeros((a.shape[0] + 1, a.shape[1] + 1), np.int64)
    prefix[1:, 1:] = a.cumsum(0).cumsum(1)
    inside = prefix[f1, b1] - prefix[f, b1] - prefix[f1, b] + prefix[f, b]
    return Bounds(len(f), inside == (fa + 1) * (ba + 1), inside > 0)


def merge(parts: list[Bounds]) -> Bounds:
    """Bounds of several groups of items (unequal totals) as one; items follow the order of the parts."""
    if not parts:
        return Bounds(0, np.zeros(0, bool), np.zeros(0, bool))
    return Bounds(sum(p.n for p in parts), np.concatenate([p.always for p in parts]),
                  np.concatenate([p.possible for p in parts]))  # fmt: skip
