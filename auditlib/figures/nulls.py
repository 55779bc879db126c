"""The zero-gain signal: full against blind accuracy, the null distribution, and what the set is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.figures import style
from auditlib.figures.style import AMBER, BLUE, COLUMN, GREY, INK, MUTED, SKY, VERMILION, styled
from auditlib.lookup import Lacking
from auditlib.numerals import count, p_says, pct, percent, points, pp

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: above this many items, dots would only make a blot: one disc per cell instead
DOTS = 4000


def headline_counts(audit: Any) -> pd.DataFrame:
    """Counts of the headline arm, one row per item.

    Raises
    ------
    Lacking
        No item has a full and a blind count.
    """
    counts = audit.counts
    if counts is None or not len(counts) or "B" not in counts:
        raise Lacking("this pool has no blind run")
    counts = counts[counts["arm"] == lookup.headline_arm(audit)]
    counts = counts[counts["F"].notna() & counts["B"].notna() & (counts["n"] > 0)]
    if not len(counts):
        raise Lacking("no item has a full and a blind run of one model")
    return counts


def prepare_full_vs_blind(audit: Any) -> pd.DataFrame:
    """Items in each cell of the grid of blind and full counts: F, B, n (models), R (draws), full, blind, items."""
    counts = headline_counts(audit)
    table = counts.groupby(["F", "B", "n", "R"], as_index=False).size().rename(columns={"size": "items"})
    table["full"], table["blind"] = table["F"] / (table["n"] * table["R"]), table["B"] / (table["n"] * table["R"])
    table["zero_gain"] = table["F"] == table["B"]
    return table.assign(arm=lookup.headline_arm(audit))


@styled
def full_vs_blind(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Model-averaged accuracy with the image against that without, one dot per item, spread inside its cell."""
    ax = style.axes(ax, COLUMN, 3.3)
    steps = int((frame["n"] * frame["R"]).max())
    half = 0.40 / max(steps, 2)
    gain = np.sign(frame["full"] - frame["blind"]).to_numpy()
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.7, zorder=0)
    parts = [(1, BLUE, "gain"), (0, AMBER, "zero gain"), (-1, VERMILION, "loss")]
    total = int(frame["items"].sum())
    for sign, colour, _ in parts:
        cells = frame[gain == sign]
        if total <= DOTS:
            xy = [_spread(r.blind, r.full, r.items, half) for r in cells.itertuples()]
            xy = np.concatenate(xy) if xy else np.empty((0, 2))
            ax.scatter(xy[:, 0], xy[:, 1], s=3.2, color=colour, alpha=0.75, linewidths=0)
        else:
            area = 900 * (2 * half) ** 2 * cells["items"] / frame["items"].max() * 25
            ax.scatter(cells["blind"], cells["full"], s=np.maximum(area, 0.8), color=colour, alpha=0.8, linewidths=0)
    if steps <= 4 and frame[["n", "R"]].drop_duplicates().shape[0] == 1:
        for r in frame.itertuples():
            style.note(ax, r.blind + half, r.full + half, count(r.items), ha="right", va="bottom", color=MUTED)
    edge = half + 0.03
    ax.set(xlim=(-edge, 1 + edge), ylim=(-edge, 1 + edge + (0.02 if steps <= 4 else 0)), aspect="equal")
    for axis, words in (("x", "accuracy without the image (%)"), ("y", "accuracy with the image (%)")):
        style.percent_axis(ax, axis, words)
        if steps <= 5:
            ticks = np.arange(steps + 1) / steps
            getattr(ax, f"set_{axis}ticks")(ticks, [pct(t, 0) for t in ticks])
    sums = {s: int(frame.loc[gain == s, "items"].sum()) for s, _, _ in parts}
    style.legend_line(ax, [(f"{words}: {count(sums[s])}", colour, "●") for s, colour, words in parts])
    return ax


def _spread(x: float, y: float, n: int, half: float) -> np.ndarray:
    """``n`` points strewn in a square: even (recurrence of the plastic number), shaken so that no lattice shows."""
    i = np.arange(n) + 0.5
    shake = np.random.default_rng(0).uniform(-0.45, 0.45, (2, n)) / np.sqrt(n + 1)
    u, v = (i * 0.7548776662466927 + shake[0]) % 1, (i * 0.5698402909980532 + shake[1]) % 1
    return np.column_stack([x + (2 * u - 1) * half, y + (2 * v - 1) * half])


def prepare_null(audit: Any) -> pd.DataFrame:
    """Histogram of the Monte-Carlo null of the zero-gain share, pooled and within strata, with observed and p."""
    arm = lookup.headline_arm(audit)
    draws = audit.draws
    if draws is None or not len(draws):
        raise Lacking("this pool has no blind run" if not lookup.has_blind(audit) else "no null draws were saved")
    parts = []
    for kind in ("within", "pooled"):
        row = lookup.one(audit.statistics, "zero_gain_share", arm=arm, null_kind=kind, models="all", stratum="all",
                         policy=("wrong", ""))  # fmt: skip
        mine = draws[(draws["metric"] == "zero_gain_share") & (draws["arm"] == arm) & (draws["null_kind"] == kind)]
        mine = mine[(mine["models"] == "all") & (mine["stratum"] == "all")]
        if row is None or not len(mine):
            continue
        edges = _edges(mine["share"].to_numpy(float), int(row["n"]))
        heights, _ = np.histogram(mine["share"], edges)
        parts.append(pd.DataFrame({
            "arm": arm, "null_kind": kind, "share_low": edges[:-1], "share_high": edges[1:], "draws": heights,
            "observed": lookup.value(row), "null": lookup.value(row, "null"), "excess": lookup.value(row, "excess"),
            "p": lookup.value(row, "p"), "p_method": lookup.text(row, "p_method"), "n": int(row["n"]),
        }))  # fmt: skip
    if not parts:
        raise Lacking("no null draws of the zero-gain share were saved")
    return pd.concat(parts, ignore_index=True)


def _edges(shares: np.ndarray, n: int) -> np.ndarray:
    """Bins of equal whole counts, at most about 30; a bin spans whole steps of the counts that can occur."""
    k = np.round(shares * n).astype(int)
    step = max(1, int(np.gcd.reduce(k - k.min())))
    width = step * max(1, -(-(k.max() - k.min() + step) // (30 * step)))
    return (np.arange(k.min(), k.max() + width + 1, width) - 0.5 * step) / n


@styled
def null_distribution(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """The observed share against what pairing at random would give, pooled and inside the official categories."""
    kinds = list(dict.fromkeys(frame["null_kind"]))
    ax = style.axes(ax, COLUMN, 0.85 + 0.78 * len(kinds))
    observed = float(frame["observed"].iloc[0])
    for place, kind in enumerate(kinds):
        part = frame[frame["null_kind"] == kind]
        base, colour = len(kinds) - 1 - place, {"within": BLUE, "pooled": GREY}[kind]
        heights = 0.62 * part["draws"] / part["draws"].max()
        ax.bar(part["share_low"], heights, width=part["share_high"] - part["share_low"], bottom=base, align="edge",
               color=colour, alpha=0.55)  # fmt: skip
        ax.axhline(base, color=GREY, lw=0.6)
        null, first = float(part["null"].iloc[0]), part.iloc[0]
        ax.plot([null, null], [base, base + 0.66], color=INK, lw=0.8)
        ax.annotate("", (observed, base + 0.72), (null, base + 0.72), arrowprops={"arrowstyle": "-|>", "lw": 0.7,
                    "color": INK, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6})  # fmt: skip
        words = f"null {percent(null)}   excess {points(first['excess'])}   {p_says(first['p'])}"
        ax.vlines(observed, base, base + 0.74, color=VERMILION, lw=1.4)
        style.note(ax, 0.0, base + 0.87, words, transform=ax.get_yaxis_transform(), ha="left")
    low, high = min(frame["share_low"].min(), observed), max(frame["share_high"].max(), observed)
    room = 0.06 * (high - low)
    ax.set(xlim=(low - room, high + room), ylim=(0, len(kinds)))
    names = {"within": "within\ncategories", "pooled": "pooled"}
    ax.set_yticks([len(kinds) - 1 - i + 0.3 for i in range(len(kinds))], [names[k] for k in kinds])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    style.percent_axis(ax, "x", "zero-gain share (% of items)")
    style.legend_line(
        ax, [(f"observed {percent(observed)}", VERMILION, "━"), ("random tables", GREY), ("mean", INK, "━")]
    )
    return ax


def prepare_no_gain(audit: Any) -> pd.DataFrame:
    """Observed and expected share of items in each cell F = B = k: level, n (items), estimate, null, excess."""
    if not lookup.has_blind(audit):
        raise Lacking("this pool has no blind run")
    arm = lookup.headline_arm(audit)
    table = lookup.rows(audit.statistics, "zero_gain_composition", arm=arm)
    table = table[table["models"].eq("all") & table["stratum"].eq("all")]
    kind = "within" if table["null_kind"].eq("within").any() else "pooled"
    table = table[table["null_kind"] == kind]
    if not len(table):
        raise Lacking("the composition of the zero-gain set was not computed")
    table = table[["arm", "null_kind", "level", "n", "estimate", "null", "excess"]].copy()
    table["level"] = pd.to_numeric(table["level"], errors="coerce")
    return table.dropna(subset=["level"]).astype({"level": int}).sort_values("level").reset_index(drop=True)


@styled
def no_gain(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """How many zero-gain items every model gets wrong, and how many every model gets right without the image."""
    ax = style.axes(ax, COLUMN, 2.3)
    last = int(frame["level"].max())
    colours = [GREY if k == 0 else AMBER if k == last else SKY for k in frame["level"]]
    ax.bar(frame["level"], frame["n"], width=0.72, color=colours)
    if len(frame) <= 13:
        for r in frame.itertuples():
            style.note(ax, r.level, r.n, count(r.n), ha="center", va="bottom")
    _levels(ax, frame)
    ax.set_ylabel("zero-gain items")
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.margins(y=0.08)
    style.legend_line(ax, [("every model wrong in both runs", GREY), ("every model right in both", AMBER)])
    return ax


@styled
def excess_composition(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Observed share of items in each tie F = B = k against the share expected without a link between the runs."""
    ax = style.axes(ax, COLUMN, 2.3)
    ax.bar(frame["level"], frame["estimate"], width=0.72, color=SKY)
    ax.hlines(frame["null"], frame["level"] - 0.43, frame["level"] + 0.43, color=INK, lw=1.3)
    if len(frame) <= 9:
        for r in frame.itertuples():
            style.note(ax, r.level, max(r.estimate, r.null), pp(r.excess), ha="center", va="bottom")
    _levels(ax, frame)
    ax.margins(y=0.12)
    style.percent_axis(ax, "y", "share of items (%)")
    words = " (numbers: difference, pp)" if len(frame) <= 9 else ""
    style.legend_line(ax, [("observed", SKY), (f"expected under the null{words}", INK, "━")])
    return ax


def _levels(ax: Axes, frame: pd.DataFrame) -> None:
    last = int(frame["level"].max())
    step = max(1, -(-(last + 1) // 13))
    ticks = list(range(0, last + 1, step))
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel(f"models right, in both runs alike (of {last})")
    style.grid(ax, "y")
