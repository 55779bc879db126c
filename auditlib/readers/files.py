"""Open a table of any supported format as text, or say in one line what is wrong with the file."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from auditlib.errors import AuditError
from auditlib.readers.cells import column_text, unescape

if TYPE_CHECKING:
    import pyarrow as pa

EXCEL = (".xlsx", ".xlsm", ".xls", ".ods")
TEXT = (".csv", ".tsv", ".txt")
READABLE = (*EXCEL, *TEXT, ".json", ".jsonl", ".parquet")
_SURROGATE = re.compile("[\ud800-\udfff]")
PICKLES = (".pkl", ".pickle")


def suffix(path: Path) -> str:
    """The format's suffix in lower case, ``.gz`` looked through."""
    parts = [s.lower() for s in path.suffixes]
    return parts[-2] if len(parts) > 1 and parts[-1] == ".gz" else (parts[-1] if parts else "")


def open_table(path: Path, sheet: str | None = None) -> pd.DataFrame:
    """Read a csv, tsv, xlsx, json, jsonl or parquet file as a frame of text.

    Parameters
    ----------
    path : file; csv, tsv, json and jsonl may end in ``.gz``.
    sheet : sheet of a spreadsheet; the first one when not given.

    Returns
    -------
    DataFrame
        All columns are text, empty where the file has nothing. Row ``i`` is row ``i + 2`` of the file, since the
        header is row 1; rows that are empty throughout are left out, which the index shows.

    Raises
    ------
    AuditError
        The file is missing, empty, a pickle, damaged, of an unknown kind or encoding, or lacks the sheet.
    """
    check_file(path)
    kind = suffix(path)
    if kind in EXCEL:
        table = _excel(path, sheet)
    elif sheet is not None:
        raise AuditError(f"a {kind} file has no sheet {sheet!r}", file=path, mend="remove 'sheet' from the params")
    elif kind == ".parquet":
        table = _parquet(path)
    elif kind in (".json", ".jsonl"):
        table = _json(path, lines=kind == ".jsonl")
    else:
        table = pd.concat(text_chunks(path)).apply(unescape)
    table.columns = [str(c).strip() for c in table.columns]
    twice = table.columns[table.columns.duplicated() & (table.columns != "")]
    if len(twice):
        raise AuditError(f"column {twice[0]!r} occurs twice", file=path, row=1, mend="rename or remove one of them")
    if not len(table):
        raise AuditError("there are no rows below the header", file=path, mend="write the file again, or leave it out")
    filled = (table != "").any(axis=1)
    return table if filled.all() else table[filled]


def check_file(path: Path) -> None:
    """Refuse what is missing, a folder, empty, a pickle or of an unknown kind, before anything is parsed."""
    if not path.exists():
        dangling = path.is_symlink()
        raise AuditError(
            "a link that leads nowhere" if dangling else "there is no such file",
            file=path,
            mend="copy the file it meant here" if dangling else "check the path",
        )
    if path.is_dir():
        raise AuditError("this is a folder, a file was expected", file=path, mend="name the file inside")
    with path.open("rb") as f:
        start = f.read(8)
    if path.suffix.lower() in PICKLES or re.match(rb"\x80[\x02-\x05]", start):
        raise pickle_error(path)
    if not start:
        raise AuditError("the file is empty (0 bytes)", file=path, mend="write it again, or leave it out")
    if suffix(path) not in READABLE:
        raise AuditError(
            f"files of kind {path.suffix or 'without suffix'!r} are not read",
            file=path,
            mend=f"use one of {', '.join(READABLE)}",
        )


def pickle_error(path: Path) -> AuditError:
    """The refusal of a pickle, with the line that converts it."""
    read = f"pd.DataFrame(pd.read_pickle('{path.name}'))"
    convert = f"python -c \"import pandas as pd; {read}.to_csv('{path.stem}.tsv', sep='\\t', index=False)\""
    what = "a pickle is never opened, since loading one runs code"
    return AuditError(what, file=path, mend=f"where it was written, and only there: {convert}")


def _excel(path: Path, sheet: str | None) -> pd.DataFrame:
    import python_calamine as calamine

    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise AuditError(f"there is no sheet {sheet!r}", file=path, mend=f"sheets here: {', '.join(names)}")
        rows = book.get_sheet_by_name(sheet or names[0]).to_python(skip_empty_area=False)
    except (calamine.CalamineError, OSError, EOFError, ValueError, IndexError) as e:
        raise AuditError(_excel_damage(path, e), file=path, mend="copy or write the file again") from None
    if not rows:
        raise AuditError(f"sheet {sheet or names[0]!r} is empty", file=path, mend=f"sheets here: {', '.join(names)}")
    header = column_text(rows[0])
    columns = zip(*rows[1:], strict=False) if len(rows) > 1 else [()] * len(header)
    # unnamed columns without content are formatting leftovers
    kept = [(name, column_text(cells)) for name, cells in zip(header, columns, strict=False)]
    kept = [(name, cells) for name, cells in kept if name.strip() or any(cells)]
    table = pd.concat([pd.Series(cells, name=name, dtype="str") for name, cells in kept], axis=1) if kept else None
    return table if table is not None else pd.DataFrame()


def _excel_damage(path: Path, error: Exception) -> str:
    if path.suffix.lower() in (".xlsx", ".xlsm", ".ods") and not zipfile.is_zipfile(path):
        with path.open("rb") as f:
            zipped = f.read(2) == b"PK"
        return "the spreadsheet is truncated (its zip directory is missing)" if zipped else "this is no spreadsheet"
    return f"the spreadsheet cannot be read ({type(error).__name__}: {error})"


@contextmanager
def _bytes(path: Path) -> Iterator[io.BufferedIOBase]:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as f:
            yield f
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise AuditError(f"the gzip file is damaged ({e})", file=path, mend="copy the file again") from None


def text_chunks(path: Path, *, rows: int | None = None) -> Iterator[pd.DataFrame]:
    """A csv or tsv file as text frames of at most ``rows`` rows (all at once when ``None``).

    A byte order mark is tolerated, fields may hold newlines, the separator follows the suffix (tab for ``.tsv``).
    Column names are those of the file, also where two are equal or empty. Blank lines are rows, so that the index
    counts rows as a spreadsheet does.
    """
    check_file(path)
    options = {
        "sep": "\t" if suffix(path) == ".tsv" else ",",
        "dtype": str,
        "keep_default_na": False,
        "na_filter": False,
        "encoding": "utf-8-sig",
        "skip_blank_lines": False,
    }
    try:
        with _bytes(path) as f:
            text = io.TextIOWrapper(f, encoding="utf-8-sig", newline="")
            header = next(csv.reader(text, delimiter=options["sep"]), [])
        if not any(header):
            raise pd.errors.EmptyDataError
        with _bytes(path) as f:
            reader = pd.read_csv(f, chunksize=rows, low_memory=False, **options)
            for chunk in reader if rows else (reader,):
                if not isinstance(chunk.index, pd.RangeIndex):
                    mend = "name every column in row 1, or quote fields that hold the separator"
                    raise AuditError("rows have more fields than the header", file=path, row=2, mend=mend)
                chunk.columns = header
                yield chunk
    except UnicodeDecodeError:
        raise _encoding(path) from None
    except pd.errors.EmptyDataError:
        raise AuditError("row 1 names no columns", file=path, mend="write the file again, or leave it out") from None
    except csv.Error:
        mend = "close it, and name the columns in row 1"
        raise AuditError("row 1 is too long (a quote may never be closed)", file=path, row=1, mend=mend) from None
    except pd.errors.ParserError as e:
        raise _parsing(path, str(e)) from None


def _parsing(path: Path, text: str) -> AuditError:
    many = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text)
    if many:
        return AuditError(
            f"{many[3]} fields where the header has {many[1]}",
            file=path,
            row=int(many[2]),
            mend="quote fields that hold the separator",
        )
    inside = re.search(r"EOF inside string starting at row (\d+)", text)
    if inside:
        return AuditError(
            "a quote is never closed", file=path, row=int(inside[1]) + 1, mend="close it; the file may be truncated"
        )
    return AuditError(f"not readable as a table ({text.strip()})", file=path, mend="write the file again")


def _encoding(path: Path) -> AuditError:
    """Where a file stops being UTF-8: found line by line, so that a large file is not held twice."""
    row = 1
    with _bytes(path) as f:
        for row, line in enumerate(f, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as e:
                mend = "save the file as UTF-8"
                if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    mend += " (it looks like UTF-16)"
                return AuditError(
                    f"not UTF-8: byte 0x{line[e.start]:02x} at position {e.start + 1} of the line",
                    file=path,
                    row=row,
                    mend=mend,
                )
    return AuditError("not UTF-8", file=path, row=row, mend="save the file as UTF-8")


def _json(path: Path, *, lines: bool) -> pd.DataFrame:
    with _bytes(path) as f:
        raw = f.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _encoding(path) from None
    try:
        # only a newline ends a record: other line separators may stand inside a text
        data = [json.loads(t) for t in text.split("\n") if t.strip()] if lines else json.loads(text)
    except json.JSONDecodeError as e:
        where = None if lines else e.lineno
        raise AuditError(
            f"not readable as JSON ({e.msg})", file=path, row=where, mend="write the file again; it may be truncated"
        ) from None
    except (RecursionError, ValueError) as e:
        deep = isinstance(e, RecursionError)
        what = "brackets are nested too deeply" if deep else "a number has too many digits"
        mend = "write the file again; it may be damaged" if deep else "write numbers this long as text"
        raise AuditError(f"not readable as JSON ({what})", file=path, mend=mend) from None
    if isinstance(data, dict) and data and all(isinstance(v, (dict, list)) for v in data.values()):
        try:
            data = pd.DataFrame(data).to_dict("records")
        except (ValueError, TypeError, AttributeError):
            what, mend = "the JSON's columns differ in length or kind", "write a list of {column: value}"
            raise AuditError(what, file=path, mend=mend) from None
    if not isinstance(data, list) or not all(isinstance(r, dict) for r in data):
        raise AuditError("the JSON is no list of records", file=path, mend="write a list of {column: value}")
    names = list(dict.fromkeys(k for r in data for k in r))
    columns = {n: column_text(r.get(n) for r in data) for n in names}
    for name, texts in columns.items():
        for row, cell in enumerate(texts, start=2):
            if (half := _SURROGATE.search(cell)) or (half := _SURROGATE.search(str(name))):
                what = f"column {name!r} holds half of a character (\\u{ord(half[0]):04x})".encode(errors="replace")
                mend = "remove it, or write both halves (an emoji may have been cut)"
                raise AuditError(what.decode(), file=path, row=row, mend=mend)
    return pd.DataFrame({n: pd.Series(texts, dtype="str") for n, texts in columns.items()})


def _parquet(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as e:
        raise AuditError(
            f"not readable as parquet ({str(e).splitlines()[0]})", file=path, mend="copy or write the file again"
        ) from None
    return pd.DataFrame({n: arrow_text(c) for n, c in zip(table.column_names, table.columns)})


def arrow_text(column: pa.ChunkedArray) -> pd.Series:
    """A parquet column as text, nulls as ``""``; integers and texts without a detour through Python values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return pd.Series(pc.fill_null(column.cast(pa.large_string()), "").to_numpy(), dtype="str")
    return pd.Series(column_text(column.to_pylist()), dtype="str")
