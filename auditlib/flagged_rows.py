"""Tables of flagged items: which to look at first, why, with their votes and texts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.detectors.contract import of_headline_arm
from auditlib.frames import ABSTENTION, LETTERS, SEVERITIES
from auditlib.lookup import Lacking


def flagged_findings(audit: Any) -> pd.DataFrame:
    """Flagged findings that are counted and shown: of a detector that judges per arm, those of the headline arm.

    Every count of flagged items in tables, report and ``flagged.md`` is made from these rows.
    """
    # arms first: a detector that flags nothing in the headline arm must not fall back on another arm's flags
    table = of_headline_arm(audit.all_findings, lookup.headline_arm(audit))
    return table[table["flag"].astype(bool)]


def flagged(audit: Any, most: int | None = 30) -> pd.DataFrame:
    """The most suspicious items, one row each: worst severity first, then the highest score, with votes."""
    table = flagged_findings(audit)
    if not len(table):
        raise Lacking("no item was flagged")
    rank = table["severity"].map({s: i for i, s in enumerate(SEVERITIES)})
    table = table.assign(rank=rank).sort_values(["rank", "score"], ascending=[True, False], kind="stable")
    reasons = table.groupby("item", sort=False)["message"].agg(lambda m: "; ".join(dict.fromkeys(m)))
    where = table.groupby("item", sort=False)["detector"].agg(lambda d: ", ".join(dict.fromkeys(d)))
    first = table.drop_duplicates("item").set_index("item")
    votes = (
        table[table["detector"] == "consensus_error"].drop_duplicates("item").set_index("item")["evidence"].map(_votes)
    )
    facts = audit.items.set_index("item")
    out = pd.DataFrame({"item": first.index, "severity": first["severity"], "score": first["score"],
                        "detectors": where.reindex(first.index), "reasons": reasons.reindex(first.index)})  # fmt: skip
    for name in ("stratum", "key"):
        out[name] = facts[name].reindex(first.index) if name in facts else ""
    out["votes"] = votes.reindex(first.index)
    out = out.fillna({"stratum": "", "key": "", "votes": ""}).reset_index(drop=True)
    wanted = ["item", "stratum", "severity", "score", "key", "votes", "detectors", "reasons"]
    return out[wanted] if most is None else out[wanted].head(most)


def flagged_texts(audit: Any, most: int = 30) -> pd.DataFrame:
    """Question, options and replies of the items of :func:`flagged`, as the files hold them, cut to readable length."""
    if "question" not in audit.items and (audit.responses is None or not len(audit.responses)):
        raise Lacking("this pool has no texts")
    table = flagged(audit, most)[["item", "key"]]
    facts = audit.items[audit.items["item"].isin(table["item"])].drop_duplicates("item").set_index("item")
    question = facts["question"] if "question" in facts else pd.Series(dtype=object)
    options = facts["options"] if "options" in facts else pd.Series(dtype=object)
    said = replies_of(audit, table["item"])
    return table.assign(
        question=[clip(question.get(i)) for i in table["item"]],
        options=["; ".join(f"{a}) {clip(t)}" for a, t in lettered(options.get(i))) for i in table["item"]],
        replies=["; ".join(f"{m}, {c}: {clip(t)}" for m, c, _, t in said.get(i, [])) for i in table["item"]],
    )


def lettered(options: Any) -> list[tuple[str, str]]:
    """Options of one item with their letters; those that were never shown stay, empty."""
    if not isinstance(options, list | tuple | np.ndarray):
        return []
    return [(LETTERS[i] if i < 26 else str(i + 1), "" if t is None else str(t)) for i, t in enumerate(options)]


def replies_of(audit: Any, items: pd.Series) -> dict[str, list[tuple[str, str, str, str]]]:
    """item -> (model, condition, letter or answer, text) of its full and blind replies, in the order of the models."""
    table = audit.responses
    if table is None or not len(table):
        return {}
    table = table[table["item"].isin(items) & table["condition"].isin(["full", "blind"])]
    order = {m: i for i, m in enumerate(lookup.model_names(audit))}
    table = table.assign(m=table["model"].map(order), c=table["condition"].ne("full")).sort_values(
        ["c", "m"], kind="stable"
    )
    text = table["prediction"] if "prediction" in table else pd.Series("", index=table.index)
    text = text.where(text.notna(), "").astype(str)
    letter = table["letter"].astype(object).where(table["letter"].notna(), ABSTENTION).astype(str)
    if "answer" in table:  # items without letters (yes or no, open answers) are read into an answer
        letter = letter.where(letter.ne(ABSTENTION) | ~answered(table), table["answer"].astype(str))
    out: dict[str, list[tuple[str, str, str, str]]] = {}
    for item, model, condition, a, t in zip(table["item"], table["model"], table["condition"], letter, text):
        out.setdefault(item, []).append((model, condition, a, t))
    return out


def answered(replies: pd.DataFrame) -> pd.Series:
    """Whether each reply of items without letters was read; False for abstentions and for items with letters."""
    if "answer" not in replies:
        return pd.Series(False, index=replies.index)
    answer = replies["answer"].astype(object)
    return answer.notna() & ~answer.isin(["", ABSTENTION])


def was_read(replies: pd.DataFrame) -> pd.Series:
    """Whether each reply names an option or, for items without letters, an answer."""
    letter = replies["letter"].astype(object)
    return letter.where(letter.notna(), ABSTENTION).ne(ABSTENTION) | answered(replies)


def clip(text: Any, most: int = 300) -> str:
    """At most ``most`` characters of a text."""
    shown = "" if text is None or text is pd.NA or text != text else str(text)
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"


def _votes(evidence: str) -> str:
    """``A C C -``: the models' letters in the order of the evidence, a dash for an abstention."""
    votes = json.loads(evidence).get("votes", {})
    return ", ".join(f"{m} {'–' if v == ABSTENTION else v}" for m, v in votes.items())
