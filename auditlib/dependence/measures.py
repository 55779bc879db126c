"""What a diagnosis of modality dependence shows: the frames and facts that its study leaves on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib.dependence import held_out
from auditlib.dependence.item_tables import (
    COORDINATES,
    STABLE,
    UNCERTAIN,
    composition,
    findings,
    frozen_items,
    item_table,
    moved,
    order,
    zero_gain,
)
from auditlib.dependence.profile import CONDITIONS, LABELS, marginals
from auditlib.dependence.study import UNKNOWN, Dependence, partial
from auditlib.errors import AuditError
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from auditlib.dependence.annotation import Annotation


def measure(d: Dependence, people: Annotation | None = None) -> Result:
    """Every table of a diagnosis, as :class:`~auditlib.studies.results.Result` ``dependence``.

    Parameters
    ----------
    people : labels of readers, against which the methods are then scored.

    Notes
    -----
    With fewer than the four conditions nothing is fitted: the result holds raw accuracies, and facts that say what
    cannot be identified. What else a pool cannot support is left out, and ``facts["lacking"]`` says why.
    """
    lacking: dict[str, str] = {}
    if d.responses is None or d.diagnosis is None:
        table = partial(d)
        why = f"the pool has no run under {', '.join(d.missing)}"
        names = ("items", "composition", "moved", "uncertain", "thresholds", "abilities", "zero_gain", "order",
                 "frozen", "subset", "margins", "newcomers")  # fmt: skip
        facts = _facts(d, dict.fromkeys(names, why)) | {"unknown": {c: UNKNOWN[c] for c in d.missing},
                                                        "partial": _partial_facts(table)}  # fmt: skip
        said = {} if people is None else {"people": people.table, "people_agreement": people.agreement}
        return Result("dependence", {"partial": table, **said}, facts)
    made: dict[str, pd.DataFrame] = {"items": item_table(d)}

    def add(name: str, make: Callable[[], pd.DataFrame]) -> None:
        try:
            made[name] = make()
        except AuditError as why:
            lacking[name] = str(why)

    items = made["items"]
    made |= {"composition": composition(items), "moved": moved(items), "thresholds": _thresholds(d),
             "abilities": _abilities(d), "order": order(d), "frozen": frozen_items(d)}  # fmt: skip
    uncertain = items[items["stability"].lt(UNCERTAIN) & ~items["undetermined"]]
    made["uncertain"] = uncertain.sort_values("stability", kind="stable").reset_index(drop=True)
    add("zero_gain", lambda: zero_gain(d, items))
    add("subset", lambda: held_out.subset_curve(d))
    try:
        made["margins"], made["newcomers"] = held_out.families_left_out(d)
    except AuditError as why:
        lacking |= {"margins": str(why), "newcomers": str(why)}
    if people is not None:
        made |= {"people": people.table, "people_agreement": people.agreement}
        try:
            made["people_scores"], made["people_compared"] = _against_people(d, people, items)
        except AuditError as why:
            lacking["people_scores"] = str(why)
    made["findings"] = findings(items)
    return Result("dependence", {k: v for k, v in made.items() if len(v)}, _facts(d, lacking))


def _thresholds(d: Dependence) -> pd.DataFrame:
    g = d.diagnosis
    assert g is not None
    seen = ~g.undetermined
    suffices = marginals(g.profile)
    return pd.DataFrame({"view": ["image", "question"], "threshold": g.thresholds, "start": 0.5,
                         "sufficient": [float((suffices[seen, j] > 0.5).mean()) if seen.any() else np.nan
                                        for j in range(2)]})  # fmt: skip


def _abilities(d: Dependence) -> pd.DataFrame:
    g, r = d.diagnosis, d.responses
    assert g is not None and r is not None
    out = pd.DataFrame({"model": list(r.subjects), "family": list(r.families)})
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = r.hits.sum(1) / r.trials.sum(1)
    for j, c in enumerate(CONDITIONS):
        out[c] = rate[:, j]
    for j, c in enumerate(COORDINATES):
        out[f"ability_{c}"] = g.theta[:, j]
    return out


def _against_people(d: Dependence, people: Annotation, items: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    from auditlib.dependence.annotation import methods_of, score_methods

    return score_methods(people.table, methods_of(items), rng=d.source.rng("dependence", "people"))


def _partial_facts(table: pd.DataFrame) -> dict[str, Any]:
    out: dict[str, Any] = {c: float(table[c].mean()) for c in CONDITIONS if c in table}
    for c in ("image_only", "blind"):
        if (name := f"sufficiency_{c}") in table:
            known = table[name].dropna()
            out[name] = {"items": len(known), "sufficient": int((known >= 0.5).sum())}
    return out


def _facts(d: Dependence, lacking: dict[str, str]) -> dict[str, Any]:
    g, r = d.diagnosis, d.responses
    out: dict[str, Any] = {
        "items": len(d.pool.items), "left_out": dict(d.left_out or {}), "missing": list(d.missing),
        "models": d.source.model_names if r is None else list(r.subjects), "lacking": lacking,
        "prior": dict(d.prior_facts or {}), "settings": _plain(d.params),
    }  # fmt: skip
    if g is None:
        return out
    seen = ~g.undetermined
    out |= {
        "method": g.method, "blend": float(g.blend), "converged": g.converged, "iterations": g.iterations,
        "undetermined": int(g.undetermined.sum()),
        "labels": {z: int(((g.labels == z) & seen).sum()) for z in LABELS},
        "draws": 0 if d.stability is None else d.stability.draws,
        "uncertain": 0 if d.stability is None else int(((d.stability.label < UNCERTAIN) & seen).sum()),
        "stable": 0 if d.stability is None else int(((d.stability.label >= STABLE) & seen).sum()),
        "levels": [UNCERTAIN, STABLE],
    }  # fmt: skip
    return out


def _plain(params: Any) -> dict[str, Any]:
    """Settings as plain values; of files only the names, so that no machine path is kept."""
    from pathlib import Path

    def said(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: said(v) for k, v in value.items()}
        if isinstance(value, list):
            return [said(v) for v in value]
        return value.name if isinstance(value, Path) else value

    return said(params.model_dump(mode="python"))
