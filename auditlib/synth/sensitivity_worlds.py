"""Simulated models that answer from a prior or from evidence that fades with the level of a change.

With weight w on the evidence and a share e of it left, a model answers from the evidence with probability w e and from
its prior else, before noise. Accuracy is linear in e, so the share of the visual gain lost at e is ``1 - e`` for every
model that looks at all: area under the curve and half-level are known whatever w is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.frames import LETTERS
from auditlib.seeds import generator
from auditlib.sensitivity.conditions import Condition

#: right answers from evidence, and from the prior
FROM_EVIDENCE, FROM_PRIOR = 0.95, 0.4
#: margin that full evidence adds for a model of weight one
MARGIN_GAIN = 2.0
#: levels and the evidence left at each
LEFT: dict[str, dict[float, float]] = {
    "blur": {1: 0.95, 2: 0.8, 4: 0.4, 8: 0.1},
    "downsample": {2: 1.0, 4: 0.9, 8: 0.55, 16: 0.2},
    "tokens": {0.25: 1.0, 0.5: 0.9, 0.75: 0.65, 0.9: 0.3, 1.0: 0.0},
}
OTHER_LEFT = {"full": 1.0, "grayscale": 0.9, "blank": 0.0, "wrong_image": 0.0, "blind": 0.0,
              "occlude_evidence": 0.1, "occlude_control": 0.9}  # fmt: skip


@dataclass(frozen=True)
class Looker:
    """A simulated model.

    Attributes
    ----------
    name : of the model. sight : weight on the evidence. noise : share of answers drawn at random.
    yes : share of yes/no answers that are yes whatever is asked. stubborn : share of negations that get the answer of
        the plain question. admits : share of ``cannot be determined`` where nothing can be seen.
    """

    name: str
    sight: float
    noise: float = 0.0
    yes: float = 0.0
    stubborn: float = 0.0
    admits: float = 0.5


MODELS = (
    Looker("kestrel", 0.9, noise=0.03, admits=0.8),
    Looker("plover", 0.6, noise=0.05, yes=0.1, stubborn=0.1),
    Looker("dunnock", 0.3, noise=0.05, yes=0.3, stubborn=0.3, admits=0.2),
    Looker("mole", 0.0, stubborn=0.6, admits=0.0),
    Looker("moth", 0.7, noise=0.3),
)


@dataclass(frozen=True)
class World:
    """Items and calls.

    Attributes
    ----------
    items : item, image, key, k, stratum, yesno. calls : a frame for
        :func:`auditlib.sensitivity.records.calls_frame`.
    """

    items: pd.DataFrame
    calls: pd.DataFrame


def evidence_left(c: Condition) -> float:
    """Share of the evidence that a condition leaves."""
    return LEFT[c.family][c.level] if c.family in LEFT else OTHER_LEFT[c.family]


def ladder(seeds: int = 2) -> list[Condition]:
    """Every condition of the image that the world knows."""
    out = [Condition(f) for f in OTHER_LEFT if f not in ("full", "occlude_control")]
    out += [Condition("occlude_control", seed=s) for s in range(3)]
    for family, levels in LEFT.items():
        variant = "random" if family == "tokens" else ""
        for level in levels:
            n = seeds if family == "tokens" and level < 1 else 1
            out += [Condition(family, variant, float(level), s) for s in range(n)]
    return out


def forms() -> list[Condition]:
    """Forms of the question that the world knows."""
    names = ("paraphrase-1", "paraphrase-2", "negation", "two_options", "cannot_tell", "distractors-2", "distractors-4")
    return [*(Condition(form=f) for f in names), Condition("blur", level=8.0, form="cannot_tell"),
            Condition("blind", form="cannot_tell")]  # fmt: skip


def draw(
    seed: int = 5, *, items: int = 320, models: Sequence[Looker] = MODELS,
    conditions: Sequence[Condition] | None = None, samples: int = 3, per_image: int = 2,
) -> World:  # fmt: skip
    """Draw a world; the same for the same arguments.

    Parameters
    ----------
    samples : calls to each item as it is. per_image : questions that share an image.
    """
    rng = generator(seed, "sensitivity_world")
    yesno = np.arange(items) % 3 == 0
    k = np.where(yesno, 2, 4)
    table = pd.DataFrame({
        "item": [f"s{i:04d}" for i in range(items)], "image": [f"picture{i // per_image:03d}" for i in range(items)],
        "key": (rng.random(items) * k).astype(int), "k": k, "yesno": yesno,
        "stratum": np.array(["charts", "photographs", "documents"])[rng.integers(0, 3, items)],
    })  # fmt: skip
    wanted = [*(Condition(),) * samples, *(ladder() + forms() if conditions is None else conditions)]
    parts = []
    for model in models:
        mind = _mind(table, generator(seed, "mind", model.name))
        sample = 0
        for c in wanted:
            here = generator(seed, "call", model.name, c.name, str(sample if c == Condition() else 0))
            own = _form(table, c)
            parts.append(_calls(table[own], c, model, {n: a[own] for n, a in mind.items()}, here,
                                sample if c == Condition() else 0))  # fmt: skip
            sample += c == Condition()
    calls = pd.concat(parts, ignore_index=True)
    return World(table.assign(key=_letters(table["key"].to_numpy(), table["yesno"].to_numpy())), calls)


def _mind(table: pd.DataFrame, rng: np.random.Generator) -> dict[str, NDArray]:
    """What a model thinks of each item without looking, and whether looking helps; the same in every call."""
    k, key = table["k"].to_numpy(), table["key"].to_numpy()
    wrong = (key + 1 + (rng.random(len(table)) * (k - 1)).astype(int)) % k
    rate = np.maximum(FROM_PRIOR, 1 / k)
    return {"prior": np.where(rng.random(len(table)) < rate, key, wrong),
            "seen": np.where(rng.random(len(table)) < FROM_EVIDENCE, key, wrong),
            "looks": rng.random(len(table)), "base": rng.gamma(2.0, 0.5, len(table))}  # fmt: skip


def _form(table: pd.DataFrame, c: Condition) -> NDArray[np.bool_]:
    """Items to which a form applies."""
    if c.kind in ("negation", "two_options"):
        return table["yesno"].to_numpy()
    if c.kind in ("cannot_tell", "distractors"):
        return ~table["yesno"].to_numpy()
    return np.ones(len(table), bool)


def _letters(place: NDArray, yesno: NDArray) -> NDArray:
    return np.where(yesno, np.array(["yes", "no"])[np.minimum(place, 1)], np.array(list(LETTERS))[place])


def _calls(table: pd.DataFrame, c: Condition, model: Looker, mind: Mapping[str, NDArray], rng: np.random.Generator,
           sample: int) -> pd.DataFrame:  # fmt: skip
    n, e = len(table), evidence_left(c)
    k, key, yesno = (table[x].to_numpy() for x in ("k", "key", "yesno"))
    # an item is seen as long as its threshold lies below what is left: conditions of one level agree
    meant = np.where(mind["looks"] < model.sight * e, mind["seen"], mind["prior"])
    meant = np.where(yesno & (rng.random(n) < model.yes), 0, meant)
    meant = np.where(rng.random(n) < model.noise, (rng.random(n) * k).astype(int), meant)
    right = meant == key
    margin = np.where(right, mind["base"] + MARGIN_GAIN * model.sight * e, -mind["base"]) + rng.normal(0, 0.05, n)
    shown, answer, k_shown = key, meant, k
    meaning = _letters(meant, yesno)
    if c.kind == "negation":
        answer = np.where(rng.random(n) < model.stubborn, meant, 1 - meant)
        shown = 1 - key
        meaning = _letters(1 - answer, yesno)
        right = answer == shown
    answers, keys = _letters(answer, yesno), _letters(shown, yesno)
    if c.kind == "two_options":
        answers, keys = (np.array(["A", "B"])[x] for x in (answer, key))
    if c.kind == "cannot_tell":
        admits = rng.random(n) < model.admits * (1 - e)
        answers, k_shown = np.where(admits, np.array(list(LETTERS))[k], answers), k + 1
        meaning, right = np.where(admits, "cannot_tell", meaning), right & ~admits
    if c.kind == "distractors":
        k_shown = k + c.number
        # who does not see draws among more
        lured = (mind["looks"] >= model.sight * e) & (rng.random(n) < c.number / k_shown)
        new = np.array(list(LETTERS))[k + (rng.random(n) * c.number).astype(int)]
        answers, meaning = np.where(lured, new, answers), np.where(lured, np.char.add("new:", new), meaning)
        right = right & ~lured
    return pd.DataFrame({
        "model": model.name, "item": table["item"].to_numpy(), "image": table["image"].to_numpy(), "family": c.family,
        "variant": c.variant, "level": c.level, "seed": c.seed, "form": c.form, "sample": sample, "answer": answers,
        "meaning": meaning, "key": keys, "hit": right.astype(float),
        "margin": np.where(c.form == "", margin, np.nan), "k": k_shown,
    })  # fmt: skip


def runs_table(world: World) -> pd.DataFrame:
    """The items as they are and blind as a table of replies, for the ordinary audit."""
    calls = world.calls
    here = calls[calls["form"].eq("") & calls["family"].isin(["full", "blind"]) & calls["sample"].eq(0)]
    facts = world.items.set_index("item").loc[here["item"]].reset_index(drop=True)
    yesno = facts["yesno"].to_numpy(bool)
    said = here["answer"].str.capitalize().to_numpy(dtype=object)
    table = pd.DataFrame({
        "item": here["item"].to_numpy(), "model": here["model"].to_numpy(), "condition": here["family"].to_numpy(),
        "prediction": said, "question": [f"Synthetic question {i[1:]}: what is shown?" for i in here["item"]],
        "key": facts["key"].str.capitalize(), "answer_type": np.where(yesno, "yesno", "choice"),
        "stratum": facts["stratum"], "cluster": facts["image"],
    })  # fmt: skip
    for j, letter in enumerate("ABCD"):
        table[letter] = np.where(yesno, "", f"option {j + 1}")
    return table


def states(
    seed: int = 5, *, images: int = 60, layers: int = 6, tokens: int = 16, width: int = 24
) -> dict[str, NDArray]:
    """Visual tokens that share more of their image's own direction the deeper the layer; arrays for an npz."""
    rng = generator(seed, "sensitivity_states")
    own = rng.standard_normal((images, width))
    weight = np.linspace(0.3, 1.5, layers)
    noise = rng.standard_normal((images, layers, tokens, width))
    common = 0.8 * rng.standard_normal(width)
    h = weight[None, :, None, None] * own[:, None, None, :] + noise + common
    blurred = (
        0.4 * weight[None, :, None] * own[:, None, :] + rng.standard_normal((images, layers, width)) * 0.4 + common
    )
    return {"item": np.array([f"s{2 * i:04d}" for i in range(images)]), "tokens": h.astype(np.float32),
            "degraded": blurred.astype(np.float32)}  # fmt: skip
