"""A curation of MMGist's size: ``python tests/bench/bench_curation.py``.

23,250 items x 12 panel models x 8 samples, and 5 inspectors x 8 samples without the image, through text ablation with
its expected wrong removals, saturation and the five rules, in sequence and on the full pool.  Arrays are drawn before
the clock starts.  Prints seconds of each stage and the peak of memory; exits 1 when a limit is missed.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import sys
import time

import numpy as np
import pandas as pd

from auditlib.curation.ablation import ablation
from auditlib.curation.data import NO_ANSWER, Answers, CurationPool, Draws
from auditlib.curation.funnel import CurationSettings, funnel
from auditlib.curation.rules import RuleSettings, rules
from auditlib.curation.saturation import saturation
from auditlib.curation.wrong_removal import wrong_removal

ITEMS, PANEL, INSPECTORS, SAMPLES, OPTIONS, SOURCES = 23_250, 12, 5, 8, 4, 18
MOST_SECONDS, MOST_GIB = 10.0, 2.0


def pool() -> CurationPool:
    """Random choices among four options, a twentieth without an answer, answer 0 being the key."""
    rng = np.random.default_rng(0)
    models = PANEL + INSPECTORS
    ease = rng.beta(0.7, 0.5, (ITEMS, 1, 1))
    said = rng.integers(0, OPTIONS, (ITEMS, models, SAMPLES), np.int8)
    said[rng.random(said.shape, np.float32) < ease] = 0
    said[rng.random(said.shape, np.float32) < 0.05] = NO_ANSWER
    blind = rng.binomial(SAMPLES, rng.beta(0.5, 0.7, (ITEMS, 1)), (ITEMS, models))
    trials = np.full((ITEMS, models), SAMPLES)
    rows = []
    for code in (NO_ANSWER, *range(OPTIONS)):
        odd, even = ((said[:, :, half::2] == code).sum(2) for half in (0, 1))
        item, model = np.nonzero(odd + even)
        rows.append((item, model, np.full(len(item), code), odd[item, model], even[item, model]))
    answers = Answers(*(np.concatenate(c) for c in zip(*rows, strict=True)), np.full(ITEMS, OPTIONS),
                      np.zeros(ITEMS, int), lambda i, code: "ABCD"[code])  # fmt: skip
    items = pd.DataFrame({
        "item": [f"i{i}" for i in range(ITEMS)], "source": rng.integers(0, SOURCES, ITEMS).astype(str),
        "k": np.where(rng.random(ITEMS) < 0.2, 2.0, 4.0), "key": "A",
    })  # fmt: skip
    table = pd.DataFrame({
        "model": [f"m{j}" for j in range(models)], "provider": [f"p{j % 6}" for j in range(models)],
        "tier": [f"t{j % 3}" for j in range(models)],
    })  # fmt: skip
    panel = np.arange(PANEL)
    full = Draws((said == 0).sum(2), trials, (said == NO_ANSWER).sum(2))
    return CurationPool("bench", items, table, full, Draws(blind, trials, np.zeros_like(trials)), answers,
                        np.arange(PANEL, models), panel, panel)  # fmt: skip


def main() -> int:
    import scipy.stats  # noqa: F401  the import is no part of the timing

    p = pool()
    print(f"{ITEMS:,} items, {len(p.answers.item):,} rows of answers")
    took, clock = {}, time.perf_counter()

    def lap(what: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        took[what], clock = now - clock, now

    p.check()
    lap("check")
    blind, full = p.blind.of(p.inspectors), p.full.of(p.panel)
    text = ablation(blind, p.k)
    lap("text ablation")
    wrong_removal(blind, p.k, text)
    lap("wrong removals")
    saturation(full, p.models["tier"].iloc[p.panel].tolist())
    lap("saturation")
    rules(p.answers.of(p.panel), full, p.k, p.source)
    lap("rules")
    rules(p.answers.of(p.panel), full, p.k, p.source, families=p.providers[p.panel])
    lap("rules, family-aware")
    found = funnel(p)
    lap("all stages, in sequence and on the full pool")
    funnel(p, CurationSettings(rules=RuleSettings(family_aware=True, budget="0.2")))
    lap("all stages, family-aware, within a budget")
    for what, seconds in took.items():
        print(f"  {what}: {seconds:.2f} s")
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    slowest = max(v for k, v in took.items() if k.startswith("all stages"))
    print(found.stages[found.stages["mode"] == "sequential"][["stage", "items_in", "recalled", "left"]].to_string())
    print(f"all stages {slowest:.1f} s (below {MOST_SECONDS:g}), peak {gib:.2f} GiB (below {MOST_GIB:g})")
    return int(slowest >= MOST_SECONDS or gib >= MOST_GIB)


if __name__ == "__main__":
    sys.exit(main())
