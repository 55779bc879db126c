"""Rows of the statistics frame by name, for figures, tables and the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

#: order in which a reader prefers the kinds of p
P_ORDER = ("exact", "normal", "shuffle", "tables")
CATEGORIES = ("visual_dependent", "visual_supplement", "text_only", "conflicting")


class Lacking(Exception):
    """A figure or table cannot be made from what the pool has; the message says what is missing."""


def rows(statistics: pd.DataFrame, metric: str, **keys: Any) -> pd.DataFrame:
    """Rows of one metric whose key columns hold the given values.

    A missing cell counts as ``""``; a tuple means any of its values; a column that the frame lacks counts as ``""``.
    """
    table = statistics[statistics["metric"] == metric]
    for name, wanted in keys.items():
        values = table[name] if name in table else pd.Series("", index=table.index)
        values = values.astype(object).where(values.notna(), "")
        table = table[values.isin(wanted) if isinstance(wanted, tuple) else values.eq(wanted)]
    return table


def one(statistics: pd.DataFrame, metric: str, **keys: Any) -> pd.Series | None:
    """The row of one metric, or None; the exact p wins where Monte Carlo stands beside it."""
    table = rows(statistics, metric, **keys)
    if not len(table):
        return None
    return best_p(table).iloc[0]


def best_p(table: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order of :data:`P_ORDER`, otherwise as they came (rows without a p first)."""
    if "p_method" not in table:
        return table
    rank = {m: i for i, m in enumerate(P_ORDER)}
    order = table["p_method"].map(lambda m: rank.get(m, -1)).to_numpy()
    return table.iloc[np.argsort(order, kind="stable")]


def unique_p(table: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """One row for each value of ``keys``, the one with the best p, in the order in which the values appear."""
    if not len(table):
        return table
    kept = best_p(table).drop_duplicates(list(keys))
    return kept.loc[[i for i in table.index if i in set(kept.index)]]


def value(row: pd.Series | None, name: str = "estimate") -> float:
    """A number of a row, nan where the row or the number is missing."""
    if row is None or name not in row or pd.isna(row[name]):
        return float("nan")
    return float(row[name])


def text(row: pd.Series | None, name: str) -> str:
    """A text of a row, ``""`` where missing."""
    if row is None or name not in row or pd.isna(row[name]):
        return ""
    return str(row[name])


def headline_arm(audit: Any) -> str:
    """The arm of the headline, ``""`` where no arm is scored."""
    return str(audit.arm)


def arms(audit: Any) -> list[str]:
    """Arms with a zero-gain share, headline first; where there is none, all arms."""
    found = set(rows(audit.statistics, "zero_gain_share")["arm"])
    return [a for a in audit.steps["arms"] if a in found or not found]


def has_blind(audit: Any) -> bool:
    """Whether the pool has a zero-gain share, that is, full and blind runs of at least one model."""
    return len(rows(audit.statistics, "zero_gain_share", stratum="all", models="all")) > 0


def strata(audit: Any) -> list[str]:
    """Official categories with numbers of their own, in the order of the statistics frame."""
    named = audit.statistics["stratum"].dropna().astype(str)
    return [s for s in dict.fromkeys(named) if s not in ("", "all") and not s.startswith("design:")]


def model_names(audit: Any) -> list[str]:
    """Model names in the order of the models frame."""
    return audit.models["model"].astype(str).tolist()


def pool_range(statistics: pd.DataFrame, metric: str, column: str = "estimate", **keys: Any) -> tuple[float, float]:
    """Smallest and largest value over the pools that leave one model out; nan where there are none."""
    table = rows(statistics, metric, stratum="all", **keys)
    named = table["models"].astype(str)
    table = unique_p(table[named.str.startswith("without ") & ~named.str.startswith("without family ")], "models")
    values = pd.to_numeric(table[column], errors="coerce").dropna() if column in table else pd.Series(dtype=float)
    return (float(values.min()), float(values.max())) if len(values) else (float("nan"), float("nan"))
