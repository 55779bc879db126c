"""Label-conflict ranking, bounds and local false-discovery rate: ``python tests/bench/bench_label_conflict.py``.

Pools of 1,500 x 3 and 100,000 x 50; prints seconds, and as a ratio to one pass of numpy over the letters (votes counted
for each option).  Exits 1 when a limit is missed.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time

import numpy as np

from auditlib.calibration.review_sample import review_sample
from auditlib.stats.label_conflict import label_conflict
from auditlib.stats.local_fdr import local_fdr
from auditlib.stats.precision_bounds import precision_bounds

#: items, models, most seconds
POOLS = ((1_500, 3, 2.0), (100_000, 50, 60.0))
OPTIONS = 4


def pool(items: int, models: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Letters, keys with 3% wrong, and which are: wrong options draw the models with a beta-distributed popularity."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, OPTIONS, items)
    other = (truth + rng.integers(1, OPTIONS, items)) % OPTIONS
    popular = rng.beta(0.25, 1.5, items)[:, None]
    letters = np.where(rng.random((items, models)) < popular, other[:, None], truth[:, None]).astype(np.int8)
    letters[rng.random((items, models)) < 0.01] = -1
    wrong = rng.random(items) < 0.03
    return letters, np.where(wrong, (truth + 1) % OPTIONS, truth).astype(np.int8), wrong


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(items: int, models: int) -> tuple[dict[str, float], float]:
    """Seconds of each step, and of one pass over the letters."""
    letters, key, wrong = pool(items, models)
    family, length = np.arange(models) // 3, np.random.default_rng(1).normal(size=items)
    made = {}

    def rank() -> None:
        made["list"] = label_conflict(letters, key, families=family, tie_break=length)

    def bound() -> None:
        made["bounds"] = precision_bounds(letters, key, made["list"].order, rng=np.random.default_rng(2))

    def calibrate() -> None:
        rng = np.random.default_rng(3)
        sample = review_sample(made["list"].order, 100, rng=rng)
        made["fdr"] = local_fdr(sample.rank, wrong[sample.items], sample.edges, rng=rng)

    one_pass = min(seconds(lambda: [(letters == o).sum(axis=1) for o in range(OPTIONS)]) for _ in range(3))
    return {step.__name__: seconds(step) for step in (rank, bound, calibrate)}, one_pass


def main() -> int:
    missed = 0
    for items, models, limit in POOLS:
        took, one_pass = run(items, models)
        total = sum(took.values())
        steps = "  ".join(f"{k} {v:.2f} s" for k, v in took.items())
        print(f"{items:7,} x {models:2d}: {steps}  total {total:.2f} s (below {limit:g} s)", end="")
        print(f"  ranking {took['rank'] / one_pass:.0f} passes" if items > 10_000 else "")
        missed += total > limit
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
