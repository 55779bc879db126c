"""Intervals and p-values that know of clusters."""

from __future__ import annotations

import numpy as np

from auditlib.stats.intervals import wilson
from auditlib.stats.rates import rate_interval, share_interval
from auditlib.stats.shuffle import cluster_shuffle


def test_coverage_of_clusters_of_four_identical_items():
    rng, ours, plain = np.random.default_rng(0), 0, 0
    cluster = np.repeat(np.arange(100), 4)
    for _ in range(600):
        inside = np.repeat(rng.random(100) < 0.2, 4)
        ours += 0.2 in share_interval(inside, cluster)
        plain += 0.2 in wilson(int(inside.sum()), 400)
    assert 0.92 <= ours / 600 <= 0.975
    assert plain / 600 < 0.75


def test_without_clusters_it_is_wilson():
    assert share_interval([True] * 3 + [False] * 7, np.arange(10)) == wilson(3, 10)


def test_copies_of_a_draw_do_not_shrink_the_interval():
    """inspect_ai#1251: the item is the unit, whatever the number of samples."""
    hits = np.array([1, 0] * 40)
    one, five = rate_interval(hits, np.ones(80, int)), rate_interval(5 * hits, np.full(80, 5))
    assert abs((five.high - five.low) - (one.high - one.low)) < 0.01


def test_clusters_change_places_whole():
    full = np.repeat([0, 1], 40)
    r = cluster_shuffle(full, full, np.zeros(80, int), np.arange(80) // 4, [np.eye(2, dtype=bool)],
                        rng=np.random.default_rng(0), draws=199)  # fmt: skip
    assert (r.observed, r.clusters, r.fixed, r.p) == (80, 20, 0, 1 / 200)
    assert abs(r.mean - 40) < 3
