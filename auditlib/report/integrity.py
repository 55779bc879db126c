"""The gate in the report: each check and its outcome, what every rate is a share of, and where verdicts came from."""

from __future__ import annotations

from typing import Any

import pandas as pd

from auditlib import lookup
from auditlib.figures.pipeline import plural
from auditlib.integrity.checks import gate_table
from auditlib.integrity.denominators import PARTS
from auditlib.metrics.key_information import uninformative
from auditlib.numerals import NONE, count, number, percent, span
from auditlib.report import flags
from auditlib.report.blocks import Block, Section, b, h3, p, section, table

#: rows that a table of this section shows
MOST = 40
#: what a key that models agree with no more than chance allows to say, and no more
NO_INFORMATION = "this key carries no measurable information for this pool"
SOURCES = ("regex", "llm", "exact_fallback", "random_fill", "cache_stale", "recomputed", "human", "unknown")


def integrity(audit: Any) -> Section:
    """The section ``integrity``."""
    gate = gate_table(audit)
    states = gate["state"].value_counts()
    found = gate[gate["state"].eq("found") & gate["severity"].ne("info")]
    said = (
        f"{plural(int(states.get('found', 0)), 'check')} found something, {count(states.get('passed', 0))} passed, "
        f"{count(states.get('not run', 0))} could not run."
    )
    return section(
        "integrity",
        "Integrity",
        p(
            b(said),
            " The gate reads the files before any model is counted: what they prove by themselves, and what makes a "
            "run doubtful. High: the file itself proves it." + ("" if len(found) else " Nothing here asks for a step."),
            role="intro",
        ),
        _checks(gate),
        *_ceiling(audit),
        *_silent_keys(audit),
        *_denominators(audit),
        _sources(audit),
        _parsers(audit),
    )


def _checks(gate: pd.DataFrame) -> Block:
    rows = []
    for r in gate.to_dict("records"):
        outcome = {"found": r["severity"], "passed": "passed", "not run": "not run"}[r["state"]]
        n = count(r["n"]) if r["state"] == "found" else NONE
        rows.append([r["what"], r["about"], outcome, n, flags.shortened(r["examples"], 110), r["do"]])
    return table(
        "",
        "The gate’s checks",
        ["What holds when it passes", "Of", "Outcome", "Found", "Examples", "What to do, or why not run"],
        [True, True, True, False, True, True],
        rows,
        note="Outcome: passed, not run, or the worst severity found. Found: items, or replies and items of runs; each "
        "with its reason in findings.csv and coverage.csv.",
        widths=[5, 0, 0, 0, 3, 4],
    )


def _ceiling(audit: Any) -> list[Block]:
    rows = audit.statistics[audit.statistics["metric"].eq("attainable_ceiling")]
    whole = rows[rows["stratum"].eq("all") & rows["level"].eq("")]
    if not len(whole):
        return []
    w = whole.iloc[0]
    bad = round((1 - w["estimate"]) * w["n"])
    if not bad:
        return [p(b("Attainable ceiling: "), f"100%: the key of each of {plural(int(w['n']), 'item')} can be met.")]
    said = (
        f"{count(bad)} of {count(w['n'])} items have a key that no option shown can meet, so a perfect model reaches "
    )
    out = [p(b("Attainable ceiling: "), said, b(percent(w["estimate"], 2)), ".")]
    parts = rows[(rows["stratum"].ne("all") | rows["level"].ne("")) & rows["estimate"].lt(1)]
    parts = parts.sort_values("estimate", kind="stable")
    if len(parts):
        body = [
            [r.level.removeprefix("source ") or r.stratum, "source" if r.level else "official category",
             count(r.n), count(round((1 - r.estimate) * r.n)), percent(r.estimate, 2)]
            for r in parts.head(MOST).itertuples()
        ]  # fmt: skip
        head = ["Name", "Kind", "Items", "Out of reach", "Ceiling"]
        more = f"The lowest {MOST} of {len(parts)}." if len(parts) > MOST else ""
        out.append(table("", "Where a perfect model cannot reach 100%", head, [True, True, False, False, False], body,
                         more=more, note="Parts not listed reach 100%."))  # fmt: skip
    return out


def _silent_keys(audit: Any) -> list[Block]:
    """Strata in which the models agree with the key no more than chance: said so, and no more than that."""
    mine = audit.statistics[audit.statistics["metric"].isin(["key_kappa", "key_majority"])]
    if not len(mine):
        return []
    silent = uninformative(audit.statistics)
    parts = silent[silent["stratum"].ne("all")] if len(silent) > 1 else silent
    if not len(parts):
        return []
    tested = int(parts["tested"].iloc[0])
    rows = [
        [flags.shortened(r.stratum, 60) if r.stratum != "all" else "all items", count(r.n), number(r.kappa, 2),
         span(r.kappa_low, r.kappa_high, lambda v: number(v, 2)), percent(r.majority),
         span(r.majority_low, r.majority_high, percent), percent(r.chance), number(r.item_rest, 2)]
        for r in parts.head(MOST).itertuples()
    ]  # fmt: skip
    one = len(parts) == 1
    whole = one and parts["stratum"].iloc[0] == "all"
    whose = (
        "Of all items" if whole else "Of the category below" if one else f"Of each of the {len(parts)} categories below"
    )
    family = (
        f" {plural(tested, 'category', 'categories')} {'was' if tested == 1 else 'were'} tested, each with 95% "
        "intervals that are not adjusted for their number."
    )
    return [
        h3("Keys without measurable information"),
        p(f"{whose}: ", b(NO_INFORMATION), ".", "" if whole else family),
        table(
            "",
            "Agreement of the models’ letters with the key",
            ["Official category", "Items", "Kappa", "95% interval", "Majority = key", "95% interval", "Chance",
             "Item-rest r"],
            [True, *[False] * 7],
            rows,
            note="Listed where the interval of kappa holds 0 and that of the majority’s rate holds chance.",
        ),
    ]  # fmt: skip


def _denominators(audit: Any) -> list[Block]:
    s = audit.statistics
    mine = s[s["metric"].str.startswith("items_")]
    if not len(mine):
        return []
    arms = [a for a in audit.steps["arms"] if (mine["arm"] == a).any()]
    cells = {
        (r.models, r.level, r.metric.removeprefix("items_") if r.metric != "items_scored" else f"scored {r.arm}"): r.n
        for r in mine.itertuples()
    }
    columns = [*(x for x in PARTS if (mine["metric"] == f"items_{x}").any()), *(f"scored {a}" for a in arms)]
    runs = list(dict.fromkeys(zip(mine["models"], mine["level"])))
    order = {m: i for i, m in enumerate(lookup.model_names(audit))}
    runs.sort(key=lambda r: (order.get(r[0], len(order)), r[1] != "full", r[1]))
    rows = [[m, c, *(count(cells[m, c, x]) if (m, c, x) in cells else NONE for x in columns)] for m, c in runs[:MOST]]
    more = f"The first {MOST} of {len(runs)} runs; all are in statistics.csv (metrics items_…)." if len(
        runs) > MOST else ""  # fmt: skip
    return [
        table(
            "",
            f"What every rate is a share of ({plural(len(audit.items), 'item')})",
            ["Model", "Run", *(x[0].upper() + x[1:] for x in columns)],
            [True, True, *[False] * len(columns)],
            rows,
            note="Answered: a usable reply, abstentions included. Abstained: a usable reply that names no answer. "
            "Failed: no usable reply. Missing: items that the run lacks.",
            more=more,
        )
    ]


def _sources(audit: Any) -> Block | None:
    verdicts = audit.judgements
    if verdicts is None or not len(verdicts) or "source" not in verdicts:
        return None
    source = verdicts["source"].astype(object).where(verdicts["source"].notna(), "unknown").astype(str)
    judge = verdicts["judge"].astype(object).where(verdicts["judge"].notna(), "").astype(str)
    sizes = source.groupby([verdicts["model"].astype(str), verdicts["condition"].astype(str), judge]).value_counts()
    wide = sizes.unstack(fill_value=0)
    columns = [c for c in SOURCES if c in wide] + sorted(set(wide.columns) - set(SOURCES))
    rows = [[*map(str, at), *(count(n) for n in row)] for at, row in zip(wide.index[:MOST], wide[columns].to_numpy())]
    return table(
        "",
        "Where verdicts came from",
        ["Model", "Run", "Judge", *columns],
        [True, True, True, *[False] * len(columns)],
        rows,
        note="regex: by rule, without a judge; llm: by the judge; exact_fallback: exact matching in place of the "
        "judge; random_fill and cache_stale are abstentions here, never answers; unknown: the files do not say.",
        more=f"The first {MOST} of {len(wide)} runs." if len(wide) > MOST else "",
    )


def _parsers(audit: Any) -> Block | None:
    """How far accuracy hangs on the way replies are read, where other readers were tried."""
    s = audit.statistics
    ranges = s[s["metric"].eq("parser_accuracy_range")]
    if not len(ranges):
        return None
    only = s[s["metric"].eq("parser_only_hits")].drop_duplicates(["models", "level"])
    elsewhere = only.set_index(["models", "level"])["estimate"] * only["n"].to_numpy()
    rows = [
        ["all models" if r.models == "all" else r.models, r.level, count(r.n), percent(r.estimate),
         span(r.low, r.high, percent), count(round(elsewhere.get((r.models, r.level), 0))), flags.shortened(r.note, 90)]
        for r in ranges.head(MOST).itertuples()
    ]  # fmt: skip
    return table(
        "",
        "Accuracy under other toolkits’ ways of reading the replies",
        ["Model", "Run", "Replies", "Exact arm", "Lowest to highest", "Right elsewhere only", "Readers"],
        [True, True, False, False, False, False, True],
        rows,
        note="Right elsewhere only: replies that another toolkit’s reader scores as right and the exact arm does not.",
        more=f"The first {MOST} of {len(ranges)} rows." if len(ranges) > MOST else "",
        widths=[0, 0, 0, 0, 0, 0, 1],
    )
