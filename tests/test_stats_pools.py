"""Pool-size curve and split halves."""

import math
from itertools import combinations

import numpy as np
import pytest

from auditlib.stats.null import group_tables, joint_table, region_null, tie_region
from auditlib.stats.poolsize import pool_size_curve, subsets
from auditlib.stats.splits import half_difference, split_halves


def test_pool_size_curve_against_the_null_of_each_subset():
    rng = np.random.default_rng(0)
    full, blind = rng.integers(0, 2, (2, 150, 5), dtype=np.uint8)
    for point in pool_size_curve(full, blind, rng=rng):
        chosen = list(combinations(range(5), point.size))
        assert point.complete and len(point.shares) == math.comb(5, point.size)
        for pick, share, excess in zip(chosen, point.shares, point.excesses, strict=True):
            f, b = full[:, pick].sum(1), blind[:, pick].sum(1)
            r = region_null(joint_table(f, b, 5), tie_region(6), draws=0, exact="never")
            assert (share, excess) == pytest.approx((r.share, r.excess))
    row = point.as_row("share")
    assert row["level"] == 5 and row["low"] == row["high"] == row["estimate"]


def test_many_subsets_are_sampled_without_repeats_and_repeat_with_the_seed():
    a, complete = subsets(24, 12, 200, np.random.default_rng(1))
    b, _ = subsets(24, 12, 200, np.random.default_rng(1))
    assert not complete and (a == b).all() and len({tuple(x) for x in a}) == 200
    assert all(len(set(x)) == 12 for x in a.tolist())
    with pytest.raises(ValueError, match="subset"):
        subsets(3, 4, 200, np.random.default_rng(0))
    empty = pool_size_curve(np.zeros((0, 2), int), np.zeros((0, 2), int), rng=np.random.default_rng(0))
    assert np.isnan(empty[0].shares).all()


def test_split_differences_have_the_law_of_splitting_items():
    rng = np.random.default_rng(2)
    n = 400
    full, blind = rng.binomial(3, 0.6, n), rng.binomial(3, 0.3, n)
    stratum = np.arange(n) % 2
    direct = []
    for _ in range(1_500):
        p = rng.permutation(n)
        halves = [group_tables(full[h], blind[h], 3, stratum[h]) for h in (p[: n // 2], p[n // 2 :])]
        direct.append(half_difference(*halves, tie_region(4)))
    ours = split_halves(group_tables(full, blind, 3, stratum), tie_region(4), rng=rng, splits=1_500, worlds=0)
    assert ours.differences.mean() == pytest.approx(np.mean(direct), rel=0.08)
    assert ours.median == pytest.approx(np.median(direct), rel=0.1)
    assert math.isnan(ours.expected)


def test_expected_median_matches_worlds_made_of_items():
    rng = np.random.default_rng(3)
    law = rng.dirichlet(np.ones(16))
    table = rng.multinomial(600, law).reshape(4, 4)
    ours = split_halves(table, tie_region(4), rng=rng, splits=20, worlds=400)
    medians = []
    for _ in range(150):
        cells = rng.choice(16, 600, p=table.ravel() / 600)
        f, b = cells // 4, cells % 4
        d = []
        for _ in range(20):
            p = rng.permutation(600)
            halves = [joint_table(f[h], b[h], 3) for h in (p[:300], p[300:])]
            d.append(half_difference([halves[0]], [halves[1]], tie_region(4)))
        medians.append(np.median(d))
    assert ours.expected == pytest.approx(np.mean(medians), rel=0.06)
    assert ours.expected_low < ours.median < ours.expected_high


def test_split_traps():
    one = split_halves(joint_table([1], [1], 3), tie_region(4), rng=np.random.default_rng(0))
    assert math.isnan(one.median) and len(one.differences) == 20
    same = split_halves(joint_table([1] * 9, [1] * 9, 3), tie_region(4), rng=np.random.default_rng(0))
    assert same.median == 0.0
