"""Shared models on shared items, before and after: categories, shares and accuracies with paired intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.frames import CONDITIONS
from auditlib.pool import Arm, Pool
from auditlib.seeds import generator
from auditlib.sensitivity.contrasts import mcnemar_exact
from auditlib.stats.categories import CATEGORIES, categories
from auditlib.stats.intervals import Interval, no_interval, percentile
from auditlib.stats.multiplicity import bh
from auditlib.stats.paired import BATCH, cluster_totals, sign_flip

MOVES = ("item", "arm", "before", "after", "full_before", "blind_before", "of_before", "full_after", "blind_after",
         "of_after")  # fmt: skip
PAIRED = ("arm", "quantity", "condition", "model", "items", "clusters", "before", "after", "difference", "low", "high",
          "gained", "lost", "p", "p_method", "q")  # fmt: skip
#: statistics whose estimate rests on random draws, which hang on the pool's name
RANDOM = ("split_half_difference",)
#: bootstrap draws of an interval
DRAWS = 2_000

#: quantity, condition, model, which shared items (mask), and the score of each of these before and after
Part = tuple[str, str, str, NDArray, NDArray, NDArray]


@dataclass(frozen=True)
class Shared:
    """What two pools share: arms, models and items, in the order of the second.

    ``cluster`` has one code per shared item, None where no two of them share a picture or a base item.
    """

    a: Pool
    b: Pool
    arms: tuple[str, ...]
    models: tuple[str, ...]
    items: tuple[str, ...]
    cluster: NDArray[np.int64] | None

    def places(self) -> tuple[tuple[NDArray, NDArray], tuple[NDArray, NDArray]]:
        """Rows and columns of the shared items and models in either pool."""
        return tuple(
            (pd.Index(p.items["item"].astype(str)).get_indexer(list(self.items)),
             pd.Index(p.model_names).get_indexer(list(self.models))) for p in (self.a, self.b)
        )  # fmt: skip

    def cells(self, arm: str, condition: str) -> tuple[NDArray, NDArray, NDArray, NDArray] | None:
        """Hits and draws before and after, each of shape (items, models); None where a side has no such runs."""
        out: list[NDArray] = []
        for pool, (rows, columns) in zip((self.a, self.b), self.places()):
            one: Arm = pool.arms[arm]
            if condition not in one.hits:
                return None
            hits = one.hits[condition][np.ix_(rows, columns)].astype(np.int64)
            drawn = None if one.trials is None else one.trials[condition][np.ix_(rows, columns)].astype(np.int64)
            out += [hits, np.full(hits.shape, one.unit) if drawn is None else drawn]
        return tuple(out)


def shared(a: Pool, b: Pool) -> Shared:
    """The arms, models and items that two pools share."""
    mine = set(a.items["item"].astype(str))
    kept = b.items["item"].astype(str).isin(mine).to_numpy()
    codes = b.cluster
    if codes is not None:
        codes = pd.factorize(codes[kept])[0]
        codes = None if len(set(codes.tolist())) == len(codes) else codes
    return Shared(
        a,
        b,
        tuple(x for x in b.arm_names if x in a.arms),
        tuple(m for m in b.model_names if m in set(a.model_names)),
        tuple(b.items["item"].astype(str)[kept]),
        codes,
    )


# ------------------------------------------------------------------------------------------------ categories


def category_changes(s: Shared) -> pd.DataFrame:
    """Items in another category now (``visual_dependent`` ...), by arm: columns :data:`MOVES`.

    Counted over the shared models, on items that all of them answered before and after, with and without the image.
    """
    rows = []
    for arm in s.arms:
        counted = _counts(s, arm)
        if counted is None:
            continue
        keep, before, after = counted
        names = [np.asarray(CATEGORIES, object)[categories(*c)] for c in (before, after)]
        moved = np.flatnonzero(names[0] != names[1])
        ids = np.asarray(s.items, object)[keep]
        rows += [(ids[n], arm, names[0][n], names[1][n], *(int(c[n]) for c in (*before, *after))) for n in moved]
    return pd.DataFrame(rows, columns=list(MOVES))


def saved_moves(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """:func:`category_changes` from two audits' saved counts, for audits over the same models whose runs are unknown.

    Items that an audit counted over some of its models only are compared where both counted as many.
    """
    t = before.merge(after, on=["item", "arm"], suffixes=("_before", "_after"), sort=False)
    of = [(t[f"n_{x}"] * t[f"R_{x}"]).astype(int) for x in ("before", "after")]
    t = t.assign(of_before=of[0], of_after=of[1], before=t["category_before"].astype(str),
                 after=t["category_after"].astype(str), item=t["item"].astype(str))  # fmt: skip
    t = t[t["before"].ne(t["after"]) & t["n_before"].eq(t["n_after"])]
    names = {f"{c}_{x}": f"{n}_{x}" for c, n in (("F", "full"), ("B", "blind")) for x in ("before", "after")}
    return t.rename(columns=names)[list(MOVES)].reset_index(drop=True)


def _counts(s: Shared, arm: str) -> tuple[NDArray, tuple[NDArray, ...], tuple[NDArray, ...]] | None:
    """Which shared items are counted, and (F, B, total) of each before and after."""
    full, blind = s.cells(arm, "full"), s.cells(arm, "blind")
    if full is None or blind is None or not s.models:
        return None
    # a model without blind runs on either side has no part in the comparison
    used = np.ones(len(s.models), bool)
    for trials in (full[1], full[3], blind[1], blind[3]):
        used &= (trials > 0).any(axis=0)
    parts = [x[:, used] for x in (*full, *blind)]
    f0, t0, f1, t1, b0, u0, b1, u1 = parts
    keep = (t0 > 0).all(axis=1) & (t1 > 0).all(axis=1) & (t0 == u0).all(axis=1) & (t1 == u1).all(axis=1)
    if not keep.any() or not used.any():
        return None
    out = [(f[keep].sum(axis=1), b[keep].sum(axis=1), t[keep].sum(axis=1)) for f, b, t in ((f0, b0, t0), (f1, b1, t1))]
    return keep, out[0], out[1]


# ------------------------------------------------------------------------------------------------ numbers


def paired_numbers(s: Shared, seed: int) -> pd.DataFrame:
    """Shares and accuracies on shared items before and after, with the interval of their difference.

    Returns
    -------
    DataFrame
        Columns :data:`PAIRED`. ``gained`` and ``lost`` count items that have the property after and not before, and the
        other way round; empty (NaN) where a score has more values than two.

    Notes
    -----
    Intervals: percentile bootstrap of the mean paired difference, items (clusters of items that share a picture or a
    base item) drawn together. p: exact McNemar of the discordant items; with clusters or graded scores, sign flips of
    whole clusters. q: Benjamini-Hochberg over the rows of one arm and kind.
    """
    rows = []
    for arm in s.arms:
        parts = [*_shares(s, arm), *_accuracies(s, arm)]
        if not parts:
            continue
        ends = _intervals(s, parts, generator(seed, "diff", arm))
        made = [_row(s, arm, part, end, generator(seed, "diff", arm, *part[:3])) for part, end in zip(parts, ends)]
        for kind in dict.fromkeys(r["quantity"] == "accuracy" for r in made):
            mine = [r for r in made if (r["quantity"] == "accuracy") == kind]
            for r, q in zip(mine, bh([r["p"] for r in mine])):
                r["q"] = float(q)
        rows += made
    return pd.DataFrame(rows, columns=list(PAIRED))


def _intervals(s: Shared, parts: Sequence[Part], rng: np.random.Generator) -> list[Interval]:
    """Percentile intervals of the mean differences of all parts, from one set of draws of the shared items."""
    columns = np.zeros((len(s.items), 2 * len(parts)))
    for n, (_, _, _, keep, before, after) in enumerate(parts):
        columns[keep, 2 * n] = after - before
        columns[keep, 2 * n + 1] = 1
    totals = cluster_totals(columns, s.cluster)
    units = len(totals)
    if units < 2:
        return [no_interval("one item or cluster")] * len(parts)
    drawn, step = [], max(1, BATCH // units)
    for start in range(0, DRAWS, step):
        size = min(step, DRAWS - start)
        at = rng.integers(units, size=(size, units)) + units * np.arange(size)[:, None]
        weight = np.bincount(at.ravel(), minlength=size * units).reshape(size, units).astype(float)
        drawn.append(weight @ totals)
    sums = np.concatenate(drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums[:, ::2] / sums[:, 1::2]
    return [percentile(means[:, n], 0.95, "percentile bootstrap over items or clusters") for n in range(len(parts))]


def _shares(s: Shared, arm: str) -> Iterator[Part]:
    counted = _counts(s, arm)
    if counted is None:
        return
    keep, before, after = counted
    yield "zero_gain_share", "", "all", keep, *((c[0] == c[1]).astype(float) for c in (before, after))
    codes = [categories(*c) for c in (before, after)]
    for n, name in enumerate(CATEGORIES):
        yield f"{name}_share", "", "all", keep, *((c == n).astype(float) for c in codes)


def _accuracies(s: Shared, arm: str) -> Iterator[Part]:
    for condition in (c for c in CONDITIONS if c in s.a.arms[arm].hits and c in s.b.arms[arm].hits):
        cells = s.cells(arm, condition)
        if cells is None:
            continue
        hits0, trials0, hits1, trials1 = cells
        for j, model in enumerate(s.models):
            keep = (trials0[:, j] > 0) & (trials1[:, j] > 0)
            if keep.any():
                yield ("accuracy", condition, model, keep, hits0[keep, j] / trials0[keep, j],
                       hits1[keep, j] / trials1[keep, j])  # fmt: skip


def _row(s: Shared, arm: str, part: Part, ends: Interval, rng: np.random.Generator) -> dict[str, Any]:
    quantity, condition, model, keep, before, after = part
    d = after - before
    cluster = None if s.cluster is None else s.cluster[keep]
    plain = bool(np.isin(before, (0, 1)).all() and np.isin(after, (0, 1)).all())
    gained, lost = (int((d > 0).sum()), int((d < 0).sum())) if plain else (np.nan, np.nan)
    if plain and cluster is None:
        p, method = mcnemar_exact(lost, gained), "exact McNemar"
    else:
        flipped = sign_flip(d, cluster, rng=rng)
        p, method = flipped.p, f"{flipped.p_method} sign flips".replace("sign flips sign flips", "sign flips")
    return {"arm": arm, "quantity": quantity, "condition": condition, "model": model, "items": int(keep.sum()),
            "clusters": int(keep.sum()) if cluster is None else len(set(cluster.tolist())),
            "before": float(before.mean()), "after": float(after.mean()), "difference": float(d.mean()),
            "low": ends.low, "high": ends.high, "gained": gained, "lost": lost, "p": p, "p_method": method,
            "q": np.nan}  # fmt: skip


def changed_statistics(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """The rows of two audits' statistics that differ, side by side.

    Returns
    -------
    DataFrame
        metric, arm, policy, models, stratum, null_kind, p_method, which (the note of rows that are alike in these),
        nth (of rows alike in that too), and n, estimate, low, high, null, excess, p with ``_before`` and ``_after``.
        ``change`` is ``estimate``, or ``interval or p`` where n and estimate are the same, or the estimate itself is
        one of random draws.
    """
    on = ["metric", "arm", "policy", "models", "stratum", "null_kind", "p_method"]
    numbers = ["n", "estimate", "low", "high", "null", "excess", "p"]
    sides = []
    for table in (before, after):
        t = table.copy()
        t[[*on, "note"]] = t[[*on, "note"]].astype(object).where(t[[*on, "note"]].notna(), "").astype(str)
        sides.append(t)
    several = {k for t in sides for k in t.loc[t.duplicated(on), on].itertuples(index=False, name=None)}
    for n, t in enumerate(sides):
        # a note may hold counts that change; it tells rows apart only where nothing else does
        alike = [k in several for k in t[on].itertuples(index=False, name=None)]
        t["which"] = t["note"].where(alike, "")
        t["nth"] = t.groupby([*on, "which"], sort=False).cumcount()
        sides[n] = t[[*on, "which", "nth", *numbers]]
    t = sides[0].merge(sides[1], on=[*on, "which", "nth"], how="outer", suffixes=("_before", "_after"), sort=False)
    same = {}
    for name in numbers:
        x, y = (pd.to_numeric(t[f"{name}_{s}"], errors="coerce").to_numpy(float) for s in ("before", "after"))
        # saved tables hold 12 digits
        same[name] = np.isclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True)
    drawn = t["metric"].isin(RANDOM).to_numpy()
    t["change"] = np.where(same["n"] & (same["estimate"] | drawn), "interval or p", "estimate")
    return t[~np.logical_and.reduce(list(same.values()))].reset_index(drop=True)
