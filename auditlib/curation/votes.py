"""Votes of judges: their labels, the table that holds them, and saved judge files read back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.errors import AuditError
from auditlib.escape import csv_unguard, guard_csv
from auditlib.paths import atomic
from auditlib.readers import cells, files

#: what a judge may say of an item; all but the last are defects
LABELS = ("key_error", "ambiguous", "scorer_risk", "no_issue")
NO_ISSUE = "no_issue"
DEFECTS = LABELS[:-1]
#: one row per item, round and judge; ``label`` is empty where a judge gave none that can be read
COLUMNS = (
    "item", "round", "judge", "label", "reason", "source", "shown_order", "outcome", "tokens_in", "tokens_out",
)  # fmt: skip
_NEEDED = ("item", "round", "judge", "label")
_NUMBERS = ("tokens_in", "tokens_out")


def label_of(text: str) -> str | None:
    """One of :data:`LABELS` in any spelling of blanks, hyphens and capitals; None where the text is another.

    Examples
    --------
    >>> label_of(" Key-Error "), label_of("No issue"), label_of("wrong")
    ('key_error', 'no_issue', None)
    """
    word = re.sub(r"[\s_-]+", "_", text.strip().lower())
    return word if word in LABELS else None


def votes_frame(rows: Iterable[dict[str, Any]] = ()) -> pd.DataFrame:
    """A table of votes with all its columns, sorted by item, round and judge.

    Raises
    ------
    AuditError
        Two votes of one judge on one item in one round.
    """
    table = pd.DataFrame(list(rows), columns=list(COLUMNS))
    for name in COLUMNS:
        if name in _NUMBERS:
            table[name] = table[name].astype(float)
        elif name != "round":
            table[name] = table[name].astype(object).where(table[name].notna(), "").astype(str).astype(object)
    table["round"] = table["round"].astype(int)
    twice = table.duplicated(["item", "round", "judge"])
    if twice.any():
        row = table[twice].iloc[0]
        raise AuditError(
            f"judge {row['judge']!r} votes twice on item {row['item']!r} in round {row['round']}",
            mend="keep one of these votes",
        )
    return table.sort_values(["item", "round", "judge"], kind="stable").reset_index(drop=True)


def read_votes(
    paths: str | Path | Sequence[str | Path],
    items: Collection[str] | None = None,
    judges: Collection[str] | None = None,
) -> pd.DataFrame:
    """Read saved judge files (csv, tsv, xlsx, json, jsonl, parquet).

    Parameters
    ----------
    paths : one file or several, which are read as one table.
    items, judges : the known ones; None takes any.

    Returns
    -------
    DataFrame
        Columns of :data:`COLUMNS`; ``source`` is the name of the file. Columns ``item``, ``round`` (1 or 2), ``judge``
        and ``label`` are needed, the others are empty where a file lacks them. An empty label is a judge that gave
        none, which is no vote.

    Raises
    ------
    AuditError
        A file that cannot be read, a missing column, a label, item, round or judge that is not known, two votes of
        one judge on one item in one round, tokens that are no count.
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    if not listed:
        raise AuditError("no judge file is named", mend="name the files with the judges' votes")
    known = None if items is None else {str(i) for i in items}
    people = None if judges is None else {str(j) for j in judges}
    seen: dict[tuple[str, int, str], str] = {}
    rows: list[dict[str, Any]] = []
    for path in map(Path, listed):
        for at, row in _rows(path, known or set()):
            vote = _vote(row, path, at, known, people)
            mark = (vote["item"], vote["round"], vote["judge"])
            if mark in seen:
                what = f"judge {mark[2]!r} votes on item {mark[0]!r} in round {mark[1]} a second time"
                raise AuditError(f"{what} (first: {seen[mark]})", file=path, row=at, mend="keep one of the two rows")
            seen[mark] = f"row {at}" if len(listed) == 1 else f"{path.name}, row {at}"
            rows.append(vote)
    return votes_frame(rows)


def write_votes(votes: pd.DataFrame, path: Path) -> Path:
    """Write votes as csv that :func:`read_votes` reads back; formulas are guarded, the file is renamed into place."""
    with atomic(path) as temporary:
        table = guard_csv(votes.reindex(columns=list(COLUMNS)))
        table.to_csv(temporary, index=False, float_format="%.12g", lineterminator="\n")
    return path


def _rows(path: Path, known: Collection[str]) -> Iterable[tuple[int, dict[str, str]]]:
    """Rows of a file with their numbers, the header being row 1."""
    table = files.open_table(path)
    table.columns = [c.strip().lower() for c in table.columns]
    lacking = [c for c in _NEEDED if c not in table.columns]
    if lacking:
        here = ", ".join(table.columns[:12])
        raise AuditError(
            f"there is no column {', '.join(map(repr, lacking))}",
            file=path,
            row=1,
            mend=f"name the columns item, round, judge and label (columns here: {here})",
        )
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise AuditError(f"column {twice[0]!r} occurs twice", file=path, row=1, mend="rename or remove one of them")
    plain = cells.item_ids(table["item"])
    # an id that is known as it stands needs no other spelling
    table["item"] = plain.where(~table["item"].str.strip().isin(known), table["item"].str.strip())
    for at, row in zip(table.index, table.to_dict("records")):
        yield int(at) + 2, {name: csv_unguard(value) for name, value in row.items()}


def _vote(row: dict[str, str], path: Path, at: int, items: set[str] | None, judges: set[str] | None) -> dict[str, Any]:
    item, judge, label = row["item"].strip(), row["judge"].strip(), row["label"].strip()
    for name, value in (("item", item), ("judge", judge)):
        if not value:
            raise AuditError(f"a vote without {name}", file=path, row=at, mend=f"name the {name}, or remove the row")
    if items is not None and item not in items:
        mend = f"correct the id, or remove the row (ids are such as {', '.join(sorted(items)[:3])})"
        raise AuditError(f"item {item!r} is none of the {len(items)} items judged", file=path, row=at, mend=mend)
    if judges is not None and judge not in judges:
        mend = f"correct the name, or add the judge (known: {', '.join(sorted(judges))})"
        raise AuditError(f"judge {judge!r} is not known", file=path, row=at, mend=mend)
    said = label_of(label) if label else ""
    if said is None:
        mend = f"write one of {', '.join(LABELS)}, or leave the cell empty where the judge gave none"
        raise AuditError(f"{label[:60]!r} is no label", file=path, row=at, mend=mend)
    number = row["round"].strip().lower().removeprefix("round").strip().removesuffix(".0")
    if number not in ("1", "2"):
        raise AuditError(f"round {row['round'][:20]!r} is neither 1 nor 2", file=path, row=at, mend="write 1 or 2")
    return {
        "item": item, "round": int(number), "judge": judge, "label": said, "reason": row.get("reason", "").strip(),
        "source": path.name, "shown_order": row.get("shown_order", ""), "outcome": row.get("outcome", ""),
        **{name: _count(row.get(name, ""), name, path, at) for name in _NUMBERS},
    }  # fmt: skip


def _count(text: str, name: str, path: Path, at: int) -> float:
    text = text.strip()
    try:
        value = float(text) if text else float("nan")
    except ValueError:
        value = -1.0
    if value < 0 or value == float("inf"):
        mend = "write a whole number, or leave it empty"
        raise AuditError(f"{name} is {text[:20]!r}, no count", file=path, row=at, mend=mend)
    return value
