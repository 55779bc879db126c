"""Permutation of blind counts that keeps clusters of items together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: items shuffled in all draws together
MOST = 400_000_000


@dataclass(frozen=True)
class ShuffleResult:
    """A region count beside its law when whole clusters change places.

    ``fixed`` items lie in clusters with nobody to change places with; ``draws`` are shares.
    """

    n: int
    observed: int
    mean: float
    sd: float
    p: float
    clusters: int
    fixed: int
    draws: NDArray[np.float64] = field(repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        n = self.n or float("nan")
        return {"n": self.n, "estimate": self.observed / n, "null": self.mean / n, "null_sd": self.sd / n,
                "excess": (self.observed - self.mean) / n, "p": self.p, "p_method": "shuffle"}  # fmt: skip


def cluster_shuffle(
    full: ArrayLike,
    blind: ArrayLike,
    block: ArrayLike,
    cluster: ArrayLike,
    regions: Sequence[ArrayLike],
    *,
    rng: np.random.Generator,
    draws: int = 999,
) -> ShuffleResult:
    """Permute the blind counts of whole clusters among clusters with the same number of items in each block.

    Parameters
    ----------
    full, blind, block, cluster
        As in :func:`auditlib.stats.intervals.cluster_excess_interval`; items of a cluster keep their order.
    regions : one region for each block code

    Notes
    -----
    ``p = (g + 1) / (draws + 1)``, g draws at or above the observed count. Items of one cluster hang together, so that
    permuting them one by one would overstate how many places they can take.
    """
    f, b, k = (np.asarray(x, np.intp) for x in (full, blind, block))
    _, c = np.unique(np.asarray(cluster), return_inverse=True)
    n = len(f)
    stacked, left = _stack(regions)
    at = left[k] + f * np.array([np.shape(r)[1] for r in regions], np.intp)[k]
    seen = int(stacked[at + b].sum())
    draws = max(1, min(draws, MOST // max(n, 1)))
    counts, fixed, clusters = np.zeros(draws, np.int64), 0, 0
    for rows in _alike(c.ravel(), k):
        clusters += len(rows)
        if len(rows) == 1:
            fixed += rows.size
            counts += int(stacked[at[rows] + b[rows]].sum())
            continue
        here, moved = at[rows], b[rows]
        for d in range(draws):
            counts[d] += np.count_nonzero(stacked[here + moved[rng.permutation(len(rows))]])
    sd = float(counts.std(ddof=1)) if draws > 1 else float("nan")
    p = (1 + int((counts >= seen).sum())) / (draws + 1)
    return ShuffleResult(n, seen, float(counts.mean()), sd, p, clusters, fixed, counts / max(n, 1))


def _stack(regions: Sequence[ArrayLike]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """All regions as one vector, and where each begins."""
    flat = [np.asarray(r, bool).ravel() for r in regions]
    return np.concatenate(flat), np.concatenate([[0], np.cumsum([len(r) for r in flat])[:-1]]).astype(np.intp)


def _alike(cluster: NDArray, block: NDArray) -> list[NDArray[np.intp]]:
    """Clusters that may change places, as matrices (clusters, items): alike in how many items lie in which block."""
    order = np.lexsort((np.arange(len(cluster)), block, cluster))
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    groups: dict[bytes, list[NDArray[np.intp]]] = {}
    for rows in np.split(order, starts[1:]):
        groups.setdefault(block[rows].tobytes(), []).append(rows)
    return [np.stack(rows) for rows in groups.values()]
