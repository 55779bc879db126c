"""Rates of many groups pooled in part: a Beta prior fitted to them, and what it makes of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

NAN = float("nan")
#: fewer groups say nothing about how groups differ
LEAST_GROUPS = 3
#: largest strength of the prior, in trials: beyond it the groups are alike
_ALIKE = 1e4


@dataclass(frozen=True)
class Shrunk:
    """Posterior of each group's rate.

    Attributes
    ----------
    mean, low, high : shape (groups,), posterior mean and central interval; NaN for a group without trials.
    centre : mean of the prior. strength : how many trials it counts as; large where groups do not differ.
    """

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    centre: float
    strength: float


def shrink(hits: ArrayLike, trials: ArrayLike, level: float = 0.95) -> Shrunk:
    """Empirical Bayes: ``k ~ Binomial(n, p)``, ``p ~ Beta(a, b)``, a and b by maximum marginal likelihood.

    Parameters
    ----------
    hits, trials : shape (groups,).

    Notes
    -----
    Posterior ``Beta(a + k, b + n - k)``. The interval takes the prior as known. Fewer than three groups with trials:
    all NaN.

    Raises
    ------
    ValueError
        Unless ``0 <= hits <= trials``.
    """
    from scipy.optimize import minimize
    from scipy.special import betaincinv, betaln

    k, n = np.asarray(hits, float), np.asarray(trials, float)
    if (k < 0).any() or (k > n).any():
        raise ValueError("hits must lie between 0 and trials")
    there = n > 0
    none = np.full(k.shape, NAN)
    if there.sum() < LEAST_GROUPS:
        return Shrunk(none, none, none, NAN, NAN)
    kk, nn = k[there], n[there]

    def loss(x: NDArray) -> float:
        centre, strength = 1 / (1 + np.exp(-x[0])), np.exp(x[1])
        a, b = centre * strength, (1 - centre) * strength
        return float(-(betaln(a + kk, b + nn - kk) - betaln(a, b)).sum())

    start = np.clip((kk.sum() + 0.5) / (nn.sum() + 1), 0.01, 0.99)
    bounds = [(-8.0, 8.0), (np.log(0.5), np.log(_ALIKE))]
    fits = [minimize(loss, [np.log(start / (1 - start)), s], bounds=bounds, method="L-BFGS-B") for s in (1.0, 4.0)]
    x = min(fits, key=lambda f: f.fun).x
    centre, strength = float(1 / (1 + np.exp(-x[0]))), float(np.exp(x[1]))
    a, b = centre * strength + k, (1 - centre) * strength + n - k
    mean = np.where(there, a / (a + b), NAN)
    low, high = betaincinv(a, b, 0.5 - level / 2), betaincinv(a, b, 0.5 + level / 2)
    return Shrunk(mean, np.where(there, low, NAN), np.where(there, high, NAN), centre, strength)
