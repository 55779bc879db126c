"""The pools of a leaderboard, audited side by side: from params files or trees of results to numbers on disk."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from auditlib.errors import AuditError
from auditlib.escape import guard_csv
from auditlib.params import Params, check_params, load_params
from auditlib.paths import atomic
from auditlib.pool import Pool

#: folder of the tables across pools, below the folder of all results
FOLDER = "leaderboard"
#: what lies in a worker's results folders, looked through once in each worker
_SCANS: dict[str, Any] = {}


@dataclass(frozen=True)
class Outcome:
    """How one pool ended: seconds of reading and of statistics, or the one line of its error."""

    pool: str
    error: str = ""
    reading: float = 0.0
    counting: float = 0.0
    notes: tuple[str, ...] = ()


def params_of(sources: Sequence[Path], outputs: Path) -> list[Params]:
    """Params of every pool: of params files, and of each benchmark of a tree of results.

    Files made for a tree are kept in ``outputs/leaderboard/params``, for the full audit of a pool to start from; one
    that lies there stands as it is.

    Raises
    ------
    AuditError
        A source is neither, nothing is recognised in a tree, or two pools have the same name.
    """
    found: list[Params] = []
    for source in sources:
        if source.is_dir():
            found += _of_tree(source, outputs / FOLDER / "params")
        else:
            found.append(load_params(source))
    names = [p.pool for p in found]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise AuditError(f"two pools are called {twice!r}", mend="give each params file a pool name of its own")
    return found


def _of_tree(tree: Path, to: Path) -> list[Params]:
    from auditlib.readers.discover import survey
    from auditlib.readers.discover_params import params_text, pool_names

    founds = survey(tree).founds
    pairs = [(found, benchmark) for found in founds for benchmark in found.benchmarks]
    out = []
    for (found, benchmark), name in zip(pairs, pool_names(founds, pairs)):
        file, text = to / f"{name}.yaml", params_text(found, benchmark, name, to)
        if not file.exists():
            with atomic(file) as temporary:
                temporary.write_text(text, encoding="utf-8")
        kept, wanted = load_params(file), check_params(yaml.safe_load(text), file)
        if (kept.data.folder, kept.benchmark) != (wanted.data.folder, wanted.benchmark):
            raise AuditError(f"it was made for {kept.benchmark} in {kept.data.folder}, not for {wanted.benchmark} in "
                             f"{wanted.data.folder}", file=file, mend="name another folder with --outputs, or remove "
                             "that file")  # fmt: skip
        out.append(kept)
    return out


def audit_pools(
    pools: Sequence[Params],
    outputs: Path,
    *,
    workers: int = 2,
    cache: bool = True,
    keep_going: bool = True,
    say: Callable[[str], None] = print,
) -> list[Outcome]:
    """Audit pools without notebooks, each in one of some processes.

    Parameters
    ----------
    pools : params of the pools.
    outputs : folder of all results; each pool's numbers go to ``outputs/leaderboard/pools``.
    workers : processes; linear algebra has one thread in each.
    cache : whether models parsed before are taken from ``outputs/.cache``.
    keep_going : whether the other pools go on when one fails.
    say : told a line after each pool.

    Returns
    -------
    list of Outcome, in the order of ``pools``; those never started are absent.
    """
    outputs.mkdir(parents=True, exist_ok=True)
    jobs = [(p, outputs, cache) for p in pools]
    done: dict[str, Outcome] = {}
    for n, outcome in enumerate(_in_turn(jobs) if workers == 1 or len(jobs) < 2 else _side_by_side(jobs, workers), 1):
        done[outcome.pool] = outcome
        ended = outcome.error or f"read {outcome.reading:.1f} s, statistics {outcome.counting:.1f} s"
        say(f"{outcome.pool:<24} {n}/{len(jobs)}  {'; '.join([ended, *outcome.notes])}")
        if outcome.error and not keep_going:
            break
    return [done[p.pool] for p in pools if p.pool in done]


def _in_turn(jobs: list[tuple[Params, Path, bool]]):
    _SCANS.clear()
    for job in jobs:
        yield audit_one(*job)
    _SCANS.clear()


def _side_by_side(jobs: list[tuple[Params, Path, bool]], workers: int):
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    from auditlib.kernels import THREADS

    before = {k: os.environ.get(k) for k in THREADS}
    os.environ.update(THREADS)  # read when a worker first loads a library
    try:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context) as crew:
            waiting = {crew.submit(audit_one, *job): job[0].pool for job in jobs}
            try:
                for ended in as_completed(waiting):
                    try:
                        yield ended.result()
                    except BrokenProcessPool:
                        yield Outcome(waiting[ended], "its process died (out of memory?)")
            finally:
                crew.shutdown(wait=False, cancel_futures=True)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def audit_one(params: Params, outputs: Path, cache: bool) -> Outcome:
    """Read one pool, compute its statistics and write its numbers; a mistake becomes the outcome's error."""
    from auditlib.leaderboard.lean import read_lean
    from auditlib.parsed import cache_of

    notes: list[str] = []
    files = PoolFiles(outputs, params.pool)
    start = time.perf_counter()
    try:
        pool = read_lean(params, outputs=outputs, cache=cache_of(outputs, cache), scans=_SCANS, say=notes.append)
        read = time.perf_counter()
        write_numbers(pool, files, notes)
    except AuditError as e:
        _failed(files, params, " ".join(str(e).split()))
        return Outcome(params.pool, " ".join(str(e).split()))
    except Exception as e:  # one pool's fault must not end the others
        line = f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"
        _failed(files, params, line)
        return Outcome(params.pool, line)
    return Outcome(params.pool, "", read - start, time.perf_counter() - read, tuple(notes))


@dataclass(frozen=True)
class PoolFiles:
    """Numbers of one pool of a leaderboard."""

    outputs: Path
    pool: str

    @property
    def folder(self) -> Path:
        return self.outputs / FOLDER / "pools"

    @property
    def statistics(self) -> Path:
        return self.folder / f"{self.pool}.statistics.csv"

    @property
    def coverage(self) -> Path:
        return self.folder / f"{self.pool}.coverage.csv"

    @property
    def ranks(self) -> Path:
        return self.folder / f"{self.pool}.ranks.csv"

    @property
    def facts(self) -> Path:
        return self.folder / f"{self.pool}.json"


def write_numbers(pool: Pool, files: PoolFiles, notes: Sequence[str] = ()) -> None:
    """Statistics, coverage, ranks and facts of a pool."""
    from auditlib.leaderboard.numbers import left_out_row, pool_statistics
    from auditlib.leaderboard.ranks import pool_ranks

    table = pool_statistics(pool)
    ranks, why = pool_ranks(pool)
    coverage = pd.concat([pool.coverage, pd.DataFrame([left_out_row()])], ignore_index=True)
    facts = facts_of(pool) | {"ranks": why, "notes": list(notes), "error": ""}
    if pool.params is not None:
        facts["data"] = data_of(pool.params.data.model_dump(mode="python"), Path(), files.outputs)
    for frame, file in ((table, files.statistics), (coverage, files.coverage), (ranks, files.ranks)):
        with atomic(file) as temporary:
            guard_csv(frame).to_csv(temporary, index=False, float_format="%.12g", lineterminator="\n")
    with atomic(files.facts) as temporary:
        temporary.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def facts_of(pool: Pool) -> dict[str, Any]:
    """What the tables across pools need beside statistics: sizes, the headline arm, the chance of a right guess."""
    chance = chance_of(pool)
    return {"pool": pool.name, "benchmark": pool.benchmark, "items": len(pool.items), "models": len(pool.models),
            "arm": pool.arm_names[0], "blind": pool.has_blind, "chance": chance}  # fmt: skip


def data_of(data: dict[str, Any], base: Path, outputs: Path) -> dict[str, Any]:
    """What a pool was made from, its paths relative to the folder of all results.

    Parameters
    ----------
    data : the data section of its params.
    base : folder that its paths are relative to.
    outputs : folder of all results.
    """
    said = {k: str(v) for k, v in data.items() if k in ("embedded", "where") and v}
    files = {k: base / v for k in ("folder", "table", "matrix", "counts") if (v := data.get(k)) is not None}
    return said | {k: os.path.relpath(v.resolve(), outputs.resolve()) for k, v in files.items()}


def chance_of(pool: Pool) -> float | None:
    """Mean of one over the options shown, over the items where that is known; None where it is for fewer than all."""
    k = pool.k
    if k is None or np.isnan(k).any() or (k <= 0).any():
        return None
    return float((1 / k).mean())


def _failed(files: PoolFiles, params: Params, error: str) -> None:
    """A failed pool leaves its error, and none of the numbers of an earlier run."""
    for file in (files.statistics, files.coverage, files.ranks):
        file.unlink(missing_ok=True)
    facts = {"pool": params.pool, "benchmark": params.benchmark, "error": error}
    with atomic(files.facts) as temporary:
        temporary.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
