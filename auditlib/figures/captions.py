"""Captions: how to read each figure, with its numbers in words. Made from the frame that is drawn, nothing else."""

from __future__ import annotations

import pandas as pd

from auditlib.figures.style import ARM_NAMES, arm_name
from auditlib.numerals import count, interval, number, p_says, percent, points
from auditlib.table_formats import spread


def _arm(frame: pd.DataFrame) -> str:
    return f"{arm_name(str(frame['arm'].iloc[0]))} arm"


def pipeline(frame: pd.DataFrame) -> str:
    steps = [f"{t}: {', '.join(g['line'])}" for t, g in frame.groupby("title", sort=False)]
    return "The audit in five steps, with this pool's counts. " + "; ".join(steps) + "."


def full_vs_blind(frame: pd.DataFrame) -> str:
    total, tied = frame["items"].sum(), frame.loc[frame["zero_gain"], "items"].sum()
    shape = "one dot per item, strewn inside its cell" if total <= 4000 else "area of a disc = items in its cell"
    return (f"Model-averaged accuracy with the image against accuracy without it ({_arm(frame)}; {shape}). "
            f"On the diagonal, {count(tied)} of {count(total)} items gain nothing from the image.")  # fmt: skip


def null(frame: pd.DataFrame) -> str:
    parts = []
    for kind, words in (("within", "inside the official categories"), ("pooled", "over all items")):
        one = frame[frame["null_kind"] == kind]
        if len(one):
            r = one.iloc[0]
            parts.append(f"shuffled {words}, {percent(r['null'])} would tie by arithmetic alone, so the excess is "
                         f"{points(r['excess'])} ({p_says(r['p'])}, {_method(r['p_method'])})")  # fmt: skip
    return (f"Zero-gain share of the {_arm(frame)} ({percent(frame['observed'].iloc[0])}, line) against its null: "
            f"{'; '.join(parts)}. Bars: random tables; short black line: exact mean of the null.")  # fmt: skip


def _method(name: str) -> str:
    return {"exact": "exact", "tables": "random tables", "normal": "normal tail", "shuffle": "shuffles"}.get(name, name)


def no_gain(frame: pd.DataFrame) -> str:
    n, last = frame["n"].sum(), frame["level"].max()
    none, every = frame.loc[frame["level"] == 0, "n"].sum(), frame.loc[frame["level"] == last, "n"].sum()
    return (f"Zero-gain items ({count(n)}) by the number of models that are right, in both runs alike. "
            f"On {count(none)} every model is wrong both ways, which is shared failure; on {count(every)} every model "
            "is right without the image.")  # fmt: skip


def excess_composition(frame: pd.DataFrame) -> str:
    top = frame.loc[frame["excess"].idxmax()]
    where = (
        " inside the official categories" if frame["null_kind"].iloc[0] == "within" else " over all items (pooled null)"
    )
    return ("Share of items in each tie F = B = k (bars) against the share expected if full and blind runs were not "
            f"linked item by item{where} (lines). The largest surplus, {points(top['excess'])}, is at k = "
            f"{top['level']}; all levels together make {points(frame['excess'].sum())}.")  # fmt: skip


def strata_excess(frame: pd.DataFrame) -> str:
    part = frame[frame["kind"] == "category"]
    top, low = part.iloc[0], part.iloc[-1]
    sure = int((part["q"] < 0.05).sum())
    bars = "" if part["excess_low"].notna().all() else " Categories under 50 items have no interval."
    return (f"Zero-gain excess of each official category over its own null, with 95% intervals; filled dots: q < .05 "
            f"(Benjamini-Hochberg; {sure} of {len(part)}). Largest: {top['stratum']} ({points(top['excess'])}); "
            f"smallest: {low['stratum']} ({points(low['excess'])}). Below the line: all items, permuted inside the "
            f"categories and pooled.{bars}")  # fmt: skip


def strata_unanimous(frame: pd.DataFrame) -> str:
    top, low = frame.loc[frame["estimate"].idxmax()], frame.loc[frame["estimate"].idxmin()]
    return ("Share of items on which every readable vote is one same option that is not the key, with Wilson 95% "
            f"intervals. Highest: {top['stratum']} ({percent(top['estimate'])}); lowest: {low['stratum']} "
            f"({percent(low['estimate'])}).")  # fmt: skip


def arm_shares(frame: pd.DataFrame) -> str:
    wide = frame.pivot(index="category", columns="arm", values="estimate")
    if wide.shape[1] < 2:
        return f"Category shares under the one arm of this pool ({_arm(frame)}), with Wilson 95% intervals."
    names = [ARM_NAMES.get(a, a) for a in dict.fromkeys(frame["arm"])]
    move = (wide.max(axis=1) - wide.min(axis=1)).max()
    return (f"Category shares under each scoring of the same predictions ({', '.join(names)}), with Wilson 95% "
            f"intervals. The largest move is {points(move).lstrip('+')}.")  # fmt: skip


def disagreements(frame: pd.DataFrame) -> str:
    total = frame["full"] + frame["blind"]
    clean = int((total == 0).sum())
    top = frame.loc[total.idxmax()]
    if not total.sum():
        return "Judge and parser score every reply of every model alike."
    share = "all" if total.max() == total.sum() else f"{count(total.max())} of them"
    return (f"Model-item pairs that the judge and the letter parser score differently: {count(total.sum())}, {share} "
            f"from {top['model']}. {clean} of {len(frame)} models have none.")  # fmt: skip


def flow(frame: pd.DataFrame) -> str:
    moved = frame.loc[frame["judged"] != frame["parser"], "items"].sum()
    parser = arm_name(str(frame["arm"].iloc[0]))
    return (f"Items by category under the judge (rows) and under {parser} (columns). "
            f"{count(moved)} of {count(frame['items'].sum())} items change category.")  # fmt: skip


def bounds(frame: pd.DataFrame) -> str:
    zero = frame[frame["share"] == "zero_gain"]
    tail = ""
    if len(zero):
        r = zero.iloc[0]
        tail = f" Zero gain: {percent(r['wrong'])}, attainable {interval(r['bound_low'], r['bound_high'])}%"
        tail += f", one model left out {spread(r['pool_low'], r['pool_high'])}%." if pd.notna(r["pool_low"]) else "."
    return (f"Each share with abstentions counted wrong (dots; {_arm(frame)}), the range that real answers in their "
            "place could give (pale bars), and the range over pools with one model left out "
            f"(lines).{tail}")  # fmt: skip


def abstention(frame: pd.DataFrame) -> str:
    r = frame.iloc[0]
    return (f"Each share with abstentions counted wrong (dots) and with those model-item pairs left out (diamonds; "
            f"{_arm(frame)}); bars: what any blind answers in their place could give. Zero gain: "
            f"{percent(r['wrong'])} wrong, {percent(r['excluded'])} left out, attainable "
            f"{interval(r['bound_low'], r['bound_high'])}%.")  # fmt: skip


def pool_size(frame: pd.DataFrame) -> str:
    raw, excess = frame[frame["quantity"] == "raw share"], frame[frame["quantity"] == "excess"]
    if not len(raw) or not len(excess):
        return "Zero-gain share by the number of models: median over subsets, and the range."
    a, b = raw.iloc[0], raw.iloc[-1]
    c, d = excess.iloc[0], excess.iloc[-1]
    return (f"Median over subsets of models, with the range. From {a['models']} to {b['models']} models the raw share "
            f"goes from {percent(a['estimate'])} to {percent(b['estimate'])} and the excess (pooled null) from "
            f"{points(c['estimate'])} to {points(d['estimate'])}: neither is a property of the benchmark "
            "alone.")  # fmt: skip


def profile(frame: pd.DataFrame) -> str:
    blind = frame[frame["condition"] == "blind"]
    text = f"What became of each reply, by model ({_arm(frame)}). "
    if not len(blind):
        return text + "There is no blind run."
    lost = blind[["unparseable", "refused"]].sum(axis=1)
    if lost.max() == 0:
        return text + "Every blind reply could be read."
    top = blind.loc[lost.idxmax(), "model"]
    return text + (f"Without the image, {top} gives no usable answer on {percent(lost.max())} of the items: categories "
                   "reflect the willingness to answer too.")  # fmt: skip


def letters(frame: pd.DataFrame) -> str:
    top = frame.loc[frame["key"].idxmax()]
    p = frame["p"].iloc[0]
    tail = f" ({p_says(p)} against uniform)" if pd.notna(p) else ""
    return (f"Share of each letter among the keys (bars), expected if all options shown were equally likely (lines)"
            f"{tail}, and the models' own letters (dot: median, line: range). The most frequent key is {top['letter']} "
            f"({percent(top['key'])}).")  # fmt: skip


def roc(frame: pd.DataFrame) -> str:
    r = frame.iloc[0]
    return (f"ROC of the visual gain for the design label {r['positive']} ({count(r['n_positive'])} items against "
            f"{count(r['n_negative'])}): AUC {number(r['auc'], 2)} "
            f"{interval(r['low'], r['high'], lambda v: number(v, 2))}; .50 is chance.")  # fmt: skip


def design_excess(frame: pd.DataFrame) -> str:
    parts = [f"{r.label} {points(r.excess)}" for r in frame.itertuples()]
    return f"Zero-gain excess by the benchmark's own design label, with 95% intervals: {', '.join(parts)}."
