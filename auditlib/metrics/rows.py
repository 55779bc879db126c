"""Rows of the statistics frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from auditlib.frames import COLUMNS
from auditlib.stats.rates import share_interval

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
    """One statistics row; models and stratum default to ``all``, policy to ``wrong`` where there is an arm.

    A note among ``values`` (how an interval was made) and one among ``fields`` are joined.
    """
    values = dict(values or {})
    out: dict[str, Any] = {"metric": metric, "models": "all", "stratum": "all"} | values | fields
    out["note"] = "; ".join(filter(None, dict.fromkeys([fields.get("note", ""), values.get("note", "")])))
    out.setdefault("policy", "wrong" if out.get("arm") else "")
    return out


def interval_fields(interval: Any, prefix: str = "") -> dict[str, float]:
    """``low`` and ``high`` of an interval as row fields, empty where there is none."""
    if interval is None:
        return {}
    return {f"{prefix}low": interval.low, f"{prefix}high": interval.high}


def noted(interval: Any, prefix: str = "") -> dict[str, Any]:
    """:func:`interval_fields` with the method as ``note`` where it is not plain Wilson."""
    says = "" if interval is None or interval.method == "wilson" else f"interval: {interval.method}"
    return interval_fields(interval, prefix) | {"note": says}


def share_fields(inside: np.ndarray, cluster: np.ndarray | None = None) -> dict[str, Any]:
    """Number of items, share and interval of a boolean per item; clusters are honoured and named in ``note``."""
    n = len(inside)
    share = int(np.count_nonzero(inside)) / n if n else float("nan")
    return {"n": n, "estimate": share} | noted(share_interval(inside, cluster))


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
