"""A folder read by a function of the user's own, which returns a long table; it is checked as any other table is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from auditlib.errors import AuditError
from auditlib.extensions import own_error, reader_of
from auditlib.readers.files import column_text
from auditlib.readers.table import from_table

if TYPE_CHECKING:
    from auditlib.frames import Runs
    from auditlib.params import DataParams


def read_with(
    file: Path, folder: Path, data: DataParams, *, exclude: Iterable[str] = (), judge: str | None = None
) -> Runs:
    """Read a folder with ``read(folder)`` of ``file``.

    The frame has a row per item, model and condition, with our column names (``item, model, condition, key, options,
    stratum, prediction`` or ``hit``, and the others of :func:`~auditlib.readers.table.read_table`); options are lists,
    or columns ``A``, ``B`` ...

    Raises
    ------
    AuditError
        The folder or file is missing, ``read`` fails or returns no frame, and what a table is refused for.
    """
    if not folder.is_dir():
        raise AuditError("there is no such folder", file=folder, mend="check data.folder")
    read = reader_of(file)
    try:
        table = read(folder)
    except AuditError:
        raise
    except (Exception, SystemExit) as e:
        raise own_error(file, e, "its function read stopped") from e
    if not isinstance(table, pd.DataFrame):
        raise AuditError(f"its function read returned {type(table).__name__}, no pandas DataFrame", file=file,
                         mend="return pandas.DataFrame(rows)")  # fmt: skip
    if not len(table):
        raise AuditError("its function read found nothing in the folder", file=folder, mend="check the folder")
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise AuditError(f"its frame has the column {twice[0]!r} twice", file=file, mend="keep one of them")
    text = pd.DataFrame({str(c): list(column_text(table[c].tolist())) for c in table.columns})
    runs = from_table(text, folder, data, exclude=exclude, judge=judge, toolkit=file.name)
    inputs = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.name.startswith(".")]
    return replace(runs, inputs=(file, *inputs))
