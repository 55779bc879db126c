"""Random subsets, part and whole, halves, cross-fitting, threshold grid and diff: brute force and closed forms."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from outcome_builders import pool_of, rasch
from scipy import stats

from auditlib.curation.clustered import mean_covariance
from auditlib.curation.crossfit import cross_fit, membership_drop
from auditlib.curation.diff import CHANGES, recuration_diff
from auditlib.curation.exact import above, mean_of_means
from auditlib.curation.halves import random_halves, spearman_brown, split_half
from auditlib.curation.resolvable import count_resolvable
from auditlib.curation.scores import averages
from auditlib.curation.sensitivity import Thresholds, one_at_a_time, threshold_grid
from auditlib.curation.subsets import part_whole, random_subset_band, same_mix, subset_averages
from auditlib.errors import AuditError


@pytest.fixture
def world(rng):
    source = np.repeat(["p", "q", "r"], [40, 30, 20])
    return rasch(rng, 90, 7) / 8, source, rng.random(90) < 0.4


def test_subset_averages_are_averages(world, rng):
    rate, source, _ = world
    rate = np.where(rng.random(rate.shape) < 0.05, np.nan, rate)
    chosen = rng.random((12, 90)) < 0.3
    chosen[0, source == "q"] = False
    found = subset_averages(rate, source, chosen)
    for rows, row in zip(chosen, found, strict=True):
        np.testing.assert_allclose(row, averages(rate[rows], source[rows]).benchmark, atol=1e-12)


def test_subsets_keep_the_mix_and_are_uniform(rng):
    source, kept = np.repeat(["p", "q", "r"], [5, 4, 2]), np.array([1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1], bool)
    drawn = same_mix(source, kept, 6000, rng)
    for name, few in (("p", 2), ("q", 1), ("r", 2)):
        assert (drawn[:, source == name].sum(axis=1) == few).all()
    pairs = dict.fromkeys(combinations(range(5), 2), 0)
    for row in drawn[:, :5]:
        pairs[tuple(np.flatnonzero(row))] += 1
    # chi-square of the 10 equally likely pairs
    assert stats.chisquare(list(pairs.values())).pvalue > 1e-4


def test_band_statistics_by_loops(world, rng):
    rate, source, kept = world
    band = random_subset_band(rate, source, kept, rng=rng, draws=50, ends=2)
    row = band.table.set_index("statistic")["observed"]
    whole, part, rest = (averages(rate[m], source[m]).benchmark for m in (np.ones(90, bool), kept, ~kept))
    assert row["spearman"] == pytest.approx(stats.spearmanr(part, whole).statistic)
    assert row["kendall"] == pytest.approx(stats.kendalltau(part, whole).statistic)
    assert row["pearson_rest"] == pytest.approx(stats.pearsonr(part, rest).statistic)
    assert row["cv"] == pytest.approx(stats.variation(part, ddof=1))
    assert row["gap"] == pytest.approx(np.sort(part)[-2:].mean() - np.sort(part)[:2].mean())
    assert row["resolvable"] == count_resolvable(mean_covariance(rate[kept], source[kept]))
    assert band.items == kept.sum() and (band.table["draws"] == 50).all()
    assert ((band.table["low"] <= band.table["median"]) & (band.table["median"] <= band.table["high"])).all()


def test_a_random_set_lies_inside_its_band():
    rng = np.random.default_rng(11)
    rate, source = rasch(rng, 150, 6, spread=0.3) / 8, np.repeat(["p", "q"], 75)
    outside = 0
    for _ in range(30):
        kept = same_mix(source, np.arange(150) % 3 == 0, 1, rng)[0]
        row = random_subset_band(rate, source, kept, rng=rng, draws=60).table.set_index("statistic").loc["mean"]
        outside += not row["low"] <= row["observed"] <= row["high"]
    # P(>= 9 of 30 | 8%) is below 0.1%
    assert outside < 9


def test_hard_items_fall_out_of_the_band(world, rng):
    rate, source, _ = world
    kept = rate.mean(axis=1) < 0.45
    row = random_subset_band(rate, source, kept, rng=rng, draws=100).table.set_index("statistic").loc["mean"]
    assert row["above"] == 1 and row["observed"] < row["low"]


def test_part_whole_of_one_source_is_the_removed_items(world):
    rate, _, kept = world
    found = part_whole(rate, np.full(90, "s"), kept)
    part, whole, rest = rate[kept].mean(axis=0), rate.mean(axis=0), rate[~kept].mean(axis=0)
    assert found.pearson == pytest.approx(stats.pearsonr(part, whole).statistic)
    assert found.corrected == pytest.approx(stats.pearsonr(part, rest).statistic)
    assert found.removed == pytest.approx(found.corrected)
    # the textbook formula of the item-rest correlation, from the part, the whole and their correlation
    f, r = kept.mean(), found.pearson
    a, b = f * part.std(), whole.std()
    assert found.corrected == pytest.approx((r * b - a) / np.sqrt(a**2 + b**2 - 2 * r * a * b))
    assert found.by_chance == pytest.approx(np.sqrt(f))


def test_containment_alone_correlates_as_predicted():
    rng, source = np.random.default_rng(3), np.repeat(["p", "q"], [30, 60])
    kept = np.arange(90) % 3 == 0
    r = [part_whole(rng.normal(size=(90, 40)), source, kept).pearson for _ in range(200)]
    wanted = part_whole(rng.normal(size=(90, 40)), source, kept).by_chance
    assert wanted == pytest.approx(np.sqrt((1 / 30 + 1 / 60) / (1 / 10 + 1 / 20)))
    assert np.mean(r) == pytest.approx(wanted, abs=0.03)


def test_nothing_removed_has_no_rest(world):
    rate, source, _ = world
    found = part_whole(rate, source, np.ones(90, bool))
    assert found.pearson == pytest.approx(1) and np.isnan(found.corrected) and np.isnan(found.removed)


def test_halves_share_no_cluster_and_split_each_source(rng):
    source, cluster = np.repeat(["p", "q"], [41, 20]), np.arange(61) // 2
    for row in random_halves(source, 50, rng, cluster):
        assert all(len(set(row[cluster == c])) == 1 for c in range(30))
    plain = random_halves(source, 400, rng)
    size = plain[:, source == "p"].sum(axis=1)
    assert set(size) == {20, 21} and (plain[:, source == "q"].sum(axis=1) == 10).all()


def test_split_half_over_all_splits_is_the_mean(rng):
    # six items: the mean over random splits approaches the mean over all 20 splits
    rate = rng.binomial(8, np.linspace(0.2, 0.9, 6), (6, 6)) / 8
    every = [np.isin(np.arange(6), c) for c in combinations(range(6), 3)]
    wanted = np.mean([stats.pearsonr(rate[h].mean(axis=0), rate[~h].mean(axis=0)).statistic for h in every])
    found = split_half(rate, np.full(6, "s"), rng=rng, splits=20_000)
    assert found.half == pytest.approx(wanted, abs=0.01)
    assert found.reliability == pytest.approx(2 * found.half / (1 + found.half))


def test_reliability_is_near_cronbachs_alpha(rng):
    rate = rasch(rng, 60, 25, spread=0.5) / 8
    alpha = 60 / 59 * (1 - rate.var(axis=1, ddof=1).sum() / rate.sum(axis=0).var(ddof=1))
    found = split_half(rate, np.full(60, "s"), rng=rng, splits=400)
    assert found.reliability == pytest.approx(alpha, abs=0.02)
    assert found.per_1000 == pytest.approx(spearman_brown(found.reliability, 1000 / 60))


def test_fewer_items_are_less_reliable(world, rng):
    rate, source, kept = world
    raw, curated = (split_half(rate[m], source[m], rng=rng) for m in (np.ones(90, bool), kept))
    assert curated.reliability < raw.reliability
    # Spearman-Brown predicts the shorter test
    assert curated.reliability == pytest.approx(spearman_brown(raw.reliability, kept.mean()), abs=0.1)


def test_full_size_in_seconds():
    rng = np.random.default_rng(1)
    rate = rasch(rng, 23_250, 27) / 8
    source, cluster = rng.integers(0, 18, 23_250).astype(str), rng.integers(0, 15_000, 23_250)
    kept = rate.mean(axis=1) < 0.4
    start = time.process_time()
    random_subset_band(rate, source, kept, rng=rng, cluster=cluster, draws=200)
    split_half(rate[kept], source[kept], rng=rng, cluster=cluster[kept])
    assert time.process_time() - start < 20


# cross-fitting


def by_saturation(pool):
    """Keep what the given models do not solve: mean at most one half."""

    def select(panel):
        draws = pool.full.of(panel)
        return ~above(mean_of_means(draws.hits, draws.trials), 1, 2)

    return select


def test_taking_part_in_the_choice_costs_points(rng):
    # equally good models whose draws share nothing but the items: only membership can tell them apart
    hits = rng.binomial(8, 0.5, (4000, 8))
    pool = pool_of(hits, models={"provider": list("aabbccdd")}, panel=[0, 2, 4, 6])
    found = cross_fit(pool, by_saturation(pool), rng=rng)
    assert found.exhaustive and found.splits == 7
    rows = found.table.set_index("model")
    own = rows.loc[["m0", "m2", "m4", "m6"], "drop_member"]
    assert (own > 0.05).all() and (rows["drop_outside"].abs() < 0.02).all()
    # the provider's other model took no part itself, though its provider did
    assert (rows.loc[["m1", "m3", "m5", "m7"], "drop_member"].abs() < 0.02).all()
    assert found.effect == pytest.approx(-own.mean(), abs=0.01)


def test_harder_sets_alone_are_no_effect(rng):
    hits = np.repeat(rasch(rng, 500, 4), 2, axis=1)
    pool = pool_of(hits, models={"provider": list("abababab")})

    def by_item_number(panel):
        return np.arange(500) < (100 if 0 in panel else 300)

    found = cross_fit(pool, by_item_number, rng=rng)
    # both providers hold the same models twice, so the change of set moves them alike
    assert found.effect == pytest.approx(0, abs=1e-12)
    assert found.halves["items"].tolist() == [100, 300]


def test_provider_off_the_panel_is_always_outside(rng):
    hits = rng.binomial(8, 0.5, (200, 5))
    pool = pool_of(hits, models={"provider": list("aabbc")}, panel=[0, 1, 2, 3])
    found = cross_fit(pool, by_saturation(pool), rng=rng)
    row = found.table.set_index("model").loc["m4"]
    assert np.isnan(row["member"]) and row["sets_outside"] == 2
    drop = membership_drop(hits / 8, pool.source, by_saturation(pool)(pool.panel), np.arange(5) < 4)
    assert (drop["members"], drop["others"]) == (4, 1) and drop["difference"] > 0


def test_one_provider_cannot_be_split(rng):
    pool = pool_of(rng.binomial(8, 0.5, (20, 3)), models={"provider": "a"})
    with pytest.raises(AuditError, match="all come from a"):
        cross_fit(pool, by_saturation(pool), rng=rng)


def test_many_providers_are_split_at_random(rng):
    pool = pool_of(rng.binomial(8, 0.5, (60, 20)), models={"provider": [f"p{j}" for j in range(20)]})
    found = cross_fit(pool, by_saturation(pool), rng=rng, splits=5)
    assert found.splits == 5 and not found.exhaustive
    assert (found.halves["panel"] == 10).all()


# threshold grid


def test_grid_by_brute_force(world):
    rate, source, _ = world
    blind = np.random.default_rng(2).random(90)

    def decide(t):
        return (blind <= float(t.other)) & (rate.mean(axis=1) <= float(t.saturation))

    grid = threshold_grid(decide, rate, source, other=("0.40", "0.5"), saturation=("0.85", "0.90"), binary=("0.80",),
                          wrong_removals=lambda t: 100 * float(t.other), calls=np.full(90, 56))  # fmt: skip
    assert len(grid) == 4 and grid["base"].sum() == 1
    raw, base = averages(rate, source).benchmark, averages(*(v[decide(Thresholds())] for v in (rate, source))).benchmark
    for _, row in grid.iterrows():
        kept = (blind <= float(row["other"])) & (rate.mean(axis=1) <= float(row["saturation"]))
        score = averages(rate[kept], source[kept]).benchmark
        assert row["items"] == kept.sum()
        assert row["spearman"] == pytest.approx(stats.spearmanr(score, raw).statistic)
        assert row["spearman_base"] == pytest.approx(stats.spearmanr(score, base).statistic)
        assert row["resolvable"] == count_resolvable(mean_covariance(rate[kept], source[kept]))
        assert row["per_1000_calls"] == pytest.approx(row["resolvable"] / kept.sum() / 56 * 1000)
        assert row["wrong_removals"] == 100 * float(row["other"])


def test_grid_holds_the_base_and_an_empty_point(world):
    rate, source, _ = world
    grid = threshold_grid(lambda t: np.full(90, Fraction(t.other) > Fraction("0.4")), rate, source, binary=("0.70",),
                          other=("0.40", "0.60"), saturation=("0.90",))  # fmt: skip
    assert len(grid) == 3 and grid["base"].tolist() == [False, False, True]
    empty = grid.iloc[0]
    assert empty["items"] == 0 and np.isnan(empty["spearman"]) and np.isnan(empty["wrong_removals"])
    full = threshold_grid(lambda t: np.ones(90, bool), rate, source)
    assert len(full) == 125
    moved = one_at_a_time(full)
    assert moved["moved"].value_counts().to_dict() == {"": 1, "binary": 4, "other": 4, "saturation": 4}


def test_thresholds_that_are_no_share_are_refused(world):
    rate, source, _ = world
    with pytest.raises(AuditError, match=r"the other threshold '1.2' is no number between 0 and 1"):
        threshold_grid(lambda t: np.ones(90, bool), rate, source, other=("1.2",))
    with pytest.raises(AuditError, match="the decision at"):
        threshold_grid(lambda t: np.ones(5, bool), rate, source)


# diff


def decisions(removed, items=None, **more):
    items = [f"i{k}" for k in range(len(removed))] if items is None else items
    return pd.DataFrame({"item": items, "removed": removed} | more)


def test_diff_counts_every_item():
    before = decisions([0, 0, 1, 1, 1], reason=["", "", "text", "text", "saturation"], source=list("aabbb"))
    reason = ["", "saturation", "", "saturation", "text"]
    after = decisions([0, 1, 0, 1, 1], ["i0", "i1", "i2", "i3", "i9"], reason=reason, source=list("aabbb"))
    found = recuration_diff(before, after)
    assert found.items.set_index("item")["change"].to_dict() == {
        "i0": "kept in both", "i1": "newly removed", "i2": "newly kept", "i3": "removed in both", "i4": "only before",
        "i9": "only after"}  # fmt: skip
    assert (found.common, found.same) == (4, 0.5)
    assert found.jaccard_kept == found.jaccard_removed == pytest.approx(1 / 3)
    assert found.kappa == pytest.approx(0)
    total = found.counts.set_index("source").loc["all"]
    assert total[list(CHANGES)].tolist() == [1, 1, 1, 1, 1, 1] and total["moved"] == 0.5
    moved = found.reasons.set_index(["reason_before", "reason_after"])["items"]
    assert moved["text", "saturation"] == 1 and moved["text", ""] == 1 and moved.sum() == 4


def test_diff_of_equal_decisions():
    table = decisions(["yes", "no", "No"])
    found = recuration_diff(table, table[::-1])
    assert found.same == 1 and found.kappa == pytest.approx(1) and found.counts["moved"].tolist() == [0]


def test_diff_kappa_is_cohens(rng):
    a, b = rng.random((2, 200)) < [[0.4], [0.5]]
    found = recuration_diff(decisions(a), decisions(b))
    observed, expected = (a == b).mean(), a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    assert found.kappa == pytest.approx((observed - expected) / (1 - expected))


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pd.DataFrame({"item": ["i0"]}), "no column 'removed'"),
        (decisions([0, 1], ["i0", "i0"]), "item i0 is decided twice"),
        (decisions([0, "perhaps"]), "item i1 has the decision 'perhaps'"),
        (decisions([0], ["other"]), "no item in common"),
    ],
)
def test_diff_of_bad_tables(table, says):
    with pytest.raises(AuditError, match=says):
        recuration_diff(decisions([0, 1]), table)
