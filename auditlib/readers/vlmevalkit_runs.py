"""Which of a model's runs is read: the newest, with the verdicts that were given on the same replies."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.readers import cells
from auditlib.readers.dataset import open_toolkit_table
from auditlib.readers.runfile import RunFile
from auditlib.readers.vlmevalkit_names import PREDICTIONS
from auditlib.readers.vlmevalkit_status import Status, read_status

#: fewer equal replies than this prove nothing
_ENOUGH = 20
#: how the warning of :func:`same_replies` begins
SAME = "all replies are those of "


@dataclass(frozen=True)
class Choice:
    """The files of one model and condition that are read, what its folders tell, and what was left out.

    ``table`` holds the rows that are asked for, of ``rows`` in the file.
    """

    source: RunFile
    table: pd.DataFrame
    rows: int
    verdicts: RunFile | None
    status: Status
    coverage: list[dict[str, Any]]


def label(path: Path, folder: Path) -> str:
    """Path relative to the results folder, with forward slashes."""
    return Path(os.path.relpath(path, folder)).as_posix()


def choose(
    group: list[RunFile], benchmark: str, judge: str | None, folder: Path, keep: Callable[[pd.DataFrame], pd.DataFrame]
) -> Choice | None:
    """The newest predictions of one model and condition, and the verdicts of one judge on these replies.

    Parameters
    ----------
    group : files of one model, condition and benchmark, of all its runs.
    benchmark : name of the benchmark in these files.
    judge : the judge that is asked for, if one is.
    folder : results folder, for labels.
    keep : leaves out the rows of a table that are not asked for.

    Returns
    -------
    Choice or None
        None where there are neither predictions nor verdicts of this judge.
    """
    status = {p: read_status(p, benchmark) for p in {f.path.parent for f in group}}
    order = {suffix: i for i, suffix in enumerate(PREDICTIONS)}
    by_format = sorted(group, key=lambda f: order.get(f.path.suffix.lower(), len(order)))
    newest = sorted(by_format, key=lambda f: status[f.path.parent].when, reverse=True)
    predictions = [f for f in newest if f.kind == "predictions"]
    verdicts = [f for f in newest if f.kind == "auxmatch" or (f.kind == "result" and f.judge == judge)]
    source = (predictions or verdicts or [None])[0]
    if source is None:
        return None
    whole = open_toolkit_table(source.path)
    table = keep(whole)
    replies = _replies(table)
    coverage = _older(source, predictions[1:], replies, folder, keep)
    chosen = verdicts[0] if verdicts and not predictions else _on_these(source, verdicts, replies)
    coverage += _not_taken(chosen, [f for f in verdicts if f is not chosen], replies, folder)
    here = status[source.path.parent]
    coverage += _remarks(here, len(table), source, folder, bool(predictions[1:]))
    return Choice(source, table, len(whole), chosen, here, coverage)


def same_replies(responses: Iterable[pd.DataFrame]) -> list[dict[str, Any]]:
    """Warnings on runs that hold the same replies word for word: one of them asked nothing, or a file was copied."""
    return same_digests(run_digest(run) for run in responses)


def run_digest(run: pd.DataFrame) -> dict[str, Any]:
    """Label, model, condition and number of replies of a run, and a hash of these; "" where they prove nothing."""
    digest = ""
    if len(run) >= _ENOUGH and run["prediction"].nunique() > 1:
        ordered = run.sort_values("item")
        text = "\x00".join([*ordered["item"].tolist(), *ordered["prediction"].tolist()])
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    first = run.iloc[0]
    return {"run": first["run"], "model": first["model"], "condition": first["condition"], "n": len(run),
            "digest": digest}  # fmt: skip


def same_digests(digests: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """:func:`same_replies` of runs whose replies are known by :func:`run_digest` only."""
    seen: dict[str, str] = {}
    rows = []
    for d in digests:
        if not d["digest"]:
            continue
        first = seen.setdefault(d["digest"], d["run"])
        if first != d["run"]:
            reason = f"{SAME}{first}: one of the two runs asked nothing, or is a copied file"
            facts = {k: d[k] for k in ("n", "run", "model", "condition")}
            rows.append(coverage_row("warning", reason=reason, **facts))
    return rows


def _replies(table: pd.DataFrame) -> pd.Series:
    """Replies by item id, as the evaluation writes them: an empty one is ``nan``."""
    if "index" not in table.columns:
        return pd.Series(dtype="str")
    plain = table["prediction"].str.strip().replace("nan", "")
    replies = pd.Series(plain.to_numpy(), index=cells.item_ids(table["index"]))
    return replies[~replies.index.duplicated()]


def _different(replies: pd.Series, others: pd.Series) -> int | None:
    """How many replies differ on the items that both hold; None where they share no item."""
    shared = replies.index.intersection(others.index)
    return int((replies[shared] != others[shared]).sum()) if len(shared) else None


def _older(
    source: RunFile,
    others: list[RunFile],
    replies: pd.Series,
    folder: Path,
    keep: Callable[[pd.DataFrame], pd.DataFrame],
) -> list[dict[str, Any]]:
    rows = []
    for f in others:
        if f.path.parent == source.path.parent:
            reason = f"the same run in another format; {source.path.name} is read"
            rows.append(_row("excluded", f, folder, 1, reason))
            continue
        try:
            old = _replies(keep(open_toolkit_table(f.path)))
        except AuditError as e:
            rows.append(_row("unreadable", f, folder, 1, f"older run, not readable: {e.what}"))
            continue
        n = _different(replies, old)
        says = "no item in common" if n is None else f"{n} replies differ" if n else "the same replies"
        reason = f"older run; {label(source.path, folder)} is read ({says})"
        rows.append(_row("excluded", f, folder, len(old), reason))
    return rows


def _on_these(source: RunFile, verdicts: list[RunFile], replies: pd.Series) -> RunFile | None:
    """The newest verdict file on the run's own replies; else the one that lies beside them."""
    beside = [f for f in verdicts if f.path.parent == source.path.parent]
    if len(verdicts) == len(beside):
        return (beside or [None])[0]
    for f in verdicts:
        try:
            if _different(replies, _replies(open_toolkit_table(f.path))) == 0:
                return f
        except AuditError:
            if f in beside:
                raise
    return (beside or [None])[0]


def _not_taken(chosen: RunFile | None, others: list[RunFile], replies: pd.Series, folder: Path) -> list[dict[str, Any]]:
    rows = []
    for f in others:
        if chosen is not None and f.path.parent == chosen.path.parent:
            reason = f"the same run in another format; {chosen.path.name} is read"
            rows.append(_row("excluded", f, folder, 1, reason))
            continue
        try:
            n = _different(replies, _replies(open_toolkit_table(f.path)))
        except AuditError:
            rows.append(_row("unreadable", f, folder, 1, "verdicts of another run, not readable"))
            continue
        reason = "verdicts of another evaluation of the same replies" if n == 0 else (
            f"verdicts on replies of another run ({n if n is not None else 'all'} of them differ)"
        )  # fmt: skip
        rows.append(_row("excluded", f, folder, 1, reason))
    return rows


def _remarks(status: Status, n: int, source: RunFile, folder: Path, older_here: bool) -> list[dict[str, Any]]:
    """What ``status.json`` says that a reader of the numbers should know."""
    rows = []
    state = str(status.facts.get("status", "done"))
    if status.error:
        rows.append(_row("warning", source, folder, 1, f"evaluation failed, state {state!r}: {status.error}"))
    elif state not in ("done", "skipped"):
        rows.append(_row("warning", source, folder, 1, f"the run's own state is {state!r}: it may be unfinished"))
    if status.source_run and not older_here:
        reason = f"replies copied by the toolkit from run {status.source_run}, which does not lie here"
        rows.append(_row("warning", source, folder, n, reason))
    seconds = status.seconds()
    if seconds is not None and n >= _ENOUGH and seconds < min(5.0, 0.01 * n):
        reason = (
            f"this run took {seconds:.1f} s for {n} replies: it may have asked nothing and kept those that lay here"
        )
        rows.append(_row("warning", source, folder, n, reason))
    return rows


def _row(what: str, f: RunFile, folder: Path, n: int, reason: str) -> dict[str, Any]:
    return coverage_row(what, n=n, run=label(f.path, folder), model=f.model, condition=f.condition, reason=reason)
