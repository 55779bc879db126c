"""Replies that belong to another model or another item: the traces of a cache or of a file saved twice."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from auditlib.frames import coverage_row
from auditlib.integrity.facts import plain
from auditlib.pool import Pool

#: a reply this long is not written twice by accident
LONG = 120
#: share of equal long replies from which on two runs are one
SAME = 0.9
#: items, and replies that are not right, which two runs need before their equality says anything
FEW, ERRORS = 20, 10


def reply_warnings(pool: Pool) -> list[dict[str, Any]]:
    """Coverage rows on equal runs of different models, and on one long reply given to several items."""
    r = pool.responses
    if r is None or not len(r):
        return []
    r = r[r["status"].eq("ok")]
    if "sample" in r:
        r = r[r["sample"].eq(r.groupby(["item", "model", "condition"])["sample"].transform("min"))]
    return _twins(pool, r) + _other_items(pool, r)


def _twins(pool: Pool, r: pd.DataFrame) -> list[dict[str, Any]]:
    """Different models whose replies are equal in one condition: one run under two names."""
    rows = []
    for condition, part in r.groupby("condition", sort=True):
        codes = pd.Series(pd.factorize(part["prediction"])[0], index=part.index)
        wide = pd.DataFrame({"item": part["item"], "model": part["model"], "code": codes})
        wide = wide.pivot_table(index="item", columns="model", values="code", aggfunc="first")
        size = part.groupby(codes)["prediction"].first().str.len().to_numpy()
        wrong = _not_right(pool, str(condition), wide.index)
        code = wide.to_numpy(float)
        for a, b in combinations(range(code.shape[1]), 2):
            both = ~np.isnan(code[:, a]) & ~np.isnan(code[:, b])
            equal = both & (code[:, a] == code[:, b])
            if both.sum() < FEW or not equal.any():
                continue
            long = both & (size[np.nan_to_num(code[:, a]).astype(int)] >= 30)
            names = f"{wide.columns[a]} and {wide.columns[b]}"
            if long.sum() >= FEW and (share := equal[long].mean()) >= SAME:
                said = f"{100 * share:.0f}% of {long.sum()} long replies of {names} are equal: one run under two names?"
            elif equal[both].all() and _errors(pool, wrong, wide.columns[a], equal) >= ERRORS:
                said = f"all {both.sum()} replies of {names} are equal, mistakes too: one run under two names?"
            else:
                continue
            rows.append(coverage_row("warning", n=int(equal.sum()), model=str(wide.columns[a]),
                                     condition=str(condition), reason=said))  # fmt: skip
    return rows


def _not_right(pool: Pool, condition: str, items: pd.Index) -> np.ndarray | None:
    """Boolean (items, models): replies that are scored and not fully right, in the order of ``items``."""
    arm = pool.arms[pool.arm_names[0]] if pool.arms else None
    if arm is None or condition not in arm.hits:
        return None
    place = pd.Index(pool.items["item"]).get_indexer(items)
    hits = arm.hits[condition][place]
    most = 1 if arm.trials is None else arm.trials[condition][place]
    return hits < most


def _errors(pool: Pool, wrong: np.ndarray | None, model: str, equal: np.ndarray) -> int:
    return 0 if wrong is None else int((wrong[:, pool.model_names.index(model)] & equal).sum())


def _other_items(pool: Pool, r: pd.DataFrame) -> list[dict[str, Any]]:
    """Long replies with an answer that one run gives word for word to items with different questions."""
    said = r["letter"].notna() & r["letter"].ne("Z") if "letter" in r else pd.Series(False, index=r.index)
    if "answer" in r:
        said |= r["answer"].notna() & r["answer"].astype(str).ne("")
    long = r[said & r["prediction"].str.len().ge(LONG)]
    if "refused" in long:
        long = long[~long["refused"].fillna(False).astype(bool)]
    twice = long[long.duplicated(["model", "condition", "prediction"], keep=False)]
    if not len(twice) or "question" not in pool.items:
        return []
    question = dict(zip(pool.items["item"], map(plain, pool.items["question"])))
    twice = twice.assign(asked=twice["item"].map(question))
    kinds = twice.groupby(["model", "condition", "prediction"])["asked"].transform("nunique")
    twice = twice[kinds > 1]
    rows = []
    for (model, condition), part in twice.groupby(["model", "condition"], sort=True):
        some = ", ".join(part["item"].astype(str).head(4))
        reason = (
            "long replies are given word for word to items with different questions (a cache?), " + f"such as {some}"
        )
        rows.append(coverage_row("warning", n=len(part), model=str(model), condition=str(condition), reason=reason))
    return rows
