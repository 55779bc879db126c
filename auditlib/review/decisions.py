"""Decisions in: files that readers send back, checked against their packet, all problems said at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.errors import AuditError
from auditlib.review.packets import Packet
from auditlib.review.sheets import _BLANK, Sheet, read_sheet

COLUMNS = ("row", "reader", "label", "note", "saved", "file", "line")
#: line numbers named for one problem, and letters in which a longer text is told apart
MOST_LINES = 12


@dataclass(frozen=True)
class Decisions:
    """What readers decided.

    Attributes
    ----------
    table : columns row, reader, label, note, saved, file, line; one row per reading that has a label.
    unlabelled : the same for rows that hold a note and no label. missing : columns row, reader, role of readings that
        are still to be made (third readings are due on a conflict only and not listed here).
    notes : what was mended on the way in, as columns file, note.
    """

    table: pd.DataFrame
    unlabelled: pd.DataFrame
    missing: pd.DataFrame
    notes: pd.DataFrame


def read_decisions(files: Iterable[str | Path], packet: Packet, *, reader: str | None = None,
                   complete: bool = False) -> Decisions:  # fmt: skip
    """Read decisions from CSV files or Label Studio exports.

    Parameters
    ----------
    files : in any order; several files of one reader are joined.
    reader : who decided, for files that do not say (no reader column, and no reader's name in the file's name).

    complete : whether a first reading without a label is an error too; otherwise it is listed as missing.

    Raises
    ------
    AuditError
        With every problem of every file: unknown rows, labels or readers, rows of another reader, two labels for one
        reading, rows sorted apart from their text. Nothing is read unless all is clear.

    Notes
    -----
    Mended with a note: a byte-order mark, semicolons or tabs, another encoding, blank rows, spaces, capitals, the
    label's words in place of its value, a row given twice with the same label. Rows without a label stay open.
    """
    sheets = [read_sheet(Path(f)) for f in files]
    if twice := [s.path for s in sheets if [o.path.resolve() for o in sheets].count(s.path.resolve()) > 1]:
        raise AuditError("the file is given twice", file=twice[0], mend="give it once")
    told = {s.path: [*s.problems] for s in sheets}
    records: list[dict[str, Any]] = []
    for place, sheet in enumerate(sheets):
        records += [r | {"sheet": place} for r in _normalised(sheet, packet, reader, told[sheet.path])]
    records = _once(records, sheets, told)
    if any(told.values()):
        raise _error(told)
    table = pd.DataFrame(records, columns=list(COLUMNS))
    place = {r: i for i, r in enumerate(packet.rows["row"])}
    table = table.sort_values(["row", "reader"], key=lambda c: c.map(place) if c.name == "row" else c, kind="stable")
    labelled = table["label"].ne("")
    notes = pd.DataFrame([(s.path.name, n) for s in sheets for n in s.notes], columns=["file", "note"])
    held = table[labelled].reset_index(drop=True)
    bare = table[~labelled & table["note"].ne("")].reset_index(drop=True)
    missing = _missing(packet, held)
    if complete and len(missing):
        lacks = [f"{who} lacks {len(m)} ({', '.join(m['row'].head(5))})" for who, m in missing.groupby("reader")]
        raise AuditError(f"{len(missing)} readings are missing: {'; '.join(lacks)}",
                         mend="label these rows, or go on without complete=True")  # fmt: skip
    return Decisions(held, bare, missing, notes)


def _missing(packet: Packet, table: pd.DataFrame) -> pd.DataFrame:
    due = packet.assignment[packet.assignment["role"].eq("first")]
    made = set(zip(table["row"], table["reader"]))
    open_ = [pair not in made for pair in zip(due["row"], due["reader"])]
    return due.loc[open_, ["row", "reader", "role"]].sort_values(["reader", "row"]).reset_index(drop=True)


# ------------------------------------------------------------------------------------------------ one file


def _normalised(sheet: Sheet, packet: Packet, given: str | None, told: list[tuple[str, str]]) -> list[dict[str, str]]:
    """Records with known row, reader and label; what cannot be known goes to ``told``."""
    rows = {r.casefold(): r for r in packet.rows["row"]}
    readers = {r.casefold(): r for r in packet.readers}
    labels = _label_names(packet)
    assigned = set(zip(packet.assignment["row"], packet.assignment["reader"]))
    texts = packet.rows.set_index("row")[list(packet.task.fields)]
    fallback = given or _reader_of(sheet.path, packet.readers)
    mended = {"spaces or capitals": 0, "label's words": 0, "texts edited": 0}
    out = []
    for record in sheet.records:
        line, wrong = record["line"], len(told)
        name, said, who = (_clean(record[c]) for c in ("row", "label", "reader"))
        row, reader = rows.get(name.casefold()), readers.get((who or fallback or "").casefold())
        label = labels.get(_folded(said)) if said else ""
        if row is None:
            told.append((_unlike("row", name, list(rows.values())), line))
        if reader is None:
            hint = "" if who or fallback else " and neither the file's name nor an argument tells"
            told.append((_unlike("reader", who or fallback or "", list(packet.readers)) + hint, line))
        if label is None:
            told.append((_unlike("label", said, list(packet.task.values)), line))
        if row and reader and (row, reader) not in assigned:
            told.append((f"the row is not in the packet of {reader}", line))
        if row and (how := _compare(record, row, texts)) == "other":
            told.append(("the text beside the row's name belongs to another row (sorted apart?)", line))
        if len(told) > wrong:
            continue
        mended["texts edited"] += bool(row and how == "edited")
        mended["spaces or capitals"] += (record["row"], said, record["label"]) != (row, label or said, said)
        mended["label's words"] += bool(said) and _folded(said) != label
        out.append({"row": row, "reader": reader, "label": label, "note": _clean(record["note"]),
                    "saved": _clean(record["saved"]), "file": sheet.path.name, "line": line})  # fmt: skip
    sheet.notes += [f"{n} rows with {what}: read as meant" for what, n in mended.items() if n]
    if bare := sum(r["label"] == "" for r in out):
        sheet.notes.append(f"{bare} rows have no label and stay open")
    return out


def _label_names(packet: Packet) -> dict[str, str]:
    """Every spelling that means a label, folded."""
    words = {_folded(x.words): x.value for x in packet.task.labels}
    return words | {_folded(v): v for v in packet.task.values}


def _clean(text: str) -> str:
    return " ".join(text.strip(_BLANK).replace("\u00a0", " ").split())


def _folded(text: str) -> str:
    return text.casefold().replace("-", "_").replace(" ", "_").replace("\u2019", "'")


def _reader_of(path: Path, readers: Sequence[str]) -> str | None:
    """The reader whose name the file's name holds, where that is just one (longer names first)."""
    name = path.name.casefold()
    found = [r for r in readers if r.casefold() in name]
    longest = [r for r in found if not any(r != o and r.casefold() in o.casefold() for o in found)]
    return longest[0] if len(longest) == 1 else None


def _unlike(what: str, given: str, known: list[str]) -> str:
    """Words for a name that is none of the known ones."""
    if not given:
        return f"no {what}"
    near = difflib.get_close_matches(given.casefold(), [k.casefold() for k in known], n=1, cutoff=0.6)
    like = next((k for k in known if near and k.casefold() == near[0]), None)
    hint = f" (meant {like!r}?)" if like else f" (known: {', '.join(known)})" if len(known) <= 12 else ""
    return f"unknown {what} {given[:60]!r}{hint}"


def _compare(record: dict[str, str], row: str, texts: pd.DataFrame) -> str:
    """Whether the text beside a row's name is its own: ``same``, ``edited``, or ``other`` (that of another row)."""
    shown = [f for f in texts.columns if f in record]
    mine = [_letters(texts.at[row, f]) for f in shown]
    theirs = [_letters(record[f]) for f in shown]
    if mine == theirs:
        return "same"
    others = set(zip(*([_letters(t) for t in texts[f]] for f in shown)))
    return "other" if tuple(theirs) in others else "edited"


def _letters(text: str) -> str:
    """What no spreadsheet or encoding changes: plain letters and digits."""
    return "".join(c for c in text.casefold() if c.isascii() and c.isalnum())


# ------------------------------------------------------------------------------------------------ all files


def _once(records: list[dict[str, Any]], sheets: list[Sheet], told: dict[Path, list[tuple[str, str]]]
          ) -> list[dict[str, Any]]:  # fmt: skip
    """One record per row and reader; equal ones are joined with a note, two labels are a problem."""
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    joined = [0] * len(sheets)
    for record in records:
        key = (record["row"], record["reader"])
        first = kept.setdefault(key, record)
        if first is record:
            continue
        if first["label"] and record["label"] and first["label"] != record["label"]:
            where = (
                f"row {first['line']}" if first["file"] == record["file"] else f"{first['file']}, row {first['line']}"
            )
            what = f"{record['reader']} says {record['label']} of {record['row']}, but {first['label']} in {where}"
            told[sheets[record["sheet"]].path].append((what, record["line"]))
            continue
        joined[record["sheet"]] += 1
        better = record if record["label"] and not first["label"] else first
        notes = list(dict.fromkeys(n for n in (first["note"], record["note"]) if n))
        kept[key] = better | {"note": "; ".join(notes)}
    for sheet, n in zip(sheets, joined):
        if n:
            sheet.notes.append(f"{n} rows were given before without contradiction: joined")
    return list(kept.values())


def _error(told: dict[Path, list[tuple[str, str]]]) -> AuditError:
    """One error that names every problem; equal problems are said once with all their lines."""
    parts, total = [], 0
    for path, problems in told.items():
        lines: dict[str, list[str]] = {}
        for what, line in problems:
            lines.setdefault(what, []).append(line)
        total += len(problems)
        parts += [f"{path.name}, {_places(at)}: {what}" for what, at in lines.items()]
    what = f"{total} problems, nothing was read: " if total > 1 else "nothing was read: "
    return AuditError(what + "; ".join(parts), mend="correct these rows and read the files again")


def _places(lines: list[str]) -> str:
    shown, more = lines[:MOST_LINES], len(lines) - MOST_LINES
    word = "row" if shown[0].isdigit() else "at"
    plural = "s" if word == "row" and len(lines) > 1 else ""
    return f"{word}{plural} {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")
