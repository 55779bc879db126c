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


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    from auditlib.synth.embedded import materialise

    outputs = tmp_path_factory.mktemp("embedded")
    return materialise("tinysee", outputs)


def test_lean_with_verdicts_and_gaps(embedded, tmp_path):
    """Judged files, damaged replies, a run that lacks items, a model without a blind run, a model left out."""
    import shutil

    folder = tmp_path / "results"
    shutil.copytree(embedded, folder)
    params = check_params(
        {"pool": "tinysee", "benchmark": "TinySee", "data": {"folder": str(folder), "toolkit": "vlmevalkit"}},
        tmp_path / "p.yaml",
    )
    told = []
    pool = auditlib.read_pool(params, cache=False)
    same_numbers(lean.read_lean(params, outputs=tmp_path, say=told.append), pool)
    blind = sorted(p for p in folder.iterdir() if p.name.endswith("_blind"))
    shutil.rmtree(blind[0])
    left = pool.model_names[-1]
    params = params.model_copy(update={"audit": params.audit.model_copy(update={"exclude_models": [left, "nobody"]})})
    pool = auditlib.read_pool(params, cache=False)
    same_numbers(lean.read_lean(params, outputs=tmp_path, say=told.append), pool)
    assert told == []


def test_lean_with_missing_items_and_copies(board, tmp_path):
    """A run without some items, and one run that holds another's replies: the same rows of the coverage table."""
    import shutil

    folder = tmp_path / "results"
    shutil.copytree(board[0], folder)
    file = folder / "Model-002" / "Model-002_Bench01.tsv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:30], *lines[40:], ""]))
    shutil.copy(folder / "Model-003" / "Model-003_Bench01.tsv", folder / "Model-004" / "Model-004_Bench01.tsv")
    told = []
    params = params_of(folder, "Bench01")
    pool = auditlib.read_pool(params, cache=False)
    assert pool.coverage["reason"].str.startswith("all replies are those of").any()
    assert pool.coverage["what"].eq("missing").any()
    same_numbers(lean.read_lean(params, outputs=tmp_path, say=told.append), pool)
    assert told == []


def test_what_does_not_fit_is_read_in_the_ordinary_way(board, tmp_path):
    import shutil

    folder = tmp_path / "results"
    shutil.copytree(board[0], folder)
    file = folder / "Model-002" / "Model-002_Bench01.tsv"
    file.write_text(file.read_text().replace("thing 7-1\t", "another thing\t"))
    told = []
    params = params_of(folder, "Bench01")
    pool = auditlib.read_pool(params, cache=False)
    same_numbers(lean.read_lean(params, outputs=tmp_path, say=told.append), pool)
    assert told == ["read with its texts: runs disagree about items (options)"]


def test_one_model_more_is_one_model_read(board, tmp_path, monkeypatch):
    import shutil

    folder = tmp_path / "results"
    shutil.copytree(board[0], folder)
    shutil.move(folder / "Model-006", tmp_path / "later")
    shutil.move(folder / "Model-006_blind", tmp_path / "later_blind")
    (tmp_path / "outputs").mkdir()
    cache, read = cache_of(tmp_path / "outputs"), []
    real = single.single_of
    monkeypatch.setattr(lean, "single_of", lambda model, *rest: read.append(model) or real(model, *rest))
    params = params_of(folder, "Bench02")
    lean.read_lean(params, outputs=tmp_path, cache=cache)
    assert len(read) == 5
    shutil.move(tmp_path / "later", folder / "Model-006")
    shutil.move(tmp_path / "later_blind", folder / "Model-006_blind")
    read.clear()
    pool = lean.read_lean(params, outputs=tmp_path, cache=cache)
    assert read == ["Model-006"] and len(pool.models) == 6
    for entry in (tmp_path / "outputs").rglob("*.parsed"):  # damage: read again, never trusted
        entry.write_bytes(entry.read_bytes()[:-3])
    read.clear()
    again = lean.read_lean(params, outputs=tmp_path, cache=cache)
    assert len(read) == 6
    assert all(np.array_equal(again.letters[c], pool.letters[c]) for c in pool.letters)


def test_statistics_are_the_audits(board, tmp_path):
    """Every row that this path makes is the audit's own row, number by number."""
    from auditlib.leaderboard.numbers import pool_statistics

    params = params_of(board[0], "Bench03", audit={"permutations": 99, "bootstrap": 200})
    pool = lean.read_lean(params, outputs=tmp_path)
    mine = pool_statistics(pool)
    whole = auditlib.audit(auditlib.read_pool(params, cache=False)).statistics
    on = ["metric", "arm", "models", "stratum", "policy", "null_kind", "level", "p_method"]
    fewer = mine["models"].str.startswith("without")
    both = mine[~fewer].merge(whole, on=on, how="left", suffixes=("", "_audit"), validate="one_to_one")
    assert len(both) == (~fewer).sum() > 40
    for column in ("n", "estimate", "low", "high", "null", "null_sd", "excess", "excess_low", "excess_high", "p"):
        np.testing.assert_allclose(both[column], both[f"{column}_audit"], rtol=1e-9, atol=1e-12, err_msg=column)
    rows = mine[fewer].merge(whole, on=["metric", "arm", "models", "stratum", "policy", "null_kind"], suffixes=("", "_a"))
    rows = rows[rows["estimate_a"].notna()].drop_duplicates(["models", "null_kind"])
    assert len(rows) == 6
    np.testing.assert_allclose(rows["excess"], rows["excess_a"], atol=1e-12)
