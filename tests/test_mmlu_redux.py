"""Label-conflict lists against human error types; the full tables are in ``python -m tests.calibrate.mmlu_redux``."""

from __future__ import annotations

import numpy as np
import pytest
from calibrate import mmlu_redux as redux
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Small matrix products only: threads of a loaded machine wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def data(shared_data):
    if not (shared_data / "real" / "mmlu_redux" / "mmlu_redux_half.csv.gz").is_file():
        pytest.skip("MMLU-Redux is not here")
    return redux.load(shared_data)


def test_average_precision_by_definition():
    score, positive = np.array([5, 4, 3, 3, 1.0]), np.array([1, 0, 1, 0, 1])
    assert redux.average_precision(score, positive) == pytest.approx((1 + 2 / 4 + 3 / 5) / 3)
    # the tie at 3 comes in either order: precision 2/3 or 2/4 at its positive
    assert redux.expected_average_precision(score, positive) == pytest.approx((1 + (2 / 3 + 2 / 4) / 2 + 3 / 5) / 3)
    twice = np.repeat(np.arange(5), [2, 1, 0, 3, 1])
    weights = np.array([2, 1, 0, 3, 1.0])
    assert redux.average_precision(score, positive, weights) == pytest.approx(
        redux.average_precision(score[twice], positive[twice])
    )


def test_counts_of_the_data(data):
    assert data.letters.shape == (2794, 14)
    assert {k: int(v.sum()) for k, v in data.found.items()} == {"wrong key": 42, "key defect": 73}


@pytest.mark.parametrize(("size", "margin"), [(3, 0.17), (5, 0.24), (14, 0.36)])
def test_ranking_is_at_least_the_margin(data, size, margin):
    rng = np.random.default_rng(1)
    for target in redux.TARGETS:
        ours, plain, low, _ = redux.difference(data, size, target, draws=50, rng=rng, count=10)
        assert low >= -0.02 and ours > plain
        if target == "wrong key":
            assert plain == pytest.approx(margin, abs=0.03)


@pytest.mark.parametrize("size", redux.SIZES)
def test_bounds_without_reviews_hold_and_are_at_most_three_times_the_precision(data, size):
    made, lists = redux.bounds(data, size, count=10)
    upper = np.array([[b.upper for b in row] for row in made])
    for found in data.found.values():
        true = np.array([redux.realised(c.order, found) for c in lists])
        assert (upper >= true).mean() >= 0.9
        assert upper[:, 1].mean() <= 3 * true[:, 1].mean()
    if size == 3:
        assert sum(str(b) != "none" for row in made for b in row) >= 20


@pytest.mark.parametrize("size", redux.SIZES)
def test_intervals_from_100_reviewed_items(data, size):
    lists = [data.pool(s) for s in redux.pools_of(size, data.letters.shape[1])]
    for found in data.found.values():
        inside, half, bias = redux.reviewed(lists, found, replications=120, draws=300)
        # meant to be 85 to 97%; two standard errors of 120 replications below
        assert inside.min() >= 0.85 - 0.065
        assert 0.85 <= inside.mean() <= 0.97
        assert half[1] <= 0.15 and np.abs(bias).max() < 0.08
