"""Verdicts that no judge gave, and verdicts that contradict each other."""

from __future__ import annotations

from typing import Any

import pandas as pd

from auditlib.frames import coverage_row
from auditlib.pool import Pool

#: share of verdicts by exact matching from which on a judge's name is misleading
MUCH = 0.05
#: names of judges that are rules, not models
RULES = ("exact_matching", "exact", "rule", "regex", "")


def verdict_warnings(pool: Pool) -> list[dict[str, Any]]:
    """Coverage rows on fallbacks under a judge's name and on equal replies that are judged unlike."""
    table = pool.judgements
    if table is None or not len(table):
        return []
    said = pool.coverage["reason"].astype(str).str.contains("verdicts of exact matching", regex=False)
    return ([] if said.any() else _fallback(table)) + _unlike(pool, table)


def _fallback(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for (model, condition, judge), part in table.groupby(["model", "condition", "judge"], sort=True, dropna=False):
        name = "" if pd.isna(judge) else str(judge)
        n = int(part["source"].eq("exact_fallback").sum())
        if n and n >= MUCH * len(part) and name not in RULES:
            said = (
                f"{100 * n / len(part):.0f}% of {len(part)} verdicts under the name of {name} are really exact matching"
            )
            rows.append(coverage_row("warning", n=n, model=str(model), condition=str(condition), reason=said))
    return rows


def same_reply_verdicts(pool: Pool) -> pd.DataFrame | None:
    """Verdicts of one judge on equal replies to one item: columns item, judge, verdicts, unlike (bool).

    Random fills and stale verdicts are none. None where no reply was judged twice.
    """
    table, r = pool.judgements, pool.responses
    if table is None or r is None or not len(table):
        return None
    if "level" in table:
        table = table[table["level"] != "circular"]
    on = ["item", "model", "condition"] + (["sample"] if "sample" in table and "sample" in r else [])
    table = table[table["hit"].notna() & ~table["source"].isin(["random_fill", "cache_stale"])].drop_duplicates(on)
    both = table[[*on, "judge", "hit"]].merge(r.loc[r["status"].eq("ok"), [*on, "prediction"]], on=on)
    groups = both.groupby(["item", "judge", "prediction"], dropna=False)["hit"].agg(["size", "nunique"]).reset_index()
    groups = groups[groups["size"] > 1]
    if not len(groups):
        return None
    return pd.DataFrame(
        {
            "item": groups["item"],
            "judge": groups["judge"],
            "verdicts": groups["size"],
            "unlike": groups["nunique"] > 1,
        }
    ).reset_index(drop=True)


def _unlike(pool: Pool, table: pd.DataFrame) -> list[dict[str, Any]]:
    same = same_reply_verdicts(pool)
    if same is None or not same["unlike"].any():
        return []
    n = int(same["unlike"].sum())
    some = ", ".join(same.loc[same["unlike"], "item"].astype(str).head(4))
    said = f"of {len(same)} replies that were judged more than once, {n} were judged unlike, such as item {some}"
    return [coverage_row("warning", n=n, reason=said)]
