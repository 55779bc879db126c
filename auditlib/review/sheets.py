"""Files as people send them back: encodings, separators, headers and stray cells of spreadsheets."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

from auditlib.errors import AuditError
from auditlib.escape import csv_unguard
from auditlib.review.label_studio import export_rows

#: columns that a file of decisions may have beside the packet's own
NEEDED, KNOWN = ("row", "label"), ("row", "reader", "label", "note", "saved")
_BLANK = " \t\r\n\u00a0\u200b\ufeff"


@dataclass
class Sheet:
    """Records of one file, each with ``line`` (its place as a spreadsheet shows it), and what was mended or is wrong.

    ``problems`` are (what, line): equal ones of many lines are said once.
    """

    path: Path
    records: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)


def read_sheet(path: Path) -> Sheet:
    """Read a CSV (comma, semicolon or tab; UTF-8, UTF-16 or Windows encoding) or a Label Studio export.

    Raises
    ------
    AuditError
        The file is missing, no text, empty, or lacks the columns ``row`` and ``label``.
    """
    sheet = Sheet(Path(path))
    text = _text(sheet)
    if text.lstrip(_BLANK)[:1] in ("[", "{"):
        records, notes = export_rows(text.lstrip(_BLANK), sheet.path)
        sheet.notes += notes
        sheet.records = [{"reader": "", "note": "", "saved": ""} | r for r in records]
        return sheet
    return _rows(sheet, text)


def _text(sheet: Sheet) -> str:
    try:
        data = sheet.path.read_bytes()
    except FileNotFoundError:
        raise AuditError("there is no such file", file=sheet.path, mend="check the path") from None
    except OSError as e:
        raise AuditError(e.strerror or "not readable", file=sheet.path, mend="give yourself the right to read it"
                         ) from None  # fmt: skip
    if data[:4] == b"PK\x03\x04":
        raise AuditError("this is a spreadsheet file, not a CSV", file=sheet.path,
                         mend="save it as 'CSV UTF-8' and give that file")  # fmt: skip
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        sheet.notes.append("read as UTF-16")
        return data.decode("utf-16", "replace")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # a few Windows code points are undefined: they only ever stand in notes
        sheet.notes.append("read as Windows-1252, since it is no UTF-8: check notes with accents")
        text = data.decode("cp1252", "replace")
    if "\0" in text:
        raise AuditError("not a text file", file=sheet.path, mend="save it as 'CSV UTF-8'")
    if not text.strip(_BLANK):
        raise AuditError("the file is empty", file=sheet.path, mend="send the filled-in file again")
    return text


def _rows(sheet: Sheet, text: str) -> Sheet:
    lines = text.splitlines()
    if lines and lines[0].lower().startswith("sep="):  # a hint that some spreadsheets write for themselves
        text = text.split("\n", 1)[1] if "\n" in text else ""
    separator = max(",;\t", key=_first_line(text).count)
    if separator != ",":
        sheet.notes.append(f"separated by {'semicolons' if separator == ';' else 'tabs'}")
    shift = 2 if lines[0].lower().startswith("sep=") else 1
    table = _cells(sheet, text, separator)
    header = [h.strip(_BLANK).lower().replace(" ", "_") for h in table[0]] if table else []
    while header and not header[-1]:
        header.pop()
    lacking = [c for c in NEEDED if c not in header]
    if lacking:
        raise AuditError(f"no column {lacking[0]!r} (columns: {', '.join(header[:12]) or 'none'})", file=sheet.path,
                         row=shift, mend="send the packet's file with its header row as it was")  # fmt: skip
    if twice := [c for c in KNOWN if header.count(c) > 1]:
        raise AuditError(f"column {twice[0]!r} stands twice", file=sheet.path, row=shift, mend="remove one of them")
    blank = 0
    for place, cells in enumerate(table[1:], shift + 1):
        if not any(c.strip(_BLANK) for c in cells):
            blank += 1
            continue
        if len(cells) < len(header) or any(c.strip(_BLANK) for c in cells[len(header) :]):
            sheet.problems.append((f"{len(cells)} cells under {len(header)} columns", str(place)))
            continue
        record = {h: csv_unguard(c) for h, c in zip(header, cells) if h}
        sheet.records.append({"reader": "", "note": "", "saved": ""} | record | {"line": str(place)})
    if blank:
        sheet.notes.append(f"{blank} blank rows are left out")
    return sheet


def _cells(sheet: Sheet, text: str, separator: str) -> list[list[str]]:
    before = csv.field_size_limit(2**31 - 1)  # an export may hold whole pictures in its cells
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as e:
        raise AuditError(f"no CSV ({e})", file=sheet.path, mend="save it as 'CSV UTF-8' again") from None
    finally:
        csv.field_size_limit(before)


def _first_line(text: str) -> str:
    """The header without what stands in quotes."""
    line = text.split("\n", 1)[0]
    return "".join(part for i, part in enumerate(line.split('"')) if i % 2 == 0)
