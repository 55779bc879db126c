"""The jobs of a run on a dask cluster: one task a pool, files on a file system that all machines share.

Head node, each worker node, and the run, all from the same clone and environment (``pip install -e '.[cluster]'``)::

    dask scheduler --scheduler-file shared/scheduler.json
    dask worker --scheduler-file shared/scheduler.json --nworkers 1 --nthreads 1 [--resources gpu=1]
    auditlib run params/*.yaml --scheduler-file shared/scheduler.json

A worker's threads are the pools it runs at a time. A pool whose stage loads a model with vLLM goes only to workers
that offer the resource ``gpu``, as many of it as the model is spread over. When a worker is lost its pool starts again
on another one, where finished stages are fresh. Whoever can reach a dask scheduler can run code on its workers: keep
it inside the cluster's own network.
"""

from __future__ import annotations

import json
import logging
import secrets
import socket
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib import cluster_tasks as tasks
from auditlib.cluster_run import ClusterRun, Told, offers_of, plans_of
from auditlib.crew import Say, Standing
from auditlib.errors import AuditError
from auditlib.freshness import file_hash
from auditlib.worker import Job, Outcome

if TYPE_CHECKING:
    from distributed import Client

#: seconds to reach the scheduler, and to wait for a first worker
CONNECT, FIRST_WORKER = 15.0, 300.0


@dataclass(frozen=True)
class Cluster:
    """Where a scheduler is: its address, or the file that it writes it to."""

    address: str | None = None
    file: Path | None = None

    def resolved(self) -> str:
        """The address.

        Raises
        ------
        AuditError
            The scheduler file is absent, or holds no address.
        """
        if self.file is None:
            return str(self.address)
        mend = "give the file that 'dask scheduler --scheduler-file FILE' writes, while the scheduler runs"
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))["address"]
        except FileNotFoundError:
            raise AuditError("there is no such scheduler file", file=self.file, mend=mend) from None
        except (ValueError, KeyError, TypeError):
            raise AuditError("this is no scheduler file", file=self.file, mend=mend) from None
        return str(found)

    @property
    def words(self) -> str:
        """How a worker is told where the scheduler is."""
        return f"--scheduler-file {self.file}" if self.file else str(self.address)


def run_jobs(
    jobs: Sequence[Job], cluster: Cluster, *, keep_going: bool, say: Say, standing: Standing
) -> dict[int, Outcome]:
    """Run jobs as tasks of a dask cluster, one a pool.

    Parameters
    ----------
    jobs, keep_going, say : as of :func:`auditlib.pipeline.run`.
    standing : told of starts and ends.

    Returns
    -------
    Outcomes by place in ``jobs``.

    Raises
    ------
    AuditError
        The package ``distributed`` is not installed, the scheduler cannot be reached or was lost, no worker joined, or
        a worker has other versions or code, or does not see the project or the outputs folder.
    """
    with connected(cluster) as client, _token(jobs) as token:
        offers = _workers(client, cluster, say)
        mine = tasks.facts()
        _same_everywhere(client, mine, {jobs[0].root: "", **token})
        told = Told(say, standing)
        run = ClusterRun(client, plans_of(jobs, mine, token), told, keep_going, cluster.words)
        try:
            return run.follow(offers)
        except BaseException:
            run.stop()
            raise


@contextmanager
def connected(cluster: Cluster) -> Iterator[Client]:
    """A client of the scheduler, closed after the block."""
    try:
        from distributed import Client
    except ImportError:
        raise AuditError("running on a cluster needs the package 'distributed', which is not installed",
                         mend="install the extra: pip install 'auditlib[cluster]'") from None  # fmt: skip
    address = cluster.resolved()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said by this module, in a line
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions that differ: they are compared here
        try:
            _probe(address)
            client = Client(address, timeout=CONNECT, set_as_default=False, name="auditlib")
        except (OSError, OverflowError, ValueError, TypeError, RuntimeError) as e:
            said = " ".join(str(e).split()) or type(e).__name__
            raise AuditError(f"no dask scheduler answers at {address} ({said[:200]})",
                             mend="see that 'dask scheduler' runs there and give its address, or its file with "
                             "--scheduler-file") from None  # fmt: skip
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=2)


def _probe(address: str) -> None:
    """A scheduler speaks first. dask's client waits without end for one that does not."""
    scheme, _, place = address.rpartition("://")
    if scheme in ("tls", "ws", "wss"):
        return
    if scheme not in ("", "tcp"):
        raise ValueError(f"{scheme} is no scheme of an address: tcp, tls, ws and wss are")
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError("an address such as tcp://host:8786 is needed")
    with socket.create_connection((host.strip("[]"), int(port)), CONNECT) as link:
        if not link.recv(1):
            raise OSError("it closes the connection")


@contextmanager
def _token(jobs: Sequence[Job]) -> Iterator[dict[str, str]]:
    """A file beside the locks that a worker sees only if its outputs folder is this one; path to SHA-256."""
    outputs = Path(jobs[0].outputs)
    made = [p for p in (outputs / ".locks", outputs) if not p.exists()]
    file = outputs / ".locks" / f"seen-{secrets.token_hex(6)}"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        file.write_text(secrets.token_hex(16), encoding="utf-8")
        yield {str(file): file_hash(file)}
    finally:
        file.unlink(missing_ok=True)
        for folder in made:  # nothing was run: leave no trace
            with suppress(OSError):
                folder.rmdir()


def _workers(client: Client, cluster: Cluster, say: Say) -> dict[str, dict[str, Any]]:
    """Workers of the scheduler; the first may take a moment to join."""
    until, told = time.monotonic() + FIRST_WORKER, False
    try:
        found = offers_of(client)
    except ImportError:
        raise _no_package("the scheduler") from None
    while not found:
        if time.monotonic() > until:
            raise AuditError(f"the scheduler has no worker, also after {FIRST_WORKER:.0f} s",
                             mend=f"start one: dask worker {cluster.words} --nthreads 1")  # fmt: skip
        if not told:
            say("", "", "the scheduler has no worker yet; waiting for one")
            told = True
        time.sleep(0.5)
        found = offers_of(client)
    return found


def _same_everywhere(client: Client, mine: Mapping[str, Any], files: Mapping[str, str]) -> None:
    """Every worker that is there has these versions and this code, and sees these files."""
    for address, theirs in client.run(tasks.look_round, dict(files), on_error="return").items():
        if isinstance(theirs, ImportError | AttributeError):
            raise _no_package(f"worker {address}")
        if isinstance(theirs, OSError):
            continue  # lost meanwhile
        if isinstance(theirs, BaseException):
            raise AuditError(f"worker {address} cannot be asked what it sees ({type(theirs).__name__}: {theirs})",
                             mend="start it from the same environment as the client")  # fmt: skip
        if wrong := tasks.difference(theirs, mine):
            raise AuditError(f"worker {address} on {theirs['host']} differs: {wrong}",
                             mend="start the workers from the same environment and clone as the client")  # fmt: skip
        if theirs["unseen"]:
            raise AuditError(f"worker {address} on {theirs['host']} {theirs['unseen']}",
                             mend="keep the project and --outputs on a file system that all machines share, under the "
                             "same path")  # fmt: skip


def _no_package(who: str) -> AuditError:
    return AuditError(f"{who} runs in an environment without this version of auditlib",
                      mend="start scheduler and workers from the same environment and clone as the client")  # fmt: skip
