"""The ``judges`` block: saved calls of judges, and what people say of the outputs that they judged."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from auditlib.params.base import Address, ServedModel, Strict


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


class JudgeAskParams(Strict):
    """Judges to be asked; what they have answered once is not asked again.

    ``changes``: judge the planted changes of ``judges.perturbations``, whose rows then hold ``prompt``, ``gold`` and
    ``perturbed`` (and ``image``, a file beside the sheet, where there is one), or those that ``perturber`` writes for
    the answers in ``golds`` (``instance, prompt, answer``, optional ``image``, ``cluster``), under ``dimensions`` and
    ``severities``. ``decisions``: a table ``prompt, candidate, request`` with ``text`` or ``image`` of each candidate.
    ``paradigms``, ``styles`` and ``images`` say how changes are put, ``choose`` how decisions are. ``repeats`` are
    calls in the same order, or of the same gold answer: without two, sampling cannot be told from an effect.
    """

    models: list[ServedModel] = Field(min_length=1)
    base_url: Address | None = None
    api_key_env: str = "OPENAI_API_KEY"
    changes: bool = True
    golds: Path | None = None
    perturber: ServedModel | None = None
    dimensions: list[str] = Field(default_factory=lambda: ["i2t_object_added", "i2t_colour", "i2t_count_one",
                                                           "i2t_neutral_paraphrase"])  # fmt: skip
    severities: list[int] = Field(default_factory=lambda: [2], min_length=1)
    decisions: Path | None = None
    paradigms: list[Literal["single", "pairwise", "reference"]] = Field(default_factory=lambda: ["single", "pairwise"])
    styles: list[Literal["plain", "explained", "rubric", "axis", "axis_rubric"]] = Field(
        default_factory=lambda: ["plain"]
    )
    images: list[Literal["shown", "withheld", "swapped"]] = Field(default_factory=lambda: ["shown", "withheld"])
    choose: Literal["best_of_n", "pairwise"] = "best_of_n"
    orders: Literal["cyclic", "given"] = "cyclic"
    repeats: int = Field(2, ge=1, le=100)
    ties: bool = False
    scale: tuple[float, float] = (1.0, 5.0)
    temperature: float | None = Field(0.0, ge=0)
    max_tokens: int | None = Field(512, ge=1)
    concurrency: int = Field(8, ge=1, le=4096)

    @model_validator(mode="after")
    def _complete(self) -> JudgeAskParams:
        if (self.golds is None) != (self.perturber is None):
            raise ValueError("judges.ask: golds and perturber belong together: a model that changes, and what")
        if not self.scale[0] < self.scale[1]:
            raise ValueError("judges.ask.scale gives the lowest and the highest score")
        return self


class ExtractionParams(Strict):
    """The judge that reads answers out of replies, against people.

    ``truth`` is a table of what people read in a sample of replies: ``item, model, truth`` (the item's own letter, yes,
    no, or Z for none), optional ``condition``, ``sample``, ``key``, ``kind``, ``cluster``, ``weight`` (replies that a
    sampled one stands for), and the judge's readings where they are saved: ``plain``, ``permuted`` (options in another
    order), ``key_shown``, ``again``. ``judge`` is asked for those that are not, about the pool's replies; ``items`` is
    the benchmark's own table (by default ``data.dataset``).
    """

    truth: Path
    judge: ServedModel | None = None
    base_url: Address | None = None
    api_key_env: str = "OPENAI_API_KEY"
    items: Path | None = None
    concurrency: int = Field(8, ge=1, le=4096)


class JudgeIdentity(Strict):
    """What a judge was when its calls were made: its server's version, hashes of prompt and settings, the day."""

    version: str = ""
    prompt_sha256: str = ""
    generation_sha256: str = ""
    date: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$")


class JudgesParams(Strict):
    """Do judges notice what is wrong, and are their decisions worth more than a random choice?

    ``candidates`` is a table of people's mean ratings of what was judged, ``ratings`` one of single people's.
    ``perturbations`` is the sheet on which people checked the planted changes. ``epsilon``: a decision within this of
    the best rating is good; ``quorum``: shares of orders that an agreement filter asks for. ``ask`` names judges to be
    asked, ``extraction`` examines the judge that reads answers out of replies. ``families`` gives judges, and authors
    of outputs (column ``author``), their family. ``identity`` says what a judge was (for its validity cards), ``cards``
    are earlier cards, ``earlier`` the choices on which they rest. ``synthetic`` takes the calls of invented judges that
    come with the package.
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
    ask: JudgeAskParams | None = None
    extraction: ExtractionParams | None = None
    families: dict[str, str] = Field(default_factory=dict)
    identity: dict[str, JudgeIdentity] = Field(default_factory=dict)
    cards: list[Path] = Field(default_factory=list)
    earlier: JudgeFiles | None = None
    synthetic: bool = False
    epsilon: float = Field(0.0, ge=0)
    quorum: list[float] = Field(default_factory=lambda: [1.0, 0.75])
    draws: int = Field(2000, ge=200, le=100_000)

    @model_validator(mode="after")
    def _something(self) -> JudgesParams:
        files = [b for b in (self.scores, self.references, self.pairs, self.choices) if b is not None]
        live = self.ask is not None or self.extraction is not None
        if not files and not self.synthetic and not live:
            raise ValueError(
                "judges names no calls: it needs one of scores, references, pairs, choices, ask, extraction"
            )
        if (files or live) and self.synthetic:
            raise ValueError("judges.synthetic stands alone: invented judges are not mixed with others")
        if any(not 0 < q <= 1 for q in self.quorum):
            raise ValueError("judges.quorum holds shares of orders, above 0 and up to 1")
        return self
