"""Lists with a promised share of errors, and the posteriors that make them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multinomial

from auditlib.calibration import lists
from auditlib.calibration.rules import fdr_row
from auditlib.stats.gain_list import _grid, gain_posterior


def test_posterior_is_bayes_rule_after_one_step_of_em(rng):
    """Oracle: scipy's trinomial on the grid of laws, one step of EM by hand."""
    full, blind = rng.integers(0, 2, (2, 50, 5))
    gain, total = _grid(0.1)
    inside = np.where(np.isclose(np.abs(gain), 0.1), 0.5, np.abs(gain) < 0.1)
    change = full - blind
    counts = [((row > 0).sum(), (row < 0).sum(), (row == 0).sum()) for row in change]
    p = np.column_stack([(total + gain) / 2, (total - gain) / 2, 1 - total]).clip(0)
    by_item = np.array([multinomial.pmf(c, 5, p) for c in counts])
    law = (by_item / by_item.sum(axis=1, keepdims=True)).mean(axis=0)
    theirs = (by_item * law * inside).sum(axis=1) / (by_item * law).sum(axis=1)
    assert gain_posterior(full, blind, rounds=1) == pytest.approx(theirs, abs=1e-9)


def test_posterior_uses_what_was_seen(rng):
    full, blind = rng.integers(0, 2, (2, 40, 6))
    seen = np.ones((40, 6), bool)
    seen[:5, 4:] = False
    found = gain_posterior(full, blind, observed=seen)
    changed = full.copy()
    changed[:5, 4:] = 1 - changed[:5, 4:]
    assert (gain_posterior(changed, blind, observed=seen) == found).all() and ((found >= 0) & (found <= 1)).all()
    with pytest.raises(ValueError, match="no model"):
        gain_posterior(full, blind, observed=np.zeros((40, 6), bool))


def test_posterior_knows_clear_items():
    """24 models: right in both runs, and right with the image only."""
    full = np.ones((60, 24), int)
    blind = np.r_[np.ones((30, 24), int), np.zeros((30, 24), int)]
    found = gain_posterior(full, blind)
    assert found[:30].min() > 0.95 and found[30:].max() < 0.01


def test_lists_keep_their_share_of_errors():
    """12 worlds each; the long run is ``make calibrate``."""
    for make, level in ((lists._key_lists, lists.ITEM_LEVEL), (lists._strata_lists, lists.NOMINAL)):
        made = [make(7, i) for i in range(12)]
        for at in (0, 1):
            assert fdr_row(*zip(*(m[at] for m in made)), level)["passed"]
    assert not any(m[0][1] for m in [lists._key_lists(7, i) for i in range(3)])  # nothing planted, nothing listed
    assert sum(m[1][1] for m in [lists._key_lists(7, i) for i in range(3)]) > 20


def test_list_of_items_without_gain_keeps_its_share_of_errors():
    made = [lists._gain_lists(7, i) for i in range(6)]
    for at in (0, 1):
        assert fdr_row(*zip(*(m[at] for m in made)), lists.ITEM_LEVEL)["passed"]
    assert sum(m[1][1] for m in made) > 100
