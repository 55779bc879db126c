"""What a proposed key means in a row of a dataset; a key that names no answer of the row is refused."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from auditlib.errata.reasons import REASONS
from auditlib.frames import LETTERS
from auditlib.readers import choices
from auditlib.readers.cells import key_text

#: reasons of other topics that another key can mend
_ALSO = ("contradictory_duplicate",)
_YES_NO = ("yes", "no")


@dataclass(frozen=True)
class Keys:
    """Keys and options of a dataset's rows.

    Attributes
    ----------
    options : option texts of each row, from its columns or its question; empty where unknown.
    keys : key of each row, a letter where the row gives an option's text. numbers : whether all keys are numbers.
    several : whether a key may be more than one letter.
    """

    options: list[list[str]]
    keys: list[str]
    numbers: bool
    several: bool

    def named(self, n: int, said: str) -> str | None:
        """The key that a person means by ``said``, as row ``n`` gives keys; None where it is no key of that row."""
        options, old, said = self.options[n], self.keys[n], said.strip()
        if not said or any(unicodedata.category(c) == "Cc" for c in said):
            return None
        letter = key_text(said)
        if not any(options):
            return _without_options(old, said, letter)
        if self.numbers:
            first = 0 if "0" in self.keys else 1
            return said if said.isascii() and said.isdigit() and int(said) - first in range(len(options)) else None
        found = choices.text_keys([letter], [said], [options])[0]
        if _names(found, options):
            return found
        more = "".join(sorted(set(said.upper())))
        return more if self.several and len(more) == len(said) > 1 and all(_names(c, options) for c in more) else None

    def known(self, n: int) -> str:
        """What a key of row ``n`` may be, in words."""
        if not any(self.options[n]):
            return (
                "yes or no" if self.keys[n].casefold() in _YES_NO else "a letter" if _letter(self.keys[n]) else "text"
            )
        if self.numbers:
            return "a number, as the other keys are"
        shown = [LETTERS[i] for i, t in enumerate(self.options[n][: len(LETTERS)]) if t.strip()]
        return f"one of {', '.join(shown)}"


def keys_of(table: pd.DataFrame) -> Keys:
    """Keys and options of a dataset's rows, as its reader takes them.

    Parameters
    ----------
    table : column ``key`` as written, and as far as present ``question`` and the option columns.
    """
    plain = [key_text(k) for k in table["key"]]
    options = choices.from_columns(table)
    if "question" in table and not choices.option_columns(list(table.columns)):
        _, options = choices.split_questions(table["question"], pd.Series(plain, dtype="str"))
    keys = choices.text_keys(plain, table["key"], options)
    filled = [k for k in keys if k]
    several = any(len(k) > 1 and len(set(k)) == len(k) and all(_names(c, o) for c in k) for k, o in zip(keys, options))
    return Keys(options, keys, bool(filled) and all(k.isdigit() for k in filled), several)


def concerns_key(reason: str) -> bool:
    """Whether another key can mend an item with this reason."""
    return REASONS[reason].topic == "key" or reason in _ALSO


def _without_options(old: str, said: str, letter: str) -> str | None:
    if _letter(old):
        return letter if _letter(letter) else None
    if old.casefold() in _YES_NO:
        form = str.upper if old.isupper() else str.lower if old.islower() else str.capitalize
        return form(said) if said.casefold() in _YES_NO else None
    return said


def _names(letter: str, options: Sequence[str]) -> bool:
    return _letter(letter) and LETTERS.index(letter) < len(options) and options[LETTERS.index(letter)].strip() != ""


def _letter(text: str) -> bool:
    return len(text) == 1 and text in LETTERS
