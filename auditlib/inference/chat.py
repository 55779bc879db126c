"""The body of a chat completion and the reply in its answer: what live calls and batch files share."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterable
from typing import Any

from auditlib.calls import Part, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.logprobs import letter_logprobs

#: names of the token limit: the one that all servers know, and the one that reasoning models want
LIMIT_NAMES = ("max_tokens", "max_completion_tokens")


async def request_body(
    request: Request, *, served_name: str | None = None, limit_name: str = LIMIT_NAMES[0], listed: bool = False
) -> dict[str, Any]:
    """The body that asks a request; pictures are encoded in it, one at a time and off the event loop.

    Parameters
    ----------
    request : what is asked.
    served_name : the model's name on the server, where it is not the request's.
    limit_name : one of :data:`LIMIT_NAMES`.
    listed : send text alone as a list of one part too; otherwise it is a plain string.

    Returns
    -------
    The body. Settings that the ``openai`` package does not know are under ``extra_body``, as it wants them; see
    :func:`merged`.

    Raises
    ------
    AuditError
        A picture cannot be read.
    """
    g = request.generation
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    messages.append({"role": "user", "content": await _content(request, listed)})
    body: dict[str, Any] = {"model": served_name or request.model, "messages": messages}
    settings = {
        "temperature": g.temperature,
        limit_name: g.max_tokens,
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


def merged(body: dict[str, Any]) -> dict[str, Any]:
    """The body as it goes over the wire: settings of ``extra_body`` stand beside the others.

    Examples
    --------
    >>> merged({"model": "m", "extra_body": {"min_p": 0.1}})
    {'model': 'm', 'min_p': 0.1}
    """
    plain = {name: value for name, value in body.items() if name != "extra_body"}
    return plain | body.get("extra_body", {})


def choice_of(said: Any) -> dict[str, Any]:
    """The first choice of an answer; empty where there is none."""
    choices = said.get("choices") if isinstance(said, dict) else None
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def reply_of(
    request: Request, said: dict[str, Any], *, latency: float | None = None, secrets: Iterable[str] = ()
) -> Reply:
    """The reply in an answer that has a choice.

    Parameters
    ----------
    request : what was asked.
    said : the answer's body.
    latency : seconds that the call took.
    secrets : taken out of the text: an endpoint may echo its headers.
    """
    choice = choice_of(said)
    message = choice.get("message") if isinstance(choice.get("message"), dict) else {}
    text, thought = _text(message.get("content"))
    text = text or message.get("refusal") or ""
    thought = message.get("reasoning_content") or message.get("reasoning") or thought
    for secret in secrets:
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


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
