"""What is asked of a model and what comes back: the two records between the capabilities and the inference layer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

Outcome = Literal["ok", "empty", "truncated", "filtered", "refused_request", "failed"]
PROMPT_MODES = ("silent", "told_to_guess")


@dataclass(frozen=True)
class Picture:
    """An image that is loaded when it is sent, and known by the hash of its bytes.

    Attributes
    ----------
    sha256 : hex digest of the encoded image file (not of pixels).
    mime : for example ``image/png``.
    load : gives the bytes of the file; called off the event loop, at most ``concurrency`` at a time.
    """

    sha256: str
    mime: str
    load: Callable[[], bytes] = field(compare=False, repr=False)


Part = str | Picture


@dataclass(frozen=True)
class Generation:
    """How a reply is generated. None leaves a setting to the server; every one that is set is part of the key."""

    temperature: float | None = 0.0
    max_tokens: int | None = 512
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    logprobs: bool = False
    top_logprobs: int = 20
    extra: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All settings by name; one object is shared by very many requests."""
        return asdict(self)


@dataclass(frozen=True)
class Request:
    """One question to one model.

    Attributes
    ----------
    item, model, condition, prompt_mode, sample : what is asked, of whom, under which condition, which repeat.
    parts : text and pictures of the user's message, in order. Text alone is sent as a plain string.
    generation : sampling settings.
    prompt_version : name of the layout and its version.
    purpose : ``answer``, ``extraction`` (a judge reads a reply), or another capability's word.
    system : text of a system message, if any.
    letters : option letters of the item, for margins.
    """

    item: str
    model: str
    condition: str
    parts: tuple[Part, ...]
    generation: Generation = Generation()
    prompt_mode: str = "silent"
    sample: int = 0
    prompt_version: str = "vlmevalkit-1"
    purpose: str = "answer"
    system: str | None = None
    letters: str = ""

    @cached_property
    def key(self) -> str:
        """SHA-256 of everything that can change the answer, as canonical JSON; pictures count by their own hash."""
        content = {
            "item": self.item,
            "model": self.model,
            "condition": self.condition,
            "prompt_mode": self.prompt_mode,
            "sample": self.sample,
            "prompt_version": self.prompt_version,
            "purpose": self.purpose,
            "system": self.system,
            "parts": [p if isinstance(p, str) else {"image_sha256": p.sha256} for p in self.parts],
            "generation": self.generation.settings,
        }
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def text(self) -> str:
        """The text parts, joined by line ends."""
        return "\n".join(p for p in self.parts if isinstance(p, str))

    @property
    def text_sha256(self) -> str:
        """Hash of the text parts alone: equal for the full and the blind request of an item."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return tuple(p for p in self.parts if not isinstance(p, str))


@dataclass(frozen=True)
class Reply:
    """The final outcome of one request.

    Attributes
    ----------
    key : of the request.
    outcome : ``ok``; ``empty``; ``truncated`` (the length limit ended it); ``filtered``; ``refused_request`` (the
        server will never answer it, for example an image sent to a text model); ``failed`` (retries used up).
    text, reasoning : what the model said, and what it thought where the server keeps that apart.
    finish : the server's finish reason.
    letter_logprobs : option letter to (log-probability, censored): censored values are upper bounds.
    tokens_in, tokens_out : as the server counted them; None when it did not.
    latency : seconds of the attempt that answered. attempts : calls made.
    server_model, fingerprint : what the server says it is.
    error : why it failed, shortened, without secrets.
    """

    key: str
    outcome: Outcome
    text: str = ""
    reasoning: str | None = None
    finish: str | None = None
    letter_logprobs: dict[str, tuple[float, bool]] | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    latency: float | None = None
    attempts: int = 1
    server_model: str | None = None
    fingerprint: str | None = None
    error: str | None = None
    created: float = 0.0

    @property
    def answered(self) -> bool:
        return self.outcome in ("ok", "truncated")
