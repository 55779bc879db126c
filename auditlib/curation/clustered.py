"""Means of several models over the same items, with the covariance that pairing and clusters give them.

Every interval and test of the outcome tables rests on :func:`mean_covariance`: the difference of two models, a gap
between groups of models and a change between effort levels are all contrasts of its means.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

NAN = float("nan")


@dataclass(frozen=True)
class MeanCovariance:
    """Means of columns over items, and their covariance over resampled items or clusters.

    Attributes
    ----------
    mean : shape (columns,), the weighted mean of the strata's means. cov : shape (columns, columns).
    df : degrees of freedom, units minus strata. units : items or clusters. strata : strata with an item.
    lonely : strata of a single unit, whose deviation is taken from the overall mean.
    """

    mean: NDArray[np.float64]
    cov: NDArray[np.float64]
    df: int
    units: int
    strata: int
    lonely: int

    def contrast(self, weights: ArrayLike) -> tuple[float, float]:
        """Value and standard error of ``weights @ mean``; a column of weight 0 may lack its mean."""
        w = np.asarray(weights, float)
        used = w != 0
        w = w[used]
        variance = float(w @ self.cov[np.ix_(used, used)] @ w)
        return float(w @ self.mean[used]), float(np.sqrt(np.maximum(variance, 0.0)))


def codes(labels: ArrayLike | None, n: int) -> tuple[NDArray[np.intp], NDArray]:
    """Codes 0.. of labels and the sorted distinct labels; one label for all where there are none."""
    if labels is None:
        return np.zeros(n, np.intp), np.array(["all"], object)
    values = np.asarray(labels)
    if values.dtype.kind in "iu":
        names, code = np.unique(values, return_inverse=True)
    else:
        code, names = pd.factorize(values.astype(str).astype(object), sort=True)
    return np.asarray(code, np.intp).ravel(), np.asarray(names, object)


def group_sums(values: NDArray[np.float64], code: NDArray[np.intp], groups: int) -> NDArray[np.float64]:
    """Sums of rows by group, shape (groups, columns); a missing value (NaN) adds nothing."""
    from scipy import sparse

    filled = np.where(np.isnan(values), 0.0, values)
    n = len(code)
    which = sparse.csr_array((np.ones(n), (code, np.arange(n))), shape=(groups, n))
    return np.asarray(which @ filled)


def group_means(values: NDArray[np.float64], code: NDArray[np.intp], groups: int) -> NDArray[np.float64]:
    """Means of rows by group over the values that exist, shape (groups, columns); NaN where there is none."""
    count = group_sums((~np.isnan(values)).astype(float), code, groups)
    total = group_sums(values, code, groups)
    return np.divide(total, count, out=np.full(total.shape, NAN), where=count > 0)


def mean_covariance(
    values: ArrayLike,
    stratum: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> MeanCovariance:
    """Mean of stratum means of each column, and the covariance of these means over items or clusters.

    Parameters
    ----------
    values : float array, shape (items, columns)
        One value per item and model; NaN where there is none: the item then does not count for that model.
    stratum : array, shape (items,), optional
        Source or capability. One stratum by default.
    cluster : array, shape (items,), optional
        Items that share an image or a base item; they are resampled together, and may straddle strata.
    weights : float array, shape (strata,), optional
        What each stratum weighs, in the order of its sorted labels, summing to 1; the same each by default.

    Notes
    -----
    With n_sm values in stratum s of weight w_s, ``z_im = w_s (x_im - mean_sm) / n_sm sqrt(g_s / (g_s - 1))``, where g_s
    counts the stratum's units, is summed over the items of each cluster, and ``cov = Z' Z`` (ultimate clusters,
    linearised). For one stratum of independent items this is the covariance matrix over n, and a difference of two
    columns has the standard error of the paired t test. A stratum of a single unit shows no spread: its deviation is
    taken from the overall mean, which errs on the side of too wide.
    A column that lacks all values of a stratum has no mean (NaN).
    """
    x = np.asarray(values, float)
    n, columns = x.shape
    if not n:
        return MeanCovariance(np.full(columns, NAN), np.full((columns, columns), NAN), 0, 0, 0, 0)
    s, names = codes(stratum, n)
    groups = len(names)
    c = None if cluster is None else codes(cluster, n)[0]
    units = n if c is None else int(c.max()) + 1
    inside = np.bincount(s, minlength=groups)
    if c is not None:
        pairs = np.unique(s.astype(np.int64) * units + c)
        inside = np.bincount(pairs // units, minlength=groups)
    seen = ~np.isnan(x)
    count = group_sums(seen.astype(float), s, groups)
    means = np.divide(group_sums(x, s, groups), count, out=np.full(count.shape, NAN), where=count > 0)
    w = np.full(groups, 1 / groups) if weights is None else np.asarray(weights, float)
    mean = w @ means
    lonely = inside < 2
    centre = np.where(lonely[:, None], mean, means)
    scale = w * np.where(lonely, 1.0, np.sqrt(inside / np.maximum(inside - 1, 1)))
    weight = np.divide(scale[:, None], count, out=np.zeros(count.shape), where=count > 0)
    z = np.where(seen, (x - centre[s]) * weight[s], 0.0)
    if c is not None:
        z = group_sums(z, c, units)
    cov = z.T @ z
    lost = np.isnan(mean)
    cov[lost], cov[:, lost] = NAN, NAN
    df = max(units - groups, 0)
    if units < 2:
        cov = np.full(cov.shape, NAN)
    return MeanCovariance(mean, cov, df, units, groups, int(lonely.sum()))


def score_interval(
    mean: ArrayLike, variance: ArrayLike, df: int, units: int, draws: ArrayLike, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of Wilson's interval of shares at their effective number of draws, arrays of the shape of ``mean``.

    Parameters
    ----------
    mean, variance : shares and the variances of :func:`mean_covariance`.
    df, units : degrees of freedom; items or clusters.
    draws : draws behind each share, which bound the effective number.

    Notes
    -----
    ``n* = p (1 - p) / v`` and Wilson's formula with the t quantile (Korn and Graubard 1998); for a share of 0 or 1,
    which shows no variance, n* is the number of units.
    """
    from scipy.special import stdtrit

    p, v, most = (np.asarray(a, float) for a in np.broadcast_arrays(mean, variance, draws))
    if df < 1:
        return np.full(p.shape, NAN), np.full(p.shape, NAN)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.where(v > 1e-18, p * (1 - p) / v, most)
    n = np.minimum(n, most)
    edge = (p <= 0) | (p >= 1)
    n = np.where(edge, units, n)
    q = float(stdtrit(df, 0.5 + level / 2)) ** 2
    centre = (n * p + q / 2) / (n + q)
    half = np.sqrt(q) * np.sqrt(np.maximum(n * p * (1 - p), 0) + q / 4) / (n + q)
    return np.where(p <= 0, 0.0, centre - half), np.where(p >= 1, 1.0, centre + half)


def t_interval(value: ArrayLike, se: ArrayLike, df: int, level: float = 0.95) -> tuple[NDArray, NDArray]:
    """``value +- t se``; NaN without degrees of freedom."""
    from scipy.special import stdtrit

    v, s = np.asarray(value, float), np.asarray(se, float)
    half = s * (float(stdtrit(df, 0.5 + level / 2)) if df >= 1 else NAN)
    return v - half, v + half


def t_test(value: ArrayLike, se: ArrayLike, df: int, units: int) -> NDArray[np.float64]:
    """Two-sided p of ``value / se`` with df degrees of freedom.

    Notes
    -----
    Without any spread (se 0) a value of 0 has p = 1, another one the sign test's ``2^(1 - units)``: every unit says
    the same.
    """
    from scipy.special import stdtr

    v, s = np.asarray(value, float), np.asarray(se, float)
    if df < 1:
        return np.full(np.broadcast(v, s).shape, NAN)
    flat = s <= 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(df, -np.abs(v / np.where(flat, 1.0, s)))
    same = np.where(np.abs(v) <= 1e-12, 1.0, min(1.0, 2.0 ** (1 - min(units, 1000))))
    p = np.where(flat, same, p)
    return np.where(np.isnan(v) | np.isnan(s), NAN, p)
