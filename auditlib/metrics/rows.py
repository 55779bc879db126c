"""Rows of the statistics frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from auditlib.frames import COLUMNS

#: columns of the statistics frame: the contract's, ``level`` and ``p_lower`` (``p`` is of the upper tail)
STATISTICS = (*COLUMNS["statistics"][:8], "level", *COLUMNS["statistics"][8:-1], "p_lower", COLUMNS["statistics"][-1])
TEXT_COLUMNS = (
    "pool",
    "metric",
    "arm",
    "policy",
    "models",
    "stratum",
    "null_kind",
    "level",
    "p_method",
    "family",
    "note",
)


def row(metric: str, values: Mapping[str, Any] | None = None, /, **fields: Any) -> dict[str, Any]:
    """One statistics row; models and stratum default to ``all``, policy to ``wrong`` where there is an arm."""
    out: dict[str, Any] = {"metric": metric, "models": "all", "stratum": "all"} | dict(values or {}) | fields
    out.setdefault("policy", "wrong" if out.get("arm") else "")
    return out


def interval_fields(interval: Any, prefix: str = "") -> dict[str, float]:
    """``low`` and ``high`` of an interval as row fields, empty where there is none."""
    if interval is None:
        return {}
    return {f"{prefix}low": interval.low, f"{prefix}high": interval.high}


def statistics_frame(pool: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """All rows as one frame in contract column order; text columns are text, the others floats."""
    table = pd.DataFrame(rows)
    table["pool"] = pool
    table = table.reindex(columns=list(STATISTICS))
    for column in STATISTICS:
        if column in TEXT_COLUMNS:
            table[column] = table[column].astype(object).where(table[column].notna(), "").astype(str)
        else:
            table[column] = pd.to_numeric(table[column], errors="coerce").astype(float)
    return table
