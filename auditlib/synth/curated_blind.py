"""Draws of the synthetic pool without the image: inspectors guess, know or read the answer off the question."""

from __future__ import annotations

import numpy as np

from auditlib.synth.curated_draws import ANSWERS, HALF, NONE, Frame, Shape, fill, hits, level
from auditlib.synth.curated_plan import TEXT_ACCURACY, Plan

#: mean share of draws in which an inspector knows the answer to an item that text alone answers
_KNOWN, _KNOWN_IN = 0.78, {"AI2D": 0.88, "MMMU": 0.62}


def ablated(frame: Frame, counts: np.ndarray) -> np.ndarray:
    """Items above the text-only threshold: 0.80 with two answers, else 0.50; strictly."""
    draws = counts.shape[1] * 2 * HALF
    correct = hits(counts, frame.key).sum(axis=1)
    return np.where(frame.k == 2, 10 * correct > 8 * draws, 2 * correct > draws)


def without_image(plan: Plan, frame: Frame, inspectors: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of the inspectors, shape (items, inspectors, 11, 2); the accuracies of TEXT_ACCURACY come out exactly."""
    gone = frame.is_("ablated_easy", "ablated")
    known = np.array([_KNOWN_IN.get(s, _KNOWN) for s in plan.sources])[frame.source]

    def make(rng: np.random.Generator, shape: Shape, places: np.ndarray) -> np.ndarray:
        return _guesses(rng, frame.at(places), inspectors, gone[places], known[places])

    def fits(f: Frame, counts: np.ndarray) -> np.ndarray:
        return ablated(f, counts) == f.is_("ablated_easy", "ablated")

    _, counts = fill(rng, frame, make, fits)
    for name, percent in TEXT_ACCURACY.items():
        mine = np.flatnonzero(frame.source == plan.sources.index(name))
        wanted = round(percent / 100 * len(mine) * inspectors * 2 * HALF)
        now = int(hits(counts[mine], frame.key[mine]).sum())
        level(rng, frame, counts, mine, np.arange(inspectors), wanted - now, fits)
    return counts


def _guesses(rng: np.random.Generator, f: Frame, inspectors: int, gone: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Draws of items; an inspector repeats its favourite guess, so that its draws on one item agree."""
    n = len(f.kind)
    size = np.where(f.k == 0, ANSWERS, f.k)
    valid = np.arange(ANSWERS) < size[:, None]
    guess = rng.gamma(0.4, 1.0, (n, inspectors, ANSWERS)) * valid[:, None] + 1e-9 * valid[:, None]
    guess[np.arange(n), :, f.key] *= np.where((f.k == 0) & ~gone, 0.15, 1.0)[:, None]
    guess /= guess.sum(axis=2, keepdims=True)
    binary = f.k == 2
    mean = np.where(gone, np.where(binary, 0.85, known), 0.08)
    each = rng.beta(6 * mean, 6 * (1 - mean))[:, None]
    knows = rng.beta(8 * each + 0.05, 8 * (1 - each) + 0.05, (n, inspectors))
    silent = rng.beta(1, np.where(gone, 40, 9)[:, None], (n, inspectors))
    p = np.empty((n, inspectors, ANSWERS + 1))
    p[:, :, :ANSWERS] = (1 - knows)[:, :, None] * guess
    p[np.arange(n), :, f.key] += knows
    p[:, :, :ANSWERS] *= (1 - silent)[:, :, None]
    p[:, :, NONE] = silent
    return np.stack([rng.multinomial(HALF, p) for _ in range(2)], axis=-1).astype(np.uint8)
