"""Bounds on the precision of a label-conflict list without any review, under shared errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog, minimize
from scipy.special import betaln, gammaln
from scipy.stats import chi2, norm

#: an upper bound from here on says nothing
UNINFORMATIVE = 0.95
#: points of the grid of popularities in the linear program
GRID = 201
#: the urn is refused where the fit to its own cells has a smaller p, overshoots their upper end, or has b = 1
FIT_LEVEL = 0.01
#: share of items that no model is ever taken to miss
IMMUNE = 0.25
#: pairs in a cell under which no tail is extrapolated
FEWEST = 5


@dataclass(frozen=True)
class VoteCells:
    """How many (item, wrong option) pairs have 0, 1, ..., n votes.

    Attributes
    ----------
    alternatives : pairs by number of votes, shape (models + 1,)
    key : share of items by votes for the key, shape (models + 1,)
    leading : items by votes for their leading alternative, shape (models + 1,)
    live : alternatives with the pairs taken off the cell 0 that nobody would ever choose: all but one wrong option of
        each item, and that one too in :data:`IMMUNE` of the items (and no more than the cell holds)
    """

    alternatives: NDArray[np.intp]
    key: NDArray[np.float64]
    leading: NDArray[np.intp]

    @property
    def live(self) -> NDArray[np.intp]:
        out, items = self.alternatives.copy(), int(self.leading.sum())
        dead = max(int(out.sum()) - items, 0) + int(IMMUNE * items)
        out[0] = max(int(out[0]) - dead, 0)
        return out

    @property
    def models(self) -> int:
        return len(self.alternatives) - 1

    @property
    def cut(self) -> int:
        """Most votes that a cell may have to count as "the key is supported": two thirds of the models, at least 2."""
        return max(2, 2 * self.models // 3)


@dataclass(frozen=True)
class PrecisionBound:
    """Bound on the share of wrong keys among the first ``r``.

    Attributes
    ----------
    lower : 0 without reviews, since errors that all models share cannot be told from wrong keys by votes.
    upper : under the assumption that ``method`` names, ``urn`` or ``moments``; NaN where nothing is known.
    outer : under that of ``moments`` alone, whatever the law of shared errors.
    method : ``urn``, ``moments`` or ``none: reason``.
    """

    r: int
    lower: float
    upper: float
    outer: float
    level: float
    method: str

    def __str__(self) -> str:
        """The upper bound in words; an uninformative one is "none"."""
        return "none" if self.method.startswith("none") else f"at most {self.upper:.2f}"


@dataclass(frozen=True)
class Urn:
    """Beta-binomial law of votes for a wrong option: ``a``, ``b``, expected pairs by votes, and the fit's p."""

    a: float
    b: float
    expected: NDArray[np.float64]
    covariance: NDArray[np.float64]
    p: float
    edge: bool
    over: bool

    @property
    def fits(self) -> bool:
        return not (self.edge or self.over) and self.p >= FIT_LEVEL


def vote_cells(letters: ArrayLike, key: ArrayLike, options: ArrayLike | None = None) -> VoteCells:
    """Count votes for every option that is not the key.

    Parameters
    ----------
    letters : int codes, shape (items, models), below 0 = no vote
    key : int codes, shape (items,), below 0 = left out
    options : int, shape (items,), optional
        Options shown for each item; without it all items have as many as the largest code.
    """
    said, right = np.asarray(letters), np.asarray(key)
    keyed = right >= 0
    said, right = said[keyed], right[keyed]
    n = said.shape[1]
    most = int(max(said.max(initial=-1), right.max(initial=-1))) + 1
    shown = np.full(len(right), most) if options is None else np.asarray(options)[keyed]
    pairs, for_key = np.zeros(n + 1, np.intp), np.zeros(n + 1, np.intp)
    lead = np.zeros(len(right), np.intp)
    for o in range(most):
        votes, mine = (said == o).sum(axis=1), right == o
        other = ~mine & (o < shown)
        pairs += np.bincount(votes[other], minlength=n + 1)
        for_key += np.bincount(votes[mine], minlength=n + 1)
        lead = np.where(mine, lead, np.maximum(lead, votes))
    return VoteCells(pairs, for_key / max(len(right), 1), np.bincount(lead, minlength=n + 1))


def _log_pmf(n: int, a: float, b: float) -> NDArray[np.float64]:
    j = np.arange(n + 1)
    return gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1) + betaln(a + j, b + n - j) - betaln(a, b)


def fit_urn(cells: VoteCells) -> Urn:
    """Fit the beta-binomial to the cells in which the key is supported.

    Notes
    -----
    The likelihood is that of the cells 0..cut given that a pair falls into one of them, so that cells which wrong
    keys fill play no part.  Of each item's wrong options at most one is taken to be live: dead ones, if counted as
    draws from the law, would make its tail heavier than it is.  b >= 1: the density of popularities does not rise
    towards 1, i.e. errors that every model makes are no more common than errors that most make.  The covariance of
    (log a, log(b - 1)) is the inverse of the numerical Hessian; on the edge b = 1 that of log a alone.
    """
    n, cut = cells.models, cells.cut
    seen = cells.live[: cut + 1]

    def loss(t: NDArray) -> float:
        lp = _log_pmf(n, float(np.exp(t[0])), 1 + float(np.exp(t[1])))[: cut + 1]
        return -float(seen @ (lp - np.logaddexp.reduce(lp)))

    starts = [(-2.0, 0.0), (-3.0, -3.0), (0.0, 1.0)]
    box = [(-12.0, 6.0), (-9.0, 6.0)]
    best = min((minimize(loss, x, method="L-BFGS-B", bounds=box) for x in starts), key=lambda f: f.fun)
    t = best.x
    edge = t[1] < -6
    a, b = float(np.exp(t[0])), 1 + float(np.exp(t[1]))
    pmf = np.exp(_log_pmf(n, a, b))
    expected = seen.sum() * pmf / pmf[: cut + 1].sum()
    fitted = expected[: cut + 1]
    deviance = 2 * float(np.sum(np.where(seen > 0, seen * np.log(np.maximum(seen, 1) / fitted), 0)))
    p = float(chi2.sf(deviance, max(cut - 2 + edge, 1)))
    # the highest third of the fitted cells: does the law overshoot there, so that its tail would too?
    top = slice(cut + 1 - max(1, (cut + 1) // 3), cut + 1)
    over = fitted[top].sum() - seen[top].sum() > 2.5 * np.sqrt(fitted[top].sum())
    # and does it promise more unanimous errors than there are?
    tail, held = expected[cut + 1 :].sum(), cells.alternatives[cut + 1 :].sum()
    over = over or tail - held > 2 * np.sqrt(tail)
    return Urn(a, b, expected, _covariance(loss, t, edge), p, bool(edge), bool(over))


def _covariance(loss: object, t: NDArray, edge: bool, step: float = 1e-3) -> NDArray[np.float64]:
    kept = [0] if edge else [0, 1]
    f = lambda *moves: loss(t + sum((np.eye(2)[i] * s for i, s in moves), np.zeros(2)))  # noqa: E731
    h = np.zeros((len(kept), len(kept)))
    for x, i in enumerate(kept):
        for y, j in enumerate(kept):
            h[x, y] = sum(s * u * f((i, s * step), (j, u * step)) for s in (1, -1) for u in (1, -1)) / (4 * step**2)
    out = np.zeros((2, 2))
    values, vectors = np.linalg.eigh((h + h.T) / 2)
    values = np.maximum(values, 1e-3)
    out[np.ix_(kept, kept)] = (vectors / values) @ vectors.T
    return out


def shared_errors_urn(
    cells: VoteCells, urn: Urn, *, rng: np.random.Generator, draws: int = 2000
) -> NDArray[np.float64]:
    """Draws of how many pairs with a right key have each number of votes, shape (draws, models + 1).

    Parameters are drawn from their normal limit, then the realised number from a Poisson law.
    """
    n, cut = cells.models, cells.cut
    centre = np.array([np.log(urn.a), np.log(urn.b - 1)])
    values, vectors = np.linalg.eigh(urn.covariance)
    t = centre + rng.standard_normal((draws, 2)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
    t = np.clip(t, [-12, -9], [6, 6])
    a, b, j = np.exp(t[:, :1]), 1 + np.exp(t[:, 1:]), np.arange(n + 1)
    lp = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1) + betaln(a + j, b + n - j) - betaln(a, b)
    lp -= np.logaddexp.reduce(lp[:, : cut + 1], axis=1, keepdims=True)
    return rng.poisson(cells.live[: cut + 1].sum() * np.exp(lp)).astype(float)


def shared_errors_moments(cells: VoteCells, first: int, *, level: float = 0.90) -> float:
    """Fewest pairs with a right key and ``first`` votes or more that any law of popularities allows; NaN if none fits.

    Notes
    -----
    Given the item, models are taken as exchangeable draws that name the option with probability p; p may have any law
    (this is the truncated moment problem; for three models the bound is ``f2^2 / f1`` on the cells per voting order).
    Wrong keys enter as a second part with the law of the key's own votes.  Cells up to the cut have to be met within
    normal margins, cells above may not be exceeded.
    """
    n, cut = cells.models, cells.cut
    p, j = np.linspace(0, 1, GRID), np.arange(n + 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        binomial = np.exp(gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)) * p**j * (1 - p) ** (n - j)
    law = np.c_[binomial, cells.key]
    z = float(norm.ppf(level))
    seen = cells.alternatives.astype(float)
    slack = z * np.sqrt(seen + 1)
    low = slice(0, cut + 1)
    done = linprog(
        np.r_[binomial[first:].sum(axis=0), 0.0],
        A_ub=np.r_[law, -law[low]],
        b_ub=np.r_[seen + slack, -(seen - slack)[low]],
        bounds=(0, None),
        method="highs",
    )
    if done.status:
        return float("nan")
    return max(float(done.fun) - z * np.sqrt(max(float(done.fun), 0.0)), 0.0)


def precision_bounds(
    letters: ArrayLike,
    key: ArrayLike,
    order: ArrayLike,
    *,
    rng: np.random.Generator,
    at: Sequence[int] = (25, 50, 100),
    options: ArrayLike | None = None,
    level: float = 0.90,
) -> list[PrecisionBound]:
    """Upper bounds on the share of wrong keys among the first r items of a list.

    Parameters
    ----------
    letters, key, options : as in :func:`vote_cells`
    order : item numbers, most suspect first, of :func:`auditlib.stats.label_conflict.label_conflict`
    level : one-sided

    Notes
    -----
    Votes against the key come from wrong keys and from errors that models share.  How often models share an error is
    seen where the key is supported: of the options with j votes there, how many have j + 1.  Continued beyond that
    range, this says how many unanimous errors the pool makes by itself; the rest is the most that wrong keys can be.

    ``urn`` continues it as a Polya urn (beta law of an option's popularity, :func:`fit_urn`): the chance of joining a
    wrong option grows with those already there.  It assumes that errors which all models make are at least as common
    as the law fitted to the rarer ones says, and that inside a level of equal votes the order tells nothing about
    wrong keys (a tie break that does tell something uses up part of the margin).  From 5 models on the law can be
    tested on its own cells, and is refused where it fails.  With 3 or 4 it cannot: where no option misleads more than
    six in ten models, 75% of the 90% bounds held in simulated pools.  ``moments`` assumes no law, only models
    exchangeable given the item; it is used where the urn is refused, and given as ``outer`` everywhere.  Nothing is
    said (``none``) with fewer than 3 models and where the bound is not below 0.95; items with votes in the fitted
    range count as wrong keys.

    Independent errors, the assumption that makes the posteriors of latent-class models far too large, are assumed
    nowhere: errors shared more than the urn says, families among them, make these bounds too high, never too low.
    On MMLU-Redux (40 pools of 3 and of 5 models, one of 14) the bound at r = 50 was on average 2.6, 2.6 and 2.1 times
    the realised precision and below it in no pool; with 14 models it says nothing.
    """
    said, right, ranked = np.asarray(letters), np.asarray(key), np.asarray(order)
    if said.shape[1] < 3:
        return [PrecisionBound(r, 0.0, np.nan, np.nan, level, "none: fewer than 3 models") for r in at]
    cells = vote_cells(said, right, options)
    urn = fit_urn(cells) if _enough(cells) else None
    outer = _moment_shares(cells, level)
    method, share = ("urn", _urn_shares(cells, urn, rng)) if urn is not None and urn.fits else ("moments", outer)
    lead = _leading(said, right)
    out = []
    for r in at:
        if len(ranked) < r:
            why = f"none: only {len(ranked)} items are ranked"
            out.append(PrecisionBound(r, 0.0, np.nan, np.nan, level, why))
            continue
        levels = np.bincount(lead[ranked[:r]], minlength=share.shape[1])
        upper, loose = (float(np.ceil(r - np.quantile(s @ levels, 1 - level))) / r for s in (share, outer))
        said_so = method if upper < UNINFORMATIVE else f"none: {method} bound {upper:.2f}"
        out.append(PrecisionBound(r, 0.0, upper, max(upper, loose), level, said_so))
    return out


def _enough(cells: VoteCells) -> bool:
    """Whether each number of votes from 1 to the cut occurs: an empty cell would leave the law open."""
    return bool((cells.alternatives[1 : cells.cut + 1] >= FEWEST).all())


def _urn_shares(cells: VoteCells, urn: Urn, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draws of the share of right keys among items by votes of the leading alternative; 0 up to the cut."""
    drawn = shared_errors_urn(cells, urn, rng=rng)
    out = np.minimum(drawn / np.maximum(cells.alternatives, 1), 1.0)
    out[:, : cells.cut + 1] = 0
    return out


def _moment_shares(cells: VoteCells, level: float) -> NDArray[np.float64]:
    tails = [shared_errors_moments(cells, j, level=level) for j in range(cells.cut + 1, cells.models + 1)]
    out = np.zeros((1, cells.models + 1))
    if tails and not np.isnan(tails).any():
        # what is sure of the tail from j on, less what is sure beyond: a share for each level that adds up
        each = np.maximum(np.array(tails) - np.r_[tails[1:], 0.0], 0.0)
        out[0, cells.cut + 1 :] = np.minimum(each / np.maximum(cells.alternatives[cells.cut + 1 :], 1), 1.0)
    return out


def _leading(said: NDArray, right: NDArray) -> NDArray[np.intp]:
    lead = np.zeros(len(right), np.intp)
    for o in range(int(max(said.max(initial=-1), right.max(initial=-1))) + 1):
        lead = np.where(right == o, lead, np.maximum(lead, (said == o).sum(axis=1)))
    return lead
