"""Graded verdicts, repeated draws, uneven draws, rotations."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.counts import count, why_not
from auditlib.metrics.profile import profile_rows
from auditlib.metrics.sets import set_rows
from auditlib.pool import Arm, Pool


def _pool(hits, trials, unit=1, ids=None) -> Pool:
    n, m = hits["full"].shape
    items = pd.DataFrame({"item": [str(i) for i in (ids or range(n))]})
    return Pool(
        "g", "G", items, pd.DataFrame({"model": list("abcd")[:m]}), {"judged": Arm("judged", hits, trials, unit)}
    )


def test_uneven_draws_meet_at_their_common_multiple():
    hits = {"full": np.array([[2, 1], [1, 0]]), "blind": np.array([[2, 1], [0, 1]])}
    trials = {c: np.array([[2, 1], [2, 1]]) for c in hits}
    pool = _pool(hits, trials)
    c = count(pool, "judged")
    assert not why_not(pool, pool.arms["judged"])
    assert (c.F.tolist(), c.B.tolist(), c.total.tolist(), c.draws) == ([4, 1], [4, 2], [4, 4], 2)
    assert "1 and 2 draws" in c.note


def test_graded_accuracy_counts_items():
    hits = {"full": np.array([[3], [10], [0], [6]])}
    pool = _pool(hits, {"full": np.full((4, 1), 10)}, unit=10)
    r = next(r for r in profile_rows(pool) if r["metric"] == "accuracy")
    assert (r["n"], r["estimate"]) == (4, 19 / 40)
    assert 0 <= r["low"] < r["estimate"] < r["high"] <= 1


def test_three_of_four_rotations_are_no_circular_hit():
    """VLMEvalKit#141."""
    hits = {"full": np.array([[1], [1], [1], [0]], np.uint8)}
    pool = _pool(hits, None, ids=[1, 1000001, 2000001, 3000001])
    r = set_rows(pool)[0]
    assert (r["metric"], r["n"], r["estimate"]) == ("circular_accuracy", 1, 0)
    assert next(r for r in profile_rows(pool) if r["metric"] == "accuracy")["estimate"] == 0.75
