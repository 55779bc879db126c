"""Ask several models at once, each at its own endpoint, out of one list of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from auditlib.calls import Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.loops import blocking
from auditlib.inference.runner import Client, Say, run
from auditlib.inference.store import Store


def ask_several(
    requests: Sequence[Request],
    clients: Mapping[str, Client],
    store: Store,
    *,
    say: Callable[[str], Say | None] | None = None,
    **pace: Any,
) -> list[Reply]:
    """The outcome of each request, each model's requests through its own client.

    Parameters
    ----------
    requests : of any of the models. clients : model -> client.
    store : what it holds is not asked again.
    say : gives what is told a model's progress.
    pace : settings of :func:`~auditlib.inference.runner.run`; they hold for each client by itself.

    Returns
    -------
    list of Reply
        In the order of the requests; a call that failed has the outcome ``failed``.

    Raises
    ------
    AuditError
        A model without a client; the first model's reason to stop, when the others are through: their answers are
        stored.
    """
    if lost := sorted({r.model for r in requests} - set(clients)):
        raise AuditError(f"model {lost[0]!r} has no endpoint", mend="name one for each model that is asked")
    # a run closes its client at the end: models that share one are asked in one run
    parts: dict[int, list[Request]] = {}
    for request in requests:
        parts.setdefault(id(clients[request.model]), []).append(request)

    async def everyone() -> list[Any]:
        jobs = []
        for mine in parts.values():
            names = ", ".join(dict.fromkeys(r.model for r in mine))
            jobs.append(run(mine, clients[mine[0].model], store, say=say(names) if say else None, **pace))
        return await asyncio.gather(*jobs, return_exceptions=True)

    for result in blocking(everyone) if parts else ():
        if isinstance(result, BaseException):
            raise result
    return [store.get(r.key) or Reply(r.key, "failed") for r in requests]
