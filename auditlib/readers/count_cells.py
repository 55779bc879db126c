"""Columns of a long table of answer counts: coded texts and whole numbers, checked as whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.readers import cells, files

#: columns of the table; ``answer`` is empty where a draw gave none
COLUMNS = ("item", "model", "condition", "answer", "correct", "odd", "even")
#: no cell of a run holds more draws; a larger number is a slip
_MANY = 1_000_000
_VERDICT = {"1": 1, "0": 0, "true": 1, "false": 0, "yes": 1, "no": 0, "1.0": 1, "0.0": 0}


@dataclass(frozen=True)
class Coded:
    """A text column as codes into its distinct values, shape (rows,) and (values,)."""

    codes: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class File:
    """A file and the places of its rows, for messages."""

    path: Path
    rows: np.ndarray

    def error(self, what: str, at: int, mend: str) -> AuditError:
        return AuditError(what, file=self.path, row=int(self.rows[at]) + 2, mend=mend)


def read_columns(path: Path, mapping: Mapping[str, str]) -> dict[str, Any]:
    """Each column of the table: coded text, or an array of numbers where the file holds numbers."""
    for ours in mapping:
        if ours not in COLUMNS:
            raise AuditError(f"columns maps the unknown name {ours!r}", file=path,
                             mend=f"known names: {', '.join(COLUMNS)}")  # fmt: skip
    files.check_file(path)
    if files.suffix(path) != ".parquet":
        raw = files.open_table(path)
        _present(raw.columns, mapping, path)
        return {c: _coded(raw[mapping.get(c, c)]) for c in COLUMNS} | {"rows": raw.index.to_numpy()}
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        present = pq.read_schema(path).names
        _present(present, mapping, path)
        stored = pq.read_table(path, columns=[mapping.get(c, c) for c in COLUMNS])
        if not stored.num_rows:
            raise AuditError("there are no rows", file=path, mend="write the file again")
        columns = {c: _arrow(stored.column(mapping.get(c, c)), c, path) for c in COLUMNS}
    except (pa.ArrowException, OSError) as e:
        what = f"not readable as parquet ({str(e).splitlines()[0]})"
        raise AuditError(what, file=path, mend="copy or write the file again") from None
    return columns | {"rows": np.arange(stored.num_rows)}


def _present(columns: Iterable[str], mapping: Mapping[str, str], path: Path) -> None:
    columns = list(columns)
    for name in COLUMNS:
        if mapping.get(name, name) not in columns:
            what = f"there is no column {mapping.get(name, name)!r} (for {name})"
            mend = f"columns here: {', '.join(columns[:12])}; map it: columns: {{{name}: NAME}}"
            raise AuditError(what, file=path, row=1, mend=mend)


def _coded(column: pd.Series) -> Coded:
    codes, values = pd.factorize(column)
    return Coded(codes.astype(np.int32), np.array([str(v) for v in values], dtype=object))


def _arrow(column: Any, name: str, path: Path) -> Coded | np.ndarray:
    """A parquet column: numbers as they are, anything else as coded text, nulls as ``""`` (not a number: NaN)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_boolean(kind):
        column, kind = column.cast(pa.int8()), pa.int8()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return column.to_numpy()
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        what = f"column {name!r} holds {kind}, neither texts nor numbers"
        raise AuditError(what, file=path, mend="write one text or number in each row")
    if not pa.types.is_dictionary(kind):
        column = column.cast(pa.large_string()).dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    values = [cells.cell_text(v) for v in array.dictionary.to_pylist()]
    codes = pc.fill_null(array.indices.cast(pa.int32()), len(values)).to_numpy(zero_copy_only=False)
    return Coded(codes.astype(np.int32), np.array([*values, ""], dtype=object))


def _texts(column: Coded | np.ndarray) -> Coded:
    """A column as text, numbers written without a fraction that is nought."""
    if isinstance(column, Coded):
        return column
    codes, values = pd.factorize(column)
    values = np.array([*(cells.cell_text(v) for v in values), ""], dtype=object)
    return Coded(np.where(codes < 0, len(values) - 1, codes).astype(np.int32), values)


def _merged(column: Coded, texts: Iterable[str]) -> Coded:
    """The column with its distinct values replaced by ``texts``; equal texts become one value."""
    codes, values = pd.factorize(np.array(list(texts), dtype=object))
    used = np.bincount(codes[column.codes], minlength=len(values)) > 0
    place = np.cumsum(used) - 1
    return Coded(place[codes[column.codes]].astype(np.int32), np.asarray(values, dtype=object)[used])


def named(column: Coded | np.ndarray, name: str, file: File) -> Coded:
    """A text column, stripped; only an answer may be empty."""
    column = _texts(column)
    column = _merged(column, (str(v).strip() for v in column.values))
    if name != "answer" and (column.values == "").any():
        at = int(np.flatnonzero(column.values[column.codes] == "")[0])
        raise file.error(f"the row names no {name}", at, f"write the {name}")
    return column


def conditions(column: Coded, file: File) -> Coded:
    names = ["_".join(str(v).lower().replace("-", " ").replace("_", " ").split()) for v in column.values]
    for code, name in enumerate(names):
        if name not in frames.CONDITIONS:
            raise file.error(f"{name!r} is no condition", int(np.flatnonzero(column.codes == code)[0]),
                             f"write one of {', '.join(frames.CONDITIONS)}")  # fmt: skip
    return _merged(column, names)


def places(column: Coded | np.ndarray, items: pd.Series, file: File, facts: Path) -> np.ndarray:
    """Row of each item in the items file, shape (rows,)."""
    column = _texts(column)
    ids = cells.item_ids(pd.Series(column.values, dtype="str"))
    at = pd.Index(items).get_indexer(ids)
    place = at[column.codes].astype(np.int32)
    if (place < 0).any():
        unknown = np.unique(column.codes[place < 0])
        first = int(np.flatnonzero(place < 0)[0])
        what = f"item {ids.iloc[column.codes[first]]!r} is not in {facts.name} ({len(unknown)} such items)"
        raise file.error(what, first, f"add it there, or map the right id column (there: {items.iloc[0]!r})")
    return place


def whole(column: Coded | np.ndarray, name: str, file: File) -> np.ndarray:
    """Counts as int64."""
    if isinstance(column, Coded):
        numbers = pd.to_numeric(pd.Series(column.values), errors="coerce").to_numpy(float)[column.codes]
    else:
        numbers = column.astype(float)
    bad = ~((numbers >= 0) & (numbers <= _MANY) & (numbers == np.floor(numbers)))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        value = column.values[column.codes[at]] if isinstance(column, Coded) else cells.cell_text(column[at])
        kind = (
            "empty" if value in ("", None) else ("negative" if numbers[at] < 0 else f"no whole number up to {_MANY:,}")
        )
        raise file.error(
            f"column {name!r} holds {value!r}, which is {kind}", at, "write how many draws gave this answer"
        )
    return numbers.astype(np.int64)


def verdicts(column: Coded | np.ndarray, file: File) -> np.ndarray:
    column = _texts(column)
    known = np.array([_VERDICT.get(str(v).strip().lower(), -1) for v in column.values])[column.codes]
    if (known < 0).any():
        at = int(np.flatnonzero(known < 0)[0])
        what = f"column 'correct' holds {column.values[column.codes[at]]!r}, neither 0 nor 1"
        raise file.error(what, at, "write 1 where this answer is correct, else 0")
    return known.astype(bool)


def check(place: np.ndarray, model: Coded, condition: Coded, answer: Coded, correct: np.ndarray,
           items: pd.DataFrame, file: File) -> None:  # fmt: skip
    """Refuse rows that contradict each other; ``place`` is the item of each row."""
    said = place.astype(np.int64) * len(answer.values) + answer.codes
    cell = (said * len(model.values) + model.codes) * len(condition.values) + condition.codes

    def words(at: int) -> str:
        return f"answer {answer.values[answer.codes[at]]!r} to item {items['item'].iloc[place[at]]!r}"

    twice = pd.Series(cell).duplicated().to_numpy()
    if twice.any():
        at = int(np.flatnonzero(twice)[0])
        first = int(np.flatnonzero(cell == cell[at])[0])
        what = (f"{words(at)} is counted twice for {model.values[model.codes[at]]} "
                f"({condition.values[condition.codes[at]]}): also in row {int(file.rows[first]) + 2}")  # fmt: skip
        raise file.error(what, at, "add the two rows up, or remove one")
    empty = answer.values[answer.codes] == ""
    if (empty & correct).any():
        at = int(np.flatnonzero(empty & correct)[0])
        raise file.error("an empty answer is said to be correct", at, "write 0, or the answer that was given")
    order = np.argsort(said, kind="stable")
    same = said[order][1:] == said[order][:-1]
    differ = np.flatnonzero(same & (correct[order][1:] != correct[order][:-1]))
    if len(differ):
        pair = np.sort(order[differ[0] : differ[0] + 2])
        what = f"{words(pair[1])} is correct in one row and wrong in another (row {int(file.rows[pair[0]]) + 2})"
        raise file.error(what, int(pair[1]), "an answer is correct for all models or for none")
    if not correct.any():
        raise AuditError("no answer is said to be correct", file=file.path, mend="write 1 in 'correct' where it is")
