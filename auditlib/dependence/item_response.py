"""Item response models without gates, for comparison: Rasch, two-parameter, exploratory MIRT, M2IRT."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from auditlib.dependence.problem import GATES
from auditlib.threads import single_threaded


@dataclass(frozen=True)
class Unidimensional:
    """Logit ``a theta + d``: abilities (subjects,), slopes and intercepts (items,); ``converged`` as of Newton."""

    theta: NDArray[np.float64]
    a: NDArray[np.float64]
    d: NDArray[np.float64]
    converged: bool

    def information(self, theta: ArrayLike) -> NDArray[np.float64]:
        """Fisher information ``a^2 p (1 - p)`` of each item at abilities (...,), shape (..., items)."""
        p = expit(np.asarray(theta, float)[..., None] * self.a + self.d)
        return self.a**2 * p * (1 - p)


@dataclass(frozen=True)
class Compensatory:
    """Logit ``a . theta + d``: abilities (subjects, d), slopes (items, d), intercepts (items,)."""

    theta: NDArray[np.float64]
    a: NDArray[np.float64]
    d: NDArray[np.float64]
    converged: bool


@dataclass(frozen=True)
class Product:
    """M2IRT: abilities (subjects, 4), slopes and intercepts (items, 4)."""

    theta: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    converged: bool

    @property
    def probability(self) -> NDArray[np.float64]:
        """Shape (subjects, items, 4)."""
        return expit((self.theta @ GATES.T)[:, None] * (self.a @ GATES.T) - self.b @ GATES.T)


def _newton_items(hits, trials, theta, a, d, ridge, centre):
    """One damped Newton step of every item's slopes (items, k) and intercept, abilities (subjects, k) held fixed."""
    x = np.column_stack([theta, np.ones(len(theta))])
    beta = np.column_stack([a, d])
    p = expit(x @ beta.T)
    w = trials * p * (1 - p)
    slope = (hits - trials * p).T @ x - ridge * (beta - centre)
    h = np.einsum("mi,mk,ml->ikl", w, x, x, optimize=True) + np.diag(ridge)
    step = np.linalg.solve(h, slope[:, :, None])[:, :, 0]
    beta = beta + np.clip(step, -1, 1)
    return beta[:, :-1], beta[:, -1], float(np.abs(step).max())


def _newton_subjects(hits, trials, theta, a, d):
    """One damped Newton step of every subject's abilities under N(0, I)."""
    p = expit(theta @ a.T + d)
    w = trials * p * (1 - p)
    slope = (hits - trials * p) @ a - theta
    h = np.einsum("mi,ik,il->mkl", w, a, a, optimize=True) + np.eye(a.shape[1])
    return theta + np.clip(np.linalg.solve(h, slope[:, :, None])[:, :, 0], -1, 1)


@single_threaded()
def fit_two_parameter(
    hits: ArrayLike, trials: ArrayLike, *, slopes: bool = True, most: int = 100, tolerance: float = 1e-4
) -> Unidimensional:
    """Joint maximum a posteriori fit by alternating Newton steps; ``slopes=False`` holds them at 1 (Rasch).

    Parameters
    ----------
    hits, trials : shape (subjects, items)

    Notes
    -----
    Priors: ability N(0, 1), slope N(1, 1) kept in 0.01..4, intercept N(0, 10) kept in -6..6, so that an item that all
    or none solve stays finite. Abilities are centred after each step, and scaled where slopes are free, with items
    moved to match.
    """
    h, t = np.asarray(hits, float), np.asarray(trials, float)
    drawn = np.maximum(t.sum(0), 1e-9)
    mean = h.sum(1) / np.maximum(t.sum(1), 1)
    theta = (mean - mean.mean()) / max(mean.std(), 1e-9)
    a, d = np.ones(h.shape[1]), np.log((h.sum(0) + 0.5) / (drawn - h.sum(0) + 0.5))
    converged = False
    for _ in range(most):
        before = np.concatenate([theta, a, d])
        if slopes:
            new, d, _ = _newton_items(h, t, theta[:, None], a[:, None], d, np.array([1.0, 0.1]), np.array([1.0, 0]))
            a, d = np.clip(new[:, 0], 0.01, 4), np.clip(d, -6, 6)
        else:
            p = expit(theta[:, None] + d)
            step = ((h - t * p).sum(0) - 0.1 * d) / ((t * p * (1 - p)).sum(0) + 0.1)
            d = np.clip(d + np.clip(step, -1, 1), -6, 6)
        theta = _newton_subjects(h, t, theta[:, None], a[:, None], d)[:, 0]
        middle, sd = theta.mean(), max(theta.std(), 1e-9) if slopes else 1.0
        theta, a, d = (theta - middle) / sd, a * sd, d + a * middle
        if np.abs(np.concatenate([theta, a, d]) - before).max() < tolerance:
            converged = True
            break
    return Unidimensional(theta, a, d, converged)


@single_threaded()
def fit_mirt(
    hits: ArrayLike, trials: ArrayLike, dimensions: int, *, most: int = 60, tolerance: float = 1e-3
) -> Compensatory:
    """Exploratory compensatory model, joint maximum a posteriori by alternating Newton steps from a truncated SVD.

    Parameters
    ----------
    hits, trials : shape (subjects, columns)

    Notes
    -----
    Priors: abilities N(0, I), slopes N(0, 1), intercepts N(0, 10). Rotation is left as it falls; predictions do not
    depend on it.
    """
    h, t = np.asarray(hits, float), np.asarray(trials, float)
    if not 1 <= dimensions < len(h):
        raise ValueError(f"{dimensions} dimensions for {len(h)} subjects")
    drawn = t.sum(0)
    rate = (h.sum(0) + 0.5) / (drawn + 1)
    u, s, _ = np.linalg.svd(np.where(t > 0, h - t * rate, 0), full_matrices=False)
    theta = u[:, :dimensions] * np.sqrt(len(h)) * np.sign(s[:dimensions])
    a, d = np.zeros((h.shape[1], dimensions)), np.log(rate / (1 - rate))
    ridge = np.append(np.ones(dimensions), 0.1)
    converged = False
    for _ in range(most):
        a, d, moved = _newton_items(h, t, theta, a, d, ridge, np.zeros(dimensions + 1))
        before = theta
        theta = _newton_subjects(h, t, theta, a, d)
        if max(moved, float(np.abs(theta - before).max())) < tolerance:
            converged = True
            break
    return Compensatory(theta, a, d, converged)


def m2irt_loss(x: NDArray, hits: NDArray, trials: NDArray, residual: float) -> tuple[float, NDArray[np.float64]]:
    """Negative log posterior and its gradient; ``x`` holds abilities, log-odds of slopes / 3, and intercepts."""
    m, n, _ = hits.shape
    theta, u, b = x[: 4 * m].reshape(m, 4), x[4 * m : 4 * m + 4 * n].reshape(n, 4), x[4 * m + 4 * n :].reshape(n, 4)
    a = 3 * expit(u)
    ability, slope = theta @ GATES.T, a @ GATES.T
    eta = ability[:, None] * slope - b @ GATES.T
    f = -float(np.vdot(hits, log_expit(eta)) + np.vdot(trials - hits, log_expit(-eta)))
    r = trials * expit(eta) - hits
    g_theta = (r * slope).sum(1) @ GATES + theta
    g_a = (r * ability[:, None]).sum(0) @ GATES
    du, db = u - u.mean(0), b - b.mean(0)
    f += 0.5 * float(np.vdot(theta, theta)) + 0.5 * residual * float(np.vdot(du, du) + np.vdot(db, db))
    g_u = g_a * a * (1 - a / 3) + residual * du
    g_b = -r.sum(0) @ GATES + residual * db
    return f, np.concatenate([g_theta.ravel(), g_u.ravel(), g_b.ravel()])


@single_threaded()
def fit_m2irt(hits: ArrayLike, trials: ArrayLike, *, residual: float = 0.3, iterations: int = 150) -> Product:
    """M2IRT under the same ridges as the gated model, by L-BFGS.

    Parameters
    ----------
    hits, trials : shape (subjects, items, 4)
    """
    from scipy.optimize import minimize

    h, t = np.asarray(hits, float), np.asarray(trials, float)
    m, n, _ = h.shape
    mean = np.clip(h.sum(0) + 1, 0.5, None) / (t.sum(0) + 2)
    b = -np.log(mean / (1 - mean)) @ np.linalg.inv(GATES).T
    x = np.concatenate([np.zeros(4 * m), np.full(4 * n, -1.5), b.ravel()])
    x[: 4 * m] = 0.1 * (h.sum(1) / np.maximum(t.sum(1), 1) @ np.linalg.inv(GATES).T).ravel()
    found = minimize(m2irt_loss, x, (h, t, residual), jac=True, method="L-BFGS-B",
                     options={"maxiter": iterations, "maxcor": 10})  # fmt: skip
    theta, u, b = np.split(found.x, [4 * m, 4 * m + 4 * n])
    return Product(theta.reshape(m, 4), 3 * expit(u.reshape(n, 4)), b.reshape(n, 4), bool(found.success))
