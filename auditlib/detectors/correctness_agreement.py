"""Profile of correctness with the image: difficulty, discrimination, items that all or none solve."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.detectors.contract import Detector, findings
from auditlib.frames import evidence
from auditlib.params import AuditParams
from auditlib.pool import Pool
from auditlib.stats.items import difficulty, inversions, item_rest_correlation

#: below this many models a correlation over models says nothing about one item, and none is flagged by it
MIN_MODELS_FOR_R = 8


def needs(pool: Pool) -> str:
    if all("full" not in a.hits for a in pool.arms.values()):
        return "no run with the image"
    return "" if len(pool.models) >= 2 else "needs at least two models"


def detect(pool: Pool, settings: AuditParams) -> pd.DataFrame:
    """Score (1 - r) / 2 with r the corrected item-rest correlation (0 where undefined), per arm.

    Flags items that no model solves, and negative r in pools of eight models or more.
    """
    parts = [_one_arm(pool, name) for name in pool.arm_names if pool.arms[name].hits.get("full", np.zeros(1)).any()]
    return (
        pd.concat(parts)
        if parts
        else findings("correctness_agreement", "", item=[], score=[], flag=[], severity=[], evidence=[], message=[])
    )


def _one_arm(pool: Pool, name: str) -> pd.DataFrame:
    arm = pool.arms[name]
    hits = arm.hits["full"]
    trials = np.ones_like(hits) if arm.trials is None else arm.trials["full"]
    keep = (trials > 0).sum(axis=1) >= 2
    hits, trials = hits[keep], trials[keep]
    r = item_rest_correlation(hits, trials)
    share, turned = difficulty(hits, trials), inversions(hits, trials)
    solved, asked = hits.sum(axis=1, dtype=np.int64), trials.sum(axis=1, dtype=np.int64)
    models = (trials > 0).sum(axis=1)
    never, always = solved == 0, solved == asked
    flag = never | ((r < 0) & (hits.shape[1] >= MIN_MODELS_FOR_R))
    rows = zip(share.tolist(), r.tolist(), turned.tolist(), models.tolist(), never.tolist(), always.tolist())
    facts = [(d, _known(x), _known(v), m, n, a) for d, x, v, m, n, a in rows]
    return findings(
        "correctness_agreement",
        name,
        item=pool.items["item"].to_numpy()[keep],
        score=(1 - np.nan_to_num(r)) / 2,
        flag=flag,
        severity="info",
        evidence=[
            evidence(difficulty=round(1 - d, 6), item_rest=x, inversions=v, models=m, never_solved=n, saturated=a)
            for d, x, v, m, n, a in facts
        ],
        message=[_say(d, x, m, n, a) for d, x, _, m, n, a in facts],
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 6)


def _say(share: float, r: float | None, models: int, never: bool, always: bool) -> str:
    if never:
        return f"none of {models} models is right"
    if always:
        return f"all {models} models are right"
    tail = "" if r is None else f", item-rest correlation {r:+.2f}"
    return f"{100 * share:.0f}% of {models} models are right{tail}"


DETECTOR = Detector(
    "correctness_agreement", "judged-correctness profile", "difficulty, discrimination", True, detect, needs, (2, None)
)
