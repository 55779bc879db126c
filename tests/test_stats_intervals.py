"""Intervals: Wilson against scipy and statsmodels, bootstrap against direct resampling, coverage."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from auditlib.stats.intervals import cluster_excess_interval, excess_interval, percentile, wilson
from auditlib.stats.null import group_tables, joint_table, region_null, tie_region
from auditlib.stats.resample import distinct_rows, weighted_totals

TIE = tie_region(4)


def _pool(n, seed, link=0.6):
    """Full and blind counts of three models on items of one shared difficulty."""
    rng = np.random.default_rng(seed)
    z, w = rng.standard_normal((2, n))
    p, q = (1 / (1 + np.exp(-x)) for x in (0.8 + 1.5 * z, -1.2 + 1.5 * (link * z + math.sqrt(1 - link**2) * w)))
    return rng.binomial(3, p), rng.binomial(3, q)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (1, 1), (303, 1500), (134, 1500), (3, 7)])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_wilson_against_scipy_and_statsmodels(k, n, level):
    ours = wilson(k, n, level)
    theirs = binomtest(k, n).proportion_ci(level, method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert (ours.low, ours.high) == pytest.approx(proportion_confint(k, n, 1 - level, method="wilson"), abs=1e-12)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=100, deadline=None)
def test_wilson_holds_the_share_and_mirrors(kn):
    k, n = kn
    a, b = wilson(k, n), wilson(n - k, n)
    assert 0 <= a.low <= k / n <= a.high <= 1
    assert a.low == pytest.approx(1 - b.high, abs=1e-12)


def test_wilson_without_items():
    assert math.isnan(wilson(0, 0).low) and wilson(0, 0).method == "none: no items"
    with pytest.raises(ValueError, match="proportion"):
        wilson(3, 2)


def _direct(full, blind, block, draws, rng, cluster=None):
    """Item (or cluster) bootstrap by indices, null recomputed in every draw: the oracle."""
    out = []
    groups = [np.flatnonzero(block == g) for g in np.unique(block)]
    members = None if cluster is None else [np.flatnonzero(cluster == c) for c in np.unique(cluster)]
    for _ in range(draws):
        if members is None:
            at = np.concatenate([rng.choice(g, len(g)) for g in groups])
        else:
            at = np.concatenate([members[c] for c in rng.integers(0, len(members), len(members))])
        out.append(region_null(group_tables(full[at], blind[at], 3, block[at]), TIE, draws=0, exact="never").excess)
    return np.quantile(out, [0.025, 0.975]), np.std(out)


def test_excess_interval_equals_direct_bootstrap():
    full, blind = _pool(300, 1)
    block = np.arange(300) % 3
    rng = np.random.default_rng(2)
    ends, sd = _direct(full, blind, block, 800, rng)
    ours = excess_interval(group_tables(full, blind, 3, block), TIE, rng=rng)
    assert (ours.low, ours.high) == pytest.approx(tuple(ends), abs=0.3 * sd)


def test_cluster_interval_equals_direct_bootstrap_nested_and_straddling():
    full, blind = _pool(300, 3)
    cluster = np.arange(300) // 3
    full, blind = full[cluster * 3], blind[cluster * 3]  # clusters of three equal items: wider than items
    rng = np.random.default_rng(4)
    for block in (np.zeros(300, int), np.arange(300) % 2):
        ends, sd = _direct(full, blind, block, 800, rng, cluster)
        ours = cluster_excess_interval(full, blind, block, cluster, [TIE] * 2, rng=rng)
        assert (ours.low, ours.high) == pytest.approx(tuple(ends), abs=0.3 * sd)
    nested = cluster_excess_interval(full, blind, cluster % 2, cluster, [TIE] * 2, rng=rng)
    items = excess_interval(group_tables(full, blind, 3, cluster % 2), TIE, rng=rng)
    assert nested.high - nested.low > 1.4 * (items.high - items.low)


def test_single_item_clusters_give_the_item_bootstrap():
    full, blind = _pool(400, 5)
    table = joint_table(full, blind, 3)
    a = excess_interval(table, TIE, rng=np.random.default_rng(1))
    b = cluster_excess_interval(full, blind, np.zeros(400, int), np.arange(400), [TIE], rng=np.random.default_rng(2))
    assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=0.003)


def test_normal_limit_agrees_with_weights_in_a_large_pool():
    rng = np.random.default_rng(6)
    p = 1 / (1 + np.exp(-rng.standard_normal(5_000)))
    full, blind = rng.binomial(24, p), rng.binomial(24, p * 0.6)
    tables = group_tables(full, blind, 24, np.arange(5_000) % 4)
    exact = excess_interval(tables, tie_region(25), rng=rng, mode="weights", draws=5_000)
    limit = excess_interval(tables, tie_region(25), rng=rng, mode="normal", draws=20_000)
    assert "normal limit" in limit.method and "normal limit" not in exact.method
    width = exact.high - exact.low
    assert (limit.low, limit.high) == pytest.approx((exact.low, exact.high), abs=0.05 * width)
    assert "normal limit" in excess_interval(tables, tie_region(25), rng=rng).method


@pytest.mark.parametrize(("n", "method"), [(250, "percentile bootstrap"), (24, "jackknife-t")])
def test_coverage_is_near_nominal(n, method):
    full, blind = _pool(200_000, 7)
    law = joint_table(full, blind, 3) / 200_000
    truth = law[TIE].sum() - law.sum(1) @ law.sum(0)
    rng = np.random.default_rng(8)
    found = [excess_interval(t.reshape(4, 4), TIE, rng=rng, draws=999) for t in rng.multinomial(n, law.ravel(), 400)]
    assert {i.method for i in found} == {method}
    assert 0.91 <= np.mean([truth in i for i in found]) <= 0.98


def test_within_interval_covers_zero_in_a_two_category_world_without_item_link():
    rng = np.random.default_rng(9)
    stratum = np.repeat([0, 1], 750)
    covered = 0
    for world in range(40):
        full = rng.binomial(3, np.where(stratum == 0, 0.9, 0.35))
        blind = rng.binomial(3, np.where(stratum == 0, 0.75, 0.1))
        within = excess_interval(group_tables(full, blind, 3, stratum), TIE, rng=rng, draws=2_000)
        covered += 0.0 in within
        if world == 0:
            assert 0.0 in within
            pooled = excess_interval(joint_table(full, blind, 3), TIE, rng=rng, draws=2_000)
            assert pooled.low > 0.03
    assert covered >= 34


def test_small_pools_say_so():
    rng = np.random.default_rng(0)
    few = excess_interval(joint_table([0, 1, 2], [0, 1, 1], 3), TIE, rng=rng)
    assert few.method == "none: 3 items" and math.isnan(few.low)
    assert excess_interval(np.zeros((4, 4), int), TIE, rng=rng).method == "none: no items"
    same = excess_interval(joint_table([1] * 30, [1] * 30, 3), TIE, rng=rng)
    assert (same.low, same.high) == (0.0, 0.0)
    assert percentile([float("nan")] * 3, 0.95, "x").method == "none: no draw has a value"
    assert percentile([1.0, float("nan")], 0.95, "x").method == "x (1 draws without a value)"


def test_jackknife_equals_leaving_items_out():
    full, blind = _pool(30, 10)
    table = joint_table(full, blind, 3)
    excess = [
        region_null(joint_table(np.delete(full, i), np.delete(blind, i), 3), TIE, draws=0).excess for i in range(30)
    ]
    se = math.sqrt(29 / 30 * np.sum((np.array(excess) - np.mean(excess)) ** 2))
    i = excess_interval(table, TIE, rng=np.random.default_rng(0))
    assert i.method == "jackknife-t"
    assert (i.high - i.low) / 2 == pytest.approx(2.0452296 * se, rel=1e-6)  # t quantile, 29 degrees of freedom


def test_weighted_totals_have_the_bootstrap_moments():
    rng = np.random.default_rng(1)
    z = rng.integers(0, 5, (400, 2))
    rows, freq = distinct_rows(z)
    assert freq.sum() == 400 and (rows * freq[:, None]).sum() == z.sum()
    for mode in ("weights", "normal"):
        t = np.concatenate(list(weighted_totals(rows.astype(float), freq, 20_000, rng, mode)))
        assert t.shape == (20_000, 2)
        assert t.mean(0) == pytest.approx(z.sum(0), rel=0.003)
        assert np.cov(t.T) == pytest.approx(400 * np.cov(z.T, ddof=0), rel=0.06, abs=30)


def test_many_small_strata_do_not_pull_the_interval_towards_zero():
    """100 strata of 8 items with a strong link: the draws must centre on the estimate, not on 7/8 of it."""
    rng = np.random.default_rng(3)
    tables = []
    for _ in range(100):
        shared = rng.integers(0, 4, 8)
        blind = np.where(rng.random(8) < 0.7, shared, rng.integers(0, 4, 8))
        tables.append(joint_table(shared, blind, 3))
    result = region_null(tables, tie_region(4), draws=0)
    interval = excess_interval(tables, tie_region(4), rng=rng, draws=4000)
    centre = (interval.low + interval.high) / 2
    assert centre == pytest.approx(result.excess, abs=0.005)
    assert result.excess / 8 > 0.03  # what the shrinkage would have cost
