"""How other toolkits read a reply, rebuilt from descriptions of their rules: to see what a choice of parser is worth.

None of these parsers ever scores the audit's own arms. Each is ``(text, options) -> Reading`` like the readers of
:mod:`auditlib.extract`: a letter and its rule, or ``Z`` and the reason. They see the raw reply, thinking included,
unless the toolkit takes it out. Where a toolkit guesses among the options, the reading is ``Z`` with the rule
:data:`RANDOM`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from auditlib.extract.compat.lmms_eval import read_lmms_eval
from auditlib.extract.compat.mmmu import RANDOM, read_mmmu
from auditlib.extract.compat.mmstar import read_mmstar
from auditlib.extract.compat.vlmevalkit import (
    read_vlmevalkit_before_2025_08,
    read_vlmevalkit_before_2026_06,
    read_vlmevalkit_current,
)
from auditlib.extract.text import Reading

PARSERS: dict[str, Callable[[str, Sequence[str]], Reading]] = {
    "vlmevalkit_before_2025_08": read_vlmevalkit_before_2025_08,
    "vlmevalkit_before_2026_06": read_vlmevalkit_before_2026_06,
    "vlmevalkit_current": read_vlmevalkit_current,
    "lmms_eval": read_lmms_eval,
    "mmstar": read_mmstar,
    "mmmu": read_mmmu,
}

#: each parser with one sentence, as a methods section prints them
SENTENCES: dict[str, str] = {
    "vlmevalkit_before_2025_08": "The one option letter that stands alone, anywhere; else the one option text inside.",
    "vlmevalkit_before_2026_06": "As before, with the letter among the last four words, in a reply not long.",
    "vlmevalkit_current": "As before; between the two, a letter a to d right after 'answer is', whatever its word.",
    "lmms_eval": "The first that fits of start, end, phrase, marked forms, any capital; the last there.",
    "mmstar": "The first character, or the one after a bracket, option or the answer is.",
    "mmmu": "The last letter in brackets or before a space; where there is none, a random option.",
}

__all__ = ["PARSERS", "RANDOM", "SENTENCES"]
