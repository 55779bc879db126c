"""Pairwise votes in both orders: consistency, preference for a slot, and preference for the longer answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.judges.calls import ANSWERED, UNIT
from auditlib.stats.conditional_logit import conditional_logit
from auditlib.stats.intervals import wilson
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import mean_interval, sign_flip
from auditlib.stats.poisson_binomial import poisson_binomial_test

NAN = float("nan")


def order_consistency(calls: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Agreement of the two orders of each pair, by comparison.

    Returns
    -------
    DataFrame
        ``comparison, pairs, estimate, low, high, decided, decided_low, decided_high, locked, same_slot_first,
        same_slot_second, to_tie, both_tie, one_order, unanswered``. ``estimate``: share of pairs, judged in both
        orders, with the same decision, two declared ties among them; interval over clusters. ``decided``: the same
        over pairs where both orders name an answer, Wilson. ``locked``: pairs that follow the slot, split in the next
        two; ``to_tie``: a tie in one order only. ``one_order`` and ``unanswered`` pairs do not count.
    """
    rows = []
    for name, mine in calls[calls["paradigm"].eq("pairwise")].groupby("comparison", sort=False):
        table = _both_orders(mine)
        whole = table[table["whole"]]
        a, b = whole["choice_1"], whole["choice_2"]
        tie_1, tie_2 = whole["state_1"].eq("tie"), whole["state_2"].eq("tie")
        same = (a == b) & (tie_1 == tie_2)
        decided = ~tie_1 & ~tie_2
        locked = decided & ~same
        rng = seeds.generator(seed, "judges", "consistency", str(name))
        ends = mean_interval(same.astype(float), whole["cluster"].to_numpy(), rng=rng)
        inner = wilson(int((same & decided).sum()), int(decided.sum()))
        rows.append({
            "comparison": name, "pairs": len(whole), "estimate": ends.value, "low": ends.interval.low,
            "high": ends.interval.high, "decided": (same & decided).sum() / decided.sum() if decided.any() else NAN,
            "decided_low": inner.low, "decided_high": inner.high, "locked": int(locked.sum()),
            "same_slot_first": int((locked & whole["slot_1"].eq(0)).sum()),
            "same_slot_second": int((locked & whole["slot_1"].eq(1)).sum()), "to_tie": int((tie_1 != tie_2).sum()),
            "both_tie": int((tie_1 & tie_2).sum()), "one_order": int(table["one_order"].sum()),
            "unanswered": int((~table["whole"] & ~table["one_order"]).sum()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _both_orders(calls: pd.DataFrame) -> pd.DataFrame:
    """One row per pair: the first answered call of each order."""
    same = calls["shown"].map(lambda s: tuple(sorted(s))).rename("candidates")
    table = calls.assign(pair=calls.groupby([calls[c] for c in (*UNIT, "judge")] + [same], sort=False).ngroup())
    one = table.groupby("pair")["shown"].nunique() < 2
    first = table[table["state"].isin(ANSWERED)].drop_duplicates(["pair", "shown"])
    first = first.assign(place=first.groupby("pair").cumcount() + 1)
    out = pd.DataFrame({"cluster": table.groupby("pair")["cluster"].first(), "one_order": one})
    for i in (1, 2):
        mine = first[first["place"].eq(i)].set_index("pair")
        for what in ("choice", "slot", "state"):
            out[f"{what}_{i}"] = mine[what].reindex(out.index)
    return out.assign(whole=~out["one_order"] & out["state_2"].notna())


def slot_preference(calls: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """First slot among the votes that name an answer, by comparison, against one half.

    Returns
    -------
    DataFrame
        ``comparison, n, estimate, low, high, p, p_clusters, q, q_clusters``: ``p`` exact binomial with votes as
        independent; ``p_clusters`` sign flips of whole pairs or prompts, which the two orders of a pair share; both
        Holm over the comparisons.

    Notes
    -----
    With both orders of every pair, content cannot move the expectation of one half.
    """
    rows = []
    for name, mine in calls[calls["paradigm"].eq("pairwise") & calls["state"].eq("chosen")].groupby(
        "comparison", sort=False
    ):
        first = mine["slot"].eq(0).to_numpy(float)
        rng = seeds.generator(seed, "judges", "first slot", str(name))
        test = poisson_binomial_test(int(first.sum()), np.full(len(first), 0.5))
        ends = mean_interval(first, mine["cluster"].to_numpy(), rng=rng)
        flip = sign_flip(first - 0.5, mine["cluster"].to_numpy(), rng=rng)
        rows.append({"comparison": name, "n": len(first), "estimate": ends.value, "low": ends.interval.low,
                     "high": ends.interval.high, "p": test.p, "p_clusters": flip.p})  # fmt: skip
    table = pd.DataFrame(rows)
    return table.assign(q=holm(table["p"]), q_clusters=holm(table["p_clusters"])) if len(table) else table


def length_effect(calls: pd.DataFrame, lengths: NDArray) -> pd.DataFrame:
    """Preference for the longer answer at equal slot and equal pair of models, by comparison.

    Parameters
    ----------
    lengths : shape (calls, 2), length of the answer in each slot of each row of ``calls``.

    Returns
    -------
    DataFrame
        ``comparison, n, coef, low, high, p, q, slot, slot_low, slot_high, slot_p, slot_q, longer, note``: ``coef`` is
        the log odds per doubling of the length ratio, ``slot`` the log odds of the first slot, from a conditional
        logit with one term for each comparison's pair of models, standard errors by clusters, Holm over comparisons;
        ``longer`` is the plain share of votes for the longer answer.

    Notes
    -----
    The term for the models takes away that the better model may also write more; within a comparison, longer answers
    may still be better ones: an association, not a bias by itself.
    """
    from scipy.special import ndtr

    use = (calls["paradigm"].eq("pairwise") & calls["state"].eq("chosen")).to_numpy() & (lengths > 0).all(axis=1)
    table = calls[use].reset_index(drop=True)
    logs = np.log2(lengths[use])
    rows = []
    for name, mine in table.groupby("comparison", sort=False):
        at = mine.index.to_numpy()
        first_model = sorted({m for s in mine["shown"] for m in s})[0]
        model = np.array([[m == first_model for m in s] for s in mine["shown"]], float)
        x = np.stack([np.tile([1.0, 0.0], (len(at), 1)), logs[at], model], axis=2).reshape(-1, 3)
        chosen = (mine["slot"].to_numpy()[:, None] == np.arange(2)).ravel()
        fit = conditional_logit(x, np.repeat(np.arange(len(at)), 2), chosen, np.repeat(mine["cluster"].to_numpy(), 2))
        se = np.full(3, NAN) if fit.separated else fit.se()
        with np.errstate(divide="ignore", invalid="ignore"):
            p = 2 * ndtr(-np.abs(fit.beta / se))
        gap = logs[at, 0] - logs[at, 1]
        longer = np.where(gap > 0, 0, 1) == mine["slot"].to_numpy()
        low, high = fit.beta - 1.959964 * se, fit.beta + 1.959964 * se
        rows.append({"comparison": name, "n": len(at), "coef": fit.beta[1], "low": low[1], "high": high[1], "p": p[1],
                     "slot": fit.beta[0], "slot_low": low[0], "slot_high": high[0], "slot_p": p[0],
                     "longer": float(longer[gap != 0].mean()) if (gap != 0).any() else NAN,
                     "note": "no finite estimate: a term predicts every vote" if fit.separated else ""})  # fmt: skip
    out = pd.DataFrame(rows)
    return out.assign(q=holm(out["p"]), slot_q=holm(out["slot_p"])) if len(out) else out
