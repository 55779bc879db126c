"""Seeds that depend on what is drawn, not on the order in which things run."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, *names: str) -> np.random.Generator:
    """A generator from a run seed and a stable hash of names (the pool, the purpose).

    Adding a pool or a statistic leaves every other one's numbers unchanged.
    """
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 16, 4)]
    return np.random.default_rng([seed, *words])
