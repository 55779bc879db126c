"""What runs on a dask worker or scheduler: say what it is and sees, run one pool as a local run would, and stop it.

Plain values go in and come out; everything else is exchanged through files that all machines see. dask finds these
functions by their names, so that a scheduler and its workers need this package too.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from auditlib.crew import Crew
from auditlib.freshness import code_files, file_hash, versions
from auditlib.worker import MISTAKE, Job, Outcome

#: seconds between two looks whether a running pool is still wanted
LOOK = 0.5
#: seconds until a file that another machine has just written must be seen here
PATIENCE = 5.0
#: crews that work in this process, by run
_crews: dict[str, set[Crew]] = {}


def topic(run: str) -> str:
    """Name under which the events of a run travel to its client."""
    return f"auditlib-{run}"


def facts() -> dict[str, Any]:
    """This machine's name, the versions that can change a number, and a hash of the package's code."""
    code = hashlib.sha256()
    for name, file in code_files().items():
        code.update(f"{name}\0{file_hash(file)}\n".encode())
    return {"host": socket.gethostname(), "versions": versions(), "code": code.hexdigest()}


def difference(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    """What a worker has otherwise than its client, in words; empty when results will be the same.

    Examples
    --------
    >>> a = {"versions": {"numpy": "2.2"}, "code": "1"}
    >>> difference(a, {"versions": {"numpy": "2.3"}, "code": "1"})
    'numpy is 2.2 there and 2.3 here'
    """
    old, new = theirs.get("versions", {}), mine.get("versions", {})
    for name in new:
        if old.get(name) != new[name]:
            return f"{name} is {old.get(name, 'unknown')} there and {new[name]} here"
    return "" if theirs.get("code") == mine.get("code") else "auditlib there has other code than here"


def unseen(files: Mapping[str, str]) -> str:
    """The first of some paths that is not here or has other content, in words.

    Parameters
    ----------
    files : path to SHA-256 of the content; ``""`` where it is enough that something lies there.
    """
    for name, digest in files.items():
        path = Path(name)
        try:
            if not path.exists():
                return f"does not see {name}"
            if digest and file_hash(path) != digest:
                return f"sees another file as {name}"
        except OSError as e:
            return f"cannot read {name} ({e.strerror})"
    return ""


async def look_round(files: Mapping[str, str]) -> dict[str, Any]:
    """:func:`facts`, and what of some files is not seen here: a shared folder may take a moment to show a new one."""
    until = time.monotonic() + PATIENCE
    while (lost := unseen(files)) and time.monotonic() < until:
        await asyncio.sleep(0.5)
    return {**facts(), "unseen": lost}


def workers_of(dask_scheduler: Any = None) -> dict[str, dict[str, Any]]:
    """Workers of a scheduler by address: threads and resources. dask hands the scheduler in under that name."""
    return {w.address: {"threads": w.nthreads, "resources": dict(w.resources)} for w in dask_scheduler.workers.values()}


def run_pool_here(
    job: Mapping[str, Any], pool: str, run: str, files: Mapping[str, str], expected: Mapping[str, Any]
) -> dict[str, Any]:
    """Run one pool in a process of its own on a dask worker, as a local run does.

    Parameters
    ----------
    job : fields of a :class:`~auditlib.worker.Job`.
    run : the client's name of this run; events go out under it.
    files, expected : what this machine must see, and must be; a worker that joined late is looked at here.

    Returns
    -------
    Fields of an :class:`~auditlib.worker.Outcome`.
    """
    from distributed import Reschedule, get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def say(pool: str, stage: str, text: str) -> None:
        worker.log_event(topic(run), {"pool": pool, "stage": stage, "text": text})

    mine = asyncio.run(look_round(files))
    if wrong := difference(mine, expected):
        wrong = f"{wrong}. Mend: start the workers from the same environment and clone as the client"
    elif mine["unseen"]:
        wrong = f"it {mine['unseen']}. Mend: put params, data and outputs on a file system that all machines share"
    if wrong:
        return asdict(Outcome(pool, MISTAKE, f"worker {worker.address} on {mine['host']}: {wrong}"))
    worker.log_event(topic(run), {"pool": pool, "started": mine["host"]})
    crew, ended, gone = Crew(say, cwd=Path(job["root"])), threading.Event(), []

    def watch() -> None:
        while not ended.wait(LOOK):
            if why := _unwanted(worker, key):
                gone.append(why)
                crew.stop()
                return

    _crews.setdefault(run, set()).add(crew)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        outcome = crew.work(Job(**job))
    finally:
        ended.set()
        watcher.join()
        _crews[run].discard(crew)
        if not _crews[run]:
            _crews.pop(run, None)
    if gone:  # cut short: nothing that another worker's run of this pool should be taken for
        raise Reschedule
    return asdict(outcome)


def _unwanted(worker: Any, key: Any) -> str:
    """Why a pool that runs here must stop: its client has cancelled it or is gone, or this worker is to end."""
    if worker.status.name not in ("running", "paused", "init"):
        return "closing"
    task = worker.state.tasks.get(key)
    return "cancelled" if task is None or task.state == "cancelled" else ""


async def wait_ended(run: str, seconds: float) -> int:
    """Wait until no pool of a run works in this process; how many are left."""
    until = time.monotonic() + seconds
    while _crews.get(run) and time.monotonic() < until:
        await asyncio.sleep(0.1)
    return len(_crews.get(run, ()))
