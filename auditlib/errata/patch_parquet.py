"""A parquet dataset with its confirmed errata mended: row group by row group, schema and metadata as they were."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib.errata.changes import Change, Plan, plan_changes
from auditlib.errata.patch import positions
from auditlib.errata.table import Errata
from auditlib.errors import AuditError
from auditlib.readers.dataset import REFERENCE_LENGTH
from auditlib.readers.files import arrow_text

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def patch_parquet(errata: Errata, source: Path, dataset: Path, file: Path, drop: bool, names: Mapping[str, str]
                  ) -> tuple[Plan, int]:  # fmt: skip
    """Write the patched parquet file; returns the plan and the number of rows before.

    Raises
    ------
    AuditError
        The file is damaged, or its column of keys can hold no such key.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(dataset) as old:
            plan, rows, at = _plan(old, errata, source, dataset, drop, names)
            schema = _schema(old.schema_arrow, rows - sum(c.new_key is None for c in plan.changes.values()), rows)
            with pq.ParquetWriter(file, schema, **_settings(old)) as new:
                start = 0
                for group in range(old.num_row_groups):
                    part = old.read_row_group(group)
                    mine = {n - start: c for n, c in plan.changes.items() if start <= n < start + len(part)}
                    start += len(part)
                    part = _changed(part, mine, at, dataset).replace_schema_metadata(schema.metadata)
                    if len(part):
                        new.write_table(part, row_group_size=len(part))
    except (pa.ArrowException, OSError) as e:
        raise AuditError(f"not readable as parquet ({str(e).splitlines()[0]})", file=dataset,
                         mend="copy or write the file again") from None  # fmt: skip
    return plan, rows


def _plan(old: pq.ParquetFile, errata: Errata, source: Path, dataset: Path, drop: bool, names: Mapping[str, str]
          ) -> tuple[Plan, int, int]:  # fmt: skip
    header = old.schema_arrow.names
    at = positions(header, dataset, names)
    columns = {}
    for ours, place in at.items():
        if ours == "image" and not _is_text(old.schema_arrow.field(place).type):
            continue  # pictures as bytes refer to no other row
        texts = arrow_text(old.read(columns=[header[place]]).column(0))
        if ours == "image":
            texts = texts.where(texts.str.len() <= REFERENCE_LENGTH, "")
        columns[ours] = texts
    rows = old.metadata.num_rows
    table = pd.DataFrame({"row": range(1, rows + 1), **columns})
    return plan_changes(errata, table, source=source, dataset=dataset, drop=drop), rows, at["key"]


def _changed(part: pa.Table, changes: Mapping[int, Change], at: int, dataset: Path) -> pa.Table:
    import pyarrow as pa

    if not changes:
        return part
    field, column = part.schema.field(at), part.column(at)
    values = column.to_pylist()
    for n, change in changes.items():
        if change.new_key is not None:
            values[n] = _as_kind(change, field.type, dataset)
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    made = pa.array(values, kind)
    if pa.types.is_dictionary(field.type):
        made = made.dictionary_encode().cast(field.type)
    part = part.set_column(at, field, made)
    gone = {n for n, c in changes.items() if c.new_key is None}
    return part.take([n for n in range(len(part)) if n not in gone]) if gone else part


def _as_kind(change: Change, kind: pa.DataType, dataset: Path) -> Any:
    """The new key as the column holds keys."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if _is_text(kind):
        return change.cell
    if pa.types.is_integer(kind) and change.cell.isdigit():
        return int(change.cell)
    raise AuditError(f"the keys here are of kind {kind}, and {change.new_key!r} is none", file=dataset, row=change.row,
                     mend="give the key as the dataset writes it")  # fmt: skip


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))


def _settings(old: pq.ParquetFile) -> dict[str, Any]:
    """Compression and dictionaries column by column, as the old file has them."""
    if not old.num_row_groups:
        return {}
    first = old.metadata.row_group(0)
    columns: Sequence[Any] = [first.column(i) for i in range(first.num_columns)]
    codec = {c.path_in_schema: c.compression.lower() for c in columns}
    encoded = [c.path_in_schema for c in columns if any("DICTIONARY" in e for e in c.encodings)]
    return {"compression": {k: "none" if v == "uncompressed" else v for k, v in codec.items()},
            "use_dictionary": encoded or False, "store_schema": True,
            "version": "1.0" if old.metadata.format_version == "1.0" else "2.6"}  # fmt: skip


def _schema(schema: pa.Schema, rows: int, before: int) -> pa.Schema:
    """The schema with its metadata; a counted pandas index is as long as the new table."""
    told = dict(schema.metadata or {})
    if rows == before or b"pandas" not in told:
        return schema
    pandas = json.loads(told[b"pandas"])
    for index in pandas.get("index_columns", []):
        if isinstance(index, dict) and index.get("kind") == "range" and index.get("step") == 1:
            index["stop"] = index["start"] + rows
    return schema.with_metadata(told | {b"pandas": json.dumps(pandas).encode()})
