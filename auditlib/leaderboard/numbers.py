"""The statistics of one pool of a leaderboard: those rows of the audit that stay linear in models and items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib.counts import Counts, count, why_not
from auditlib.detectors.consensus_error import needs as consensus_needs
from auditlib.detectors.fleiss_kappa_agreement import needs as kappa_needs
from auditlib.frames import coverage_row
from auditlib.metrics.blocks import blocks_of, strata_labels
from auditlib.metrics.correctness import correctness_rows
from auditlib.metrics.families import add_q
from auditlib.metrics.profile import profile_rows
from auditlib.metrics.rows import row, statistics_frame
from auditlib.metrics.shares import HEADLINE, SHARES, null_rows
from auditlib.metrics.votes import kappa_rows, tier_rows
from auditlib.pool import Pool
from auditlib.stats.null import region_null
from auditlib.stats.wrong_options import same_wrong_in_all_pairs
from auditlib.threads import single_threaded

#: what the audit of a pool has and this path leaves to it, as the page says
LEFT_OUT = (
    "findings of items, leave-one-out rows of shares other than the headline's, same wrong option of single pairs, "
    "positions, sizes of pools, policies of abstention and integrity checks: run the pool's own audit for these"
)


def pool_statistics(pool: Pool) -> pd.DataFrame:
    """Statistics rows of a pool, each equal to the audit's row of that name.

    Shares against their nulls over all models, the headline share without each model (closed form), tiers of
    agreement, kappa on letters and on correctness, the same wrong option over all pairs (closed form), accuracy, gain
    and rates of unread replies by model.

    Returns
    -------
    frame of the statistics contract.

    Notes
    -----
    Every part costs models x items at most; nothing is done for each pair of models.
    """
    rows: list[dict[str, Any]] = []
    labels, words = strata_labels(pool)
    with single_threaded():
        for arm in pool.arm_names:
            if why_not(pool, pool.arms[arm]):
                continue
            whole = count(pool, arm)
            for share in SHARES:
                rows += null_rows(pool, share, whole, "all", labels, words, None, intervals=share == HEADLINE)
            if arm == pool.arm_names[0]:
                rows += _without_each(pool, arm, labels)
        if not consensus_needs(pool):
            rows += tier_rows(pool)
            rows += same_wrong_rows(pool)
        if not kappa_needs(pool):
            rows += kappa_rows(pool)
        rows += correctness_rows(pool) + profile_rows(pool)
    return add_q(statistics_frame(pool.name, rows))


def same_wrong_rows(pool: Pool) -> list[dict[str, Any]]:
    """The same wrong option over all pairs together, against the shuffled baseline."""
    keyed = pool.key_codes >= 0
    s = same_wrong_in_all_pairs(pool.letters["full"][keyed], pool.key_codes[keyed])
    if not s.n:
        return []
    from auditlib.metrics.votes import BASELINES

    note = f"over all pairs together; {BASELINES['shuffled']}"
    return [row("same_wrong_option", arm="exact", models="all pairs", n=s.n, null_kind="shuffled", estimate=s.estimate,
                null=s.shuffled, excess=s.estimate - s.shuffled, note=note)]  # fmt: skip


def _without_each(pool: Pool, arm: str, labels: np.ndarray | None) -> list[dict[str, Any]]:
    """The headline share and its excess in the pools without one model, each from its joint tables' closed form."""
    whole = count(pool, arm)
    if len(whole.models) < 2:
        return []
    kind = "pooled" if labels is None else "within"
    even = whole.draws == 1 and whole.n == len(pool.items) and not whole.note
    rows = []
    for j, name in enumerate(whole.models):
        if even:
            closed = _tie_excess(pool, arm, whole, pool.model_names.index(name), labels)
        else:
            counts = count(pool, arm, [m for i, m in enumerate(whole.models) if i != j])
            blocks = blocks_of(counts, labels)
            null = region_null(blocks.tables, blocks.regions(HEADLINE), draws=0, exact="never")
            closed = {"n": null.n, "estimate": null.share, "null": null.null, "excess": null.excess}
        place = {"arm": arm, "models": f"without {name}", "null_kind": kind, "family": "sensitivity"}
        rows.append(row(f"{HEADLINE}_share", closed, **place))
    return rows


def _tie_excess(pool: Pool, arm: str, whole: Counts, j: int, labels: np.ndarray | None) -> dict[str, float]:
    """Share of ties without model ``j``, and its mean when blind counts change places inside blocks, every cell there.

    In a block of n items with f_v of them at full count v and b_v at blind count v the mean is ``sum_v f_v b_v / n``.
    """
    hits = pool.arms[arm].hits
    full, blind = whole.F - hits["full"][:, j], whole.B - hits["blind"][:, j]
    code = np.zeros(whole.n, np.int64) if labels is None else labels.astype(np.int64)
    levels, size = len(whole.models), np.bincount(code)
    at = (int(code.max()) + 1) * levels
    f, b = (np.bincount(code * levels + v, minlength=at).reshape(-1, levels) for v in (full, blind))
    mean = float(((f * b).sum(axis=1) / np.maximum(size, 1)).sum()) / whole.n
    share = int((full == blind).sum()) / whole.n
    return {"n": whole.n, "estimate": share, "null": mean, "excess": share - mean}


def left_out_row() -> dict[str, Any]:
    """The coverage row that names what this path does not compute."""
    return coverage_row("not run", n=0, reason=f"left to the pool's own audit: {LEFT_OUT}")
