"""Answers from one machine to another: a store written to one file, and files taken into a store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from auditlib.errors import AuditError
from auditlib.inference.store import COLUMNS, FINAL, SCHEMA_VERSION, Store
from auditlib.paths import atomic

_MEND = "give a file that 'auditlib answers export' wrote, copied whole"


@dataclass(frozen=True)
class Taken:
    """What taking a file in did: answers that are new here, those that were here with the same text, and with another.

    The first answer of a key stays, so that one with another text changes nothing.
    """

    file: Path
    new: int
    same: int
    other: int


def export_answers(source: Path, to: Path) -> int:
    """Write a store to one file that can be copied anywhere; returns the number of answers.

    Parameters
    ----------
    source : the store; it may be in use.
    to : the file, complete or not there at all.

    Raises
    ------
    AuditError
        There is no store, it cannot be read, or the file exists already.
    """
    if not source.exists():
        raise AuditError("there is no answer store to export", file=source, mend="run the pool first")
    if to.exists():
        raise AuditError("this file exists already", file=to, mend="name a new one")
    with Store(source) as store, atomic(to) as temporary:
        try:
            with closing(sqlite3.connect(source)) as db:
                db.execute("VACUUM INTO ?", (os.fspath(temporary),))  # a whole copy, without the log beside it
        except sqlite3.Error as e:
            raise AuditError(f"the answers cannot be written ({e})", file=to, mend="free the disk, or name another "
                             "folder") from None  # fmt: skip
        return len(store)


def import_answers(files: Sequence[Path], into: Path) -> list[Taken]:
    """Take exported answers into a store; what a key has an answer for stays as it is.

    Parameters
    ----------
    files : made by :func:`export_answers`, from any machine.
    into : the store, made where it is not there.

    Raises
    ------
    AuditError
        A file is no export, is damaged, or comes from another version. Nothing of it is taken in then.
    """
    for file in files:  # all of them, before a store is made
        with closing(_rows(file)) as rows:
            next(rows, None)
    with Store(into) as store:
        return [_take(file, store) for file in files]


def _take(file: Path, store: Store) -> Taken:
    if file.exists() and file.resolve() == store.path.resolve():
        raise AuditError("this file is the store itself", file=file, mend=_MEND)
    counts = {"new": 0, "same": 0, "other": 0}
    with closing(_rows(file)) as rows, store.together() as take:
        for row in rows:
            counts[take(row)] += 1
    return Taken(file, **counts)


def _rows(file: Path) -> Iterator[tuple]:
    """Answers of an export, one by one; the file is only read."""
    if not file.is_file():
        raise AuditError("there is no such file", file=file, mend=_MEND)
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            db.execute("PRAGMA trusted_schema=OFF")
            kinds = dict(db.execute("SELECT name, type FROM sqlite_master"))
            if kinds.get("meta") != "table" or kinds.get("answers") != "table":
                raise sqlite3.DatabaseError("it holds no answers")
            (version,) = db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() or ("unknown",)
            if version != str(SCHEMA_VERSION):
                raise AuditError(f"answers of version {version}; this program reads version {SCHEMA_VERSION}",
                                 file=file, mend="use the program's version that wrote them")  # fmt: skip
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise sqlite3.DatabaseError(found)
            marks = ", ".join("?" * len(FINAL))
            yield from db.execute(f"SELECT {', '.join(COLUMNS)} FROM answers WHERE outcome IN ({marks})", FINAL)
    except sqlite3.Error as e:
        raise AuditError(f"this is no export of answers, or it is damaged ({e})", file=file, mend=_MEND) from None
