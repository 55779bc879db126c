"""Figures of sensitivity: degradation curves, flips, margins, evidence, layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.figures import style
from auditlib.figures.style import AMBER, BLUE, GREEN, GREY, MUTED, PURPLE, SKY, VERMILION, WIDE, styled
from auditlib.lookup import Lacking
from auditlib.numerals import number, pct, percent
from auditlib.sensitivity.conditions import CURVES, UNITS, words
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (BLUE, VERMILION, GREEN, AMBER, PURPLE, SKY)
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


def colour_of(k: int) -> str:
    """Colour of the k-th model; after six they repeat with other marks."""
    return COLOURS[k % len(COLOURS)]


# ------------------------------------------------------------------------------------------------------------- curves


def prepare_curves(result: Result) -> pd.DataFrame:
    """Accuracy over the levels of each family; the item as it is at level 0, and accuracy without the image."""
    table = result.frame("conditions")
    here = table[table["family"].isin(CURVES)]
    if not len(here):
        raise Lacking("no change of the image has levels")
    columns = ["model", "family", "variant", "level", "accuracy", "drop", "low", "high"]
    first = here.drop_duplicates(["model", "family", "variant"]).assign(level=0.0, drop=0.0, low=0.0, high=0.0)
    first["accuracy"] = first["full"]
    out = pd.concat([first[columns], here[columns]])
    blind = table[table["family"].eq("blind")].set_index("model")["accuracy"]
    out["blind"] = out["model"].map(blind)
    order = {m: i for i, m in enumerate(dict.fromkeys(table["model"]))}
    rank = {f: i for i, f in enumerate(CURVES)}
    out = out.assign(a=out["family"].map(rank), b=out["model"].map(order))
    out = out.sort_values(["a", "variant", "b", "level"], kind="stable").drop(columns=["a", "b"])
    return out.reset_index(drop=True)


@styled
def curves(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One panel per family of changes, one line per model; dashes at the right: without the image."""
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys(zip(frame["family"], frame["variant"])))
    if ax is not None:
        kinds = kinds[:1]
        axes = [ax]
    else:
        each = min(len(kinds), 3)
        rows = -(-len(kinds) // each)
        _, grid = plt.subplots(rows, each, figsize=(WIDE, 0.55 + 2.1 * rows), sharey=True, squeeze=False)
        axes = list(grid.ravel())
        for spare in axes[len(kinds) :]:
            spare.set_visible(False)
    models = list(dict.fromkeys(frame["model"]))
    for place, (family, variant) in zip(axes, kinds):
        part = frame[frame["family"].eq(family) & frame["variant"].eq(variant)]
        levels = sorted(part["level"].unique())
        at = {v: i for i, v in enumerate(levels)}  # levels as they come: equal steps read better than a long tail
        for k, model in enumerate(models):
            own = part[part["model"].eq(model)]
            x = [at[v] for v in own["level"]]
            place.plot(x, own["accuracy"], color=colour_of(k), marker=MARKS[k % len(MARKS)], ms=3.2, lw=1.1)
            base = own["accuracy"].iloc[0] if len(own) else np.nan
            place.fill_between(x, base - own["high"], base - own["low"], color=colour_of(k), alpha=0.12, lw=0)
            if len(own) and own["blind"].notna().any():
                place.hlines(own["blind"].iloc[0], len(levels) - 0.4, len(levels), color=colour_of(k), lw=1.6)
        ticks, names = list(range(len(levels))), ["as is", *(f"{v:g}" for v in levels[1:])]
        if part["blind"].notna().any():
            ticks, names = [*ticks, len(levels) - 0.2], [*names, "blind"]
        place.set_xticks(ticks, names)
        place.set_xlim(-0.2, len(levels) + 0.1)
        place.set_xlabel(f"{words(family, variant)}: {UNITS[family]}", fontsize=7)
        style.percent_axis(place, "y", "accuracy (%)" if place is axes[0] else "")
        style.grid(place, "y")
    style.legend_line(axes[0], [(m, colour_of(k), "●") for k, m in enumerate(models)])
    return axes[0]


def say_curves(frame: pd.DataFrame) -> str:
    last = frame.loc[frame.groupby(["model", "family", "variant"], sort=False)["level"].idxmax()]
    most, least = last.loc[last["drop"].idxmax()], last.loc[last["drop"].idxmin()]
    return ("Accuracy over the levels of each change of the image, with 95% intervals of the drop; the lines "
            f"at the right show accuracy without the image. At the heaviest level {most['model']} loses most "
            f"({pct(most['drop'])} points under {words(most['family'], most['variant'], most['level'])}) and "
            f"{least['model']} least ({pct(least['drop'])} under "
            f"{words(least['family'], least['variant'], least['level'])}).")  # fmt: skip


def prepare_lost(result: Result) -> pd.DataFrame:
    """Share of the visual gain lost at each level of each family; models without a gain are kept with the reason."""
    table = result.frame("conditions")
    here = table[table["family"].isin(CURVES)]
    if not len(here):
        raise Lacking("no change of the image has levels")
    columns = ["model", "family", "variant", "level", "lost", "lost_low", "lost_high", "undefined", "gain"]
    rank = {f: i for i, f in enumerate(CURVES)}
    order = here.assign(rank=here["family"].map(rank)).sort_values(["rank", "variant"], kind="stable")
    return order[columns].reset_index(drop=True)


@styled
def lost(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rows are models and families, dots the levels from mild to heavy; undefined shares are written out."""
    from matplotlib.colors import LinearSegmentedColormap

    rows = list(dict.fromkeys(zip(frame["family"], frame["variant"], frame["model"])))
    ax = style.axes(ax, WIDE, style.rows_height(len(rows), each=0.17, room=0.85))
    shades = LinearSegmentedColormap.from_list("level", [SKY, BLUE, "#0b2545"])
    y, names, previous = 0.0, [], None
    ticks = []
    for family, variant, model in rows:
        if previous is not None and previous != (family, variant):
            y += 0.7
        previous = (family, variant)
        part = frame[frame["family"].eq(family) & frame["variant"].eq(variant) & frame["model"].eq(model)]
        if part["lost"].notna().any():
            shown = part["lost"].clip(-0.3, 1.5)
            low, high = part["lost_low"].clip(-0.3, 1.5), part["lost_high"].clip(-0.3, 1.5)
            colours = shades(np.linspace(0, 1, len(part)))
            ax.hlines(np.full(len(part), y), low, high, color=colours, lw=0.8, alpha=0.6)
            ax.scatter(shown, np.full(len(part), y), c=colours, s=16, zorder=3)
        else:
            style.note(ax, 0.02, y, f"undefined: {part['undefined'].iloc[0]}", color=MUTED)
        ticks.append(y)
        names.append(f"{words(family, variant)}, {model}")
        y += 1
    style.row_names(ax, names, positions=ticks, width=40)
    ax.axvline(0, color=GREY, lw=0.7, zorder=0)
    ax.axvline(1, color=GREY, lw=0.7, zorder=0, ls=(0, (3, 2)))
    ax.set_xlim(-0.32, 1.52)
    style.percent_axis(ax, "x", "% of the visual gain lost, 95% intervals (0: as with the image, 100: as without)")
    style.grid(ax)
    style.legend_line(ax, [("mildest level", SKY, "●"), ("heaviest", "#0b2545", "●")])
    return ax


def say_lost(frame: pd.DataFrame) -> str:
    known, unknown = frame[frame["lost"].notna()], frame[frame["lost"].isna()]
    text = "Share of the visual gain, accuracy with less accuracy without the image, that is lost at each level. "
    if len(known):
        top = known.loc[known.groupby(["model", "family", "variant"], sort=False)["level"].idxmax()]
        a, b = top.loc[top["lost"].idxmin()], top.loc[top["lost"].idxmax()]
        text += (f"At the heaviest level it runs from {percent(a['lost'], 0)} ({a['model']}, "
                 f"{words(a['family'], a['variant'])}) to {percent(b['lost'], 0)} ({b['model']}, "
                 f"{words(b['family'], b['variant'])}).")  # fmt: skip
    if len(unknown):
        why = unknown.drop_duplicates("model")
        text += f" Undefined for {', '.join(f'{m} ({u})' for m, u in zip(why['model'], why['undefined']))}."
    return text


# -------------------------------------------------------------------------------------------------------------- flips


def prepare_flips(result: Result) -> pd.DataFrame:
    """Changed answers at the heaviest level of each family and under the reference conditions, mean over models."""
    table = result.frame("flips")
    top = table.groupby(["model", "family", "variant"])["level"].transform("max")
    here = table[table["level"].eq(top)]
    columns = ["right_wrong", "wrong_right", "wrong_wrong", "other", "flip", "base"]
    out = here.groupby(["family", "variant", "level"], sort=False)[columns].mean().reset_index()
    out["models"] = here.groupby(["family", "variant", "level"], sort=False)["model"].nunique().to_numpy()
    return out.sort_values("flip", kind="stable", ascending=False).reset_index(drop=True)


@styled
def flips(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One bar per condition, cut by the kind of change; the mark is the rate between samples of the item as it is."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.22, room=0.8))
    y, left = np.arange(len(frame)), np.zeros(len(frame))
    kinds = [("right_wrong", VERMILION, "right to wrong"), ("wrong_right", BLUE, "wrong to right"),
             ("wrong_wrong", AMBER, "wrong to other wrong"), ("other", GREY, "graded verdicts")]  # fmt: skip
    shown = []
    for name, colour, said in kinds:
        width = frame[name].fillna(0).clip(lower=0).to_numpy(float)
        if width.max() <= 1e-9:
            continue
        ax.barh(y, width, left=left, height=0.62, color=colour)
        left += width
        shown.append((said, colour))
    for place, r in zip(y, frame.itertuples()):
        style.note(ax, r.flip + 0.008, place, pct(r.flip))
    if frame["base"].notna().any():
        ax.scatter(frame["base"], y, marker="|", s=120, c=style.INK, zorder=4, lw=1.6)
        shown.append(("between samples as it is", style.INK, "━"))
    style.row_names(ax, [words(f, v, n) for f, v, n in zip(frame["family"], frame["variant"], frame["level"])])
    ax.set_xlim(0, max(0.1, frame["flip"].max() * 1.12))
    style.percent_axis(ax, "x", "% of answers that change, mean over models")
    style.grid(ax)
    style.legend_line(ax, shown)
    return ax


def say_flips(frame: pd.DataFrame) -> str:
    top = frame.iloc[0]
    name = words(top["family"], top["variant"], top["level"])
    text = ("Answers that change against the item as it is, by what becomes of them, at the heaviest level of each "
            f"change. Most change under {name} ({percent(top['flip'])})")  # fmt: skip
    base = frame["base"].mean()
    return text + (f"; between two samples of the item as it is {percent(base)} do." if base == base else
                   "; how many change between two samples of the item as it is, is not known.")  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ margins


def prepare_margins(result: Result) -> pd.DataFrame:
    """Erosion of the margin over the levels, mean over models: unchanged answers, matched, and all items."""
    table = result.frame("erosion")
    here = table[table["family"].isin((*CURVES, "blind", "blank", "wrong_image"))]
    if not len(here):
        raise Lacking("no change that has levels was asked with margins")
    columns = ["erosion", "matched", "unconditional"]
    return here.groupby(["family", "variant", "level"], sort=False)[columns].mean().reset_index()


@styled
def margins(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rows are conditions; a dot each for answers that stay right, the same with deciles matched, all items."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.19, room=0.8))
    y = np.arange(len(frame))
    ax.hlines(y, frame[["erosion", "matched", "unconditional"]].min(axis=1),
              frame[["erosion", "matched", "unconditional"]].max(axis=1), color=style.PALE, lw=2.2)  # fmt: skip
    for name, colour, mark in (("unconditional", AMBER, "D"), ("matched", SKY, "s"), ("erosion", BLUE, "o")):
        face = "none" if name == "matched" else colour  # the two that are near each other stay visible
        size = 34 if name == "matched" else 16
        ax.scatter(frame[name], y, facecolors=face, edgecolors=colour, s=size, marker=mark, zorder=3, linewidths=0.9)
    style.row_names(ax, [words(f, v, n) for f, v, n in zip(frame["family"], frame["variant"], frame["level"])])
    ax.axvline(0, color=GREY, lw=0.7, zorder=0)
    ax.set_xlabel("fall of the margin of the key, mean over models")
    style.grid(ax)
    style.legend_line(ax, [("answer stays right", BLUE, "●"), ("the same, deciles matched", SKY, "□"),
                           ("all items", AMBER, "◆")])  # fmt: skip
    return ax


def say_margins(frame: pd.DataFrame) -> str:
    top = frame.loc[frame["erosion"].fillna(-np.inf).idxmax()]
    name = words(top["family"], top["variant"], top["level"])
    return ("Fall of the margin of the key where the answer stays right, which accuracy does not see; such items have "
            "large margins to begin with, so the fall with the margins of all items, and over all items, stand beside "
            f"it. It is largest under {name} ({number(top['erosion'], 2)} where the answer stays right, "
            f"{number(top['unconditional'], 2)} over all items).")  # fmt: skip
