"""Figures of what a diagnosis is worth: what structure moved, subsets that rank, families left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.dependence.profile import LABELS
from auditlib.figures import style
from auditlib.figures.dependence import COLOURS, NAMES
from auditlib.figures.style import BLUE, COLUMN, GREY, INK, MUTED, styled
from auditlib.lookup import Lacking
from auditlib.numerals import count, number, p_says, percent, points, pp
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND = "#cccccc"


# ------------------------------------------------------------------------------------- structure against responses


def prepare_moved(result: Result) -> pd.DataFrame:
    """Solvable items by the label of the responses alone and the final one; how many of them moved to the prior's."""
    table = result.frame("moved")
    if table["moved_by"].eq("no structure").all():
        raise Lacking("no structure was given, so that responses alone decide")
    out = []
    for a in LABELS:
        for z in LABELS:
            part = table[table["alone_label"].eq(a) & table["label"].eq(z)]
            by = part.groupby("moved_by")["n"].sum()
            out.append({"alone": a, "label": z, "n": int(part["n"].sum()), "agree": int(by.get("agree", 0)),
                        "structure": int(by.get("structure", 0)), "responses": int(by.get("responses", 0)),
                        "neither": int(by.get("both", 0))})  # fmt: skip
    return pd.DataFrame(out)


@styled
def moved(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Heat map: rows are the labels that responses alone give, columns the final ones, numbers of items."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    ax = style.axes(ax, COLUMN, 2.5)
    most = max(frame["n"].max(), 1)
    for r in frame.itertuples():
        x, y, depth = LABELS.index(r.label), LABELS.index(r.alone), r.n / most
        shades = LinearSegmentedColormap.from_list("n", ["#ffffff", COLOURS[r.label]])
        ax.add_patch(Rectangle((x, y - 0.47), 1, 0.94, color=shades(0.03 + 0.85 * depth)))
        words = f"{count(r.n)}" if r.alone == r.label or not r.n else f"{count(r.n)}\n({count(r.structure)})"
        style.note(ax, x + 0.5, y, words, ha="center", color="white" if depth > 0.6 and r.label in "VS" else INK)
        if r.alone == r.label:
            ax.add_patch(Rectangle((x + 0.02, y - 0.45), 0.96, 0.9, fill=False, edgecolor=INK, linewidth=0.9))
    style.row_names(ax, [NAMES[z] for z in LABELS])
    ax.set_xlim(0, len(LABELS))
    ax.set_xticks(np.arange(len(LABELS)) + 0.5, [NAMES[z].replace("-dominant", "\ndominant") for z in LABELS],
                  fontsize=6.5)  # fmt: skip
    ax.tick_params(axis="x", length=0)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel("label by responses and structure")
    ax.set_ylabel("label by responses alone")
    style.legend_line(ax, [("items (of them moved to the structure's label); framed: kept", MUTED, "")])
    return ax


def say_moved(frame: pd.DataFrame) -> str:
    total, stay = frame["n"].sum(), frame[frame["alone"].eq(frame["label"])]["n"].sum()
    moved_ = frame[frame["alone"].ne(frame["label"])]
    text = (f"{count(total)} solvable items by the label that responses alone give and the final one. "
            f"{count(stay)} ({percent(stay / max(total, 1))}) keep it: in {count(frame['agree'].sum())} the item's "
            f"content says the same, in {count(frame['responses'].sum())} responses outweigh it. "
            f"{count(moved_['n'].sum())} move, {count(moved_['structure'].sum())} of them to the label of the item's "
            f"content")  # fmt: skip
    if moved_["n"].max() > 0:
        far = moved_.loc[moved_["n"].idxmax()]
        text += f"; most from {NAMES[far['alone']]} to {NAMES[far['label']]} ({count(far['n'])})"
    return text + "."


# ------------------------------------------------------------------------------------------------ subsets that rank


def prepare_subset(result: Result) -> pd.DataFrame:
    """Rank correlation of subsets with all items, on models that did not choose them."""
    table = result.frame("subset")
    out = table.dropna(subset=["spearman"]).reset_index(drop=True)
    if not len(out):
        raise Lacking("on no subset do the models differ")
    return out


@styled
def subset(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Spearman against the size of the subset: chosen by utility, and at random."""
    ax = style.axes(ax, COLUMN, 2.4)
    for chosen, colour, fill in (("random", MUTED, BAND), ("utility", BLUE, BLUE)):
        part = frame[frame["chosen"].eq(chosen)].sort_values("items")
        ax.fill_between(part["share"], part["low"], part["high"], color=fill, lw=0,
                        alpha=0.5 if chosen == "random" else 0.18)  # fmt: skip
        ax.plot(part["share"], part["spearman"], color=colour, lw=1.4, marker="o", ms=3.5)
    ax.set_xscale("log")
    ticks = sorted(frame["share"].unique())
    ax.set_xticks(ticks, [f"{100 * s:.3g}" for s in ticks])
    ax.minorticks_off()
    ax.set_ylim(top=1.02)
    ax.set_xlabel("items kept (%)")
    ax.set_ylabel("Spearman with all items")
    style.grid(ax, "y")
    style.legend_line(ax, [("by utility", BLUE, "●"), ("at random", MUTED, "●"), ("bands: middle 80%", BAND)])
    return ax


def say_subset(frame: pd.DataFrame) -> str:
    wide = frame.pivot(index="items", columns="chosen", values="spearman")
    parts = ", ".join(f"{count(n)} items {number(r['utility'], 2)} against {number(r['random'], 2)}"
                      for n, r in wide.iterrows())  # fmt: skip
    ranked, splits = frame["ranked"].iloc[0], frame["splits"].iloc[0]
    return (f"Spearman between the order of models on a subset and on all items, chosen by joint gain times "
            f"information and at random: {parts}. Half of the models chose, the other {count(ranked)} are ranked; "
            f"mean of {count(splits)} splits. A part always resembles its whole: compare the two curves, not with 1."
            + (" So few models give coarse correlations." if ranked < 8 else ""))  # fmt: skip


# ------------------------------------------------------------------------------------------------- families left out


def prepare_margins(result: Result) -> pd.DataFrame:
    """Margin of each label on each family that had no part in labelling."""
    table = result.frame("margins")
    return table.dropna(subset=["margin"]).reset_index(drop=True)


@styled
def margins(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """A row per label and left-out family: margin with its interval, and the mean under permuted labels."""
    groups = [z for z in LABELS if z in set(frame["group"])]
    families = list(dict.fromkeys(frame["family"]))
    ax = style.axes(ax, COLUMN, style.rows_height(len(groups) * (len(families) + 0.5), each=0.16))
    ax.axvline(0, color=GREY, lw=0.7, zorder=0)
    names, places = [], []
    for g, z in enumerate(groups):
        part = frame[frame["group"].eq(z)].set_index("family").reindex(families)
        y = g * (len(families) + 0.7) + np.arange(len(families))
        ax.hlines(y, part["low"], part["high"], color=COLOURS[z], lw=1.2)
        ax.scatter(part["margin"], y, s=18, c=COLOURS[z], zorder=3)
        ax.vlines(part["null"], y - 0.3, y + 0.3, color=MUTED, lw=1)
        for place, v in zip(y, part["margin"]):
            style.note(ax, 1.02, place, pp(v), transform=ax.get_yaxis_transform(), ha="left", clip_on=False)
        names += [f"{NAMES[z]}: {f}" if j == 0 else f for j, f in enumerate(families)]
        places += y.tolist()
    style.row_names(ax, names, positions=places)
    ax.tick_params(axis="y", labelsize=6.5)
    style.percent_axis(ax, "x", "margin on the left-out family (pp)", signed=True)
    style.grid(ax)
    style.legend_line(ax, [("95% interval over items", INK, "━"), ("permuted labels", MUTED, "|")])
    return ax


def say_margins(frame: pd.DataFrame) -> str:
    positive, sure = int((frame["margin"] > 0).sum()), int((frame["p_holm"] < 0.05).sum())
    least = frame.loc[frame["margin"].idxmin()]
    return (f"Items are labelled without one family of models, and then that family is asked: redundant items should "
            f"be answered from either view, visual-dominant ones better from the image, textual-dominant ones better "
            f"from the question, synergistic ones only from both. {positive} of {len(frame)} margins are positive "
            f"({number(float(frame['null_positive'].sum()), 1)} expected under permuted labels), {sure} beyond chance "
            f"after Holm's correction. The smallest is that of {NAMES[least['group']]} for {least['family']}: "
            f"{points(least['margin'])} [{pp(least['low'])}, {pp(least['high'])}], {p_says(least['p_holm'])}."
            )  # fmt: skip
