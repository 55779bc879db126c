"""The leaderboard before and after: ranks with simultaneous bands, and pairs of models whose standing changed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from auditlib.diff.paired import Shared
from auditlib.pool import Pool
from auditlib.seeds import generator
from auditlib.stats.rank_bands import RankBands, rank_bands

RANKS = ("arm", "model", "items_before", "score_before", "rank_before", "low_before", "high_before", "items_after",
         "score_after", "rank_after", "low_after", "high_after")  # fmt: skip
CLAIMS = ("arm", "first", "second", "before", "after", "change")


@dataclass(frozen=True)
class Ranks:
    """``board`` with columns :data:`RANKS`, ``claims`` with :data:`CLAIMS`: pairs told apart otherwise, or turned."""

    board: pd.DataFrame
    claims: pd.DataFrame
    notes: tuple[str, ...]


def rank_changes(s: Shared, seed: int) -> Ranks:
    """Rank the shared models on the items of either side.

    Notes
    -----
    Runs with the image; each side on its own items that all shared models answered. The bands are those of
    :func:`auditlib.stats.rank_bands.rank_bands`, simultaneous over all models of a side, with the same random draws.
    """
    board, claims, notes = [], [], []
    for arm in s.arms:
        bands = []
        for pool in (s.a, s.b):
            found = _bands(pool, arm, s.models, seed)
            if isinstance(found, str):
                notes.append(f"{arm}: {found}")
                break
            bands.append(found)
        if len(bands) < 2:
            continue
        a, b = bands
        order = np.lexsort((list(s.models), b.rank))
        board += [(arm, s.models[j], a.items, a.score[j], a.rank[j], a.low[j], a.high[j], b.items, b.score[j],
                   b.rank[j], b.low[j], b.high[j]) for j in order]  # fmt: skip
        claims += _claims(arm, s.models, a, b)
    return Ranks(pd.DataFrame(board, columns=list(RANKS)), pd.DataFrame(claims, columns=list(CLAIMS)),
                 tuple(dict.fromkeys(notes)))  # fmt: skip


def _bands(pool: Pool, arm: str, models: tuple[str, ...], seed: int) -> RankBands | str:
    """Ranks of some models of a pool, or why there are none."""
    one = pool.arms[arm]
    if "full" not in one.hits:
        return "no run with the image, so no ranks"
    if len(models) < 2:
        return "fewer than two shared models, so no ranks"
    columns = pd.Index(pool.model_names).get_indexer(list(models))
    hits = one.hits["full"][:, columns].astype(float)
    trials = np.full(hits.shape, one.unit) if one.trials is None else one.trials["full"][:, columns]
    keep = (trials > 0).all(axis=1)
    if not keep.any():
        return f"no item of {pool.name} has an answer of every shared model, so no ranks"
    cluster = pool.cluster
    value = hits[keep] / trials[keep]
    rng = generator(seed, "diff ranks", arm)
    return rank_bands(value, cluster=None if cluster is None else cluster[keep], rng=rng)


def _claims(arm: str, models: tuple[str, ...], a: RankBands, b: RankBands) -> list[tuple[str, ...]]:
    """Pairs whose claim changes; ``first`` scores at least as high as ``second`` before."""
    out = []
    said = {1: "first is better", 0: "not told apart", -1: "second is better"}
    for i, j in combinations(np.argsort(a.rank, kind="stable"), 2):
        was, now = (int(x.beats[i, j]) - int(x.beats[j, i]) for x in (a, b))
        swapped = (a.score[i] - a.score[j]) * (b.score[i] - b.score[j]) < 0
        if was == now and not (was == 0 and swapped):
            continue
        change = "reversed" if was * now < 0 else "order" if was == now else "lost" if now == 0 else "gained"
        out.append((arm, models[i], models[j], said[was], said[now], change))
    return out
