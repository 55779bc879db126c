"""What was planted in a pool with known truth, against what the audit found."""

from __future__ import annotations

import json

import pandas as pd

from auditlib.auditing import Audit
from auditlib.synth.embedded import truth

#: planted kind -> (what a detector must say, detector, test on the evidence)
EXPECTED = {
    "wrong_key": (
        "votes against the key, unanimous or high",
        "consensus_error",
        lambda e: e["tier"] in ("unanimous", "high"),
    ),
    "text_prior": ("answered without the image by all", "visual_dependency", lambda e: e["B"] == e["total"]),
    "lookup": ("answered without the image by all", "visual_dependency", lambda e: e["B"] == e["total"]),
    "near_dup": ("near-duplicate options", "distractor_similarity", lambda e: True),
    "none_key": (
        "lost option or key without text",
        "integrity",
        lambda e: e["check"] in ("lost_option", "key_without_text"),
    ),
}


def confusion(audit: Audit) -> pd.DataFrame:
    """One row per planted kind: how many items the matching detector found, and what else it flagged.

    Returns
    -------
    frame with columns ``planted``, ``detector``, ``says``, ``items``, ``found``, ``also`` (flagged in the same way
    though of another kind or unplanted), ``recall`` and ``precision``. Items planted to be answered without the image
    (``text_prior`` and ``lookup``) count as one kind for precision.
    """
    planted = truth(audit.params.data.embedded or audit.pool_name).set_index("index")["planted"]
    planted = planted[planted.index.isin(audit.items["item"])]
    flagged = audit.findings[audit.findings["flag"] & audit.findings["arm"].isin(["", audit.arm, "exact"])]
    rows = []
    for kind, (says, detector, holds) in EXPECTED.items():
        mine = flagged[flagged["detector"] == detector]
        if detector == "visual_dependency":
            mine = mine[mine["arm"] == audit.arm]
        hit = {i for i, e in zip(mine["item"], mine["evidence"]) if holds(json.loads(e))}
        same = {k for k, v in EXPECTED.items() if v[:2] == (says, detector)}
        items = set(planted.index[planted == kind])
        right = set(planted.index[planted.isin(same)])
        rows.append({
            "planted": kind, "detector": detector, "says": says, "items": len(items), "found": len(hit & items),
            "also": len(hit - right), "recall": len(hit & items) / len(items) if items else float("nan"),
            "precision": len(hit & right) / len(hit) if hit else float("nan"),
        })  # fmt: skip
    return pd.DataFrame(rows)
