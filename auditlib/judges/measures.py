"""All that a study of judges measures, as frames and facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.judges import decided, pairs, reliability, reliability_tests, robustness
from auditlib.judges.calls import answer_states
from auditlib.judges.extraction_study import extraction_frames
from auditlib.judges.outcomes import is_perturbation, outcomes, repeated
from auditlib.judges.people import against_people
from auditlib.judges.study import Judges, facts_of
from auditlib.studies.results import Result

#: as many judges must agree before an item is listed, and as many planted faults must be on it
LEAST_JUDGES, LEAST_FAULTS = 2, 3


def measure(j: Judges) -> Result:
    """Reliability under planted damage, and decisions against people, whatever the calls support.

    Notes
    -----
    What the calls cannot support is left out, and ``facts["lacking"]`` says why.

    Raises
    ------
    AuditError
        Calls that contradict what people rated.
    """
    lacking: dict[str, str] = {}
    out: dict[str, pd.DataFrame] = {}
    coverage: list[dict[str, Any]] = []

    def add(name: str, make: Callable[[], pd.DataFrame], why: str) -> None:
        table = make()
        if len(table):
            out[name] = table
        else:
            lacking[name] = why

    add("states", lambda: answer_states(j.calls.table, ("judge", "paradigm")) if len(j.calls.table) else pd.DataFrame(),
        "there are no calls of judges")  # fmt: skip
    _reliability(j, add, coverage, lacking)
    _decisions(j, add, coverage, lacking)
    others = j.calls.table[~is_perturbation(j.calls.table)]
    two = others[others["paradigm"].eq("pairwise")]
    add("consistency", lambda: _by_judge(two, pairs.order_consistency, j.seed), "no two candidates were compared")
    add("preference", lambda: _by_judge(two, pairs.slot_preference, j.seed), "no two candidates were compared")
    if j.candidates is not None:
        add("people", lambda: against_people(others, j.candidates, seed=j.seed, draws=j.params.draws),
            "no score is of an output that people rated")  # fmt: skip
    else:
        lacking["people"] = "people's ratings are not named (judges.candidates)"
    if j.extraction is not None:
        for name, table in extraction_frames(j.extraction, j.seed).items():
            add(name, lambda table=table: table, "the judge's readings are not there")
    else:
        lacking |= dict.fromkeys(("extraction_accuracy", "extraction_leniency", "extraction_changes"),
                                 "people's readings of replies are not named (judges.extraction)")  # fmt: skip
    _without_one(out, lacking)
    every = pd.concat([j.calls.coverage, frames.frame("coverage", coverage)], ignore_index=True)
    out["coverage"] = every
    return Result("judges", {k: v for k, v in out.items() if len(v)}, facts_of(j) | {"lacking": lacking})


def _without_one(out: dict[str, pd.DataFrame], lacking: dict[str, str]) -> None:
    """Damage and decisions with one cluster left out, as one frame."""
    parts = [out.pop(n) for n in ("damage_without_one", "gain_without_one") if n in out]
    for name in ("damage_without_one", "gain_without_one"):
        lacking.pop(name, None)
    if parts:
        out["without_one"] = pd.concat(parts, ignore_index=True)
    else:
        lacking["without_one"] = "no result rests on images or prompts that could be left out"


def _by_judge(calls: pd.DataFrame, function: Callable, seed: int) -> pd.DataFrame:
    made = [function(part, seed=seed).assign(judge=name) for name, part in calls.groupby("judge", sort=False)]
    made = [m for m in made if len(m)]
    return pd.concat(made, ignore_index=True) if made else pd.DataFrame()


def _reliability(j: Judges, add: Callable, coverage: list, lacking: dict[str, str]) -> None:
    draws, seed = j.params.draws, j.seed
    table, lost = outcomes(j.calls.table)
    coverage += lost
    why = "no call is on a planted change (candidates gold and perturbed)"
    if not len(table):
        lacking.update(
            dict.fromkeys(
                ("overall", "dimensions", "outcomes", "repeats", "images", "lengths", "own_gold", "settings"), why
            )
        )
        return
    again = repeated(j.calls.table)
    kinds = table.groupby(["judge", "paradigm", "style", "image", "effect"], sort=False)["outcome"].value_counts()
    add("outcomes", lambda: kinds.rename("n").reset_index(), why)
    add("overall", lambda: reliability.overall_table(table, again, seed=seed, draws=draws), why)
    add("dimensions", lambda: reliability.dimension_table(table, seed=seed, draws=draws), why)
    add("repeats", lambda: again, "no gold output was scored twice: how often a strict inequality fires by chance is "
        "not known")  # fmt: skip
    add("images", lambda: reliability_tests.image_use(table, seed=seed, draws=draws),
        "no change was judged with and without the image")  # fmt: skip
    lengths = j.sheet if j.sheet is not None and j.sheet["longer"].notna().any() else None
    add(
        "lengths",
        lambda: (
            pd.DataFrame()
            if lengths is None
            else reliability_tests.length_control(table, lengths, seed=seed, draws=draws)
        ),
        "lengths of the outputs are not known",
    )
    add("damage_without_one", lambda: robustness.damage_without_one(table), why)
    by = j.sheet if j.sheet is not None and "author" in j.sheet else None
    add("own_gold", lambda: pd.DataFrame() if by is None else robustness.own_gold(table, by, j.params.families,
                                                                                  seed=seed),
        "authors of the gold outputs (column author of the sheet) or judges.families are not known")  # fmt: skip
    add("settings", lambda: reliability_tests.setting_contrasts(table, seed=seed, draws=draws),
        "no instance was judged in two ways or by two judges")  # fmt: skip
    add("findings", lambda: missed_items(table, set(j.source.items["item"].astype(str))),
        "no item's planted faults pass all judges")  # fmt: skip


def _decisions(j: Judges, add: Callable, coverage: list, lacking: dict[str, str]) -> None:
    names = ("value", "contrasts", "slots", "orders", "filters", "curves", "curve_tests", "confounds", "side_effects",
             "shared_errors", "position", "pooled_positions", "gain_without_one", "own_family", "cards", "card_checks",
             "same_judge")  # fmt: skip
    several = j.calls.table["paradigm"].isin(("best_of_n", "pairwise")) & ~is_perturbation(j.calls.table)
    if j.candidates is None or not several.any():
        why = "no judge chose among candidates" if not several.any() else "people's ratings are not named"
        lacking.update(dict.fromkeys(names, why))
        return
    try:
        found = decided.decisions(j)
    except AuditError as e:
        if "no prompt has two candidates" not in str(e):
            raise
        lacking.update(dict.fromkeys(names, str(e)))
        return
    coverage += found.coverage
    for name in names:
        add(
            name,
            lambda name=name: found.frames.get(name, pd.DataFrame()),
            found.lacking.get(name, "nothing to compare"),
        )


def missed_items(table: pd.DataFrame, items: set[str]) -> pd.DataFrame:
    """Findings rows (detector ``judges``): items on whose answers planted faults pass the judges unnoticed.

    Returns
    -------
    DataFrame
        ``low``: at least three degrading changes of the item's answer were judged with the image by two judges or
        more, and most pairs of change and judge are missed. The score is the share missed.
    """
    from auditlib.judges.reliability import counted

    here = counted(table)
    here = here[here["effect"].eq("degrade") & here["image"].isin(("", "shown", "none")) & here["cluster"].isin(items)]
    rows = []
    for item, part in here.groupby("cluster", sort=False):
        judges, faults = part["judge"].nunique(), part["instance"].nunique()
        missed = 1 - float(part["hit"].mean())
        if judges < LEAST_JUDGES or faults < LEAST_FAULTS or missed <= 0.5:
            continue
        words = (f"{int((1 - part['hit']).sum())} of {len(part)} judgements miss the fault planted in an answer to "
                 f"this item ({judges} judges, {faults} faults)")  # fmt: skip
        rows.append({"item": item, "detector": "judges", "arm": "", "score": missed, "flag": True, "severity": "low",
                     "message": words, "evidence": frames.evidence(judges=judges, faults=faults,
                                                                   judgements=len(part))})  # fmt: skip
    return frames.frame("findings", rows)
