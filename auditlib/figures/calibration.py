"""Figures of a calibration: what planted defects are found, the list's precision, rank bands, the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib.figures import style
from auditlib.figures.style import BLUE, COLUMN, GREY, INK, MUTED, PALE, VERMILION, styled
from auditlib.lookup import Lacking
from auditlib.numerals import count, pct

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def prepare_spikes(result: Any) -> pd.DataFrame:
    """Recall and false positives by kind of planted defect and detector."""
    table = result.frame("spike_in").copy()
    table["row"] = [f"{p}, {s}: {f}" for p, s, f in zip(table["planted"], table["scheme"], table["flag"])]
    return table[["row", "planted", "scheme", "detector", "flag", "recall", "recall_low", "recall_high",
                  "false_positive", "n_planted", "repeats"]]  # fmt: skip


@styled
def spikes(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Share of planted defects found, its range over copies, and the share of other items flagged."""
    ax = style.axes(ax, style.WIDE * 0.75, style.rows_height(len(frame)))
    y = np.arange(len(frame))
    ax.hlines(y, frame["recall_low"], frame["recall_high"], color=BLUE, lw=1.4, alpha=0.6)
    ax.scatter(frame["recall"], y, s=20, color=BLUE, zorder=3)
    ax.scatter(frame["false_positive"], y, s=20, facecolor="white", edgecolor=VERMILION, linewidths=0.9, zorder=4)
    style.row_names(ax, frame["row"].tolist(), positions=y, width=58)
    ax.set_xlim(-0.02, 1.02)
    style.percent_axis(ax, "x", "% of items")
    style.grid(ax)
    style.legend_line(ax, [("planted defects found", BLUE, "●"), ("other items flagged", VERMILION, "○")])
    return ax


def say_spikes(frame: pd.DataFrame) -> str:
    best = frame.loc[frame["recall"].idxmax()]
    return ("Defects planted in copies of this pool: filled marks, the share found (line: 5% to 95% of the copies); "
            f"open marks, the share of the other items flagged. The highest is {pct(best['recall'])}% ({best['row']}). "
            "Planted flips are cleaner than real ones: an upper value.")  # fmt: skip


def prepare_list(result: Any) -> pd.DataFrame:
    """Local false-discovery rate along the list, from people's reviews of a sample."""
    return result.frame("fdr")


@styled
def fdr(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Chance that an item of this rank is sound, with its interval."""
    ax = style.axes(ax, COLUMN, 2.3)
    ax.fill_between(frame["rank"], frame["low"], frame["high"], color=PALE, lw=0)
    ax.plot(frame["rank"], frame["local_fdr"], color=BLUE, lw=1.3)
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("place in the list (1 = most suspect)")
    style.percent_axis(ax, "y", "sound items at this place (%)")
    style.grid(ax, "y")
    return ax


def say_fdr(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return (f"Local false-discovery rate along the list, from a reviewed probability sample, with its 90% interval: "
            f"{pct(first['local_fdr'])}% at the first place.")  # fmt: skip


def prepare_board(result: Any) -> pd.DataFrame:
    """Scores and rank bands under each variant of the item set."""
    table = result.frame("board")
    if table["variant"].nunique() < 2:
        raise Lacking("no item is under suspicion, so that the leaderboard has one form only")
    return table


@styled
def board(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rank bands of each model: as is, without suspects, with the votes' keys."""
    names = frame.loc[frame["variant"] == frame["variant"].iloc[0]].sort_values("rank")["model"].tolist()
    variants = list(dict.fromkeys(frame["variant"]))
    ax = style.axes(ax, COLUMN * 1.2, style.rows_height(len(names) * len(variants), each=0.13))
    colours = [INK, BLUE, VERMILION, MUTED]
    for v, variant in enumerate(variants):
        part = frame[frame["variant"] == variant].set_index("model").loc[names]
        y = np.arange(len(names)) + 0.22 * (v - (len(variants) - 1) / 2)
        ax.hlines(y, part["rank_low"], part["rank_high"], color=colours[v % 4], lw=1.6, alpha=0.55)
        ax.scatter(part["rank"], y, s=14, color=colours[v % 4], zorder=3)
    style.row_names(ax, names)
    ax.set_xlabel("rank, with its simultaneous 95% band")
    ax.set_xticks(np.unique(np.linspace(1, len(names), min(len(names), 8)).round().astype(int)))
    style.grid(ax)
    style.legend_line(ax, [(v, colours[i % 4], "●") for i, v in enumerate(variants)])
    return ax


def say_board(frame: pd.DataFrame) -> str:
    sizes = ", ".join(f"{v}: {count(n)} items" for v, n in frame.groupby("variant", sort=False)["n"].first().items())
    return f"Ranks of the models under each variant of the item set, with bands that hold for all at once ({sizes})."


def prepare_plan(result: Any) -> pd.DataFrame:
    """Expected length and recall of an error-controlled list by number of models."""
    return result.frame("list_plan")


@styled
def plan(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Items that a list with a controlled share of errors would hold, by number of models."""
    ax = style.axes(ax, COLUMN, 2.1)
    ax.plot(frame["models"], frame["listed"], color=BLUE, lw=1.2, marker="o", ms=3.5)
    ax.set_xscale("log", base=2)
    ax.set_xticks(frame["models"], [str(m) for m in frame["models"]], fontsize=6)
    ax.minorticks_off()
    ax.set_xlabel("models")
    ax.set_ylabel("items on the list")
    ax.set_ylim(bottom=0)
    ax.axhline(0, color=GREY, lw=0.6)
    style.grid(ax, "y")
    return ax


def say_plan(frame: pd.DataFrame) -> str:
    some = frame[frame["listed"] > 0]
    start = f"from {int(some['models'].iloc[0])} models on" if len(some) else "with none of these numbers of models"
    return ("Expected length of a list of items with next to no gain from the image and a controlled share of errors, "
            f"under the fitted mixture: such a list exists {start}.")  # fmt: skip
