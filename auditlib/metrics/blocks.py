"""Permutation blocks: the sets of items inside which blind counts may be exchanged, as joint tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from auditlib.counts import Counts
from auditlib.pool import Pool
from auditlib.stats.categories import category_region
from auditlib.stats.tables import joint_table


@dataclass(frozen=True)
class Blocks:
    """Items of some counts, cut into permutation blocks.

    ``code`` has one block code per item; ``tables[i]`` is the joint table of block i and ``totals[i]`` its models x
    draws. ``rows`` are positions in the pool.
    """

    rows: np.ndarray
    F: np.ndarray
    B: np.ndarray
    code: np.ndarray
    tables: list[np.ndarray]
    totals: list[int]

    @property
    def n(self) -> int:
        return len(self.F)

    def regions(self, share: str) -> list[np.ndarray]:
        """The region of one share in each block's table."""
        return [category_region(share, t) for t in self.totals]

    def inside(self, share: str) -> np.ndarray:
        """Boolean per item: whether it lies in the region."""
        out = np.zeros(self.n, bool)
        for i, region in enumerate(self.regions(share)):
            here = self.code == i
            out[here] = region[self.F[here], self.B[here]]
        return out


def blocks_of(counts: Counts, labels: np.ndarray | None = None, within: np.ndarray | None = None) -> Blocks:
    """Cut counted items into blocks: by missingness group and total, and by ``labels`` where given.

    Parameters
    ----------
    counts : counts over a pool.
    labels : integer codes per pool item (stratum, options shown), or None for the pooled null.
    within : boolean per pool item; only these items are taken.
    """
    rows = np.flatnonzero(counts.keep)
    take = np.ones(len(rows), bool) if within is None else within[rows]
    parts = [counts.group[take], counts.total[take]] + ([] if labels is None else [labels[rows][take]])
    code = _codes(parts)
    F, B, total = counts.F[take], counts.B[take], counts.total[take]
    tables, totals = [], []
    order = np.argsort(code, kind="stable")
    bounds = np.flatnonzero(np.diff(code[order], prepend=-1))
    for start, stop in zip(bounds, [*bounds[1:], len(order)]):
        here = order[start:stop]
        totals.append(int(total[here[0]]))
        tables.append(joint_table(F[here], B[here], totals[-1]))
    return Blocks(rows[take], F, B, code, tables, totals)


def _codes(parts: list[np.ndarray]) -> np.ndarray:
    code = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        if len(part) and part.min() != part.max():
            inverse = np.unique(part, return_inverse=True)[1].ravel()
            code = code * (int(inverse.max()) + 1) + inverse
    return np.unique(code, return_inverse=True)[1].ravel() if len(code) else code


def strata_labels(pool: Pool) -> tuple[np.ndarray | None, str]:
    """Codes of the within-stratum null per pool item, and a sentence on what they are.

    The official category, joined by the number of options shown where it differs between items.
    """
    strata, k = pool.strata, pool.k
    k_differs = k is not None and len(np.unique(k[~np.isnan(k)])) > 1
    if strata is None and not k_differs:
        return None, ""
    parts = [] if strata is None else [pd.factorize(strata, sort=True)[0]]
    if k_differs:
        parts.append(np.nan_to_num(k, nan=-1).astype(int))
    words = [] if strata is None else ["official category"]
    return _codes(parts), " and ".join(words + ["number of options shown"] * k_differs)
