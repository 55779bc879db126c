"""Three small questions before a run: does the endpoint take what it is sent, and does a picture reach the model?"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from auditlib.calls import Generation, Part, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.failures import scrub
from auditlib.inference.loops import blocking
from auditlib.inference.openai_client import OpenAIClient
from auditlib.inference.pacing import Pace
from auditlib.inference.runner import answer

#: conditions that send pictures
WITH_PICTURES = ("full", "image_only", "blank", "gray", "wrong_image")
#: asked of every endpoint; with a red and a blue picture where pictures are sent
QUESTION = (
    "Question: What is the main colour of the image?\nOptions:\nA. red\nB. blue\nAnswer with the option's letter."
)


@dataclass(frozen=True)
class Check:
    """One row: what was looked at, what was found, and ``ok``, ``warn``, ``fail`` or ``unknown``."""

    name: str
    found: str
    verdict: Literal["ok", "warn", "fail", "unknown"]
    note: str = ""


@dataclass(frozen=True)
class Canary:
    """What the endpoint did with the small questions.

    Attributes
    ----------
    checks : one row each. logprobs : letters' log-probabilities are given; margins are off otherwise.
    """

    model: str
    checks: tuple[Check, ...]
    logprobs: bool

    @property
    def worst(self) -> str:
        order = ("ok", "unknown", "warn", "fail")
        return max((c.verdict for c in self.checks), key=order.index, default="ok")

    def __str__(self) -> str:
        rows = [f"{c.verdict:8}{c.name}: {c.found}{f' ({c.note})' if c.note else ''}" for c in self.checks]
        return "\n".join([f"endpoint of {self.model}", *rows])


def unanswered(model: str, error: AuditError) -> Canary:
    """What is shown of one endpoint of several that did not pass."""
    return Canary(model, (Check("a first short question", "no use of this endpoint", "fail", str(error)),), False)


async def canary(
    client: OpenAIClient,
    model: str,
    *,
    conditions: Iterable[str] = ("blind",),
    generation: Generation | None = None,
    allow_unseen: bool = False,
) -> Canary:
    """Ask two to five short questions and compare what the endpoint counts.

    Parameters
    ----------
    client, model : who is asked. The connections are left open for the run.
    conditions : of the run; pictures are sent only if one of them does.
    generation : of the run; the replies are cut at 16 tokens.
    allow_unseen : go on although a picture changes nothing in the token count.

    Returns
    -------
    Canary
        ``print`` it, or read its checks.

    Raises
    ------
    AuditError
        The endpoint does not answer, takes no images, or loses them without a word.
    """
    pace = Pace(1)
    generation = generation or Generation()
    short = replace(generation, max_tokens=min(generation.max_tokens or 16, 16))

    async def asked(*parts: Part, listed: bool = False) -> Reply:
        request = Request("canary", model, "canary", parts, short, purpose="canary", letters="AB")
        one = _Listed(client) if listed else client
        reply = await answer(one, request, pace, 4)
        if reply is None or reply.outcome == "failed":
            raise AuditError(
                f"the endpoint does not answer a first short question ({reply.error if reply else 'stopped'})",
                mend="see that it is up and that base_url and the model's name are right",
            )
        return reply

    plain = await asked(QUESTION)
    if plain.outcome == "refused_request":
        raise AuditError(
            f"the endpoint refuses a first short question ({plain.error})",
            mend="mend the generation settings that it names",
        )
    listed = await asked(QUESTION, listed=True)
    checks = [_same_text(plain, listed)]
    if any(c in WITH_PICTURES for c in conditions):
        red, blue = [await asked(solid(rgb), QUESTION) for rgb in ((220, 20, 20), (20, 20, 220))]
        checks += [_seen(plain, red), _told_apart(red, blue)]
        lost = next((c for c in checks if c.verdict == "fail"), None)
        if lost and not allow_unseen:
            raise AuditError(
                f"pictures do not reach model {model!r}: {lost.found} ({lost.note})",
                mend="use a server that passes images on, or run the blind condition only",
            )
    given = plain.letter_logprobs is not None
    if generation.logprobs:
        checks.append(_given(plain))
    return Canary(model, tuple(checks), generation.logprobs and given)


def canary_blocking(client: OpenAIClient, model: str, **settings) -> Canary:
    """:func:`canary` from ordinary code and from notebooks; connections are closed after it."""

    async def work() -> Canary:
        try:
            return await canary(client, model, **settings)
        finally:
            await client.close()

    return blocking(work)


def solid(rgb: tuple[int, int, int], side: int = 64) -> Picture:
    """A PNG of one colour."""
    rows = (b"\0" + bytes(rgb) * side) * side

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return Picture(hashlib.sha256(png).hexdigest(), "image/png", lambda: png)


class _Listed:
    """The client, sending text as a list of one part."""

    def __init__(self, client: OpenAIClient):
        self._client = client

    async def ask(self, request: Request) -> Reply:
        return await self._client.ask(request, listed=True)

    async def close(self) -> None:
        await self._client.close()


def _same_text(plain: Reply, listed: Reply) -> Check:
    name = "text as a string and as a list of one part"
    if listed.outcome == "refused_request":
        return Check(name, "the list is refused", "warn", f"text alone is sent as a string; {scrub(listed.error)}")
    if plain.tokens_in is None or listed.tokens_in is None:
        return Check(name, "prompt tokens are not counted", "unknown", "nothing shows what reached the model")
    found = f"{plain.tokens_in} and {listed.tokens_in} prompt tokens"
    if plain.tokens_in == listed.tokens_in:
        return Check(name, found, "ok")
    return Check(name, found, "warn", "the server changes text in list form; text alone is sent as a string")


def _seen(plain: Reply, shown: Reply) -> Check:
    name = "text without and with a picture"
    if shown.outcome == "refused_request":
        return Check(name, "the picture is refused", "fail", scrub(shown.error))
    if plain.tokens_in is None or shown.tokens_in is None:
        return Check(name, "prompt tokens are not counted", "unknown", "nothing shows that pictures reach the model")
    found = f"{plain.tokens_in} and {shown.tokens_in} prompt tokens"
    if shown.tokens_in > plain.tokens_in:
        return Check(name, found, "ok")
    return Check(name, found, "fail", "a picture adds tokens where it reaches the model")


def _told_apart(red: Reply, blue: Reply) -> Check:
    name = "a red and a blue picture"
    if red.text != blue.text or red.letter_logprobs != blue.letter_logprobs:
        return Check(name, f"{_brief(red)} and {_brief(blue)}", "ok")
    return Check(name, f"the same reply, {_brief(red)}", "warn", "a model that sees them tells them apart")


def _given(plain: Reply) -> Check:
    name = "log-probabilities of option letters"
    if plain.letter_logprobs is not None:
        return Check(name, "given", "ok")
    return Check(name, f"none with the reply {_brief(plain)}", "warn", "no margins unless replies open with a letter")


def _brief(reply: Reply) -> str:
    return repr(reply.text.strip()[:30]) if reply.text.strip() else reply.outcome
