"""Wide matrices of 0 and 1: rows are models or items, prefixes of the column names are conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.readers import cells, files, matrix_gaps, table

if TYPE_CHECKING:
    from auditlib.params import DataParams

_ONE, _ZERO, _EMPTY = 1, 0, 255
_WORDS = {"1": _ONE, "0": _ZERO, "true": _ONE, "false": _ZERO, "": _EMPTY}
_CHUNK = 20_000


@dataclass(frozen=True)
class Matrix:
    """Hits without replies.

    Attributes
    ----------
    items : one row per item, in order of the arrays' first axis: ``item`` and the facts of the items file, if any.
    models : names, in order of the arrays' second axis.
    hits : condition to uint8 array of 0 and 1, shape (items, models); 0 where missing.
    missing : condition to bool array of the same shape, or ``None`` when nothing is missing.
    coverage : what was read, left out and why.
    inputs : files read.
    provenance : ``judge``: the name that the params give to whatever decided the hits.
    """

    items: pd.DataFrame
    models: list[str]
    hits: dict[str, np.ndarray]
    missing: dict[str, np.ndarray | None]
    coverage: pd.DataFrame = field(default_factory=lambda: frames.frame("coverage"))
    inputs: tuple[Path, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Wide:
    """A matrix before its columns are sorted out: codes 0, 1, 255 (empty), shape (rows, columns).

    ``facts`` are the columns that describe the rows, under our names.
    """

    rows: pd.Series
    columns: list[str]
    codes: np.ndarray
    facts: pd.DataFrame


def read_matrix(data: DataParams, *, exclude: Iterable[str] = (), judge: str | None = None) -> Matrix:
    """Read a wide 0/1 matrix.

    Parameters
    ----------
    data : ``matrix``; ``rows`` (``models``: the first column names the models and the other columns are items;
        ``items``: the first column, or the one mapped as ``columns: {item: NAME}``, names the items, other mapped
        columns such as ``{stratum: NAME, key: NAME}`` describe them, and the rest are models); ``prefixes`` of column
        names to conditions, a column without such a prefix is ``full``; ``items`` and ``item_columns`` for item facts,
        joined by id.
    exclude : models to leave out.
    judge : name of whatever decided the hits, kept as provenance.

    Raises
    ------
    AuditError
        A cell is neither 0, 1, true, false nor empty (file, row and column are named), every cell is empty, a model or
        item occurs twice, a prefix fits no column, no id joins the items file.

    Notes
    -----
    A parquet with items in rows is read column by column into uint8, so memory holds the result and one column.
    """
    path = data.matrix
    assert path is not None
    files.check_file(path)
    wide = _parquet(path, data) if files.suffix(path) == ".parquet" else _text(path, data)
    rows = wide.rows.str.strip()
    if (rows == "").any():
        raise AuditError(
            "a row without a name in the first column",
            file=path,
            row=int(np.flatnonzero(rows == "")[0]) + 2,
            mend="name the row",
        )
    matrix_gaps.check_prefixes(wide.columns, data.prefixes, path)
    split = [_split(c, data.prefixes) for c in wide.columns]
    if data.rows == "models":
        models, codes = rows.tolist(), wide.codes.T
        cells_of: dict[str, dict[str, int]] = {}
        ids = cells.item_ids(pd.Series([name for _, name in split], dtype="str"))
        for at, ((condition, _), item) in enumerate(zip(split, ids)):
            _put(cells_of.setdefault(condition, {}), item, at, path)
        items = pd.Series(list(dict.fromkeys(ids)), dtype="str")
        names, axis = items.tolist(), 0
    else:
        items, codes = cells.item_ids(rows), wide.codes
        cells_of = {}
        for at, (condition, model) in enumerate(split):
            _put(cells_of.setdefault(condition, {}), model, at, path)
        models = list(dict.fromkeys(m for _, m in split))
        names, axis = models, 1
    _unique(rows if data.rows == "models" else items, path)
    keep, coverage = _excluded(models, exclude, path)
    hits, missing, absent = {}, {}, {}
    for condition in sorted(cells_of, key=lambda c: (c != "full", c)):
        at = np.array([cells_of[condition].get(n, -1) for n in names])
        part = codes if np.array_equal(at, np.arange(codes.shape[axis])) else np.take(codes, at, axis=axis)
        if (at < 0).any():
            part[(at < 0,) if axis == 0 else (slice(None), at < 0)] = _EMPTY
        part = part if keep.all() else part[:, keep]
        empty = part == _EMPTY
        missing[condition] = empty if empty.any() else None
        hits[condition] = np.ascontiguousarray(np.where(empty, np.uint8(0), part) if empty.any() else part)
        absent[condition] = [name for name, place in zip(names, at) if place < 0]
        n = int((at >= 0).sum()) if axis == 0 else len(items)
        coverage.append(frames.coverage_row("read", n=n, run=path.name, condition=condition))
    models = [m for m, kept in zip(models, keep) if kept]
    if axis == 1:
        absent = {c: [m for m in lost if m in models] for c, lost in absent.items()}
    coverage += matrix_gaps.gaps(missing, absent, models, "items" if axis == 0 else "models", path)
    facts, inputs = pd.DataFrame({"item": items}), [path]
    if len(wide.facts.columns):
        facts = pd.concat([facts, wide.facts.reset_index(drop=True)], axis=1)
    if data.items is not None:
        facts, more = _joined(facts, data, path, split)
        coverage += more
        inputs.append(data.items)
    about = frames.frame("coverage", coverage)
    return Matrix(facts.reset_index(drop=True), models, hits, missing, about, tuple(inputs), {"judge": judge})


def _split(column: str, prefixes: dict[str, str]) -> tuple[str, str]:
    """Condition and name of a column; the longest prefix that fits wins."""
    for prefix in sorted(prefixes, key=len, reverse=True):
        if column.startswith(prefix):
            return prefixes[prefix], column[len(prefix) :]
    return "full", column


def _put(places: dict[str, int], name: str, at: int, path: Path) -> None:
    if name in places:
        raise AuditError(
            f"column {name!r} occurs twice in one condition",
            file=path,
            row=1,
            mend="remove one, or list its prefix under 'prefixes'",
        )
    places[name] = at


def _unique(names: pd.Series, path: Path) -> None:
    twice = names.duplicated()
    if twice.any():
        at = int(np.flatnonzero(twice)[0])
        what = f"{names.iloc[at]!r} occurs twice in the first column"
        raise AuditError(what, file=path, row=at + 2, mend="keep one of the rows")


def _excluded(models: list[str], exclude: Iterable[str], path: Path) -> tuple[np.ndarray, list[dict[str, Any]]]:
    out = set(exclude)
    rows = []
    for model in sorted(out):
        here = model in models
        reason = "excluded in the params" if here else "to be excluded, but there is no such model"
        what = "excluded" if here else "warning"
        rows.append(frames.coverage_row(what, n=int(here), run=path.name, model=model, reason=reason))
    keep = np.array([m not in out for m in models], dtype=bool)
    if not keep.any():
        raise AuditError("no model is left", file=path, mend="shorten exclude_models")
    return keep, rows


def _joined(
    facts: pd.DataFrame, data: DataParams, path: Path, split: list[tuple[str, str]]
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Item facts by id; matrix items without a row stay and are reported, with the prefixes they seem to have."""
    assert data.items is not None
    known, rows = table.items_file(data.items, data.item_columns)
    here = facts["item"].isin(known["item"])
    if not here.any():
        examples = f"matrix: {facts['item'].iloc[0]!r}, items: {known['item'].iloc[0]!r}"
        raise AuditError(
            "no id of the items file occurs in the matrix",
            file=data.items,
            mend=f"map the right id column ({examples})",
        )
    run, source = path.name, data.items.name
    coverage = [
        frames.coverage_row("joined", n=int(here.sum()), run=run, reason=f"items with facts in {source}"),
        *rows,
    ]
    lost = facts.loc[~here, "item"]
    for prefix, group in lost.groupby(lost.str.extract(r"^(<[^>]*>|[^\W\d_]*)", expand=False)):
        reason = f"items that start with {prefix!r} have no row in {source}; list the prefix if it is a condition"
        coverage.append(frames.coverage_row("warning", n=len(group), run=run, item=group.iloc[0], reason=reason))
    unused = int((~known["item"].isin(facts["item"])).sum())
    if unused:
        reason = f"rows of {source} that the matrix lacks"
        coverage.append(frames.coverage_row("excluded", n=unused, run=run, reason=reason))
    both = [c for c in facts.columns if c in known.columns and c != "item"]
    merged = facts.drop(columns=both).merge(known.drop(columns="row"), on="item", how="left", validate="one_to_one")
    for column in both:  # the items file wins where it has a value
        given = merged[column].astype(object)
        own = facts[column].astype(object).to_numpy()
        merged[column] = given.where(given.notna() & (given != ""), pd.Series(own, index=merged.index))
    return merged, coverage


def _text(path: Path, data: DataParams) -> _Wide:
    """A matrix from a csv, tsv or spreadsheet, in pieces of rows."""
    if files.suffix(path) in files.TEXT:
        chunks: Iterator[pd.DataFrame] = files.text_chunks(path, rows=_CHUNK)
    else:
        chunks = iter([files.open_table(path, data.sheet)])
    names, parts, columns, facts = [], [], [], []
    for chunk in chunks:
        name = _name_column(list(chunk.columns), data, path)
        mapped = _fact_columns(list(chunk.columns), data, path)
        unnamed = (chunk[name] == "").to_numpy()
        if unnamed.any():  # a blank line is no row
            chunk = chunk[~unnamed | (chunk != "").any(axis=1).to_numpy()]
        facts.append(chunk[list(mapped)].rename(columns=mapped))
        body = chunk.drop(columns=[name, *mapped])
        columns = [str(c).strip() for c in body.columns]
        names.append(chunk[name])
        raw = body.to_numpy(dtype=object)
        known = {v: _code(v) for v in pd.unique(raw.ravel())}
        bad = [v for v, code in known.items() if code < 0]
        if bad:
            row, column = np.argwhere(raw == bad[0])[0]
            raise _cell(path, int(chunk.index[row]) + 2, columns[column], bad[0])
        codes = pd.Series(raw.ravel()).map(known).to_numpy(dtype=np.uint8)
        parts.append(codes.reshape(raw.shape))
    if not parts or not len(parts[0]):
        raise AuditError("there are no rows below the header", file=path, mend="write the file again")
    codes = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return _Wide(pd.concat(names, ignore_index=True), columns, codes, pd.concat(facts, ignore_index=True))


def _parquet(path: Path, data: DataParams) -> _Wide:
    """A matrix from parquet, one column in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as e:
        raise AuditError(
            f"not readable as parquet ({str(e).splitlines()[0]})", file=path, mend="copy or write the file again"
        ) from None
    with file:
        present = file.schema_arrow.names
        name = _name_column(present, data, path)
        mapped = _fact_columns(present, data, path)
        columns = [c for c in present if c != name and c not in mapped]
        rows = files.arrow_text(file.read(columns=[name]).column(0))
        if not len(rows):
            raise AuditError("there are no rows", file=path, mend="write the file again")
        facts = pd.DataFrame({ours: files.arrow_text(file.read(columns=[c]).column(0)) for c, ours in mapped.items()})
        if "stratum" in facts:  # a few names over many rows
            facts["stratum"] = facts["stratum"].astype("category")
        codes = np.empty((len(rows), len(columns)), dtype=np.uint8, order="F")
        for at, column in enumerate(columns):
            values = file.read(columns=[column]).column(0)
            codes[:, at] = _arrow_codes(values, path, column)
    return _Wide(rows, [str(c).strip() for c in columns], codes, facts)


def _arrow_codes(values: Any, path: Path, column: str) -> np.ndarray:
    import pyarrow as pa

    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        array = values.to_numpy()
        if array.dtype == object:
            array = pd.to_numeric(pd.Series(array), errors="coerce").to_numpy(dtype=float)
        if array.dtype == bool:
            return array.astype(np.uint8)
        empty = np.isnan(array) if array.dtype.kind == "f" else None
        good = (array == 0) | (array == 1)
        good = good | empty if empty is not None else good
        if not good.all():
            at = int(np.flatnonzero(~good)[0])
            raise _cell(path, at + 2, column, cells.cell_text(array[at]))
        if empty is not None and empty.any():
            array = np.where(empty, _EMPTY, array)
        return array.astype(np.uint8)
    texts = files.arrow_text(values).astype(object)
    known = {v: _code(v) for v in texts.unique()}
    bad = [v for v, code in known.items() if code < 0]
    if bad:
        raise _cell(path, int(np.flatnonzero(texts == bad[0])[0]) + 2, column, bad[0])
    return texts.map(known).to_numpy(dtype=np.uint8)


def _fact_columns(columns: list[str], data: DataParams, path: Path) -> dict[str, str]:
    """Columns that describe the items, to our names: what ``columns`` maps beside the id, where items are rows."""
    mapped = {theirs: ours for ours, theirs in data.columns.items() if ours != "item" and data.rows == "items"}
    for theirs, ours in mapped.items():
        if ours not in frames.COLUMNS["items"]:
            known = ", ".join(frames.COLUMNS["items"])
            raise AuditError(f"columns maps {ours!r}, which is no item fact", file=path, mend=f"use one of {known}")
        if theirs not in columns:
            raise AuditError(
                f"there is no column {theirs!r}", file=path, row=1, mend=f"columns here: {', '.join(columns[:8])}, ..."
            )
    return mapped


def _name_column(columns: list[str], data: DataParams, path: Path) -> str:
    """The column that names the rows: the mapped one, else the first."""
    wanted = data.columns.get("item" if data.rows == "items" else "model")
    if wanted is None:
        return columns[0]
    if wanted not in columns:
        raise AuditError(
            f"there is no column {wanted!r}", file=path, row=1, mend=f"columns here: {', '.join(columns[:8])}, ..."
        )
    return wanted


def _code(text: str) -> int:
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        value = float(word)
    except ValueError:
        return -1
    return _EMPTY if value != value else int(value) if value in (0.0, 1.0) else -1


def _cell(path: Path, row: int, column: str, value: str) -> AuditError:
    return AuditError(
        f"column {column!r} holds {value!r}; a matrix holds 0, 1 or nothing",
        file=path,
        row=row,
        mend="correct the cell, or read graded scores as a long table",
    )
