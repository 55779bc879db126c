"""One effect measured in several units: their mean and spread, and each unit's effect drawn toward the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

NAN = float("nan")
_Z = 1.959963984540054


@dataclass(frozen=True)
class Pooled:
    """Normal random effects.

    Attributes
    ----------
    mean, se, low, high : of the mean over units. spread : SD of the true effects between units (tau).
    shrunk, shrunk_low, shrunk_high : shape (units,), each unit's effect given all of them; NaN where its own is not
        known. units : with an effect.
    """

    mean: float
    se: float
    low: float
    high: float
    spread: float
    shrunk: NDArray[np.float64]
    shrunk_low: NDArray[np.float64]
    shrunk_high: NDArray[np.float64]
    units: int


def pool_effects(effect: ArrayLike, se: ArrayLike) -> Pooled:
    """Mean and spread of effects with known standard errors, and each effect given the others.

    Parameters
    ----------
    effect, se : shape (units,); units with a missing value or an error that is not positive take no part.

    Notes
    -----
    The variance between units behind the mean is that of Paule and Mandel (1982): weighted squares equal their degrees
    of freedom; 0 where they are fewer. Units get the posterior under a flat prior of the mean and of tau (Gelman 2006),
    integrated over tau, so that few units, which know little of tau, get wide intervals; its interval is that of a
    normal law with the posterior's mean and SD. With fewer than three units tau is not known: no unit is drawn
    anywhere; fewer than two are not pooled.
    """
    y, s = np.broadcast_arrays(np.asarray(effect, float), np.asarray(se, float))
    known = np.isfinite(y) & np.isfinite(s) & (s > 0)
    n = int(known.sum())
    blank = np.full(y.shape, NAN)
    if n < 2:
        return Pooled(NAN, NAN, NAN, NAN, NAN, blank, blank.copy(), blank.copy(), n)
    e, v = y[known], s[known] ** 2

    def excess(tau2: float) -> float:
        w = 1 / (v + tau2)
        return float((w * (e - (w @ e) / w.sum()) ** 2).sum()) - (n - 1)

    tau2 = 0.0
    if excess(0.0) > 0:
        from scipy.optimize import brentq

        top = max(float(np.var(e)), 1e-12)
        while excess(top) > 0:
            top *= 2
        tau2 = float(brentq(excess, 0.0, top, xtol=1e-14))
    w = 1 / (v + tau2)
    mean, error = float(w @ e / w.sum()), float(1 / np.sqrt(w.sum()))
    parts = [blank.copy() for _ in range(3)]
    if n > 2:
        centre, sd = _posterior(e, v)
        for part, shift in zip(parts, (0.0, -_Z, _Z)):
            part[known] = centre + shift * sd
    return Pooled(mean, error, mean - _Z * error, mean + _Z * error, float(np.sqrt(tau2)), *parts, n)


def _posterior(e: NDArray, v: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Posterior mean and SD of each unit's effect, flat in the mean and in tau."""
    scale = max(float(np.std(e)), float(np.sqrt(np.median(v))))
    # fine near 0; three units leave a tail of tau^-2, of which what lies beyond is dropped
    tau = 30 * scale * np.linspace(0, 1, 800) ** 2
    width = np.gradient(tau)
    total = v + tau[:, None] ** 2
    w = 1 / total
    mean = (w @ e) / w.sum(axis=1)
    log = -0.5 * (np.log(total).sum(axis=1) + np.log(w.sum(axis=1)) + (w * (e - mean[:, None]) ** 2).sum(axis=1))
    p = np.exp(log - log.max()) * width
    p /= p.sum()
    kept = tau[:, None] ** 2 / total
    centre = mean[:, None] + kept * (e - mean[:, None])
    spread = kept * v + (1 - kept) ** 2 / w.sum(axis=1)[:, None]
    first = p @ centre
    return first, np.sqrt(np.maximum(p @ (spread + centre**2) - first**2, 0.0))
