"""Label-conflict ranking, bounds without reviews, review sample, local false-discovery rate: oracles and worlds."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import isotonic_regression
from threadpoolctl import threadpool_limits

from auditlib.calibration.review_sample import allocate, rank_edges, review_sample
from auditlib.errors import AuditError
from auditlib.stats.label_conflict import label_conflict, model_weights, signed_r2
from auditlib.stats.local_fdr import decreasing, local_fdr
from auditlib.stats.precision_bounds import (
    VoteCells,
    fit_urn,
    precision_bounds,
    shared_errors_moments,
    vote_cells,
)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Small matrix products only: threads of a loaded machine wait for each other."""
    with threadpool_limits(1):
        yield


def _pool(seed=0, items=60, models=5, options=4):
    rng = np.random.default_rng(seed)
    key = rng.integers(-1, options, items)
    said = np.where(
        rng.random((items, models)) < 0.6, np.maximum(key, 0)[:, None], rng.integers(-1, options, (items, models))
    )
    return said.astype(np.int8), key.astype(np.int8)


def _brute_margin(said, key, weights):
    """By definition, item by item."""
    out = []
    for row, right in zip(said.tolist(), key.tolist()):
        share = {}
        for letter, w in zip(row, weights):
            if letter >= 0:
                share[letter] = share.get(letter, 0.0) + w
        if right < 0 or not share:
            out.append(math.nan)
        else:
            out.append(max([v for o, v in share.items() if o != right], default=0.0) - share.get(right, 0.0))
    return np.array(out)


@pytest.mark.parametrize("seed", range(5))
def test_margin_by_definition(seed):
    said, key = _pool(seed)
    c = label_conflict(said, key)
    keyed = key >= 0
    accuracy = [(said[keyed, m] == key[keyed]).sum() / (said[keyed, m] >= 0).sum() for m in range(5)]
    assert c.accuracy == pytest.approx(accuracy)
    assert c.weights == pytest.approx(np.array(accuracy) / sum(accuracy))
    assert c.margin == pytest.approx(_brute_margin(said, key, c.weights), nan_ok=True)
    assert set(c.order) == set(np.flatnonzero(np.isfinite(c.score)))
    assert (np.diff(c.score[c.order]) <= 0).all()
    for i in c.order:
        votes = np.bincount(said[i][said[i] >= 0], minlength=4)
        assert c.key_votes[i] == votes[key[i]] and c.voters[i] == votes.sum()
        if c.alternative[i] >= 0:
            assert c.alternative[i] != key[i] and c.alternative_votes[i] == votes[c.alternative[i]]


def test_score_of_items_without_key_or_votes_is_missing_and_they_are_not_ranked():
    said = np.array([[0, 1, 1], [-1, -1, -1], [0, 0, 0]])
    c = label_conflict(said, np.array([-1, 0, 0]))
    assert np.isnan(c.score).tolist() == [True, True, False] and c.order.tolist() == [2]
    assert c.alternative.tolist() == [-1, -1, -1] and c.margin[2] == pytest.approx(-1)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_ranking_does_not_depend_on_names_of_options_or_order_of_models_and_items(seed):
    said, key = _pool(seed, items=40)
    rng = np.random.default_rng(seed)
    c = label_conflict(said, key)
    names, models, items = rng.permutation(4), rng.permutation(5), rng.permutation(40)
    named = lambda x: np.where(x >= 0, names[np.maximum(x, 0)], x)  # noqa: E731
    again = label_conflict(named(said)[items][:, models], named(key)[items])
    assert again.score == pytest.approx(c.score[items], nan_ok=True)
    assert again.gradient.shape == (40,)


def test_tie_break_orders_equal_votes_and_never_outvotes_a_model():
    said, key = _pool(3, items=400, models=7)
    x = np.random.default_rng(0).standard_t(2, 400)
    x[0] = np.nan
    plain, tied = label_conflict(said, key), label_conflict(said, key, tie_break=x)
    assert np.nanmax(np.abs(tied.score - plain.score)) < 0.5 / 7
    for a, b in product(range(1, 60), repeat=2):
        if plain.score[a] == plain.score[b] and x[a] < x[b]:
            assert tied.score[a] >= tied.score[b]
    assert np.array_equal(label_conflict(said, key, tie_break=np.ones(400)).score, plain.score, equal_nan=True)


def test_gradient_is_above_zero_where_able_models_are_against_the_key():
    rng = np.random.default_rng(1)
    said = np.where(rng.random((400, 4)) < [0.9, 0.85, 0.4, 0.3], 0, 1)
    said[0], said[1], said[2] = [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]
    c = label_conflict(said, np.zeros(400, int))
    assert c.gradient[0] > 0 > c.gradient[1] and math.isnan(c.gradient[2])
    able = np.log(c.accuracy / (1 - c.accuracy))
    assert c.gradient[0] == pytest.approx(able[:2].mean() - able[2:].mean())


def test_copies_of_one_model_share_its_votes_and_unlike_kin_keep_theirs():
    rng = np.random.default_rng(2)
    key = rng.integers(0, 4, 3000)
    one = np.where(rng.random((3000, 4)) < 0.7, key[:, None], rng.integers(0, 4, (3000, 4)))
    said = np.concatenate([one, one[:, 3:], one[:, 3:]], 1)
    accuracy, alone = model_weights(said, key, list("abcddd"))
    assert alone[3:].sum() == pytest.approx(alone[:3].mean(), rel=0.1)
    _, loose = model_weights(one, key, list("aabc"))
    assert loose == pytest.approx(accuracy[:4] / accuracy[:4].sum(), rel=0.05)
    with pytest.raises(ValueError, match="families"):
        model_weights(one, key, ["a"])


def test_signed_r2_is_that_of_isotonic_regression_in_the_better_direction():
    hits = np.random.default_rng(4).random((25, 9)) < 0.6
    hits[0], hits[1] = True, False
    ours = signed_r2(hits)
    assert math.isnan(ours[0]) and math.isnan(ours[1])
    for i in range(2, 25):
        signed = []
        for j in range(2, 25):
            if j == i:
                continue
            x, y = hits[j].astype(float), hits[i].astype(float)
            order = np.argsort(x, kind="stable")
            r2 = []
            for up in (True, False):
                # isotonic regression wants tied x pooled: fit group means, then the order
                groups = [y[x == v].mean() for v in (0.0, 1.0)]
                fit = isotonic_regression(groups, weights=[(x == 0).sum(), (x == 1).sum()], increasing=up).x
                r2.append(1 - ((y - np.where(x == 1, fit[1], fit[0])) ** 2).sum() / ((y - y.mean()) ** 2).sum())
            assert len(order) == 9
            signed.append(r2[0] if r2[0] >= r2[1] else -r2[1])
        assert ours[i] == pytest.approx(np.mean(signed), abs=1e-5)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        label_conflict(np.zeros((3, 2), int), np.zeros(4, int))
    with pytest.raises(ValueError, match="break ties"):
        label_conflict(np.zeros((3, 2), int), np.zeros(3, int), tie_break=[1.0])


# bounds


def test_cells_by_definition():
    said, key = _pool(7)
    cells = vote_cells(said, key)
    pairs, lead, for_key = np.zeros(6, int), np.zeros(6, int), np.zeros(6, int)
    for row, right in zip(said.tolist(), key.tolist()):
        if right >= 0:
            votes = [row.count(o) for o in range(4)]
            for o in range(4):
                (for_key if o == right else pairs)[votes[o]] += 1
            lead[max(v for o, v in enumerate(votes) if o != right)] += 1
    assert cells.alternatives.tolist() == pairs.tolist() and cells.leading.tolist() == lead.tolist()
    assert cells.key == pytest.approx(for_key / for_key.sum())
    fewer = vote_cells(said, key, options=np.full(len(key), 2))
    assert fewer.alternatives.sum() == (key == 0).sum() + (key == 1).sum() + 2 * (key >= 2).sum()


def _cells(counts, key=None):
    """Cells of items with one wrong option each, of which ``counts`` are live and a quarter of all items immune."""
    n, pairs = len(counts), np.array(counts)
    pairs[0] += pairs.sum() // 3
    key = np.eye(n)[n - 1] if key is None else key
    return VoteCells(pairs, np.asarray(key, float), pairs)


def test_urn_finds_the_law_that_made_the_counts():
    for a, b, n in ((0.1, 1.6, 3), (0.3, 2.5, 5), (0.2, 1.3, 14)):
        pmf = stats.betabinom(n, a, b).pmf(np.arange(n + 1))
        urn = fit_urn(_cells(np.round(1e7 * pmf).astype(int)))
        assert (urn.a, urn.b) == (pytest.approx(a, rel=0.02), pytest.approx(b, rel=0.02)) and urn.fits
        assert urn.expected[-1] == pytest.approx(1e7 * pmf[-1], rel=0.02)


def test_urn_with_three_models_has_a_closed_form_and_ignores_the_unanimous():
    counts = np.array([75_000, 5_150, 2_206, 1_436])
    r1, r2 = counts[1] / 3 / counts[0], counts[2] / counts[1]
    # f1/f0 = a / (b + 2), f2/f1 = (a + 1) / (b + 1), so f3/f2 = (a + 2) / b
    b = (1 + 2 * r1 - r2) / (r2 - r1)
    a = r1 * (b + 2)
    for top in (1_436, 100_000):
        urn = fit_urn(_cells([*counts[:3], top]))
        assert (urn.a, urn.b) == (pytest.approx(a, rel=1e-2), pytest.approx(b, rel=1e-2))
        assert urn.expected[3] == pytest.approx(counts[2] / 3 * (a + 2) / b, rel=1e-2)


def test_moments_with_three_models_are_the_cauchy_bound():
    # without sampling margin: fewest unanimous pairs that go with f1, f2 pairs are f2^2 / f1 in each voting order
    counts = np.array([10_000_000, 300_000, 120_000, 90_000]) * 100
    found = shared_errors_moments(_cells(counts, key=[1.0, 0, 0, 0]), 3, level=0.5)
    assert found == pytest.approx((counts[2] / 3) ** 2 / (counts[1] / 3), rel=0.02)


def test_moments_never_exceed_what_a_mixture_makes():
    rng = np.random.default_rng(5)
    for n in (3, 5, 8):
        p = rng.choice([0.02, 0.3, 0.7, 0.95], 50_000, p=[0.8, 0.1, 0.06, 0.04])
        counts = np.bincount(rng.binomial(n, p), minlength=n + 1)
        cells = _cells(counts)
        for first in range(cells.cut + 1, n + 1):
            assert 0 <= shared_errors_moments(cells, first) <= counts[first:].sum()


def _world(rng, items, models, share, law):
    """Letters, keys and which keys are wrong; a wrong option of each item has a popularity drawn by ``law``."""
    truth = rng.integers(0, 4, items)
    other = (truth + rng.integers(1, 4, items)) % 4
    said = np.where(rng.random((items, models)) < law(rng, items)[:, None], other[:, None], truth[:, None])
    wrong = rng.random(items) < share
    return said, np.where(wrong, (truth + rng.integers(1, 4, items)) % 4, truth), wrong


LAWS = {
    "beta": lambda rng, n: rng.beta(0.25, 1.5, n),
    "heavy": lambda rng, n: rng.beta(0.2, 0.9, n),
    "misconceptions of all": lambda rng, n: np.where(rng.random(n) < 0.03, 0.98, rng.beta(0.3, 2, n)),
    "half of the models": lambda rng, n: np.where(rng.random(n) < 0.15, 0.5, 0.02),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("models", [3, 9])
def test_bounds_hold_under_shared_errors(law, models):
    smooth, held, outer, spoke = law != "half of the models", [], [], 0
    for seed in range(4):
        rng = np.random.default_rng([seed, models])
        said, key, wrong = _world(rng, 1500, models, 0.03, LAWS[law])
        shuffled = np.lexsort((rng.random(1500), -label_conflict(said, key).score))
        for b in precision_bounds(said, key, shuffled, rng=rng):
            true = wrong[shuffled[: b.r]].mean()
            held.append(b.upper >= true)
            outer.append(b.outer >= true)
            spoke += str(b) != "none"
            assert b.lower == 0 and b.outer >= b.upper
            assert (str(b) == "none") == b.method.startswith("none") == (not b.upper < 0.95)
    # 90% bounds, 12 of them: fewer than 8 would have a chance of 0.4% if they were independent
    assert sum(outer) >= 8
    if smooth:
        assert sum(held) >= 8
    if models == 3 and smooth:
        assert spoke >= 6


def test_no_wrong_keys_and_all_wrong_keys():
    rng = np.random.default_rng(8)
    said, key, _ = _world(rng, 20_000, 3, 0.0, LAWS["beta"])
    order = label_conflict(said, key).order
    sound = precision_bounds(said, key, order, rng=rng)
    assert all(b.upper < 0.3 for b in sound)
    # models that err rarely and never alike: what they agree on against the key is the key's fault, none can say less
    said, key, wrong = _world(rng, 3000, 5, 0.05, lambda r, n: np.full(n, 0.03))
    order = label_conflict(said, key).order
    assert wrong[order[:100]].mean() > 0.9
    assert [str(b) for b in precision_bounds(said, key, order, rng=rng)] == ["none"] * 3


def test_bounds_refuse_what_they_cannot_know():
    rng = np.random.default_rng(9)
    said, key, _ = _world(rng, 40, 2, 0.1, LAWS["beta"])
    assert [b.method for b in precision_bounds(said, key, np.arange(40), rng=rng, at=[5])] == [
        "none: fewer than 3 models"
    ]
    said, key, _ = _world(rng, 40, 3, 0.1, LAWS["beta"])
    few = precision_bounds(said, key, np.arange(40), rng=rng, at=[25, 50])
    assert few[1].method == "none: only 40 items are ranked" and math.isnan(few[1].upper)
    assert str(few[1]) == "none"


# review sample


def test_edges_and_allocation():
    assert rank_edges(2794).tolist() == [0, 25, 50, 100, 200, 400, 800, 1600, 2794]
    assert rank_edges(60).tolist() == [0, 25, 50, 60] and rank_edges(10).tolist() == [0, 10]
    assert rank_edges(100).tolist() == [0, 25, 50, 100]
    assert allocate([25, 25, 50, 1000], 40).tolist() == [10, 10, 10, 10]
    assert allocate([3, 25, 50], 40).tolist() == [3, 19, 18]
    assert allocate([3, 4], 100).tolist() == [3, 4] and allocate([5, 5], 1).sum() == 1
    assert allocate([50, 50], 40, weights=[3, 1]).tolist() == [30, 10]


@given(st.lists(st.integers(1, 400), min_size=1, max_size=9), st.integers(1, 900))
@settings(max_examples=60, deadline=None)
def test_allocation_spends_the_budget_and_no_more_than_there_is(sizes, budget):
    got = allocate(sizes, budget)
    assert got.sum() == min(budget, sum(sizes)) and (got <= sizes).all() and (got >= 0).all()


def test_sample_is_drawn_as_said():
    order = np.random.default_rng(0).permutation(500)
    counts = np.zeros(500)
    for seed in range(2000):
        s = review_sample(order, 60, rng=np.random.default_rng(seed))
        assert len(set(s.items.tolist())) == 60 and (order[s.rank] == s.items).all()
        counts[s.rank] += 1
    sizes = np.diff(s.edges)
    expected = np.repeat(s.drawn / sizes, sizes)
    assert s.inclusion == pytest.approx(expected[s.rank]) and s.drawn.sum() == 60
    assert np.abs(counts / 2000 - expected).max() < 5 * math.sqrt(0.25 / 2000)


@pytest.mark.parametrize(
    ("order", "budget", "edges", "match"),
    [
        ([1, 2], 0, None, "none"),
        ([], 5, None, "empty"),
        ([1, 2, 3], 1, [0, 2], "run from 0"),
        ([1], 1, [0, 0, 1], "run"),
    ],
)
def test_sample_refuses(order, budget, edges, match):
    with pytest.raises(AuditError, match=match):
        review_sample(order, budget, rng=np.random.default_rng(0), edges=edges)


# local false-discovery rate


def test_decreasing_is_scipys_isotonic_regression():
    rng = np.random.default_rng(1)
    values, weights = rng.random((40, 6)), rng.integers(1, 9, 6).astype(float)
    ours = decreasing(values, weights)
    for row, fit in zip(values, ours):
        assert fit == pytest.approx(isotonic_regression(row, weights=weights, increasing=False).x, abs=1e-12)


def test_a_census_is_known_exactly():
    defect = (np.random.default_rng(2).random(120) < 0.3).astype(float)
    out = local_fdr(np.arange(120), defect, rank_edges(120), rng=np.random.default_rng(0), at=[25, 70, 120])
    for f in out.first:
        assert f.reviewed == f.r and f.found == defect[: f.r].sum() and f.expected == f.found
        assert (f.interval.low, f.interval.high) == (pytest.approx(f.precision), pytest.approx(f.precision))


def test_one_stratum_is_close_to_the_beta_binomial():
    # 30 of 50 read, 12 defects: the other 20 hold a beta-binomial number
    place = np.arange(30)
    out = local_fdr(place, place < 12, [0, 50], rng=np.random.default_rng(3), at=[50], draws=40_000).first[0]
    law = stats.betabinom(20, 12.4, 18.6)
    assert out.expected == pytest.approx(12 + law.mean(), abs=0.5)
    low, high = law.ppf([0.05, 0.95]) + 12
    assert abs(50 * out.interval.low - low) <= 1 and abs(50 * out.interval.high - high) <= 1


def test_undecided_rows_are_left_out_and_nothing_read_is_said():
    rng = np.random.default_rng(4)
    place, said = np.array([0, 5, 9, 30]), np.array([1, 0, np.nan, 0])
    a = local_fdr(place, said, [0, 10, 60], rng=np.random.default_rng(1), at=[10])
    b = local_fdr(place[[0, 1, 3]], said[[0, 1, 3]], [0, 10, 60], rng=np.random.default_rng(1), at=[10])
    assert a.first == b.first and a.first[0].reviewed == 2 and a.first[0].found == 1
    nothing = local_fdr([], [], [0, 10, 60], rng=rng, at=[10])
    assert (
        nothing.note == "no reviewed item" and math.isnan(nothing.first[0].precision) and np.isnan(nothing.value).all()
    )
    far = local_fdr(place, said, [0, 10, 60], rng=rng, at=[100]).first[0]
    assert "only 60 items" in far.interval.method and math.isnan(far.expected)
    with pytest.raises(ValueError, match="twice"):
        local_fdr([1, 1], [0, 1], [0, 10], rng=rng)
    with pytest.raises(ValueError, match="outside"):
        local_fdr([10], [0], [0, 10], rng=rng)


def test_local_rate_rises_along_the_list_and_intervals_cover():
    rng = np.random.default_rng(5)
    ranks, inside, half, curve = np.arange(1500), [], [], []
    chance = 0.7 / (1 + (ranks / 60) ** 1.3)
    for _ in range(100):
        defect = rng.random(1500) < chance
        sample = review_sample(ranks, 100, rng=rng)
        out = local_fdr(sample.rank, defect[sample.items], sample.edges, rng=rng, draws=800)
        assert (np.diff(out.value) >= -1e-12).all() and (out.low <= out.value).all() and (out.value <= out.high).all()
        inside.append([defect[: f.r].mean() in f.interval for f in out.first])
        half.append((out.first[1].interval.high - out.first[1].interval.low) / 2)
        curve.append(out.at([10, 40, 80, 150]))
    held = np.mean(inside, 0)
    assert ((held >= 0.8) & (held <= 0.99)).all() and np.mean(half) < 0.15
    assert np.mean(curve, 0) == pytest.approx(1 - chance[[10, 40, 80, 150]], abs=0.06)
