"""Calibration against the benchmark's own design labels: does visual gain recover them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.figures import glyphs, style
from auditlib.figures.nulls import headline_counts
from auditlib.figures.style import BLUE, COLUMN, GREY, styled
from auditlib.lookup import Lacking
from auditlib.numerals import count, interval, number, pp

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_DESIGN = "the items carry no design labels (params: audit.design)"


def prepare_roc(audit: Any) -> pd.DataFrame:
    """ROC of visual gain (F - B) / nR for the positive design label: threshold, false and true positive rate."""
    row = lookup.one(audit.statistics, "gain_auc", arm=lookup.headline_arm(audit))
    if row is None:
        row = lookup.one(audit.statistics, "gain_auc")
    if row is None:
        raise Lacking(NO_DESIGN if lookup.has_blind(audit) else "this pool has no blind run")
    positive = lookup.text(row, "level").removeprefix("positive").strip()
    counts = headline_counts(audit)
    if "design" not in counts:
        raise Lacking(NO_DESIGN)
    counts = counts[counts["design"].notna() & counts["design"].astype(str).ne("")]
    target = counts["design"].astype(str).eq(positive).to_numpy()
    if not target.any() or target.all():
        raise Lacking(f"the design label {positive!r} is on all items or on none")
    gain = ((counts["F"] - counts["B"]) / (counts["n"] * counts["R"])).to_numpy(float)
    levels = np.unique(gain)[::-1]
    hits = np.array([[(gain[~target] >= g).mean(), (gain[target] >= g).mean()] for g in levels])
    table = pd.DataFrame({"threshold": np.r_[np.nan, levels], "false_positive_rate": np.r_[0, hits[:, 0]],
                          "true_positive_rate": np.r_[0, hits[:, 1]]})  # fmt: skip
    return table.assign(positive=positive, auc=lookup.value(row), low=lookup.value(row, "low"),
                        high=lookup.value(row, "high"), n_positive=int(target.sum()),
                        n_negative=int((~target).sum()))  # fmt: skip


@styled
def roc(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """True against false positive rate as the threshold on visual gain falls."""
    ax = style.axes(ax, 2.7, 2.75)
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    ax.plot(frame["false_positive_rate"], frame["true_positive_rate"], "o-", color=BLUE, ms=3)
    first = frame.iloc[0]
    words = f"AUC {number(first['auc'], 2)}"
    if pd.notna(first["low"]):
        words += f" {interval(first['low'], first['high'], lambda v: number(v, 2))}"
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    style.percent_axis(ax, "x", "other items above the threshold (%)")
    style.percent_axis(ax, "y", f"{glyphs.short(first['positive'], 24)} items above it (%)")
    style.legend_line(ax, [(words, BLUE, "━"), ("chance", GREY, "━")])
    return ax


def prepare_design_excess(audit: Any) -> pd.DataFrame:
    """Zero-gain excess by design label with interval."""
    table = lookup.rows(audit.statistics, "zero_gain_share", arm=lookup.headline_arm(audit), models="all",
                        policy=("wrong", ""))  # fmt: skip
    table = lookup.unique_p(table[table["stratum"].astype(str).str.startswith("design:")], "stratum")
    if not len(table):
        raise Lacking(NO_DESIGN if lookup.has_blind(audit) else "this pool has no blind run")
    table = table.assign(label=table["stratum"].str.removeprefix("design:"))
    wanted = ["label", "n", "estimate", "null", "excess", "excess_low", "excess_high", "p"]
    return (
        table.reindex(columns=wanted).sort_values(["excess", "label"], ascending=[False, True]).reset_index(drop=True)
    )


@styled
def design_excess(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One dot per design label, with its interval."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame), each=0.26, least=1.2))
    y = np.arange(len(frame))
    ax.axvline(0, color=GREY, lw=0.7)
    ax.hlines(y, frame["excess_low"], frame["excess_high"], color=BLUE, lw=1.2, alpha=0.7)
    ax.plot(frame["excess"], y, "o", color=BLUE, ms=5)
    for place, r in zip(y, frame.itertuples()):
        style.note(ax, 1.02, place, pp(r.excess), transform=ax.get_yaxis_transform(), clip_on=False)
    style.row_names(ax, [f"{r.label} ({count(r.n)})" for r in frame.itertuples()])
    ax.set_xlim(left=min(0, *frame[["excess", "excess_low"]].min()) - 0.004)
    style.percent_axis(ax, "x", "zero-gain excess over the null (pp)", signed=True)
    style.grid(ax)
    return ax
