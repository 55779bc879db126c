"""The scorer of MMStar's own repository: one character at a fixed place, in any case."""

from __future__ import annotations

from collections.abc import Sequence

from auditlib.extract.compat.shown import shown_letters
from auditlib.extract.text import Reading, abstain

_HEADS = (("(", "bracket"), ("option ", "option"), ("the answer is ", "answer-is"), ("", "first-character"))


def read_mmstar(text: str, options: Sequence[str]) -> Reading:
    """Read the first character, or the one after ``(``, ``option `` or ``the answer is `` at the start.

    Examples
    --------
    >>> read_mmstar("Because it is red", ["red", "blue"])
    Reading(value='B', rule='first-character')
    """
    letters, _ = shown_letters(options)
    text = text.strip().lower() if isinstance(text, str) else ""
    for head, rule in _HEADS:
        at = text[len(head) : len(head) + 1].upper()
        if text.startswith(head) and at and at in letters:
            return Reading(at, rule)
    return abstain("no-letter")
