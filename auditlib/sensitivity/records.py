"""The frame of calls: one row per question put to a model under one condition, from files, a pool, or live requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.readers import files
from auditlib.sensitivity.conditions import LEVELS, REFERENCES, Condition, parse
from auditlib.sensitivity.margins import margin_of_scores

#: column -> what it holds, in the order of the frame
COLUMNS: dict[str, str] = {
    "model": "name of the model",
    "item": "id of the question",
    "image": "image that questions share, resampled together; the item itself where unknown",
    "family": "of the image's change; full where there is none",
    "variant": "of the family, or empty",
    "level": "strength; 0 where there is none",
    "seed": "draw of a random change",
    "form": "of the question; empty as it is",
    "sample": "0.. within the same condition",
    "answer": "what was answered: a letter, yes or no, Z for an abstention, a text; empty where unknown or no reply",
    "meaning": "the answer in terms of the item as it is: a negation's yes is a no",
    "key": "right answer under this condition, or empty",
    "hit": "correct, in [0, 1]; missing where there was no usable reply",
    "abstained": "declined to answer",
    "margin": "log-odds or share of the key over the best other option; missing where unknown",
    "k": "options shown; missing where unknown",
    "image_sha256": "hash of the picture as sent, or empty",
    "raw": "the reply as it came, or empty",
    "run": "file it came from",
    "row": "row of the file, the header being row 1; 0 for none",
}
#: columns that name a condition, and a call
CONDITION = ("family", "variant", "level", "seed", "form")
IDENTITY = ("model", "item", *CONDITION, "sample")
_TEXT = (
    "model",
    "item",
    "image",
    "family",
    "variant",
    "form",
    "answer",
    "meaning",
    "key",
    "image_sha256",
    "raw",
    "run",
)
_FLOAT = ("level", "hit", "margin", "k")
_WHOLE = ("seed", "sample", "row")


@dataclass(frozen=True)
class Calls:
    """Calls and what was left out of them.

    Attributes
    ----------
    table : columns of :data:`COLUMNS`. coverage : rows of the coverage contract. inputs : files that were read.
    """

    table: pd.DataFrame
    coverage: pd.DataFrame = field(default_factory=lambda: frames.frame("coverage"))
    inputs: tuple[Path, ...] = ()

    @property
    def models(self) -> list[str]:
        """Models in the order of their first call."""
        return list(dict.fromkeys(self.table["model"]))


def calls_frame(rows: Iterable[Mapping[str, Any]] | pd.DataFrame) -> Calls:
    """Build a frame of calls: unknown columns left empty, types set, copies counted, contradictions refused.

    Parameters
    ----------
    rows : ``model``, ``item`` and either ``condition`` (see :func:`auditlib.sensitivity.conditions.parse`) or
        ``family``; ``hit``, or ``answer`` and ``key``. ``scores`` may hold option scores (a mapping or JSON), from
        which the margin is taken.

    Raises
    ------
    AuditError
        A needed column is missing; a hit outside [0, 1]; a level that is negative or endless; a family whose name is
        nearly one of ours; one call twice with different content.
    """
    table = rows.copy() if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if not len(table):
        raise AuditError("there are no calls", mend="name a file with one row per call")
    for name in ("model", "item"):
        if name not in table:
            raise AuditError(f"calls lack {name!r}", mend=f"map the column: columns: {{{name}: NAME}}")
    table = _conditions(table.reset_index(drop=True))
    for name in _TEXT:
        column = table[name].astype(object) if name in table else pd.Series("", index=table.index, dtype=object)
        table[name] = column.where(column.notna(), "").astype(str)
    for name in _FLOAT:
        table[name] = _numbers(table, name)
        endless = np.isinf(table[name])
        if endless.any():
            at = int(endless.idxmax())
            raise AuditError(f"{name} holds {table[name][at]:g}", **_place(table, at), mend="give finite numbers")
    for name in _WHOLE:
        number = _numbers(table, name).fillna(0)
        part = ~np.isfinite(number) | number.mod(1).ne(0)
        if part.any():
            at = int(part.idxmax())
            raise AuditError(f"{name} holds {number[at]:g}", **_place(table, at), mend="give whole numbers")
        table[name] = number.astype(int)
    table["level"] = table["level"].fillna(0.0)
    if (table["level"] < 0).any():
        at = int(table["level"].lt(0).idxmax())
        raise AuditError(f"level holds {table['level'][at]:g}", **_place(table, at), mend="levels grow from 0")
    strange = _families(table)
    table["abstained"] = _numbers(table, "abstained").fillna(0).gt(0) | table["answer"].eq("Z")
    table["image"] = table["image"].where(table["image"].ne(""), table["item"])
    table["meaning"] = table["meaning"].where(table["meaning"].ne(""), table["answer"])
    if "scores" in table:
        margins = []
        for at, (said, key, given) in enumerate(zip(table["scores"], table["key"], table["margin"])):
            try:
                margins.append(_margin(said, key, given))
            except AuditError as e:
                raise AuditError(e.what, **_place(table, at), mend=e.mend) from None
        table["margin"] = margins
    known = table["hit"].isna() & table["answer"].ne("") & table["key"].ne("")
    table.loc[known, "hit"] = table["answer"].eq(table["key"])[known].astype(float)
    if table["hit"].isna().all():
        raise AuditError("no call is scored", mend="map a column hit, or answer and key")
    bad = table["hit"].notna() & ~table["hit"].between(0, 1)
    if bad.any():
        at = int(bad.idxmax())
        raise AuditError(f"a hit of {table['hit'][at]:g}", **_place(table, at), mend="give numbers in [0, 1]")
    table, copies = _once(table[list(COLUMNS)])
    return Calls(table, frames.frame("coverage", [*copies, *strange, *_stated(table)]))


def without_credit(calls: pd.DataFrame) -> pd.DataFrame:
    """The calls with abstentions counted as wrong, where a benchmark credits them because people declined too.

    With the credit, a model that declines more as the image goes can gain from losing it.
    """
    return calls.assign(hit=calls["hit"].mask(calls["abstained"] & calls["hit"].notna(), 0.0))


def _conditions(table: pd.DataFrame) -> pd.DataFrame:
    if "family" in table:
        return table
    if "condition" not in table:
        raise AuditError("calls lack 'condition' and 'family'", mend="map one: columns: {condition: NAME}")
    names = table["condition"].astype(str)
    known: dict[str, Condition] = {}
    for at, n in names.drop_duplicates().items():
        try:
            known[n] = parse(n)
        except AuditError as e:
            raise AuditError(e.what, **_place(table, int(at)), mend=e.mend) from None
    own = pd.DataFrame({c: names.map({n: getattr(k, c) for n, k in known.items()}) for c in CONDITION})
    # a file may keep levels, variants and seeds in columns of their own, which then speak for themselves
    return pd.concat([table, own[[c for c in own if c not in table]]], axis=1)


def _families(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Refuse a family that is nearly one of ours; state those that are not ours at all."""
    ours = (*REFERENCES, *LEVELS)
    rows = []
    for family in dict.fromkeys(table["family"]):
        if family in ours:
            continue
        where = table["family"].eq(family)
        at = int(where.idxmax())
        if near := get_close_matches(family, ours, 1, 0.82):
            raise AuditError(f"{family!r} is no family of changes, {near[0]!r} is", **_place(table, at),
                             mend=f"write {near[0]}, or map the word in sensitivity.conditions")  # fmt: skip
        if not family:
            raise AuditError("a call names no family of changes", **_place(table, at), mend="write full where there is "
                             "no change")  # fmt: skip
        reason = f"calls under {family!r}, a change that is not made here: compared with the item as it is, no curve"
        rows.append(frames.coverage_row("warning", n=int(where.sum()), condition=family, reason=reason))
    return rows


def _numbers(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table:
        return pd.Series(np.nan, index=table.index)
    raw = table[name]
    if raw.dtype == bool:
        return raw.astype(float)
    text = raw.astype(object).where(raw.notna(), "").astype(str).str.strip()
    words = {"true": "1", "false": "0", "": "nan", "none": "nan", "na": "nan"}
    out = pd.to_numeric(text.str.lower().map(lambda v: words.get(v, v)), errors="coerce")
    bad = out.isna() & ~text.str.lower().isin(["", "nan", "none", "na"])
    if bad.any():
        at = int(bad.idxmax())
        raise AuditError(f"{name} holds {text[at]!r}", **_place(table, at), mend="give a number, or leave it empty")
    return out.astype(float)


def _margin(scores: Any, key: str, given: float) -> float:
    if scores is None or (isinstance(scores, float) and np.isnan(scores)) or scores == "":
        return given
    try:
        mapping = json.loads(scores) if isinstance(scores, str) else dict(scores)
        return margin_of_scores({str(o): float(v) for o, v in mapping.items()}, key)
    except (ValueError, TypeError, AttributeError):
        raise AuditError("scores are no mapping of options to numbers",
                         mend='write JSON such as {"A": -0.1, "B": -2.4}') from None  # fmt: skip


def _place(table: pd.DataFrame, at: int) -> dict[str, Any]:
    """File and row of a call, for a message."""
    row = int(table["row"][at]) if "row" in table and str(table["row"][at]).isdigit() else 0
    file = str(table["run"][at]) if "run" in table else ""
    return {"file": file or None, "row": row or at + 2}


def _once(table: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The calls without copies; a call that stands twice with another answer or verdict is refused."""
    again = table.duplicated(list(IDENTITY), keep=False)
    if not again.any():
        return table, []
    both = table[again]
    differs = both.groupby(list(IDENTITY), sort=False)[["answer", "hit", "key", "raw"]].nunique(dropna=False)
    if (differs > 1).any(axis=None):
        model, item, *_ = differs.index[(differs > 1).any(axis=1)][0]
        what = f"item {item!r} of {model} was called twice under one condition, with different content"
        raise AuditError(what, file=both["run"].iloc[-1] or None, row=int(both["row"].iloc[-1]) or None,
                         mend="give repeats different numbers (sample), draws different seeds")  # fmt: skip
    kept = table.drop_duplicates(list(IDENTITY)).reset_index(drop=True)
    return kept, [frames.coverage_row("duplicate", n=len(table) - len(kept), reason="rows that repeat another row")]


def _stated(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for model, part in table.groupby("model", sort=False):
        rows.append(frames.coverage_row("read", n=len(part), model=str(model)))
        if n := int(part["hit"].isna().sum()):
            rows.append(frames.coverage_row("excluded", n=n, model=str(model), reason="calls without a usable reply"))
    return rows


def read_calls(
    paths: Sequence[str | Path],
    *,
    columns: Mapping[str, str] | None = None,
    conditions: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
) -> Calls:
    """Read calls from tables (csv, tsv, json, jsonl, parquet, also compressed), one row per call.

    Parameters
    ----------
    columns : our name (:data:`COLUMNS`, ``condition``, ``scores``) -> the file's.
    conditions : the file's word for a condition -> ours, such as ``{clean: full, blur_s3: blur@3}``; ``skip`` leaves
        its rows out. Others must be names as :func:`auditlib.sensitivity.conditions.parse` reads them.
    where : column of the file -> value; other rows are left out.

    Raises
    ------
    AuditError
        A column is missing, a condition unknown, a cell does not fit; the message names the file.
    """
    parts, coverage = [], []
    for path in map(Path, paths):
        try:
            table, said = _open(path, dict(columns or {}), dict(conditions or {}), dict(where or {}))
        except AuditError as e:
            raise AuditError(e.what, file=path, row=e.row, mend=e.mend) from None
        parts.append(table)
        coverage += said
    if not parts:
        raise AuditError("no file of calls is named", mend="name one as sensitivity.calls")
    calls = calls_frame(pd.concat(parts, ignore_index=True))
    return Calls(calls.table, pd.concat([frames.frame("coverage", coverage), calls.coverage], ignore_index=True),
                 tuple(Path(p) for p in paths))  # fmt: skip


def _open(path: Path, columns: dict[str, str], conditions: dict[str, str], where: dict[str, str]) -> Any:
    table = files.open_table(path)
    for name, value in where.items():
        if name not in table:
            raise AuditError(
                f"there is no column {name!r}", row=1, mend=f"columns here: {', '.join(table.columns[:12])}"
            )
        table = table[table[name].astype(str).str.strip().eq(value)]
    for theirs in columns.values():
        if theirs not in table:
            raise AuditError(f"there is no column {theirs!r}", row=1,
                             mend=f"columns here: {', '.join(map(str, table.columns[:12]))}")  # fmt: skip
    names = {theirs: ours for ours, theirs in columns.items()}
    clash = [c for c in table if c in columns and columns[c] != c and c not in names]
    table = table.drop(columns=clash).rename(columns=names)
    table["run"], table["row"] = path.name, table.index + 2
    if "condition" not in table:
        return table, []
    said, coverage = table["condition"].astype(str).str.strip(), []
    gone = said.map(conditions).eq("skip")
    if gone.any():
        coverage.append(frames.coverage_row("excluded", n=int(gone.sum()), run=path.name,
                                            reason="conditions that the params skip"))  # fmt: skip
    return table.assign(condition=said.map(lambda v: conditions.get(v, v)))[~gone], coverage


def join(*parts: Calls) -> Calls:
    """Calls from several sources as one; see :func:`calls_frame` for what is refused."""
    kept = [p for p in parts if len(p.table)]
    table, copies = _once(pd.concat([p.table for p in kept], ignore_index=True))
    coverage = pd.concat([p.coverage for p in kept], ignore_index=True)
    if copies:
        coverage = pd.concat([coverage, frames.frame("coverage", copies)], ignore_index=True)
    return Calls(table, coverage, tuple(x for p in kept for x in p.inputs))
