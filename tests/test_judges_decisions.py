"""Judges as decision makers: exact laws against enumeration, planted judges, and what their filters do."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from auditlib.errors import AuditError
from auditlib.judges import filter_checks, filters, reorder, slots
from auditlib.judges.calls import calls_frame
from auditlib.judges.ceiling import noise_ceiling
from auditlib.judges.decision_data import choices_of, order_weights, prompts_of
from auditlib.judges.decisions import (
    aggregate,
    baseline,
    contrasts,
    expected,
    gain_estimate,
    per_prompt,
    value_table,
)
from auditlib.judges.side_effects import side_effects
from auditlib.stats.conditional_logit import conditional_logit, joint_test
from auditlib.stats.paired import bootstrap, cluster_totals, equivalence, mean_interval, mean_ratio, sign_flip
from auditlib.stats.poisson_binomial import pmf, poisson_binomial_test
from auditlib.synth.decision_judges import (
    GOOD,
    LOCKED,
    SHARED,
    PlantedJudge,
    implied,
    planted_calls,
    planted_candidates,
    planted_ratings,
)

COIN = PlantedJudge("coin", sharpness=0.0)
FIRST = PlantedJudge("always first", locked=1.0)


@pytest.fixture(scope="module")
def world():
    """240 prompts, five planted judges in all cyclic orders, two calls in each."""
    candidates = planted_candidates(240, seed=5)
    judges = (LOCKED, GOOD, COIN, FIRST, *SHARED)
    calls = planted_calls(candidates, judges, seed=6, repeats=2)
    prompts = prompts_of(candidates)
    return candidates, prompts, {j.name: choices_of(calls, prompts, j.name) for j in judges}


# exact laws


def test_poisson_binomial_equals_enumeration():
    p = [0.5, 0.5, 1 / 3, 0.25, 0.2, 1.0]
    law = np.zeros(7)
    for said in itertools.product((0, 1), repeat=6):
        law[sum(said)] += math.prod(q if s else 1 - q for q, s in zip(p, said))
    np.testing.assert_allclose(pmf(p), law, atol=1e-15)
    test = poisson_binomial_test(5, p)
    assert test.p == pytest.approx(law[law <= law[5] * (1 + 1e-9)].sum())
    assert test.upper == pytest.approx(law[5:].sum())
    assert (test.mean, test.sd) == pytest.approx((sum(p), math.sqrt(sum(q * (1 - q) for q in p))))


def test_poisson_binomial_of_equal_chances_is_scipys_binomial_test():
    test = poisson_binomial_test(61, np.full(100, 0.5))
    assert test.p == pytest.approx(stats.binomtest(61, 100).pvalue)
    assert poisson_binomial_test(0, [0.0, 0.0]).p == 1
    with pytest.raises(ValueError):
        poisson_binomial_test(3, [0.5, 0.5])


def test_sign_flip_equals_enumeration_and_scipy(rng):
    d = np.array([0.5, 1.0, -0.25, 2.0, 0.0, 0.75])
    signs = np.array(list(itertools.product((1, -1), repeat=6)))
    exact = (np.abs(signs @ d) >= abs(d.sum()) - 1e-12).mean()
    found = sign_flip(d, rng=rng)
    assert (found.p, found.p_method) == (exact, "exact")
    assert found.p == pytest.approx(
        stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    )
    # whole clusters flip together: the two halves of a cluster that cancel say nothing
    assert sign_flip([1.0, -1.0, 2.0], ["a", "a", "b"], rng=rng).p == 1.0
    assert math.isnan(sign_flip([np.nan], rng=rng).p)


def test_sign_flip_by_draws_is_near_the_exact_value(rng):
    d = rng.normal(0.25, 1, 13)
    exact = sign_flip(d, rng=rng, draws=10_000)
    drawn = sign_flip(d, rng=rng, draws=5_000)
    assert (exact.p_method, drawn.p_method) == ("exact", "sign flips")
    assert abs(exact.p - drawn.p) < 4 * math.sqrt(exact.p * (1 - exact.p) / 5_000)


def test_bootstrap_intervals_match_scipy(rng):
    x = rng.exponential(size=60)
    mine = mean_interval(x, rng=rng, draws=20_000)
    for kind, ours in (("percentile", mine.interval), ("BCa", mine.bca)):
        theirs = stats.bootstrap(
            (x,), np.mean, n_resamples=20_000, method=kind, rng=np.random.default_rng(1)
        ).confidence_interval
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.012)


def test_bootstrap_by_clusters_resamples_clusters(rng):
    cluster = np.repeat(np.arange(20), 5)
    x = np.repeat(rng.normal(size=20), 5)
    whole, alone = mean_interval(x, cluster, rng=rng), mean_interval(x, rng=rng)
    wide = (whole.interval.high - whole.interval.low) / (alone.interval.high - alone.interval.low)
    assert wide == pytest.approx(math.sqrt(5), rel=0.12)
    assert whole.clusters == 20
    one = bootstrap(cluster_totals(np.ones((3, 2)), ["a"] * 3), mean_ratio, rng=rng)
    assert one.value == 1 and one.interval.method == "none: one cluster"


def test_equivalence_needs_both_sides():
    assert equivalence(np.linspace(-0.05, 0.05, 999), 0.1) == pytest.approx(1 / 1000)
    assert equivalence(np.linspace(0.05, 0.15, 999), 0.1) == pytest.approx(0.5, abs=0.01)


def test_conditional_logit_equals_statsmodels(rng):
    from statsmodels.discrete.conditional_models import ConditionalLogit

    n = rng.integers(2, 6, 150)
    group = np.repeat(np.arange(150), n)
    x = rng.normal(size=(len(group), 3))
    chosen = np.zeros(len(group), bool)
    for g in range(150):
        at = np.flatnonzero(group == g)
        w = np.exp(x[at] @ [1.0, -0.5, 0.0])
        chosen[rng.choice(at, p=w / w.sum())] = True
    mine = conditional_logit(x, group, chosen)
    theirs = ConditionalLogit(chosen.astype(float), x, groups=group).fit(disp=False, method="newton")
    np.testing.assert_allclose(mine.beta, theirs.params, atol=1e-6)
    np.testing.assert_allclose(mine.se(robust=False), theirs.bse, rtol=1e-4)
    assert mine.loglik == pytest.approx(theirs.llf)
    assert mine.null_loglik == pytest.approx(-np.log(n).sum())
    less = conditional_logit(x[:, 1:], group, chosen)
    test = joint_test(mine, [0], less)
    assert test.lr == pytest.approx(2 * (mine.loglik - less.loglik)) and test.lr_p == pytest.approx(
        stats.chi2.sf(test.lr, 1)
    )


def test_conditional_logit_tells_separation():
    group = np.repeat(np.arange(30), 2)
    fit = conditional_logit(np.tile([[1.0], [0.0]], (30, 1)), group, np.tile([True, False], 30))
    assert fit.separated and fit.loglik == pytest.approx(0, abs=1e-6)
    with pytest.raises(ValueError):
        conditional_logit([[1.0], [0.0]], [0, 0], [True, True])


def test_order_weights_balance_what_can_be_balanced():
    cyclic = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    np.testing.assert_allclose(order_weights(cyclic), 1 / 3)
    np.testing.assert_allclose(order_weights(np.vstack([cyclic, cyclic[:1]])).sum(), 1)
    doubled = order_weights(np.vstack([cyclic, cyclic[:1]]))
    assert doubled[0] + doubled[3] == pytest.approx(1 / 3)
    assert order_weights(cyclic[:2]) is None


# planted judges: rates and gains within Monte-Carlo error of what their habits imply


@pytest.mark.parametrize("judge", [LOCKED, GOOD, COIN, FIRST, SHARED[0]], ids=lambda j: j.name)
def test_planted_rates_are_recovered(world, judge):
    candidates, prompts, choices = world
    mine, truth = choices[judge.name], implied(judge, candidates)
    change = reorder.order_change(prompts, mine)
    rates = slots.slot_rates(prompts, mine).set_index(["scope", "slot"])
    first = rates.loc[("prompts", "1")]
    share = gain_estimate(per_prompt(prompts, aggregate(prompts, mine)), np.random.default_rng(1))
    assert first["expected"] == pytest.approx(truth.first_slot_null)
    # estimates by prompt have this standard error at most; four of them
    for seen, implied_value, se in (
        (first["estimate"], truth.first_slot, 0.5 / math.sqrt(2 * 240)),
        (change.change.value, truth.change, (change.change.interval.high - change.change.interval.low) / 3.92),
        (change.same_order.value, truth.change_same, 0.5 / math.sqrt(240)),
        (share.value, truth.share, (share.interval.high - share.interval.low) / 3.92),
    ):
        assert abs(seen - implied_value) <= 4 * se + 1e-9, (seen, implied_value)


def test_order_effect_is_told_from_sampling_by_repeats(world):
    _, prompts, choices = world
    good, locked = (reorder.order_change(prompts, choices[j]) for j in ("good", "locked"))
    assert good.change.value > 0.15 and 0 in good.excess.interval and good.p > 0.01
    assert locked.excess.interval.low > 0.2 and locked.p < 0.001
    without = reorder.order_change(prompts, choices["good"].at(choices["good"].repeat == 0))
    assert without.excess is None and "sampling cannot be told" in without.note


def test_position_fit_finds_slots_at_equal_quality(world):
    _, prompts, choices = world
    locked, coin, first = (slots.position_fit(prompts, choices[j]) for j in ("locked", "coin", "always first"))
    assert locked.joint.wald_p < 1e-10 and coin.joint.lr_p > 0.01
    assert locked.score_p < 0.001 and first.score_p < 0.001 and coin.score_p > 0.01
    terms = locked.table.set_index("term")
    assert terms.loc["slot 2", "high"] < -1 and terms.loc["rating", "low"] > 0.5
    assert coin.equal.groupby("n")["probability"].sum().to_numpy() == pytest.approx(1)
    assert first.separated and first.table["se"].isna().all() and first.joint.lr_p < 1e-10


def test_slot_rates_need_no_equal_n(world):
    candidates, prompts, choices = world
    table = slots.slot_rates(prompts, choices["coin"])
    every = table[table["scope"].eq("all")].set_index("slot")
    sizes = candidates.groupby("prompt").size().to_numpy()
    # cyclic orders: each prompt is shown n times, so calls expect P / sum n
    assert every.loc["1", "expected"] == pytest.approx(len(sizes) / sizes.sum())
    assert every.loc["4", "n"] == sizes[sizes >= 4].sum()
    assert (every["q"].dropna() > 0.01).all()
    first = slots.slot_rates(prompts, choices["always first"])
    assert (first[first["slot"].eq("1")]["estimate"] == 1).all()
    assert slots.balanced_share(prompts, choices["coin"]) == 1.0


def test_first_slot_rate_with_varying_n_is_exact():
    """All ways in which a choice that knows no slot can fall, over prompts of two, three and four candidates."""
    sizes = {"a": 2, "b": 3, "c": 4, "d": 3}
    candidates = pd.DataFrame([{"prompt": p, "candidate": str(j), "rating": float(j)} for p, n in sizes.items()
                               for j in range(n)])  # fmt: skip
    prompts = prompts_of(candidates)
    chosen = {"a": 0, "b": 0, "c": 0, "d": 2}
    rows = [{"judge": "j", "instance": p, "paradigm": "best_of_n", "shown": tuple(map(str, range(n))),
             "slot": chosen[p], "state": "chosen"} for p, n in sizes.items()]  # fmt: skip
    table = slots.slot_rates(prompts, choices_of(calls_frame(rows), prompts, "j"))
    first = table[table["scope"].eq("all") & table["slot"].eq("1")].iloc[0]
    every = list(itertools.product(*(range(n) for n in sizes.values())))
    hits = np.array([sum(s == 0 for s in one) for one in every])
    law = np.bincount(hits, minlength=5) / len(every)
    assert first["expected"] * first["n"] == pytest.approx(hits.mean())
    assert first["p"] == pytest.approx(law[law <= law[3] * (1 + 1e-9)].sum())
    # a slot that only some prompts have is expected in those only
    third = table[table["scope"].eq("all") & table["slot"].eq("3")].iloc[0]
    assert (third["n"], third["expected"]) == (3, pytest.approx((1 / 3 + 1 / 4 + 1 / 3) / 3))


def test_mixture_recovers_planted_shares(world):
    _, prompts, choices = world
    locked = reorder.mixture(prompts, choices["locked"], draws=40)
    assert locked.slot == "1"
    for share, planted in (("content", 0.4), ("locked", 0.6), ("random", 0.0)):
        assert locked.low[share] - 0.02 <= planted <= locked.high[share] + 0.02
    first = reorder.mixture(prompts, choices["always first"], draws=5)
    assert first.locked == pytest.approx(1, abs=1e-3)
    coin = reorder.mixture(prompts, choices["coin"], draws=5)
    assert coin.random > 0.9


# value


def test_value_by_hand():
    candidates = pd.DataFrame({"prompt": ["p"] * 3 + ["q"] * 2, "candidate": list("abcab"), "rating": [1, 2, 5, 4, 4.0],
                               "similarity": [0.1, 0.9, 0.9, 0.2, 0.1]})  # fmt: skip
    prompts = prompts_of(candidates)
    rows = [
        {"judge": "j", "instance": "p", "paradigm": "best_of_n", "shown": shown, "slot": slot, "state": state}
        for shown, slot, state in (("abc", 2, "chosen"), ("bca", 0, "chosen"), ("cab", -1, "unparsed"))
    ] + [{"judge": "j", "instance": "q", "paradigm": "best_of_n", "shown": "ab", "slot": -1, "state": "tie"}]
    choices = choices_of(calls_frame(rows), prompts, "j")
    table = per_prompt(prompts, aggregate(prompts, choices)).set_index("prompt")
    assert table.loc["p", ["value", "random", "best", "regret", "top", "win"]].tolist() == pytest.approx(
        [3.5, 8 / 3, 5, 1.5, 0.5, 0.75]
    )
    assert table["similarity"].tolist() == [3.5, 4]
    assert table.loc["q", "gain"] == 0
    assert aggregate(prompts, choices, "plurality")[0].tolist() == [0, 0.5, 0.5]
    assert aggregate(prompts, choices, "first_order")[0].tolist() == [0, 0, 1]
    assert np.isnan(aggregate(prompts, choices, "balanced")[0]).all()
    share = gain_estimate(table.reset_index(), np.random.default_rng(1))
    assert share.value == pytest.approx((3.5 - 8 / 3) / (5 - 8 / 3))


def test_borda_from_pairwise_votes():
    candidates = pd.DataFrame({"prompt": "p", "candidate": list("abc"), "rating": [1.0, 2, 3]})
    prompts = prompts_of(candidates)
    votes = [("ab", 0), ("ba", 1), ("ac", 0), ("ca", 0), ("bc", 1), ("cb", 0)]
    rows = [{"judge": "j", "instance": "p", "paradigm": "pairwise", "shown": s, "slot": v, "state": "chosen"}
            for s, v in votes]  # fmt: skip
    choices = choices_of(calls_frame(rows), prompts, "j", "pairwise")
    # a wins 3 calls, c wins 3, b none; ab and bc hold in both orders, ac follows the first slot
    change = reorder.order_change(prompts, choices)
    assert (change.change.value, change.slot.value) == pytest.approx((1 / 3, 1 / 3))
    assert reorder.mixture(prompts, choices) is None
    assert aggregate(prompts, choices, "borda")[0].tolist() == [0.5, 0, 0.5]


def test_a_blank_cluster_is_no_cluster():
    candidates = pd.DataFrame({"prompt": list("ppqqrr"), "candidate": list("ab") * 3, "rating": range(6)})
    prompts = prompts_of(candidates.assign(cluster=["", "", "", "", "x", "x"], group=["", "", "n", "n", "n", "n"]))
    assert prompts.cluster.tolist() == ["p", "q", "x"] and prompts.group.tolist() == ["(none)", "n", "n"]
    with pytest.raises(AuditError, match="candidates of prompt 'p' differ in group"):
        prompts_of(candidates.assign(group=list("abcdef")))


def test_random_and_best_are_exact(world):
    candidates, prompts, _ = world
    by = candidates.groupby("prompt", sort=False)["rating"]
    assert prompts.random.mean() == pytest.approx(by.mean().mean())
    assert expected(baseline(prompts, "best"), prompts.rating).mean() == pytest.approx(by.max().mean())
    table = value_table(prompts, {"random": baseline(prompts, "random"), "best": baseline(prompts, "best")}, draws=200)
    share = table[table["quantity"].eq("share")].set_index("judge")
    assert share["estimate"].tolist() == pytest.approx([0, 1], abs=1e-12)
    assert share.loc["random", "p"] < 0.01 and share.loc["best", "p"] > 0.9
    assert table[table["quantity"].eq("win")]["estimate"].iloc[0] == pytest.approx(0.5)


def test_contrasts_are_corrected_and_the_silent_judge_is_told(world):
    candidates, prompts, choices = world
    silent = planted_calls(candidates, [PlantedJudge("never", never=True)], seed=1, orders=1)
    decisions = {j: aggregate(prompts, choices[j]) for j in ("good", "coin")}
    table = contrasts(prompts, decisions, draws=999).set_index(["judge", "against"])
    assert table.loc[("good", "random"), "q"] == pytest.approx(5 / 1000)
    assert table.loc[("coin", "random"), "q"] > 0.05 and 0 < table.loc[("good", "coin"), "low"]
    never = {"never": aggregate(prompts, choices_of(silent, prompts, "never"))}
    row = value_table(prompts, never).iloc[0]
    assert row["note"] == "no call holds a decision" and row["unanswered"] == 240
    assert reorder.order_change(prompts, choices_of(silent, prompts, "never")) is None
    assert slots.position_fit(prompts, choices_of(silent, prompts, "never")) is None


def test_noise_ceiling_falls_with_the_raters_noise(world, rng):
    candidates, prompts, _ = world
    exact, rough = (
        noise_ceiling(prompts, planted_ratings(candidates, 5, noise, seed=1), rng=rng, splits=20)
        for noise in (0.0, 1.5)
    )
    assert exact.share == pytest.approx(1) and exact.prompts == 240
    assert 0.3 < rough.share < 0.9 and rough.best > exact.best
    one = planted_ratings(candidates, 1, 0.0, seed=1)
    assert noise_ceiling(prompts, one, rng=rng, splits=3) is None


def test_candidates_that_cannot_be_compared_are_refused():
    base = pd.DataFrame({"prompt": "p", "candidate": ["a", "b"], "rating": [1.0, np.nan]})
    with pytest.raises(AuditError, match="candidate 'b' of prompt 'p' has no rating"):
        prompts_of(base)
    with pytest.raises(AuditError, match="no prompt has two candidates"):
        prompts_of(base.head(1))
    prompts = prompts_of(base.fillna(2.0))
    call = {"judge": "j", "instance": "p", "paradigm": "best_of_n", "shown": "ac", "slot": 0, "state": "chosen"}
    with pytest.raises(AuditError, match="'c', which has no rating"):
        choices_of(calls_frame([call]), prompts, "j")


# filters


def _table(prompts, weights, rule, epsilon=0.25):
    return filters.filter_table(prompts, weights, [rule], epsilon=epsilon, draws=400).set_index("quantity")


def test_agreement_helps_a_slot_locked_judge(world):
    candidates, prompts, _ = world
    locked = choices_of(planted_calls(candidates, [LOCKED], seed=9, orders=2), prompts, "locked")
    weights = aggregate(prompts, locked)
    rule = filters.agreement_filter(prompts, locked)
    table = _table(prompts, weights, rule)
    assert table.loc["interaction", "low"] > 0.2 and table.loc["bad_kept", "estimate"] < 0.02
    assert table.loc["judge_alone", "estimate"] < table.loc["policy_similarity", "estimate"]
    curve = filters.coverage_curve(per_prompt(prompts, weights)["gain"].to_numpy(), rule.score,
                                   rng=np.random.default_rng(1), draws=300)  # fmt: skip
    assert curve.p < 0.01 and curve.area > curve.random_area
    assert (curve.table["gain"].iloc[:3] > curve.table["sim_high"].iloc[:3]).all()
    # the last point keeps everything, whatever the score
    assert curve.table.iloc[-1][["gain", "low", "high"]].tolist() == pytest.approx([curve.table["gain"].iloc[-1]] * 3)
    check = filter_checks.confound_check(prompts, weights, rule.keep, draws=300).set_index("check")
    assert check.loc["gain, within terciles", "low"] > 0 and check.loc["normalised gain", "low"] > 0


def test_agreement_loses_good_decisions_of_a_good_judge(world):
    candidates, prompts, _ = world
    good = choices_of(planted_calls(candidates, [GOOD], seed=9, orders=2), prompts, "good")
    table = _table(prompts, aggregate(prompts, good), filters.agreement_filter(prompts, good))
    assert table.loc["good_lost", "low"] > 0.6 and table.loc["gain_dropped", "low"] > 0.2
    assert table.loc["policy_random_minus_judge", "high"] < 0
    assert table.loc["policy_people", "estimate"] >= table.loc["judge_alone", "estimate"]


def test_a_judge_with_the_same_error_keeps_wrong_decisions(world):
    _, prompts, choices = world
    one, two = (aggregate(prompts, choices[j.name], "plurality") for j in SHARED)
    table = _table(prompts, one, filters.second_judge_filter(one, two))
    # agreement keeps the shared wrong choices, and what it keeps is no better than what it drops
    assert table.loc["bad_kept", "low"] > 0.3 and table.loc["interaction", "low"] < 0
    shared = filter_checks.shared_errors(prompts, choices["shared one"], choices["shared two"], epsilon=0.25)
    assert shared.test.upper < 1e-6 and shared.excess.interval.low > 0.15 and shared.bad_among_agreed > 0.3


def test_independent_judges_show_no_shared_error(world):
    candidates, prompts, _ = world
    pair = [PlantedJudge("a", sharpness=1.5), PlantedJudge("b", sharpness=1.5)]
    calls = planted_calls(candidates, pair, seed=12, orders=1)
    shared = filter_checks.shared_errors(prompts, *(choices_of(calls, prompts, j) for j in "ab"), epsilon=0.25)
    assert shared.test.p > 0.01 and 0 in shared.excess.interval


def test_filters_by_hand():
    candidates = pd.DataFrame({"prompt": np.repeat(list("pqrs"), 2), "candidate": list("ab") * 4,
                               "rating": [1.0, 3, 1, 3, 1, 3, 1, 3]})  # fmt: skip
    prompts = prompts_of(candidates)
    said = {"p": (1, 0), "q": (0, 0), "r": (1, None), "s": (0, 1)}  # slots in the orders ab and ba
    rows = [
        {"judge": "j", "instance": p, "paradigm": "best_of_n", "shown": shown, "slot": -1 if slot is None else slot,
         "state": "unparsed" if slot is None else "chosen"}
        for p, both in said.items() for shown, slot in zip(("ab", "ba"), both)
    ]  # fmt: skip
    choices = choices_of(calls_frame(rows), prompts, "j")
    rule = filters.agreement_filter(prompts, choices)
    # p takes b twice, q the first slot twice, r answers once, s takes a twice
    assert rule.keep.tolist() == [True, False, False, True]
    assert rule.score.tolist() == [1, 0.5, 0.5, 1]
    assert filters.agreement_filter(prompts, choices, 0.5).keep.all()
    assert filters.vote_margin(prompts, choices).tolist() == [1, 0, 1, 1]
    table = filters.filter_table(prompts, aggregate(prompts, choices), [rule], draws=50).set_index("quantity")
    wanted = {"coverage": 0.5, "gain_kept": 0, "gain_dropped": 0.5, "interaction": -0.5, "bad_kept": 0.5,
              "good_lost": 0.75, "judge_alone": 2.25, "policy_random": 2, "policy_people": 2.5}  # fmt: skip
    assert table["estimate"].reindex(list(wanted)).tolist() == pytest.approx(list(wanted.values()))
    assert filters.margin_filter(np.array([0.1, np.nan, 0.6, 0.5]), 0.5).keep.tolist() == [False, False, True, False]


def test_coverage_curve_is_the_mean_over_ties(rng):
    gain, score = np.array([4.0, 0.0, 2.0, -2.0]), np.array([1.0, 1.0, 0.5, 0.5])
    curve = filters.coverage_curve(gain, score, rng=rng, draws=50, steps=4)
    firsts = [np.cumsum(np.array(o))[:] for o in ([4, 0, 2, -2], [0, 4, 2, -2], [4, 0, -2, 2], [0, 4, -2, 2])]
    wanted = np.mean(firsts, axis=0) / np.arange(1, 5)
    assert curve.table["gain"].tolist() == pytest.approx(wanted.tolist())
    assert filters.coverage_curve(gain[:1], score[:1], rng=rng) is None


# side effects


def test_side_effects_of_picking_by_similarity(world):
    _, prompts, choices = world
    table = side_effects(prompts, {"similarity": baseline(prompts, "similarity"),
                                   "coin": aggregate(prompts, choices["coin"])}, draws=500)  # fmt: skip
    rows = table.set_index(["decision", "group"])
    assert rows.loc[("similarity", "all"), "low"] > 0 and rows.loc[("similarity", "all"), "q"] < 0.05
    coin = rows.loc[("coin", "all")]
    assert coin["low"] < 0 < coin["high"] and "may be there" in coin["note"]
    # 2.8 standard errors, and simultaneous ends outside the single ones
    assert coin["detectable"] == pytest.approx(2.8016 * (coin["high"] - coin["low"]) / 3.92, rel=0.15)
    assert (rows["sim_high"] - rows["sim_low"] > rows["high"] - rows["low"]).all()
    assert rows.loc["similarity"].drop("all")["n"].sum() == 240
