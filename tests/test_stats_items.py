"""Item statistics, key positions, AUC, multiplicity: numpy, scipy and statsmodels as oracles."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from auditlib.stats.auc import auc, roc_curve
from auditlib.stats.items import difficulty, inversions, item_rest_correlation
from auditlib.stats.multiplicity import bh, holm
from auditlib.stats.positions import always_letter_accuracy, chance_accuracy, key_positions, letter_counts


def _hits(items=50, models=8, seed=0):
    rng = np.random.default_rng(seed)
    ability, ease = rng.normal(size=models), rng.normal(size=(items, 1))
    return (rng.random((items, models)) < 1 / (1 + np.exp(-ability - ease))).astype(np.uint8)


def test_item_rest_correlation_against_numpy():
    hits = _hits()
    ours = item_rest_correlation(hits)
    for i, row in enumerate(hits):
        if row.min() == row.max():
            assert math.isnan(ours[i])
        else:
            rest = np.delete(hits, i, axis=0).sum(0)
            assert ours[i] == pytest.approx(np.corrcoef(row, rest)[0, 1], abs=1e-12)


def test_item_rest_correlation_with_missing_answers():
    hits = _hits(seed=1)
    trials = (np.random.default_rng(2).random(hits.shape) < 0.8).astype(np.uint8)
    hits = hits * trials
    ours = item_rest_correlation(hits, trials)
    for i in range(len(hits)):
        m = trials[i] == 1
        x = hits[i, m]
        if m.sum() < 3 or x.min() == x.max():
            assert math.isnan(ours[i])
            continue
        rest = np.delete(hits, i, 0)[:, m].sum(0) / np.delete(trials, i, 0)[:, m].sum(0)
        assert ours[i] == pytest.approx(np.corrcoef(x, rest)[0, 1], abs=1e-12)


def test_item_traps():
    assert np.isnan(item_rest_correlation(_hits(models=2))).all()
    assert np.isnan(item_rest_correlation(np.ones((1, 5), np.uint8))).all()
    assert np.isnan(item_rest_correlation(np.eye(5, dtype=np.uint8)[:, ::-1] * 0)).all()
    assert math.isnan(difficulty([[0, 0]], [[0, 0]])[0])
    assert difficulty([[1, 0], [2, 1]], [[1, 1], [2, 2]]).tolist() == [0.5, 0.75]
    with pytest.raises(ValueError, match="integer matrix"):
        difficulty([[0.5]])


def test_inversions_by_hand():
    # strength over the other items: model 0 the best, model 2 the worst
    hits = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]])
    ours = inversions(hits)
    assert ours[4] == 1.0 and ours[2] == 0.0 and math.isnan(ours[5])


def test_exact_position_p_against_binomial_and_enumeration():
    key = np.repeat([0, 1], [9, 21])
    assert key_positions(key, 2).p == pytest.approx(stats.binomtest(9, 30).pvalue, rel=1e-9)
    observed = np.array([5, 1, 2])
    law = stats.multinomial(8, [1 / 3] * 3)
    outcomes = [(a, b, 8 - a - b) for a in range(9) for b in range(9 - a)]
    p = sum(law.pmf(o) for o in outcomes if law.pmf(o) <= law.pmf(observed) * (1 + 1e-9))
    ours = key_positions(np.repeat(np.arange(3), observed), 3)
    assert ours.p == pytest.approx(p, rel=1e-9) and ours.p_method == "exact"


def test_monte_carlo_position_p_against_chi_square_and_with_mixed_k():
    rng = np.random.default_rng(0)
    key = np.repeat(np.arange(4), [408, 390, 373, 329])
    ours = key_positions(key, 4, rng=rng)
    oracle = stats.chisquare([408, 390, 373, 329])
    assert ours.p_method == "tables" and ours.statistic == pytest.approx(oracle.statistic)
    assert ours.p == pytest.approx(oracle.pvalue, abs=0.01)
    k = np.repeat([2, 4], [40, 60])
    mixed = key_positions(rng.integers(0, k), k, rng=rng)
    assert mixed.expected.tolist() == [35, 35, 15, 15] and 0.001 < mixed.p <= 1
    stuck = key_positions(np.zeros(100, int), k, rng=rng)
    assert stuck.p == 1 / 10_000


def test_position_p_is_calibrated_for_mixed_k():
    rng = np.random.default_rng(5)
    k = np.repeat([2, 3, 5], [30, 30, 40])
    p = [key_positions(rng.integers(0, k), k, rng=rng, draws=199).p for _ in range(500)]
    assert stats.kstest(p, "uniform", alternative="greater").pvalue > 0.01
    assert stats.kstest(p, "uniform").pvalue > 0.001


def test_position_traps_and_letter_shares():
    assert key_positions([-1, 7], 4).n == 0
    assert key_positions([0, 0], 1).p_method == ""
    assert math.isnan(key_positions([0] * 5000, 4).p)  # no rng, too many outcomes
    assert letter_counts([0, 1, 1, -1, -2], 3).tolist() == [1, 2, 0]
    assert always_letter_accuracy([0, 0, 1, -1], 3).tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    assert chance_accuracy([2, 4]) == 0.375


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_auc_against_mann_whitney(seed):
    rng = np.random.default_rng(seed)
    x, pos = rng.integers(-3, 4, 40), rng.random(40) < 0.4
    if pos.all() or not pos.any():
        assert math.isnan(auc(x, pos).estimate)
        return
    u = stats.mannwhitneyu(x[pos], x[~pos]).statistic
    assert auc(x, pos).estimate == pytest.approx(u / pos.sum() / (~pos).sum(), abs=1e-12)
    assert auc(x, pos).estimate + auc(-x, pos).estimate == pytest.approx(1)
    fpr, tpr = roc_curve(x, pos)
    assert np.trapezoid(tpr, fpr) == pytest.approx(auc(x, pos).estimate, abs=1e-12)


def test_auc_interval_against_direct_bootstrap():
    rng = np.random.default_rng(1)
    pos = np.arange(200) < 80
    x = rng.normal(size=200) + 0.5 * pos
    draws = []
    for _ in range(800):
        i, j = rng.choice(80, 80), 80 + rng.choice(120, 120)
        draws.append(stats.mannwhitneyu(x[i], x[j]).statistic / 80 / 120)
    ours = auc(x, pos, rng=rng).interval
    assert (ours.low, ours.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])), abs=0.3 * np.std(draws))
    pairs = auc(np.repeat(x, 2), np.repeat(pos, 2), rng=rng, cluster=np.repeat(np.arange(200), 2)).interval
    assert pairs.high - pairs.low == pytest.approx(ours.high - ours.low, rel=0.1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(0, 100))
@settings(max_examples=8, deadline=None)
def test_adjusted_p_against_statsmodels(p, seed):
    p = np.array(p)
    assert bh(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-12)
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
    order = np.random.default_rng(seed).permutation(len(p))
    assert bh(p[order]) == pytest.approx(bh(p)[order])
    with_gap = np.insert(p, 0, np.nan)
    assert np.isnan(holm(with_gap)[0]) and holm(with_gap)[1:] == pytest.approx(holm(p))


def test_adjusted_p_traps():
    assert bh([]).size == 0 and np.isnan(bh([np.nan, np.nan])).all()
    with pytest.raises(ValueError, match="p-values"):
        holm([1.2])
