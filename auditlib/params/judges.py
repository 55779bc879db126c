"""The ``judges`` block: saved calls of judges, and what people say of the outputs that they judged."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from auditlib.params.base import Strict


class JudgeFiles(Strict):
    """Files of calls. ``columns`` maps our column names to the files'; ``judge`` names the judge where no column does.

    A call on planted damage names its candidates ``gold`` and ``perturbed``, its ``dimension`` and its ``effect``
    (``degrade`` or ``neutral``).
    """

    files: list[Path] = Field(min_length=1)
    columns: dict[str, str] = Field(default_factory=dict)
    judge: str = "judge"


class ScoreFiles(JudgeFiles):
    """Scores: ``judges`` maps a judge to its column where each has one; ``sentinels`` are numbers that are no score."""

    judges: dict[str, str] = Field(default_factory=dict)
    paradigm: Literal["single", "reference"] = "single"
    sentinels: list[float] = Field(default_factory=lambda: [-1.0])
    scale: tuple[float, float] | None = None


class PairFiles(JudgeFiles):
    """Pairwise votes: ``verdicts`` maps the files' words to first, second, tie, tie_failure, unparsed, no_reply."""

    verdicts: dict[str, str] = Field(default_factory=dict)


class JudgesParams(Strict):
    """Do judges notice what is wrong, and are their decisions worth more than a random choice?

    ``candidates`` is a table of people's mean ratings of what was judged, ``ratings`` one of single people's.
    ``perturbations`` is the sheet on which people checked the planted changes. ``epsilon``: a decision within this of
    the best rating is good; ``quorum``: shares of orders that an agreement filter asks for. ``synthetic`` takes the
    calls of invented judges that come with the package.
    """

    scores: ScoreFiles | None = None
    references: ScoreFiles | None = None
    pairs: PairFiles | None = None
    choices: JudgeFiles | None = None
    candidates: Path | None = None
    candidate_columns: dict[str, str] = Field(default_factory=dict)
    ratings: Path | None = None
    rating_columns: dict[str, str] = Field(default_factory=dict)
    perturbations: Path | None = None
    synthetic: bool = False
    epsilon: float = Field(0.0, ge=0)
    quorum: list[float] = Field(default_factory=lambda: [1.0, 0.75])
    draws: int = Field(2000, ge=200, le=100_000)

    @model_validator(mode="after")
    def _something(self) -> JudgesParams:
        files = [b for b in (self.scores, self.references, self.pairs, self.choices) if b is not None]
        if not files and not self.synthetic:
            raise ValueError("judges names no calls: it needs one of scores, references, pairs, choices")
        if files and self.synthetic:
            raise ValueError("judges.synthetic stands alone: invented judges are not mixed with others")
        if any(not 0 < q <= 1 for q in self.quorum):
            raise ValueError("judges.quorum holds shares of orders, above 0 and up to 1")
        return self
