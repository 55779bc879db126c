"""The penalised likelihood of four-condition responses: value and gradient, item block by block.

A response is right with probability ``logistic(sum_k G_ck (a_ik theta_mk - b_ik))``, coordinates base, visual, textual
and joint. The structural anchor (an intercept and a bridge from the prior to slopes and difficulties) enters as a ridge
regression that is solved exactly inside each evaluation, so only abilities and item parameters are searched for.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache

import numpy as np
from numpy.typing import NDArray

from auditlib.dependence.problem import (
    BRIDGE_DIFFICULTY,
    BRIDGE_SLOPE,
    GATES,
    Block,
    Problem,
    Workspace,
    bounded,
    featured,
    gate,
    unpack,
)

#: subjects whose likelihoods are multiplied before one logarithm is taken; bounded logits keep the product finite
_GROUP = 4
#: what the bridges are drawn to, slopes beside difficulties
_TEMPLATE = np.hstack([BRIDGE_SLOPE, BRIDGE_DIFFICULTY])


def anchor(problem: Problem, values: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Best intercepts and bridges for slopes over difficulties (8, items): coefficients (1 or 5, 8), residuals."""
    s, x = problem.settings, problem.design
    right = s.residual * (values @ x).T
    right[1:] += s.bridge * _TEMPLATE[: len(right) - 1]
    w = problem.ridge @ right
    return w, values - w.T @ x.T


def _anchor_terms(problem: Problem, values: NDArray) -> tuple[float, NDArray[np.float64]]:
    """Penalty of the residuals and of the bridges, and its gradient (the coefficients are at their optimum)."""
    s = problem.settings
    w, left = anchor(problem, values)
    f = 0.5 * s.residual * np.vdot(left, left)
    if len(w) > 1:
        f += 0.5 * s.bridge * np.sum((w[1:] - _TEMPLATE) ** 2)
    left *= s.residual
    return f, left


def _log_total(d: NDArray, block: Block, width: int, work: Workspace) -> float:
    """Sum of trials x log d; one logarithm per product of 4 conditions x 4 subjects where cells hold one draw."""
    if not block.single:
        return float(np.vdot(block.trials, np.log(d)))
    if block.absent is not None:
        d = np.where(block.absent, 1.0, d)
    c = d.reshape(-1, 4, width)
    each = np.multiply(c[:, 0], c[:, 1], out=work("each", len(c), width))
    each *= c[:, 2]
    each *= c[:, 3]
    whole = len(each) // _GROUP * _GROUP
    total = float(np.log(each[whole:]).sum())
    if whole:
        part = each[0:whole:_GROUP]
        for j in range(1, _GROUP):
            part *= each[j:whole:_GROUP]
        total += float(np.log(part).sum())
    return total


def sufficiency_logits(
    problem: Problem, q: NDArray, cut: slice
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Logits of image's and question's sufficiency from accuracies (4, B), and their derivatives.

    Returns
    -------
    logit : shape (2, B). by_view : shape (B,), by the view's own accuracy. by_full : shape (2, B), by the full item's.
    """
    s, g = problem.settings, problem.chance[cut]
    gain = q[3] - g
    room = gain > s.delta
    by_view = 1 / (s.kappa * np.where(room, gain, s.delta))
    scaled = (q[1:3] - g) * by_view
    return scaled - problem.thresholds[:, None] / s.kappa, by_view, scaled * (room * by_view * -s.kappa)


def align_terms(problem: Problem, q: NDArray, cut: slice) -> tuple[float, NDArray[np.float64]]:
    """Divergence of the profile from the prior on a block, and its derivative by accuracies (4, B)."""
    w, target = problem.weight[cut], problem.target[:, cut]
    logit, by_view, by_full = sufficiency_logits(problem, q, cut)
    # one exponential for the softplus and for its derivative
    small = np.exp(-np.abs(logit))
    f = float(np.vdot(w, (np.maximum(logit, 0) + np.log1p(small) - target * logit).sum(0)))
    slope = (np.where(logit > 0, 1, small) / (1 + small) - target) * w
    dq = np.zeros((4, len(w)))
    np.multiply(slope, by_view, out=dq[1:3])
    slope *= by_full
    np.add(slope[0], slope[1], out=dq[3])
    return f, dq


def evaluate(problem: Problem, x: NDArray, *, anchored: bool = True) -> tuple[float, NDArray[np.float64]]:
    """The objective per item and its gradient; without the anchor's ridge where ``anchored`` is False.

    Notes
    -----
    ``(1/I) { -log L + align sum_i w_i KL(prior_i, profile_i) + residual/2 (|alpha|^2 + |beta|^2)
    + ability/2 |tau|^2 + bridge/2 (|B_a - B_a0|^2 + |B_b - B_b0|^2) }``, the divergence up to the prior's entropy, with
    alpha, beta what the intercepts and bridges leave of slopes and difficulties, both at their best values.
    """
    s, m, work = problem.settings, problem.subjects, problem.work
    tau, _, _ = unpack(problem, x)
    theta, a, b = bounded(problem, x)
    features = featured(theta)
    grad = np.empty_like(x)
    g_tau, g_u, g_v = unpack(problem, grad)
    g_theta = np.zeros((m, 5))
    f = 0.0
    fused = compiled() if s.guess != "chance" else None
    for block in problem.blocks:
        cut = block.cut
        coefficients = gate(a[:, cut], b[:, cut]).reshape(5, -1)
        eta = np.matmul(features, coefficients, out=work("eta", *block.hits.shape))
        if fused:
            value, r = _compiled_cells(problem, block, eta, fused)
        else:
            value, r = _cells(problem, block, eta)
        f += value
        back = (features.T @ r).reshape(5, 4, -1)
        back[:4] *= GATES.T[:, :, None]
        np.add.reduce(back[:4], axis=1, out=g_u[:, cut])
        np.matmul(-GATES.T, back[4], out=g_v[:, cut])
        g_theta += r @ coefficients.T
    g_u *= a * (1 - a / s.a_max)
    g_v *= 1 - (b / s.b_max) ** 2
    np.multiply(g_theta[:, :4], 1 - (theta / s.theta_max) ** 2, out=g_tau)
    g_tau += s.ability * tau
    f += 0.5 * s.ability * np.vdot(tau, tau)
    if anchored:
        value, left = _anchor_terms(problem, x[4 * m :].reshape(8, -1))
        f += value
        grad[4 * m :] += left.ravel()
    grad /= problem.items
    return float(f) / problem.items, grad


def compiled() -> tuple | None:
    """The compiled passes, or None where numba is absent or the environment's AUDITLIB_NO_NUMBA is 1."""
    if not _has_numba() or os.environ.get("AUDITLIB_NO_NUMBA") == "1":
        return None
    from auditlib.dependence import kernel

    return kernel.forward, kernel.backward


@cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def _cells(problem: Problem, block: Block, eta: NDArray) -> tuple[float, NDArray[np.float64]]:
    """Loss and divergence of a block and their derivative by the logits, which are overwritten."""
    s, width, work = problem.settings, block.cut.stop - block.cut.start, problem.work
    p = np.negative(eta, out=work("p", *eta.shape))
    np.exp(p, out=p)
    p += 1
    if s.guess == "chance":
        f, r, p = _with_chance(problem, block, eta, np.reciprocal(p))
    else:
        f = float(np.vdot(block.misses, eta)) + _log_total(p, block, width, work)
        np.reciprocal(p, out=p)
        r = work("r", *eta.shape)
        if block.trials is None:
            np.subtract(p, block.hits, out=r)
        else:
            np.multiply(p, block.trials, out=r)
            r -= block.hits
    if problem.aligned:
        rise = 1 - np.tile(problem.chance[block.cut], 4) if s.guess == "chance" else 1.0
        q = np.add.reduce(p, axis=0) / problem.subjects
        q = q if s.guess != "chance" else 1 - rise * (1 - q)
        value, dq = align_terms(problem, q.reshape(4, -1), block.cut)
        f += value
        np.subtract(1, p, out=eta)
        eta *= p
        eta *= dq.ravel() * (rise / problem.subjects)
        r += eta
    return f, r


def _compiled_cells(problem: Problem, block: Block, eta: NDArray, passes: tuple) -> tuple[float, NDArray[np.float64]]:
    """As :func:`_cells` for the logistic model, by the compiled passes."""
    forward, backward = passes
    m, plain = problem.subjects, block.trials is None
    trials = block.hits if plain else block.trials
    dq = np.empty(eta.shape[1])
    f = float(np.vdot(block.misses, eta)) + forward(eta, trials, plain, block.single, dq)
    if problem.aligned:
        value, by_mean = align_terms(problem, dq.reshape(4, -1) / m, block.cut)
        f += value
        dq = by_mean.ravel() / m
    else:
        dq[:] = 0
    backward(eta, block.hits, trials, plain, dq)
    return f, eta


def _with_chance(
    problem: Problem, block: Block, eta: NDArray, p: NDArray
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Loss, derivative by the logit, and logistic part where accuracy is ``g + (1 - g) p``."""
    g = np.tile(problem.chance[block.cut], 4)
    right = g + (1 - g) * p
    f = -float(np.vdot(block.hits, np.log(right)))
    f += float(np.vdot(block.misses, np.logaddexp(0, eta) - np.log1p(-g)))
    return f, block.misses * p - block.hits * (1 - g) * p * (1 - p) / right, p
