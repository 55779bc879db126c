"""What the report shows of sensitivity."""

from __future__ import annotations

from auditlib.figures import Figure
from auditlib.figures import sensitivity as draw
from auditlib.figures import sensitivity_more as more
from auditlib.studies.results import Result
from auditlib.studies.sensitivity_tables import TABLES
from auditlib.studies.sensitivity_words import words as words

__all__ = ["FIGURES", "TABLES", "Result", "words"]

FIGURES: tuple[Figure, ...] = (
    Figure("sensitivity_curves", "Accuracy as the image is degraded", draw.prepare_curves, draw.curves, draw.say_curves,
           "calls at several levels of a change"),
    Figure("sensitivity_lost", "Share of the visual gain that is lost", draw.prepare_lost, draw.lost, draw.say_lost,
           "calls at several levels of a change, a blind run"),
    Figure("sensitivity_flips", "Answers that change", draw.prepare_flips, draw.flips, draw.say_flips,
           "calls under changed images, with answers"),
    Figure("sensitivity_margins", "Erosion of the margin", draw.prepare_margins, draw.margins, draw.say_margins,
           "option scores or many samples"),
    Figure("sensitivity_evidence", "Evidence covered, and another region", more.prepare_evidence, more.evidence,
           more.say_evidence, "calls with covered regions"),
    Figure("sensitivity_forms", "Other words, same meaning?", more.prepare_forms, more.forms, more.say_forms,
           "calls with reworded questions"),
    Figure("sensitivity_layers", "Visual tokens by layer", more.prepare_layers, more.layers, more.say_layers,
           "states of layers"),
)  # fmt: skip
