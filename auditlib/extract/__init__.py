"""Reading predictions: a chain of named readers, each of which answers or abstains with a reason.

A reader is ``(text, options) -> Reading``. Nothing here knows the key, and nothing guesses: what cannot be read is
``Z``.
"""

from __future__ import annotations

from auditlib.extract import boxed, letters, numeric, option_text, text, yesno
from auditlib.extract.boxed import read_boxed
from auditlib.extract.chain import READERS, Reader, extract, extract_frame
from auditlib.extract.letters import read_letters
from auditlib.extract.numeric import read_numeric
from auditlib.extract.option_text import read_option_text
from auditlib.extract.text import Reading, read_options
from auditlib.extract.yesno import read_yesno

#: every rule and reason with one sentence, as the methods section prints them
RULES: list[tuple[str, str]] = text.RULES + [
    (f"{module.__name__.rsplit('.', 1)[1]}:{name}", sentence)
    for module in (letters, boxed, option_text, yesno, numeric)
    for name, sentence in module.RULES
]

__all__ = [
    "READERS",
    "RULES",
    "Reader",
    "Reading",
    "extract",
    "extract_frame",
    "read_boxed",
    "read_letters",
    "read_numeric",
    "read_option_text",
    "read_options",
    "read_yesno",
]
