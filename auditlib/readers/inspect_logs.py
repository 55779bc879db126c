"""Inspect's logs: ``.eval`` archives and ``.json`` files in a folder, one log per run of a task."""

from __future__ import annotations

import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib.errors import AuditError
from auditlib.frames import CONDITIONS, Runs, coverage_row, frame
from auditlib.readers.inspect_samples import denominators, replies_of, run_facts
from auditlib.readers.replies import Reply, choose_judge, frames_of
from auditlib.readers.runfile import RunFile, split_blind, stated_condition

if TYPE_CHECKING:
    from auditlib.params import DataParams

TOOLKIT = "inspect"
_HEAD = 65_536
_VERSION, _EVAL = re.compile(r'"version"\s*:\s*\d'), re.compile(r'"eval"\s*:\s*\{')
_WITHOUT = ("blind", "text_only", "no_image", "no_images", "without_image")
_WITH = ("image", "images", "use_image", "use_images", "with_image", "with_images")
_BLIND_WORDS = ("blind", "text_only", "text-only", "no_image", "no-image", "without_image")


@dataclass(frozen=True)
class _Log:
    """A log's file and its header; ``why`` says what gave its condition."""

    file: RunFile
    header: Any
    why: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def is_log(path: Path) -> bool:
    """Whether a file is one of Inspect's logs, by its content; a damaged ``.eval`` counts as one."""
    if path.suffix == ".eval":
        return True
    if path.suffix != ".json":
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD).decode("utf-8", errors="replace")
    except OSError:
        return False
    return head.lstrip()[:1] == "{" and bool(_VERSION.search(head)) and bool(_EVAL.search(head))


def scan(folder: Path) -> list[RunFile]:
    """Logs in a folder and below, sorted by path; only headers are read.

    ``kind`` is ``predictions``, or ``unknown`` for a log that cannot be read; ``judges`` names the scorers.

    Raises
    ------
    AuditError
        There are logs, and the package that reads them is not installed.
    """
    return [log.file for log in _logs(folder)]


def _logs(folder: Path) -> list[_Log]:
    paths = sorted(p for p in folder.rglob("*") if p.suffix in (".eval", ".json") and p.is_file() and is_log(p))
    return [_open(p, folder) for p in paths]


def _reader() -> Any:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise AuditError("Inspect's logs need the package inspect-ai", mend="pip install 'auditlib[inspect]'") from None
    return read_eval_log


def _read(path: Path, **how: Any) -> Any:
    """A log, or AuditError with the reason in short."""
    read = _reader()
    try:
        return read(str(path), **how)
    except Exception as e:
        if how and path.suffix == ".json":  # a header out of the usual order: the whole file may still be read
            return _read(path)
        what = "the archive is cut off or damaged" if _broken(path) else f"not readable as a log ({type(e).__name__})"
        raise AuditError(what, file=path, mend="copy the log again, or leave it out with conditions: skip") from None


def _broken(path: Path) -> bool:
    return path.suffix == ".eval" and not zipfile.is_zipfile(path)


def _open(path: Path, folder: Path) -> _Log:
    try:
        header = _read(path, header_only=True)
    except AuditError as e:
        if e.file is None:
            raise
        return _Log(RunFile(path, "", "full", "unknown", path.stem, toolkit=TOOLKIT), None, e.what)
    spec = header.eval
    model, condition = split_blind(spec.model)
    why = "the ending of the model's name" if condition == "blind" else ""
    if path.parent != folder and not why and split_blind(path.parent.name)[1] == "blind":
        condition, why = "blind", f"the folder {path.parent.name!r}"
    if not why:
        told, why = _told(spec.task_args or {})
        condition = told or condition
    scores = header.results.scores if header.results else []
    judges = tuple(dict.fromkeys(s.name for s in scores)) or tuple(s.name for s in spec.scorers or ())
    task = spec.task.rsplit("/", 1)[-1]
    return _Log(RunFile(path, model, condition, "predictions", spec.task, task, "", TOOLKIT, judges), header, why)


def _told(args: dict[str, Any]) -> tuple[str | None, str]:
    """Condition that a task's own arguments state, and in which words."""
    for name in _WITHOUT:
        if args.get(name) is True:
            return "blind", f"the task argument {name}: true"
    for name in _WITH:
        if args.get(name) is False:
            return "blind", f"the task argument {name}: false"
    for name in ("condition", "mode", "modality"):
        word = args.get(name)
        if isinstance(word, str) and (word in CONDITIONS or word in _BLIND_WORDS):
            return word if word in CONDITIONS else "blind", f"the task argument {name}: {word}"
    return None, ""


def read_inspect(data: DataParams, benchmark: str, *, judge: str | None = None, exclude: Iterable[str] = ()) -> Runs:
    """Read the logs of one task.

    The newest log that ended well stands for a model and condition; others are named in the coverage. Epochs are
    samples. Scorers are judges; a score that is a mapping is one judge per key, ``scorer/key``.

    Parameters
    ----------
    data : the ``data`` block of the params, with ``folder``.
    benchmark : name of the task, with or without its package.
    judge : scorer whose verdicts are read; needed when several differ.
    exclude : models to leave out.

    Raises
    ------
    AuditError
        No log of the task, several scorers and no choice, the package ``inspect-ai`` is missing.
    """
    assert data.folder is not None
    found, coverage = _files(data, benchmark)
    replies: list[Reply] = []
    inputs: list[Path] = []
    told: dict[str, dict[str, Any]] = {}
    left_out = set(exclude)
    for model in sorted(left_out & {log.file.model for log in found}):
        n = sum(log.file.model == model for log in found)
        coverage.append(coverage_row("excluded", n=n, model=model, reason="excluded in the params"))
    groups: dict[tuple[str, str], list[_Log]] = {}
    for log in found:
        if log.file.model not in left_out:
            groups.setdefault((log.file.model, log.file.condition), []).append(log)
    versions = set()
    for _, group in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] != "full", g[0][1])):
        some, rows, log = _newest(group, data)
        coverage += rows
        if log is None:
            continue
        replies += some
        inputs.append(log.file.path)
        told[_label(log.file.path, data.folder)] = run_facts(log.header)
        versions.add((log.header.eval.packages or {}).get("inspect_ai", ""))
    if not replies:
        bad = [f"{r['run']} ({r['reason']})" for r in coverage if r["what"] == "unreadable"]
        mend = f"look at conditions: and the logs{'; unreadable: ' if bad else ''}{', '.join(bad[:3])}"
        raise AuditError("every log is excluded, empty or unreadable", file=data.folder, mend=mend)
    chosen, rows = choose_judge(replies, judge, data.folder)
    coverage += rows
    items, responses, judgements, rows = frames_of(replies, chosen)
    return Runs(
        items=items,
        models=frame("models", [{"model": m} for m in responses["model"].unique()]),
        responses=responses,
        judgements=judgements,
        coverage=frame("coverage", coverage + rows),
        inputs=tuple(inputs),
        provenance={
            "toolkit": "Inspect", "judge": chosen, "toolkit_version": ", ".join(sorted(versions - {""})), "runs": told
        },
    )  # fmt: skip


def _label(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _files(data: DataParams, benchmark: str) -> tuple[list[_Log], list[dict[str, Any]]]:
    """Logs of the benchmark with their conditions and short model names."""
    assert data.folder is not None
    beside = data.blind_folder
    logs = {log.file.path.resolve(): log for log in _logs(data.folder)}
    if beside is not None:
        logs |= {log.file.path.resolve(): log for log in _logs(beside)}
    wanted, rows, tasks = [], [], set()
    for path, log in sorted(logs.items()):
        label = _label(log.file.path, data.folder)
        under = beside is not None and path.is_relative_to(beside.resolve())
        stated = stated_condition(_label(path, beside.resolve()) if under else label, data.conditions)
        if stated == "skip":
            rows.append(coverage_row("excluded", n=1, run=label, reason="skipped in the params"))
            continue
        if log.header is None:
            rows.append(coverage_row("unreadable", n=1, run=label, reason=log.why))
            continue
        task = (log.file.benchmark, log.file.rest)
        tasks.add(log.file.benchmark)
        blind_task = data.blind_benchmark is not None and data.blind_benchmark in task
        if benchmark not in task and not blind_task:
            continue
        why, condition = log.why, log.file.condition
        if stated or under or blind_task:
            condition = stated or "blind"
            why = "conditions: in the params" if stated else "blind_folder:" if under else "blind_benchmark:"
        if why:
            rows.append(coverage_row("condition", n=1, run=label, model=_short(log.file.model), condition=condition,
                                     reason=f"told by {why}"))  # fmt: skip
        wanted.append(replace(log, file=replace(log.file, condition=condition), why=why))
    if not wanted:
        has = f"tasks here: {', '.join(sorted(tasks))}" if tasks else "it should hold .eval or .json logs"
        bad = [f"{r['run']} ({r['reason']})" for r in rows if r["what"] == "unreadable"]
        has += f"; unreadable: {', '.join(bad[:3])}" if bad else ""
        raise AuditError(f"no log of the task {benchmark!r} to read", file=data.folder, mend=has)
    full = {log.file.model for log in wanted}
    taken = Counter(_short(m) for m in full)
    names = {m: _short(m) if taken[_short(m)] == 1 else m for m in full}
    return [replace(log, file=replace(log.file, model=names[log.file.model])) for log in wanted], rows


def _short(model: str) -> str:
    """Model name without its providers: ``openai-api/local/alpha`` -> ``alpha``."""
    return model.rstrip("/").rsplit("/", 1)[-1]


def _newest(group: list[_Log], data: DataParams) -> tuple[list[Reply], list[dict[str, Any]], _Log | None]:
    """Replies of the newest log of a model and condition that ended well, and what became of the others."""
    assert data.folder is not None
    ranked = sorted(group, key=lambda g: (g.header.status == "success", str(g.header.eval.created)), reverse=True)
    rows: list[dict[str, Any]] = []
    taken: _Log | None = None
    replies: list[Reply] = []
    held: set[str] = set()
    for log in ranked:
        f = log.file
        note = {"run": _label(f.path, data.folder), "model": f.model, "condition": f.condition}
        if taken is not None:
            ids = {str(i) for i in log.header.eval.dataset.sample_ids or ()}
            more = f"; {len(ids - held)} of its items are not in that one" if ids - held else ""
            state = "older log" if log.header.status == "success" else f"log that ended as {log.header.status!r}"
            reason = f"{state} of the same model; {_label(taken.file.path, data.folder)} is read{more}"
            rows.append(coverage_row("excluded", n=len(ids), reason=reason, **note))
            continue
        try:
            whole = _read(f.path)
        except AuditError as e:
            rows.append(coverage_row("unreadable", n=1, reason=e.what, **note))
            continue
        taken = log
        replies, told = _samples(whole, note, data)
        held = {r.item for r in replies}
        rows += told
    return replies, rows, taken


def _samples(log: Any, note: dict[str, str], data: DataParams) -> tuple[list[Reply], list[dict[str, Any]]]:
    scores = log.results.scores if log.results else []
    scorers = {s.name: s.scorer for s in scores}
    args = log.eval.task_args or {}
    shuffles = any("shuffle" in k and ("choice" in k or "option" in k) and bool(v) for k, v in args.items())
    samples = log.samples or []
    known = {str(k) for s in samples for k in s.metadata or {}}
    for column in data.where:
        if samples and column not in known:
            raise AuditError(
                f"where names {column!r}, which no sample has (facts: {', '.join(sorted(known)[:12])})",
                file=data.folder,
                mend="correct where: in the params",
            )
    replies, rows = replies_of(samples, note=note, scorers=scorers, shuffles=shuffles, where=data.where)
    rows.insert(0, coverage_row("read", n=len(replies), reason=denominators(log, replies), **note))
    if log.status != "success":
        rows.append(coverage_row("warning", n=1, reason=f"the log's own state is {log.status!r}", **note))
    return replies, rows
