"""The errata as a text for a benchmark's maintainers: by status and reason, each with its evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from auditlib.errata.reasons import CANDIDATE, CONFIRMED, REASONS, REJECTED, STATUSES
from auditlib.errata.table import Errata
from auditlib.escape import fenced, markdown
from auditlib.figures.pipeline import plural

#: entries of one status; the table holds all
MOST = 300
#: above so many models an entry gives the tally of the votes only
MODELS = 8
#: topics of which the models' letters with the image say something
VOTED = ("key", "options", "scoring")
#: every text holds one of these lines
NOTHING = "No report speaks against an item."
DECIDERS = "Detectors make candidates; only people's decisions confirm or reject."
_HEADS = {"confirmed": "Confirmed", "disputed": "Disputed", "candidate": "Candidates", "rejected": "Found in order"}


def md(text: object) -> str:
    """Text for an issue: escaped, and without calling the people whom it names with an at sign."""
    return re.sub(r"@(?=\w)", "`@`", markdown(text))


def errata_text(errata: Errata, table: str = "errata.csv") -> str:
    """Markdown (GitHub's dialect) of an errata table, ready for an issue; everything foreign is escaped.

    Parameters
    ----------
    table : name of the table's file, said in the text.

    Notes
    -----
    Candidates are called candidates: saved runs point at them and nobody has decided. Items that people found in order
    are named at the end, so that nobody looks again.
    """
    rows, facts = errata.rows, errata.facts
    name = md(facts.get("benchmark") or "The benchmark")
    n = {s: int(rows["status"].eq(s).sum()) for s in STATUSES}
    parts = [f"# {name}: {plural(rows['item'].nunique(), 'item')} to look at" if len(rows) else f"# {name}: errata", ""]
    parts += [_opening(errata, n), ""]
    if not len(rows):
        return "\n".join([*parts, NOTHING, ""])
    if n[CONFIRMED] and (rows["status"].eq(CONFIRMED) & rows["proposed_key"].ne("")).any():
        parts += ["A key that is to be changed stands as `old → new`.", ""]
    for status in STATUSES:
        mine = rows[rows["status"].eq(status)]
        if len(mine):
            parts += _status(status, mine, table)
    return "\n".join([*parts, *_again(errata, table), ""])


def is_errata_text(text: str) -> bool:
    """Whether a text was made by :func:`errata_text`."""
    first = text.lstrip("\ufeff").split("\n", 1)[0].strip()
    made = re.fullmatch(r"# .+: (?:errata|[\d,]+ items? to look at)", first) is not None
    return made and (NOTHING in text or DECIDERS in text)


def _opening(errata: Errata, n: dict[str, int]) -> str:
    facts = errata.facts
    seen = f"of {int(facts['items']):,} " if facts.get("items") else ""
    counted = ", ".join(f"{n[s]} {words}" for s, words in (
        ("confirmed", "confirmed"), ("disputed", "disputed"),
        ("candidate", "candidate" if n["candidate"] == 1 else "candidates"), ("rejected", "found in order"),
    ) if n[s])  # fmt: skip
    said = f"Reports on items {seen}of {md(facts.get('benchmark') or 'this benchmark')}: {counted}." if counted else ""
    source = f"saved runs of {plural(int(facts['models']), 'model')}" if facts.get("models") else "saved runs"
    said += f" Candidates come from {source}" if n[CANDIDATE] else ""
    said += ": models share mistakes, so a candidate is a question and no verdict." if n[CANDIDATE] else ""
    hashes = [h for h in dict.fromkeys(errata.rows["dataset_sha256"]) if h]
    if len(hashes) == 1:
        file = f"`{facts['dataset']}`, " if facts.get("dataset") and "`" not in str(facts["dataset"]) else ""
        said += f" The keys are those of {file}SHA-256 `{hashes[0]}`."
    return said.strip()


def _status(status: str, rows: pd.DataFrame, table: str) -> list[str]:
    parts = [f"## {_HEADS[status]} ({len(rows)}): {STATUSES[status]}", ""]
    shown = rows.head(MOST)
    if status == REJECTED:
        listed = ", ".join(f"{md(i)}" for i in dict.fromkeys(shown["item"]))
        parts += [f"Items {listed}.", ""]
        parts += [line for r in shown.to_dict("records") if r["outcome"] for line in (_line(r, key=False),)]
        parts += [""] * bool(shown["outcome"].ne("").any())
    else:
        for code in [c for c in REASONS if c in set(shown["reason"])]:
            mine = shown[shown["reason"].eq(code)]
            meaning = REASONS[code].meaning
            said = f"{meaning[0].upper()}{meaning[1:]}." if status == CONFIRMED else f"In question: whether {meaning}."
            parts += [f"### {code.replace('_', ' ').capitalize()} ({len(mine)})", "", said, ""]
            for r in mine.to_dict("records"):
                parts += [_line(r), *_details(r)]
            parts.append("")
    if len(rows) > len(shown):
        parts += [f"{len(rows) - len(shown)} more are in {md(table)}.", ""]
    return parts


def _line(r: dict[str, Any], *, key: bool = True) -> str:
    """``- **Item 12** (key A → C): evidence``."""
    change = f"{md(r['old_key'])} → {md(r['proposed_key'])}" if r["proposed_key"] else md(r["old_key"])
    proposed = " proposed" if r["proposed_key"] and r["status"] != CONFIRMED else ""
    where = f" (key {change}{proposed})" if key and r["old_key"] else ""
    said = r["outcome"] if not key else r["evidence"]
    return f"- **Item {md(r['item'])}**{where}" + (f": {md(said)}" if said else "")


def _details(r: dict[str, Any]) -> list[str]:
    models: Sequence[str] = r["models"].split(", ") if r["models"] else ()
    votes = r["models"] if models and len(models) <= MODELS else r["votes"]
    votes = votes if REASONS[r["reason"]].topic in VOTED else ""
    said = [f"votes with the image: {md(votes)}" if votes else "",
            f"reviewers: {md(r['outcome'])}" if r["outcome"] else "",
            f"sources: {md(r['sources'])}" if r["sources"] and r["sources"] != "audit" else ""]  # fmt: skip
    return [f"  - {s}" for s in said if s]


def _again(errata: Errata, table: str) -> list[str]:
    pool = errata.facts.get("pool")
    lines = ["## How this was made", "",
             f"The whole list, with every vote, is {md(table)}: one row per item and question. "
             f"{DECIDERS}"]  # fmt: skip
    params = f"params/{pool}.yaml"
    made = [f"auditlib run {params}", f"auditlib errata write {params}"] if pool else []
    lines += ["", fenced("\n".join([*made, f"auditlib errata patch {table} DATASET --to NEW"]))]
    return lines
