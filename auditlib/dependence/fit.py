"""Fitting: L-BFGS preconditioned by the inverse curvature, Adam as the reference, and the calibration rounds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from auditlib.dependence.curvature import Metric, curvature
from auditlib.dependence.objective import evaluate
from auditlib.dependence.problem import (
    BRIDGE_DIFFICULTY,
    BRIDGE_SLOPE,
    GATES,
    Problem,
    bounded,
    featured,
    gate,
    unpack,
)
from auditlib.dependence.thresholds import CALIBRATION, Calibration, calibrate
from auditlib.threads import single_threaded

_MEMORY = 6
#: iterations at which the curvature is taken anew; the first is needed
_REFRESH = (0, 1, 3, 8, 20)
#: how much looser the tolerance of a round is whose fit only sets thresholds
_LOOSER = 100
#: longest move of one unbounded parameter in one step
_LONGEST = 2.0


@dataclass(frozen=True)
class Fit:
    """A minimum found.

    Attributes
    ----------
    x : parameters, see :func:`auditlib.dependence.problem.unpack`. value : objective per item.
    converged : whether the objective stood still (relative change below the tolerance). iterations, evaluations : of
        the last round, of all. trace : objective after each iteration of the last round.
    thresholds : shape (2,), of image and question.
    """

    x: NDArray[np.float64]
    value: float
    converged: bool
    iterations: int
    evaluations: int
    trace: tuple[float, ...]
    thresholds: NDArray[np.float64]


def start(problem: Problem) -> NDArray[np.float64]:
    """Closed-form start: shrunk empirical logits of each item and condition, taken back through the gates, and slopes
    as the bridge draws them."""
    m = problem.subjects
    x = np.zeros(problem.size)
    tau, u, v = unpack(problem, x)
    u[:] = -0.7
    if problem.design.shape[1] > 1:
        u += BRIDGE_SLOPE.T @ problem.design[:, 1:].T
    right, drawn = np.zeros((m, 4)), np.zeros((m, 4))
    item_right, item_drawn = np.zeros((4, problem.items)), np.zeros((4, problem.items))
    for block in problem.blocks:
        h = block.hits.reshape(m, 4, -1)
        t = np.ones_like(h) if block.trials is None else block.trials.reshape(m, 4, -1)
        right += h.sum(2)
        drawn += t.sum(2)
        item_right[:, block.cut], item_drawn[:, block.cut] = h.sum(0), t.sum(0)
    mean = np.clip(right.sum(0) / np.maximum(drawn.sum(0), 1), 0.03, 0.97)
    rate = np.where(drawn > 0, right / np.maximum(drawn, 1), mean)
    tau[:] = np.clip(4 * (rate - rate.mean(0)), -1, 1)
    logits = logit((item_right + 2 * mean[:, None]) / (item_drawn + 2))
    back = np.linalg.inv(GATES)
    centre = -(back @ logit(mean))[:, None]
    v[:] = centre + np.clip(0.7 * (-(back @ logits) - centre), -2.5, 2.5)
    return x


def _direction(g: NDArray, memory: deque, metric: Metric) -> NDArray[np.float64]:
    """Two-loop recursion of L-BFGS (Nocedal 1980) on the inverse curvature."""
    d = -g
    marks = []
    for step, change, rho in reversed(memory):
        mark = rho * np.vdot(step, d)
        d -= mark * change
        marks.append(mark)
    d = metric(d)
    for (step, change, rho), mark in zip(memory, reversed(marks)):
        d += (mark - rho * np.vdot(change, d)) * step
    return d


@single_threaded()
def minimise(problem: Problem, x: NDArray | None = None, *, iterations: int = 60, tolerance: float = 1e-6) -> Fit:
    """L-BFGS from ``x`` (a closed-form start by default), its first metric the inverse curvature."""
    x = start(problem) if x is None else np.array(x, float)
    f, g = evaluate(problem, x)
    memory: deque = deque(maxlen=_MEMORY)
    trace, evaluations, still, step, metric = [f], 1, 0, 0, None
    while step < iterations and still < 2:
        if step in _REFRESH:
            metric = curvature(problem, x, metric)
        d = _direction(g, memory, metric)
        np.clip(d, -_LONGEST, _LONGEST, out=d)
        fall = float(np.vdot(g, d))
        if fall >= 0:
            memory.clear()
            d = np.clip(metric(-g), -_LONGEST, _LONGEST)
            fall = float(np.vdot(g, d))
        size = 1.0
        while True:
            move = size * d
            trial = x + move
            value, slope = evaluate(problem, trial)
            evaluations += 1
            if value <= f + 1e-4 * size * fall or size < 1e-6:
                break
            # the least of the parabola through both values and the slope, kept off either end
            size *= float(np.clip(-0.5 * size * fall / (value - f - size * fall), 0.1, 0.5))
        step += 1
        if value > f:
            break
        change = slope - g
        bend = float(np.vdot(move, change))
        if bend > 1e-12 * float(np.vdot(change, change)):
            memory.append((move, change, 1 / bend))
        still = still + 1 if f - value < tolerance * max(1.0, abs(f)) else 0
        x, f, g = trial, value, slope
        trace.append(f)
    return Fit(x, f, still >= 2, step, evaluations, tuple(trace), problem.thresholds)


@single_threaded()
def adam(problem: Problem, x: NDArray | None = None, *, epochs: int = 300, rate: float = 0.05) -> Fit:
    """The reference optimiser: Adam (Kingma and Ba 2015) with a fixed rate over abilities, residuals and the anchor.

    Unlike L-BFGS it searches for the anchor too, and it starts from items without residuals.
    """
    x = start(problem) if x is None else np.array(x, float)
    d, s, n = problem.design, problem.settings, problem.items
    m = 4 * problem.subjects
    centre = [np.vstack([np.zeros((1, 4)), b])[: d.shape[1]] for b in (BRIDGE_SLOPE, BRIDGE_DIFFICULTY)]
    at = [c.copy() for c in centre]
    for w, values in zip(at, unpack(problem, x)[1:]):
        w[0] = values.mean(1)
    state = np.concatenate([x[:m], np.zeros(8 * n), *(w.ravel() for w in at)])
    first, second = np.zeros_like(state), np.zeros_like(state)
    ridge = np.concatenate([np.zeros(m), np.full(8 * n, s.residual), np.zeros(2 * centre[0].size)]) / n
    pull = np.full(centre[0].shape, s.bridge / n)
    pull[0] = 0
    ends = m + 8 * n
    trace = []

    def items(state: NDArray) -> NDArray[np.float64]:
        w = state[ends:].reshape(2, -1, 4)
        fixed = np.concatenate([(d @ part).T.ravel() for part in w])
        return np.concatenate([state[:m], state[m:ends] + fixed])

    for t in range(1, epochs + 1):
        f, g = evaluate(problem, items(state), anchored=False)
        w = state[ends:].reshape(2, -1, 4)
        on_anchor = [d.T @ part.T + pull * (v - c) for part, v, c in zip(g[m:].reshape(2, 4, n), w, centre)]
        g = np.concatenate([g, *(part.ravel() for part in on_anchor)]) + ridge * state
        trace.append(f + 0.5 * float(ridge @ state**2) + 0.5 * float((pull * (w - centre) ** 2).sum()))
        first += 0.1 * (g - first)
        second += 0.001 * (g * g - second)
        state = state - rate * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    x = items(state)
    f, _ = evaluate(problem, x)
    return Fit(x, f, False, epochs, epochs + 1, (*trace, f), problem.thresholds)


def predicted(problem: Problem, x: NDArray) -> NDArray[np.float64]:
    """Accuracy of the pool that the model expects, mean over subjects; shape (items, 4)."""
    theta, a, b = bounded(problem, x)
    features = featured(theta)
    out = np.empty((4, problem.items))
    for block in problem.blocks:
        p = expit(features @ gate(a[:, block.cut], b[:, block.cut]).reshape(5, -1))
        out[:, block.cut] = p.mean(0).reshape(4, -1)
    if problem.settings.guess == "chance":
        out = problem.chance + (1 - problem.chance) * out
    return out.T


def fit(
    problem: Problem,
    x: NDArray | None = None,
    *,
    rounds: int = 3,
    iterations: int = 60,
    tolerance: float = 1e-6,
    calibration: Calibration = CALIBRATION,
    optimiser: str = "lbfgs",
) -> tuple[Problem, Fit]:
    """Alternate between the response fit and the thresholds of sufficiency; returns the last problem and its fit.

    Without a prior in the objective there is nothing to calibrate with, and one round is run.
    """
    if optimiser not in ("lbfgs", "adam"):
        raise ValueError(f"optimiser {optimiser!r} is neither lbfgs nor adam")
    rounds = rounds if problem.aligned else 1
    evaluations = 0
    with single_threaded():
        for turn in range(rounds):
            last = turn == rounds - 1
            if optimiser == "lbfgs":
                limit = tolerance if last else _LOOSER * tolerance
                found = minimise(problem, x, iterations=iterations, tolerance=limit)
            else:
                found = adam(problem, x)
            x, evaluations = found.x, evaluations + found.evaluations
            if not last:
                at = calibrate(predicted(problem, x), problem.chance, problem.target.T, problem.weight, calibration,
                               before=problem.thresholds, delta=problem.settings.delta)  # fmt: skip
                problem = replace(problem, thresholds=at)
    return problem, replace(found, evaluations=evaluations)
