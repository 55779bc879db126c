"""The MMMU parser that lmms-eval and lm-evaluation-harness share: it never abstains but guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditlib.extract.compat.shown import shown_letters
from auditlib.extract.text import Reading, abstain

#: rule of a reading that the toolkit would draw at random among the options; the value is ``Z``
RANDOM = "random"

_BRACKETS = re.compile(r"\(([A-Z])\)")
_SPACED = re.compile(r"(?<![A-Za-z0-9])([A-Z]) ")


def read_mmmu(text: str, options: Sequence[str]) -> Reading:
    """Read the last letter in brackets, else the last before a space, articles included; else it would be random.

    Examples
    --------
    >>> read_mmmu("A dog is shown", ["red", "blue"])
    Reading(value='A', rule='space')
    >>> read_mmmu("I see nothing", ["red", "blue"])
    Reading(value='Z', rule='random')
    """
    letters, _ = shown_letters(options)
    text = text.strip().strip(",.!?;:'") if isinstance(text, str) else ""
    text = f" {text} "
    for rule, pattern in (("brackets", _BRACKETS), ("space", _SPACED)):
        said = [c for c in pattern.findall(text) if c in letters]
        if said:
            return Reading(said[-1], rule)
    return abstain(RANDOM)
