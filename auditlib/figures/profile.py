"""Models: what each did with and without the image, how the pool's size matters, which letters are said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.figures import glyphs, style
from auditlib.figures.style import AMBER, BLUE, COLUMN, GREY, INK, MUTED, PALE, PURPLE, VERMILION, WIDE, styled
from auditlib.lookup import Lacking
from auditlib.numerals import pct, percent, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUTCOMES = {"correct": BLUE, "wrong": "#cfd6dc", "unparseable": AMBER, "refused": PURPLE, "failed": "#4d4d4d"}


def prepare_profile(audit: Any) -> pd.DataFrame:
    """Share of each model's replies that are correct, wrong, unparseable, refused, failed, by condition.

    The outcomes are exclusive and tested in the order failed, correct, refused, unparseable, wrong (headline arm).
    A pool of bare hits has correct and wrong alone.
    """
    arm = lookup.headline_arm(audit)
    cells = _cells(audit, arm)
    if cells is None:
        table = lookup.rows(audit.statistics, "accuracy", arm=arm, level=("full", "blind"), policy=("wrong", ""))
        if not len(table):
            raise Lacking("no model has an accuracy")
        table = table.rename(columns={"models": "model", "level": "condition", "estimate": "correct"})
        table = table[["model", "condition", "n", "correct"]].assign(wrong=1 - table["correct"])
    else:
        shares = pd.crosstab([cells["model"], cells["condition"]], cells["outcome"], normalize="index")
        sizes = cells.groupby(["model", "condition"]).size().rename("n")
        table = shares.join(sizes).reset_index()
    table = table.reindex(columns=["model", "condition", "n", *OUTCOMES]).fillna(dict.fromkeys(OUTCOMES, 0.0))
    table = table[table["condition"].isin(["full", "blind"])].assign(arm=arm)
    order = {m: i for i, m in enumerate(lookup.model_names(audit))}
    place = table["model"].map(order).fillna(len(order)) * 2 + table["condition"].eq("blind")
    return table.iloc[np.argsort(place.to_numpy(), kind="stable")].reset_index(drop=True)


def _cells(audit: Any, arm: str) -> pd.DataFrame | None:
    """One row per reply with its outcome, or None where the pool has no replies."""
    replies = audit.responses
    if replies is None or not len(replies):
        return None
    replies = replies[replies["condition"].isin(["full", "blind"])].reset_index(drop=True)
    letter = replies["letter"].astype(object).where(replies["letter"].notna(), "Z").astype(str)
    answer = _text(replies, "answer")
    key = replies["item"].map(dict(zip(audit.items["item"], _text(audit.items, "key"))))
    if arm == "judged":
        on = ["item", "model", "condition", "sample"]
        verdicts = audit.judgements[[*on, "hit"]].drop_duplicates(on)
        right = replies[on].merge(verdicts, on=on, how="left", validate="many_to_one")["hit"].ge(0.5).to_numpy()
    elif arm == "exact_yesno":
        right = (answer.str.lower() == key.str.lower()).to_numpy() & answer.ne("").to_numpy()
    else:
        right = (letter == key).to_numpy()
    status = _text(replies, "status").to_numpy()
    refused = replies["refused"].eq(True).to_numpy() if "refused" in replies else np.zeros(len(replies), bool)
    unread = letter.isin(["Z", ""]).to_numpy() & answer.eq("").to_numpy()
    tests = [~np.isin(status, ["ok", ""]), right, refused, unread]
    outcome = np.select(tests, ["failed", "correct", "refused", "unparseable"], "wrong")
    return replies[["model", "condition"]].assign(outcome=outcome)


def _text(frame: pd.DataFrame, name: str) -> pd.Series:
    values = frame[name] if name in frame else pd.Series("", index=frame.index)
    return values.astype(object).where(values.notna(), "").astype(str)


@styled
def profile(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One row per model: its full run on the left, its blind run on the right, split by outcome."""
    names = list(dict.fromkeys(frame["model"]))
    shown = [c for c in ("full", "blind") if (frame["condition"] == c).any()]
    ax = style.axes(
        ax, WIDE if len(shown) > 1 else COLUMN, style.rows_height(len(names), each=0.2, room=0.7, least=1.2)
    )
    for j, condition in enumerate(shown):
        part = frame[frame["condition"] == condition].set_index("model").reindex(names)
        left = np.full(len(names), 1.12 * j)
        for outcome, colour in OUTCOMES.items():
            width = part[outcome].fillna(0).to_numpy(float)
            ax.barh(range(len(names)), width, left=left, height=0.7, color=colour)
            for i, w in enumerate(width):
                if w >= 0.07:
                    ink = INK if outcome in ("wrong", "unparseable", "refused") else "white"
                    style.note(ax, left[i] + w / 2, i, pct(w, 0), ha="center", color=ink, fontsize=6)
            left = left + width
        for i in np.flatnonzero(part["n"].isna()):
            style.note(ax, 1.12 * j + 0.01, i, "no run", color=MUTED)
        words = {"full": "with the image", "blind": "without the image"}[condition]
        ax.annotate(words, (1.12 * j + 0.5, 1), (0, 2), xycoords=ax.get_xaxis_transform(), textcoords="offset points",
                    ha="center", fontsize=7, color=MUTED)  # fmt: skip
    style.row_names(ax, names, width=28)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(-0.01, 1.12 * (len(shown) - 1) + 1.01)
    ticks = [1.12 * j + t for j in range(len(shown)) for t in (0, 0.5, 1)]
    ax.set_xticks(ticks, ["0", "50", "100"] * len(shown))
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel("share of replies (%)", x=0.5, ha="center")
    style.legend_line(ax, [(o, c) for o, c in OUTCOMES.items() if frame[o].max() > 0], lift=13)
    return ax


def prepare_pool_size(audit: Any) -> pd.DataFrame:
    """Raw zero-gain share and excess by number of models: median, smallest, largest over the subsets."""
    if not lookup.has_blind(audit):
        raise Lacking("this pool has no blind run")
    arm, parts = lookup.headline_arm(audit), []
    for metric, name in (("pool_size_zero_gain_share", "raw share"), ("pool_size_excess", "excess")):
        table = lookup.rows(audit.statistics, metric, arm=arm)
        if "level" in table:
            parts.append(table[["level", "n", "estimate", "low", "high"]].assign(quantity=name, arm=arm))
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"level": []})
    table["level"] = pd.to_numeric(table["level"], errors="coerce")
    table = table.dropna(subset=["level"]).astype({"level": int}).rename(columns={"level": "models", "n": "subsets"})
    if table["models"].nunique() < 2 if len(table) else True:
        raise Lacking("a curve needs pools of at least two sizes, so three models or more")
    return table.sort_values(["quantity", "models"], ascending=[False, True]).reset_index(drop=True)


@styled
def pool_size(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Median over subsets of models, with the range from the smallest to the largest."""
    ax = style.axes(ax, COLUMN, 2.4)
    ax.axhline(0, color=GREY, lw=0.7)
    many = frame["models"].nunique() > 6
    ends = frame.groupby("quantity")["estimate"].last()
    near = len(ends) == 2 and np.ptp(ends) < 0.12 * (frame["high"].max() - min(0, frame["low"].min()))
    for name, colour in (("raw share", BLUE), ("excess", VERMILION)):
        part = frame[frame["quantity"] == name]
        if not len(part):
            continue
        if many:
            ax.fill_between(part["models"], part["low"], part["high"], color=colour, alpha=0.15, lw=0)
        else:
            ax.vlines(part["models"], part["low"], part["high"], color=colour, lw=2.5, alpha=0.3)
        ax.plot(part["models"], part["estimate"], "o-", color=colour, ms=3 if many else 4)
        last = part.iloc[-1]
        words = points(last["estimate"]) if name == "excess" else percent(last["estimate"])
        apart = 0 if not near else 11 if name == "raw share" else -11
        ax.annotate(f"{name}\n{words}", (last["models"], last["estimate"]), (6, apart), textcoords="offset points",
                    color=colour, fontsize=7, va="center",
                    bbox={"fc": "white", "ec": "none", "pad": 0.6, "alpha": 0.85})  # fmt: skip
    low, high = frame["models"].min(), frame["models"].max()
    ax.set_xlim(low - 0.04 * (high - low), high + 0.30 * (high - low))
    ticks = sorted(frame["models"].unique())
    step = max(1, -(-len(ticks) // 8))
    ax.set_xticks(ticks[::step] if ticks[-1] in ticks[::step] else [*ticks[::step][:-1], ticks[-1]])
    style.percent_axis(ax, "y", "share (%) and pooled excess (pp)")
    style.grid(ax, "y")
    ax.set_xlabel("models in the pool")
    return ax


def prepare_letters(audit: Any) -> pd.DataFrame:
    """Share of each option letter among the keys, expected share, and smallest and largest share over the models."""
    key = lookup.unique_p(lookup.rows(audit.statistics, "key_letter_share", stratum=("all", "")), "level")
    if not len(key):
        raise Lacking("this pool has no key letters")
    said = lookup.rows(audit.statistics, "model_letter_share")
    said = said[said["level"].str.endswith(" full")]
    said = said.assign(level=said["level"].str.removesuffix(" full"))
    range_ = said.groupby("level")["estimate"].agg(["min", "median", "max"]).add_prefix("models_")
    test = lookup.one(audit.statistics, "key_position")
    table = key[["level", "n", "estimate", "null"]].rename(
        columns={"level": "letter", "estimate": "key", "null": "expected"}
    )
    table = table.join(range_, on="letter")
    return table.assign(p=lookup.value(test, "p")).sort_values("letter").reset_index(drop=True)


@styled
def letters(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Bars: where the keys are; lines: where they would be if every option shown were equally likely; dots: models."""
    ax = style.axes(ax, COLUMN, 2.1)
    x = np.arange(len(frame))
    ax.bar(x, frame["key"], width=0.7, color=PALE)
    ax.hlines(frame["expected"], x - 0.42, x + 0.42, color=INK, lw=1.2)
    ax.vlines(x, frame["models_min"], frame["models_max"], color=BLUE, lw=1.6, alpha=0.5)
    ax.plot(x, frame["models_median"], "o", color=BLUE, ms=4)
    ax.set_xticks(x, [glyphs.short(v, 6) for v in frame["letter"]])
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel("option letter")
    style.percent_axis(ax, "y", "share (%)")
    style.grid(ax, "y")
    entries = [("keys", PALE), ("uniform over options shown", INK, "━")]
    style.legend_line(
        ax, [*entries, ("models' letters", BLUE, "●")] if frame["models_median"].notna().any() else entries
    )
    return ax
