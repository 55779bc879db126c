"""The tasks of one run on a dask cluster: handed in, followed, given up where no worker can take them, stopped."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib import cluster_tasks as tasks
from auditlib.crew import GRACE, Say, Standing
from auditlib.errors import AuditError
from auditlib.freshness import file_hash, files_named
from auditlib.nb import start
from auditlib.params import BLIND_RUN
from auditlib.worker import FAILED, MISTAKE, Job, Outcome, look

if TYPE_CHECKING:
    from distributed import Client, Future

#: seconds until a pool that no worker can take any more is given up; between two looks at that
LOST, LOOK = 60.0, 5.0
#: seconds that a restarted pool waits for what is left of its lost worker to end
PATIENCE = 60.0
#: resource that workers with a GPU offer
GPU = "gpu"

Offers = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class PoolTask:
    """One pool as it travels: the arguments of :func:`~auditlib.cluster_tasks.run_pool_here`, and what it needs."""

    job: Job
    pool: str
    files: dict[str, str]
    expected: dict[str, Any]
    needs: dict[str, int]


@dataclass
class Told:
    """Who is told what happens, and on which machine each pool started last."""

    say: Say
    standing: Standing
    hosts: dict[str, str] = field(default_factory=dict)

    def heard(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """An event that a worker sent."""
        said = event[1]
        if "started" not in said:
            self.say(said["pool"], said["stage"], said["text"])
            return
        pool, host = said["pool"], said["started"]
        self.say(pool, "worker", f"lost; started again on {host}" if pool in self.hosts else f"started on {host}")
        self.hosts[pool] = host
        self.standing.started(pool)


def needs(job: Job) -> dict[str, int]:
    """Resources that a pool's worker must offer: ``gpu`` where a stage that is to run loads a model with vLLM."""
    inference = start(job.params, job.outputs, job.overrides, replace=True).params.inference
    if inference is None or inference.client != "vllm":
        return {}
    try:
        asks = any(p.why and p.stage == BLIND_RUN for p in look(job).plans)
    except (AuditError, OSError):
        return {}  # the pool will end with that mistake, wherever it runs
    return {GPU: inference.devices} if asks else {}


def plans_of(jobs: Sequence[Job], mine: Mapping[str, Any], token: Mapping[str, str]) -> list[PoolTask]:
    """A task for each job; its files are the paths of its params that are seen here, the project and a token."""
    out = []
    for job in jobs:
        params, paths, _ = start(job.params, job.outputs, job.overrides, replace=True)
        data = {str(p): "" for p in files_named(params.model_dump(mode="python")) if p.exists()}
        files = {job.root: "", **token, job.params: file_hash(Path(job.params)), **data}
        out.append(PoolTask(replace(job, patience=PATIENCE), paths.pool, files, dict(mine), needs(job)))
    return out


def offers_of(client: Client) -> dict[str, dict[str, Any]]:
    """Workers by address: threads and resources."""
    return client.run_on_scheduler(tasks.workers_of)


class ClusterRun:
    """The tasks of one run, and what became of them.

    Parameters
    ----------
    scheduler : how a worker is told where the scheduler is.
    """

    def __init__(self, client: Client, plans: Sequence[PoolTask], told: Told, keep_going: bool, scheduler: str):
        self.client, self.plans, self.told = client, plans, told
        self.keep_going, self.scheduler = keep_going, scheduler
        self.name = secrets.token_hex(4)
        self.pending: dict[Future, int] = {}
        self.outcomes: dict[int, Outcome] = {}
        self._since: dict[int, float] = {}

    def follow(self, offers: Offers) -> dict[int, Outcome]:
        """Hand the pools in and wait for their ends; outcomes by place.

        Raises
        ------
        AuditError
            The scheduler was lost.
        """
        try:
            return self._follow(offers)
        except AuditError:
            raise
        except (Exception, asyncio.CancelledError) as e:  # dask's own, of many classes, once its scheduler is gone
            if isinstance(e, OSError | asyncio.CancelledError) or self.client.status != "running":
                raise _lost() from None
            raise

    def _follow(self, offers: Offers) -> dict[int, Outcome]:
        self.client.subscribe_topic(tasks.topic(self.name), self.told.heard)
        for i, plan in enumerate(self.plans):
            if not _fits(plan, offers):
                self._end(i, Outcome(plan.pool, MISTAKE, self._refusal(plan, offers)))
        left = [i for i in range(len(self.plans)) if i not in self.outcomes]
        # a worker would begin the next pool before it could be taken back: hand in what can begin at once
        most = len(left) if self.keep_going else sum(o["threads"] for o in offers.values())
        looked = time.monotonic()
        while self.pending or (left and not self._closed):
            while left and len(self.pending) < most and not self._closed:
                self._submit(i := left.pop(0), self.plans[i])
            time.sleep(0.1)
            if self.client.status != "running":
                raise _lost()
            for future in [f for f in self.pending if f.done()]:
                i = self.pending.pop(future)
                self._end(i, _outcome(future, self.plans[i].pool))
            if time.monotonic() - looked > LOOK:
                looked = time.monotonic()
                self._give_up()
        return self.outcomes

    def stop(self) -> None:
        """Cancel all tasks and wait for the pools to end; their workers kill what does not."""
        if self.client.status != "running":
            return
        with suppress(Exception, asyncio.CancelledError):
            self.client.cancel(list(self.pending), force=True)
            self.client.run(tasks.wait_ended, self.name, GRACE + 4, on_error="ignore")

    def _submit(self, i: int, plan: PoolTask) -> None:
        future = self.client.submit(
            tasks.run_pool_here, vars(plan.job), plan.pool, self.name, plan.files, plan.expected,
            key=f"auditlib-{self.name}-{plan.pool}", pure=False, priority=-i, resources=plan.needs or None,
        )  # fmt: skip
        self.pending[future] = i

    @property
    def _closed(self) -> bool:
        return not self.keep_going and any(o.code for o in self.outcomes.values())

    def _end(self, i: int, outcome: Outcome) -> None:
        """Note how a pool ended, and say so."""
        self.outcomes[i] = outcome
        if outcome.code:
            self.told.say(outcome.pool, "", outcome.error)
        self.told.standing.ended(outcome.pool)

    def _give_up(self) -> None:
        """End the wait of pools that no worker can take since a while: their last worker has gone."""
        offers, now = offers_of(self.client), time.monotonic()
        for future, i in list(self.pending.items()):
            if _fits(self.plans[i], offers):
                self._since.pop(i, None)
            elif now - self._since.setdefault(i, now) > LOST:
                del self.pending[future]
                future.cancel()
                self._end(i, Outcome(self.plans[i].pool, MISTAKE, self._refusal(self.plans[i], offers)))

    def _refusal(self, plan: PoolTask, offers: Offers) -> str:
        tags = " ".join(f"{name}={n}" for name, n in plan.needs.items())
        run = f"dask worker {self.scheduler} --nthreads 1" + (f" --resources {tags}" if tags else "")
        if not tags:
            return f"no worker is left. Mend: start one: {run}; then run it again"
        return (f"its model is loaded with vLLM, which needs a worker tagged {tags}, and none of {len(offers)} offers "
                f"that. Mend: start one: {run}; then run it again")  # fmt: skip


def _fits(plan: PoolTask, offers: Offers) -> bool:
    return any(all(o["resources"].get(name, 0) >= n for name, n in plan.needs.items()) for o in offers.values())


def _outcome(future: Future, pool: str) -> Outcome:
    """What a task that has ended says of its pool."""
    if future.status == "finished":
        told = future.result()
        return Outcome(**told | {"ran": tuple(told["ran"])})
    if future.status != "error":  # lost or cancelled, and not by this run
        raise _lost()
    error = future.exception()
    if type(error).__name__ == "KilledWorker":
        return Outcome(pool, FAILED, "each worker that it was given to was lost: out of memory?")
    return Outcome(pool, FAILED, f"its task failed ({type(error).__name__}: {' '.join(str(error).split())})")


def _lost() -> AuditError:
    return AuditError("the scheduler was lost; pools that were running have been stopped",
                      mend="start it and its workers again, then run again: finished stages are kept")  # fmt: skip
