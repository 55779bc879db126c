"""The list of all items of a curation: decision, reason, author; and the same as findings for the audit's reader."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.curation.study import Curation
from auditlib.numerals import percent

#: what the finding's severity says: people confirmed it, or judges did and people have not read it yet
_WORDS = {"key_error": "key error", "ambiguous": "ambiguous", "scorer_risk": "scorer risk", "": "defect"}


def decision_list(c: Curation) -> pd.DataFrame:
    """The item list: kept or not, at which stage, why, by whom."""
    table = c.funnel.decisions.copy()
    author = np.select([table["stage"].eq("text_ablation"), table["stage"].eq("saturation")],
                       [f"{len(c.pool.inspectors)} inspectors", f"{len(c.pool.panel)} panel models"], "")  # fmt: skip
    author = author.astype(object)
    if c.people is not None:
        who = table["item"].map(c.people.author).fillna("").to_numpy(dtype=object)
        author = np.where(author == "", who, author)
    if c.adjudication is not None:
        state = c.adjudication.decisions.set_index("item")
        table["judges"] = table["item"].map(state["state"]).fillna("")
        table["judges_label"] = table["item"].map(state["label"]).fillna("")
        unread = pd.Series(True, index=table.index)
        if c.people is not None:
            unread = ~table["item"].map(c.people.outcome).isin(["confirmed", "rejected", "cannot_tell"])
        waits = table["judges"].isin(["confirmed", "defect_any"]) & unread
        author = np.where((author == "") & waits, "waits for people", author)
    table.insert(2, "decision", np.where(table["removed"], "removed", "kept"))
    table.insert(3, "author", author)
    return table


def curation_findings(table: pd.DataFrame) -> pd.DataFrame:
    """Findings rows (detector ``curation``) of a decision list.

    Parameters
    ----------
    table : of :func:`decision_list`.

    Returns
    -------
    DataFrame
        One row per item that is removed or waits for people. ``high``: people confirm a defect; ``medium``: judges
        name one and no person has read it; ``low``: answered from the text; ``info``: solved by the panel. The score is
        the accuracy that decided, 1 for defects.
    """
    rows = []
    for r in table.to_dict("records"):
        if r["stage"] == "text_ablation":
            words = (f"answered without the image in {percent(r['text_rate'])} of the draws, "
                     f"above {percent(r['text_threshold'], 0)}")  # fmt: skip
            severity, score = "low", r["text_rate"]
        elif r["stage"] == "saturation":
            words = f"solved by the panel in {percent(r['panel_rate'])} of the draws"
            severity, score = "info", r["panel_rate"]
        elif r["stage"] == "defects":
            words, severity, score = f"{_WORDS[_label(r)]}, confirmed by people", "high", 1.0
        elif r["author"] == "waits for people":
            words, severity, score = f"{_WORDS[_label(r)]} by the judges' vote, no person has read it", "medium", 1.0
        else:
            continue
        flagged = " ".join(name for name in ("R1", "R2", "R3", "R4", "R5") if r.get(name) is True)
        rows.append({"item": r["item"], "detector": "curation", "arm": "", "score": float(score), "flag": True,
                     "severity": severity, "message": words,
                     "evidence": frames.evidence(stage=r["stage"], reasons=r["reasons"], rules=flagged,
                                                 author=r["author"])})  # fmt: skip
    return frames.frame("findings", rows)


def _label(row: dict) -> str:
    for name in (row.get("label"), row.get("reason"), row.get("judges_label")):
        if name in _WORDS:
            return str(name)
    return ""
