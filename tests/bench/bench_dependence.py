"""Fits of the response model, one thread: ``python tests/bench/bench_dependence.py [--large]``.

Adam with 300 epochs is the reference, on the same objective and kernel.  For L-BFGS: seconds, ratio, gap to the
best value found, and agreement of labels with that optimum.  ``--large`` adds 100,000 items x 24 models.
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
from auditlib.dependence.objective import Problem, make_problem
from auditlib.dependence.profile import relative_profile
from auditlib.dependence.structure import StructuralPrior
from auditlib.synth.modality import simulate_modality

MOST_SECONDS, MOST_GIB = 60.0, 4.0


def problem(subjects: int, items: int) -> Problem:
    """A pool whose prior is right for seven items in ten or so; no probes, whose cost is not measured here."""
    pool = simulate_modality(0, items=items, subjects=subjects, dimensions=2)
    noise = np.random.default_rng(0).dirichlet(np.ones(4), items)
    prior = StructuralPrior.from_profile(0.6 * noise + 0.4 * np.eye(4)[pool.label])
    return make_problem(pool.hits, np.ones_like(pool.hits), 1 / pool.k, prior.profile, prior.weight)


def timed(work) -> tuple[float, Fit]:
    """Processor seconds: other work on the machine does not count."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main() -> int:
    for subjects, items in ((12, 600), (24, 14_000)):
        p = problem(subjects, items)
        best = minimise(p, iterations=300 if items < 1000 else 120, tolerance=1e-9)

        def label(f: Fit, p: Problem = p) -> np.ndarray:
            return relative_profile(predicted(p, f.x), p.chance).argmax(1)

        base, reference = timed(lambda p=p: adam(p))
        agree = (label(reference) == label(best)).mean()
        print(
            f"{subjects} x {items}: Adam 300   {base:7.3f} s  gap {reference.value - best.value:.4f}  same {agree:.4f}"
        )
        for iterations in (10, 15, 25, 40, 60):
            took, f = timed(lambda p=p, n=iterations: minimise(p, iterations=n))
            agree = (label(f) == label(best)).mean()
            print(f"    L-BFGS {iterations:3}   {took:7.3f} s  x{base / took:5.1f}  gap {f.value - best.value:.4f}  "
                  f"same {agree:.4f}  evaluations {f.evaluations}")  # fmt: skip
    if "--large" not in sys.argv:
        return 0
    p = problem(24, 100_000)
    took, (_, f) = timed(lambda: fit(p))
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"24 x 100000, three rounds: {took:.1f} s (below {MOST_SECONDS:g}), {gib:.1f} GiB (below {MOST_GIB:g})")
    return int(took > MOST_SECONDS or gib > MOST_GIB)


if __name__ == "__main__":
    sys.exit(main())
