"""Is a key shifted by a row, relabelled, or too often the first option? Votes of a pool against other readings of it.

None of these says that a key is wrong: another reading of the key that fits the pool's votes better than the key itself
is a reason to look at the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

NAN = float("nan")
#: array elements held at once while orders are drawn
BATCH = 2_000_000


@dataclass(frozen=True)
class LagScan:
    """Agreement of votes with the key of a neighbouring row.

    ``gain`` is the mean vote share of the best shifted key minus that of the key itself, over the ``stop - start`` rows
    of the stretch where the shift fits best; ``p`` that of the scan over all stretches and lags.
    """

    n: int
    lag: int
    start: int
    stop: int
    gain: float
    statistic: float
    p: float
    p_method: str

    def as_row(self) -> dict[str, Any]:
        return {"n": self.n, "estimate": self.gain, "p": self.p, "p_method": self.p_method}


@dataclass(frozen=True)
class Relabelling:
    """The relabelling of the key's letters that fits the votes best: ``to[l]`` is what letter l would become.

    ``gain`` is the cross-fitted gain in mean vote share: each half of the items is judged by the relabelling that the
    other half chose.
    """

    n: int
    to: tuple[int, ...]
    gain: float
    se: float
    p: float

    def as_row(self) -> dict[str, Any]:
        return {"n": self.n, "estimate": self.gain, "p": self.p, "p_method": "normal"}


@dataclass(frozen=True)
class FirstOption:
    """Keys that are the first option, against keys placed uniformly over the options shown.

    ``p`` is the exact upper tail, ``p_equal`` the probability of the observed count.
    """

    n: int
    observed: int
    expected: float
    p: float
    p_equal: float

    def as_row(self) -> dict[str, Any]:
        n = self.n or NAN
        return {"n": self.n, "estimate": self.observed / n, "null": self.expected / n,
                "excess": (self.observed - self.expected) / n, "p": self.p, "p_method": "exact"}  # fmt: skip


def lag_scan(
    counts: ArrayLike, key: ArrayLike, *, lags: ArrayLike = (-2, -1, 1, 2), rng: np.random.Generator, draws: int = 999
) -> LagScan:
    """Look for a stretch of rows whose votes fit the key of a neighbouring row better than their own.

    Parameters
    ----------
    counts : int array, shape (items, letters)
        Votes per option, in the order of the file.
    key : int array, shape (items,)
        Key codes; negative = none, and such a row is skipped in the order.
    lags : ints
        Row i is judged by the key of row ``i + lag``.
    rng, draws
        For the Monte-Carlo p.

    Notes
    -----
    Per row the vote share of the shifted key minus that of its own; statistic: the largest sum over a stretch of rows
    (maximum segment), over all lags. Null: a neighbour's key knows nothing of this row's votes. Neighbours' keys are
    dealt anew over all rows while votes and own keys stay where they are, so that a stretch of hard items is hard in
    every draw, too; ``p = (g + 1) / (draws + 1)``.
    """
    share, gold = _shares(counts, key)
    n, lags = len(gold), np.atleast_1d(np.asarray(lags, int))
    if n < 3 * int(np.abs(lags).max(initial=1)):
        return LagScan(n, 0, 0, 0, NAN, NAN, NAN, "")
    own = share[np.arange(n), gold]

    found = (0.0, 0, 0, 0)
    for lag in lags.tolist():
        value, start, stop = _segment(_moved(share, gold[None], own, lag)[0])
        if value > found[0] + 1e-12:
            found = (value, lag, start + max(0, -lag), stop + max(0, -lag))
    seen, lag, start, stop = found
    at_least, step = 0, max(1, BATCH // n)
    for first in range(0, draws, step):
        dealt = rng.permuted(np.tile(gold, (min(step, draws - first), 1)), axis=1)
        top = np.zeros(len(dealt))
        for each in lags.tolist():
            total = np.cumsum(_moved(share, dealt, own, each), axis=1)
            # a stretch may begin with the first row
            low = np.minimum(np.minimum.accumulate(total, axis=1)[:, :-1], 0.0)
            top = np.maximum(top, np.maximum((total[:, 1:] - low).max(1), total[:, 0]))
        at_least += int((top >= seen - 1e-9).sum())
    gain = seen / (stop - start) if stop > start else 0.0
    return LagScan(n, lag, start, stop, gain, seen, (at_least + 1) / (draws + 1), "shuffle")


def _moved(share: NDArray, keys: NDArray, own: NDArray, lag: int) -> NDArray[np.float64]:
    """What each row with a neighbour gains from its neighbour's key, shape (orders of keys, rows)."""
    at = np.arange(max(0, -lag), keys.shape[1] - max(0, lag))
    return share[at, keys[:, at + lag]] - own[at]


def relabelling(counts: ArrayLike, key: ArrayLike, letters: int | None = None) -> Relabelling:
    """The relabelling of key letters that fits the votes best, and its gain over the key as it stands, cross-fitted.

    Parameters
    ----------
    counts, key
        As in :func:`lag_scan`.
    letters : options shown by every item; the columns of ``counts`` by default.

    Notes
    -----
    Maximum-weight assignment of key letters to voted letters (Kuhn 1955). Items of odd and of even place choose for
    each other, so that the gain is no product of the choice; one-sided normal p of its mean, halves taken together.
    A key that the votes know keeps its labels: gain 0, p 1.
    """
    share, gold = _shares(counts, key)
    side = share.shape[1] if letters is None else letters
    share = np.pad(share, ((0, 0), (0, max(0, side - share.shape[1]))))[:, :side]
    inside = gold < side
    share, gold = share[inside], gold[inside]
    n = len(gold)
    if n < 4:
        return Relabelling(n, tuple(range(side)), NAN, NAN, NAN)
    own, moved = share[np.arange(n), gold], np.zeros(n)
    half = np.arange(n) % 2
    for h in (0, 1):
        here = half == h
        moved[here] = share[here, _assign(share[~here], gold[~here], side)[gold[here]]]
    to = _assign(share, gold, side)
    gain = moved - own
    p = _upper(gain) if side == 2 else max(_upper(gain), _upper(moved - (1 - own) / (side - 1)))
    p = 1.0 if (to == np.arange(side)).all() else p
    mean, se = float(gain.mean()), float(gain.std(ddof=1) / math.sqrt(n))
    return Relabelling(n, tuple(to.tolist()), mean, se, p)


def first_option(key: ArrayLike, options: ArrayLike) -> FirstOption:
    """Exact test whether the key is the first option more often than uniform places would have it.

    Parameters
    ----------
    key : int array, shape (items,)
        Key codes; items without a key, or with one outside their options, are left out.
    options : int or int array
        Options shown by each item.

    Notes
    -----
    The count is a sum of binomials, one for each number of options; their laws are convolved.

    Examples
    --------
    >>> r = first_option([0, 0, 0, 1], 4)
    >>> r.observed, round(r.p, 4)
    (3, 0.0508)
    """
    from scipy.stats import binom

    y = np.asarray(key, np.int64)
    k = np.broadcast_to(np.asarray(options, np.int64), y.shape)
    used = (y >= 0) & (y < k)
    y, k = y[used], k[used]
    if not len(y):
        return FirstOption(0, 0, NAN, NAN, NAN)
    law = np.ones(1)
    for size, items in zip(*(x.tolist() for x in np.unique(k, return_counts=True))):
        law = np.convolve(law, binom.pmf(np.arange(items + 1), items, 1 / size))
    seen = int((y == 0).sum())
    return FirstOption(len(y), seen, float((1 / k).sum()), float(min(1.0, law[seen:].sum())), float(law[seen]))


def _shares(counts: ArrayLike, key: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Vote shares of the items with a key and a vote, and their keys."""
    c, gold = np.asarray(counts, float), np.asarray(key, np.int64)
    if c.ndim != 2 or len(c) != len(gold):
        raise ValueError("counts must be votes, items x letters, with one key for each item")
    used = (gold >= 0) & (c.sum(1) > 0)
    c, gold = c[used], gold[used]
    width = max(c.shape[1], int(gold.max(initial=-1)) + 1)
    return np.pad(c / c.sum(1, keepdims=True), ((0, 0), (0, width - c.shape[1]))), gold


def _segment(x: NDArray[np.float64]) -> tuple[float, int, int]:
    """Largest sum over a stretch, with its ends; (0, 0, 0) where every sum is negative."""
    total = np.concatenate([[0.0], np.cumsum(x)])
    lowest = np.minimum.accumulate(total)
    rise = total - lowest
    stop = int(rise.argmax())
    if rise[stop] <= 0:
        return 0.0, 0, 0
    return float(rise[stop]), int(np.flatnonzero(total[: stop + 1] == lowest[stop])[-1]), stop


def _upper(x: NDArray[np.float64]) -> float:
    """One-sided normal p of a mean above 0."""
    mean, se = float(x.mean()), float(x.std(ddof=1)) / math.sqrt(len(x))
    if se <= 1e-12:
        return 1.0 if mean <= 1e-12 else 0.0
    return 0.5 * math.erfc(mean / se / math.sqrt(2))


def _assign(share: NDArray, gold: NDArray, side: int) -> NDArray[np.int64]:
    from scipy.optimize import linear_sum_assignment

    votes = np.zeros((side, side))
    np.add.at(votes, gold, share)
    # equal fits leave the labels as they are
    return linear_sum_assignment(votes + 1e-9 * np.eye(side), maximize=True)[1]
