"""Adjusted p-values; NaN (a test that was not run) stays NaN and does not count."""

from __future__ import annotations

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
