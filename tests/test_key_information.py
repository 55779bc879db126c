"""Whether a key carries information for a pool: kappa, majority, item-rest correlation against independent counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from builders import tiny_pool
from statsmodels.stats.inter_rater import cohens_kappa

import auditlib
from auditlib.metrics.key_information import key_information_rows, uninformative
from auditlib.metrics.rows import statistics_frame
from auditlib.params import check_params

FAST = {"bootstrap": 2000}


def _rows(pool):
    return statistics_frame("p", key_information_rows(pool))


def _kappa(one, two):
    """Oracle: statsmodels on the table of pairs."""
    side = sorted(set(one) | set(two))
    table = pd.crosstab(np.asarray(one), np.asarray(two)).reindex(index=side, columns=side, fill_value=0)
    return cohens_kappa(table.to_numpy(), return_results=False)


def _pool(n=200, models=5, skill=0.5, seed=0, **more):
    rng = np.random.default_rng(seed)
    key = rng.integers(0, 4, n)
    level = np.broadcast_to(skill, n)
    said = {}
    for j in range(models):
        right = rng.random(n) < level * (0.6 + 0.2 * j)
        letters = np.where(right, key, rng.integers(0, 4, n))
        said[f"m{j}", "full"] = [("ABCD"[c] if rng.random() > 0.05 else "hard to say") for c in letters]
    return tiny_pool(said, ["ABCD"[k] for k in key], settings=FAST, **more)


def test_kappa_is_that_of_the_pooled_votes():
    pool = _pool()
    letters, key = pool.letters["full"], pool.key_codes
    votes = letters >= 0
    pairs = np.broadcast_to(key[:, None], letters.shape)[votes], letters[votes]
    row = _rows(pool).set_index("metric").loc["key_kappa"]
    assert row["estimate"] == pytest.approx(_kappa(*pairs), abs=1e-12)
    assert row["low"] < row["estimate"] < row["high"] and row["null"] == 0 and row["n"] == 200


def test_majority_counts_ties_in_parts():
    replies = [["A", "A", "B"], ["A", "B", "C"], ["B", "B", "A"], ["A", "B", "Z?"]] * 3
    pool = tiny_pool({(f"m{j}", "full"): [r[j] for r in replies] for j in range(3)}, ["A"] * 12, settings=FAST)
    row = _rows(pool).set_index("metric").loc["key_majority"]
    assert row["estimate"] == pytest.approx((1 + 1 / 3 + 0 + 1 / 2) / 4)
    assert row["null"] == pytest.approx(0.25)


def test_item_rest_is_the_mean_of_the_items_correlations():
    pool = _pool(60)
    hits = (pool.letters["full"] == pool.key_codes[:, None]).astype(float)
    total = hits.sum(1)
    r = [np.corrcoef(h, (hits.sum(0) - h))[0, 1] for h, t in zip(hits, total) if 0 < t < hits.shape[1]]
    row = _rows(pool).set_index("metric").loc["key_item_rest"]
    assert row["n"] == len(r) and row["estimate"] == pytest.approx(np.mean(r), abs=1e-9)


def test_a_random_key_is_silent_and_a_true_one_is_not():
    n = 300
    skill = np.where(np.arange(n) < 150, 0.0, 0.7)
    pool = _pool(n, skill=skill, stratum=["noise" if i < 150 else "sense" for i in range(n)])
    silent = uninformative(_rows(pool))
    assert silent["stratum"].tolist() == ["noise"] and silent["tested"].tolist() == [2]
    assert silent["kappa_low"].iloc[0] <= 0 <= silent["kappa_high"].iloc[0]


def test_error_rate_of_the_sentence_and_its_power():
    """Over worlds: a key of chance is called silent in most, a key that models know 40% of never."""
    silent = {s: sum(len(uninformative(_rows(_pool(120, skill=s, seed=i)))) for i in range(12)) for s in (0.0, 0.4)}
    assert silent[0.0] >= 9 and silent[0.4] == 0


def test_items_of_one_cluster_are_drawn_together():
    pool = _pool(200)
    alike = _pool(200, image_key=[f"p{i // 10}" for i in range(200)])
    a, b = (_rows(p).set_index("metric").loc["key_kappa"] for p in (pool, alike))
    assert a["estimate"] == b["estimate"] and (a["low"], a["high"]) != (b["low"], b["high"])


def test_pools_without_letters_or_of_one_model_have_no_rows():
    assert key_information_rows(auditlib.Pool.from_hits(np.ones((20, 3), int))) == []
    assert key_information_rows(tiny_pool({("a", "full"): ["A"] * 20}, ["A"] * 20)) == []


def test_blink_keys_that_say_nothing_for_this_pool(shared_data):
    """Oracle: the raw letters. The Relative_Reflectance key was mostly wrong (BLINK_Benchmark#13)."""
    folder = shared_data / "real"
    file = folder / "blink_outputs/blink_val_predictions.csv.gz"
    if not file.exists():
        pytest.skip("the saved outputs are not here")
    from test_real_pools import BLINK_K

    out = ["GPT4V* concatenate images", "GeminiProVision* concatenate images"]
    columns = {"item": "idx", "stratum": "task", "key": "gold", "prediction": "prediction"}
    data = {"table": "blink_outputs/blink_val_predictions.csv.gz", "columns": columns}
    audit = {"options_by_stratum": BLINK_K, "exclude_models": out, "bootstrap": 4000}
    raw = {"pool": "blink", "benchmark": "BLINK", "data": data, "audit": audit}
    table = _rows(auditlib.read_pool(check_params(raw, folder / "params.yaml")))
    kappa = table[table["metric"] == "key_kappa"].set_index("stratum")
    theirs = pd.read_csv(file, dtype=str, keep_default_na=False)
    theirs = theirs[~theirs["model"].isin(out)]
    theirs = theirs.assign(said=theirs["prediction"].str.extract(r"^\(([A-Z])\)", expand=False))
    for task in ("Relative_Reflectance", "Visual_Similarity", "Art_Style"):
        part = theirs[theirs["task"].eq(task) & theirs["said"].isin(list("ABCD"[: BLINK_K[task]]))]
        expected = _kappa(part["gold"].str.strip("()"), part["said"])
        assert kappa.loc[task, "estimate"] == pytest.approx(expected, abs=1e-9)
    silent = uninformative(table)
    expected = {"Functional_Correspondence", "Multi-view_Reasoning", "Object_Localization", "Relative_Reflectance"}
    assert set(silent["stratum"]) == expected and set(silent["tested"]) == {14}
    assert "Visual_Similarity" not in set(silent["stratum"])
