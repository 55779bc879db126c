"""Sentences that the runs carry, made only where their conditions hold, and what the texts alone give away."""

from __future__ import annotations

from typing import Any

from auditlib.claims import ALPHA, claims
from auditlib.lookup import Lacking
from auditlib.numerals import count, p_says, percent
from auditlib.report.blocks import Block, Run, b, code, h3, p, ul

#: categories that a sentence names
NAMED = 5


def claimed(audit: Any) -> list[Block]:
    """Every sentence that may be quoted, what is not claimed and why, and the text-shortcut probe."""
    all_of_them = claims(audit)
    made = [c.sentence for c in all_of_them if c.made]
    left = [[b(c.name), ": ", "; ".join(c.missing), "."] for c in all_of_them if not c.made]
    blocks = [h3("Sentences that these runs carry")]
    if made:
        blocks += [p("Each was made from the statistics because its test, interval, correction for several tests and "
                     "range over pools allow it:", role="intro"), ul([[s] for s in made])]  # fmt: skip
    else:
        blocks.append(p("None: no sentence about the benchmark meets its conditions."))
    if left:
        blocks += [p("Not claimed, and why:", role="intro"), ul(left)]
    return [*blocks, p(b("Text-shortcut probe. "), *shortcut(audit))]


def shortcut(audit: Any) -> list[Run]:
    """What a classifier names from the options' texts alone, or that it was not run."""
    study = audit.study("calibration")
    if study is None:
        return ["Not run: a block ", code("calibration"), " in the params asks whether words and lengths of options "
                "give keys away, without any model."]  # fmt: skip
    try:
        table = study.frame("shortcut")
    except Lacking as why:
        return [f"Not run: {why}."]
    row = table[table["stratum"].eq("all")].iloc[0]
    above = row["p"] <= ALPHA and row["excess"] > 0
    said = (f"From words and lengths of the options alone, on items it has not seen, a classifier names the key of "
            f"{percent(row['estimate'])} of {count(row['n'])} items; with shuffled keys {percent(row['null'])} "
            f"({p_says(row['p'])}, shuffles). ")  # fmt: skip
    inside = table[table["stratum"].ne("all")]
    names = inside.loc[inside["q"].le(ALPHA) & inside["excess"].gt(0), "stratum"].tolist() if "q" in inside else []
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        said += f"It does so in {', '.join(names[:NAMED])}{more} (q up to {ALPHA:g}). "
    verdict = (
        "The texts give keys away" if above else "No such shortcut is shown, which does not show that there is none"
    )
    return [said, b(f"{verdict}.")]
