"""Shares by what a reply without an answer counts as: wrong, left out, or free to be anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.figures import style
from auditlib.figures.style import BLUE, CATEGORY_NAMES, COLUMN, SKY, VERMILION
from auditlib.lookup import CATEGORIES, Lacking, value
from auditlib.numerals import pct

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def shares_by_policy(audit: Any, arms: Sequence[str]) -> pd.DataFrame:
    """One row per share and arm; raises where no abstention is known."""
    if not lookup.has_blind(audit):
        raise Lacking("this pool has no blind run")
    out = []
    for name in ("zero_gain", *CATEGORIES, "visual_dependent_majority"):
        for arm in arms:
            keys = {"arm": arm, "models": "all", "stratum": "all"}
            of = {
                p: lookup.one(audit.statistics, f"{name}_share", policy=(p, "") if p == "wrong" else p,
                              null_kind=("pooled", ""), **keys)
                for p in ("wrong", "excluded", "bounds", "bounds_both")
            }  # fmt: skip
            if of["excluded"] is None and of["bounds"] is None:
                continue
            out.append({"share": name, "arm": arm, "wrong": value(of["wrong"]), "excluded": value(of["excluded"]),
                        "excluded_n": value(of["excluded"], "n"), "excluded_excess": value(of["excluded"], "excess"),
                        "bound_low": value(of["bounds"], "low"), "bound_high": value(of["bounds"], "high"),
                        "both_low": value(of["bounds_both"], "low"),
                        "both_high": value(of["bounds_both"], "high")})  # fmt: skip
    if not out:
        raise Lacking("no abstention is known, so policies cannot differ")
    return pd.DataFrame(out)


def prepare_abstention(audit: Any) -> pd.DataFrame:
    """Each share of the headline arm by policy."""
    return shares_by_policy(audit, [lookup.headline_arm(audit)])


@style.styled
def abstention(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Bar: attainable; dot: abstentions wrong; diamond: left out."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame), each=0.27))
    y = np.arange(len(frame))
    ax.barh(y, frame["bound_high"] - frame["bound_low"], left=frame["bound_low"], height=0.4, color=SKY, alpha=0.45)
    ax.plot(frame["wrong"], y, "o", color=BLUE, ms=4.5, clip_on=False, zorder=3)
    ax.plot(frame["excluded"], y, "D", color=VERMILION, ms=4, mfc="none", mew=1.1, clip_on=False, zorder=3)
    for place, r in zip(y, frame.itertuples()):
        words = f"{pct(r.wrong)} / {pct(r.excluded)}"
        style.note(ax, 1.02, place, words, transform=ax.get_yaxis_transform(), clip_on=False)
    style.row_names(ax, [CATEGORY_NAMES[s].replace(", ", ",\n") for s in frame["share"]])
    ax.set_xlim(left=0)
    style.percent_axis(ax, "x", "share of items (%)")
    style.grid(ax)
    entries = [("abstentions wrong", BLUE, "●"), ("left out", VERMILION, "◇"), ("attainable", "#b4dcf4")]
    style.legend_line(ax, entries)
    return ax
