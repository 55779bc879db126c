"""Errata lists of others: which column is which, which item is meant, and what each row says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from auditlib.errata.benchmark import Benchmark, refuse_stale
from auditlib.errata.reasons import (
    CANDIDATE,
    CONFIRMED,
    REASONS,
    REJECTED,
    STATUSES,
    folded,
    known_words,
    reason_of,
    status_of,
)
from auditlib.errata.reports import UNSPECIFIED, Report
from auditlib.errors import AuditError
from auditlib.escape import csv_unguard
from auditlib.integrity.facts import loose
from auditlib.readers import cells, files

#: our column -> names that other lists use for it, the likeliest first
NAMES = {
    "item": ("item", "item_id", "index", "id", "question_id", "idx"),
    "old_key": ("old_key", "old_gold", "old_answer", "groundtruth_answer", "ground_truth"),
    "key": ("proposed_key", "key", "new_key", "correct_answer", "corrected_answer", "claimed_gold", "correct"),
    "reason": ("reason", "error_type", "error", "issue"),
    "status": ("status", "decision", "verdict"),
    "says": ("evidence", "note", "notes", "comment", "potential_reason", "explanation"),
    "source": ("sources", "source", "reported_by"),
    "outcome": ("outcome",),
    "benchmark": ("benchmark", "dataset"),
    "detectors": ("detectors",),
    "pair": ("pair", "pair_id"),
    "question": ("question",),
    "options": ("options", "choices"),
}
#: what a list of errata rows must say of an item at the least, one of these
_SAYS = ("key", "reason", "status")


@dataclass(frozen=True)
class Imported:
    """Reports of one list, and what a reader of the table should know about it."""

    reports: tuple[Report, ...]
    notes: tuple[str, ...]


def read_list(path: Path, benchmark: Benchmark, columns: Mapping[str, str] | None = None) -> Imported:
    """Read an errata list: this project's own table, rows in the scheme of MMLU-Redux, or a plain ``item,key`` list.

    Parameters
    ----------
    path : csv, tsv, xlsx, json, jsonl or parquet; JSON may also be a mapping of items to keys.
    columns : our column (a name of :data:`NAMES`) -> the file's; the others are found by their names.

    Raises
    ------
    AuditError
        No column that names the item or says anything of it, an item that the benchmark lacks, an unknown reason,
        status or key, a row made on another key (``stale``).

    Notes
    -----
    A row is a candidate unless the list itself says that people decided: by a status, or by an ``error_type`` (the
    annotations of MMLU-Redux are people's, ``ok`` clears an item).
    """
    table = _open(path)
    found = _columns(table, path, columns or {})
    table = table[list(found.values())].rename(columns={theirs: ours for ours, theirs in found.items()})
    notes = []
    if "benchmark" in table and (named := _fold(table["benchmark"])).ne("").any():
        mine = named.eq(loose(benchmark.name)) | named.eq("")
        if (others := int((~mine).sum())) and mine.any():
            notes.append(f"{others} rows on other benchmarks are left out")
        elif others:
            raise AuditError(f"no row is on {benchmark.name} (benchmarks here: {', '.join(sorted(set(named))[:6])})",
                             file=path, mend=f"correct the column {found['benchmark']!r}, or map another")  # fmt: skip
        table = table[mine]
    annotated = found.get("reason") == "error_type" and "status" not in table
    # a list with the choices written out and a number as its key counts them from 0
    from_zero = "options" in table and "old_key" in table and bool(table["old_key"].str.fullmatch(r"\d+").all())
    table["item"] = _items(table, benchmark, path)
    reports = [_report(row, benchmark, path, int(at), annotated=annotated, from_zero=from_zero)
               for at, row in zip(table.index, table.to_dict("records"))]  # fmt: skip
    refuse_stale(reports, benchmark, dict(enumerate(table.index.tolist())), path)
    if kept := sum(r.key != "" and r.key == benchmark.keys[r.item] for r in reports):
        notes.append(f"{kept} rows name the key that the dataset has: they count where another report differs")
    return Imported(tuple(reports), tuple(notes))


def _open(path: Path) -> pd.DataFrame:
    """The file as text, column names folded; the index holds rows as a spreadsheet numbers them."""
    files.check_file(path)
    if files.suffix(path) == ".json" and (rows := _plain_json(path)) is not None:
        table = pd.DataFrame(rows).map(cells.cell_text).astype("str") if rows else pd.DataFrame()
    else:
        table = files.open_table(path)
    if not len(table):
        raise AuditError("the list has no rows", file=path, mend="give another file")
    table.columns = [folded(csv_unguard(str(c))) for c in table.columns]
    if twice := [c for c in table.columns if list(table.columns).count(c) > 1]:
        raise AuditError(f"column {twice[0]!r} occurs twice", file=path, row=1, mend="rename or remove one of them")
    table = table.apply(lambda column: column.map(csv_unguard).str.strip())
    table.index = table.index + 2
    return table[table.ne("").any(axis=1)]


def _plain_json(path: Path) -> list[dict] | None:
    """Rows of a mapping of items to keys, or of a table with its rows inside; None for other JSON."""
    try:
        said = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, UnicodeDecodeError, RecursionError):
        return None  # said by the table's own reader
    if isinstance(said, dict) and isinstance(rows := said.get("rows"), list) and all(isinstance(r, dict) for r in rows):
        return rows
    if isinstance(said, dict) and said and all(isinstance(v, str | int) for v in said.values()):
        return [{"item": i, "key": k} for i, k in said.items()]
    return None


def _columns(table: pd.DataFrame, path: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Our column -> the file's."""
    have, found = list(table.columns), {}
    for ours, theirs in given.items():
        if ours not in NAMES:
            raise AuditError(f"there is no column {ours!r} to map", mend=known_words(ours, NAMES))
        if folded(theirs) not in have:
            raise AuditError(f"no column {theirs!r} (columns: {', '.join(have[:13])})", file=path, row=1,
                             mend="map a column that the file has")  # fmt: skip
        found[ours] = folded(theirs)
    for ours, names in NAMES.items():
        free = [n for n in names if n in have and n not in found.values()]
        if ours not in found and free:
            found[ours] = free[0]
    if "item" not in found and "question" not in found:
        raise AuditError(f"no column names the item (columns: {', '.join(have[:13])})", file=path, row=1,
                         mend="map it: --map item=COLUMN")  # fmt: skip
    if not any(c in found for c in _SAYS):
        raise AuditError(f"no column says what is wrong (columns: {', '.join(have[:13])})", file=path, row=1,
                         mend="map one: --map key=COLUMN, or reason, or status")  # fmt: skip
    if "old_key" not in found and "answer" in have and "answer" not in found.values():
        if "reason" not in found and "status" not in found and "key" not in found:
            raise AuditError("the column 'answer' may be the old key or the right one", file=path, row=1,
                             mend="say which: --map key=answer, or --map old_key=answer")  # fmt: skip
        found["old_key"] = "answer"
    return found


def _items(table: pd.DataFrame, benchmark: Benchmark, path: Path) -> pd.Series:
    """The benchmark's item of each row, by its id or by its question."""
    if "item" in table:
        plain = cells.item_ids(table["item"])
        ids = table["item"].where(table["item"].isin(set(benchmark.keys)), plain)
        unknown = ~ids.isin(set(benchmark.keys))
        if unknown.any():
            more = f" (and {int(unknown.sum()) - 1} more)" if unknown.sum() > 1 else ""
            said = ids[unknown].iloc[0]
            raise AuditError(f"{benchmark.name} has no item {said!r}{more}" if said else f"a row without item{more}",
                             file=path, row=int(table.index[unknown][0]),
                             mend="correct the id, or take the row out")  # fmt: skip
        return ids
    out = []
    for at, row in zip(table.index, table.to_dict("records")):
        same = benchmark.by_question.get(loose(row["question"]), [])
        if len(same) > 1 and row.get("options"):
            try:
                options = [loose(o) for o in cells.option_list(row["options"])]
            except ValueError:
                options = []
            same = [i for i in same if [loose(o) for o in benchmark.options[i]] == options]
        if len(same) != 1:
            what = "no item has this question" if not same else f"{len(same)} items have this question"
            raise AuditError(f"{what} ({row['question'][:60]!r})", file=path, row=int(at),
                             mend="name the items in a column 'item', or take the row out")  # fmt: skip
        out.append(same[0])
    return pd.Series(out, index=table.index, dtype="str")


def _report(row: Mapping[str, str], benchmark: Benchmark, path: Path, at: int, *, annotated: bool, from_zero: bool
            ) -> Report:  # fmt: skip
    item, word = row["item"], row.get("reason", "")
    clear = annotated and folded(word) in ("ok", "no_issue")
    reason = UNSPECIFIED if clear or not word else reason_of(word)
    if reason is None:
        raise AuditError(f"{word!r} is no reason", file=path, row=at, mend=known_words(word, REASONS))
    status = REJECTED if clear else CONFIRMED if annotated else status_of(row.get("status", ""))
    if status is None:
        raise AuditError(f"{row['status']!r} is no status", file=path, row=at,
                         mend=known_words(row["status"], STATUSES))  # fmt: skip
    old = _key(row.get("old_key", ""), item, benchmark, path, at, from_zero)
    says, new = row.get("says", ""), ""
    if (said := row.get("key", "")) and not clear:
        new = benchmark.key_of(item, said, from_zero=from_zero) or ""
        if not new and reason in ("wrong_key", UNSPECIFIED) and not says:
            mend = "give an option's letter or its whole text, or a reason that needs no key"
            raise AuditError(f"the key {said!r} names no option of item {item!r}", file=path, row=at, mend=mend)
        says = says if new else "; ".join(filter(None, (f"the right answer is given as {said[:80]!r}", says)))
    keeps = new != "" and new == benchmark.keys[item]
    if keeps and (reason == "wrong_key" or status == CONFIRMED):
        raise AuditError(f"stale: item {item!r} has the key {new} in {benchmark.label} already", file=path, row=at,
                         mend="give the dataset that the list was made on, or take the row out")  # fmt: skip
    if keeps:
        says = "; ".join(filter(None, ("the key is right", says)))
    if new and not keeps and reason == UNSPECIFIED:
        reason = "wrong_key"
    topics = ("key", "options", "picture", "scoring") if clear else ()
    bare = keeps and not word and not row.get("status", "")
    source, detectors = row.get("source") or path.name, tuple(d for d in row.get("detectors", "").split(", ") if d)
    # a table of this project, perhaps edited: what detectors alone point at stays a candidate of theirs
    people = not (detectors and source == "audit" and status == CANDIDATE)
    source = path.name if "detectors" in row and people else source
    return Report(item, reason, status, source, people, old, new, says, () if people else detectors,
                  outcome=row.get("outcome", ""), topics=topics, lone=not (clear or bare),
                  pair=row.get("pair", ""))  # fmt: skip


def _key(said: str, item: str, benchmark: Benchmark, path: Path, at: int, from_zero: bool) -> str:
    """The key that a row was made on, as the benchmark writes it."""
    return (benchmark.key_of(item, said, from_zero=from_zero) or said) if said else ""


def _fold(column: pd.Series) -> pd.Series:
    return column.map(loose)
