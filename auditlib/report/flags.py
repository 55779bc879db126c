"""Flagged items as readers of the report and of ``flagged.md`` get them: which, in what order, with what evidence."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from auditlib.escape import visible
from auditlib.flagged_rows import flagged_findings
from auditlib.frames import ABSTENTION, LETTERS, SEVERITIES

#: what a detector's findings are called in a heading
WORDS = {
    "integrity": "Keys, options and items that the files call in doubt",
    "consensus_error": "Votes against the key",
    "visual_dependency": "Zero gain from the image, or less",
    "distractor_similarity": "Options that say the same",
    "fleiss_kappa_agreement": "Models disagree",
    "correctness_agreement": "Too easy, too hard, or out of line",
    "answer_options_distribution": "Position of the keys",
}


def heading(detector: str) -> str:
    """What a detector's findings are called; a detector of the pool's own is called by its name."""
    return WORDS.get(detector, detector.replace("_", " ").capitalize())


def address(item: str) -> str:
    """Where a file beside ``items.html`` finds one item on that page."""
    return f"items.html#item={quote(visible(item, newlines=False), safe='')}"


def flagged(audit: Any, detector: str | None = None) -> pd.DataFrame:
    """Flagged findings, most severe and most suspicious first.

    Where a detector judged an item under several arms, the rows of the headline arm stand for all.

    Returns
    -------
    frame : the findings contract.
    """
    table = flagged_findings(audit)
    if detector is not None:
        table = table[table["detector"] == detector]
    rank = table["severity"].map({s: i for i, s in enumerate(SEVERITIES)})
    order = table.assign(rank=rank).sort_values(["rank", "score"], ascending=[True, False], kind="stable")
    return order.drop(columns="rank").reset_index(drop=True)


def severities(audit: Any) -> dict[str, int]:
    """Items with a finding of each severity; an item can stand under several."""
    found = flagged_findings(audit)
    return {s: int(found.loc[found["severity"] == s, "item"].nunique()) for s in SEVERITIES}


def detectors_with_findings(audit: Any) -> list[str]:
    """Detectors in the audit's order, the integrity gate first, that flagged something."""
    seen = set(flagged_findings(audit)["detector"])
    return [d for d in dict.fromkeys(["integrity", *audit.detectors["detector"]]) if d in seen]


def checks(audit: Any, severity: str = "high") -> pd.Series:
    """Name of the integrity check -> ids of its items of one severity, as one text list per check."""
    table = flagged(audit, "integrity")
    table = table[table["severity"] == severity]
    names = [json.loads(e).get("check", "other") for e in table["evidence"]]
    return (
        table.groupby(pd.Series(names, index=table.index, dtype=object))["item"].agg(list)
        if len(table)
        else table["item"]
    )


def tier(audit: Any, name: str) -> pd.DataFrame:
    """Findings of one consensus tier, with the number of voters."""
    table = flagged(audit, "consensus_error")
    facts = [json.loads(e) for e in table["evidence"]]
    table = table.assign(tier=[f.get("tier", "") for f in facts], voters=[f.get("voters", 0) for f in facts])
    return table[table["tier"] == name]


def solved_blind(audit: Any, least: int = 3) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Findings of items that every model answers without the image, of ``least`` counted models or more.

    Returns
    -------
    needless : right with and without the image by every model (F = B = all): no image is needed.
    missed : right without the image by every model, but not with it (F < B = all): the key or the image is in doubt.
    """
    table = flagged(audit, "visual_dependency")
    facts = [json.loads(e) for e in table["evidence"]]
    counts = audit.counts
    mine = counts[counts["arm"] == audit.arm] if counts is not None and len(counts) else None
    models = {} if mine is None else dict(zip(mine["item"], mine["n"]))
    enough = [models.get(i, f.get("total", 0)) >= least for i, f in zip(table["item"], facts)]
    solved = [e and bool(f.get("total")) and f.get("B") == f["total"] for e, f in zip(enough, facts)]
    whole = [f.get("F") == f.get("total") for f in facts]
    return table[[s and w for s, w in zip(solved, whole)]], table[[s and not w for s, w in zip(solved, whole)]]


def votes(evidence: str) -> str:
    """``model A, model C``: the letters of each model, a dash for an abstention, ``""`` where there are none."""
    cast = json.loads(evidence).get("votes", {})
    return ", ".join(f"{m} {'–' if v in (ABSTENTION, '', None) else v}" for m, v in cast.items())


def all_votes(audit: Any) -> dict[str, str]:
    """Item -> votes of the full runs, for every item that the consensus detector judged."""
    table = audit.findings[audit.findings["detector"] == "consensus_error"].drop_duplicates("item")
    return {i: votes(e) for i, e in zip(table["item"], table["evidence"])}


def facts_of(audit: Any) -> dict[str, dict[str, Any]]:
    """Item -> question, options (letter, text), key, stratum; what the pool does not have is empty."""
    names = [n for n in ("question", "key", "stratum") if n in audit.items]
    options = audit.items["options"] if "options" in audit.items else [None] * len(audit.items)
    out: dict[str, dict[str, Any]] = {}
    for item, given, *rest in zip(audit.items["item"], options, *(audit.items[n] for n in names)):
        texts = list(given) if isinstance(given, list | tuple | np.ndarray) else []
        last = max((i for i, t in enumerate(texts) if t), default=-1)
        facts = {n: "" if v is None or v is pd.NA or v != v else str(v) for n, v in zip(names, rest)}
        shown = [(LETTERS[i], str(t)) for i, t in enumerate(texts[: last + 1]) if i < len(LETTERS)]
        out[item] = {"question": "", "key": "", "stratum": "", "options": shown} | facts
    return out


def shortened(text: str, most: int = 160) -> str:
    """One line of at most ``most`` characters, cut at its end."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def ids(items: Any, most: int = 12) -> str:
    """The first ids, and how many more there are."""
    names = [shortened(i, 40) for i in items]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
