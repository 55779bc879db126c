"""How a capability's requests reach their endpoints: a function from requests to replies, kept in the pool's store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from auditlib.calls import Reply, Request
from auditlib.inference.runner import plain_line
from auditlib.inference.several import ask_several
from auditlib.inference.shared import client_at
from auditlib.inference.store import Store
from auditlib.params import ServedModel
from auditlib.paths import RunPaths


def asker(
    models: Sequence[ServedModel],
    paths: RunPaths,
    *,
    base_url: str | None = None,
    api_key_env: str = "OPENAI_API_KEY",
    timeout: float = 300.0,
    **pace: Any,
) -> Callable[[list[Request]], list[Reply]] | None:
    """A function that sends requests to some models and gives their outcomes; None when no model is named.

    Parameters
    ----------
    models : each at its own ``base_url`` or ``base_urls``, else at the common one.
    paths : of the pool; answers are kept in ``answers.sqlite``, and what it holds is not asked again.
    pace : ``concurrency``, ``rpm``, ``tpm``, ``max_attempts`` of :func:`auditlib.inference.runner.run`.

    Raises
    ------
    AuditError
        The environment variable of the key is not set, for an endpoint that is not on this machine.
    """
    if not models:
        return None
    clients = {
        m.name: client_at(
            [*m.base_urls] or [m.base_url or base_url],
            say=print,
            api_key_env=api_key_env,
            timeout=timeout,
            served_name=m.served_as,
        )
        for m in models
    }

    def ask(requests: list[Request]) -> list[Reply]:
        with Store(paths.answers) as store:
            return ask_several(requests, clients, store, say=lambda model: plain_line, **pace)

    return ask
