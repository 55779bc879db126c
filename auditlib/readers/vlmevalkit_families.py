"""Benchmarks whose files say things their own way: open questions, lists of answers, MathVista, OCRBench, rotations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from auditlib.readers import cells

#: the second option that the toolkit invents for an open question when it judges it
OTHER_ANSWERS = "Other Answers"
#: judge of verdicts computed here by the toolkit's substring rule
SUBSTRING = "substring"
_BY_RULE, _GAVE_UP = "Prefetch succeed", "All 5 retries failed."
_FORMULAS = "Handwritten Mathematical Expression Recognition"
_LETTER = re.compile(r"(?<![A-Za-z])([A-Z])(?![A-Za-z])")


def restore_open(table: pd.DataFrame) -> pd.DataFrame:
    """A verdict file's open questions as they were asked: there, the answer stands as option A and the key is A."""
    if not {"A", "B", "answer"} <= set(table.columns):
        return table
    invented = (table["B"].str.strip() == OTHER_ANSWERS) & (table["answer"].str.strip() == "A")
    for letter in (c for c in ("C", "D") if c in table.columns):
        invented &= table[letter].str.strip() == ""
    if not invented.any():
        return table
    table = table.copy()
    table.loc[invented, "answer"] = table.loc[invented, "A"]
    table.loc[invented, ["A", "B"]] = ""
    return table


def is_mathvista(columns: Iterable[str]) -> bool:
    """Whether a table has the columns of MathVista, where options are one list and the key's letter has its column."""
    return {"question_type", "choices", "answer_option", "answer"} <= set(columns)


def mathvista_options(table: pd.DataFrame) -> tuple[list[list[str]], pd.Series]:
    """Options of each row and the keys: letters for choices, the answer's text for free questions."""
    chosen = table["question_type"].str.strip() == "multi_choice"
    options = [_texts(c) if m else [] for c, m in zip(table["choices"], chosen)]
    letters = cells.keys(table["answer_option"])
    return options, cells.keys(table["answer"]).where(~(chosen & (letters != "")), letters)


def references(answers: pd.Series, options: Iterable[list[str]]) -> list[list[str] | None]:
    """All accepted answers of each item without options whose answer is a list of texts, None elsewhere."""
    out: list[list[str] | None] = []
    for answer, shown in zip(answers, options):
        listed = _texts(answer) if answer.strip().startswith("[") and not any(shown) else []
        out.append(listed if any(t.strip() for t in listed) else None)
    return out


def mathvista_verdicts(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, list[tuple[int, str]]]:
    """Verdicts recomputed from the extracted answers (``res``), which the toolkit's file does not hold.

    Returns
    -------
    hits : float, shape (n,); NaN where the judge gave no extracted answer.
    sources : text, shape (n,): ``recomputed``, or ``unknown`` where the judge failed.
    remarks : how many, and what of.

    Notes
    -----
    Numbers are compared at the item's ``precision``, texts without regard to capitals, lists element by element (in
    the toolkit neither texts nor lists can be right, by a slip).
    """
    gave_up = table["log"].str.contains(_GAVE_UP, regex=False).to_numpy(dtype=bool)
    if not is_mathvista(table.columns):
        right = [_same_text(r, a) for r, a in zip(table["res"], table["answer"])]
    else:
        options, keys = mathvista_options(table)
        blank = pd.Series("", index=table.index)
        kinds = table.get("answer_type", blank).str.strip()
        precisions = table.get("precision", blank)
        right = [
            _letter(res, o) == key if o else _same(res, answer, kind, precision)
            for res, o, key, answer, kind, precision in zip(
                table["res"], options, keys, table["answer"], kinds, precisions
            )
        ]
    hits = np.where(gave_up, np.nan, np.array(right, dtype=float))
    by_rule = table["log"].str.strip().str.startswith(_BY_RULE).to_numpy(dtype=bool)
    remarks = [
        (int(gave_up.sum()), "items whose judge failed every time: no verdict (not counted)"),
        (int((by_rule & ~gave_up).sum()), "answers extracted by the toolkit's rule, without the judge"),
        (int((~gave_up).sum()), "verdicts recomputed from the extracted answers: the file holds none"),
    ]
    return hits, np.where(gave_up, "unknown", "recomputed").astype(object), [r for r in remarks if r[0]]


def is_ocrbench(benchmark: str) -> bool:
    """Whether a benchmark is scored by its alternatives being part of the reply, with totals written only."""
    return benchmark.lower().startswith("ocrbench")


def substring_hits(items: pd.DataFrame, predictions: pd.Series) -> np.ndarray:
    """Whether any accepted answer is part of the reply: capitals do not count; in formulas, spaces do not.  (n,)"""
    formulas = items["stratum"].astype(str) == _FORMULAS if "stratum" in items else pd.Series(False, items.index)
    listed = items["references"] if "references" in items else pd.Series(None, items.index, dtype=object)
    hits = []
    for reply, accepted, key, formula in zip(predictions, listed, items["key"], formulas):
        plain = (lambda t: re.sub(r"\s", "", t)) if formula else (lambda t: t.lower().strip().replace("\n", " "))
        texts = accepted if isinstance(accepted, list) else [key]
        hits.append(any(plain(t) in plain(reply) for t in texts if t.strip()))
    return np.array(hits, dtype=float)


def is_rotated(items: pd.DataFrame, verdicts: pd.DataFrame) -> bool:
    """Whether verdicts are on groups of rotations: the file holds the base rows of a circular set only."""
    if "cluster" not in items.columns:
        return False
    groups = items["cluster"].astype(str)
    if not groups.duplicated().any() or not set(groups) <= set(items["item"]):
        return False
    judged = set(verdicts["item"])
    return bool(judged) and judged <= set(groups)


def _texts(cell: str) -> list[str]:
    try:
        return cells.option_list(cell)
    except ValueError:
        return []


def _letter(res: str, options: list[str]) -> str:
    """Option letter of an extracted answer: written as a letter, or as the text of exactly one option; else ``""``."""
    letters = [chr(ord("A") + i) for i in range(min(len(options), 26))]
    whole = cells.key_text(res)
    if whole in letters:
        return whole
    same = [a for a, text in zip(letters, options) if _same_text(res, text)]
    if len(same) == 1:
        return same[0]
    named = {m for m in _LETTER.findall(res) if m in letters}
    return named.pop() if len(named) == 1 else ""


def _same(res: str, answer: str, kind: str, precision: str) -> bool:
    if kind in ("integer", "float"):
        a, b = _number(res), _number(answer)
        if a is None or b is None:
            return False
        digits = _number(precision)
        places = int(digits) if digits is not None and kind == "float" else None
        return a == b if places is None else round(a, places) == round(b, places)
    return _same_list(res, answer) if kind == "list" else _same_text(res, answer)


def _same_list(res: str, answer: str) -> bool:
    a, b = _list(res), _list(answer)
    if a is None or b is None:
        return _same_text(res, answer)
    numbers = [(_number(str(x)), _number(str(y))) for x, y in zip(a, b)]
    return len(a) == len(b) and all(
        x == y if x is not None and y is not None else _same_text(str(s), str(t)) for (x, y), s, t in zip(numbers, a, b)
    )


def _list(text: str) -> list | None:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return list(value) if isinstance(value, (list, tuple)) else None


def _same_text(a: str, b: str) -> bool:
    return " ".join(a.split()).casefold() == " ".join(b.split()).casefold() != ""


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", ""))
    except ValueError:
        return None
