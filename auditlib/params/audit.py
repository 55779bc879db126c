"""What is said of models, and the ``audit`` block."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from auditlib.params.base import Strict

EXTRACTORS = Literal["letters", "boxed", "option_text", "yesno", "numeric"]


class ModelParams(Strict):
    """What a results folder cannot tell about a model."""

    name: str
    family: str | None = None
    provider: str | None = None
    tier: str | None = None
    params_b: float | None = None
    open: bool | None = None
    role: str | None = None
    text_base: str | None = None


class DesignParams(Strict):
    """Design labels for the calibration probe: an item column and the label that is the positive class."""

    column: str = "stratum"
    positive: str


class AuditParams(Strict):
    """Settings of the audit; the defaults are those of the paper.

    ``tolerance`` is the largest relative difference at which an open numeric answer still equals its key.
    """

    exact: list[EXTRACTORS] = Field(default_factory=lambda: ["letters"], min_length=1)
    failed: Literal["missing", "wrong"] = "missing"
    tolerance: float = Field(0.0, ge=0, le=1)
    permutations: int = Field(999, ge=99, le=1_000_000)
    bootstrap: int = Field(20_000, ge=200, le=1_000_000)
    splits: int = Field(20, ge=2, le=1000)
    options_by_stratum: dict[str, Annotated[int, Field(ge=2, le=26)]] = Field(default_factory=dict)
    exclude_models: list[str] = Field(default_factory=list)
    keys_from: str | None = None
    design: DesignParams | None = None
