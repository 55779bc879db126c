"""Agreement filters: what is kept, what a kept decision is worth, and which good decisions are thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.judges.decision_data import TIE, Choices, Prompts
from auditlib.judges.decisions import expected, order_decisions, per_prompt
from auditlib.stats.paired import bootstrap, cluster_totals

NAN = float("nan")
_TIE = 1e-9
#: clusters that a mean over kept, or dropped, prompts needs for an interval
LEAST = 5
_KEPT, _DROPPED = ("gain_kept", "bad_kept", "interaction"), ("gain_dropped", "good_lost", "interaction")


@dataclass(frozen=True)
class Filter:
    """A rule that keeps some decisions.

    Attributes
    ----------
    keep : shape (P,), bool. score : shape (P,), what the rule looks at, higher kept first; or None.
    """

    name: str
    keep: NDArray[np.bool_]
    score: NDArray[np.float64] | None = None


def order_agreement(prompts: Prompts, choices: Choices) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Share of a prompt's orders that choose its most chosen candidate, and its number of orders.

    An order without an answer, or with a declared tie, agrees with none; repeats of an order count as one order by
    their mean.
    """
    at, mean, first = order_decisions(prompts, choices)
    votes = np.zeros(prompts.rating.shape)
    sure = np.where(np.isnan(mean), 0.0, mean)
    with_tie = choices.state == TIE
    keys = set(zip(choices.prompt[with_tie].tolist(), choices.order[with_tie].tolist()))
    tied = np.array([key in keys for key in zip(at.tolist(), choices.order[first].tolist())], bool)
    np.add.at(votes, at[~tied], sure[~tied])
    orders = np.bincount(at, minlength=len(votes))
    share = np.divide(votes.max(axis=1), orders, out=np.full(len(votes), NAN), where=orders > 0)
    return share, orders


def agreement_filter(prompts: Prompts, choices: Choices, quorum: float = 1.0) -> Filter:
    """Keep prompts where at least ``quorum`` of the orders choose the same candidate; one order alone agrees with none.

    Raises
    ------
    ValueError
        A quorum outside (0, 1].
    """
    if not 0 < quorum <= 1:
        raise ValueError("a quorum lies in (0, 1]")
    share, orders = order_agreement(prompts, choices)
    name = "all orders agree" if quorum == 1 else f"{100 * quorum:g} % of orders agree"
    enough = (orders > 1) & (np.nan_to_num(share, nan=-1.0) >= quorum - _TIE)
    return Filter(name, enough, np.where(orders > 1, share, NAN))


def second_judge_filter(first: NDArray, second: NDArray, name: str = "a second judge agrees") -> Filter:
    """Keep prompts where two judges' decisions are the same candidate; a split decision is no candidate.

    Parameters
    ----------
    first, second : chances of shape (P, N), see :func:`~auditlib.judges.decisions.aggregate`.
    """
    a, b = (np.where(np.isnan(w), 0.0, w) for w in (first, second))
    same = (a * b).sum(axis=1)
    return Filter(name, same > 1 - 1e-6, np.where(np.isnan(first[:, 0] + second[:, 0]), NAN, same))


def margin_filter(margin: NDArray, threshold: float, name: str = "") -> Filter:
    """Keep prompts whose margin is above a threshold; a missing margin is dropped."""
    m = np.asarray(margin, float)
    return Filter(name or f"margin above {threshold:g}", np.nan_to_num(m, nan=-np.inf) > threshold, m)


def vote_margin(prompts: Prompts, choices: Choices) -> NDArray[np.float64]:
    """Share of answered orders of the most chosen candidate minus that of the second; NaN without an answer."""
    at, mean, _ = order_decisions(prompts, choices)
    known = ~np.isnan(mean[:, 0])
    votes = np.zeros(prompts.rating.shape)
    np.add.at(votes, at[known], mean[known])
    count = np.bincount(at[known], minlength=len(votes))
    top = np.sort(votes, axis=1)
    return np.divide(top[:, -1] - top[:, -2], count, out=np.full(len(votes), NAN), where=count > 0)


def _means(totals: NDArray) -> tuple[NDArray, NDArray]:
    kept = np.divide(totals[:, 0], totals[:, 1], out=np.full(len(totals), NAN), where=totals[:, 1] > 0)
    dropped = np.divide(totals[:, 2], totals[:, 3], out=np.full(len(totals), NAN), where=totals[:, 3] > 0)
    return kept, dropped


def filter_table(
    prompts: Prompts, weights: NDArray, filters: Sequence[Filter], *, epsilon: float = 0.0, seed: int = 0,
    draws: int = 2_000,
) -> pd.DataFrame:  # fmt: skip
    """What each filter does to a judge's decisions, one row per filter and quantity.

    Parameters
    ----------
    weights : the decisions, chances of shape (P, N); prompts without one are left out and counted as ``undecided``.
    epsilon : a decision within this of the best rating is good.

    Returns
    -------
    DataFrame
        ``filter, quantity, estimate, low, high, bca_low, bca_high, n, undecided, kept, note``. With fewer than
        :data:`LEAST` clusters kept or dropped, what rests on them has no interval (``note``). Quantities: ``coverage``;
        ``gain_kept``, ``gain_dropped`` (value minus random on the same prompts); ``interaction`` (their difference,
        prompts resampled by clusters); ``good_lost``, the share of dropped decisions that are good; ``bad_kept``, the
        share of kept decisions that are not; and the mean rating over all prompts of the policy that takes the
        judge's decision where it is kept and else falls back: ``policy_random``, ``policy_similarity``,
        ``policy_people`` (the best rated), beside ``judge_alone``; ``policy_random_minus_judge`` is their difference.
    """
    table = per_prompt(prompts, weights)
    decided = table["value"].notna().to_numpy()
    mine = table[decided]
    cluster = mine["cluster"].to_numpy()
    gain, value = mine["gain"].to_numpy(), mine["value"].to_numpy()
    good = expected(weights, (prompts.rating >= prompts.best[:, None] - epsilon - _TIE).astype(float))[decided]
    rows: list[dict[str, Any]] = []
    for f in filters:
        k = f.keep[decided].astype(float)
        rng = seeds.generator(seed, "judges", "filter", f.name)
        base = {"filter": f.name, "n": len(mine), "undecided": int((~decided).sum()), "kept": int(k.sum())}
        sides = {"kept": (len(np.unique(cluster[k > 0])), _KEPT), "dropped": (len(np.unique(cluster[k < 1])), _DROPPED)}

        def add(quantity: str, columns: list, function, rng=rng, base=base, sides=sides) -> None:
            totals = cluster_totals(np.column_stack(columns), cluster)
            row = bootstrap(totals, function, rng=rng, draws=draws).as_row()
            few = [f"{n} {side}" for side, (n, names) in sides.items() if n < LEAST and quantity in names]
            if few:
                row |= dict.fromkeys(("low", "high", "bca_low", "bca_high"), NAN)
            note = f"too few for an interval: {' and '.join(few)}" if few else ""
            rows.append({**base, "quantity": quantity, **row, "note": note})

        split = [gain * k, k, gain * (1 - k), 1 - k]
        add("coverage", [k, np.ones(len(k))], lambda t: t[:, 0] / t[:, 1])
        add("gain_kept", split, lambda t: _means(t)[0])
        add("gain_dropped", split, lambda t: _means(t)[1])
        add("interaction", split, lambda t: _means(t)[0] - _means(t)[1])
        sorted_ = [(1 - good) * k, k, good * (1 - k), 1 - k]
        add("bad_kept", sorted_, lambda t: _means(t)[0])
        add("good_lost", sorted_, lambda t: _means(t)[1])
        fallbacks = {"random": mine["random"].to_numpy(), "people": mine["best"].to_numpy()}
        if "similarity" in mine:
            fallbacks["similarity"] = mine["similarity"].to_numpy()
        one = np.ones(len(k))
        add("judge_alone", [value, one], lambda t: t[:, 0] / t[:, 1])
        for name, other in fallbacks.items():
            add(f"policy_{name}", [np.where(k > 0, value, other), one], lambda t: t[:, 0] / t[:, 1])
        moved = np.where(k > 0, 0.0, fallbacks["random"] - value)
        add("policy_random_minus_judge", [moved, one], lambda t: t[:, 0] / t[:, 1])
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class CoverageCurve:
    """Mean gain of the decisions kept as coverage grows, those with the highest score first.

    Attributes
    ----------
    table : ``coverage, gain`` (gain over random of the kept share), ``low, high`` (pointwise 95 % band of a random
        filter of equal coverage), ``sim_low, sim_high`` (band that holds everywhere at once).
    area : mean of the gain over the coverages; random_area : its mean for random filters; p : two-sided permutation p.
    prompts : decisions with a score. left_out : decisions without one.
    """

    table: pd.DataFrame
    area: float
    random_area: float
    p: float
    prompts: int
    left_out: int


def coverage_curve(
    gain: NDArray, score: NDArray, *, rng: np.random.Generator, draws: int = 2_000, steps: int = 20
) -> CoverageCurve | None:
    """Coverage-value curve of a filter, with the band of random filters.

    Parameters
    ----------
    gain : shape (P,), value minus random. score : shape (P,), higher is kept first; ties are kept in random order, of
        which the curve is the exact mean.

    Notes
    -----
    The band permutes gains over prompts: scores that say nothing about gains. ``p = (1 + g) / (1 + draws)`` with g
    areas at least as far from their mean as the observed one.

    Returns
    -------
    None with fewer than two decisions that have a score.
    """
    known = ~np.isnan(gain) & ~np.isnan(score)
    x, s = np.asarray(gain, float)[known], np.asarray(score, float)[known]
    n = len(x)
    if n < 2:
        return None
    by = np.argsort(-s, kind="stable")
    # equal scores: kept in random order, so each of the group counts with its mean
    _, code = np.unique(-s[by], return_inverse=True)
    size = np.bincount(code)
    at = np.unique(np.clip(np.ceil(np.arange(1, steps + 1) / steps * n).astype(int), 1, n))

    def curve(values: NDArray) -> NDArray:
        starts = np.concatenate([[0], np.cumsum(size)[:-1]])
        means = np.add.reduceat(values, starts, axis=-1) / size
        return (np.cumsum(means[..., code], axis=-1) / np.arange(1, n + 1))[..., at - 1]

    seen = curve(x[by])
    drawn = np.stack([curve(rng.permutation(x)) for _ in range(draws)])
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    centre, spread = drawn.mean(axis=0), drawn.std(axis=0)
    far = np.quantile((np.abs(drawn - centre) / np.where(spread > 0, spread, np.inf)).max(axis=1), 0.95)
    area, areas = float(seen.mean()), drawn.mean(axis=1)
    g = int((np.abs(areas - areas.mean()) >= abs(area - areas.mean()) - 1e-12).sum())
    table = pd.DataFrame({"coverage": at / n, "gain": seen, "low": low, "high": high, "sim_low": centre - far * spread,
                          "sim_high": centre + far * spread})  # fmt: skip
    return CoverageCurve(table, area, float(areas.mean()), (1 + g) / (1 + draws), n, int((~known).sum()))
