"""What items tell about subjects: the closed-form determinant, adaptive order, and a utility for subsets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from auditlib.dependence.problem import GATES


def logits(theta: ArrayLike, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Logits, shape (..., items, 4), of subjects ``theta`` (..., 4) on items ``a``, ``b`` (items, 4)."""
    t = np.asarray(theta, float)[..., None, :]
    return (t * np.asarray(a, float) - np.asarray(b, float)) @ GATES.T


def log_determinant(theta: ArrayLike, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Log determinant of each item's information over its four conditions, shape (..., items).

    Notes
    -----
    The information is ``sum_c w_c (g_c a)(g_c a)'`` with ``w = p (1 - p)``; the gates are triangular with unit
    diagonal, so its determinant is ``prod_k a_k^2 prod_c w_c``.
    """
    eta = logits(theta, a, b)
    with np.errstate(divide="ignore"):
        slopes = 2 * np.log(np.asarray(a, float)).sum(-1)
    return slopes + (log_expit(eta) + log_expit(-eta)).sum(-1)


def adaptive_order(theta: ArrayLike, a: ArrayLike, b: ArrayLike) -> NDArray[np.int64]:
    """Items from most to least informative for one subject ``theta`` (4,); ties keep their order."""
    return np.argsort(-log_determinant(theta, a, b), kind="stable")


def utility(theta: ArrayLike, a: ArrayLike, b: ArrayLike, chance: ArrayLike) -> NDArray[np.float64]:
    """Joint gain times information about the full item, shape (items,).

    Notes
    -----
    ``max(0, q_VT - max(q_V, q_T, g)) * mean_m w_m sum_k a_k^2``: gain keeps out items that are broken or need one view
    only, information ranks the rest. The profile alone does neither: broken items look synergistic.
    """
    p = expit(logits(theta, a, b))
    q = p.mean(0)
    gain = q[:, 3] - np.maximum(np.maximum(q[:, 1], q[:, 2]), chance)
    return np.maximum(gain, 0) * (p[:, :, 3] * (1 - p[:, :, 3])).mean(0) * (np.asarray(a, float) ** 2).sum(1)


def select_subset(utility: ArrayLike, size: int | float) -> NDArray[np.int64]:
    """Places of the items of highest utility; ``size`` is a count, or a share below 1. Ties keep their order."""
    u = np.asarray(utility, float)
    count = max(1, round(len(u) * size)) if isinstance(size, float) and size < 1 else int(size)
    if not 0 < count <= len(u):
        raise ValueError(f"a subset of {count} out of {len(u)} items")
    return np.argsort(-u, kind="stable")[:count]
