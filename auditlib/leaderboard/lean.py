"""A pool without its texts: models are read one at a time, and only whole numbers of each are kept.

The pool's arrays and its coverage are those of :func:`auditlib.reading.read_pool`. Where models do not fit together
(runs that disagree about an item, arms that only some models have), the pool is read in the ordinary way and its texts
are let go afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import parsed
from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.leaderboard.merge import merged
from auditlib.leaderboard.single import Single, keep_single, load_single, single_of
from auditlib.parsed import ParsedCache
from auditlib.pool import Pool

if TYPE_CHECKING:
    from auditlib.params import Params
    from auditlib.readers.runfile import RunFile

#: readings of replies that are remembered while models are read
MOST_READINGS = 300_000


def read_lean(
    params: Params,
    *,
    outputs: Path,
    cache: ParsedCache | None = None,
    scans: dict[str, Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Pool:
    """Read a pool without keeping a text.

    Parameters
    ----------
    params : of the pool.
    outputs : folder of all results.
    cache : models parsed before, by the content of their files.
    scans : memory of what lies in a results folder, shared by the pools of one call.
    say : told why a pool is read in the ordinary way.

    Raises
    ------
    AuditError
        As :func:`auditlib.reading.read_pool`.
    """
    why = _why_not(params)
    if not why:
        singles, shared, why = _singles(params, cache, scans)
        if not why:
            pool, why = merged(singles, shared, params)
            if pool is not None:
                return pool
    from auditlib.reading import read_pool

    say(f"read with its texts: {why}")
    pool = read_pool(params, outputs=outputs, cache=cache is not None)
    return replace(pool, responses=None, judgements=None)


def _why_not(params: Params) -> str:
    """Why a pool cannot be read model by model; empty where it can."""
    data = params.data
    if data.folder is None or getattr(data, "reader", None) is not None:
        return "its runs are no folder of a toolkit"
    toolkit = data.toolkit
    if toolkit is None:
        from auditlib.readers.discover import toolkit_of

        toolkit = toolkit_of(data.folder)
    if toolkit != "vlmevalkit":
        return f"runs of {toolkit} are read together"
    if params.inference is not None:
        return "it holds runs made here"
    return "keys_from decides between runs" if params.audit.keys_from else ""


def _singles(
    params: Params, cache: ParsedCache | None, scans: dict[str, Any] | None
) -> tuple[list[Single], list[dict[str, Any]], str]:
    """Every model by itself, what is said of the folder, and why that failed (empty where it did not)."""
    from auditlib.readers.vlmevalkit_files import files_of
    from auditlib.readers.vlmevalkit_verdicts import choose_judge

    data, benchmark = params.data, params.benchmark
    found, coverage = files_of(data.folder, benchmark, data.blind_folder, data.conditions, data.blind_benchmark,
                               scans=scans)  # fmt: skip
    judge, rows = choose_judge(found, params.judge, data.folder, benchmark)
    coverage = [*coverage, *rows]
    groups: dict[str, list[RunFile]] = {}
    for f in sorted(found, key=lambda f: f.model):
        groups.setdefault(f.model, []).append(f)
    excluded = set(params.audit.exclude_models)
    for model in sorted(excluded):
        if model in groups:
            conditions = dict.fromkeys(f.condition for f in _ordered(groups.pop(model)))
            coverage += [coverage_row("excluded", n=1, model=model, condition=c, reason="excluded in the params")
                         for c in conditions]  # fmt: skip
        else:
            reason = "to be excluded, but there is no such model"
            coverage.append(coverage_row("warning", n=0, model=model, reason=reason))
    settings = _settings(params, judge)
    known: dict[str, Any] = {}
    memo: dict[Any, Any] = {}
    frames: dict[str, pd.DataFrame] = {}
    singles = []
    for model, files in groups.items():
        key = _key(files, data.folder, settings) if cache else ""
        one = load_single(cache, key, files, frames) if cache else None
        if one is None:
            try:
                one = single_of(model, files, params, judge, known, memo, frames)
            except AuditError as e:
                return [], [], f"{model} by itself: {e.what}"
            if one is None:
                continue
            if cache:
                keep_single(cache, key, files, one)
            if len(memo) > MOST_READINGS:
                memo.clear()
        singles.append(one)
    if cache:
        parsed.prune(cache)
    return singles, coverage, "" if singles else "no model has a run"


def _ordered(files: list[RunFile]) -> list[RunFile]:
    return sorted(files, key=lambda f: (f.condition != "full", f.condition))


def _settings(params: Params, judge: str | None) -> dict[str, Any]:
    """All that a model's numbers depend on beside its own files."""
    data, audit = params.data, params.audit
    return {
        "benchmark": params.benchmark,
        "blind_benchmark": data.blind_benchmark,
        "judge": judge,
        "where": dict(data.where),
        "audit": {"exact": list(audit.exact), "failed": audit.failed, "tolerance": audit.tolerance,
                  "options": dict(audit.options_by_stratum)},
        "dataset": parsed.content(p) if (p := dataset_file(params)) else "",
        "items": parsed.content(data.items) if data.items else "",
        "columns": dict(data.item_columns),
    }  # fmt: skip


def dataset_file(params: Params) -> Path | None:
    """The dataset's own table, named in the params or lying in the folder."""
    from auditlib.readers.vlmevalkit import dataset_beside

    return params.data.dataset or dataset_beside(params.data.folder, params.benchmark)


def _key(files: list[RunFile], folder: Path, settings: dict[str, Any]) -> str:
    from auditlib.readers.vlmevalkit_cache import run_key

    return parsed.key_of("model", run_key(files, folder, "", settings))


def bytes_of(pool: Pool) -> int:
    """Bytes of a pool's arrays."""
    groups = [pool.letters, pool.refused, pool.failed, pool.abstained]
    for arm in pool.arms.values():
        groups += [arm.hits, arm.trials or {}]
    return int(sum(np.asarray(a).nbytes for g in groups for a in g.values()))
