"""A params file as a whole: one pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from auditlib.params.audit import AuditParams, ModelParams
from auditlib.params.base import Strict
from auditlib.params.calibration import CalibrationParams
from auditlib.params.curation import CurationParams
from auditlib.params.data import DataParams
from auditlib.params.dependence import DependenceParams
from auditlib.params.inference import InferenceParams
from auditlib.params.judges import JudgesParams
from auditlib.params.sensitivity import SensitivityParams

#: the stages of every pool
STAGES = ("10_audit", "80_figures", "90_tables")
#: the stage that calls a model; part of a pool whose params have an ``inference`` block
BLIND_RUN = "00_blind_run"
#: the stages of capabilities, by their block, in their order after the audit
CAPABILITIES = {
    "curation": "20_curation",
    "dependence": "30_dependence",
    "judges": "40_judges",
    "sensitivity": "50_sensitivity",
    "calibration": "60_calibration",
}


class Params(Strict):
    """One pool: a benchmark and a set of models with their runs.

    ``extensions`` are Python files with detectors, figures or tables of one's own, relative to the YAML.
    """

    pool: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    benchmark: str = Field(min_length=1)
    data: DataParams
    models: list[ModelParams] = Field(default_factory=list)
    judge: str | None = None
    seed: int = Field(20261129, ge=0)
    extensions: list[Path] = Field(default_factory=list)
    notebooks: list[
        Literal[
            "00_blind_run",
            "10_audit",
            "20_curation",
            "30_dependence",
            "40_judges",
            "50_sensitivity",
            "60_calibration",
            "80_figures",
            "90_tables",
        ]
    ] = Field(default_factory=lambda: list(STAGES), min_length=1)
    audit: AuditParams = Field(default_factory=AuditParams)
    inference: InferenceParams | None = None
    curation: CurationParams | None = None
    dependence: DependenceParams | None = None
    judges: JudgesParams | None = None
    sensitivity: SensitivityParams | None = None
    calibration: CalibrationParams | None = None
    source: Path | None = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _stages(cls, raw: Any) -> Any:
        """Where the params list no notebooks: the audit's, and the stage of every block that they hold."""
        if not isinstance(raw, dict) or "notebooks" in raw:
            return raw
        first = [BLIND_RUN] if raw.get("inference") is not None else []
        more = [stage for block, stage in CAPABILITIES.items() if raw.get(block) is not None]
        return raw | {"notebooks": [*first, STAGES[0], *more, *STAGES[1:]]}

    @model_validator(mode="after")
    def _blind_run_described(self) -> Params:
        if BLIND_RUN in self.notebooks and self.inference is None:
            raise ValueError(f"notebooks lists {BLIND_RUN}, which needs an inference block")
        for block, stage in CAPABILITIES.items():
            if stage in self.notebooks and getattr(self, block) is None:
                raise ValueError(f"notebooks lists {stage}, which needs a block {block}")
        if not self.data.has_runs and (self.inference is None or "full" not in self.inference.conditions):
            raise ValueError("data names no runs: it needs one of embedded, folder, table, matrix, counts, or the "
                             "inference block must ask for the condition full")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _models_once(self) -> Params:
        names = [m.name for m in self.models]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"models lists {twice[0]!r} twice")
        return self
