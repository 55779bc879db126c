"""Rank bands and the what-if leaderboard.

Oracles: statsmodels' Holm over scipy's paired differences, the studentised range, enumeration of all rankings, and
pools with known scores.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm, sem, studentized_range
from statsmodels.stats.multitest import multipletests

from auditlib.errors import AuditError
from auditlib.metrics.what_if import AS_IS, CORRECTED, WEIGHTED, WITHOUT, what_if
from auditlib.pool import Pool
from auditlib.stats.rank_bands import rank_bands


def _scores(rng, items: int, chances) -> np.ndarray:
    hard = rng.normal(0, 0.2, (items, 1))
    return (rng.random((items, len(chances))) < np.clip(np.asarray(chances) + hard, 0, 1)).astype(float)


def test_pairs_told_apart_are_holms(rng):
    x = _scores(rng, 300, [0.8, 0.74, 0.72, 0.6, 0.58])
    a, b = np.triu_indices(5, 1)
    z = [(x[:, i] - x[:, j]).mean() / sem(x[:, i] - x[:, j]) for i, j in zip(a, b)]
    reject = multipletests(2 * norm.sf(np.abs(z)), 0.05, "holm")[0]
    ours = rank_bands(x, method="bonferroni").beats
    assert reject.any() and not reject.all()
    assert (ours[a, b] | ours[b, a]).tolist() == reject.tolist()
    assert (ours[a, b] == (reject & (np.array(z) > 0))).all()


def test_bands_are_the_extremes_of_all_rankings_that_respect_the_pairs_told_apart(rng):
    r = rank_bands(_scores(rng, 250, [0.85, 0.7, 0.68, 0.5, 0.45]), rng=rng)
    places = np.array([
        np.argsort(order) for order in permutations(range(5))
        if not any(r.beats[order[j], order[i]] for i in range(5) for j in range(i + 1, 5))
    ]) + 1  # fmt: skip
    assert 1 < len(places) < 120
    assert (places.min(axis=0) == r.low).all() and (places.max(axis=0) == r.high).all()


def test_bootstrap_bar_is_the_studentised_range():
    """Three models alike and independent: the largest of three differences has Tukey's law."""
    bar = studentized_range.ppf(0.95, 3, np.inf) / np.sqrt(2)
    # mean differences in units of their standard error, just short of and just beyond the bar
    for factor, apart in ((0.97, False), (1.03, True)):
        base = np.random.default_rng(1).normal(size=(4000, 3))
        base = (base - base.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(base.T))).T
        base[:, 0] += factor * bar * np.sqrt(2 / 4000)
        r = rank_bands(base, rng=np.random.default_rng(2), draws=40_000)
        assert r.beats[0, 1] == apart and r.beats[0, 2] == apart and not r.beats[1, 2]


def test_bands_hold_all_true_ranks_in_95_of_100_pools():
    chances, true = [0.7, 0.7, 0.66, 0.6, 0.6], [(1, 2), (1, 2), (3, 3), (4, 5), (4, 5)]
    held, alone = 0, 0
    for seed in range(300):
        g = np.random.default_rng(seed)
        r = rank_bands(_scores(g, 400, chances), rng=g, draws=500)
        held += all(low <= t[0] and t[1] <= high for low, high, t in zip(r.low, r.high, true))
        alone += bool((r.low == r.high).all())
    assert binomtest(held, 300).proportion_ci(0.999).high >= 0.95 and alone < held


def test_clusters_widen_and_pairing_narrows(rng):
    one = _scores(rng, 150, [0.75, 0.65, 0.6])
    twice = np.repeat(one, 4, axis=0)
    by_cluster = rank_bands(twice, cluster=np.repeat(np.arange(150), 4), method="bonferroni")
    assert by_cluster.units == 150 and by_cluster.items == 600
    assert by_cluster.se == pytest.approx(rank_bands(one, method="bonferroni").se)
    assert by_cluster.beats.sum() <= rank_bands(twice, method="bonferroni").beats.sum()
    # a hard and an easy half cost nothing when both models meet them
    hard = np.repeat([0.0, 1.0], 200)
    paired = np.c_[hard, np.where(np.arange(400) % 10 == 0, 0, hard)]
    assert rank_bands(paired, method="bonferroni").beats[0, 1]


def test_models_that_answer_alike_share_a_rank_and_a_group(rng):
    x = _scores(rng, 200, [0.9, 0.3])
    r = rank_bands(np.c_[x[:, 0], x[:, 0], x[:, 1]], rng=rng)
    assert r.rank.tolist() == [1.5, 1.5, 3] and r.low.tolist() == [1, 1, 3]
    assert r.group.tolist() == [1, 1, 2] and not r.beats[:2, :2].any()


def test_weights_of_0_and_1_leave_items_out(rng):
    x, keep = _scores(rng, 200, [0.8, 0.6, 0.5]), rng.random(200) < 0.7
    some, cut = rank_bands(x, weight=keep, method="bonferroni"), rank_bands(x[keep], method="bonferroni")
    assert some.score == pytest.approx(cut.score) and some.se == pytest.approx(cut.se) and some.items == keep.sum()
    for wrong in ({"weight": -keep.astype(float)}, {"weight": keep * 0}, {"weight": [1, 2]}, {"method": "bootstrap"}):
        with pytest.raises(ValueError):
            rank_bands(x, **({"method": "bonferroni"} | wrong))


# ---- the leaderboard of a pool


def mended_pool(seed: int = 0) -> tuple[Pool, list[str], dict[str, str]]:
    """500 items, 60 with a wrong key; model ``sharp`` knows the right option, ``parrot`` gives the wrong key."""
    rng = np.random.default_rng(seed)
    right = rng.integers(0, 4, 500)
    bad = np.arange(500) < 60
    key = np.where(bad, (right + 1) % 4, right)
    skill = {"sharp": 0.82, "parrot": 0.78, "weak": 0.4}
    letters = np.stack([np.where(rng.random(500) < s, right, (right + 2) % 4) for s in skill.values()], axis=1)
    letters[bad, 1] = key[bad]
    hits = (letters == key[:, None]).astype(np.uint8)
    items = pd.DataFrame({"item": [f"q{i}" for i in range(500)], "key": ["ABCD"[c] for c in key], "k": 4.0})
    pool = Pool.from_hits(hits, items=items, models=list(skill), letters={"full": letters.astype(np.int8)})
    flagged = [f"q{i}" for i in range(60)]
    return pool, flagged, {f"q{i}": "ABCD"[right[i]] for i in range(60)}


def test_wrong_keys_reverse_a_claim_and_each_variant_undoes_it():
    pool, flagged, corrected = mended_pool()
    found = what_if(pool, flagged=flagged, corrected=corrected, defect=dict.fromkeys(flagged, 1.0))
    first = found.board[found.board["rank"] == 1].set_index("variant")["model"].to_dict()
    assert first == {AS_IS: "parrot", WITHOUT: "sharp", CORRECTED: "sharp", WEIGHTED: "sharp"}
    score = found.board.set_index(["variant", "model"])["score"]
    letters, hits = pool.letters["full"], pool.arm.hits["full"]
    assert score[AS_IS, "sharp"] == pytest.approx(hits[:, 0].mean())
    assert score[WITHOUT, "weak"] == pytest.approx(hits[60:, 2].mean()) == score[WEIGHTED, "weak"]
    new = np.array(["ABCD".index(k) for k in corrected.values()])
    mended = ((letters[:60, 0] == new).sum() + hits[60:, 0].sum()) / 500
    assert score[CORRECTED, "sharp"] == pytest.approx(mended)
    n = found.board.groupby("variant")["n"].first()
    assert (n[AS_IS], n[WITHOUT], n[CORRECTED], n[WEIGHTED]) == (500, 440, 500, 440)
    pair = found.claims[found.claims["variant"] == CORRECTED].iloc[0]
    assert (pair["first"], pair["second"], pair["change"]) == ("parrot", "sharp", "reversed")
    assert any(s.startswith("Corrected keys: 1 pair told apart the other way round") for s in found.sentences())


def test_claims_are_exactly_the_pairs_whose_bands_say_otherwise():
    pool, flagged, corrected = mended_pool(3)
    found = what_if(pool, flagged=flagged[:25], corrected=corrected)
    for variant in (WITHOUT, CORRECTED):
        said = found.claims[found.claims["variant"] == variant]
        assert (said["before"] != said["after"]).sum() == (said["change"] != "order").sum()
        assert not ((said["change"] == "lost") & (said["after"] != "not told apart")).any()
    same = what_if(pool, defect={"q1": 0.0})
    assert not len(same.claims) and same.sentences() == [f"{WEIGHTED.capitalize()}: no rank claim flips."]


def test_same_seed_same_bands_and_no_variant_touches_another():
    pool, flagged, corrected = mended_pool()
    alone = what_if(pool, flagged=flagged).board
    both = what_if(pool, flagged=flagged, corrected=corrected).board
    kept = both[both["variant"] != CORRECTED].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, kept)


def test_user_mistakes_are_one_line():
    pool, _, _ = mended_pool()
    bare = Pool.from_hits(pool.arm.hits["full"])
    for call, words in (
        (lambda: what_if(pool, flagged=["nope"]), "not in the pool"),
        (lambda: what_if(pool, corrected={"q1": "E"}), "no letter of the item's options"),
        (lambda: what_if(pool, defect={"q1": 1.5}), "outside"),
        (lambda: what_if(bare, corrected={"0": "A"}), "no letters"),
        (lambda: what_if(pool, arm="other"), "name another arm"),
        (lambda: what_if(pool, flagged=list(pool.items["item"])), "no item stays"),
    ):
        with pytest.raises(AuditError, match=words):
            call()
