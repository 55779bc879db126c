"""Models that vLLM runs in this process, one at a time: loaded when first asked, freed before the next."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from auditlib.calls import Request
from auditlib.errors import AuditError
from auditlib.inference.runner import Summary
from auditlib.inference.store import Store
from auditlib.inference.vllm_client import VllmClient, load_vllm
from auditlib.params import InferenceParams

#: the model whose weights are loaded, with its settings: a second one would not fit beside it
_loaded: list[tuple[dict[str, Any], VllmClient]] = []


class Offline(Mapping[str, VllmClient]):
    """Clients by the model's name in the pool. Looking one up loads its weights, and frees those of another."""

    def __init__(self, inference: InferenceParams):
        shared = {**inference.engine, **inference.parallel}
        self._settings = {m.name: {"model": m.served_as or m.name} | shared for m in inference.models}
        if addressed := next((m.name for m in inference.models if m.base_url or m.base_urls), None):
            raise AuditError(
                f"model {addressed!r} has a base_url, and client vllm loads models in this process",
                mend="leave the base_url out, or write client: openai",
            )

    def __getitem__(self, name: str) -> VllmClient:
        settings = self._settings[name]
        if not (_loaded and _loaded[0][0] == settings):
            free()
            _loaded.append((settings, VllmClient(**settings)))
        return _loaded[0][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)


@contextlib.contextmanager
def clients_of(inference: InferenceParams, *, keep: bool = False) -> Iterator[Offline]:
    """Clients for a block. ``keep`` leaves the last weights loaded after it, for a block that follows.

    Raises
    ------
    AuditError
        vLLM is not installed, or (when a model is first asked) cannot load it.
    """
    load_vllm()
    try:
        yield Offline(inference)
    except BaseException:
        free()
        raise
    if not keep:
        free()


def run_offline(requests: Iterable[Request], client: Callable[[], VllmClient], store: Store, **told: Any) -> Summary:
    """:meth:`~auditlib.inference.vllm_client.VllmClient.run`, without a model where every answer is stored.

    Parameters
    ----------
    requests : gone through once, a chunk at a time.
    client : gives the model; called at the first request without a stored outcome.
    store, told : as of ``VllmClient.run``.
    """
    known, rest = 0, iter(requests)
    for request in rest:
        if request.key not in store:
            return client().run(chain([request], rest), store, known=known, **told)
        known += 1
    return Summary({}, known, 0, 0, 0, 0.0)


def free() -> None:
    """Give the memory of the loaded model back."""
    while _loaded:
        _loaded.pop()[1].free()
