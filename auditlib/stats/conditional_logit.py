"""Choices among alternatives: McFadden's conditional logit with covariance by clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

NAN = float("nan")
#: scores further apart than this within a choice are a probability of 0: the estimate has no finite value
_FAR = 25.0


@dataclass(frozen=True)
class ConditionalLogit:
    """A fitted choice model.

    Attributes
    ----------
    beta : shape (k,). cov : inverse information. robust : sandwich by clusters, with the factor ``c / (c - 1)``.
    loglik, null_loglik : at the estimate, and with all coefficients 0. choices, clusters : counts.
    separated : some choices are predicted without error, coefficients grow without bound: ``loglik`` is then close to
        its limit, standard errors mean nothing.
    """

    beta: NDArray[np.float64]
    cov: NDArray[np.float64]
    robust: NDArray[np.float64]
    loglik: float
    null_loglik: float
    choices: int
    clusters: int
    separated: bool

    def se(self, robust: bool = True) -> NDArray[np.float64]:
        return np.sqrt(np.maximum(np.diag(self.robust if robust else self.cov), 0.0))


@dataclass(frozen=True)
class JointTest:
    """Test that several coefficients are 0: Wald with the covariance by clusters, and likelihood ratio."""

    df: int
    wald: float
    wald_p: float
    lr: float
    lr_p: float


def conditional_logit(
    x: ArrayLike, group: ArrayLike, chosen: ArrayLike, cluster: ArrayLike | None = None, *, most: int = 60
) -> ConditionalLogit:
    """Fit ``P(j) = exp(x_j b) / sum_i exp(x_i b)`` within each group by Newton's method.

    Parameters
    ----------
    x : shape (alternatives, k). group : shape (alternatives,), the choice an alternative belongs to.
    chosen : shape (alternatives,), bool, one true per group.
    cluster : shape (alternatives,), choices that hang together, constant within a group.

    Raises
    ------
    ValueError
        A group without one chosen alternative.
    """
    x = np.asarray(x, float)
    y = np.asarray(chosen, bool)
    _, g = np.unique(np.asarray(group), return_inverse=True)
    g = g.ravel()
    n, k = int(g.max(initial=-1)) + 1, x.shape[1]
    if (np.bincount(g[y], minlength=n) != 1).any():
        raise ValueError("each group needs exactly one chosen alternative")
    beta = np.zeros(k)
    loglik, p = _likelihood(x, g, y, beta, n)
    null = loglik
    separated = False
    for _ in range(most):
        gradient, information = _derivatives(x, g, y, p, n)
        step = np.linalg.lstsq(information, gradient, rcond=1e-10)[0]
        # half steps until the likelihood rises: it is concave
        for half in 0.5 ** np.arange(30):
            new, q = _likelihood(x, g, y, beta + half * step, n)
            if new >= loglik - 1e-12:
                break
        gain, beta, loglik, p = new - loglik, beta + half * step, new, q
        separated = _spread(x @ beta, g, n) > _FAR
        if separated or (gain < 1e-11 and np.abs(gradient).max(initial=0.0) < 1e-6):
            break
    gradient, information = _derivatives(x, g, y, p, n)
    cov = np.linalg.pinv(information, rcond=1e-12, hermitian=True)
    scores = np.zeros((n, k))
    np.add.at(scores, g, (y - p)[:, None] * x)
    code = np.arange(n)
    if cluster is not None:
        first = np.full(n, 0)
        first[g[::-1]] = np.arange(len(g))[::-1]
        _, code = np.unique(np.asarray(cluster)[first].astype(str), return_inverse=True)
    clusters = int(code.max(initial=-1)) + 1
    by = np.zeros((clusters, k))
    np.add.at(by, code.ravel(), scores)
    meat = by.T @ by * (clusters / (clusters - 1) if clusters > 1 else NAN)
    return ConditionalLogit(beta, cov, cov @ meat @ cov, loglik, null, n, clusters, separated)


def joint_test(full: ConditionalLogit, which: Sequence[int], without: ConditionalLogit) -> JointTest:
    """Test that the coefficients at ``which`` are 0; ``without`` is the fit that lacks them.

    With separation there is no Wald test; the likelihood ratio stands.
    """
    from scipy.special import chdtrc

    df = len(which)
    if not df:
        return JointTest(0, NAN, NAN, NAN, NAN)
    lr = max(0.0, 2 * (full.loglik - without.loglik))
    wald = NAN
    if not full.separated and full.clusters > df:
        b, v = full.beta[list(which)], full.robust[np.ix_(which, which)]
        wald = float(b @ np.linalg.pinv(v, hermitian=True) @ b)
    return JointTest(df, wald, float(chdtrc(df, wald)) if wald == wald else NAN, lr, float(chdtrc(df, lr)))


def score_test(
    x: ArrayLike, group: ArrayLike, chosen: ArrayLike, which: Sequence[int], cluster: ArrayLike | None = None, *,
    rng: np.random.Generator, draws: int = 2_000,
) -> float:  # fmt: skip
    """p of the test that the coefficients at ``which`` are 0, by signs of the clusters' scores (Kline and Santos 2012).

    Notes
    -----
    At the fit without these terms, each cluster has an efficient score ``s_c`` (its own score minus its projection on
    the other terms'); ``Q = S' (sum s_c s_c')^+ S`` with ``S = sum s_c``. Flipping the signs of whole clusters leaves
    the middle as it is; ``p = (1 + g) / (1 + draws)``. It holds with few clusters and rare terms, where the Wald test
    by clusters rejects too often, and needs no finite estimate of the terms.
    """
    x, y = np.asarray(x, float), np.asarray(chosen, bool)
    tested = np.zeros(x.shape[1], bool)
    tested[list(which)] = True
    _, g = np.unique(np.asarray(group), return_inverse=True)
    g = g.ravel()
    n = int(g.max(initial=-1)) + 1
    fit = conditional_logit(x[:, ~tested], group, y)
    p = _softmax(x[:, ~tested] @ fit.beta, g, n)
    _, information = _derivatives(x, g, y, p, n)
    nuisance = np.linalg.pinv(information[np.ix_(~tested, ~tested)], hermitian=True)
    scores = (y - p)[:, None] * x
    own = scores[:, tested] - scores[:, ~tested] @ nuisance @ information[np.ix_(~tested, tested)]
    _, code = np.unique(np.asarray(group if cluster is None else cluster).astype(str), return_inverse=True)
    by = np.zeros((int(code.max(initial=-1)) + 1, int(tested.sum())))
    np.add.at(by, code.ravel(), own)
    middle = np.linalg.pinv(by.T @ by, hermitian=True)
    sums = (1.0 - 2.0 * rng.integers(2, size=(draws, len(by)))) @ by
    seen = by.sum(axis=0)
    drawn = np.einsum("di,ij,dj->d", sums, middle, sums)
    return float((1 + (drawn >= seen @ middle @ seen - 1e-9).sum()) / (1 + draws))


def probabilities(x: ArrayLike, group: ArrayLike, beta: ArrayLike) -> NDArray[np.float64]:
    """Choice probability of each alternative."""
    _, g = np.unique(np.asarray(group), return_inverse=True)
    return _softmax(np.asarray(x, float) @ np.asarray(beta, float), g.ravel(), int(g.max(initial=-1)) + 1)


def _softmax(score: NDArray, g: NDArray, n: int) -> NDArray[np.float64]:
    top = np.full(n, -np.inf)
    np.maximum.at(top, g, score)
    e = np.exp(score - top[g])
    return e / np.bincount(g, weights=e, minlength=n)[g]


def _spread(score: NDArray, g: NDArray, n: int) -> float:
    """Largest distance of two scores within a choice."""
    top, low = np.full(n, -np.inf), np.full(n, np.inf)
    np.maximum.at(top, g, score)
    np.minimum.at(low, g, score)
    return float((top - low).max(initial=0.0))


def _likelihood(x: NDArray, g: NDArray, y: NDArray, beta: NDArray, n: int) -> tuple[float, NDArray[np.float64]]:
    p = _softmax(x @ beta, g, n)
    return float(np.log(np.maximum(p[y], 1e-300)).sum()), p


def _derivatives(x: NDArray, g: NDArray, y: NDArray, p: NDArray, n: int) -> tuple[NDArray, NDArray]:
    """Gradient, and information as the sum of within-group covariances of x under p."""
    mean = np.zeros((n, x.shape[1]))
    np.add.at(mean, g, p[:, None] * x)
    centred = x - mean[g]
    return x.T @ (y - p), centred.T @ (p[:, None] * centred)
