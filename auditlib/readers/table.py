"""Plain tables, one row per reply or verdict: csv, tsv, xlsx, json or parquet with a column map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.readers import cells, choices, files, judged

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
ITEM_TEXTS = ("question", "stratum", "substratum", "source", "capability", "image_key", "cluster", "design")
_OURS = {
    "item",
    "model",
    "condition",
    "sample",
    "prediction",
    "status",
    "hit",
    "judge",
    "options",
    "key",
    "answer_type",
    "level",
    "variant",
    "prompt_mode",
    "finish",
    *ITEM_TEXTS,
    *frames.LETTERS,
}


def read_table(data: DataParams, *, exclude: Iterable[str] = ()) -> frames.Runs:
    """Read a long table of runs.

    Parameters
    ----------
    data : ``table``, ``columns`` (our name to the file's), ``condition`` (of all rows, when no column says), ``sheet``,
        ``items`` and ``item_columns`` (a second file with item facts; several rows per item are fine while they agree),
        ``prefixes`` (values of the condition column to condition names).
    exclude : models to leave out.

    Returns
    -------
    Runs
        Verdicts are there when a ``hit`` column is mapped; their source is ``unknown``.

    Raises
    ------
    AuditError
        A mapped column is missing, there is no id column or neither predictions nor hits, a cell does not fit.
    """
    path = data.table
    assert path is not None
    table = rename(files.open_table(path, data.sheet), data.columns, path, needed=("item",), block="columns")
    if not {"prediction", "hit"} & set(table.columns):
        raise AuditError(
            "neither a prediction nor a hit column",
            file=path,
            row=1,
            mend=f"map one: columns: {{prediction: NAME}} (columns here: {_names(table)})",
        )
    table["item"] = _ids(table, path)
    table["model"] = table["model"].str.strip() if "model" in table.columns else path.name.split(".")[0]
    table["condition"] = _conditions(table, data)
    table["sample"] = _samples(table, path)
    table, coverage = _without_excluded(table, exclude, path)
    coverage += _copies(table, path)
    table = table.drop_duplicates(["item", "model", "condition", "sample"])
    inputs = [path]
    table, conflicts = _without_conflicts(table, data.columns, path)
    coverage += conflicts
    items = item_facts(table, path)
    if data.items is not None:
        facts = read_items(data.items, data.item_columns)
        coverage += _missing_facts(items["item"], facts["item"])
        items = items.drop(columns=[c for c in facts.columns if c in items.columns and c not in ("item", "row")])
        items = items.merge(facts.drop(columns="row"), on="item", how="left")
        inputs.append(data.items)
    run = path.name
    predictions = table["prediction"] if "prediction" in table.columns else pd.Series("", index=table.index)
    responses = table.assign(
        run=run,
        row=table.index + 2,
        prediction=predictions,
        status=_statuses(table, predictions),
        refused=cells.refused(predictions),
    )
    responses = responses[[c for c in frames.COLUMNS["responses"] if c in responses.columns]]
    counts = table.groupby(["model", "condition"], sort=False).size()
    coverage += [frames.coverage_row("read", n=n, run=run, model=m, condition=c) for (m, c), n in counts.items()]
    return frames.Runs(
        items=items.assign(run=run),
        models=frames.frame("models", [{"model": m} for m in table["model"].unique()]),
        responses=responses.reset_index(drop=True),
        judgements=_judgements(table, run, path),
        coverage=frames.frame("coverage", coverage),
        inputs=tuple(inputs),
        provenance={"toolkit": "table", "judge": "table" if "hit" in table.columns else None},
    )


def read_items(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """Item facts from a file of their own, one row per item (columns of the items contract, and ``row``).

    Raises
    ------
    AuditError
        Two rows of one item disagree in a mapped column.
    """
    table = rename(files.open_table(path), columns, path, needed=("item",), block="item_columns")
    table["item"] = _ids(table, path)
    return item_facts(table, path)


def item_facts(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """One row per item from a table whose columns have our names; rows of one item must agree.

    Raises
    ------
    AuditError
        Rows of one item disagree, or an options cell is no list.
    """
    texts = [
        c
        for c in (*ITEM_TEXTS, "key", "options", "answer_type", *choices.option_columns(list(table.columns)))
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
    items = facts[["item", *[c for c in texts if c in ITEM_TEXTS]]].copy()
    if "options" in texts:
        options = _options(facts["options"], path)
    else:
        options = choices.from_columns(facts)
    if "key" in texts or any(options):
        key = cells.keys(facts["key"]) if "key" in texts else pd.Series("", index=facts.index)
        if "question" in texts and not any(options):
            items["question"], options = choices.split_questions(facts["question"], key)
        types = choices.answer_types(options, key)
        if "answer_type" in texts:
            types = [given or guessed for given, guessed in zip(facts["answer_type"], types)]
        items["options"], items["key"], items["answer_type"] = options, key, types
        items["k"] = choices.counts(options, types).to_numpy()
        items["k"] = items["k"].astype("Int64")
    items["row"] = facts.index + 2
    return items.reset_index(drop=True)


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


def _conditions(table: pd.DataFrame, data: DataParams) -> pd.Series | str:
    if "condition" not in table.columns:
        return data.condition
    values = table["condition"].str.strip()
    return values.map({v: data.prefixes.get(v, v) for v in values.unique()}).astype("str")


def _samples(table: pd.DataFrame, path: Path) -> pd.Series | int:
    if "sample" not in table.columns:
        return 0
    values = cells.item_ids(table["sample"])
    bad = ~values.str.fullmatch(r"\d+")
    if bad.any():
        raise AuditError(
            f"sample {table['sample'][bad].iloc[0]!r} is no number",
            file=path,
            row=int(table.index[bad.to_numpy()][0]) + 2,
            mend="number the repeats 0, 1, ...",
        )
    return values.astype("int64")


def _without_excluded(
    table: pd.DataFrame, exclude: Iterable[str], path: Path
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
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


def _without_conflicts(
    table: pd.DataFrame, mapped: Mapping[str, str], path: Path
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Leave out item texts that nobody mapped and on which the rows of an item disagree."""
    coverage = []
    for column in [c for c in ITEM_TEXTS if c in table.columns and c not in mapped]:
        pairs = table[["item", column]].drop_duplicates()
        n = int(pairs.loc[pairs["item"].duplicated(), "item"].nunique())
        if n:
            reason = f"rows of one item disagree in {column!r}, which is left out; map it to insist"
            coverage.append(frames.coverage_row("conflict", n=n, run=path.name, reason=reason))
            table = table.drop(columns=column)
    return table, coverage


def _copies(table: pd.DataFrame, path: Path) -> list[dict[str, Any]]:
    """Repeated replies: equal ones are listed, different ones refused."""
    cell = ["item", "model", "condition", "sample"]
    repeated = table[table.duplicated(cell, keep=False)]
    if not len(repeated):
        return []
    compared = [c for c in ("prediction", "hit", "key", "question") if c in table.columns]
    first = repeated.groupby(cell)[compared].transform("first")
    differs = (first != repeated[compared]).any(axis=1)
    if differs.any():
        bad = repeated[differs].iloc[0]
        what = f"item {bad['item']!r} of {bad['model']} ({bad['condition']}) occurs twice with different content"
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


def _statuses(table: pd.DataFrame, predictions: pd.Series) -> pd.Series:
    if "prediction" not in table.columns:
        # verdicts only: an empty verdict is a missing cell, not an empty reply
        return pd.Series(np.where(table["hit"].str.strip() == "", "missing", "ok"), index=table.index, dtype="str")
    read = cells.prediction_status(predictions)
    if "status" not in table.columns:
        return read
    given = table["status"].str.strip()
    return given.where(given.isin(frames.STATUSES), read)


def _judgements(table: pd.DataFrame, run: str, path: Path) -> pd.DataFrame:
    if "hit" not in table.columns:
        return frames.frame("judgements")
    hit = judged.hits(table[["hit"]], path)
    verdicts = table[["item", "model", "condition", "sample"]].assign(
        run=run,
        judge=table["judge"] if "judge" in table.columns else "table",
        hit=hit,
        extracted="",
        source="unknown",
        hit_stored=hit,
    )
    return verdicts[[*frames.COLUMNS["judgements"], "hit_stored"]].reset_index(drop=True)
