"""What a judge's decisions are worth: value, gain over a random choice, regret, against baselines and other judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.judges.decision_data import CHOSEN, NONE, TIE, Choices, Prompts, order_weights
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import Estimate, bootstrap, cluster_totals, equivalence, sign_flip

#: how calls in several orders become one decision
AGGREGATIONS = ("mean", "balanced", "plurality", "first_order", "borda")
#: a gain within this is "barely better than random"
MARGIN = 0.1
_TIE = 1e-9


def call_weights(prompts: Prompts, choices: Choices) -> NDArray[np.float64]:
    """Chance of each candidate in each call, shape (M, N): 1 for a choice, equal shares for a tie, NaN else."""
    out = np.zeros((len(choices.prompt), prompts.rating.shape[1]))
    chosen = np.flatnonzero(choices.state == CHOSEN)
    out[chosen, choices.candidate[chosen]] = 1
    tied = np.flatnonzero(choices.state == TIE)
    rows, slots = np.nonzero(choices.shown[tied] >= 0)
    out[tied[rows], choices.shown[tied][rows, slots]] = 1 / choices.slots[tied][rows]
    out[choices.state == NONE] = np.nan
    return out


def order_decisions(prompts: Prompts, choices: Choices) -> tuple[NDArray, NDArray[np.float64], NDArray]:
    """Mean over the repeats of each order: prompt of each, its chances of shape (orders, N), its first call."""
    w = call_weights(prompts, choices)
    key = choices.prompt * (int(choices.order.max(initial=0)) + 1) + choices.order
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    answered = choices.state != NONE
    total = np.zeros((len(first), w.shape[1]))
    np.add.at(total, code.ravel()[answered], w[answered])
    count = np.bincount(code.ravel()[answered], minlength=len(first))
    mean = np.divide(total, count[:, None], out=np.full(total.shape, np.nan), where=count[:, None] > 0)
    return choices.prompt[first], mean, first


def aggregate(prompts: Prompts, choices: Choices, how: str = "mean") -> NDArray[np.float64]:
    """Chance that each candidate is returned, shape (P, N); NaN where a prompt has no decision.

    Parameters
    ----------
    how : ``mean`` over orders (repeats averaged within an order first): the value of one call in a random order.
        ``balanced``: the same with weights that put every candidate into every slot equally often; NaN where the
        orders shown allow no such weights. ``plurality``: the candidate chosen most often over the orders, ties split.
        ``first_order``: the first order only. ``borda``: from pairwise calls, the candidate with most wins, a declared
        tie half for each, ties split.
    """
    if how not in AGGREGATIONS:
        raise ValueError(f"aggregation is {how!r}, expected one of {', '.join(AGGREGATIONS)}")
    at, mean, first = order_decisions(prompts, choices)
    seen = ~np.isnan(mean[:, 0]) if len(mean) else np.zeros(0, bool)
    shape = prompts.rating.shape
    if how == "first_order":
        seen &= choices.order[first] == 0
    weight = seen.astype(float)
    if how == "balanced":
        weight = np.zeros(len(at))
        for p in np.unique(at):
            mine = np.flatnonzero((at == p) & seen)
            found = order_weights(choices.shown[first[mine], : prompts.n[p]]) if len(mine) else None
            weight[mine] = 0 if found is None else found
    total, count = np.zeros(shape), np.zeros(shape[0])
    np.add.at(total, at[weight > 0], (weight[:, None] * mean)[weight > 0])
    np.add.at(count, at, weight)
    if how in ("plurality", "borda"):
        top = np.where(prompts.there, total, -np.inf)
        total = (top >= top.max(axis=1, keepdims=True) - _TIE).astype(float)
        share = total.sum(axis=1)
    else:
        share = count
    return np.where((count > 0)[:, None], total / np.where(share > 0, share, 1)[:, None], np.nan)


def baseline(prompts: Prompts, name: str) -> NDArray[np.float64]:
    """Chances of a baseline, shape (P, N): ``random``, ``similarity`` (highest, ties split) or ``best``."""
    if name == "random":
        return prompts.there / prompts.n[:, None]
    by = prompts.rating if name == "best" else prompts.similarity
    if by is None:
        raise ValueError("there is no similarity")
    top = (np.where(prompts.there, by, -np.inf) >= np.nanmax(by, axis=1, keepdims=True) - _TIE).astype(float)
    return top / top.sum(axis=1, keepdims=True)


def expected(weights: NDArray, values: NDArray) -> NDArray[np.float64]:
    """Expected value of what is returned, shape (P,); NaN without a decision."""
    return np.where(np.isnan(weights[:, 0]), np.nan, np.nansum(weights * np.nan_to_num(values), axis=1))


def per_prompt(prompts: Prompts, weights: NDArray) -> pd.DataFrame:
    """What a decision is worth at each prompt.

    Returns
    -------
    DataFrame
        ``value``, ``random``, ``best``, ``worst``, ``gain`` (value - random), ``room`` (best - random), ``regret``
        (best - value), ``top`` (chance of a candidate that shares the best rating), ``win`` (chance of a higher rating
        than another candidate drawn at random, ties half), ``similarity`` where known; NaN without a decision, the
        baselines excepted.
    """
    value, random, best = expected(weights, prompts.rating), prompts.random, prompts.best
    r = np.where(prompts.there, prompts.rating, np.nan)
    above = (r[:, :, None] > r[:, None, :] + _TIE).sum(axis=2) + 0.5 * (
        (np.abs(r[:, :, None] - r[:, None, :]) <= _TIE).sum(axis=2) - 1
    )
    out = pd.DataFrame({
        "prompt": prompts.prompt, "cluster": prompts.cluster, "n": prompts.n, "value": value, "random": random,
        "best": best, "worst": prompts.worst, "gain": value - random, "room": best - random, "regret": best - value,
        "top": expected(weights, (prompts.rating >= best[:, None] - _TIE).astype(float)),
        "win": expected(weights, above / (prompts.n - 1)[:, None]),
    })  # fmt: skip
    if prompts.similarity is not None:
        out["similarity"] = expected(baseline(prompts, "similarity"), prompts.rating)
    return out


def _ratio(totals: NDArray) -> NDArray:
    """First column over second; without room there is no share of it."""
    return np.divide(totals[:, 0], totals[:, 1], out=np.full(len(totals), np.nan), where=totals[:, 1] > _TIE)


def gain_estimate(table: pd.DataFrame, rng: np.random.Generator, draws: int = 2_000, level: float = 0.95) -> Estimate:
    """Normalised gain ``(U - U_random) / (U_best - U_random)`` over prompts with a decision."""
    t = table[table["gain"].notna()]
    return bootstrap(cluster_totals(t[["gain", "room"]].to_numpy(), t["cluster"].to_numpy()), _ratio, rng=rng,
                     draws=draws, level=level)  # fmt: skip


def value_table(
    prompts: Prompts, decisions: Mapping[str, NDArray], *, seed: int = 0, draws: int = 2_000
) -> pd.DataFrame:
    """Value of each judge's decisions with its baselines, one row per judge and quantity.

    Parameters
    ----------
    decisions : name -> chances of shape (P, N), see :func:`aggregate`.

    Returns
    -------
    DataFrame
        ``judge, quantity, estimate, low, high, bca_low, bca_high, n, clusters, unanswered, p, note``. Quantities:
        ``value, random, best, similarity, gain, regret, top, win`` as in :func:`per_prompt`, ``share`` (normalised
        gain; its ``p`` is that of lying within 0.1 of 0), and ``value_low``, ``value_high``: prompts without a decision
        counted with their worst, their best candidate. All but the last two are over prompts with a decision.
    """
    rows = []
    for name, weights in decisions.items():
        table = per_prompt(prompts, weights)
        known = table["value"].notna()
        lost = int((~known).sum())
        shared = {"judge": name, "n": int(known.sum()), "unanswered": lost, "p": np.nan, "note": ""}
        if not known.any():
            rows.append({**shared, "quantity": "value", "note": "no call holds a decision"})
            continue
        mine = table[known]
        one = np.ones(len(mine))
        for what in ("value", "random", "best", "similarity", "gain", "regret", "top", "win"):
            if what in mine:
                rng = seeds.generator(seed, "judges", name, what)
                totals = cluster_totals(np.column_stack([mine[what], one]), mine["cluster"].to_numpy())
                rows.append({**shared, "quantity": what, **bootstrap(totals, _ratio, rng=rng, draws=draws).as_row()})
        share = gain_estimate(table, seeds.generator(seed, "judges", name, "share"), draws)
        note = "" if share.value == share.value else "no prompt has a candidate better than the others"
        rows.append(
            {**shared, "quantity": "share", **share.as_row(), "p": equivalence(share.draws, MARGIN), "note": note}
        )
        for what, fill in (("value_low", "worst"), ("value_high", "best")):
            filled = table["value"].fillna(table[fill])
            rows.append({**shared, "quantity": what, "estimate": float(filled.mean()), "n": len(table)})
    return pd.DataFrame(rows)


def contrasts(
    prompts: Prompts, decisions: Mapping[str, NDArray], *, seed: int = 0, draws: int = 10_000,
    judges: Sequence[str] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Paired differences per prompt: each judge against random and the similarity baseline, and judge against judge.

    Returns
    -------
    DataFrame
        ``judge, against, estimate, low, high, p, p_method, q, n``: intervals from the bootstrap over clusters (2,000
        draws), ``p`` from sign flips of whole clusters, ``q`` Holm over all rows.
    """
    names = list(judges or decisions)
    worth = {name: expected(decisions[name], prompts.rating) for name in names}
    against = {"random": prompts.random}
    if prompts.similarity is not None:
        against["similarity"] = expected(baseline(prompts, "similarity"), prompts.rating)
    pairs = [(a, b, worth[a] - v) for a in names for b, v in against.items()]
    pairs += [(a, b, worth[a] - worth[b]) for a, b in combinations(names, 2)]
    rows = []
    for a, b, difference in pairs:
        rng = seeds.generator(seed, "judges", "contrast", a, b)
        test = sign_flip(difference, prompts.cluster, rng=rng, draws=draws)
        seen = ~np.isnan(difference)
        totals = cluster_totals(np.column_stack([difference[seen], np.ones(seen.sum())]), prompts.cluster[seen])
        ends = bootstrap(totals, _ratio, rng=rng)
        rows.append({"judge": a, "against": b, **ends.as_row(), **test.as_row()})
    table = pd.DataFrame(rows)
    return table.assign(q=holm(table["p"])) if len(table) else table
