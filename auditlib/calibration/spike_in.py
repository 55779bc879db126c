"""Defects planted in the user's own pool, to see what its detectors find there.

What is found of them is an upper value: planted flips are cleaner than real wrong keys, and random ones hit easy items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.counts import count, why_not
from auditlib.detectors.consensus_error import consensus
from auditlib.detectors.consensus_error import needs as votes_lacking
from auditlib.errors import AuditError
from auditlib.frames import LETTERS
from auditlib.metrics.key_information import FEWEST, key_information_rows
from auditlib.params import AuditParams, Params
from auditlib.pool import Pool
from auditlib.stats.categories import CATEGORIES, categories
from auditlib.stats.label_conflict import label_conflict
from auditlib.synth.plant import commonest_wrong, flip_keys, shuffle_keys, swap_runs

#: how every recall of this module is to be called
LABEL = "recall of planted flips, an upper value"
#: how items are chosen and what becomes their key
SCHEMES: Mapping[str, str] = {
    "random": "any item, any other option",
    "difficulty": "items of every level of the pool's accuracy alike, any other option",
    "modal distractor": "items of every level alike, the option that the pool takes most often when it is wrong",
}
#: levels of accuracy that are drawn alike
LEVELS = 5
#: bootstrap draws of one interval of key information
_DRAWS = 1000
NAN = float("nan")


@dataclass(frozen=True)
class SpikeIn:
    """What was found of the planted defects.

    ``table`` has one row for each kind of defect (``planted``), ``scheme``, ``detector`` and ``flag``: ``recall``
    (share of the planted found) and ``false_positive`` (share of the others flagged; they may hold real defects) with
    the 5% and 95% points over repeats, ``n_planted`` in one repeat and ``repeats``. ``lacking`` says what could not be
    planted, and why.
    """

    table: pd.DataFrame
    lacking: dict[str, str]

    def line(self) -> str:
        """The sentence that every report carries; empty where no key could be flipped."""
        t = self.table
        t = t[(t["planted"] == "wrong key") & (t["flag"] == "unanimous")] if len(t) else t
        if not len(t):
            return ""
        r = t.set_index("scheme")
        parts = [f"{100 * r.loc[s, 'recall']:.0f}% ({s})" for s in SCHEMES if s in r.index]
        return (f"Of keys flipped on purpose in this pool, the unanimous tier finds {', '.join(parts)}, and flags "
                f"{100 * r['false_positive'].mean():.1f}% of the other items ({LABEL}).")  # fmt: skip


def spike_in(pool: Pool, *, share: float = 0.05, repeats: int = 20) -> SpikeIn:
    """Plant defects in copies of a pool and count what the detectors find.

    Parameters
    ----------
    pool : is left as it is.
    share : share of the items that get a defect, in each repeat.
    repeats : copies for each kind of defect; strata are shuffled in a quarter as many.

    Returns
    -------
    SpikeIn
        Deterministic given the pool and its seed.

    Raises
    ------
    AuditError
        A share outside (0, 0.5], or no repeat.

    Notes
    -----
    Wrong keys: :data:`SCHEMES`; detectors: the unanimous tier, any tier, and the first r of the label-conflict ranking,
    r = number of planted keys. Swapped runs: the hits of an item with and without the image change places; flags:
    ``image hurts`` and ``zero gain`` (an item with as many hits in both looks the same before and after). Shuffled key:
    every stratum's keys are dealt anew inside it; flag: no information.
    """
    if not 0 < share <= 0.5 or repeats < 1:
        raise AuditError("spike-in needs a share above 0 and up to 0.5, and a repeat", mend="use 0.05 and 20")
    rows: list[dict[str, object]] = []
    lacking: dict[str, str] = {}
    for name, part in (("wrong key", _flips), ("swapped runs", _swaps), ("shuffled key", _shuffles)):
        why = part(pool, share, repeats, rows)
        if why:
            lacking[name] = why
    return SpikeIn(pd.DataFrame(rows), lacking)


def _flips(pool: Pool, share: float, repeats: int, rows: list[dict[str, object]]) -> str:
    why = votes_lacking(pool)
    if why:
        return why
    letters, key = pool.letters["full"], pool.key_codes.astype(int)
    k = np.nan_to_num(pool.k, nan=0).astype(int) if pool.k is not None else np.zeros(len(key), int)
    k = np.maximum(k, np.maximum(letters.max(axis=1), key) + 1)
    votes = (letters >= 0).sum(1)
    can = np.flatnonzero((key >= 0) & (votes >= 2) & (k >= 2))
    n = round(share * len(can))
    if n < 1:
        return f"{len(can)} items with a key and two votes are too few for a share of {share:g}"
    level = (letters == key[:, None]).sum(1) / np.maximum(votes, 1)
    family = pool.models["family"].to_numpy() if "family" in pool.models else None
    family = None if family is None or pd.isna(family).any() else family.astype(str)
    modal = commonest_wrong(letters, key)
    for scheme in SCHEMES:
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for i in range(repeats):
            rng = pool.rng("spike-in", scheme, str(i))
            where = rng.choice(can, n, replace=False) if scheme == "random" else _alike(can, level, n, rng)
            spoiled = flip_keys(key, k, where, rng, modal if scheme == "modal distractor" else None)
            for at, marked in _conflicts(letters, spoiled, n, family).items():
                found.setdefault(at, []).append(_rates(marked, where, can))
        rows += [_row("wrong key", scheme, *at, n, seen) for at, seen in found.items()]
    return ""


def _alike(can: NDArray, level: NDArray, n: int, rng: np.random.Generator) -> NDArray:
    """Items of each level of accuracy in equal numbers, as far as there are any."""
    _, group = np.unique(np.floor(level[can] * LEVELS).clip(0, LEVELS - 1), return_inverse=True)
    order = rng.permutation(len(can))
    # place of an item inside its level: all firsts come before all seconds
    place = pd.Series(group[order]).groupby(group[order]).cumcount().to_numpy()
    return can[order[np.argsort(place, kind="stable")[:n]]]


def _conflicts(letters: NDArray, key: NDArray, n: int, family: NDArray | None) -> dict[tuple[str, str], NDArray]:
    c = consensus(letters, key.astype(np.int8))
    out = {}
    for flag, inside in (("unanimous", c.tier == "unanimous"), ("any tier", c.tier != "none")):
        marked = np.zeros(len(key), bool)
        marked[c.keep] = inside
        out["consensus_error", flag] = marked
    first = np.zeros(len(key), bool)
    first[label_conflict(letters, key, families=family).order[:n]] = True
    return out | {("label_conflict", "first r of the ranking"): first}


def _swaps(pool: Pool, share: float, repeats: int, rows: list[dict[str, object]]) -> str:
    arm = pool.arms[pool.arm_names[0]]
    why = why_not(pool, arm)
    if why:
        return why
    c = count(pool, arm.name)
    n = round(share * c.n)
    if n < 1:
        return f"{c.n} counted items are too few for a share of {share:g}"
    tests: Mapping[str, Callable[[NDArray, NDArray], NDArray]] = {
        "image hurts": lambda f, b: categories(f, b, c.total) == CATEGORIES.index("conflicting"),
        "zero gain": lambda f, b: f == b,
    }
    found: dict[str, list[tuple[float, float]]] = {t: [] for t in tests}
    for i in range(repeats):
        where = pool.rng("spike-in", "swap", str(i)).choice(c.n, n, replace=False)
        full, blind = swap_runs(c.F, c.B, where)
        for name, test in tests.items():
            found[name].append(_rates(test(full, blind), where, np.arange(c.n)))
    rows += [_row("swapped runs", "random", "visual_dependency", t, n, seen) for t, seen in found.items()]
    return ""


def _shuffles(pool: Pool, share: float, repeats: int, rows: list[dict[str, object]]) -> str:
    if pool.strata is None:
        return "the pool has no official categories"
    if "full" not in pool.letters or len(pool.model_names) < 2:
        return "no option letters of two models"
    if "key" not in pool.items:
        return "no letter keys"
    raw = pool.settings.model_dump() if pool.params else {}
    light = Params.model_construct(seed=pool.seed, audit=AuditParams(**(raw | {"bootstrap": _DRAWS})))
    pool = replace(pool, params=light)
    before = _silent_strata(pool, pool.key_codes)
    if not before:
        return f"no category has {FEWEST} items with a letter as key"
    seen = []
    for i in range(max(1, repeats // 4)):
        key, rng = pool.key_codes, pool.rng("spike-in", "shuffle", str(i))
        for name in before:
            key = shuffle_keys(key, np.flatnonzero((pool.strata == name) & (key >= 0)), rng)
        after = _silent_strata(pool, key)
        seen.append((float(np.mean([after[s] for s in before])), float(np.mean(list(before.values())))))
    rows.append(_row("shuffled key", "every category", "key_information", "no information", len(before), seen))
    return ""


def _silent_strata(pool: Pool, key: NDArray) -> dict[str, bool]:
    """Whether the key of each stratum is said to carry no information."""
    names = pool.items["key"].astype(object).to_numpy().copy()
    for i in np.flatnonzero(key >= 0):
        names[i] = LETTERS[key[i]]
    table = pd.DataFrame(key_information_rows(replace(pool, items=pool.items.assign(key=names))))
    out = {}
    for name, part in table[table["stratum"] != "all"].groupby("stratum", sort=True) if len(table) else ():
        r = part.set_index("metric")
        kappa, majority = r.loc["key_kappa"], r.loc["key_majority"]
        out[name] = bool(kappa["low"] <= 0 <= kappa["high"] and majority["low"] <= majority["null"] <= majority["high"])
    return out


def _rates(marked: NDArray, where: NDArray, among: NDArray) -> tuple[float, float]:
    planted = np.zeros(len(marked), bool)
    planted[where] = True
    others = among[~planted[among]]
    return float(marked[where].mean()), float(marked[others].mean()) if len(others) else NAN


def _row(planted: str, scheme: str, detector: str, flag: str, n: int, seen: list[tuple[float, float]]
         ) -> dict[str, object]:  # fmt: skip
    recall, wrong = np.array(seen).T
    ends = np.quantile(recall, [0.05, 0.95])
    return {"planted": planted, "scheme": scheme, "detector": detector, "flag": flag, "recall": float(recall.mean()),
            "recall_low": float(ends[0]), "recall_high": float(ends[1]), "false_positive": float(wrong.mean()),
            "n_planted": n, "repeats": len(seen)}  # fmt: skip
