"""Judges of a pool from its params: calls from files, people's ratings, the sheet of planted changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.judges.calls import Calls, calls_frame
from auditlib.judges.readers import read_candidates, read_choices, read_pairs, read_ratings, read_scores
from auditlib.judges.sheet import checked, read_sheet
from auditlib.params.judges import ExtractionParams, JudgeFiles, JudgesParams, PairFiles, ScoreFiles
from auditlib.pool import Pool


@dataclass(frozen=True)
class Judges:
    """A study under way.

    Attributes
    ----------
    source : the pool as read. calls : of all files. candidates : what people say of the outputs; None where unknown.
    ratings : single people's. sheet : of planted changes. extraction : readings of the extraction judge beside
    people's, see :func:`~auditlib.judges.extraction_judge.joined_readings`.
    earlier : choices on which earlier validity cards rest.
    """

    source: Pool
    params: JudgesParams
    calls: Calls
    candidates: pd.DataFrame | None = None
    ratings: pd.DataFrame | None = None
    sheet: pd.DataFrame | None = None
    extraction: pd.DataFrame | None = None
    earlier: pd.DataFrame | None = None

    @property
    def seed(self) -> int:
        return self.source.seed


def read(pool: Pool, outputs: str | Path) -> Judges:
    """Calls of the params' files, or those of the invented judges.

    Parameters
    ----------
    outputs : the outputs folder, where files of invented judges are laid out.

    Raises
    ------
    AuditError
        The pool has no judges block; damaged files.
    """
    given = pool.params.judges if pool.params else None
    if given is None:
        raise AuditError("the params name no judges", mend="give a judges block with scores, pairs or choices")
    params = _synthetic(pool, outputs) if given.synthetic else given
    parts: list[Calls] = []
    for block, paradigm in ((params.scores, "single"), (params.references, "reference")):
        for file in block.files if block else ():
            parts.append(read_scores(file, block.columns, judges=block.judges or None, judge=block.judge,
                                     paradigm=paradigm, sentinels=block.sentinels, scale=block.scale))  # fmt: skip
    for file in params.pairs.files if params.pairs else ():
        block = params.pairs
        parts.append(read_pairs(file, block.columns, judge=block.judge, verdicts=block.verdicts or None))
    for file in params.choices.files if params.choices else ():
        parts.append(read_choices(file, params.choices.columns, judge=params.choices.judge))
    calls = _joined([_of_items(part, pool) for part in parts])
    candidates = read_candidates(params.candidates, params.candidate_columns) if params.candidates else None
    ratings = read_ratings(params.ratings, params.rating_columns) if params.ratings else None
    old = [read_choices(f, params.earlier.columns, judge=params.earlier.judge).table
           for f in (params.earlier.files if params.earlier else ())]  # fmt: skip
    here = Judges(pool, params, calls, candidates, ratings, earlier=pd.concat(old) if old else None)
    if params.perturbations is None:
        return here
    sheet = read_sheet(params.perturbations)
    table, rows = checked(calls.table, sheet)
    coverage = pd.concat([calls.coverage, frames.frame("coverage", rows)], ignore_index=True)
    return replace(here, sheet=sheet, calls=Calls(table, coverage, calls.inputs))


def _synthetic(pool: Pool, outputs: str | Path) -> JudgesParams:
    """The block with the files of the invented judges."""
    from auditlib.synth.judge_files import FAMILIES, judge_files

    items = pool.params.data.embedded if pool.params else None
    made = judge_files(outputs, pool.items["item"].astype(str).tolist()[:100] if items else ["item"])
    return pool.params.judges.model_copy(update={
        "scores": ScoreFiles(files=[made["scores"]]),
        "pairs": PairFiles(files=[made["pairs"]]),
        "choices": JudgeFiles(files=[made["choices"]]),
        "candidates": made["candidates"], "ratings": made["ratings"], "perturbations": made["perturbations"],
        "families": FAMILIES, "extraction": ExtractionParams(truth=made["readings"]),
    })  # fmt: skip


def _joined(parts: list[Calls]) -> Calls:
    if not parts:
        return Calls(calls_frame([]))
    return Calls(
        pd.concat([p.table for p in parts], ignore_index=True),
        pd.concat([p.coverage for p in parts], ignore_index=True),
        tuple(f for p in parts for f in p.inputs),
    )


def _of_items(calls: Calls, pool: Pool) -> Calls:
    """Calls on the pool's items, so that a look at the first ones is one; all where a file shares none with it.

    Either is stated.
    """
    ours = calls.table["cluster"].isin(pool.items["item"].astype(str))
    if ours.all():
        return calls
    run = ", ".join(p.name for p in calls.inputs)
    what, n, reason = (
        ("excluded", int((~ours).sum()), "calls on items that are not in the pool")
        if ours.any()
        else ("read", len(ours), "calls on prompts of their own, none of them an item of the pool: all are kept")
    )
    said = frames.frame("coverage", [frames.coverage_row(what, n=n, run=run, reason=reason)])
    coverage = pd.concat([calls.coverage, said], ignore_index=True)
    return Calls(calls.table[ours].reset_index(drop=True) if ours.any() else calls.table, coverage, calls.inputs)


def facts_of(j: Judges) -> dict[str, Any]:
    """Counts of the calls, JSON-able."""
    table = j.calls.table
    return {"calls": len(table), "judges": j.calls.judges, "instances": int(table["instance"].nunique()),
            "paradigms": sorted(table["paradigm"].unique().tolist()), "files": [p.name for p in j.calls.inputs],
            "answered": float(table["state"].isin(("chosen", "scored", "tie")).mean()) if len(table) else None,
            "synthetic": j.params.synthetic, "epsilon": j.params.epsilon}  # fmt: skip
