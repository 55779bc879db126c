"""Join runs by item id: one items frame, one coverage report, refusals where runs contradict each other."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import Runs, coverage_row, frame
from auditlib.partition import agreed_partition

_WHOLE = re.compile(r"-?[0-9]{1,18}")
#: item facts that may differ between runs without consequence for any number
_DESCRIPTIVE = ("question", "stratum", "substratum", "source", "capability", "image_key", "cluster", "answer_type")


def item_order(ids: pd.Series | list[str]) -> list[str]:
    """Item ids in a fixed order that no file order changes: as numbers where all are integers, else as text."""
    unique = sorted(set(ids))
    if all(_WHOLE.fullmatch(i) for i in unique):
        return sorted(unique, key=lambda i: (int(i), i))
    return unique


def align(runs: Runs, *, keys_from: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Reduce the item facts of all runs to one row per item and report how the runs join.

    Parameters
    ----------
    runs : what a reader returned.
    keys_from : label of the run (or ``"dataset"``) whose keys are right where runs disagree.

    Returns
    -------
    items : frame, one row per item in :func:`item_order`, with ``options_written`` where a dataset file was given.
    responses : frame, the responses of those items.
    coverage : frame, the reader's coverage rows and the joining's.

    Raises
    ------
    AuditError
        No item at all, runs that share no item, keys that differ between runs and no ``keys_from``.
    """
    facts, responses = runs.items, runs.responses
    if not len(facts) or not len(responses):
        raise AuditError("no replies were read", mend="check data: in the params and that the files hold rows")
    rows: list[dict[str, Any]] = []
    facts = _settle_categories(_with_dataset(facts, runs.dataset, rows), rows)
    facts = facts.assign(_options=_option_keys(_column(facts, "options")))
    facts = _settle_keys(facts, keys_from, rows)
    rows += _disagreements(facts)
    order = item_order(responses["item"])
    items = _first_known(facts, order)
    items = items.drop(columns=[c for c in ("run", "row", "_options", "_priority") if c in items])
    said = set(runs.coverage.loc[runs.coverage["what"] == "read", "run"]) if len(runs.coverage) else set()
    rows += _joining(responses, order, said)
    coverage = pd.concat([runs.coverage, frame("coverage", rows)], ignore_index=True) if rows else runs.coverage
    return items.reset_index(drop=True), responses.reset_index(drop=True), coverage


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    return table[name] if name in table else pd.Series([None] * len(table), index=table.index, dtype=object)


def _option_keys(column: pd.Series) -> list[tuple[str, ...] | None]:
    """:func:`_option_key` over a column; runs that share a list of options share its key."""
    seen: dict[int, tuple[str, ...] | None] = {}
    values = column.tolist()
    for options in values:
        if id(options) not in seen:
            seen[id(options)] = _option_key(options)
    return [seen[id(options)] for options in values]


def _option_key(options: Any) -> tuple[str, ...] | None:
    """Options as a comparable value; trailing blanks carry no information."""
    if not isinstance(options, list | tuple):
        return None
    texts = [str(o) for o in options]
    while texts and not texts[-1]:
        texts.pop()
    return tuple(texts)


def _with_dataset(facts: pd.DataFrame, dataset: pd.DataFrame | None, rows: list) -> pd.DataFrame:
    """Add the dataset's facts as one more run, and its options as ``options_written``."""
    if dataset is None:
        return facts
    known = set(facts["item"])
    extra = dataset[~dataset["item"].isin(known)]
    if len(extra):
        rows.append(
            coverage_row("excluded", n=len(extra), run="dataset", reason="in the dataset file, answered by no run")
        )
    unlisted = known - set(dataset["item"])
    if unlisted:
        rows.append(
            coverage_row("warning", n=len(unlisted), run="dataset", reason="answered, but not in the dataset file")
        )
    dataset = dataset[dataset["item"].isin(known)]
    written = pd.Series(dataset["options"].tolist(), index=dataset["item"].tolist()) if "options" in dataset else None
    # what the models were shown comes from their runs, so the dataset's own options never replace the runs'
    shown = facts[["item"]].assign(_has=[_option_key(o) is not None for o in _column(facts, "options")])
    has_options = shown.groupby("item")["_has"].any()
    own = dataset.assign(
        run="dataset", row=dataset.get("row", pd.Series(range(2, len(dataset) + 2), index=dataset.index))
    )
    if "options" in own:
        own["options"] = [None if has_options[i] else o for i, o in zip(own["item"], own["options"])]
    out = pd.concat([facts, own], ignore_index=True)
    if written is not None:
        out["options_written"] = [written.get(i) for i in out["item"]]
    return out


def _settle_categories(facts: pd.DataFrame, rows: list) -> pd.DataFrame:
    """Categories that runs disagree about: those of the majority of runs stand, as a whole; the others' are left out.

    Without a majority the dataset file's stand where there is one, else those of the first run by name.
    """
    for column in ("stratum", "substratum"):
        if column not in facts:
            continue
        agreed = agreed_partition(facts, column, "run")
        if agreed is None:
            continue
        if agreed.values:
            right, whose = agreed.values, "most runs"
        else:
            owners = sorted(set(facts.loc[facts[column].notna() & (facts[column] != ""), "run"].astype(str)))
            whose = "dataset" if "dataset" in owners else owners[0]
            mine = facts[(facts["run"] == whose) & facts[column].notna()].drop_duplicates("item")
            right = dict(zip(mine["item"], mine[column]))
        who = ", ".join(d for d in agreed.deviants[:6] if d != whose)
        reason = f"category ({column}) differs between runs ({who}); that of {whose} is used"
        rows.append(coverage_row("conflict", n=agreed.items, run=whose if whose != "most runs" else "", reason=reason))
        facts = facts.assign(**{column: facts["item"].map(right)})
    return facts


def _settle_keys(facts: pd.DataFrame, keys_from: str | None, rows: list) -> pd.DataFrame:
    """Refuse keys that differ between runs, or take those of ``keys_from``."""
    if "key" not in facts:
        return facts
    given = facts[facts["key"].notna() & (facts["key"] != "")]
    spread = given.groupby("item", sort=False)["key"].nunique()
    clash = set(spread[spread > 1].index)
    if keys_from is not None and keys_from not in set(facts["run"]):
        raise AuditError(
            f"audit.keys_from names {keys_from!r}, which is no run",
            mend="use one of: " + ", ".join(sorted(map(str, set(facts["run"])))[:12]),
        )
    if not clash:
        return facts
    if keys_from is None:
        one = item_order(list(clash))[0]
        same = given[given["item"] == one].drop_duplicates("key")
        said = "; ".join(f"{r} row {n}: {k}" for r, n, k in zip(same["run"], same["row"], same["key"]))
        raise AuditError(
            f"the key of item {one} differs between runs ({said}); {len(clash)} items do so",
            mend="name the run whose keys are right as audit.keys_from in the params",
        )
    right = given[given["run"] == keys_from].drop_duplicates("item").set_index("item")["key"]
    unsettled = clash - set(right.index)
    if unsettled:
        raise AuditError(
            f"keys differ for item {item_order(list(unsettled))[0]} and {keys_from} does not hold it",
            mend="name a run that holds every item as audit.keys_from",
        )
    rows.append(
        coverage_row(
            "conflict", n=len(clash), run=keys_from, reason=f"keys differed between runs; those of {keys_from} are used"
        )
    )
    settled = [right[i] if i in clash else k for i, k in zip(facts["item"], facts["key"])]
    return facts.assign(key=settled)


def _disagreements(facts: pd.DataFrame) -> list[dict[str, Any]]:
    """Coverage rows for option or question texts that differ between runs of one item."""
    rows = []
    for column, words in (("_options", "option texts"), ("question", "question text")):
        if column not in facts:
            continue
        given = facts[facts[column].notna()]
        spread = given.groupby("item", sort=False)[column].nunique()
        clash = spread[spread > 1].index
        for item in item_order(list(clash))[:50]:
            who = given[given["item"] == item].drop_duplicates(column)["run"].tolist()
            rows.append(
                coverage_row(
                    "conflict", n=1, item=item, reason=f"{words} differ between {', '.join(map(str, who[:4]))}"
                )
            )
        if len(clash) > 50:
            rows.append(
                coverage_row("conflict", n=len(clash) - 50, reason=f"{words} differ between runs (further items)")
            )
    return rows


def _first_known(facts: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """One row per item: for each column the first value that is known, runs in name order."""
    facts = facts.sort_values(["run", "row"], kind="stable")
    ids = facts["item"].tolist()
    bounds = [0, *(facts["run"].to_numpy()[1:] != facts["run"].to_numpy()[:-1]).nonzero()[0] + 1, len(facts)]
    out = pd.DataFrame({"item": order})
    for column in facts.columns:
        if column in ("item", "run", "row", "_options"):
            continue
        blank = column in (*_DESCRIPTIVE, "key")
        lookup: dict[str, Any] = {}
        for start, stop in pairwise(bounds):  # run by run, until every item's value is known
            if len(lookup) == len(order):
                break
            for item, v in zip(ids[start:stop], facts[column].iloc[start:stop].tolist()):
                if item not in lookup and _known(v) and not (blank and isinstance(v, str) and v == ""):
                    lookup[item] = v
        out[column] = [lookup.get(i) for i in order]
    return out


def _known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and value != value) and value is not pd.NA


def _joining(responses: pd.DataFrame, order: list[str], said: set[str]) -> list[dict[str, Any]]:
    """Coverage rows by run: items read (unless the reader ``said`` so), and items that only other runs hold."""
    rows = []
    everything = set(order)
    sets = {}
    for (model, condition), part in responses.groupby(["model", "condition"], sort=True):
        ids = set(part["item"])
        sets[model, condition] = ids
        label = str(part["run"].iloc[0]) if "run" in part else ""
        if label not in said:
            rows.append(coverage_row("read", n=len(part), run=label, model=model, condition=condition))
        absent = everything - ids
        if absent:
            some = ", ".join(item_order(list(absent))[:5])
            rows.append(
                coverage_row(
                    "missing",
                    n=len(absent),
                    run=label,
                    model=model,
                    condition=condition,
                    reason=f"items answered in other runs only, for example {some}",
                )
            )
        bad = part["status"].ne("ok") if "status" in part else pd.Series(False, index=part.index)
        for status, n in part.loc[bad, "status"].value_counts().sort_index().items():
            rows.append(
                coverage_row("status", n=n, run=label, model=model, condition=condition, reason=f"{status} replies")
            )
    common = set.intersection(*sets.values())
    if len(sets) > 1 and not common:
        (a, b) = next(((a, b) for a in sets for b in sets if a < b and not sets[a] & sets[b]), (None, None))
        if a is not None:
            raise AuditError(
                f"runs {a[0]} ({a[1]}) and {b[0]} ({b[1]}) share no item id",
                mend="check that both files are of the same benchmark and that the id column is right",
            )
    rows.append(coverage_row("joined", n=len(common), reason=f"items in every run, of {len(order)} in any"))
    return rows
