"""Agreement: statsmodels, the krippendorff package and simulation as oracles."""

import math
import warnings

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as sm_fleiss

from auditlib.stats.agreement import category_counts, cohen_kappa, fleiss_kappa, item_agreement, krippendorff_alpha
from auditlib.stats.wrong_options import same_wrong_option


def _codes(items=200, raters=4, missing=0.0, seed=0, follow=0.6):
    """Ratings that follow a common answer with some probability; -1 where missing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, (items, 1))
    codes = np.where(rng.random((items, raters)) < follow, truth, rng.integers(0, 4, (items, raters)))
    codes[rng.random((items, raters)) < missing] = -1
    return codes


@pytest.mark.parametrize("raters", [2, 3, 7])
def test_fleiss_against_statsmodels(raters):
    codes = _codes(raters=raters, missing=0.05)
    complete = codes[(codes >= 0).all(1)]
    ours = fleiss_kappa(codes, 4)
    assert ours.estimate == pytest.approx(sm_fleiss(aggregate_raters(complete, 4)[0]), abs=1e-12)
    assert (ours.n, ours.raters) == (len(complete), raters)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.7])
def test_alpha_against_the_krippendorff_package(missing):
    codes = _codes(missing=missing, seed=3)
    values = np.where(codes < 0, np.nan, codes.astype(float)).T
    oracle = krippendorff.alpha(values, level_of_measurement="nominal", value_domain=[0, 1, 2, 3])
    assert krippendorff_alpha(codes, 4).estimate == pytest.approx(oracle, abs=1e-12)


def test_cohen_against_statsmodels():
    codes = _codes(raters=2, seed=4)
    table = np.zeros((4, 4))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    ours = cohen_kappa(codes[:, 0], codes[:, 1], 4, rng=np.random.default_rng(0))
    oracle = cohens_kappa(table)
    assert ours.estimate == pytest.approx(oracle.kappa, abs=1e-12)
    # statsmodels gives the asymptotic interval, ours is a bootstrap
    assert (ours.interval.low, ours.interval.high) == pytest.approx((oracle.kappa_low, oracle.kappa_upp), abs=0.01)


def test_kappa_interval_equals_direct_resampling_of_items_and_clusters():
    codes = np.repeat(_codes(items=80, seed=5), 2, axis=0)
    cluster = np.repeat(np.arange(80), 2)
    rng = np.random.default_rng(1)
    for labels, members in ((None, np.arange(160)[:, None]), (cluster, np.arange(160).reshape(80, 2))):
        draws = []
        for _ in range(1_500):
            at = members[rng.integers(0, len(members), len(members))].ravel()
            draws.append(sm_fleiss(aggregate_raters(codes[at], 4)[0]))
        ours = fleiss_kappa(codes, 4, rng=rng, cluster=labels).interval
        ends = np.quantile(draws, [0.025, 0.975])
        assert (ours.low, ours.high) == pytest.approx(tuple(ends), abs=0.2 * np.std(draws))
        alpha = krippendorff_alpha(codes, 4, rng=rng, cluster=labels).interval
        assert (alpha.low, alpha.high) == pytest.approx((ours.low, ours.high), abs=0.02)


def test_degenerate_agreement():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        two = fleiss_kappa(np.array([[0, 0], [1, 1], [0, 0]] * 9), 4, rng=rng)
        one = fleiss_kappa(np.ones((20, 3), int), 4, rng=rng)
        none = fleiss_kappa(np.full((20, 3), -1), 4, rng=rng)
        alone = fleiss_kappa(np.ones((20, 1), int), 4, rng=rng)
        alpha = krippendorff_alpha(np.ones((20, 3), int), 4, rng=rng)
        empty = krippendorff_alpha(np.full((3, 2), -1), 4, rng=rng)
    assert (two.estimate, two.interval.low, two.interval.high) == (1.0, 1.0, 1.0)
    for r in (one, none, alone, alpha, empty):
        assert math.isnan(r.estimate) and r.note and r.interval.method.startswith("none: ")
    assert one.note == "all ratings fall in one category" and one.observed == 1.0


def test_item_agreement_by_hand():
    codes = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, -1], [0, -1, -1]])
    assert item_agreement(codes, 3).tolist()[:4] == pytest.approx([1, 1 / 3, 0, 1])
    assert math.isnan(item_agreement(codes, 3)[4])
    assert category_counts(codes, 3)[1].tolist() == [2, 1, 0]
    with pytest.raises(ValueError, match="levels"):
        category_counts(codes, 2)


@given(st.integers(0, 1_000))
@settings(max_examples=25, deadline=None)
def test_order_of_items_and_names_of_categories_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    codes = _codes(items=20, missing=0.2, seed=seed)
    relabel = np.append(rng.permutation(4), -1)
    other = relabel[codes[rng.permutation(20)]][:, rng.permutation(4)]
    for measure in (fleiss_kappa, krippendorff_alpha):
        assert measure(codes, 4).estimate == pytest.approx(measure(other, 4).estimate, abs=1e-12, nan_ok=True)


def test_same_wrong_option_baselines_against_simulation():
    rng = np.random.default_rng(8)
    n = 400
    key = rng.integers(0, 4, n)
    prefer = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])  # shared taste for wrong options
    a, b = (np.where(rng.random(n) < r, key, np.where(rng.random(n) < 0.5, prefer, rng.integers(0, 4, n)))
            for r in (0.5, 0.6))  # fmt: skip
    b[rng.random(n) < 0.1] = -1
    ours = same_wrong_option(a, b, key)
    wrong_a, wrong_b = a != key, (b >= 0) & (b != key)
    both = wrong_a & wrong_b
    assert (ours.same, ours.n) == (int((a == b)[both].sum()), int(both.sum()))
    shuffled, rejudged = [], []
    for _ in range(4_000):
        p = rng.permutation(n)
        m = wrong_a & wrong_b[p]
        shuffled.append((a == b[p])[m].mean())
        m = wrong_a & (b[p] >= 0) & (b[p] != key)
        rejudged.append((a == b[p])[m].mean())
    for closed, drawn in ((ours.shuffled, shuffled), (ours.rejudged, rejudged)):
        assert abs(closed - np.mean(drawn)) < 4 * np.std(drawn) / math.sqrt(4_000) + 1e-3
    assert ours.as_row("rejudged")["null"] == ours.rejudged


def test_same_wrong_option_without_joint_errors():
    r = same_wrong_option([0, 1], [0, -1], [0, 0])
    assert r.n == 0 and math.isnan(r.estimate) and math.isnan(r.shuffled)
    unknown_key = same_wrong_option([1, 1], [1, 1], [-1, 0])
    assert (unknown_key.same, unknown_key.n) == (1, 1)
