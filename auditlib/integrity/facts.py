"""Item facts as the checks of the gate read them: plain lists of text, and texts made comparable."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from auditlib.frames import LETTERS

Defect = tuple[str, str, str, dict[str, Any]]


@dataclass(frozen=True)
class ItemFacts:
    """One item: ``options`` as the models saw them, ``written`` as the dataset file has them (None where unknown).

    ``place`` is the key's place among the options, -1 where the key is no letter.
    """

    item: str
    key: str
    place: int
    options: tuple[str, ...]
    written: tuple[str, ...] | None
    kind: str

    @property
    def last(self) -> int:
        """Place of the last option with a text, -1 where none has one."""
        return max((i for i, t in enumerate(self.options) if t.strip()), default=-1)


def item_facts(items: pd.DataFrame) -> Iterator[ItemFacts]:
    """The items whose options are known, in the frame's order."""
    if "options" not in items:
        return
    n = len(items)
    keys = items["key"] if "key" in items else [None] * n
    written = items["options_written"] if "options_written" in items else [None] * n
    kinds = items["answer_type"] if "answer_type" in items else [""] * n
    for item, key, options, wrote, kind in zip(items["item"], keys, items["options"], written, kinds):
        if known(options):
            text = plain(key)
            place = LETTERS.index(text) if len(text) == 1 and text in LETTERS else -1
            yield ItemFacts(
                str(item),
                text,
                place,
                tuple(plain(t) for t in options),
                tuple(plain(t) for t in wrote) if known(wrote) else None,
                plain(kind),
            )


def known(options: Any) -> bool:
    """Whether options are a list in which anything has a text."""
    return isinstance(options, list | tuple | np.ndarray) and any(plain(t) for t in options)


def plain(value: Any) -> str:
    """A cell as text; a missing one is ``""``."""
    return "" if value is None or value is pd.NA or (isinstance(value, float) and value != value) else str(value)


def exact(text: str) -> str:
    """Text with its spaces and its composition made equal; case and superscripts stay, since they carry meaning."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def loose(text: str) -> str:
    """Text folded in case, width and form too."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
