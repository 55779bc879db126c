"""Statistics of correctness with the image: solved by all, by none, agreement beyond chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditlib.metrics.rows import interval_fields, row, share_fields
from auditlib.pool import Pool
from auditlib.stats.agreement import fleiss_kappa


def correctness_rows(pool: Pool) -> list[dict[str, Any]]:
    """Saturated and never-solved shares and kappa on correctness, per arm, over items that every model answered."""
    rows = []
    for name in pool.arm_names:
        arm = pool.arms[name]
        if "full" not in arm.hits:
            continue
        columns = np.flatnonzero(arm.scored_models("full"))
        hits = arm.hits["full"][:, columns]
        kept, single = np.ones(len(hits), bool), True
        whole = np.ones(hits.shape, int)
        if arm.trials is not None:
            whole = arm.trials["full"][:, columns]
            single, kept = whole.max(initial=0) <= 1, (whole > 0).all(axis=1)
        hits, whole = hits[kept], whole[kept]
        n, models = hits.shape
        if not n or models < 2:
            continue
        cluster = None if pool.cluster is None else pool.cluster[kept]
        rows.append(row("saturated_share", share_fields((hits == whole).all(axis=1), cluster), arm=name))
        rows.append(row("never_solved_share", share_fields((hits == 0).all(axis=1), cluster), arm=name))
        if not single:  # kappa is defined on one right-or-wrong verdict of each model
            continue
        rng = pool.rng("correctness kappa", name)
        k = fleiss_kappa(hits.astype(np.int8), draws=pool.settings.bootstrap, rng=rng, cluster=cluster)
        ends = interval_fields(k.interval)
        rows.append(row("correctness_kappa", ends, arm=name, n=n, estimate=k.estimate, note=k.note))
    return rows
