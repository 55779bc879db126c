"""``flagged.md``: the list that can be sent to the maintainers of a benchmark, with votes and evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import escape, lookup
from auditlib.figures.pipeline import plural
from auditlib.flagged_rows import clip, flagged, flagged_findings, lettered, replies_of
from auditlib.frames import SEVERITIES
from auditlib.lookup import Lacking
from auditlib.paths import RunPaths, atomic
from auditlib.report.flags import address, heading

MEANING = {
    "high": "the files themselves prove it",
    "medium": "strong evidence, for a person to judge",
    "low": "weaker evidence",
    "info": "description",
}
#: whole texts up to here; a benchmark with thousands of findings still gives a file that opens
ITEMS, TEXT = 500, 600


def write_flagged(audit: Any, paths: RunPaths) -> Path:
    """Write ``flagged.md`` of a pool: items above severity info, by severity and detector, worst first."""
    with atomic(paths.flagged) as file:
        file.write_text(flagged_text(audit), encoding="utf-8")
    return paths.flagged


def flagged_text(audit: Any) -> str:
    """The list as Markdown; everything that models or data sets wrote is escaped."""
    md = escape.markdown
    head = [
        f"# {md(audit.benchmark)}: items to review",
        "",
        f"Pool {md(audit.pool_name)}: {plural(len(audit.models), 'model')} "
        f"({', '.join(map(md, lookup.model_names(audit)))}), "
        f"{plural(len(audit.items), 'item')}.",
        "",
        "Each entry is a candidate that existing evaluation runs point to, not a verdict: models share mistakes. A "
        "person "
        "should look at the item before its key is changed or the item dropped. `–` is a reply without a readable "
        "answer. An item with several findings is listed once, under its most severe one.",
        "",
    ]
    try:
        table = flagged(audit, None)
    except Lacking as why:
        return "\n".join([*head, f"Nothing to review: {md(str(why))}.", ""])
    rest = int((table["severity"] == "info").sum())
    table = table[table["severity"] != "info"]
    shown = table.head(ITEMS)
    said = replies_of(audit, shown["item"])
    facts = audit.items[audit.items["item"].isin(shown["item"])].drop_duplicates("item").set_index("item")
    evidence = flagged_findings(audit)
    evidence = evidence[evidence["item"].isin(shown["item"])]
    evidence = dict(list(evidence.groupby("item", sort=False)))
    parts = head
    for severity in SEVERITIES[:3]:
        mine = shown[shown["severity"] == severity]
        if len(mine):
            total = int((table["severity"] == severity).sum())
            parts += [f"## {severity.capitalize()}: {MEANING[severity]} ({plural(total, 'item')})", ""]
            first = mine["detectors"].str.split(", ").str[0]
            for detector, part in mine.groupby(first, sort=False):
                parts += [f"### {md(heading(detector))} ({plural(len(part), 'item')})", ""]
                for r in part.to_dict("records"):
                    parts += _entry(r, facts.loc[r["item"]], evidence[r["item"]], said.get(r["item"], []))
    tail = []
    if len(table) > len(shown):
        tail.append(f"{len(table) - len(shown)} more items are in findings.csv.")
    if rest:
        tail.append(f"{plural(rest, 'item')} with findings of severity info are in findings.csv only.")
    return "\n".join([*parts, *(tail or ([] if len(table) else ["Nothing of severity high, medium or low."])), ""])


def _entry(
    row: dict[str, Any], item: pd.Series, evidence: pd.DataFrame, said: list[tuple[str, str, str, str]]
) -> list[str]:
    md = escape.markdown
    where = f" · {md(row['stratum'])}" if row["stratum"] else ""
    lines = [f"#### Item {md(row['item'])}{where} · [see it]({address(row['item'])})", ""]
    lines += [f"- {md(m, start=True)}" for m in dict.fromkeys(evidence["message"])]
    question = item.get("question")
    if isinstance(question, str) and question:
        lines += ["", f"> {md(clip(question, TEXT), start=True)}", ""]
    options = lettered(item.get("options"))
    for letter, text in options:
        mark = " **(key)**" if letter == row["key"] else ""
        lines.append(f"- {letter}: {md(clip(text, TEXT)) or '*(no text)*'}{mark}")
    if row["key"] and row["key"] not in [a for a, _ in options]:
        lines.append(f"- key: {md(row['key'])}")
    if said:
        word = "answer" if item.get("answer_type") in ("yesno", "open") else "letter"
        lines += ["", f"| model | run | {word} | reply |", "| :-- | :-- | :-- | :-- |"]
        lines += [f"| {md(m)} | {c} | {'–' if a == 'Z' else md(a)} | {md(clip(t, 160))} |" for m, c, a, t in said]
    elif row["votes"]:
        lines.append(f"- votes: {md(row['votes'])}")
    facts = [
        f"{d}{f' ({a})' if a else ''}: {_facts(e)}"
        for d, a, e in zip(evidence["detector"], evidence["arm"], evidence["evidence"])
    ]
    return [*lines, "", "Evidence: " + md("; ".join(dict.fromkeys(facts))), ""]


def _facts(evidence: str) -> str:
    """Evidence in a short form: names and plain values; votes stand in the table already."""
    parts = json.loads(evidence)
    return ", ".join(f"{k} {json.dumps(v, ensure_ascii=False)}" for k, v in parts.items() if k not in ("votes", "key"))
