"""The ``dependence`` block: conditions, structural prior, fit, and the protocol of people's labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from auditlib.frames import CONDITIONS
from auditlib.params.base import Share, Strict

Positive = Annotated[float, Field(gt=0)]


class ConditionNames(Strict):
    """Which run stands for which condition: ``blind: gray`` takes the runs on a grey picture for those without one."""

    none: str = "none"
    image_only: str = "image_only"
    blind: str = "blind"
    full: str = "full"

    @model_validator(mode="after")
    def _known(self) -> ConditionNames:
        named = list(self.model_dump().values())
        unknown = sorted(set(named) - set(CONDITIONS))
        if unknown:
            raise ValueError(f"dependence.conditions names {unknown[0]!r}; conditions are {', '.join(CONDITIONS)}")
        if len(set(named)) < len(named):
            raise ValueError("dependence.conditions names one condition twice")
        return self


class PriorParams(Strict):
    """What the content of the items says about the evidence that they need.

    ``source``: ``none``; ``embeddings`` (arrays of image, question and options in ``files``); ``probabilities`` of the
    key under the four conditions; ``labels`` (a letter R, V, T, S, or four probabilities, per item); ``logprobs`` (runs
    with log-probabilities of the option letters of ``scorer``, a model outside the pool). ``encoder`` makes embeddings
    with the transformers library, from the dataset's pictures. ``method`` splits the information of both views;
    ``trust`` is the probability that a label is right.
    """

    source: Literal["none", "embeddings", "encoder", "probabilities", "labels", "logprobs"] = "none"
    files: list[Path] = Field(default_factory=list)
    scorer: str | None = None
    encoder: str | None = None
    text_encoder: str | None = None
    method: Literal["min", "lsmi", "ccs"] = "min"
    temperature: Positive = 1.0
    dimensions: int = Field(64, ge=2, le=1024)
    folds: int = Field(5, ge=2, le=50)
    trust: float = Field(0.7, gt=0.25, lt=1)

    @model_validator(mode="after")
    def _complete(self) -> PriorParams:
        if self.source in ("probabilities", "labels", "logprobs") and not self.files:
            raise ValueError(f"dependence.prior.source {self.source} needs dependence.prior.files")
        if self.source == "none" and self.files:
            raise ValueError("dependence.prior.files has no effect with source none")
        if self.source == "encoder" and self.encoder is None:
            raise ValueError("dependence.prior.source encoder needs dependence.prior.encoder, the name of a model")
        return self


class FitParams(Strict):
    """Strengths of the response model; see :class:`auditlib.dependence.problem.Settings`."""

    align: float = Field(3.0, ge=0)
    residual: Positive = 0.3
    ability: Positive = 1.0
    bridge: Positive = 2.0
    kappa: Positive = 0.5
    delta: Share = 0.15
    rounds: int = Field(3, ge=1, le=20)
    iterations: int = Field(60, ge=1, le=10_000)


class AnnotationParams(Strict):
    """People's labels: thirteen readers or more, so that nobody sees two views of one item; files of decisions."""

    readers: list[str] = Field(default_factory=lambda: [f"reader_{i}" for i in range(1, 14)], min_length=13)
    items: int = Field(1000, ge=1)
    decisions: list[Path] = Field(default_factory=list)


class DependenceParams(Strict):
    """Which part of each item models need: image, question, either or both.

    ``abstain`` counts replies without an answer as wrong or leaves them out. ``bootstrap`` draws of the models give
    each label its stability. ``subsets`` are the shares of the benchmark whose ranking is compared, over ``splits``
    halves of the models. ``families`` are left out in turn (default: every family of two that the pool names).
    """

    arm: str | None = None
    conditions: ConditionNames = Field(default_factory=ConditionNames)
    abstain: Literal["wrong", "missing"] = "wrong"
    prior: PriorParams = Field(default_factory=PriorParams)
    method: Literal["stacked", "response-model", "latent-class"] = "stacked"
    fit: FitParams = Field(default_factory=FitParams)
    bootstrap: int = Field(100, ge=2, le=100_000)
    subsets: list[Share] = Field(default_factory=lambda: [0.02, 0.05, 0.1, 0.2, 0.5], min_length=1)
    splits: int = Field(6, ge=2, le=1000)
    families: list[str] = Field(default_factory=list)
    annotation: AnnotationParams | None = None
