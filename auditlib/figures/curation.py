"""Figures of a curation: who left where, what that did to scores and ranks, and what random subsets would have done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.figures import glyphs, style
from auditlib.figures.style import AMBER, BLUE, COLUMN, GREY, INK, MUTED, PALE, VERMILION, WIDE, styled
from auditlib.lookup import Lacking
from auditlib.numerals import count, number, pct, percent, pp
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: stage -> words and colour
STAGE_WORDS = {
    "text_ablation": "answered from the text",
    "saturation": "solved by the panel",
    "defects": "confirmed defect",
}
STAGE_COLOURS = {"text_ablation": AMBER, "saturation": style.SKY, "defects": VERMILION}
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


# ------------------------------------------------------------------------------------------------ where items left


def prepare_funnel(result: Result) -> pd.DataFrame:
    """Items of each source by the stage that removed them, and kept; the source with most items first."""
    table = result.frame("retention")
    table = table[table["source"].ne("all")]
    wide = table.pivot(index="source", columns="stage", values="removed")
    stages = [s for s in STAGE_WORDS if s in wide]
    entered = table[table["stage"].eq(stages[0])].set_index("source")["entered"]
    out = wide[stages].assign(items=entered)
    out["kept"] = out["items"] - out[stages].sum(axis=1)
    out = out.sort_values(["items"], ascending=False, kind="stable").reset_index()
    return out[["source", "items", *stages, "kept"]]


@styled
def funnel(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One bar per source, cut where the stages removed items; what is kept stands at the axis."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame)))
    y, left = np.arange(len(frame)), np.zeros(len(frame))
    parts = [("kept", BLUE, "kept")]
    # the last stage stands next to what is kept, so that the bar is cut from its end
    parts += [(s, STAGE_COLOURS[s], STAGE_WORDS[s]) for s in reversed(list(STAGE_WORDS)) if s in frame]
    for name, colour, _ in parts:
        ax.barh(y, frame[name], left=left, height=0.68, color=colour)
        left += frame[name].to_numpy(float)
    for place, r in zip(y, frame.itertuples()):
        style.note(ax, r.items + 0.008 * frame["items"].max(), place,
                   f"{count(r.kept)} of {count(r.items)} ({percent(r.kept / r.items, 0)})")  # fmt: skip
    style.row_names(ax, frame["source"].tolist())
    ax.set_xlim(0, frame["items"].max() * 1.16)
    ax.set_xlabel("items")
    style.grid(ax)
    style.legend_line(ax, [(words, colour) for _, colour, words in parts])
    return ax


def say_funnel(frame: pd.DataFrame) -> str:
    total = frame["items"].sum()
    steps = [f"{count(frame[s].sum())} {w}" for s, w in STAGE_WORDS.items() if s in frame]
    share = frame["kept"] / frame["items"]
    most, least = frame.loc[share.idxmax()], frame.loc[share.idxmin()]
    return (f"Items of each source by what became of them: {', '.join(steps)}, {count(frame['kept'].sum())} of "
            f"{count(total)} kept. Most is kept of {most['source']} ({percent(share.max())}), least of "
            f"{least['source']} ({percent(share.min())}).")  # fmt: skip


def prepare_retention(result: Result) -> pd.DataFrame:
    """Share of a source's items still there after each stage; all items last."""
    table = result.frame("retention")
    total = table["source"].eq("all")
    stages = [s for s in STAGE_WORDS if s in set(table["stage"])]
    wide = table.pivot(index="source", columns="stage", values="left_share")[stages]
    first = table[table["stage"].eq(stages[0])].set_index("source")["entered"]
    wide.insert(0, "items", first)
    own = wide.drop(index="all", errors="ignore").sort_values(stages[-1], ascending=False, kind="stable")
    if total.any():
        whole = wide.loc[["all"]]
    else:
        weight = own["items"] / own["items"].sum()
        whole = own[stages].mul(weight, axis=0).sum().to_frame("all").T.assign(items=own["items"].sum())
    return pd.concat([own, whole[own.columns]]).rename_axis("source").reset_index()


@styled
def retention(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Heat map: rows are sources, columns the stages, numbers the percentage of the source that is left."""
    from matplotlib.colors import LinearSegmentedColormap

    ax = style.axes(ax, COLUMN, style.rows_height(len(frame), each=0.185))
    stages = [s for s in STAGE_WORDS if s in frame]
    share = frame[stages].to_numpy(float)
    y = np.arange(len(frame)) + np.where(frame["source"].eq("all"), 0.4, 0)
    shades = LinearSegmentedColormap.from_list("left", ["#ffffff", BLUE])
    for j in range(len(stages)):
        ax.barh(y, 1, left=j, height=0.94, color=shades(0.05 + 0.9 * share[:, j]))
        for place, v in zip(y, share[:, j]):
            style.note(ax, j + 0.5, place, pct(v), ha="center", color="white" if v > 0.55 else INK)
    style.row_names(ax, [f"{s} ({count(n)})" for s, n in zip(frame["source"], frame["items"])], positions=y)
    words = {"text_ablation": "not answered\nfrom the text", "saturation": "not solved\nby the panel",
             "defects": "no confirmed\ndefect"}  # fmt: skip
    ax.set_xticks(np.arange(len(stages)) + 0.5, [words[s] for s in stages])
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(0, len(stages))
    for side in ("top", "bottom"):
        ax.spines[side].set_visible(False)
    ax.set_xlabel("% of the source's items left after the stage")
    ax.xaxis.set_label_position("bottom")
    ax.xaxis.label.set(x=1.0, ha="right")
    return ax


def say_retention(frame: pd.DataFrame) -> str:
    stages = [s for s in STAGE_WORDS if s in frame]
    whole = frame[frame["source"].eq("all")].iloc[0]
    own = frame[frame["source"].ne("all")]
    best, worst = own.loc[own[stages[-1]].idxmax()], own.loc[own[stages[-1]].idxmin()]
    after = ", ".join(f"{percent(whole[s])} after the stage '{STAGE_WORDS[s]}'" for s in stages)
    return (f"Share of each source that is left after each stage. Of all items: {after}. In the end "
            f"{best['source']} keeps {percent(best[stages[-1]])} and {worst['source']} "
            f"{percent(worst[stages[-1]])}.")  # fmt: skip


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
    for side, name, rank, ha, at in (("raw", "raw", "rank_raw", "right", -0.03),
                                     ("curated", "curated", "rank_curated", "left", 1.03)):  # fmt: skip
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
            f"{count((shift <= 1).sum())} move by at most one place, {count((shift <= 2).sum())} by at most two")  # fmt: skip
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
    """Share of items kept over the threshold of saturation, a line per text threshold, a band over the binary one."""
    ax = style.axes(ax, COLUMN, 2.3)
    x = frame["saturation"].astype(float)
    values = sorted(frame["other"].unique(), key=float)
    base = frame[frame["base"].astype(bool)]
    shown = base["other"].iloc[0] if len(base) else values[len(values) // 2]
    ends = []
    for v in values:
        part = frame[frame["other"].eq(v)].assign(x=x)
        by = part.groupby("x")["share"]
        low, high, mid = by.min(), by.max(), by.median()
        colour = BLUE if v == shown else GREY
        ax.fill_between(mid.index, low, high, color=colour, alpha=0.18, lw=0)
        ax.plot(mid.index, mid, color=colour, lw=1.5 if v == shown else 0.9)
        ends.append((mid.iloc[-1], v, colour))
    for y, v, colour in ends:
        style.note(ax, 1.02, y, f"{float(v):.0%}", transform=ax.get_yaxis_transform(), ha="left", clip_on=False,
                   color=INK if colour == BLUE else MUTED)  # fmt: skip
    if len(base):
        ax.scatter(base["saturation"].astype(float), base["share"], s=26, c=BLUE, zorder=4)
    style.percent_axis(ax, "y", "items kept (%)")
    style.percent_axis(ax, "x", "removed as solved above this panel accuracy (%)")
    style.grid(ax, "y")
    style.legend_line(ax, [("at the right: text-only threshold; shaded: thresholds of binary items", MUTED, "")])
    return ax


def say_grid(frame: pd.DataFrame) -> str:
    base = frame[frame["base"].astype(bool)]
    text = (f"Items kept at {len(frame)} combinations of the three thresholds: {percent(frame['share'].min())} to "
            f"{percent(frame['share'].max())}")  # fmt: skip
    if len(base):
        b = base.iloc[0]
        text += f", {percent(b['share'])} at those chosen (dot)"
    return (f"{text}. Against the chosen set the models' order has a Spearman of at least "
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
    ax.hlines(y, low, high, color=PALE, lw=7)
    ax.vlines(1, y - 0.22, y + 0.22, color=MUTED, lw=1)
    outside = (ratio < low) | (ratio > high)
    ax.scatter(ratio, y, s=24, c=np.where(outside, VERMILION, BLUE), zorder=3)
    for place, r in zip(y, frame.itertuples()):
        shown = count(r.observed) if r.statistic == "resolvable" else number(r.observed)
        style.note(ax, 1.02, place, shown, transform=ax.get_yaxis_transform(), ha="left", clip_on=False)
    style.row_names(ax, frame["measure"].tolist())
    ax.set_xlabel("curated / median of random subsets")
    style.grid(ax)
    style.legend_line(
        ax, [("curated", VERMILION, "●"), ("inside the band", BLUE, "●"), ("95% of random subsets", GREY)]
    )
    return ax


def say_quality(frame: pd.DataFrame) -> str:
    parts = []
    for r in frame.itertuples():
        show = count if r.statistic == "resolvable" else number
        parts.append(f"{r.measure} {show(r.observed)} ({show(r.low)} to {show(r.high)})")
    return (f"The curated set against {count(frame['draws'].iloc[0])} random subsets with as many items of each source; "
            f"observed value, and in brackets the central 95% of the subsets: {'; '.join(parts)}.")  # fmt: skip


# -------------------------------------------------------------------------------------------------- error classes


def prepare_errors(result: Result) -> pd.DataFrame:
    """Shares of the error classes over all wrong answers, in the order of decision."""
    table = result.frame("errors")
    table = table[table["capability"].eq("all")]
    return table[["model", "label", "answers", "share", "low", "high"]].reset_index(drop=True)


@styled
def errors(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Share of each error class with its simultaneous interval; one row of dots per model."""
    models = list(dict.fromkeys(frame["model"]))
    labels = list(dict.fromkeys(frame["label"]))
    ax = style.axes(ax, COLUMN, style.rows_height(len(labels), each=0.2 + 0.1 * len(models)))
    colours = (BLUE, VERMILION, style.GREEN, AMBER, style.PURPLE)
    for k, m in enumerate(models):
        part = frame[frame["model"].eq(m)].set_index("label").reindex(labels)
        y = np.arange(len(labels)) + (k - (len(models) - 1) / 2) * 0.5 / len(models)
        ax.hlines(y, part["low"], part["high"], color=colours[k % 5], lw=1.2, alpha=0.7)
        ax.scatter(part["share"], y, s=22, c=colours[k % 5], zorder=3)
        if len(models) == 1:
            for place, v in zip(y, part["share"]):
                style.note(ax, 1.02, place, pct(v), transform=ax.get_yaxis_transform(), ha="left", clip_on=False)
    style.row_names(ax, labels)
    ax.set_xlim(left=0)
    style.percent_axis(ax, "x", "% of wrong answers, simultaneous 95% intervals")
    style.grid(ax)
    if len(models) > 1:
        style.legend_line(ax, [(m, colours[k % 5], "●") for k, m in enumerate(models)])
    return ax


def say_errors(frame: pd.DataFrame) -> str:
    parts = []
    for m, part in frame.groupby("model", sort=False):
        shares = ", ".join(f"{r.label} {percent(r.share)} [{pct(r.low)}, {pct(r.high)}]" for r in part.itertuples())
        parts.append(f"{m} ({count(part['answers'].iloc[0])} labelled): {shares}")
    return ("Why answers are wrong: share of each class among all wrong answers, weighted back from the labelled ones; "
            f"{'; '.join(parts)}. The five intervals of a model hold jointly.")  # fmt: skip
