"""A delimited file as bytes: where each record and each field lies, so that what is not changed stays as it is."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from auditlib.errors import AuditError
from auditlib.readers import files

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file: ``row`` as a spreadsheet counts (the header is 1), where it lies with its line end, and
    the spans of its fields, quotes included."""

    row: int
    start: int
    end: int
    fields: tuple[tuple[int, int], ...]


@contextmanager
def mapped(path: Path) -> Iterator[memoryview | mmap.mmap]:
    """A file's bytes without reading them all.

    Raises
    ------
    AuditError
        The file is missing, empty or of another kind.
    """
    files.check_file(path)
    if path.suffix.lower() == ".gz":
        raise AuditError("a packed file is not patched", file=path, mend="unpack it first")
    with path.open("rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def separator(path: Path) -> bytes:
    """Tab for ``.tsv``, comma for other text files, as the readers take it."""
    return b"\t" if files.suffix(path) == ".tsv" else b","


def records(data: bytes | mmap.mmap, mark: bytes, path: Path) -> Iterator[Record]:
    """Records of a delimited file, the header first; blank lines are records of one empty field.

    Parameters
    ----------
    data : the file's bytes; UTF-8, a byte-order mark is skipped.
    mark : the separator, one byte.

    Raises
    ------
    AuditError
        A quote is never closed.

    Notes
    -----
    The rules of the readers: a field is quoted where it begins with a quote; two quotes inside are one; what follows
    the closing quote belongs to the field; lines end with LF, CR LF or CR.
    """
    plain = re.compile(rb"[^%b\r\n]*+" % re.escape(mark))
    quoted = re.compile(rb'"[^"]*+(?:""[^"]*+)*+"')
    at, row, size = len(BOM) if data[:3] == BOM else 0, 1, len(data)
    while at < size:
        start, fields = at, []
        while True:
            first = at
            if data[at : at + 1] == b'"':
                match = quoted.match(data, at)
                if match is None:
                    raise AuditError("a quote is never closed", file=path, row=row, mend="close it; the file may be "
                                     "truncated")  # fmt: skip
                at = match.end()
            at = plain.match(data, at).end()
            fields.append((first, at))
            if data[at : at + 1] != mark:
                break
            at += 1
        if data[at : at + 2] == b"\r\n":
            at += 2
        elif at < size:
            at += 1
        yield Record(row, start, at, tuple(fields))
        row += 1


def text(data: bytes | mmap.mmap, span: tuple[int, int], path: Path, row: int) -> str:
    """A field's text.

    Raises
    ------
    AuditError
        It is not UTF-8.
    """
    raw = bytes(data[span[0] : span[1]])
    if raw[:1] == b'"':
        end = re.match(rb'"[^"]*(?:""[^"]*)*"', raw).end()
        raw = raw[1 : end - 1].replace(b'""', b'"') + raw[end:]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise AuditError(f"not UTF-8: byte 0x{raw[e.start]:02x}", file=path, row=row,
                         mend="save the file as UTF-8") from None  # fmt: skip


def spelled(value: str, mark: bytes, *, quoted: bool) -> bytes:
    """A text as a field, in quotes where the field had them or the text needs them."""
    raw = value.encode("utf-8")
    if quoted or re.search(rb'^"|[\r\n]|%b' % re.escape(mark), raw):
        return b'"' + raw.replace(b'"', b'""') + b'"'
    return raw
