"""What every rate is a share of: items asked, answered, scored and lost, by model and condition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib.metrics.rows import row
from auditlib.pool import Pool

#: counts of one model and condition, in the order in which they are shown
PARTS = ("asked", "answered", "abstained", "failed", "missing")


def denominators(pool: Pool) -> pd.DataFrame:
    """Items by model and condition, one row each.

    Returns
    -------
    frame with columns ``model``, ``condition``, ``asked`` (items with a row in the run), ``answered`` (a usable reply),
    ``abstained`` (a usable reply without an answer), ``failed`` (a row without a usable reply), ``missing`` (items of
    the pool that the run lacks) and ``scored_ARM`` for each arm. Counts that a pool of bare hits cannot know are
    missing.
    """
    conditions = list(dict.fromkeys(c for a in pool.arms.values() for c in a.hits))
    asked = _asked(pool)
    n = len(pool.items)
    rows = []
    for condition in conditions:
        for j, model in enumerate(pool.model_names):
            scored = {f"scored_{a}": _scored(pool, a, condition, j) for a in pool.arm_names}
            if asked is None:
                rows.append({"model": model, "condition": condition} | scored)
                continue
            given = asked.get((model, condition), 0)
            failed = int(pool.failed[condition][:, j].sum()) if condition in pool.failed else 0
            none = int(pool.abstained[condition][:, j].sum()) if condition in pool.abstained else 0
            if given:
                counts = {"asked": given, "answered": given - failed, "abstained": none, "failed": failed,
                          "missing": n - given}  # fmt: skip
                rows.append({"model": model, "condition": condition} | counts | scored)
    table = pd.DataFrame(rows)
    wanted = ["model", "condition", *PARTS, *(f"scored_{a}" for a in pool.arm_names)]
    return table.reindex(columns=wanted).astype(dict.fromkeys(wanted[2:], "Int64"))


def denominator_rows(pool: Pool) -> list[dict[str, Any]]:
    """:func:`denominators` as rows of the statistics frame.

    Metrics ``items_asked``, ``items_answered``, ... and ``items_scored`` (with its arm); ``level`` is the condition,
    ``estimate`` the share of the pool's items.
    """
    table, n = denominators(pool), len(pool.items)
    rows = []
    for r in table.to_dict("records"):
        place = {"models": r["model"], "level": r["condition"]}
        for name, count in list(r.items())[2:]:
            if pd.isna(count):
                continue
            share = int(count) / n if n else float("nan")
            if name.startswith("scored_"):
                arm = name.removeprefix("scored_")
                rows.append(row("items_scored", place, arm=arm, n=int(count), estimate=share))
            else:
                rows.append(row(f"items_{name}", place, n=int(count), estimate=share))
    return rows


def _asked(pool: Pool) -> dict[tuple[str, str], int] | None:
    r = pool.responses
    if r is None:
        return None
    return r.groupby(["model", "condition"])["item"].nunique().to_dict()


def _scored(pool: Pool, name: str, condition: str, j: int) -> int:
    arm = pool.arms[name]
    if condition not in arm.hits:
        return 0
    seen = arm.observed(condition)
    return len(pool.items) if seen is None else int(np.count_nonzero(seen[:, j]))
