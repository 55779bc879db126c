"""The errata table on disk: one row per item and question, as CSV for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import __version__
from auditlib.errata.reasons import REASONS, STATUSES, folded, known_words, reason_of, status_of
from auditlib.errors import AuditError
from auditlib.escape import csv_unguard, guard_csv
from auditlib.paths import atomic

#: columns of a table; all are text. ``dataset_sha256`` is the hash of the file whose keys are ``old_key``
COLUMNS = (
    "benchmark", "dataset_sha256", "item", "old_key", "proposed_key", "reason", "evidence", "detectors", "votes",
    "models", "outcome", "status", "sources",
)  # fmt: skip
#: columns without which a file is no errata table
NEEDED = ("item", "old_key", "proposed_key", "reason", "status")
FORMAT = "auditlib errata"


@dataclass(frozen=True)
class Errata:
    """A table and what it was made from.

    Attributes
    ----------
    rows : columns :data:`COLUMNS`, all text, in the order of the dataset.
    facts : benchmark, pool, dataset (file name), items (how many were looked at), models (how many); as far as known.
    places : row number of each row in the file it was read from, as a spreadsheet shows it; empty where it was made.
    """

    rows: pd.DataFrame
    facts: Mapping[str, Any] = field(default_factory=dict)
    places: tuple[int, ...] = ()


def write_errata(errata: Errata, csv: Path, json_file: Path) -> list[Path]:
    """Write ``errata.csv`` (guarded against spreadsheets) and ``errata.json`` (with the meaning of every code)."""
    with atomic(csv) as file:
        guard_csv(errata.rows).to_csv(file, index=False, lineterminator="\n", encoding="utf-8")
    used = set(errata.rows["reason"])
    said = {
        "format": FORMAT,
        "version": 1,
        "auditlib": __version__,
        **errata.facts,
        "statuses": STATUSES,
        "reasons": {code: r.meaning for code, r in REASONS.items() if code in used},
        "rows": errata.rows.to_dict("records"),
    }
    with atomic(json_file) as file:
        file.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return [csv, json_file]


def read_errata(path: Path) -> Errata:
    """Read a table that :func:`write_errata` wrote, or that people have edited since.

    Raises
    ------
    AuditError
        The file cannot be read, lacks a column, or has a row without item, with an unknown reason or status, or a
        second row on one item and question.
    """
    facts: dict[str, Any] = {}
    if path.suffix.lower() == ".json":
        table, places = _json(path, facts)
    else:
        table, places = _csv(path)
        if (beside := path.with_suffix(".json")).is_file():  # what the table was made from is said there
            with suppress(AuditError):
                _json(beside, facts)
    if lacking := [c for c in NEEDED if c not in table]:
        raise AuditError(f"no column {lacking[0]!r} (columns: {', '.join(table.columns[:13])})", file=path, row=1,
                         mend="give a table that 'auditlib errata write' wrote")  # fmt: skip
    table = table.reindex(columns=list(COLUMNS), fill_value="")
    seen: dict[tuple[str, str], int] = {}
    for at, row in zip(places, table.to_dict("records")):
        reason, status = reason_of(row["reason"]) if row["reason"] else None, status_of(row["status"])
        if not row["item"]:
            raise AuditError("a row without item", file=path, row=at, mend="fill in the item, or remove the row")
        if reason is None:
            raise AuditError(f"{row['reason']!r} is no reason", file=path, row=at,
                             mend=known_words(row["reason"], REASONS))  # fmt: skip
        if status is None or not row["status"]:
            raise AuditError(f"{row['status']!r} is no status", file=path, row=at,
                             mend=known_words(row["status"], STATUSES))  # fmt: skip
        first = seen.setdefault((row["item"], REASONS[reason].topic), at)
        if first != at:
            raise AuditError(f"item {row['item']!r} stands here twice with reasons that answer the same question; the "
                             f"first is row {first}", file=path, row=at, mend="settle which of them holds")  # fmt: skip
    table["reason"] = table["reason"].map(reason_of)
    table["status"] = table["status"].map(status_of)
    first = table.iloc[0] if len(table) else {}
    return Errata(table, {"benchmark": first.get("benchmark", "")} | facts, tuple(places))


def _csv(path: Path) -> tuple[pd.DataFrame, Sequence[int]]:
    from auditlib.readers import files

    table = pd.concat(files.text_chunks(path))
    table.columns = [folded(csv_unguard(c)) for c in table.columns]
    if twice := [c for c in table.columns if list(table.columns).count(c) > 1]:
        raise AuditError(f"column {twice[0]!r} occurs twice", file=path, row=1, mend="remove one of them")
    table = table.apply(lambda column: column.map(csv_unguard).str.strip())
    filled = table.ne("").any(axis=1)
    table = table[filled]
    return table.reset_index(drop=True), (table.index + 2).tolist()


def _json(path: Path, facts: dict[str, Any]) -> tuple[pd.DataFrame, Sequence[int]]:
    from auditlib.readers import files

    files.check_file(path)
    try:
        said = json.loads(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as e:
        raise AuditError(f"not readable as JSON ({type(e).__name__})", file=path, mend="write the file again") from None
    rows = said.get("rows") if isinstance(said, dict) else said
    if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        raise AuditError("the JSON holds no list of rows", file=path,
                         mend="give a table that 'auditlib errata write' wrote")  # fmt: skip
    if isinstance(said, dict) and said.get("format") == FORMAT:
        facts.update(_facts(said, path))
    names = list(dict.fromkeys(k for r in rows for k in r)) or list(COLUMNS)
    texts = {n: ["" if r.get(n) is None else str(r.get(n)).strip() for r in rows] for n in names}
    return pd.DataFrame(texts, dtype="str"), range(1, len(rows) + 1)


def _facts(said: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What a table was made from, each fact of its kind."""
    out = {}
    for name in ("benchmark", "pool", "dataset", "items", "models"):
        value = said.get(name)
        count = name in ("items", "models")
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int if count else str) or (count and value < 0):
            raise AuditError(f"{name!r} is {str(value)[:40]!r}, and no {'count' if count else 'name'}", file=path,
                             mend="correct it, or take it out")  # fmt: skip
        out[name] = value
    return out
