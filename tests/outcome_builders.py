"""Small curation pools for the tests of the outcome tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.curation.data import CurationPool, Draws


def draws_of(hits: np.ndarray, trials: int | np.ndarray, abstained: np.ndarray | None = None) -> Draws:
    hits = np.asarray(hits)
    trials = np.full(hits.shape, trials) if np.isscalar(trials) else np.asarray(trials)
    return Draws(hits, trials, np.zeros_like(hits) if abstained is None else np.asarray(abstained))


def pool_of(hits, trials=8, *, source=None, capability=None, blind=None, items=None, models=None, panel=None,
            evaluated=None, inspectors=()) -> CurationPool:  # fmt: skip
    """A pool from hits (items, models); every model on the panel and evaluated unless said otherwise."""
    hits = np.asarray(hits)
    n, m = hits.shape
    table = pd.DataFrame({"item": [f"i{i}" for i in range(n)], "source": "s" if source is None else source})
    if capability is not None:
        table["capability"] = capability
    for name, values in (items or {}).items():
        table[name] = values
    about = pd.DataFrame({"model": [f"m{j}" for j in range(m)]} | (models or {}))
    everyone = np.arange(m)
    return CurationPool(
        "toy", table, about, draws_of(hits, trials), None if blind is None else draws_of(blind, trials), None,
        np.asarray(inspectors, int), everyone if panel is None else np.asarray(panel),
        everyone if evaluated is None else np.asarray(evaluated))  # fmt: skip


def rasch(rng: np.random.Generator, n: int, m: int, samples: int = 8, spread: float = 1.0) -> np.ndarray:
    """Hits of models of unlike skill on items of unlike difficulty, shape (n, m)."""
    skill, hard = rng.normal(0, spread, m), rng.normal(0, 1, n)
    return rng.binomial(samples, 1 / (1 + np.exp(hard[:, None] - skill)))
