"""Options and question types of an items table."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from auditlib.readers.cells import trimmed

_INLINE = re.compile(r"\n\s*Options:\s*(?=A: )")
_NEXT_INLINE = r", {}: "
_CHOICES = re.compile(r"(?:\nChoices:)?\s*\n(?=\(A\))")
_CHOICE = re.compile(r"(?:^|\n)\(([A-Z])\)[ \t]*")
_YES_NO = {"yes", "no"}


def option_columns(columns: list[str]) -> list[str]:
    """The columns ``A``, ``B``, ... as far as they go without a gap."""
    letters = []
    for code in range(ord("A"), ord("Z") + 1):
        if chr(code) not in columns:
            break
        letters.append(chr(code))
    return letters


def from_columns(table: pd.DataFrame) -> list[list[str]]:
    """Options of each row from its letter columns, empty ones at the end cut."""
    letters = option_columns(list(table.columns))
    if not letters:
        return [[] for _ in range(len(table))]
    return [trimmed(list(row)) for row in zip(*(table[c].tolist() for c in letters))]


def from_question(text: str) -> tuple[str, list[str]]:
    r"""Split a question that carries its options: ``(question, options)``; no options, unchanged question otherwise.

    Two shapes are read: ``... Options: A: x, B: y`` on one line, and lines ``(A) x`` below the question, with or
    without ``Choices:``. Letters must run A, B, C, ... ; each option is taken up to the next letter in order, so that
    a text such as ``vitamin C: low`` inside an option does not end it early.

    Examples
    --------
    >>> from_question("Which?\nOptions: A: red, B: blue")
    ('Which?', ['red', 'blue'])
    """
    start = _INLINE.search(text)
    if start:
        return text[: start.start()], _inline(text[start.end() :])
    start = _CHOICES.search(text)
    if start:
        body = text[start.end() :]
        marks = list(_CHOICE.finditer(body))
        if [m.group(1) for m in marks] == [chr(ord("A") + i) for i in range(len(marks))] and len(marks) > 1:
            ends = [m.start() for m in marks[1:]] + [len(body)]
            return text[: start.start()], [body[m.end() : e].strip() for m, e in zip(marks, ends)]
    return text, []


def split_questions(questions: pd.Series, keys: pd.Series) -> tuple[list[str], list[list[str]]]:
    """:func:`from_question` over a column; texts that only look like options stay whole: their key is no letter."""
    split = [from_question(q) if len(k) == 1 and k.isupper() else (q, []) for q, k in zip(questions, keys)]
    return [q for q, _ in split], [o for _, o in split]


def _inline(body: str) -> list[str]:
    options, rest = [], body.removeprefix("A: ")
    for code in range(ord("B"), ord("Z") + 1):
        head, mark, tail = rest.partition(_NEXT_INLINE.format(chr(code)))
        if not mark:
            break
        options.append(head.strip())
        rest = tail
    return [*options, rest.strip()]


def text_keys(keys: Iterable[str], written: Iterable[str], options: Iterable[list[str]]) -> list[str]:
    """Keys as option letters where the file gives the text of exactly one option instead, else unchanged.

    Parameters
    ----------
    keys : keys by :func:`auditlib.readers.cells.keys`; a one-letter text is a capital letter there.
    written : the cells as they stand in the file.
    options : option texts of each row.

    Examples
    --------
    >>> text_keys(["X", "B", "red"], ["x", "B", "red"], [["x", "y"], ["B", "A"], ["red", "blue"]])
    ['A', 'B', 'A']
    """
    out = []
    for key, cell, texts in zip(keys, written, options):
        at = ord(key) - ord("A") if len(key) == 1 and "A" <= key <= "Z" else -1
        if not any(texts) or not cell.strip() or (0 <= at < len(texts) and texts[at].strip()):
            out.append(key)
            continue
        same = [i for i, text in enumerate(texts) if text.strip() == cell.strip()]
        if not same:  # "White" means the option "white" where only one option reads so
            same = [i for i, text in enumerate(texts) if text.strip().casefold() == cell.strip().casefold()]
        out.append(chr(ord("A") + same[0]) if len(same) == 1 and same[0] < 26 else key)
    return out


def answer_types(options: list[list[str]], keys: pd.Series) -> list[str]:
    """``choice`` (options, or a letter as key), ``yesno`` (no options, key yes or no) or ``open``, for each row."""
    return [
        "choice" if any(o) or (len(key) == 1 and key.isupper()) else "yesno" if key.lower() in _YES_NO else "open"
        for o, key in zip(options, keys)
    ]


def counts(options: list[list[str]], types: list[str]) -> pd.Series:
    """Number of options shown: the non-empty ones, 2 for yes/no, missing where unknown."""
    shown = [
        2 if kind == "yesno" else (sum(bool(o.strip()) for o in opts) or None) for opts, kind in zip(options, types)
    ]
    return pd.Series(shown, dtype="Int64")
