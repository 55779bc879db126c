"""Run the stages of one pool. ``python -m auditlib.worker`` does so in a process of its own, for :mod:`pipeline`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditlib.ending import end_with_parent
from auditlib.errors import AuditError
from auditlib.freshness import Basis, HashCache, basis, file_hash, relative
from auditlib.kernels import NotebookRun, one_line, run_notebook
from auditlib.locks import locked
from auditlib.nb import start
from auditlib.params import BLIND_RUN, Params
from auditlib.paths import RunPaths
from auditlib.stages import (
    REPORT,
    Plan,
    belonging,
    expected,
    left,
    not_written,
    now,
    plan,
    prints,
    read_status,
    refuse_overlap,
    system_mistake,
    write_status,
)

#: exit codes: all well, a notebook failed, the user's mistake
DONE, FAILED, MISTAKE = 0, 1, 2


@dataclass(frozen=True)
class Job:
    """One pool to run; plain values, so that it can travel to another process.

    ``patience`` is how many seconds it waits for another runner of the pool to end: one that is being stopped.
    """

    params: str
    outputs: str
    root: str
    overrides: dict[str, Any] = field(default_factory=dict)
    force: bool = False
    patience: float = 0.3


@dataclass(frozen=True)
class Outcome:
    """How a pool ended: an exit code, and one line when it is not 0."""

    pool: str
    code: int
    error: str = ""
    ran: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Look:
    """A pool before it runs: params, paths, what it is made from, and the plan."""

    params: Params
    paths: RunPaths
    limit: int | None
    basis: Basis
    notebooks: dict[str, str]
    plans: list[Plan]


def look(job: Job) -> Look:
    """Check a job's params and inputs' presence and plan its stages; writes nothing but remembered hashes.

    Raises
    ------
    AuditError
        A mistake in the params, or a notebook that is not there.
    """
    params, paths, limit = start(job.params, job.outputs, job.overrides, replace=job.force)
    refuse_overlap(params, paths)
    root, outputs = Path(job.root), Path(job.outputs)
    for name in ("folder", "blind_folder", "table", "matrix", "items", "dataset"):
        path = getattr(params.data, name)
        if path is not None and not path.exists():
            raise AuditError(f"data.{name} names {path.name!r}, which does not exist", file=job.params,
                             mend="paths in a params file are relative to that file")  # fmt: skip
    questions = params.inference.items if params.inference else None
    if questions is not None and not questions.exists():
        raise AuditError(f"inference.items names {questions.name!r}, which does not exist", file=job.params,
                         mend="paths in a params file are relative to that file")  # fmt: skip
    hashes = HashCache(outputs / ".hashes.json") if outputs.is_dir() else HashCache()
    made_from = basis(params, outputs, hashes, root=root)
    hashes.save()
    notebooks = {}
    for stage in params.notebooks:
        file = root / "notebooks" / f"{stage}.ipynb"
        if not file.exists():
            raise AuditError("there is no such notebook", file=file.name, mend="correct 'notebooks' in the params")
        notebooks[stage] = file_hash(file)
    from auditlib.notebook_export import find_printer

    stages = [*params.notebooks, REPORT]
    plans = plan(stages, paths, made_from, notebooks, force=job.force, printer=bool(find_printer()))
    return Look(params, paths, limit, made_from, notebooks, plans)


def run_pool(job: Job, say: Callable[[str, str], None]) -> Outcome:
    """Run what is not fresh, in order, and stop at the first stage that fails.

    Parameters
    ----------
    say : called with (stage, sentence) as things happen.
    """
    began = time.monotonic()
    pool = Path(job.params).stem
    ran: list[str] = []
    facts: dict[str, Any] = {}
    try:
        before = look(job)
        pool = before.params.pool
        asks = any(p.why and p.stage == BLIND_RUN for p in before.plans)
        if any(p.why and p.stage == "10_audit" for p in before.plans):
            facts = _first_look(before.params, job, asks)
        with locked(Path(job.outputs), pool, patience=job.patience) as waited:
            if waited > 1:  # the other runner may have ended a stage meanwhile
                before = look(job)
            for rest in before.paths.folder.rglob(".*.tmp*"):  # of a run that was killed
                rest.unlink(missing_ok=True)
            if facts:
                status = read_status(before.paths)
                write_status(before.paths, status | {"read": facts})
            for step in before.plans:
                say(step.stage, step.note)
                if step.why:
                    ran.append(step.stage)
                    error, code = _run_stage(job, before, step, say)
                    if error:
                        return Outcome(pool, code, error, tuple(ran), time.monotonic() - began)
                    if step.stage == BLIND_RUN:
                        status = read_status(before.paths)
                        write_status(before.paths, status | {"read": _read(before.params, job)})
    except AuditError as e:
        return Outcome(pool, MISTAKE if not ran else FAILED, str(e), tuple(ran), time.monotonic() - began)
    except (OSError, ValueError) as e:
        if (mistake := system_mistake(e, Path(job.outputs))) is None:
            raise
        return Outcome(pool, MISTAKE, str(mistake), tuple(ran), time.monotonic() - began)
    return Outcome(pool, DONE, "", tuple(ran), time.monotonic() - began)


def _first_look(params: Params, job: Job, asks: bool) -> dict[str, Any]:
    """Read the pool: a mistake in the files ends here, before anything is written and before a model is asked.

    Where a model is asked first, its runs are not there yet; what is read then is read again after it.
    """
    if not asks:
        return _read(params, job)
    if params.data.has_runs:
        _read(params.model_copy(update={"inference": None}), job)
    return {}


def _read(params: Params, job: Job) -> dict[str, Any]:
    """Read the pool once to meet every mistake, and keep what the manifest needs."""
    from auditlib.manifest import read_facts
    from auditlib.reading import read_pool

    pool = read_pool(params, outputs=job.outputs)
    hashes = HashCache(Path(job.outputs) / ".hashes.json")
    facts = read_facts(pool, Path(job.root), hashes)
    hashes.save()
    return facts


def _run_stage(job: Job, before: Look, step: Plan, say: Callable[[str, str], None]) -> tuple[str, int]:
    """Run one stage and record it; returns the error in one line, or ``""``, and the exit code."""
    paths, stage = before.paths, step.stage
    digest = hashlib.sha256(json.dumps(before.basis.as_dict(), sort_keys=True).encode()).hexdigest()[:16]
    record: dict[str, Any] = {"state": "running", "started": now(), "why": step.why, "basis": digest,
                              "notebook": before.notebooks.get(stage, "")}  # fmt: skip
    _record(job, before, stage, record, digest)
    was, code = prints(expected(stage, paths)), FAILED
    lay, began, error = prints(belonging(stage, paths)), time.monotonic(), ""
    try:
        if stage == REPORT:
            record |= _report(job, before)
        else:
            with _progress(paths, stage, say):
                ended = _notebook(job, paths, stage)
            error, code = ended.error, MISTAKE if ended.system else FAILED
        if not error and (missing := not_written(stage, paths, was)):
            error = f"it ended without an error but did not write {', '.join(missing[:4])}"
    except AuditError as e:
        error = str(e)
    except OSError as e:
        error, code = str(system_mistake(e, paths.folder)), MISTAKE
        with suppress(OSError):
            _trace(paths, stage, e)
    except Exception as e:  # a fault of ours: the pool fails with a line, other pools go on
        error = one_line(type(e).__name__, str(e))
        _trace(paths, stage, e)
    except BaseException:
        _record(job, before, stage, record | {"state": "interrupted"}, digest)
        raise
    record |= {"state": "failed" if error else "done", "seconds": round(time.monotonic() - began, 2)}
    record |= {"error": error} if error else {"files": left(stage, paths, lay)}
    _record(job, before, stage, record, digest)
    if not error:
        _trace_file(paths, stage).unlink(missing_ok=True)  # of an earlier failure
        say(stage, f"done in {record['seconds']:.1f} s" + (f"; {record['pdf']}" if "pdf" in record else ""))
        return "", DONE
    where = f" (see {paths.outputs.name}/{paths.pool}/notebooks/{stage}.ipynb)" if stage != REPORT else ""
    return f"{stage} failed: {error}{where}", code


def _notebook(job: Job, paths: RunPaths, stage: str) -> NotebookRun:
    root = Path(job.root)
    values = {"params": _from_root(job.params, root), "outputs": _from_root(job.outputs, root),
              "overrides": job.overrides}  # fmt: skip
    source = root / "notebooks" / f"{stage}.ipynb"
    return run_notebook(source, paths.notebooks / source.name, values, cwd=root)


@contextmanager
def _progress(paths: RunPaths, stage: str, say: Callable[[str, str], None]) -> Iterator[None]:
    """Say the lines that a blind run leaves about itself, as they change."""
    if stage != BLIND_RUN:
        yield
        return
    paths.progress.write_text("", encoding="utf-8")
    ended = threading.Event()

    def watch() -> None:
        with open(paths.progress, encoding="utf-8") as lines:
            last = False
            while not last:
                last = ended.wait(0.5)
                for line in lines.read().splitlines():
                    say(stage, line)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        paths.progress.unlink(missing_ok=True)


def _report(job: Job, before: Look) -> dict[str, Any]:
    from auditlib.manifest import write_manifest
    from auditlib.notebook_export import export_notebooks
    from auditlib.report import write_report

    write_manifest(before.params, before.paths, before.basis, root=Path(job.root), overrides=job.overrides)
    pdf = export_notebooks(before.paths.notebooks, before.params.notebooks)
    write_report(before.paths)
    return {"pdf": pdf}


def _record(job: Job, before: Look, stage: str, record: dict[str, Any], digest: str) -> None:
    status = read_status(before.paths)
    status |= {"pool": before.params.pool, "benchmark": before.params.benchmark, "limit": before.limit,
               "params": relative(Path(job.params), Path(job.root)), "runner": os.getpid()}  # fmt: skip
    status.setdefault("bases", {})[digest] = before.basis.as_dict()
    status["stages"][stage] = dict(record)
    states = {s["state"] for s in status["stages"].values()}
    status["state"] = next((s for s in ("running", "interrupted", "failed") if s in states), "done")
    write_status(before.paths, status)


def _trace(paths: RunPaths, stage: str, error: Exception) -> None:
    import traceback

    text = "".join(traceback.format_exception(error))
    _trace_file(paths, stage).write_text(text, encoding="utf-8")


def _trace_file(paths: RunPaths, stage: str) -> Path:
    return paths.folder / f"{stage}.error.txt"


def _from_root(path: str, root: Path) -> str:
    full = Path(path).resolve()
    return full.relative_to(root.resolve()).as_posix() if full.is_relative_to(root.resolve()) else str(full)


def _main() -> None:
    """Read a job from the first line of stdin, report events as JSON lines on stdout, end when stdin closes."""
    # An optional grammar that jsonschema loads to check addresses: three seconds at every start, for nothing here.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not mix with the events

    def send(**event: Any) -> None:
        events.write(json.dumps(event, ensure_ascii=False) + "\n")
        events.flush()

    job = Job(**json.loads(sys.stdin.readline()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    end_with_parent()
    outcome = run_pool(job, lambda stage, text: send(stage=stage, text=text))
    send(outcome=dataclasses.asdict(outcome))


if __name__ == "__main__":
    _main()
