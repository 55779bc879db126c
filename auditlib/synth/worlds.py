"""Pools whose truth is known: what every item is, how able every model is, and which answer it gives and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.errors import AuditError
from auditlib.frames import ABSTAINED
from auditlib.pool import Arm, Pool
from auditlib.seeds import generator

#: what an item can be, and what follows for a model that has the ability
KINDS = {
    "needs_image": "answered from the image, never without it",
    "text_suffices": "answered from the text, with the image or without",
    "either": "answered from the image or from the text, whichever the model masters",
    "both": "answered only by a model that masters image and text, and never without the image",
    "shared_failure": "answered by nobody",
    "contaminated": "recalled by some models, with the image or without",
    "position_cue": "its key stands first, where models look that do not know",
    "give_away": "its key gives itself away among the options, in half of the replies",
    "unlinked": "answered from the image where there is one, else from the text; who knows the one need not know the "
    "other",
}
#: answers that an open item can get
OPEN_ANSWERS = 60
#: how often a model that does not know takes the first option of a position cue, or sees a give-away
_CUE, _SEEN = 0.6, 0.5


@dataclass(frozen=True)
class Recipe:
    """How a world is made.

    Attributes
    ----------
    items, models, strata, families : numbers of each; models are dealt to families in turn.
    k : options shown, one number or one of several for each item; None = open answers.
    kinds : kind of item -> share of the items (they sum to 1); see :data:`KINDS`.
    vision, text : (weakest, strongest) model's ability on the probit scale, with and without the image.
    spread : standard deviation of the strata's difficulty, on the same scale, for image and text alike.
    difficulty : standard deviation of the items' difficulty inside a stratum, apart for image and text.
    kin : correlation, between models of one family, of what decides whether an item is known.
    misconception : how often a model with the image that does not know gives the item's attractive wrong answer.
    prior : how often a model without the image that does not know gives the answer that the text suggests, which is
        the key no more often than chance.
    abstain : how often a model without the image that does not know gives no answer; one number or one for each model.
    recalled : share of the contaminated items that a model recalls.
    per_image : items that share one picture (and half of their difficulty).
    """

    items: int = 1500
    models: int = 3
    strata: int = 6
    families: int = 3
    k: int | Sequence[int] | None = 4
    kinds: Mapping[str, float] = field(default_factory=lambda: {"needs_image": 1.0})
    vision: tuple[float, float] = (0.2, 0.9)
    text: tuple[float, float] = (0.1, 0.7)
    spread: float = 0.3
    difficulty: float = 0.8
    kin: float = 0.3
    misconception: float = 0.5
    prior: float = 0.3
    abstain: float | Sequence[float] = 0.1
    recalled: float = 0.8
    per_image: int = 1

    def __post_init__(self):
        unknown = sorted(set(self.kinds) - set(KINDS))
        if unknown:
            raise AuditError(f"unknown kind of item {unknown[0]!r}", mend=f"use {', '.join(KINDS)}")
        if abs(sum(self.kinds.values()) - 1) > 1e-9 or min(self.kinds.values()) < 0:
            raise AuditError("the shares of the kinds of items do not sum to 1", mend="give shares that do")
        if self.k is not None and min(np.atleast_1d(self.k)) < 2:
            raise AuditError("an item needs two options at least", mend="give k from 2 on, or None for open answers")
        if np.ndim(self.abstain) and len(np.atleast_1d(self.abstain)) != self.models:
            raise AuditError("abstain has not one rate for each model", mend="give one number, or one for each model")


@dataclass(frozen=True)
class World:
    """A pool's arrays beside the truth.

    Attributes
    ----------
    truth : one row per item: item, kind, stratum, k (nan = open), image, true_key, planted ("" = nothing).
    key : int16 codes of the keys as printed, shape (items,).
    full, blind : int16 codes of the answers, shape (items, models); ABSTAINED where none was given.
    family : family code of each model.
    """

    name: str
    recipe: Recipe
    truth: pd.DataFrame
    key: NDArray[np.int16]
    full: NDArray[np.int16]
    blind: NDArray[np.int16]
    family: NDArray[np.int64]

    @property
    def open(self) -> bool:
        return self.recipe.k is None

    @property
    def model_names(self) -> list[str]:
        return [f"model {j + 1:02d}" for j in range(self.full.shape[1])]

    def hits(self, condition: str) -> NDArray[np.uint8]:
        """Answers equal to the printed key, shape (items, models)."""
        said = self.full if condition == "full" else self.blind
        return (said == self.key[:, None]).astype(np.uint8)

    def planted(self, defect: str) -> NDArray[np.bool_]:
        """Items with a planted defect, shape (items,)."""
        return self.truth["planted"].eq(defect).to_numpy()

    def of_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Items of some kinds, shape (items,)."""
        return self.truth["kind"].isin(kinds).to_numpy()

    def as_pool(self) -> Pool:
        """The world as a pool of arrays: letters and the arm ``exact``; open answers as the arm ``exact_open``."""
        from auditlib.frames import LETTERS

        t = self.truth
        items = t[["item", "stratum", "image_key"]].copy()
        if self.recipe.per_image == 1:
            items = items.drop(columns="image_key")
        arm = "exact_open" if self.open else "exact"
        letters = {}
        if not self.open:
            items["k"], items["key"] = t["k"].astype(float), [LETTERS[c] for c in self.key]
            letters = {"full": self.full.astype(np.int8), "blind": self.blind.astype(np.int8)}
        models = pd.DataFrame({"model": self.model_names, "family": [f"family {f + 1}" for f in self.family]})
        hits = {c: self.hits(c) for c in ("full", "blind")}
        none = {"full": self.full == ABSTAINED, "blind": self.blind == ABSTAINED}
        return Pool(self.name, "Known world", items, models, {arm: Arm(arm, hits)}, letters, abstained=none)


def world(recipe: Recipe, seed: int, name: str = "world") -> World:
    """Draw a world.

    Parameters
    ----------
    recipe : Recipe
    seed : int
        The same recipe, seed and name give the same world.

    Returns
    -------
    World
        Without defects; :func:`auditlib.synth.plant.spoil` plants them.

    Notes
    -----
    Probit model: model j masters item i where ``ability_j - difficulty_i > z_ij``, z standard normal with correlation
    ``kin`` inside a family, drawn apart for image and text. Difficulty is the stratum's, plus the picture's and the
    item's own. Whoever does not know answers as :class:`Recipe` says, else uniformly over the options.

    Examples
    --------
    >>> w = world(Recipe(items=200, models=4, k=5), seed=1)
    >>> w.full.shape, int(w.key.max()) < 5
    ((200, 4), True)
    """
    rng = generator(seed, name, "world")
    n, m = recipe.items, recipe.models
    family = np.arange(m) % max(recipe.families, 1)
    k = np.full(n, OPEN_ANSWERS) if recipe.k is None else rng.choice(np.atleast_1d(recipe.k), n)
    kind = rng.permutation(_dealt(recipe.kinds, n))
    stratum = np.sort(rng.integers(0, max(recipe.strata, 1), n))
    image = np.arange(n) // recipe.per_image
    if recipe.per_image > 1:
        stratum = stratum[image * recipe.per_image]
    key = np.floor(rng.random(n) * k).astype(np.int16)
    key[kind == "position_cue"] = 0
    level = rng.normal(size=max(recipe.strata, 1)) * recipe.spread
    sees = _masters(recipe, rng, recipe.vision, level[stratum], image, family)
    reads = _masters(recipe, rng, recipe.text, level[stratum], image, family)
    recalls = rng.random((n, m)) < recipe.recalled
    in_full, in_blind = _known(kind, sees, reads, recalls, rng)
    full = _guessed(recipe, rng, kind, key, k, attractive=True)
    blind = _guessed(recipe, rng, kind, key, k, attractive=False)
    full[in_full] = np.broadcast_to(key[:, None], full.shape)[in_full]
    blind[in_blind] = np.broadcast_to(key[:, None], blind.shape)[in_blind]
    silent = ~in_blind & (rng.random((n, m)) < np.broadcast_to(recipe.abstain, m))
    blind[silent] = ABSTAINED
    truth = pd.DataFrame({
        "item": [str(i + 1) for i in range(n)], "kind": kind, "stratum": [f"stratum {s + 1:02d}" for s in stratum],
        "k": np.nan if recipe.k is None else k.astype(float), "image_key": [f"picture {p + 1}" for p in image],
        "true_key": key, "planted": "",
    })  # fmt: skip
    return World(name, recipe, truth, key, full, blind, family)


def _dealt(shares: Mapping[str, float], n: int) -> NDArray:
    """Kinds in the exact shares, as nearly as n items allow (largest remainders)."""
    names, wanted = list(shares), np.array(list(shares.values())) * n
    counts = np.floor(wanted + 1e-9).astype(int)
    for i in np.argsort(counts - wanted, kind="stable")[: n - counts.sum()]:
        counts[i] += 1
    return np.repeat(np.array(names, dtype=object), counts)


def _masters(recipe: Recipe, rng: np.random.Generator, ability: tuple[float, float], level: NDArray, image: NDArray,
             family: NDArray) -> NDArray[np.bool_]:  # fmt: skip
    n, m = len(level), len(family)
    shared = np.sqrt(0.5) if recipe.per_image > 1 else 0.0
    own = rng.normal(size=n) * np.sqrt(1 - shared**2) + shared * rng.normal(size=image.max() + 1)[image]
    kin = rng.normal(size=(n, max(recipe.families, 1)))[:, family]
    z = np.sqrt(recipe.kin) * kin + np.sqrt(1 - recipe.kin) * rng.normal(size=(n, m))
    return np.linspace(*ability, m)[None, :] - (level + own * recipe.difficulty)[:, None] > z


def _known(kind: NDArray, sees: NDArray, reads: NDArray, recalls: NDArray, rng: np.random.Generator):
    """Who knows the answer with the image, and without."""
    full, blind = sees.copy(), np.zeros_like(sees)

    def put(name: str, with_image: NDArray, without: NDArray) -> None:
        here = kind == name
        full[here], blind[here] = with_image[here], without[here]

    nobody = np.zeros_like(sees)
    put("text_suffices", reads, reads)
    put("either", sees | reads, reads)
    put("both", sees & reads, nobody)
    put("shared_failure", nobody, nobody)
    put("contaminated", sees | recalls, recalls)
    put("unlinked", sees, reads)
    seen = rng.random(sees.shape) < _SEEN
    put("give_away", sees | seen, seen)
    return full, blind


def _guessed(recipe: Recipe, rng: np.random.Generator, kind: NDArray, key: NDArray, k: NDArray, *,
             attractive: bool) -> NDArray[np.int16]:  # fmt: skip
    """Answers of models that do not know: the item's lure, or any option."""
    n, m = len(key), recipe.models
    if attractive:
        lure = (key + 1 + np.floor(rng.random(n) * (k - 1))) % k
        often = recipe.misconception
    else:
        lure, often = np.floor(rng.random(n) * k), recipe.prior
    out = np.where(rng.random((n, m)) < often, lure[:, None], np.floor(rng.random((n, m)) * k[:, None]))
    first = (kind == "position_cue")[:, None] & (rng.random((n, m)) < _CUE)
    return np.where(first, 0, out).astype(np.int16)
