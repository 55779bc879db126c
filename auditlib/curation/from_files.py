"""Tables of labelled wrong answers and of runs at several effort levels, where the params name such files."""

from __future__ import annotations

import pandas as pd

from auditlib import frames
from auditlib.curation.effort import effort_changes, read_effort
from auditlib.curation.error_labels import read_error_labels, wrong_answers, wrong_population
from auditlib.curation.errors import error_classes
from auditlib.curation.study import Curation
from auditlib.errors import AuditError


def error_tables(c: Curation) -> dict[str, pd.DataFrame]:
    """``errors`` (shares of the classes by model and capability) and ``errors_agreement`` (of the labellers).

    Raises
    ------
    AuditError
        A damaged file, a model that the pool lacks, a label of an answer that is not wrong.

    Notes
    -----
    Where the file names the model, its labels are weighted back to all its wrong answers, capability by capability.
    """
    path = c.params.labelled_errors
    if path is None:
        return {}
    labels = read_error_labels(path, [*c.pool.items["item"].astype(str), *c.source.beyond])
    kept = ~labels["item"].isin(c.source.beyond)
    gone = _beyond(int((~kept).sum()), path.name, "labels")
    labels = labels[kept].reset_index(drop=True)
    if not len(labels):
        return {"labelled_coverage": gone}
    if "model" not in labels:
        labels["model"] = ""
    shares, agreement = [], []
    for model, part in labels.groupby("model", sort=False):
        found = error_classes(part.drop(columns="model"), _sample(c, str(model), part),
                              rng=c.source.rng("curation", "errors", str(model)))  # fmt: skip
        shares.append(found.table.assign(model=model, method=found.method, conflicts=found.conflicts))
        agreement.append(found.kappa.assign(model=model))
    out = {"errors": pd.concat(shares, ignore_index=True), "errors_agreement": pd.concat(agreement, ignore_index=True)}
    out = {k: v[["model", *(x for x in v if x != "model")]] for k, v in out.items()}
    return out | ({"labelled_coverage": gone} if len(gone) else {})


def _beyond(n: int, file: str, what: str) -> pd.DataFrame:
    """A coverage row about rows on items that a quick look leaves out; empty for none."""
    reason = f"{what} of items beyond the limit of this quick look"
    return frames.frame("coverage", [frames.coverage_row("excluded", n=n, run=file, reason=reason)] if n else [])


def _sample(c: Curation, model: str, labels: pd.DataFrame) -> pd.DataFrame | None:
    """The labelled answers with their capability and its number of wrong answers; None where no model is named."""
    if not model:
        return None
    wrong = wrong_answers(c.pool, model)
    drawn = labels[["item", "draw"]].drop_duplicates().reset_index(drop=True)
    over = drawn["draw"] > drawn["item"].map(wrong).fillna(0)
    if over.any():
        r = drawn[over].iloc[0]
        raise AuditError(f"{model} has {wrong.get(r['item'], 0)} wrong answers to item {r['item']!r}, but draw "
                         f"{r['draw']} is labelled", file=c.params.labelled_errors,
                         mend="label wrong answers only, numbered from 1 within an item")  # fmt: skip
    if c.pool.capability is None:
        drawn["capability"] = "all"
    else:
        drawn["capability"] = drawn["item"].map(dict(zip(c.pool.items["item"], c.pool.capability))).astype(str)
    size = wrong_population(c.pool, model).set_index("capability")["wrong"]
    return drawn.assign(population=drawn["capability"].map(size))


def effort_tables(c: Curation) -> dict[str, pd.DataFrame]:
    """``effort``, ``effort_models``, ``effort_tokens``, ``effort_unpaired``: see :class:`.effort.Effort`.

    Raises
    ------
    AuditError
        A damaged file, or levels that no model shares.
    """
    path = c.params.effort
    if path is None:
        return {}
    runs = read_effort(path)
    kept = ~runs["item"].isin(c.source.beyond)
    gone = _beyond(int((~kept).sum()), path.name, "runs at several levels of effort")
    runs = runs[kept].reset_index(drop=True)
    if not len(runs):
        return {"effort_coverage": gone}
    known = None
    if "capability" not in runs and c.pool.capability is not None:
        known = dict(zip(c.pool.items["item"].astype(str), c.pool.capability.astype(str)))
        lost = sorted(set(runs["item"]) - set(known))
        if lost:
            raise AuditError(f"item {lost[0]!r} is none of the pool's, so its capability is unknown", file=path,
                             mend="give the file a column capability, or the ids of the pool")  # fmt: skip
    found = effort_changes(runs, capability=known)
    return {"effort": found.changes, "effort_models": found.models, "effort_tokens": found.tokens,
            "effort_unpaired": found.unpaired, **({"effort_coverage": gone} if len(gone) else {})}  # fmt: skip
