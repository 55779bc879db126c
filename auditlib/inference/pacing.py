"""When the next call may go out: permits, one cool-down for all callers, requests and tokens a minute."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from auditlib.calls import Reply, Request
from auditlib.inference.failures import Retry, StopRun

#: seconds; a wait asked for by the server is obeyed up to the second
LONGEST_BACKOFF, LONGEST_WAIT = 60.0, 600.0
#: first guess of a picture's tokens, until replies say what requests cost
_PICTURE_TOKENS = 800


class Pace:
    """Shared by all workers of a run.

    Parameters
    ----------
    concurrency : most calls at a time. A rate limit halves what is used; each round of successes adds one.
    rpm, tpm : requests and tokens a minute that are not exceeded, evenly spread; None sets no limit.
    backoff : seconds; the mean of the first wait is half of it.
    longest_wait : a server that asks for a longer wait ends the run.
    """

    def __init__(
        self,
        concurrency: int,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        backoff: float = 1.0,
        longest_wait: float = LONGEST_WAIT,
    ):
        self.concurrency, self.limit, self.active = concurrency, concurrency, 0
        self.backoff, self.longest_wait = backoff, longest_wait
        self.until = 0.0
        self.stopping = asyncio.Event()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._requests, self._tokens = _Bucket(rpm), _Bucket(tpm)
        self._mean_tokens: float | None = None
        self._successes = self._strikes = 0
        self._halved = float("-inf")
        self._random = random.Random()

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[float]:
        """Wait for a permit, the end of a cool-down and both limits; gives the time of sending."""
        await self._acquire()
        try:
            await self._admitted(request)
            yield asyncio.get_running_loop().time()
        finally:
            self._release()

    def succeeded(self, reply: Reply) -> None:
        """A call got through: widen, and correct what it was taken to cost."""
        self._strikes = 0
        self._successes += 1
        if self._successes >= self.limit:
            self._successes = 0
            self.limit = min(self.limit + 1, self.concurrency)
            self._wake()
        if self._tokens.rate and reply.tokens_in is not None:
            cost = float(reply.tokens_in + (reply.tokens_out or 0))
            self._tokens.pay(cost - self._mean_tokens if self._mean_tokens is not None else 0.0)
            old = self._mean_tokens
            self._mean_tokens = cost if old is None else 0.9 * old + 0.1 * cost

    def failed(self, retry: Retry, attempt: int, sent: float) -> float:
        """Seconds that this request waits before its next attempt; a rate limit makes every caller wait.

        Raises
        ------
        StopRun
            The server asks for a longer wait than is obeyed.
        """
        now = asyncio.get_running_loop().time()
        if retry.after is not None and retry.after > self.longest_wait:
            raise StopRun(
                f"the server asks to wait {retry.after:.0f} s ({retry.why})",
                mend=f"run again later: stored answers are kept; waits of up to {self.longest_wait:g} s are obeyed",
            )
        if not retry.limited:
            return retry.after or self._jitter(attempt)  # a wait of nothing asks for a storm
        # calls sent before the last halving met the same limit: they count once
        if sent >= self._halved:
            self._halved, self._successes = now, 0
            self._strikes += 1
            self.limit = max(1, self.limit // 2)
        wait = retry.after or self._jitter(max(attempt, self._strikes))
        self.until = max(self.until, now + wait)
        return 0.0

    async def pause(self, seconds: float) -> None:
        """Sleep; a stop of the run ends it."""
        if seconds > 0 and not self.stopping.is_set():
            try:
                await asyncio.wait_for(self.stopping.wait(), seconds)
            except TimeoutError:
                return

    def _jitter(self, attempt: int) -> float:
        """Exponential backoff with full jitter."""
        return self._random.uniform(0, min(LONGEST_BACKOFF, self.backoff * 2 ** (attempt - 1)))

    async def _admitted(self, request: Request) -> None:
        loop = asyncio.get_running_loop()
        reserved = False
        while not self.stopping.is_set():
            now = loop.time()
            wait = self.until - now
            if wait <= 0 and not reserved:
                reserved = True
                wait = max(self._requests.take(1.0, now), self._tokens.take(self._guess(request), now))
            if wait <= 0:
                return
            await self.pause(wait)

    def _guess(self, request: Request) -> float:
        if not self._tokens.rate:
            return 0.0
        if self._mean_tokens is not None:
            return self._mean_tokens
        pictures = _PICTURE_TOKENS * len(request.pictures)
        return len(request.text) / 4 + pictures + (request.generation.max_tokens or 0)

    async def _acquire(self) -> None:
        while self.active >= self.limit:
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._wake()
                raise
        self.active += 1

    def _release(self) -> None:
        self.active -= 1
        self._wake()

    def _wake(self) -> None:
        free = self.limit - self.active
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1


class _Bucket:
    """A leaky bucket: what is taken flows off at an even rate a minute."""

    def __init__(self, per_minute: float | None):
        self.rate = per_minute / 60 if per_minute else 0.0
        self._free = 0.0

    def take(self, amount: float, now: float) -> float:
        """Take an amount; seconds until it may be used."""
        if not self.rate:
            return 0.0
        start = max(self._free, now)
        self._free = start + amount / self.rate
        return start - now

    def pay(self, amount: float) -> None:
        """Correct the last amounts by what they cost beyond the guess."""
        if self.rate:
            self._free += amount / self.rate
