"""One call to an OpenAI-compatible endpoint: the body sent, the reply read, the error classed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from typing import Any

from auditlib.calls import Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.chat import LIMIT_NAMES, choice_of, reply_of, request_body
from auditlib.inference.failures import Retry, StopRun, error_of, judge_error, scrub

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
        self._limit_name = LIMIT_NAMES[0]
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
        body = await request_body(request, served_name=self.served_name, limit_name=self._limit_name, listed=listed)
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
            elif not choice_of(said):
                raise Retry("an answer without choices")
            elif choice_of(said).get("error"):
                raise Retry(scrub(error_of(choice_of(said)["error"])[0], self._secrets))
            else:
                self._took_picture |= bool(request.pictures)
                return reply_of(request, said, latency=latency, secrets=self._secrets)
        elif status < 300:
            raise Retry(f"an answer that is no chat completion ({scrub(said, self._secrets)[:80]})")
        if LIMIT_NAMES[0] in body and status == 400 and LIMIT_NAMES[1] in error_of(said)[0]:
            self._limit_name = LIMIT_NAMES[1]
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


def _root(error: BaseException) -> str:
    """The error and what lies below it: a connection error by itself says nothing."""
    cause = error.__cause__ or error.__context__
    words = f"{type(error).__name__}: {error}"
    return words if cause is None else f"{words} ({type(cause).__name__}: {cause})"
