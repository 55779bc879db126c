"""The stages of a pool's run: what each must leave behind, and whether it has to run."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from auditlib.errors import AuditError
from auditlib.freshness import Basis, differences, is_pool, relative, results_in
from auditlib.params import BLIND_RUN, CAPABILITIES, Params
from auditlib.paths import RunPaths, atomic

#: the last stage, done by the runner itself: manifest, exported notebooks, report
REPORT = "report"
#: what :func:`~auditlib.paths.atomic` makes of a file's name
_TEMPORARY = re.compile(r"\.([^/]*)\.\d+\.tmp(?=[^/]*$)")
#: files over all pools, which no pool's folder may be named like
RESERVED = ("index.html", "summary.csv", "latex", "diff", "leaderboard", "leaderboard.html")


@dataclass(frozen=True)
class Plan:
    """One stage of one pool: ``why`` is the reason to run, empty when it is fresh; ``note`` says so in words."""

    stage: str
    why: str
    note: str
    seconds: float | None


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def expected(stage: str, paths: RunPaths) -> list[Path]:
    """Files that a stage must have written when it ended well."""
    if stage == BLIND_RUN:
        return [paths.runs / n for n in ("responses.parquet", "items.parquet", "runs.json")]
    if stage == "10_audit":
        frames = [paths.frame(n) for n in ("items", "models", "findings", "counts", "draws")]
        tables = [paths.findings_csv, paths.statistics, paths.coverage, paths.detectors]
        return [*frames, *tables, paths.steps, paths.flagged]
    if (study := _study(stage)) is not None:
        return [paths.study(study) / "facts.json"]
    if stage == "80_figures":
        return [paths.figures / "index.html", paths.figures / "index.csv"]
    if stage == "90_tables":
        return [paths.tables, paths.latex / "numbers.tex"]
    card = [paths.card_html, paths.card_pdf, paths.card_md]
    return [paths.manifest, paths.params, paths.report_html, paths.report_pdf, paths.items_html, *card]


def _study(stage: str) -> str | None:
    """The capability whose study a stage makes; None for the stages of the audit itself."""
    return next((block for block, s in CAPABILITIES.items() if s == stage), None)


def prints(files: list[Path]) -> dict[Path, tuple[int, ...]]:
    """What tells a file that was written again from one that was not: time, inode, size (of a folder's newest)."""
    out: dict[Path, tuple[int, ...]] = {}
    for file in files:
        members = [p for p in file.iterdir() if p.is_file()] if file.is_dir() else [file] if file.is_file() else []
        stats = sorted((s.st_mtime_ns, s.st_ino, s.st_size) for s in (p.stat() for p in members))
        if stats:
            out[file] = stats[-1]
    return out


def not_written(stage: str, paths: RunPaths, before: dict[Path, tuple[int, ...]]) -> list[str]:
    """Names of expected files that are absent or exactly as they were before the stage ran."""
    after = prints(expected(stage, paths))
    return [
        p.relative_to(paths.folder).as_posix()
        for p in expected(stage, paths)
        if p not in after or after[p] == before.get(p)
    ]


def belonging(stage: str, paths: RunPaths) -> list[Path]:
    """Files of a pool's folder that only this stage writes, as far as they are there now."""
    if stage == "10_audit":  # the report writes flagged.md once more, so that its size tells nothing of the audit
        files = [*paths.folder.glob("*.parquet"), *(p for p in expected(stage, paths) if p != paths.flagged)]
    elif (study := _study(stage)) is not None:
        files = list(paths.study(study).glob("*"))
    elif stage == BLIND_RUN:  # not the store of answers: it grows, and is never made again
        files = list(paths.runs.glob("*"))
    elif stage == REPORT:
        files = [
            *expected(stage, paths),
            paths.flagged,
            *paths.notebooks.glob("*.html"),
            *paths.notebooks.glob("*.pdf"),
        ]
    elif stage == "80_figures":
        files = list(paths.figures.glob("*"))
    else:
        files = [*paths.tables.glob("*"), *paths.latex.rglob("*")]
    files.append(paths.notebooks / f"{stage}.ipynb")
    return sorted({p for p in files if p.is_file() and not p.name.startswith(".")})


def left(stage: str, paths: RunPaths, before: dict[Path, tuple[int, ...]]) -> dict[str, int]:
    """Size by name of the files that a stage wrote; those that lay there before and were not touched are not its."""
    after = prints(belonging(stage, paths))
    return {p.relative_to(paths.folder).as_posix(): v[-1] for p, v in after.items() if v != before.get(p)}


def disturbed(stage: str, paths: RunPaths, record: dict[str, Any]) -> str:
    """The first file of a finished stage that is gone or has another size, in words; empty when all are there."""
    sizes = record.get("files", {})
    names = [p.relative_to(paths.folder).as_posix() for p in expected(stage, paths)]
    for name in dict.fromkeys([*names, *sizes]):
        file = paths.folder / name
        if not file.exists():
            return f"{name} is missing"
        if name in sizes and file.stat().st_size != sizes[name]:
            return f"{name} has another size than when it was written"
    return ""


def unanswered(paths: RunPaths) -> str:
    """What a blind run still lacks, in words: calls that failed or were not made; empty when nothing is open."""
    try:
        facts = json.loads((paths.runs / "runs.json").read_text(encoding="utf-8"))
        left = sum(row["n"] for row in facts["coverage"] if "run again to ask them" in row["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f"{left} questions have no answer yet" if left else ""


def refuse_reserved(pool: str, file: Path | None = None) -> None:
    """Raise an :class:`AuditError` for a pool whose folder would take the place of a file over all pools."""
    if pool.lower() in RESERVED:
        raise AuditError(f"a pool cannot be named {pool!r}: the reserved name of a file over all pools", file=file,
                         mend="choose another pool name")  # fmt: skip


def refuse_foreign(file: Path, paths: RunPaths, root: Path) -> None:
    """Raise an :class:`AuditError` when the pool's folder holds the results of another params file."""
    theirs, mine = read_status(paths).get("params"), relative(file, root)
    if theirs and theirs != mine:
        raise AuditError(f"outputs of pool {paths.pool!r} belong to another params file ({theirs})", file=file,
                         mend="give this pool a name of its own (pool: in the params, or --pool NAME), or replace them "
                         "with --force")  # fmt: skip


def refuse_overlap(params: Params, paths: RunPaths) -> None:
    """Raise an :class:`AuditError` when a pool's own folder would be, or hold, results that it is read from."""
    own = paths.folder.resolve()
    for folder in (params.data.folder, params.data.blind_folder):
        if folder is None:
            continue
        inside = (
            own.is_relative_to(folder) and own.is_dir() and not is_pool(own) and any(results_in(own, paths.outputs))
        )
        if folder.is_relative_to(own) or inside:
            raise AuditError("the pool's folder would lie among the results that it is read from", file=paths.folder,
                             mend="choose another pool name, or another folder with --outputs")  # fmt: skip


def system_mistake(error: OSError | ValueError, where: Path | None = None) -> AuditError | None:
    """What the system refused, as the one line for the user; None for a ValueError that is not about a path.

    ``where`` is the folder that is named when the error names no file: a write into an open one does not.
    """
    if not isinstance(error, OSError):
        if "null byte" in str(error) or "null character" in str(error):
            return AuditError("a path holds a null byte", mend="correct the path in the params or arguments")
        return None
    mends = {
        errno.ENOSPC: "free space on that disk, then run it again",
        errno.EDQUOT: "free space on that disk, then run it again",
        errno.EACCES: "give yourself the right to read or write there, or choose another folder with --outputs",
        errno.EPERM: "give yourself the right to read or write there, or choose another folder with --outputs",
        errno.EROFS: "choose a folder that can be written, with --outputs",
        errno.EEXIST: "a folder is needed where that file lies: name another one",
        errno.ENOTDIR: "a folder is needed where a file lies: name another one",
        errno.EISDIR: "a file is needed where that folder lies: move it away",
        errno.ENAMETOOLONG: "choose a shorter pool name or folder",
        errno.ENOENT: "check the path, or run it again",
    }
    name = error.filename2 or error.filename  # of a rename, the name that was meant
    name = _TEMPORARY.sub(r"\1", os.fsdecode(name)) if isinstance(name, str | bytes | os.PathLike) else where
    return AuditError(error.strerror or str(error) or type(error).__name__, file=name,
                      mend=mends.get(error.errno, "check that file and its disk, then run it again"))  # fmt: skip


def read_status(paths: RunPaths) -> dict[str, Any]:
    """The status file of a pool; an empty one where there is none or it cannot be read."""
    try:
        status = json.loads(paths.status.read_text(encoding="utf-8"))
        return status if isinstance(status.get("stages"), dict) else {"stages": {}, "bases": {}}
    except (OSError, ValueError, AttributeError):
        return {"stages": {}, "bases": {}}


def write_status(paths: RunPaths, status: dict[str, Any]) -> None:
    """Write the status file in one step, with only those bases that a stage still refers to."""
    used = {s.get("basis") for s in status["stages"].values()}
    status["bases"] = {k: v for k, v in status.get("bases", {}).items() if k in used}
    with atomic(paths.status) as t:
        t.write_text(json.dumps(status, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def plan(
    stages: list[str],
    paths: RunPaths,
    basis: Basis,
    notebooks: dict[str, str],
    *,
    force: bool = False,
    printer: bool = False,
) -> list[Plan]:
    """Which stages have to run, and why.

    Parameters
    ----------
    stages : names in order, :data:`REPORT` last.
    basis : what the results would be made from now.
    notebooks : stage -> hash of its notebook.
    printer : whether a program that prints notebook PDFs is at hand.
    """
    status, out, earlier = read_status(paths), [], ""
    for stage in stages:
        record = status["stages"].get(stage)
        why = "asked to (--force)" if force else _why(stage, record, status, paths, basis, notebooks)
        if not why and earlier:
            why = f"{earlier} runs again"
        if not why and stage == REPORT and printer and "skipped: install" in record.get("pdf", ""):
            why = "notebook PDFs were skipped and can be printed now"
        earlier = earlier or (stage if why else "")
        note = f"runs: {why}" if why else f"skipped, fresh: same inputs, params and code as on {record['started']}"
        out.append(Plan(stage, why, note, (record or {}).get("seconds")))
    return out


def _why(stage, record, status, paths, basis, notebooks) -> str:
    if record is None:
        return "never run"
    if record.get("state") == "running":
        return "interrupted last time"
    if record.get("state") != "done":
        return f"{record.get('state')} last time"
    if why := disturbed(stage, paths, record) or (unanswered(paths) if stage == BLIND_RUN else ""):
        return why
    if record.get("notebook", "") != notebooks.get(stage, ""):
        return f"notebooks/{stage}.ipynb changed"
    return differences(status.get("bases", {}).get(record.get("basis"), {}), basis)
