"""A million items: ``python tests/bench/bench_scale.py``.

1,000,000 and 100,000 items x 50 models x 2 conditions from uint8 arrays through counts, categories, nulls (pooled and
within strata, every category), and intervals.  Each size runs in its own process so that its peak memory is its own.
Prints seconds, the ratio and the peaks; exits 1 when a limit is missed.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import json
import resource
import subprocess
import sys
import time

import numpy as np

MODELS, STRATA = 50, 10
MOST_RATIO, MOST_GIB = 15.0, 2.0


def arrays(items: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits full and blind (items x models, uint8) and strata, drawn in pieces so that drawing needs no memory."""
    rng = np.random.default_rng(0)
    full, blind = (np.empty((items, MODELS), np.uint8) for _ in range(2))
    stratum = rng.integers(0, STRATA, items)
    for at in range(0, items, 20_000):
        part = slice(at, at + 20_000)
        ease = rng.normal(size=(len(full[part]), 1)) + stratum[part, None] / STRATA
        full[part] = rng.random(full[part].shape) < 1 / (1 + np.exp(-0.8 - ease))
        blind[part] = rng.random(blind[part].shape) < 1 / (1 + np.exp(1.2 - 0.7 * ease))
    return full, blind, stratum


def run(items: int) -> dict[str, float]:
    from scipy.stats import random_table  # noqa: F401  the import is no part of the timing

    from auditlib.stats.categories import CATEGORIES, categories, category_region
    from auditlib.stats.intervals import excess_interval, wilson
    from auditlib.stats.null import group_tables, region_null

    full, blind, stratum = arrays(items)
    took: dict[str, float] = {}
    clock = time.perf_counter()

    def lap(what: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        took[what], clock = now - clock, now

    f, b = (x.sum(1, dtype=np.int32) for x in (full, blind))
    lap("counts")
    shares = np.bincount(categories(f, b, MODELS), minlength=4)
    [wilson(int(k), items) for k in shares]
    lap("categories")
    strata = group_tables(f, b, MODELS, stratum)
    pooled = strata.sum(0)
    lap("tables")
    rng = np.random.default_rng(1)
    regions = [category_region(name, MODELS) for name in ("zero_gain", *CATEGORIES)]
    for region in regions:
        region_null(pooled, region, rng=rng)
    lap("pooled nulls")
    for region in regions:
        region_null(strata, region, rng=rng)
    lap("within nulls")
    for region in regions:
        excess_interval(pooled, region, rng=rng)
        excess_interval(strata, region, rng=rng)
    lap("intervals")
    took["all"] = sum(took.values())
    took["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return took


def main() -> int:
    if len(sys.argv) > 1:
        print(json.dumps(run(int(sys.argv[1]))))
        return 0
    found = {}
    for items in (100_000, 1_000_000):
        out = subprocess.run([sys.executable, __file__, str(items)], capture_output=True, text=True, check=True)
        found[items] = json.loads(out.stdout)
        parts = "  ".join(f"{k} {v:.2f}" for k, v in found[items].items() if k not in ("all", "peak_gib"))
        print(f"{items:>9,} items x {MODELS} models x 2: {found[items]['all']:6.2f} s, "
              f"peak {found[items]['peak_gib']:.2f} GiB   ({parts})")  # fmt: skip
    ratio = found[1_000_000]["all"] / found[100_000]["all"]
    peak = found[1_000_000]["peak_gib"]
    print(f"ratio of 1,000,000 to 100,000 items: {ratio:.2f} (below {MOST_RATIO:g}); peak below {MOST_GIB:g} GiB")
    return int(ratio >= MOST_RATIO or peak >= MOST_GIB)


if __name__ == "__main__":
    sys.exit(main())
