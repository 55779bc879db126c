"""Leaderboards: pools without their texts, planted truth recovered, tables across pools, one page."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import auditlib
from auditlib.leaderboard import lean, single
from auditlib.parsed import cache_of
from auditlib.params import check_params
from auditlib.synth.leaderboard import LeaderboardRecipe, benchmark_world, truth_of, write_leaderboard

RECIPE = LeaderboardRecipe(models=6, benchmarks=3, items=120, strata=2, families=3, no_image=(0.1, 0.6))


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board") / "results"
    truth = write_leaderboard(RECIPE, folder)
    return folder, truth


def params_of(folder, benchmark, **more):
    said = {"pool": benchmark.lower(), "benchmark": benchmark, "data": {"folder": str(folder), "toolkit": "vlmevalkit"}}
    return check_params(said | more, folder.parent / "p.yaml")


def same_numbers(lean_pool, pool):
    """Arrays, items, models and, in any order, the rows of the coverage table."""
    assert lean_pool.model_names == pool.model_names
    for group in ("letters", "refused", "failed", "abstained"):
        x, y = getattr(lean_pool, group), getattr(pool, group)
        assert list(x) == list(y)
        assert all(np.array_equal(x[c], y[c]) and x[c].dtype == y[c].dtype for c in x), group
    assert list(lean_pool.arms) == list(pool.arms)
    for name, arm in pool.arms.items():
        mine = lean_pool.arms[name]
        assert mine.unit == arm.unit and list(mine.hits) == list(arm.hits)
        for x, y in ((mine.hits, arm.hits), (mine.trials, arm.trials)):
            assert all(np.array_equal(x[c], y[c]) and x[c].dtype == y[c].dtype for c in y), name
    pd.testing.assert_frame_equal(lean_pool.items, pool.items)
    pd.testing.assert_frame_equal(lean_pool.models, pool.models)

    def rows(p):
        return sorted(tuple(map(str, r)) for r in p.coverage.fillna("").itertuples(index=False))

    assert rows(lean_pool) == rows(pool)
    assert lean_pool.provenance == pool.provenance and set(lean_pool.inputs) == set(pool.inputs)
    assert lean_pool.responses is None


def test_lean_is_the_pool_without_texts(board, tmp_path):
    folder, _ = board
    (tmp_path / "outputs").mkdir()
    cache, told = cache_of(tmp_path / "outputs"), []
    for benchmark in RECIPE.benchmark_names[:2]:
        params = params_of(folder, benchmark)
        pool = auditlib.read_pool(params, cache=False)
        for _ in range(2):
            same_numbers(lean.read_lean(params, outputs=tmp_path, cache=cache, scans={}, say=told.append), pool)
    assert told == []
