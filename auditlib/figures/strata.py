"""Official categories: the zero-gain excess and the unanimous rate of each, in one common order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.figures import style
from auditlib.figures.style import BLUE, COLUMN, GREY, INK, MUTED, VERMILION, styled
from auditlib.lookup import Lacking
from auditlib.numerals import count, pct, pp

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OVERALL = {"pooled": "all, pooled", "within": "all, within categories"}


def stratum_rows(audit: Any, metric: str = "zero_gain_share") -> pd.DataFrame:
    """Rows of a metric, one per official category, headline arm, best p; empty where there are none."""
    table = lookup.rows(audit.statistics, metric, models="all", policy=("wrong", ""))
    if metric == "zero_gain_share":
        table = table[table["arm"] == lookup.headline_arm(audit)]
    table = table[table["stratum"].isin(lookup.strata(audit))]
    # inside one category the two kinds differ only where the number of options differs: the within one is the finer
    order = table["null_kind"].map({"within": 0}).fillna(1).to_numpy() if "null_kind" in table else np.zeros(len(table))
    return lookup.unique_p(table.iloc[np.argsort(order, kind="stable")], "stratum")


def prepare_strata_excess(audit: Any) -> pd.DataFrame:
    """Zero-gain share, null and excess by category, largest excess first; then all items, within and pooled."""
    if not lookup.has_blind(audit):
        raise Lacking("this pool has no blind run")
    table = stratum_rows(audit)
    if len(table) < 2:
        raise Lacking("this pool has no official categories")
    table = table.sort_values(["excess", "stratum"], ascending=[False, True]).assign(kind="category")
    total = [
        row.to_frame().T.assign(stratum=OVERALL[kind], kind=kind)
        for kind in ("within", "pooled")
        if (row := lookup.one(audit.statistics, "zero_gain_share", arm=lookup.headline_arm(audit), null_kind=kind,
                              models="all", stratum="all", policy=("wrong", ""))) is not None
    ]  # fmt: skip
    table = pd.concat([table, *total], ignore_index=True)
    wanted = ["stratum", "kind", "arm", "n", "estimate", "null", "excess", "excess_low", "excess_high", "p", "q"]
    table = table.reindex(columns=wanted)
    return table.astype(dict.fromkeys(wanted[3:], float))


@styled
def strata_excess(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Zero-gain excess of each category with its interval; filled where q < .05; the whole pool below."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame)))
    parts = frame["kind"].to_numpy() == "category"
    y = np.arange(len(frame)) + np.where(parts, 0, 0.5)
    ax.axvline(0, color=GREY, lw=0.7, zorder=0)
    ax.hlines(y, frame["excess_low"], frame["excess_high"], color=np.where(parts, BLUE, INK), lw=1.1, alpha=0.7)
    sure = np.where(parts, frame["q"].to_numpy(float) < 0.05, frame["p"].to_numpy(float) < 0.05)
    colours = np.where(parts, BLUE, INK)
    ax.scatter(
        frame["excess"], y, s=20, c=np.where(sure, colours, "white"), edgecolors=colours, linewidths=0.9, zorder=3
    )
    for place, r in zip(y, frame.itertuples()):
        style.note(ax, 1.02, place, pp(r.excess), transform=ax.get_yaxis_transform(), ha="left", clip_on=False)
    if (~parts).any():
        ax.axhline(y[parts].max() + 0.75, color=GREY, lw=0.5)
    style.row_names(ax, _with_sizes(frame), positions=y)
    style.percent_axis(ax, "x", "zero-gain excess over the null (pp)", signed=True)
    style.grid(ax)
    return ax


def _with_sizes(frame: pd.DataFrame) -> list[str]:
    """Names, with the number of items where categories differ in size."""
    sizes = frame["n"]
    if "kind" in frame:
        sizes = sizes[frame["kind"] == "category"]
    if sizes.nunique() <= 1:
        return frame["stratum"].tolist()
    return [f"{s} ({count(n)})" for s, n in zip(frame["stratum"], frame["n"])]


def prepare_strata_unanimous(audit: Any) -> pd.DataFrame:
    """Unanimous rate by category with Wilson interval, in the order of the zero-gain excess where there is one."""
    table = stratum_rows(audit, "unanimous_share")
    if "level" in table:
        table = table[table["level"].fillna("").eq("")]
    if len(table) < 2:
        state = audit.detectors.set_index("detector").loc["consensus_error"]
        reason = str(state["reason"]) if state["state"] != "run" else ""
        raise Lacking(reason or "this pool has no official categories")
    excess = stratum_rows(audit).set_index("stratum")["excess"] if lookup.has_blind(audit) else pd.Series(dtype=float)
    table = table.assign(excess=table["stratum"].map(excess).astype(float))
    by = "excess" if table["excess"].notna().any() else "estimate"
    table = table.sort_values([by, "stratum"], ascending=[False, True]).assign(sorted_by=by)
    wanted = ["stratum", "n", "estimate", "low", "high", "excess", "sorted_by"]
    return table.reindex(columns=wanted).reset_index(drop=True)


@styled
def strata_unanimous(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Share of items on which every readable vote is one same option that is not the key, by category."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame)))
    y = np.arange(len(frame))
    ax.barh(y, frame["estimate"], height=0.62, color=VERMILION, alpha=0.85)
    ax.hlines(y, frame["low"], frame["high"], color=INK, lw=0.8)
    for place, r in zip(y, frame.itertuples()):
        style.note(ax, 1.02, place, pct(r.estimate), transform=ax.get_yaxis_transform(), ha="left", clip_on=False)
    style.row_names(ax, _with_sizes(frame), positions=y)
    ax.set_xlim(left=0)
    style.percent_axis(ax, "x", "unanimous label conflicts (% of items)")
    style.grid(ax)
    if frame["sorted_by"].iloc[0] == "excess":
        style.legend_line(ax, [("in the order of the zero-gain excess", MUTED, "")])
    return ax
