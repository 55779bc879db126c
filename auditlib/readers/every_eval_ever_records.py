"""Records of Every Eval Ever's instance files as replies: texts, targets, options, and what a stored score means."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from auditlib.errors import AuditError
from auditlib.frames import LETTERS, STATUSES, coverage_row
from auditlib.readers.cells import cell_text
from auditlib.readers.replies import Reply, Verdict, facts_of

#: columns of items that are written as metadata under their own name
ITEM_FACTS = ("stratum", "substratum", "source", "capability", "image_key", "cluster", "design")
NEEDED = ("evaluation_id", "model_id", "evaluation_name", "sample_id", "input", "evaluation")
_FAULTY = "correct that line, or leave the file out with conditions: skip"


@dataclass(frozen=True)
class Record:
    """One line of a file: its number and what it says."""

    row: int
    told: Mapping[str, Any]

    @property
    def metadata(self) -> dict[str, str]:
        told = self.told.get("metadata")
        return {str(k): cell_text(v) for k, v in told.items()} if isinstance(told, dict) else {}


def records(path: Path) -> Iterator[Record]:
    """Records of an instance file, checked for the fields that are needed.

    Raises
    ------
    AuditError
        A line that is no record, or one that lacks a field; the message names file and line.
    """
    with path.open("rb") as f:
        for row, raw in enumerate(f, start=1):
            try:
                text = raw.decode("utf-8-sig" if row == 1 else "utf-8")
                record = json.loads(text) if text.strip() else None
            except UnicodeDecodeError:
                raise AuditError("the line is not UTF-8", file=path, row=row, mend=_FAULTY) from None
            except (ValueError, RecursionError) as e:
                cut = "" if raw.endswith(b"\n") else "; the file seems to be cut off"
                what = f"the line is no JSON ({getattr(e, 'msg', type(e).__name__)}){cut}"
                raise AuditError(what, file=path, row=row, mend=_FAULTY) from None
            if record is not None:
                _check(record, path, row)
                yield Record(row, record)


def _check(record: Any, path: Path, row: int) -> None:
    lacks = "" if isinstance(record, dict) else "a record"
    lacks = lacks or next((n for n in NEEDED if record.get(n) is None), "")
    if not lacks:
        given, scored = record["input"], record["evaluation"]
        whole = isinstance(given, dict) and isinstance(scored, dict)
        lacks = "" if whole and isinstance(given.get("raw"), str) else "input.raw, and evaluation as a mapping"
        if not lacks and scored.get("score") is None and scored.get("is_correct") is None:
            lacks = "evaluation.score and evaluation.is_correct"
        if not lacks and not (isinstance(record.get("output"), dict) or _turns(record)):
            lacks = "output, and messages in its place"
        if not lacks and not isinstance(record.get("metadata") or {}, dict):
            lacks = "metadata as a mapping"
    if lacks:
        raise AuditError(f"the line lacks {lacks}", file=path, row=row, mend=_FAULTY)


def _turns(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    turns = record.get("messages") or record.get("interactions") or []
    return [t for t in turns if isinstance(t, dict)] if isinstance(turns, list) else []


def _texts(value: Any) -> list[str]:
    """A list of texts; older versions of the format hold one text."""
    return [cell_text(v) for v in value] if isinstance(value, list) else [] if value is None else [cell_text(value)]


def replies_of(lines: list[Record], note: Mapping[str, str]) -> tuple[list[Reply], list[dict[str, Any]]]:
    """Replies of one run. Records without a number of their draw are draws where every item has equally many."""
    told: list[Reply] = []
    several = 0
    for line in lines:
        texts = _replied(line.told)
        several += len(texts) > 1
        one = _reply(line, texts[0], note)
        told += [one] if len(texts) == 1 else [replace(one, prediction=t, sample=s, verdicts={})
                                               for s, t in enumerate(texts)]  # fmt: skip
    rows = []
    if several:
        reason = "records of several replies: the score is of the record, so the replies have no verdict"
        rows.append(coverage_row("warning", n=several, reason=reason, **note))
    often = Counter(r.item for r in told)
    numbered = any("sample" in line.metadata for line in lines) or several
    if not numbered and len(often) > 1 and len(set(often.values())) == 1 and max(often.values()) > 1:
        nth: Counter[str] = Counter()
        for i, r in enumerate(told):
            told[i] = replace(r, sample=nth[r.item])
            nth[r.item] += 1
    return told, rows


def _replied(record: Mapping[str, Any]) -> list[str]:
    """The reply: the output, or what the assistant said last; several where one record holds several."""
    output = record.get("output")
    if isinstance(output, dict):
        return _texts(output.get("raw")) or [""]
    said = [t.get("content") for t in _turns(record) if t.get("role") == "assistant" and t.get("content")]
    return [cell_text(said[-1])] if said else [""]


def _reply(line: Record, text: str, note: Mapping[str, str]) -> Reply:
    record, told = line.told, line.metadata
    order = told.get("order", "")
    options = _texts(record["input"].get("choices"))
    target = _texts(record["input"].get("reference"))
    if len(order) == len(options) and sorted(order) == list(LETTERS[: len(order)]):
        options = [options[LETTERS.index(c)] for c in order]
        target = [_shown(t, order) for t in target]
    else:
        order = ""
    usage = record.get("token_usage") or {}
    status = told.get("status", "")
    sample = told.get("sample", "")
    return Reply(
        **note,
        row=line.row,
        item=cell_text(record["sample_id"]).strip(),
        sample=int(sample) if sample.isdecimal() else 0,
        prediction=text,
        question=record["input"]["raw"],
        options=tuple(options),
        target=tuple(target),
        facts=facts_of(told) | {c: told[c] for c in ITEM_FACTS if c in told},
        verdicts=_verdicts(record, told, order),
        status=status if status in STATUSES else "failed" if record.get("error") else "",
        finish=told.get("finish", ""),
        shuffles=bool(order),
        tokens_in=usage.get("input_tokens"),
        tokens_out=usage.get("output_tokens"),
    )


def _shown(letter: str, order: str) -> str:
    """An item's own letter as the letter under which a reply saw that option."""
    return LETTERS[order.index(letter)] if len(letter) == 1 and letter in order else letter


def _verdicts(record: Mapping[str, Any], told: Mapping[str, str], order: str) -> dict[str, Verdict]:
    """Verdicts by judge: one where the metadata name who judged, else the score and the mark of correctness."""
    scored = record["evaluation"]
    read = [a for a in record.get("answer_attribution") or [] if isinstance(a, dict) and a.get("is_terminal")]
    judge, scored_by = told.get("judge"), told.get("scored_by", "judge")
    if judge is None and scored_by != "judge":
        return {}
    said = _shown(cell_text(read[-1].get("extracted_value")), order) if read else ""
    if judge is not None:
        own = read and str(read[-1].get("extraction_method", "")).startswith("judge:")
        hit = _number(scored.get("score")) if scored_by == "judge" else math.nan
        return {judge: Verdict(hit, said if own else "", told.get("verdict_source", "unknown"))}
    marks = {name: _number(scored[name]) for name in ("is_correct", "score") if scored.get(name) is not None}
    return {name: Verdict(hit, said) for name, hit in marks.items()}


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, bool | int | float) else math.nan
    return number if math.isfinite(number) else math.nan
