"""Runs that the program made itself, put in the place of those that a pool's files hold."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import Runs, coverage_row, frame
from auditlib.params import BLIND_RUN, Params
from auditlib.paths import RunPaths
from auditlib.readers.own_runs import has_own, read_own

#: facts that own runs state beside other runs, so that contradictions are seen; the others' facts stand
_COMPARED = ("item", "run", "row", "key", "question")
#: facts of a run that stay in ``runs.json``
_TIMES = ("first", "last")


def with_own_runs(runs: Runs | None, params: Params, outputs: Path) -> Runs:
    """Runs of a pool with those of its blind-run stage.

    Parameters
    ----------
    runs : what the params' data hold; None where all runs are own.
    params : with an ``inference`` block.
    outputs : the outputs folder; own runs lie in ``<pool>/runs``.

    Returns
    -------
    Runs
        An own run replaces the data's run of that model and condition, verdicts included; a coverage row says so.

    Raises
    ------
    AuditError
        The stage has not run, or its files are damaged.
    """
    folder = RunPaths(outputs, params.pool).runs
    if not has_own(folder):
        name = params.source.name if params.source else "the params file"
        raise AuditError(
            f"the runs that the inference block describes have not been made for pool {params.pool}",
            file=params.source,
            mend=f"run notebook {BLIND_RUN} first ('auditlib run {name}' does)",
        )
    assert params.inference is not None
    own = read_own(folder, params.inference.prompt_mode)
    own = _without_models(own, params.audit.exclude_models)
    facts = {"toolkit": "auditlib", "prompt_mode": own.provenance["prompt_mode"]}
    if runs is None:
        return Runs(**vars(own) | {"inputs": (), "provenance": own.provenance | {"own_runs": facts}})
    mine = set(zip(own.responses["model"], own.responses["condition"]))
    rest, replaced = _without(runs, mine)
    rows = [_replaced(label, model, condition, n) for label, model, condition, n in replaced]
    known = set(rest.items["item"]) | set(rest.responses["item"])
    items, differ = _beside(own.items, rest.items, known)
    if differ:
        some = ", ".join(sorted(differ)[:5])
        reason = f"options as asked here differ from those of the other runs, which stand, for example item {some}"
        rows.append(coverage_row("conflict", n=len(differ), reason=reason))
    judges = {*rest.judgements.get("judge", pd.Series(dtype=str)).dropna(), *own.judgements.get("judge", ())}
    if len(own.judgements) and len(judges) > 1:
        reason = f"verdicts of own runs and of others come from different judges ({', '.join(sorted(judges))})"
        rows.append(coverage_row("warning", n=len(own.judgements), reason=reason))
    stated = {k: v for k, v in (rest.provenance.get("runs") or {}).items() if k not in {r[0] for r in replaced}}
    return Runs(
        items=pd.concat([rest.items, items], ignore_index=True),
        models=pd.concat([rest.models, own.models], ignore_index=True).drop_duplicates("model", ignore_index=True),
        responses=pd.concat([rest.responses, own.responses], ignore_index=True),
        judgements=_stacked(rest.judgements, own.judgements),
        coverage=pd.concat([rest.coverage, own.coverage, frame("coverage", rows)], ignore_index=True),
        dataset=rest.dataset,
        inputs=rest.inputs,
        provenance=dict(rest.provenance) | {"runs": stated | own.provenance["runs"], "own_runs": facts},
    )


def _without_models(own: Runs, excluded: list[str]) -> Runs:
    """Own runs without the models that the audit leaves out, and without times, which no two runs share."""
    responses = own.responses.drop(columns=["latency"], errors="ignore")
    made = {k: {n: v for n, v in f.items() if n not in _TIMES} for k, f in own.provenance["runs"].items()}
    own = Runs(**vars(own) | {"provenance": own.provenance | {"runs": made}})
    gone = responses["model"].isin(excluded)
    if not gone.any():
        return Runs(**vars(own) | {"responses": responses})
    reason = "left out by audit.exclude_models"
    rows = [
        coverage_row("excluded", n=n, model=m, reason=reason)
        for m, n in responses.loc[gone, "model"].value_counts().items()
    ]
    runs = set(responses.loc[gone, "run"])
    kept = {
        name: table[~table["run"].isin(runs)].reset_index(drop=True)
        for name, table in (("items", own.items), ("judgements", own.judgements), ("coverage", own.coverage))
    }
    kept["coverage"] = pd.concat([kept["coverage"], frame("coverage", rows)], ignore_index=True)
    models = own.models[~own.models["model"].isin(excluded)].reset_index(drop=True)
    facts = {k: v for k, v in own.provenance["runs"].items() if k not in runs}
    return Runs(
        **vars(own)
        | kept
        | {"responses": responses[~gone].reset_index(drop=True), "models": models,
           "provenance": own.provenance | {"runs": facts}}
    )  # fmt: skip


def _without(runs: Runs, mine: set[tuple[str, str]]) -> tuple[Runs, list[tuple[str, str, str, int]]]:
    """Runs without those of some models and conditions, and label, model, condition and rows of each that is gone."""

    def of_mine(table: pd.DataFrame) -> pd.Series:
        pairs = zip(table["model"], table["condition"])
        return pd.Series([pair in mine for pair in pairs], index=table.index, dtype=bool)

    gone = of_mine(runs.responses)
    parts = runs.responses[gone].groupby(["run", "model", "condition"], sort=True)
    replaced = [(str(run), model, condition, len(part)) for (run, model, condition), part in parts]
    labels = {r[0] for r in replaced} - set(runs.responses.loc[~gone, "run"])
    judgements, coverage = runs.judgements, runs.coverage
    if len(judgements):
        judgements = judgements[~of_mine(judgements)].reset_index(drop=True)
    if len(coverage):
        coverage = coverage[~(coverage["run"].isin(labels) | of_mine(coverage))].reset_index(drop=True)
    rest = Runs(
        **vars(runs)
        | {"items": runs.items[~runs.items["run"].isin(labels)].reset_index(drop=True),
           "responses": runs.responses[~gone].reset_index(drop=True), "judgements": judgements, "coverage": coverage}
    )  # fmt: skip
    return rest, replaced


def _replaced(label: str, model: str, condition: str, n: int) -> dict:
    reason = "replies of the files; the run made here stands in their place"
    return coverage_row("excluded", n=n, run=label, model=model, condition=condition, reason=reason)


def _beside(own: pd.DataFrame, rest: pd.DataFrame, known: set[str]) -> tuple[pd.DataFrame, set[str]]:
    """Item facts of own runs beside others', and the items whose options differ."""
    own = own.drop(columns=["hint"], errors="ignore")
    here = own["item"].isin(known)
    differ: set[str] = set()
    if "options" in rest and "options" in own:
        theirs = {i: _shown(o) for i, o in zip(rest["item"], rest["options"]) if _shown(o)}
        asked = own[here].drop_duplicates("item")
        differ = {i for i, o in zip(asked["item"], asked["options"]) if theirs.get(i, _shown(o)) != _shown(o)}
        lacking = here & ~own["item"].isin(theirs)
    else:
        lacking = here
    compared = own[here & ~lacking]
    compared = compared[[c for c in _COMPARED if c in compared]]
    return pd.concat([own[~here | lacking], compared], ignore_index=True), differ


def _shown(options: object) -> tuple[str, ...]:
    """Options up to the last with a text."""
    texts = [str(o) for o in options] if isinstance(options, list | tuple) else []
    while texts and not texts[-1]:
        texts.pop()
    return tuple(texts)


def _stacked(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    filled = [t for t in (first, second) if len(t)]
    return pd.concat(filled, ignore_index=True) if filled else first
