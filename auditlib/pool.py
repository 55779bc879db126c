"""A pool: one benchmark and a set of models, as integer arrays beside small frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import ABSTAINED, MISSING, frame
from auditlib.params import AuditParams, Params

#: arms in the order in which a headline prefers them
ARM_ORDER = ("judged", "exact", "exact_yesno", "exact_open")


@dataclass(frozen=True)
class Arm:
    """Correctness under one way of scoring: integer counts per condition.

    ``hits[c]`` and ``trials[c]`` have shape (items, models): correct draws and scored draws. A cell without a scored
    draw has ``trials`` 0. ``trials`` is None when every cell holds exactly one draw. Graded verdicts are counted in
    parts of a draw: ``unit`` is their common denominator, a draw adds ``unit`` to ``trials`` and its numerator to
    ``hits``.
    """

    name: str
    hits: dict[str, np.ndarray]
    trials: dict[str, np.ndarray] | None = None
    unit: int = 1

    def observed(self, condition: str) -> np.ndarray | None:
        """Boolean (items, models): cells with a scored draw; None when all have one."""
        return None if self.trials is None else self.trials[condition] > 0

    def scored_models(self, condition: str) -> np.ndarray:
        """Boolean (models,): models with any scored draw in a condition."""
        if condition not in self.hits:
            return np.zeros(next(iter(self.hits.values())).shape[1], bool)
        seen = self.observed(condition)
        return np.ones(self.hits[condition].shape[1], bool) if seen is None else seen.any(axis=0)


def _zero_one(hits: np.ndarray) -> bool:
    """Whether an array holds 0 and 1 only, checked in blocks so that a million rows need no second copy."""
    blocks = (hits[i : i + 65_536] for i in range(0, len(hits), 65_536))
    return all(bool(((b == 0) | (b == 1)).all()) for b in blocks)


@dataclass(frozen=True, repr=False)
class Pool:
    """One benchmark x a set of models, with their runs.

    Attributes
    ----------
    items : frame of the items contract, one row per item, in the row order of every array.
    models : frame of the models contract, in the column order of every array.
    arms : name -> :class:`Arm`.
    letters : condition -> int8 codes, shape (items, models); see :mod:`auditlib.frames`.
    refused, failed, abstained : condition -> boolean arrays of the same shape (refusals, failed calls, replies without
        an answer; absent when unknown).
    responses, judgements, coverage : canonical frames; ``responses`` is None for a pool built from arrays.
    beyond : ids of items that a quick look (:meth:`head`) left out: rows of other files on them are no mistake.
    answer_counts : how often which answer was given, columns ``item, model, condition, answer, correct, odd, even``;
        only for a pool read from a table of counts.
    """

    name: str
    benchmark: str
    items: pd.DataFrame
    models: pd.DataFrame
    arms: dict[str, Arm]
    letters: dict[str, np.ndarray] = field(default_factory=dict)
    refused: dict[str, np.ndarray] = field(default_factory=dict)
    failed: dict[str, np.ndarray] = field(default_factory=dict)
    abstained: dict[str, np.ndarray] = field(default_factory=dict)
    responses: pd.DataFrame | None = None
    judgements: pd.DataFrame | None = None
    answer_counts: pd.DataFrame | None = None
    coverage: pd.DataFrame = field(default_factory=lambda: frame("coverage"))
    params: Params | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[Path, ...] = ()
    beyond: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return (
            f"Pool {self.name}: {len(self.items)} items of {self.benchmark} x {len(self.models)} models, "
            f"arms {', '.join(self.arm_names)}, blind run: {'yes' if self.has_blind else 'no'}"
        )

    def __post_init__(self):
        shape = (len(self.items), len(self.models))
        for arm in self.arms.values():
            for condition, hits in arm.hits.items():
                if hits.shape != shape:
                    raise ValueError(f"arm {arm.name}, {condition}: shape {hits.shape}, expected {shape}")
        for condition, codes in self.letters.items():
            if codes.shape != shape:
                raise ValueError(f"letters, {condition}: shape {codes.shape}, expected {shape}")

    @classmethod
    def from_hits(
        cls,
        full: np.ndarray,
        blind: np.ndarray | None = None,
        *,
        items: pd.DataFrame | None = None,
        models: Sequence[str] | None = None,
        stratum: Sequence[str] | None = None,
        arm: str = "judged",
        name: str = "pool",
        **more: Any,
    ) -> Pool:
        """A pool from 0/1 arrays, shape (items, models); nothing is copied.

        Raises
        ------
        AuditError
            Arrays of different shape or with values other than 0 and 1.
        """
        hits = {"full": np.asarray(full)} | ({} if blind is None else {"blind": np.asarray(blind)})
        for condition, h in hits.items():
            if h.ndim != 2 or h.shape != hits["full"].shape:
                raise AuditError(
                    f"hits ({condition}) have shape {h.shape}, full has {hits['full'].shape}",
                    mend="give two arrays of shape (items, models)",
                )
            if h.dtype.kind not in "buif" or (h.size and not _zero_one(h)):
                raise AuditError(f"hits ({condition}) hold values other than 0 and 1", mend="give 0/1 correctness")
        hits = {c: h if h.dtype == np.uint8 else h.astype(np.uint8) for c, h in hits.items()}
        n_items, n_models = hits["full"].shape
        for what, given, n in (("models", models, n_models), ("stratum", stratum, n_items), ("items", items, n_items)):
            if given is not None and len(given) != n:
                raise AuditError(f"{what} has {len(given)} entries, the hits have {n}", mend="give one entry each")
        if items is None:
            items = pd.DataFrame({"item": pd.RangeIndex(n_items).astype(str)})
            if stratum is not None:
                items["stratum"] = pd.Categorical(np.asarray(stratum))
        names = list(models) if models is not None else [f"model_{j + 1}" for j in range(n_models)]
        if len(set(names)) < len(names):
            raise AuditError("two models have the same name", mend="give each model its own name")
        return cls(
            name=name,
            benchmark=more.pop("benchmark", name),
            items=items,
            models=pd.DataFrame({"model": names}),
            arms={arm: Arm(arm, hits)},
            **more,
        )

    @property
    def settings(self) -> AuditParams:
        """The audit settings of the params, or the defaults."""
        return self.params.audit if self.params else AuditParams()

    @property
    def seed(self) -> int:
        return self.params.seed if self.params else 20261129

    @property
    def model_names(self) -> list[str]:
        return self.models["model"].tolist()

    @property
    def arm(self) -> Arm:
        """The headline arm: the first in :data:`ARM_ORDER` that scores most models in both conditions."""
        return self.arms[self.arm_names[0]]

    @property
    def arm_names(self) -> list[str]:
        """Arms, headline first: more fully scored models win, then :data:`ARM_ORDER`."""

        def rank(name: str) -> tuple[int, int]:
            arm = self.arms[name]
            both = arm.scored_models("full") & arm.scored_models("blind")
            use = both.sum() if self.has_blind else arm.scored_models("full").sum()
            return -int(use), ARM_ORDER.index(name) if name in ARM_ORDER else len(ARM_ORDER)

        return sorted(self.arms, key=rank)

    def ran(self, condition: str) -> np.ndarray:
        """Boolean (models,): models with a scored draw in a condition, in any arm."""
        scored = [a.scored_models(condition) for a in self.arms.values()]
        return np.any(scored, axis=0) if scored else np.ones(len(self.models), bool)

    @property
    def has_blind(self) -> bool:
        """Whether any model was run without the image."""
        return any("blind" in a.hits for a in self.arms.values())

    @property
    def strata(self) -> np.ndarray | None:
        """Official category per item as an object array, or None where there is only one or none."""
        if "stratum" not in self.items:
            return None
        values = self.items["stratum"]
        if values.isna().all() or values.nunique(dropna=False) < 2:
            return None
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(object)
        names = values.fillna("(none)").astype(str).replace("", "(none)")
        # "all" and "design:..." are names of the statistics table
        taken = names.eq("all") | names.str.startswith("design:")
        return names.mask(taken, "(" + names + ")").to_numpy(dtype=object)

    @property
    def k(self) -> np.ndarray | None:
        """Options shown per item (float, nan where unknown), or None where unknown for all."""
        if "k" not in self.items or self.items["k"].isna().all():
            return None
        return self.items["k"].to_numpy(dtype=float)

    @property
    def cluster(self) -> np.ndarray | None:
        """Cluster code per item where items share an image or a base item; None where none do."""
        for column in ("cluster", "image_key"):
            if column in self.items and self.items[column].notna().any():
                values = (
                    self.items[column].astype(object).where(self.items[column].notna() & (self.items[column] != ""))
                )
                values = values.where(values.notna(), "\0" + self.items["item"].astype(object))
                codes, unique = pd.factorize(values)
                if len(unique) < len(self.items):
                    return codes
        return None

    @property
    def key_codes(self) -> np.ndarray:
        """Key letter per item as a code (MISSING where the key is no letter), shape (items,)."""
        from auditlib.frames import letter_codes

        if "key" not in self.items:
            return np.full(len(self.items), MISSING, np.int8)
        codes = letter_codes(self.items["key"].astype(object).where(self.items["key"].notna(), ""))
        return np.where(codes == ABSTAINED, MISSING, codes).astype(np.int8)

    def rng(self, *purpose: str) -> np.random.Generator:
        """A generator for one purpose of one pool: seeded by (run seed, pool name, purpose), never by position."""
        from auditlib.seeds import generator

        return generator(self.seed, self.name, *purpose)

    def head(self, limit: int) -> Pool:
        """The first ``limit`` items, for a quick look; the ids of the others are kept in ``beyond``."""
        cut = slice(0, limit)
        kept = set(self.items["item"].iloc[cut])

        def rows(table: pd.DataFrame | None) -> pd.DataFrame | None:
            return None if table is None else table[table["item"].isin(kept)].reset_index(drop=True)

        def arrays(d: Mapping[str, np.ndarray] | None):
            return None if d is None else {c: a[cut] for c, a in d.items()}

        arms = {n: Arm(n, arrays(a.hits), arrays(a.trials), a.unit) for n, a in self.arms.items()}
        return replace(
            self,
            items=self.items.iloc[cut].reset_index(drop=True),
            arms=arms,
            letters=arrays(self.letters),
            refused=arrays(self.refused),
            failed=arrays(self.failed),
            abstained=arrays(self.abstained),
            responses=rows(self.responses),
            judgements=rows(self.judgements),
            answer_counts=rows(self.answer_counts),
            beyond=self.beyond | frozenset(self.items["item"].iloc[limit:].astype(str)),
        )
