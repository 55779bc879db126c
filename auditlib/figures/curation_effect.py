"""Figures of a curation's effect: scores, ranks, the threshold grid, and what random subsets would have done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.figures import glyphs, style
from auditlib.figures.style import BLUE, COLUMN, GREY, INK, MUTED, VERMILION, styled
from auditlib.lookup import Lacking
from auditlib.numerals import count, number, pct, percent, pp
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND = "#cccccc"
#: measures of the quality frame that have a band of random subsets, as the figure names them
_BANDS = {
    "mean": "mean score",
    "sd": "SD between models",
    "cv": "coefficient of variation",
    "gap": "top minus bottom models",
    "spearman": "Spearman with all items",
    "kendall": "Kendall with all items",
    "spearman_rest": "Spearman with removed items",
    "resolvable": "resolvable pairs",
}


# ---------------------------------------------------------------------------------------------- scores and ranks


def prepare_inflation(result: Result) -> pd.DataFrame:
    """Mean score over models, all items and curated, by capability; the macro average last."""
    table = result.frame("scores")
    table = table[table["kind"].eq("capability") | table["name"].eq("macro average")]
    if not table["kind"].eq("capability").any():
        raise Lacking("the items have no capability")
    mean = table.groupby(["name", "set"], sort=False).agg(score=("score", "mean"), items=("items", "first")).unstack()
    out = pd.DataFrame({"name": mean.index, "raw": mean["score", "raw"].to_numpy(),
                        "curated": mean["score", "curated"].to_numpy(),
                        "items_raw": mean["items", "raw"].to_numpy(),
                        "items_curated": mean["items", "curated"].to_numpy()})  # fmt: skip
    out["change"] = out["curated"] - out["raw"]
    out["models"] = table["model"].nunique()
    last = out["name"].eq("macro average")
    return pd.concat([out[~last].sort_values("change", kind="stable"), out[last]], ignore_index=True)


@styled
def inflation(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Two dots per capability: the mean score on all items and on the curated ones."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame), each=0.23))
    last = frame["name"].eq("macro average").to_numpy()
    y = np.arange(len(frame)) + np.where(last, 0.4, 0)
    ax.hlines(y, frame["curated"], frame["raw"], color=GREY, lw=1.6, zorder=1)
    ax.scatter(frame["raw"], y, s=26, facecolors="white", edgecolors=INK, linewidths=0.9, zorder=3)
    ax.scatter(frame["curated"], y, s=26, c=BLUE, zorder=3)
    for place, r in zip(y, frame.itertuples()):
        style.note(ax, 1.02, place, pp(r.change), transform=ax.get_yaxis_transform(), ha="left", clip_on=False)
    style.row_names(ax, frame["name"].tolist(), positions=y)
    ax.margins(x=0.05)
    style.percent_axis(ax, "x", f"mean score of {frame['models'].iloc[0]} models (%); change in pp")
    style.grid(ax)
    style.legend_line(ax, [("all items", INK, "○"), ("curated", BLUE, "●")])
    return ax


def say_inflation(frame: pd.DataFrame) -> str:
    own, macro = frame[frame["name"].ne("macro average")], frame[frame["name"].eq("macro average")]
    most = own.iloc[0]
    text = (f"Mean score over the evaluated models on all items and on the curated ones. The largest change is that of "
            f"{most['name']}: {percent(most['raw'])} to {percent(most['curated'])}")  # fmt: skip
    if len(macro):
        text += f"; macro average {percent(macro['raw'].iloc[0])} to {percent(macro['curated'].iloc[0])}"
    return text + ". Items were selected by outcome, so part of each fall is due to the selection."


def prepare_ranks(result: Result) -> pd.DataFrame:
    """Ranks of the models under the benchmark average, best first."""
    table = result.frame("ranks").sort_values(["rank_raw", "model"], kind="stable")
    return table[["model", "raw", "curated", "rank_raw", "rank_curated", "shift"]].reset_index(drop=True)


@styled
def ranks(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """A line per model from its rank on all items to its rank on the curated ones."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame), each=0.155, room=0.45))
    for r in frame.itertuples():
        colour = GREY if abs(r.shift) <= 1 else BLUE if r.shift < 0 else VERMILION
        ax.plot([0, 1], [r.rank_raw, r.rank_curated], color=colour, lw=1.4 if abs(r.shift) > 1 else 0.9,
                marker="o", ms=2.6)  # fmt: skip
    for side, rank, ha, at in (("raw", "rank_raw", "right", -0.03),
                                     ("curated", "rank_curated", "left", 1.03)):  # fmt: skip
        # ties would print on top of each other: they take the places beside their common rank in the order of the name
        place = frame[rank].rank(method="first")
        for where, r in zip(place, frame.to_dict("records")):
            style.note(ax, at, where, f"{glyphs.short(r['model'], 24)} {pct(r[side])}", ha=ha, fontsize=6,
                       color=MUTED if abs(r["shift"]) <= 1 else INK)  # fmt: skip
    ax.set_xlim(-0.75, 1.75)
    ax.set_ylim(len(frame) + 0.6, 0.4)
    ax.set_xticks([0, 1], ["all items", "curated"])
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0)
    ax.set_yticks([])
    for side in ("top", "bottom", "left"):
        ax.spines[side].set_visible(False)
    return ax


def say_ranks(frame: pd.DataFrame) -> str:
    shift = frame["shift"].abs()
    text = (f"Benchmark average (%) and rank of {len(frame)} models on all items and on the curated ones: "
            f"{count((shift <= 1).sum())} move by at most one place, "
            f"{count((shift <= 2).sum())} by at most two")  # fmt: skip
    if shift.max() > 1:
        far = frame.loc[shift.idxmax()]
        text += f", the farthest {far['model']} from {far['rank_raw']:g} to {far['rank_curated']:g}"
    return text + ". Blue: rises by more than one place; red: falls by more than one."


# ----------------------------------------------------------------------------------------- thresholds and subsets


def prepare_grid(result: Result) -> pd.DataFrame:
    """The threshold grid: items, rank correlation and resolvable pairs at each point."""
    table = result.frame("grid")
    keep = ["binary", "other", "saturation", "base", "items", "share", "spearman", "spearman_base", "resolvable",
            "per_1000_calls", "wrong_removals"]  # fmt: skip
    return table[[c for c in keep if c in table]].reset_index(drop=True)


@styled
def grid(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Heat map: saturation threshold across, text threshold down, numbers the items kept and resolvable pairs."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    base = frame[frame["base"].astype(bool)]
    held = base["binary"].iloc[0] if len(base) else sorted(frame["binary"], key=float)[len(frame) // 2]
    part = frame[frame["binary"].eq(held)]
    across, down = (sorted(part[c].unique(), key=float) for c in ("saturation", "other"))
    ax = style.axes(ax, COLUMN, style.rows_height(len(down), each=0.33, room=0.8))
    low, span = frame["share"].min(), max(frame["share"].max() - frame["share"].min(), 1e-9)
    shades = LinearSegmentedColormap.from_list("kept", ["#ffffff", BLUE])
    for r in part.itertuples():
        x, y, depth = across.index(r.saturation), down.index(r.other), (r.share - low) / span
        ax.add_patch(Rectangle((x, y - 0.47), 1, 0.94, color=shades(0.05 + 0.9 * depth)))
        style.note(ax, x + 0.5, y, f"{pct(r.share)}%\n{count(r.resolvable)}", ha="center",
                   color="white" if depth > 0.65 else INK)  # fmt: skip
        if r.base:
            ax.add_patch(Rectangle((x + 0.02, y - 0.45), 0.96, 0.9, fill=False, edgecolor=VERMILION, linewidth=1.4))
    style.row_names(ax, [f"{100 * float(v):g}%" for v in down])
    ax.set_xlim(0, len(across))
    ax.set_xticks(np.arange(len(across)) + 0.5, [f"{100 * float(v):g}%" for v in across])
    ax.tick_params(axis="x", length=0)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel("removed as solved above this accuracy of the panel")
    ax.set_ylabel("as answered from the text\nabove this")
    style.legend_line(ax, [("items kept and resolvable pairs; framed: as chosen", MUTED, "")])
    return ax


def say_grid(frame: pd.DataFrame) -> str:
    base = frame[frame["base"].astype(bool)]
    text = (f"Items kept at {len(frame)} combinations of the three thresholds: {percent(frame['share'].min())} to "
            f"{percent(frame['share'].max())}")  # fmt: skip
    if len(base):
        b = base.iloc[0]
        text += f", {percent(b['share'])} at those chosen (framed)"
    held = base["binary"].iloc[0] if len(base) else sorted(frame["binary"], key=float)[len(frame) // 2]
    return (f"{text}. Shown: items with two answers removed above {100 * float(held):g}%, further values in the "
            f"numbers. Against the chosen set the models' order has a Spearman of at least "
            f"{number(frame['spearman_base'].min())}; resolvable pairs {count(frame['resolvable'].min())} to "
            f"{count(frame['resolvable'].max())}. Judges' and people's decisions are held fixed.")  # fmt: skip


def prepare_quality(result: Result) -> pd.DataFrame:
    """Each statistic of the curated set beside the central 95% of random subsets of its size and source mix."""
    band = result.frame("band").set_index("statistic")
    rows = [
        b
        for b in _BANDS
        if b in band.index and np.isfinite(band.loc[b, ["observed", "low", "high"]].astype(float)).all()
    ]
    if not rows:
        raise Lacking("no random subsets were drawn")
    out = band.loc[rows].reset_index()
    return out.assign(measure=out["statistic"].map(_BANDS))[
        ["measure", "statistic", "observed", "low", "median", "high", "draws"]
    ]


@styled
def quality(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Observed over the median of the random subsets, with their band, on one ratio axis."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame), each=0.23))
    y = np.arange(len(frame))
    ratio, low, high = (frame[c] / frame["median"] for c in ("observed", "low", "high"))
    ax.axvline(1, color=GREY, lw=0.7, zorder=0)
    ax.hlines(y, low, high, color=BAND, lw=7)
    ax.vlines(np.ones(len(y)), y - 0.22, y + 0.22, color=MUTED, lw=1)
    outside = (ratio < low) | (ratio > high)
    ax.scatter(ratio, y, s=24, c=np.where(outside, VERMILION, BLUE), zorder=3)
    for place, r in zip(y, frame.itertuples()):
        shown = count(r.observed) if r.statistic == "resolvable" else number(r.observed)
        style.note(ax, 1.02, place, shown, transform=ax.get_yaxis_transform(), ha="left", clip_on=False)
    style.row_names(ax, frame["measure"].tolist())
    ax.margins(x=0.05)
    ax.set_xlabel("curated / median of random subsets")
    style.grid(ax)
    style.legend_line(
        ax, [("curated", VERMILION, "●"), ("inside the band", BLUE, "●"), ("95% of random subsets", BAND)]
    )
    return ax


def say_quality(frame: pd.DataFrame) -> str:
    parts = []
    for r in frame.itertuples():
        show = count if r.statistic == "resolvable" else number
        parts.append(f"{r.measure} {show(r.observed)} ({show(r.low)} to {show(r.high)})")
    return (f"The curated set against {count(frame['draws'].iloc[0])} random subsets with as many items of each "
            f"source; observed value, and in brackets the central 95% of the subsets: {'; '.join(parts)}.")  # fmt: skip
