"""Full against blind accuracy per item: which items gain nothing from the image, or lose by it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.counts import count, why_not
from auditlib.detectors.contract import Detector, findings
from auditlib.frames import evidence
from auditlib.params import AuditParams
from auditlib.pool import Pool
from auditlib.stats.categories import CATEGORIES, categories


def needs(pool: Pool) -> str:
    reasons = [why_not(pool, a) for a in pool.arms.values()]
    return "" if not all(reasons) else reasons[0]


def detect(pool: Pool, settings: AuditParams) -> pd.DataFrame:
    """Score (total - (F - B)) / (2 total) for each item and arm.

    Flags items with exactly zero gain, items of the band around it, and items that the image hurts. Severity: medium
    where every one of three models or more answers without the image (low with fewer: one or two guess right too
    often), low where the image hurts, info otherwise.
    """
    return pd.concat([_one_arm(pool, name) for name in pool.arm_names if not why_not(pool, pool.arms[name])])


def _one_arm(pool: Pool, arm: str) -> pd.DataFrame:
    c = count(pool, arm)
    code = categories(c.F, c.B, c.total)
    names = np.asarray(CATEGORIES, dtype=object)[code]
    solved_blind = c.total == c.B
    flag = (c.F == c.B) | np.isin(names, ["text_only", "conflicting"]) | solved_blind
    enough = c.total >= 3 * c.draws
    severity = np.select([solved_blind & enough, solved_blind | (names == "conflicting")], ["medium", "low"], "info")
    rows = list(zip(names, c.F.tolist(), c.B.tolist(), c.total.tolist()))
    return findings(
        "visual_dependency",
        arm,
        item=pool.items["item"].to_numpy()[c.keep],
        score=(c.total - (c.F - c.B)) / (2 * c.total),
        flag=flag,
        severity=severity,
        evidence=[evidence(category=g, F=f, B=b, total=t, zero_gain=f == b) for g, f, b, t in rows],
        message=[_say(*row) for row in rows],
    )


def _say(category: str, F: int, B: int, total: int) -> str:
    pair = f"{F} of {total} right with the image, {B} of {total} without"
    if total == B:
        missed = "" if F == total else ", but missed with it"
        return f"answered without the image by every model{missed} ({pair})"
    if category == "conflicting":
        return f"the image hurts: {pair}"
    if F == B:
        return f"zero gain from the image: {pair}"
    return f"{category.replace('_', ' ')}: {pair}"


DETECTOR = Detector(
    "visual_dependency", "full vs. blind accuracy", "items without gain from the image", True, detect, needs, (3, None)
)
