"""Log-probabilities of the option letters at the place where a reply names its letter."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

#: white space, word-start marks of tokenizers and opening marks before a letter; closing marks after it
_OPENING, _CLOSING = " \t\r\n▁Ġ([{*\"'`$", " \t\r\n)]}*\"'`$.:,;"


def letter_logprobs(
    tokens: Sequence[dict[str, Any]] | None, letters: str, text: str, *, asked: int = 20
) -> dict[str, tuple[float, bool]] | None:
    """Letter to (log-probability, censored), from the list of tokens of a chat completion.

    Parameters
    ----------
    tokens : ``choices[0].logprobs.content``: ``token``, ``logprob`` and ``top_logprobs`` of each generated token.
    letters : the item's option letters.
    text : the reply; margins exist only where it opens with a bare letter.
    asked : how many alternatives were asked for; further ones listed (the sampled token) say nothing about the rest.

    Returns
    -------
    All letters: the variants of a letter (``A``, `` A``, ``a``) are summed; one that is not listed gets the least
    log-probability of the top list as an upper bound, censored. None where the first answer token is no letter.
    """
    if not tokens or not letters or not _bare(text, letters):
        return None
    first = next((t for t in tokens if isinstance(t, dict) and _core(t.get("token"))), None)
    if first is None or _core(first["token"]) != _first_letter(text):
        return None
    listed = {}
    for entry in first.get("top_logprobs") or ():
        value = entry.get("logprob")
        if isinstance(value, (int, float)) and math.isfinite(value):
            listed[entry.get("token")] = float(value)
    if not listed:
        return None
    # one may come in addition to those asked for, from further down: it bounds nothing
    bound = sorted(listed.values(), reverse=True)[: asked or None][-1]
    own = first.get("logprob")
    if isinstance(own, (int, float)) and math.isfinite(own):
        listed.setdefault(first["token"], float(own))
    found: dict[str, list[float]] = {}
    for token, value in listed.items():
        found.setdefault(_core(token), []).append(value)
    return {x: (_sum(found[x]), False) if x in found else (bound, True) for x in letters}


def margin(logprobs: dict[str, tuple[float, bool]] | None) -> tuple[float, bool] | None:
    """Log-probability of the best letter less that of the second, and whether the second is censored.

    A censored margin is a lower bound. None without two letters, or when no letter was listed.
    """
    if not logprobs or len(logprobs) < 2:
        return None
    # of equal values the listed one leads
    (best, unknown), (second, censored) = sorted(logprobs.values(), key=lambda v: (-v[0], v[1]))[:2]
    return None if unknown else (best - second, censored)


def _core(token: Any) -> str:
    """A token without marks, in capitals; its text, when it is a letter in some form."""
    return str(token or "").lstrip(_OPENING).rstrip(_CLOSING).upper()


def _first_letter(text: str) -> str:
    return text.lstrip(_OPENING)[:1].upper()


def _bare(text: str, letters: str) -> bool:
    """The text opens with an option letter that is no word: ``B``, ``(B)``, ``B. blue``, not ``A dog``."""
    opened = text.lstrip(_OPENING)
    return (
        _first_letter(text) in set(letters.upper())
        and re.match(r"\w(?:[ \t]*$|[).:,;\]}*\"'`$\n])", opened) is not None
    )


def _sum(values: list[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))
