"""The share of items with small gain: identified set and mixture.

Oracles: scipy's multinomial, hypergeometric and binomial laws, enumeration of all subsets and all patterns of answers,
the primal linear program over mixing laws by brute force on tiny pools, worlds with known truth.
"""

from __future__ import annotations

import time
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, multinomial, multivariate_hypergeom, norm

from auditlib.stats import gain_prevalence
from auditlib.stats.gain_kernel import cell_of, cells, changes, thinned, thinning, trinomial
from auditlib.stats.gain_mixture import NODES, band, fit_gain_mixture, poisson_binomial
from auditlib.stats.gain_prevalence import band_nodes, one_sided, prevalence_set
from auditlib.stats.gain_windows import window_nodes
from tests.calibrate.prevalence import measure, world

# ---- the law of the counts


def test_cells_and_trinomial_are_scipys():
    a, b = cells(4)
    assert (cell_of(a, b, 4) == np.arange(len(a))).all()
    for x, y in ((0.3, 0.2), (0.0, 0.4), (0.6, 0.4), (0.0, 0.0)):
        theirs = [multinomial.pmf([i, j, 4 - i - j], 4, [x, y, 1 - x - y]) for i, j in zip(a, b)]
        assert trinomial(4, [x], [y])[0] == pytest.approx(theirs, abs=1e-12)


def test_thinning_is_hypergeometric():
    lift, (a, b), (x, y) = thinning(6, 3), cells(6), cells(3)
    for i in range(0, len(a), 5):
        urn = [a[i], b[i], 6 - a[i] - b[i]]
        theirs = [multivariate_hypergeom.pmf([p, q, 3 - p - q], urn, 3) for p, q in zip(x, y)]
        assert lift[i] == pytest.approx(theirs, abs=1e-12)


def test_mean_table_is_the_mean_over_all_subsets_of_models(rng):
    full, blind = rng.integers(0, 2, (40, 5)), rng.integers(0, 2, (40, 5))
    tables = []
    for s in combinations(range(5), 3):
        d = full[:, s] - blind[:, s]
        tables.append(np.bincount(cell_of((d > 0).sum(1), (d < 0).sum(1), 3), minlength=10) / 40)
    found = thinned(changes(full, blind), 3)
    assert found.mean == pytest.approx(np.mean(tables, axis=0))
    # jackknife over models by leaving each out in earnest
    left = np.array([thinned(changes(np.delete(full, m, 1), np.delete(blind, m, 1)), 3).mean for m in range(5)])
    assert found.without == pytest.approx((left - left.mean(axis=0)) * np.sqrt(4 / 5), abs=1e-12)


def test_unseen_cells_leave_only_their_item(rng):
    full, blind = rng.integers(0, 2, (30, 6)), rng.integers(0, 2, (30, 6))
    seen = np.ones((30, 6), bool)
    seen[:10, 5] = False
    whole = thinned(changes(full, blind, seen), 3).mean
    parts = thinned(changes(full[:10, :5], blind[:10, :5]), 3).mean, thinned(changes(full[10:], blind[10:]), 3).mean
    assert whole == pytest.approx((10 * parts[0] + 20 * parts[1]) / 30)


# ---- the set


def _nodes(scattered: bool, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Laws of the table at nodes of the set, and the band's indicator without and with its edges."""
    if scattered:
        kernel, inside = window_nodes(size, 0.1, 2, 9)
        return kernel, inside, inside
    gain, inside = band_nodes(0.1, 2)
    g = np.repeat(gain, 9)
    total = np.abs(g) + (1 - np.abs(g)) * np.tile(np.linspace(0, 1, 9), len(gain))
    return trinomial(size, (total + g) / 2, (total - g) / 2), *np.repeat(inside, 9, axis=0).T


@pytest.mark.parametrize("scattered", [False, True])
def test_ends_are_those_of_the_primal_program_where_nothing_is_sampled(scattered):
    """2 of 3 models, huge pools: the ends without margin are the optima over all mixing laws of the set."""
    kernel, under, over = _nodes(scattered, 2)
    # half of the items at small gains, half anywhere
    mass = np.where(over > 0.99, 0.5 / (over > 0.99).sum(), 0.5 / (over <= 0.99).sum())
    table = mass @ kernel
    t = gain_prevalence.Thinned(table, np.diag(table) - np.outer(table, table), np.zeros((3, 6)), np.zeros((6, 6)))
    design = gain_prevalence._Design(t, 10**12, 2, 0.1, scattered)
    design.centre = table @ design.basis
    for upper in (True, False):
        found = float(table @ design.weights(upper, 0.95, rounds=40, tolerance=1e-6))
        cost = -over if upper else under
        r = linprog(cost, A_eq=kernel.T, b_eq=table, method="highs")
        best = -r.fun if upper else r.fun
        assert r.status == 0 and found == pytest.approx(best, abs=0.02)
        assert found >= best - 0.005 if upper else found <= best + 0.005


def test_windows_are_means_over_their_gains_and_hold_their_part_of_the_band():
    """Oracle: scipy's trinomial averaged over gains of one window, drawn finely."""
    kernel, inside = window_nodes(3, 0.1, 1, 5)
    assert kernel.sum(axis=1) == pytest.approx(1) and inside.min() == 0 and inside.max() == 1
    heaps = 5  # of small gain; then windows of half-width .125 from the gain -1 on, 4 cells of 1/80 apart
    which = 17
    low = -1 + which * 4 / 80
    gain = low + 0.25 * (np.arange(2000) + 0.5) / 2000
    rise = (1 - np.cos(np.pi * np.linspace(0, 1, 5)[2])) / 2
    total = np.abs(gain) + (1 - np.abs(gain)) * rise
    a, b = cells(3)
    p = np.column_stack([(total + gain) / 2, (total - gain) / 2, 1 - total])
    theirs = [multinomial.pmf([i, j, 3 - i - j], 3, p).mean() for i, j in zip(a, b)]
    assert kernel[(heaps + which) * 5 + 2] == pytest.approx(theirs, abs=2e-4)
    assert inside[(heaps + which) * 5 + 2] == pytest.approx((np.abs(gain) <= 0.1).mean(), abs=1e-3)


def test_margin_is_two_sided_for_a_point_and_one_sided_for_a_wide_set():
    assert norm.ppf(one_sided(0.0, 0.1, 0.95)) == pytest.approx(norm.ppf(0.975), abs=1e-6)
    assert norm.ppf(one_sided(5.0, 0.1, 0.95)) == pytest.approx(norm.ppf(0.95), abs=1e-6)
    assert one_sided(0.3, 0.0, 0.95) == 0.95


@pytest.mark.parametrize("kind, seeds", [("family", 2), ("linked", 2), ("misled", 2), ("separated", 2)])
def test_sets_hold_the_truth_inside_and_outside_the_mixtures_family(kind, seeds):
    """5 models, small pools; the longer table is ``python -m tests.calibrate.prevalence``."""
    for seed in range(seeds):
        w = world(kind, 100 + seed, items=300, models=5)
        for scattered in (False, True):
            found = prevalence_set(w.full, w.blind, scattered=scattered)
            assert w.truth in found and 0 <= found.low <= found.high <= 1


def test_more_models_say_more_and_the_restriction_never_less():
    w = world("separated", 1, items=600, models=12)
    few = prevalence_set(w.full[:, :3], w.blind[:, :3])
    many, narrow = (prevalence_set(w.full, w.blind, scattered=s) for s in (False, True))
    assert few.width > many.width >= narrow.width - 0.05
    assert not prevalence_set(w.full[:, :1], w.blind[:, :1]).informative


def test_clusters_widen(rng):
    w = world("separated", 2, items=200, models=5)
    once = prevalence_set(w.full, w.blind)
    full, blind = np.repeat(w.full, 3, axis=0), np.repeat(w.blind, 3, axis=0)
    tripled = prevalence_set(full, blind, cluster=np.repeat(np.arange(200), 3))
    assert tripled.high_se > prevalence_set(full, blind).high_se * 1.2
    assert tripled.high == pytest.approx(once.high, abs=0.06)


def test_wrong_arguments_are_refused():
    ones = np.ones((5, 3))
    for call in (
        lambda: prevalence_set(ones, 2 * ones),
        lambda: prevalence_set(ones, ones[:, :2]),
        lambda: prevalence_set(ones, ones, margin=1.2),
        lambda: prevalence_set(ones, ones, margin=0.5, scattered=True),
        lambda: prevalence_set(ones, ones, observed=np.zeros((5, 3), bool)),
        lambda: fit_gain_mixture(ones, ones, draws=5),
        lambda: fit_gain_mixture(ones, 0.5 * ones),
    ):
        with pytest.raises(ValueError):
            call()


# ---- the mixture


def test_poisson_binomial_is_the_enumeration_of_all_patterns(rng):
    p = rng.random((2, 5))
    brute = np.zeros((2, 6))
    for pattern in product((0, 1), repeat=5):
        x = np.array(pattern)
        brute[:, x.sum()] += np.where(x, p, 1 - p).prod(axis=1)
    assert poisson_binomial(p) == pytest.approx(brute)
    assert poisson_binomial(np.full((1, 9), 0.3))[0] == pytest.approx(binom.pmf(np.arange(10), 9, 0.3))


def test_posterior_is_bayes_rule_over_the_law(rng):
    """Two models without effects: the posterior of a cell from the fitted law, by hand."""
    full, blind = rng.integers(0, 2, (400, 2)), rng.integers(0, 2, (400, 2))
    full[:, 1], blind[:, 1] = rng.permutation(full[:, 0]), rng.permutation(blind[:, 0])  # the same accuracies
    fit = fit_gain_mixture(full, blind)
    p = np.clip(NODES, 1e-6, 1 - 1e-6)
    i = 7
    one = binom.pmf(full[i].sum(), 2, p)[:, None] * binom.pmf(blind[i].sum(), 2, p)[None] * fit.law
    assert fit.posterior[i] == pytest.approx((one * band(0.1)).sum() / one.sum(), abs=2e-3)
    assert fit.posterior.mean() == pytest.approx(fit.share, abs=0.02)


@pytest.mark.parametrize("models", [6, 24])
def test_mixture_finds_the_share_in_its_own_family(models):
    """Rasch items with a guessing floor, 40% of zero gain; mean error below 8 points with 6 models, below 3 with 24."""
    errors = []
    for seed in range(6):
        g = np.random.default_rng(seed)
        zero, ease = g.random(1200) < 0.4, g.normal(0.3, 1.2, 1200)
        gain, effect = np.where(zero, 0, g.gamma(2, 0.8, 1200)), g.normal(0, 0.6, 500)
        chance = [0.25 + 0.75 / (1 + np.exp(-(e[:, None] + effect))) for e in (ease + gain, ease)]
        truth = (np.abs(chance[0].mean(1) - chance[1].mean(1)) <= 0.1).mean()
        full, blind = ((g.random((1200, models)) < c[:, :models]).astype(int) for c in chance)
        errors.append(fit_gain_mixture(full, blind, options=np.full(1200, 4)).share - truth)
    assert abs(np.mean(errors)) < (0.08 if models == 6 else 0.03) and np.abs(errors).max() < 0.12


def test_abstentions_are_not_taken_for_gain():
    """Blind replies withheld at random by two of six models: told so, the fit moves less than the raw share."""
    g = np.random.default_rng(5)
    ease, effect = g.normal(0.5, 1.3, 1500), g.normal(0, 0.4, 6)
    chance = 1 / (1 + np.exp(-(ease[:, None] + effect)))
    full, answered = ((g.random((1500, 6)) < chance).astype(int) for _ in range(2))
    silent = (g.random((1500, 6)) < 0.7) & np.isin(np.arange(6), (1, 4))
    blind = answered * ~silent
    told = fit_gain_mixture(full, blind, abstained_blind=silent)
    unaware = fit_gain_mixture(full, blind)
    assert told.posterior.shape == (1500,) and told.log_likelihood > unaware.log_likelihood


def test_interval_resamples_and_is_reproducible():
    w = world("family", 7, items=300, models=6)
    first, second = (
        fit_gain_mixture(w.full, w.blind, draws=15, rng=np.random.default_rng(1)).interval for _ in range(2)
    )
    assert first == second and 0 < first.low < first.high < 1 and "model-based" in first.method


# ---- the real matrix, and speed


def test_subsets_of_a_real_pool_agree(shared_data):
    """MMMU, 3 to 24 models: raw ties move with the pool, the sets of one share overlap and shrink."""
    path = shared_data / "real" / "m3irt" / "mmmu" / "normal_mmmu.csv"
    raw = pd.read_csv(path, encoding="utf-8-sig", index_col=0)
    ids = [c for c in raw.columns if not c.startswith("<")]
    full, blind = raw[ids].to_numpy().T, raw[["<no_image>" + c for c in ids]].to_numpy().T
    order = np.random.default_rng(0).permutation(24)
    found, ties = {}, {}
    for n in (3, 6, 12, 24):
        f, b = full[:, order[:n]], blind[:, order[:n]]
        found[n] = prevalence_set(f, b, scattered=True)
        ties[n] = float((f.sum(1) == b.sum(1)).mean())
    assert ties[3] > 2 * ties[24]
    assert max(s.low for s in found.values()) <= min(s.high for s in found.values())
    assert found[3].width > found[12].width > found[24].width and found[24].width <= 0.3


def test_three_models_take_seconds(rng):
    ease = rng.normal(size=(1500, 1))
    full, blind = ((rng.random((1500, 3)) < 1 / (1 + np.exp(-(ease + d)))).astype(np.uint8) for d in (1.0, -0.5))
    start = time.process_time()
    prevalence_set(full, blind)
    prevalence_set(full, blind, scattered=True)
    fit_gain_mixture(full, blind, options=np.full(1500, 4))
    assert time.process_time() - start < 2 * 2  # twice the target, for a busy machine


def test_calibration_rows_have_every_measure():
    row = measure("family", 0, 4, items=200)
    assert {"any", "scattered", "mixture error", "naive error"} <= set(row) and 0 <= row["truth"] <= 1
