"""Integer categories, bounds over abstentions, missingness groups."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditlib.stats.bounds import attainable_bounds, merge
from auditlib.stats.categories import (
    CATEGORIES,
    boundary,
    categories,
    category_region,
    majority_dependent,
    zero_gain,
)
from auditlib.stats.missing import complete_cases, missingness_groups


def _by_fractions(f: int, b: int, t: int) -> str:
    """The paper's rules in exact rationals, the oracle of the integer rules."""
    x, y = Fraction(f, t), Fraction(b, t)
    if x >= Fraction(99, 100) and y <= Fraction(1, 100):
        return "visual_dependent"
    if y - x > Fraction(1, 5):
        return "conflicting"
    if x - y >= Fraction(1, 5):
        return "visual_supplement"
    return "text_only"


@pytest.mark.parametrize("total", [1, 2, 3, 5, 10, 24, 100, 150])
def test_categories_equal_rational_rules_on_the_whole_grid(total):
    f, b = (x.ravel() for x in np.mgrid[0 : total + 1, 0 : total + 1])
    names = [CATEGORIES[c] for c in categories(f, b, total)]
    assert names == [_by_fractions(int(x), int(y), total) for x, y in zip(f, b, strict=True)]
    parts = np.array([category_region(name, total) for name in CATEGORIES])
    assert (parts.sum(0) == 1).all()
    assert (category_region("zero_gain", total) == np.eye(total + 1, dtype=bool)).all()
    assert (category_region("visual_dependent_majority", total).ravel() == majority_dependent(f, b, total)).all()


def test_at_five_models_a_gain_of_one_is_supplement_and_a_loss_of_one_is_text_only():
    # in floats 0.6 - 0.4 < 0.2
    assert [CATEGORIES[c] for c in categories([3, 2], [2, 3], 5)] == ["visual_supplement", "text_only"]
    assert boundary([3, 2, 3], [2, 3, 3], 5).tolist() == [True, True, False]


def test_totals_may_differ_by_item_and_small_types_do_not_overflow():
    code = categories(np.array([200, 3, 0], np.uint8), np.array([0, 0, 0], np.uint8), np.array([200, 4, 0], np.uint8))
    assert code.tolist() == [0, 2, -1]
    assert zero_gain([0, 1], [0, 1], [0, 1]).tolist() == [False, True]
    with pytest.raises(ValueError, match="integers"):
        categories([0.6], [0.4], 1)


def test_bounds_equal_enumeration_of_all_completions():
    rng = np.random.default_rng(0)
    region = category_region("text_only", 5)
    fa, ba = rng.integers(0, 3, (2, 60))
    f, b = rng.integers(0, 6 - fa), rng.integers(0, 6 - ba)
    ours = attainable_bounds(f, fa, b, ba, region)
    for i in range(60):
        cells = {
            bool(region[f[i] + sum(x), b[i] + sum(y)])
            for x in product((0, 1), repeat=int(fa[i]))
            for y in product((0, 1), repeat=int(ba[i]))
        }
        assert (ours.always[i], ours.possible[i]) == (cells == {True}, True in cells)
    both = merge([ours, ours])
    assert (both.low, both.high, both.n) == (ours.low, ours.high, 120)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_bounds_hold_the_share_at_policy_wrong_and_close_without_abstentions(seed):
    rng = np.random.default_rng(seed)
    fa, ba = rng.integers(0, 3, (2, 40))
    f, b = rng.integers(0, 4 - fa), rng.integers(0, 4 - ba)
    share = (f == b).mean()
    wide = attainable_bounds(f, fa, b, ba, category_region("zero_gain", 3))
    assert wide.low <= share <= wide.high
    exact = attainable_bounds(f, 0 * fa, b, 0 * ba, category_region("zero_gain", 3))
    assert exact.low == exact.high == share


def test_bounds_refuse_counts_beyond_the_region():
    with pytest.raises(ValueError, match="levels"):
        attainable_bounds([3], [1], [0], [0], category_region("zero_gain", 3))


def test_missingness_groups():
    seen = np.ones((300, 3), bool)
    seen[:60, 0] = False
    seen[60:70, 1] = False
    seen[70:75, 2] = False
    seen[75:77, :2] = False
    seen[77] = False
    g = missingness_groups(seen, 50)
    # complete items, the large pattern, two small patterns of two models pooled, one pattern of one model, none
    assert list(zip(g.models.tolist(), g.size.tolist(), g.pooled.tolist(), strict=True)) == [
        (3, 222, False), (2, 60, False), (2, 15, True), (1, 2, False)
    ]  # fmt: skip
    assert g.patterns.tolist() == [1, 1, 2, 1] and g.group[77] == -1
    assert (np.bincount(g.group[g.group >= 0]) == g.size).all()
    assert all((seen[g.group == k].sum(1) == g.models[k]).all() for k in range(4))
    assert g.as_row()["pooled_items"] == 15 and g.as_row()["without_models"] == 1
    order = np.random.default_rng(0).permutation(300)
    shuffled = missingness_groups(seen[order], 50)
    assert (shuffled.size == g.size).all() and (shuffled.group == g.group[order]).all()


def test_complete_cases_rule_is_exact_at_95_percent():
    seen = np.ones((20, 2), bool)
    seen[0, 0] = False
    assert complete_cases(seen)[1]  # 19 of 20 is exactly 95%
    seen[1, 1] = False
    mask, keeps = complete_cases(seen)
    assert not keeps and mask.sum() == 18
    assert not complete_cases(np.ones((0, 2), bool))[1]
    assert missingness_groups(np.ones((0, 2), bool)).size.size == 0
