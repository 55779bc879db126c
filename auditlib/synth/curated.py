"""A synthetic pool of 18 sources with the published margins of MMGist; no model was run, and the models are invented.

Exact by construction: the number of items after every stage, in all and by source; text-only accuracy of two sources;
items that no panel model solves. Met within half a point: mean scores of the kept items by capability and group.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from auditlib.frames import LETTERS
from auditlib.seeds import generator
from auditlib.synth.curated_blind import without_image
from auditlib.synth.curated_draws import (
    ANSWERS,
    HALF,
    KINDS_OF_DEFECT,
    Frame,
    Shape,
    draw,
    fill,
    hits,
    level,
    panel_fits,
)
from auditlib.synth.curated_people import readings, votes
from auditlib.synth.curated_plan import (
    CLASSES,
    KEPT_SCORES,
    KINDS,
    RAW_SCORES,
    Plan,
    full_plan,
    model_table,
    scaled_plan,
)

_WORDS = ("anchor", "basket", "candle", "drum", "engine", "feather", "glove", "hammer", "island", "jacket", "kettle",
          "ladder", "mirror", "needle", "orchard", "pencil", "quilt", "river", "saddle", "tunnel", "umbrella",
          "violin", "window", "zebra")  # fmt: skip
SEED = 20261129
_TURNS = 3
#: with fewer items, a capability may have none that could be moved to its mean
_FEWEST = 400
#: further logits for a logit of skill, on the items that are removed
_SPREAD = 1.2


@dataclass(frozen=True)
class Curated:
    """The synthetic pool and what is known of it.

    Attributes
    ----------
    items : item, question, options (JSON), key, answer_type, source, capability, licence, provenance, sensitive.
    models : model, provider, tier, open, params_b, role (words: inspector, panel, evaluated).
    counts : item, model, condition, answer, correct, odd, even; the long table of answer counts.
    truth : item, ``planned`` (what the item is to become, of CLASSES) and ``defect`` (what is wrong with it, "" if
        nothing), also of items that nobody will suspect.
    votes : of five judges in two rounds, on the recalled items.
    readings : item and what each of three readers says, on every item.
    plan : how many items of each source are of each class; ``plan.chain`` sums them up by stage.
    """

    items: pd.DataFrame
    models: pd.DataFrame
    counts: pd.DataFrame
    truth: pd.DataFrame
    votes: pd.DataFrame
    readings: pd.DataFrame
    plan: Plan


def curated(items: int | None = None, seed: int = SEED) -> Curated:
    """Make the synthetic pool, the same for the same seed: all 23,250 items, or fewer in the same proportions."""
    if items is not None and items < _FEWEST:
        raise ValueError(f"the margins need at least {_FEWEST} items")
    plan = full_plan() if items is None else scaled_plan(items)
    frame = frame_of(plan, generator(seed, "curated", "items"))
    models = model_table()
    full = with_image(plan, frame, models, seed)
    inspectors = np.flatnonzero(models["role"].str.contains("inspector"))
    blind = without_image(plan, frame, len(inspectors), generator(seed, "curated", "blind"))
    table, names = item_table(plan, frame, generator(seed, "curated", "texts"))
    ids = table["item"].to_numpy(dtype=object)
    everyone = models["model"].to_numpy(dtype=object)
    counts = long_table(ids, everyone, names, frame.key, {"full": (np.arange(len(everyone)), full),
                                                          "blind": (inspectors, blind)})  # fmt: skip
    rng = generator(seed, "curated", "people")
    confirmed = frame.is_("confirmed", "confirmed_zero")
    recalled = frame.is_("confirmed", "confirmed_zero", "recalled", "recalled_zero")
    voted = votes(ids[recalled], frame.defect[recalled], confirmed[recalled], rng)
    # what nobody suspects: defects that do not show in the answers
    hidden = ~recalled & (rng.random(len(ids)) < 0.03)
    defect = np.where(hidden, rng.integers(1, 4, len(ids)), frame.defect)
    said = readings(ids, defect, recalled, rng)
    truth = pd.DataFrame({"item": ids, "planned": np.array(CLASSES, dtype=object)[frame.kind],
                          "defect": np.array(KINDS_OF_DEFECT, dtype=object)[defect]})  # fmt: skip
    return Curated(table, models.drop(columns=["skill", "group"]), counts, truth, voted, said, plan)


def item_table(plan: Plan, frame: Frame, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Items with invented texts, and the text of each answer code, shape (items, 10)."""
    n = len(frame.kind)
    source = np.array(plan.sources, dtype=object)[frame.source]
    number = pd.Series(source).groupby(source).cumcount().to_numpy() + 1
    words = np.array(_WORDS, dtype=object)[np.argsort(rng.random((n, len(_WORDS))), axis=1)[:, :ANSWERS]]
    numbers = (rng.integers(2, 90, n)[:, None] + np.argsort(rng.random((n, 60)), axis=1)[:, :ANSWERS]).astype(str)
    choice, yesno, free = frame.k > 2, frame.k == 2, frame.k == 0
    names = np.where(choice[:, None], np.array(list(LETTERS[:ANSWERS]), dtype=object), numbers.astype(object))
    names[yesno, 0], names[yesno, 1] = "Yes", "No"
    options = [json.dumps(w[:k].tolist()) if k > 2 else "" for w, k in zip(words, frame.k.tolist())]
    asked = np.select([choice, yesno], ["which word names what is shown?", "is what is shown red?"],
                      "which number is shown?")  # fmt: skip
    table = pd.DataFrame({
        "item": [f"{s}-{i:04d}" for s, i in zip(source, number)],
        "question": [f"Synthetic question {i} of {s}: {a}" for s, i, a in zip(source, number, asked)],
        "options": options,
        "key": names[np.arange(n), frame.key],
        "answer_type": np.select([choice, yesno, free], ["choice", "yesno", "open"], ""),
        "source": source,
        "capability": np.array(list(KEPT_SCORES), dtype=object)[frame.capability],
        "licence": "invented for this pool",
        "provenance": "synthetic: no item of the source",
        "sensitive": np.where(np.isin(source, ("SLAKE", "MedXpertQA")), "medical", ""),
    })  # fmt: skip
    return table, names


def long_table(items: np.ndarray, models: np.ndarray, names: np.ndarray, key: np.ndarray,
               counts: dict[str, tuple[np.ndarray, np.ndarray]]) -> pd.DataFrame:  # fmt: skip
    """One row per answer that was given, its texts as categories.

    Parameters
    ----------
    items, models : names. names : text of each answer code, shape (items, 10). key : code of each item's key.
    counts : condition -> places of its models, and counts of shape (items, models, 11, 2).
    """
    padded = np.concatenate([names, np.full((len(names), 1), "", object)], axis=1)
    codes, texts = pd.factorize(padded.ravel())
    codes = codes.reshape(padded.shape)
    parts = []
    for c, (places, made) in enumerate(counts.values()):
        i, j, code = np.nonzero(made.any(axis=3))
        odd, even = made[i, j, code].astype(np.int16).T
        parts.append((i, places[j], np.full(len(i), c), codes[i, code], code == key[i], odd, even))
    i, j, c, said, correct, odd, even = (np.concatenate(p) for p in zip(*parts))
    return pd.DataFrame({
        "item": pd.Categorical.from_codes(i, categories=items),
        "model": pd.Categorical.from_codes(j, categories=models),
        "condition": pd.Categorical.from_codes(c, categories=list(counts)),
        "answer": pd.Categorical.from_codes(said, categories=texts), "correct": correct, "odd": odd, "even": even,
    })  # fmt: skip


def frame_of(plan: Plan, rng: np.random.Generator) -> Frame:
    """Items of a plan in the order of the sources, classes mixed within each."""
    kinds, ks, sources = [], [], []
    for s, (name, counts) in enumerate(zip(plan.sources, plan.counts)):
        kind = rng.permutation(np.repeat(np.arange(len(CLASSES)), counts))
        sorts, weights = np.array(list(KINDS[name])), np.array(list(KINDS[name].values()), float)
        k = rng.choice(sorts, len(kind), p=weights / weights.sum())
        kinds.append(kind), ks.append(k), sources.append(np.full(len(kind), s))
    kind, k, source = (np.concatenate(a) for a in (kinds, ks, sources))
    key = np.where(k == 0, 0, np.floor(rng.random(len(kind)) * np.maximum(k, 1))).astype(int)
    names = list(KEPT_SCORES)
    capability = np.array([names.index(c) for c in plan.capabilities])[source]
    u = rng.random(len(kind))
    defect = np.zeros(len(kind), int)
    confirmed = np.isin(kind, [CLASSES.index("confirmed"), CLASSES.index("confirmed_zero")])
    defect[confirmed] = np.select([u < 0.45, u < 0.80], [1, 2], 3)[confirmed]
    zero = kind == CLASSES.index("confirmed_zero")
    # an item that nobody gets right has a wrong key or a scorer that knows one spelling
    defect[zero & (defect == 2)] = 1
    defect[zero & (k == 2)] = 1
    # defects that judges will miss
    missed = (kind == CLASSES.index("recalled")) & (u < 0.025)
    defect[missed] = np.where(u < 0.0125, 1, 2)[missed]
    return Frame(kind, k, key, defect, source, capability)


def with_image(plan: Plan, frame: Frame, models: pd.DataFrame, seed: int) -> np.ndarray:
    """Everybody's counts with the image, shape (items, models, 11, 2)."""
    group = models["group"].to_numpy()
    panel = np.flatnonzero(models["role"].str.contains("panel"))
    others = np.flatnonzero(~models["role"].str.contains("panel"))
    rng = generator(seed, "curated", "skills")
    skill = models["skill"].to_numpy()[:, None] + rng.normal(0, 0.15, (len(models), len(KEPT_SCORES)))
    target = np.array(list(KEPT_SCORES.values())) / 100
    kept = np.flatnonzero(frame.is_("recalled_zero", "recalled", "clear"))
    lift = _panel_lift(frame.at(kept), skill[panel], group[panel], target, seed)
    shape, drawn = _panel(frame, skill[panel] + lift[:, group[panel]].T, seed)
    can_change = np.flatnonzero(frame.is_("recalled", "clear"))
    for g in set(group[panel].tolist()):
        _to_target(rng, frame, drawn, kept, can_change, np.flatnonzero(group[panel] == g), target[:, g], panel_fits)
    counts = np.zeros((len(frame.kind), len(models), ANSWERS + 1, 2), np.uint8)
    counts[:, panel] = drawn
    level_of = _others_level(frame, shape, skill, group, others, lift, target, counts)
    counts[:, others] = draw(rng, shape, level_of)
    for g in range(3):
        mine = others[group[others] == g]
        if len(mine):
            _to_target(rng, frame, counts, kept, can_change, np.flatnonzero(group == g), target[:, g], None, mine)
    gone = np.flatnonzero(~np.isin(np.arange(len(frame.kind)), kept))
    easy = np.flatnonzero(frame.is_("ablated_easy", "ablated", "saturated"))
    _to_target(rng, frame, counts, np.concatenate([kept, gone]), easy, np.arange(len(models)),
               np.array([RAW_SCORES[c] for c in KEPT_SCORES]) / 100, None, others)  # fmt: skip
    return counts


def _panel(frame: Frame, skill: np.ndarray, seed: int) -> tuple[Shape, np.ndarray]:
    """Counts of the panel; ``skill`` has shape (models, capabilities)."""

    def make(rng: np.random.Generator, shape: Shape, places: np.ndarray) -> np.ndarray:
        return draw(rng, shape, skill.T[frame.capability[places]])

    return fill(generator(seed, "curated", "panel"), frame, make, panel_fits)


def _panel_lift(frame: Frame, skill: np.ndarray, group: np.ndarray, target: np.ndarray, seed: int) -> np.ndarray:
    """Logits that bring the panel's means on the kept items near their targets, shape (capabilities, 3)."""
    lift = logit(target)
    for _ in range(_TURNS):
        _, counts = _panel(frame, skill + lift[:, group].T, seed)
        correct = hits(counts, frame.key) / (2 * HALF)
        for c in range(len(target)):
            for g in set(group.tolist()):
                part = correct[frame.capability == c][:, group == g]
                if part.size:
                    lift[c, g] += logit(target[c, g]) - logit(np.clip(part.mean(), 0.02, 0.98))
    lift[:, 2] = lift[:, 1] - 1
    return lift


def _others_level(frame: Frame, shape: Shape, skill: np.ndarray, group: np.ndarray, others: np.ndarray,
                  lift: np.ndarray, target: np.ndarray, counts: np.ndarray) -> np.ndarray:  # fmt: skip
    """Skill of the models outside the panel on each item, shape (items, others), such that the expected means are the
    targets: of each group on the kept items, of all models on all items."""
    rows = np.arange(len(frame.kind))
    right, slip, loud = shape.aim[rows, frame.key], shape.rest[rows, frame.key], 1 - shape.silent
    kept = frame.is_("recalled_zero", "recalled", "clear")
    easy = frame.is_("ablated_easy", "ablated", "saturated")

    def mean(mine: np.ndarray, at: np.ndarray) -> np.ndarray:
        solve = expit(at - shape.difficulty[mine][:, None])
        return (solve * right[mine][:, None] + (1 - solve) * slip[mine][:, None]) * loud[mine][:, None]

    out = np.zeros((len(rows), len(others)))
    had = hits(counts, frame.key) / (2 * HALF)
    for c, name in enumerate(KEPT_SCORES):
        here = frame.capability == c
        for g in (1, 2):
            columns, of = np.flatnonzero(group[others] == g), others[group[others] == g]
            mine = kept & here
            wanted = target[c, g] * (group == g).sum() - had[mine][:, group == g].mean(axis=0).sum()
            own = _root(lambda x, m=mine, o=of, c=c: mean(m, skill[o, c] + x).mean(axis=0).sum(), wanted)
            out[np.ix_(here, columns)] = skill[of, c] + own
        fixed = here & ~easy
        wanted = RAW_SCORES[name] / 100 * here.sum() * len(group) - had[here].sum() - mean(fixed, out[fixed]).sum()
        mine = here & easy
        # models differ more on what is removed: small ones fail items that every panel model solves
        out[mine] += _SPREAD * skill[others, c]
        out[mine] += _root(lambda x, m=mine: mean(m, out[m] + x).sum(), wanted)
    return out


def _root(of: Callable, wanted: float) -> float:
    """Where an increasing function has a value, within 12 of nought; the nearer end where it has not."""
    low, high = -12.0, 12.0
    for _ in range(32):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle) < wanted else (low, middle)
    return (low + high) / 2


def _to_target(rng: np.random.Generator, frame: Frame, counts: np.ndarray, over: np.ndarray, change: np.ndarray,
               columns: np.ndarray, target: np.ndarray, fits: Callable | None,
               movable: np.ndarray | None = None) -> None:  # fmt: skip
    """Bring the mean score of ``columns`` over the items ``over`` to ``target`` (capabilities,) in each capability, by
    moving draws of the models ``movable`` in the items ``change``."""
    for c, share in enumerate(target):
        mine, may = over[frame.capability[over] == c], change[frame.capability[change] == c]
        now = int(hits(counts[mine][:, columns], frame.key[mine]).sum())
        wanted = round(share * len(mine) * len(columns) * 2 * HALF)
        level(rng, frame, counts, may, columns if movable is None else movable, wanted - now, fits)
