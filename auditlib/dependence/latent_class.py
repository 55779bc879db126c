"""Four classes of items with sufficient and insufficient views, by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logit, logsumexp

from auditlib.threads import single_threaded

#: levels of an item's easiness, in logits
_GRID = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
#: whether a class (R, V, T, S) can be answered under a condition (none, image, question, both)
_SUFFICES = np.array([[0, 1, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]])
_START, _MEAN, _PRECISION = 0.8, 0.5, 0.5


@dataclass(frozen=True)
class LatentClass:
    """A fitted model.

    Attributes
    ----------
    profile : shape (items, 4), posterior of R, V, T, S; the prior is in it.
    evidence : shape (items, 4), log-likelihood of each class without prior and shares, its maximum 0.
    sufficient : shape (subjects, 4), logit of a right answer where the view suffices; insufficient : likewise, beyond
        the logit of chance.
    shares : shape (4,). easiness : shape (5,), shares of the levels. iterations, converged : of the fit.
    """

    profile: NDArray[np.float64]
    evidence: NDArray[np.float64]
    sufficient: NDArray[np.float64]
    insufficient: NDArray[np.float64]
    shares: NDArray[np.float64]
    easiness: NDArray[np.float64]
    iterations: int
    converged: bool


def _newton(e: NDArray, right: NDArray, drawn: NDArray, offset: NDArray, mean: float) -> NDArray[np.float64]:
    """Subject logits (subjects,) given expected counts (subjects, cells) at offsets (cells,), under a normal prior."""
    for _ in range(3):
        p = expit(e[:, None] + offset)
        slope = (right - drawn * p).sum(1) - _PRECISION * (e - mean)
        e = e + np.clip(slope / ((drawn * p * (1 - p)).sum(1) + _PRECISION), -1, 1)
    return e


def fit_latent_class(
    hits: ArrayLike,
    trials: ArrayLike,
    chance: ArrayLike,
    *,
    profile: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    trust: float = 0.5,
    most: int = 60,
    tolerance: float = 1e-4,
) -> LatentClass:
    """Fit classes to responses.

    Parameters
    ----------
    hits, trials : shape (subjects, items, 4)
    chance : shape (items,)
    profile, weight : shape (items, 4) and (items,)
        A prior, which enters as ``profile ** (trust * weight)``; none by default.
    most, tolerance : iterations at most; largest change of a posterior at which the fit ends.
    """
    h, t = np.asarray(hits, float), np.asarray(trials, float)
    m, n, _ = h.shape
    base, code = np.unique(np.asarray(chance, float), return_inverse=True)
    base = logit(base)
    log_prior = np.zeros((n, 4))
    if profile is not None:
        w = np.ones(n) if weight is None else np.asarray(weight, float)
        log_prior = trust * w[:, None] * np.log(np.clip(np.asarray(profile, float), 1e-3, 1))
    hc, tc = (np.ascontiguousarray(y.transpose(2, 0, 1)) for y in (h, t))
    yes, no = np.full((m, 4), _START), np.zeros((m, 4))
    shares, ease = np.full(4, 0.25), np.full(len(_GRID), 1 / len(_GRID))
    post, step, converged = np.zeros((n, 4)), 0, False
    with single_threaded():
        while step < most and not converged:
            step += 1
            likelihood = np.zeros((n, 4, len(_GRID)))
            for c in range(4):
                tables = [_scores(hc[c], tc[c], no[:, c], base)[np.arange(n), code][:, None],
                          _scores(hc[c], tc[c], yes[:, c], _GRID)]  # fmt: skip
                for z in range(4):
                    likelihood[:, z] += tables[_SUFFICES[z, c]]
            joint = likelihood + np.log(shares)[:, None] + np.log(ease) + log_prior[:, :, None]
            joint = np.exp(joint - logsumexp(joint, axis=(1, 2), keepdims=True))
            new = joint.sum(2)
            converged = bool(np.abs(new - post).max() < tolerance)
            post = new
            shares = 0.9 * post.mean(0) + 0.025
            ease = np.maximum(joint.sum((0, 1)) / n, 1e-9)
            for c in range(4):
                w = joint[:, _SUFFICES[:, c] == 1].sum(1)
                yes[:, c] = _newton(yes[:, c], hc[c] @ w, tc[c] @ w, _GRID, _MEAN)
                out = np.zeros((n, len(base)))
                out[np.arange(n), code] = 1 - w.sum(1)
                if c < 3:
                    no[:, c] = _newton(no[:, c], hc[c] @ out, tc[c] @ out, base, 0.0)
    evidence = logsumexp(likelihood + np.log(ease), axis=2)
    return LatentClass(post, evidence - evidence.max(1, keepdims=True), yes, no, shares, ease, step, converged)


def _scores(hits: NDArray, trials: NDArray, e: NDArray, offset: NDArray) -> NDArray[np.float64]:
    """Log-likelihood of each item's responses in one condition at each offset, shape (items, offsets)."""
    eta = e[:, None] + offset
    return hits.T @ log_expit(eta) + (trials - hits).T @ log_expit(-eta)
