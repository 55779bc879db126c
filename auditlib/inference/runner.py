"""Ask many requests, a few at a time: skip what is stored, try again what may succeed, store before counting."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from auditlib.calls import Reply, Request
from auditlib.inference.failures import Retry, StopRun, scrub
from auditlib.inference.loops import blocking
from auditlib.inference.pacing import LONGEST_WAIT, Pace
from auditlib.inference.store import Store

#: done, total (None: not known), failed, answers a second
Say = Callable[[int, int | None, int, float], None]
#: seconds that calls in flight get to end when the run stops
_GRACE = 5.0


class Client(Protocol):
    """What the runner needs of a client; see :class:`~auditlib.inference.openai_client.OpenAIClient`."""

    async def ask(self, request: Request) -> Reply: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes
    ----------
    outcomes : outcome to number of requests that got it in this run.
    known : requests skipped because their outcome is stored, or because they came twice.
    calls : attempts made. tokens_in, tokens_out : sums of what the server counted. seconds : duration.
    errors : the commonest errors and their numbers, at most five.
    """

    outcomes: dict[str, int]
    known: int
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    errors: tuple[tuple[str, int], ...] = ()

    @property
    def asked(self) -> int:
        return sum(self.outcomes.values())

    @property
    def failed(self) -> int:
        return self.outcomes.get("failed", 0)


async def run(
    requests: Iterable[Request],
    client: Client,
    store: Store,
    *,
    concurrency: int = 16,
    max_attempts: int = 6,
    rpm: float | None = None,
    tpm: float | None = None,
    say: Say | None = None,
    every: float = 5.0,
    total: int | None = None,
    backoff: float = 1.0,
    longest_wait: float = LONGEST_WAIT,
    give_up_after: int | None = 20,
) -> Summary:
    """Ask every request whose outcome is not stored.

    Parameters
    ----------
    requests : read one by one, never held together.
    client, store : who answers; where each outcome is written before it counts.
    concurrency : most calls at a time, and so most pictures in memory.
    max_attempts : most calls for one request in this run; then it is ``failed`` and a later run asks again.
    rpm, tpm : limits a minute to keep below.
    say, every, total : told the state about every ``every`` seconds and at the end; see :func:`plain_line`.
    backoff, longest_wait : see :class:`~auditlib.inference.pacing.Pace`.
    give_up_after : that many requests failed in a row, or the first that many of a model and condition all refused,
        end the run; None never does.

    Raises
    ------
    AuditError
        No further request can succeed; what was answered is stored. The message is that of the first cause.
    """
    if concurrency < 1 or max_attempts < 1:
        raise ValueError("concurrency and max_attempts are at least 1")
    if total is None and hasattr(requests, "__len__"):
        total = len(requests)  # type: ignore[arg-type]
    pace = Pace(concurrency, rpm=rpm, tpm=tpm, backoff=backoff, longest_wait=longest_wait)
    job = _Job(iter(requests), client, store, pace, max_attempts, give_up_after)
    workers = [asyncio.create_task(job.work()) for _ in range(concurrency)]
    async with _telling(job, say, every, total):
        try:
            await _finished(workers, pace)
        finally:
            for w in workers:
                w.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            job.refused.write()
            with contextlib.suppress(Exception):
                await client.close()
    if job.stop is not None:
        raise job.stop
    return job.summary()


def run_blocking(requests: Iterable[Request], client: Client, store: Store, **settings: Any) -> Summary:
    """:func:`run` from ordinary code, also where an event loop runs already (notebooks)."""
    return blocking(lambda: run(requests, client, store, **settings))


def plain_line(done: int, total: int | None, failed: int, rate: float) -> None:
    """Print one line: bars that redraw themselves do not survive a notebook run by papermill."""
    whole = f" of {total:,}" if total is not None else ""
    left = f", about {(total - done) / rate:,.0f} s left" if total is not None and rate > 0 and total > done else ""
    print(f"{done:,}{whole} requests done, {failed:,} failed, {rate:.1f} answers a second{left}", flush=True)


async def answer(client: Client, request: Request, pace: Pace, max_attempts: int = 6) -> Reply | None:
    """The final outcome of one request; None when the run stops first."""
    for attempt in range(1, max_attempts + 1):
        async with pace.turn(request) as sent:
            if pace.stopping.is_set():
                return None
            try:
                reply = await client.ask(request)
            except Retry as e:
                wait, error = pace.failed(e, attempt, sent), e.why
            else:
                pace.succeeded(reply)
                return replace(reply, attempts=attempt)
        if attempt < max_attempts:
            await pace.pause(wait)
    return Reply(request.key, "failed", attempts=max_attempts, error=scrub(error))


@dataclass
class _Job:
    """The state that the workers of one run share."""

    requests: Iterator[Request]
    client: Client
    store: Store
    pace: Pace
    max_attempts: int
    give_up_after: int | None
    stop: Exception | None = None
    done: int = 0
    known: int = 0
    calls: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    in_a_row: int = 0
    in_flight: set[str] = field(default_factory=set)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.refused = Refused(self.store)

    async def work(self) -> None:
        """Take requests until there are none left; the first error stops all workers."""
        try:
            seen = 0
            for request in self.requests:
                if self.stop is not None:
                    return
                if request.key in self.in_flight or request.key in self.store:
                    self.known += 1
                    self.done += 1
                    seen += 1
                    if seen % 64 == 0:  # a long resume leaves the loop free for calls and for progress
                        await asyncio.sleep(0)
                    continue
                self.in_flight.add(request.key)
                try:
                    reply = await answer(self.client, request, self.pace, self.max_attempts)
                    if reply is None:
                        return
                    self.take(request, reply)
                finally:
                    self.in_flight.discard(request.key)
        except Exception as e:
            if self.stop is None:
                self.stop = e
            self.pace.stopping.set()

    def take(self, request: Request, reply: Reply) -> None:
        """Store an outcome, then count it."""
        if not self.refused.keep(request, reply, self.give_up_after):
            self.store.put(request, reply)
        self.done += 1
        self.calls += reply.attempts
        self.outcomes[reply.outcome] += 1
        self.tokens["in"] += reply.tokens_in or 0
        self.tokens["out"] += reply.tokens_out or 0
        if reply.error and (reply.error in self.errors or len(self.errors) < 1000):
            self.errors[reply.error] += 1
        self.in_a_row = self.in_a_row + 1 if reply.outcome == "failed" else 0
        if self.give_up_after and self.in_a_row >= self.give_up_after:
            raise StopRun(
                f"{self.in_a_row} requests in a row failed, each after {self.max_attempts} attempts ({reply.error})",
                mend="see that the endpoint is up, then run again: stored answers are kept",
            )

    def summary(self) -> Summary:
        return Summary(
            outcomes=dict(sorted(self.outcomes.items())),
            known=self.known,
            calls=self.calls,
            tokens_in=self.tokens["in"],
            tokens_out=self.tokens["out"],
            seconds=time.monotonic() - self.started,
            errors=tuple(self.errors.most_common(5)),
        )


class Refused:
    """Refusals of a model and condition that has no other outcome yet: they may all be one mistake in the settings.

    They are stored with the first other outcome or at the end of the run. When nothing but refusals comes, the run
    stops and they are not stored, so that the mended run asks again.
    """

    def __init__(self, store: Store):
        self._store = store
        self._held: dict[tuple[str, str], list[tuple[Request, Reply]] | None] = {}
        self._stopped: set[tuple[str, str]] = set()

    def keep(self, request: Request, reply: Reply, most: int | None) -> bool:
        """Hold a reply back; False when it is to be stored now."""
        place = (request.model, request.condition)
        held = self._held.setdefault(place, [])
        if held is None or not most or reply.outcome == "failed":
            return False
        if reply.outcome != "refused_request":
            self._held[place] = None
            for earlier in held:
                self._store.put(*earlier)
            return False
        held.append((request, reply))
        if len(held) > most:  # calls that were in flight when the run stopped
            held.pop()
        elif len(held) == most:
            self._stopped.add(place)
            raise StopRun(
                f"the endpoint refused each of the first {len(held)} requests of model {request.model!r}, "
                f"condition {request.condition} ({reply.error})",
                mend="mend what it says, in the generation settings or the server's, then run again",
            )
        return True

    def write(self) -> None:
        for place, held in self._held.items():
            for earlier in held or () if place not in self._stopped else ():
                self._store.put(*earlier)
        self._held.clear()


async def _finished(workers: list[asyncio.Task[None]], pace: Pace) -> None:
    """Wait for all workers; after a stop, calls in flight get a moment."""
    stopped = asyncio.create_task(pace.stopping.wait())
    left = set(workers)
    try:
        while left and not stopped.done():
            await asyncio.wait({*left, stopped}, return_when=asyncio.FIRST_COMPLETED)
            left = {w for w in left if not w.done()}
        if left:
            await asyncio.wait(left, timeout=_GRACE)
    finally:
        stopped.cancel()


@contextlib.asynccontextmanager
async def _telling(job: _Job, say: Say | None, every: float, total: int | None) -> AsyncIterator[None]:
    """Tell the state now and then, and once at the end."""

    def tell() -> None:
        seconds = max(time.monotonic() - job.started, 1e-9)
        say(job.done, total, job.outcomes["failed"], (job.done - job.known) / seconds)

    async def ticking() -> None:
        before = -1
        while True:
            await asyncio.sleep(every)
            if job.done != before:
                before = job.done
                tell()

    if say is None:
        yield
        return
    ticker = asyncio.create_task(ticking())
    try:
        yield
    finally:
        ticker.cancel()
        tell()
