"""Adjusted p-values, and lists by posterior; NaN (a test that was not run) stays NaN and does not count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def bh(p: ArrayLike) -> NDArray[np.float64]:
    """Benjamini-Hochberg adjusted p-values (false discovery rate), in the order given.

    Examples
    --------
    >>> bh([0.01, 0.04, float("nan"), 0.03]).round(2).tolist()
    [0.03, 0.04, nan, 0.04]
    """
    return _adjust(p, lambda s, m: np.minimum.accumulate((s * m / np.arange(1, m + 1))[::-1])[::-1])


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm adjusted p-values (family-wise error rate), in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, float("nan"), 0.03]).round(2).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    return _adjust(p, lambda s, m: np.maximum.accumulate(s * np.arange(m, 0, -1)))


def _adjust(p: ArrayLike, step) -> NDArray[np.float64]:
    values = np.asarray(p, float)
    out = np.full(values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    if (values[known] < 0).any() or (values[known] > 1).any():
        raise ValueError("p-values must lie in [0, 1]")
    order = known[np.argsort(values[known], kind="stable")]
    out[order] = np.minimum(step(values[order], len(order)), 1.0)
    return out


@dataclass(frozen=True)
class FdrList:
    """Items listed by posterior, most probable first, and what the list promises.

    ``order`` holds the places of the listed items, ``running`` the expected share of false ones among the first r.
    """

    order: NDArray[np.int64]
    running: NDArray[np.float64]
    q: float
    best: float

    @property
    def expected_true(self) -> float:
        """Expected number of true ones on the list."""
        return float(len(self.order) * (1 - self.running[-1])) if len(self.order) else 0.0

    def sentence(self, models_needed: int | str | None = None) -> str:
        """What may be said of the list: its size and expected errors, or that the pool cannot support one."""
        if len(self.order):
            wrong = len(self.order) - self.expected_true
            return (
                f"{len(self.order)} items are listed at a Bayesian false discovery rate of {self.q:g}: "
                f"about {wrong:.1f} of them are expected to be wrong if the model behind the posteriors holds."
            )
        needed = "unknown" if models_needed is None else models_needed
        return f"This pool cannot support an error-controlled list; models needed: {needed}."


def bayes_fdr(posterior: ArrayLike, q: float = 0.1) -> FdrList:
    """The longest list whose expected share of false items, the running mean of 1 - posterior, is at most q.

    Parameters
    ----------
    posterior : shape (items,)
        Probability that each item has the property; NaN where it was not judged.
    q : float

    Raises
    ------
    ValueError
        Values outside [0, 1], q outside (0, 1).

    Notes
    -----
    Newton, Noueiry, Sarkar and Ahlquist (2004). Ties keep the order given, whole groups of ties are not split.

    Examples
    --------
    >>> bayes_fdr([0.5, 0.99, 0.9, 0.95], 0.1).order.tolist()
    [1, 3, 2]
    """
    values = np.asarray(posterior, float)
    if not 0 < q < 1:
        raise ValueError("q must lie between 0 and 1")
    known = np.flatnonzero(~np.isnan(values))
    if (values[known] < 0).any() or (values[known] > 1).any():
        raise ValueError("posteriors must lie in [0, 1]")
    order = known[np.argsort(-values[known], kind="stable")]
    running = np.cumsum(1 - values[order]) / np.arange(1, len(order) + 1)
    # items of one posterior are listed together or not at all
    last = np.ones(len(order), bool)
    last[:-1] = np.diff(values[order]) < -1e-9
    fits = np.flatnonzero((running <= q + 1e-12) & last)
    size = int(fits[-1]) + 1 if len(fits) else 0
    return FdrList(order[:size], running[:size], q, float(values[order[0]]) if len(order) else float("nan"))


def bh_can_reject(p: ArrayLike, smallest: ArrayLike | float, q: float = 0.05) -> bool:
    """Whether Benjamini-Hochberg could reject anything here, were every test at its smallest attainable p.

    Parameters
    ----------
    p : shape (tests,)
        NaN where no test was run.
    smallest : one number, or shape (tests,)
        Smallest p that each test can take (1/2^n for a sign test of n models, 1/(draws + 1) for shuffles).

    Examples
    --------
    >>> bh_can_reject([0.2] * 1500, [0.125] * 1500), bh_can_reject([0.2, 0.3], 0.001)
    (False, True)
    """
    values = np.asarray(p, float)
    least = np.broadcast_to(np.asarray(smallest, float), values.shape)[~np.isnan(values)]
    return bool(len(least)) and bool((bh(least) <= q).any())
