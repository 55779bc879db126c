"""Every number of a pool as a key and its LaTeX: rows of the statistics, ranges over pools, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from auditlib import lookup, numerals
from auditlib.latex import words
from auditlib.latex.names import slug, unique
from auditlib.lookup import one
from auditlib.report.card_sources import ends_of, extremes
from auditlib.summary import headline_row

#: metrics that are no shares: plain numbers, differences in points, numbers of any size
NUMBERS = ("fleiss_kappa", "krippendorff_alpha", "correctness_kappa", "key_kappa", "key_item_rest", "gain_auc")
POINTS = ("zero_gain_between_strata", "pool_size_excess", "multimodal_gain", "multimodal_leakage",
          "split_half_difference")  # fmt: skip
GENERAL = ("key_position", "key_lag_gain", "key_relabel_gain")
#: key columns of the statistics frame in the order of a key, with the values that are left out of it
_PLACE = {"arm": ("",), "policy": ("", "wrong"), "null_kind": ("",), "level": ("",), "models": ("", "all"),
          "stratum": ("", "all")}  # fmt: skip


@dataclass(frozen=True)
class Number:
    """One number.

    Attributes
    ----------
    key : name in ``\\auditnum{key}``. tex : what it prints. source : where it stands, in words.
    """

    key: str
    tex: str
    source: str


def show_of(metric: str) -> Callable[[Any], str]:
    """How an estimate of a metric is printed."""
    if metric in NUMBERS:
        return numerals.number
    if metric in POINTS:
        return numerals.pp
    return numerals.general if metric in GENERAL else numerals.percent


def of_rows(audit: Any, pool: str) -> list[Number]:
    """Numbers of every row of the statistics frame; where several kinds of p stand beside each other, of the best.

    Pairs of models are left out: they are many, and their table holds them.
    """
    s = audit.statistics
    kept = s[~s["models"].astype(str).str.contains(" | ", regex=False)]
    place = kept[["metric", *_PLACE]].astype(object).where(kept[["metric", *_PLACE]].notna(), "")
    kept = lookup.best_p(kept.assign(**place))
    kept = kept.drop_duplicates(["metric", *_PLACE]).sort_index(kind="stable")
    stems = unique([_stem(pool, r) for r in kept.to_dict("records")])
    at = {label: i + 2 for i, label in enumerate(s.index)}
    return [
        n for stem, label, r in zip(stems, kept.index, kept.to_dict("records")) for n in _numbers(stem, r, at[label])
    ]


def _stem(pool: str, row: dict[str, Any]) -> str:
    place = [str(row[c]) for c, usual in _PLACE.items() if row[c] not in usual]
    return ".".join([slug(pool), *map(slug, [row["metric"], *place])])


def _numbers(stem: str, r: dict[str, Any], line: int) -> Iterator[Number]:
    show = show_of(r["metric"])
    shows = {"n": numerals.count, "estimate": show, "low": show, "high": show, "null": show, "excess": numerals.pp,
             "excess_low": numerals.pp, "excess_high": numerals.pp, "p": numerals.p_value,
             "q": numerals.p_value}  # fmt: skip
    where = f"statistics.csv line {line}"
    for column, printed in shows.items():
        if pd.notna(r.get(column)):
            yield Number(f"{stem}.{slug(column)}", words.value(printed(r[column])), f"{where}, {column}")
    inner = numerals.pct if show is numerals.percent else show
    for name, low, high, printed in (("interval", "low", "high", inner),
                                     ("excess-interval", "excess_low", "excess_high", numerals.pp)):  # fmt: skip
        text = numerals.interval(r.get(low), r.get(high), printed)
        if text != numerals.NONE:
            yield Number(f"{stem}.{name}", words.value(text), f"{where}, {low} and {high}")
    if pd.notna(r.get("p")):
        yield Number(f"{stem}.p-says", words.p_said(r["p"]), f"{where}, p")
    if show is numerals.percent and pd.notna(r.get("estimate")) and pd.notna(r.get("n")):
        hits = numerals.count(r["estimate"] * r["n"])
        yield Number(f"{stem}.count", words.value(hits), f"{where}, estimate x n")


def of_pool(audit: Any, pool: str) -> list[Number]:
    """Counts of the pool, and ranges over the pools that leave one model out and over models."""
    stem, steps = slug(pool), audit.steps
    out = [Number(f"{stem}.{k}", words.value(numerals.count(steps[k])), f"audit.json, {k}")
           for k in ("items", "models", "strata", "full_runs", "blind_runs")]  # fmt: skip
    out = [Number(n.key.replace("_", "-"), n.tex, n.source) for n in out]
    out.append(Number(f"{stem}.benchmark", words.text(audit.benchmark), "audit.json, benchmark"))
    r, s = headline_row(audit), audit.statistics
    ranges: list[tuple[str, Any, str, Callable[[Any], str]]] = []
    if r is not None:
        keys = {"arm": audit.arm, "policy": "wrong", "null_kind": r["null_kind"]}
        ranges += [("zero-gain", extremes(s, "zero_gain_share", **keys), "estimate", numerals.percent),
                   ("excess", extremes(s, "zero_gain_share", "excess", **keys), "excess", numerals.pp)]  # fmt: skip
    ranges += [("unanimous", extremes(s, "unanimous_share", level=""), "estimate", numerals.percent),
               ("kappa", extremes(s, "fleiss_kappa"), "estimate", numerals.number)]  # fmt: skip
    for name, ends, column, show in ranges:
        out += _range(f"{stem}.without-one.{name}", ends, column, show, audit)
    for level in ("full", "blind"):
        ends = ends_of(lookup.rows(s, "accuracy", level=level, arm=audit.arm, policy=("wrong", "")))
        out += _range(f"{stem}.over-models.accuracy.{level}", ends, "estimate", numerals.percent, audit)
    return out


def _range(stem: str, ends: Any, column: str, show: Callable[[Any], str], audit: Any) -> list[Number]:
    if ends is None:
        return []
    low, high = (show(e[column]) for e in ends)
    at = [list(audit.statistics.index).index(e.name) + 2 for e in ends]
    where = f"statistics.csv lines {at[0]} and {at[1]}, {column}"
    both = words.value(low) if low == high else f"{words.value(low)} to {words.value(high)}"
    return [Number(f"{stem}.low", words.value(low), where), Number(f"{stem}.high", words.value(high), where),
            Number(f"{stem}.range", both, where)]  # fmt: skip


def all_numbers(audit: Any, pool: str) -> list[Number]:
    """All of them, each key once."""
    found = [*of_pool(audit, pool), *of_rows(audit, pool)]
    keys = unique([n.key for n in found])
    return [Number(k, n.tex, n.source) for k, n in zip(keys, found)]


def short_names(audit: Any, pool: str, numbers: list[Number]) -> dict[str, str]:
    """Short words -> key, for the numbers that a paper quotes first; only those that the pool has."""
    stem, arm, known = slug(pool), slug(audit.arm), {n.key for n in numbers}
    r = headline_row(audit)
    kind = slug(r["null_kind"]) if r is not None else "within"
    gain, votes = f"zero-gain-share.{arm}.{kind}", "unanimous-share.exact"
    wanted = {
        "items": "items", "models": "models", "strata": "strata", "full runs": "full-runs", "blind runs": "blind-runs",
        "zero gain": f"{gain}.estimate", "zero gain interval": f"{gain}.interval", "zero gain null": f"{gain}.null",
        "zero gain count": f"{gain}.count", "excess": f"{gain}.excess", "excess interval": f"{gain}.excess-interval",
        "excess p": f"{gain}.p", "excess p says": f"{gain}.p-says", "excess range": "without-one.excess.range",
        "zero gain range": "without-one.zero-gain.range", "unanimous": f"{votes}.count",
        "unanimous share": f"{votes}.estimate", "unanimous interval": f"{votes}.interval",
        "unanimous range": "without-one.unanimous.range", "kappa": "fleiss-kappa.exact.estimate",
        "kappa interval": "fleiss-kappa.exact.interval", "kappa range": "without-one.kappa.range",
        "visual dependent": _dependent(audit), "saturated": f"saturated-share.{arm}.estimate",
        "never solved": f"never-solved-share.{arm}.estimate", "accuracy range": "over-models.accuracy.full.range",
        "blind accuracy range": "over-models.accuracy.blind.range", "ceiling": "attainable-ceiling.estimate",
        "category changed": "category-changed.estimate",
    }  # fmt: skip
    return {name: f"{stem}.{key}" for name, key in wanted.items() if f"{stem}.{key}" in known}


def _dependent(audit: Any) -> str:
    row = one(audit.statistics, "visual_dependent_share", arm=audit.arm, policy=("wrong", ""), models="all",
              stratum="all")  # fmt: skip
    return "" if row is None else f"{_stem('', row.to_dict() | {'metric': row['metric']}).split('.', 1)[1]}.estimate"
