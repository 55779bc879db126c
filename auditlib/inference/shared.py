"""One client for several endpoints that serve the same model: they share one list of requests."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from auditlib.calls import Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.failures import Retry, StopRun
from auditlib.inference.openai_client import OpenAIClient
from auditlib.inference.runner import Client

#: seconds that an endpoint rests after a failed call: doubled with each in a row, up to the second
_REST, _LONGEST = 1.0, 120.0
#: failures in a row after which it is said that an endpoint does not answer
_DOWN = 3


@dataclass
class _Endpoint:
    """What is known of one endpoint."""

    number: int
    client: Client
    active: int = 0
    failures: int = 0
    until: float = 0.0
    out: StopRun | None = None


class SharedClient:
    """Asks the endpoint with the fewest calls in flight; one that fails rests, one that cannot serve is left out.

    A request that failed at one endpoint is asked again by the runner, and goes to another one. A rate limit makes
    only its own endpoint wait.

    Parameters
    ----------
    clients : one for each endpoint, in the order of the params.
    say : told when an endpoint is left out, does not answer, or answers again.
    """

    def __init__(self, clients: Sequence[Client], *, say: Callable[[str], None] | None = None):
        if not clients:
            raise ValueError("at least one client is needed")
        self.members = tuple(clients)
        self._say = say or (lambda line: None)
        self._endpoints = [_Endpoint(i, c) for i, c in enumerate(clients, start=1)]

    async def ask(self, request: Request, *, listed: bool = False) -> Reply:
        """One attempt at one endpoint.

        Raises
        ------
        Retry
            The call failed, or all endpoints rest.
        StopRun
            No endpoint is left; the reason of the last one.
        """
        chosen = self._choose()
        chosen.active += 1
        try:
            reply = await (chosen.client.ask(request, listed=True) if listed else chosen.client.ask(request))  # type: ignore[call-arg]
        except Retry as e:
            self._failed(chosen, e)
            raise Retry(f"endpoint {chosen.number}: {e.why}", after=None if e.limited else e.after) from None
        except StopRun as e:
            chosen.out = e
            if all(p.out for p in self._endpoints):
                raise
            self._say(f"endpoint {chosen.number} of {len(self._endpoints)} is left out: {e}")
            raise Retry(f"endpoint {chosen.number}: {e}", after=0.01) from None
        finally:
            chosen.active -= 1
        if chosen.failures >= _DOWN:
            self._say(f"endpoint {chosen.number} of {len(self._endpoints)} answers again")
        chosen.failures = 0
        return reply

    async def close(self) -> None:
        """Close all; a later call opens them again."""
        with contextlib.suppress(Exception):
            await asyncio.gather(*(c.close() for c in self.members), return_exceptions=True)

    def _choose(self) -> _Endpoint:
        now = time.monotonic()
        left = [p for p in self._endpoints if p.out is None]
        if not left:
            raise next(p.out for p in self._endpoints if p.out)
        # one that failed last time is tried with a single call
        free = [p for p in left if p.until <= now and not (p.failures and p.active)]
        if free:
            return min(free, key=lambda p: (p.active, p.number))
        # no failure of this request: wait for the first endpoint that may be tried
        wait = max(0.05, min(p.until for p in left) - now)
        raise Retry("all endpoints of the model rest after failures", after=wait, limited=True)

    def _failed(self, endpoint: _Endpoint, error: Retry) -> None:
        if not error.limited:
            endpoint.failures += 1
            if endpoint.failures == _DOWN:
                self._say(f"endpoint {endpoint.number} of {len(self._endpoints)} does not answer ({error.why}); "
                          "the others go on")  # fmt: skip
        rest = _REST * 2 ** (max(endpoint.failures, 1) - 1)
        wait = error.after if error.after is not None else rest
        endpoint.until = time.monotonic() + min(max(wait, 0.0) if error.limited else max(wait, rest), _LONGEST)


def client_at(addresses: Sequence[str | None], *, say: Callable[[str], None] | None = None, **settings: Any) -> Client:
    """A client of one endpoint, or of several that share the requests.

    Parameters
    ----------
    addresses, settings : of :class:`~auditlib.inference.openai_client.OpenAIClient`.
    """
    clients = [OpenAIClient(url, **settings) for url in addresses]
    return SharedClient(clients, say=say) if len(clients) > 1 else clients[0]


def members_of(client: Client) -> tuple[Client, ...]:
    """The clients behind a client, one for each endpoint."""
    return client.members if isinstance(client, SharedClient) else (client,)


def check_each(client: Client, check: Callable[[Client], object]) -> list[tuple[int, object | AuditError]]:
    """Look at each endpoint of a model by itself.

    Returns
    -------
    Number of the endpoint and what ``check`` gave, or the error it raised.

    Raises
    ------
    AuditError
        That of the first endpoint, where none passed.
    """
    found: list[tuple[int, object | AuditError]] = []
    for number, member in enumerate(members_of(client), start=1):
        try:
            found.append((number, check(member)))
        except AuditError as e:
            found.append((number, e))
    if all(isinstance(r, AuditError) for _, r in found):
        raise found[0][1]  # type: ignore[misc]
    return found
