"""Judges of best-of-n decisions with planted habits: locked to a slot, good but unsure, two that share an error.

All of it is synthetic. What the planted habits imply is written down exactly, so that estimates can be held against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.judges.calls import calls_frame
from auditlib.seeds import generator

#: numbers of candidates, equally often: the mean of 1/n is .28
SIZES = (2, 3, 4, 5, 6)
_SIZE_SHARES = (0.09, 0.27, 0.36, 0.14, 0.14)
GROUPS = ("north", "south", "east")


@dataclass(frozen=True)
class PlantedJudge:
    """How a judge decides.

    Attributes
    ----------
    locked : chance that a call takes ``slot`` (from 0; -1 the last one), whatever lies there.
    sharpness : of the choice among candidates otherwise, ``exp(sharpness * rating)``; ``inf`` takes the best.
    lured : chance that a prompt with a lure makes this judge take the lure (the candidate rated worst), in every call
        of the prompt: judges with equal ``lure_seed`` fall for it at the same prompts.
    silent : chance of a call without an answer. never : answers no call.
    """

    name: str
    locked: float = 0.0
    slot: int = 0
    sharpness: float = float("inf")
    lured: float = 0.0
    lure_seed: int = 0
    silent: float = 0.0
    never: bool = False


#: the three of the check: a slot-locked one with 40 % content, an unbiased good one, and two that share an error
LOCKED = PlantedJudge("locked", locked=0.6)
GOOD = PlantedJudge("good", sharpness=4.0)
SHARED = (PlantedJudge("shared one", sharpness=6.0, lured=0.4), PlantedJudge("shared two", sharpness=6.0, lured=0.4))


@dataclass(frozen=True)
class Implied:
    """What a judge's habits imply under cyclic orders, averaged over the prompts given.

    ``first_slot`` and its value without bias ``first_slot_null``; ``change`` between two different orders and
    ``change_same`` between two calls in the same order; ``share`` the normalised gain of a single call.
    """

    first_slot: float
    first_slot_null: float
    change: float
    change_same: float
    share: float


def planted_candidates(prompts: int, *, seed: int, sizes: Sequence[int] = SIZES) -> pd.DataFrame:
    """Candidates of prompts: ``prompt, candidate, rating, similarity, side, length, group``.

    Ratings are on a scale of 1 to 5 in steps of .25; similarity follows them weakly; the side effect rises with
    similarity, so that picking by it brings side effects.
    """
    rng = generator(seed, "planted candidates")
    shares = np.asarray(_SIZE_SHARES) if tuple(sizes) == SIZES else np.full(len(sizes), 1 / len(sizes))
    rows = []
    for p, n in enumerate(rng.choice(sizes, prompts, p=shares).tolist()):
        quality = rng.normal(3.0, 0.9, n)
        rating = np.clip(np.round(quality * 4) / 4, 1, 5)
        similarity = 0.25 + 0.02 * (quality - 3) + rng.normal(0, 0.03, n)
        side = np.clip(2 + 12 * (similarity - 0.25) + rng.normal(0, 0.6, n), 1, 5)
        length = np.maximum(20, rng.normal(200, 60, n)).round()
        rows += [
            {"prompt": f"p{p:04d}", "candidate": f"c{j}", "rating": rating[j], "similarity": similarity[j],
             "side": side[j], "length": length[j], "group": GROUPS[p % len(GROUPS)]}
            for j in range(n)
        ]  # fmt: skip
    return pd.DataFrame(rows)


def planted_ratings(candidates: pd.DataFrame, raters: int, noise: float, *, seed: int) -> pd.DataFrame:
    """Single ratings round each candidate's rating, with normal noise."""
    rng = generator(seed, "planted ratings")
    rows = candidates.loc[candidates.index.repeat(raters), ["prompt", "candidate"]].reset_index(drop=True)
    rows["rater"] = [f"r{i % raters}" for i in range(len(rows))]
    rows["rating"] = np.repeat(candidates["rating"].to_numpy(), raters) + rng.normal(0, noise, len(rows))
    return rows


def cyclic(n: int) -> NDArray[np.int64]:
    """All cyclic shifts of n candidates, shape (n, n): every one lies in every slot once."""
    return (np.arange(n) + np.arange(n)[:, None]) % n


def planted_calls(
    candidates: pd.DataFrame, judges: Sequence[PlantedJudge], *, seed: int, repeats: int = 1, orders: int | None = None
) -> pd.DataFrame:
    """Calls of the judges in cyclic orders, as a frame of judge calls.

    Parameters
    ----------
    repeats : calls in each order. orders : the first so many cyclic orders only; all by default.
    """
    rows = []
    for judge in judges:
        rng = generator(seed, "planted calls", judge.name)
        for prompt, mine in candidates.groupby("prompt", sort=False):
            names, rating = mine["candidate"].tolist(), mine["rating"].to_numpy()
            lure = generator(judge.lure_seed, "lure", str(prompt)).random() < judge.lured
            edges = np.cumsum(chances(judge, rating, lure))
            for shown in cyclic(len(names))[:orders]:
                for repeat in range(repeats):
                    slot = judge.slot % len(names)
                    if rng.random() >= judge.locked:
                        taken = min(int(np.searchsorted(edges, rng.random(), side="right")), len(names) - 1)
                        slot = shown.tolist().index(taken)
                    quiet = judge.never or rng.random() < judge.silent
                    rows.append({"judge": judge.name, "instance": prompt, "paradigm": "best_of_n", "repeat": repeat,
                                 "shown": tuple(names[j] for j in shown), "slot": -1 if quiet else slot,
                                 "state": "unparsed" if quiet else "chosen"})  # fmt: skip
    return calls_frame(rows)


def chances(judge: PlantedJudge, rating: NDArray, lure: bool = False) -> NDArray[np.float64]:
    """Choice probabilities of a call that is not locked to a slot."""
    if lure:
        top = rating == rating.min()
    elif np.isinf(judge.sharpness):
        top = rating == rating.max()
    else:
        top = np.exp(judge.sharpness * (rating - rating.max()))
    return top / top.sum()


def implied(judge: PlantedJudge, candidates: pd.DataFrame) -> Implied:
    """Exact expectations for these candidates under all cyclic orders.

    Notes
    -----
    With lock ``l`` and content probabilities ``t``: first slot ``l + (1 - l)/n`` (lock to the first slot); agreement
    of two different cyclic orders ``(1 - l)^2 sum t^2 + 2 l (1 - l)/n``, of two calls in one order
    ``l^2 + (1 - l)^2 sum t^2 + 2 l (1 - l)/n``; the value of a call is ``l`` random plus ``1 - l`` content.
    """
    lock = judge.locked
    first, null, change, same, gain, room = [], [], [], [], 0.0, 0.0
    for prompt, mine in candidates.groupby("prompt", sort=False):
        rating = mine["rating"].to_numpy()
        n = len(rating)
        lure = generator(judge.lure_seed, "lure", str(prompt)).random() < judge.lured
        t = chances(judge, rating, lure)
        first.append((lock if judge.slot == 0 else 0) + (1 - lock) / n)
        null.append(1 / n)
        apart = (1 - lock) ** 2 * float(t @ t) + 2 * lock * (1 - lock) / n
        change.append(1 - apart)
        same.append(1 - apart - lock**2)
        gain += (1 - lock) * float(t @ rating - rating.mean())
        room += float(rating.max() - rating.mean())
    return Implied(*(float(np.mean(x)) for x in (first, null, change, same)), gain / room)
