"""What the report shows of modality dependence."""

from __future__ import annotations

from auditlib.figures import Figure
from auditlib.figures import dependence as draw
from auditlib.figures import dependence_effect as effect
from auditlib.studies.dependence_tables import TABLES
from auditlib.studies.dependence_words import words as words

__all__ = ["FIGURES", "TABLES", "words"]

_FOUR = "runs under four conditions"
FIGURES: tuple[Figure, ...] = (
    Figure("dependence_map", "Which view suffices", draw.prepare_map, draw.sufficiency_map, draw.say_map, _FOUR),
    Figure("dependence_strata", "What each category depends on", draw.prepare_strata, draw.strata, draw.say_strata,
           f"{_FOUR}, official categories"),
    Figure("dependence_moved", "What the items' content changed", effect.prepare_moved, effect.moved, effect.say_moved,
           f"{_FOUR}, a structural prior"),
    Figure("dependence_item", "One item", draw.prepare_item, draw.item_card, draw.say_item, _FOUR),
    Figure("dependence_subset", "Small subsets that rank", effect.prepare_subset, effect.subset, effect.say_subset,
           f"{_FOUR}, six models"),
    Figure("dependence_margins", "Labels on models that had no part in them", effect.prepare_margins, effect.margins,
           effect.say_margins, f"{_FOUR}, families of models"),
)  # fmt: skip
