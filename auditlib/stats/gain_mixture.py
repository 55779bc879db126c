"""Model-based share of items with small gain: a mixture with model effects, guessing floor and abstentions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from auditlib.stats.gain_kernel import Floats
from auditlib.stats.intervals import Interval, no_interval, percentile

#: nodes of the chance that a model of the population is right
NODES = np.linspace(0, 1, 41)
#: items that the law of the whole pool counts for in the law of the items with one number of options
SHARED = 50.0
_LOGITS = np.linspace(-9, 9, 181)


@dataclass(frozen=True)
class GainMixture:
    """A fitted mixture.

    ``share`` is of items with \\|gain\\| <= margin; ``posterior`` has each item's probability of that. ``law`` holds
    the weights of (chance with the image, chance without) on :data:`NODES`, shape (41, 41). ``interval`` resamples
    items and models, and holds under the model only.
    """

    share: float
    margin: float
    interval: Interval
    posterior: Floats = field(repr=False)
    law: Floats = field(repr=False)
    log_likelihood: float = float("nan")

    def as_row(self) -> dict[str, Any]:
        return {"estimate": self.share, "margin": self.margin, "kind": "model-based"} | self.interval.as_row()


def fit_gain_mixture(
    full: ArrayLike,
    blind: ArrayLike,
    *,
    options: ArrayLike | None = None,
    abstained_full: ArrayLike | None = None,
    abstained_blind: ArrayLike | None = None,
    margin: float = 0.1,
    draws: int = 0,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> GainMixture:
    """Fit the law of items' chances with and without the image.

    Parameters
    ----------
    full, blind : 0/1 arrays, shape (items, models)
    options : shape (items,), optional
        Options shown; NaN for open answers. The guessing floor is one over it, 0 where it is unknown.
    abstained_full, abstained_blind : boolean, shape (items, models), optional
        Replies without an answer, which are wrong whatever the item.
    margin, level : float
    draws : int
        Bootstrap refits, each on items and models drawn anew, for the interval; 0 for none.
    rng : numpy Generator
        Needed when ``draws`` > 0.

    Returns
    -------
    GainMixture

    Raises
    ------
    ValueError
        Arrays of different shapes or with values other than 0 and 1; ``draws`` without ``rng``.

    Notes
    -----
    Model m is right on an item of ease t with chance ``(1 - a_m) (1/k + (1 - 1/k) logistic(t + e_m))``: a_m is its rate
    of abstention in that run, e_m its ability there, found by matching its accuracy. An item is named by the mean of
    that chance over the pool's models, on a grid that both runs share, so that no gain is the diagonal; items below
    the floor mislead all models alike. Given the item, the two counts of right models are independent
    Poisson-binomial. The law over the grid is fitted by EM on the tables of counts, one for each number of options,
    drawn to the whole pool's law as if by 50 items, from a start with half its weight on the diagonal.
    """
    f, b = np.asarray(full), np.asarray(blind)
    if f.ndim != 2 or f.shape != b.shape or not f.size:
        raise ValueError("two arrays of hits of one shape (items, models) are needed")
    if any(((h != 0) & (h != 1)).any() for h in (f, b)):
        raise ValueError("hits must be 0 or 1: one draw of each model")
    f, b = (h.astype(np.int64) for h in (f, b))
    if draws and rng is None:
        raise ValueError("bootstrap draws need an rng")
    floors, group = np.unique(_floor(options, len(f)), return_inverse=True)
    silent = [None if a is None else np.asarray(a, bool) for a in (abstained_full, abstained_blind)]
    fit = _fit(f, b, silent, floors, group, rounds=(60, 40, 40, 60))
    inside = band(margin)
    value = np.array([float((law * inside).sum()) for law in fit.laws])
    weight = np.bincount(group, minlength=len(floors)) / len(f)
    by_cell = [_posterior(law, *k, inside) for law, k in zip(fit.laws, fit.kernels)]
    right, blindly = f.sum(axis=1), b.sum(axis=1)
    posterior = np.empty(len(f))
    for g, cell in enumerate(by_cell):
        rows = group == g
        posterior[rows] = cell[right[rows], blindly[rows]]
    interval = no_interval("no bootstrap draws", level)
    if draws:
        shares = [_again(f, b, silent, floors, group, fit, inside, rng) for _ in range(draws)]
        interval = percentile(shares, level, "model-based bootstrap of items and models")
    law = sum(w * x for w, x in zip(weight, fit.laws))
    return GainMixture(float(weight @ value), margin, interval, posterior, law, fit.log_likelihood)


def band(margin: float) -> Floats:
    """Weight of every pair of nodes in the band: 1 inside, 1/2 on its edges, which stand for both sides."""
    gap = np.abs(NODES[:, None] - NODES[None])
    return np.where(np.abs(gap - margin) < 1e-9, 0.5, (gap < margin).astype(float))


@dataclass(frozen=True)
class _Fit:
    laws: list[Floats]
    kernels: list[tuple[Floats, Floats]]
    log_likelihood: float


def _floor(options: ArrayLike | None, items: int) -> Floats:
    if options is None:
        return np.zeros(items)
    k = np.asarray(options, float)
    return np.where(np.isfinite(k) & (k > 0), 1 / np.where(k > 0, k, 1), 0.0)


def _fit(
    f: NDArray,
    b: NDArray,
    silent: list,
    floors: Floats,
    group: NDArray,
    rounds: tuple[int, ...],
    start: list | None = None,
) -> _Fit:
    """Alternate EM of the laws and matching of the models' accuracies."""
    n, size = f.shape[1], np.bincount(group, minlength=len(floors))
    cell = (group * (n + 1) + f.sum(axis=1)) * (n + 1) + b.sum(axis=1)
    tables = np.bincount(cell, minlength=len(floors) * (n + 1) ** 2).reshape(-1, n + 1, n + 1).astype(float)
    rate = [np.zeros(n) if s is None else s.mean(axis=0) for s in silent]
    accuracy = [h.mean(axis=0) for h in (f, b)]
    effect = [_start(a, r) for a, r in zip(accuracy, rate)]
    flat = np.full((len(NODES),) * 2, 0.5 / len(NODES) ** 2) + np.eye(len(NODES)) * 0.5 / len(NODES)
    laws = [flat.copy() for _ in floors] if start is None else [0.9 * s + 0.1 * flat for s in start]
    likelihood = float("nan")
    for turn, steps in enumerate(rounds):
        chance = [[_chances(fl, e, r) for e, r in zip(effect, rate)] for fl in floors]
        kernels = [tuple(poisson_binomial(c) for c in pair) for pair in chance]
        for _ in range(steps):
            posts = [_expected(t, law, *k) for t, law, k in zip(tables, laws, kernels)]
            whole = sum(p for p, _ in posts)
            whole = whole / whole.sum()
            laws = [(p + SHARED * whole) / (s + SHARED) for (p, _), s in zip(posts, size)]
            likelihood = sum(v for _, v in posts)
        if turn < len(rounds) - 1:
            weight = size / size.sum()
            for side in (0, 1):
                marginal = [law.sum(axis=1 - side) for law in laws]
                told = sum(w * (m @ c[side]) for w, m, c in zip(weight, marginal, chance))
                slope = sum(w * (m @ (c[side] * (1 - c[side]))) for w, m, c in zip(weight, marginal, chance))
                step = np.clip((accuracy[side] - told) / np.maximum(slope, 0.02), -1, 1)
                effect[side] = effect[side] + step - (effect[side] + step).mean()
    return _Fit(laws, kernels, likelihood)


def _start(accuracy: Floats, silent: Floats) -> Floats:
    """Abilities that order the models by their accuracy among given answers."""
    a = np.clip(accuracy / np.maximum(1 - silent, 0.02), 0.02, 0.98)
    effect = np.log(a / (1 - a))
    return effect - effect.mean()


def _chances(floor: float, effect: Floats, silent: Floats) -> Floats:
    """Chance of each model on items of every node, shape (nodes, models)."""
    speaks = 1 - silent
    curve = speaks * (floor + (1 - floor) * expit(_LOGITS[:, None] + effect))
    mean = curve.mean(axis=1)
    ease = np.interp(NODES, mean, _LOGITS)
    out = speaks * (floor + (1 - floor) * expit(ease[:, None] + effect))
    # below the floor and above what abstention leaves, all models are scaled alike
    out = np.clip(out * (NODES / out.mean(axis=1))[:, None], 1e-6, 1 - 1e-6)
    return out


def poisson_binomial(chance: ArrayLike) -> Floats:
    """Law of the number of right models, shape (nodes, models + 1), from chances of shape (nodes, models)."""
    p = np.asarray(chance, float)
    out = np.zeros((len(p), p.shape[1] + 1))
    out[:, 0] = 1
    for m in range(p.shape[1]):
        q = p[:, m : m + 1]
        out[:, 1 : m + 2] = out[:, 1 : m + 2] * (1 - q) + out[:, : m + 1] * q
        out[:, 0] *= 1 - p[:, m]
    return out


def _expected(table: Floats, law: Floats, full: Floats, blind: Floats) -> tuple[Floats, float]:
    """Expected items of each node given a table, and its log likelihood."""
    told = np.maximum(full.T @ law @ blind, 1e-300)
    return law * (full @ (table / told) @ blind.T), float((table * np.log(told)).sum())


def _posterior(law: Floats, full: Floats, blind: Floats, inside: Floats) -> Floats:
    """Probability of the band given both counts, shape (models + 1, models + 1)."""
    told = np.maximum(full.T @ law @ blind, 1e-300)
    return np.clip(full.T @ (law * inside) @ blind / told, 0, 1)


def _again(
    f: NDArray,
    b: NDArray,
    silent: list,
    floors: Floats,
    group: NDArray,
    fit: _Fit,
    inside: Floats,
    rng: np.random.Generator,
) -> float:
    """The share in one bootstrap draw of items and models."""
    rows, columns = rng.integers(0, len(f), len(f)), rng.integers(0, f.shape[1], f.shape[1])
    take = np.ix_(rows, columns)
    quiet = [None if s is None else s[take] for s in silent]
    again = _fit(f[take], b[take], quiet, floors, group[rows], (20, 40), fit.laws)
    size = np.bincount(group[rows], minlength=len(floors)) / len(f)
    return float(sum(s * (law * inside).sum() for s, law in zip(size, again.laws)))
