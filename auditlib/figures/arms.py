"""What scoring does to the audit: category shares by arm, disagreements by model, moves between categories, bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.figures import style
from auditlib.figures.style import AMBER, ARM_COLOURS, BLUE, CATEGORY_NAMES, COLUMN, GREY, INK, MUTED, SKY, VERMILION
from auditlib.lookup import CATEGORIES, Lacking
from auditlib.numerals import count, pct

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = (*CATEGORIES, "zero_gain", "visual_dependent_majority")


def prepare_arm_shares(audit: Any) -> pd.DataFrame:
    """Share of items in each category under each arm, with Wilson intervals."""
    if not lookup.has_blind(audit):
        raise Lacking("this pool has no blind run")
    parts = []
    for arm in lookup.arms(audit):
        for name in SHARES[:5]:
            row = lookup.one(audit.statistics, f"{name}_share", arm=arm, models="all", stratum="all",
                             policy=("wrong", ""))  # fmt: skip
            if row is not None:
                parts.append({"category": name, "arm": arm, "n": row["n"], "estimate": lookup.value(row),
                              "low": lookup.value(row, "low"), "high": lookup.value(row, "high")})  # fmt: skip
    table = pd.DataFrame(parts)
    same = table.pivot(index="arm", columns="category", values="estimate")
    if {"text_only", "zero_gain"} <= set(same) and (same["text_only"] == same["zero_gain"]).all():
        # with up to four models the two are the same set: one row says it
        table = table[table["category"] != "text_only"]
    else:
        table = table[table["category"] != "zero_gain"]
    return table.reset_index(drop=True)


@style.styled
def arm_shares(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One row per category, one dot per arm."""
    arms, names = list(dict.fromkeys(frame["arm"])), list(dict.fromkeys(frame["category"]))
    each = 0.17 * len(arms) + 0.1
    ax = style.axes(ax, COLUMN, style.rows_height(len(names), each=each))
    step = 0.62 / max(len(arms), 1)
    for j, arm in enumerate(arms):
        part = frame[frame["arm"] == arm].set_index("category").reindex(names)
        y = np.arange(len(names)) + (j - (len(arms) - 1) / 2) * step
        colour = ARM_COLOURS.get(arm, MUTED)
        ax.hlines(y, part["low"], part["high"], color=colour, lw=1, alpha=0.7)
        ax.plot(part["estimate"], y, "o", color=colour, ms=4)
        for place, r in zip(y, part.itertuples()):
            style.note(
                ax, 1.02, place, pct(r.estimate), transform=ax.get_yaxis_transform(), color=colour, clip_on=False
            )
    style.row_names(ax, [CATEGORY_NAMES[n] for n in names])
    ax.set_xlim(left=0)
    style.percent_axis(ax, "x", "share of items (%)")
    style.grid(ax)
    style.legend_line(ax, [(style.arm_name(a), ARM_COLOURS.get(a, MUTED), "●") for a in arms])
    return ax


def prepare_disagreements(audit: Any) -> pd.DataFrame:
    """Model-item pairs that judge and parser score differently, by model and condition."""
    table = lookup.rows(audit.statistics, "judge_parser_disagreement")
    if not len(table):
        raise Lacking("this pool has no judged arm beside the parser's")
    table = table[table["level"].isin(["full", "blind"]) & table["models"].isin(lookup.model_names(audit))]
    if not len(table):
        raise Lacking("judge and parser were not compared by model")
    table = table.pivot_table(index="models", columns="level", values="n", aggfunc="first")
    table = table.reindex(index=lookup.model_names(audit), columns=["full", "blind"]).fillna(0)
    return table.rename_axis(index="model", columns=None).reset_index().astype({"full": int, "blind": int})


@style.styled
def disagreements(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Bars of disagreeing pairs, full and blind runs stacked."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame)))
    y, total = np.arange(len(frame)), frame["full"] + frame["blind"]
    ax.barh(y, frame["full"], height=0.62, color=BLUE)
    ax.barh(y, frame["blind"], left=frame["full"], height=0.62, color=AMBER)
    for place, n in zip(y, total):
        style.note(ax, 1.02, place, count(n), transform=ax.get_yaxis_transform(), clip_on=False)
    style.row_names(ax, frame["model"].tolist(), width=28)
    ax.set_xlim(0, max(1, total.max() * 1.02))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("model-item pairs scored differently")
    style.grid(ax)
    style.legend_line(ax, [("full run", BLUE), ("blind run", AMBER)])
    return ax


def prepare_flow(audit: Any) -> pd.DataFrame:
    """Items by category under the judged arm (rows) and under the parser's arm (columns), long form."""
    table = lookup.rows(audit.statistics, "category_flow")
    table = table[table["stratum"].isin(["all", ""])]
    if not len(table):
        alone = not lookup.has_blind(audit)
        raise Lacking("this pool has no blind run" if alone else "this pool has no second arm to compare with")
    ends = table["level"].astype(str).str.split(">", n=1, expand=True)
    table = pd.DataFrame(
        {"judged": ends[0].str.strip(), "parser": ends[1].str.strip(), "items": table["n"].astype(int)}
    )
    every = pd.MultiIndex.from_product([CATEGORIES, CATEGORIES], names=["judged", "parser"])
    table = table.groupby(["judged", "parser"])["items"].sum().reindex(every, fill_value=0).reset_index()
    return table.assign(arm=next((a for a in lookup.arms(audit) if a != "judged"), "exact"))


@style.styled
def flow(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """A table of moves: the diagonal stays, the rest changes category when the judge is replaced by the parser."""
    ax = style.axes(ax, COLUMN, 2.55)
    table = frame.pivot(index="judged", columns="parser", values="items").reindex(index=CATEGORIES, columns=CATEGORIES)
    moved = table.to_numpy(float).copy()
    np.fill_diagonal(moved, 0)
    top = max(moved.max(), 1)
    for i in range(4):
        for j in range(4):
            n, colour = int(table.iat[i, j]), "#f2f2f2" if i == j else VERMILION
            alpha = 1 if i == j else 0.08 + 0.8 * moved[i, j] / top if n else 0
            ax.fill([j - 0.47, j + 0.47, j + 0.47, j - 0.47], [i - 0.46, i - 0.46, i + 0.46, i + 0.46],
                    color=colour, alpha=alpha, lw=0)  # fmt: skip
            style.note(ax, j, i, count(n) if n else "·", ha="center", fontsize=7.5, color=INK if n else GREY)
    names = [CATEGORY_NAMES[c].replace(" ", "\n") for c in CATEGORIES]
    ax.set_xticks(range(4), names)
    ax.set_yticks(range(4), names)
    ax.set(xlim=(-0.5, 3.5), ylim=(3.5, -0.5))
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlabel(f"category by {style.arm_name(str(frame['arm'].iloc[0]))}")
    ax.set_ylabel("category by the judge")
    changed = int(moved.sum())
    style.legend_line(
        ax, [(f"{count(changed)} of {count(table.to_numpy().sum())} items change category", VERMILION, "")]
    )
    return ax


def prepare_bounds(audit: Any) -> pd.DataFrame:
    """For each share: the value with abstentions wrong, range of policies, attainable bounds, range of pools."""
    if not lookup.has_blind(audit):
        raise Lacking("this pool has no blind run")
    arm, parts = lookup.headline_arm(audit), []
    for name in ("zero_gain", *CATEGORIES, "visual_dependent_majority"):
        metric = f"{name}_share"
        mine = lookup.rows(audit.statistics, metric, arm=arm, models="all", stratum="all")
        wrong = lookup.one(mine, metric, policy=("wrong", ""))
        bound = lookup.one(mine, metric, policy="bounds")
        counted = mine["policy"].isin(["wrong", "", "failed_wrong", "failed_missing"])
        others = mine[counted]["estimate"].dropna().astype(float)
        if wrong is None or bound is None:
            continue
        pools = lookup.pool_range(audit.statistics, metric, arm=arm, policy=("wrong", ""))
        parts.append({"share": name, "arm": arm, "wrong": lookup.value(wrong), "policy_low": others.min(),
                      "policy_high": others.max(), "bound_low": lookup.value(bound, "low"),
                      "bound_high": lookup.value(bound, "high"),
                      "pool_low": pools[0], "pool_high": pools[1]})  # fmt: skip
    if not parts:
        raise Lacking("no abstention is known, so there is nothing to bound")
    return pd.DataFrame(parts)


@style.styled
def bounds(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Pale: what answers in place of the abstentions could make of each share; line: pools with one model left out."""
    ax = style.axes(ax, COLUMN, style.rows_height(len(frame), each=0.27))
    y = np.arange(len(frame))
    ax.barh(
        y - 0.12, frame["bound_high"] - frame["bound_low"], left=frame["bound_low"], height=0.34, color=SKY, alpha=0.45
    )
    ranged = frame["policy_high"] > frame["policy_low"]
    if ranged.any():
        some = frame[ranged]
        width = some["policy_high"] - some["policy_low"]
        ax.barh(y[ranged] - 0.12, width, left=some["policy_low"], height=0.34, color=BLUE, alpha=0.45)
    ax.hlines(y + 0.22, frame["pool_low"], frame["pool_high"], color=AMBER, lw=2)
    ax.plot(frame["wrong"], y - 0.12, "o", color=BLUE, ms=4.5)
    for place, r in zip(y, frame.itertuples()):
        words = f"{pct(r.wrong)} [{pct(r.bound_low, 0)}, {pct(r.bound_high, 0)}]"
        style.note(ax, 1.02, place, words, transform=ax.get_yaxis_transform(), clip_on=False)
    style.row_names(ax, [CATEGORY_NAMES[s].replace(", ", ",\n") for s in frame["share"]])
    ax.set_xlim(left=0)
    style.percent_axis(ax, "x", "share of items (%)")
    style.grid(ax)
    entries = [("abstentions wrong", BLUE, "●"), ("attainable", "#b4dcf4")]
    if frame["pool_low"].notna().any():
        entries.append(("one model left out", AMBER, "━"))
    style.legend_line(ax, entries)
    return ax
