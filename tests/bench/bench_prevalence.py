"""Share of items without gain, both sets and the mixture, and posteriors: ``python tests/bench/bench_prevalence.py``.

Pools of 1,500 x 3 and 100,000 x 50; prints processor seconds.  Exits 1 when a limit is missed.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time

import numpy as np

from auditlib.stats.gain_list import gain_posterior
from auditlib.stats.gain_mixture import fit_gain_mixture
from auditlib.stats.gain_prevalence import prevalence_set

#: items, models, most seconds
POOLS = ((1_500, 3, 2.0), (100_000, 50, 60.0))


def pool(items: int, models: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rasch hits with and without the image; two items in five gain nothing."""
    rng = np.random.default_rng(seed)
    ease, able = rng.normal(-0.2, 1.3, (items, 1)), rng.normal(0, 0.7, models)
    gain = np.where(rng.random((items, 1)) < 0.4, 0, rng.gamma(2, 0.9, (items, 1)))
    chance = [0.25 + 0.75 / (1 + np.exp(-(ease + able + g))) for g in (gain, 0)]
    return tuple((rng.random((items, models)) < c).astype(np.int8) for c in chance)


def seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def run(items: int, models: int) -> dict[str, float]:
    """Seconds of each step."""
    full, blind = pool(items, models)
    options = np.full(items, 4)
    return {
        "any law": seconds(lambda: prevalence_set(full, blind)),
        "scattered law": seconds(lambda: prevalence_set(full, blind, scattered=True)),
        "mixture": seconds(lambda: fit_gain_mixture(full, blind, options=options)),
        "posteriors": seconds(lambda: gain_posterior(full, blind)),
    }


def main() -> int:
    missed = 0
    for items, models, limit in POOLS:
        took = run(items, models)
        total = sum(took.values())
        print(f"{items:7,} x {models:2d}: {'  '.join(f'{k} {v:.2f} s' for k, v in took.items())}"
              f"  total {total:.2f} s (below {limit:g} s)", flush=True)  # fmt: skip
        missed += total > limit
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
