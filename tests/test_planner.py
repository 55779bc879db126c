"""Planning: oracles are brute-force searches, scipy's binomials, simulated power, statsmodels' Wilson interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from auditlib.stats.gain_mixture import NODES, band, fit_gain_mixture
from auditlib.stats.multiplicity import bayes_fdr, bh, bh_can_reject
from auditlib.stats.null import joint_table, region_null, tie_region
from auditlib.stats.planner import (
    SamplePlan,
    list_now,
    models_for_list,
    reviews_needed,
    sample_plan,
    smallest_excess,
)


def two_points() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half the items gain nothing (.5 and .5), half gain .5 (.75 and .25)."""
    law = np.zeros((3, 3))
    law[1, 1] = law[2, 0] = 0.5
    return law, np.eye(3), np.array([0.25, 0.5, 0.75])


def test_list_curve_is_the_enumeration_of_all_counts():
    law, inside, chances = two_points()
    plan = models_for_list(law, inside, chances, 1000, q=0.1, least=100, sizes=(2, 5, 12, 30))
    for n, row in zip((2, 5), plan.curve.itertuples()):
        cells = []
        for f in range(n + 1):
            for b in range(n + 1):
                zero = 0.5 * binom.pmf(f, n, 0.5) * binom.pmf(b, n, 0.5)
                gain = 0.5 * binom.pmf(f, n, 0.75) * binom.pmf(b, n, 0.25)
                cells.append((zero / (zero + gain), zero, gain))
        cells.sort(reverse=True)
        best = (0.0, 0.0)
        zero = gain = 0.0
        for i, (post, z, g) in enumerate(cells):
            zero, gain = zero + z, gain + g
            tied = i + 1 < len(cells) and post - cells[i + 1][0] < 1e-9
            if gain / (zero + gain) <= 0.1 + 1e-12 and not tied:
                best = (1000 * (zero + gain), 2 * zero)
        assert row.listed == pytest.approx(best[0]) and row.recall == pytest.approx(best[1])
    assert plan.curve["listed"].is_monotonic_increasing and (plan.curve["precision"].dropna() >= 0.9 - 1e-9).all()
    assert plan.needed == plan.curve.loc[plan.curve["listed"] >= 100, "models"].iloc[0]


def test_realised_errors_of_a_list_are_as_planned():
    """A pool drawn from the planned law: the list's realised share of errors is at most q, its size as forecast."""
    law, inside, chances = two_points()
    plan = models_for_list(law, inside, chances, 20_000, sizes=(12,))
    rng = np.random.default_rng(3)
    zero = rng.random(20_000) < 0.5
    f = rng.binomial(12, np.where(zero, 0.5, 0.75))
    b = rng.binomial(12, np.where(zero, 0.5, 0.25))
    up, down = (binom.pmf(f, 12, p) * binom.pmf(b, 12, q) for p, q in ((0.5, 0.5), (0.75, 0.25)))
    listed = bayes_fdr(up / (up + down), 0.1).order
    assert len(listed) == pytest.approx(plan.curve["listed"][0], rel=0.05)
    assert (~zero[listed]).mean() <= 0.1 + 3 * np.sqrt(0.09 / len(listed))


def test_a_pool_of_three_models_is_refused_a_list_and_told_how_many_it_needs(rng):
    t = rng.normal(0, 1, (800, 1))
    full, blind = ((rng.random((800, 3)) < 1 / (1 + np.exp(-x))).astype(int) for x in (t + 0.6, t))
    fit = fit_gain_mixture(full, blind)
    inside = band(0.1)
    plan = models_for_list(fit.law, inside, NODES, 800, q=0.02, least=50)
    posterior = np.minimum(fit.posterior, 0.9)
    words = list_now(posterior, plan)
    assert words.startswith("This pool cannot support an error-controlled list; models needed: ")
    assert words.rstrip(".").split()[-1].isdigit()
    assert models_for_list(fit.law, inside, NODES, 800, sizes=(3,), q=1e-6).needed is None


def test_bayesian_lists():
    """Oracle: every prefix of the sorted posteriors, by hand."""
    posterior = np.array([0.2, 0.97, np.nan, 0.85, 0.99, 0.85, 0.6])
    found = bayes_fdr(posterior, 0.1)
    assert found.order.tolist() == [4, 1, 3, 5] and found.running[-1] == pytest.approx(
        np.mean([0.01, 0.03, 0.15, 0.15])
    )
    assert found.expected_true == pytest.approx(0.99 + 0.97 + 0.85 + 0.85)
    assert bayes_fdr([0.95, 0.5, 0.5], 0.28).order.tolist() == [0]  # ties stay together
    none = bayes_fdr([0.3, 0.2], 0.1)
    assert none.sentence(24) == "This pool cannot support an error-controlled list; models needed: 24."
    for wrong in ([1.2], [-0.1]):
        with pytest.raises(ValueError):
            bayes_fdr(wrong)


def test_bayesian_lists_keep_their_promise(rng):
    """Posteriors that are right: the mean realised error share is at most q."""
    shares = []
    for _ in range(400):
        p = rng.beta(0.6, 0.8, 300)
        true = rng.random(300) < p
        shares.append((~true[bayes_fdr(p, 0.1).order]).mean())
    assert np.mean(shares) <= 0.1 + 3 * np.std(shares) / 20


def test_bh_is_kept_where_its_threshold_is_in_reach():
    """Three models have no sign test below 1/8: no p can reach 0.05 over many items."""
    assert not bh_can_reject(np.full(1500, 0.3), 0.125)
    assert bh_can_reject(np.full(1500, 0.3), 2.0**-24)
    assert (bh(np.full(1500, 2.0**-24)) <= 0.05).all() and not bh_can_reject([np.nan], 0.0)


def test_smallest_excess_has_its_power(rng):
    """Pools with just that excess reject in about 80 of 100 (simulated, exact p)."""
    n, m = 300, 3
    f, b = rng.binomial(m, 0.5, n), rng.binomial(m, 0.5, n)
    value = smallest_excess(f, b)
    assert smallest_excess(f, b, items=4 * n) == pytest.approx(value / 2)
    assert smallest_excess(f, b, power=0.95) > value > smallest_excess(f, b, power=0.5)
    tie = float((np.bincount(f, minlength=4) * np.bincount(b, minlength=4)).sum()) / n**2
    linked = value / (1 - tie)  # share of items whose blind count copies the full one, to first order
    hits = 0
    for _ in range(120):
        x = rng.binomial(m, 0.5, n)
        y = np.where(rng.random(n) < linked, x, rng.binomial(m, 0.5, n))
        hits += region_null(joint_table(x, y, m), tie_region(m + 1), draws=0).p <= 0.05
    assert 0.65 <= hits / 120 <= 0.95


def test_reviews_are_a_brute_force_search():
    for share, half in ((0.5, 0.05), (0.02, 0.02), (0.3, 0.1)):
        n = reviews_needed(share, half)
        widths = [np.ptp(proportion_confint(share * k, k, method="wilson")) / 2 for k in (n - 1, n)]
        assert widths[1] <= half < widths[0]
    assert reviews_needed(0.5, 0.05, items=300) == int(np.ceil(381 / (1 + 380 / 300))) and reviews_needed(0, 0.9) >= 1
    with pytest.raises(ValueError):
        reviews_needed(1.2, 0.1)


def test_variance_parts_and_samples(rng):
    """Oracle: known Beta items; the standard error realised over simulated runs."""
    p = rng.beta(2, 2, 4000)
    plan = sample_plan(rng.binomial(5, p), np.full(4000, 5))
    assert plan.between == pytest.approx(1 / 20, rel=0.1) and plan.within == pytest.approx(1 / 5, rel=0.05)
    known = SamplePlan(1 / 20, 1 / 5, 100)
    means = [rng.binomial(4, rng.beta(2, 2, 100)).mean() / 4 for _ in range(3000)]
    assert known.se(4) == pytest.approx(np.std(means), rel=0.06)
    need = known.samples_for(0.026)
    assert known.se(need) <= 0.026 < known.se(need - 1)
    assert known.samples_for(0.02) is None  # draws alone never get there
    assert known.best(4.0) == 4 and known.table()["se"].is_monotonic_decreasing
    with pytest.raises(ValueError):
        sample_plan([1, 0], [1, 1])
