"""Accuracies over sets of items: all rotations of a base item right, and the mean of the official categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib.metrics.rows import noted, row, share_fields
from auditlib.pool import Pool
from auditlib.stats.rates import macro_interval

#: rotations of a base item have its id plus multiples of this
STEP = 1_000_000


def set_rows(pool: Pool) -> list[dict[str, Any]]:
    """Circular accuracies where items are rotations, macro accuracies where there are official categories."""
    return _circular(pool) + _stored_circular(pool) + _macro(pool)


def rotations(items: pd.DataFrame) -> np.ndarray | None:
    """Base-item code of each item (-1 = none), where ids differ by multiples of a million; None where none do."""
    ids = pd.to_numeric(items["item"], errors="coerce").to_numpy(dtype=float)
    ok = np.isfinite(ids) & (ids >= 0) & (ids == np.floor(ids))
    base = np.where(ok, np.where(ok, ids, 0) % STEP, -1)
    sizes = pd.Series(base[ok]).value_counts()
    known = set(ids[ok & (ids < STEP)].tolist())
    sets = {b for b in sizes.index[sizes > 1] if b in known}
    if not sets:
        return None
    code = {b: i for i, b in enumerate(sorted(sets))}
    return np.array([code.get(b, -1) for b in base.tolist()])


def _circular(pool: Pool) -> list[dict[str, Any]]:
    code = rotations(pool.items)
    if code is None:
        return []
    rows, sets = [], int(code.max()) + 1
    mine = code >= 0
    size = np.bincount(code[mine], minlength=sets)
    for name in pool.arm_names:
        arm = pool.arms[name]
        for condition, hits in arm.hits.items():
            for j, model in enumerate(pool.model_names):
                t = np.ones(len(hits), int) if arm.trials is None else arm.trials[condition][:, j].astype(int)
                seen = np.bincount(code[mine], (t > 0)[mine], sets) == size
                right = np.bincount(code[mine], ((hits[:, j] == t) & (t > 0))[mine], sets) == size
                if seen.any():
                    note = "base items with every rotation right, of those with every rotation scored"
                    rows.append(row("circular_accuracy", share_fields(right[seen]), arm=name, models=model,
                                    level=condition, note=note))  # fmt: skip
    return rows


def _stored_circular(pool: Pool) -> list[dict[str, Any]]:
    """The toolkit's own verdicts on groups of rotations."""
    table = pool.judgements
    if table is None or "level" not in table:
        return []
    table = table[table["level"].eq("circular") & table["hit"].notna()]
    rows = []
    for (model, condition), part in table.groupby(["model", "condition"], sort=True):
        fields = share_fields(part["hit"].to_numpy(dtype=float) >= 1)
        rows.append(row("circular_accuracy", fields, arm="judged", models=model, level=f"{condition}, stored",
                        note="the toolkit's own verdicts on groups of rotations"))  # fmt: skip
    return rows


def _macro(pool: Pool) -> list[dict[str, Any]]:
    strata, cluster, rows = pool.strata, pool.cluster, []
    if strata is None:
        return rows
    code = pd.factorize(strata, sort=True)[0]
    for name in pool.arm_names:
        arm = pool.arms[name]
        for condition, hits in arm.hits.items():
            for j, model in enumerate(pool.model_names):
                t = np.ones(len(hits), int) if arm.trials is None else arm.trials[condition][:, j].astype(int)
                total = np.bincount(code, t)
                used = total > 0
                if used.sum() < 2:
                    continue
                rate = np.bincount(code, hits[:, j].astype(float))[used] / total[used]
                ends = noted(macro_interval(hits[:, j], t, code, cluster, unit=arm.unit))
                rows.append(row("accuracy_macro", ends, arm=name, models=model, level=condition, n=int(used.sum()),
                                estimate=float(rate.mean()), note="mean of the official categories"))  # fmt: skip
    return rows
