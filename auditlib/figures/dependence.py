"""Figures of modality dependence: where items lie, what categories are made of, one item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.dependence.profile import CONDITIONS, LABEL_NAMES, LABELS
from auditlib.figures import style
from auditlib.figures.style import AMBER, BLUE, COLUMN, GREEN, GREY, INK, MUTED, PALE, VERMILION, WIDE, styled
from auditlib.lookup import Lacking
from auditlib.numerals import count, number, pct, percent
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: label -> words and colour; undetermined items are grey
NAMES = dict(zip(LABELS, LABEL_NAMES)) | {"undetermined": "undetermined"}
COLOURS = {"R": GREEN, "V": BLUE, "T": AMBER, "S": VERMILION, "undetermined": GREY}
CONDITION_WORDS = {"none": "options alone", "image_only": "image", "blind": "question", "full": "image and question"}


# ------------------------------------------------------------------------------------------------- where items lie


def prepare_map(result: Result) -> pd.DataFrame:
    """Probability that the image, and that the question, suffices, for every item."""
    items = result.frame("items")
    label = items["label"].mask(items["undetermined"].astype(bool), "undetermined")
    return pd.DataFrame({"item": items["item"], "question": items["R"] + items["T"], "image": items["R"] + items["V"],
                         "label": label, "stability": items["stability"]})  # fmt: skip


@styled
def sufficiency_map(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """A point per item: does the question suffice (across), does the image (up)? Corners are the four labels."""
    ax = style.axes(ax, COLUMN, 3.3)
    ax.axhline(0.5, color=GREY, lw=0.7, zorder=0)
    ax.axvline(0.5, color=GREY, lw=0.7, zorder=0)
    small = 14 if len(frame) <= 1500 else 4
    for z in ("undetermined", *LABELS):
        part = frame[frame["label"].eq(z)]
        mark = {"marker": "x", "linewidths": 0.8} if z == "undetermined" else {"linewidths": 0, "marker": "o"}
        ax.scatter(part["question"], part["image"], s=small, c=COLOURS[z], alpha=0.75, zorder=2, **mark)
    n = frame["label"].value_counts()
    for z, (x, y, ha, va) in {"S": (0.01, 0.01, "left", "bottom"), "T": (0.99, 0.01, "right", "bottom"),
                              "V": (0.01, 0.99, "left", "top"), "R": (0.99, 0.99, "right", "top")}.items():  # fmt: skip
        style.note(
            ax,
            x,
            y,
            f"{NAMES[z]} {count(n.get(z, 0))}",
            ha=ha,
            va=va,
            fontsize=7,
            fontweight="bold",
            transform=ax.transAxes,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8},
        )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    style.percent_axis(ax, "x", "probability that the question suffices (%)")
    style.percent_axis(ax, "y", "probability that the image suffices (%)")
    if n.get("undetermined", 0):
        style.legend_line(ax, [(f"undetermined: {count(n['undetermined'])} items", GREY, "×")], lift=7)
    return ax


def say_map(frame: pd.DataFrame) -> str:
    n = frame["label"].value_counts()
    solved = len(frame) - n.get("undetermined", 0)
    parts = ", ".join(f"{NAMES[z]} {count(n.get(z, 0))} ({percent(n.get(z, 0) / max(solved, 1))})" for z in LABELS)
    return (f"Each item by the probability that its question with the options suffices and that its image with the "
            f"options does. Of {count(solved)} solvable items: {parts}. {count(n.get('undetermined', 0))} are "
            f"undetermined: even the full item is hardly answered above chance. Colour is the largest of the "
            f"four parts of a profile; close to a line it can differ from the corner.")  # fmt: skip


# ------------------------------------------------------------------------------------------------------- categories


def prepare_strata(result: Result) -> pd.DataFrame:
    """Labels of the solvable items of each category, most synergistic first; all items last."""
    table = result.frame("composition")
    wide = table.pivot(index="stratum", columns="label", values="share")[list(LABELS)]
    sizes = table.drop_duplicates("stratum").set_index("stratum")[["items", "solvable", "undetermined"]]
    out = sizes.join(wide).reset_index()
    last = out["stratum"].eq("all")
    if not (~last).any():
        raise Lacking("this pool has no official categories")
    return pd.concat([out[~last].sort_values("S", ascending=False, kind="stable"), out[last]], ignore_index=True)


@styled
def strata(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One bar per category, cut into the four labels."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.24))
    y = np.arange(len(frame)) + np.where(frame["stratum"].eq("all"), 0.4, 0)
    left = np.zeros(len(frame))
    for z in ("S", "V", "T", "R"):
        share = frame[z].fillna(0).to_numpy(float)
        ax.barh(y, share, left=left, height=0.72, color=COLOURS[z])
        for place, at, s in zip(y, left, share):
            if s >= 0.045:
                style.note(ax, at + s / 2, place, pct(s, 0), ha="center", color=INK if z in "TR" else "white")
        left += share
    for place, r in zip(y, frame.itertuples()):
        style.note(ax, 1.01, place, count(r.undetermined), ha="left", clip_on=False)
    style.note(ax, 1.01, min(y) - 0.75, "undetermined", ha="left", clip_on=False, color=MUTED)
    style.row_names(ax, [f"{s} ({count(n)})" for s, n in zip(frame["stratum"], frame["items"])], positions=y)
    ax.set_xlim(0, 1)
    style.percent_axis(ax, "x", "% of the solvable items")
    style.legend_line(ax, [(NAMES[z], COLOURS[z]) for z in ("S", "V", "T", "R")], lift=4)
    return ax


def say_strata(frame: pd.DataFrame) -> str:
    own, whole = frame[frame["stratum"].ne("all")], frame[frame["stratum"].eq("all")].iloc[0]
    most, least = own.loc[own["S"].idxmax()], own.loc[own["S"].idxmin()]
    without = own.assign(text=own["R"] + own["T"])
    worst = without.loc[without["text"].idxmax()]
    return (f"Labels of the solvable items by category. Both views are needed by {percent(whole['S'])} of all items, "
            f"most in {most['stratum']} ({percent(most['S'])}), least in {least['stratum']} ({percent(least['S'])}). "
            f"The question suffices (redundant or textual-dominant) for {percent(whole['R'] + whole['T'])}, most in "
            f"{worst['stratum']} ({percent(worst['text'])}).")  # fmt: skip


# --------------------------------------------------------------------------------------------------------- one item


def example(items: pd.DataFrame) -> str:
    """The item that shows most: solvable, moved by structure if any is, with the largest change of its profile."""
    seen = items[~items["undetermined"].astype(bool)]
    if not len(seen):
        raise Lacking("no item is answered above chance")
    clear = seen[seen["solvability"].ge(0.5)]
    seen = clear if len(clear) else seen
    moved = seen[seen["moved_by"].eq("structure")]
    pool = moved if len(moved) else seen
    change = sum((pool[z] - pool[f"alone_{z}"]).abs() for z in LABELS)
    return str(pool.loc[change.idxmax(), "item"])


def prepare_item(result: Result, item: str | None = None) -> pd.DataFrame:
    """One item's accuracies and profile; by default the one that structure changed most."""
    items = result.frame("items")
    found = items[items["item"].eq(example(items) if item is None else str(item))]
    if not len(found):
        raise Lacking(f"there is no item {item}")
    r = found.iloc[0]
    rows = [{"part": "accuracy", "row": CONDITION_WORDS[c], "value": r[f"accuracy_{c}"],
             "alone": r[f"fitted_{c}"]} for c in CONDITIONS]  # fmt: skip
    rows += [{"part": "profile", "row": NAMES[z], "value": r[z], "low": r.get(f"{z}_low"), "high": r.get(f"{z}_high"),
              "alone": r[f"alone_{z}"], "prior": r[f"prior_{z}"]} for z in LABELS]  # fmt: skip
    return pd.DataFrame(rows).assign(item=r["item"], stratum=r["stratum"], chance=1 / r["k"], label=r["label"],
                                     undetermined=bool(r["undetermined"]), stability=r["stability"],
                                     solvability=r["solvability"])  # fmt: skip


@styled
def item_card(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Accuracy of the pool by what was shown, and the profile with and without structure."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame) + 1, each=0.22))
    top = frame["part"].eq("accuracy").to_numpy()
    y = np.arange(len(frame)) + np.where(top, 0, 0.9)
    up, down = frame[top], frame[~top]
    ax.barh(y[top], up["value"], height=0.6, color=PALE)
    ax.vlines(up["alone"], y[top] - 0.3, y[top] + 0.3, color=INK, lw=1.2)
    ax.plot([frame["chance"].iloc[0]] * 2, [-0.5, y[top].max() + 0.5], color=VERMILION, lw=0.8, ls=(0, (3, 2)))
    colours = [COLOURS[z] for z in LABELS]
    ax.hlines(y[~top], down["low"].astype(float), down["high"].astype(float), color=colours, lw=1.4)
    ax.scatter(down["value"], y[~top], s=26, c=colours, zorder=3)
    ax.scatter(down["alone"], y[~top], s=20, facecolors="white", edgecolors=INK, linewidths=0.9, zorder=4)
    ax.scatter(down["prior"].astype(float), y[~top], s=18, c=INK, marker="D", zorder=2, linewidths=0)
    style.row_names(ax, frame["row"].tolist(), positions=y)
    style.note(ax, 1.0, -0.9, "accuracy; dashed: chance, line: fitted", ha="right", color=MUTED)
    style.note(ax, 1.0, y[top].max() + 0.97, "profile", ha="right", color=MUTED)
    ax.set_ylim(y.max() + 0.6, -1.4)
    ax.set_xlim(0, 1)
    style.percent_axis(ax, "x", f"item {frame['item'].iloc[0]} (%)")
    style.grid(ax)
    entries = [("final, 95% of draws", MUTED, "●"), ("responses alone", INK, "○")]
    if down["prior"].notna().any():
        entries.append(("structure alone", INK, "◆"))
    style.legend_line(ax, entries)
    return ax


def say_item(frame: pd.DataFrame) -> str:
    r, up, down = frame.iloc[0], frame[frame["part"].eq("accuracy")], frame[frame["part"].eq("profile")]
    shown = ", ".join(f"{w} {percent(v, 0)}" for w, v in zip(up["row"], up["value"]))
    profile = ", ".join(f"{w} {percent(v, 0)}" for w, v in zip(down["row"], down["value"]))
    where = f" ({r['stratum']})" if r["stratum"] else ""
    verdict = "undetermined" if r["undetermined"] else NAMES[r["label"]]
    text = (
        f"Item {r['item']}{where}: {verdict}. Accuracy with {shown}; chance {percent(r['chance'], 0)}. "
        f"Profile: {profile}"
    )
    if down["prior"].notna().any():
        first = down.loc[down["prior"].astype(float).idxmax(), "row"]
        alone = down.loc[down["alone"].idxmax(), "row"]
        text += f". Responses alone say {alone}, the item's content {first}"
    return (
        text + f". The label stands in {percent(r['stability'], 0)} of the draws of models; "
        f"solvability {number(r['solvability'], 2)}."
    )
