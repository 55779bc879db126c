"""What the report shows of a curation."""

from __future__ import annotations

from auditlib.figures import Figure
from auditlib.figures import curation as draw
from auditlib.figures import curation_effect as effect
from auditlib.studies.curation_tables import TABLES
from auditlib.studies.curation_words import words as words
from auditlib.studies.results import Result

__all__ = ["FIGURES", "TABLES", "Result", "words"]

FIGURES: tuple[Figure, ...] = (
    Figure("curation_funnel", "What became of each source's items", draw.prepare_funnel, draw.funnel, draw.say_funnel,
           "a curation"),
    Figure("curation_retention", "What each stage left of each source", draw.prepare_retention, draw.retention,
           draw.say_retention, "a curation"),
    Figure("curation_inflation", "Scores on all items and on the curated ones", effect.prepare_inflation,
           effect.inflation, effect.say_inflation, "a curation, capabilities"),
    Figure("curation_ranks", "Ranks on all items and on the curated ones", effect.prepare_ranks, effect.ranks,
           effect.say_ranks, "a curation"),
    Figure("curation_quality", "The curated set against random subsets", effect.prepare_quality, effect.quality,
           effect.say_quality, "a curation"),
    Figure("curation_grid", "Other thresholds", effect.prepare_grid, effect.grid, effect.say_grid, "a curation"),
    Figure("curation_errors", "Why answers are wrong", draw.prepare_errors, draw.errors, draw.say_errors,
           "a curation, labelled errors"),
)  # fmt: skip
