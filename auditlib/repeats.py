"""Repeats of a run that are copies: a seeded run asked twice is no second draw."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from auditlib.frames import Runs, coverage_row, frame

#: items that a run needs before equal repeats say anything
ENOUGH = 10


def without_copied_repeats(runs: Runs) -> Runs:
    """Keep the first draw of each model and condition whose draws are equal, word for word, on every item.

    What is left out is a row of the coverage table. A run with one differing reply keeps all its draws.
    """
    r = runs.responses
    if "sample" not in r or not len(r) or r["sample"].nunique() < 2:
        return runs
    rows, dropped = [], []
    for (model, condition), part in r.groupby(["model", "condition"], sort=True):
        draws = part["sample"].nunique()
        if draws < 2 or part["item"].nunique() < ENOUGH:
            continue
        if part.groupby("item")["prediction"].nunique().max() > 1 or part.groupby("item").size().max() < 2:
            continue
        copies = part[part["item"].duplicated() & part["sample"].ne(part.groupby("item")["sample"].transform("min"))]
        reason = f"the {draws} draws are equal word for word (a seeded repeat): one is counted"
        label = str(part["run"].iloc[0]) if "run" in part else ""
        rows.append(coverage_row("excluded", n=len(copies), run=label, model=model, condition=condition, reason=reason))
        dropped.append(copies[["item", "model", "condition", "sample"]])
    if not rows:
        return runs
    cell = ["item", "model", "condition", "sample"]
    gone = pd.MultiIndex.from_frame(pd.concat(dropped))
    keep = ~pd.MultiIndex.from_frame(r[cell]).isin(gone)
    judgements = runs.judgements
    if len(judgements) and "sample" in judgements:
        judgements = judgements[~pd.MultiIndex.from_frame(judgements[cell]).isin(gone)]
    return replace(
        runs,
        responses=r[keep].reset_index(drop=True),
        judgements=judgements.reset_index(drop=True),
        coverage=pd.concat([runs.coverage, frame("coverage", rows)], ignore_index=True),
    )
