"""Two one-sided tests; oracles: statsmodels' paired TOST and cluster-robust regression, scipy's binomial, jackknife."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import binom
from scipy.stats import t as student
from statsmodels.stats.weightstats import ttost_paired

from auditlib.stats.equivalence import excess_values, same_excess, tost


def test_paired_test_is_that_of_statsmodels(rng):
    a, b = rng.random(200) < 0.4, rng.random(200) < 0.42
    ours = tost(b.astype(float) - a, 0.1)
    p, (t_low, p_low, _), (t_high, p_high, _) = ttost_paired(b.astype(float), a.astype(float), -0.1, 0.1)
    assert ours.p == pytest.approx(p, abs=1e-12)
    assert sorted([ours.p_above, ours.p_below]) == pytest.approx(sorted([p_low, p_high]), abs=1e-12)
    assert t_low > t_high and ours.method == "paired t"


def test_interval_lies_inside_the_margins_exactly_where_the_test_says_equivalent(rng):
    seen = set()
    for margin in (0.01, 0.03, 0.05, 0.1, 0.2):
        d = rng.integers(-1, 2, 300)
        e = tost(d, margin)
        assert e.equivalent == (-margin <= e.low and e.high <= margin)
        seen.add(e.equivalent)
    assert seen == {True, False}


def test_clusters_are_those_of_a_robust_regression(rng):
    cluster = rng.integers(0, 60, 400)
    d = rng.normal(0.01, 0.3, 400) + rng.normal(0, 0.2, 60)[cluster]
    ours = tost(d, 0.05, cluster=cluster)
    fit = sm.OLS(d, np.ones(400)).fit(cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": True})
    g = len(set(cluster))
    # statsmodels multiplies by (N - 1) / (N - 1) for one regressor, so that only G / (G - 1) is left
    assert ours.se == pytest.approx(float(fit.bse[0]), rel=1e-9) and ours.units == g
    assert ours.p_above == pytest.approx(student.cdf((d.mean() - 0.05) / ours.se, g - 1), abs=1e-12)
    assert ours.se > tost(d, 0.05).se


def test_few_changes_are_judged_by_an_exact_bound():
    for changed in (0, 3):
        d = np.r_[np.ones(changed), np.zeros(300 - changed)]
        assert tost(d, 0.03).p == pytest.approx(binom.cdf(changed, 300, 0.03), rel=1e-9)
    assert tost(np.zeros(50)).p > 0.05  # nothing changed, but too few items to say so
    twins = np.repeat(np.arange(100), 2)
    assert tost(np.zeros(200), cluster=twins).p == pytest.approx(binom.cdf(0, 100, 0.03), rel=1e-9)


def test_false_claims_are_rare_at_the_margin(rng):
    """A true change of exactly the margin is called none in at most 5% of pools (99.9% Monte-Carlo limit)."""
    for share in (0.03, 0.3):  # of items that change: all one way, or mostly back and forth
        up = (share + 0.03) / 2
        d = rng.choice([1, -1, 0], p=[up, share - up, 1 - share], size=(2000, 400))
        said = sum(tost(row, 0.03).equivalent for row in d)
        assert binom.sf(said - 1, 2000, 0.05) > 0.001


def test_excess_values_are_a_jackknife(rng):
    f, b, s = rng.integers(0, 4, 80), rng.integers(0, 4, 80), rng.integers(0, 2, 80)

    def excess(keep):
        total = 0.0
        for k in (0, 1):
            x, y = f[keep & (s == k)], b[keep & (s == k)]
            total += (x == y).sum() - (x[:, None] == y).mean() * len(x)
        return total / keep.sum()

    everything = np.ones(80, bool)
    values = excess_values(f, b, s)
    assert values.mean() == pytest.approx(excess(everything))
    left = np.array([excess(everything & (np.arange(80) != i)) for i in range(80)])
    jackknife = math.sqrt(79 / 80 * ((left - left.mean()) ** 2).sum())
    assert values.std(ddof=1) / math.sqrt(80) == pytest.approx(jackknife, rel=0.05)


def test_two_arms_with_the_same_answers_have_the_same_excess_and_shifted_ones_do_not(rng):
    f = rng.integers(0, 4, 2000)
    b = np.where(rng.random(2000) < 0.5, f, rng.integers(0, 4, 2000))
    assert same_excess((f, b), (f, b)).equivalent
    other = same_excess((f, b), (f, rng.permutation(b)))
    assert not other.equivalent and other.estimate < -0.2
    assert "not ruled out" in other.sentence("the excess") and "1 pp" in other.sentence()


def test_what_cannot_be_tested_says_so():
    assert math.isnan(tost([0.2]).p) and not tost([0.2]).equivalent
    assert "cannot be tested" in tost([0.0] * 9, cluster=[1] * 9).sentence()
    for wrong in (lambda: tost([0.1, float("nan")]), lambda: tost([0, 1], 0.0), lambda: tost([0, 1], cluster=[1])):
        with pytest.raises(ValueError):
            wrong()
