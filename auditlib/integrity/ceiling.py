"""What a perfect model could reach at most, and how many items a benchmark really holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditlib.integrity.duplicates import shared_pictures
from auditlib.integrity.facts import item_facts, plain
from auditlib.integrity.items import unreachable
from auditlib.metrics.rows import interval_fields, row
from auditlib.pool import Pool
from auditlib.stats.intervals import Interval


def ceiling_rows(pool: Pool) -> list[dict[str, Any]]:
    """``attainable_ceiling``: share of the items with a key and options whose key can be met by an option shown.

    Overall, by stratum, and by source (``level`` is ``source NAME``). The share is a count, so it has no interval.
    """
    facts = {f.item: unreachable(f) for f in item_facts(pool.items) if f.key}
    if not facts:
        return []
    ids = pool.items["item"].astype(str).to_numpy(dtype=object)
    judged = np.array([i in facts for i in ids], bool)
    lost = np.array([facts.get(i, False) for i in ids], bool)
    rows = [_row(judged, lost)]
    strata = pool.strata
    for name in [] if strata is None else sorted(set(strata)):
        rows += _row_of(judged & (strata == name), lost, stratum=name)
    if "source" in pool.items:
        source = np.array([plain(s) for s in pool.items["source"]], dtype=object)
        for name in sorted(set(source) - {""}) if len(set(source) - {""}) > 1 else []:
            rows += _row_of(judged & (source == name), lost, level=f"source {name}")
    return rows


def _row_of(here: np.ndarray, lost: np.ndarray, **place: str) -> list[dict[str, Any]]:
    return [_row(here, lost, **place)] if here.any() else []


def _row(here: np.ndarray, lost: np.ndarray, **place: str) -> dict[str, Any]:
    n, bad = int(here.sum()), int((here & lost).sum())
    note = f"{bad} of {n} items have a key that no option shown can meet" if bad else ""
    return row("attainable_ceiling", n=n, estimate=(n - bad) / n, note=note, **place)


def cluster_rows(pool: Pool) -> list[dict[str, Any]]:
    """``effective_items``: how many independent items those with a known picture are worth.

    ``low`` is the number were items of one picture alike throughout (all sizes m: (sum m)^2 / sum m^2), ``high`` their
    number were they independent.
    """
    sizes = shared_pictures(pool.items)
    if sizes is None or sizes.max() < 2:
        return []
    n = int(sizes.sum())
    effective = float(n * n / (sizes * sizes).sum())
    shared = sizes[sizes > 1]
    note = f"{len(shared)} pictures are shared by {int(shared.sum())} items, at most {sizes[0]} by one"
    ends = interval_fields(Interval(effective, float(n), float("nan"), "range"))
    return [row("effective_items", ends, n=n, estimate=effective, note=note)]
