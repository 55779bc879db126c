"""The section on flagged items: how many by detector and severity, and the first of each."""

from __future__ import annotations

from typing import Any

from auditlib import flagged_rows
from auditlib.figures.pipeline import plural
from auditlib.lookup import Lacking
from auditlib.numerals import count, number
from auditlib.report import flags
from auditlib.report.blocks import Block, Section, b, h3, link, p, section, table
from auditlib.report.exhibits import made

#: items shown for each detector
MOST = 8
SEVERITY = (
    "Severity, until an error rate has been measured: high = the files themselves prove it; medium = unanimous against "
    "the key with three voters or more, or answered without the image by every model; low = other conflicts; info = "
    "description only."
)


def findings(audit: Any, built: dict[str, Any]) -> Section:
    """The section ``findings``."""
    names = flags.detectors_with_findings(audit)
    severe = flags.severities(audit)
    first = ", ".join(f"{count(severe[s])} {s}" for s in ("high", "medium", "low", "info"))
    lede = p(b(f"Items with a finding of each severity: {first}. "), "An item can stand in several rows and under "
             "several severities. ", SEVERITY, " The whole list, with "
                                                                                           "votes "
             "and evidence, is in ", link("flagged.md"), " and ", link("findings.csv"), ".")  # fmt: skip
    parts: list[Block | None] = [lede, made(built, "detectors")]
    for name in names:
        parts += _detector(audit, name)
    if not names:
        parts.append(p("No item was flagged."))
    return section("findings", "Findings", *parts)


def _detector(audit: Any, name: str) -> list[Block]:
    table_ = flags.flagged(audit, name)
    serious = table_[table_["severity"] != "info"]
    if not len(serious):
        n = table_["item"].nunique()
        return [h3(flags.heading(name)),
                p(f"{plural(n, 'item')}, for information only: ids "
                  f"{flags.ids(table_['item'].unique(), 20)}.")]  # fmt: skip
    facts, cast = flags.facts_of(audit), flags.all_votes(audit)
    shown = serious.drop_duplicates("item").head(MOST) if name != "integrity" else serious.head(MOST)
    with_votes = name == "consensus_error"
    rows = []
    for r in shown.itertuples():
        f = facts.get(r.item, {})
        row = [flags.shortened(r.item, 40), f.get("stratum", ""), r.severity, number(r.score, 2),
               flags.shortened(f.get("question", ""), 90), flags.shortened(r.message, 140)]  # fmt: skip
        rows.append([*row, cast.get(r.item, "")] if with_votes else row)
    head = [
        "Item",
        "Official category",
        "Severity",
        "Score",
        "Question",
        "What was found",
        *(["Votes"] if with_votes else []),
    ]
    total = serious["item"].nunique()
    more = ""
    left_out = total - shown["item"].nunique()
    if left_out > 0:
        more = (
            f"The first {len(shown)} of {count(total)} items above severity info; {count(left_out)} more in flagged.md."
        )
    keep = [i for i, _ in enumerate(head) if any(row[i] for row in rows)]
    widths = [0, 0, 0, 0, 3, 4, 3]
    return [
        h3(flags.heading(name)),
        table("", f"{flags.heading(name)}: the first items", [head[i] for i in keep],
              [head[i] != "Score" for i in keep], [[row[i] for i in keep] for row in rows], more=more,
              widths=[widths[i] for i in keep], items=shown["item"].tolist()),
    ]  # fmt: skip


def first_to_review(audit: Any, most: int = 12) -> Block | None:
    """The items to look at first, all detectors together; None where nothing was flagged."""
    try:
        frame = flagged_rows.flagged(audit, most)
    except Lacking:
        return None
    rows = frame[["item", "stratum", "severity", "key", "reasons"]].astype(str).to_numpy().tolist()
    head = ["Item", "Official category", "Severity", "Key", "Reasons"]
    return table("flagged", "Items to look at first", head, [True] * 5, rows, widths=[0, 0, 0, 0, 1],
                 items=frame["item"].tolist())  # fmt: skip
