"""Tables that people or programs filled in: opened as text, rows numbered, what they lack said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.escape import csv_unguard
from auditlib.readers import cells, files


def open_labelled(path: str | Path, needed: Sequence[str], known: Collection[str] = ()) -> pd.DataFrame:
    """A table with a column ``item`` as text; the index holds the rows as a spreadsheet numbers them.

    Parameters
    ----------
    path : csv, tsv, xlsx, json, jsonl or parquet.
    needed : columns that must be there, in lower case.
    known : item ids; one that is known as it stands keeps its spelling.

    Raises
    ------
    AuditError
        The file cannot be read, lacks a column, or has a row without an item.
    """
    path = Path(path)
    table = files.open_table(path)
    table.columns = [c.strip().lower() for c in table.columns]
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise AuditError(f"column {twice[0]!r} occurs twice", file=path, row=1, mend="rename or remove one of them")
    lacking = [c for c in needed if c not in table.columns]
    if lacking:
        here = ", ".join(table.columns[:12])
        raise AuditError(f"there is no column {', '.join(map(repr, lacking))}", file=path, row=1,
                         mend=f"name the columns {', '.join(needed)} (columns here: {here})")  # fmt: skip
    table = table.apply(lambda column: column.map(csv_unguard).str.strip())
    table.index = table.index + 2
    plain = cells.item_ids(table["item"])
    table["item"] = plain.where(~table["item"].isin(set(known)), table["item"])
    complain(table["item"].eq(""), table, path, lambda row: "there is no item", "fill in the item, or remove the row")
    return table


def complain(bad: pd.Series, table: pd.DataFrame, path: Path, what, mend: str) -> None:
    """Raise an AuditError about the first marked row; ``what`` makes the sentence from the row."""
    if bad.any():
        at = int(np.flatnonzero(bad.to_numpy(bool))[0])
        row = table.iloc[at]
        more = int(bad.sum()) - 1
        tail = f" (and {more} more such row{'s' if more > 1 else ''})" if more else ""
        raise AuditError(what(row) + tail, file=path, row=int(table.index[at]), mend=mend)


def numbers(table: pd.DataFrame, column: str, path: Path, *, low: float = 0.0, high: float = np.inf,
            whole: bool = False, empty: bool = False) -> pd.Series:  # fmt: skip
    """A column as floats between two ends; ``empty`` allows empty cells (NaN).

    Raises
    ------
    AuditError
        A cell that is no such number.
    """
    value = pd.to_numeric(table[column], errors="coerce")
    value = value.where(np.isfinite(value))
    blank = table[column].eq("")
    bad = (value.isna() & ~blank) | (value < low) | (value > high)
    if not empty:
        bad |= blank
    if whole:
        bad |= value.notna() & (value != value.round())
    kind = "whole number" if whole else "number"
    ends = f"from {low:g}" + (f" to {high:g}" if np.isfinite(high) else " up")
    complain(bad, table, path, lambda row: f"{column} of item {row['item']!r} is {row[column]!r}",
             f"write a {kind} {ends}")  # fmt: skip
    return value.astype(float)


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, and all of them."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"{f'did you mean {near[0]!r}? ' if near else ''}Known: {', '.join(known)}"
