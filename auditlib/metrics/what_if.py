"""What the leaderboard would be without flagged items, with corrected keys, or with doubtful items counting less."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import MISSING, letter_codes
from auditlib.pool import Pool
from auditlib.stats.rank_bands import RankBands, rank_bands

#: the leaderboard that the others are compared with
AS_IS = "as is"
WITHOUT, CORRECTED, WEIGHTED = "without flagged items", "corrected keys", "weighted by probability of defect"


@dataclass(frozen=True)
class WhatIf:
    """Leaderboards of one pool.

    ``board``: one row per variant and model: ``variant, model, n, score, se, rank, rank_low, rank_high, group``.
    ``claims``: one row per variant other than "as is" and pair whose standing there differs: ``variant, first, second,
    before, after, change``; ``first`` scores at least as high as ``second`` as is. ``notes`` say what was left out.
    """

    board: pd.DataFrame
    claims: pd.DataFrame
    notes: tuple[str, ...]

    def sentences(self) -> list[str]:
        """What each variant does to the ranking, one sentence each."""
        out = []
        for variant in dict.fromkeys(self.board["variant"]):
            if variant == AS_IS:
                continue
            said = self.claims[self.claims["variant"] == variant]
            parts = [
                f"{n} {'pair' if n == 1 else 'pairs'} {words}"
                for change, words in CHANGES.items()
                if (n := int((said["change"] == change).sum()))
            ]
            out.append(
                f"{variant[0].upper()}{variant[1:]}: " + ("; ".join(parts) if parts else "no rank claim flips") + "."
            )
        return out


#: kinds of change of a claim about two models, in words after a number of pairs
CHANGES = {
    "reversed": "told apart the other way round",
    "lost": "no longer told apart",
    "gained": "newly told apart",
    "order": "in another order, told apart in neither",
}


def what_if(
    pool: Pool,
    *,
    arm: str | None = None,
    flagged: Collection[str] = (),
    corrected: Mapping[str, str] | None = None,
    defect: Mapping[str, float] | pd.Series | None = None,
    level: float = 0.95,
    draws: int = 2000,
) -> WhatIf:
    """Rank the models as is and under each variant that has its facts.

    Parameters
    ----------
    pool : Pool
        Runs with the image; items that lack a model's answer are left out of all variants and counted in the notes.
    arm : str, optional
        The headline arm by default.
    flagged : item ids, left out in one variant.
    corrected : item id -> key letter
        Those items are scored anew by the models' letters; the others keep the arm's verdicts.
    defect : item id -> probability of a defect
        An item counts 1 less that in one variant; items not named count in full.
    level, draws : of the simultaneous rank bands

    Returns
    -------
    WhatIf

    Raises
    ------
    AuditError
        No run with the image, unknown items, a key that is no letter or lies beyond the options, a probability outside
        [0, 1], corrections for a pool without letters, no item that all models answer, or none that stays.

    Notes
    -----
    Bands and groups are those of :func:`auditlib.stats.rank_bands.rank_bands`: two models are told apart when their
    paired difference is beyond the simultaneous critical value of that variant. Choosing the items by the same models'
    answers favours models that agree with the key; the variants show sensitivity, no better truth.
    """
    name = pool.arm.name if arm is None else arm
    if name not in pool.arms or "full" not in pool.arms[name].hits:
        raise AuditError(f"the pool has no runs with the image in the arm {name}", mend="name another arm")
    score, seen = _scores(pool, name)
    keep = seen.all(axis=1)
    notes = []
    if not keep.any():
        raise AuditError("no item has an answer of every model", mend="leave the model with most gaps out")
    if not keep.all():
        notes.append(f"{int((~keep).sum())} of {len(keep)} items lack a model's answer and are left out")
    place = {str(item): i for i, item in enumerate(pool.items["item"])}
    variants: dict[str, tuple[np.ndarray, np.ndarray]] = {AS_IS: (score, keep.astype(float))}
    if len(flagged):
        weight = keep.astype(float)
        weight[_places(place, flagged, "flagged items")] = 0
        variants[WITHOUT] = score, weight
    if corrected:
        again, lost = _corrected(pool, score, place, corrected)
        weight = keep.astype(float)
        weight[lost] = 0
        if lost_here := int(keep[lost].sum()):
            notes.append(f"{lost_here} corrected items lack a model's letter and are left out with {CORRECTED}")
        variants[CORRECTED] = again, weight
    if defect is not None and len(defect):
        variants[WEIGHTED] = score, keep * (1 - _probabilities(place, defect))
    boards = {}
    for variant, (value, weight) in variants.items():
        if not weight.sum() > 0:
            raise AuditError(f"no item stays ({variant})", mend="flag fewer items")
        boards[variant] = rank_bands(
            value, weight=weight, cluster=pool.cluster, level=level, draws=draws, rng=pool.rng("what if", name)
        )
    models = pool.model_names
    board = pd.concat([_rows(v, models, b) for v, b in boards.items()], ignore_index=True)
    claims = [c for v, b in boards.items() if v != AS_IS for c in _flips(v, models, boards[AS_IS], b)]
    columns = ["variant", "first", "second", "before", "after", "change"]
    return WhatIf(board, pd.DataFrame(claims, columns=columns), tuple(notes))


def _scores(pool: Pool, arm: str) -> tuple[np.ndarray, np.ndarray]:
    """Share of right draws, shape (items, models), and which cells have one."""
    a = pool.arms[arm]
    hits = a.hits["full"].astype(float)
    if a.trials is None:
        return hits / a.unit, np.ones(hits.shape, bool)
    trials = a.trials["full"]
    return np.divide(hits, trials, out=np.zeros_like(hits), where=trials > 0), trials > 0


def _places(place: Mapping[str, int], items: Collection[Any], what: str) -> list[int]:
    unknown = [str(i) for i in items if str(i) not in place]
    if unknown:
        raise AuditError(f"{len(unknown)} {what} are not in the pool", row=unknown[0], mend="use the pool's item ids")
    return [place[str(i)] for i in items]


def _probabilities(place: Mapping[str, int], defect: Mapping[str, float] | pd.Series) -> np.ndarray:
    rows = _places(place, list(defect.keys()), "items with a probability of defect")
    values = np.array([float(v) for v in dict(defect).values()])
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(wrong):
        item = str(list(defect.keys())[wrong[0]])
        raise AuditError("a probability of defect lies outside [0, 1]", row=item, mend="give a probability or no entry")
    out = np.zeros(len(place))
    out[rows] = values
    return out


def _corrected(
    pool: Pool, score: np.ndarray, place: Mapping[str, int], corrected: Mapping[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores with some items judged anew by letter, and which of those lack a letter run."""
    if "full" not in pool.letters:
        raise AuditError("this pool has no letters, so that keys cannot be corrected", mend="give the replies' letters")
    rows = np.array(_places(place, list(corrected), "corrected items"))
    keys = letter_codes(pd.Series([str(k) for k in corrected.values()], dtype=object))
    for row, key, item in zip(rows, keys, corrected):
        shown = None if pool.k is None else pool.k[row]
        if key < 0 or (shown is not None and key >= shown):
            raise AuditError(f"the corrected key {corrected[item]} is no letter of the item's options", row=str(item),
                             mend="give the letter of an option")  # fmt: skip
    letters = pool.letters["full"][rows]
    again = score.copy()
    again[rows] = letters == np.asarray(keys)[:, None]
    lost = np.zeros(len(score), bool)
    lost[rows[(letters == MISSING).any(axis=1)]] = True
    return again, lost


def _rows(variant: str, models: list[str], b: RankBands) -> pd.DataFrame:
    table = pd.DataFrame({
        "variant": variant, "model": models, "n": b.items, "score": b.score, "se": b.se, "rank": b.rank,
        "rank_low": b.low, "rank_high": b.high, "group": b.group,
    })  # fmt: skip
    return table.sort_values(["rank", "model"], kind="stable")


def _flips(variant: str, models: list[str], before: RankBands, after: RankBands) -> list[dict[str, str]]:
    """Pairs whose claim changes."""
    out = []
    order = np.argsort(before.rank, kind="stable")
    for a, b in combinations(order, 2):
        was, now = (int(x.beats[a, b]) - int(x.beats[b, a]) for x in (before, after))
        swapped = (before.score[a] - before.score[b]) * (after.score[a] - after.score[b]) < 0
        if was == now and not (was == 0 and swapped):
            continue
        change = "reversed" if was * now < 0 else "order" if was == now else "lost" if now == 0 else "gained"
        said = {1: "first is better", 0: "not told apart", -1: "second is better"}
        out.append({"variant": variant, "first": models[a], "second": models[b], "before": said[was],
                    "after": said[now], "change": change})  # fmt: skip
    return out
