"""Judges as decision makers: every table of the decisions of a study, judge by judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames, seeds
from auditlib.judges import filter_checks, filters, reorder, robustness, slots
from auditlib.judges.cards import card_checks, card_table, compared, same_table
from auditlib.judges.ceiling import noise_ceiling
from auditlib.judges.decision_data import NONE, Choices, Prompts, choices_of, prompts_of
from auditlib.judges.decisions import aggregate, baseline, contrasts, per_prompt, value_table
from auditlib.judges.outcomes import is_perturbation
from auditlib.judges.side_effects import side_effects
from auditlib.judges.study import Judges


@dataclass
class Decided:
    """Tables by name, and what is left out."""

    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    coverage: list[dict[str, Any]] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)


def decisions(j: Judges) -> Decided:
    """Tables of the decisions: what they are worth, slots, orders, filters, side effects, shared errors.

    Raises
    ------
    AuditError
        Candidates that people did not rate, or no prompt with two of them.
    """
    out = Decided()
    prompts = prompts_of(j.candidates)
    if prompts.alone:
        reason = "prompts with a single candidate: nothing is decided"
        out.coverage.append(frames.coverage_row("excluded", n=prompts.alone, reason=reason))
    given, chances = _choices(j, prompts, out)
    seed, draws = j.seed, j.params.draws
    out.frames["value"] = _value(j, prompts, chances)
    out.frames["contrasts"] = contrasts(prompts, chances, seed=seed, draws=max(draws, 1_000))
    out.frames["slots"] = _all(slots.slot_rates(prompts, c, seed=seed).assign(judge=n) for n, c in given.items())
    out.frames["position"] = _positions(prompts, given, seed)
    changes = [(n, reorder.order_change(prompts, c, seed=seed)) for n, c in given.items()]
    out.frames["orders"] = pd.DataFrame([r | {"judge": n} for n, c in changes if c is not None for r in c.rows()])
    for name, change in changes:
        if change is None or change.note:
            reason = change.note if change is not None else "no prompt was answered in two orders"
            out.coverage.append(frames.coverage_row("warning", n=0, model=name, reason=reason))
    _filters(j, prompts, given, chances, out)
    if prompts.side is not None:
        rules = dict(chances)
        rules |= {f"{n}, plurality": aggregate(prompts, c, "plurality") for n, c in given.items() if _several(c)}
        if prompts.similarity is not None:
            rules["similarity"] = baseline(prompts, "similarity")
        out.frames["side_effects"] = side_effects(prompts, rules, seed=seed, draws=draws)
    else:
        out.lacking["side_effects"] = "the candidates have no side effect ratings"
    out.frames["shared_errors"] = _shared(prompts, given, j)
    _robust(j, prompts, given, chances, out)
    _cards(j, prompts, given, out)
    return out


def _robust(j: Judges, prompts: Prompts, given: dict, chances: dict, out: Decided) -> None:
    """One cluster left out, judges pooled, outputs of the own family."""
    out.frames["gain_without_one"] = robustness.gain_without_one(prompts, chances)
    position = out.frames["position"]
    out.frames["pooled_positions"] = robustness.pooled_positions(position) if len(position) else position
    out.lacking["pooled_positions"] = "fewer than two judges have an estimate of a slot"
    if "author" not in j.candidates or not j.params.families:
        out.lacking["own_family"] = "the candidates have no author, or the params no judges.families"
        return
    out.frames["own_family"] = robustness.own_family(prompts, given, j.candidates, j.params.families, seed=j.seed)
    out.lacking["own_family"] = "no judge has a family (judges.families)"


def _cards(j: Judges, prompts: Prompts, given: dict, out: Decided) -> None:
    """Validity cards, and earlier ones against them."""
    table = out.frames["filters"]
    out.lacking["cards"] = "there is no filter"
    out.lacking |= {"card_checks": "no earlier card is named (judges.cards)",
                    "same_judge": "no earlier choices are named (judges.earlier)"}  # fmt: skip
    cards = card_table(prompts, given, table, j.params.identity) if len(table) else table
    same = compared(prompts, given, j.earlier, seed=j.seed) if j.earlier is not None else {}
    out.frames |= {"cards": cards, "same_judge": same_table(same)}
    out.frames["card_checks"] = card_checks(j.params.cards, cards, same)


def _several(choices: Choices) -> bool:
    return bool((choices.order > 0).any())


def _all(tables: Any) -> pd.DataFrame:
    made = [t for t in tables if len(t)]
    return pd.concat(made, ignore_index=True) if made else pd.DataFrame()


def _choices(j: Judges, prompts: Prompts, out: Decided) -> tuple[dict[str, Choices], dict[str, np.ndarray]]:
    """Choices and chances of each judge; a judge with both paradigms stands twice."""
    table = j.calls.table[~is_perturbation(j.calls.table)]
    given, chances = {}, {}
    for judge in j.calls.judges:
        mine = table[table["judge"].eq(judge)]
        kinds = [p for p in ("best_of_n", "pairwise") if mine["paradigm"].eq(p).any()]
        for paradigm in kinds:
            choices = choices_of(mine, prompts, judge, paradigm)
            name = f"{judge} ({paradigm.replace('_', ' ')})" if len(kinds) > 1 else judge
            strangers = int(mine["paradigm"].eq(paradigm).sum()) - len(choices.prompt)
            if strangers:
                reason = "calls on prompts whose candidates have no ratings"
                out.coverage.append(frames.coverage_row("excluded", n=strangers, model=name, reason=reason))
            if not (choices.state != NONE).any():
                reason = "no call on a rated prompt holds a decision: left out of the decisions"
                out.coverage.append(frames.coverage_row("excluded", n=len(choices.prompt), model=name, reason=reason))
                continue
            given[name] = choices
            chances[name] = aggregate(prompts, choices, "borda" if paradigm == "pairwise" else "mean")
    return given, chances


def _value(j: Judges, prompts: Prompts, chances: dict[str, np.ndarray]) -> pd.DataFrame:
    rules = dict(chances)
    if prompts.similarity is not None:
        rules["similarity"] = baseline(prompts, "similarity")
    table = value_table(prompts, rules, seed=j.seed, draws=j.params.draws)
    if j.ratings is not None:
        top = noise_ceiling(prompts, j.ratings, rng=seeds.generator(j.seed, "judges", "ceiling"))
        if top is not None:
            row = {"judge": "half of the people", "quantity": "share", "estimate": top.share, "low": top.low,
                   "high": top.high, "n": top.prompts, "note": "what people reach for people"}  # fmt: skip
            table = pd.concat([table, pd.DataFrame([row])], ignore_index=True)
    return table


def _positions(prompts: Prompts, given: dict[str, Choices], seed: int) -> pd.DataFrame:
    rows = []
    for name, choices in given.items():
        fit = slots.position_fit(prompts, choices, seed=seed)
        if fit is not None:
            note = "a term predicts every choice: no finite estimate" if fit.separated else ""
            rows.append(fit.table.assign(judge=name, score_p=fit.score_p, calls=fit.calls, note=note))
    return _all(rows)


def _filters(j: Judges, prompts: Prompts, given: dict, chances: dict, out: Decided) -> None:
    """What each agreement filter does, its coverage curve, and whether the spread of ratings makes it."""
    tables, curves, tests, confounds = [], [], [], []
    for name, choices in given.items():
        rules = [filters.agreement_filter(prompts, choices, q) for q in j.params.quorum] if _several(choices) else []
        for other, weights in chances.items():
            if other != name:
                rules.append(filters.second_judge_filter(chances[name], weights, f"{other} agrees"))
        if not rules:
            continue
        made = filters.filter_table(prompts, chances[name], rules, epsilon=j.params.epsilon, seed=j.seed,
                                    draws=j.params.draws)  # fmt: skip
        tables.append(made.assign(judge=name))
        if not _several(choices):
            continue
        gain = per_prompt(prompts, chances[name])["gain"].to_numpy()
        share, orders = filters.order_agreement(prompts, choices)
        rng = seeds.generator(j.seed, "judges", "curve", name)
        curve = filters.coverage_curve(gain, np.where(orders > 1, share, np.nan), rng=rng, draws=j.params.draws)
        if curve is not None:
            curves.append(curve.table.assign(judge=name))
            tests.append({"judge": name, "area": curve.area, "random_area": curve.random_area, "p": curve.p,
                          "n": curve.prompts, "left_out": curve.left_out})  # fmt: skip
        # the first filter that keeps and drops enough to be compared
        rule = next((r for r in rules if min(r.keep.sum(), (~r.keep).sum()) >= filters.LEAST), None)
        if rule is not None:
            check = filter_checks.confound_check(prompts, chances[name], rule.keep, seed=j.seed, draws=j.params.draws)
            confounds.append(check.assign(judge=name, filter=rule.name))
    out.frames |= {"filters": _all(tables), "curves": _all(curves), "curve_tests": pd.DataFrame(tests),
                   "confounds": _all(confounds)}  # fmt: skip
    why = "no judge was asked in two orders, and there is no second judge"
    out.lacking |= dict.fromkeys(("filters", "curves", "curve_tests", "confounds"), why)
    if tables:
        out.lacking["confounds"] = f"no filter keeps and drops {filters.LEAST} prompts"


def _shared(prompts: Prompts, given: dict[str, Choices], j: Judges) -> pd.DataFrame:
    rows = []
    for a, b in combinations(given, 2):
        found = filter_checks.shared_errors(prompts, given[a], given[b], epsilon=j.params.epsilon, seed=j.seed)
        if found is not None:
            rows.append({"first": a, "second": b, "prompts": found.prompts, "agree_bad": found.test.observed,
                         "expected": found.test.mean, "excess": found.excess.value, "low": found.excess.interval.low,
                         "high": found.excess.interval.high, "p": found.test.upper,
                         "bad_among_agreed": found.bad_among_agreed})  # fmt: skip
    return pd.DataFrame(rows)
