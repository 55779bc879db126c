"""Statistics of correctness with the image: solved by all, by none, agreement beyond chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditlib.metrics.rows import interval_fields, row
from auditlib.pool import Pool
from auditlib.stats.agreement import fleiss_kappa
from auditlib.stats.intervals import wilson


def correctness_rows(pool: Pool) -> list[dict[str, Any]]:
    """Saturated and never-solved shares and kappa on correctness, per arm, over items that every model answered."""
    rows = []
    for name in pool.arm_names:
        arm = pool.arms[name]
        if "full" not in arm.hits:
            continue
        columns = np.flatnonzero(arm.scored_models("full"))
        hits = arm.hits["full"][:, columns]
        if arm.trials is not None:
            trials = arm.trials["full"][:, columns]
            if trials.max(initial=0) > 1:
                continue
            hits = hits[(trials > 0).all(axis=1)]
        n, models = hits.shape
        if not n or models < 2:
            continue
        solved = hits.sum(axis=1, dtype=np.int64)
        for metric, k in (
            ("saturated_share", int((solved == models).sum())),
            ("never_solved_share", int((solved == 0).sum())),
        ):
            rows.append(row(metric, interval_fields(wilson(k, n)), arm=name, n=n, estimate=k / n))
        k = fleiss_kappa(hits.astype(np.int8), draws=pool.settings.bootstrap, rng=pool.rng("correctness kappa", name))
        rows.append(row("correctness_kappa", interval_fields(k.interval), arm=name, n=n, estimate=k.estimate))
    return rows
