"""Local false-discovery rate of a ranked list, and defects among the first r, from a reviewed probability sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from auditlib.stats.intervals import Interval, no_interval

#: weight of the smooth curve in each stratum, in reviewed items
PRIOR_ITEMS = 1.0
#: least prior weight on a defect: a stratum in which none was found may still hold some (neutral prior, Kerman 2011)
LEAST = 1 / 3
#: penalty on the slope and, far weaker, the level of the logistic curve
RIDGE = (0.05, 0.5)
#: ranks at which the curve is computed
GRID = 200


@dataclass(frozen=True)
class FirstR:
    """Defects among the first ``r`` items: reviewed, found there, expected in all, precision with its interval."""

    r: int
    reviewed: int
    found: int
    expected: float
    precision: float
    interval: Interval


@dataclass(frozen=True)
class LocalFdr:
    """Share of sound items at a rank (1 - probability of a defect).

    Attributes
    ----------
    rank : 0-based ranks of the curve, shape (points,)
    value, low, high : local false-discovery rate there; posterior mean and equal-tailed interval at ``level``
    first : one :class:`FirstR` for each r asked for
    note : "" or why there is nothing
    """

    rank: NDArray[np.intp]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    first: tuple[FirstR, ...]
    level: float
    note: str = ""

    def at(self, rank: ArrayLike) -> NDArray[np.float64]:
        """Local false-discovery rate at any 0-based ranks, between the points of the curve by straight lines."""
        return np.interp(np.asarray(rank, float), self.rank, self.value)


def local_fdr(
    rank: ArrayLike,
    defect: ArrayLike,
    edges: ArrayLike,
    *,
    rng: np.random.Generator,
    at: Sequence[int] = (25, 50, 100),
    level: float = 0.90,
    draws: int = 4000,
) -> LocalFdr:
    """Calibrate a ranking from reviewed items drawn at random inside strata of ranks.

    Parameters
    ----------
    rank : int, shape (reviewed,)
        0-based places of the reviewed items in the list.
    defect : shape (reviewed,)
        1 = people confirmed a defect, 0 = sound, NaN = undecided (left out as if not drawn: that such items are like
        the others of their stratum is an assumption).
    edges : shape (strata + 1,)
        Where strata begin, and the length of the list; of
        :func:`auditlib.calibration.review_sample.review_sample`.

    Raises
    ------
    ValueError
        A rank outside the list or twice.

    Notes
    -----
    The list is a finite population: reviewed items are known, only the others are drawn.  Each stratum's defect rate
    has the posterior ``Beta(k + c m, n - k + c (1 - m))``, where m is a logistic curve in the logarithm of the rank
    fitted to all reviewed items and c = 1 item (c m at least 1/3), so that data of the stratum itself decide and an
    empty stratum leans on its neighbours.  Each draw is made non-increasing along the ranks (weighted isotonic
    regression); unreviewed items are then binomial.  Ends of an interval are quantiles of the discrete number
    of defects.

    With 100 of 2,794 human-checked items (MMLU-Redux; 3, 5 and 14 models; wrong key and any key defect) the nominal
    90% intervals at r = 25, 50 and 100 covered the realised precision in 88 to 96% of 200 draws each.  Far down the
    list few items are reviewed: the curve is wide there, and the number of defects in the whole list is a matter for
    a design-based estimate, :mod:`auditlib.review.prevalence`.
    """
    place, said, ends = np.asarray(rank, np.intp), np.asarray(defect, float), np.asarray(edges, np.intp)
    total = int(ends[-1])
    if len(place) and (place.min() < 0 or place.max() >= total):
        raise ValueError(f"ranks outside 0..{total - 1}")
    if len(np.unique(place)) < len(place):
        raise ValueError("a rank is given twice")
    decided = np.isfinite(said)
    place, said = place[decided], said[decided]
    strata, sizes = np.searchsorted(ends, place, side="right") - 1, np.diff(ends)
    grid = _grid(total)
    if not len(place):
        why = "no reviewed item"
        none = [FirstR(r, 0, 0, np.nan, np.nan, no_interval(why, level)) for r in at]
        blank = np.full(len(grid), np.nan)
        return LocalFdr(grid, blank, blank, blank, tuple(none), level, why)
    n = np.bincount(strata, minlength=len(sizes))
    k = np.bincount(strata, weights=said, minlength=len(sizes))
    curve = _logistic(np.log(place + 1.0), said)
    middle = (ends[:-1] + ends[1:] + 1) / 2
    prior = expit(curve[0] + curve[1] * np.log(middle))
    theta = rng.beta(k + np.maximum(PRIOR_ITEMS * prior, LEAST), n - k + PRIOR_ITEMS * (1 - prior), (draws, len(sizes)))
    theta = decreasing(theta, n + PRIOR_ITEMS)
    rate = _at_ranks(theta, middle, ends, grid)
    low, high = np.quantile(1 - rate, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    first = tuple(
        _first(r, place, said, ends, middle, theta, rng, level) if r <= total else _too_few(r, total, level) for r in at
    )
    return LocalFdr(grid, 1 - rate.mean(axis=0), low, high, first, level)


def decreasing(values: NDArray, weights: NDArray) -> NDArray[np.float64]:
    """Weighted isotonic regression of each row, non-increasing along the columns.

    The max-min formula ``min_{a <= i} max_{b >= i} mean(a..b)`` of Robertson, Wright and Dykstra (1988), turned round.
    """
    w = np.r_[0.0, np.cumsum(weights)]
    s = np.c_[np.zeros(len(values)), np.cumsum(values * weights, axis=1)]
    m = values.shape[1]
    out = np.empty_like(values, dtype=float)
    for i in range(m):
        spans = [[(s[:, b + 1] - s[:, a]) / (w[b + 1] - w[a]) for b in range(i, m)] for a in range(i + 1)]
        out[:, i] = np.min([np.max(row, axis=0) for row in spans], axis=0)
    return out


def _first(
    r: int,
    place: NDArray,
    said: NDArray,
    ends: NDArray,
    middle: NDArray,
    theta: NDArray,
    rng: np.random.Generator,
    level: float,
) -> FirstR:
    """Known defects among the first r plus binomial draws for those not reviewed, stratum by stratum."""
    found, reviewed = int(said[place < r].sum()), int((place < r).sum())
    total, expected = np.full(len(theta), float(found)), float(found)
    for h, (a, b) in enumerate(pairwise(ends.tolist())):
        stop = min(b, r)
        unseen = stop - a - int(((place >= a) & (place < stop)).sum())
        if unseen <= 0:
            continue
        if stop == b:
            rate = theta[:, h]
        else:
            rate = _at_ranks(theta, middle, ends, np.linspace(a, stop - 1, 9).astype(int)).mean(axis=1)
        total += rng.binomial(unseen, rate)
        expected += unseen * float(rate.mean())
    # whole numbers of defects: the interval holds at least the level of the posterior
    low, high = np.quantile(total, [0.5 - level / 2, 0.5 + level / 2], method="inverted_cdf")
    low, high = max(low, found), min(high, found + r - reviewed)
    return FirstR(
        r, reviewed, found, expected, expected / r, Interval(low / r, high / r, level, "stratified posterior")
    )


def _too_few(r: int, total: int, level: float) -> FirstR:
    return FirstR(r, 0, 0, np.nan, np.nan, no_interval(f"only {total} items are ranked", level))


def _at_ranks(theta: NDArray, middle: NDArray, ends: NDArray, ranks: NDArray) -> NDArray[np.float64]:
    """Draws of the defect rate at ranks: lines in log rank between the strata's middles, shape (draws, ranks)."""
    x, mid = np.log(np.asarray(ranks) + 1.0), np.log(middle)
    if len(mid) == 1:
        return np.repeat(theta, len(x), axis=1)
    right = np.clip(np.searchsorted(mid, x), 1, len(mid) - 1)
    share = np.clip((x - mid[right - 1]) / (mid[right] - mid[right - 1]), 0, 1)
    return theta[:, right - 1] * (1 - share) + theta[:, right] * share


def _grid(total: int) -> NDArray[np.intp]:
    return np.unique(np.r_[0, np.geomspace(1, max(total, 1), GRID).round().astype(np.intp) - 1, total - 1])


def _logistic(x: NDArray, y: NDArray) -> tuple[float, float]:
    """Level and slope (at most 0) of a logistic curve, by Newton steps on a lightly penalised likelihood."""
    centre = x.mean()
    design = np.c_[np.ones(len(x)), x - centre]
    penalty, beta = np.array(RIDGE), np.zeros(2)
    for _ in range(50):
        p = expit(design @ beta)
        gradient = design.T @ (y - p) - penalty * beta
        hessian = (design * (p * (1 - p))[:, None]).T @ design + np.diag(penalty)
        step = np.clip(np.linalg.solve(hessian, gradient), -2, 2)
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    slope = min(float(beta[1]), 0.0)
    return float(beta[0]) - slope * float(centre), slope
