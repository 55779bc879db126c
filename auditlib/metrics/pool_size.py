"""How the headline depends on the pool: its size, its halves, where the excess sits."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditlib.counts import count, why_not
from auditlib.metrics.blocks import blocks_of, strata_labels
from auditlib.metrics.rows import row
from auditlib.metrics.shares import HEADLINE
from auditlib.pool import Pool
from auditlib.stats.null import composition
from auditlib.stats.poolsize import pool_size_curve
from auditlib.stats.splits import split_halves

#: with more levels, those that no item holds or could hold are left out
MANY_LEVELS = 40


def pool_rows(pool: Pool) -> list[dict[str, Any]]:
    """Composition of the excess, pool-size curve, split halves, per arm."""
    rows: list[dict[str, Any]] = []
    for arm in pool.arm_names:
        if not why_not(pool, pool.arms[arm]):
            rows += _composition(pool, arm) + _curve(pool, arm) + _splits(pool, arm)
    return rows


def _composition(pool: Pool, arm: str) -> list[dict[str, Any]]:
    counts = count(pool, arm)
    labels, _ = strata_labels(pool)
    rows = []
    for kind, codes in (("pooled", None), ("within", labels)):
        if kind == "within" and codes is None:
            continue
        observed, expected = composition(blocks_of(counts, codes).tables)
        many = len(observed) > MANY_LEVELS
        for level, (o, e) in enumerate(zip(observed.tolist(), expected.tolist())):
            if many and not o and not e and level + 1 < len(observed):
                continue
            rows.append(
                row(
                    "zero_gain_composition",
                    arm=arm,
                    null_kind=kind,
                    level=level,
                    n=o,
                    estimate=o / counts.n,
                    null=e / counts.n,
                    excess=(o - e) / counts.n,
                )
            )
    return rows


def _complete(pool: Pool, arm: str) -> tuple[np.ndarray, np.ndarray, list[int]] | None:
    """Hits of the models and items with every cell, as 0/1 arrays; None where draws repeat or no item is complete."""
    counts = count(pool, arm)
    if not counts.complete or counts.draws != 1:
        return None
    columns = [pool.model_names.index(m) for m in counts.models]
    full, blind = (pool.arms[arm].hits[c] for c in ("full", "blind"))
    if len(columns) < full.shape[1] or not counts.keep.all():
        full, blind = full[np.ix_(counts.keep, columns)], blind[np.ix_(counts.keep, columns)]
    return full, blind, columns


def _curve(pool: Pool, arm: str) -> list[dict[str, Any]]:
    hits = _complete(pool, arm)
    if hits is None or len(hits[2]) < 3:
        return []
    rows = []
    for point in pool_size_curve(hits[0], hits[1], rng=pool.rng("pool size", arm)):
        for metric, what in (("pool_size_zero_gain_share", "share"), ("pool_size_excess", "excess")):
            rows.append(
                row(
                    metric,
                    point.as_row(what),
                    arm=arm,
                    null_kind="pooled",
                    note="median and range over "
                    + ("all subsets" if point.complete else "seeded subsets")
                    + " of models",
                )
            )
    return rows


def _splits(pool: Pool, arm: str) -> list[dict[str, Any]]:
    counts = count(pool, arm)
    if counts.n < 20:
        return []
    blocks = blocks_of(counts)
    s = split_halves(blocks.tables, blocks.regions(HEADLINE), splits=pool.settings.splits, rng=pool.rng("splits", arm))
    return [
        row(
            "split_half_difference",
            arm=arm,
            null_kind="pooled",
            n=pool.settings.splits,
            estimate=s.median,
            null=s.expected,
            low=s.expected_low,
            high=s.expected_high,
            family="sensitivity",
            note="median absolute difference of the excess between halves; null, low, high: under the fitted F x B law",
        )
    ]
