"""Calibration probe: does the visual gain of an item recover the benchmark's own design labels?"""

from __future__ import annotations

from typing import Any

import numpy as np

from auditlib.counts import count, why_not
from auditlib.metrics.rows import interval_fields, row
from auditlib.metrics.shares import design_labels
from auditlib.pool import Pool
from auditlib.stats.auc import auc


def design_rows(pool: Pool) -> list[dict[str, Any]]:
    """AUC of the gain (F - B) / total, the params' positive label against all others, cluster bootstrap."""
    labels = design_labels(pool)
    if labels is None:
        return []
    positive = pool.settings.design.positive
    rows = []
    for arm in pool.arm_names:
        if why_not(pool, pool.arms[arm]):
            continue
        c = count(pool, arm)
        is_positive = labels[c.keep] == positive
        if not is_positive.any() or is_positive.all():
            continue
        gain = (c.F - c.B) if c.complete else (c.F - c.B) / c.total
        cluster = None if pool.cluster is None else pool.cluster[c.keep]
        a = auc(np.asarray(gain), is_positive, rng=pool.rng("auc", arm), draws=pool.settings.bootstrap, cluster=cluster)
        rows.append(
            row(
                "gain_auc",
                interval_fields(a.interval),
                arm=arm,
                level=f"positive {positive}",
                n=c.n,
                estimate=a.estimate,
                null=0.5,
                note=f"P(gain of a {positive} item > gain of another) + half the ties",
            )
        )
    return rows
