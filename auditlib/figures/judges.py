"""Figures of judges: detection by dimension, slots, what decisions are worth, agreement filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.figures import style
from auditlib.figures.style import AMBER, BLUE, GREEN, GREY, PURPLE, SKY, VERMILION, WIDE, styled
from auditlib.judges.dimensions import named
from auditlib.lookup import Lacking
from auditlib.numerals import number, percent
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (BLUE, VERMILION, GREEN, AMBER, PURPLE, SKY)
#: at most so many panels
MOST = 4


def setting_name(judge: str, paradigm: str, style_name: str, image: str, frame: pd.DataFrame | None = None) -> str:
    """A judge and how it was asked, in words; the style where a frame holds several."""
    several = frame is not None and frame["style"].nunique() > 1
    parts = [str(paradigm), str(style_name) if several else "", "without image" if image == "withheld" else "",
             "image swapped" if image == "swapped" else ""]  # fmt: skip
    return f"{judge} ({', '.join(x for x in parts if x)})"


def _panels(n: int, height: float, ax: Axes | None, *, sharex: bool = True) -> list[Axes]:
    import matplotlib.pyplot as plt

    if ax is not None:
        return [ax]
    _, grid = plt.subplots(1, n, figsize=(WIDE, height), sharey=True, sharex=sharex, squeeze=False)
    return list(grid.ravel())


# ---------------------------------------------------------------------------------------------------------- detection


def prepare_detection(result: Result) -> pd.DataFrame:
    """Detection by dimension with the image, the hardest first; neutral changes last."""
    table = result.frame("dimensions")
    here = table[table["image"].isin(("", "shown", "none")) & table["n"].gt(0)].copy()
    if not len(here):
        raise Lacking("no change was judged with the image")
    here["setting"] = [setting_name(r.judge, r.paradigm, r.style, r.image, here) for r in here.itertuples()]
    kept = list(dict.fromkeys(here["setting"]))[:MOST]
    here = here[here["setting"].isin(kept)]
    mean = here.groupby("dimension")["estimate"].mean()
    here["rank"] = here["dimension"].map(mean) + 10.0 * here["effect"].eq("neutral")
    return here.sort_values(["rank", "dimension"], kind="stable").reset_index(drop=True)


@styled
def detection(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rows are dimensions, one panel per judge; thin lines hold for all dimensions of a panel at once."""
    names = list(dict.fromkeys(frame["dimension"]))
    place = {d: i for i, d in enumerate(names)}
    settings = list(dict.fromkeys(frame["setting"]))
    settings = settings[:1] if ax is not None else settings
    axes = _panels(len(settings), style.rows_height(len(names), each=0.155, room=1.0), ax)
    for here, setting in zip(axes, settings):
        part = frame[frame["setting"].eq(setting)]
        y = part["dimension"].map(place).to_numpy()
        colour = np.where(part["effect"].eq("neutral"), AMBER, BLUE)
        here.hlines(y, part["sim_low"], part["sim_high"], color=style.PALE, lw=3.0, zorder=1)
        here.hlines(y, part["low"], part["high"], colors=colour, lw=0.9, zorder=2)
        here.scatter(part["estimate"], y, c=colour, s=10, zorder=3)
        if part["shrunk"].notna().any():
            here.scatter(part["shrunk"], y, marker="|", s=26, c=style.INK, lw=0.9, zorder=4)
        here.axvline(0.5, color=GREY, lw=0.7, zorder=0, ls=(0, (3, 2)))
        here.set_xlim(-0.03, 1.03)
        style.percent_axis(here, "x", f"{setting}\n% detected")
        style.grid(here)
    bad = frame.drop_duplicates("dimension").set_index("dimension")["effect"]
    style.row_names(axes[0], [named(d).replace(" (I2T)", "") + (" (neutral)" if bad[d] == "neutral" else "")
                              for d in names])  # fmt: skip
    style.legend_line(axes[0], [("damage detected", BLUE, "●"), ("false alarm", AMBER, "●"),
                                ("pooled in part", style.INK, "|"), ("all rows at once", style.PALE, "━")])  # fmt: skip
    return axes[0]


def say_detection(frame: pd.DataFrame) -> str:
    bad, fine = frame[frame["effect"].eq("degrade")], frame[frame["effect"].eq("neutral")]
    by = bad.groupby("dimension", sort=False)["estimate"].mean()
    text = ("Share of planted changes that make a judge score the output strictly lower, or prefer the gold output in "
            f"both orders, by dimension. Over these judges {named(by.idxmin())} is detected least "
            f"({percent(by.min(), 0)}) and {named(by.idxmax())} most ({percent(by.max(), 0)}).")  # fmt: skip
    if len(fine):
        alarm = (fine["estimate"] * fine["n"]).groupby(fine["setting"]).sum() / fine.groupby("setting")["n"].sum()
        text += (f" Changes that should not matter are marked down in {percent(alarm.min(), 0)} ({alarm.idxmin()}) to "
                 f"{percent(alarm.max(), 0)} ({alarm.idxmax()}) of the cases.")  # fmt: skip
    else:
        text += " No neutral change was judged, so that a judge which dislikes everything would look perfect."
    return text


# ------------------------------------------------------------------------------------------------------- sensitivity


def prepare_overall(result: Result) -> pd.DataFrame:
    """d' of each judge and setting, with detection and false alarms."""
    table = result.frame("overall")
    wide = table.pivot_table(index=["judge", "paradigm", "style", "image"], columns="quantity", values="estimate",
                             sort=False)  # fmt: skip
    here = table[table["quantity"].eq("d_prime") & table["estimate"].notna()]
    if not len(here):
        raise Lacking("no neutral change was judged: d' is not defined")
    out = here.merge(wide[["detection", "false_alarm"]].reset_index(), on=["judge", "paradigm", "style", "image"])
    out["setting"] = [setting_name(r.judge, r.paradigm, r.style, r.image, out) for r in out.itertuples()]
    return out.reset_index(drop=True)


@styled
def overall(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rows are judges and settings; d' with its interval, detection and false alarms in words beside it."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.22, room=0.8))
    y = np.arange(len(frame))
    seen = ~frame["image"].isin(("withheld", "swapped")).to_numpy()
    colour = np.where(seen, BLUE, GREY)
    ax.hlines(y, frame["low"], frame["high"], colors=colour, lw=1.2)
    ax.scatter(frame["estimate"], y, c=colour, s=18, zorder=3)
    right = max(1.0, float(np.nanmax(frame[["high", "estimate"]].to_numpy())))
    for at, r in zip(y, frame.itertuples()):
        style.note(
            ax, right * 1.05, at, f"{percent(r.detection, 0)} detected, {percent(r.false_alarm, 0)} false alarms"
        )
    style.row_names(ax, frame["setting"].tolist())
    ax.axvline(0, color=GREY, lw=0.7, zorder=0)
    ax.set_xlim(min(-0.3, float(np.nanmin(frame["low"])) - 0.1), right * 1.62)
    ax.set_xticks([t for t in ax.get_xticks() if ax.get_xlim()[0] <= t <= right * 1.02])
    ax.set_xlabel("d', 95% interval over images (0: cannot tell damage from a harmless change)")
    style.grid(ax)
    return ax


def say_overall(frame: pd.DataFrame) -> str:
    top, low = frame.loc[frame["estimate"].idxmax()], frame.loc[frame["estimate"].idxmin()]
    zero = frame[(frame["low"] <= 0) & (frame["high"] >= 0)]["setting"].tolist()
    text = ("How well each judge tells damage from harmless changes (d'), which marking everything down does not "
            f"raise: {number(top['estimate'], 2)} for {top['setting']}, {number(low['estimate'], 2)} for "
            f"{low['setting']}.")  # fmt: skip
    return text + (f" The interval holds 0 for {', '.join(zero)}." if zero else "")


# --------------------------------------------------------------------------------------------------------------- slots


def prepare_slots(result: Result) -> pd.DataFrame:
    """How often each numbered slot is chosen over all calls, and the exact expectation."""
    table = result.frame("slots")
    here = table[table["scope"].eq("all") & table["slot"].ne("last")]
    return here.reset_index(drop=True)


@styled
def slots(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One line per judge over the slots; the bars are the expectation of a choice that knows no slot."""
    ax = style.axes(ax, WIDE, 2.6)
    names = sorted(frame["slot"].unique(), key=int)
    judges = list(dict.fromkeys(frame["judge"]))
    width = 0.7 / len(judges)
    for k, judge in enumerate(judges):
        part = frame[frame["judge"].eq(judge)]
        x = part["slot"].map({s: i for i, s in enumerate(names)}).to_numpy() - 0.35 + width * (k + 0.5)
        colour = COLOURS[k % len(COLOURS)]
        ax.hlines(part["expected"], x - width * 0.46, x + width * 0.46, color=style.INK, lw=1.4, zorder=2)
        ax.vlines(x, part["low"], part["high"], color=colour, lw=1.2)
        ax.scatter(x, part["estimate"], c=colour, s=18, zorder=3)
    ax.set_xticks(range(len(names)), [f"slot {s}" for s in names])
    ax.set_ylim(bottom=0)
    style.percent_axis(ax, "y", "% of calls with the slot")
    style.grid(ax, "y")
    entries = [(j, COLOURS[k % len(COLOURS)], "●") for k, j in enumerate(judges)]
    style.legend_line(ax, [*entries, ("expected without bias", style.INK, "━")])
    return ax


def say_slots(frame: pd.DataFrame) -> str:
    first = frame[frame["slot"].eq("1")]
    most = first.loc[first["excess"].abs().idxmax()]
    odd = frame[frame["q"].le(0.05)]["judge"].drop_duplicates().tolist()
    text = ("How often each slot is chosen, with 95% intervals, against what a choice that knows no slot would give "
            "with these numbers of candidates. The first slot departs most for "
            f"{most['judge']} ({percent(most['estimate'])}, expected {percent(most['expected'])}).")  # fmt: skip
    return text + (f" Some slot departs after correction for {', '.join(odd)}." if odd else
                   " After correction no slot departs.")  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- value


def prepare_value(result: Result) -> pd.DataFrame:
    """Normalised gain of every judge and baseline."""
    table = result.frame("value")
    here = table[table["quantity"].eq("share") & table["estimate"].notna()]
    if not len(here):
        raise Lacking("no prompt has a candidate better than the others")
    return here.sort_values("estimate", ascending=False, kind="stable").reset_index(drop=True)


@styled
def value(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rows are judges; 0 is a random choice, 100 the best candidate of every prompt."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.22, room=0.75))
    y = np.arange(len(frame))
    other = frame["judge"].isin(("similarity", "half of the people")).to_numpy()
    colour = np.where(other, GREY, BLUE)
    ax.axvspan(-0.1, 0.1, color=style.PALE, lw=0, zorder=0)
    ax.hlines(y, frame["low"], frame["high"], colors=colour, lw=1.3)
    ax.scatter(frame["estimate"], y, c=colour, s=20, zorder=3)
    style.row_names(ax, frame["judge"].tolist())
    ax.axvline(0, color=GREY, lw=0.7, zorder=1)
    ax.axvline(1, color=GREY, lw=0.7, zorder=1, ls=(0, (3, 2)))
    style.percent_axis(ax, "x", "normalised gain (%): 0 random, 100 always the best; 95% intervals")
    style.grid(ax)
    style.legend_line(ax, [("judge", BLUE, "●"), ("for comparison", GREY, "●"), ("barely better than random",
                           style.PALE, "■")])  # fmt: skip
    return ax


def say_value(frame: pd.DataFrame) -> str:
    judges = frame[~frame["judge"].isin(("similarity", "half of the people"))]
    a, b = judges.iloc[0], judges.iloc[-1]
    text = ("What decisions are worth, as a share of the way from a random choice to the best candidate: "
            f"{percent(a['estimate'], 0)} for {a['judge']}, {percent(b['estimate'], 0)} for {b['judge']}")  # fmt: skip
    for name in ("similarity", "half of the people"):
        mine = frame[frame["judge"].eq(name)]
        if len(mine):
            text += f", {percent(mine.iloc[0]['estimate'], 0)} for {name}"
    return text + "."


# --------------------------------------------------------------------------------------------------------------- filter


def prepare_curves(result: Result) -> pd.DataFrame:
    """Gain of what an order-agreement filter keeps, over coverage."""
    return result.frame("curves")


@styled
def curves(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One panel per judge; the band is that of filters that keep at random."""
    judges = list(dict.fromkeys(frame["judge"]))[: 1 if ax is not None else MOST]
    axes = _panels(len(judges), 2.3, ax)
    for k, (here, judge) in enumerate(zip(axes, judges)):
        part = frame[frame["judge"].eq(judge)]
        here.fill_between(part["coverage"], part["sim_low"], part["sim_high"], color=style.PALE, lw=0)
        here.plot(part["coverage"], part["gain"], color=COLOURS[k % len(COLOURS)], lw=1.3, marker="o", ms=2.4)
        here.axhline(0, color=GREY, lw=0.7)
        style.percent_axis(here, "x", f"{judge}\n% of prompts kept")
        style.grid(here, "y")
    axes[0].set_ylabel("rating above a random choice")
    style.legend_line(axes[0], [("kept by agreement of orders", BLUE, "━"), ("kept at random, 95%", style.PALE, "■")])
    return axes[0]


def say_curves(frame: pd.DataFrame) -> str:
    ends = frame.groupby("judge", sort=False).agg(first=("gain", "first"), last=("gain", "last"))
    moved = ends["first"] - ends["last"]
    top, low = moved.idxmax(), moved.idxmin()
    text = ("Mean gain over a random choice of the decisions that an agreement filter keeps, those with most agreement "
            f"first, against filters that keep at random. Keeping only the surest changes the gain by "
            f"{number(moved[top], 2)} for {top}")  # fmt: skip
    return text + (f" and by {number(moved[low], 2)} for {low}." if low != top else ".")


def prepare_filters(result: Result) -> pd.DataFrame:
    """Good decisions lost and bad ones kept, by judge and filter."""
    table = result.frame("filters")
    few = table[table["quantity"].eq("interaction") & table["note"].ne("")]
    table = table[~table.set_index(["judge", "filter"]).index.isin(few.set_index(["judge", "filter"]).index)]
    wide = table[table["quantity"].isin(("coverage", "good_lost", "bad_kept", "interaction"))]
    out = wide.pivot_table(index=["judge", "filter"], columns="quantity", values="estimate", sort=False).reset_index()
    # a pivot sorts by first sight of each level: the order of the table is that of the judges, then of their filters
    out = table[["judge", "filter"]].drop_duplicates().merge(out, on=["judge", "filter"])
    out = out.reindex(columns=["judge", "filter", "coverage", "good_lost", "bad_kept", "interaction"])
    if not len(out):
        raise Lacking("no filter keeps and drops enough prompts")
    return out.reset_index(drop=True)


@styled
def filters(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Rows are filters; how much is kept, how much of what is kept is bad, how much of what is dropped is good."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.2, room=0.8))
    y = np.arange(len(frame))
    ax.barh(y, frame["coverage"], height=0.62, color=style.PALE)
    ax.scatter(frame["bad_kept"], y, c=VERMILION, s=16, zorder=3)
    ax.scatter(frame["good_lost"], y, c=BLUE, s=16, marker="D", zorder=3)
    style.row_names(ax, [f"{r.judge}: {r.filter}" for r in frame.itertuples()], width=44)
    ax.set_xlim(-0.012, 1)
    style.percent_axis(ax, "x", "% (of all prompts; of kept decisions; of dropped decisions)")
    style.grid(ax)
    style.legend_line(ax, [("prompts kept", style.PALE, "■"), ("bad among the kept", VERMILION, "●"),
                           ("good among the dropped", BLUE, "◆")])  # fmt: skip
    return ax


def say_filters(frame: pd.DataFrame) -> str:
    lost = frame[frame["good_lost"].notna()]
    text = "What agreement filters keep, how much of it is bad all the same, and how much of what they drop was good."
    if len(lost):
        top = lost.loc[lost["good_lost"].idxmax()]
        text += (f" Most good decisions are lost with {top['judge']}, {top['filter']}: {percent(top['good_lost'], 0)} "
                 "of those dropped.")  # fmt: skip
    bad = frame.loc[frame["bad_kept"].idxmax()]
    return text + f" Most of what is kept is bad with {bad['judge']}, {bad['filter']}: {percent(bad['bad_kept'], 0)}."
