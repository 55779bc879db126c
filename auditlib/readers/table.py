"""Plain tables, one row per reply or verdict: csv, tsv, xlsx, json or parquet with a column map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.readers import cells, choices, files, judged, table_checks
from auditlib.readers.table_checks import ITEM_TEXTS

if TYPE_CHECKING:
    from auditlib.params import DataParams

#: names that are understood without a column map
USUAL = {
    "item": ("item", "index", "id", "question_id"),
    "key": ("key", "answer", "gold"),
    "prediction": ("prediction", "response"),
    "stratum": ("stratum", "category"),
    "substratum": ("substratum", "l2-category", "l2_category"),
}
#: in a column map, the 0-based place of a row in its file: for logs whose ids are such places
POSITION = "@position"
_OURS = {
    "item",
    "model",
    "condition",
    "sample",
    "prediction",
    "status",
    "abstained",
    "hit",
    "judge",
    "options",
    "key",
    "references",
    "answer_type",
    "level",
    "variant",
    "prompt_mode",
    "finish",
    *ITEM_TEXTS,
    *frames.LETTERS,
}


def read_table(data: DataParams, *, exclude: Iterable[str] = (), judge: str | None = None) -> frames.Runs:
    """Read a long table of runs.

    Parameters
    ----------
    data : ``table``, ``columns`` (our name to the file's), ``condition`` (of all rows, when no column says), ``sheet``,
        ``items`` and ``item_columns`` (a second file with item facts; several rows per item are fine while they agree;
        where it has nothing, the table's own facts stay), ``prefixes`` (values of the condition column to names).
    exclude : models to leave out.
    judge : whose verdicts, where a ``judge`` column names several; without that column, the name of the verdicts.

    Returns
    -------
    Runs
        Verdicts are there when a ``hit`` column is mapped; their source is ``unknown``.

    Raises
    ------
    AuditError
        A mapped column is missing, there is no id column or neither predictions nor hits, a cell does not fit, several
        judges and no choice.
    """
    assert data.table is not None
    return from_table(files.open_table(data.table, data.sheet), data.table, data, exclude=exclude, judge=judge)


def from_table(
    table: pd.DataFrame,
    path: Path,
    data: DataParams,
    *,
    exclude: Iterable[str] = (),
    judge: str | None = None,
    toolkit: str = "table",
) -> frames.Runs:
    """:func:`read_table` of a frame of text that is already open; ``path`` is where it came from."""
    table, coverage = table_checks.where(table, data.where, path)
    table = rename(table, data.columns, path, needed=("item",), block="columns")
    if not {"prediction", "hit"} & set(table.columns):
        raise AuditError(
            "neither a prediction nor a hit column",
            file=path,
            row=1,
            mend=f"map one: columns: {{prediction: NAME}} (columns here: {_names(table)})",
        )
    table["item"] = _ids(table, path)
    table["model"] = table["model"].str.strip() if "model" in table.columns else path.name.split(".")[0]
    if (table["model"] == "").any():
        row = int((table["model"] == "").idxmax()) + 2
        raise AuditError("a row without model", file=path, row=row, mend="name the model, or remove the row")
    table["condition"], named = table_checks.conditions(table, data.condition, data.prefixes, path)
    table["sample"] = table_checks.samples(table, path)
    table, rows = table_checks.without_excluded(table, exclude, path)
    table, judge, more = table_checks.choose_judge(table, judge, path)
    table, conflicts = table_checks.without_conflicts(table, data.columns, path)
    coverage += named + rows + more + conflicts + table_checks.copies(table, path)
    table = table.drop_duplicates(table_checks.CELL)
    facts, inputs = _facts(table, path), [path]
    if data.items is not None:
        known = _item_file(data.items, data.item_columns)
        coverage += _missing_facts(facts["item"], known["item"])
        facts = _filled(facts, known)
        inputs.append(data.items)
    items = _typed(facts)
    coverage += _text_keys(facts, items, path)
    run = path.name
    predictions = table["prediction"] if "prediction" in table.columns else pd.Series("", index=table.index)
    responses = table.assign(
        run=run,
        row=table.index + 2,
        prediction=predictions,
        status=table_checks.statuses(table, predictions, path),
        refused=cells.refused(predictions),
    )
    if "abstained" in table.columns:
        responses["abstained"] = table_checks.flags(table["abstained"], path)
    responses = responses[[c for c in frames.COLUMNS["responses"] if c in responses.columns]]
    counts = table.groupby(["model", "condition"], sort=False).size()
    coverage += [frames.coverage_row("read", n=n, run=run, model=m, condition=c) for (m, c), n in counts.items()]
    return frames.Runs(
        items=items.assign(run=run),
        models=frames.frame("models", [{"model": m} for m in table["model"].unique()]),
        responses=responses.reset_index(drop=True),
        judgements=_judgements(table, run, judge, path),
        coverage=frames.frame("coverage", coverage),
        inputs=tuple(inputs),
        provenance={"toolkit": toolkit, "judge": judge},
    )


def read_items(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """Item facts from a file of their own, one row per item (columns of the items contract, and ``row``).

    Raises
    ------
    AuditError
        Two rows of one item disagree in a mapped column.
    """
    return items_file(path, columns)[0]


def items_file(path: Path, columns: Mapping[str, str]) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """:func:`read_items` with the coverage rows on what was read differently from what is written."""
    facts = _item_file(path, columns)
    items = _typed(facts)
    return items, _text_keys(facts, items, path)


#: facts that the runs themselves prove; an items file only fills their gaps
_SHOWN = ("key", "options", "k", "answer_type", "references")


def fill_facts(items: pd.DataFrame, known: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Items of runs with the facts of an items file, joined by id, and the coverage rows of the join.

    Categories and other descriptions are the items file's wherever it has them; keys and options as the runs have them
    stay, for they are what was shown and scored.

    Raises
    ------
    AuditError
        No id occurs in both.
    """
    coverage = _missing_facts(items["item"], known["item"])
    place = pd.Series(np.arange(len(known)), index=known["item"])
    at = items["item"].map(place).fillna(-1).astype(int).to_numpy()
    for column in [c for c in known.columns if c not in ("item", "row")]:
        values = known[column].tolist()
        own = items[column].tolist() if column in items.columns else [None] * len(items)
        first = (lambda new, old: old if _has(old) else new) if column in _SHOWN else _either
        items = items.assign(**{column: [first(values[i] if i >= 0 else None, o) for i, o in zip(at, own)]})
    return items, coverage


def _either(new: Any, old: Any) -> Any:
    return new if _has(new) else old


def _has(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(str(t).strip() for t in value)
    return value is not None and value is not pd.NA and value == value and str(value).strip() != ""


def _item_file(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    table = rename(files.open_table(path), columns, path, needed=("item",), block="item_columns")
    table["item"] = _ids(table, path)
    return _facts(table, path)


def _facts(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """One row per item from a table whose columns have our names; rows of one item must agree.

    Columns ``item``, those of ITEM_TEXTS, ``options`` as lists, ``key`` and ``answer_type`` as written, ``row``.

    Raises
    ------
    AuditError
        Rows of one item disagree, or an options cell is no list.
    """
    texts = [
        c
        for c in (
            *ITEM_TEXTS,
            "key",
            "references",
            "options",
            "answer_type",
            *choices.option_columns(list(table.columns)),
        )
        if c in table.columns
    ]
    facts = table[["item", *texts]].drop_duplicates()
    twice = facts["item"].duplicated()
    if twice.any():
        item = facts.loc[twice, "item"].iloc[0]
        group = facts[facts["item"] == item]
        column = next(c for c in texts if group[c].nunique() > 1)
        raise AuditError(
            f"item {item!r} has different {column} in rows {group.index[0] + 2} and {group.index[1] + 2}",
            file=path,
            row=int(group.index[1]) + 2,
            mend=f"correct it, leave the run out (audit.exclude_models), or leave {column} out of the column map",
        )
    items = facts[["item", *[c for c in texts if c in (*ITEM_TEXTS, "key", "answer_type")]]].copy()
    if "references" in texts:
        items["references"] = _options(facts["references"], path)
    options = _options(facts["options"], path) if "options" in texts else choices.from_columns(facts)
    if "options" in texts or any(options):
        items["options"] = options
    items["row"] = facts.index + 2
    return items.reset_index(drop=True)


def _filled(own: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """The table's own facts, replaced per item and column where the items file has a value."""
    place = pd.Series(np.arange(len(known)), index=known["item"])
    at = own["item"].map(place).fillna(-1).astype(int).to_numpy()
    for column in [c for c in known.columns if c not in ("item", "row")]:
        values = known[column].tolist()
        before = own[column].tolist() if column in own.columns else [None] * len(own)
        new = [values[i] if i >= 0 and _some(values[i]) else b for i, b in zip(at, before)]
        dtype = "object" if column in ("options", "references") else "str"
        own = own.assign(**{column: pd.Series(new, index=own.index, dtype=dtype)})
    return own


def _some(value: Any) -> bool:
    return any(t.strip() for t in value) if isinstance(value, list) else bool(value.strip())


def _typed(facts: pd.DataFrame) -> pd.DataFrame:
    """Facts with keys as letters where they can be, options out of the question, answer types and k."""
    items = facts[[c for c in facts.columns if c not in ("key", "options", "answer_type", "row")]].copy()
    if {"key", "options"} & set(facts.columns):
        written = facts["key"].fillna("") if "key" in facts else pd.Series("", index=facts.index)
        options = [o if isinstance(o, list) else [] for o in facts["options"]] if "options" in facts else []
        key = cells.keys(written)
        if "question" in facts and not any(options):
            items["question"], options = choices.split_questions(facts["question"].fillna(""), key)
        options = options or [[]] * len(facts)
        key = pd.Series(choices.text_keys(key, written, options), index=facts.index, dtype="str")
        types = choices.answer_types(options, key)
        if "answer_type" in facts:
            types = [given or guessed for given, guessed in zip(facts["answer_type"].fillna(""), types)]
        items["options"], items["key"], items["answer_type"] = options, key, types
        items["k"] = choices.counts(options, types).to_numpy()
        items["k"] = items["k"].astype("Int64")
    items["row"] = facts["row"]
    return items


def _text_keys(facts: pd.DataFrame, items: pd.DataFrame, path: Path) -> list[dict[str, Any]]:
    if "key" not in facts:
        return []
    n = int((cells.keys(facts["key"].fillna("")) != items["key"]).sum())
    reason = "keys are the text of an option; its letter is taken"
    return [frames.coverage_row("warning", n=n, run=path.name, reason=reason)] if n else []


def rename(
    table: pd.DataFrame, columns: Mapping[str, str], path: Path, *, needed: tuple[str, ...], block: str
) -> pd.DataFrame:
    """The table's mapped columns under our names; usual names are understood without a map.

    Several columns joined by ``+`` make one text, its parts joined by ``_``: ``{item: category+set_id+question_id}``.

    Raises
    ------
    AuditError
        A mapped name is not in the file, our name is unknown, or a needed column is missing.
    """
    for ours, theirs in columns.items():
        if theirs == POSITION:
            table = table.assign(**{POSITION: [str(i) for i in range(len(table))]})
        if ours not in _OURS:
            mend = "known names: item, model, condition, prediction, key, options, A, B, ..., stratum, hit"
            raise AuditError(f"{block} maps the unknown name {ours!r}", file=path, mend=mend)
        parts = [p.strip() for p in theirs.split("+")]
        if theirs not in table.columns and len(parts) > 1 and set(parts) <= set(table.columns):
            table = table.assign(**{theirs: table[parts].agg("_".join, axis=1)})
        if theirs not in table.columns:
            raise AuditError(
                f"there is no column {theirs!r} (for {ours})", file=path, row=1, mend=f"columns here: {_names(table)}"
            )
    mapping = dict(columns)
    for ours in _OURS - set(mapping):
        free = [n for n in USUAL.get(ours, (ours,)) if n in table.columns and n not in mapping.values()]
        if free:
            mapping[ours] = free[0]
    for ours in needed:
        if ours not in mapping:
            raise AuditError(
                f"no id column ({ours})",
                file=path,
                row=1,
                mend=f"map it: {block}: {{{ours}: NAME}} (columns here: {_names(table)})",
            )
    return pd.DataFrame({ours: table[theirs] for ours, theirs in mapping.items()})


def _names(table: pd.DataFrame) -> str:
    shown = [str(c) for c in table.columns[:12]]
    return ", ".join(shown) + (", ..." if len(table.columns) > 12 else "")


def _ids(table: pd.DataFrame, path: Path) -> pd.Series:
    ids = cells.item_ids(table["item"])
    if (ids == "").any():
        row = int(table.index[(ids == "").to_numpy()][0]) + 2
        raise AuditError("a row without id", file=path, row=row, mend="give it an id")
    return ids


def _missing_facts(ids: pd.Series, known: pd.Series) -> list[dict[str, Any]]:
    lost = sorted(set(ids) - set(known))
    unused = len(set(known) - set(ids))
    rows = []
    if lost:
        reason = "items without a row in the items file"
        rows.append(frames.coverage_row("warning", n=len(lost), item=lost[0], reason=reason))
    if unused:
        rows.append(frames.coverage_row("excluded", n=unused, reason="rows of the items file that no run has"))
    if lost and len(lost) == len(set(ids)):
        examples = f"runs: {ids.iloc[0]!r}, items: {known.iloc[0]!r}"
        raise AuditError("no id of the items file occurs in the runs", mend=f"map the right id columns ({examples})")
    return rows


def _options(column: pd.Series, path: Path) -> list[list[str]]:
    read: dict[str, list[str]] = {}
    for at, text in column.items():
        if text not in read:
            try:
                read[text] = cells.option_list(text)
            except ValueError as e:
                raise AuditError(
                    f"options {text[:60]!r}: {e}",
                    file=path,
                    row=int(at) + 2,
                    mend='write a JSON list, or a mapping {"A": "text"}',
                ) from None
    return [read[t] for t in column]


def _judgements(table: pd.DataFrame, run: str, judge: str | None, path: Path) -> pd.DataFrame:
    if "hit" not in table.columns:
        return frames.frame("judgements")
    hit = judged.hits(table[["hit"]], path)
    verdicts = table[["item", "model", "condition", "sample"]].assign(
        run=run,
        judge=judge,
        hit=hit,
        extracted="",
        source="unknown",
        hit_stored=hit,
    )
    return verdicts[[*frames.COLUMNS["judgements"], "hit_stored"]].reset_index(drop=True)
