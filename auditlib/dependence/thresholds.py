"""Thresholds of sufficiency, calibrated so that confident structure says what this pool shows where a view suffices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit

from auditlib.dependence.profile import DELTA, relative_sufficiency


@dataclass(frozen=True)
class Calibration:
    """How thresholds are set: strength of the pull to one half, their range, and the least slope that is believed."""

    strength: float = 1000.0
    low: float = 0.15
    high: float = 0.75
    slope: float = 0.2


#: the defaults
CALIBRATION = Calibration()


def calibrate(
    q: ArrayLike,
    chance: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike,
    calibration: Calibration = CALIBRATION,
    *,
    before: ArrayLike = (0.5, 0.5),
    delta: float = DELTA,
) -> NDArray[np.float64]:
    """One threshold per view, shape (2,), by weighted logistic regression of the prior on relative sufficiency.

    Parameters
    ----------
    q : shape (items, 4), predicted accuracy; items that nobody solves do not count.
    target : shape (items, 2), prior probability that image, question suffices; weight : shape (items,).
    before : thresholds that stay where the slope is too small to say anything.
    """
    c = calibration
    q, g = np.asarray(q, float), np.asarray(chance, float)
    rel = np.clip(relative_sufficiency(q, g, delta=delta), -0.3, 1.3)
    w = np.asarray(weight, float)
    w = w / max(w.mean(), 1e-12) * (q[:, 3] - g > delta)
    out = np.array(before, float)
    for j in range(2):
        x, y = rel[:, j], np.asarray(target, float)[:, j]

        def loss(p: NDArray, x: NDArray = x, y: NDArray = y) -> tuple[float, NDArray]:
            slope, at = p
            z = slope * (x - at)
            left = w * (expit(z) - y)
            f = (w * (np.logaddexp(0, z) - y * z)).sum() + 0.5 * c.strength * (at - 0.5) ** 2
            return f, np.array([left @ (x - at), -slope * left.sum() + c.strength * (at - 0.5)])

        slope, at = minimize(loss, [2.0, 0.5], jac=True, method="L-BFGS-B").x
        if slope > c.slope:
            out[j] = np.clip(at, c.low, c.high)
    return out
