"""Judges of planted damage with known habits: weights per dimension, a liking for a slot or for length, no eyes.

All of it is synthetic. A judge takes ``weight * severity`` from the score of the gold for damage, and adds noise
to every score; what that implies for detection is written down exactly for unrounded scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from auditlib.judges.calls import calls_frame
from auditlib.judges.dimensions import DIMENSIONS, I2T, NEUTRAL
from auditlib.judges.outcomes import GOLD, PERTURBED
from auditlib.seeds import generator


@dataclass(frozen=True)
class PerturbationJudge:
    """How a judge scores and prefers.

    Attributes
    ----------
    weights : fall of the score per step of severity by dimension; ``weight`` for the others, 0 for neutral ones.
    noise : standard deviation of each score. length : added to the score per 100 characters.
    slot : added to the score of what lies in the first slot of a pair. blind : shares of the weight that is left
        without the image (1: it reads the text only).
    habit : ``""``; ``always_first``, ``always_negative`` (whatever was changed is worse) or ``coin``, which know
        nothing of damage. silent : chance of a call without a score.
    """

    name: str
    weight: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.5
    length: float = 0.0
    slot: float = 0.0
    blind: float = 0.0
    habit: str = ""
    silent: float = 0.0

    def fall(self, dimension: str, severity: float, image: str) -> float:
        """Fall of the score that damage makes."""
        if self.habit or (dimension in DIMENSIONS and DIMENSIONS[dimension].effect == "neutral"):
            return 0.0
        seen = 1.0 if image in ("shown", "none") else self.blind
        return seen * severity * self.weights.get(dimension, self.weight)


def planted_instances(
    per_dimension: int, *, seed: int, dimensions: Sequence[str] | None = None, neutral: int | None = None,
    clusters: Sequence[str] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Perturbed instances: ``instance, cluster, task, dimension, effect, severity, longer, quality`` (the
    gold's mean score).

    Parameters
    ----------
    dimensions : degrading ones; the twenty of image to text by default. The three neutral ones of image to text are
        always there, ``neutral`` instances each. clusters : images to draw from.
    """
    rng = generator(seed, "planted instances")
    bad = list(dimensions or [d.id for d in I2T])
    fine = [d.id for d in NEUTRAL if d.task == "I2T"]
    count = [*[per_dimension] * len(bad), *[per_dimension if neutral is None else neutral] * len(fine)]
    rows = []
    for name, times in zip([*bad, *fine], count):
        for i in range(times):
            number = len(rows)
            cluster = str(clusters[int(rng.integers(len(clusters)))]) if clusters else f"image {number // 4}"
            effect = "neutral" if name in fine else "degrade"
            rows.append({"instance": f"x{number:05d}", "cluster": cluster, "task": "I2T", "dimension": name,
                         "effect": effect, "severity": i % 3 + 1 if effect == "degrade" else np.nan,
                         "longer": float(np.round(rng.normal(0, 60))),
                         "quality": float(rng.normal(4.0, 0.4))})  # fmt: skip
    return pd.DataFrame(rows)


def planted_scores(
    instances: pd.DataFrame, judges: Sequence[PerturbationJudge], *, seed: int, paradigm: str = "single",
    image: str = "shown", repeats: int = 1, whole: bool = False, style: str = "plain",
) -> pd.DataFrame:  # fmt: skip
    """Calls of the judges: two scores per instance (the gold's ``repeats`` times), or a pair in both orders.

    Parameters
    ----------
    whole : scores are whole numbers from 1 to 5, so that ties appear.
    """
    rows = []
    for judge in judges:
        rng = generator(seed, "planted scores", judge.name, paradigm, image, style)
        for at in instances.itertuples():
            base = {"judge": judge.name, "instance": at.instance, "cluster": at.cluster, "dimension": at.dimension,
                    "effect": at.effect, "severity": at.severity, "paradigm": paradigm, "image": image,
                    "style": style}  # fmt: skip
            change = judge.length * at.longer / 100 - judge.fall(at.dimension, at.severity, image)
            if paradigm == "pairwise":
                rows += _pair(judge, base, change, rng)
            else:
                rows += _two_scores(judge, base, at.quality, change, repeats, whole, rng)
    return calls_frame(rows)


def _two_scores(
    judge, base: dict, quality: float, change: float, repeats: int, whole: bool, rng: np.random.Generator
) -> list[dict]:
    rows = []
    for which, worth, times in ((GOLD, quality, repeats), (PERTURBED, quality + change, 1)):
        for repeat in range(times):
            score = worth + rng.normal(0, judge.noise)
            if judge.habit == "always_negative":
                score = 4.0 if which == GOLD else 2.0
            elif judge.habit == "always_first":
                score = 4.0
            elif judge.habit == "coin":
                score = float(rng.integers(1, 6))
            score = float(np.clip(np.round(score), 1, 5)) if whole else score
            quiet = rng.random() < judge.silent
            rows.append({**base, "shown": (which,), "repeat": repeat, "state": "unparsed" if quiet else "scored",
                         "score": None if quiet else score})  # fmt: skip
    return rows


def _pair(judge, base: dict, change: float, rng: np.random.Generator) -> list[dict]:
    rows = []
    for shown in ((GOLD, PERTURBED), (PERTURBED, GOLD)):
        worth = {GOLD: rng.normal(0, judge.noise), PERTURBED: change + rng.normal(0, judge.noise)}
        worth[shown[0]] += judge.slot
        choice = max(shown, key=lambda c, worth=worth: worth[c])
        if judge.habit == "always_first":
            choice = shown[0]
        elif judge.habit == "always_negative":
            choice = GOLD
        elif judge.habit == "coin":
            choice = shown[int(rng.integers(2))]
        quiet = rng.random() < judge.silent
        rows.append({**base, "shown": shown, "state": "unparsed" if quiet else "chosen",
                     "choice": "" if quiet else choice})  # fmt: skip
    return rows


def implied_detection(judge: PerturbationJudge, instances: pd.DataFrame, image: str = "shown",
                      paradigm: str = "single") -> pd.Series:  # fmt: skip
    """Chance that each instance is detected, for unrounded scores.

    Notes
    -----
    Two scores with independent noise s: ``Phi(-change / (s sqrt 2))``. A pair in both orders with a liking b of the
    first slot: ``Phi((-change + b) / (s sqrt 2)) Phi((-change - b) / (s sqrt 2))``.
    """
    from scipy.special import ndtr

    change = np.array([judge.length * r.longer / 100 - judge.fall(r.dimension, r.severity, image)
                       for r in instances.itertuples()])  # fmt: skip
    sd = judge.noise * np.sqrt(2)
    if paradigm == "single":
        chance = ndtr(-change / sd)
    else:
        chance = ndtr((-change + judge.slot) / sd) * ndtr((-change - judge.slot) / sd)
    return pd.Series(chance, index=instances.index)
