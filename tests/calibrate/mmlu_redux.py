"""Label-conflict lists against people: ``python -m tests.calibrate.mmlu_redux`` prints the tables (about 4 minutes).

Ranking against the ability-weighted margin, what else was tried, bounds without reviews, and intervals from 100
reviewed items, on the half of MMLU-Redux that lies beside the project.
"""
# ruff: noqa: E402  threads are set before numpy is imported

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from auditlib.calibration.known_truth import (
    AT,
    REVIEWED,
    SIZES,
    Checked,
    average_precision,
    pools_of,
    read_checked,
    realised,
)
from auditlib.calibration.review_sample import review_sample
from auditlib.stats.label_conflict import LabelConflict, label_conflict
from auditlib.stats.local_fdr import LocalFdr, local_fdr
from auditlib.stats.precision_bounds import PrecisionBound, precision_bounds

TARGETS = ("wrong key", "key defect")


@dataclass(frozen=True)
class Redux(Checked):
    """Beside the checked pool, how alike the key and the nearest option are, shape (items,)."""

    similarity: np.ndarray


def load(folder: Path) -> Redux:
    from rapidfuzz.fuzz import ratio

    data = read_checked(folder / "real" / "mmlu_redux" / "mmlu_redux_half.csv.gz")
    choices = [[str(o) for o in ast.literal_eval(c)] for c in data.choices]
    near = [max(ratio(c[k], o) for i, o in enumerate(c) if i != k) for c, k in zip(choices, data.key)]
    return Redux(**vars(data), similarity=np.array(near) / 100)


def expected_average_precision(score: np.ndarray, positive: np.ndarray) -> float:
    """Mean of the precision at the positives, expected over random orders of items with one score."""
    _, group = np.unique(-score, return_inverse=True)
    n, hit = np.bincount(group), np.bincount(group, weights=positive)
    total = 0.0
    for size, here, before, above in zip(n, hit, np.cumsum(n) - n, np.cumsum(hit) - hit):
        if here:
            i = np.arange(size)
            others = (here - 1) / (size - 1) if size > 1 else 0.0
            total += here / size * float(((above + 1 + i * others) / (before + 1 + i)).sum())
    return total / float(positive.sum())


def difference(
    data: Redux, size: int, target: str, *, draws: int, rng: np.random.Generator, count: int = 40
) -> tuple[float, float, float, float]:
    """Mean average precision of the ranking and of the plain margin; their difference's 5% and 95% bootstrap points.

    Items are resampled once for all pools of the size; each draw averages over the pools.
    """
    pools = [data.pool(s) for s in pools_of(size, data.letters.shape[1], count)]
    y = data.found[target]
    pairs = [(p.score, p.margin) for p in pools]
    both = np.mean([[average_precision(s, y), average_precision(m, y)] for s, m in pairs], 0)
    moved = []
    for _ in range(draws):
        w = np.bincount(rng.integers(0, len(y), len(y)), minlength=len(y)).astype(float)
        moved.append(np.mean([average_precision(s, y, w) - average_precision(m, y, w) for s, m in pairs]))
    return float(both[0]), float(both[1]), *(float(q) for q in np.quantile(moved, [0.05, 0.95]))


def variants(data: Redux) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Other scores: what was tried beside the margin."""

    def weighted(power: float) -> Callable[[np.ndarray], np.ndarray]:
        def score(models: np.ndarray) -> np.ndarray:
            said, key = data.letters[:, models], data.key
            a = (said == key[:, None]).mean(0)
            w = a * (a / (1 - a)) ** power
            share = np.stack([(said == o) @ (w / w.sum()) for o in range(4)], 1)
            mine = share[np.arange(len(key)), key]
            share[np.arange(len(key)), key] = -1
            return share.max(1) - mine

        return score

    def added(field: str, by: float) -> Callable[[np.ndarray], np.ndarray]:
        def score(models: np.ndarray) -> np.ndarray:
            pool = data.pool(models, tie=False)
            return pool.margin + by * np.nan_to_num(getattr(pool, field))

        return score

    standard = (data.length - data.length.mean()) / data.length.std()
    plain = lambda models: data.pool(models, tie=False).margin  # noqa: E731
    return {
        "margin (accuracy weights)": plain,
        "equal weights": lambda m: _equal(data, m),
        "steeper weights, power 2": weighted(2.0),
        "steeper weights, power 5": weighted(5.0),
        "families weighted down": lambda m: data.pool(m, tie=False, families=True).margin,
        "+ 0.1 ability gradient": added("gradient", 0.1),
        "+ 0.3 ability gradient": added("gradient", 0.3),
        "+ 0.3 signed R2 misfit": added("misfit", 0.3),
        "+ 1 signed R2 misfit": added("misfit", 1.0),
        "- 0.1 option similarity": lambda m: plain(m) - 0.1 * data.similarity,
        "ties by length (the score)": lambda m: data.pool(m).score,
        "- 0.1 log length": lambda m: plain(m) - 0.1 * standard,
        "- 0.3 log length": lambda m: plain(m) - 0.3 * standard,
        "ties by length, long first": lambda m: (
            label_conflict(data.letters[:, m], data.key, tie_break=-data.length).score
        ),
    }


def _equal(data: Redux, models: np.ndarray) -> np.ndarray:
    said, key = data.letters[:, models], data.key
    votes = np.stack([(said == o).sum(1) for o in range(4)], 1).astype(float)
    mine = votes[np.arange(len(key)), key]
    votes[np.arange(len(key)), key] = -1
    return (votes.max(1) - mine) / len(models)


def held_out_choice(
    data: Redux, size: int, target: str, names: Iterable[str], *, folds: int = 5, repeats: int = 4, count: int = 10
) -> tuple[float, dict[str, int]]:
    """Gain over the margin on held-out items when the best of the named variants is chosen on the others.

    Returns the mean gain in average precision and how often each variant was chosen.
    """
    pools, y, table = pools_of(size, data.letters.shape[1], count), data.found[target], variants(data)
    names = list(names)
    scores = {n: [table[n](s) for s in pools] for n in names}
    gains, chosen = [], dict.fromkeys(names, 0)
    for repeat in range(repeats):
        fold = np.random.default_rng(repeat).integers(0, folds, len(y))
        for f in range(folds):
            rest, out = fold != f, fold == f

            def worth(n: str, part: np.ndarray) -> float:
                return float(np.mean([expected_average_precision(s[part], y[part]) for s in scores[n]]))

            best = max(names, key=lambda n: worth(n, rest))
            chosen[best] += 1
            gains.append(worth(best, out) - worth(names[0], out))
    return float(np.mean(gains)), chosen


def bounds(data: Redux, size: int, count: int = 40) -> tuple[list[list[PrecisionBound]], list[LabelConflict]]:
    pools = pools_of(size, data.letters.shape[1], count)
    lists = [data.pool(s) for s in pools]
    made = [
        precision_bounds(data.letters[:, s], data.key, c.order, rng=np.random.default_rng(0), at=AT)
        for s, c in zip(pools, lists)
    ]
    return made, lists


def reviewed(
    lists: list[LabelConflict], found: np.ndarray, *, replications: int, draws: int = 2000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coverage, mean half-width and bias of the precision at :data:`AT` from 100 reviewed items."""
    inside, half, bias = [], [], []
    for i in range(replications):
        rng, order = np.random.default_rng([i, 7]), lists[i % len(lists)].order
        sample = review_sample(order, REVIEWED, rng=rng)
        fdr: LocalFdr = local_fdr(sample.rank, found[sample.items], sample.edges, rng=rng, at=AT, draws=draws)
        truth = realised(order, found)
        inside.append(
            [f.interval.low - 1e-9 <= t <= f.interval.high + 1e-9 for f, t in zip(fdr.first, truth, strict=True)]
        )
        half.append([(f.interval.high - f.interval.low) / 2 for f in fdr.first])
        bias.append([f.precision - t for f, t in zip(fdr.first, truth, strict=True)])
    return np.mean(inside, 0), np.mean(half, 0), np.mean(bias, 0)


def main() -> None:
    data = load(Path(__file__).resolve().parents[3] / "shared" / "data")
    fmt = lambda values: "  ".join(f"{v:6.3f}" for v in values)  # noqa: E731
    print("average precision, expected over ties (wrong key | key defect), pools of", SIZES)
    for name, score in variants(data).items():
        row = [
            np.mean(
                [
                    [expected_average_precision(score(s), data.found[t]) for t in TARGETS]
                    for s in pools_of(n, data.letters.shape[1])
                ],
                0,
            )
            for n in SIZES
        ]
        print(f"  {name:30s}", " | ".join(fmt(r) for r in row), flush=True)
    print("ranking against margin: mean average precision of both, 90% bootstrap interval of the difference")
    for n in SIZES:
        for t in TARGETS:
            print(f"  {n:2d} {t:10s}", fmt(difference(data, n, t, draws=200, rng=np.random.default_rng(1))), flush=True)
    text = ["margin (accuracy weights)", "ties by length (the score)", "ties by length, long first"]
    votes = ["margin (accuracy weights)", "steeper weights, power 5", "+ 0.3 ability gradient", "+ 1 signed R2 misfit"]
    print("held-out gain of the variant chosen on the other items")
    for n in SIZES:
        for t in TARGETS:
            for names in (votes, text):
                gain, chosen = held_out_choice(data, n, t, names)
                print(f"  {n:2d} {t:10s} {gain:6.3f}", chosen, flush=True)
    print("bounds without reviews: upper at", AT, "| realised | pools in which it holds | mean ratio at 50, pools <= 3")
    for n in SIZES:
        made, lists = bounds(data, n)
        upper = np.array([[b.upper for b in row] for row in made])
        for t in TARGETS:
            true = np.array([realised(c.order, data.found[t]) for c in lists])
            ratio = upper[:, 1] / true[:, 1]
            print(f"  {n:2d} {t:10s}", fmt(upper.mean(0)), "|", fmt(true.mean(0)), "|", fmt((upper >= true).mean(0)),
                  f"| {upper[:, 1].mean() / true[:, 1].mean():.2f} {(ratio <= 3).mean():.2f}", flush=True)  # fmt: skip
    print(f"{REVIEWED} reviewed items, 200 replications: coverage of 90% at", AT, "| half-width | bias")
    for n in SIZES:
        lists = [data.pool(s) for s in pools_of(n, data.letters.shape[1])]
        for t in TARGETS:
            out = reviewed(lists, data.found[t], replications=200)
            print(f"  {n:2d} {t:10s}", " | ".join(fmt(x) for x in out), flush=True)


if __name__ == "__main__":
    main()
