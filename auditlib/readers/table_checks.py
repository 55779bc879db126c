"""What the cells of a long table of runs mean: conditions, states, judges, repeated rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.partition import agreed_partition
from auditlib.readers import cells
from auditlib.readers.layout import JUDGE_ALIASES

ITEM_TEXTS = ("question", "stratum", "substratum", "source", "capability", "image_key", "cluster", "design")
#: what marks one reply
CELL = ["item", "model", "condition", "sample"]
#: words for the state of a reply, in lower case with ``_`` for blanks
_STATUS_WORDS = {
    **{s: s for s in frames.STATUSES},
    **dict.fromkeys(("success", "succeeded", "done", "complete", "completed", "finished", "valid"), "ok"),
    **dict.fromkeys(("fail", "failure", "error", "errored", "exception", "timeout", "timed_out"), "failed"),
    **dict.fromkeys(("none", "null", "nan", "empty", "absent", "no_answer", "no_reply"), "missing"),
    **dict.fromkeys(("length", "max_tokens", "cut", "cut_off"), "truncated"),
    **dict.fromkeys(("content_filter", "content_filtered", "blocked"), "filtered"),
}


def conditions(
    table: pd.DataFrame, given: str, prefixes: Mapping[str, str], path: Path
) -> tuple[pd.Series | str, list[dict[str, Any]]]:
    """Condition of each row: mapped by ``prefixes``, else one of the usual names in any spelling, else as written.

    Returns
    -------
    conditions : text of each row, or ``given`` when there is no such column.
    coverage : values that are no usual name, and entries of ``prefixes`` that no row has.
    """
    if "condition" not in table.columns:
        return given, []
    values = table["condition"].str.strip()
    counts = values.value_counts()
    mapped = {v: prefixes[v] if v in prefixes else _canonical(v) for v in counts.index}
    usual = ", ".join(frames.CONDITIONS)
    coverage = []
    for value in sorted(v for v in mapped if v not in prefixes and mapped[v] not in frames.CONDITIONS):
        reason = f"{value!r} is no usual condition ({usual}); map it: prefixes: {{{value!r}: NAME}}"
        coverage.append(
            frames.coverage_row("warning", n=int(counts[value]), run=path.name, condition=mapped[value], reason=reason)
        )
    for value in sorted(set(prefixes) - set(mapped)):
        reason = f"no row has the condition {value!r} that prefixes maps"
        coverage.append(frames.coverage_row("warning", n=0, run=path.name, condition=prefixes[value], reason=reason))
    return values.map(mapped).astype("str"), coverage


def _canonical(value: str) -> str:
    word = _word(value)
    return word if word in frames.CONDITIONS else value


def _word(value: str) -> str:
    return "_".join(value.lower().replace("-", " ").replace("_", " ").split())


def statuses(table: pd.DataFrame, predictions: pd.Series, path: Path) -> pd.Series:
    """State of each reply: what a ``status`` column says, else what the reply shows.

    Raises
    ------
    AuditError
        The column holds a word that is no known state.
    """
    if "prediction" not in table.columns:
        # verdicts only: an empty verdict is a missing cell, not an empty reply
        read = pd.Series(np.where(table["hit"].str.strip() == "", "missing", "ok"), index=table.index, dtype="str")
    else:
        read = cells.prediction_status(predictions)
    if "status" not in table.columns:
        return read
    given = table["status"].map({v: _word(v) for v in table["status"].unique()})
    unknown = (given != "") & ~given.isin(_STATUS_WORDS)
    if unknown.any():
        words = ", ".join(repr(w.strip()) for w in table.loc[unknown, "status"].unique()[:5])
        raise AuditError(
            f"column 'status' holds unknown words: {words}",
            file=path,
            row=int(unknown.idxmax()) + 2,
            mend=f"use {', '.join(frames.STATUSES)}, or rename the column if it is no state of the reply",
        )
    return given.map(_STATUS_WORDS).where(given != "", read).astype("str")


def choose_judge(
    table: pd.DataFrame, judge: str | None, path: Path
) -> tuple[pd.DataFrame, str | None, list[dict[str, Any]]]:
    """The rows with the verdicts of one judge, the judge's name, and what is left out.

    Without a ``judge`` column, ``judge`` only names the verdicts. A reply that only other judges saw stays, without a
    verdict.

    Raises
    ------
    AuditError
        Several judges and no choice, or no verdict of the one chosen.
    """
    note = frames.coverage_row
    if "hit" not in table.columns:
        reason = f"judge {judge!r} is named, but there is no column of verdicts"
        rows = [note("warning", n=0, run=path.name, reason=reason)] if judge else []
        return table.drop(columns="judge", errors="ignore"), None, rows
    if "judge" not in table.columns:
        return table, judge or "table", []
    names = table["judge"].str.strip()
    judged = table["hit"].str.strip() != ""
    here = sorted(names[judged].unique()) or sorted(names.unique())
    shown = ", ".join(n or "(no name)" for n in here)
    if judge is None:
        if len(here) > 1:
            mend = "choose one with 'judge: NAME' in the params"
            raise AuditError(f"verdicts of several judges: {shown}", file=path, mend=mend)
        judge = here[0]
    elif judge not in here:
        judge = JUDGE_ALIASES.get(judge, judge)
        if judge not in here:
            mend = f"judges here: {shown}; correct 'judge', or leave it out"
            raise AuditError(f"no verdicts of judge {judge!r}", file=path, mend=mend)
    other = names != judge
    cell = [c for c in CELL if c in table.columns]
    own = pd.MultiIndex.from_frame(table.loc[~other, cell].astype(str))
    covered = pd.MultiIndex.from_frame(table[cell].astype(str)).isin(own)
    blank = other & judged & ~covered
    again = table[other & ~covered].duplicated(cell).reindex(table.index, fill_value=False)
    rows = []
    if n := int((other & judged).sum()):
        rows.append(note("excluded", n=n, run=path.name, reason=f"verdicts of other judges than {judge!r}"))
    if n := int((blank & ~again).sum()):
        rows.append(note("warning", n=n, run=path.name, reason=f"replies without a verdict of judge {judge!r}"))
    table = table.assign(hit=table["hit"].where(~blank, ""), judge=judge)
    return table[~(other & covered) & ~again], judge or "table", rows


def without_excluded(
    table: pd.DataFrame, exclude: Iterable[str], path: Path
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The rows of the other models, and what is left out.

    Raises
    ------
    AuditError
        No row stays.
    """
    coverage = []
    for model in sorted(set(exclude)):
        n = int((table["model"] == model).sum())
        reason = "excluded in the params" if n else "to be excluded, but there is no such model"
        what = "excluded" if n else "warning"
        coverage.append(frames.coverage_row(what, n=n, run=path.name, model=model, reason=reason))
    table = table[~table["model"].isin(set(exclude))]
    if not len(table):
        raise AuditError("every row belongs to an excluded model", file=path, mend="shorten exclude_models")
    return table, coverage


def samples(table: pd.DataFrame, path: Path) -> pd.Series | int:
    """Numbers of the repeats.

    Raises
    ------
    AuditError
        A number is none, or too large.
    """
    if "sample" not in table.columns:
        return 0
    values = cells.item_ids(table["sample"])
    bad = ~values.str.fullmatch(r"[0-9]{1,18}")
    if bad.any():
        raise AuditError(
            f"sample {table['sample'][bad].iloc[0]!r} is no number of a repeat",
            file=path,
            row=int(table.index[bad.to_numpy()][0]) + 2,
            mend="number the repeats 0, 1, ...",
        )
    return values.astype("int64")


def where(table: pd.DataFrame, wanted: Mapping[str, str], path: Path) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The rows whose columns (as the file names them) have the wanted values, and how many are left out.

    Raises
    ------
    AuditError
        A column is not in the file, or no row has the value.
    """
    coverage = []
    for column, value in wanted.items():
        if column not in table.columns:
            mend = f"columns here: {', '.join(map(str, table.columns[:12]))}"
            raise AuditError(f"data.where names {column!r}, which is no column", file=path, row=1, mend=mend)
        inside = table[column].str.strip() == value
        if not inside.any():
            here = ", ".join(repr(v) for v in table[column].str.strip().drop_duplicates()[:8])
            raise AuditError(f"no row has {column} = {value!r}", file=path, mend=f"values here: {here}")
        if n := int((~inside).sum()):
            reason = f"rows with another {column} than {value!r} (data.where)"
            coverage.append(frames.coverage_row("excluded", n=n, run=path.name, reason=reason))
        table = table[inside]
    return table, coverage


def flags(column: pd.Series, path: Path) -> pd.Series:
    """A column of true and false (or 1 and 0, yes and no); empty cells are false.

    Raises
    ------
    AuditError
        A cell holds anything else.
    """
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}
    text = column.str.strip().str.lower()
    unknown = ~text.isin(words)
    if unknown.any():
        raise AuditError(
            f"{column[unknown].iloc[0]!r} is neither true nor false",
            file=path,
            row=int(unknown.idxmax()) + 2,
            mend="write true or false",
        )
    return text.map(words).astype(bool)


#: facts that sort items into groups: where models disagree, the partition of the majority holds as a whole
_PARTITIONS = ("stratum", "substratum", "source", "capability", "design")


def without_conflicts(
    table: pd.DataFrame, mapped: Mapping[str, str], path: Path
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Settle item facts on which the rows of an item disagree.

    Categories: those of the models that agree with each other, when these are the majority; the others' are left out
    and named. Without a majority, and for other texts that nobody mapped, the column is left out.

    Raises
    ------
    AuditError
        A mapped category column on which no majority of the models agrees.
    """
    coverage = []
    for column in [c for c in _PARTITIONS if c in table.columns]:
        agreed = agreed_partition(table, column, "model")
        if agreed is None:
            continue
        who = ", ".join(agreed.deviants[:6])
        if agreed.values:
            table = table.assign(**{column: table["item"].map(agreed.values).fillna("")})
            reason = f"category ({column}) differs from the other models' in the rows of {who}; theirs is left out"
            coverage.append(frames.coverage_row("conflict", n=agreed.items, run=path.name, model=who, reason=reason))
            continue
        if column in mapped and len(agreed.deviants) > 1:
            raise AuditError(
                f"the models' rows disagree in {column} on {agreed.items} items and no majority agrees ({who})",
                file=path,
                mend=f"leave {column} out of the column map, or give an items file with the right one",
            )
    for column in [c for c in ITEM_TEXTS if c in table.columns and c not in mapped]:
        pairs = table[["item", column]].drop_duplicates()
        n = int(pairs.loc[pairs["item"].duplicated(), "item"].nunique())
        if n:
            reason = f"rows of one item disagree in {column!r}, which is left out; map it to insist"
            coverage.append(frames.coverage_row("conflict", n=n, run=path.name, reason=reason))
            table = table.drop(columns=column)
    return table, coverage


def copies(table: pd.DataFrame, path: Path) -> list[dict[str, Any]]:
    """Repeated replies: equal ones are listed.

    Raises
    ------
    AuditError
        Two rows of one reply differ in any column that is read.
    """
    cell = CELL
    repeated = table[table.duplicated(cell, keep=False)]
    if not len(repeated):
        return []
    compared = [c for c in table.columns if c not in cell]
    first = repeated.groupby(cell, sort=False)[compared].transform("first")
    differs = (first != repeated[compared]).any(axis=1)
    if differs.any():
        bad = repeated[differs].iloc[0]
        column = next(c for c in compared if bad[c] != first.at[bad.name, c])
        what = f"item {bad['item']!r} of {bad['model']} ({bad['condition']}) occurs twice with different content"
        what += f" ({column})"
        raise AuditError(
            what,
            file=path,
            row=int(repeated.index[differs][0]) + 2,
            mend="keep the right row, or map a column of repeats: columns: {sample: NAME}",
        )
    rows = []
    for c in repeated[repeated.duplicated(cell)].itertuples():
        reason = f"row {c.Index + 2} repeats an earlier one"
        rows.append(
            frames.coverage_row(
                "duplicate", n=1, run=path.name, model=c.model, condition=c.condition, item=c.item, reason=reason
            )
        )
    return rows
