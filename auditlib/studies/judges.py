"""What the report shows of judges."""

from __future__ import annotations

from auditlib.figures import Figure
from auditlib.figures import judges as draw
from auditlib.figures import judges_more as more
from auditlib.studies import judges_tables, judges_tables_more
from auditlib.studies.judges_words import words as words
from auditlib.studies.results import Result

__all__ = ["FIGURES", "TABLES", "Result", "words"]

TABLES = (*judges_tables.TABLES, *judges_tables_more.TABLES)
FIGURES: tuple[Figure, ...] = (
    Figure("judges_detection", "Planted damage that is noticed", draw.prepare_detection, draw.detection,
           draw.say_detection, "calls on planted changes"),
    Figure("judges_dprime", "Damage told from harmless changes", draw.prepare_overall, draw.overall, draw.say_overall,
           "calls on planted damage and on neutral changes"),
    Figure("judges_slots", "Slots that are chosen", draw.prepare_slots, draw.slots, draw.say_slots,
           "choices among candidates, with their order"),
    Figure("judges_value", "What decisions are worth", draw.prepare_value, draw.value, draw.say_value,
           "choices among candidates that people rated"),
    Figure("judges_curves", "Gain of what agreement keeps", draw.prepare_curves, draw.curves, draw.say_curves,
           "choices in two orders or more, people's ratings"),
    Figure("judges_filters", "Bad kept, good dropped", draw.prepare_filters, draw.filters, draw.say_filters,
           "choices in two orders or of two judges, people's ratings"),
    Figure("judges_own", "Outputs of the own family", more.prepare_own, more.own, more.say_own,
           "choices among candidates with authors, families of the judges"),
    Figure("judges_extraction", "The judge that reads answers", more.prepare_extraction, more.extraction,
           more.say_extraction, "replies read by people and by the judge"),
)  # fmt: skip
