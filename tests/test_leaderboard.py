"""Leaderboards: pools without their texts, planted truth recovered, tables across pools, one page."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import auditlib
from auditlib.leaderboard import lean, single
from auditlib.params import check_params
from auditlib.parsed import cache_of
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
    rows = mine[fewer].merge(
        whole, on=["metric", "arm", "models", "stratum", "policy", "null_kind"], suffixes=("", "_a")
    )
    rows = rows[rows["estimate_a"].notna()].drop_duplicates(["models", "null_kind"])
    assert len(rows) == 6
    np.testing.assert_allclose(rows["excess"], rows["excess_a"], atol=1e-12)


def test_same_wrong_option_of_all_pairs(rng):
    """The closed form over pairs against every pair by itself."""
    from itertools import combinations

    from auditlib.stats.wrong_options import same_wrong_in_all_pairs, same_wrong_option

    letters, key = rng.integers(-2, 5, (80, 7)), rng.integers(-2, 5, 80)
    key[key < 0] = -2
    pairs = [same_wrong_option(letters[:, a], letters[:, b], key) for a, b in combinations(range(7), 2)]
    r, n = same_wrong_in_all_pairs(letters, key), sum(p.n for p in pairs)
    assert (r.same, r.n) == (sum(p.same for p in pairs), n)
    assert r.shuffled == pytest.approx(sum(p.n * p.shuffled for p in pairs) / n, rel=1e-12)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A leaderboard of arrays written as the parsed numbers of its pools: nine benchmarks, a pool that failed."""
    from auditlib.leaderboard.jobs import Outcome, PoolFiles, _failed, write_numbers
    from auditlib.leaderboard.tables import collect
    from auditlib.synth.leaderboard import benchmark_pool

    recipe = LeaderboardRecipe(models=5, benchmarks=9, items=60, strata=2, families=2, no_image=(0.0, 0.9))
    outputs = tmp_path_factory.mktemp("audited")
    truth = []
    for number in range(9):
        pool = benchmark_pool(recipe, number, 7)
        settings = {"pool": pool.name, "benchmark": pool.benchmark, "data": {"folder": "."},
                    "audit": {"permutations": 99, "bootstrap": 200}}  # fmt: skip
        params = check_params(settings, outputs / "p.yaml")
        write_numbers(dataclasses.replace(pool, params=params), PoolFiles(outputs, pool.name))
        truth.append(truth_of(benchmark_world(recipe, number, 7), recipe))
    _failed(PoolFiles(outputs, "broken"), params.model_copy(update={"pool": "broken"}), "no <b>file</b>")
    assert Outcome("x").error == ""
    return outputs, collect(outputs), pd.concat(truth)


def test_planted_truth_is_found(audited):
    """Blind accuracy of every model on every benchmark is the planted one, and benchmarks are told apart by it."""
    _, board, truth = audited
    both = board.profile.merge(truth, on=["benchmark", "model"], suffixes=("", "_true"), validate="one_to_one")
    assert len(both) == 45
    np.testing.assert_allclose(both["blind"], both["blind_true"], atol=1e-12)
    np.testing.assert_allclose(both["full"], both["full_true"], atol=1e-12)
    np.testing.assert_allclose(both["gain"], both["full_true"] - both["blind_true"], atol=1e-12)
    np.testing.assert_allclose(both["above_chance"], both["blind_true"] - 0.25, atol=1e-12)
    np.testing.assert_allclose(
        board.matrix.to_numpy(), both.pivot(index="model", columns="pool", values="blind_true") - 0.25
    )
    planted = truth.groupby("benchmark")["no_image"].first()
    found = board.benchmarks.dropna(subset=["blind"]).set_index("benchmark")
    assert np.corrcoef(planted[found.index], found["blind"])[0, 1] > 0.9
    # more items that need no image, more items on which the image gains nothing
    assert np.corrcoef(planted[found.index], found["zero_gain"])[0, 1] > 0.9
    means = truth.groupby("model")["full"].mean().sort_values(ascending=False)
    assert board.models["model"].iloc[0] == means.index[0]
    bands = board.models
    assert (bands["rank_low"] <= bands["rank"]).all() and (bands["rank"] <= bands["rank_high"]).all()


def test_failed_pools_and_holm_stay_on_the_page(audited):
    from auditlib.leaderboard.page import write_page
    from auditlib.metrics.families import holm_over_pools

    outputs, board, _ = audited
    b = board.benchmarks
    assert b.loc[b["pool"].eq("broken"), "error"].tolist() == ["no <b>file</b>"]
    np.testing.assert_allclose(b["p_holm"], holm_over_pools(b["p"]), equal_nan=True)
    text = write_page(outputs).read_text()
    assert (
        "no &lt;b&gt;file&lt;/b&gt;" in text and "<script" not in text and "http:" not in text and "https:" not in text
    )
    for name in (*b["benchmark"], *board.models["model"]):
        assert str(name) in text
    assert write_page(outputs).read_text() == text  # the same bytes again
    for table in ("benchmarks", "profile", "models", "matrix"):
        assert (outputs / "leaderboard" / f"{table}.csv").exists()
    assert len(pd.read_csv(outputs / "leaderboard" / "matrix.csv")) == 5


def test_heat_map_only_where_it_can_be_read():
    from auditlib.leaderboard.figures import readable

    assert readable(pd.DataFrame(np.zeros((40, 40))))
    assert not readable(pd.DataFrame(np.zeros((300, 80)))) and not readable(pd.DataFrame(np.zeros((5, 1))))


def test_ranks_without_bands_where_benchmarks_are_few(rng):
    from auditlib.leaderboard.ranks import board_ranks

    profile = pd.DataFrame(
        [(p, m, 0.1 * i) for p in "xy" for i, m in enumerate("abc")], columns=["pool", "model", "full"]
    )
    ranks, note = board_ranks(profile, rng)
    assert ranks["model"].tolist() == ["c", "b", "a"] and ranks["rank_low"].isna().all()
    assert note == "ranks without bands: these need 8 benchmarks, and there are 2"


def test_ranks_over_the_benchmarks_that_models_share(rng):
    """A benchmark that a model lacks is left out and named; only models that share nothing are not ranked."""
    from auditlib.leaderboard.ranks import board_ranks

    full = {"x": {"a": 0.1, "b": 0.5, "c": 0.3}, "y": {"a": 0.9, "b": 0.1}, "z": {"a": 0.2, "b": 0.4, "c": 0.5}}

    def ranks(**scores):
        rows = [(p, m, v) for p, models in scores.items() for m, v in models.items()]
        return board_ranks(pd.DataFrame(rows, columns=["pool", "model", "full"]), rng)

    table, note = ranks(**full)
    by = table.set_index("model")
    assert by["rank"].to_dict() == {"a": 3, "b": 1, "c": 2} and set(by["n"]) == {2}
    np.testing.assert_allclose(by["score"][["a", "b", "c"]], [0.15, 0.45, 0.4])
    assert "the 2 of 3 benchmarks that all 3 ranked models have; left out: y (1 of them lacks it)" in note
    table, note = ranks(**full, other={"d": 0.7})  # d shares nothing: the others' ranks stay
    assert table.set_index("model")["rank"].to_dict() == by["rank"].to_dict()
    assert "1 of 4 models are not ranked" in note and "other (3 of them lack it)" in note
    table, note = ranks(x={"a": 0.1}, y={"b": 0.1})
    assert table.empty and note == "no ranks: no two models have a benchmark in common"


def test_one_pool_of_a_benchmark_counts():
    """That with the most models, of equal ones the later name; failed pools do not count."""
    from auditlib.leaderboard.tables import _one_each

    rows = [("a", "Tiny", 5, ""), ("b", "tiny", 5, ""), ("c", "Tiny", 4, ""), ("d", "Tiny", None, "lost"),
            ("e", "Other", 2, "")]  # fmt: skip
    counting, [note] = _one_each(pd.DataFrame(rows, columns=["pool", "benchmark", "models", "error"]))
    assert counting == {"b", "e"}
    assert note.startswith("Tiny has 3 pools; means and ranks of models use b ") and note.endswith("not a, c")


@pytest.fixture
def audited_before(board, tmp_path, monkeypatch):
    """Outputs in which Bench01 of a tree has been audited twice, under its own name and as ``mine``; no pictures."""
    from auditlib.leaderboard import page
    from auditlib.outputs import save_audit
    from auditlib.paths import RunPaths

    monkeypatch.setattr(page, "_pictures", lambda board, outputs: [])
    outputs = tmp_path / "outputs"
    params = params_of(board[0], "Bench01", audit={"permutations": 99, "bootstrap": 200})
    audit = auditlib.audit(auditlib.read_pool(params, cache=False))
    for name in ("bench01", "mine"):
        paths = RunPaths(outputs, name)
        save_audit(audit, paths)
        paths.report_html.write_text("report")
    return outputs


def test_page_holds_the_pools_of_its_sources(board, audited_before):
    from auditlib.__main__ import main

    def shown(*said):
        assert main(["leaderboard", *said, "--outputs", str(audited_before), "--jobs", "1"]) == 0
        table = pd.read_csv(audited_before / "leaderboard" / "benchmarks.csv")
        models = pd.read_csv(audited_before / "leaderboard" / "models.csv")
        assert models["rank"].notna().all() and set(models["benchmarks"]) == {2}
        return table["pool"].tolist(), (audited_before / "leaderboard.html").read_text()

    own, tree = ["bench01", "bench02"], [str(board[0]), "--pools", "bench0[12]"]
    pools, text = shown(*tree)
    assert pools == own and "2 benchmarks, 6 models" in text and "pools; means" not in text
    for said in ([*tree, "--with-audits"], []):
        pools, text = shown(*said)
        assert pools == [*own, "mine"] and "2 benchmarks in 3 pools, 6 models" in text
        assert "Bench01 has 2 pools; means and ranks of models use mine " in text


def test_report_of_other_data_is_not_linked(board, audited_before, tmp_path):
    """A tree with the same benchmark elsewhere, and one that has another model by now."""
    import shutil

    from auditlib.__main__ import main

    link, line = 'href="bench01/report.html"', "is not linked"

    def page(tree):
        shutil.rmtree(audited_before / "leaderboard", ignore_errors=True)
        said = ["leaderboard", str(tree), "--outputs", str(audited_before), "--jobs", "1", "--pools", "bench01"]
        assert main(said) == 0
        return (audited_before / "leaderboard.html").read_text()

    text = page(board[0])
    assert link in text and line not in text
    shutil.copytree(board[0], tmp_path / "elsewhere")
    text = page(tmp_path / "elsewhere")
    assert link not in text and line in text
    gone = ("Model-006", "Model-006_blind")
    for name in gone:
        shutil.move(board[0] / name, tmp_path / name)
    try:
        text = page(board[0])
    finally:
        for name in gone:
            shutil.move(tmp_path / name, board[0] / name)
    assert link not in text and line in text


def test_bench_fits_a_fixed_part_and_one_that_grows():
    import importlib.util
    from pathlib import Path

    spec = importlib.util.spec_from_file_location("bench_board", Path(__file__).parent / "bench" / "leaderboard.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    fixed, each = bench.fitted(5 + 0.1 * 30, 5 + 0.1 * 60, 30)
    assert (fixed, each) == pytest.approx((5, 0.1))
    assert bench.fitted(2.0, 1.9, 30) == (2.0, 0.0)  # noise never makes a cost negative
    assert bench.fitted(1.0, 3.0, 10) == pytest.approx((0.0, 0.15))


def test_command_from_tree_to_page(board, tmp_path, capsys):
    """The command on a tree, one broken benchmark among the others; then again from the cache, with one pool only."""
    import shutil

    from auditlib.__main__ import main

    folder, outputs = tmp_path / "results", tmp_path / "outputs"
    shutil.copytree(board[0], folder)
    (folder / "Model-001" / "Model-001_Bench03.tsv").write_bytes(b"index\tprediction\n1\t\xff\n")
    assert main(["leaderboard", str(folder), "--outputs", str(outputs), "--jobs", "1"]) == 1
    said = capsys.readouterr()
    assert "bench01" in said.out and "1 of 3 pools failed: bench03" in said.err
    assert (outputs / "leaderboard.html").exists() and 'href="leaderboard.html"' in (outputs / "index.html").read_text()
    table = pd.read_csv(outputs / "leaderboard" / "benchmarks.csv")
    assert table["error"].notna().sum() == 1 and "UTF-8" in table["error"].dropna().iloc[0]
    assert main(["leaderboard", str(folder), "--outputs", str(outputs), "--jobs", "1", "--pools", "bench01"]) == 0
    assert main(["cache", "--outputs", str(outputs), "--clear"]) == 0
    assert "entries removed" in capsys.readouterr().out
