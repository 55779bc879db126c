"""Whether a decision survives another order of the candidates, against how often it survives being asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.judges.decision_data import CHOSEN, NONE, TIE, Choices, Prompts
from auditlib.stats.paired import Estimate, mean_interval, sign_flip

NAN = float("nan")
#: shares from which the likelihood is climbed
_STARTS = tuple(np.array(s) for s in ((0.6, 0.2, 0.2), (0.2, 0.6, 0.2), (0.2, 0.2, 0.6)))


@dataclass(frozen=True)
class OrderChange:
    """Changes of decision between two orders, means over prompts.

    Attributes
    ----------
    change : two different orders give different decisions. slot : they follow the slot (the same slot, another
        candidate). neither : another slot and another candidate. tie : a declared tie in one of the two only.
        ``change = slot + neither + tie``.
    same_order : two calls in the *same* order give different decisions: what sampling alone does, equal to
        ``1 - sum theta^2`` for choice probabilities theta; None without such repeats.
    excess : change minus same_order at prompts that have both; ``p`` by sign flips over clusters.
    prompts : with two orders answered. one_order : with one only. note : what cannot be said.
    """

    judge: str
    change: Estimate
    slot: Estimate
    neither: Estimate
    tie: Estimate
    same_order: Estimate | None
    excess: Estimate | None
    p: float
    prompts: int
    one_order: int
    note: str

    def rows(self) -> list[dict[str, Any]]:
        parts = {"change": self.change, "follows the slot": self.slot, "follows neither": self.neither,
                 "to or from a tie": self.tie, "change in the same order": self.same_order,
                 "excess over the same order": self.excess}  # fmt: skip
        return [
            {"judge": self.judge, "quantity": name, **e.as_row(), "n": self.prompts,
             "p": self.p if e is self.excess else NAN}
            for name, e in parts.items() if e is not None
        ]  # fmt: skip


def order_change(prompts: Prompts, choices: Choices, *, seed: int = 0) -> OrderChange | None:
    """Changes of decision between orders, and between repeats of one order.

    Returns
    -------
    None where no prompt was answered in two orders.

    Notes
    -----
    Every pair of answered calls of a prompt counts the same within the prompt, every prompt the same; intervals and p
    resample clusters of prompts. A judge without bias that samples from theta changes in both columns alike: without
    calls repeated in one order, sampling cannot be told from an effect of the order.
    """
    apart, same = pair_changes(choices)
    if not len(apart):
        return None
    cluster = prompts.cluster[apart.index]
    rng = seeds.generator(seed, "judges", "orders", choices.judge)
    parts = {name: mean_interval(apart[name], cluster, rng=rng) for name in ("change", "slot", "neither", "tie")}
    answered = np.unique(choices.prompt[choices.state != NONE])
    baseline, excess, p, note = None, None, NAN, ""
    if len(same):
        baseline = mean_interval(same, prompts.cluster[same.index], rng=rng)
        difference = (apart["change"] - same).dropna()
        if len(difference):
            excess = mean_interval(difference, prompts.cluster[difference.index], rng=rng)
            p = sign_flip(difference, prompts.cluster[difference.index], rng=rng).p
    if excess is None:
        note = "no prompt was asked again in the same order: sampling cannot be told from an effect of the order"
    return OrderChange(choices.judge, **parts, same_order=baseline, excess=excess, p=p, prompts=len(apart),
                       one_order=len(answered) - len(apart), note=note)  # fmt: skip


def pair_changes(choices: Choices) -> tuple[pd.DataFrame, pd.Series]:
    """Shares of pairs of calls that differ, by prompt: over different orders, and over repeats of one order.

    Returns
    -------
    frame with columns ``change, slot, neither, tie`` and a series of changes, both by place of the prompt
    """
    use = choices.state != NONE
    # two calls compare where they show the same candidates
    _, same = np.unique(np.sort(choices.shown[use], axis=1), axis=0, return_inverse=True)
    table = pd.DataFrame({
        "same": same.ravel(),
        "prompt": choices.prompt[use], "order": choices.order[use], "slot": choices.slot[use],
        "candidate": np.where(choices.state[use] == TIE, -1, choices.candidate[use]), "call": np.arange(use.sum()),
    })  # fmt: skip
    pairs = table.merge(table, on=["prompt", "same"], suffixes=("", "_2"))
    pairs = pairs[pairs["call"] < pairs["call_2"]]
    change = pairs["candidate"].ne(pairs["candidate_2"])
    tie = change & (pairs["candidate"].lt(0) | pairs["candidate_2"].lt(0))
    slot = change & ~tie & pairs["slot"].eq(pairs["slot_2"])
    kinds = pd.DataFrame({"prompt": pairs["prompt"], "change": change, "slot": slot, "neither": change & ~tie & ~slot,
                          "tie": tie}).astype(dict.fromkeys(("change", "slot", "neither", "tie"), float))  # fmt: skip
    other = pairs["order"].ne(pairs["order_2"])
    return kinds[other].groupby("prompt").mean(), kinds[~other].groupby("prompt")["change"].mean()


@dataclass(frozen=True)
class Mixture:
    """Shares of decisions that follow the content, that are locked to ``slot``, and that are random.

    ``low`` and ``high`` map each share to its bootstrap interval. ``slot`` counts from 1; ``last`` is the last one.
    """

    judge: str
    slot: str
    content: float
    locked: float
    random: float
    low: dict[str, float]
    high: dict[str, float]
    loglik: float
    prompts: int


def mixture(prompts: Prompts, choices: Choices, *, seed: int = 0, draws: int = 100) -> Mixture | None:
    """Mixture view of a judge that was asked in several orders.

    Notes
    -----
    Each prompt has one candidate that the content points to, unknown and equally likely at first. A call takes it with
    chance ``content``, takes the locked slot with chance ``locked``, and any candidate alike with chance ``random``;
    fitted by maximum likelihood. The locked slot is the one of all numbered slots and the last with the highest
    likelihood. With two slots, a lock to both alike is random.

    Returns
    -------
    None where no prompt has choices in two orders among calls that show all its candidates.
    """
    calls = choices.at((choices.state == CHOSEN) & (choices.slots == prompts.n[choices.prompt]))
    several = pd.Series(calls.order).groupby(calls.prompt).nunique()
    kept = several.index[several.to_numpy() > 1].to_numpy()
    if not len(kept):
        return None
    calls = calls.at(np.isin(calls.prompt, kept))
    slots = calls.slots
    targets: list[tuple[str, NDArray]] = [(str(s + 1), np.full(len(slots), s)) for s in range(int(slots.min()))]
    targets.append(("last", slots - 1))
    if slots.max() == 2:
        targets.pop()
    size = prompts.n[kept].astype(float)
    best: tuple | None = None
    for name, slot in targets:
        counts, n, pattern = _patterns(_counts(calls, kept, slot, prompts.rating.shape[1]), size)
        shares, loglik = _fit(counts, n, np.bincount(pattern), _STARTS)
        if best is None or loglik > best[0] + 1e-9:
            best = (loglik, name, shares, counts, n, pattern)
    assert best is not None
    loglik, name, shares, counts, n, pattern = best
    rng = seeds.generator(seed, "judges", "mixture", choices.judge)
    _, code = np.unique(prompts.cluster[kept].astype(str), return_inverse=True)
    clusters = int(code.max()) + 1
    drawn = np.array([
        _fit(counts, n, np.bincount(pattern, times[code.ravel()], len(n)), [0.94 * shares + 0.02])[0]
        for times in (np.bincount(rng.integers(clusters, size=clusters), minlength=clusters) for _ in range(draws))
    ])  # fmt: skip
    ends = np.quantile(drawn, [0.025, 0.975], axis=0)
    names = ("content", "locked", "random")
    return Mixture(choices.judge, name, *(float(s) for s in shares), dict(zip(names, ends[0].tolist())),
                   dict(zip(names, ends[1].tolist())), loglik, len(kept))  # fmt: skip


def _counts(calls: Choices, kept: NDArray, slot: NDArray, width: int) -> NDArray[np.float64]:
    """Calls by (prompt, candidate taken as the content's): took it in the locked slot, took it elsewhere, took
    another in the locked slot, took another elsewhere.  Shape (prompts, candidates, 4)."""
    place = np.searchsorted(kept, calls.prompt)
    hit = calls.slot == slot
    took = np.zeros((len(kept), width, 2))
    np.add.at(took, (place, calls.candidate, np.where(hit, 0, 1)), 1)
    return np.concatenate([took, took.sum(axis=1, keepdims=True) - took], axis=2)


def _patterns(counts: NDArray, n: NDArray) -> tuple[NDArray, NDArray, NDArray[np.intp]]:
    """Distinct prompts, their n and each prompt's place among them: the likelihood knows no names of candidates."""
    packed = counts @ (float(counts.max()) + 1) ** np.arange(4)
    packed = np.where(np.arange(counts.shape[1]) < n[:, None], packed, -1.0)
    by = np.argsort(packed, axis=1)[:, ::-1]
    rows = np.column_stack([n, np.take_along_axis(packed, by, axis=1)])
    _, first, pattern = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.take_along_axis(counts, by[:, :, None], axis=1)[first], n[first], pattern.ravel()


def _fit(counts: NDArray, n: NDArray, weight: NDArray, starts: Sequence[NDArray]) -> tuple[NDArray, float]:
    """Shares (content, locked, random) of the highest likelihood, and its logarithm."""
    from scipy.optimize import minimize

    there = np.arange(counts.shape[1]) < n[:, None]

    def loss(free: NDArray) -> tuple[float, NDArray]:
        shares = _softmax(free)
        content, locked, random = shares
        base = (random / n)[:, None]
        chance = np.maximum(np.stack([content + locked + base, content + base, locked + base, base], axis=2), 1e-300)
        logs = np.where(there, (counts * np.log(chance)).sum(axis=2), -np.inf)
        top = logs.max(axis=1, keepdims=True)
        post = np.exp(logs - top)
        total = post.sum(axis=1, keepdims=True)
        slope = weight[:, None, None] * (post / total)[:, :, None] * counts / chance
        by = np.array([slope[:, :, :2].sum(), slope[:, :, [0, 2]].sum(), (slope.sum(axis=(1, 2)) / n).sum()])
        return -float(weight @ (top[:, 0] + np.log(total[:, 0] / n))), -(shares * (by - shares @ by))[:2]

    found = [
        minimize(loss, np.log(np.maximum(s[:2], 1e-6) / max(s[2], 1e-6)), jac=True, method="L-BFGS-B",
                 bounds=[(-14, 14)] * 2) for s in starts
    ]  # fmt: skip
    best = min(found, key=lambda f: f.fun)
    return _softmax(best.x), -float(best.fun)


def _softmax(free: NDArray) -> NDArray[np.float64]:
    e = np.exp(np.append(free, 0.0) - max(0.0, free.max()))
    return e / e.sum()
