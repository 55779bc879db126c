"""Runs of toolkits that write one file of JSON lines per model and task: which files, which verdicts, which frames."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import Runs, coverage_row, frame
from auditlib.readers import cells, choices
from auditlib.readers.runfile import RunFile, split_blind, stated_condition

if TYPE_CHECKING:
    from auditlib.params import DataParams

#: verdicts of one filter and one metric: a value per item (NaN: none), the parsed answers, who decided
Judge = tuple[str, str]


@dataclass(frozen=True)
class Verdicts:
    """Stored verdicts of one filter and metric, one per item of a log."""

    hits: list[float]
    extracted: list[str]
    source: str = "unknown"


@dataclass(frozen=True)
class Log:
    """What a file of samples holds: one entry per item in every list.

    ``ids`` maps possible names of items (a field of the dataset, ``doc_id``) to the ids: a field is there only if it
    is on every row and unique. ``replies`` hold one text per draw. ``chosen`` is true where a reply is the option of
    highest likelihood. ``tokens`` are the input and output tokens of a first draw, None where unknown.
    """

    row: list[int]
    ids: dict[str, list[str]]
    replies: list[list[str]]
    question: list[str]
    options: list[list[str]]
    key: list[str]
    facts: list[dict[str, str]]
    verdicts: dict[Judge, Verdicts]
    chosen: bool = False
    tokens: list[tuple[int, int] | None] = field(default_factory=list)
    coverage: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Toolkit:
    """How a toolkit's files are found, read and described."""

    name: str
    scan: Callable[[Path], list[RunFile]]
    read: Callable[[Path, Mapping[str, str]], Log]
    facts: Callable[[Path, str], dict[str, Any]]
    time: Callable[[Path], str]


@dataclass(frozen=True)
class _Run:
    file: RunFile
    label: str
    log: Log

    @property
    def note(self) -> dict[str, str]:
        return {"run": self.label, "model": self.file.model, "condition": self.file.condition}


def read_json_runs(
    kit: Toolkit, data: DataParams, benchmark: str, *, judge: str | None = None, exclude: Iterable[str] = ()
) -> Runs:
    """Read the runs of one task; the newest file of a model and condition counts.

    Raises
    ------
    AuditError
        No run of the task, verdicts of several kinds and no choice, or a file that cannot be read.
    """
    assert data.folder is not None
    files, coverage = _files(kit, data, benchmark)
    left_out = set(exclude)
    for model in sorted(left_out & {f.model for f, _ in files}):
        n = sum(f.model == model for f, _ in files)
        coverage.append(coverage_row("excluded", n=n, model=model, reason="excluded in the params"))
    groups: dict[tuple[str, str], list[tuple[RunFile, str]]] = {}
    for file, label in files:
        if file.model not in left_out:
            groups.setdefault((file.model, file.condition), []).append((file, label))
    runs = []
    for _, group in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] != "full", g[0][1])):
        run, rows = _newest(kit, group, data.where)
        coverage += rows
        if run is not None:
            runs.append(run)
    if not runs:
        asked = ", ".join(f"{c} = {v!r}" for c, v in data.where.items())
        what = f"no row of {benchmark!r} has {asked}" if asked else f"no run of {benchmark!r} is left to read"
        mend = "correct data.where: a column of the rows, and a value of it" if asked else "look at data.conditions"
        raise AuditError(what, file=data.folder, mend=mend)
    name = _common_id(runs)
    for run in runs:
        reason = f"{sum(map(len, run.log.replies))} replies to {len(run.log.row)} items, told apart by {name}"
        coverage.append(coverage_row("read", n=len(run.log.row), reason=reason, **run.note))
        coverage += [{**row, **run.note} for row in run.log.coverage]
    chosen, title, rows = choose(runs, judge, data.folder)
    coverage += rows
    for run in runs:
        lacking = sum(map(math.isnan, run.log.verdicts[chosen].hits)) if chosen in run.log.verdicts else 0
        if lacking:
            reason = f"replies whose verdict ({title}) is empty or no number"
            coverage.append(coverage_row("warning", n=lacking, reason=reason, **run.note))
    ids = [cells.item_ids(pd.Series(r.log.ids[name], dtype="str")).tolist() for r in runs]
    coverage += blindness(runs, ids)
    described = {r.label: kit.facts(r.file.path, r.file.benchmark) for r in runs}
    versions = {str(f.pop("version")) for f in described.values() if "version" in f}
    return Runs(
        items=_items(runs, ids),
        models=frame("models", [{"model": m} for m in dict.fromkeys(r.file.model for r in runs)]),
        responses=_responses(runs, ids),
        judgements=_judgements(runs, ids, chosen, title),
        coverage=frame("coverage", coverage),
        inputs=tuple(r.file.path for r in runs),
        provenance={
            "toolkit": kit.name, "judge": title, "toolkit_version": ", ".join(sorted(versions)), "runs": described
        },
    )  # fmt: skip


def relative(path: Path, folder: Path) -> str:
    """A path relative to a folder, with ``/``."""
    return Path(os.path.relpath(path, folder)).as_posix()


def _files(kit: Toolkit, data: DataParams, benchmark: str) -> tuple[list[tuple[RunFile, str]], list[dict[str, Any]]]:
    """Files of the benchmark with their conditions and labels, and coverage rows."""
    assert data.folder is not None
    beside = data.blind_folder
    found = {f.path.resolve(): f for f in kit.scan(data.folder)}
    if beside is not None:
        found |= {f.path.resolve(): f for f in kit.scan(beside)}
    wanted, rows = [], []
    for path, file in sorted(found.items()):
        label = relative(path, data.folder.resolve())
        under = beside is not None and path.is_relative_to(beside.resolve())
        stated = stated_condition(relative(path, beside.resolve()) if under else label, data.conditions)
        blind_task = data.blind_benchmark is not None and file.benchmark == data.blind_benchmark
        if file.benchmark != benchmark and not blind_task:
            if data.blind_benchmark is None and not under and split_blind(file.benchmark) == (benchmark, "blind"):
                reason = f"not read: if this task is the run without image, write blind_benchmark: {file.benchmark}"
                rows.append(coverage_row("not run", n=1, run=label, model=file.model, reason=reason))
            continue
        if stated == "skip":
            rows.append(coverage_row("excluded", n=1, run=label, reason="skipped in the params"))
            continue
        condition = stated or ("blind" if under or blind_task else file.condition)
        if condition != "full":
            why = ("conditions: in the params" if stated else "blind_folder:" if under else "blind_benchmark:"
                   if blind_task else "the ending of the model's folder")  # fmt: skip
            rows.append(coverage_row("condition", n=1, run=label, model=file.model, condition=condition,
                                     reason=f"told by {why}"))  # fmt: skip
        elif split_blind(file.benchmark)[1] == "blind":
            reason = "read as a run with the image, though its task is named like one without: if no picture was sent, "
            reason += "write conditions: {'*': blind}"
            rows.append(coverage_row("warning", n=1, run=label, model=file.model, condition="full", reason=reason))
        wanted.append((replace(file, condition=condition), label))
    if not wanted:
        tasks = sorted({f.benchmark for f in found.values()})
        has = f"tasks here: {', '.join(tasks)}" if tasks else f"it should hold sample files of {kit.name}"
        raise AuditError(f"no run of the task {benchmark!r} to read", file=data.folder, mend=has)
    return wanted, rows


def _newest(
    kit: Toolkit, group: list[tuple[RunFile, str]], where: Mapping[str, str]
) -> tuple[_Run | None, list[dict[str, Any]]]:
    """The newest run of a model and condition, and how many replies of the older ones differ from it."""
    ranked = sorted(group, key=lambda g: (kit.time(g[0].path), g[1]), reverse=True)
    taken: _Run | None = None
    rows = []
    for file, label in ranked:
        note = {"run": label, "model": file.model, "condition": file.condition}
        try:
            log = _unhindered(kit, file.path, where)
        except AuditError as e:
            if taken is None:
                raise
            rows.append(coverage_row("unreadable", n=1, reason=f"an older run: {e.what}", **note))
            continue
        if not log.row:
            rows.append(coverage_row("excluded", n=1, reason="no samples to read", **note))
        elif taken is None:
            taken = _Run(file, label, log)
        else:
            new = dict(zip(taken.log.ids["doc_id"], taken.log.replies))
            old = dict(zip(log.ids["doc_id"], log.replies))
            both = [d for d in old if d in new]
            differ = sum(old[d] != new[d] for d in both)
            reason = f"older than {taken.label}, which is read; {differ} of {len(both)} replies differ"
            rows.append(coverage_row("excluded", n=len(log.row), reason=reason, **note))
    return taken, rows


def _unhindered(kit: Toolkit, path: Path, where: Mapping[str, str]) -> Log:
    """Read a file with the collector paused: it would walk through every row again and again and find nothing."""
    running = gc.isenabled()
    gc.disable()
    try:
        return kit.read(path, where)
    finally:
        if running:
            gc.enable()


def _common_id(runs: list[_Run]) -> str:
    return next(name for name in runs[0].log.ids if all(name in r.log.ids for r in runs))


def titles(judges: Iterable[Judge]) -> dict[Judge, str]:
    """Short names of verdicts: the filter, the metric, or both where one does not tell them apart."""
    judges = sorted(set(judges))
    filters, metrics = {f for f, _ in judges}, {m for _, m in judges}
    if len(metrics) == 1 and (len(filters) > 1 or not filters & {"", "none"}):
        return {j: j[0] for j in judges}
    return {j: j[1] if len(filters) == 1 else "/".join(j) for j in judges}


def choose(runs: list[_Run], judge: str | None, folder: Path) -> tuple[Judge | None, str | None, list[dict[str, Any]]]:
    """The verdicts that are read, their name, and coverage rows.

    Raises
    ------
    AuditError
        Verdicts of several kinds differ and none is chosen, or the one asked for is not there.
    """
    given, rows = {}, []
    names = titles(j for r in runs for j in r.log.verdicts)
    for j, title in names.items():
        held = [r.log.verdicts[j].hits if j in r.log.verdicts else [math.nan] * len(r.log.row) for r in runs]
        hits = np.concatenate([np.asarray(h, float) for h in held])
        if np.isnan(hits).all():
            continue
        if (hits < 0).any() or (hits > 1).any():
            n = int((~np.isnan(hits)).sum())
            rows.append(coverage_row("excluded", n=n, reason=f"values of {title!r} go beyond 0 to 1: no verdicts"))
            continue
        given[j] = hits
    listed = ", ".join(names[j] for j in given)
    if judge is not None:
        kept = {j: h for j, h in given.items() if judge in (names[j], *j)}
        if not kept:
            raise AuditError(f"there are no verdicts of {judge!r}", file=folder, mend="choose one with 'judge: NAME': "
                             f"{listed or 'there are no verdicts at all'}")  # fmt: skip
        given = kept
    if not given:
        return None, None, rows
    first, *others = given
    if any(not np.array_equal(given[first], given[o], equal_nan=True) for o in others):
        raise AuditError(f"verdicts of several kinds lie here: {listed}", file=folder,
                         mend="choose one with 'judge: NAME'")  # fmt: skip
    if others:
        reason = f"{', '.join(names[o] for o in others)}: the same values as {names[first]!r}, whose verdicts are read"
        rows.append(coverage_row("excluded", n=len(given[first]), reason=reason))
    for r in runs:
        if first not in r.log.verdicts:
            reason = f"no verdicts of {names[first]!r} in this run"
            rows.append(coverage_row("warning", n=len(r.log.row), reason=reason, **r.note))
    return first, names[first], rows


def blindness(runs: list[_Run], ids: list[list[str]]) -> list[dict[str, Any]]:
    """What the numbers of input tokens say about runs without image, beside the same model's run with it."""
    sent = {
        (r.file.model, r.file.condition): {i: t[0] for i, t in zip(own, r.log.tokens) if t is not None and t[0] > 0}
        for r, own in zip(runs, ids)
    }
    rows = []
    for r in runs:
        full, blind = sent.get((r.file.model, "full"), {}), sent[r.file.model, r.file.condition]
        both = [full[i] - blind[i] for i in blind if i in full]
        if r.file.condition != "blind" or not both:
            continue
        equal, more = sum(d == 0 for d in both), sum(d < 0 for d in both)
        if equal == len(both):
            reason = "the blind run was sent the same number of input tokens: the picture may still be there"
            rows.append(coverage_row("warning", n=equal, reason=reason, **r.note))
        elif equal or more:
            reason = f"input tokens beside the run with image: {equal} items equal, {more} more, of {len(both)}"
            rows.append(coverage_row("warning", n=equal + more, reason=reason, **r.note))
        else:
            least, most = min(both), max(both)
            span = f"{least}" if least == most else f"{least} to {most}"
            reason = f"the blind run was sent {span} input tokens less on every item: no picture went along"
            rows.append(coverage_row("condition", n=len(both), reason=reason, **r.note))
    return rows


def _items(runs: list[_Run], ids: list[list[str]]) -> pd.DataFrame:
    tables = []
    for r, own in zip(runs, ids):
        log = r.log
        keys = pd.Series(log.key, dtype="str")
        keys = pd.Series(choices.text_keys(cells.keys(keys), log.key, log.options), dtype="str")
        types = choices.answer_types(log.options, keys)
        facts = {name: [f.get(name) for f in log.facts] for name in sorted({n for f in log.facts for n in f})}
        k = choices.counts(log.options, types).to_numpy()
        tables.append(pd.DataFrame(
            {"item": own, "question": log.question, "options": log.options, "key": keys, "k": k,
             "answer_type": types, **facts, "run": r.label, "row": log.row}
        ))  # fmt: skip
    table = pd.concat(tables, ignore_index=True)
    table["k"] = table["k"].astype("Int64")
    return table


def _spread(log: Log, own: list[str]) -> tuple[list[int], dict[str, Any]]:
    """Places of a log's items by draw, and the columns that name a draw."""
    if all(len(r) == 1 for r in log.replies):
        return list(range(len(own))), {"item": own, "sample": 0}
    at = [i for i, replies in enumerate(log.replies) for _ in replies]
    return at, {"item": [own[i] for i in at], "sample": [s for replies in log.replies for s in range(len(replies))]}


def _responses(runs: list[_Run], ids: list[list[str]]) -> pd.DataFrame:
    tables = []
    for r, own in zip(runs, ids):
        at, named = _spread(r.log, own)
        texts = [t for replies in r.log.replies for t in replies]
        said = pd.Series(texts, dtype="str")
        table = pd.DataFrame(
            {"run": r.label, "row": [r.log.row[i] for i in at], "model": r.file.model, "condition": r.file.condition,
             **named, "prediction": said}
        )  # fmt: skip
        if r.log.tokens:
            table["tokens_in"] = pd.array([t[0] if (t := r.log.tokens[i]) else None for i in at], dtype="Int64")
            table["tokens_out"] = pd.array([t[1] if (t := r.log.tokens[i]) else None for i in at], dtype="Int64")
        if any(q.log.chosen for q in runs):
            table["chosen"] = r.log.chosen
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    table["status"] = cells.prediction_status(table["prediction"])
    table["refused"] = cells.refused(table["prediction"])
    return table


def _judgements(runs: list[_Run], ids: list[list[str]], chosen: Judge | None, title: str | None) -> pd.DataFrame:
    tables = [
        pd.DataFrame({"run": r.label, "item": own, "model": r.file.model, "condition": r.file.condition, "sample": 0,
                      "judge": title, "hit": v.hits, "extracted": v.extracted, "source": v.source,
                      "hit_stored": v.hits})
        for r, own in zip(runs, ids)
        if chosen is not None and (v := r.log.verdicts.get(chosen)) is not None
    ]  # fmt: skip
    return pd.concat(tables, ignore_index=True) if tables else frame("judgements")
