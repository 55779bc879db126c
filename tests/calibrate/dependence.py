"""Recovery of planted labels, subsets of a contaminated pool, margins of left-out families, as printed tables.

    python -m tests.calibrate.dependence recovery --seeds 1000 1010 [--regime main] [--save rows.csv]
    python -m tests.calibrate.dependence ablations --seeds 1000 1004 [--regime main] [--save rows.csv]
    python -m tests.calibrate.dependence print rows.csv ...
    python -m tests.calibrate.dependence refinement FOLDER ... [--splits 12] [--protocol m3irt]
    python -m tests.calibrate.dependence margins FOLDER ...

A FOLDER holds ``normal_NAME.csv`` and ``shuffled_NAME.csv``, NAME being the folder's own.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from m3irt_tables import FAMILIES, read_contaminated, read_tensor

from auditlib.dependence.ablations import ablate
from auditlib.dependence.baselines import all_baselines
from auditlib.dependence.diagnosis import diagnose
from auditlib.dependence.labels import evaluate_labels
from auditlib.dependence.margins import leave_family_out
from auditlib.dependence.refinement import refine
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import bootstrap, mean_ratio, sign_flip
from auditlib.synth.modality import REGIMES, simulate_modality

#: rows of the table that are this project's own method; everything else is what it is compared with
OWN = ("stacked", "response model", "pooled", "stacked, prior lsmi", "stacked, prior ccs")


def recover(seed: int, regime: str) -> dict[str, np.ndarray]:
    """Labels by every method on one simulated pool, the truth under ``truth``."""
    pool = simulate_modality(seed, regime)
    responses = ResponseTensor.from_arrays(pool.hits, k=pool.k)
    prior = StructuralPrior.from_embeddings(pool.visual, pool.textual, pool.options, pool.key)
    lsmi = StructuralPrior.from_embeddings(pool.visual, pool.textual, pool.options, pool.key, method="lsmi")
    ccs = StructuralPrior.from_probs(prior.probability, pool.k, method="ccs")
    shares = np.bincount(pool.label, minlength=4) / len(pool.label)
    made = all_baselines(responses, prior, lsmi=lsmi, rng=np.random.default_rng(seed), shares=shares)
    out = {name: b.label for name, b in made.items() if b.profile is not None}
    out["structure only, ccs"] = ccs.profile.argmax(1)
    d = diagnose(responses, prior, compare=False)
    out["stacked"], out["response model"], out["pooled"] = d.label, d.by_model.argmax(1), d.pooled.argmax(1)
    for name, other in (("lsmi", lsmi), ("ccs", ccs)):
        out[f"stacked, prior {name}"] = diagnose(responses, other, compare=False).label
    return out | {"truth": pool.label}


def reduce(seed: int, regime: str) -> dict[str, np.ndarray]:
    """Labels by the diagnosis and its reductions."""
    pool = simulate_modality(seed, regime)
    prior = StructuralPrior.from_embeddings(pool.visual, pool.textual, pool.options, pool.key)
    made = ablate(ResponseTensor.from_arrays(pool.hits, k=pool.k), prior)
    return {name: p.argmax(1) for name, p in made.items()} | {"truth": pool.label}


def run(work, seeds: range, regimes: list[str]) -> pd.DataFrame:
    rows = []
    for regime in regimes:
        for seed in seeds:
            labels = work(seed, regime)
            truth = labels.pop("truth")
            for method, label in labels.items():
                s = evaluate_labels(truth, label)
                rows.append({"regime": regime, "seed": seed, "method": method, "accuracy": s.accuracy,
                             "macro_f1": s.macro_f1})  # fmt: skip
    return pd.DataFrame(rows)


def show(rows: pd.DataFrame) -> None:
    """Means over seeds, then the method against the strongest other one of each regime."""
    regimes = [r for r in REGIMES if r in set(rows["regime"])]
    seeds = sorted(set(rows["seed"]))
    print(f"\naccuracy / macro-F1, mean over seeds {seeds[0]}-{seeds[-1]} ({len(seeds)}), sd of accuracy in brackets")
    print(f"{'':28s}" + "".join(f"{r:>24s}" for r in regimes))
    for method in dict.fromkeys(rows["method"]):
        line = f"{method:28s}"
        for regime in regimes:
            part = rows[(rows["method"] == method) & (rows["regime"] == regime)]
            line += f"{part['accuracy'].mean():12.3f} / {part['macro_f1'].mean():.3f} ({part['accuracy'].std():.3f})"[
                -24:
            ]
        print(line)
    if "random" in set(rows["method"]):
        _against_strongest(rows, regimes)


def _against_strongest(rows: pd.DataFrame, regimes: list[str]) -> None:
    tests = []
    for metric in ("accuracy", "macro_f1"):
        for regime in regimes:
            wide = rows[rows["regime"] == regime].pivot(index="seed", columns="method", values=metric)
            best = wide.drop(columns=[c for c in OWN if c in wide]).mean().idxmax()
            d = (wide["stacked"] - wide[best]).to_numpy()
            rng = np.random.default_rng(0)
            interval = bootstrap(np.column_stack([d, np.ones(len(d))]), mean_ratio, rng=rng, draws=10_000).interval
            tests.append((metric, regime, best, d, interval, sign_flip(d, rng=rng).p))
    print("\nstacked less the strongest other method (chosen on the same seeds), over paired seeds:")
    for (metric, regime, best, d, interval, p), q in zip(tests, holm([t[-1] for t in tests])):
        print(f"  {metric:9s} {regime:18s} {best:22s} {d.mean():+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]  "
              f"ahead on {(d > 0).sum()} of {len(d)}  p {p:.4f}  Holm {q:.4f}")  # fmt: skip


def show_refinement(folder: Path, splits: int, protocol: str) -> None:
    pool = read_contaminated(folder)
    m, n, _ = pool.responses.hits.shape
    r = refine(pool, splits=splits, protocol=protocol)
    shares = " ".join(f"{s:5g}" for s in dict.fromkeys(r.table["share"]))
    print(f"\n{folder.name}: {m} models, {n} items, {pool.corrupted.mean():.1%} corrupted, {splits} splits, {protocol}")
    print(f"{'per cent selected':26s} {shares} (Spearman) | sd | Kendall | corrupted share")
    for name, g in r.table.groupby("utility", sort=False):
        parts = [" ".join(f"{x:5.2f}" for x in g[c]) for c in ("spearman", "spearman_sd", "kendall", "corrupted")]
        print(f"{name:26s} {' | '.join(parts)}")


def show_margins(folder: Path) -> None:
    responses = read_tensor(folder / f"normal_{folder.name}.csv")
    found = leave_family_out(responses, rng=np.random.default_rng(0), families=list(FAMILIES), iterations=100)
    print(f"\n{folder.name}: {found.positive} of {found.of} margins positive, {found.positive_null:.1f} expected when "
          "labels are permuted; 95 % item bootstrap, one-sided permutation p")  # fmt: skip
    print(found.table.round(4).to_string(index=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["recovery", "ablations", "print", "refinement", "margins"])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--seeds", nargs=2, type=int, default=(1000, 1010))
    parser.add_argument("--regime", action="append", choices=list(REGIMES))
    parser.add_argument("--save", type=Path)
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--protocol", default="full")
    a = parser.parse_args()
    if a.what in ("recovery", "ablations"):
        rows = run(recover if a.what == "recovery" else reduce, range(*a.seeds), a.regime or list(REGIMES))
        show(rows)
        if a.save:
            rows.to_csv(a.save, index=False)
    elif a.what == "print":
        show(pd.concat([pd.read_csv(p) for p in a.paths]))
    else:
        for folder in a.paths:
            show_refinement(folder, a.splits, a.protocol) if a.what == "refinement" else show_margins(folder)


if __name__ == "__main__":
    main()
