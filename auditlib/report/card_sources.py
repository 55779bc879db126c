"""Where a number of the card comes from: the address of its row, relative to the pool's folder."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.lookup import Lacking
from auditlib.numerals import NONE, p_value, points, pp
from auditlib.paths import RunPaths
from auditlib.report.blocks import Run

#: files with one fact in them rather than a row
STEPS, ITEMS, MANIFEST, GATE = "audit.json", "items.parquet", "manifest.json", "report.html#integrity"


def to(text: str, address: str) -> Run:
    """A number (or a word) that leads to where it stands; a missing number leads nowhere."""
    return text if not address or text == NONE else ("to", text, address)  # type: ignore[return-value]


def words_of(run: Run) -> str:
    """What a run shows."""
    return run if isinstance(run, str) else run[1]


class Sources:
    """Addresses of the numbers of one saved audit.

    Rows of CSV files are named as in RFC 7111 (``statistics.csv#row=2`` is the first row below the head); rows of a
    table's page carry the names ``r1``, ``r2`` ...
    """

    def __init__(self, audit: Any, paths: RunPaths):
        self.audit, self.paths = audit, paths
        self._frames: dict[str, pd.DataFrame | None] = {}

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(self.audit.statistics.index)}

    def row(self, row: pd.Series | None) -> str:
        """Of a row of the statistics frame; ``""`` where there is none."""
        return "" if row is None else f"statistics.csv#row={self._places[row.name] + 2}"

    def table(self, name: str, **where: Any) -> str:
        """Of a table's row in which every column of ``where`` holds its value; ``""`` where none was written."""
        from auditlib.tables import TABLES

        if name not in self._frames:
            try:
                there = (self.paths.tables / f"{name}.html").exists()
                self._frames[name] = TABLES[name].build(self.audit) if there else None
            except Lacking:
                self._frames[name] = None
        frame = self._frames[name]
        if frame is None:
            return ""
        hit = np.ones(len(frame), bool)
        for column, value in where.items():
            hit &= frame[column].astype(object).eq(value).to_numpy(bool)
        return f"tables/{name}.html#r{int(np.flatnonzero(hit)[0]) + 1}" if hit.any() else ""

    def headline(self, quantity: str, row: pd.Series | None) -> str:
        """Of a headline quantity: its row of the table, else of the statistics file."""
        return self.table("headline", quantity=quantity, arm=lookup.text(row, "arm")) or self.row(row)

    @cached_property
    def printed(self) -> dict[str, str]:
        """Address by printed number, for the numbers that a reason against a claim can name."""
        s, out = self.audit.statistics, {}
        for arm in lookup.arms(self.audit):
            for kind in ("within", "pooled"):
                keys = {"arm": arm, "policy": "wrong", "null_kind": kind}
                quantity = f"zero gain, null {'within categories' if kind == 'within' else 'pooled'}"
                whole = lookup.one(s, "zero_gain_share", models="all", stratum="all", **keys)
                at = self.headline(quantity, whole)
                least = extremes(s, "zero_gain_share", "excess", **keys)
                worst = extremes(s, "zero_gain_share", "p", **keys)
                texts = [] if whole is None else [p_value(whole["p"]), points(whole["excess"]),
                                                  pp(whole["excess_low"]), pp(whole["excess_high"])]  # fmt: skip
                here = dict.fromkeys(texts, at)
                here |= {points(least[0]["excess"]): at} if least else {}
                here |= {p_value(worst[1]["p"]): self.row(worst[1])} if worst else {}
                out = here | out
        notes = self.audit.detectors.get("note", pd.Series(dtype=str)).dropna().astype(str)
        return {m: "detectors.csv" for note in notes for m in re.findall(r"\d[\d,]*", note)} | out

    def study(self, name: str, frame: str, at: int) -> str:
        """Of a row, counted from 0, of a frame that a study left."""
        return f"{name}/{frame}.csv#row={at + 2}"


def extremes(statistics: pd.DataFrame, metric: str, column: str = "estimate", **keys: Any
             ) -> tuple[pd.Series, pd.Series] | None:  # fmt: skip
    """Rows with the smallest and the largest value over the pools that leave one model out; None where none does.

    The same rows as :func:`auditlib.lookup.pool_range` reads its two ends from.
    """
    table = lookup.rows(statistics, metric, stratum="all", **keys)
    named = table["models"].astype(str)
    table = lookup.unique_p(table[named.str.startswith("without ") & ~named.str.startswith("without family ")],
                            "models")  # fmt: skip
    return ends_of(table, column)


def ends_of(table: pd.DataFrame, column: str = "estimate") -> tuple[pd.Series, pd.Series] | None:
    """Rows with the smallest and the largest value of a column; None where it holds none."""
    values = pd.to_numeric(table[column], errors="coerce").dropna() if column in table else pd.Series(dtype=float)
    return (table.loc[values.idxmin()], table.loc[values.idxmax()]) if len(values) else None
