"""Statistics of a pool, as rows of one frame."""

from __future__ import annotations

import pandas as pd

from auditlib.pool import Pool


def statistics(pool: Pool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All statistics that the pool supports, and the draws of its headline null.

    Returns
    -------
    statistics : frame of the statistics contract; q-values by family.
    draws : frame with columns metric, arm, models, stratum, null_kind, draw, share.
    """
    from auditlib.integrity import integrity_rows
    from auditlib.metrics.correctness import correctness_rows
    from auditlib.metrics.design import design_rows
    from auditlib.metrics.extraction import extraction_rows
    from auditlib.metrics.families import add_q
    from auditlib.metrics.key_information import key_information_rows
    from auditlib.metrics.key_integrity import key_integrity_rows
    from auditlib.metrics.policies import policy_rows
    from auditlib.metrics.pool_size import pool_rows
    from auditlib.metrics.positions import position_rows
    from auditlib.metrics.profile import profile_rows
    from auditlib.metrics.rows import statistics_frame
    from auditlib.metrics.sets import set_rows
    from auditlib.metrics.shares import share_rows
    from auditlib.metrics.votes import vote_rows

    rows, draws = share_rows(pool)
    # rows by other policies come last: the first row of a metric is the headline policy's
    parts = (
        pool_rows,
        vote_rows,
        correctness_rows,
        profile_rows,
        position_rows,
        design_rows,
        extraction_rows,
        key_information_rows,
        key_integrity_rows,
        integrity_rows,
        set_rows,
        policy_rows,
    )
    for part in parts:
        rows += part(pool)
    columns = ["metric", "arm", "models", "stratum", "null_kind", "draw", "share"]
    drawn = pd.concat([d.as_frame() for d in draws], ignore_index=True) if draws else pd.DataFrame(columns=columns)
    return add_q(statistics_frame(pool.name, rows)), drawn
