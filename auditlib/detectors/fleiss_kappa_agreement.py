"""Agreement between models on the letter they choose: unstable or ambiguous items."""

from __future__ import annotations

import pandas as pd

from auditlib.detectors.contract import Detector, findings
from auditlib.frames import LETTERS, evidence
from auditlib.params import AuditParams
from auditlib.pool import Pool
from auditlib.stats.agreement import item_agreement


def needs(pool: Pool) -> str:
    if len(pool.models) < 2:
        return "needs at least two models"
    if "full" not in pool.letters:
        return "no option letters of full runs"
    cast = (pool.letters["full"] >= 0).sum(axis=1)
    return "" if (cast >= 2).any() else "no item has two letters"


def detect(pool: Pool, settings: AuditParams) -> pd.DataFrame:
    """Score 1 - P_i over the letters there are; flags items with three letters or more of which no two agree."""
    letters = pool.letters["full"]
    p, m = item_agreement(letters), (letters >= 0).sum(axis=1)
    keep = m >= 2
    p, m, cast = p[keep], m[keep], letters[keep]
    kinds = [sorted({LETTERS[c] for c in row if c >= 0}) for row in cast.tolist()]
    flag = (p == 0) & (m >= 3)
    return findings(
        "fleiss_kappa_agreement",
        "exact",
        item=pool.items["item"].to_numpy()[keep],
        score=1 - p,
        flag=flag,
        severity="info",
        evidence=[
            evidence(letters=n, distinct=k, agreement=round(a, 6)) for n, k, a in zip(m.tolist(), kinds, p.tolist())
        ],
        message=[
            f"no two of {n} models agree" if f else f"{100 * a:.0f}% of model pairs agree"
            for n, f, a in zip(m.tolist(), flag.tolist(), p.tolist())
        ],
    )


DETECTOR = Detector(
    "fleiss_kappa_agreement", "inter-model κ", "unstable or ambiguous items", False, detect, needs, (3, None)
)
