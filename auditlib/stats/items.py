"""Classical item statistics of a hit matrix: difficulty, item-rest correlation, inversions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

NAN = float("nan")
#: items handled at once, so that a million items stay in memory
CHUNK = 65_536


def difficulty(hits: ArrayLike, trials: ArrayLike | None = None) -> NDArray[np.float64]:
    """Share of correct answers of each item (1 = everybody right).

    Parameters
    ----------
    hits : int array, shape (items, models)
    trials : int array of the same shape, optional
        Answers given; 1 each by default, 0 = missing.

    Returns
    -------
    float array, shape (items,)
        NaN where an item has no trial.
    """
    h, t = _pair(hits, trials)
    total = t.sum(1, dtype=np.int64) if t is not None else np.full(len(h), h.shape[1], np.int64)
    right = h.sum(1, dtype=np.int64)
    return np.divide(right, total, out=np.full(len(h), NAN), where=total > 0)


def item_rest_correlation(hits: ArrayLike, trials: ArrayLike | None = None) -> NDArray[np.float64]:
    """Corrected item-rest correlation of each item over models.

    Parameters
    ----------
    hits, trials
        As in :func:`difficulty`.

    Returns
    -------
    float array, shape (items,)
        Pearson correlation of the models' share on the item with their share on all *other* items; NaN with fewer
        than three models, or where the item or the rest does not vary.

    Notes
    -----
    Models that lack the item are left out of its correlation.  With complete data and one draw the rest share is
    ``(S_m - x_im) / (n - 1)``, so this is the usual corrected item-total correlation.
    """
    h, t = _pair(hits, trials)
    score = h.sum(0, dtype=np.int64)
    given = t.sum(0, dtype=np.int64) if t is not None else np.full(h.shape[1], len(h), np.int64)
    out = np.full(len(h), NAN)
    for at in range(0, len(h), CHUNK):
        x = h[at : at + CHUNK].astype(np.int64)
        n = t[at : at + CHUNK].astype(np.int64) if t is not None else np.ones_like(x)
        rest_n = given - n
        usable = (n > 0) & (rest_n > 0)
        share = np.divide(x, n, out=np.zeros(x.shape), where=usable)
        rest = np.divide(score - x, rest_n, out=np.zeros(x.shape), where=usable)
        out[at : at + CHUNK] = _row_correlation(share, rest, usable)
    return out


def inversions(hits: ArrayLike, trials: ArrayLike | None = None) -> NDArray[np.float64]:
    """Share of comparable model pairs in which the weaker model has the item right and the stronger has it wrong.

    Parameters
    ----------
    hits, trials
        As in :func:`difficulty`; the item's own answer is "right" above half of its draws, "wrong" below half.

    Returns
    -------
    float array, shape (items,)
        NaN where no pair of models differs in strength and in the answer.

    Notes
    -----
    Strength is the share correct over all other items, compared as fractions in integers.  A pair is comparable when
    strengths differ, both models have the item, and one is right and the other wrong.
    """
    h, t = _pair(hits, trials)
    models = h.shape[1]
    score = h.sum(0, dtype=np.int64)
    given = t.sum(0, dtype=np.int64) if t is not None else np.full(models, len(h), np.int64)
    out = np.full(len(h), NAN)
    for at in range(0, len(h), CHUNK):
        x = h[at : at + CHUNK].astype(np.int64)
        n = t[at : at + CHUNK].astype(np.int64) if t is not None else np.ones_like(x)
        right, wrong = (2 * x > n) & (n > 0), (2 * x < n) & (n > 0)
        bad, pairs = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
        for a, b in combinations(range(models), 2):
            gap = (score[a] - x[:, a]) * (given[b] - n[:, b]) - (score[b] - x[:, b]) * (given[a] - n[:, a])
            a_only, b_only = right[:, a] & wrong[:, b], right[:, b] & wrong[:, a]
            pairs += (a_only | b_only) & (gap != 0)
            bad += (a_only & (gap < 0)) | (b_only & (gap > 0))
        out[at : at + CHUNK] = np.divide(bad, pairs, out=np.full(len(x), NAN), where=pairs > 0)
    return out


def _row_correlation(x: NDArray, y: NDArray, mask: NDArray) -> NDArray[np.float64]:
    n = mask.sum(1)
    div = np.maximum(n, 1)[:, None]
    dx = np.where(mask, x - (x * mask).sum(1, keepdims=True) / div, 0.0)
    dy = np.where(mask, y - (y * mask).sum(1, keepdims=True) / div, 0.0)
    sx, sy = (dx * dx).sum(1), (dy * dy).sum(1)
    # below this the spread is rounding of equal shares
    ok = (n >= 3) & (sx > 1e-18) & (sy > 1e-18)
    r = np.divide((dx * dy).sum(1), np.sqrt(sx * sy), out=np.full(len(x), NAN), where=ok)
    return np.clip(r, -1.0, 1.0)


def _pair(hits: ArrayLike, trials: ArrayLike | None) -> tuple[NDArray, NDArray | None]:
    h = np.asarray(hits)
    t = None if trials is None else np.asarray(trials)
    if h.ndim != 2 or h.dtype.kind not in "iub" or (t is not None and t.shape != h.shape):
        raise ValueError("hits must be an integer matrix, items x models, and trials of the same shape")
    return h, t
