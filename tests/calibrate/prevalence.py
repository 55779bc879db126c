"""Do sets and mixture of the zero-gain share hold the truth?  ``python -m tests.calibrate.prevalence [WORLDS [SEED]]``.

Worlds inside the mixture's family and outside it; in each, models are drawn anew from a population, and the truth is
the share of items whose gain, averaged over that population, is at most the margin.
"""
# ruff: noqa: E402  threads are set before numpy is imported

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import time
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from auditlib.seeds import generator
from auditlib.stats.gain_mixture import fit_gain_mixture
from auditlib.stats.gain_prevalence import prevalence_set

MARGIN, POPULATION = 0.1, 400
KINDS = ("family", "misled", "linked", "kin", "two traits", "image hurts", "separated", "edge", "no zero")
#: a heap just inside or beyond the margin is what the scattered set assumes away
IRREGULAR = ("edge",)


@dataclass(frozen=True)
class World:
    """One pool: hits and abstentions of the drawn models, and the share over the whole population of models."""

    full: np.ndarray
    blind: np.ndarray
    abstained: np.ndarray
    truth: float


def world(kind: str, seed: int, items: int = 800, models: int = 24, options: int = 4) -> World:
    """Draw one world; ``kind`` is one of :data:`KINDS`.

    ``family`` is the fitted model; the others break it: items that mislead all models, full and blind answers linked
    within a model, families of models with shared errors, several abilities, images that hurt, all or nothing,
    gains at the margin's edge, no item of exactly zero gain.
    """
    rng = generator(seed, "prevalence world", kind)
    n = POPULATION
    ability, vision, silent = rng.normal(0, 0.7, n), rng.normal(0, 0.4, n), rng.beta(1, 12, n)
    kin = rng.integers(0, 12, n)
    ease = rng.normal(-0.2, 1.3, items)
    zero = rng.random(items) < rng.uniform(0.2, 0.6)
    gain = np.where(zero, 0.0, rng.gamma(2.0, 0.9, items))
    logit_full = (ease + gain)[:, None] + ability + np.where(zero, 0, 1)[:, None] * vision
    logit_blind = ease[:, None] + ability
    if kind == "family":
        logit_full = (ease + gain)[:, None] + ability
    if kind == "two traits":
        second = rng.normal(0, 0.9, n) * rng.choice([-1, 1], items)[:, None]
        logit_full, logit_blind = logit_full + second, logit_blind + second
    if kind == "image hurts":
        logit_full = logit_full - 2.5 * (rng.random(items) < 0.2)[:, None]
    if kind == "no zero":
        logit_full = logit_full + rng.normal(0, 0.35, items)[:, None]
    if kind == "kin":
        shared = rng.normal(0, 1.2, (items, 12))[:, kin]
        logit_full, logit_blind = logit_full + shared, logit_blind + shared
    guess = 1 / options
    full, blind = (guess + (1 - guess) * expit(x) for x in (logit_full, logit_blind))
    if kind == "misled":
        scale = np.where(rng.random(items) < 0.15, 0.25, 1)[:, None]
        full, blind = full * scale, blind * scale
    if kind == "separated":
        base = rng.uniform(0.05, 0.4, items)[:, None] + np.zeros(n)
        blind, full = base, np.where(zero[:, None], base, np.clip(base + rng.uniform(0.3, 0.55, items)[:, None], 0, 1))
    if kind == "edge":
        blind = rng.uniform(0.1, 0.6, items)[:, None] + np.zeros(n)
        full = blind + np.where(zero, 0.09, rng.choice([0.12, 0.35], items))[:, None]
    blind = blind * (1 - silent)
    if kind in ("separated", "edge"):
        blind = blind / (1 - silent)
        silent = np.zeros(n)
    truth = float((np.abs(full.mean(axis=1) - blind.mean(axis=1)) <= MARGIN).mean())
    who = rng.choice(n, models, replace=False)
    u, v, quiet = rng.random((items, models)), rng.random((items, models)), rng.random((items, models)) < silent[who]
    if kind in ("linked", "separated"):
        v = np.where(rng.random(v.shape) < 0.7, u, v)
    given = np.where(1 - silent[who] > 0, blind[:, who] / (1 - silent[who]), 0)
    return World((u < full[:, who]).astype(np.int8), ((v < given) & ~quiet).astype(np.int8), quiet, truth)


def measure(kind: str, seed: int, models: int, items: int = 800, options: int = 4) -> dict[str, float]:
    """Whether each set holds the truth, its width, and how far the mixture's share is off."""
    w = world(kind, seed, items, models, options)
    wide = prevalence_set(w.full, w.blind, margin=MARGIN)
    narrow = prevalence_set(w.full, w.blind, margin=MARGIN, scattered=True)
    mixed = fit_gain_mixture(w.full, w.blind, options=np.full(items, options), abstained_blind=w.abstained)
    return {
        "any": w.truth in wide, "any width": wide.width, "scattered": w.truth in narrow,
        "scattered width": narrow.width,
        "mixture error": mixed.share - w.truth, "naive error": naive(w) - w.truth, "truth": w.truth,
    }  # fmt: skip


def naive(w: World) -> float:
    """The raw share of items whose counts differ by at most the margin."""
    return float((10 * np.abs(w.full.sum(axis=1) - w.blind.sum(axis=1)) <= 10 * MARGIN * w.full.shape[1]).mean())


def main(worlds: int = 20, first: int = 0, sizes: tuple[int, ...] = (24, 12, 6, 3)) -> None:
    from scipy.stats import binomtest

    start = time.perf_counter()
    print(f"{worlds} worlds of 800 items each; coverage with its exact 99.9% interval, mean widths, mean errors")
    for models in sizes:
        for kind in KINDS:
            rows = [measure(kind, seed, models) for seed in range(first, first + worlds)]
            mean = {k: float(np.mean([r[k] for r in rows])) for k in rows[0]}
            size = float(np.mean([abs(r["mixture error"]) for r in rows]))
            cover = {}
            for name in ("any", "scattered"):
                hits = sum(bool(r[name]) for r in rows)
                cover[name] = f"{hits}/{worlds} (up to {binomtest(hits, worlds).proportion_ci(0.999).high:.3f})"
            print(
                f"n={models:2d} {kind:12s} truth {mean['truth']:.2f}  any law {cover['any']}"
                f" width {mean['any width']:.2f}"
                f"  scattered {cover['scattered']} width {mean['scattered width']:.2f}"
                f"  mixture {mean['mixture error']:+.3f}"
                f" (absolute {size:.3f})  raw {mean['naive error']:+.3f}  [{time.perf_counter() - start:.0f} s]",
                flush=True,
            )


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:3]))
