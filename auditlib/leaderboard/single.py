"""One model of a pool by itself: its column of every array, and what was said while it was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import parsed
from auditlib.parsed import ParsedCache
from auditlib.pool import Pool

if TYPE_CHECKING:
    from auditlib.params import Params
    from auditlib.readers.runfile import RunFile

#: arrays of a pool beside those of its arms
GROUPS = ("letters", "refused", "failed", "abstained")


@dataclass(frozen=True)
class Single:
    """A model's numbers.

    ``items`` is the frame of its items (shared by models with the same facts, see ``facts``); ``columns`` has one
    column for each array, ``letters|full``, ``exact|hits|blind`` and so on; ``units`` are those of the arms.
    ``runs`` holds what :func:`auditlib.readers.vlmevalkit_runs.run_digest` tells of each run, and ``held`` its items
    where they are not all.
    """

    model: str
    facts: str
    items: pd.DataFrame
    columns: pd.DataFrame
    units: dict[str, int]
    coverage: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    held: dict[str, list[str]]
    provenance: dict[str, Any]
    about: dict[str, Any]
    inputs: tuple[Path, ...] = field(default=())

    @property
    def names_letters(self) -> bool:
        """Whether any of its replies names an option letter."""
        letters = [c for c in self.columns.columns if c.startswith("letters|")]
        return bool((self.columns[letters] >= 0).any(axis=None))


def single_of(
    model: str, files: Sequence[RunFile], params: Params, judge: str | None, known: dict[str, Any],
    memo: dict[Any, Any], frames: dict[str, pd.DataFrame],
) -> Single | None:  # fmt: skip
    """Read one model's runs of a pool in the ordinary way and keep the numbers; None where it has none.

    Raises
    ------
    AuditError
        As reading the whole pool would, or because this model says too little by itself.
    """
    from auditlib.readers import runs_with_items
    from auditlib.readers.layout import RUNS
    from auditlib.readers.vlmevalkit import read_vlmevalkit
    from auditlib.readers.vlmevalkit_runs import run_digest
    from auditlib.reading import pool_of

    data = params.data
    if not any(f.kind in RUNS for f in files):
        return None
    runs = read_vlmevalkit(
        data.folder, params.benchmark, blind_folder=data.blind_folder, judge=judge, dataset=data.dataset,
        blind_benchmark=data.blind_benchmark, where=data.where, found=list(files), known=known,
    )  # fmt: skip
    runs = runs_with_items(runs, data)
    audit = params.audit.model_copy(update={"exclude_models": [], "design": None})
    pool = pool_of(runs, params.model_copy(update={"models": [], "audit": audit}), memo=memo, part=True)
    parts = [part for _, part in runs.responses.groupby(["model", "condition"], sort=False)]
    everything = len(pool.items)
    held = {p["condition"].iloc[0]: p["item"].tolist() for p in parts if len(p) < everything}
    items = pool.items
    facts = facts_key(items)
    return Single(model, facts, frames.setdefault(facts, items), _columns(pool),
                  {n: a.unit for n, a in pool.arms.items()}, pool.coverage.to_dict("records"),
                  [run_digest(p) for p in parts], held, dict(pool.provenance), _known_of(pool.models),
                  pool.inputs)  # fmt: skip


def facts_key(items: pd.DataFrame) -> str:
    """Hash of item facts, all columns."""
    return parsed.key_of("facts", {str(c): parsed.digest([_text(items[c])]) for c in items.columns})


def _text(column: pd.Series) -> pd.Series:
    return column if column.dtype == "str" else pd.Series([repr(v) for v in column.tolist()], dtype="str")


def _known_of(models: pd.DataFrame) -> dict[str, Any]:
    return {c: models[c].iloc[0] for c in models.columns if c != "model" and pd.notna(models[c].iloc[0])}


def _columns(pool: Pool) -> pd.DataFrame:
    columns = {f"{g}|{c}": a[:, 0] for g in GROUPS for c, a in getattr(pool, g).items()}
    for name, arm in pool.arms.items():
        for kind, arrays in (("hits", arm.hits), ("trials", arm.trials or {})):
            columns |= {f"{name}|{kind}|{c}": a[:, 0] for c, a in arrays.items()}
    return pd.DataFrame({k: np.ascontiguousarray(v) for k, v in columns.items()})


def load_single(
    cache: ParsedCache, key: str, files: Sequence[RunFile], frames: dict[str, pd.DataFrame]
) -> Single | None:
    """A model that was kept; None where there is none, or its facts are gone."""
    found = parsed.load(cache, key)
    if found is None:
        return None
    tables, about = found
    facts = about["facts"]
    if facts not in frames:
        known = parsed.load(cache, facts)
        if known is None:
            return None
        frames[facts] = known[0]["items"]
    if len(frames[facts]) != len(tables["columns"]):
        return None
    inputs = tuple(files[i].path for i in about.pop("inputs"))
    return Single(items=frames[facts], columns=tables["columns"], inputs=inputs, **about)


def keep_single(cache: ParsedCache, key: str, files: Sequence[RunFile], one: Single) -> None:
    """Keep a model's numbers."""
    place = {f.path: i for i, f in enumerate(files)}
    about = {n: getattr(one, n) for n in ("model", "facts", "units", "coverage", "runs", "held", "provenance", "about")}
    about["inputs"] = [place[p] for p in one.inputs if p in place]
    if not parsed.exists(cache, one.facts) and not parsed.store(cache, one.facts, {"items": one.items}, {}):
        return
    parsed.store(cache, key, {"columns": one.columns}, about)
