"""Every Eval Ever's instance files: one JSON line per reply, with its item, its score and what was read from it."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import CONDITIONS, LETTERS, STATUSES, Runs, coverage_row, frame
from auditlib.readers.cells import cell_text
from auditlib.readers.replies import Reply, Verdict, choose_judge, facts_of, frames_of
from auditlib.readers.runfile import RunFile, split_blind, stated_condition

if TYPE_CHECKING:
    from auditlib.params import DataParams

TOOLKIT = "every-eval-ever"
#: columns of items and replies that are written as metadata under their own name
ITEM_FACTS = ("stratum", "substratum", "source", "capability", "image_key", "cluster", "design")
NEEDED = ("evaluation_id", "model_id", "evaluation_name", "sample_id", "input", "evaluation")
_FIRST = 4_000_000
_FAULTY = "correct that line, or leave the file out with conditions: skip"


@dataclass(frozen=True)
class _Line:
    """One line of a file: its number and its record."""

    row: int
    told: Mapping[str, Any]

    @property
    def metadata(self) -> dict[str, str]:
        return {str(k): cell_text(v) for k, v in (self.told.get("metadata") or {}).items()}


def scan(folder: Path) -> list[RunFile]:
    """Instance files in a folder and below, sorted by path; only first lines are read.

    ``benchmark`` is the evaluation's name in the first line, ``judges`` the judge that the writer names there.
    """
    found: dict[Path, RunFile] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        first = _first(path)
        if first is None or path.resolve() in found:
            continue
        line = _Line(1, first)
        model, condition = _run_of(line)
        name, judge = str(first.get("evaluation_name", "")), line.metadata.get("judge", "")
        judges = (judge,) if judge else ()
        found[path.resolve()] = RunFile(path, model, condition, "predictions", name, name, judge, TOOLKIT, judges)
    return list(found.values())


def _first(path: Path) -> dict[str, Any] | None:
    """First record of an instance file; None for any other file."""
    try:
        with path.open("rb") as f:
            record = json.loads(f.readline(_FIRST).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and {"evaluation_id", "sample_id"} <= set(record) else None


def _run_of(line: _Line) -> tuple[str, str]:
    """Model and condition as the record tells them: by its metadata, else by the ending of the model's name."""
    model, stated = str(line.told.get("model_id", "")), line.metadata.get("condition", "")
    return (model, stated) if stated in CONDITIONS else split_blind(model)


def read_every_eval_ever(
    data: DataParams, benchmark: str, *, judge: str | None = None, exclude: Iterable[str] = ()
) -> Runs:
    """Read the instance files of one evaluation.

    Of several files of one model and condition that answer the same items the newest is read. A score and a mark of
    correctness are two kinds of verdicts where they differ.

    Parameters
    ----------
    data : the ``data`` block of the params, with ``folder``.
    benchmark : the evaluation's name in the records.
    judge : whose verdicts are read; needed when several kinds differ.
    exclude : models to leave out.

    Raises
    ------
    AuditError
        No record of the evaluation, a line that is no record or lacks a required field, several kinds of verdicts.
    """
    assert data.folder is not None
    groups, coverage, told = _groups(data, benchmark)
    left_out = set(exclude)
    replies: list[Reply] = []
    taken: list[Path] = []
    for (model, condition), parts in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] != "full", g[0][1])):
        if model in left_out:
            n = sum(len(lines) for _, lines in parts.values())
            coverage.append(coverage_row("excluded", n=n, model=model, condition=condition,
                                         reason="excluded in the params"))  # fmt: skip
            continue
        held: set[str] = set()
        for label, (path, lines) in sorted(parts.items(), key=lambda p: (_written(p[1][1]), p[0]), reverse=True):
            note = {"run": label, "model": model, "condition": condition}
            ids = {str(line.told["sample_id"]) for line in lines}
            if held & ids:
                reason = "an older file of the same model, which answers the same items"
                coverage.append(coverage_row("excluded", n=len(lines), reason=reason, **note))
                continue
            held |= ids
            some, rows = _replies(lines, path, note)
            replies += some
            taken.append(path)
            coverage.append(coverage_row("read", n=len(some), reason=f"replies to {len(ids)} items", **note))
            coverage += rows
    if not replies:
        raise AuditError("every reply is excluded", file=data.folder, mend="look at conditions: and exclude_models:")
    chosen, rows = choose_judge(replies, judge, data.folder)
    items, responses, judgements, more = frames_of(replies, chosen)
    items = _as_written(items, told)
    flags = [told[r, n].get("abstained") == "True" for r, n in zip(responses["run"], responses["row"])]
    if any(flags):
        responses["abstained"] = flags
    inputs = tuple(dict.fromkeys(sorted(taken)))
    libraries = [_library(p) for p in inputs]
    return Runs(
        items=items,
        models=frame("models", [{"model": m} for m in responses["model"].unique()]),
        responses=responses,
        judgements=judgements,
        coverage=frame("coverage", [*coverage, *rows, *more]),
        inputs=inputs,
        provenance={
            "toolkit": "Every Eval Ever", "judge": chosen,
            "toolkit_version": ", ".join(sorted({f"{n} {v}".strip() for n, v in libraries if n})), "runs": {},
        },
    )  # fmt: skip


_Groups = dict[tuple[str, str], dict[str, tuple[Path, list[_Line]]]]


def _groups(
    data: DataParams, benchmark: str
) -> tuple[_Groups, list[dict[str, Any]], dict[tuple[str, int], dict[str, str]]]:
    """Records of the evaluation by model and condition and by run; coverage rows; metadata by run and line."""
    assert data.folder is not None
    beside = data.blind_folder
    files = {f.path.resolve(): f for f in scan(data.folder)}
    if beside is not None:
        files |= {f.path.resolve(): f for f in scan(beside)}
    groups: _Groups = {}
    coverage, names, outside = [], set(), Counter()
    told: dict[tuple[str, int], dict[str, str]] = {}
    for real, file in sorted(files.items()):
        label = Path(os.path.relpath(file.path, data.folder)).as_posix()
        under = beside is not None and real.is_relative_to(beside.resolve())
        place = real.relative_to(beside.resolve()).as_posix() if under else label
        stated = stated_condition(place, data.conditions)
        if stated == "skip":
            coverage.append(coverage_row("excluded", n=1, run=label, reason="skipped in the params"))
            continue
        runs: dict[tuple[str, str], list[_Line]] = {}
        for line in records(file.path):
            name = str(line.told["evaluation_name"])
            names.add(name)
            blind = under or (data.blind_benchmark is not None and name == data.blind_benchmark)
            if name not in (benchmark, data.blind_benchmark):
                continue
            if any(line.metadata.get(c, "") != v for c, v in data.where.items()):
                outside[label] += 1
                continue
            model, condition = _run_of(line)
            runs.setdefault((model, stated or ("blind" if blind else condition)), []).append(line)
        for (model, condition), lines in runs.items():
            run = label if len(runs) == 1 else f"{label} ({model}, {condition})"
            groups.setdefault((model, condition), {})[run] = (file.path, lines)
            told |= {(run, line.row): line.metadata for line in lines}
    says = ", ".join(f"{c}={v}" for c, v in data.where.items())
    coverage += [coverage_row("excluded", n=n, run=r, reason=f"records outside {says}") for r, n in outside.items()]
    if not groups:
        has = (
            f"evaluations here: {', '.join(sorted(names)[:12])}" if names else "it should hold instance files (.jsonl)"
        )
        raise AuditError(f"no record of the evaluation {benchmark!r} to read", file=data.folder, mend=has)
    return groups, coverage, told


def records(path: Path) -> Iterator[_Line]:
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
                yield _Line(row, record)


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


def _written(lines: list[_Line]) -> float:
    """When a run was recorded: the seconds at the end of its evaluation's id, 0 where it has none."""
    try:
        seconds = float(str(lines[0].told["evaluation_id"]).rsplit("/", 1)[-1])
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0


def _library(path: Path) -> tuple[str, str]:
    """Name and version of the library, from the file of totals beside the instances."""
    for name in (path.stem.removesuffix("_samples"), path.stem):
        try:
            told = json.loads(path.with_name(f"{name}.json").read_text("utf-8-sig"))["eval_library"]
            return str(told["name"]), str(told.get("version", ""))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return "", ""


def _replies(lines: list[_Line], path: Path, note: Mapping[str, str]) -> tuple[list[Reply], list[dict[str, Any]]]:
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


def _reply(line: _Line, text: str, note: Mapping[str, str]) -> Reply:
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


def _as_written(items: pd.DataFrame, told: Mapping[tuple[str, int], Mapping[str, str]]) -> pd.DataFrame:
    """Items with the kind of answer and the number of options that the metadata state, where those cannot be seen."""
    stated = [told[run, row] for run, row in zip(items["run"], items["row"])]
    kinds = [s.get("answer_type", "") or kind for s, kind in zip(stated, items["answer_type"])]
    counts = [int(s["k"]) if pd.isna(k) and s.get("k", "").isdecimal() else k for s, k in zip(stated, items["k"])]
    return items.assign(answer_type=kinds, k=pd.array(counts, dtype="Int64"))
