"""Answers of a model that vLLM runs in this process: many conversations a call, no server, no base64."""

from __future__ import annotations

import asyncio
import gc
import importlib
import io
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from auditlib.calls import Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.failures import Retry, StopRun, judge_error, scrub
from auditlib.inference.logprobs import letter_logprobs
from auditlib.inference.runner import Refused, Say, Summary
from auditlib.inference.store import Store
from auditlib.inference.thoughts import split_thoughts

#: conversations a call; so many pictures are in memory
CHUNK = 256
#: refusals before any other outcome of a model and condition that end the run
_GIVE_UP = 20


class VllmClient:
    """A model loaded by vLLM.

    Parameters
    ----------
    model : name or folder of the weights.
    tensor_parallel_size, pipeline_parallel_size : devices that share a layer, and the layers.
    engine : further settings of ``vllm.LLM``, passed through: ``dtype``, ``max_model_len``, ``limit_mm_per_prompt``.

    Raises
    ------
    AuditError
        vLLM is not installed, or cannot load the model.
    """

    def __init__(self, model: str, *, tensor_parallel_size: int = 1, pipeline_parallel_size: int = 1, **engine: Any):
        self._vllm = load_vllm()
        self.model = model
        self._lock = threading.Lock()
        self._letters: dict[str, list[int] | None] = {}
        self._exact = True
        try:
            self._llm = self._vllm.LLM(
                model=model,
                tensor_parallel_size=tensor_parallel_size,
                pipeline_parallel_size=pipeline_parallel_size,
                **engine,
            )
        except Exception as e:  # its own classes share no base with Python's
            raise AuditError(
                f"vLLM cannot load the model {model!r} ({scrub(e)})",
                mend="check the model's path, the memory, and the settings of the engine",
            ) from None

    def run(
        self,
        requests: Iterable[Request],
        store: Store,
        *,
        chunk: int = CHUNK,
        say: Say | None = None,
        every: float = 5.0,
        total: int | None = None,
        known: int = 0,
    ) -> Summary:
        """Ask every request whose outcome is not stored; each chunk is stored before the next begins.

        Parameters
        ----------
        requests : read a chunk at a time.
        store : where outcomes go.
        chunk : conversations a call.
        say, every, total : as of :func:`~auditlib.inference.runner.run`; told after a chunk, at most every so often.
        known : requests with a stored outcome that the caller has skipped; they count as done.

        Raises
        ------
        AuditError
            No further request can succeed; finished chunks are stored.
        """
        if chunk < 1:
            raise ValueError("chunk is at least 1")
        start = told = time.monotonic()
        outcomes: Counter[str] = Counter()
        errors: Counter[str] = Counter()
        tokens_in = tokens_out = 0
        if total is None and hasattr(requests, "__len__"):
            total = len(requests)  # type: ignore[arg-type]
        refused = Refused(store)
        try:
            for part, skipped in _chunks(requests, store, chunk):
                known += skipped
                replies = self.chat(part)
                _keep(part, replies, store, refused)
                for reply in replies:
                    outcomes[reply.outcome] += 1
                    errors.update([reply.error] if reply.error else [])
                    tokens_in += reply.tokens_in or 0
                    tokens_out += reply.tokens_out or 0
                asked, now = sum(outcomes.values()), time.monotonic()
                if say is not None and now - told >= every:
                    told = now
                    say(asked + known, total, outcomes["failed"], asked / max(now - start, 1e-9))
        finally:
            refused.write()
        seconds = time.monotonic() - start
        asked = sum(outcomes.values())
        if say is not None:
            say(asked + known, total, outcomes["failed"], asked / max(seconds, 1e-9))
        counts = {k: n for k, n in sorted(outcomes.items()) if n}
        return Summary(counts, known, asked, tokens_in, tokens_out, seconds, tuple(errors.most_common(5)))

    def chat(self, requests: Sequence[Request]) -> list[Reply]:
        """Replies in the order of the requests. One that the engine refuses does not spoil the others.

        Raises
        ------
        StopRun
            The model takes no pictures.
        """
        replies: list[Reply] = []
        with self._lock:
            for template, group in groupby(requests, key=_template):
                replies += self._group(list(group), json.loads(template))
        return replies

    async def ask(self, request: Request, *, listed: bool = False) -> Reply:
        """One reply, for the canary and the runner; :meth:`run` is the fast way."""
        return (await asyncio.to_thread(self._one, request, listed))[0]

    async def close(self) -> None:
        """Nothing is open; the weights stay loaded for the next run."""

    def free(self) -> None:
        """End the engine and give its memory back; the client is of no use after it."""
        with self._lock:
            llm, self._llm = self._llm, None
            core = getattr(getattr(llm, "llm_engine", None), "engine_core", None)
            del llm
            if hasattr(core, "shutdown"):
                core.shutdown()
            del core
            gc.collect()  # the engine holds itself in circles

    def _one(self, request: Request, listed: bool) -> list[Reply]:
        with self._lock:
            return self._group([request], json.loads(_template(request)), listed)

    def _group(self, requests: list[Request], template: dict[str, Any], listed: bool = False) -> list[Reply]:
        start = time.perf_counter()
        messages = [_messages(r, listed) for r in requests]
        settings = [self._sampling(r) for r in requests]
        options = {"chat_template_kwargs": template} if template else {}
        try:
            said = self._llm.chat(messages, settings, use_tqdm=False, **options)
        except Exception as e:  # its own classes share no base with Python's
            if len(requests) > 1:  # one bad conversation ends the whole call: look for it in the halves
                half = len(requests) // 2
                return self._group(requests[:half], template) + self._group(requests[half:], template)
            return [_refused(requests[0], e)]
        latency = (time.perf_counter() - start) / len(requests)
        return [self._reply(r, output, latency) for r, output in zip(requests, said, strict=True)]

    def _sampling(self, request: Request) -> Any:
        g = request.generation
        named = {"temperature": g.temperature, "max_tokens": g.max_tokens, "top_p": g.top_p, "seed": g.seed}
        settings = {k: v for k, v in named.items() if v is not None}
        settings |= {k: v for k, v in g.extra if k != "chat_template_kwargs"}
        if g.logprobs and (ids := self._letter_ids(request.letters)) and self._exact:
            try:
                return self._vllm.SamplingParams(**settings, logprob_token_ids=ids)
            except TypeError:
                self._exact = False  # a version that knows the top list only
        if g.logprobs:
            settings["logprobs"] = g.top_logprobs
        try:
            return self._vllm.SamplingParams(**settings)
        except (TypeError, ValueError) as e:
            raise AuditError(
                f"vLLM does not take these generation settings ({scrub(e)})",
                mend="check temperature, max_tokens, top_logprobs and the extra settings",
            ) from None

    def _letter_ids(self, letters: str) -> list[int] | None:
        """Tokens of the letters, also after a blank and small; None where a letter is no single token."""
        if letters not in self._letters:
            tokenizer = self._llm.get_tokenizer()
            found: dict[str, set[int]] = {x: set() for x in letters}
            for x in letters:
                for form in (x, f" {x}", x.lower(), f" {x.lower()}"):
                    ids = tokenizer.encode(form, add_special_tokens=False)
                    if len(ids) == 1 and tokenizer.decode(ids).strip().upper() == x:
                        found[x].add(ids[0])
            every = sorted(set().union(*found.values()))
            self._letters[letters] = every if letters and all(found.values()) else None
        return self._letters[letters]

    def _reply(self, request: Request, output: Any, latency: float) -> Reply:
        said = output.outputs[0]
        text, thought = split_thoughts(said.text or "", getattr(output, "prompt", None))
        finish = said.finish_reason
        outcome = {"length": "truncated", "stop": "ok" if text.strip() else "empty"}.get(finish, "failed")
        g, exact = request.generation, self._exact and self._letter_ids(request.letters) is not None
        found = None
        if g.logprobs and said.logprobs and thought is None:  # else the first token is no answer
            # of named tokens every value is listed: none is cut off
            asked = 0 if exact else g.top_logprobs
            found = letter_logprobs(self._listed(said), request.letters, text, asked=asked)
        return Reply(
            key=request.key,
            outcome=outcome,  # type: ignore[arg-type]
            text=text,
            reasoning=thought,
            finish=finish,
            letter_logprobs=found,
            tokens_in=len(output.prompt_token_ids or ()) or None,
            tokens_out=len(said.token_ids),
            latency=latency,
            server_model=self.model,
            fingerprint=f"vllm {getattr(self._vllm, '__version__', '')}".strip(),
            error=f"the engine ended the reply with {finish!r}" if outcome == "failed" else None,
            created=time.time(),
        )

    def _listed(self, said: Any) -> list[dict[str, Any]]:
        """Tokens and their log-probabilities in the shape of a chat completion."""
        tokenizer = self._llm.get_tokenizer()

        def word(token: int, entry: Any) -> str:
            return entry.decoded_token if entry.decoded_token is not None else tokenizer.decode([token])

        out = []
        for own, entries in zip(said.token_ids, said.logprobs):
            top = [{"token": word(t, e), "logprob": e.logprob} for t, e in entries.items()]
            name = word(own, entries[own]) if own in entries else tokenizer.decode([own])
            value = entries[own].logprob if own in entries else None
            out.append({"token": name, "logprob": value, "top_logprobs": top})
        return out


def load_vllm() -> Any:
    """The module; nothing is loaded with it.

    Raises
    ------
    AuditError
        It is not installed, or broken.
    """
    try:
        module = importlib.import_module("vllm")
        # a folder of that name is no module
        return module if hasattr(module, "LLM") else importlib.import_module("vllm.entrypoints.llm")
    except ImportError as e:
        absent = (e.name or "").partition(".")[0] == "vllm"
        what = "vLLM is not installed" if absent else f"vLLM cannot be imported ({scrub(e)})"
        raise AuditError(what, mend="install auditlib[vllm], or use a server with client: openai") from None


def _chunks(requests: Iterable[Request], store: Store, size: int) -> Iterator[tuple[list[Request], int]]:
    """Chunks of requests without a stored outcome, each once, and how many were skipped on the way."""
    seen: set[str] = set()
    part: list[Request] = []
    skipped = 0
    for request in requests:
        if request.key in seen or request.key in store:
            skipped += 1
            continue
        seen.add(request.key)
        part.append(request)
        if len(part) == size:
            yield part, skipped
            part, skipped = [], 0
    if part or skipped:
        yield part, skipped


def _keep(part: list[Request], replies: list[Reply], store: Store, refused: Refused) -> None:
    """Store a chunk's outcomes, all of them before an error of one ends the run."""
    stop = None
    for request, reply in zip(part, replies):
        try:
            if not refused.keep(request, reply, _GIVE_UP):
                store.put(request, reply)
        except StopRun as e:
            stop = stop or e
    if stop is not None:
        raise stop
    if part and all(reply.outcome == "failed" for reply in replies):
        raise StopRun(
            f"vLLM answered none of {len(part)} conversations ({replies[-1].error})",
            mend="restart the process and run again, with a smaller chunk or less memory for the engine",
        )


def _template(request: Request) -> str:
    """Settings of the chat template, which one call shares, as canonical JSON."""
    settings = dict(dict(request.generation.extra).get("chat_template_kwargs") or {})
    if request.generation.reasoning_effort is not None:
        settings["reasoning_effort"] = request.generation.reasoning_effort
    return json.dumps(settings, sort_keys=True)


def _messages(request: Request, listed: bool) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    content: Any = request.text
    if request.pictures:
        content = [_part(p, request.item) for p in request.parts]
    elif listed:
        content = [{"type": "text", "text": request.text}]
    return [*messages, {"role": "user", "content": content}]


def _part(part: str | Picture, item: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    import PIL.Image

    try:
        with PIL.Image.open(io.BytesIO(part.load())) as image:
            return {"type": "image_pil", "image_pil": _rgb(image)}
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as e:
        raise AuditError(
            f"the picture of item {item!r} cannot be read ({type(e).__name__})",
            mend="check the item's picture in the data set",
        ) from None


def _rgb(image: Any) -> Any:
    """Colours without transparency, on white as a vLLM server does."""
    import PIL.Image

    if image.mode != "RGBA":
        return image.convert("RGB")
    white = PIL.Image.new("RGB", image.size, (255, 255, 255))
    white.paste(image, mask=image.getchannel("A"))
    return white


def _refused(request: Request, error: Exception) -> Reply:
    """The engine's refusal of one conversation, judged as a server's status 400 or 500."""
    bad = isinstance(error, (ValueError, TypeError)) or "VLLMClientError" in {c.__name__ for c in type(error).__mro__}
    status = 400 if bad else 500
    try:
        outcome, said = judge_error(status, str(error), {}, pictures=bool(request.pictures), model=request.model)
    except Retry as e:
        return Reply(request.key, "failed", error=e.why)
    return Reply(request.key, outcome, error=said, created=time.time())
