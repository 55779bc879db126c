"""One run of VLMEvalKit as it was parsed before: kept by the content of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import parsed
from auditlib.parsed import ParsedCache
from auditlib.readers.layout import RunFile
from auditlib.readers.vlmevalkit_runs import label

#: columns of the responses that are the same in all rows of a run, or those of its items
_RUN = ("run", "row", "item", "model", "condition", "sample")
#: kinds of files that may be opened for a run; of others only the name is known
_OPENED = ("predictions", "auxmatch", "result")


@dataclass(frozen=True)
class Run:
    """What one model's run of one condition gave; ``items`` and ``responses`` are row by row the same replies."""

    items: pd.DataFrame
    responses: pd.DataFrame
    judgements: pd.DataFrame | None
    inputs: list[Path]
    facts: dict[str, Any]
    coverage: list[dict[str, Any]]
    left_out: tuple[str, ...] = ()


def run_key(group: Sequence[RunFile], folder: Path, other: str, settings: Mapping[str, Any]) -> str:
    """Name of a run's entry: content and place of its files, what was said of them, and the settings of the reading.

    Parameters
    ----------
    group : files of one model, condition and benchmark, of all its runs.
    folder : the results folder; places are relative to it.
    other : key of the model's run under another condition, with whose replies verdicts are compared; may be empty.
    settings : benchmark, judge, filters.
    """
    files = [
        [label(f.path, folder), f.model, f.condition, f.kind, f.rest, f.judge,
         parsed.content(f.path) if f.kind in _OPENED else ""]
        for f in group
    ]  # fmt: skip
    places = sorted({f.path.parent for f in group})
    stated = [[label(p, folder), parsed.content_if_any(p / "status.json")] for p in places]
    return parsed.key_of("vlmevalkit run", {"files": files, "status": stated, "other": other} | dict(settings))


def load_run(cache: ParsedCache, key: str, group: Sequence[RunFile], facts: dict[str, pd.DataFrame]) -> Run | None:
    """A run that was kept; None where there is none, or an entry that it needs is gone or damaged.

    ``facts`` holds item facts that were loaded before, by their key; runs with equal facts share one frame.
    """
    found = parsed.load(cache, key)
    if found is None:
        return None
    tables, about = found
    name = about["items"]
    if name not in facts:
        known = parsed.load(cache, name)
        if known is None:
            return None
        facts[name] = known[0]["items"]
    items, one = facts[name], about["run"]
    if len(items) != len(tables["responses"]):
        return None
    fixed = {"run": one["run"], "row": items["row"].to_numpy(), "item": items["item"].to_numpy(),
             "model": one["model"], "condition": one["condition"], "sample": 0}  # fmt: skip
    responses = pd.concat([pd.DataFrame(fixed), tables["responses"]], axis=1)
    inputs = [group[i].path for i in about["inputs"]]
    return Run(items.assign(run=one["run"]), responses, tables.get("judgements"), inputs, about["facts"],
               about["coverage"], tuple(about["left_out"]))  # fmt: skip


def keep_run(cache: ParsedCache, key: str, group: Sequence[RunFile], run: Run) -> None:
    """Keep a run; what could not be given back exactly is not kept."""
    items = run.items.drop(columns="run")
    place = {f.path: i for i, f in enumerate(group)}
    if not len(items) or any(p not in place for p in run.inputs):
        return
    name = parsed.key_of("items", {c: parsed.digest([_text(items[c])]) for c in items.columns})
    first = run.responses.iloc[0]
    about = {
        "items": name,
        "run": {c: str(first[c]) for c in ("run", "model", "condition")},
        "inputs": [place[p] for p in run.inputs],
        "facts": run.facts,
        "coverage": run.coverage,
        "left_out": list(run.left_out),
    }
    tables = {"responses": run.responses.drop(columns=list(_RUN))}
    if run.judgements is not None:
        tables["judgements"] = run.judgements
    if parsed.load(cache, name) is None and not parsed.store(cache, name, {"items": items}, {}):
        return
    parsed.store(cache, key, tables, about)


def _text(column: pd.Series) -> pd.Series:
    """A column as text that tells any two values apart."""
    return column if column.dtype == "str" else pd.Series([repr(v) for v in column.tolist()], dtype="str")
