"""A synthetic pool under four conditions: replies of invented models to items whose dependence is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.dependence.profile import CONDITIONS, LABELS
from auditlib.frames import LETTERS
from auditlib.seeds import generator
from auditlib.synth.modality import ModalityPool, simulate_modality

SEED = 4
#: invented models, two of a family
MODELS = {"lynx-large": "lynx", "lynx-small": "lynx", "heron-large": "heron", "heron-small": "heron",
          "otter-large": "otter", "otter-small": "otter", "ibex-large": "ibex", "ibex-small": "ibex"}  # fmt: skip
#: chance of each category, by the label (R, V, T, S) of an item
STRATA = {"photographs": (0.3, 0.55, 0.1, 0.2), "charts": (0.2, 0.2, 0.15, 0.5),
          "science": (0.25, 0.1, 0.6, 0.2), "documents": (0.25, 0.15, 0.15, 0.1)}  # fmt: skip
#: share of items with a wrong key, answered by chance in every condition
BROKEN = 0.04
REFUSAL = "I cannot see an image, so I cannot answer."

_COLOURS = ("red", "blue", "green", "white", "black", "yellow", "grey", "brown")
_THINGS = ("boat", "lamp", "stone", "wheel", "ladder", "bottle", "kite", "drum")


@dataclass(frozen=True)
class DependencePool:
    """The pool.

    Attributes
    ----------
    runs : one row per reply, all text: item, model, condition, prediction, question, key, A to D, stratum.
    truth : item, label (R, V, T, S), broken. structure : arrays item, visual, textual, options, key.
    """

    runs: pd.DataFrame
    truth: pd.DataFrame
    structure: dict[str, NDArray]


def dependence_pool(items: int = 400, seed: int = SEED) -> DependencePool:
    """Draw the pool; the same for the same arguments."""
    rng = generator(seed, "dependence_pool")
    drawn = simulate_modality(seed, items=items, subjects=len(MODELS))
    # refusals take a factor from each probability: without them the same seed draws the same otherwise
    willing = simulate_modality(seed, items=items, subjects=len(MODELS), refusal=0.0)
    refused = 1 - drawn.probability / willing.probability
    broken = rng.permutation(items) < round(BROKEN * items)
    right = drawn.probability.copy()
    right[:, broken] = (1 - refused[:, broken]) / drawn.k[broken, None]
    ids = [f"d{i:04d}" for i in range(items)]
    facts = _facts(ids, drawn, rng)
    runs = _replies(facts, drawn.key, right, refused, rng)
    truth = pd.DataFrame({"item": ids, "label": np.array(LABELS)[drawn.label], "broken": np.where(broken, "yes", "")})
    arrays = {n: getattr(drawn, n).astype(np.float32) for n in ("visual", "textual", "options")}
    return DependencePool(runs, truth, {"item": np.array(ids), **arrays, "key": drawn.key.astype(np.int64)})


def _facts(ids: list[str], drawn: ModalityPool, rng: np.random.Generator) -> pd.DataFrame:
    n, k = drawn.options.shape[:2]
    shown = rng.permuted(np.tile(np.arange(len(_COLOURS) * len(_THINGS)), (n, 1)), axis=1)[:, :k]
    texts = [[f"{_COLOURS[c // 8]} {_THINGS[c % 8]}" for c in row] for row in shown]
    chance = np.array(list(STRATA.values()))[:, drawn.label]
    chance = chance / chance.sum(axis=0)
    place = (rng.random(n) > chance.cumsum(axis=0)).sum(axis=0)
    table = pd.DataFrame(texts, columns=list(LETTERS[:k]))
    table.insert(0, "item", ids)
    table["question"] = [f"Synthetic question {i + 1}: what is meant?" for i in range(n)]
    table["key"] = [LETTERS[j] for j in drawn.key]
    table["stratum"] = np.array(list(STRATA))[place]
    return table


def _replies(
    facts: pd.DataFrame, key: NDArray, right: NDArray, refused: NDArray, rng: np.random.Generator
) -> pd.DataFrame:
    """A letter, right with the given probability, or a refusal; one block of rows per model and condition."""
    k = sum(c in LETTERS for c in facts.columns)
    blocks = []
    for m, model in enumerate(MODELS):
        for c, condition in enumerate(CONDITIONS):
            u = rng.random(len(facts))
            wrong = (key + 1 + rng.integers(0, k - 1, len(facts))) % k
            letter = np.array(list(LETTERS))[np.where(u < right[m, :, c], key, wrong)]
            said = np.where(u > 1 - refused[m, :, c], REFUSAL, letter)
            blocks.append(facts.assign(model=model, condition=condition, prediction=said))
    table = pd.concat(blocks, ignore_index=True)
    first = ["item", "model", "condition", "prediction"]
    return table[first + [c for c in table.columns if c not in first]]
