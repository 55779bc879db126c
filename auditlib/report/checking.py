"""Auditing the audit: could it have made its findings itself?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.extract import RULES
from auditlib.figures.pipeline import plural
from auditlib.flagged_rows import was_read
from auditlib.lookup import one, value
from auditlib.numerals import count, p_says, percent
from auditlib.report.advice import verdict_sources
from auditlib.report.blocks import Block, Run, Section, b, p, section, table, ul
from auditlib.summary import headline_row
from auditlib.table_formats import spread

SOURCES = {
    "regex": "matched by the toolkit without a model",
    "llm": "given by the judge",
    "exact_fallback": "exact match after the judge failed",
    "random_fill": "filled at random after the judge failed",
    "cache_stale": "from a stale cache",
    "recomputed": "computed again",
    "human": "given by a person",
    "unknown": "of unknown origin",
}


def checking(audit: Any) -> Section:
    """The section ``checks``."""
    items = [
        _no_op(audit),
        _extraction(audit),
        _scoring(audit),
        _pairing(audit),
        _one_scalar(audit),
        _back_filling(audit),
    ]
    return section(
        "checks",
        "Auditing the audit",
        p("An audit can manufacture its findings. These are the known ways, and what this pool’s files say."),
        ul(items),
        _rules(audit),
        _halves(audit),
    )


def _no_op(audit: Any) -> list[Run]:
    head = b("Was the image really gone? ")
    if not audit.has_blind:
        return [head, "There is no blind run to check."]
    s = audit.statistics
    out: list[Run] = [head]
    refused = lookup.rows(s, "blind_refused_rate", stratum="all")
    said = refused[refused["estimate"] > 0]
    if len(said):
        out.append(
            "Blind replies that say no image is there, or decline: "
            + ", ".join(f"{m} {percent(e)}" for m, e in zip(said["models"], said["estimate"]))
            + ". "
        )
    elif len(refused):
        out.append("No blind reply says that an image is missing. ")
    else:
        out.append("The pool holds no replies, so none can say that the image was missing. ")
    out.append(_blind_accuracy(audit))
    twice = audit.coverage[audit.coverage["reason"].str.contains("same run twice|exceeds that with it", regex=True)]
    if len(twice):
        out += [b("Doubt: "), "; ".join(f"{m}: {r}" if m else r for m, r in zip(twice["model"], twice["reason"])), "."]
    elif audit.responses is not None:
        out.append("No blind run repeats its full run, and none is more accurate than it.")
    return out


def _blind_accuracy(audit: Any) -> str:
    table_ = lookup.rows(audit.statistics, "accuracy", level="blind", arm=audit.arm, policy=("wrong", ""))
    if not len(table_):
        return ""
    chance = _chance(audit)
    against = f"; a guess among the options shown is right on {percent(chance)}" if chance else ""
    return f"Blind accuracy is {spread(table_['estimate'].min(), table_['estimate'].max())}% over the models{against}. "


def _chance(audit: Any) -> float:
    k = pd.to_numeric(audit.items["k"], errors="coerce").to_numpy(float) if "k" in audit.items else np.zeros(0)
    k = k[k > 1]
    return float(np.mean(1 / k)) if len(k) else 0.0


def _extraction(audit: Any) -> list[Run]:
    head = b("Does it hang on how answers are read? ")
    table_ = lookup.rows(audit.statistics, "judge_parser_disagreement", level="all")
    if not len(table_):
        arms = " and ".join(audit.steps["arms"]) or "none"
        return [head, f"Only one way of scoring could be compared (arms: {arms}), so this cannot be told."]
    total = table_["n"].sum()
    if not total:
        return [head, "Judge and parser score every reply alike."]
    who = table_[table_["n"] > 0].sort_values("n", ascending=False, kind="stable")
    clean = len(table_) - len(who)
    text = (
        f"Judge and parser score {plural(total, 'model-item pair')} differently: "
        + ", ".join(f"{m} {count(n)}" for m, n in zip(who["models"], who["n"]))
        + (f"; {count(clean)} of {count(len(table_))} models have none. " if clean else ". ")
    )
    changed = one(audit.statistics, "category_changed")
    if changed is not None:
        text += f"{count(changed['n'])} of {plural(len(audit.items), 'item')} change category "
        text += f"with the arm ({percent(changed['estimate'])}). "
    others = [a for a in lookup.arms(audit) if a != audit.arm]
    mine = headline_row(audit)
    for arm in others if mine is not None else []:
        row = one(
            audit.statistics,
            "zero_gain_share",
            arm=arm,
            null_kind=mine["null_kind"],
            models="all",
            stratum="all",
            policy="wrong",
        )
        if row is not None:
            text += (
                f"Zero gain: {percent(mine['estimate'])} under {audit.arm}, {percent(row['estimate'])} under "
                f"{arm} "
                f"({p_says(row['p'])}). "
            )
    return [head, text]


def _scoring(audit: Any) -> list[Run]:
    head, sources = b("Who scored, and faithfully? "), verdict_sources(audit)
    if not sources:
        return [
            head,
            "No judge took part: replies are scored by reading their letters"
            if audit.responses is not None
            else "The pool came as right or wrong; who decided that is not in its files",
            ".",
        ]
    judges = sorted({str(j) for j in audit.judgements["judge"].dropna().unique()} - {""})
    named = ", ".join(judges) or audit.provenance.get("judge") or "not named in the files"
    parts = [f"{count(n)} {SOURCES.get(k, k)}" for k, n in sources.items()]
    text = f"Judge: {named}. Of {count(sum(sources.values()))} verdicts, {', '.join(parts)}. "
    bad = sources.get("random_fill", 0) + sources.get("cache_stale", 0)
    text += (
        "Those filled at random or stale are abstentions here, never answers."
        if bad
        else "Where a verdict’s origin is unknown, filling at random cannot be ruled out."
        if sources.get("unknown")
        else "None was filled at random or taken from a stale cache."
    )
    return [head, text]


def _pairing(audit: Any) -> list[Run]:
    joined = audit.coverage[audit.coverage["what"].eq("joined")]
    n = f"{count(joined['n'].iloc[0])} {joined['reason'].iloc[0]}" if len(joined) else "runs are joined"
    out: list[Run] = [b("Is the pairing kept where it must be? "), f"Runs are joined by item id, never by row: {n}. "]
    if audit.has_blind:
        out.append(
            "The null applies one permutation of item ids to the blind results of all models, so agreement "
            "between "
            "models and every accuracy are kept and only the link from full to blind is cut. Intervals draw "
            "whole "
            f"items{', in clusters of one image' if audit.steps['clusters'] else ''}."
        )
    return out


def _one_scalar(audit: Any) -> list[Run]:
    head, r = b("One number, two readings? "), headline_row(audit)
    if r is None:
        return [head, "There is no headline number to take apart."]
    parts = lookup.rows(audit.statistics, "zero_gain_composition", arm=audit.arm, null_kind=r["null_kind"])
    parts = parts.assign(k=parts["level"].astype(int)).sort_values("k")
    where = "null within official categories" if r["null_kind"] == "within" else "pooled null"
    said = "; ".join(
        f"{k} right: {plural(n, 'item')} ({percent(e)}, expected {percent(x)})"
        for k, n, e, x in zip(parts["k"], parts["n"], parts["estimate"], parts["null"])
    )
    return [
        head,
        "The headline is broken down by official category, by pools with one model left out and by how many models "
        f"are right both ways ({where}): {said}.",
    ]


def _back_filling(audit: Any) -> list[Run]:
    head, row = b("Are answers filled in from the key? "), one(audit.statistics, "backfill_unanimous")
    never = "Never: what a reply does not say stays unread, whatever the judge decided. "
    if row is None:
        return [head, never, "What that would do here cannot be computed without votes and judged hits."]
    return [head, never, f"Had it been done: {lookup.text(row, 'note')}."]


def _rules(audit: Any) -> Block | None:
    replies = audit.responses
    if replies is None or not len(replies) or "rule" not in replies:
        return None
    rule = replies["rule"].astype(object).where(replies["rule"].notna(), replies["status"].astype(object))
    unread = ~was_read(replies)
    told = dict(RULES)
    sizes = rule.groupby([unread, rule]).size().reset_index(name="n")
    sizes.columns = ["unread", "rule", "n"]
    sizes = sizes.sort_values(["unread", "n"], ascending=[True, False], kind="stable")
    rows = [
        ["abstention" if u else "read", str(r), _sentence(str(r), told), count(n), percent(n / len(replies))]
        for u, r, n in sizes.itertuples(index=False)
    ]
    return table(
        "extraction",
        "Rules that read the replies",
        ["Outcome", "Rule", "What it does", "Replies", "Share"],
        [True, True, True, False, False],
        rows,
        note="By model: tables/extraction.csv.",
        widths=[0, 0, 1, 0, 0],
    )


def _sentence(rule: str, told: dict[str, str]) -> str:
    if rule in told:
        return told[rule]
    reader, _, name = rule.partition(":")
    first, *warnings = name.split("+")
    words = [told.get(f"{reader}:{first}", ""), *(told.get(f"{reader}:+{w}", "") for w in warnings)]
    return " ".join(w for w in words if w)


def _halves(audit: Any) -> Block | None:
    row = one(audit.statistics, "split_half_difference", arm=audit.arm)
    if row is None:
        return None
    return p(
        b("Split halves. "),
        f"In {count(row['n'])} random halvings of the items the pooled excess of the two "
        "halves "
        f"differs by {percent(row['estimate']).rstrip('%')} pp (median); halves of a table drawn from the "
        "fitted law "
        f"would differ by {percent(value(row, 'null')).rstrip('%')} pp "
        f"({spread(row['low'], row['high'])} in 95% of cases).",
    )
