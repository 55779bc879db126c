"""Stages of curation. Oracles: MMGist's boundary counts, exact enumeration, a naive reference in fractions, scipy."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom, binom

import auditlib
from auditlib.curation.ablation import AblationSettings, ablation
from auditlib.curation.data import Answers, CurationPool, Draws
from auditlib.curation.exact import above, fraction, mean_of_means
from auditlib.curation.funnel import CurationSettings, funnel
from auditlib.curation.rules import RuleSettings, incidence, rules, within_budget
from auditlib.curation.saturation import SaturationSettings, saturation
from auditlib.curation.wrong_removal import chance_removed, correlation, wrong_removal
from auditlib.errors import AuditError
from auditlib.params import check_params
from auditlib.stats.intervals import wilson

R = 8
GUESS = AblationSettings(rule="guess_adjusted")


def draws(hits, trials=R, abstained=0, unit=1) -> Draws:
    hits = np.atleast_2d(hits)
    trials, abstained = (np.broadcast_to(x, hits.shape).copy() for x in (trials, abstained))
    return Draws(hits, trials, abstained, unit)


def spread(total: int, models: int) -> list[int]:
    """``total`` hits over models of 8 draws, as evenly as they go."""
    return [total // models + (j < total % models) for j in range(models)]


# ---- text ablation


@pytest.mark.parametrize("total, k, removed", [(32, 2, False), (33, 2, True), (20, 4, False), (21, 4, True),
                                               (21, 2, False), (20, np.nan, False), (21, np.nan, True)])  # fmt: skip
def test_ablation_is_strict(total, k, removed):
    found = ablation(draws(spread(total, 5)), [k])
    assert found.removed.tolist() == [removed] and found.reason[0] == ("text_ablation" if removed else "")
    assert found.rate[0] == total / 40 and found.n_draws[0] == 40


def test_guess_adjusted_thresholds():
    """Removed above (t - 1/k) / (1 - 1/k) = 1/3: 1/2 at k = 4, 2/3 at 2, 5/9 at 3, 1/3 without a chance of guessing."""
    found = ablation(draws(np.zeros((4, 5), int)), [4, 2, 3, np.nan], GUESS)
    assert found.threshold == pytest.approx([1 / 2, 2 / 3, 5 / 9, 1 / 3], abs=1e-15)
    hits = [spread(20, 5), spread(21, 5), spread(26, 5), spread(27, 5)]
    assert ablation(draws(hits), [4, 4, 2, 2], GUESS).removed.tolist() == [False, True, False, True]
    # 25/45 = 5/9 exactly, with nine draws of each of five inspectors
    assert ablation(draws([[5] * 5, [6, 5, 5, 5, 5]], 9), [3, 3], GUESS).removed.tolist() == [False, True]


def test_one_inspector_alone_is_a_flag_or_a_reason():
    hits = [[8, 0, 0, 0, 0], [4, 4, 4, 4, 4]]
    found = ablation(draws(hits), [4, 4])
    assert not found.removed.any() and found.any_inspector.tolist() == [True, False]
    found = ablation(draws(hits), [4, 4], AblationSettings(any_inspector_removes=True))
    assert found.removed.tolist() == [True, False] and found.reason.tolist() == ["any_inspector", ""]


def test_unequal_draws_weigh_inspectors_alike():
    """One inspector right in 8 of 8 and one in 0 of 1: the mean of means is 1/2, not 8/9; 0.5 stays."""
    found = ablation(draws([[8, 0]], [[8, 1]]), [4])
    assert found.rate[0] == 0.5 and not found.removed[0]
    found = ablation(draws([[8, 0, 1]], [[8, 3, 0]]), [4])  # an inspector without a draw does not count
    assert found.rate[0] == 0.5
    sevenths = mean_of_means(np.array([[1, 1, 1]]), np.array([[3, 5, 7]]))
    assert Fraction(int(sevenths.num[0]), int(sevenths.den[0])) == Fraction(71, 315)


def test_rates_of_many_unequal_draws_do_not_overflow():
    trials = np.arange(1, 61)[None, :] + 40
    hits = trials // 2
    rates = mean_of_means(hits, trials)
    exact = sum(Fraction(int(h), int(t)) for h, t in zip(hits[0], trials[0])) / 60
    assert Fraction(int(rates.num[0]), int(rates.den[0])) == exact
    assert not above(rates, exact.numerator, exact.denominator)[0]
    assert above(rates, exact.numerator, exact.denominator, or_equal=True)[0]


def test_undecided_by_what_counts_for_no_answer():
    """21 of 40 with k = 4: unanswered draws only lower the point rate."""
    hits = np.array([spread(20, 5), spread(12, 5), spread(21, 5), [0] * 5, spread(19, 5)])
    silent = np.array([[1, 0, 0, 0, 0], [0] * 5, [1] * 5, [8] * 5, [1, 1, 1, 0, 0]])
    found = ablation(draws(hits, R, silent), [4] * 5)
    # 20/40: dropped 4/7 of one inspector lifts it above; 19/40 + 3/4/40 stays below, but 19 of 37 does not
    assert found.removed.tolist() == [False, False, True, False, False]
    assert found.undecided.tolist() == [True, False, False, True, True]
    assert found.n_abstained.tolist() == [1, 0, 5, 40, 3]
    assert found.rate_guessed[4] == pytest.approx((19 + 3 / 4) / 40)
    assert math.isnan(found.rate_answered[3])


def test_graded_verdicts_count_in_parts():
    """Thirds: 60 parts of 120 are 1/2 and stay, 61 go."""
    hits = np.array([[12] * 5, [13, 12, 12, 12, 12]])
    found = ablation(draws(hits, 24, 0, 3), [4, 4])
    assert found.removed.tolist() == [False, True] and found.n_draws.tolist() == [40, 40]


def test_items_without_draws_are_not_judged():
    found = ablation(draws([[0, 0]], 0), [4])
    assert not found.judged[0] and not found.removed[0] and not found.undecided[0] and math.isnan(found.rate[0])


@pytest.mark.parametrize("settings", [AblationSettings(binary="1.5"), AblationSettings(other="half"),
                                      AblationSettings(rule="other")])  # fmt: skip
def test_settings_that_are_no_thresholds(settings):
    with pytest.raises(AuditError, match="Mend"):
        ablation(draws(spread(20, 5)), [4], settings)
    with pytest.raises(AuditError, match=r"2\.5 valid answers"):
        ablation(draws(spread(20, 5)), [2.5])


def test_thresholds_are_what_their_text_says():
    assert fraction(0.9) == fraction("0.90") == Fraction(9, 10)
    # 0.57 is below 57/100 as a float product: 0.57 * 100 = 56.99999999999999
    assert not ablation(draws([[57]], 100), [4], AblationSettings(other=0.57)).removed[0]


# ---- saturation


def test_saturation_is_strict():
    hits = [spread(86, 12), spread(87, 12), [0] + [8] * 11, [0, 0] + [8] * 10]
    found = saturation(draws(hits))
    assert found.removed.tolist() == [False, True, True, False]
    assert found.rate.round(3).tolist() == [0.896, 0.906, 0.917, 0.833]
    assert found.models_at_threshold.tolist() == [2, 3, 11, 10]
    assert not saturation(draws([[9] * 10], 10)).removed[0]  # exactly 0.9
    assert saturation(draws([[9] * 10], 10)).models_at_threshold[0] == 10


def test_outcomes_are_wilsons():
    hits = np.array([spread(n, 12) for n in range(97)])
    found = saturation(draws(hits))
    for n in range(97):
        i = wilson(n, 96)
        said = "saturated" if i.low > 0.9 else "not_saturated" if i.high <= 0.9 else "borderline"
        assert found.outcome[n] == said
        assert (found.low[n], found.high[n]) == pytest.approx((i.low, i.high), abs=1e-12)
    assert list(dict.fromkeys(found.outcome)) == ["not_saturated", "borderline", "saturated"]


def test_all_tiers():
    tiers = ["light"] * 4 + ["flagship"] * 8
    hits = [[6] * 4 + [8] * 8, [7] * 4 + [8] * 8, [0] * 4 + [8] * 8]
    found = saturation(draws(hits), tiers)
    assert found.removed.tolist() == [True, True, False] and found.all_tiers.tolist() == [False, True, False]
    assert found.tier_rates[0].tolist() == [0.75, 1.0] and found.tier_names == ("light", "flagship")
    both = saturation(draws(hits), tiers, SaturationSettings(tiers_remove=True))
    assert both.removed.tolist() == [False, True, False]
    unseen = saturation(draws([[0] * 4 + [8] * 8], [[0] * 4 + [8] * 8]), tiers)  # a tier without a draw is left out
    assert unseen.all_tiers[0] and unseen.n_models[0] == 8 and np.isnan(unseen.tier_rates[0, 0])
    edge = saturation(draws([[8] * 5], 10), ["light"] * 5)
    assert not edge.all_tiers[0]  # 0.80 exactly
    assert saturation(draws(hits), ["", None] * 6).all_tiers is None
    with pytest.raises(AuditError, match="tier"):
        saturation(draws(hits), None, SaturationSettings(tiers_remove=True))


# ---- wrong removals

#: percent of purely visual items removed: redrawn, correlation 0.1, 0.3, 0.6, one guess repeated
TABLE = {2: (0.00, 0.08, 0.99, 3.9, 3.1), 3: (0.96, 3.8, 9.3, 15.4, 21.0), 4: (0.02, 0.37, 2.3, 6.1, 10.4),
         5: (0.00, 0.06, 0.76, 2.9, 5.8), 10: (0.00, 0.00, 0.03, 0.25, 0.9)}  # fmt: skip


@pytest.mark.parametrize("k", TABLE)
def test_false_removals_of_the_published_rule(k):
    """Printed digits of exact columns; of the simulated ones within three standard errors of 200,000 draws."""
    for rho, said in zip((0, 0.1, 0.3, 0.6, 1), TABLE[k]):
        ours = 100 * chance_removed(k, (R,) * 5, rho)
        digits = 0.005 if said < 1 and not (k == 10 and rho == 1) else 0.05
        error = 0 if rho in (0, 1) else 3 * math.sqrt(ours * (100 - ours) / 200_000)
        assert abs(ours - said) <= digits + error


@pytest.mark.parametrize("k, least", [(2, 33), (4, 21)])
def test_false_removals_against_enumeration(k, least):
    assert chance_removed(k, (R,) * 5, 0) == pytest.approx(binom.sf(least - 1, 40, 1 / k), abs=1e-14)
    a = 1 / 0.3 - 1
    pmf = betabinom.pmf(np.arange(4), 3, a / k, a * (1 - 1 / k))
    over = Fraction(4, 5) if k == 2 else Fraction(1, 2)
    brute = sum(pmf[x] * pmf[y] for x, y in product(range(4), repeat=2) if Fraction(x + y, 6) > over)
    assert chance_removed(k, (3, 3), 0.3) == pytest.approx(brute, abs=1e-14)
    other = binom.pmf(np.arange(3), 2, 1 / k)
    once = binom.pmf(np.arange(4), 3, 1 / k)
    brute = sum(once[x] * other[y] for x, y in product(range(4), range(3)) if Fraction(2 * x + 3 * y, 12) > over)
    assert chance_removed(k, (2, 3), 0) == pytest.approx(brute, abs=1e-14)


def test_false_removals_of_the_guess_adjusted_rule():
    assert chance_removed(2, (R,) * 5, 0, GUESS) == pytest.approx(binom.sf(26, 40, 0.5), abs=1e-14)
    assert chance_removed(4, (R,) * 5, 0.3, GUESS) == chance_removed(4, (R,) * 5, 0.3)


def planted(rng, rho, items=4000, k=4, visual=0.6):
    """Hits of five inspectors: purely visual items are guessed, the others are known from text to some degree."""
    seen = rng.random(items) < visual
    mean = np.where(seen, 1 / k, rng.beta(6, 1.5, items))[:, None]
    rate = rng.beta(mean * (1 / rho - 1), (1 - mean) * (1 / rho - 1), size=(items, 5)) if rho else mean * np.ones(5)
    return draws(rng.binomial(R, rate)), seen


@pytest.mark.parametrize("rho", [0, 0.1, 0.3, 0.6])
def test_correlation_and_expected_wrong_removals_are_recovered(rng, rho):
    blind, visual = planted(rng, rho)
    found = correlation(blind)
    half = (found.interval.high - found.interval.low) / 2
    assert abs(found.within - rho) < max(2 * half, 0.01) and half < 0.03
    assert found.plain > found.within + 0.1  # the items' own difficulty adds to it
    text = ablation(blind, [4.0] * 4000)
    wrong = wrong_removal(blind, [4.0] * 4000, text)
    truly = int((text.removed & visual).sum())
    assert abs(wrong.expected - truly) < 4 * math.sqrt(truly + 1) + 0.1 * truly
    assert wrong.expected <= wrong.expected_at_most
    assert wrong.table["visual_items"].iloc[0] == pytest.approx(visual.sum(), rel=0.06)
    assert f"{wrong.removed:,} items removed" in wrong.sentence


def test_wrong_removals_by_number_of_options(rng):
    blind, _ = planted(rng, 0.3)
    k = np.repeat([2.0, 3.0, 4.0, np.nan], 1000)
    text = ablation(blind, k)
    wrong = wrong_removal(blind, k, text)
    table = wrong.table.set_index(wrong.table["k"].fillna(0))
    assert table["items"].tolist() == [1000] * 4 and table["removed"].sum() == text.removed.sum()
    assert table.loc[0, "expected"] == 0  # nobody guesses an open answer
    rho = wrong.correlation.within
    for n in (2, 3, 4):
        assert table.loc[n, "chance"] == pytest.approx(chance_removed(n, (R,) * 5, rho), abs=1e-14)
        assert table.loc[n, "expected_at_most"] == pytest.approx(1000 * table.loc[n, "chance"])
    assert wrong.expected == pytest.approx(table["expected"].sum())


def test_one_draw_needs_no_correlation(rng):
    """At one draw of five inspectors the chance is that of three right guesses."""
    blind = draws(rng.binomial(1, 0.25, (500, 5)), 1)
    text = ablation(blind, [4.0] * 500)
    wrong = wrong_removal(blind, [4.0] * 500, text)
    assert wrong.table["chance"].iloc[0] == pytest.approx(binom.sf(2, 5, 0.25), abs=1e-14)
    assert math.isnan(wrong.correlation.within) and "one draw" in wrong.sentence


def test_wrong_removals_without_an_estimate_say_why():
    blind = draws(np.zeros((20, 5), int))
    wrong = wrong_removal(blind, [4.0] * 20, ablation(blind, [4.0] * 20))
    assert math.isnan(wrong.expected) and wrong.sentence.endswith("every draw is right, or every draw is wrong")


# ---- rules


def answers_of(said, size, key) -> Answers:
    """From codes of shape (items, models, samples); the first sample is odd."""
    said = np.asarray(said)
    rows = [
        (i, m, a, int((said[i, m, ::2] == a).sum()), int((said[i, m, 1::2] == a).sum()))
        for i, m in np.ndindex(said.shape[:2])
        for a in sorted(set(said[i, m].tolist()))
    ]
    return Answers(*np.array(rows).T, np.asarray(size), np.asarray(key), lambda i, a: "ABCDEFGHIJKL"[a])


def judged(said, size, key, k=None, **settings):
    said = np.asarray(said)
    key = np.asarray(key)
    full = Draws((said == key[:, None, None]).sum(2), np.full(said.shape[:2], said.shape[2]), (said == -1).sum(2))
    return rules(answers_of(said, size, key), full, size if k is None else k, ["s"] * len(said),
                 RuleSettings(**settings))  # fmt: skip


def one(*models) -> np.ndarray:
    """One item: a list of answers for each model."""
    return np.array([[list(m) for m in models]])


def test_zero_correct_and_its_soft_variant():
    """p = 1/8 = 1/(2k) is flagged by the soft variant at k = 4, 3/16 is not; open items by the strict one only."""
    said = np.array([[[1] * 8, [1] * 8], [[0] + [1] * 7] * 2, [[0] + [1] * 7, [0, 0] + [1] * 6], [[0] + [1] * 7] * 2])
    k = [4, 4, 4, np.nan]
    found = judged(said, [4, 4, 4, 2], [0] * 4, k)
    assert found.zero.tolist() == found.flag[:, 0].tolist() == [True, False, False, False]
    assert found.soft.tolist() == [True, True, False, False]
    assert judged(said, [4, 4, 4, 2], [0] * 4, k, soft=True).flag[:, 0].tolist() == [True, True, False, False]
    assert found.score[:, 0].tolist() == [1.0, 0.5, 0.25, 0.0]


def test_majority_against_key_needs_votes_models_and_both_halves():
    b, a = [1] * 8, [0] * 8
    six = one(b, b, b, b, b, b, a, a, a, a)  # six of ten models, 60% of the vote
    assert judged(six, [4], [0]).flag[0].tolist() == [False, True, False, False, False]
    assert not judged(six, [4], [1]).flag[0, 1]  # the majority is the key
    five = one(b, b, b, b, b, a, a, a, a, [2] * 8)  # half of the vote, half of the models
    assert not judged(five, [4], [0]).flag[0, 1]
    assert judged(five, [4], [0], backing="0.50").flag[0, 1]
    tied = one(b, b, b, b, b, a, a, a, a, a)  # no answer leads
    assert [judged(tied, [4], [key], backing="0.50").flag[0, 1] for key in (0, 1, 2)] == [False] * 3
    turns = one(*[[1, 0, 1, 0, 1, 0, 1, 1]] * 10)  # 5 of 8 against the key, the key leads in the even samples
    assert not judged(turns, [4], [0]).flag[0, 1]
    assert judged(one(*[[1, 0, 1, 1, 1, 1, 1, 1]] * 10), [4], [0]).flag[0, 1]
    once = one([1], [1], [0])  # a single sample has no halves to compare
    assert judged(once, [4], [0]).flag[0, 1]


def test_the_vote_does_not_see_the_key(rng):
    said = rng.integers(0, 4, (30, 6, 8))
    first, second = (judged(said, [4] * 30, np.full(30, key)) for key in (0, 3))
    same = ["modal", "top1", "top2", "backing", "entropy"]
    pd.testing.assert_frame_equal(first.shares[same], second.shares[same])


def test_unknown_keys_are_not_judged_and_unseen_keys_are():
    said = np.array([[[1] * 8] * 4, [[1] * 8] * 4])
    full = Draws(np.zeros((2, 4), int), np.full((2, 4), 8), np.zeros((2, 4), int))
    a = answers_of(said, [2, 2], [-2, -2])
    found = rules(a, full, [np.nan] * 2, ["s"] * 2, key_known=[True, False])
    assert found.flag[:, 1].tolist() == [True, False] and math.isnan(found.score[1, 1])
    none = rules(a, full, [np.nan] * 2, ["s"] * 2)
    assert none.state["R2"].startswith("not run: no item has a key") and np.isnan(none.score[:, 1]).all()


def test_high_disagreement_is_entropy_over_the_options():
    """Shares 1/2, 1/4, 1/8, 1/8 have 1.75 bits: 0.875 of two bits at k = 4, 0.754 of log2 5 at k = 5."""
    said = one(*[[0, 0, 0, 0, 1, 1, 2, 3]] * 3)
    assert judged(said, [4], [0]).shares["entropy"][0] == pytest.approx(0.875, abs=1e-15)
    assert judged(said, [4], [0]).flag[0, 2] and not judged(said, [5], [0]).flag[0, 2]
    # open: over the answers seen, at most eight; more than eight equal answers count as full disagreement
    assert judged(said, [4], [0], [np.nan]).shares["entropy"][0] == pytest.approx(0.875, abs=1e-15)
    many = one(list(range(10)))
    assert judged(many, [10], [0], [np.nan]).shares["entropy"][0] == 1
    assert judged(one([1] * 8), [4], [0]).shares["entropy"][0] == 0


def test_near_tie():
    """Gap and sum at their limits: 35% and 25% are 0.10 apart and 0.60 together."""

    def shares(*counts):
        flat = [code for code, n in enumerate(counts) for _ in range(n)]
        return judged(np.array([[flat]]), [5], [0])  # fmt: skip

    edge = shares(7, 5, 4, 4)
    assert edge.flag[0, 3] and edge.score[0, 3] == pytest.approx(0.5)
    assert not shares(8, 5, 4, 3).flag[0, 3] and not shares(6, 5, 5, 4).flag[0, 3]
    assert shares(10, 10).score[0, 3] == 1
    silent = [0] * 4 + [1] * 4 + [-1] * 6
    assert not judged(np.array([[silent]]), [5], [0]).flag[0, 3]
    assert judged(np.array([[silent[:12]]]), [5], [0]).flag[0, 3]


def test_low_extraction_against_the_source():
    """Below 3/4 and in the lower tail of a binomial with the source's rate."""
    silent = [0, 2, 4, 30, 0, 0]
    said = np.zeros((6, 12, 8), int)
    for i, n in enumerate(silent):
        said[i].flat[:n] = -1
    found = judged(said, [4] * 6, [1] * 6)
    rate = 1 - sum(silent) / (6 * 96)
    expected = [96 - n < binom.ppf(0.025, 96, rate) and (96 - n) * 4 < 3 * 96 for n in silent]
    assert found.flag[:, 4].tolist() == expected == [False, False, False, True, False, False]
    low = np.full((3, 12, 8), -1)
    low[:, :, :4] = 0  # a source where half is never read: no item stands out
    assert not judged(low, [4] * 3, [0] * 3).flag[:, 4].any()


def test_models_of_a_family_share_a_vote():
    """Three models of one provider say B, two others A: 3 to 2 by models, 1 to 2 by providers."""
    said = one([1] * 8, [1] * 8, [1] * 8, [0] * 8, [0] * 8)
    full = Draws((said == 0).sum(2), np.full((1, 5), 8), np.zeros((1, 5), int))
    a = answers_of(said, [4], [0])
    alone = rules(a, full, [4], ["s"])
    shared = rules(a, full, [4], ["s"], families=["x", "x", "x", "y", "z"])
    assert alone.flag[0, 1] and alone.shares["top1"][0] == pytest.approx(0.6)
    assert not shared.flag[0, 1] and shared.shares["modal"][0] == 0
    assert shared.shares["top1"][0] == pytest.approx(2 / 3) and shared.shares["backing"][0] == pytest.approx(2 / 3)
    own = rules(a, full, [4], ["s"], families=list("abcde"))
    np.testing.assert_array_equal(own.score, alone.score)


def test_budget_takes_the_highest_scores():
    score = np.array([[0.2, 0.9], [0.9, 0.3], [0.0, 0.0], [np.nan, np.nan], [0.5, 0.5]])
    assert within_budget(score, "0.4").tolist() == [True, True, False, False, False]
    assert within_budget(score, "0.2").tolist() == [False, True, False, False, False]  # the larger sum goes first
    assert within_budget(score, "1").tolist() == [True, True, False, False, True]
    said = np.concatenate([np.zeros((9, 4, 8), int), np.ones((1, 4, 8), int)])
    found = judged(said, [4] * 10, [0] * 10, budget="0.10")
    assert found.candidates.tolist() == [False] * 9 + [True]


def test_scores_are_half_at_the_thresholds_and_cutoffs_replace_them(rng):
    found = _random_rules(rng)
    for j in range(1, 5):
        assert (found.score[found.flag[:, j], j] >= 0.5 - 1e-12).all() and found.flag[:, j].any()
        assert (found.score[~found.flag[:, j], j] <= 0.5 + 1e-12).all()
    assert ((found.score >= 0) & (found.score <= 1)).all()
    cut = _random_rules(np.random.default_rng(20261129), cutoffs=(1.0, 0.7, 0.7, 0.7, 0.7))
    assert (cut.flag == (found.score >= [1.0, 0.7, 0.7, 0.7, 0.7])).all()
    with pytest.raises(AuditError, match="2 cutoffs"):
        _random_rules(rng, cutoffs=(0.5, 0.5))


def _random_rules(rng, **settings):
    pool, _said = random_pool(rng, items=120, models=8, samples=8, equal=True)
    settings = RuleSettings(**settings)
    return rules(pool.answers.of(pool.panel), pool.full.of(pool.panel), pool.k, pool.source, settings)


def test_incidence_of_the_32_combinations(rng):
    flag = rng.random((500, 5)) < 0.4
    table = incidence(flag)
    assert len(table) == 32 and table["n"].sum() == 500 and table["share"].sum() == pytest.approx(1)
    rows = [tuple(map(bool, f)) for f in flag]
    for row in table.itertuples(index=False):
        assert row.n == rows.count(tuple(row[:5]))


# ---- the stages together, against a naive reference


def random_pool(rng, items=40, models=6, inspectors=3, samples=8, equal=False):
    """A pool of every kind of item, and its draws as lists: said[i][m], hits of the blind draws blind[i][m]."""
    k = rng.choice([2, 3, 4, 5, np.nan], items)
    size = np.where(np.isnan(k), 6, k).astype(int)
    count = models + inspectors
    said, blind = [], []
    for i in range(items):
        kind = rng.choice(["easy", "hard", "wrong", "tie", "spread", "silent"])
        weight = {"easy": [30, 1, 1], "hard": [3, 2, 2], "wrong": [1, 9, 1], "tie": [1, 9, 9], "spread": [1, 1, 1],
                  "silent": [3, 1, 1]}[kind]  # fmt: skip
        p = np.array((weight + [1] * 6)[: size[i]], float)
        nothing = 0.5 if kind == "silent" else 0.03
        rows = []
        for _ in range(count):
            n = samples if equal else int(rng.integers(0, samples + 1))
            given = rng.choice(size[i], n, p=p / p.sum())
            rows.append(np.where(rng.random(n) < nothing, -1, given).tolist())
        said.append(rows)
        easy, lost = rng.choice([0.1, 0.5, 0.9]), rng.choice([0.0, 0.3])
        made = [samples if equal else int(rng.integers(0, samples + 1)) for _ in range(count)]
        blind.append([[-1 if rng.random() < lost else int(rng.random() < easy) for _ in range(n)] for n in made])
    rows = [
        (i, m, a, said[i][m][::2].count(a), said[i][m][1::2].count(a))
        for i in range(items) for m in range(count) for a in sorted(set(said[i][m]))
    ]  # fmt: skip
    answers = Answers(*np.array(rows).T, size, np.zeros(items, int), lambda i, a: str(a))

    def counts(cells, right):
        return Draws(*(np.array([[f(c) for c in row] for row in cells]) for f in (
            lambda c: c.count(right), len, lambda c: c.count(-1))))  # fmt: skip

    table = pd.DataFrame({"item": [f"q{i}" for i in range(items)], "source": rng.choice(["a", "b", "c"], items),
                          "k": k, "key": "0"})  # fmt: skip
    names = pd.DataFrame({"model": [f"m{j}" for j in range(count)], "tier": [f"t{j % 3}" for j in range(count)],
                          "provider": [f"p{j % 4}" for j in range(count)]})  # fmt: skip
    pool = CurationPool("random", table, names, counts(said, 0), counts(blind, 1), answers,
                        np.arange(models, count), np.arange(models), np.arange(models))  # fmt: skip
    return pool.check(), (said, blind)


def mean(values):
    values = list(values)
    return sum(values, Fraction(0)) / len(values) if values else None


def naive_text(rows, k):
    """Removed, undecided: one item's blind draws, by hand."""
    limit = Fraction(4, 5) if k == 2 else Fraction(1, 2)
    rows = [r for r in rows if r]
    if not rows:
        return False, False
    point = mean(Fraction(r.count(1), len(r)) for r in rows) > limit
    kept = mean(Fraction(r.count(1), len(r) - r.count(-1)) for r in rows if r.count(-1) < len(r))
    credit = Fraction(0) if math.isnan(k) else Fraction(1, int(k))
    guessed = mean((r.count(1) + r.count(-1) * credit) / len(r) for r in rows) > limit
    return point, kept is None or (kept > limit) != point or guessed != point


def naive_vote(rows, owner):
    """Weight of each answer, of silence, and of the models behind each answer; each owner weighs 1."""
    rows = {m: r for m, r in enumerate(rows) if r}
    weight = {m: Fraction(1, sum(owner[n] == owner[m] for n in rows)) for m in rows}
    votes, silent, behind = {}, Fraction(0), {}
    for m, r in rows.items():
        for a in r:
            if a == -1:
                silent += weight[m] / len(r)
            else:
                votes[a] = votes.get(a, 0) + weight[m] / len(r)
        own = {a: r.count(a) for a in r if a != -1}
        for a, n in own.items():
            if n == max(own.values()):
                behind[a] = behind.get(a, 0) + weight[m]
    return votes, silent, behind, sum(weight.values())


def naive_wrong(rows, owner):
    """The leading answer where R2's conditions but the key hold: None without one."""
    votes, _, behind, voters = naive_vote(rows, owner)
    if not votes:
        return None
    top = max(votes.values())
    lead = [a for a, v in votes.items() if v == top]
    if len(lead) > 1 or top / sum(votes.values()) < Fraction(1, 2) or behind[lead[0]] / voters < Fraction(3, 5):
        return None
    return lead[0]


def naive_rules(said, pool, items, owner):
    """Flags of the five rules for some items of the pool, by hand."""
    made = {i: sum(len(r) for r in said[i]) for i in items}
    read = {i: sum(len(r) - r.count(-1) for r in said[i]) for i in items}
    out = {}
    for i in items:
        rows, k = said[i], pool.k[i]
        flags = [made[i] > 0 and all(a != 0 for r in rows for a in r)]
        lead, against = naive_wrong(rows, owner), True
        for half in (0, 1):
            part = [r[half::2] for r in rows]
            against &= not any(part) or naive_wrong(part, owner) == lead
        flags.append(lead is not None and lead != 0 and against)
        votes, silent, _, _ = naive_vote(rows, owner)
        total = sum(votes.values())
        p = [float(v / total) for v in votes.values()]
        q = min(len(votes), 8) if math.isnan(k) else int(k)
        flags.append(q > 1 and bool(p) and -sum(x * math.log(x) for x in p) / math.log(q) >= 0.8)
        top = [*sorted(votes.values(), reverse=True), Fraction(0), Fraction(0)][:2]
        flags.append(
            total > 0
            and (top[0] - top[1]) / total <= Fraction(1, 10)
            and sum(top) / total >= Fraction(3, 5)
            and silent <= top[1]
        )
        same = [j for j in items if pool.source[j] == pool.source[i]]
        rate = sum(read[j] for j in same) / max(sum(made[j] for j in same), 1)
        flags.append(
            made[i] > 0 and Fraction(read[i], made[i]) < Fraction(3, 4) and read[i] < binom.ppf(0.025, made[i], rate)
        )
        out[i] = flags
    return out


@pytest.mark.parametrize("seed", range(20))
def test_all_stages_equal_a_naive_reference(seed):
    """Twenty pools of other sizes, margins and draws; every second with unequal draws, every third family-aware."""
    rng = np.random.default_rng(seed)
    models, shared = int(rng.integers(3, 9)), seed % 3 == 0
    pool, (said, blind) = random_pool(rng, models=models, inspectors=int(rng.integers(1, 5)),
                                      samples=int(rng.integers(1, 9)), equal=seed % 2 == 0)  # fmt: skip
    found = funnel(pool, CurationSettings(rules=RuleSettings(family_aware=shared)))
    d, items = found.decisions, range(len(pool.items))
    owner = pool.providers[:models].tolist() if shared else list(range(models))
    panel = [said[i][:models] for i in items]
    text = [naive_text(blind[i][models:], pool.k[i]) for i in items]
    rate = [mean(Fraction(r.count(0), len(r)) for r in panel[i] if r) for i in items]
    solved = [r is not None and r > Fraction(9, 10) for r in rate]
    assert found.ablation.removed.tolist() == [t[0] for t in text]
    assert found.ablation.undecided.tolist() == [t[1] for t in text]
    assert found.saturation.removed.tolist() == solved
    stage = ["text_ablation" if text[i][0] else "saturation" if solved[i] else "" for i in items]
    assert d["stage"].tolist() == d["reason"].tolist() == stage
    both = [(["text_ablation"] if text[i][0] else []) + (["saturation"] if solved[i] else []) for i in items]
    assert d["reasons"].tolist() == ["; ".join(b) for b in both]
    left = [i for i in items if not stage[i]]
    full, part = naive_rules(panel, pool, items, owner), naive_rules(panel, pool, left, owner)
    assert found.rules_full.flag.tolist() == [full[i] for i in items]
    assert found.rules.flag.tolist() == [part[i] for i in left]
    assert d["recalled"].tolist() == [i in part and any(part[i]) for i in items]
    chain = found.stages[found.stages["mode"] == "sequential"]["left"].tolist()
    assert chain == [stage.count("saturation") + len(left), len(left), len(left)]
    for row in found.overlap.itertuples(index=False):
        assert row.n == sum((t[0], s, False) == tuple(row[:3]) for t, s in zip(text, solved))
    reasons = found.reasons.set_index("reason")
    for name in ("text_ablation", "saturation"):
        assert reasons.loc[name, "exclusive"] == stage.count(name)
        assert reasons.loc[name, "overlapping"] == sum(name in b for b in both)
        assert reasons.loc[name, "alone"] == sum(b == [name] for b in both)


# ---- the funnel's other parts


def test_confirmed_defects_remove_and_route(rng):
    pool, _ = random_pool(rng, equal=True)
    before = funnel(pool)
    a, b, c = pool.items["item"][before.candidates].iloc[:3]
    gone = pool.items["item"][before.decisions["stage"].eq("text_ablation")].iloc[0]
    confirmed = pd.DataFrame({"item": [a, b, c, gone], "state": ["confirmed", "confirmed", "rejected", "confirmed"],
                              "label": ["key_error", "scorer_risk", "no_issue", "ambiguous"]})  # fmt: skip
    after = funnel(pool, confirmed=confirmed)
    d = after.decisions.set_index("item")
    assert d.loc[a, ["stage", "reason"]].tolist() == ["defects", "key_error"]
    assert not d.loc[b, "removed"] and d.loc[b, "route"] == "mend: scorer_risk" and not d.loc[c, "removed"]
    assert d.loc[gone, "reason"] == "text_ablation" and d.loc[gone, "reasons"].endswith("ambiguous")
    sequence, whole = (after.stages[after.stages["mode"] == m].set_index("stage") for m in ("sequential", "full_pool"))
    assert sequence.loc["defects", "removed"] == 1 and whole.loc["defects", "removed"] == 2
    assert before.states["defects"].startswith("recall only") and after.states["defects"] == "run"
    assert (after.kept == ~d["removed"]).all() and before.kept.sum() - after.kept.sum() == 1
    paper = funnel(pool, CurationSettings(remove=("key_error", "ambiguous", "scorer_risk")), confirmed)
    assert before.kept.sum() - paper.kept.sum() == 2


@pytest.mark.parametrize("rows, said", [
    ({"item": ["q1", "q1"], "state": "confirmed", "label": "key_error"}, "q1 is decided twice"),
    ({"item": ["nobody"], "state": "confirmed", "label": "key_error"}, "nobody is not in the pool"),
    ({"item": ["q1"], "state": "confirmed", "label": "typo"}, "label 'typo'"),
    ({"item": ["q1"], "state": "confirmed"}, "no column label"),
])  # fmt: skip
def test_confirmed_items_are_checked(rng, rows, said):
    pool, _ = random_pool(rng, equal=True)
    with pytest.raises(AuditError, match=said):
        funnel(pool, confirmed=pd.DataFrame(rows))
    with pytest.raises(AuditError, match="unknown label 'no_issue' to remove"):
        funnel(pool, CurationSettings(remove=("no_issue",)))


def test_flags_are_told_beside_reasons(rng):
    pool, _ = random_pool(rng, items=120)
    found = funnel(pool)
    d = found.decisions
    for name, mask in {"undecided": found.ablation.undecided, "any_inspector": found.ablation.any_inspector,
                       "borderline": found.saturation.outcome == "borderline",
                       "all_tiers": found.saturation.all_tiers}.items():  # fmt: skip
        assert mask.any() and [name in f.split("; ") for f in d["flags"]] == mask.tolist()
    variant = funnel(pool, CurationSettings(ablation=AblationSettings(any_inspector_removes=True)))
    alone = found.ablation.any_inspector & ~found.ablation.removed
    assert variant.reasons.set_index("reason").loc["any_inspector", "exclusive"] == alone.sum() > 0


def test_stages_that_nothing_feeds_say_so(rng):
    pool, _ = random_pool(rng, equal=True)
    bare = CurationPool(pool.name, pool.items, pool.models, pool.full, None, None, pool.inspectors, pool.panel,
                        pool.evaluated)  # fmt: skip
    found = funnel(bare)
    assert found.states["text_ablation"] == "not run: no model was run without the image"
    assert found.ablation is None and found.wrong is None and not found.decisions["stage"].eq("text_ablation").any()
    assert all(found.states[r] == "not run: the runs hold verdicts only, no answers" for r in ("R2", "R3", "R4"))
    assert found.states["R5"] == "run"  # draws without an answer are counted
    sequence = found.stages.query("mode == 'sequential'").set_index("stage")
    assert sequence.loc["text_ablation", "judged"] == 0


def test_nothing_left_for_the_rules():
    said = np.zeros((3, 4, 8), int)
    full = Draws((said == 0).sum(2), np.full((3, 4), 8), np.zeros((3, 4), int))
    items = pd.DataFrame({"item": list("abc"), "source": "s", "k": 4.0, "key": "A"})
    answers, panel = answers_of(said, [4] * 3, [0] * 3), np.arange(4)
    models = pd.DataFrame({"model": list("wxyz")})
    pool = CurationPool("p", items, models, full, None, answers, np.array([], int), panel, panel)
    found = funnel(pool)
    assert found.incidence["n"].sum() == 0 and found.incidence_full["n"].tolist() == [3] + [0] * 31
    assert not found.kept.any()


# ---- real matrices


@cache
def real_pool(shared_data, benchmark: str) -> CurationPool:
    """24 models with and without the image: inspectors every third, panel every third, evaluated the rest."""
    real = shared_data / "real"
    if benchmark == "MMMU":
        items, columns = real / "mmmu_outputs" / "mmmu_val_llava13b_qwenvl.csv", {
            "item": "id", "key": "gold", "options": "options", "stratum": "subject"}  # fmt: skip
    else:
        items, columns = real / "mathvista_results" / "items_testmini.csv", {
            "item": "pid", "key": "answer", "options": "choices", "stratum": "source"}  # fmt: skip
    matrix = real / "m3irt" / benchmark.lower() / f"normal_{benchmark.lower()}.csv"
    prefixes = {"<no_image>": "blind", "<no_question>": "image_only", "<no_info>": "none"}
    data = {"matrix": str(matrix), "prefixes": prefixes, "items": str(items), "item_columns": columns}
    raw = {"pool": benchmark.lower(), "benchmark": benchmark, "data": data}
    pool = auditlib.read_pool(check_params(raw, real / "params.yaml"))
    hits = pool.arms["judged"].hits
    ones, zeros = np.ones_like(hits["full"], dtype=int), np.zeros_like(hits["full"], dtype=int)
    table = pd.DataFrame({"item": pool.items["item"].astype(str), "source": pool.strata, "k": pool.k})
    groups = [np.arange(g, 24, 3) for g in range(3)]
    full, blind = (Draws(hits[c].astype(int), ones, zeros) for c in ("full", "blind"))
    return CurationPool(benchmark, table, pool.models, full, blind, None, *groups).check()


@pytest.mark.parametrize("benchmark, items", [("MMMU", 847), ("MathVista", 1000)])
def test_real_matrices_through_the_first_stages(shared_data, benchmark, items):
    """Oracle: integer counts over the raw arrays; panels are disjoint from the evaluated models."""
    pool = real_pool(shared_data, benchmark)
    found = funnel(pool)
    t, s = pool.blind.hits[:, ::3].sum(1), pool.full.hits[:, 1::3].sum(1)
    text = np.where(pool.k == 2, 10 * t > 8 * 8, 2 * t > 8)
    solved = 10 * s > 9 * 8
    assert len(text) == items and found.ablation.removed.tolist() == text.tolist()
    assert found.saturation.removed.tolist() == solved.tolist()
    assert found.kept.sum() == (~text & ~solved).sum() and 0 < text.sum() < items and 0 < solved.sum() < items
    assert {r: found.states[r] for r in ("R2", "R3", "R4")} == dict.fromkeys(
        ("R2", "R3", "R4"), "not run: the runs hold verdicts only, no answers"
    )
    assert found.states["R1"] == "run" and found.states["R5"].startswith("not run: the runs do not tell")
    assert np.isfinite(found.wrong.expected) and found.wrong.expected > 0 and "one draw" in found.wrong.sentence
    four = found.wrong.table.set_index("k").loc[4.0]
    assert four["chance"] == pytest.approx(binom.sf(4, 8, 0.25), abs=1e-14)


def test_known_wrong_keys_are_flagged_by_soft_zero_correct(shared_data):
    """MMMU Design_15 and MathVista 950 are right for 1 of 24 models, Literature_10 for all."""
    soft = CurationSettings(rules=RuleSettings(soft=True))
    for benchmark, wrong, right in (("MMMU", "validation_Design_15", "validation_Literature_10"),
                                    ("MathVista", "950", None)):  # fmt: skip
        pool = real_pool(shared_data, benchmark)
        everyone = CurationPool(pool.name, pool.items, pool.models, pool.full, pool.blind, None, pool.inspectors,
                                np.arange(24), pool.evaluated)  # fmt: skip
        for p in (pool, everyone):
            d = funnel(p, soft).decisions.set_index("item")
            assert d.loc[wrong, "R1"] and d.loc[wrong, "soft_zero"]
            assert right is None or not d.loc[right, "R1"]
        at = pool.items["item"].tolist().index(wrong)
        assert pool.full.hits[at].sum() == 1
