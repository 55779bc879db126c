"""The gate before every audit: what the files themselves prove to be wrong, before any model is counted."""

from __future__ import annotations

from typing import Any

from auditlib.integrity.items import check_items
from auditlib.integrity.runs import check_runs
from auditlib.pool import Pool


def integrity_rows(pool: Pool) -> list[dict[str, Any]]:
    """Statistics of the gate: attainable ceiling, effective number of items, denominators of every run."""
    from auditlib.integrity.ceiling import ceiling_rows, cluster_rows
    from auditlib.integrity.denominators import denominator_rows

    return ceiling_rows(pool) + cluster_rows(pool) + denominator_rows(pool)


__all__ = ["check_items", "check_runs", "integrity_rows"]
