"""lmms-eval's shared extractor for choices: ranked forms, the last match within the first rank that fits.

Letters A to H count whatever the item shows, in capitals. The ranks: at the start, at the end, after a phrase,
``(X)``, ``X.``, ``X:``, ``X)``, ``X`` and a space, any occurrence, also inside a word. It abstains only where the
reply holds none of these capitals. What comes before the last closing think tag is
taken out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditlib.extract.text import Reading, abstain

_THOUGHT = re.compile(r"</(?:think|thinking|reasoning)>", re.I)
_LETTER = r"(?<![A-Za-z0-9])([A-H])(?![A-Za-z0-9])"
_PHRASE = re.compile(r"(?i:answer|option|choice)(?:\s+(?i:is))?\s*:|(?i:answer|option|choice)\s+(?i:is)(?![A-Za-z])")
_STAND_ALONE = re.compile(_LETTER)
_RANKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("brackets", re.compile(r"\(([A-H])\)")),
    ("full-stop", re.compile(r"(?<![A-Za-z0-9])([A-H])\.")),
    ("colon", re.compile(r"(?<![A-Za-z0-9])([A-H]):")),
    ("bracket", re.compile(r"(?<![A-Za-z0-9])([A-H])\)")),
    ("space", re.compile(r"(?<![A-Za-z0-9])([A-H])\s")),
    ("anywhere", re.compile(r"([A-H])")),
)
_START = re.compile(r"[\s(\[*]*([A-H])(?:[.):,\]*]|\s*\n|\s*$)")
_END = re.compile(_LETTER + r"[\s.):,\]*!]*$")


def read_lmms_eval(text: str, options: Sequence[str]) -> Reading:
    """Read a choice as lmms-eval's shared extractor is described; a letter the item lacks is read all the same.

    Parameters
    ----------
    text : the raw reply.
    options : not used: the letters are A to H.

    Examples
    --------
    >>> read_lmms_eval("The answer is B because A is wrong", ["red", "blue"])
    Reading(value='A', rule='phrase')
    >>> read_lmms_eval("Based on what I see", ["red", "blue"])
    Reading(value='B', rule='anywhere')
    """
    text = text if isinstance(text, str) else ""
    text = (_THOUGHT.split(text)[-1] if "</" in text else text).strip()
    found = _START.match(text)
    if found:
        return Reading(found[1], "start")
    found = _END.search(text, max(0, len(text) - 40))
    if found:
        return Reading(found[1], "end")
    phrase = _PHRASE.search(text)
    later = _STAND_ALONE.findall(text, phrase.end()) if phrase else []
    if later:
        return Reading(later[-1], "phrase")
    for rule, pattern in _RANKS:
        said = pattern.findall(text)
        if said:
            return Reading(said[-1], rule)
    return abstain("no-letter")
