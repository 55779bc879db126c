"""Long tables of answer counts: how often a model gave an answer to an item, in its odd and in its even samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.readers import count_cells, files, table

if TYPE_CHECKING:
    from auditlib.params import DataParams

#: facts of items that other readers have no use for
_ABOUT = ("licence", "provenance", "sensitive")


@dataclass(frozen=True)
class AnswerCounts:
    """Counted answers and what was counted.

    Attributes
    ----------
    items : one row per item of the items file, in its order.
    models : names, sorted. about : facts of the models, column ``model`` and whatever else is known of them.
    table : columns :data:`~auditlib.readers.count_cells.COLUMNS`, one row per answer that was given. The first four
        are categorical; the categories of ``item`` and ``model`` are those of ``items`` and ``models`` in their order.
        ``correct`` is bool, ``odd`` and ``even`` are int32.
    hits, trials : condition to int32 array, shape (items, models): correct draws, and draws.
    coverage : what was read, left out and why.
    """

    items: pd.DataFrame
    models: list[str]
    about: pd.DataFrame
    table: pd.DataFrame
    hits: dict[str, np.ndarray]
    trials: dict[str, np.ndarray]
    coverage: pd.DataFrame = field(default_factory=lambda: frames.frame("coverage"))
    inputs: tuple[Path, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)


def read_answer_counts(data: DataParams, *, exclude: Iterable[str] = (), judge: str | None = None) -> AnswerCounts:
    """Read a table of answer counts and its items.

    Parameters
    ----------
    data : ``counts``: parquet, csv or any other table with the columns ``item, model, condition, answer, correct, odd,
        even`` (``columns`` maps other names), one row per item, model, condition and distinct answer; ``odd`` and
        ``even`` count draws in odd and even samples. ``items`` (with ``item_columns``): one row per item.
    exclude : models to leave out; each is a row of the coverage table.
    judge : name of whatever decided ``correct``, kept as provenance.

    Raises
    ------
    AuditError
        A count is negative or not whole, ``correct`` is neither 0 nor 1, an item is not in the items file, an answer
        is counted twice for one item, model and condition, an answer is correct in one row and wrong in another, no
        answer is said to be correct. File and row are named.
    """
    path, facts = data.counts, data.items
    assert path is not None and facts is not None
    items, coverage = table.items_file(facts, data.item_columns)
    items = _with_about(items, facts).drop(columns="row")
    raw = count_cells.read_columns(path, data.columns)
    file = count_cells.File(path, raw["rows"])
    place = count_cells.places(raw["item"], items["item"], file, facts)
    counts = {name: count_cells.whole(raw[name], name, file) for name in ("odd", "even")}
    correct = count_cells.verdicts(raw["correct"], file)
    model, condition, answer = (count_cells.named(raw[name], name, file) for name in ("model", "condition", "answer"))
    condition = count_cells.conditions(condition, file)
    count_cells.check(place, model, condition, answer, correct, items, file)
    given = (counts["odd"] + counts["even"]) > 0
    if not given.all():
        reason = "rows of answers that no draw gave"
        coverage.append(frames.coverage_row("excluded", n=int((~given).sum()), run=path.name, reason=reason))
    order = np.argsort(model.values)
    names = [str(model.values[j]) for j in order]
    column = np.empty(len(order), np.int32)
    column[order] = np.arange(len(order), dtype=np.int32)
    keep, rows = _excluded(names, exclude, path)
    coverage += rows
    at = column[model.codes]
    given &= keep[at]
    column = np.cumsum(keep) - 1
    names = [m for m, kept in zip(names, keep) if kept]
    counted = pd.DataFrame({
        "item": pd.Categorical.from_codes(place[given], categories=items["item"].tolist()),
        "model": pd.Categorical.from_codes(column[at[given]], categories=names),
        "condition": pd.Categorical.from_codes(condition.codes[given], categories=condition.values.tolist()),
        "answer": pd.Categorical.from_codes(answer.codes[given], categories=answer.values.tolist()),
        "correct": correct[given],
        "odd": counts["odd"][given].astype(np.int32),
        "even": counts["even"][given].astype(np.int32),
    })  # fmt: skip
    hits, trials = _arrays(counted, (len(items), len(names)))
    coverage += _gaps(items, names, trials, path)
    coverage += _keys_that_differ(counted, items, path)
    return AnswerCounts(
        items=items.reset_index(drop=True),
        models=names,
        about=pd.DataFrame({"model": names}),
        table=counted.reset_index(drop=True),
        hits=hits,
        trials=trials,
        coverage=frames.frame("coverage", coverage),
        inputs=(path, facts),
        provenance={"judge": judge or "correctness as stored in the counts"},
    )


def with_models(counts: AnswerCounts, path: Path) -> AnswerCounts:
    """Counts with the facts of a table of models (model, provider, tier, open, params_b, role)."""
    known = pd.read_csv(path, dtype={"model": str})
    about = counts.about[["model"]].merge(known, on="model", how="left")
    return replace(counts, about=about, inputs=(*counts.inputs, path))


def _with_about(items: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Items with the licence, the provenance and the sensitive flag where the file has such columns."""
    raw = files.open_table(path)
    here = [c for c in _ABOUT if c in raw.columns]
    rows = items["row"].to_numpy() - 2
    return items.assign(**{c: raw[c].reindex(rows).to_numpy(dtype=object) for c in here})


def _excluded(names: list[str], exclude: Iterable[str], path: Path) -> tuple[np.ndarray, list[dict[str, Any]]]:
    out = set(exclude)
    rows = []
    for name in sorted(out):
        here = name in names
        reason = "excluded in the params" if here else "to be excluded, but there is no such model"
        what = "excluded" if here else "warning"
        rows.append(frames.coverage_row(what, n=int(here), run=path.name, model=name, reason=reason))
    keep = np.array([n not in out for n in names], bool)
    if not keep.any():
        raise AuditError("no model is left", file=path, mend="shorten exclude_models")
    return keep, rows


def _arrays(counted: pd.DataFrame, shape: tuple[int, int]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    cell = counted["item"].cat.codes.to_numpy(np.int64) * shape[1] + counted["model"].cat.codes.to_numpy(np.int64)
    draws = (counted["odd"] + counted["even"]).to_numpy(float)
    right = draws * counted["correct"].to_numpy()
    codes, names = counted["condition"].cat.codes.to_numpy(), counted["condition"].cat.categories
    hits, trials = {}, {}
    for name in sorted(names, key=frames.CONDITIONS.index):
        mine = codes == names.get_loc(name)
        for out, weight in ((hits, right), (trials, draws)):
            sums = np.bincount(cell[mine], weights=weight[mine], minlength=shape[0] * shape[1])
            out[name] = sums.astype(np.int32).reshape(shape)
    return hits, trials


def _gaps(items: pd.DataFrame, names: list[str], trials: dict[str, np.ndarray], path: Path) -> list[dict[str, Any]]:
    """Coverage: draws read, models without a run, items that a run lacks, uneven numbers of draws."""
    rows = []
    for condition, made in trials.items():
        for j, name in enumerate(names):
            about = {"run": path.name, "model": name, "condition": condition}
            total, lacking = int(made[:, j].sum()), made[:, j] == 0
            if not total:
                rows.append(frames.coverage_row("not run", n=len(items), reason="no draws of this model", **about))
                continue
            rows.append(frames.coverage_row("read", n=total, reason="draws", **about))
            if lacking.any():
                first = str(items["item"].iloc[int(np.flatnonzero(lacking)[0])])
                reason = "items without a draw"
                rows.append(frames.coverage_row("missing", n=int(lacking.sum()), item=first, reason=reason, **about))
            some = made[~lacking, j]
            if some.min() < some.max():
                reason = f"items with fewer than {some.max()} draws"
                n = int((some < some.max()).sum())
                rows.append(frames.coverage_row("warning", n=n, reason=reason, **about))
    return rows


def _keys_that_differ(counted: pd.DataFrame, items: pd.DataFrame, path: Path) -> list[dict[str, Any]]:
    """Coverage: choice items for which an answer other than their key is said to be correct."""
    if "key" not in items:
        return []
    right = counted[counted["correct"]]
    place = right["item"].cat.codes.to_numpy()
    choice = items["answer_type"].eq("choice").to_numpy()[place]
    said, key = right["answer"].astype(object).to_numpy(), items["key"].astype(object).to_numpy()[place]
    wrong = np.unique(place[choice & (said != key)])
    if not len(wrong):
        return []
    reason = "choice items where an answer other than the key is counted as correct; the counts decide"
    first = str(items["item"].iloc[int(wrong[0])])
    return [frames.coverage_row("conflict", n=len(wrong), run=path.name, item=first, reason=reason)]
