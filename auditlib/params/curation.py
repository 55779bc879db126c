"""The ``curation`` block: thresholds, rules, judges and readers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from auditlib.params.base import Address, ServedModel, Share, Strict


class RuleParams(Strict):
    """Thresholds of the five anomaly rules; shares in [0, 1].

    ``soft_zero`` counts a choice item as never solved when at most half the guessing share of draws is correct.
    ``families`` lets all models of a provider share one vote. ``budget`` takes the share of items with the highest
    scores in place of the thresholds.
    """

    soft_zero: bool = False
    majority: Share = 0.50
    majority_models: Share = 0.60
    entropy: Share = 0.80
    near_tie: Share = 0.10
    near_tie_mass: Share = 0.60
    extraction: Share = 0.75
    families: bool = False
    budget: Share | None = None


class AdjudicationParams(Strict):
    """Judges of the anomalies: saved votes, or models to be asked."""

    votes: list[Path] = Field(default_factory=list)
    judges: list[ServedModel] = Field(default_factory=list)
    base_url: Address | None = None
    api_key_env: str = "OPENAI_API_KEY"
    items: Path | None = None
    quorum: int = Field(3, ge=1)
    least_cast: int = Field(4, ge=1)
    temperature: float | None = Field(0.0, ge=0)
    max_tokens: int | None = Field(1024, ge=1)
    concurrency: int = Field(8, ge=1, le=4096)
    price_in: float | None = Field(None, ge=0)
    price_out: float | None = Field(None, ge=0)


class ReviewParams(Strict):
    """Packets for people: readers, probes (share of the packet), unflagged items, and files of decisions."""

    readers: list[str] = Field(default_factory=lambda: ["reader_1", "reader_2", "reader_3"], min_length=2)
    unflagged: int = Field(200, ge=0)
    probes: Share = 0.05
    decisions: list[Path] = Field(default_factory=list)


class CurationParams(Strict):
    """Which items to keep; the defaults are those of MMGist.

    ``inspectors`` answer without the image, ``panel`` decides saturation and anomalies, ``evaluated`` are ranked.
    """

    inspectors: list[str] = Field(default_factory=list)
    panel: list[str] = Field(default_factory=list)
    evaluated: list[str] = Field(default_factory=list)
    ablation: Literal["mmgist", "guess_adjusted"] = "mmgist"
    text_binary: Share = 0.80
    text_other: Share = 0.50
    saturation: Share = 0.90
    rules: RuleParams = Field(default_factory=RuleParams)
    adjudication: AdjudicationParams | None = None
    review: ReviewParams = Field(default_factory=ReviewParams)
    scorer_risk: Literal["route", "remove"] = "route"
    subsets: int = Field(200, ge=10, le=100_000)
    labelled_errors: Path | None = None
    effort: Path | None = None
