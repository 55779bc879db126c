"""Reliability of judges under planted damage: closed forms, planted judges, damaged files, people's scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from auditlib.errors import AuditError
from auditlib.judges.calls import calls_frame
from auditlib.judges.dimensions import DIMENSIONS, I2T, NEUTRAL, T2I, dimension
from auditlib.judges.outcomes import GOLD, PERTURBED, outcomes, repeated
from auditlib.judges.people import against_people
from auditlib.judges.readers import read_candidates, read_scores
from auditlib.judges.reliability import d_prime_of, dimension_table, overall_table
from auditlib.judges.reliability_tests import image_use, length_control, setting_contrasts
from auditlib.stats.beta_binomial import shrink
from auditlib.stats.signal import detection, drawn_in
from auditlib.synth.perturbation_judges import (
    PerturbationJudge,
    implied_detection,
    planted_instances,
    planted_scores,
)

GOOD = PerturbationJudge("good", weight=0.6, weights={"i2t_colour": 1.5, "i2t_cause": 0.0}, noise=0.5)
HABITS = tuple(PerturbationJudge(h, habit=h) for h in ("always_negative", "always_first", "coin"))
LONG = PerturbationJudge("long", weight=0.6, noise=0.4, length=0.8)
SLOT = PerturbationJudge("slot", weight=0.6, noise=0.5, slot=0.6)
FEW = ["i2t_colour", "i2t_cause", "i2t_text", "i2t_action"]


@pytest.fixture(scope="module")
def instances():
    return planted_instances(60, seed=3, dimensions=FEW, neutral=60)


@pytest.fixture(scope="module")
def table(instances):
    calls = pd.concat(
        [
            planted_scores(instances, (GOOD, *HABITS, LONG), seed=4, repeats=2),
            planted_scores(instances, (GOOD, *HABITS, SLOT), seed=4, paradigm="pairwise"),
            planted_scores(instances, (GOOD,), seed=4, image="withheld"),
        ],
        ignore_index=True,
    )
    return outcomes(calls)[0], repeated(calls)


def _value(overall, judge, paradigm, quantity, image="shown"):
    mine = overall[overall["judge"].eq(judge) & overall["paradigm"].eq(paradigm) & overall["quantity"].eq(quantity)]
    return mine[mine["image"].eq(image)].iloc[0]


# dimensions


def test_forty_dimensions_and_a_neutral_set():
    assert len(I2T) == len(T2I) == 20 and len(DIMENSIONS) == 40 + len(NEUTRAL)
    assert {d.task for d in NEUTRAL} == {"I2T", "T2I"} and all(d.effect == "neutral" for d in NEUTRAL)
    with pytest.raises(AuditError, match="no dimension"):
        dimension("i2t_nonsense")


# laws


@pytest.mark.parametrize("n1, n0", [(400, 4000), (7, 3), (50, 50)])
def test_judge_that_says_always_the_same_has_d_prime_zero(n1, n0):
    assert d_prime_of(np.array([[n1, n1, n0, n0], [0, n1, 0, n0]], float)) == pytest.approx([0, 0], abs=1e-12)
    # one half added to each set instead would not do it
    log_linear = stats.norm.ppf((n1 + 0.5) / (n1 + 1)) - stats.norm.ppf((n0 + 0.5) / (n0 + 1))
    assert (abs(log_linear) > 0.3) == (n1 != n0)
    # one function for judges and for yes/no answers; without one of the two sets there is none
    assert detection(n1, n1, n0, n0)[0] == pytest.approx(0, abs=1e-12)
    assert np.isnan(detection(3, 5, 0, 0)).all()


def test_correction_formula():
    h, n1, n = 30.0, 40.0, 160.0
    assert drawn_in(np.array([h]), np.array([n1]), np.array([n]))[0] == (h + n1 / n) / (n1 + 2 * n1 / n)


def test_shrinkage_is_the_maximum_of_the_marginal_likelihood():
    rng = np.random.default_rng(1)
    n = rng.integers(10, 40, 60)
    k = rng.binomial(n, rng.beta(6, 3, 60))
    fit = shrink(k, n)
    best = stats.betabinom.logpmf(k, n, fit.centre * fit.strength, (1 - fit.centre) * fit.strength).sum()
    for centre, strength in ((fit.centre * 1.03, fit.strength), (fit.centre, fit.strength * 1.2), (0.667, 9.0)):
        assert stats.betabinom.logpmf(k, n, centre * strength, (1 - centre) * strength).sum() <= best + 1e-6
    assert fit.centre == pytest.approx(2 / 3, abs=0.06)
    post = stats.beta(fit.centre * fit.strength + k, (1 - fit.centre) * fit.strength + n - k)
    assert fit.mean == pytest.approx(post.mean()) and fit.low == pytest.approx(post.ppf(0.025))
    # every group moves toward the centre, small ones more
    assert (np.abs(fit.mean - fit.centre) <= np.abs(k / n - fit.centre) + 1e-12).all()


def test_too_few_groups_are_not_pooled():
    assert np.isnan(shrink([3, 4], [5, 5]).mean).all()
    with pytest.raises(ValueError, match="hits"):
        shrink([6], [5])


# outcomes


def _pair(name, first, second, effect="degrade"):
    """Two orders; what each says: g, p, t, or - for no answer."""
    rows = []
    for shown, said in (((GOLD, PERTURBED), first), ((PERTURBED, GOLD), second)):
        state = {"t": "tie", "-": "unparsed"}.get(said, "chosen")
        choice = {"g": GOLD, "p": PERTURBED}.get(said, "")
        rows.append({"judge": "j", "instance": name, "paradigm": "pairwise", "shown": shown, "state": state,
                     "choice": choice, "dimension": "i2t_text", "effect": effect})  # fmt: skip
    return rows


def test_outcomes_of_a_pair():
    said = {"gg": "detected", "gp": "locked", "pg": "locked", "pp": "reversed", "gt": "half", "tg": "half",
            "tp": "half_reversed", "tt": "tie", "g-": "unanswered", "--": "unanswered"}  # fmt: skip
    rows = [r for name in said for r in _pair(name, *name)]
    rows += _pair("one", "g", "g")[:1]
    table, lost = outcomes(calls_frame(rows))
    found = dict(zip(table["instance"], table["outcome"]))
    assert found == said | {"one": "one_order"}
    assert {r["reason"].split(" ")[0]: r["n"] for r in lost} == {"pairs": 1, "perturbations": 2}
    overall = overall_table(table, draws=200).set_index("quantity")
    assert overall.at["detection", "n"] == 8 and overall.at["detection", "estimate"] == 1 / 8
    assert overall.at["unanswered", "estimate"] == 2 / 10
    assert "neutral" in overall.at["d_prime", "note"] and np.isnan(overall.at["d_prime", "estimate"])


def _score(name, which, score, repeat=0, dimension="i2t_text", **more):
    return {"judge": "j", "instance": name, "paradigm": "single", "shown": (which,), "repeat": repeat,
            "dimension": dimension, "effect": "degrade" if dimension else "", "score": score,
            "state": "unparsed" if score is None else "scored"} | more  # fmt: skip


def test_outcomes_of_scores_with_one_gold_for_several_perturbations():
    rows = [_score("a", GOLD, 4, dimension=""), _score("a", PERTURBED, 3), _score("a", PERTURBED, 4, dimension="other"),
            _score("b", GOLD, 4, dimension=""), _score("b", PERTURBED, 5), _score("c", GOLD, 4),
            _score("c", PERTURBED, None), _score("d", PERTURBED, 2)]  # fmt: skip
    table, lost = outcomes(calls_frame(rows))
    assert dict(zip(zip(table["instance"], table["dimension"]), table["outcome"])) == {
        ("a", "i2t_text"): "detected", ("a", "other"): "tie", ("b", "i2t_text"): "reversed",
        ("c", "i2t_text"): "unanswered"}  # fmt: skip
    assert any("gold output was not scored" in r["reason"] and r["n"] == 1 for r in lost)
    row = dimension_table(table, draws=200).set_index("dimension").loc["i2t_text"]
    assert (row["n"], row["unanswered"], row["estimate"]) == (2, 1, 0.5)
    assert (row["bound_low"], row["bound_high"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_perturbed_output_without_a_dimension_is_refused():
    with pytest.raises(AuditError, match="no dimension or effect"):
        outcomes(calls_frame([_score("a", GOLD, 4), _score("a", PERTURBED, 3, dimension="", effect="degrade")]))


def test_repeatability_floor_and_icc():
    values = {"a": (1, 2, 2), "b": (4, 4, 5), "c": (3, 1, 3)}
    rows = [_score(n, GOLD, s, i) for n, v in values.items() for i, s in enumerate(v)]
    row = repeated(calls_frame(rows)).iloc[0]
    # ordered pairs of different repeats with a strictly lower second score: 2, 2 and 2 of 6
    assert row["floor"] == pytest.approx((2 / 6 + 2 / 6 + 2 / 6) / 3)
    x = np.array(list(values.values()), float)
    between = 3 * x.mean(1).var(ddof=1)
    within = x.var(axis=1, ddof=1).mean()
    assert row["icc"] == pytest.approx((between - within) / (between + 2 * within))
    assert row["sd"] == pytest.approx(np.sqrt(within))


# planted judges


def test_judges_that_know_nothing_have_no_d_prime(table):
    overall = overall_table(*table, draws=300)
    for judge in ("always_negative", "always_first"):
        for paradigm in ("single", "pairwise"):
            assert _value(overall, judge, paradigm, "d_prime")["estimate"] == pytest.approx(0, abs=1e-12)
    assert _value(overall, "always_negative", "pairwise", "detection")["estimate"] == 1.0
    assert _value(overall, "always_first", "pairwise", "locked")["estimate"] == 1.0
    for paradigm in ("single", "pairwise"):
        coin = _value(overall, "coin", paradigm, "d_prime")
        assert coin["low"] - 0.1 < 0 < coin["high"] + 0.1 and abs(coin["estimate"]) < 0.4
    assert _value(overall, "coin", "pairwise", "detection")["estimate"] == pytest.approx(0.25, abs=0.09)


@pytest.mark.parametrize("judge, paradigm", [(GOOD, "single"), (GOOD, "pairwise"), (SLOT, "pairwise")])
def test_detection_is_what_the_weights_imply(table, instances, judge, paradigm):
    found = dimension_table(table[0], draws=200)
    found = found[found["judge"].eq(judge.name) & found["paradigm"].eq(paradigm) & found["image"].eq("shown")]
    implied = implied_detection(judge, instances, paradigm=paradigm).groupby(instances["dimension"]).mean()
    seen = found.set_index("dimension")["estimate"].reindex(implied.index)
    # 60 instances each; four standard errors
    assert ((seen - implied).abs() < 4 * np.sqrt(implied * (1 - implied) / 60) + 0.01).all()
    bad = found[found["effect"].eq("degrade")].set_index("dimension")
    if judge is GOOD:
        assert bad["shrunk"].idxmax() == "i2t_colour" and bad["shrunk"].idxmin() == "i2t_cause"
        assert bad.at["i2t_cause", "q_macro"] < 0.01 and bad.at["i2t_text", "q_macro"] > 0.05
        assert ((bad["sim_low"] <= bad["low"]) & (bad["sim_high"] >= bad["high"])).all()


def test_severity_floor_and_effect_size(table, instances):
    overall = overall_table(*table, draws=300)
    bad = instances[instances["effect"].eq("degrade")]
    x = bad["severity"] - bad.groupby("dimension")["severity"].transform("mean")
    implied = (x * implied_detection(GOOD, bad)).sum() / (x**2).sum()
    row = _value(overall, "good", "single", "severity")
    assert row["low"] - 0.02 < implied < row["high"] + 0.02 and implied > 0.03
    row = _value(overall, "coin", "single", "severity")
    assert row["low"] - 0.02 < 0 < row["high"] + 0.02
    assert _value(overall, "good", "single", "floor")["estimate"] == pytest.approx(0.5, abs=1e-9)
    # noise of one score is .5; the mean fall is .6 to 0 times a mean severity of 2
    gap = _value(overall, "good", "single", "gap")["estimate"]
    assert _value(overall, "good", "single", "effect_size")["estimate"] == pytest.approx(gap / 0.5, rel=0.15)


def test_judge_without_eyes_and_judge_that_looks(table, instances):
    row = image_use(table[0], draws=300).iloc[0]
    expected = implied_detection(GOOD, instances)[instances["effect"].eq("degrade")].mean() - 0.5
    assert row["judge"] == "good" and row["estimate"] == pytest.approx(expected, abs=0.1) and row["q"] < 0.01
    blind = PerturbationJudge("blind", noise=0.2, weight=0.6, blind=1.0)
    calls = [planted_scores(instances, (blind,), seed=9, image=image) for image in ("shown", "withheld")]
    same = image_use(outcomes(pd.concat(calls, ignore_index=True))[0], draws=300).iloc[0]
    assert abs(same["estimate"]) < 0.05 and same["p_same"] < 0.05


def test_length_is_taken_out(table, instances):
    found = length_control(table[0], instances, draws=300).set_index(["judge", "paradigm", "image"])
    assert found.at[("long", "single", "shown"), "slope"] == pytest.approx(-0.8, abs=0.15)
    assert found.at[("long", "single", "shown"), "high"] < 0
    row = found.loc[("good", "single", "shown")]
    assert row["low"] < 0 < row["high"]


def test_contrasts_of_paradigms_and_judges(table):
    found = setting_contrasts(table[0], draws=300)
    row = found[found["kind"].eq("judge") & found["first"].eq("good") & found["second"].eq("always_negative")].iloc[0]
    assert row["second_rate"] == 1.0 and row["only_first"] == 0 and row["d_prime"] > 0.3
    n = int(row["only_second"])
    assert row["p"] == pytest.approx(stats.binomtest(0, n, 0.5).pvalue)
    assert (found["q"] >= found["p"]).all() and set(found["kind"]) == {"paradigm", "judge"}


# people


def test_scores_against_people():
    rows = [{"judge": "j", "instance": f"p{i}", "paradigm": "single", "shown": ("a",), "state": "scored", "score": s,
             "comparison": "one"} for i, s in enumerate([1, 2, 3, 5, 4])]  # fmt: skip
    rows.append(rows[0] | {"instance": "p5", "state": "sentinel", "score": None})
    rated = pd.DataFrame({"prompt": [f"p{i}" for i in range(6)], "candidate": "a", "rating": [1, 2, 3, 4, 5, 2.0]})
    row = against_people(calls_frame(rows), rated, draws=200).iloc[0]
    assert (row["n"], row["unparsed"]) == (5, 1) and row["rank"] == pytest.approx(0.9)
    assert row["exact"] == 0.6 and row["lenient"] == 0 and row["distance"] == pytest.approx(0.4)
    assert row["lenient_bound_low"] == pytest.approx(-1 / 6) and row["lenient_bound_high"] == pytest.approx(3 / 6)


def test_three_judges_against_people_on_real_scores(shared_data):
    path = shared_data / "real" / "vlm_judge_human" / "mllm_judge_scores_3judges_half.csv.gz"
    raw = pd.read_csv(path)
    names = {"critic": "llava_critic_7b_score", "phi": "phi4_score", "gemini": "gemini25flash_score"}
    columns = {"prompt": "sample_id", "comparison": "orig_dataset"}
    calls = read_scores(path, columns, judges=names, scale=(1, 5))
    rated = read_candidates(path, {"prompt": "sample_id", "candidate": "sample_id", "rating": "gt_score"})
    table = against_people(calls.table, rated, draws=200).set_index(["judge", "comparison"])
    assert len(raw) == len(rated) and set(calls.judges) == set(names)
    for judge, column in names.items():
        row, known = table.loc[(judge, "all")], raw[raw[column].ne(-1)]
        assert (row["n"], row["unparsed"]) == (len(known), int(raw[column].eq(-1).sum()))
        assert row["rank"] == pytest.approx(stats.spearmanr(known[column], known["gt_score"]).statistic)
        assert row["lenient"] == pytest.approx((known[column] - known["gt_score"]).mean())
        assert row["lenient_bound_low"] <= row["lenient"] <= row["lenient_bound_high"]
        by_set = raw[column].eq(-1).groupby(raw["orig_dataset"]).sum()
        mine = table.loc[judge].drop(index="all")["unparsed"]
        assert mine.to_dict() == by_set.to_dict()
    sentinel = calls.coverage[calls.coverage["reason"].str.contains("stand for no score")]
    assert sentinel["n"].sum() == sum(int(raw[c].eq(-1).sum()) for c in names.values())
