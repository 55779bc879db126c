"""Is the key shifted, relabelled, or first too often? By stratum, in the order of the file.

A p here says that another reading of the key fits the pool's votes better than the key does. It never says that the key
is wrong, and silence says nothing about single keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from auditlib.metrics.key_information import FEWEST, MODELS
from auditlib.metrics.rows import row
from auditlib.pool import Pool
from auditlib.stats.agreement import category_counts
from auditlib.stats.key_scan import first_option, lag_scan, relabelling

#: draws of the lag scan's null, fewer where items are many
DRAWS, MOST = 999, 20_000_000


def key_integrity_rows(pool: Pool) -> list[dict[str, Any]]:
    """``key_lag_gain``, ``key_relabel_gain`` and ``key_first_option``, overall and by stratum.

    Each is a family of its own over the strata; ``all`` stands beside them. Relabelling needs one number of options.
    """
    key = pool.key_codes.astype(int)
    k = np.zeros(len(key), int) if pool.k is None else np.nan_to_num(pool.k).astype(int)
    keyed = (key >= 0) & (key < k)
    strata = pool.strata
    names = [] if strata is None else sorted(set(strata))
    groups = [("all", keyed), *((s, keyed & (strata == s)) for s in names)]
    voted = "full" in pool.letters and len(pool.model_names) >= MODELS
    rows: list[dict[str, Any]] = []
    for name, here in groups:
        if here.sum() < FEWEST:
            continue
        place = {"arm": "exact", "stratum": name, "policy": "", "family": ""}

        def family(metric: str, name: str = name) -> str:
            return f"strata:{metric}" if name != "all" else "sensitivity" if names else metric

        place["family"] = family("key_first_option")
        first = first_option(key[here], k[here])
        rows.append(row("key_first_option", first.as_row(), **place, note="share of keys that are the first option"))
        if voted:
            rows += [r | {"family": family(r["metric"])} for r in _scans(pool, name, here, key, k, place)]
    return rows


def _scans(
    pool: Pool, name: str, here: np.ndarray, key: np.ndarray, k: np.ndarray, place: dict[str, str]
) -> list[dict[str, Any]]:
    letters = pool.letters["full"][here]
    counts = category_counts(letters, max(int(letters.max(initial=0)), int(key[here].max())) + 1)
    draws = max(99, min(DRAWS, MOST // max(1, len(counts))))
    scan = lag_scan(counts, key[here], rng=pool.rng("lag scan", name), draws=draws)
    where = (
        f"rows {scan.start + 1} to {scan.stop} of those counted fit the key {scan.lag:+d} rows on" if scan.lag else ""
    )
    out = []
    if scan.p_method:
        out.append(row("key_lag_gain", scan.as_row(), **place, note=where))
    if len(set(k[here].tolist())) == 1:
        r = relabelling(counts, key[here], int(k[here][0]))
        if not np.isnan(r.p):
            note = f"key letters in order would become places {[t + 1 for t in r.to]}" if r.p < 1 else "labels fit best"
            out.append(row("key_relabel_gain", r.as_row(), **place, note=note))  # fmt: skip
    return out
