"""Run many pools: each in a process of its own, several at a time, what is fresh left alone."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib.crew import Crew, Say, Standing
from auditlib.errors import AuditError
from auditlib.freshness import input_files
from auditlib.locks import holder
from auditlib.nb import start
from auditlib.params import BLIND_RUN, Params, load_params
from auditlib.paths import project_root
from auditlib.stages import REPORT, read_status, refuse_reserved, system_mistake
from auditlib.worker import DONE, FAILED, MISTAKE, Job, Look, Outcome, look

if TYPE_CHECKING:
    from auditlib.cluster import Cluster

#: rule of thumb where a stage was never timed: seconds, and seconds per MB of input for the first notebook
RULE = {BLIND_RUN: 60.0, "10_audit": 12.0, "20_curation": 20.0, "60_calibration": 15.0, "30_dependence": 15.0,
        "40_judges": 20.0, "50_sensitivity": 20.0, "80_figures": 15.0, "90_tables": 8.0, REPORT: 15.0}  # fmt: skip
RULE_PER_MB = 1.0


def jobs_for(
    files: Sequence[str | Path],
    *,
    outputs: str | Path | None = None,
    root: Path | None = None,
    pools: str | None = None,
    limit: int | None = None,
    force: bool = False,
) -> list[Job]:
    """Check params files and make a job of each.

    Parameters
    ----------
    outputs : folder for results; default ``outputs`` in the project.
    pools : a pattern such as ``mmstar*`` that pool names must match.
    limit : read only so many items of each pool, into ``<pool>.limitN``, never mixed with a full run.

    Raises
    ------
    AuditError
        Mistakes in one or more files (one line each), two files of one pool, nothing left to run.
    """
    root = root or project_root()
    folder = Path(outputs).expanduser().absolute() if outputs else root / "outputs"
    jobs, mistakes, seen = [], [], {}
    for file in map(Path, files):
        try:
            params = load_params(file)
            if pools and not fnmatch.fnmatch(params.pool, pools):
                continue
            refuse_reserved(params.pool, file)
            if params.pool in seen:
                raise AuditError(f"pool {params.pool!r} is also the pool of {seen[params.pool]}", file=file,
                                 mend="give each params file its own pool name")  # fmt: skip
            seen[params.pool] = file
            more = {"limit": limit} if limit else {}
            jobs.append(Job(str(file.absolute()), str(folder), str(root), more, force))
        except AuditError as e:
            if not pools or fnmatch.fnmatch(file.stem, pools):
                mistakes.append(str(e))
        except (OSError, ValueError) as e:
            if (mistake := system_mistake(e)) is None:
                raise
            mistakes.append(str(mistake) if isinstance(e, OSError) and e.filename else f"{file}: {mistake}")
    if mistakes:
        raise Mistakes(mistakes)
    if not jobs:
        raise AuditError(f"no pool matches {pools!r}" if pools else "no params file is given",
                         mend="name files such as params/*.yaml")  # fmt: skip
    return jobs


class Mistakes(AuditError):
    """Several mistakes, one line each."""

    def __init__(self, lines: list[str]):
        super().__init__("; ".join(lines))
        self.lines = lines

    def __reduce__(self):
        return (Mistakes, (self.lines,))


def run(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    keep_going: bool = True,
    say: Say = lambda pool, stage, text: None,
    tell: Callable[[str], None] = lambda line: None,
    cluster: Cluster | None = None,
) -> list[Outcome]:
    """Run jobs and write the index over all pools.

    Parameters
    ----------
    workers : pools at a time on this machine; default one per core.
    keep_going : whether other pools start after one has failed.
    say : called with (pool, stage, sentence) as things happen.
    tell : called with a line on how many pools have ended and which are running, as that changes.
    cluster : a dask scheduler that gets the jobs; they run on this machine when not given.

    Returns
    -------
    Outcomes in the order of the jobs; a pool that was not started has no outcome.

    Raises
    ------
    AuditError
        The cluster cannot be used; see :func:`auditlib.cluster.run_jobs`.
    """
    standing = Standing(len(jobs), tell)
    if cluster is not None:
        from auditlib.cluster import run_jobs

        outcomes = run_jobs(jobs, cluster, keep_going=keep_going, say=say, standing=standing)
    else:
        outcomes = _run_here(jobs, workers, Crew(say, keep_going, standing))
    if any(o.code == DONE or o.ran for o in outcomes.values()):
        _index(Path(jobs[0].outputs))
    return [outcomes[i] for i in sorted(outcomes)]


def _run_here(jobs: Sequence[Job], workers: int | None, crew: Crew) -> dict[int, Outcome]:
    workers = workers or min(len(jobs), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    outcomes: dict[int, Outcome] = {}
    # Threads that each wait for one process: a pool that is killed takes no other with it.
    with ThreadPoolExecutor(max_workers=max(1, workers)) as executor:
        futures = {executor.submit(crew.run, job): i for i, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                if (outcome := future.result()) is not None:
                    outcomes[futures[future]] = outcome
        except BaseException:
            crew.stop()
            raise
    return outcomes


def _index(outputs: Path) -> None:
    from auditlib.report.index import write_index

    write_index(outputs)


def estimate(before: Look) -> tuple[float, str]:
    """Seconds that the stages to run will take, and where the number comes from."""
    to_run = [p for p in before.plans if p.why]
    timed = all(p.seconds is not None for p in to_run)
    size = sum(f.stat().st_size for f in input_files(before.params, before.paths.outputs)) / 1e6
    seconds = sum(
        p.seconds if p.seconds is not None else RULE.get(p.stage, 10.0) + RULE_PER_MB * size * (p.stage == "10_audit")
        for p in to_run
    )
    return seconds, "as long as last time" if timed else f"by a rule of thumb, {size:.1f} MB of input"


def describe(jobs: Iterable[Job]) -> list[str]:
    """What would run, from which files, and how long: the lines of ``--dry-run``.

    Raises
    ------
    AuditError
        A mistake in the params.
    """
    lines, total = [], 0.0
    for job in jobs:
        before = look(job)
        lines.append(f"{before.params.pool}: {_source(before.params)}; results go to {before.paths.folder.name}/")
        lines += [f"  {name}" for name in list(before.basis.inputs)[:12]]
        if (n := len(before.basis.inputs)) > 12:
            lines.append(f"  ... and {n - 12} more files")
        lines += [f"  {p.stage:<11} {p.note}" for p in before.plans]
        seconds, rule = estimate(before)
        if any(p.why for p in before.plans):
            lines.append(f"  about {seconds:.0f} s ({rule})")
        total += seconds
    return [*lines, f"in all about {total:.0f} s of work; nothing was run"]


def _source(params: Params) -> str:
    data = params.data
    if data.embedded:
        return f"embedded pool {data.embedded}, part of the package"
    if not data.has_runs:
        return f"runs made here, of the questions in {data.dataset.name}"
    path = data.folder or data.table or data.matrix or data.counts
    return f"{'folder' if data.folder else 'file'} {path.name}"


def states(jobs: Iterable[Job]) -> list[dict[str, Any]]:
    """State of each pool: fresh, stale, failed, interrupted, running or never run, and why."""
    return [_state(job) for job in jobs]


def _state(job: Job) -> dict[str, Any]:
    params, paths, _ = start(job.params, job.outputs, job.overrides, replace=True)
    status = read_status(paths)
    row = {"pool": params.pool, "state": "", "why": "", "finished": max(
        (s["started"] for s in status["stages"].values() if s.get("state") == "done"), default="")}  # fmt: skip
    try:
        plans = look(job).plans
    except AuditError as e:
        return row | {"state": "stale", "why": str(e)}
    except OSError as e:
        return row | {"state": "stale", "why": str(system_mistake(e))}
    if (by := holder(paths.outputs, params.pool)) is not None:
        at = [n for n, s in status["stages"].items() if s.get("state") == "running"]
        return row | {"state": "running", "why": ", ".join(at) + by.elsewhere}
    failed = {n: s for n, s in status["stages"].items() if s.get("state") == "failed"}
    if failed:
        name = next(iter(failed))
        return row | {"state": "failed", "why": f"{name}: {failed[name].get('error', '')}"}
    if any(s.get("state") in ("running", "interrupted") for s in status["stages"].values()):
        return row | {"state": "interrupted", "why": "started and not ended; run it again"}
    first = next((p for p in plans if p.why), None)
    if first is None:
        return row | {"state": "fresh"}
    state = "never run" if first.why == "never run" and first.stage == plans[0].stage else "stale"
    return row | {"state": state, "why": "" if state == "never run" else f"{first.stage}: {first.why}"}


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """1 when a notebook failed, else 2 when a user's mistake stopped a pool, else 0."""
    codes = {o.code for o in outcomes}
    return FAILED if FAILED in codes else MISTAKE if MISTAKE in codes else DONE
