"""Fits of the response model, one thread: ``python tests/bench/bench_dependence.py [--large]``.

Adam with 300 epochs is the reference, on the same objective and path (array code; compiled passes where numba is
installed).  For L-BFGS: seconds until its objective is as low as Adam's last, and to its own end; gap to the best value
found; agreement of labels with that optimum and with Adam.  ``--large`` times 100,000 items x 24 models alone.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import sys
import time

import numpy as np

from auditlib.dependence.fit import Fit, adam, fit, minimise, predicted
from auditlib.dependence.objective import compiled
from auditlib.dependence.problem import Problem, make_problem
from auditlib.dependence.profile import relative_profile
from auditlib.dependence.structure import StructuralPrior
from auditlib.synth.modality import simulate_modality

MOST_SECONDS, MOST_GIB = 60.0, 4.0


def problem(subjects: int, items: int, seed: int = 0) -> Problem:
    """A pool whose prior is right for seven items in ten or so; no probes, whose cost is not measured here."""
    pool = simulate_modality(seed, items=items, subjects=subjects, dimensions=2)
    noise = np.random.default_rng(seed).dirichlet(np.ones(4), items)
    prior = StructuralPrior.from_profile(0.6 * noise + 0.4 * np.eye(4)[pool.label])
    return make_problem(pool.hits, np.ones_like(pool.hits), 1 / pool.k, prior.profile, prior.weight)


def timed(work) -> tuple[float, Fit]:
    """Processor seconds: other work on the machine does not count."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def compare(subjects: int, items: int, seed: int, least: float) -> None:
    p = problem(subjects, items, seed)
    best = minimise(p, iterations=300 if items < 1000 else 120, tolerance=1e-9)

    def label(f: Fit) -> np.ndarray:
        return relative_profile(predicted(p, f.x), p.chance).argmax(1)

    base, adams = timed(lambda: adam(p))
    print(f"{subjects} x {items}, seed {seed}: Adam 300 {base:.3f} s, gap {adams.value - best.value:.4f}, "
          f"labels as the best {(label(adams) == label(best)).mean():.4f}")  # fmt: skip
    reached = [n for n, f in enumerate(best.trace) if f <= adams.value]
    runs = [("as low as Adam", reached[0])] if reached else []
    if not reached:
        print("    Adam's optimum is another and lower; L-BFGS does not reach it")
    for name, n in (*runs, ("20 iterations", 20), ("to its end", 60)):
        took, f = timed(lambda n=n: minimise(p, iterations=n))
        same = [(label(f) == label(other)).mean() for other in (best, adams)]
        print(f"    L-BFGS {name:15} {took:7.3f} s  x{base / took:5.1f} (wanted {least:g})  "
              f"gap {f.value - best.value:.4f}  labels as the best {same[0]:.4f}, as Adam {same[1]:.4f}  "
              f"iterations {f.iterations}, evaluations {f.evaluations}")  # fmt: skip


def large() -> bool:
    p = problem(24, 100_000)
    took, _ = timed(lambda: fit(p))
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"24 x 100000, three rounds: {took:.1f} s (below {MOST_SECONDS:g}), {gib:.1f} GiB (below {MOST_GIB:g})")
    return took > MOST_SECONDS or gib > MOST_GIB


def main() -> int:
    bad = False
    for path, off in (("arrays", "1"), ("compiled", "0")):
        os.environ["AUDITLIB_NO_NUMBA"] = off
        if path == "compiled" and compiled() is None:
            print("compiled: numba is not installed")
            continue
        start = time.process_time()
        minimise(problem(12, 100), iterations=2)
        print(f"{path}; first fit {time.process_time() - start:.1f} s")
        if "--large" in sys.argv:
            bad |= large()
            continue
        for seed in (0, 100, 101):
            compare(12, 600, seed, 8)
        compare(24, 14_000, 0, 4)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
