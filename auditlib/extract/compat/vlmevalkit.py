"""VLMEvalKit's letter matching, without its judge, in the three versions that read the same reply differently.

In order: a failure sentence gives nothing; a stock refusal is ``Z``; the one option letter that stands alone as a
capital is the answer; else the one option text that the reply contains. Since August 2025 the letter must be among
the last four words, and a reply longer than twice all option texts is not searched for them. Since June 2026 a letter
a to d that follows "answer is" counts before the texts, whatever word it opens: "the answer is difficult" is D. What
none of them reads went to a judge model; here it is ``Z``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditlib.extract.compat.shown import shown_letters
from auditlib.extract.text import Reading, abstain

_FAILED = "Failed to obtain answer via API"
_REFUSED = re.compile(
    r"help with images of people|can['’]t process this file|sorry, but without the image|Cannot determine the answer"
)
_SPACED = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_ANSWER_IS = re.compile(r"answer is\s+([a-d])", re.I)
#: the letter must be among this many last words
_LAST = 4


def _read(text: str, options: Sequence[str], *, last: bool, answer_is: bool) -> Reading:
    letters, texts = shown_letters(options)
    text = text.strip() if isinstance(text, str) else ""
    if not text or _FAILED in text:
        return abstain("no-match")
    if _REFUSED.search(text):
        return abstain("refusal")
    tokens = text.translate(_SPACED).split()
    alone = set(tokens).intersection(letters)
    if len(alone) == 1:
        letter = alone.pop()
        if not last or tokens.index(letter) >= len(tokens) - _LAST:
            return Reading(letter, "letter")
    elif not alone and "Z" in tokens:
        return abstain("stated-abstention")
    if answer_is:
        found = _ANSWER_IS.search(text)
        if found and found[1].upper() in letters:
            return Reading(found[1].upper(), "answer-is")
    return _by_text(text, texts, bounded=last)


def _by_text(text: str, texts: dict[str, str], *, bounded: bool) -> Reading:
    if bounded and len(text) > 2 * sum(map(len, texts.values())):
        return abstain("no-match")
    text = text.lower()
    inside = [letter for letter, t in texts.items() if t.strip().lower() in text]
    return Reading(inside[0], "option-text") if len(inside) == 1 else abstain("no-match")


def read_vlmevalkit_before_2025_08(text: str, options: Sequence[str]) -> Reading:
    """The letter anywhere in the reply, then the option text, in a reply of any length."""
    return _read(text, options, last=False, answer_is=False)


def read_vlmevalkit_before_2026_06(text: str, options: Sequence[str]) -> Reading:
    """The letter among the last four words, then the option text in a short reply."""
    return _read(text, options, last=True, answer_is=False)


def read_vlmevalkit_current(text: str, options: Sequence[str]) -> Reading:
    """The letter among the last four words, then what opens the word after "answer is", then the option text.

    Examples
    --------
    >>> read_vlmevalkit_current("The answer is difficult to determine.", ["red", "blue", "green", "A dog"])
    Reading(value='D', rule='answer-is')
    """
    return _read(text, options, last=True, answer_is=True)
