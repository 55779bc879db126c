"""More figures of judges: own family, and the judge that reads answers out of replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.figures import style
from auditlib.figures.style import BLUE, GREY, VERMILION, WIDE, styled
from auditlib.lookup import Lacking
from auditlib.numerals import number, percent
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_VARIANTS = {"plain": "as the audit asks", "permuted": "options in another order", "key_shown": "key shown"}


def prepare_extraction(result: Result) -> pd.DataFrame:
    """Errors of the extraction judge toward and away from the key, by how it is asked."""
    return result.frame("extraction_leniency")


@styled
def extraction(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rows are ways of asking; two rates with their intervals."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.42, room=0.85))
    y = np.arange(len(frame))
    for shift, stem, colour, marker in ((-0.14, "false_right", VERMILION, "o"), (0.14, "false_wrong", BLUE, "D")):
        ax.hlines(y + shift, frame[f"{stem}_low"], frame[f"{stem}_high"], color=colour, lw=1.3)
        ax.scatter(frame[stem], y + shift, c=colour, s=18, marker=marker, zorder=3)
    style.row_names(ax, frame["variant"].map(_VARIANTS).tolist())
    ax.set_xlim(left=0)
    style.percent_axis(ax, "x", "% of replies, by people's reading; 95% intervals")
    style.grid(ax)
    style.legend_line(ax, [("another answer read as the key", VERMILION, "●"),
                           ("the key read as another answer", BLUE, "◆")])  # fmt: skip
    return ax


def say_extraction(frame: pd.DataFrame) -> str:
    by = frame.set_index("variant")
    first = by.iloc[0]
    text = ("Errors of the judge that reads answers out of replies, against people's reading. Asked as the audit asks, "
            f"it reads another answer as the key in {percent(first['false_right'])} of {int(first['wrong'])} replies "
            f"and the key as another answer in {percent(first['false_wrong'])} of {int(first['right'])}.")  # fmt: skip
    if "key_shown" in by.index and len(by) > 1:
        text += f" With the key shown, the former are {percent(by.at['key_shown', 'false_right'])}."
    return text


def prepare_own(result: Result) -> pd.DataFrame:
    """Log odds of an output of the judge's own family, judge by judge, and their mean."""
    table = result.frame("own_family")
    if "coef" not in table or not table["coef"].notna().any():
        raise Lacking("no call shows outputs of the judge's own and of another family")
    return table[table["coef"].notna()].reset_index(drop=True)


@styled
def own(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rows are judges; 0 is no leaning at equal quality and slot."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.24, room=0.8))
    y = np.arange(len(frame))
    colour = np.where(frame["judge"].eq("all judges"), style.INK, BLUE)
    ax.hlines(y, frame["low"], frame["high"], colors=colour, lw=1.3)
    ax.scatter(frame["coef"], y, c=colour, s=20, zorder=3)
    if "shrunk" in frame and frame["shrunk"].notna().any():
        ax.scatter(frame["shrunk"], y, marker="|", s=34, c=style.INK, lw=0.9, zorder=4)
    style.row_names(ax, [f"{r.judge} ({r.family})" if r.family else r.judge for r in frame.itertuples()])
    ax.axvline(0, color=GREY, lw=0.7, zorder=0)
    ax.set_xlabel("log odds of an output of the own family, at equal slot and quality; 95% intervals")
    style.grid(ax)
    style.legend_line(ax, [("judge", BLUE, "●"), ("mean of the judges", style.INK, "●"),
                           ("pooled in part", style.INK, "|")])  # fmt: skip
    return ax


def say_own(frame: pd.DataFrame) -> str:
    judges = frame[frame["judge"].ne("all judges")]
    top = judges.loc[judges["coef"].idxmax()]
    text = ("Whether judges choose outputs of their own family more often than people's ratings, similarity and slot "
            f"explain. Most so {top['judge']}: log odds {number(top['coef'], 2)}, {percent(top['chosen'], 0)} of its "
            f"choices where {percent(top['expected'], 0)} are expected without knowledge.")  # fmt: skip
    odd = judges[judges["q"].le(0.05)]["judge"].tolist()
    return text + (f" After correction a leaning shows for {', '.join(odd)}." if odd else
                   " After correction no judge shows a leaning.")  # fmt: skip
