"""Pictures that lie in the cells of a table, found again by their place, so that none is held in memory.

Of a text table (tsv, csv) each row keeps two byte offsets; a picture is read by parsing its one row again. Of a parquet
file each picture keeps its row group; the group that was read last stays in memory (one group, some tens of megabytes
as a rule), since questions come in the file's order.
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib.errors import AuditError
from auditlib.readers import files

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

#: csv's limit on a field's length, lifted for pictures (a C long of 32 bits is the smallest there is)
_LONGEST_FIELD = 2**31 - 1
_LOCK = threading.Lock()


@dataclass(frozen=True)
class PictureCell:
    """What a picture cell holds and how to read it again.

    Attributes
    ----------
    at : place of the row from 0, blank rows counted.
    value : the cell: text, bytes, a mapping with ``bytes`` and ``path``, a list of these, or None. Do not keep it.
    again : gives the cell once more.
    """

    at: int
    value: Any
    again: Callable[[], Any]


#: picture cells by column name, read in order
Cells = dict[str, Callable[[], Iterator[PictureCell]]]


def kept_cells(table: pd.DataFrame, column: str) -> Iterator[PictureCell]:
    """The cells of a table that is in memory anyway."""
    for at, value in zip(table.index, table[column]):
        yield PictureCell(int(at), value, partial(str, value))


def text_cells(path: Path, column: str) -> Iterator[PictureCell]:
    """The cells of one column of a tsv or csv file, in order.

    Raises
    ------
    AuditError
        The file is packed, or its rows cannot be told apart.
    """
    if path.suffix.lower() == ".gz":
        mend = f"unpack it first: gunzip -k {path.name}"
        raise AuditError("pictures are not read from a packed file", file=path, mend=mend)
    rows = _records(path)
    try:
        _, _, header = next(rows)
        place = [h.strip() for h in header].index(column)
        for at, (start, end, record) in enumerate(rows):
            value = record[place] if place < len(record) else ""
            yield PictureCell(at, value, partial(_text_again, path, start, end, place))
    except csv.Error as e:
        mend = "write the file again with every field that holds a quote or a line end in quotes"
        raise AuditError(f"rows cannot be told apart ({e})", file=path, mend=mend) from None


def _separator(path: Path) -> str:
    return "\t" if files.suffix(path) == ".tsv" else ","


@contextmanager
def _wide_fields() -> Iterator[None]:
    """Let a field hold a picture; the limit belongs to the whole process, so it is put back."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _records(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Rows with the bytes they take: first, one past the last, fields."""
    end = 0
    with _wide_fields(), path.open("rb") as f:

        def lines() -> Iterator[str]:
            nonlocal end
            for raw in f:
                text = raw.decode("utf-8-sig" if end == 0 else "utf-8")
                end += len(raw)
                yield text

        start = 0
        for record in csv.reader(lines(), delimiter=_separator(path)):
            yield start, end, record
            start = end


def _text_again(path: Path, start: int, end: int, place: int) -> str:
    with path.open("rb") as f:
        f.seek(start)
        text = f.read(end - start).decode("utf-8-sig" if start == 0 else "utf-8", errors="replace")
    lines = (f"{line}\n" for line in text.split("\n"))
    with _wide_fields():
        record = next(csv.reader(lines, delimiter=_separator(path)), [])
    return record[place] if place < len(record) else ""


def parquet_cells(path: Path, column: str) -> Iterator[PictureCell]:
    """The cells of one column of a parquet file, in order, one row group at a time."""
    import pyarrow.parquet as pq

    at = 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            within = 0
            for batch in file.iter_batches(batch_size=32, row_groups=[group], columns=[column]):
                for value in batch.column(0).to_pylist():
                    yield PictureCell(at, value, partial(_parquet_again, path, column, group, within))
                    at, within = at + 1, within + 1


def _parquet_again(path: Path, column: str, group: int, within: int) -> Any:
    with _LOCK:
        return _group(path, column, group)[within].as_py()


@lru_cache(maxsize=1)
def _group(path: Path, column: str, group: int) -> pa.ChunkedArray:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.read_row_group(group, columns=[column]).column(0)
