"""Studies: what capabilities beyond the audit show of a pool, as figures, tables and a section of the report.

:data:`STUDIES` is a plain dict in the order of the report. A study is shown where its notebook has been run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from auditlib.figures import FIGURES, Figure
from auditlib.studies import calibration, curation, dependence, judges, sensitivity
from auditlib.studies.results import Result, load_result, save_result
from auditlib.tables import TABLES, Table

__all__ = ["STUDIES", "Result", "Study", "all_figures", "all_tables", "load_result", "save_result", "study_of"]


@dataclass(frozen=True)
class Study:
    """One capability's exhibits.

    Attributes
    ----------
    name : of its params block and its folder.
    title : of its section in the report.
    stage : its notebook.
    figures, tables : as of the audit, but made from a :class:`~auditlib.studies.results.Result`.
    words : result -> blocks of the report that come before the figures and tables.
    """

    name: str
    title: str
    stage: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    words: Callable[[Result], list[Any]]


STUDIES: dict[str, Study] = {
    s.name: s
    for s in (
        Study("curation", "Curation", "20_curation", curation.FIGURES, curation.TABLES, curation.words),
        Study("dependence", "Modality dependence", "30_dependence", dependence.FIGURES, dependence.TABLES,
              dependence.words),
        Study("judges", "Judges", "40_judges", judges.FIGURES, judges.TABLES, judges.words),
        Study("sensitivity", "Sensitivity to what is shown", "50_sensitivity", sensitivity.FIGURES, sensitivity.TABLES,
              sensitivity.words),
        Study("calibration", "How far this can be believed", "60_calibration", calibration.FIGURES, calibration.TABLES,
              calibration.words),
    )
}  # fmt: skip


def all_figures() -> dict[str, Figure]:
    """Figures of the audit and of every study, by name."""
    return FIGURES | {f.name: f for s in STUDIES.values() for f in s.figures}


def all_tables() -> dict[str, Table]:
    """Tables of the audit and of every study, by name."""
    return TABLES | {t.name: t for s in STUDIES.values() for t in s.tables}


def study_of(name: str) -> Study | None:
    """The study that a figure or table belongs to; None for the audit's own."""
    return next((s for s in STUDIES.values() if name in {x.name for x in (*s.figures, *s.tables)}), None)
