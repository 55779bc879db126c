"""Per-item counts F (correct with the image) and B (without), and which cells may be counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from auditlib.pool import Arm, Pool
from auditlib.stats.missing import complete_cases, missingness_groups

#: runs with unequal numbers of draws are compared over their least common multiple, up to this many draws
MOST_DRAWS = 60


@dataclass(frozen=True)
class Counts:
    """Counts of one arm over a set of models.

    ``keep`` marks the pool's items that are counted; ``F``, ``B``, ``total`` (models x draws) and ``group`` (items may
    be permuted inside a group only) have one entry per kept item. ``cells`` marks the cells counted, shape (kept items,
    models), and is None where all are. ``note`` says how missing cells were treated. ``draws`` are the counts that one
    cell can reach: draws times the unit of graded verdicts, over the least common multiple where runs differ.
    """

    arm: str
    models: tuple[str, ...]
    draws: int
    keep: np.ndarray
    F: np.ndarray
    B: np.ndarray
    total: np.ndarray
    group: np.ndarray
    note: str = ""
    cells: np.ndarray | None = None

    @property
    def n(self) -> int:
        return int(self.keep.sum())

    @property
    def complete(self) -> bool:
        """Whether every kept item rests on the same models."""
        return bool(self.n) and int(self.total.min()) == int(self.total.max()) == len(self.models) * self.draws


def why_not(pool: Pool, arm: Arm) -> str:
    """Why an arm has no full-against-blind comparison; empty when it has one."""
    if "full" not in arm.hits:
        return "no run with the image"
    if "blind" not in arm.hits:
        return "no run without the image (blind run)"
    both = arm.scored_models("full") & arm.scored_models("blind")
    if not both.any():
        return f"no model is scored both with and without the image in the {arm.name} arm"
    tops = set(np.concatenate(list(_tops(arm, np.flatnonzero(both)).values())).tolist())
    if math.lcm(*tops) > MOST_DRAWS * arm.unit:
        drawn = " and ".join(f"{t / arm.unit:g}" for t in sorted(tops))
        return f"runs of {drawn} draws have no common multiple up to {MOST_DRAWS}"
    return ""


def _tops(arm: Arm, columns: np.ndarray) -> dict[str, np.ndarray]:
    """Trials of a cell of each of some models with all its draws, by condition."""
    if arm.trials is None:
        return {c: np.ones(len(columns), int) for c in ("full", "blind")}
    return {c: arm.trials[c][:, columns].max(axis=0).astype(int) for c in ("full", "blind")}


def steps(arm: Arm, columns: np.ndarray) -> tuple[int, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Counts a cell can reach, by how much each model's hits are multiplied to get there, and its trials.

    Runs may differ in their number of draws: each cell's rate is brought to the least common multiple, in integers.
    """
    tops = _tops(arm, columns)
    draws = math.lcm(*np.concatenate(list(tops.values())).tolist())
    return draws, {c: draws // t for c, t in tops.items()}, tops


def count(pool: Pool, arm_name: str, models: Sequence[str] | None = None, *, pairwise: bool = False) -> Counts:
    """Count hits of the models that are scored in both conditions.

    Complete cases while they keep at least 95% of the items; otherwise a cell counts where both runs of that model
    exist, totals differ between items, and items are grouped by missingness pattern (small patterns are pooled with
    others of the same number of models). A cell that lacks some of its run's draws is missing.

    Parameters
    ----------
    pairwise : count every item over the models it has, even where complete cases would keep enough items.

    Raises
    ------
    ValueError
        When :func:`why_not` has a reason.
    """
    arm = pool.arms[arm_name]
    reason = why_not(pool, arm)
    if reason:
        raise ValueError(reason)
    both = arm.scored_models("full") & arm.scored_models("blind")
    names = pool.model_names
    if models is not None:
        both &= np.isin(names, list(models))
    columns = np.flatnonzero(both)
    full, blind = arm.hits["full"], arm.hits["blind"]
    everything = len(columns) == full.shape[1]
    used = tuple(names[j] for j in columns)
    if arm.trials is None:
        F = _row_sums(full, None if everything else columns)
        B = _row_sums(blind, None if everything else columns)
        n = len(F)
        total = np.full(n, len(columns), np.int32)
        return Counts(arm_name, used, 1, np.ones(n, bool), F, B, total, np.zeros(n, np.int32))
    draws, factor, tops = steps(arm, columns)
    cell = (arm.trials["full"][:, columns] == tops["full"]) & (arm.trials["blind"][:, columns] == tops["blind"])
    if any((f > 1).any() for f in factor.values()):
        full, blind = (_scaled(arm.hits[c], columns, factor[c]) for c in ("full", "blind"))
    uneven = _uneven(arm, tops, draws)
    complete, enough = complete_cases(cell)
    n_complete, n_all = int(complete.sum()), len(complete)
    enough = enough and (not pairwise or n_complete == n_all)
    if enough:
        note = "" if n_complete == n_all else f"complete cases: {n_complete} of {n_all} items"
        note = "; ".join(filter(None, [note, uneven]))
        F = full[complete][:, columns].sum(axis=1, dtype=np.int32)
        B = blind[complete][:, columns].sum(axis=1, dtype=np.int32)
        total = np.full(n_complete, len(columns) * draws, np.int32)
        return Counts(arm_name, used, draws, complete, F, B, total, np.zeros(n_complete, np.int32), note)
    keep = cell.any(axis=1)
    cell = cell[keep]
    F = np.where(cell, full[keep][:, columns], 0).sum(axis=1, dtype=np.int32)
    B = np.where(cell, blind[keep][:, columns], 0).sum(axis=1, dtype=np.int32)
    total = (cell.sum(axis=1) * draws).astype(np.int32)
    groups = missingness_groups(cell)
    pooled = int(groups.size[groups.pooled].sum())
    note = (
        f"only {n_complete} of {n_all} items have every cell: {int(keep.sum())} items counted over the models they have"
    )
    note += f"; {pooled} items in small missingness groups pooled by number of models" if pooled else ""
    note += f"; {uneven}" if uneven else ""
    return Counts(arm_name, used, draws, keep, F, B, total, groups.group, note, cell)


def _scaled(hits: np.ndarray, columns: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Hits of some models times their factors, in an array as wide as before."""
    out = hits.astype(np.int32)
    out[:, columns] *= factor.astype(np.int32)
    return out


def _uneven(arm: Arm, tops: dict[str, np.ndarray], draws: int) -> str:
    """A sentence where runs differ in their number of draws."""
    different = sorted({t for each in tops.values() for t in each.tolist()})
    if len(different) < 2:
        return ""
    words = " and ".join(f"{t // arm.unit}" for t in different)
    return f"runs of {words} draws: hits of each are brought to {draws // arm.unit} draws"


def smaller_pools(pool: Pool, models: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Pools without one model, and without one family where a family holds several: label, models that stay."""
    if len(models) < 2:
        return
    for name in models:
        yield f"without {name}", [m for m in models if m != name]
    if "family" not in pool.models:
        return
    family = dict(zip(pool.models["model"], pool.models["family"]))
    held = [str(family[m]) for m in models if isinstance(family[m], str)]
    for f in sorted(set(held)):
        if 1 < held.count(f) < len(models):
            yield f"without family {f}", [m for m in models if family[m] != f]


def _row_sums(hits: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    """Row sums in blocks, so that a million rows need no second copy of the array."""
    out = np.empty(hits.shape[0], np.int32)
    for start in range(0, len(out), 65_536):
        block = hits[start : start + 65_536]
        out[start : start + 65_536] = (block if columns is None else block[:, columns]).sum(axis=1, dtype=np.int32)
    return out
