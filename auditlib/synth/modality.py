"""Items whose dependence on image and question is known, answered by simulated models in all four conditions.

The data are made by a noisy-OR of evidence routes, on purpose not by the response model that is fitted to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditlib.seeds import generator

#: places in :attr:`ModalityPool.label`
REDUNDANT, VISUAL, TEXTUAL, SYNERGISTIC = range(4)
#: number of option codes that the embeddings draw from
_CODES = 64


@dataclass(frozen=True)
class Regime:
    """What is simulated.

    Attributes
    ----------
    subjects, options : models; options per item (chance is 1 / options).
    mix : shares of redundant, visual, textual and synergistic items before give-aways.
    giveaway : share of items whose options alone give the key away; they count as redundant.
    vision : mean ability of the visual route (the textual one has +0.4).
    refusal : share of answers that a refusing model withholds without evidence; half of it for the image alone, a
        quarter for the question alone. reluctant : share of models that refuse.
    spread : standard deviation of difficulty.
    dimensions, strength : of the embeddings; strength of the key's trace in image, question, and their binding.
    silent : share of items whose embeddings hold nothing about the key.
    """

    subjects: int = 12
    options: int = 4
    mix: tuple[float, float, float, float] = (0.2, 0.25, 0.25, 0.3)
    giveaway: float = 0.1
    vision: float = -0.8
    refusal: float = 0.5
    reluctant: float = 0.35
    spread: float = 1.2
    dimensions: int = 48
    strength: tuple[float, float, float] = (0.62, 0.62, 0.95)
    silent: float = 0.25


#: the main regime and five that are hard in one way each
REGIMES: dict[str, Regime] = {
    "main": Regime(),
    "six models": Regime(subjects=6),
    "four models": Regime(subjects=4),
    "weak vision": Regime(vision=-2.0, refusal=1.0),
    "silent structure": Regime(silent=0.8),
    "24 models": Regime(subjects=24),
}


@dataclass(frozen=True)
class ModalityPool:
    """Simulated answers and embeddings.

    Attributes
    ----------
    hits : 0/1, shape (subjects, items, 4); conditions none, image_only, blind, full.
    label : int, shape (items,); see the constants of this module. k : int, shape (items,), options.
    visual, textual : shape (items, d). options : shape (items, K, d). key : int, shape (items,).
    probability : shape (subjects, items, 4), of a right answer.
    """

    hits: NDArray[np.float64]
    label: NDArray[np.int64]
    k: NDArray[np.int64]
    visual: NDArray[np.float64]
    textual: NDArray[np.float64]
    options: NDArray[np.float64]
    key: NDArray[np.int64]
    probability: NDArray[np.float64]


def simulate_modality(seed: int, regime: str | Regime = "main", items: int = 600, **change: object) -> ModalityPool:
    """Draw one pool.

    Parameters
    ----------
    seed : int
    regime : name in :data:`REGIMES`, or a :class:`Regime`
    items : int
    **change : fields of the regime to set otherwise

    Notes
    -----
    Each route (options, image, question, both) succeeds with ``logistic(1.4 (ability - difficulty))``; a condition
    opens some of them, an answer is right when any open route succeeds, or by chance. Redundant, visual and textual
    items have an easy route in the views that suffice; synergistic ones bind the key as the product of a code in the
    image and one in the question, each of which says nothing alone.
    """
    r = replace(REGIMES[regime] if isinstance(regime, str) else regime, **change)
    rng = generator(seed, "modality")
    label = rng.choice(4, items, p=r.mix)
    given = rng.random(items) < r.giveaway
    label[given] = REDUNDANT
    p = _answers(r, label, given, rng)
    hits = (rng.random(p.shape) < p).astype(float)
    visual, textual, options, key = _embeddings(r, label, given, rng)
    return ModalityPool(hits, label, np.full(items, r.options), visual, textual, options, key, p)


def _answers(r: Regime, label: NDArray, given: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """Probability of a right answer, shape (subjects, items, 4)."""
    m, n = r.subjects, len(label)
    general = rng.normal(0, 0.8, m)
    # abilities of the four routes: options, image, question, both together
    shift, own = (0.0, r.vision, 0.4, 0.0), (0.6, 0.6, 0.5, 0.6)
    ability = np.stack([(general if j else 0) + shift[j] + rng.normal(0, own[j], m) for j in range(4)])
    easy = rng.normal([[-0.9], [-0.9], [-1.1]], r.spread, (3, n))
    rarely = rng.normal(3.2, 0.7, (2, n))
    suffices = np.stack([np.isin(label, s) & ~given for s in ((REDUNDANT, VISUAL), (REDUNDANT, TEXTUAL))])
    difficulty = np.vstack([
        np.where(given, rng.normal(-1.2, 0.6, n), 4.0),
        np.where(suffices, easy[:2], rarely),
        easy[2:],
    ])  # fmt: skip
    fails = 1 - expit(1.4 * (ability[:, :, None] - difficulty[:, None, :]))
    base, image, question, joint = fails
    failed = np.stack([base, base * image, base * question, base * image * question * joint], axis=2)
    chance = 1 / r.options
    p = chance + (1 - chance) * (1 - failed)
    withheld = r.refusal * (rng.random(m) < r.reluctant)
    return p * (1 - withheld[:, None] * [1, 0.5, 0.25, 0])[:, None, :]


def _embeddings(
    r: Regime, label: NDArray, given: NDArray, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Image, question and option vectors, and the place of the key."""
    n, d, rows = len(label), r.dimensions, np.arange(len(label))
    codes = rng.choice([-1.0, 1.0], (_CODES, d))
    shown = rng.permuted(np.tile(np.arange(_CODES), (n, 1)), axis=1)[:, : r.options]
    key = rng.integers(0, r.options, n)
    options = codes[shown]
    right = options[rows, key].copy()
    # keys that their options give away share one direction
    options[given, key[given]] += 0.35 * rng.normal(size=d)
    half = rng.choice([-1.0, 1.0], (n, d))
    speaks = rng.random(n) >= r.silent
    trace = [s * speaks * rng.lognormal(0, sd, n) for s, sd in zip(r.strength, (0.4, 0.4, 0.3))]
    binds = trace[2] * np.where(label == SYNERGISTIC, 1, 0.2)
    views = []
    for j, (sole, bound) in enumerate(((VISUAL, half), (TEXTUAL, half * right))):
        signal = np.where(np.isin(label, (REDUNDANT, sole))[:, None], trace[j][:, None] * right, binds[:, None] * bound)
        views.append(rng.normal(size=(n, d)) + signal)
    return views[0], views[1], options, key
