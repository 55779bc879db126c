"""A local OpenAI-compatible server that plays back the recorded replies of an embedded pool.

A prompt is known by the model, its text (question and options as the benchmark shows them) and the SHA-256 of its
picture: the picture tells apart the items that share question and options. Items whose prompts are equal without their
pictures have equal recorded replies, so the text alone decides there.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from auditlib.errors import AuditError

#: (model, prompt with blanks folded, hash of the picture or "") -> reply
Recorded = Mapping[tuple[str, str, str], str]
#: what a picture counts, beside one token a word
PICTURE_TOKENS = 64
_LONGEST_HEAD, _LONGEST_BODY = 64 * 1024, 64 * 1024 * 1024


class _Refused(Exception):
    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


@contextlib.contextmanager
def replay(pool: str) -> Iterator[str]:
    """Serve the recorded replies of an embedded pool; gives the base URL, and stops with the block.

    Parameters
    ----------
    pool : its name; ``tinysee`` is the one whose pictures are known.

    Raises
    ------
    AuditError
        The pool has no recorded replies to pictures, or no local port is free.

    Notes
    -----
    Prompt tokens are counted as one for each word and :data:`PICTURE_TOKENS` for each picture; log-probabilities are
    never given. A prompt that was not recorded gets 404: nothing is made up.
    """
    server = _Server(recorded(pool), pool)
    server.start()
    try:
        yield server.base_url
    finally:
        server.stop()


@lru_cache(maxsize=2)
def recorded(pool: str) -> Recorded:
    """Replies of all models to the full and the blind prompts."""
    from auditlib.inference.canary import QUESTION, solid
    from auditlib.inference.items import read_question_items
    from auditlib.inference.prompts import build_prompt
    from auditlib.readers.vlmevalkit import read_vlmevalkit
    from auditlib.synth.embedded import benchmark_of, items_file, materialise

    if (file := items_file(pool)) is None:
        raise AuditError(f"the embedded pool {pool!r} has no recorded pictures to play back", mend="use tinysee")
    runs = read_vlmevalkit(materialise(pool, ""), benchmark_of(pool))
    shown = runs.items.groupby("item")["options"].agg(lambda o: set(map(tuple, o)))
    said = runs.responses.groupby("item")
    found: dict[tuple[str, str, str], str] = {}
    for item in read_question_items(file):
        # the toolkit leaves out options such as "None": its own prompt is known beside the benchmark's
        texts = {
            folded("\n".join(p for p in build_prompt(replace(item, options=o)).parts if isinstance(p, str)))
            for o in {item.options, *shown.get(item.item, ())}
        }
        for response in said.get_group(item.item).to_dict("records"):
            picture = item.pictures[0].sha256 if response["condition"] == "full" else ""
            for text in texts:
                if (
                    found.setdefault((response["model"], text, picture), response["prediction"])
                    != (response["prediction"])
                ):
                    raise AuditError(f"two replies to one prompt are recorded for {response['model']}")
    for model in set(runs.responses["model"]):  # the small questions before a run
        pictures = {"": "A", solid((220, 20, 20)).sha256: "A", solid((20, 20, 220)).sha256: "B"}
        found |= {(model, folded(QUESTION), picture): letter for picture, letter in pictures.items()}
    return found


def folded(text: str) -> str:
    """A prompt with its blanks and line ends as single blanks."""
    return " ".join(text.split())


class _Server:
    """The server in a thread with its own loop, on this machine's own address only."""

    def __init__(self, replies: Recorded, pool: str):
        self._replies, self._pool = replies, pool
        self._models = sorted({model for model, _, _ in replies})
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._serve, name="replay", daemon=True)
        self.base_url = ""

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            self._thread.join()
            raise AuditError(f"no local server can be opened ({self._error})", mend="allow ports of 127.0.0.1")

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            server = self._loop.run_until_complete(asyncio.start_server(self._talk, "127.0.0.1", 0))
        except OSError as e:
            self._error = e
            self._loop.close()
            self._ready.set()
            return
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            open_calls = asyncio.all_tasks(self._loop)
            for task in open_calls:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*open_calls, return_exceptions=True))
            self._loop.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Calls of one connection, one after the other."""
        ended = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, asyncio.CancelledError)
        with contextlib.suppress(*ended):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
                length = re.search(r"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
                size = int(length.group(1)) if length else 0
                if size > _LONGEST_BODY or len(head) > _LONGEST_HEAD:
                    break
                body = await reader.readexactly(size)
                try:
                    status, said = 200, self._answer(head.split(" ", 2)[1], body)
                except _Refused as e:
                    status, said = e.status, {"error": {"message": str(e), "type": "replay", "code": None}}
                data = json.dumps(said).encode()
                words = {200: "OK", 400: "Bad Request", 404: "Not Found"}
                lines = (f"HTTP/1.1 {status} {words[status]}", "Content-Type: application/json",
                         f"Content-Length: {len(data)}", "", "")  # fmt: skip
                writer.write("\r\n".join(lines).encode() + data)
                await writer.drain()
        writer.close()

    def _answer(self, path: str, body: bytes) -> dict[str, Any]:
        if path.rstrip("/") == "/v1/models":
            return {"object": "list", "data": [{"id": m, "object": "model"} for m in self._models]}
        if path.rstrip("/") != "/v1/chat/completions":
            raise _Refused(404, f"there is no {path[:80]} here, only /v1/chat/completions")
        try:
            asked = json.loads(body)
            model, content = asked["model"], asked["messages"][-1]["content"]
            text, pictures = _parts(content)
        except (ValueError, KeyError, IndexError, TypeError):
            raise _Refused(400, "this is no chat completion request") from None
        if model not in self._models:
            raise _Refused(404, f"no replies of model {model!r} are recorded, only of {', '.join(self._models)}")
        reply = self._replies.get((model, folded(text), "+".join(pictures)))
        if reply is None:
            shown = f"{len(pictures)} picture{'s' if len(pictures) != 1 else ''}" if pictures else "no picture"
            raise _Refused(404, f"pool {self._pool} holds no reply of {model} to this prompt with {shown}: "
                           f"{folded(text)[:80]!r}; replies are played back, none is made up")  # fmt: skip
        words = len(text.split()) + PICTURE_TOKENS * len(pictures), len(reply.split())
        usage = {"prompt_tokens": words[0], "completion_tokens": words[1], "total_tokens": sum(words)}
        message = {"role": "assistant", "content": reply}
        return {
            "id": "replay", "object": "chat.completion", "created": 0, "model": model,
            "system_fingerprint": f"replay-{self._pool}", "usage": usage,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        }  # fmt: skip


def _parts(content: Any) -> tuple[str, list[str]]:
    """Text and hashes of the pictures of a message."""
    if isinstance(content, str):
        return content, []
    texts, pictures = [], []
    for part in content:
        if part["type"] == "text":
            texts.append(part["text"])
        else:
            try:
                encoded = part["image_url"]["url"].partition(";base64,")[2]
                pictures.append(hashlib.sha256(base64.b64decode(encoded, validate=True)).hexdigest())
            except binascii.Error:
                raise ValueError("no base64") from None
    return "\n".join(texts), pictures
