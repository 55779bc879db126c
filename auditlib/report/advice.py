"""What to do next: one entry for each finding that asks for something, made from the numbers that are there."""

from __future__ import annotations

from typing import Any

import pandas as pd

from auditlib import lookup
from auditlib.figures.pipeline import plural
from auditlib.lookup import one, pool_range
from auditlib.numerals import NONE, count, interval, p_says, percent, points, pp
from auditlib.report import flags
from auditlib.report.blind_run import blind_run
from auditlib.report.blocks import Block, Run, Section, b, code, link, p, section, ul
from auditlib.report.findings import first_to_review
from auditlib.report.opening import outside_range
from auditlib.summary import headline_row
from auditlib.table_formats import spread

#: below this many models a share is more the pool's than the benchmark's
FEW_MODELS = 5
#: below this many models, all of them guess right without the image too often
ENOUGH = 3
#: a model whose blind replies are unusable this often shapes the categories
MUCH = 0.2

MEND = {
    "key_outside_options": "Correct keys outside the options",
    "key_without_text": "Give the key’s option a text",
    "lost_option": "Restore options that never reached the models",
    "key_placeholder": "Fill in keys that are placeholders",
    "key_text_unmatched": "Match keys to the text of an option",
    "contradictory_duplicate": "Settle items that stand twice with different keys",
}


def advice(audit: Any, command: str) -> Section:
    """The section ``next``."""
    steps: list[list[Run]] = [
        *_read(audit),
        *_mend(audit),
        *_review(audit),
        *_quote(audit),
        *_pool(audit, command),
        *_scoring(audit),
    ]
    if not steps:
        steps = [["Nothing in these runs asks for a step."]]
    return section("next", "What to do next", p("In this order. Each step follows from a number in this report."),
                   ul(steps, ordered=True), _closing(audit), first_to_review(audit))  # fmt: skip


def _closing(audit: Any) -> Block | None:
    """What asks for nothing here, in one paragraph: detectors that were not run, steps that were not judged."""
    idle = audit.detectors[audit.detectors["state"] != "run"]
    # without a blind run the step that asks for one says so already
    idle = idle[idle["detector"].ne("visual_dependency") | audit.has_blind]
    said = []
    if len(idle):
        each = [f"{d.replace('_', ' ')} ({r})" for d, r in zip(idle["detector"], idle["reason"])]
        said.append(f"Not run: {'; '.join(each)}.")
    counted = audit.counts[audit.counts["arm"] == audit.arm] if audit.counts is not None else []
    if len(counted) and outside_range(audit):
        said.append("Which items need no image is not judged: items lie outside the calibrated range.")
    elif len(counted) and counted["n"].max() < ENOUGH:
        n = int(counted["n"].max())
        said.append(f"Which items need no image is not judged: {plural(n, 'model')} {'is' if n == 1 else 'are'} "
                    f"counted, and {ENOUGH} are needed.")  # fmt: skip
    return p(" ".join(said)) if said else None


def unread(audit: Any) -> pd.DataFrame:
    """Coverage rows of models of whose replies the readers of answers make next to nothing."""
    return audit.coverage[audit.coverage["reason"].str.contains("reads next to none of its replies", regex=False)]


def _read(audit: Any) -> list[list[Run]]:
    rows = unread(audit)
    return [[b(f"Read the replies of {flags.shortened(m, 60)}: "), f"{why}. Until then they count as abstentions, and "
             "every number rests on the other models."] for m, why in zip(rows["model"], rows["reason"])]  # fmt: skip


def _mend(audit: Any) -> list[list[Run]]:
    found = flags.checks(audit)
    out: list[list[Run]] = []
    for check, words in MEND.items():
        if check in found.index:
            items = list(dict.fromkeys(found[check]))
            out.append([b(f"{words}: {_items(items)}. "), f"Items {flags.ids(items)}. The files themselves prove "
                                                          "it; every "
                        "score on these items is void until then. A spreadsheet reader that takes the word None for an "
                        "empty cell is a common cause." if check == "lost_option" else f"Items {flags.ids(items)}. The "
                        "files themselves prove it."])  # fmt: skip
    twins = flags.flagged(audit, "distractor_similarity")
    if len(twins):
        sure = twins[twins["severity"] == "high"]
        out.append([b(f"Tell near-duplicate options apart: {_items(twins['item'].unique())}. "),
                    f"Items {flags.ids(twins['item'].unique())}."
                    + (f" In {count(len(sure))} of them the key stands beside an equal "
                       "option." if len(sure) else "")])  # fmt: skip
    return out


def _review(audit: Any) -> list[list[Run]]:
    out: list[list[Run]] = []
    unanimous, high = flags.tier(audit, "unanimous"), flags.tier(audit, "high")
    if len(unanimous) or len(high):
        strong = unanimous[unanimous["voters"] >= 3]
        first = f"Review {plural(len(unanimous), 'unanimous candidate')} first" if len(unanimous) else "Review"
        then = f"{', then' if len(unanimous) else ''} {_items(high)} on which no vote is the key" if len(high) else ""
        voters = (
            f" {count(len(strong))} of the unanimous ones {'has' if len(strong) == 1 else 'have'} three voters or more."
            if len(unanimous)
            else ""
        )
        out.append([b(f"{first}{then}. "), f"Start with {flags.ids([*strong['item'], *high['item']])}.{voters} A "
                                           "person who "
                    "sees the image decides; agreement of models does not, because their mistakes are correlated",
                    _same(audit), ". Votes and options are in ", link("flagged.md"), "."])  # fmt: skip
    if outside_range(audit):
        return out
    needless, missed = flags.solved_blind(audit, ENOUGH)
    if len(missed):
        out.append([b(f"Review key and image of {_items(missed)} answered without the image but missed with it. "),
                    "Every model gives the key without the image, and not every model with it: "
                    f"{flags.ids(missed['item'])}."])  # fmt: skip
    if len(needless):
        out.append([b(f"Rewrite or replace what needs no image: {_items(needless)}. "), "Every model is right with "
                    f"the image and without it: {flags.ids(needless['item'])}."])  # fmt: skip
    return out


def _same(audit: Any) -> str:
    table = lookup.rows(audit.statistics, "same_wrong_option", null_kind="shuffled", stratum="all")
    table = table[table["models"].ne("all") & table["n"].gt(0)]
    if not len(table):
        return ""
    return (f" (two models that are both wrong here choose the same wrong option in "
            f"{spread(table['estimate'].min(), table['estimate'].max())}% of cases, against "
            f"{spread(table['null'].min(), table['null'].max())}% when shuffled)")  # fmt: skip


def _quote(audit: Any) -> list[list[Run]]:
    r = headline_row(audit)
    if r is None:
        return []
    if outside_range(audit):
        return [[b("Do not quote the excess as a finding. "), "Items lie outside the calibrated range; say so "
                                                              "wherever a "
                 "number of this report is used."]]  # fmt: skip
    ends = spread(*pool_range(audit.statistics, "zero_gain_share", "excess", arm=audit.arm, policy="wrong",
                            null_kind=r["null_kind"]), pp)  # fmt: skip
    pools = f", {ends} pp with one model left out (fewer models tie more often)" if ends != NONE else ""
    ci = interval(r["excess_low"], r["excess_high"], pp)
    where = "within official categories" if r["null_kind"] == "within" else "pooled, no official categories known"
    return [[b("Quote the excess, not the share: "), f"{points(r['excess'])} {where}"
             f"{' ' + ci if ci != NONE else ', no interval'}, {p_says(r['p'])}{pools}; name the models with "
             "it."]]  # fmt: skip


def _pool(audit: Any, command: str) -> list[list[Run]]:
    out: list[list[Run]] = []
    if not audit.has_blind:
        out.append(blind_run(audit, command))
    n = len(audit.models)
    if n < FEW_MODELS:
        why = "a vote needs two" if n < 2 else "shares and excess still move when one is left out"
        out.append([b("Add models. "), f"{count(n)} {'is' if n == 1 else 'are'} few: {why}. Models of other "
                                       "families add "
                    "most, since errors within a family are alike."])  # fmt: skip
    if audit.steps["strata"] < 2:
        out.append([b("Give the official categories. "), "Without them a difference in difficulty between kinds of "
                                                         "items "
                    "looks like item-level ties: name their column as ", code("stratum"), " in the "
                                                                                          "params."])  # fmt: skip
    return out


def _scoring(audit: Any) -> list[list[Run]]:
    s, out = audit.statistics, []
    lost = lookup.rows(s, "blind_unparseable_rate", stratum="all")
    lost = lost[lost["estimate"] >= MUCH]
    if len(lost):
        who = "; ".join(f"{m} {percent(e)}" for m, e in zip(lost["models"], lost["estimate"]))
        out.append([b("Look at models that do not answer without the image: "), f"{who} of the blind replies hold "
                                                                                "no answer. "
                    "They count as wrong, which makes items look visually dependent: compare the pool without "
                    "them."])  # fmt: skip
    n = sum(v for k, v in verdict_sources(audit).items() if k in ("random_fill", "cache_stale"))
    if n:
        out.append([b("Judge again. "), f"{plural(n, 'verdict')} filled at random or from a stale cache. "
                                        "They count "
                    "as abstentions here, but the toolkit’s own scores hold them."])  # fmt: skip
    changed = one(s, "category_changed")
    if changed is not None and changed["estimate"] >= 0.05:
        out.append([b("State the scoring. "), f"{percent(changed['estimate'])} of the items change category when "
                                              "the judge "
                    "is replaced by the parser."])  # fmt: skip
    warned = audit.coverage[
        audit.coverage["what"].eq("warning") & ~audit.coverage["reason"].str.contains("random letter")
    ]
    warned = warned.drop(index=unread(audit).index.intersection(warned.index))
    if len(warned):
        models = warned["model"].fillna("")
        said = [f"{m}: {r}" if m else r for m, r in zip(models, warned["reason"])]
        out.append([b("Look into the warnings about runs. "), f"{'; '.join(dict.fromkeys(said))}."])
    return out


def verdict_sources(audit: Any) -> dict[str, int]:
    """How many verdicts came from where; empty where there are no judged files."""
    table = audit.judgements
    return (
        {} if table is None or not len(table) else {str(k): int(v) for k, v in table["source"].value_counts().items()}
    )


def _items(items: Any) -> str:
    return plural(len(items), "item")
