"""A leaderboard from files to its page: ``python tests/bench/leaderboard.py [--full] [--models N] [--xlsx]``.

A simulated tree with known truth is written, read, read again, and audited: seconds of CPU by stage, the peak of
memory, what the second reading saves, reading beside a plain loop over the same files, statistics at n and 2n models
and benchmarks, and what the full size (300 models x 80 benchmarks x 3,000 items) would take: a fixed part and a part
that grows, both said, fitted on n and 2n (statistics: models, at the full number of items; reading: items, as many
files). ``--full`` measures the statistics of a full-size benchmark from arrays (nothing is read there).
CPU seconds are printed because other work on the machine does not move them. Exits 1 when a limit is missed.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import csv
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet  # noqa: F401  imports are no part of the timing
import scipy.stats  # noqa: F401

from auditlib import parsed
from auditlib.leaderboard.jobs import audit_pools
from auditlib.leaderboard.lean import bytes_of, read_lean
from auditlib.leaderboard.numbers import pool_statistics
from auditlib.leaderboard.page import write_page
from auditlib.params import check_params
from auditlib.synth.leaderboard import LeaderboardRecipe, benchmark_pool, write_leaderboard

LEAST_SPEEDUP, MOST_MINUTES, CORES = 5.0, 10.0, 2
FULL = LeaderboardRecipe()


def cpu(do: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of this process' CPU, and what was returned."""
    start = time.process_time()
    result = do()
    return time.process_time() - start, result


def peak() -> float:
    """Peak memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def plain_loop(files: list[Path]) -> None:
    """What reading the cells alone costs."""
    for path in files:
        if path.suffix == ".tsv":
            with path.open(newline="", encoding="utf-8") as stream:
                list(csv.reader(stream, delimiter="\t"))
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        else:
            import python_calamine

            list(python_calamine.load_workbook(str(path)).get_sheet_by_index(0).to_python())


def fitted(seconds: float, twice: float, n: float) -> tuple[float, float]:
    """Fixed part and part per unit of a cost measured at n and 2n units; neither below zero."""
    each = (twice - seconds) / n
    if each < 0:
        return max(seconds, twice), 0.0
    fixed = seconds - each * n
    return (fixed, each) if fixed >= 0 else (0.0, twice / (2 * n))


def params_of(folder: Path, benchmark: str) -> Any:
    said = {"pool": benchmark.lower(), "benchmark": benchmark, "data": {"folder": str(folder), "toolkit": "vlmevalkit"}}
    return check_params(said, folder.parent / "params.yaml")


def reading(recipe: LeaderboardRecipe, form: str, work: Path, items: int) -> dict[str, float]:
    """One benchmark read twice through the cache, beside a plain loop and the hashing of the files."""
    folder, outputs = work / f"results_{form}_{items}", work / f"outputs_{form}_{items}"
    one = LeaderboardRecipe(recipe.models, 1, items, recipe.families)
    write_leaderboard(one, folder, form=form)
    outputs.mkdir()
    files, params = sorted(folder.glob(f"*/*.{form}")), params_of(folder, "Bench01")
    plain_loop(files[:2])
    plain, _ = cpu(lambda: plain_loop(files))
    hashing, _ = cpu(lambda: [parsed.content(p) for p in files])
    cache = parsed.cache_of(outputs)
    first, pool = cpu(lambda: read_lean(params, outputs=outputs, cache=cache))
    second, again = cpu(lambda: read_lean(params, outputs=outputs, cache=cache))
    assert all((pool.letters[c] == again.letters[c]).all() for c in pool.letters)
    rows = len(files) * items
    print(
        f"{form}: {len(files)} files, {rows:,} rows: plain loop {plain:.2f} s, reading to arrays {first:.2f} s "
        f"({1e6 * first / rows:.0f} us a row, {first / plain:.1f} x plain), again {second:.2f} s "
        f"({first / second:.1f} x faster), hashing {hashing:.3f} s; arrays {bytes_of(pool) / 2**20:.1f} MiB"
    )
    return {"first": first, "second": second, "plain": plain, "files": len(files), "rows": rows}


def statistics(models: int, items: int, number: int = 0) -> float:
    """CPU seconds of the statistics of one benchmark made of arrays."""
    pool = benchmark_pool(LeaderboardRecipe(models=models, benchmarks=2, items=items), number, 7)
    seconds, table = cpu(lambda: pool_statistics(pool))
    print(f"statistics, {models} models x {items:,} items: {seconds:.2f} s, {len(table):,} rows, peak {peak():.0f} MiB")
    return seconds


def whole(recipe: LeaderboardRecipe, work: Path) -> None:
    """A tree from files to the page with two processes; wall seconds, since the work is theirs."""
    folder, outputs = work / "results", work / "outputs"
    truth = write_leaderboard(recipe, folder)
    pools = [params_of(folder, name) for name in recipe.benchmark_names]
    for turn in ("first", "second"):
        start = time.perf_counter()
        outcomes = audit_pools(pools, outputs, workers=CORES, say=lambda line: None)
        ended = time.perf_counter()
        target = write_page(outputs)
        read, counted = sum(o.reading for o in outcomes), sum(o.counting for o in outcomes)
        print(
            f"{turn} run, {recipe.models} models x {recipe.benchmarks} benchmarks x {recipe.items:,} items: "
            f"{ended - start:.1f} s wall in {CORES} processes (reading {read:.1f} s, statistics {counted:.1f} s, "
            f"each process' wall added up), page {time.perf_counter() - ended:.1f} s"
        )
        assert not any(o.error for o in outcomes) and target.exists()
    import pandas as pd

    found = pd.read_csv(outputs / "leaderboard" / "profile.csv").merge(truth, on=["benchmark", "model"])
    off = np.abs(found[["full_x", "blind_x"]].to_numpy() - found[["full_y", "blind_y"]].to_numpy()).max()
    print(f"largest distance of an accuracy from the planted truth: {off:.2g}")
    assert off < 1e-9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--benchmarks", type=int, default=4)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--full", action="store_true", help="statistics of a benchmark of full size, measured")
    parser.add_argument("--xlsx", action="store_true", help="read workbooks too (slow to write)")
    options = parser.parse_args()
    recipe = LeaderboardRecipe(options.models, options.benchmarks, options.items, max(2, options.models // 5))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        reading(LeaderboardRecipe(4, 1, 50, 2), "tsv", work, 50)  # imports and first calls
        forms = ("tsv", "json", *["xlsx"] * options.xlsx)
        results = {form: reading(recipe, form, work, options.items) for form in forms}
        longer = reading(recipe, "tsv", work, 2 * options.items)
        whole(recipe, work)
    statistics(10, 200)  # imports and first calls
    n, twice = (statistics(m, options.items) for m in (options.models * 2, options.models * 4))
    other = statistics(options.models * 2, options.items, 1)
    print(f"twice the models: x {twice / n:.2f} (2 = linear); a benchmark more costs its own: {other / n:.2f}")
    if options.full:
        one, how = statistics(FULL.models, FULL.items), "one benchmark measured"
    else:  # the cost of an item is part of what is fixed here, so the items are as many as they will be
        sizes = (options.models * 2, options.models * 4)
        fewer, more = (min(statistics(m, FULL.items) for _ in range(2)) for m in sizes)  # of two, the calmer
        fixed, each = fitted(fewer, more, options.models * 2 * FULL.items)
        one = fixed + each * FULL.models * FULL.items
        how = (f"extrapolated from {options.models * 2} and {options.models * 4} models x {FULL.items:,} items: fixed "
               f"{fixed:.2f} s a benchmark + {1e6 * each:.2f} us a cell of models x items")  # fmt: skip
    minutes = one * FULL.benchmarks / CORES / 60
    print(f"full size, statistics over parsed data: {minutes:.1f} minutes on {CORES} cores ({how}; target "
          f"{MOST_MINUTES:g})")  # fmt: skip
    tsv, files = results["tsv"], FULL.models * 2 * FULL.benchmarks
    for word in ("first", "second"):
        fixed, each = fitted(tsv[word], longer[word], tsv["rows"])
        fixed /= tsv["files"]
        hours = files * (fixed + each * FULL.items) / CORES / 3600
        print(f"full size, {word} reading of tsv: {hours:.2f} hours on {CORES} cores (extrapolated from "
              f"{tsv['files']} files of {options.items:,} and {2 * options.items:,} rows: fixed {1e3 * fixed:.2f} ms a "
              f"file + {1e6 * each:.2f} us a row)")  # fmt: skip
    speedup = min(r["first"] / r["second"] for r in results.values())
    print(f"second reading at least {speedup:.1f} x faster (target {LEAST_SPEEDUP:g})")
    return int(speedup < LEAST_SPEEDUP or minutes > MOST_MINUTES)


if __name__ == "__main__":
    sys.exit(main())
