"""What two rounds of judging did: flips and herding, agreement and truth gained, each judge's confusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.curation.votes import LABELS
from auditlib.errors import AuditError
from auditlib.stats.agreement import fleiss_kappa, krippendorff_alpha
from auditlib.stats.dawid_skene import dawid_skene
from auditlib.stats.intervals import bootstrap_function, wilson
from auditlib.stats.rates import rate_interval
from auditlib.stats.resample import distinct_rows

NAN = float("nan")
_SIDE = len(LABELS)


@dataclass(frozen=True)
class VoteCodes:
    """Labels as numbers, shape (items, judges) for each round: places in ``LABELS``, -1 for no vote."""

    items: list[str]
    judges: list[str]
    first: NDArray[np.int64]
    second: NDArray[np.int64]

    def of(self, number: int) -> NDArray[np.int64]:
        return self.first if number == 1 else self.second


def vote_codes(votes: pd.DataFrame) -> VoteCodes:
    """Arrays of the votes; items and judges are sorted."""
    items, judges = (sorted(votes[c].unique()) for c in ("item", "judge"))
    rounds = []
    for number in (1, 2):
        part = votes[votes["round"] == number]
        codes = np.full((len(items), len(judges)), -1, np.int64)
        at = pd.Index(items).get_indexer(part["item"]), pd.Index(judges).get_indexer(part["judge"])
        codes[at] = pd.Index(LABELS).get_indexer(part["label"])
        rounds.append(codes)
    return VoteCodes(items, judges, *rounds)


def majority(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The label that most votes of an item name, -1 where two lead or there is no vote.  Shape (items,)."""
    counts = (codes[:, :, None] == np.arange(_SIDE)).sum(axis=1)
    top = counts.max(axis=1, initial=0)
    alone = (counts == top[:, None]).sum(axis=1) == 1
    return np.where(alone & (top > 0), counts.argmax(axis=1), -1)


def herding(votes: pd.DataFrame, *, rng: np.random.Generator | None = None, draws: int = 2000) -> pd.DataFrame:
    """Flips from round 1 to round 2 toward the majority of round 1 and away from it, over all judges and by judge.

    Parameters
    ----------
    votes : of both rounds. rng, draws : of the bootstrap over items; without ``rng`` the index has no interval.

    Returns
    -------
    DataFrame
        ``judge`` (first row ``all``); ``pairs``: item and judge with a vote in both rounds, where one label led round 1
        alone, each a flip that was possible; ``outside`` of the majority at first, ``toward`` of them that took its
        label, ``elsewhere`` that took a third; ``inside``, ``away`` of them that left. Rates ``toward_rate`` and
        ``away_rate`` with intervals that know of items; ``index``, ``low``, ``high``.

    Notes
    -----
    ``index = (toward - away) / pairs``. It is 0 where nobody flips. A judge that merely answers anew, without a look at
    the others, also flips toward a majority that is mostly right: an index above 0 is herding or correction, and
    :func:`by_round` tells whether truth was gained with it.
    """
    c = vote_codes(votes)
    led = np.broadcast_to(majority(c.first)[:, None], c.first.shape)
    pairs = (c.first >= 0) & (c.second >= 0) & (led >= 0)
    inside, flipped = pairs & (c.first == led), pairs & (c.first != c.second)
    toward, away = flipped & ~inside & (c.second == led), flipped & inside
    kinds = {"pairs": pairs, "inside": inside, "toward": toward, "away": away, "flipped": flipped}
    rows = []
    for name, at in [("all", slice(None)), *((j, slice(i, i + 1)) for i, j in enumerate(c.judges))]:
        n = {k: m[:, at].sum(axis=1) for k, m in kinds.items()}
        outside = n["pairs"] - n["inside"]
        row: dict[str, Any] = {"judge": name, "pairs": int(n["pairs"].sum()), "outside": int(outside.sum())}
        row |= {"toward": int(n["toward"].sum()), "elsewhere": int((n["flipped"] - n["toward"] - n["away"]).sum())}
        row |= {"inside": int(n["inside"].sum()), "away": int(n["away"].sum())}
        for what, possible in (("toward", outside), ("away", n["inside"])):
            interval = rate_interval(n[what], possible)
            total = possible.sum()
            row |= {f"{what}_rate": n[what].sum() / total if total else NAN}
            row |= {f"{what}_low": interval.low, f"{what}_high": interval.high}
        stats = np.column_stack([n["toward"] - n["away"], n["pairs"]])[n["pairs"] > 0]
        rows.append(row | _ratio("index", stats, rng, draws))
    return pd.DataFrame(rows)


def by_round(
    votes: pd.DataFrame,
    truth: Mapping[str, str] | None = None,
    *,
    rng: np.random.Generator | None = None,
    draws: int = 2000,
) -> pd.DataFrame:
    """Agreement and truth in each round, and what round 2 gained.

    Parameters
    ----------
    votes : of both rounds. truth : item -> label that people gave it; ``no_issue`` where they found no defect.

    Returns
    -------
    DataFrame
        ``measure`` (``fleiss_kappa``, ``krippendorff_alpha``, ``votes_true``, ``majority_true``), ``round`` (``1``,
        ``2``, ``gain``), ``n`` (items), ``estimate``, ``low``, ``high``, ``note``. Gains compare the same items, and
        for kappa those with all votes in both rounds; their intervals resample items. A majority that two labels share
        is not true.
    """
    c = vote_codes(votes)
    rows = []
    for number in (1, 2):
        for name, function in (("fleiss_kappa", fleiss_kappa), ("krippendorff_alpha", krippendorff_alpha)):
            found = function(c.of(number), _SIDE, rng=rng, draws=draws)
            rows.append({"measure": name, "round": str(number), **found.as_row()})
    full = (c.first >= 0).all(axis=1) & (c.second >= 0).all(axis=1)
    rows.append({"measure": "fleiss_kappa", "round": "gain"} | _kappa_gain(c, full, rng, draws))
    if truth is not None:
        gold = _gold(c.items, truth)
        votes_of = {n: (c.of(n) >= 0) & (gold >= 0)[:, None] for n in (1, 2)}
        right = {n: votes_of[n] & (c.of(n) == gold[:, None]) for n in (1, 2)}
        known = (gold >= 0) & votes_of[1].any(axis=1) & votes_of[2].any(axis=1)
        shares = {
            "votes_true": {n: (right[n].sum(axis=1), votes_of[n].sum(axis=1)) for n in (1, 2)},
            "majority_true": {n: ((majority(c.of(n)) == gold).astype(int), np.ones(len(gold), int)) for n in (1, 2)},
        }
        for name, both in shares.items():
            for number, (hits, trials) in both.items():
                h, t = hits[known], trials[known]
                interval = rate_interval(h, t)
                estimate = h.sum() / t.sum() if t.sum() else NAN
                rows.append({"measure": name, "round": str(number), "n": int(known.sum()), "estimate": estimate,
                             "low": interval.low, "high": interval.high, "note": ""})  # fmt: skip
            (h1, t1), (h2, t2) = ((a[known], b[known]) for a, b in (both[1], both[2]))
            stats = np.column_stack([h1, t1, h2, t2])
            rows.append({"measure": name, "round": "gain", "n": int(known.sum())} | _gain(
                stats, lambda t: t[:, 2] / t[:, 3] - t[:, 0] / t[:, 1], rng, draws))  # fmt: skip
    table = pd.DataFrame(rows)
    order = {name: i for i, name in enumerate(dict.fromkeys(table["measure"]))}
    return table.sort_values("measure", key=lambda s: s.map(order), kind="stable").reset_index(drop=True)


@dataclass(frozen=True)
class Confusion:
    """What each judge says of items of each true label.

    Attributes
    ----------
    table : ``judge``, ``truth``, ``label`` (empty: no vote), ``n`` (items; expected ones without people), ``share``
        of the votes on items of this truth. accuracy : ``judge``, ``n``, ``estimate``, ``low``, ``high``.
    source : ``people``, or ``dawid_skene`` where no person labelled the items. prevalence : label -> share of items.
    """

    table: pd.DataFrame
    accuracy: pd.DataFrame
    source: Literal["people", "dawid_skene"]
    prevalence: dict[str, float]


def confusion(votes: pd.DataFrame, truth: Mapping[str, str] | None = None, *, number: int = 1) -> Confusion:
    """Confusion of each judge in one round against people, or by Dawid and Skene's model without them.

    Notes
    -----
    Round 1 is the default: in round 2 judges have seen each other, which breaks the model's independence.
    """
    c = vote_codes(votes)
    codes = c.of(number)
    if truth is not None:
        gold = _gold(c.items, truth)
        weight = (gold[:, None] == np.arange(_SIDE)).astype(float)
    elif (codes >= 0).any():
        weight = np.nan_to_num(dawid_skene(codes, _SIDE).posterior)
    else:
        weight = np.zeros((len(codes), _SIDE))
    said = np.stack([codes == level for level in (*range(_SIDE), -1)], axis=2)
    n = np.einsum("ic,ijl->jcl", weight, said.astype(float))
    cast = n[:, :, :_SIDE].sum(axis=2, keepdims=True)
    share = np.divide(n, cast, out=np.full_like(n, NAN), where=cast > 0)
    share[:, :, _SIDE] = NAN
    labels = [*LABELS, ""]
    table = [
        {"judge": judge, "truth": true, "label": label, "n": n[j, t, k], "share": share[j, t, k]}
        for j, judge in enumerate(c.judges) for t, true in enumerate(LABELS) for k, label in enumerate(labels)
    ]  # fmt: skip
    accuracy = []
    for j, judge in enumerate(c.judges):
        right, total = float(np.trace(n[j, :, :_SIDE])), float(n[j, :, :_SIDE].sum())
        row = {"judge": judge, "n": total, "estimate": right / total if total else NAN, "low": NAN, "high": NAN}
        if truth is not None and total:
            interval = wilson(round(right), round(total))
            row |= {"low": interval.low, "high": interval.high}
        accuracy.append(row)
    sums = weight.sum(axis=0)
    prevalence = dict(zip(LABELS, (sums / sums.sum() if sums.sum() else np.full(_SIDE, NAN)).tolist()))
    source = "people" if truth is not None else "dawid_skene"
    return Confusion(pd.DataFrame(table), pd.DataFrame(accuracy), source, prevalence)


def _gold(items: Sequence[str], truth: Mapping[str, str]) -> NDArray[np.int64]:
    """Places of the true labels in ``LABELS``, -1 where unknown."""
    wrong = sorted({str(v) for v in truth.values()} - set(LABELS))
    if wrong:
        raise AuditError(f"{wrong[0]!r} is no label of an item", mend=f"use {', '.join(LABELS)}")
    return np.array([LABELS.index(truth[i]) if i in truth else -1 for i in items], np.int64)


def _ratio(name: str, stats: NDArray, rng: np.random.Generator | None, draws: int) -> dict[str, float]:
    """Ratio of the sums of two columns, with a bootstrap over rows."""
    found = _gain(stats, lambda t: t[:, 0] / t[:, 1], rng, draws)
    return {name: found["estimate"], "low": found["low"], "high": found["high"]}


def _gain(stats: NDArray, value: Any, rng: np.random.Generator | None, draws: int) -> dict[str, Any]:
    """A function of column sums at the data, with a percentile bootstrap over rows."""
    if not len(stats):
        return {"estimate": NAN, "low": NAN, "high": NAN, "note": "no item"}

    def quiet(t: NDArray) -> NDArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return value(t)

    out = {"estimate": float(quiet(stats.sum(axis=0, keepdims=True).astype(float))[0]), "low": NAN, "high": NAN}
    if rng is not None:
        rows, freq = distinct_rows(stats.astype(np.int64))
        interval = bootstrap_function(rows.astype(float), freq, quiet, rng=rng, draws=draws)
        out |= {"low": interval.low, "high": interval.high}
    return out | {"note": ""}


def _kappa_gain(c: VoteCodes, full: NDArray, rng: np.random.Generator | None, draws: int) -> dict[str, Any]:
    """Fleiss' kappa of round 2 minus that of round 1 on the same items."""
    raters = len(c.judges)
    n = int(full.sum())
    if raters < 2:
        return {"n": n, "estimate": NAN, "low": NAN, "high": NAN, "note": "fewer than two judges"}
    parts = [np.ones((n, 1), np.int64)]
    for number in (1, 2):
        counts = (c.of(number)[full][:, :, None] == np.arange(_SIDE)).sum(axis=1)
        parts += [(counts * (counts - 1)).sum(axis=1, keepdims=True), counts]

    def kappa(t: NDArray, start: int) -> NDArray:
        seen = t[:, start] / (t[:, 0] * raters * (raters - 1))
        share = t[:, start + 1 : start + 1 + _SIDE] / (t[:, :1] * raters)
        chance = (share * share).sum(axis=1)
        return np.where(chance > 1 - 1e-12, NAN, (seen - chance) / (1 - chance))

    return {"n": n} | _gain(np.hstack(parts), lambda t: kappa(t, 2 + _SIDE) - kappa(t, 1), rng, draws)
