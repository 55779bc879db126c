"""Figures of a curation: which items left where, and why answers are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.figures import style
from auditlib.figures.style import AMBER, BLUE, COLUMN, INK, VERMILION, WIDE, styled
from auditlib.numerals import count, pct, percent
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
