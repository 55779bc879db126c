"""Adjudication of items by several judges in two rounds: asked or read from files, then decided by quorum and ties."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib import frames
from auditlib.calls import Reply, Request
from auditlib.curation.adjudication_decisions import AdjudicationSettings, decide
from auditlib.curation.adjudication_prompts import (
    Asked,
    Candidate,
    Judge,
    ask_round1,
    ask_round2,
    parse_label,
    sample_responses,
)
from auditlib.curation.votes import votes_frame
from auditlib.errors import AuditError

if TYPE_CHECKING:
    from auditlib.inference.items import QuestionItem

#: gives the outcome of each request, in any order; a request without one counts as failed
Ask = Callable[[list[Request]], Iterable[Reply]]


@dataclass(frozen=True)
class Adjudication:
    """What the judges said and what follows.

    Attributes
    ----------
    votes : see :mod:`auditlib.curation.votes`. decisions : see
        :func:`~auditlib.curation.adjudication_decisions.decide`. coverage : rows of the coverage table
        for calls that failed and replies that hold no label.
    """

    votes: pd.DataFrame
    decisions: pd.DataFrame
    coverage: pd.DataFrame


def candidates_of(
    items: Iterable[QuestionItem],
    responses: pd.DataFrame,
    settings: AdjudicationSettings | None = None,
    *,
    wanted: Collection[str] | None = None,
    hidden: Sequence[str] = (),
) -> list[Candidate]:
    """Items before the judges, with a sample of the responses to them.

    Parameters
    ----------
    items : questions with their pictures and keys.
    responses : responses contract; those with the image, with a text, and in the item's own order of options.
    wanted : ids of the items to judge, such as those that a rule flagged; None takes all.
    hidden : names to take out of the texts, beside those of the models that responded.

    Raises
    ------
    AuditError
        A wanted item has no question.
    """
    settings = settings or AdjudicationSettings()
    chosen = {i.item: i for i in items}
    if wanted is not None:
        lost = sorted({str(i) for i in wanted} - set(chosen))
        if lost:
            mend = "give the benchmark's own table, with this item in it"
            raise AuditError(f"{len(lost)} items to judge have no question, such as {lost[0]!r}", mend=mend)
        chosen = {str(i): chosen[str(i)] for i in dict.fromkeys(wanted)}
    names = [*hidden, *responses["model"].astype(str).unique()] if "model" in responses else list(hidden)
    given = _responses(responses, set(chosen))
    return [
        Candidate(
            item=i.item,
            question=f"{i.hint}\n{i.question}" if i.hint.strip() else i.question,
            options=i.options,
            key=_key(i),
            pictures=i.pictures,
            responses=sample_responses(
                given.get(i.item, ()), seed=settings.seed, item=i.item, per_answer=settings.per_answer,
                most=settings.most, hidden=names,
            ),
        )
        for i in chosen.values()
    ]  # fmt: skip


def adjudicate(
    candidates: Sequence[Candidate],
    judges: Sequence[Judge],
    ask: Ask,
    settings: AdjudicationSettings | None = None,
    *,
    votes: pd.DataFrame | None = None,
) -> Adjudication:
    """Both rounds, then the decisions.

    Parameters
    ----------
    candidates, judges : each judge is asked about each item, with the item's key.
    ask : sends requests and gives their outcomes; see :func:`auditlib.inference.several.ask_several`.
    votes : votes there are already, also of judges that are not asked. They are not asked for again, but for those
        whose call failed; an item with a vote of round 2 is not asked in round 1.

    Raises
    ------
    AuditError
        An item or a judge occurs twice, votes on items that are no candidates; whatever ``ask`` raises.

    Notes
    -----
    Round 2 begins when round 1 is through. A call of round 1 that failed for good is a missing vote; where a later run
    gets it, the item's second round has other labels to show and is asked anew, unless ``settings.wait`` held it back
    or the saved ``votes`` are handed in.
    """
    settings = settings or AdjudicationSettings()
    for what, names in (("item", [c.item for c in candidates]), ("judge", [j.name for j in judges])):
        twice = pd.Index(names)[pd.Index(names).duplicated()]
        if len(twice):
            raise AuditError(f"{what} {twice[0]!r} is there twice", mend=f"give each {what} once")
    given = votes_frame() if votes is None else votes
    if lost := sorted(set(given["item"]) - {c.item for c in candidates}):
        raise AuditError(f"there are votes on item {lost[0]!r}, which is not judged", mend="remove them")
    there = given[given["outcome"] != "failed"]
    known = set(zip(there["item"], there["round"], there["judge"]))
    closed = set(given.loc[given["round"] == 2, "item"])

    shown = {"seed": settings.seed, "longest": settings.longest}
    first = [a for a in ask_round1(candidates, judges, **shown) if (a.item, 1, a.judge) not in known]
    first = [a for a in first if a.item not in closed]
    rows = _with(given.to_dict("records"), votes_of(first, _answers(first, ask)))

    labels: dict[str, list[tuple[str, str, str]]] = {c.item: [] for c in candidates}
    for row in rows:
        if row["round"] == 1 and row["label"]:
            labels[row["item"]].append((row["judge"], row["label"], row["reason"]))
    waiting = {r["item"] for r in rows if r["round"] == 1 and r["outcome"] == "failed"} if settings.wait else set()
    ready = [c for c in candidates if c.item not in waiting]
    second = [a for a in ask_round2(ready, judges, labels, **shown) if (a.item, 2, a.judge) not in known]
    table = votes_frame(_with(rows, votes_of(second, _answers(second, ask))))
    return Adjudication(table, decide(table, settings, items=[c.item for c in candidates]), _coverage(table, waiting))


def votes_of(asked: Iterable[Asked], answer: Mapping[str, Reply]) -> list[dict[str, Any]]:
    """Rows of the votes table from replies by the key of their request; unreadable and missing ones have no label."""
    rows = []
    for a in asked:
        reply = answer.get(a.request.key) or Reply(a.request.key, "failed")
        label, reason = parse_label(reply.text) if reply.outcome == "ok" else ("", "")
        rows.append(
            {"item": a.item, "round": a.round, "judge": a.judge, "label": label, "reason": reason, "source": "asked",
             "shown_order": a.shown_order, "outcome": reply.outcome, "tokens_in": _number(reply.tokens_in),
             "tokens_out": _number(reply.tokens_out)}
        )  # fmt: skip
    return rows


def _with(rows: list[dict[str, Any]], more: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with further ones, which replace those of the same item, round and judge."""
    both = {(r["item"], r["round"], r["judge"]): r for r in [*rows, *more]}
    return list(both.values())


def _answers(asked: Sequence[Asked], ask: Ask) -> dict[str, Reply]:
    return {r.key: r for r in ask([a.request for a in asked])} if asked else {}


def _number(value: int | None) -> float:
    return float("nan") if value is None else float(value)


def _key(item: QuestionItem) -> str:
    """The key with its accepted forms, for open answers."""
    more = [r for r in item.references if r != item.key]
    return item.key + (f" (also accepted: {'; '.join(more)})" if more else "")


def _responses(responses: pd.DataFrame, items: set[str]) -> dict[str, list[tuple[str, str]]]:
    """(answer, text) of the responses to each item that a judge may see."""

    def column(name: str) -> pd.Series:
        empty = pd.Series("", index=responses.index, dtype=object)
        if name not in responses:
            return empty
        return responses[name].astype(object).where(responses[name].notna(), "").astype(str)

    text = column("prediction")
    fit = responses["item"].astype(str).isin(items) & text.str.strip().ne("") & column("order").eq("")
    if "condition" in responses:
        fit &= responses["condition"].eq("full")
    if "status" in responses:
        fit &= responses["status"].isin(["ok", "truncated"])
    letter = column("letter").replace(frames.ABSTENTION, "")
    answer = column("answer").where(column("answer").ne(""), letter)
    found: dict[str, list[tuple[str, str]]] = {}
    for item, a, t in zip(responses["item"][fit].astype(str), answer[fit], text[fit]):
        found.setdefault(item, []).append((a, t))
    return found


def _coverage(votes: pd.DataFrame, waiting: Collection[str]) -> pd.DataFrame:
    rows = []
    for (judge, number), part in votes.groupby(["judge", "round"]):
        lost = part["outcome"] == "failed"
        unread = part["label"].eq("") & ~lost
        for what, at, reason in (
            ("not run", lost, f"calls of round {number} that failed: no vote"),
            ("unreadable", unread, f"replies of round {number} without one label: no vote"),
        ):
            if at.any():
                first = part.loc[at, "item"].iloc[0]
                rows.append(frames.coverage_row(what, n=int(at.sum()), model=judge, item=first, reason=reason))
    if waiting:
        reason = "items that wait for failed calls of round 1: run again"
        rows.append(frames.coverage_row("not run", n=len(waiting), item=min(waiting), reason=reason))
    return frames.frame("coverage", rows)
