"""The headline numbers of an audit, as a small frame and as a card."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from auditlib.detectors.contract import of_headline_arm
from auditlib.lookup import one, pool_range
from auditlib.numerals import NONE, number, p_says, percent, points, span

if TYPE_CHECKING:
    from auditlib.auditing import Audit


def headline(audit: Audit) -> pd.DataFrame:
    """Headline numbers, one row each: quantity, value, interval or range, note. Text, ready to print."""
    rows = [("items x models", f"{len(audit.items):,} x {len(audit.models)}", "", "")]
    rows += _zero_gain(audit) if audit.has_blind else [("zero gain", "not run", "", "no run without the image")]
    rows += _votes(audit)
    shown = of_headline_arm(audit.findings, audit.arm)
    flagged = shown[shown["flag"]]
    for severity in ("high", "medium"):
        n = flagged.loc[flagged["severity"] == severity, "item"].nunique()
        rows.append((f"items with a finding of {severity} severity", f"{n:,}", "", ""))
    return pd.DataFrame(rows, columns=["quantity", "value", "range", "note"])


def headline_row(audit: Audit) -> pd.Series | None:
    """The statistics row of the headline: within-stratum zero gain of the headline arm, else the pooled one."""
    keys = {"arm": audit.arm, "policy": "wrong", "models": "all", "stratum": "all"}
    within = one(audit.statistics, "zero_gain_share", null_kind="within", **keys)
    return one(audit.statistics, "zero_gain_share", null_kind="pooled", **keys) if within is None else within


def _zero_gain(audit: Audit) -> list[tuple[str, str, str, str]]:
    r = headline_row(audit)
    if r is None:
        reason = "; ".join(sorted(set(audit.steps["not_counted"].values()))) or "no arm is scored in both conditions"
        return [("zero gain", "not run", "", reason)]
    words = "within strata" if r["null_kind"] == "within" else "pooled null"
    p = f"{p_says(r['p'])} ({r['p_method']})"
    items, models = int(r["n"]), audit.steps["counted_models"][audit.arm]
    part = items < len(audit.items) or len(models) < len(audit.models)
    on = f", on {items:,} items x {len(models)} models" if part else ""
    rows = [
        ("zero gain from the image", percent(r["estimate"]), span(r["low"], r["high"], percent), f"{r['arm']} arm{on}"),
        (f"excess over chance, {words}", points(r["excess"]), span(r["excess_low"], r["excess_high"], points), p),
    ]
    where = {"arm": audit.arm, "policy": "wrong", "null_kind": r["null_kind"]}
    low, high = pool_range(audit.statistics, "zero_gain_share", "excess", **where)
    text = points(low) if points(low) == points(high) else span(low, high, points)
    if text != NONE:
        rows.append(("excess with one model left out", "", text, "fewer models tie more often"))
    return rows


def _votes(audit: Audit) -> list[tuple[str, str, str, str]]:
    rows = []
    u = one(audit.statistics, "unanimous_share", models="all", stratum="all", level="")
    if u is not None:
        value = f"{round(u['estimate'] * u['n']):,} items ({percent(u['estimate'])})"
        rows.append(("unanimous against the key", value, span(u["low"], u["high"], percent), "candidates for review"))
    k = one(audit.statistics, "fleiss_kappa", models="all")
    if k is not None:
        rows.append(("Fleiss' kappa", number(k["estimate"]), span(k["low"], k["high"], number), k["note"]))
    return rows


def card(audit: Audit) -> str:
    """The headline as an HTML card; everything that came from files is escaped."""
    cells = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left;padding:2px 14px 2px 0'>{escape(str(c))}</td>" for c in r)
        + "</tr>"
        for r in headline(audit).itertuples(index=False)
    )
    title = escape(f"{audit.benchmark}: {audit.pool_name}")
    box = "border:1px solid #bbb;border-radius:6px;padding:10px 16px;display:inline-block;font-family:sans-serif"
    return f"<div style='{box}'><b>{title}</b><table style='border:none;margin-top:6px'>{cells}</table></div>"
