"""Intervals of shares and accuracies whose unit is the item, or the cluster of items where clusters are known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.intervals import Interval, no_interval, wilson

#: how an interval that knows of clusters or repeated draws is made, in words
EFFECTIVE = "Wilson with effective n"


def share_interval(inside: ArrayLike, cluster: ArrayLike | None = None, *, level: float = 0.95) -> Interval:
    """Interval of a share of items: Wilson's, with the effective number of items where items come in clusters.

    Parameters
    ----------
    inside : bool array, shape (items,)
    cluster : array, shape (items,), optional
        Cluster of each item (shared image, base item of rotations).

    Examples
    --------
    >>> i, j = share_interval([True, False] * 50), share_interval([True, False] * 50, [i // 4 for i in range(100)])
    >>> i.method, j.method
    ('wilson', 'Wilson with effective n 100 of 100 in 25 clusters')
    """
    return rate_interval(np.asarray(inside, bool), cluster=cluster, level=level)


def rate_interval(
    hits: ArrayLike,
    trials: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    *,
    unit: int = 1,
    level: float = 0.95,
) -> Interval:
    """Interval of ``sum(hits) / sum(trials)`` when items, or clusters of items, are what was sampled.

    Parameters
    ----------
    hits : array, shape (items,)
        What an item gained: 0/1, hits over repeated draws, or parts of a graded verdict.
    trials : array, shape (items,), optional
        What it could have gained, 1 by default; items without a trial are left out.
    cluster : array, shape (items,), optional
    unit : int
        Parts of one draw.

    Notes
    -----
    Plain Wilson for one 0/1 draw of each of independent items. Otherwise, with ``p = H / T`` and the sums h_g, t_g of
    the G items or clusters, ``v = G / (G - 1) sum (h_g - p t_g)^2 / T^2`` (ratio estimator, ultimate clusters), the
    effective number ``n* = p (1 - p) / v`` (at most T unless verdicts are graded), and Wilson's formula at n* with the
    t quantile of G - 1 degrees of freedom (Korn and Graubard 1998; Franco et al. 2019). For p = 0 or 1, where v is 0,
    ``n* = T^2 / sum t_g^2``.
    Repeated draws of an item never count as items.
    """
    h = np.asarray(hits)
    t = np.ones(len(h)) if trials is None else np.asarray(trials)
    seen = t > 0
    if not seen.all():
        h, t, cluster = h[seen], t[seen], None if cluster is None else np.asarray(cluster)[seen]
    n = len(h)
    if not n:
        return no_interval("no items", level)
    code = _codes(cluster, n)
    if code is None and trials_are_single(h, t):
        return wilson(int(h.sum()), n, level)
    return _effective(h / unit, t / unit, np.zeros(n, np.intp), code, level)


def macro_interval(
    hits: ArrayLike,
    trials: ArrayLike | None,
    stratum: ArrayLike,
    cluster: ArrayLike | None = None,
    *,
    unit: int = 1,
    level: float = 0.95,
) -> Interval:
    """Interval of the mean of the strata's rates; parameters as in :func:`rate_interval`.

    Notes
    -----
    ``v`` is the sum of the strata's variances over the squared number of strata, linearised at the cluster, so that
    clusters may straddle strata. None where a stratum rests on a single item or cluster.
    """
    h = np.asarray(hits)
    t = np.ones(len(h)) if trials is None else np.asarray(trials)
    seen = t > 0
    s = np.unique(np.asarray(stratum)[seen], return_inverse=True)[1].ravel()
    if not seen.any():
        return no_interval("no items", level)
    code = _codes(None if cluster is None else np.asarray(cluster)[seen], int(seen.sum()))
    return _effective(h[seen] / unit, t[seen] / unit, s, code, level)


def trials_are_single(hits: NDArray, trials: NDArray) -> bool:
    """Whether every item has one 0/1 draw."""
    return bool((trials == 1).all()) and (hits.dtype.kind == "b" or bool(((hits == 0) | (hits == 1)).all()))


def _codes(cluster: ArrayLike | None, n: int) -> NDArray[np.intp] | None:
    """Cluster codes, None where every item is a cluster of its own."""
    if cluster is None:
        return None
    values, code = np.unique(np.asarray(cluster), return_inverse=True)
    return None if len(values) == n else code.ravel()


def _effective(h: NDArray, t: NDArray, s: NDArray, cluster: NDArray | None, level: float) -> Interval:
    """Wilson's interval of the mean of the strata's rates at the effective number of draws."""
    from scipy.special import stdtrit

    g = np.arange(len(h)) if cluster is None else cluster
    units, strata = int(g.max()) + 1, int(s.max()) + 1
    inside = np.array([len(np.unique(g[s == k])) for k in range(strata)])
    what = "items" if cluster is None else "clusters"
    if (inside < 2).any():
        where = "" if strata == 1 else "a category with "
        return no_interval(f"{where}a single {what[:-1]}", level)
    total = np.bincount(s, t, strata)
    rate = np.bincount(s, h, strata) / total
    p = float(rate.mean())
    z = (h - rate[s] * t) / (strata * total[s]) * np.sqrt(inside / (inside - 1))[s]
    v = float((np.bincount(g, z, units) ** 2).sum())
    draws = float(t.sum())
    mass = np.bincount(g, t, units)
    if p <= 0 or p >= 1:
        n = draws**2 / float((mass**2).sum())
    elif v <= 1e-18:  # equal rates everywhere
        n = draws
    else:
        n = p * (1 - p) / v
        n = min(n, draws) if _whole(h, t) else n
    q = float(stdtrit(max(1, units - strata), 0.5 + level / 2)) ** 2
    centre = (n * p + q / 2) / (n + q)
    half = math.sqrt(q) * math.sqrt(n * p * (1 - p) + q / 4) / (n + q)
    low, high = 0.0 if p <= 0 else centre - half, 1.0 if p >= 1 else centre + half
    return Interval(low, high, level, f"{EFFECTIVE} {n:.0f} of {draws:.0f} in {units} {what}")


def _whole(h: NDArray, t: NDArray) -> bool:
    """Whether no verdict is graded: only then do independent draws bound what the items can tell."""
    return bool((h == np.rint(h)).all() and (t == np.rint(t)).all())
