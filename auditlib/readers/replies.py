"""Replies as logs of whole runs hold them, and the canonical frames they become."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import coverage_row, frame
from auditlib.readers import cells, choices
from auditlib.readers.shown_orders import canonical, order_of, relettered

#: keys of a sample's own facts -> item columns, first that is present
FACTS = {
    "stratum": ("category", "subject", "subset", "task_category"),
    "substratum": ("l2_category", "l2-category", "subcategory", "subfield", "sub_category"),
    "source": ("bench", "source", "data_source"),
    "capability": ("capability", "skill"),
    "image_key": ("image_path", "image_id"),
}


@dataclass(frozen=True)
class Verdict:
    """A stored verdict: ``hit`` from 0 to 1 (NaN where the value means neither), the parsed answer, who decided."""

    hit: float
    extracted: str = ""
    source: str = "unknown"


@dataclass(frozen=True)
class Reply:
    """One reply of one run, its item as the run showed it, and the verdicts stored with it by judge.

    ``status`` is given where the log states it, and empty where the text decides. ``target`` holds option letters or
    accepted texts; ``shuffles`` says that the run states that it shuffles options.
    """

    run: str
    row: int
    item: str
    model: str
    condition: str
    sample: int
    prediction: str
    question: str = ""
    options: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    status: str = ""
    finish: str = ""
    shuffles: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None


def facts_of(metadata: Mapping[str, Any] | None) -> dict[str, str]:
    """Item columns that a sample's own facts fill."""
    told = {str(k): v for k, v in (metadata or {}).items() if v is not None}
    return {
        ours: cells.cell_text(told[name]).strip()
        for ours, theirs in FACTS.items()
        if (name := next((t for t in theirs if t in told), None)) is not None
    }


def choose_judge(replies: Iterable[Reply], judge: str | None, file: Any) -> tuple[str | None, list[dict[str, Any]]]:
    """The judge whose verdicts are read: the one asked for, the only one, or the first of several that agree.

    Raises
    ------
    AuditError
        The judge asked for gave no verdict, or several differ and none is asked for.
    """
    given: dict[str, list[float]] = {}
    replies = list(replies)
    for name in sorted({n for r in replies for n in r.verdicts}):
        given[name] = [r.verdicts[name].hit if name in r.verdicts else math.nan for r in replies]
    rows = []
    for name in [n for n, hits in given.items() if any(not 0 <= h <= 1 for h in hits if not math.isnan(h))]:
        n = sum(1 for h in given.pop(name) if not math.isnan(h))
        rows.append(coverage_row("excluded", n=n, reason=f"values of {name!r} go beyond 0 to 1: no verdicts"))
    if judge is not None:
        if judge not in given:
            raise AuditError(
                f"there are no verdicts of {judge!r}",
                file=file,
                mend=f"choose one with 'judge: NAME': {', '.join(given) or 'there are no verdicts at all'}",
            )
        return judge, rows
    if not given:
        return None, rows
    first, *others = given
    agree = all(pd.Series(given[first]).equals(pd.Series(given[o])) for o in others)
    if not agree:
        raise AuditError(
            f"verdicts of several kinds lie here: {', '.join(given)}", file=file, mend="choose one with 'judge: NAME'"
        )
    if others:
        reason = f"{', '.join(others)}: the same values as {first!r}, whose verdicts are read"
        rows.append(coverage_row("excluded", n=len(replies), reason=reason))
    return first, rows


def frames_of(
    replies: list[Reply], judge: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, list[dict[str, Any]]]:
    """Items (one row per item and run), responses, judgements of one judge, and coverage rows.

    Options that runs showed in different orders are brought into one order (:mod:`auditlib.readers.shown_orders`);
    the reply keeps the order it saw as ``order``.
    """
    kept, coverage = _once(replies)
    kept, options, orders, rows = _one_order(kept)
    coverage += rows
    items = _items(kept, options, orders)
    prediction = pd.Series([r.prediction for r in kept], dtype="str")
    status = cells.prediction_status(prediction)
    responses = pd.DataFrame(
        {
            "run": [r.run for r in kept],
            "row": [r.row for r in kept],
            "item": [r.item for r in kept],
            "model": [r.model for r in kept],
            "condition": [r.condition for r in kept],
            "sample": [r.sample for r in kept],
            "order": orders,
            "prediction": prediction,
            "status": [r.status or s for r, s in zip(kept, status)],
            "refused": cells.refused(prediction),
            "finish": [r.finish for r in kept],
            "tokens_in": pd.array([r.tokens_in for r in kept], dtype="Int64"),
            "tokens_out": pd.array([r.tokens_out for r in kept], dtype="Int64"),
        }
    )
    empty = ["tokens_in", "tokens_out"] if not responses[["tokens_in", "tokens_out"]].notna().any(axis=None) else []
    empty += [] if any(orders) else ["order"]
    empty += [] if any(responses["finish"]) else ["finish"]
    judgements = frame("judgements")
    if judge is not None:
        judgements = frame("judgements", [_judged(r, o, judge) for r, o in zip(kept, orders) if judge in r.verdicts])
    return items, responses.drop(columns=empty), judgements, coverage + _states(kept, responses)


def _judged(reply: Reply, order: str, judge: str) -> dict[str, Any]:
    v = reply.verdicts[judge]
    return {
        "run": reply.run, "item": reply.item, "model": reply.model, "condition": reply.condition,
        "sample": reply.sample, "judge": judge, "hit": v.hit, "extracted": relettered(v.extracted, order),
        "source": v.source, "hit_stored": v.hit,
    }  # fmt: skip


def _once(replies: list[Reply]) -> tuple[list[Reply], list[dict[str, Any]]]:
    """Replies without repeats of one item and sample in a run; repeats that differ are conflicts, the first stands."""
    seen: dict[tuple[str, str, int], Reply] = {}
    rows = []
    for r in replies:
        first = seen.setdefault((r.run, r.item, r.sample), r)
        if first is r:
            continue
        same = (first.prediction, first.options, first.target) == (r.prediction, r.options, r.target)
        what, says = ("duplicate", "repeats") if same else ("conflict", "has the id and sample of, and differs from,")
        reason = f"row {r.row} {says} row {first.row}, which is read"
        rows.append(
            coverage_row(what, n=1, run=r.run, model=r.model, condition=r.condition, item=r.item, reason=reason)
        )
    return list(seen.values()), rows


def _one_order(
    replies: list[Reply],
) -> tuple[list[Reply], dict[tuple[str, str], tuple[str, ...]], list[str], list[dict[str, Any]]]:
    """Kept replies, options by (run, item), the order of each reply, coverage."""
    by_item: dict[str, list[Reply]] = {}
    for r in replies:
        by_item.setdefault(r.item, []).append(r)
    options: dict[tuple[str, str], tuple[str, ...]] = {}
    kept, orders, rows = [], [], []
    reordered: dict[tuple[str, str, str], int] = {}
    standing: dict[str, list[tuple[str, ...]]] = {}
    for item, group in by_item.items():
        first = {r.run: r for r in reversed(group)}
        sets: dict[tuple[str, ...], list[tuple[str, bool, tuple[str, ...]]]] = {}
        for r in first.values():
            sets.setdefault(tuple(sorted(r.options)), []).append((r.run, r.shuffles, r.options))
        standing[item] = [canonical(shown) for shown in sets.values()]
        for r in first.values():
            options[r.run, item] = next(s for s in standing[item] if sorted(s) == sorted(r.options))
    for r in replies:
        own = options[r.run, r.item]
        order = order_of(r.options, own)
        note = {"run": r.run, "model": r.model, "condition": r.condition, "item": r.item}
        if order is None:
            rows.append(coverage_row("conflict", n=1, reason="its draws show different options: left out", **note))
            continue
        if order and len(set(own)) < len(own):
            rows.append(
                coverage_row("conflict", n=1, reason="shuffled options of equal text: order unknown, left out", **note)
            )
            continue
        if order:
            where = (r.run, r.model, r.condition)
            reordered[where] = reordered.get(where, 0) + 1
        kept.append(r)
        orders.append(order)
    for (run, model, condition), n in reordered.items():
        reason = "options were shown in another order than elsewhere: letters are read through the texts"
        rows.append(coverage_row("warning", n=n, run=run, model=model, condition=condition, reason=reason))
    return kept, options, orders, rows


def _items(replies: list[Reply], options: dict[tuple[str, str], tuple[str, ...]], orders: list[str]) -> pd.DataFrame:
    rows, seen = [], set()
    for r, order in zip(replies, orders):
        if (r.run, r.item) in seen:
            continue
        seen.add((r.run, r.item))
        texts = list(options[r.run, r.item])
        target = [t.strip() for t in r.target if t.strip()]
        written = ",".join(target) if texts else (target[0] if target else "")
        key = cells.key_text(written) if len(target) == 1 else written
        key = choices.text_keys([relettered(key, order)], [relettered(written, order)], [texts])[0]
        question = r.question
        if not texts:
            (question,), (texts,) = choices.split_questions(pd.Series([question]), pd.Series([key]))
        rows.append(
            {"item": r.item, "question": question, "options": texts, "key": key, **r.facts,
             "references": target if not texts and len(target) > 1 else [], "run": r.run, "row": r.row}
        )  # fmt: skip
    table = frame("items", rows)
    types = choices.answer_types(table["options"].tolist(), table["key"])
    table["k"] = choices.counts(table["options"].tolist(), types).to_numpy()
    table["k"] = table["k"].astype("Int64")
    table["answer_type"] = types
    return table if any(table["references"]) else table.drop(columns="references")


def _states(replies: list[Reply], responses: pd.DataFrame) -> list[dict[str, Any]]:
    """Coverage rows of replies that are no answers, and of endings that may have cut one."""
    rows = []
    words = {
        "failed": "samples ended in an error: no reply",
        "filtered": "replies stopped by a content filter",
        "missing": "empty replies",
        "truncated": "replies that were cut off",
    }
    for (run, model, condition), part in responses.groupby(["run", "model", "condition"], sort=False):
        note = {"run": run, "model": model, "condition": condition}
        for status, reason in words.items():
            if n := int(part["status"].eq(status).sum()):
                rows.append(coverage_row("warning", n=n, reason=reason, **note))
        ends = part["finish"][~part["finish"].isin(["", "stop", "error"])].value_counts()
        for finish, n in sorted(ends.items()):
            rows.append(coverage_row("warning", n=int(n), reason=f"replies ended by {finish}", **note))
    return rows
