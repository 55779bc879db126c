"""Abilities of a subject that was no part of the fit, with item parameters frozen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from auditlib.dependence.information import logits
from auditlib.dependence.problem import GATES


@dataclass(frozen=True)
class Newcomer:
    """Abilities (4,) on the standardised scale, their standard errors, and whether Newton's method converged."""

    theta: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    converged: bool
    iterations: int


def score_new_subject(
    hits: ArrayLike, a: ArrayLike, b: ArrayLike, *, trials: ArrayLike | None = None, prior: float = 1.0, most: int = 50
) -> Newcomer:
    """Maximum a posteriori abilities under N(0, 1/prior), the law of the standardised pool.

    Parameters
    ----------
    hits : shape (items, 4), right draws; NaN where not asked
    a, b : shape (items, 4), of a :class:`auditlib.dependence.diagnosis.Diagnosis`
    trials : shape (items, 4); 1 by default

    Raises
    ------
    ValueError
        Shapes that do not match, or no answer at all.
    """
    h = np.array(hits, float)
    slopes = np.asarray(a, float)
    if h.shape != slopes.shape:
        raise ValueError(f"responses have shape {h.shape}, items {slopes.shape}")
    gap = np.isnan(h)
    t = np.where(gap, 0.0, 1.0 if trials is None else np.asarray(trials, float))
    h[gap] = 0
    if not t.any():
        raise ValueError("the subject answered nothing")

    def loss(theta: NDArray) -> float:
        eta = logits(theta, slopes, b)
        return float((t * np.logaddexp(0, eta) - h * eta).sum() + 0.5 * prior * theta @ theta)

    theta, step, converged = np.zeros(4), 0, False
    value = loss(theta)
    while step < most and not converged:
        step += 1
        p = expit(logits(theta, slopes, b))
        slope = (((t * p - h) @ GATES) * slopes).sum(0) + prior * theta
        hessian = _information(t * p * (1 - p), slopes) + prior * np.eye(4)
        move, size = np.linalg.solve(hessian, slope), 1.0
        while (new := loss(theta - size * move)) > value and size > 1e-8:
            size /= 2
        theta, converged, value = theta - size * move, bool(np.abs(slope).max() < 1e-8 * max(1.0, t.sum())), new
    p = expit(logits(theta, slopes, b))
    hessian = _information(t * p * (1 - p), slopes) + prior * np.eye(4)
    return Newcomer(theta, np.sqrt(np.diag(np.linalg.inv(hessian))), converged, step)


def _information(w: NDArray, a: NDArray) -> NDArray[np.float64]:
    """``sum_i sum_c w_ic (g_c a_i)(g_c a_i)'``, shape (4, 4)."""
    x = (GATES[None] * a[:, None, :]).reshape(-1, 4)
    return x.T @ (w.reshape(-1, 1) * x)
