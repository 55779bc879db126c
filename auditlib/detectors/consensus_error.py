"""Votes against the key: items on which the models agree on another option."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from auditlib.detectors.contract import Detector, findings
from auditlib.frames import LETTERS, evidence, letter_names
from auditlib.params import AuditParams
from auditlib.pool import Pool

TIERS = ("unanimous", "high", "medium", "none")


@dataclass(frozen=True)
class Consensus:
    """Votes per item, full run; entries are arrays over the items that can be judged (``keep`` of the pool)."""

    keep: np.ndarray
    tier: np.ndarray
    voters: np.ndarray
    top: np.ndarray
    top_wrong: np.ndarray
    for_key: np.ndarray
    score: np.ndarray


def consensus(letters: np.ndarray, key: np.ndarray) -> Consensus:
    """Tiers of the votes against the key.

    Parameters
    ----------
    letters : int8 codes of full-run letters, shape (items, models); abstentions and missing replies are negative.
    key : int8 codes, shape (items,); items without a letter key are not judged.

    Notes
    -----
    Abstentions do not vote; at least two votes are needed. *unanimous*: all votes are one same option that is not the
    key. *high*: no vote is the key. *medium*: at least 2/3 of the votes are one same option that is not the key. First
    match wins. Score (1 + top wrong share - key share) / 2.
    """
    votes = (letters >= 0).sum(axis=1)
    keep = (votes >= 2) & (key >= 0)
    cast, gold, voters = letters[keep], key[keep], votes[keep]
    tally = np.stack([(cast == c).sum(axis=1) for c in range(26)], axis=1)
    rows = np.arange(len(gold))
    for_key = tally[rows, gold] if len(gold) else np.zeros(0, int)
    tally[rows, gold] = 0
    top = tally.argmax(axis=1) if len(gold) else np.zeros(0, int)
    top_wrong = tally[rows, top] if len(gold) else np.zeros(0, int)
    tier = np.select(
        [top_wrong == voters, for_key == 0, 3 * top_wrong >= 2 * voters], ["unanimous", "high", "medium"], "none"
    )
    score = (1 + (top_wrong - for_key) / np.maximum(voters, 1)) / 2
    return Consensus(keep, tier, voters, top, top_wrong, for_key, score)


def needs(pool: Pool) -> str:
    if "full" not in pool.letters:
        return "no option letters of full runs"
    if (pool.key_codes >= 0).sum() == 0:
        return "no item has a letter as its key"
    if (pool.letters["full"] >= 0).sum() == 0:
        return "no reply names an option letter"
    if len(pool.models) < 2:
        return "needs at least two models"
    return "" if consensus(pool.letters["full"], pool.key_codes).keep.any() else "no item has two votes"


def detect(pool: Pool, settings: AuditParams) -> pd.DataFrame:
    """Tiers per item. Severity: medium = unanimous with three voters or more, low = the other tiers but medium."""
    letters = pool.letters["full"]
    c = consensus(letters, pool.key_codes)
    cast = letters[c.keep]
    ran, names = pool.ran("full"), pool.model_names
    severity = np.select(
        [(c.tier == "unanimous") & (c.voters >= 3), np.isin(c.tier, ["unanimous", "high"])], ["medium", "low"], "info"
    )
    keys = pool.items["key"].to_numpy(dtype=object)[c.keep]
    said = [{m: v for m, v, r in zip(names, letter_names(row), ran) if r} for row in cast]
    facts = list(zip(c.tier, c.voters.tolist(), c.top, c.top_wrong.tolist(), c.for_key.tolist(), keys, said))
    return findings(
        "consensus_error",
        "exact",
        item=pool.items["item"].to_numpy()[c.keep],
        score=c.score,
        flag=c.tier != "none",
        severity=severity,
        evidence=[
            evidence(tier=t, voters=v, top=LETTERS[o], top_votes=w, key=k, key_votes=g, votes=s)
            for t, v, o, w, g, k, s in facts
        ],
        message=[_say(t, v, LETTERS[o], w, g, k) for t, v, o, w, g, k, _ in facts],
    )


def _say(tier: str, voters: int, top: str, votes: int, for_key: int, key: str) -> str:
    if tier == "unanimous":
        return f"all {voters} voters say {top}, the key says {key}"
    if tier == "high":
        return f"none of {voters} voters says the key {key}; {votes} say {top}"
    if tier == "medium":
        return f"{votes} of {voters} voters say {top}, the key says {key}"
    return f"{for_key} of {voters} voters say the key {key}"


DETECTOR = Detector(
    "consensus_error", "majority vote vs. key", "label-conflict candidates", False, detect, needs, (3, None)
)
