"""Predicted accuracy under four conditions to a profile over redundant, visual, textual and synergistic."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

#: order of the last axis of every profile
LABELS = ("R", "V", "T", "S")
LABEL_NAMES = ("redundant", "visual-dominant", "textual-dominant", "synergistic")
#: order of the last axis of every response array
CONDITIONS = ("none", "image_only", "blind", "full")
#: softness of sufficiency, and the least gain of the full item over chance that anything is divided by
KAPPA, DELTA = 0.5, 0.15
_FLOOR = 1e-3


def product_profile(image: ArrayLike, question: ArrayLike) -> NDArray[np.float64]:
    """Profile of two independent sufficiencies, shape (..., 4); sums to 1 as it stands."""
    v, t = np.asarray(image, float), np.asarray(question, float)
    return np.stack([v * t, v * (1 - t), (1 - v) * t, (1 - v) * (1 - t)], axis=-1)


def marginals(profile: ArrayLike) -> NDArray[np.float64]:
    """Probability that the image, and that the question, suffices; shape (items, 2)."""
    p = np.asarray(profile, float)
    return np.stack([p[..., 0] + p[..., 1], p[..., 0] + p[..., 2]], axis=-1)


def relative_sufficiency(q: ArrayLike, chance: ArrayLike, *, delta: float = DELTA) -> NDArray[np.float64]:
    """Gain of each single view over chance as a share of the full item's, shape (items, 2).

    Parameters
    ----------
    q : shape (items, 4), accuracy in the order of :data:`CONDITIONS`
    chance : shape (items,) or number
    delta : least gain of the full item to divide by
    """
    q = np.asarray(q, float)
    g = np.asarray(chance, float)
    return (q[:, 1:3] - np.expand_dims(g, -1)) / np.maximum(q[:, 3] - g, delta)[:, None]


def relative_profile(
    q: ArrayLike, chance: ArrayLike, *, thresholds: ArrayLike = 0.5, kappa: float = KAPPA, delta: float = DELTA
) -> NDArray[np.float64]:
    """Option B, the default: relative sufficiency against a threshold per view, shape (items, 4)."""
    s = expit((relative_sufficiency(q, chance, delta=delta) - thresholds) / kappa)
    return product_profile(s[:, 0], s[:, 1])


def absolute_profile(q: ArrayLike, chance: ArrayLike, *, kappa: float = 0.1) -> NDArray[np.float64]:
    """Option C: a view suffices when its accuracy is nearer to 1 than to chance."""
    s = expit((np.asarray(q, float)[:, 1:3] - np.expand_dims((1 + np.asarray(chance, float)) / 2, -1)) / kappa)
    return product_profile(s[:, 0], s[:, 1])


def difference_profile(q: ArrayLike, chance: ArrayLike | None = None) -> NDArray[np.float64]:
    """Option A: gains over the options alone, by inclusion and exclusion; A' with ``chance`` in their place."""
    q = np.asarray(q, float)
    base = q[:, 0] if chance is None else np.broadcast_to(np.asarray(chance, float), q[:, 0].shape)
    gain = np.clip(q[:, 1:] - base[:, None], 0, None)
    shared = gain[:, :2].min(1)
    parts = [shared, gain[:, 0] - shared, gain[:, 1] - shared, np.clip(gain[:, 2] - gain[:, :2].max(1), 0, None)]
    out = np.stack(parts, axis=1) + _FLOOR
    return out / out.sum(1, keepdims=True)


def solvability(q: ArrayLike, chance: ArrayLike) -> NDArray[np.float64]:
    """``(q_VT - g) / (1 - g)``, shape (items,); near 0 where the full item is answered by chance."""
    g = np.asarray(chance, float)
    return (np.asarray(q, float)[:, 3] - g) / (1 - g)
