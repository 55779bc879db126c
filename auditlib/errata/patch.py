"""A dataset with its confirmed errata mended, as a new file; what is not mended stays to the byte."""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import __version__
from auditlib.errata import delimited
from auditlib.errata.changes import Change, Plan, plan_changes
from auditlib.errata.table import Errata
from auditlib.errors import AuditError
from auditlib.frames import LETTERS
from auditlib.paths import atomic
from auditlib.readers import files
from auditlib.readers.dataset import REFERENCE_LENGTH, column_names

#: our column -> the dataset's, where the caller names none
COLUMNS = {"item": "index", "key": "answer"}


@dataclass(frozen=True)
class Patched:
    """A new dataset: its file, the record beside it, and the record's content."""

    file: Path
    record: Path
    said: Mapping[str, Any]


def patch(errata: Errata, source: Path, dataset: Path, to: Path, *, drop: bool = False,
          columns: Mapping[str, str] | None = None) -> Patched:  # fmt: skip
    """Write a dataset in which confirmed errata are mended.

    Parameters
    ----------
    errata, source : the table and the file that it was read from.
    dataset : tsv, csv or parquet; it stays as it is.
    to : the new file, of the same kind; a record ``NAME.json`` is written beside it.
    drop : leave out items with a confirmed reason that no key mends; otherwise they stay, and the record names them.
    columns : ``item`` and ``key`` -> the dataset's names of them, where they are not ``index`` and ``answer``.

    Raises
    ------
    AuditError
        A row does not fit the dataset (``stale``, unknown, contradictory), the new file is the old one or there
        already, or a file is of another kind.

    Notes
    -----
    Text files: the bytes of a changed row differ in the key's field only, those of all other rows not at all. Parquet:
    schema, metadata, row groups and compression stay.
    """
    files.check_file(dataset)
    kind = files.suffix(dataset)
    if kind not in (*files.TEXT, ".parquet"):
        raise AuditError(f"a {kind} file is not patched", file=dataset, mend="save it as tsv, csv or parquet")
    _refuse_target(dataset, to, kind)
    names = COLUMNS | dict(columns or {})
    if kind == ".parquet":
        from auditlib.errata.patch_parquet import patch_parquet as write
    else:
        write = patch_text
    with atomic(to) as file:
        plan, rows = write(errata, source, dataset, file, drop, names)
        old, new = _hashes(dataset), _hashes(file)
    said = _record(errata, source, dataset, to, plan, rows, old, new, drop)
    record = to.with_name(to.name + ".json")
    with atomic(record) as file:
        file.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return Patched(to, record, said)


def _refuse_target(dataset: Path, to: Path, kind: str) -> None:
    if to.exists() and to.samefile(dataset):
        raise AuditError("the new file is the dataset itself", file=to, mend="name another file with --to")
    if to.exists():
        raise AuditError("the file is there already", file=to, mend="name another file with --to, or remove this one")
    if (record := to.with_name(to.name + ".json")).exists():
        raise AuditError("the record of the new file would replace this one", file=record,
                         mend="name another file with --to, or move this one away")  # fmt: skip
    if files.suffix(to) != kind or to.suffix.lower() == ".gz":
        raise AuditError(f"the new file would be of another kind than {dataset.name}", file=to,
                         mend=f"name a file that ends in {kind}")  # fmt: skip


def patch_text(errata: Errata, source: Path, dataset: Path, file: Path, drop: bool, names: Mapping[str, str]
               ) -> tuple[Plan, int]:  # fmt: skip
    """Write the patched text file; returns the plan and the number of rows before."""
    mark = delimited.separator(dataset)
    with delimited.mapped(dataset) as data:
        spans, table = _look(data, mark, dataset, names)
        plan = plan_changes(errata, table, source=source, dataset=dataset, drop=drop)
        at = 0
        with file.open("wb") as out:
            for n, change in plan.changes.items():
                start, end, span = spans[n]
                if change.new_key is None:
                    _copy(data, at, start, out)
                    at = end
                    continue
                if span is None:
                    raise AuditError("the row ends before its key", file=dataset, row=change.row,
                                     mend="write the row out in full")  # fmt: skip
                _copy(data, at, span[0], out)
                quoted = data[span[0] : span[0] + 1] == b'"'
                out.write(delimited.spelled(change.cell, mark, quoted=quoted))
                at = span[1]
            _copy(data, at, len(data), out)
    return plan, len(table)


def _look(data: mmap.mmap, mark: bytes, dataset: Path, names: Mapping[str, str]
          ) -> tuple[list[tuple[int, int, tuple[int, int] | None]], pd.DataFrame]:  # fmt: skip
    """Where each row and its key lie, and the columns on which a plan rests."""
    lines = delimited.records(data, mark, dataset)
    head = next(lines, None)
    header = [delimited.text(data, s, dataset, 1) for s in head.fields] if head else []
    at = positions(header, dataset, names)
    spans, rows = [], []
    for r in lines:
        if len(r.fields) > len(header):
            raise AuditError(f"{len(r.fields)} fields where the header has {len(header)}", file=dataset, row=r.row,
                             mend="quote fields that hold the separator")  # fmt: skip
        if len(r.fields) == 1 and r.fields[0][0] == r.fields[0][1] and len(header) > 1:
            continue  # a blank line is no item
        row: dict[str, Any] = {"row": r.row}
        for ours, place in at.items():
            span = r.fields[place] if place < len(r.fields) else (r.end, r.end)
            long = ours == "image" and span[1] - span[0] > REFERENCE_LENGTH + 2
            row[ours] = "" if long else delimited.text(data, span, dataset, r.row)
        spans.append((r.start, r.end, r.fields[at["key"]] if at["key"] < len(r.fields) else None))
        rows.append(row)
    return spans, pd.DataFrame(rows, columns=["row", *at])


def positions(header: list[str], dataset: Path, names: Mapping[str, str]) -> dict[str, int]:
    """Our column -> its place among the dataset's, with the dataset's names taken as its readers take them.

    Raises
    ------
    AuditError
        There is no column of items or of keys.
    """
    folded = list(column_names(header, dataset).values())
    if {"answer_option", "choices"} <= set(folded):
        raise AuditError("the key stands in two columns here, answer and answer_option", file=dataset, row=1,
                         mend="correct both by hand; a patch changes one")  # fmt: skip
    out = {}
    for ours in ("item", "key"):
        wanted = next(iter(column_names([names[ours]], dataset).values()))
        if wanted not in folded:
            raise AuditError(f"no column {names[ours]!r} (columns: {', '.join(header[:13])})", file=dataset, row=1,
                             mend=f"name it: --map {ours}=COLUMN")  # fmt: skip
        out[ours] = folded.index(wanted)
    for name in ("question", "image", "g_index", *LETTERS):
        if name in folded and folded.index(name) not in out.values():
            out[name] = folded.index(name)
    return out


def _said(c: Change) -> dict[str, Any]:
    plain = {"row": c.row, "item": c.item, "reason": c.reason, "old_key": c.old_key}
    return plain | ({"variant_of": c.derived_from} if c.derived_from else {})


def _copy(data: mmap.mmap, start: int, end: int, out: Any, step: int = 1 << 24) -> None:
    for at in range(start, end, step):
        out.write(data[at : min(at + step, end)])


def _hashes(path: Path) -> dict[str, Any]:
    sha, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as f:
        while block := f.read(1 << 20):
            sha.update(block)
            md5.update(block)
    return {"sha256": sha.hexdigest(), "md5": md5.hexdigest(), "bytes": path.stat().st_size}


def _record(errata: Errata, source: Path, dataset: Path, to: Path, plan: Plan, rows: int, old: dict[str, Any],
            new: dict[str, Any], drop: bool) -> dict[str, Any]:  # fmt: skip
    """What was changed, for whoever asks what tells the new file from the old one."""
    made = list(plan.changes.values())
    gone = [c for c in made if c.new_key is None]
    stated = {h for h in errata.rows["dataset_sha256"] if h}
    return {
        "format": "auditlib dataset patch",
        "version": 1,
        "auditlib": __version__,
        "benchmark": errata.facts.get("benchmark", ""),
        "errata": {"file": source.name, "sha256": _hashes(source)["sha256"]},
        "made_for_this_file": old["sha256"] in stated if stated else None,
        "drop": drop,
        "old": {"file": dataset.name, "rows": rows, **old},
        "new": {"file": to.name, "rows": rows - len(gone), **new},
        "changed": [_said(c) | {"new_key": c.new_key} for c in made if c.new_key is not None],
        "dropped": [_said(c) for c in gone],
        "confirmed_and_left": list(plan.left),
        "not_decided": {s: int(n) for s, n in errata.rows["status"].value_counts().sort_index().items()
                        if s != "confirmed"},
    }  # fmt: skip
