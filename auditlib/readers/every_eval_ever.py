"""Every Eval Ever's instance files: one JSON line per reply, with its item, its score and what was read from it."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import CONDITIONS, Runs, coverage_row, frame
from auditlib.readers.every_eval_ever_records import Record, records, replies_of
from auditlib.readers.replies import Reply, choose_judge, frames_of
from auditlib.readers.runfile import RunFile, split_blind, stated_condition

if TYPE_CHECKING:
    from auditlib.params import DataParams

TOOLKIT = "every-eval-ever"
_FIRST = 4_000_000


def scan(folder: Path) -> list[RunFile]:
    """Instance files in a folder and below, sorted by path; only first lines are read.

    ``benchmark`` is the evaluation's name in the first line, ``judges`` the judge that the writer names there.
    """
    found: dict[Path, RunFile] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        first = _first(path)
        if first is None or path.resolve() in found:
            continue
        line = Record(1, first)
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


def _run_of(line: Record) -> tuple[str, str]:
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
            some, rows = replies_of(lines, note)
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


_Groups = dict[tuple[str, str], dict[str, tuple[Path, list[Record]]]]


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
        runs: dict[tuple[str, str], list[Record]] = {}
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


def _written(lines: list[Record]) -> float:
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


def _as_written(items: pd.DataFrame, told: Mapping[tuple[str, int], Mapping[str, str]]) -> pd.DataFrame:
    """Items with the kind of answer and the number of options that the metadata state, where those cannot be seen."""
    stated = [told[run, row] for run, row in zip(items["run"], items["row"])]
    kinds = [s.get("answer_type", "") or kind for s, kind in zip(stated, items["answer_type"])]
    counts = [int(s["k"]) if pd.isna(k) and s.get("k", "").isdecimal() else k for s, k in zip(stated, items["k"])]
    return items.assign(answer_type=kinds, k=pd.array(counts, dtype="Int64"))
