"""Error rates of the audit: small null tables, rules, spike-ins, key scans, the table by options, the text probe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom, norm

from auditlib.calibration.k_way import item_flags
from auditlib.calibration.nulls import _key_tests, zero_gain
from auditlib.calibration.power import wrong_key_table
from auditlib.calibration.rules import binomial_interval, coverage_row, fdr_row, p_row
from auditlib.calibration.spike_in import LABEL, SCHEMES, spike_in
from auditlib.detectors.calibrated import PRINCIPAL, k_way, measured, outside, rates, worth
from auditlib.errors import AuditError
from auditlib.metrics.key_integrity import key_integrity_rows
from auditlib.metrics.text_shortcut import near_groups, option_features, text_shortcut, why_not
from auditlib.stats.agreement import category_counts
from auditlib.stats.key_scan import first_option, lag_scan, relabelling
from auditlib.stats.text_probe import text_probe
from auditlib.synth.null_worlds import FALSE_NULLS, NULLS, null_world
from auditlib.synth.plant import shift_keys, spoil
from auditlib.synth.worlds import Recipe, world

# rules


def test_exact_interval_of_a_proportion():
    """Oracle: scipy's beta quantiles."""
    for k, n in ((0, 20), (7, 20), (20, 20)):
        low, high = binomial_interval(k, n, 0.9)
        assert low == pytest.approx(beta.ppf(0.05, k, n - k + 1) if k else 0)
        assert high == pytest.approx(beta.ppf(0.95, k + 1, n - k) if k < n else 1)


def test_rules_tell_good_from_bad(rng):
    u = rng.random(800)
    assert p_row(u, u)["passed"] and p_row(np.sqrt(u), None)["passed"]  # conservative printed p are fine
    assert not p_row(u**1.5, u)["passed"] and not p_row(u, u**1.5)["passed"]
    assert p_row(u**6, None, false_null=True)["passed"] and not p_row(u, None, false_null=True)["passed"]
    x = rng.normal(size=2000)
    assert coverage_row(x - norm.ppf(0.975), x + norm.ppf(0.975), 0)["passed"]
    assert not coverage_row(x - norm.ppf(0.95), x + norm.ppf(0.95), 0)["passed"]
    assert fdr_row(rng.binomial(10, 0.05, 500), np.full(500, 10), 0.05)["passed"]
    assert not fdr_row(rng.binomial(10, 0.1, 500), np.full(500, 10), 0.05)["passed"]


# null worlds


@pytest.mark.parametrize("kind", NULLS)
def test_headline_p_on_null_worlds(kind, rng):
    """50 worlds of each kind: silent or speaking, as the world's page says."""
    made = [(zero_gain(w), zero_gain(w, inside=True)) for w in (null_world(kind, i) for i in range(50))]
    for at, name in enumerate(("zero gain, pooled", "zero gain, within")):
        r = [m[at] for m in made]
        row = p_row([x.p for x in r], [x.randomised_p(rng.random()) for x in r], false_null=name in FALSE_NULLS[kind])
        assert row["passed"], (kind, name, row)


def test_key_tests_are_silent_on_null_worlds():
    seen = [_key_tests(null_world("category_only", i), np.random.default_rng(i)) for i in range(30)]
    for name in seen[0]:
        assert p_row([s[name][0] for s in seen], None)["passed"], name


# key scans


def test_first_option_is_the_exact_binomial_tail():
    """Oracle: scipy binom for one k, and the convolution by enumeration for two."""
    assert first_option([0] * 9 + [1] * 11, 4).p == pytest.approx(binom.sf(8, 20, 0.25))
    r = first_option([0, 0, 1, 0], [2, 2, 2, 4])
    law = {0: 0.75, 1: 0.25}
    expected = sum(binom.pmf(a, 3, 0.5) * p for a in range(4) for b, p in law.items() if a + b >= 3)
    assert r.p == pytest.approx(expected) and r.observed == 3 and r.expected == pytest.approx(1.75)


def test_scans_find_a_shift_and_a_relabelling_and_nothing_else(rng):
    w = world(Recipe(items=250, models=4, strata=1), 1)
    votes = category_counts(w.full, 4)
    found = lag_scan(votes, shift_keys(w.key, 60, 100), rng=rng, draws=99)
    assert found.p == 0.01 and found.lag == 1 and abs(found.start - 60) <= 2 and abs(found.stop - 99) <= 2
    turned = relabelling(votes, (w.key + 1) % 4)
    assert turned.p < 1e-6 and turned.to == (3, 0, 1, 2) and turned.gain > 0.2
    assert lag_scan(votes, w.key, rng=rng, draws=99).p > 0.05
    assert relabelling(votes, w.key).p == 1
    # votes that merely avoid the key are no relabelling
    avoid = (w.key[:, None] + rng.integers(1, 4, w.full.shape)) % 4
    assert relabelling(category_counts(avoid, 4), w.key).p > 0.001


def test_key_integrity_rows_name_stretch_and_family():
    w = world(Recipe(items=300, models=4, strata=2), 2)
    pool = replace(w, key=shift_keys(w.key, 10, 60)).as_pool()
    rows = pd.DataFrame(key_integrity_rows(pool))
    lag = rows[rows["metric"] == "key_lag_gain"].set_index("stratum")
    assert lag.loc["stratum 01", "p"] <= 0.01 and "+1" in lag.loc["stratum 01", "note"]
    assert lag.loc["stratum 02", "p"] > 0.01
    assert set(rows["family"]) == {"sensitivity", "strata:key_first_option", "strata:key_lag_gain",
                                   "strata:key_relabel_gain"}  # fmt: skip


# spike-in


def test_spike_in_counts_what_it_planted():
    w = world(Recipe(items=400, models=5, misconception=0.6), 3)
    s = spike_in(w.as_pool(), repeats=4)
    t = s.table.set_index(["planted", "scheme", "flag"])
    assert not s.lacking and set(t.index.get_level_values("scheme")) >= set(SCHEMES)
    recall = {k: t.loc[("wrong key", k, "any tier"), "recall"] for k in SCHEMES}
    assert recall["random"] > recall["difficulty"] > recall["modal distractor"] > 0
    assert t.loc[("wrong key", "random", "any tier"), "recall"] > t.loc[("wrong key", "random", "unanimous"), "recall"]
    assert t.loc[("shuffled key", "every category", "no information"), "recall"] >= 0.8
    assert t.loc[("swapped runs", "random", "image hurts"), "recall"] > 0.5
    assert (t["n_planted"].iloc[:9] == 20).all() and LABEL in s.line()
    assert spike_in(w.as_pool(), repeats=4).table.equals(s.table)


def test_spike_in_says_what_it_cannot_plant():
    open_ended = world(Recipe(items=100, k=None), 1).as_pool()
    s = spike_in(open_ended, repeats=2)
    assert set(s.lacking) == {"wrong key", "shuffled key"} and s.line() == ""
    with pytest.raises(AuditError):
        spike_in(open_ended, share=0.9)


# by options shown


def test_shipped_table_sets_the_calibrated_range():
    table = k_way()
    assert set(table["k"]) == {"2", "3", "4", "5", "10", "open"}
    assert set(PRINCIPAL.items()) <= set(zip(table["detector"], table["flag"]))
    shown = [1, 2, 3, 4, 5, 7, 10, float("nan")]
    for detector in ("visual_dependency", "consensus_error"):
        assert outside(detector, shown).tolist() == [True, True] + [False] * 6
    assert outside("correctness_agreement", shown).tolist() == [True] + [False] * 7
    assert outside("another", shown, low=3).tolist() == [True, True] + [False] * 6
    assert worth("visual_dependency", 2) < worth("visual_dependency", 4) < worth("visual_dependency", "open")
    assert rates("visual_dependency", 8, 7)["k"] == "5" and rates("visual_dependency", 8, 7)["models"] == 6
    assert "two options" in measured("visual_dependency", 2) and measured("another", 2) == ""


def test_shipped_rates_come_out_again():
    """Fresh worlds with four options and three models, against the shipped rates (6 standard errors)."""
    from auditlib.calibration.k_way import _BASE, _DEFECTS, _count, _who

    recipe = replace(_BASE, k=4, models=3)
    total: dict = {}
    for i in range(4):
        w = spoil(world(recipe, 900 + i, "again"), _DEFECTS, 900 + i)
        for at, flags in item_flags(w.as_pool()).items():
            total[at] = total.get(at, 0) + np.array(_count(flags, *_who(w, at)))
    for (detector, flag), (fp, clean, hit, defect) in total.items():
        r = rates(detector, 4, 3, flag)
        for seen, n, p in ((fp, clean, r["false_positive"]), (hit, defect, r["detection"])):
            # items of a stratum hang together, so twice the binomial error
            assert abs(seen / n - p) < 6 * 2 * np.sqrt(max(p * (1 - p), 0.002) / n), (detector, flag)


def test_power_falls_and_precision_rises_with_models():
    t = wrong_key_table(2, 1, models=(3, 8), shares=(0.05,), options=(4,)).set_index("models")
    assert t.loc[8, "precision"] > t.loc[3, "precision"] and t.loc[8, "recall"] < t.loc[3, "recall"]
    assert t.loc[8, "precision_50"] > t.loc[3, "precision_50"] and (t["auc"] > 0.8).all()


# text probe


def _choices(n, rng, lift):
    x, item = rng.normal(size=(4 * n, 5)), np.repeat(np.arange(n), 4)
    key = np.zeros(4 * n, bool)
    key[np.arange(n) * 4 + rng.integers(0, 4, n)] = True
    x[:, 0] += lift * key
    return x, item, key


def test_text_probe_is_silent_without_a_cue_and_speaks_with_one(rng):
    x, item, key = _choices(120, rng, 0.0)
    p = [text_probe(*_choices(60, np.random.default_rng(i), 0.0), rng=rng, shuffles=9).p for i in range(10)]
    assert p_row(p, None)["passed"] and np.mean(p) == pytest.approx(0.5, abs=0.25)
    x, item, key = _choices(120, rng, 2.0)
    found = text_probe(x, item, key, rng=rng, shuffles=19)
    assert found.p == 0.05 and found.accuracy > 0.6 and found.null == pytest.approx(0.25, abs=0.06)
    assert np.corrcoef(found.probability, found.hit)[0, 1] > 0.5
    with pytest.raises(ValueError, match="exactly one key"):
        text_probe(x, item, np.zeros_like(key), rng=rng)


def test_text_shortcut_groups_near_duplicates_and_reads_the_longest_option(rng):
    texts = ["what is the red thing on the table here", "what is the red thing on the table here now", "how many cats"]
    a, b, c = near_groups(texts)
    assert a == b != c
    x = option_features(["which one"], [["a", "bb", "ccc the longest", "dd"]])
    assert x.shape[0] == 4 and x.toarray()[2, -7] > 0  # the longest of them
    n = 120
    key = rng.integers(0, 4, n)
    words = np.array(["oak", "elm", "ash", "fir", "yew", "bay"])
    options = [
        [" ".join(rng.choice(words, 1 + 2 * (j == k))) + f" {i}{j}" for j in range(4)] for i, k in enumerate(key)
    ]
    pool = world(Recipe(items=n, models=2, strata=2), 1).as_pool()
    items = pool.items.assign(options=options, key=["ABCD"[k] for k in key], question=[f"q {i} w{i}" for i in range(n)])
    s = text_shortcut(replace(pool, items=items), shuffles=19)
    assert s.probe.p == 0.05 and s.probe.accuracy > 0.8 and set(s.strata["q"]) == {0.05}
    assert why_not(pool) == "no option texts"
