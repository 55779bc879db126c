"""Ranks of models with simultaneous bands from paired differences, and groups of models that cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Method = Literal["bootstrap", "bonferroni"]
#: beyond so many pairs the bootstrap gives way to Bonferroni
MOST_PAIRS = 5_000


@dataclass(frozen=True)
class RankBands:
    """Scores, ranks (1 = best, ties share their mean rank) and bands that hold for all models at once.

    ``beats[a, b]`` says that a is better than b with simultaneous error control. ``low`` and ``high`` are the best and
    the worst rank that a model may have. ``group`` numbers groups from the top: a new one starts where a model is
    beaten by the best model of the group above.
    """

    score: NDArray[np.float64]
    se: NDArray[np.float64]
    rank: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    group: NDArray[np.int64]
    beats: NDArray[np.bool_]
    level: float
    items: int
    units: int
    method: str


def rank_bands(
    value: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    draws: int = 2000,
    rng: np.random.Generator | None = None,
    method: Method = "bootstrap",
) -> RankBands:
    """Rank models by their weighted mean over items.

    Parameters
    ----------
    value : shape (items, models)
        Score of each model on each item; no missing values.
    weight : shape (items,), optional
        What each item counts; 0 leaves it out.
    cluster : shape (items,), optional
        Items that share an image or a base item are drawn together.
    level : float
        Simultaneous coverage of all ranks.
    draws : int
        Multiplier draws of the largest studentised difference.
    rng : numpy Generator
        Needed for ``bootstrap``.
    method : "bootstrap" or "bonferroni"
        More than 5,000 pairs always take the latter.

    Raises
    ------
    ValueError
        Shapes disagree, missing values, weights that are negative or sum to 0, ``bootstrap`` without ``rng``.

    Notes
    -----
    Mogstad, Romano, Shaikh and Wilhelm (2024): a simultaneous set for all pairwise differences gives each model the
    ranks from 1 + the number of models that beat it to m - the number that it beats. Differences are paired over items,
    so that items hard for all cost nothing. Stepwise (Romano and Wolf 2005): the critical value is taken anew over the
    pairs not yet told apart, by Gaussian multipliers of the items' (clusters') influence, or Holm-Bonferroni. A pair
    that answers alike on every item is never told apart.

    Examples
    --------
    >>> x = np.zeros((200, 3)); x[:120, 0] = 1; x[:110, 1] = 1; x[:20, 2] = 1
    >>> r = rank_bands(x, method="bonferroni")
    >>> r.low.tolist(), r.high.tolist(), r.group.tolist()
    ([1, 2, 3], [1, 2, 3], [1, 2, 3])
    """
    x = np.asarray(value, float)
    if x.ndim != 2 or not x.size:
        raise ValueError("scores of shape (items, models) are needed")
    n, m = x.shape
    w = np.ones(n) if weight is None else np.asarray(weight, float)
    if w.shape != (n,) or not (w >= 0).all() or w.sum() <= 0:
        raise ValueError("one weight per item is needed, none negative, not all 0")
    if np.isnan(x[w > 0]).any():
        raise ValueError("scores must not be missing: give the items that all models have")
    if m * (m - 1) // 2 > MOST_PAIRS:
        method = "bonferroni"
    if method == "bootstrap" and rng is None:
        raise ValueError("the bootstrap needs an rng")
    x = np.where((w > 0)[:, None], x, 0.0)
    score = w @ x / w.sum()
    influence = w[:, None] * (x - score) / w.sum()
    influence = influence[w > 0]
    if cluster is not None:
        codes = np.unique(np.asarray(cluster)[w > 0], return_inverse=True)[1].ravel()
        influence = np.stack([np.bincount(codes, influence[:, j]) for j in range(m)], axis=1)
    units = len(influence)
    scale = units / max(units - 1, 1)
    a, b = np.triu_indices(m, 1)
    covariance = scale * influence.T @ influence
    variance = np.diag(covariance)
    se = np.sqrt(np.maximum(variance[a] + variance[b] - 2 * covariance[a, b], 0))
    gap = score[a] - score[b]
    known = se > 1e-12
    t = np.divide(gap, se, out=np.zeros(len(gap)), where=known)
    apart = _apart(t, known, influence * np.sqrt(scale), a, b, se, level, draws, rng, method)
    beats = np.zeros((m, m), bool)
    beats[a[apart & (t > 0)], b[apart & (t > 0)]] = True
    beats[b[apart & (t < 0)], a[apart & (t < 0)]] = True
    low, high = 1 + beats.sum(axis=0), m - beats.sum(axis=1)
    above = (score[None] > score[:, None] + 1e-12).sum(axis=1)
    same = (np.abs(score[None] - score[:, None]) <= 1e-12).sum(axis=1)
    return RankBands(score, np.sqrt(variance), above + (same + 1) / 2, low, high, _groups(score, beats), beats, level,
                     int((w > 0).sum()), units, method)  # fmt: skip


def _apart(
    t: NDArray, known: NDArray, influence: NDArray, a: NDArray, b: NDArray, se: NDArray, level: float, draws: int,
    rng: np.random.Generator | None, method: Method,
) -> NDArray[np.bool_]:  # fmt: skip
    """Pairs told apart, stepping down until no further one is."""
    apart, size = np.zeros(len(t), bool), np.abs(t)
    noise = None
    if method == "bootstrap" and known.any():
        noise = np.abs(_multiplied(influence, a[known], b[known], se[known], draws, rng))
    while True:
        left = known & ~apart
        if not left.any():
            return apart
        if noise is None:
            bar = float(-ndtri((1 - level) / (2 * int(left.sum()))))
        else:
            bar = float(np.quantile(noise[:, left[known]].max(axis=1), level, method="higher"))
        new = left & (size > bar)
        if not new.any():
            return apart
        apart |= new


def _multiplied(
    influence: NDArray, a: NDArray, b: NDArray, se: NDArray, draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Studentised differences under no difference, shape (draws, pairs)."""
    covariance = influence.T @ influence
    value, vector = np.linalg.eigh(covariance)
    # Gaussian multipliers of fixed influences are normal with just this covariance
    z = rng.standard_normal((draws, len(value))) @ (vector * np.sqrt(np.clip(value, 0, None))).T
    return (z[:, a] - z[:, b]) / se


def _groups(score: NDArray, beats: NDArray) -> NDArray[np.int64]:
    """Groups from the top; each is led by the first model that the leader above beats."""
    order = np.argsort(-score, kind="stable")
    group, leader, number = np.zeros(len(score), np.int64), order[0], 1
    for j in order:
        if beats[leader, j]:
            leader, number = j, number + 1
        group[j] = number
    return group
