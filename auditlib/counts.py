"""Per-item counts F (correct with the image) and B (without), and which cells may be counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from auditlib.pool import Arm, Pool
from auditlib.stats.missing import complete_cases, missingness_groups


@dataclass(frozen=True)
class Counts:
    """Counts of one arm over a set of models.

    ``keep`` marks the pool's items that are counted; ``F``, ``B``, ``total`` (models x draws) and ``group`` (items may
    be permuted inside a group only) have one entry per kept item. ``cells`` marks the cells counted, shape (kept items,
    models), and is None where all are. ``note`` says how missing cells were treated.
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
    if arm.trials is not None and arm.trials["full"].max() != arm.trials["blind"].max():
        return f"{arm.trials['full'].max()} draws with the image, {arm.trials['blind'].max()} without"
    return ""


def count(pool: Pool, arm_name: str, models: Sequence[str] | None = None) -> Counts:
    """Count hits of the models that are scored in both conditions.

    Complete cases while they keep at least 95% of the items; otherwise a cell counts where both runs of that model
    exist, totals differ between items, and items are grouped by missingness pattern (small patterns are pooled with
    others of the same number of models).

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
    draws = int(arm.trials["full"].max())
    cell = (arm.trials["full"][:, columns] == draws) & (arm.trials["blind"][:, columns] == draws)
    complete, enough = complete_cases(cell)
    n_complete, n_all = int(complete.sum()), len(complete)
    if enough:
        note = "" if n_complete == n_all else f"complete cases: {n_complete} of {n_all} items"
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
    return Counts(arm_name, used, draws, keep, F, B, total, groups.group, note, cell)


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
