"""The judge that reads answers out of replies, examined like any other judge.

Its decisions are an option or an abstention; the truth is what people read in a stratified sample of replies. It is
asked as the audit asks it (key hidden, options in order), with the options listed in another order (each keeps its
letter, since the reply may name it), and with the key shown, to see whether it leans to what it is told is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.calls import Reply, Request
from auditlib.errors import AuditError
from auditlib.extract.chain import own_letter, shown_in
from auditlib.frames import ABSTENTION, option_name
from auditlib.inference.items import QuestionItem
from auditlib.inference.judge import JudgeSettings, judge_requests, read_judge_reply
from auditlib.stats.intervals import wilson
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import mean_interval, sign_flip

NAN = float("nan")
PURPOSE = "judge check"
#: as the audit asks; options listed in reverse order; the key named
VARIANTS = ("plain", "permuted", "key_shown")


def variant_requests(
    items: Iterable[QuestionItem], responses: pd.DataFrame, settings: JudgeSettings
) -> Iterator[tuple[int, str, Request]]:
    """Requests of each response under each variant.

    Yields
    ------
    place of the response, variant, request
        ``plain`` is the request of :func:`~auditlib.inference.judge.judge_requests` itself, so that answers of the
        audit's own run are found in the store. Repeats of ``settings`` apply to ``plain`` only: how often the judge
        changes its mind when nothing changed. Items without options have no permuted variant, those without a key no
        variant that shows it.
    """
    by_id = {i.item: i for i in items}
    for place in range(len(responses)):
        one = responses.iloc[[place]]
        item = by_id.get(one["item"].iloc[0])
        if item is None:
            continue
        order = one["order"].iloc[0] if "order" in one and isinstance(one["order"].iloc[0], str) else ""
        for i, request in enumerate(judge_requests([item], one, settings)):
            yield place, "plain", request
            if i == 0:
                for variant in VARIANTS[1:]:
                    text = _changed(request.text, item, order, variant)
                    if text:
                        yield place, variant, replace(request, parts=(text,), condition=f"judge, {variant}",
                                                      purpose=PURPOSE)  # fmt: skip


def _changed(text: str, item: QuestionItem, order: str, variant: str) -> str:
    """The request's text under a variant; empty where the item has none."""
    before = "\n\nReply:\n<<<\n"
    if variant == "key_shown":
        key = _shown_letter(item.key.strip(), order) if item.answer_type == "choice" else item.key.strip()
        return text.replace(before, f"\n\nThe right answer is {key}.{before}", 1) if key else ""
    if item.answer_type != "choice":
        return ""
    texts = shown_in(item.options, order) if order else item.options
    lines = [f"{option_name(i)}. {t}" for i, t in enumerate(texts[:25]) if t.strip()]
    block = "\n\nOptions:\n" + "\n".join(lines) + before
    if len(lines) < 2 or block not in text:
        return ""
    return text.replace(block, "\n\nOptions:\n" + "\n".join(lines[::-1]) + before, 1)


def _shown_letter(letter: str, order: str) -> str:
    """The letter under which a reply saw an option of the item."""
    if not order:
        return letter
    return option_name(order.index(letter)) if letter in order else ""


def variant_readings(
    items: Iterable[QuestionItem], responses: pd.DataFrame, settings: JudgeSettings,
    answer: Callable[[str], Reply | None],
) -> pd.DataFrame:  # fmt: skip
    """What the judge read under each variant.

    Returns
    -------
    DataFrame
        ``response`` (place), ``item, model, variant, repeat, said, outcome``. ``said`` is the item's own letter (or
        ``Yes``, ``No``), ``Z`` for an abstention; empty where the call failed or was not made (``outcome`` says which).
    """
    by_id = {i.item: i for i in items}
    rows = []
    for place, variant, request in variant_requests(by_id.values(), responses, settings):
        response = responses.iloc[place]
        item, reply = by_id[response["item"]], answer(request.key)
        outcome = "not run" if reply is None else reply.outcome
        rows.append({"response": place, "item": item.item, "model": response["model"], "variant": variant,
                     "repeat": request.sample, "outcome": outcome,
                     "said": "" if outcome in ("not run", "failed") else _said(item, response, reply)})  # fmt: skip
    return pd.DataFrame(rows, columns=["response", "item", "model", "variant", "repeat", "said", "outcome"])


def _said(item: QuestionItem, response: Any, reply: Reply) -> str:
    if reply.outcome != "ok":
        return ABSTENTION
    if item.answer_type == "yesno":
        return read_judge_reply(reply.text, ("Yes", "No"))
    order = response.get("order")
    order = order if isinstance(order, str) else ""
    texts = shown_in(item.options, order) if order else item.options
    said = read_judge_reply(reply.text, tuple(option_name(i) for i, t in enumerate(texts[:25]) if t.strip()))
    return own_letter(said, order) if order and said != ABSTENTION else said


def joined_readings(readings: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Readings of every variant beside what people read, one row per response.

    Parameters
    ----------
    readings : of :func:`variant_readings`.
    truth : ``response, truth`` (own letter, ``Yes``, ``No`` or ``Z``), ``key``; optional ``kind`` (type of reply),
        ``cluster``, ``weight`` (replies of its stratum that a sampled one stands for).

    Raises
    ------
    AuditError
        A response twice, or without a reading by people; a weight that is not positive.
    """
    if truth["response"].duplicated().any():
        twice = truth.loc[truth["response"].duplicated(), "response"].iloc[0]
        raise AuditError(f"response {twice} is read twice by people", mend="settle it to one reading")
    if truth["truth"].isna().any() or truth["truth"].eq("").any():
        raise AuditError("a response has no reading by people", mend=f"write {ABSTENTION} where it names no option")
    table = truth.copy()
    first = readings[readings["repeat"].eq(0)]
    for variant in VARIANTS:
        said = first[first["variant"].eq(variant)].set_index("response")["said"]
        table[variant] = said.reindex(table["response"]).fillna("").to_numpy(dtype=object)
    again = readings[readings["variant"].eq("plain") & readings["repeat"].eq(1)].set_index("response")["said"]
    table["again"] = again.reindex(table["response"]).fillna("").to_numpy(dtype=object)
    for name, default in (("kind", "all"), ("cluster", None), ("weight", 1.0)):
        if name not in table:
            table[name] = table["response"].astype(str) if default is None else default
    if not (table["weight"] > 0).all():
        raise AuditError("a weight is not positive", mend="give the number of replies that each sampled one stands for")
    return table.reset_index(drop=True)


def accuracy_by_kind(table: pd.DataFrame, variant: str = "plain") -> pd.DataFrame:
    """Share of replies that the judge read as people did, by type of reply; ``all`` is weighted to the population.

    Columns ``kind, n, unread, estimate, low, high``; ``unread`` replies (call failed or not made) do not count.
    """
    rows = []
    for kind, mine in [("all", table), *table.groupby("kind", sort=True)]:
        read = mine[mine[variant].ne("")]
        right = read[variant].eq(read["truth"])
        ends = wilson(int(right.sum()), len(read))
        weighted = float(np.average(right, weights=read["weight"])) if len(read) else NAN
        rows.append({"kind": kind, "n": len(read), "unread": len(mine) - len(read), "estimate": weighted,
                     "low": ends.low, "high": ends.high})  # fmt: skip
        if kind == "all" and len(read) and read["weight"].nunique() > 1:
            spread = np.sqrt((read["weight"] ** 2 * (right - weighted) ** 2).sum()) / read["weight"].sum()
            rows[-1] |= {"low": max(0.0, weighted - 1.96 * spread), "high": min(1.0, weighted + 1.96 * spread)}
    return pd.DataFrame(rows)


def leniency(table: pd.DataFrame) -> pd.DataFrame:
    """Errors toward the key and away from it, under each variant.

    Returns
    -------
    DataFrame
        ``variant, false_right, false_right_low, false_right_high, wrong, false_wrong, false_wrong_low,
        false_wrong_high, right, toward, away, p, q``. ``false_right`` is P(judged right | wrong), over ``wrong``
        replies that people read as another answer than the key or as none; ``false_wrong`` is P(judged wrong | right).
        ``toward`` and ``away`` count both errors; ``p`` is the exact McNemar test that they are alike, Holm over
        variants.
    """
    from scipy.stats import binomtest

    rows = []
    for variant in VARIANTS:
        read = table[table[variant].ne("") & table["key"].ne("")]
        right, judged = read["truth"].eq(read["key"]), read[variant].eq(read["key"])
        toward, away = int((judged & ~right).sum()), int((~judged & right).sum())
        ends, other = wilson(toward, int((~right).sum())), wilson(away, int(right.sum()))
        rows.append({
            "variant": variant, "false_right": _share(toward, int((~right).sum())), "false_right_low": ends.low,
            "false_right_high": ends.high, "wrong": int((~right).sum()), "false_wrong": _share(away, int(right.sum())),
            "false_wrong_low": other.low, "false_wrong_high": other.high, "right": int(right.sum()), "toward": toward,
            "away": away, "p": binomtest(toward, toward + away).pvalue if toward + away else NAN,
        })  # fmt: skip
    out = pd.DataFrame(rows)
    return out.assign(q=holm(out["p"]))


def variant_changes(table: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """How the reading moves when the options are permuted, when the key is shown, and when nothing changes.

    Returns
    -------
    DataFrame
        ``variant, truth, n, changed, baseline, excess, low, high, to_key, from_key, p, q``. ``changed``: share of
        replies read otherwise than plainly; ``baseline``: the same for a second plain call (NaN without repeats);
        ``excess``: their difference at replies that have both, interval over clusters. ``to_key`` and ``from_key``
        count readings that become the key's, that leave it; ``p`` is the sign-flip test over clusters of their
        difference, Holm over the rows of showing the key. ``truth`` splits by what people read: ``all``, ``right``
        (the key) and ``wrong``: leaning shows where people read something else.
    """
    right = table["truth"].eq(table["key"]).to_numpy()
    rows = []
    for variant in ("permuted", "key_shown"):
        for name, mine in (("all", np.ones(len(table), bool)), ("right", right), ("wrong", ~right)):
            both = table[mine & table["plain"].ne("") & table[variant].ne("")]
            moved = both[variant].ne(both["plain"]).to_numpy(float)
            twice = both["again"].ne("").to_numpy()
            again = np.where(twice, both["again"].ne(both["plain"]), np.nan)
            rng = seeds.generator(seed, "judges", "extraction", variant, name)
            excess = mean_interval(moved - again, both["cluster"].to_numpy(), rng=rng)
            lean = _to_key(both, variant) - _to_key(both, "plain")
            rows.append({"variant": variant, "truth": name, "n": len(both), "changed": _mean(moved),
                         "baseline": _mean(again[twice]), "excess": excess.value, "low": excess.interval.low,
                         "high": excess.interval.high, "to_key": int((lean > 0).sum()),
                         "from_key": int((lean < 0).sum()),
                         "p": sign_flip(lean, both["cluster"].to_numpy(), rng=rng).p})  # fmt: skip
    out = pd.DataFrame(rows)
    shown = out["variant"].eq("key_shown")
    out.loc[shown, "q"] = holm(out.loc[shown, "p"])
    return out


def _share(k: int, n: int) -> float:
    return k / n if n else NAN


def _mean(values: NDArray) -> float:
    return float(values.mean()) if len(values) else NAN


def _to_key(table: pd.DataFrame, variant: str) -> NDArray[np.float64]:
    return (table[variant].eq(table["key"]) & table["key"].ne("")).to_numpy(float)
