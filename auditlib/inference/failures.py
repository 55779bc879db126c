"""What went wrong with a call: tried again, ends the run, or is an outcome of its own; and errors without secrets."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import quote

from auditlib.errors import AuditError

#: characters of a server's error that are kept
LONGEST_ERROR = 300
_STOP = (401, 402, 403, 404, 405, 410)
_RETRY = (408, 409, 425, 429)
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "access_terminated")
_FILTER = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation")
_NO_PICTURES = re.compile(
    r"not a (multimodal|vision)|at most 0 image|content must be a string|unknown variant .?image_url"
    r"|(image|vision|multi-?modal)[^.]{0,60}(not support|unsupported|isn.t support|not enabled|only supported)"
    r"|(image|vision|multi-?modal)[^.]{0,60}not accept"
    r"|(not|n.t) (support|accept|enable|process|allow)[^.]{0,40}(image|vision|multi-?modal)|support image input",
    re.IGNORECASE,
)
_ONE_PICTURE = re.compile(
    r"format|mime|media.type|decod|corrupt|dimension|resolution|too (large|big|many|small)|\bsize\b|at most [1-9]",
    re.IGNORECASE,
)
_SECRETS = re.compile(r"\bsk-[\w*.-]{6,}|(?<=bearer )\S+|(?<=://)[^/@\s]+(?=@)", re.IGNORECASE)


class Retry(Exception):
    """A call that may succeed later.

    Attributes
    ----------
    after : seconds the server asks to wait, if it says so. limited : a rate limit, which holds for every caller.
    """

    def __init__(self, why: str, *, after: float | None = None, limited: bool = False):
        super().__init__(why)
        self.why, self.after, self.limited = why, after, limited


class StopRun(AuditError):
    """No further request can succeed: one message for all of them."""


def scrub(text: object, secrets: Iterable[str] = ()) -> str:
    """A server's words on one line: without secrets or what looks like them, then cut to :data:`LONGEST_ERROR`."""
    said = str(text)
    for secret in secrets:
        for form in {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}:
            said = said.replace(form, "***") if len(form) >= 4 else said
    said = " ".join(_SECRETS.sub("***", said).split())
    return said if len(said) <= LONGEST_ERROR else said[: LONGEST_ERROR - 2] + " …"


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait by ``retry-after-ms`` or ``retry-after`` (seconds or a date); None when neither can be read."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        try:
            seconds = float(value) * unit if value else None
        except ValueError:
            seconds = None
        if seconds is not None and 0 <= seconds < float("inf"):
            return seconds
    try:
        until = email.utils.parsedate_to_datetime(headers.get("retry-after") or "")
    except (TypeError, ValueError):
        return None
    return max(0.0, until.timestamp() - (time.time() if now is None else now))


def error_of(body: Any) -> tuple[str, set[str], int | None]:
    """Message, code words and numeric status of an error body, whatever its shape."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return (str(error) if error else ""), set(), None
    inner = error.get("innererror") if isinstance(error.get("innererror"), dict) else {}
    codes = {str(v).lower() for v in (error.get("code"), error.get("type"), inner.get("code")) if v is not None}
    numbers = [int(c) for c in codes if re.fullmatch(r"[45]\d\d", c)]
    message = error.get("message") or error.get("detail") or error
    return str(message), codes, (numbers[0] if numbers else None)


def judge_error(
    status: int, body: Any, headers: Mapping[str, str], *, pictures: bool, model: str, secrets: Iterable[str] = ()
) -> tuple[Literal["filtered", "refused_request"], str]:
    """The outcome of a call that the server answered with an error.

    Parameters
    ----------
    status, body, headers : of the answer; ``body`` is parsed JSON or text.
    pictures : the request held a picture, and the endpoint has answered none with a picture yet.
    model, secrets : named in messages; taken out of them.

    Returns
    -------
    Outcome and shortened error, where only this request is refused.

    Raises
    ------
    Retry
        Another try may succeed.
    StopRun
        No request of the run can: wrong key, no such model, no quota left, an endpoint that takes no images.
    """
    message, codes, _ = error_of(body)
    said = scrub(message or f"status {status}", secrets)
    if codes & set(_QUOTA):
        raise StopRun(
            f"the account has no quota left for model {model!r} ({said})",
            mend="add credit or choose another key or model, then run again: stored answers are kept",
        )
    if pictures and _takes_no_pictures(status, message):
        raise StopRun(
            f"this endpoint takes no images for model {model!r} ({said})",
            mend="run the blind condition only, or another model",
        )
    if codes & set(_FILTER) or (status == 403 and re.search(r"moderation|flagged", message, re.IGNORECASE)):
        return "filtered", said
    if status in _STOP:
        mend = {
            401: "check the key in the environment variable that api_key_env names",
            402: "add credit, then run again: stored answers are kept",
            403: "check that the key may use this model",
            404: "check base_url and the model's name as the server lists it",
        }.get(status, "check base_url")
        raise StopRun(f"the endpoint answers {status} for model {model!r} ({said})", mend=mend)
    if status in _RETRY or status >= 500:
        raise Retry(f"{status}: {said}", after=retry_after(headers), limited=status == 429)
    return "refused_request", scrub(f"{status}: {said}", secrets)


def _takes_no_pictures(status: int, message: str) -> bool:
    """The endpoint takes no pictures at all, by its words; not that it dislikes this one."""
    if status >= 500:  # an error inside may name a picture; only these say what is missing
        return bool(re.search(r"image input is not supported|mmproj|not a (multimodal|vision)", message, re.IGNORECASE))
    if status not in (400, 404, 415, 422) or re.search(r"at most 0 image", message, re.IGNORECASE):
        return status in (400, 404, 415, 422)
    return bool(_NO_PICTURES.search(message)) and not _ONE_PICTURE.search(message)
