"""The files of one benchmark in a VLMEvalKit results folder, blind runs of other places included, and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.readers import layout
from auditlib.readers.runfile import RunFile, stated_condition
from auditlib.readers.vlmevalkit_runs import label

#: what is wrong with files that are not read, by their kind
_NOT_READ = {
    "dangling": ("unreadable", "a link that leads nowhere; copy the file it meant"),
    "foreign": ("excluded", "a link to another run's file, which is counted there"),
    "leftover": ("unreadable", "left by a run that did not end; let it end, its replies are not complete"),
    "rewritten": ("excluded", "replies rewritten by the toolkit before it judged them, and verdicts on these"),
}


def files_of(
    folder: Path,
    benchmark: str,
    blind_folder: Path | None,
    conditions: Mapping[str, str],
    blind_benchmark: str | None,
    *,
    scans: dict[str, Any] | None = None,
) -> tuple[list[RunFile], list[dict[str, Any]]]:
    """Files of the benchmark, blind runs of another folder included, and what is left out of them.

    ``scans`` remembers what lies in a folder, for calls that ask for one benchmark after the other.
    """
    scanned = layout.scan(folder, benchmark, conditions=conditions, scans=scans)
    found = _of(scanned, benchmark)
    coverage: list[dict[str, Any]] = []
    if blind_benchmark and blind_benchmark != benchmark:
        blind = [_blind(f, benchmark, folder, conditions) for f in _of(scanned, blind_benchmark)]
        found = _replaced(found, blind, f"the run of {blind_benchmark} is used", folder, coverage)
    has_blind = any(f.condition == "blind" and f.kind in layout.RUNS for f in found)
    beside = blind_folder or (None if has_blind else layout.sibling_blind(folder))
    if beside is not None:
        own = layout.scan(beside, benchmark, condition="blind", conditions=conditions)
        blind = _of(own, benchmark)
        if not blind and blind_benchmark:
            blind = [replace(f, benchmark=benchmark) for f in _of(own, blind_benchmark)]
        scanned += own
        if blind_folder and not blind:
            mend = "check blind_folder, or the benchmark's name"
            raise AuditError(f"no run of {benchmark!r} in the blind folder", file=blind_folder, mend=mend)
        found = _replaced(found, blind, "the run of the blind folder is used", folder, coverage)
    found = layout.once(found)
    for f in (f for f in found if f.condition == "skip" and f.kind in layout.RUNS):
        coverage.append(
            coverage_row("excluded", n=1, run=label(f.path, folder), model=f.model, reason="skipped in the params")
        )
    found = [f for f in found if f.condition != "skip"]
    coverage += _left_out(found, folder)
    for f in (f for f in scanned if f.kind in ("unknown", "foreign") and not f.benchmark):
        what, reason = "unreadable", "file not recognised, not read; its name should be MODEL/MODEL_BENCHMARK.xlsx"
        if f.kind == "foreign":
            what, reason = _NOT_READ["foreign"]
        coverage.append(coverage_row(what, n=1, run=label(f.path, folder), reason=reason))
    return found, coverage


def _of(scanned: list[RunFile], benchmark: str) -> list[RunFile]:
    return [f for f in scanned if f.benchmark == benchmark]


def _blind(f: RunFile, benchmark: str, folder: Path, conditions: Mapping[str, str]) -> RunFile:
    """A file of the blind benchmark as one of the benchmark; a condition that the params state stands."""
    stated = stated_condition(f.path.relative_to(folder).as_posix(), conditions)
    return replace(f, condition=stated or "blind", benchmark=benchmark)


def _replaced(
    found: list[RunFile], blind: list[RunFile], reason: str, folder: Path, coverage: list[dict[str, Any]]
) -> list[RunFile]:
    """Files with the blind runs of another place, which stand for those of the same models here."""
    models = {f.model for f in blind if f.kind in layout.RUNS}
    dropped = [f for f in found if f.condition == "blind" and f.model in models]
    said = [f for f in dropped if f.kind not in ("table", "pickle")]
    coverage += [_about(f, folder)("excluded", n=1, reason=reason) for f in said]
    return [f for f in found if f not in dropped] + blind


def _left_out(found: list[RunFile], folder: Path) -> list[dict[str, Any]]:
    """Coverage rows for files that are never read; a pickle beside its own table needs no more than a count."""
    rows = []
    here = {f.path.with_suffix("") for f in found if f.kind in layout.RUNS}
    names = {(f.model, f.path.name) for f in found if f.kind not in ("dangling", "foreign")}
    beside = 0
    for f in found:
        if f.kind == "pickle" and f.path.with_suffix("") in here:
            beside += 1
        elif f.kind == "pickle":
            reason = "a pickle is never opened; convert it to tsv where it was written if its table is missing"
            rows.append(_about(f, folder)("unreadable", n=1, reason=reason))
        elif f.kind == "dangling" and (f.model, f.path.name) in names:
            reason = "a link that leads nowhere (the folder was moved); the file of the run folder is read"
            rows.append(_about(f, folder)("warning", n=1, reason=reason))
        elif f.kind in _NOT_READ:
            what, reason = _NOT_READ[f.kind]
            rows.append(_about(f, folder)(what, n=1, reason=reason))
    if beside:
        reason = "pickles beside the tables that they went into; a pickle is never opened"
        rows.append(coverage_row("excluded", n=beside, reason=reason))
    return rows


def _about(f: RunFile, folder: Path) -> partial:
    return partial(coverage_row, run=label(f.path, folder), model=f.model, condition=f.condition)
