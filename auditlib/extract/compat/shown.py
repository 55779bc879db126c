"""The options as the compat parsers take them."""

from __future__ import annotations

from collections.abc import Sequence

from auditlib.extract.text import read_options
from auditlib.frames import LETTERS


def shown_letters(options: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Letters that an item shows, in order, and the raw text of each that has one.

    Examples
    --------
    >>> shown_letters(["red", "", "Blue"])
    ('AC', {'A': 'red', 'C': 'Blue'})
    """
    texts = {c: t for c, t in zip(LETTERS[:-1], options) if isinstance(t, str) and t.strip()}
    return read_options(options).shown, texts
