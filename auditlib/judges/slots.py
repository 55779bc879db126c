"""Position bias: how often each slot is chosen against its exact expectation, and at equal quality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.judges.decision_data import CHOSEN, Choices, Prompts, order_weights
from auditlib.stats.conditional_logit import JointTest, conditional_logit, joint_test, score_test
from auditlib.stats.intervals import wilson
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import mean_interval, sign_flip
from auditlib.stats.poisson_binomial import poisson_binomial_test

NAN = float("nan")


@dataclass(frozen=True)
class PositionFit:
    """Choices by slot and content.

    Attributes
    ----------
    table : one row per term (``slot 2`` .., against the first slot; then the covariates): ``coef, se, low, high, p``,
        standard errors by clusters of prompts.
    joint : test that no slot matters. score_p : the same by signs of the clusters' scores; of the three p-values the
        one to read: ``joint.wald_p`` rejects too often with few prompts or slots that few prompts have, ``joint.lr_p``
        takes calls as independent. separated : the likelihood has no maximum; only ``joint.lr_p`` then means
        anything beside ``score_p``. calls : choices fitted.
    equal : chance of each slot among candidates of equal content, one row per number of slots and slot.
    """

    table: pd.DataFrame
    joint: JointTest
    score_p: float
    separated: bool
    calls: int
    equal: pd.DataFrame


def distinct_calls(choices: Choices) -> Choices:
    """Choices that named a slot, the first of each prompt and order: repeats are no new evidence about slots."""
    chosen = choices.at(choices.state == CHOSEN)
    if not len(chosen.prompt):
        return chosen
    key = np.column_stack([chosen.prompt, chosen.order])
    return chosen.at(np.sort(np.unique(key, axis=0, return_index=True)[1]))


def slot_rates(prompts: Prompts, choices: Choices, *, seed: int = 0) -> pd.DataFrame:
    """How often each slot is chosen, against the exact expectation ``sum 1/n`` over the calls that have the slot.

    Returns
    -------
    DataFrame
        ``judge, scope, slot, n, chosen, estimate, low, high, expected, excess, p, p_clusters, q``. ``scope`` is
        ``all`` (calls weigh the same), ``prompts`` (prompts weigh the same: the expectation is the mean of ``1/n`` over
        prompts; no exact p) or ``n=3``; ``slot`` counts from 1, ``last`` is the last one of each call. ``p``:
        Poisson-binomial, calls taken as independent under a choice that knows no slot; ``p_clusters``: sign flips of
        each cluster's excess; ``q``: Holm over the numbered slots of a scope. One call per prompt and order counts.

    Notes
    -----
    Interval: bootstrap over clusters for ``all``, Wilson for a single n. The expectation needs orders that are drawn
    at random or balanced; with one fixed order, good candidates may simply stand first: see :func:`position_fit`.
    """
    calls = distinct_calls(choices)
    n = calls.slots
    cluster = prompts.cluster[calls.prompt]
    rows: list[dict[str, Any]] = []
    scopes = [("all", np.ones(len(n), bool))] + [(f"n={k}", n == k) for k in np.unique(n)]
    for scope, mine in scopes:
        if not mine.any():
            continue
        for slot in [*range(int(n[mine].max())), "last"]:
            there = mine & (True if slot == "last" else n > slot)
            hit = (calls.slot == (n - 1 if slot == "last" else slot))[there]
            chance = 1 / n[there]
            test = poisson_binomial_test(int(hit.sum()), chance)
            rng = seeds.generator(seed, "judges", "slot", choices.judge, scope, str(slot))
            flip = sign_flip(hit - chance, cluster[there], rng=rng, draws=2_000)
            ends = mean_interval(hit, cluster[there], rng=rng).interval if scope == "all" else wilson(
                int(hit.sum()), len(hit)
            )  # fmt: skip
            rows.append({"judge": choices.judge, "scope": scope, "slot": slot if slot == "last" else str(slot + 1),
                         "n": test.n, "chosen": test.observed, "estimate": test.observed / test.n, "low": ends.low,
                         "high": ends.high, "expected": test.mean / test.n,
                         "excess": (test.observed - test.mean) / test.n, "p": test.p,
                         "p_clusters": flip.p})  # fmt: skip
    rows += _by_prompt(choices.judge, calls, prompts.cluster, seed)
    table = pd.DataFrame(rows)
    if not len(table):
        return table
    numbered = table["slot"].ne("last")
    table["q"] = NAN
    for scope in table["scope"].unique():
        mine = numbered & table["scope"].eq(scope)
        table.loc[mine, "q"] = holm(table.loc[mine, "p_clusters" if scope == "prompts" else "p"])
    return table


def _by_prompt(judge: str, calls: Choices, cluster: NDArray, seed: int) -> list[dict[str, Any]]:
    """First and last slot with every prompt weighing the same."""
    rows = []
    for slot in ("1", "last"):
        hit = calls.slot == (0 if slot == "1" else calls.slots - 1)
        by = pd.DataFrame({"p": calls.prompt, "hit": hit, "chance": 1 / calls.slots}).groupby("p").mean()
        if not len(by):
            continue
        rng = seeds.generator(seed, "judges", "slot", judge, "prompts", slot)
        mean = mean_interval(by["hit"], cluster[by.index], rng=rng)
        flip = sign_flip(by["hit"] - by["chance"], cluster[by.index], rng=rng, draws=2_000)
        rows.append({"judge": judge, "scope": "prompts", "slot": slot, "n": len(by), "chosen": int(hit.sum()),
                     "estimate": mean.value, "low": mean.interval.low, "high": mean.interval.high,
                     "expected": float(by["chance"].mean()), "excess": mean.value - float(by["chance"].mean()),
                     "p": NAN, "p_clusters": flip.p})  # fmt: skip
    return rows


def balanced_share(prompts: Prompts, choices: Choices) -> float:
    """Share of prompts whose orders put every candidate into every slot equally often."""
    calls = distinct_calls(choices)
    even = []
    for p in np.unique(calls.prompt):
        shown = calls.shown[calls.prompt == p][:, : prompts.n[p]]
        weights = order_weights(shown) if (shown >= 0).all() else None
        even.append(weights is not None and np.allclose(weights, 1 / len(weights)))
    return float(np.mean(even)) if even else NAN


def known_covariates(prompts: Prompts) -> dict[str, NDArray[np.float64]]:
    """What is known of the candidates, by name: rating, similarity, length (logarithm)."""
    found = {"rating": prompts.rating, "similarity": prompts.similarity}
    if prompts.length is not None and np.nanmin(prompts.length) > 0:
        found["log length"] = np.log(prompts.length)
    return {name: values for name, values in found.items() if values is not None}


def design(
    choices: Choices, covariates: Mapping[str, NDArray], slots: bool = True
) -> tuple[NDArray[np.float64], NDArray, NDArray[np.bool_], list[str]]:
    """Rows of the choice model: matrix, call of each row, whether it was chosen, names of the terms."""
    row, slot = np.nonzero(choices.shown >= 0)
    candidate, prompt = choices.shown[row, slot], choices.prompt[row]
    most = int(choices.slots.max(initial=0))
    columns = [(slot == s).astype(float) for s in range(1, most)] if slots else []
    names = [f"slot {s + 1}" for s in range(1, most)] if slots else []
    columns += [values[prompt, candidate] for values in covariates.values()]
    x = np.column_stack(columns) if columns else np.zeros((len(row), 0))
    return x, row, slot == choices.slot[row], [*names, *covariates]


def position_fit(
    prompts: Prompts, choices: Choices, covariates: Mapping[str, NDArray] | None = None, *, seed: int = 0
) -> PositionFit | None:
    """Conditional logit ``P(j) ~ exp(b[slot] + a rating + g similarity)``, with a joint test of the slots.

    Parameters
    ----------
    covariates : name -> values of shape (P, N); what is known of the candidates by default.

    Returns
    -------
    None where no call named a slot.
    """
    from scipy.special import ndtr

    calls = choices.at(choices.state == CHOSEN)
    if not len(calls.prompt):
        return None
    given = known_covariates(prompts) if covariates is None else dict(covariates)
    x, group, chosen, names = design(calls, given)
    cluster = prompts.cluster[calls.prompt][group]
    full = conditional_logit(x, group, chosen, cluster)
    slots = int(calls.slots.max()) - 1
    joint = joint_test(full, range(slots), conditional_logit(x[:, slots:], group, chosen, cluster))
    rng = seeds.generator(seed, "judges", "position", choices.judge)
    score_p = score_test(x, group, chosen, range(slots), cluster, rng=rng)
    se = np.full(len(names), NAN) if full.separated else full.se()
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * ndtr(-np.abs(full.beta / se))
    table = pd.DataFrame({"judge": choices.judge, "term": names, "coef": full.beta, "se": se,
                          "low": full.beta - 1.959964 * se, "high": full.beta + 1.959964 * se, "p": p})  # fmt: skip
    shown = np.concatenate([[0.0], full.beta[:slots]])
    equal = [
        {"judge": choices.judge, "n": int(n), "slot": s + 1, "probability": float(v), "expected": 1 / int(n)}
        for n in np.unique(calls.slots)
        for s, v in enumerate(np.exp(shown[:n] - shown[:n].max()) / np.exp(shown[:n] - shown[:n].max()).sum())
    ]
    return PositionFit(table, joint, score_p, full.separated, len(calls.prompt), pd.DataFrame(equal))
