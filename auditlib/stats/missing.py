"""Groups of items with one missingness pattern, inside which blind counts may be exchanged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: complete cases are used while they keep at least this share of items (95 of 100, compared in integers)
KEEP = (95, 100)


@dataclass(frozen=True)
class MissingnessGroups:
    """Permutation groups of items.

    ``group`` is the code of each item's group, -1 where no model counts; ``models`` the number of models that count
    in each group, ``size`` its items, ``pooled`` whether it gathers small patterns, ``patterns`` how many.
    """

    group: NDArray[np.int64] = field(repr=False)
    models: NDArray[np.int64]
    size: NDArray[np.int64]
    pooled: NDArray[np.bool_]
    patterns: NDArray[np.int64]

    def as_row(self) -> dict[str, Any]:
        return {"groups": len(self.size), "items": int(self.size.sum()), "without_models": int((self.group < 0).sum()),
                "pooled_items": int(self.size[self.pooled].sum()), "patterns": int(self.patterns.sum())}  # fmt: skip


def complete_cases(observed: ArrayLike) -> tuple[NDArray[np.bool_], bool]:
    """Items that every model has, and whether they keep at least 95% of all items.

    Parameters
    ----------
    observed : bool array, shape (items, models)
        Both runs of the model have the item.
    """
    complete = np.asarray(observed, bool).all(1)
    return complete, bool(len(complete)) and KEEP[1] * int(complete.sum()) >= KEEP[0] * len(complete)


def missingness_groups(observed: ArrayLike, min_size: int = 50) -> MissingnessGroups:
    """Group items by the models that count for them.

    Parameters
    ----------
    observed : bool array, shape (items, models)
        Both runs of the model have the item.
    min_size : int
        Smaller groups are pooled with others of the same number of models, never of another number: counts over
        unequal totals are not comparable.  A pooled group may stay small; permuting inside it then says little, which
        is right.

    Returns
    -------
    MissingnessGroups
        Groups in the order: number of models (most first), own patterns before the pooled group.
    """
    seen = np.asarray(observed, bool)
    if seen.ndim != 2:
        raise ValueError("observed must be a matrix, items x models")
    group = np.full(len(seen), -1, np.int64)
    if not seen.size:
        none = np.zeros(0, np.int64)
        return MissingnessGroups(group, none, none, np.zeros(0, bool), none)
    packed = np.packbits(seen, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    which, models = which.ravel(), seen[first].sum(1)
    code = np.full(len(first), -1, np.int64)
    rows: list[tuple[int, int, bool, int]] = []
    for m in sorted({int(x) for x in models if x > 0}, reverse=True):
        here = np.flatnonzero(models == m)
        small = here[count[here] < min_size]
        if len(small) == 1:  # nothing to pool it with
            small = small[:0]
        for p in np.setdiff1d(here, small).tolist():
            code[p] = len(rows)
            rows.append((m, int(count[p]), False, 1))
        if len(small):
            code[small] = len(rows)
            rows.append((m, int(count[small].sum()), True, len(small)))
    group = code[which]
    m, size, pooled, patterns = zip(*rows, strict=True) if rows else ((), (), (), ())
    return MissingnessGroups(group, np.array(m, np.int64), np.array(size, np.int64), np.array(pooled, bool),
                             np.array(patterns, np.int64))  # fmt: skip
