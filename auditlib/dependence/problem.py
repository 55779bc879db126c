"""Responses, prior and strengths in the layout that the fit works on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

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


@dataclass(frozen=True)
class Settings:
    """Strengths and bounds; see the objective in :func:`auditlib.dependence.objective.evaluate`.

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


class Workspace:
    """Arrays that are used again and again: page faults of fresh ones would cost more than the arithmetic.

    What a name holds is valid until the next request for that name. Not for several threads at once.
    """

    def __init__(self) -> None:
        self._held: dict[str, NDArray] = {}

    def __call__(self, name: str, *shape: int, dtype: type = float) -> NDArray:
        """An array of this shape with anything in it."""
        size = prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size, dtype)
        return held[:size].reshape(shape)


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
    def work(self) -> Workspace:
        """Arrays of the evaluations of this problem."""
        return Workspace()

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


def gate(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Coefficients of (theta, 1) in every condition's logit, shape (5, 4, items)."""
    out = np.empty((5, 4, a.shape[1]))
    np.multiply(GATES.T[:, :, None], a[:, None, :], out=out[:4])
    out[4] = -(GATES @ b)
    return out


def featured(theta: NDArray) -> NDArray[np.float64]:
    """Abilities and a column of ones, shape (subjects, 5)."""
    out = np.ones((len(theta), 5))
    out[:, :4] = theta
    return out
