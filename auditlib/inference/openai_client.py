"""One call to an OpenAI-compatible endpoint: the body sent, the reply read, the error classed."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import time
from typing import Any

from auditlib.calls import Part, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.failures import Retry, StopRun, error_of, judge_error, scrub
from auditlib.inference.logprobs import letter_logprobs

__all__ = ["OpenAIClient", "Retry", "StopRun"]


class OpenAIClient:
    """Asks an endpoint, one attempt a call; the runner decides about the next attempt.

    Parameters
    ----------
    base_url : of the endpoint; None leaves it to the ``openai`` package.
    api_key_env : name of the environment variable that holds the key.
    timeout : seconds for one attempt, from sending to the last byte.
    served_name : the model's name on the server, where it is not the request's.

    Raises
    ------
    AuditError
        The variable is not set and the endpoint is not on this machine.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key_env: str = "OPENAI_API_KEY",
        timeout: float = 300.0,
        served_name: str | None = None,
    ):
        self.base_url, self.timeout, self.served_name = base_url, timeout, served_name
        self._local = _loopback(base_url)
        self._key = _key(api_key_env, self._local)
        self._secrets = () if self._key == "none" else (self._key,)
        self._limit_name = "max_tokens"
        self._took_picture = False
        self._client: Any = None
        self._create: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"OpenAIClient({scrub(self.base_url, self._secrets)!r})"

    async def ask(self, request: Request, *, listed: bool = False) -> Reply:
        """One attempt.

        Parameters
        ----------
        request : what is asked.
        listed : send text alone as a list of one part too; the canary compares both.

        Raises
        ------
        Retry
            Connection, timeout, rate limit, server error, or an answer that cannot be read.
        StopRun
            No request of the run can succeed.
        """
        body = await self._body(request, listed)
        self._opened()  # a slow import is no slow answer
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout):
                status, said, headers = await self._send(body)
        except TimeoutError:
            raise Retry(f"no answer within {self.timeout:g} s") from None
        latency = time.perf_counter() - start
        if status < 300 and isinstance(said, dict):
            if said.get("error"):
                status = error_of(said)[2] or 500
            elif not _choice(said):
                raise Retry("an answer without choices")
            elif _choice(said).get("error"):
                raise Retry(scrub(error_of(_choice(said)["error"])[0], self._secrets))
            else:
                self._took_picture |= bool(request.pictures)
                return self._reply(request, said, latency)
        elif status < 300:
            raise Retry(f"an answer that is no chat completion ({scrub(said, self._secrets)[:80]})")
        if "max_tokens" in body and status == 400 and "max_completion_tokens" in error_of(said)[0]:
            self._limit_name = "max_completion_tokens"
            return await self.ask(request, listed=listed)
        outcome, error = judge_error(
            status,
            said,
            headers,
            pictures=bool(request.pictures) and not self._took_picture,
            model=body["model"],
            secrets=self._secrets,
        )
        return Reply(request.key, outcome, latency=latency, error=error)

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, loop = self._client, self._loop
        self._client = self._create = self._loop = None
        if client is not None and loop is asyncio.get_running_loop():
            await client.close()

    async def _send(self, body: dict[str, Any]) -> tuple[int, Any, Any]:
        """Status, parsed body (text when it is no JSON) and headers; transport failures as :class:`Retry`."""
        import aiohttp
        import openai

        try:
            raw = await self._opened()(**body)
            return 200, _parsed(raw.http_response.content), raw.http_response.headers
        except openai.APIStatusError as e:
            return e.status_code, _parsed(e.response.content) or e.message, e.response.headers
        except (openai.APIError, aiohttp.ClientError, OSError, ValueError) as e:
            raise Retry(scrub(_root(e), self._secrets)) from None
        except Exception as e:
            # the transport's own errors have no class that both majors of the package share
            if type(e).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2"):
                raise Retry(scrub(_root(e), self._secrets)) from None
            raise

    def _opened(self) -> Any:
        """The call of the running loop's client: connections belong to one loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            import openai

            # no proxy between this machine and itself; certificates are read only where they are used
            plain = self._local and str(self.base_url).lower().startswith("http:")
            transport = openai.DefaultAioHttpClient(timeout=self.timeout, trust_env=not self._local, verify=not plain)
            self._client = openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key,
                timeout=self.timeout,
                max_retries=0,
                http_client=transport,
            )
            self._loop = loop
            self._create = self._client.chat.completions.with_raw_response.create
        return self._create

    async def _body(self, request: Request, listed: bool) -> dict[str, Any]:
        g = request.generation
        messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
        messages.append({"role": "user", "content": await _content(request, listed)})
        body: dict[str, Any] = {"model": self.served_name or request.model, "messages": messages}
        settings = {
            "temperature": g.temperature,
            self._limit_name: g.max_tokens,
            "top_p": g.top_p,
            "seed": g.seed,
            "reasoning_effort": g.reasoning_effort,
        }
        body |= {name: value for name, value in settings.items() if value is not None}
        if g.logprobs:
            body |= {"logprobs": True, "top_logprobs": g.top_logprobs}
        if g.extra:
            body["extra_body"] = dict(g.extra)
        return body

    def _reply(self, request: Request, said: dict[str, Any], latency: float) -> Reply:
        choice = _choice(said)
        message = choice.get("message") if isinstance(choice.get("message"), dict) else {}
        text, thought = _text(message.get("content"))
        text = text or message.get("refusal") or ""
        thought = message.get("reasoning_content") or message.get("reasoning") or thought
        for secret in self._secrets:  # an endpoint that echoes its headers
            text = text.replace(secret, "***") if len(secret) >= 8 else text
        finish = choice.get("finish_reason")
        outcome = {"content_filter": "filtered", "length": "truncated"}.get(finish)
        usage = said.get("usage") if isinstance(said.get("usage"), dict) else {}
        listed = choice.get("logprobs").get("content") if isinstance(choice.get("logprobs"), dict) else None
        g = request.generation
        found = letter_logprobs(listed, request.letters, text, asked=g.top_logprobs) if g.logprobs else None
        return Reply(
            key=request.key,
            outcome=outcome or ("ok" if text.strip() else "empty"),
            text=text,
            reasoning=thought if isinstance(thought, str) else None,
            finish=finish if isinstance(finish, str) else None,
            letter_logprobs=found,
            tokens_in=_count(usage.get("prompt_tokens")),
            tokens_out=_count(usage.get("completion_tokens")),
            latency=latency,
            server_model=_word(said.get("model")),
            fingerprint=_word(said.get("system_fingerprint")),
            created=time.time(),
        )


async def _content(request: Request, listed: bool) -> str | list[dict[str, Any]]:
    if not request.pictures and not listed:
        return request.text
    if not request.pictures:
        return [{"type": "text", "text": request.text}]
    return [await _part(p, request.item) for p in request.parts]


async def _part(part: Part, item: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    try:
        url = await asyncio.to_thread(_data_url, part)
    except (OSError, ValueError) as e:
        raise AuditError(
            f"the picture of item {item!r} cannot be read ({e})", mend="check the item's picture in the data set"
        ) from None
    return {"type": "image_url", "image_url": {"url": url}}


def _data_url(picture: Picture) -> str:
    return f"data:{picture.mime};base64,{base64.b64encode(picture.load()).decode('ascii')}"


def _loopback(base_url: str | None) -> bool:
    from urllib.parse import urlsplit

    host = urlsplit(base_url or "").hostname or ""
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", host) is not None


def _key(variable: str, local: bool) -> str:
    key = os.environ.get(variable, "").strip()
    if not key and local:
        return "none"
    if not key:
        raise AuditError(
            f"the environment variable {variable} holds no key",
            mend=f"set {variable} before the run, or name another variable with api_key_env",
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise AuditError(
            f"the environment variable {variable} holds characters that no key has",
            mend=f"set {variable} to the key alone",
        )
    return key


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")


def _choice(said: dict[str, Any]) -> dict[str, Any]:
    choices = said.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _text(content: Any) -> tuple[str, str | None]:
    """Text and thoughts of a message: a string, or a list of typed parts."""
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return "", None
    parts = [p for p in content if isinstance(p, dict)]
    said = "".join(p["text"] for p in parts if isinstance(p.get("text"), str))
    thoughts = [p["thinking"] for p in parts if p.get("type") == "thinking" and p.get("thinking")]
    return said, "".join(_text(t)[0] for t in thoughts) or None


def _root(error: BaseException) -> str:
    """The error and what lies below it: a connection error by itself says nothing."""
    cause = error.__cause__ or error.__context__
    words = f"{type(error).__name__}: {error}"
    return words if cause is None else f"{words} ({type(cause).__name__}: {cause})"


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
