"""Verdicts of VLMEvalKit runs as canonical rows: which judge's, on which items, decided by what."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.readers import cells, judged, layout
from auditlib.readers import vlmevalkit_families as families
from auditlib.readers.dataset import items_frame, open_toolkit_table, without_copies
from auditlib.readers.runfile import RunFile
from auditlib.readers.vlmevalkit_names import VERIFIER
from auditlib.readers.vlmevalkit_runs import label


def choose_judge(
    found: list[RunFile], judge: str | None, folder: Path, benchmark: str
) -> tuple[str | None, list[dict[str, Any]]]:
    """The judge whose verdicts are read, and a coverage row where it was chosen among equals.

    Raises
    ------
    AuditError
        Several judges with different verdicts and none is named, or the one that is has none.
    """
    names = sorted({f.judge for f in found if f.kind == "result"})
    unnamed = any(f.kind == "auxmatch" for f in found)
    own = families.SUBSTRING if families.is_ocrbench(benchmark) and not names and not unnamed else None
    if judge is not None:
        judge = layout.JUDGE_ALIASES.get(judge, judge)
        if judge in names or unnamed or judge == own:
            return judge, []
        has = f"judges here: {', '.join(names)}" if names else "no verdict files here"
        mend = f"{has}; correct 'judge', or leave it out"
        raise AuditError(f"no verdicts of judge {judge!r} for {benchmark}", file=folder, mend=mend)
    if len(names) > 1:
        if _equal_everywhere(found, names):
            reason = f"verdicts of {', '.join(names)} are equal everywhere; those of {names[0]} are read"
            return names[0], [coverage_row("excluded", n=len(names) - 1, reason=reason)]
        what = f"verdicts of several judges for {benchmark}: {', '.join(names)}"
        raise AuditError(what, file=folder, mend="choose one with 'judge: NAME' in the params")
    return (names[0] if names else ("auxmatch" if unnamed else own)), []


def _equal_everywhere(found: list[RunFile], names: list[str]) -> bool:
    """Whether every run has a verdict file of every judge and all give each item the same verdict."""
    verdicts: dict[tuple[str, str], dict[str, list[pd.Series]]] = {}
    for f in (f for f in found if f.kind == "result"):
        verdicts.setdefault((f.model, f.condition), {}).setdefault(f.judge, [])
    if any(set(by) != set(names) for by in verdicts.values()):
        return False
    for f in (f for f in found if f.kind == "result"):
        try:
            table = open_toolkit_table(f.path)
            if judged.hit_column(table) is None or "index" not in table.columns:
                return False
            hits = pd.Series(judged.hits(table, f.path), cells.item_ids(table["index"])).fillna(-1).sort_index()
        except AuditError:
            return False
        verdicts[f.model, f.condition][f.judge].append(hits)
    return all(
        all(hits.equals(series[0]) for hits in series)
        for series in ([h for listed in by.values() for h in listed] for by in verdicts.values())
    )


def written_keys(table: pd.DataFrame) -> pd.Series:
    """Keys as the file gives them."""
    return cells.keys(table["answer"]) if "answer" in table.columns else pd.Series("", index=table.index, dtype="str")


def judgements(
    f: RunFile,
    items: pd.DataFrame,
    judge: str | None,
    folder: Path,
    other: pd.Series | None,
    keep: Callable[[pd.DataFrame], pd.DataFrame],
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Verdicts joined by item id, with the source of each.

    Parameters
    ----------
    f : the verdict file.
    items : the run's items with ``prediction`` and ``written``.
    judge : name of the judge, for the rows.
    folder : results folder, for labels.
    other : replies of the model's run under another condition, by item.
    keep : leaves out the rows of a table that are not asked for.

    Returns
    -------
    judgements : one row per item; with a column ``level`` that says ``circular`` where a verdict is one on all
        rotations of its item, which must not count as a verdict on the reply to the base row.
    coverage : rows of the coverage table.
    """
    note = partial(coverage_row, run=label(f.path, folder), model=f.model, condition=f.condition)
    table = keep(open_toolkit_table(f.path))
    stored, remarks = judged.hits_of(table, f.path), []
    # an empty verdict must equal an empty verdict when copies are compared
    facts = items_frame(table, f.path).assign(
        hit=pd.Series(stored, table.index).fillna(-1), written=written_keys(table)
    )
    facts, copies = without_copies(facts, f.path, extra=("hit",))
    coverage = [
        note("duplicate", n=1, item=c.item, reason=f"row {c.row} repeats an earlier one") for c in copies.itertuples()
    ]
    table = table.loc[facts.index].set_index(facts["item"])
    known = pd.Index(items["item"])
    shared = known.intersection(table.index, sort=False)
    rotated = families.is_rotated(items, facts)
    if surplus := len(table) - len(shared):
        coverage.append(note("excluded", n=surplus, reason="verdicts on items that the run does not hold"))
    if lacking := (items["cluster"].nunique() if rotated else len(known)) - len(shared):
        coverage.append(note("warning", n=lacking, reason="items without a verdict"))
    table, own = table.loc[shared], items.set_index("item").loc[shared]
    facts = facts.set_index("item").loc[shared]
    if "answer" in table.columns and (own["written"] != "").any():
        judged.check_keys(own, facts, f.path)
    stored = facts["hit"].replace(-1.0, np.nan).to_numpy(dtype=float)
    if judged.hit_column(table) is None:
        extracted = judged.column(table, "res").to_numpy(dtype=object)
        hits, sources, remarks = families.mathvista_verdicts(table)
        sources[judged.moved(table["prediction"], own["prediction"])] = "cache_stale"
        hits[sources == "cache_stale"] = np.nan
    elif f.kind == "auxmatch":
        extracted = judged.column(table, "extracted")
        sources = judged.yesno_sources(extracted, table["prediction"], own["prediction"])
    else:
        logs = judged.column(table, "log")
        letters = [{chr(ord("A") + i) for i, t in enumerate(o) if t.strip()} for o in own["options"]]
        others = other.reindex(shared).fillna("") if other is not None else None
        sources = judged.choice_sources(logs, table["prediction"], own["prediction"], letters, others)
        if judge == VERIFIER:
            sources[sources == "unknown"] = "llm"
        extracted = judged.replies(logs, sources)
    if judged.hit_column(table) is not None:
        hits = np.where(np.isin(sources, judged.VOID), np.nan, stored)
    verdicts = _rows(f, folder, judge, shared, hits, extracted, sources, stored)
    if rotated:
        verdicts["level"] = "circular"
    reason = "verdicts on all rotations of an item, right only if every one is" if rotated else "verdicts"
    coverage.append(note("read", n=len(verdicts), reason=reason))
    remarks += judged.remarks(sources, stored, judge)
    return verdicts, coverage + [note("warning", n=n, reason=why) for n, why in remarks]


def substring_judgements(f: RunFile, items: pd.DataFrame, folder: Path) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Verdicts of a benchmark that stores totals only, computed by the toolkit's rule."""
    hits = families.substring_hits(items, items["prediction"])
    stored = np.full(len(items), np.nan)
    sources = np.full(len(items), "recomputed", dtype=object)
    rows = _rows(f, folder, families.SUBSTRING, items["item"], hits, np.full(len(items), "", object), sources, stored)
    reason = "verdicts computed here (an accepted answer is part of the reply): the toolkit stores totals only"
    return rows, [
        coverage_row(
            "read", n=len(rows), run=label(f.path, folder), model=f.model, condition=f.condition, reason=reason
        )
    ]


def _rows(f: RunFile, folder: Path, judge: str | None, ids: Any, hits: Any, extracted: Any, sources: Any, stored: Any):
    return pd.DataFrame(
        {
            "run": label(f.path, folder),
            "item": np.asarray(ids, dtype=object),
            "model": f.model,
            "condition": f.condition,
            "sample": 0,
            "judge": judge,
            "hit": hits,
            "extracted": np.asarray(extracted, dtype=object),
            "source": sources,
            "hit_stored": stored,
        }
    )
