"""Number of successes in independent trials of unequal probability, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class PoissonBinomial:
    """Successes beside their law; ``p`` is two-sided, ``upper`` the chance of as many or more. Shares are of ``n``."""

    n: int
    observed: int
    mean: float
    sd: float
    p: float
    upper: float

    def as_row(self) -> dict[str, Any]:
        n = self.n or float("nan")
        return {"n": self.n, "estimate": self.observed / n, "null": self.mean / n, "null_sd": self.sd / n,
                "excess": (self.observed - self.mean) / n, "p": self.p, "p_method": "Poisson-binomial"}  # fmt: skip


def pmf(probabilities: ArrayLike) -> NDArray[np.float64]:
    """Probability of 0..n successes, shape (n + 1,).

    Notes
    -----
    Trials of equal probability are one binomial; binomials are convolved. Every term is positive: nothing cancels.

    Examples
    --------
    >>> pmf([0.5, 0.25]).round(9).tolist()
    [0.375, 0.5, 0.125]
    """
    from scipy.stats import binom

    q, count = np.unique(np.asarray(probabilities, float), return_counts=True)
    if len(q) and (q[0] < 0 or q[-1] > 1):
        raise ValueError("probabilities must lie in [0, 1]")
    out = np.ones(1)
    for p, n in zip(q.tolist(), count.tolist()):
        out = np.convolve(out, binom.pmf(np.arange(n + 1), n, p))
    return out


def poisson_binomial_test(observed: int, probabilities: ArrayLike) -> PoissonBinomial:
    """Compare a number of successes with independent trials of the given probabilities.

    Notes
    -----
    Two-sided p: the probability of all numbers at most as probable as the observed one. Mean ``sum p``, variance
    ``sum p (1 - p)``.

    Raises
    ------
    ValueError
        More successes than trials, or a probability outside [0, 1].
    """
    q = np.asarray(probabilities, float).ravel()
    if not 0 <= observed <= len(q):
        raise ValueError(f"{observed} successes in {len(q)} trials")
    law = pmf(q)
    p = float(min(1.0, law[law <= law[observed] * (1 + 1e-7)].sum()))
    upper = float(min(1.0, law[observed:].sum()))
    return PoissonBinomial(len(q), int(observed), float(q.sum()), float(np.sqrt((q * (1 - q)).sum())), p, upper)
