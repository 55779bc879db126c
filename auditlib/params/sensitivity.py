"""The ``sensitivity`` block: calls under changed images and questions, from files or from models that are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from auditlib.params.base import Address, ServedModel, Strict

#: what can be asked for
FAMILIES = Literal["full", "blur", "downsample", "noise", "jpeg", "grayscale", "tokens", "occlude_evidence",
                   "occlude_control", "occlude_grid", "blank", "gray", "wrong_image", "blind"]  # fmt: skip

Level = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class AskParams(Strict):
    """Models to be asked, and under which conditions.

    ``items`` is the benchmark's own table with pictures (by default ``data.dataset``), ``regions`` a table of boxes
    that hold the evidence, ``forms`` a table of paraphrases and negations; ``rewriter`` is a model that writes those it
    lacks. ``levels`` replaces the levels of a family. ``wordings`` names forms of the question: ``paraphrase-1``,
    ``negation``, ``two_options``, ``yes_no``, ``open``, ``cannot_tell``, ``distractors-4``, ``no_options``. ``samples``
    are repeats of the items as they are. ``unchanged``: what to do where a change leaves a picture as it was.
    """

    models: list[ServedModel] = Field(min_length=1)
    base_url: Address | None = None
    api_key_env: str = "OPENAI_API_KEY"
    items: Path | None = None
    regions: Path | None = None
    forms: Path | None = None
    rewriter: ServedModel | None = None
    families: list[FAMILIES] = Field(default_factory=lambda: ["full", "blur", "downsample", "tokens", "blank",
                                                              "wrong_image", "blind"])  # fmt: skip
    levels: dict[str, list[Level]] = Field(default_factory=dict)
    wordings: list[str] = Field(default_factory=list)
    seeds: int = Field(3, ge=1, le=100)
    samples: int = Field(2, ge=1, le=1000)
    unchanged: Literal["error", "leave_out"] = "error"
    wrong_image: Literal["stratum", "any"] = "stratum"
    layout: Literal["vlmevalkit", "reasoning"] = "vlmevalkit"
    logprobs: bool = False
    temperature: float | None = Field(0.0, ge=0)
    max_tokens: int | None = Field(512, ge=1)
    concurrency: int = Field(8, ge=1, le=4096)

    @model_validator(mode="after")
    def _complete(self) -> AskParams:
        if "full" not in self.families:
            raise ValueError("sensitivity.ask.families must hold full: every change is compared with the item as it is")
        unknown = sorted(set(self.levels) - set(self.families))
        if unknown:
            raise ValueError(f"sensitivity.ask.levels names {unknown[0]!r}, which families does not")
        return self


class SensitivityParams(Strict):
    """Does the benchmark need what it shows?

    ``calls`` are tables with one row per call; ``columns`` maps our column names to the files', ``conditions`` a file's
    (or the pool's) word to ours (``{clean: full, blur_s3: blur@3}``; ``skip`` leaves it out), ``where`` keeps the rows
    whose column has the value. Runs of the pool are taken for what the files lack. ``abstentions: wrong``
    takes away credit for declining to answer (column ``abstained``). ``states`` is an npz of visual tokens by layer.
    ``margin_drop`` and ``margin_lost`` are the largest changes of accuracy and of the share of the
    visual gain that count as none; ``draws`` are those of the bootstrap; sign flips take five times as many.
    """

    calls: list[Path] = Field(default_factory=list)
    columns: dict[str, str] = Field(default_factory=dict)
    conditions: dict[str, str] = Field(default_factory=dict)
    where: dict[str, str] = Field(default_factory=dict)
    abstentions: Literal["as_scored", "wrong"] = "as_scored"
    states: Path | None = None
    ask: AskParams | None = None
    margin_drop: float = Field(0.02, gt=0, lt=1)
    margin_lost: float = Field(0.2, gt=0, lt=1)
    draws: int = Field(2000, ge=200, le=100_000)
