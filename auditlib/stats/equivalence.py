"""Equivalence: whether two arms or conditions differ by less than a margin fixed beforehand (two one-sided tests)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from auditlib.stats.intervals import NAN

#: largest change that counts as none: of a share, of an excess over its null
SHARE_MARGIN, EXCESS_MARGIN = 0.03, 0.01
#: with fewer changed units the t approximation gives way to an exact bound
FEW_CHANGES = 10


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of a mean paired difference.

    ``p`` is the larger of ``p_above`` (against differences of at least the margin) and ``p_below``; ``low`` and
    ``high`` are the ends of the ``1 - 2 alpha`` interval, inside the margins where the t test says equivalent.
    """

    estimate: float
    low: float
    high: float
    margin: float
    alpha: float
    se: float
    p_above: float
    p_below: float
    n: int
    units: int
    method: str

    @property
    def p(self) -> float:
        return max(self.p_above, self.p_below)

    @property
    def equivalent(self) -> bool:
        return self.p <= self.alpha

    def as_row(self) -> dict[str, Any]:
        names = ("estimate", "low", "high", "margin", "alpha", "se", "p", "n", "units", "method", "equivalent")
        return {name: getattr(self, name) for name in names}

    def sentence(self, what: str = "the share") -> str:
        """One sentence in percentage points that claims no more than the test allows."""
        seen = f"{100 * self.estimate:+.1f} pp ({100 * (1 - 2 * self.alpha):.0f}% interval {100 * self.low:+.1f} to "
        seen += f"{100 * self.high:+.1f})"
        edge = f"margin {100 * self.margin:g} pp, TOST p = {self.p:.3g}"
        if math.isnan(self.p):
            return f"Whether {what} changes cannot be tested: {self.method}."
        if self.equivalent:
            return f"No change of {what} beyond the margin: {seen}; {edge}."
        return f"A change of {what} beyond the margin is not ruled out: {seen}; {edge}."


def tost(
    difference: ArrayLike, margin: float = SHARE_MARGIN, *, cluster: ArrayLike | None = None, alpha: float = 0.05
) -> Equivalence:
    """Two one-sided t tests of the mean of paired differences.

    Parameters
    ----------
    difference : shape (items,)
        Second arm minus first, one value per item (in [-1, 1] for shares).
    margin : float
        Fixed before looking; 3 percentage points for shares by default.
    cluster : shape (items,), optional
        Items that share an image or a base item; the standard error is then that of cluster totals.
    alpha : float
        Level of each of the two tests.

    Raises
    ------
    ValueError
        Missing values, a margin that is not positive, another number of clusters than of differences.

    Notes
    -----
    Schuirmann (1987); cluster-robust with G / (G - 1) and G - 1 degrees of freedom. Where fewer than 10 items
    (clusters) change at all, p is the exact binomial probability of so few changes if the mean change were the margin:
    a mean of at least the margin needs a share of changed items of at least the margin.

    Examples
    --------
    >>> tost([0] * 1500).equivalent, tost([0] * 40).equivalent
    (True, False)
    """
    d = np.asarray(difference, float).ravel()
    if not margin > 0:
        raise ValueError("the margin must be positive")
    if np.isnan(d).any():
        raise ValueError("differences must not be missing: give the items that both arms have")
    n = len(d)
    codes = np.arange(n) if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1].ravel()
    if len(codes) != n:
        raise ValueError(f"{len(codes)} clusters for {n} differences")
    units = int(codes.max()) + 1 if n else 0
    if units < 2:
        return Equivalence(float(d.mean()) if n else NAN, NAN, NAN, margin, alpha, NAN, NAN, NAN, n, units,
                           "fewer than two items or clusters")  # fmt: skip
    mean = float(d.mean())
    total = np.bincount(codes, d - mean, minlength=units)
    se = math.sqrt(units / (units - 1) * float(total @ total)) / n
    changed = int((np.bincount(codes, d != 0, minlength=units) > 0).sum())
    t = float(stdtrit(units - 1, 1 - alpha))
    ends = mean - t * se, mean + t * se
    if changed < FEW_CHANGES and np.abs(d).max() <= 1:
        from scipy.stats import binom

        # a cluster that changes adds at most its size: the largest one counts for all
        size = int(np.bincount(codes).max())
        p = float(binom.cdf(changed, units, min(1.0, margin * n / (units * size)))) if abs(mean) < margin else 1.0
        return Equivalence(mean, *ends, margin, alpha, se, p, p, n, units, f"exact bound, {changed} changed")
    if se == 0:  # every item changes by the same amount
        p = (0.0 if mean < margin else 1.0), (0.0 if mean > -margin else 1.0)
        return Equivalence(mean, *ends, margin, alpha, se, *p, n, units, "no spread")
    above, below = (float(stdtr(units - 1, x / se)) for x in (mean - margin, -mean - margin))
    kind = "paired t" if cluster is None else "paired t, clustered"
    return Equivalence(mean, *ends, margin, alpha, se, above, below, n, units, kind)


def excess_values(full: ArrayLike, blind: ArrayLike, stratum: ArrayLike | None = None) -> NDArray[np.float64]:
    """One value per item whose mean is the excess of exact ties, and whose spread is that of the excess.

    Parameters
    ----------
    full, blind : int arrays, shape (items,)
        Counts of right models.
    stratum : shape (items,), optional
        The null permutes inside strata.

    Notes
    -----
    Values of the linearised excess ``T/N - sum_k f_k b_k / N^2``: tie, less the share of blind counts equal to this
    item's full count, less the share of full counts equal to its blind count, plus the null. Differences of two arms'
    values go into :func:`tost` with the margin of an excess.

    Examples
    --------
    >>> round(float(excess_values([0, 0, 1, 1], [0, 0, 1, 1]).mean()), 3)
    0.5
    """
    f, b = np.asarray(full, np.int64), np.asarray(blind, np.int64)
    if f.ndim != 1 or f.shape != b.shape:
        raise ValueError("full and blind counts of one length are needed")
    codes = np.zeros(len(f), int) if stratum is None else np.unique(np.asarray(stratum), return_inverse=True)[1].ravel()
    out, levels = np.empty(len(f)), int(max(f.max(initial=0), b.max(initial=0))) + 1
    for s in range(int(codes.max(initial=0)) + 1):
        rows = codes == s
        n = max(int(rows.sum()), 1)
        fs, bs = (np.bincount(x[rows], minlength=levels) / n for x in (f, b))
        out[rows] = (f[rows] == b[rows]) - bs[f[rows]] - fs[b[rows]] + fs @ bs
    return out


def same_excess(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    *,
    stratum: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    margin: float = EXCESS_MARGIN,
    alpha: float = 0.05,
) -> Equivalence:
    """Whether two arms, given as (full, blind) counts of the same items, have the same excess."""
    d = excess_values(*second, stratum) - excess_values(*first, stratum)
    return tost(d, margin, cluster=cluster, alpha=alpha)
