"""The penalised likelihood of four-condition responses: value and gradient, item block by block.

A response is right with probability ``logistic(sum_k G_ck (a_ik theta_mk - b_ik))``, coordinates base, visual, textual
and joint. The structural anchor (an intercept and a bridge from the prior to slopes and difficulties) enters as a ridge
regression that is solved exactly inside each evaluation, so only abilities and item parameters are searched for.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditlib.dependence.profile import DELTA, KAPPA, marginals

#: which coordinates (base, visual, textual, joint) act in which condition (none, image, question, both)
GATES = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]], float)
#: what the bridge is drawn to: rows R, V, T, S, columns the coordinates; slopes, then difficulties
BRIDGE_SLOPE = np.array([[0, 0.8, 0.8, 0], [0, 0.8, -0.8, 0], [0, -0.8, 0.8, 0], [0, -0.4, -0.4, 0.8]])
BRIDGE_DIFFICULTY = np.array([[-0.3, -1, -1, 0], [0, -1, 1, 0], [0, 1, -1, 0], [0.3, 0.6, 0.6, -1]])
#: cells (subject x item) of one condition per block: the work arrays of a block stay in cache
_BLOCK = 8_192
#: subjects whose likelihoods are multiplied before one logarithm is taken; bounded logits keep the product finite
_GROUP = 4


@dataclass(frozen=True)
class Settings:
    """Strengths and bounds; see the objective in :func:`evaluate`.

    Attributes
    ----------
    align : pseudo-observations that the prior profile counts for, per item.
    residual, ability, bridge : ridge on item residuals, on abilities, on the bridge.
    kappa, delta : softness of sufficiency; least gain to divide by.
    theta_max, a_max, b_max : bounds of ability, slope and difficulty.
    use_confidence, use_bridge, use_align : False leaves the part out (ablations).
    guess : ``logistic`` or ``chance`` (accuracy does not fall below 1/K).
    """

    align: float = 3.0
    residual: float = 0.3
    ability: float = 1.0
    bridge: float = 2.0
    kappa: float = KAPPA
    delta: float = DELTA
    theta_max: float = 3.0
    a_max: float = 3.0
    b_max: float = 5.0
    use_confidence: bool = True
    use_bridge: bool = True
    use_align: bool = True
    guess: str = "logistic"


#: the defaults
SETTINGS = Settings()


@dataclass(frozen=True)
class Block:
    """Responses to a run of items: ``hits``, ``misses`` and ``trials`` of shape (subjects, 4 * items in it).

    ``trials`` is None where every cell holds one draw; ``absent`` marks cells without one, None where there is none.
    ``single`` says that no cell holds more than one draw.
    """

    cut: slice
    hits: NDArray[np.float64]
    misses: NDArray[np.float64]
    trials: NDArray[np.float64] | None
    absent: NDArray[np.bool_] | None
    single: bool


@dataclass(frozen=True)
class Problem:
    """Responses and prior in the layout of the kernel.

    Attributes
    ----------
    blocks : of items. subjects, items : counts. chance : shape (items,).
    design : shape (items, 1 or 5), intercept and confidence-weighted prior. weight : shape (items,), of the alignment.
    target : shape (2, items), prior probability that the image, the question suffices.
    thresholds : shape (2,).
    """

    blocks: tuple[Block, ...]
    subjects: int
    items: int
    chance: NDArray[np.float64]
    design: NDArray[np.float64]
    weight: NDArray[np.float64]
    target: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    settings: Settings = SETTINGS

    @property
    def aligned(self) -> bool:
        """Whether the prior's profile enters."""
        return bool(self.settings.use_align and self.weight.any())

    @cached_property
    def ridge(self) -> NDArray[np.float64]:
        """Inverse of the normal matrix of the bridge, shape (1 or 5, 1 or 5)."""
        penalty = np.diag([0.0] + [self.settings.bridge] * (self.design.shape[1] - 1))
        return np.linalg.inv(self.settings.residual * (self.design.T @ self.design) + penalty)

    @property
    def size(self) -> int:
        """Length of the parameter vector: abilities (subjects x 4), slopes (4 x items), difficulties (4 x items)."""
        return 4 * self.subjects + 8 * self.items


def make_problem(
    hits: NDArray,
    trials: NDArray,
    chance: NDArray,
    profile: NDArray,
    weight: NDArray,
    *,
    thresholds: NDArray | None = None,
    settings: Settings = SETTINGS,
) -> Problem:
    """Lay out responses (subjects, items, 4), and a prior profile (items, 4) with weights (items,)."""
    m, n, _ = hits.shape
    informed = bool((weight > 0).any())
    w = np.asarray(weight, float) if settings.use_confidence else np.full(n, float(informed))
    s = w[:, None] * (profile - 0.25)
    design = np.column_stack([np.ones(n), s]) if informed and settings.use_bridge else np.ones((n, 1))
    width = max(16, _BLOCK // m)
    blocks = []
    for start in range(0, n, width):
        cut = slice(start, min(n, start + width))
        h = np.ascontiguousarray(hits[:, cut].transpose(0, 2, 1), dtype=float).reshape(m, -1)
        t = np.ascontiguousarray(trials[:, cut].transpose(0, 2, 1), dtype=float).reshape(m, -1)
        plain = bool((t == 1).all())
        absent = t == 0
        blocks.append(
            Block(cut, h, t - h, None if plain else t, absent if absent.any() else None, bool((t <= 1).all()))
        )
    align = settings.align * w if settings.use_align and informed else np.zeros(n)
    start = np.full(2, 0.5) if thresholds is None else np.asarray(thresholds, float)
    target = np.ascontiguousarray(marginals(profile).T)
    return Problem(tuple(blocks), m, n, np.asarray(chance, float), design, align, target, start, settings)


def unpack(problem: Problem, x: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Views on unbounded abilities (subjects, 4), slopes (4, items) and difficulties (4, items)."""
    m, n = 4 * problem.subjects, 4 * problem.items
    return x[:m].reshape(-1, 4), x[m : m + n].reshape(4, -1), x[m + n :].reshape(4, -1)


def bounded(problem: Problem, x: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Abilities (subjects, 4), slopes (4, items) and difficulties (4, items) on the scale of the model."""
    s = problem.settings
    tau, u, v = unpack(problem, x)
    return s.theta_max * np.tanh(tau / s.theta_max), s.a_max * expit(u), s.b_max * np.tanh(v / s.b_max)


def anchor(problem: Problem, values: NDArray, template: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Best intercept and bridge for item parameters (4, items): coefficients (1 or 5, 4) and residuals (4, items)."""
    s, x = problem.settings, problem.design
    right = s.residual * (values @ x).T
    right[1:] += s.bridge * template[: len(right) - 1]
    w = problem.ridge @ right
    return w, values - w.T @ x.T


def _anchor_terms(problem: Problem, values: NDArray, template: NDArray) -> tuple[float, NDArray[np.float64]]:
    """Penalty of the residuals and of the bridge, and its gradient (the coefficients are at their optimum)."""
    s = problem.settings
    w, left = anchor(problem, values, template)
    f = 0.5 * s.residual * np.vdot(left, left)
    if len(w) > 1:
        f += 0.5 * s.bridge * np.sum((w[1:] - template) ** 2)
    return f, s.residual * left


def gate(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Coefficients of (theta, 1) in every condition's logit, shape (5, 4, items)."""
    out = np.empty((5, 4, a.shape[1]))
    np.multiply(GATES.T[:, :, None], a[:, None, :], out=out[:4])
    out[4] = -(GATES @ b)
    return out


def _log_total(d: NDArray, block: Block, width: int) -> float:
    """Sum of trials x log d; one logarithm per product of 4 conditions x 4 subjects where cells hold one draw."""
    if not block.single:
        return float(np.vdot(block.trials, np.log(d)))
    if block.absent is not None:
        d = np.where(block.absent, 1.0, d)
    c = d.reshape(-1, 4, width)
    each = c[:, 0] * c[:, 1]
    each *= c[:, 2]
    each *= c[:, 3]
    whole = len(each) // _GROUP * _GROUP
    total = float(np.log(each[whole:]).sum())
    if whole:
        part = each[0:whole:_GROUP] * each[1:whole:_GROUP]
        for j in range(2, _GROUP):
            part *= each[j:whole:_GROUP]
        total += float(np.log(part).sum())
    return total


def align_terms(
    problem: Problem, q: NDArray, cut: slice
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Divergence of the profile from the prior on a block: value, d/dq (4, B), and for the curvature the logits'
    derivatives (2, 4, B) and weights (2, B)."""
    s = problem.settings
    g, w, target = problem.chance[cut], problem.weight[cut], problem.target[:, cut]
    gain = q[3] - g
    room = gain > s.delta
    gain = np.where(room, gain, s.delta)
    rel = (q[1:3] - g) / gain
    logit = (rel - problem.thresholds[:, None]) / s.kappa
    # one exponential for the softplus and for its derivative
    small = np.exp(-np.abs(logit))
    softplus = np.maximum(logit, 0) + np.log1p(small)
    f = float((w * (softplus - target * logit)).sum())
    suffices = np.where(logit > 0, 1, small) / (1 + small)
    slope = np.zeros((2, 4, len(g)))
    slope[0, 1] = slope[1, 2] = 1 / (gain * s.kappa)
    slope[:, 3] = np.where(room, -rel / (gain * s.kappa), 0)
    dq = ((w * (suffices - target))[:, None] * slope).sum(0)
    return f, dq, slope, w * suffices * (1 - suffices)


def evaluate(problem: Problem, x: NDArray, *, anchored: bool = True) -> tuple[float, NDArray[np.float64]]:
    """The objective per item and its gradient; without the anchor's ridge where ``anchored`` is False.

    Notes
    -----
    ``(1/I) { -log L + align sum_i w_i KL(prior_i, profile_i) + residual/2 (|alpha|^2 + |beta|^2)
    + ability/2 |tau|^2 + bridge/2 (|B_a - B_a0|^2 + |B_b - B_b0|^2) }``, the divergence up to the prior's entropy, with
    alpha, beta what the intercepts and bridges leave of slopes and difficulties, both at their best values.
    """
    s, m = problem.settings, problem.subjects
    tau, u, v = unpack(problem, x)
    theta, a, b = bounded(problem, x)
    features = np.column_stack([theta, np.ones(m)])
    grad = np.empty_like(x)
    g_tau, g_u, g_v = unpack(problem, grad)
    g_theta = np.zeros((m, 5))
    f = 0.0
    fused = compiled() if s.guess != "chance" else None
    for block in problem.blocks:
        cut = block.cut
        coefficients = gate(a[:, cut], b[:, cut]).reshape(5, -1)
        eta = features @ coefficients
        if fused:
            value, r = _compiled_cells(problem, block, eta, fused)
        else:
            value, r = _cells(problem, block, eta)
        f += value
        back = (features.T @ r).reshape(5, 4, -1)
        g_u[:, cut] = (back[:4] * GATES.T[:, :, None]).sum(1)
        g_v[:, cut] = -(GATES.T @ back[4])
        g_theta += r @ coefficients.T
    g_u *= a * (1 - a / s.a_max)
    g_v *= 1 - (b / s.b_max) ** 2
    np.multiply(g_theta[:, :4], 1 - (theta / s.theta_max) ** 2, out=g_tau)
    g_tau += s.ability * tau
    f += 0.5 * s.ability * np.vdot(tau, tau)
    for values, slot, template in ((u, g_u, BRIDGE_SLOPE), (v, g_v, BRIDGE_DIFFICULTY)) if anchored else ():
        value, left = _anchor_terms(problem, values, template)
        f += value
        slot += left
    grad /= problem.items
    return float(f) / problem.items, grad


def compiled() -> tuple | None:
    """The compiled passes, or None where numba is absent or the environment's AUDITLIB_NO_NUMBA is 1."""
    if os.environ.get("AUDITLIB_NO_NUMBA") == "1" or not _has_numba():
        return None
    from auditlib.dependence import kernel

    return kernel.forward, kernel.backward


@cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def _cells(problem: Problem, block: Block, eta: NDArray) -> tuple[float, NDArray[np.float64]]:
    """Loss and divergence of a block and their derivative by the logits, which are overwritten."""
    s, width = problem.settings, block.cut.stop - block.cut.start
    p = np.negative(eta)
    np.exp(p, out=p)
    p += 1
    if s.guess == "chance":
        f, r, p = _with_chance(problem, block, eta, np.reciprocal(p))
    else:
        f = float(np.vdot(block.misses, eta)) + _log_total(p, block, width)
        np.reciprocal(p, out=p)
        r = p - block.hits if block.trials is None else p * block.trials - block.hits
    if problem.aligned:
        rise = 1 - np.tile(problem.chance[block.cut], 4) if s.guess == "chance" else 1.0
        q = p.mean(0)
        q = q if s.guess != "chance" else 1 - rise * (1 - q)
        value, dq, _, _ = align_terms(problem, q.reshape(4, -1), block.cut)
        f += value
        np.multiply(p, np.subtract(1, p, out=eta), out=eta)
        eta *= dq.ravel() * rise / problem.subjects
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
        value, by_mean, _, _ = align_terms(problem, dq.reshape(4, -1) / m, block.cut)
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
