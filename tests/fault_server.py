"""A local endpoint that misbehaves as a prompt asks: ``<<busy x2>>`` fails twice, then answers; no ``x`` means always.

Standard library only. :class:`FaultServer` serves from a thread of its own; ``peak``, ``calls`` (by prompt) and
``times`` say what came in.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from types import TracebackType

_FAULT = re.compile(r"<<(\w+)(?: x(\d+))?>>")
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many", 500: "Error"}
JSON = "application/json"


def completion(text: str | None = "B", finish: str = "stop", *, usage: bool = True, tokens: int = 7, **message) -> dict:
    """A well-formed chat completion."""
    body = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "served-name", "system_fingerprint": "fp",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text} | message}],
    }  # fmt: skip
    if usage:
        body["usage"] = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
    return body


def error(message: str, code: str | int | None = None) -> dict:
    return {"error": {"message": message, "type": "some_error", "param": None, "code": code}}


def fault(name: str) -> tuple[int, dict[str, str], str | bytes, str]:
    """Status, headers, body and content type of a fault that is an answer."""
    page = "<html><body>Sign in</body></html>"
    answers = {
        "busy": (429, {"Retry-After": "0.05"}, error("slow down"), JSON),
        "busy_ms": (429, {"retry-after-ms": "40"}, error("slow down"), JSON),
        "busy_date": (429, {"Retry-After": formatdate(time.time() + 1, usegmt=True)}, error("slow down"), JSON),
        "busy_long": (429, {"Retry-After": "3600"}, error("slow down"), JSON),
        "busy_silent": (429, {}, error("slow down"), JSON),
        "quota": (429, {"Retry-After": "0.05"}, error("you have no credit", "insufficient_quota"), JSON),
        "broken": (500, {}, error("internal error"), JSON),
        "gateway": (502, {}, "<html><h1>502 Bad Gateway</h1></html>", "text/html"),
        "conflict": (409, {}, error("try again"), JSON),
        "timeout_status": (408, {}, error("took too long"), JSON),
        "bad_json": (200, {}, '{"id": "c", "choices": [{"ind', JSON),
        "no_json": (200, {}, "", JSON),
        "error_200": (200, {}, error("provider is down", 502), JSON),
        "quota_200": (200, {}, error("no credit", "insufficient_quota"), JSON),
        "no_choices": (200, {}, completion() | {"choices": []}, JSON),
        "null_choices": (200, {}, completion() | {"choices": None}, JSON),
        "page": (200, {}, page, "text/html"),
        "string": (200, {}, '"just a string"', JSON),
        "latin1": (200, {}, b'{"choices": "\xff\xfe"', JSON),
        "empty": (200, {}, completion(""), JSON),
        "null": (200, {}, completion(None), JSON),
        "filtered": (200, {}, completion("", "content_filter"), JSON),
        "length": (200, {}, completion("The answer is", "length"), JSON),
        "no_usage": (200, {}, completion(usage=False), JSON),
        "refusal": (200, {}, completion(None, refusal="I cannot help with that."), JSON),
        "parts": (200, {}, completion([{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]},
                                       {"type": "text", "text": "C"}]), JSON),
        "thinking": (200, {}, completion("D", reasoning_content="let me see"), JSON),
        "no_vision": (400, {}, error("served-name is not a multimodal model"), JSON),
        "bad_picture": (400, {}, error("Failed to load image: unsupported image format"), JSON),
        "too_long": (400, {}, error("maximum context length is 2048 tokens " + "x" * 900), JSON),
        "older_name": (400, {}, error("'max_tokens' is not supported, use 'max_completion_tokens'"), JSON),
        "too_large": (413, {}, error("request too large"), JSON),
        "unprocessable": (422, {}, error("bad field"), JSON),
        "azure_filter": (400, {}, error("the prompt was filtered", "content_filter"), JSON),
        "key": (401, {}, error("Incorrect API key provided: {key}. Header was Bearer {key}"), JSON),
        "forbidden": (403, {}, error("no access"), JSON),
        "no_model": (404, {}, error("the model does not exist"), JSON),
        "echo": (500, {}, error("your headers: Authorization: Bearer {key} {key}"), JSON),
        "echo_400": (400, {}, error("unknown field; your headers: Authorization: Bearer {key}"), JSON),
    }  # fmt: skip
    status, headers, body, kind = answers[name]
    return status, headers, json.dumps(body) if isinstance(body, dict) else body, kind


class FaultServer:
    """``with FaultServer() as server: server.url``.

    Parameters
    ----------
    delay : seconds before each answer. vision : pictures are taken. drops_lists : text in list form is lost.
    limit : calls at a time; more get 429. logprobs : log-probabilities are given when asked for.
    newer : the older name of the token limit is refused. reply : (model, prompt, number of pictures) -> what is said.
    """

    def __init__(
        self,
        *,
        delay: float = 0.0,
        vision: bool = True,
        drops_lists: bool = False,
        limit: int | None = None,
        logprobs: bool = True,
        newer: bool = False,
        reply: Callable[[str, str, int], str] | None = None,
    ):
        self.delay, self.vision, self.drops_lists, self.limit, self.logprobs = (
            delay, vision, drops_lists, limit, logprobs)  # fmt: skip
        self.newer, self.reply = newer, reply
        self.calls: Counter[str] = Counter()
        self.bodies: list[dict] = []
        self.times: list[tuple[float, str]] = []
        self.active = self.peak = self.over = 0
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> FaultServer:
        ready = threading.Event()

        def serve() -> None:
            asyncio.set_event_loop(self._loop)
            server = self._loop.run_until_complete(asyncio.start_server(self._connection, "127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            ready.set()
            self._loop.run_forever()
            server.close()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0.01))
            self._loop.close()

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
                length = int(re.search(r"content-length: (\d+)", head, re.IGNORECASE).group(1))
                body = json.loads(await reader.readexactly(length))
                key = re.search(r"authorization: bearer (\S+)", head, re.IGNORECASE)
                self.active += 1
                self.peak = max(self.peak, self.active)
                try:
                    if not await self._answer(body, key.group(1) if key else "", writer):
                        break
                finally:
                    self.active -= 1
        writer.close()

    async def _answer(self, body: dict, key: str, writer: asyncio.StreamWriter) -> bool:
        content = body["messages"][-1]["content"]
        listed = not isinstance(content, str)
        text = " ".join(p["text"] for p in content if p["type"] == "text") if listed else content
        pictures = sum(p["type"] == "image_url" for p in content) if listed else 0
        self.calls[text] += 1
        self.bodies.append(body)
        self.times.append((time.monotonic(), text))
        if self.delay:
            await asyncio.sleep(self.delay)
        named = _FAULT.search(text)
        name = named.group(1) if named and self.calls[text] <= int(named.group(2) or 10**9) else None
        if self.limit is not None and self.active > self.limit:
            name, self.over = "busy", self.over + 1
        if pictures and not self.vision:
            name = "no_vision"
        if self.newer and "max_tokens" in body:
            name = "older_name"
        if name == "hang":
            await asyncio.sleep(3600)
        if name == "reset":
            writer.transport.abort()
            return False
        tokens = 7 if listed and self.drops_lists else len(text.split()) + 6 * pictures
        words = re.findall(r"say (\w+)", text)[-1] if "say " in text else "B"
        good = completion(self.reply(body["model"], text, pictures) if self.reply else words, tokens=tokens)
        if self.logprobs and body.get("logprobs"):
            top = [{"token": t, "logprob": v} for t, v in (("B", -0.5), (" B", -2.0), ("A", -1.5), ("x", -4.0))]
            good["choices"][0]["logprobs"] = {"content": [{"token": "B", "logprob": -0.5, "top_logprobs": top}]}
        if name is None or name == "half":
            status, headers, said, kind = 200, {}, json.dumps(good), JSON
        else:
            status, headers, said, kind = fault(name)
        data = said.replace("{key}", key).encode() if isinstance(said, str) else said
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'X')}", f"Content-Type: {kind}"]
        lines += [f"Content-Length: {len(data)}", *(f"{k}: {v}" for k, v in headers.items())]
        if name == "half":
            data = data[: len(data) // 2]
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        await writer.drain()
        return name != "half"


if __name__ == "__main__":
    with FaultServer() as running:
        print(running.url, flush=True)
        threading.Event().wait()
