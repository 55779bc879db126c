"""What the report shows of a curation."""

from __future__ import annotations

from typing import Any

from auditlib.figures import Figure
from auditlib.studies.results import Result
from auditlib.tables import Table

FIGURES: tuple[Figure, ...] = ()
TABLES: tuple[Table, ...] = ()


def words(result: Result) -> list[Any]:
    """Blocks of the section's opening."""
    return []
