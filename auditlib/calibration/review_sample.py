"""A probability sample of a ranked list for people to review: dense at the top, thin below, every rank possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.errors import AuditError

#: ends of the first strata; from the last one on every stratum is twice as deep as the one before
FIRST_EDGES = (25, 50, 100)
#: items of each stratum that are drawn at least, where the budget allows
FEWEST = 2


@dataclass(frozen=True)
class ReviewSample:
    """What is drawn.

    Attributes
    ----------
    items : item numbers to review, in the order of their ranks, shape (drawn,)
    rank : 0-based place of each in the list
    stratum : code of each
    inclusion : chance with which each was drawn (drawn / size of its stratum)
    edges : ranks at which strata begin, and the length of the list, shape (strata + 1,)
    drawn : items drawn from each stratum, shape (strata,)
    """

    items: NDArray[np.intp]
    rank: NDArray[np.intp]
    stratum: NDArray[np.intp]
    inclusion: NDArray[np.float64]
    edges: NDArray[np.intp]
    drawn: NDArray[np.intp]


def rank_edges(items: int, first: Sequence[int] = FIRST_EDGES, deepest: int = 1600) -> NDArray[np.intp]:
    """Ends of the rank strata: ``first``, doubled up to ``deepest``, then the rest in one.

    Examples
    --------
    >>> rank_edges(2794).tolist()
    [0, 25, 50, 100, 200, 400, 800, 1600, 2794]
    """
    ends = [e for e in first if e < items]
    while ends and ends[-1] * 2 <= deepest and ends[-1] * 2 < items and len(ends) >= len(first):
        ends.append(ends[-1] * 2)
    return np.array([0, *ends, items], np.intp)


def allocate(sizes: ArrayLike, budget: int, weights: ArrayLike | None = None) -> NDArray[np.intp]:
    """Share a budget among strata in proportion to ``weights`` (default: all alike), none beyond its size.

    Largest remainders decide what is left over; ties go to the earlier stratum.
    """
    size = np.asarray(sizes, np.intp)
    want = np.ones(len(size)) if weights is None else np.asarray(weights, float)
    out = np.minimum(size, FEWEST if budget >= FEWEST * len(size) else 0)
    budget = min(int(budget), int(size.sum()))
    while (left := budget - int(out.sum())) > 0:
        free = out < size
        share = np.where(free, want, 0.0)
        target = budget * want / want.sum()
        need = np.where(free, np.maximum(target - out, 0), 0)
        share = left * (need / need.sum() if need.sum() > 0 else share / share.sum())
        step = np.minimum(np.floor(share).astype(int), size - out)
        if not step.any():
            step[np.argmax(np.where(free, share, -1))] = 1
        out = out + step
    return out


def review_sample(
    order: ArrayLike,
    budget: int,
    *,
    rng: np.random.Generator,
    edges: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> ReviewSample:
    """Draw ``budget`` items of a ranked list, without replacement and at random inside each stratum of ranks.

    Parameters
    ----------
    order : item numbers, most suspect first
    edges : as :func:`rank_edges` gives them (its default)
    weights : of strata in the allocation; the default reads as many items of each stratum, which spends the same
        effort on the first 25, the next 25, the next 50, and each further doubling

    Raises
    ------
    AuditError
        A budget below 1, an empty list, or edges that do not run from 0 to its length.
    """
    ranked = np.asarray(order, np.intp)
    if budget < 1:
        raise AuditError(f"a review of {budget} items is none", mend="give a budget of at least 1")
    if not len(ranked):
        raise AuditError("the list to draw from is empty", mend="rank some items first")
    ends = rank_edges(len(ranked)) if edges is None else np.asarray(edges, np.intp)
    if len(ends) < 2 or ends[0] != 0 or ends[-1] != len(ranked) or (np.diff(ends) <= 0).any():
        raise AuditError(
            f"strata {ends.tolist()} do not run from 0 to {len(ranked)}", mend="give rising edges from 0 to the length"
        )
    sizes = np.diff(ends)
    drawn = allocate(sizes, budget, weights)
    places = [np.sort(rng.choice(n, k, replace=False)) + a for a, n, k in zip(ends[:-1], sizes, drawn, strict=True)]
    rank = np.concatenate(places).astype(np.intp)
    stratum = np.repeat(np.arange(len(sizes)), drawn)
    return ReviewSample(ranked[rank], rank, stratum, (drawn / sizes)[stratum], ends, drawn)
