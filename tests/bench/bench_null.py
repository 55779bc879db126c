"""Null laws against plain shuffling, in one run: ``python tests/bench/bench_null.py``.

The work of one pool of 1,500 items, 3 models, 6 strata: the pool, three leave-one-out pools, six strata, and both
halves of 20 splits.  Prints seconds and ratios; exits 1 when a limit is missed.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time

import numpy as np
from scipy.stats import random_table  # noqa: F401  the import is no part of the timing

from auditlib.stats.null import group_tables, joint_table, region_null, tie_region

LEAST_RATIO, MOST_EXACT = 10.0, 0.3


def pool(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits (items x 3 models) full and blind, and strata, with the published margins' order of size."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=(1500, 1))
    full = rng.random((1500, 3)) < 1 / (1 + np.exp(-(1.0 + 1.5 * ease)))
    blind = rng.random((1500, 3)) < 1 / (1 + np.exp(-(-1.6 + 0.8 * ease)))
    return full.astype(np.int64), blind.astype(np.int64), np.repeat(np.arange(6), 250)


def jobs(full: np.ndarray, blind: np.ndarray, stratum: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """(F, B, models) of every pool, stratum and half."""
    out = [(full.sum(1), blind.sum(1), 3)]
    for j in range(3):
        out.append((np.delete(full, j, 1).sum(1), np.delete(blind, j, 1).sum(1), 2))
    f, b = full.sum(1), blind.sum(1)
    out += [(f[stratum == s], b[stratum == s], 3) for s in range(6)]
    rng = np.random.default_rng(1)
    for _ in range(20):
        order = rng.permutation(len(f))
        out += [(f[half], b[half], 3) for half in np.array_split(order, 2)]
    return out


def shuffled(full: np.ndarray, blind: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The baseline: 999 permutations of item ids."""
    n, observed = len(full), (full == blind).mean()
    shares = np.array([(full == blind[rng.permutation(n)]).mean() for _ in range(999)])
    return shares.mean(), (1 + (shares >= observed - 1e-12).sum()) / 1000


def best(work, times: int = 5) -> float:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def main() -> int:
    full, blind, stratum = pool()
    work, rng = jobs(full, blind, stratum), np.random.default_rng(2)
    base = best(lambda: [shuffled(f, b, rng) for f, b, _ in work], 2)
    tables = best(
        lambda: [
            region_null(joint_table(f, b, m), tie_region(m + 1), draws=999, rng=rng, exact="never") for f, b, m in work
        ]
    )
    within = group_tables(full.sum(1), blind.sum(1), 3, stratum)
    exact_of = [(f, b, m) for f, b, m in work[:10]]

    def exact() -> None:
        for f, b, m in exact_of:
            region_null(joint_table(f, b, m), tie_region(m + 1), draws=0)
        region_null(within, tie_region(4), draws=0)

    exact_seconds = best(exact)
    ratio = base / tables
    print(f"{'999 shuffles for each of ' + str(len(work)) + ' pools, strata and halves':60}{base:8.3f} s")
    print(f"{'999 random tables for each':60}{tables:8.3f} s   ratio {ratio:.1f} (at least {LEAST_RATIO:g})")
    print(f"{'exact p: pool, within, 3 leave-one-out, 6 strata':60}{exact_seconds:8.3f} s   (below {MOST_EXACT:g} s)")
    return int(ratio < LEAST_RATIO or exact_seconds > MOST_EXACT)


if __name__ == "__main__":
    sys.exit(main())
