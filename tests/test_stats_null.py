"""Permutation laws of region counts: full enumeration, permutations, null worlds, numerical traps."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auditlib.stats.categories import category_region
from auditlib.stats.null import composition, group_tables, joint_table, region_null, tie_region
from auditlib.stats.rook import exact_tail
from auditlib.stats.tables import lump, moments


def enumerate_law(full, blind, region) -> Counter:
    """Law of the region count over all n! permutations, the oracle of this file."""
    return Counter(int(region[full, blind[list(p)]].sum()) for p in permutations(range(len(full))))


REGIONS = {
    "tie": tie_region(4),
    "corner": category_region("visual_dependent", 3),
    "two blocks": np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], bool),
    "nothing": np.zeros((4, 4), bool),
    "everything": np.ones((4, 4), bool),
}


@pytest.mark.parametrize("name", REGIONS)
def test_exact_law_equals_full_enumeration(name):
    region = REGIONS[name]
    full, blind = np.array([0, 1, 1, 2, 3, 3, 3]), np.array([0, 0, 1, 1, 2, 3, 0])
    law, table = enumerate_law(full, blind, region), joint_table(full, blind, 3)
    size = math.factorial(7)
    for t in range(9):
        r = region_null(table, region, observed=t, draws=0)
        assert r.p_method == "exact"
        assert r.p == pytest.approx(sum(c for v, c in law.items() if v >= t) / size, abs=1e-15)
        assert r.p_lower == pytest.approx(sum(c for v, c in law.items() if v <= t) / size, abs=1e-15)
        assert r.p_equal == pytest.approx(law[t] / size, abs=1e-15)
    mean = sum(v * c for v, c in law.items()) / size
    assert r.mean == pytest.approx(mean)
    assert r.sd**2 == pytest.approx(sum(c * (v - mean) ** 2 for v, c in law.items()) / size)


def test_moments_of_any_region_equal_full_enumeration():
    rng = np.random.default_rng(5)
    for _ in range(5):
        full, blind = rng.integers(0, 4, 6), rng.integers(0, 4, 6)
        region = rng.random((4, 4)) < 0.5
        values = np.array(list(enumerate_law(full, blind, region).elements()))
        assert moments(joint_table(full, blind, 3), region) == pytest.approx((values.mean(), values.var()))


def test_exact_within_blocks_equals_full_enumeration():
    full, blind = np.array([0, 1, 1, 2, 3, 3, 1, 1]), np.array([0, 1, 0, 2, 2, 3, 1, 0])
    block = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    region = tie_region(4)
    laws = [enumerate_law(full[block == g], blind[block == g], region) for g in (0, 1)]
    both = Counter()
    for (a, x), (b, y) in ((u, v) for u in laws[0].items() for v in laws[1].items()):
        both[a + b] += x * y
    size = math.factorial(4) ** 2
    for t in range(9):
        r = region_null(group_tables(full, blind, 3, block), region, observed=t, draws=0)
        assert r.p == pytest.approx(sum(c for v, c in both.items() if v >= t) / size, abs=1e-15)


def test_exact_p_and_random_tables_agree_with_permutations():
    rng = np.random.default_rng(11)
    full, blind = rng.binomial(3, 0.6, 100), rng.binomial(3, 0.45, 100)
    draws = 200_000
    ties = np.concatenate(
        [(rng.permuted(np.tile(blind, (5_000, 1)), axis=1) == full).sum(1) for _ in range(draws // 5_000)]
    )
    for t in (28, 32, 36):
        r = region_null(joint_table(full, blind, 3), tie_region(4), observed=t, draws=50_000, rng=rng)
        simulated = (ties >= t).mean()
        assert abs(r.p_exact - simulated) <= 4 * math.sqrt(r.p_exact * (1 - r.p_exact) / draws)
        assert abs(r.p_exact - r.p_tables) <= 4 * math.sqrt(r.p_exact * (1 - r.p_exact) / 50_000) + 1 / 50_001
    assert abs(r.mean - ties.mean()) <= 4 * r.sd / math.sqrt(draws)
    assert r.sd == pytest.approx(ties.std(), rel=0.01)
    assert abs(r.table_mean - r.mean) <= 4 * r.sd / math.sqrt(50_000)


def test_random_tables_agree_with_permutations_where_no_block_form_exists():
    rng = np.random.default_rng(12)
    full, blind = rng.binomial(5, 0.6, 80), rng.binomial(5, 0.5, 80)
    region = category_region("text_only", 5)
    r = region_null(joint_table(full, blind, 5), region, draws=20_000, rng=rng)
    counts = region[full, rng.permuted(np.tile(blind, (20_000, 1)), axis=1)].sum(1)
    assert r.p_method == "tables" and math.isnan(r.p_exact)
    p = (counts >= r.observed).mean()
    assert abs(r.p - p) <= 4 * math.sqrt(2 * p * (1 - p) / 20_000)
    assert r.p_normal == pytest.approx(p, abs=0.02)  # normal tail with continuity correction


def test_hypergeometric_corner_against_scipy():
    full, blind = np.repeat([3, 1], [40, 60]), np.tile([0, 0, 1, 2], 25)
    r = region_null(joint_table(full, blind, 3), category_region("visual_dependent", 3), observed=25, draws=0)
    law = stats.hypergeom(100, 40, 50)
    assert r.p == pytest.approx(law.sf(24), rel=1e-12)
    assert (r.mean, r.sd) == pytest.approx((law.mean(), law.std()))


def _null_worlds(worlds, n, seed, blocks=1):
    """Results of worlds in which full and blind counts have no item-level link inside blocks."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(worlds):
        laws = [np.outer(*rng.dirichlet(np.ones(4), size=2)).ravel() for _ in range(blocks)]
        tables = [rng.multinomial(n // blocks, p).reshape(4, 4) for p in laws]
        out.append(region_null(tables, tie_region(4), draws=99 if blocks == 1 else 0, rng=rng))
    return out, rng.random(worlds)


@pytest.mark.parametrize("blocks", [1, 4])
def test_null_worlds_exact_and_tables_p_are_calibrated(blocks):
    results, u = _null_worlds(2_000, 200, 20261129, blocks)
    exact = np.array([r.p_exact for r in results])
    randomised = np.array([r.randomised_p(x) for r, x in zip(results, u, strict=True)])
    assert stats.kstest(randomised, "uniform").pvalue > 0.01
    # a printed p must not be smaller than uniform: its distribution function must not lie above the diagonal
    assert stats.kstest(exact, "uniform", alternative="greater").pvalue > 0.01
    if blocks == 1:
        tables = np.array([r.p_tables for r in results])
        assert stats.kstest(tables, "uniform", alternative="greater").pvalue > 0.01
    assert (exact <= 0.05).mean() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 2_000)


def test_two_categories_without_item_link_show_pooled_excess_only():
    rng = np.random.default_rng(3)
    stratum = np.repeat([0, 1], 750)
    full = rng.binomial(3, np.where(stratum == 0, 0.9, 0.35))
    blind = rng.binomial(3, np.where(stratum == 0, 0.75, 0.1))
    pooled = region_null(joint_table(full, blind, 3), tie_region(4), draws=0)
    within = region_null(group_tables(full, blind, 3, stratum), tie_region(4), draws=0)
    assert pooled.excess > 0.05 and pooled.p < 1e-6
    assert abs(within.excess) < 4 * within.sd / 1500 and within.p > 0.01


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30), st.randoms())
@settings(max_examples=50, deadline=None)
def test_order_of_items_does_not_matter(items, random):
    shuffled = items[:]
    random.shuffle(shuffled)
    first, second = (joint_table(*np.array(x).T, 3) for x in (items, shuffled))
    assert (first == second).all()
    assert region_null(first, tie_region(4), draws=0) == region_null(second, tie_region(4), draws=0)


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_lumping_keeps_count_and_moments(seed):
    rng = np.random.default_rng(seed)
    table, region = rng.integers(0, 4, (5, 4)), rng.random((5, 4)) < 0.4
    if table.sum() < 2:
        return
    small, merged = lump(table, region)
    assert small.sum() == table.sum() and small[merged].sum() == table[region].sum()
    assert moments(small, merged) == pytest.approx(moments(table, region))
    law = exact_tail([(9, [(4, 3), (2, 5)])], 3)
    assert law.upper + law.lower - law.equal == pytest.approx(1)


def test_composition_adds_up_to_the_excess():
    rng = np.random.default_rng(1)
    tables = group_tables(rng.integers(0, 4, 300), rng.integers(0, 4, 300), 3, rng.integers(0, 3, 300))
    observed, expected = composition(tables)
    r = region_null(tables, tie_region(4), draws=0)
    assert observed.sum() == r.observed and expected.sum() == pytest.approx(r.mean)


def test_traps():
    rng = np.random.default_rng(0)
    empty = region_null(np.zeros((4, 4), int), tie_region(4), rng=rng)
    assert empty.n == 0 and math.isnan(empty.p) and math.isnan(empty.share)
    one = region_null(joint_table([2], [2], 3), tie_region(4), rng=rng)
    assert (one.p, one.p_tables, one.sd, one.excess) == (1.0, 1.0, 0.0, 0.0)
    ties = region_null(joint_table([1] * 9, [1] * 9, 3), tie_region(4), rng=rng)
    assert (ties.p, ties.p_tables, ties.p_normal, ties.sd) == (1.0, 1.0, 1.0, 0.0)
    never = region_null(joint_table([1] * 9, [2] * 9, 3), tie_region(4), rng=rng)
    assert (never.observed, never.p, never.p_lower) == (0, 1.0, 1.0)
    # an empty stratum adds nothing; one level in a stratum adds a constant
    a = joint_table([0, 1, 1, 2], [0, 1, 2, 0], 3)
    alone, beside = (region_null(t, tie_region(4), draws=0) for t in ([a], [a, np.zeros((4, 4), int)]))
    assert alone == beside
    constant = region_null([a, joint_table([1] * 5, [1] * 5, 3)], tie_region(4), draws=0)
    assert constant.p == pytest.approx(alone.p) and constant.observed == alone.observed + 5
    # groups of unequal totals bring their own regions
    mixed = region_null([a, joint_table([0, 1], [1, 0], 2)], [tie_region(4), tie_region(3)], draws=0)
    assert mixed.n == 6 and mixed.p_method == "exact"


def test_above_the_limit_of_items_tables_and_normal_are_marked():
    rng = np.random.default_rng(0)
    table = joint_table(rng.binomial(3, 0.6, 6_000), rng.binomial(3, 0.5, 6_000), 3)
    r = region_null(table, tie_region(4), rng=rng)
    assert r.p_method == "tables" and math.isnan(r.p_exact) and 0 < r.p_normal < 1
    assert r.as_row("normal")["p_method"] == "normal"
    assert region_null(table, tie_region(4), draws=0).p_method == "normal"


def test_unsigned_sums_of_hits_are_counts():
    hits = np.array([[1, 0], [1, 1]], np.uint8)
    sums = hits.sum(1)  # uint64
    assert joint_table(sums, sums, 2).tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert (group_tables(sums, sums, 2, np.array([0, 1], np.uint8)).sum(0) == joint_table(sums, sums, 2)).all()


def test_refusals():
    with pytest.raises(ValueError, match=r"0\.\.3"):
        joint_table([4], [0], 3)
    with pytest.raises(ValueError, match="integers"):
        joint_table([0.5], [0.0], 3)
    with pytest.raises(ValueError, match="one length"):
        joint_table([0, 1], [0], 3)
    with pytest.raises(ValueError, match="rng"):
        region_null(joint_table([0, 1], [0, 1], 1), tie_region(2))
    with pytest.raises(ValueError, match="regions"):
        region_null([np.ones((2, 2), int)] * 2, [tie_region(2)], draws=0)


def test_same_seed_same_draws():
    table = joint_table(np.arange(60) % 4, np.arange(60) % 3, 3)
    a, b = (region_null(table, tie_region(4), rng=np.random.default_rng(4)).draws for _ in range(2))
    assert (a == b).all() and len(a) == 999
