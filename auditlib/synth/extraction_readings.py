"""Readings of an invented judge that reads answers out of replies, and what people read; no model was run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

#: type of reply -> how many of a hundred, and how often the judge misreads it
KINDS = {"letter alone": (40, 0.01), "option in words": (25, 0.05), "long argument": (25, 0.12),
         "no clear answer": (10, 0.3)}  # fmt: skip
LETTERS = "ABCD"


def planted_readings(
    clusters: Sequence[str], *, size: int = 600, lean: float = 0.2, order: float = 0.03, seed: int = 11
) -> pd.DataFrame:
    """A stratified sample of replies with people's readings and the judge's, see :data:`KINDS`.

    Parameters
    ----------
    clusters : ids of the items that the replies are to.
    lean : chance that the judge says the key when the key is shown. order : chance that another order of the options
        makes it say another letter.

    Returns
    -------
    DataFrame
        ``item, model, condition, truth, key, kind, weight, plain, permuted, key_shown, again``. Half of the replies
        are right by people's reading; replies without a clear answer are read as Z.
    """
    rng = np.random.default_rng([seed, 0x52656164])
    kind = rng.choice(list(KINDS), size, p=[n / 100 for n, _ in KINDS.values()])
    miss = np.array([KINDS[k][1] for k in kind])
    key = rng.choice(list(LETTERS), size)
    other = np.array([rng.choice([x for x in LETTERS if x != k]) for k in key])
    truth = np.where(kind == "no clear answer", "Z", np.where(rng.random(size) < 0.5, key, other))

    def read() -> np.ndarray:
        wrong = np.array([rng.choice([x for x in (*LETTERS, "Z") if x != t]) for t in truth])
        return np.where(rng.random(size) < miss, wrong, truth)

    plain = read()
    # a second call mostly repeats itself
    again = np.where(rng.random(size) < 0.95, plain, read())
    moved = np.where(rng.random(size) < 0.95, plain, read())
    permuted = np.where(rng.random(size) < order, rng.choice(list(LETTERS), size), moved)
    shown = np.where(rng.random(size) < lean, key, np.where(rng.random(size) < 0.95, plain, read()))
    return pd.DataFrame({
        "item": [clusters[i % len(clusters)] for i in range(size)], "model": [f"reply {i}" for i in range(size)],
        "condition": "full", "truth": truth, "key": key, "kind": kind, "weight": np.where(kind == "letter alone", 3, 1),
        "plain": plain, "permuted": permuted, "key_shown": shown, "again": again,
    })  # fmt: skip
