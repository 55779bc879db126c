"""The first page: what was audited, the headline numbers with null, interval and range, and how far they carry."""

from __future__ import annotations

from typing import Any

import pandas as pd

from auditlib import lookup
from auditlib.detectors.calibrated import measured
from auditlib.figures.pipeline import plural as counted
from auditlib.figures.style import arm_name
from auditlib.lookup import one, pool_range, value
from auditlib.numerals import NONE, count, interval, number, p_says, percent, points, pp, span
from auditlib.report import flags
from auditlib.report.blocks import Block, Section, b, callout, card, cards, code, p, pre, section
from auditlib.report.claimed import claimed
from auditlib.summary import headline_row
from auditlib.table_formats import spread

P_FROM = {
    "exact": "exact, by rook polynomials",
    "normal": "normal tail of the closed-form null",
    "tables": "random tables",
    "shuffle": "shuffles",
}
#: pools that come with the package, and what must be known about them before a number is read
ORIGIN = {
    name: f"A synthetic replica of a published audit of {benchmark}: no model was run, every item and reply is "
    "invented so "
    "that published counts come out again. It shows how the audit works and says nothing about the benchmark or the "
    "models "
    "whose names it bears."
    for name, benchmark in (("mmstar_replica", "MMStar"), ("hallusionbench_replica", "HallusionBench"))
} | {
    "tinysee": "Drawn pictures and four tiny models, run by a real toolkit, with defects planted on purpose: a pool "
    "whose "
    "truth is known, made to try the audit on."
}
ORIGIN |= {
    name: f"A synthetic pool of 18 sources with the published counts of MMGist{part}: items and models are invented "
    "and no model was run. It shows how curation works and says nothing about the sources whose names it bears."
    for name, part in (("mmgist_synthetic", ""), ("mmgist_small", ", in small"))
}
ORIGIN["dependence_synthetic"] = (
    "A synthetic pool: items, replies and the eight models are invented and no model was run. What each item depends "
    "on is known, so that the labels of its modality dependence can be tried against the truth."
)


def opening(audit: Any, command: str) -> Section:
    """The section ``headline``.

    Parameters
    ----------
    command : the command that runs this pool.
    """
    r = headline_row(audit)
    return section("headline", "Headline", _scope(audit), *_cautions(audit, r, command), _cards(audit, r),
                   *_gain(audit, r), *_votes(audit), *claimed(audit))  # fmt: skip


def _scope(audit: Any) -> Block:
    s = audit.steps
    runs = f"{count(s['full_runs'])} with the image, " + (
        f"{count(s['blind_runs'])} without" if audit.has_blind else "none without"
    )
    strata = f", in {count(s['strata'])} official categories" if s["strata"] > 1 else ", without official categories"
    return p(f"{plural(s['items'])}{strata}; {counted(s['models'], 'model')}; scored runs: {runs}. "
             f"{s['detectors_run']} of {s['detectors']} detectors could run, after the integrity gate. No model was "
             "called: everything below is computed from saved replies and verdicts.", role="lede")  # fmt: skip


def _cautions(audit: Any, r: pd.Series | None, command: str) -> list[Block]:
    out = []
    if audit.steps["limit"]:
        out.append(callout(b("A quick look. "), f"Only the first {plural(audit.steps['limit'])} went in; these "
                           "numbers are no audit of the benchmark.", tone="warn"))  # fmt: skip
    if not audit.has_blind:
        out += no_blind(audit, command)
    elif r is None:
        why = "; ".join(sorted(set(audit.steps["not_counted"].values()))) or "no arm is scored in both conditions"
        out.append(callout(b("No zero-gain headline. "), f"The gain from the image could not be counted: {why}.",
                           tone="warn"))  # fmt: skip
    origin = ORIGIN.get(audit.params.data.embedded or "") if audit.params else None
    if origin:
        out.insert(0, callout(b("What this pool is. "), origin))
    silent = all_wrong(audit)
    if silent:
        arm = arm_name(audit.arm)
        out.append(callout(b("A run that is scored all wrong. "), f"{', '.join(silent)}: not one right answer with the "
                           f"image in the {arm} arm. If its replies are right in another form, the numbers below rest "
                           "on how they were scored: compare the arms, choose another judge, or widen audit.exact.",
                           tone="warn"))  # fmt: skip
    outside = outside_range(audit)
    if outside:
        out.append(callout(b("Outside the calibrated range. "), *outside, tone="warn"))
    return out


def all_wrong(audit: Any, least: int = 20) -> list[str]:
    """Models whose run with the image has no hit in the headline arm, over at least ``least`` items."""
    rows = lookup.rows(audit.statistics, "accuracy", arm=audit.arm, level="full", policy=("wrong", ""))
    return rows.loc[rows["estimate"].eq(0) & (rows["n"] >= least), "models"].tolist()


def outside_range(audit: Any) -> list[str]:
    """Sentences about items on which the detectors have not been shown to work; empty where there are none."""
    d = audit.detectors
    if "note" not in d or not (noted := d[d["note"].astype(str).ne("") & d["note"].notna()])["note"].size:
        return []
    notes = dict.fromkeys(noted["note"].astype(str))
    many = max(int(n.split()[0]) for n in notes if n.split()[0].isdigit())
    share = "All" if many == len(audit.items) else f"{count(many)} of {count(len(audit.items))}"
    out = [
        f"{share} items show a number of options for which {_listed(noted['detector'])} "
        f"{'has' if len(noted) == 1 else 'have'} not been shown to work (calibrated from three options on). With two "
        "options a blind guess is right half of the time and agreement comes easily, so read the numbers below as a "
        "description of these runs, not as findings about the benchmark."
    ]
    shown = measured(str(noted["detector"].iloc[0]), 2)
    out += [f" {shown}"] if shown else []
    auc = one(audit.statistics, "gain_auc", arm=audit.arm)
    if auc is not None:
        low, high = value(auc, "low"), value(auc, "high")
        verdict = "is at chance" if low <= 0.5 <= high else "differs from chance"
        out.append(
            f" The calibration probe {verdict}: ranking items by visual gain recovers the design labels "
            f"({auc['level']}) at AUC {number(auc['estimate'], 2)} {interval(low, high, lambda v: number(v, 2))}."
        )
    return out


def no_blind(audit: Any, command: str) -> list[Block]:
    """What is missing without a blind run, what was audited all the same, and how to get one."""
    ran = audit.detectors.loc[audit.detectors["state"] == "run", "detector"]
    model = audit.models["model"].iloc[0] if len(audit.models) else "MODEL"
    return [
        callout(
            b("No run without the image. "),
            "Whether items need their image cannot be said: zero gain, visual dependency, their nulls and everything "
            f"derived from them were not run. Audited all the same: {_listed(ran)}, and the integrity of keys, options "
            "and runs.",
            tone="warn",
        ),
        p("The blind run itself is made with the evaluation toolkit, not here: run each model once more on the same "
          "questions with every image removed from the prompt and nothing else changed, and lay its files beside the "
          "full run in a folder with the suffix ", code("_blind"), " (for example ", code(f"{model}_blind"),
          "). Then:"),
        pre(command),
    ]  # fmt: skip


def _cards(audit: Any, r: pd.Series | None) -> Block:
    s, out = audit.statistics, []
    if r is not None:
        keys = {"arm": audit.arm, "policy": "wrong", "null_kind": r["null_kind"]}
        words = "within official categories" if r["null_kind"] == "within" else "pooled null"
        out = [
            card("zero gain from the image", percent(r["estimate"]), _ci(r["low"], r["high"]),
                 _pools(pool_range(s, "zero_gain_share", **keys), remark="; fewer models tie more often")),
            card("expected by chance", percent(r["null"]), f"null, {words}",
                 _pools(pool_range(s, "zero_gain_share", "null", **keys))),
            card("excess over chance", points(r["excess"]),
                 _ci(r["excess_low"], r["excess_high"], pp, "pp"),
                 _pools(pool_range(s, "zero_gain_share", "excess", **keys), pp, "pp")),
            card("one-sided p", _bare(p_says(r["p"])), P_FROM.get(r["p_method"], r["p_method"]),
                 _pools(pool_range(s, "zero_gain_share", "p", **keys), lambda v: _bare(p_says(v)), "")),
        ]  # fmt: skip
    u = one(s, "unanimous_share", models="all", stratum="all", level="")
    if u is not None:
        out.append(card("unanimous against the key", count(u["estimate"] * u["n"]),
                        f"items: {percent(u['estimate'])} {_ci(u['low'], u['high'])}",
                        _pools(pool_range(s, "unanimous_share", level="")) or "candidates, not errors"))  # fmt: skip
    k = one(s, "fleiss_kappa", models="all", stratum="all")
    if k is not None:
        out.append(card("Fleiss’ κ of letters", number(k["estimate"]), _ci(k["low"], k["high"], number, ""),
                        _pools(pool_range(s, "fleiss_kappa"), number, "") or f"{count(k['n'])} complete "
                                                                             "items"))  # fmt: skip
    if not out:
        severe = flags.severities(audit)
        out = [card(f"items of {name} severity", count(severe[name])) for name in ("high", "medium", "low")]
    return cards(out)


def _bare(says: str) -> str:
    return says.removeprefix("p = ").removeprefix("p ")


def _ci(low: float, high: float, show=None, unit: str = "%") -> str:
    text = interval(low, high, show) if show else interval(low, high)
    return "" if text == NONE else f"{text}{' ' if unit.isalpha() else ''}{unit}"


def _pools(ends: tuple[float, float], show=percent, unit: str = "", remark: str = "") -> str:
    text = spread(*ends, show)
    return "" if text == NONE else f"one model left out: {text}{' ' + unit if unit else ''}{remark}"


def _gain(audit: Any, r: pd.Series | None) -> list[Block]:
    if r is None:
        return []
    s, arm = audit.statistics, audit.arm
    n = r["estimate"] * r["n"]
    where = "inside the official categories" if r["null_kind"] == "within" else "over all items"
    first = [
        f"On {count(n)} of {plural(r['n'])} ({percent(r['estimate'])}, 95% interval "
        f"{span(r['low'], r['high'], percent)}) as many models are right without the image as with it "
        f"({arm_name(arm)} arm). Much of that is arithmetic: with the blind results shuffled {where}, "
        f"{percent(r['null'])} would tie. ",
        b(_verdict(r) + (", on items outside the calibrated range" if outside_range(audit) else "")),
        f" ({points(r['excess'])}{_bracket(r)}, {p_says(r['p'])}, {P_FROM.get(r['p_method'], r['p_method'])}).",
    ]
    out = [p(*first), p(*_between(s, r, arm), *_smaller(s, r, arm))]
    text = _made_of(s, r, arm) + _attainable(s, arm)
    return [*out, *([p(text)] if text else [])]


def _verdict(r: pd.Series) -> str:
    if pd.isna(r["p"]):
        return "No p value was computed for the excess"
    if r["p"] < 0.05 and r["excess"] > 0:
        sure = pd.isna(r["excess_low"]) or r["excess_low"] > 0
        return "More items gain nothing than chance explains" + ("" if sure else ", though the interval reaches zero")
    return "The excess is within what chance explains: these runs show no item-level signal"


def _bracket(r: pd.Series) -> str:
    text = interval(r["excess_low"], r["excess_high"], pp)
    return ", no interval" if text == NONE else f", 95% interval {text}"


def _between(s: pd.DataFrame, r: pd.Series, arm: str) -> list[str]:
    keys = {"arm": arm, "policy": "wrong", "models": "all", "stratum": "all"}
    pooled = one(s, "zero_gain_share", null_kind="pooled", **keys)
    gap = one(s, "zero_gain_between_strata", **keys)
    if r["null_kind"] == "pooled":
        return ["The pool has no official categories, so the null is the pooled one: differences in difficulty between "
                "kinds of items, if there are any, are part of the excess. "]  # fmt: skip
    if pooled is None or gap is None:
        return []
    return [f"Shuffled over all items the excess would be {points(pooled['excess'])}{_bracket(pooled)} "
            f"({p_says(pooled['p'])}); {points(gap['estimate'])} of it lies between official categories of "
            "different difficulty and says nothing about single items. "]  # fmt: skip


def _smaller(s: pd.DataFrame, r: pd.Series, arm: str) -> list[str]:
    keys = {"arm": arm, "policy": "wrong", "null_kind": r["null_kind"]}
    excess = spread(*pool_range(s, "zero_gain_share", "excess", **keys), pp)
    share = spread(*pool_range(s, "zero_gain_share", **keys))
    if excess == NONE:
        return ["No model can be left out of this pool, so there is no range with one model left out. "]
    return [f"With any one model left out the share is {share}% and the excess {excess} pp. Fewer models tie more "
            "often, and both move with the number of models, so quote them with the pool. "]  # fmt: skip


def _made_of(s: pd.DataFrame, r: pd.Series, arm: str) -> str:
    table = lookup.rows(s, "zero_gain_composition", arm=arm, null_kind=r["null_kind"])
    if not len(table):
        return ""
    table = table.assign(k=table["level"].astype(int)).sort_values("k")
    return (f"Of these {count(table['n'].sum())} items, {count(table['n'].iloc[0])} are answered by no model either "
            "way, "
            f"which is shared failure, and {count(table['n'].iloc[-1])} by every model without the image, which is the "
            "only part that shows an image is not needed. ")  # fmt: skip


def _attainable(s: pd.DataFrame, arm: str) -> str:
    bound = one(s, "zero_gain_share", arm=arm, policy="bounds", models="all", stratum="all")
    if bound is None or bound["low"] == bound["high"]:
        return ""
    return (f"Blind replies without an answer count as wrong; had they been answers, the share could lie anywhere in "
            f"{interval(bound['low'], bound['high'])}%.")  # fmt: skip


def _votes(audit: Any) -> list[Block]:
    s = audit.statistics
    u = one(s, "unanimous_share", models="all", stratum="all", level="")
    if u is None:
        state = audit.detectors.set_index("detector")
        why = state["reason"].get("consensus_error", "") or "no letters of two models"
        return [p(f"Votes against the key could not be counted: {why}.")]
    levels = lookup.rows(s, "unanimous_share", models="all", stratum="all")
    levels = levels[levels["level"].astype(str).str.contains("/")]
    parts = [f"{count(e * n)} with {lv.split('/')[0]} voters" for e, n, lv in
             zip(levels["estimate"], levels["n"], levels["level"]) if e > 0]  # fmt: skip
    k = one(s, "fleiss_kappa", models="all", stratum="all")
    text = (f"On {plural(u['estimate'] * u['n'])} ({percent(u['estimate'])}, 95% interval "
            f"{span(u['low'], u['high'], percent)}) every readable vote with the image is one same option that is not "
            f"the key{' (' + ', '.join(parts) + ')' if parts else ''}. ")  # fmt: skip
    out = [text, b("They are candidates, not errors: "), "models share mistakes, and a person decides."]
    if k is not None:
        a = one(s, "krippendorff_alpha", models="all", stratum="all")
        alpha = f"; Krippendorff’s α on all items with two letters: {number(a['estimate'])}" if a is not None else ""
        out.append(f" Agreement of letters: Fleiss’ κ = {number(k['estimate'])} "
                   f"{interval(k['low'], k['high'], number)}, {k['note']}{alpha}.")  # fmt: skip
    return [p(*out)]


def plural(n: float) -> str:
    """``1 item``, ``2 items``."""
    return f"{count(n)} item{'' if round(n) == 1 else 's'}"


def _listed(names: Any) -> str:
    names = [str(n).replace("_", " ") for n in names]
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1] if names else "nothing"
