"""Pools: arrays from replies, arms, missing cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from builders import params, runs, tiny_pool

import auditlib
from auditlib.counts import count, why_not
from auditlib.errors import AuditError
from auditlib.frames import ABSTAINED, MISSING
from auditlib.pool import Arm, Pool
from auditlib.reading import pool_of

KEYS = ["A", "B", "C", "D"]


def test_letters_and_hits():
    pool = tiny_pool({("m", "full"): ["A", "The answer is B.", "hm", ""], ("m", "blind"): ["B", "B", "C", "C"]}, KEYS)
    assert pool.letters["full"][:, 0].tolist() == [0, 1, ABSTAINED, MISSING]
    exact = pool.arms["exact"]
    assert exact.hits["full"][:, 0].tolist() == [1, 1, 0, 0]
    assert exact.trials["full"][:, 0].tolist() == [1, 1, 1, 0]
    assert exact.hits["blind"][:, 0].tolist() == [0, 1, 1, 0]


def test_failed_replies_count_as_wrong_when_asked():
    replies = {("m", "full"): ["A", "B", "C", ""], ("m", "blind"): ["B", "B", "C", "C"]}
    assert tiny_pool(replies, KEYS, settings={"failed": "wrong"}).arms["exact"].trials["full"].min() == 1


def test_unclosed_think_block_is_truncated_not_wrong():
    pool = tiny_pool({("m", "full"): ["<think>A or B? so B", "B", "C", "D"]}, KEYS)
    assert pool.responses["status"].tolist() == ["truncated", "ok", "ok", "ok"]
    assert pool.arms["exact"].trials["full"][0, 0] == 0
    assert (pool.coverage["reason"] == "replies whose think block never ends").any()


def test_judged_arm_and_random_fill():
    r = runs({("m", "full"): ["A", "hm", "hm", "D"]}, KEYS, judged={("m", "full"): [1, 1, np.nan, np.nan]})
    r.judgements.loc[2, "source"] = "random_fill"
    r.judgements.loc[3, "source"] = "cache_stale"
    judged = pool_of(r, params()).arms["judged"]
    assert judged.hits["full"][:, 0].tolist() == [1, 1, 0, 0]
    assert judged.trials["full"][:, 0].tolist() == [1, 1, 1, 0], "a random fill is an abstention, a stale verdict none"


def test_answers_are_never_filled_back_from_the_key():
    """The temptation: the judge says hit, the reply names no letter. The vote must stay an abstention."""
    replies = {("m", "full"): ["no idea"] * 4, ("n", "full"): KEYS}
    pool = tiny_pool(replies, KEYS, judged={(m, "full"): [1, 1, 1, 1] for m in "mn"})
    m = pool.model_names.index("m")
    assert (pool.letters["full"][:, m] == ABSTAINED).all()
    assert pool.arms["exact"].hits["full"][:, m].sum() == 0
    assert pool.arms["judged"].hits["full"][:, m].sum() == 4


def test_graded_verdicts_are_counted_in_parts_of_their_common_denominator():
    verdicts = {("m", "full"): [1, 0.3, 0.6, 0], ("m", "blind"): [0.9, 0, 0.3, 0]}
    pool = tiny_pool({("m", "full"): KEYS, ("m", "blind"): KEYS}, KEYS, judged=verdicts)
    arm = pool.arms["judged"]
    assert arm.unit == 10
    assert arm.hits["full"][:, 0].tolist() == [10, 3, 6, 0] and arm.hits["blind"][:, 0].tolist() == [9, 0, 3, 0]
    assert arm.trials["full"][:, 0].tolist() == [10] * 4
    assert pool.arms["exact"].unit == 1


def test_verdicts_that_counting_moves_are_said():
    verdicts = {("m", "full"): [0.12345, 0.98765, 0.31415, 0.27182]}
    pool = tiny_pool({("m", "full"): KEYS}, KEYS, judged=verdicts)
    assert pool.arms["judged"].unit == 100 and pool.arms["judged"].hits["full"][:, 0].tolist() == [12, 99, 31, 27]
    said = pool.coverage[pool.coverage["reason"].str.contains("steps of 1/100")]
    assert said["n"].tolist() == [4]
    exact = tiny_pool({("m", "full"): KEYS}, KEYS, judged={("m", "full"): [1, 0.3, 0.6, 0]})
    assert not exact.coverage["reason"].str.contains("steps of").any()


def test_nothing_scorable_is_an_error():
    with pytest.raises(AuditError, match="no reply could be scored"):
        tiny_pool({("m", "full"): ["hm"] * 4}, KEYS)


def test_unknown_model_in_params_names_the_nearest():
    r = runs({("model-one", "full"): KEYS}, KEYS)
    with pytest.raises(AuditError, match="did you mean 'model-one'"):
        pool_of(r, params(models=[{"name": "model_one"}]))


def test_models_follow_the_params_then_the_alphabet():
    r = runs({(m, "full"): KEYS for m in "cab"}, KEYS)
    pool = pool_of(r, params(models=[{"name": "c", "family": "F"}]))
    assert pool.model_names == ["c", "a", "b"]
    assert pool.models["family"].tolist()[0] == "F"


def test_options_by_stratum_sets_k_and_rejects_unknown_names():
    r = runs({("m", "full"): KEYS}, KEYS, options=[[]] * 4, stratum=["x", "x", "y", "y"])
    pool = pool_of(r, params(audit={"options_by_stratum": {"x": 2, "y": 4}}))
    assert pool.items["k"].tolist() == [2, 2, 4, 4]
    with pytest.raises(AuditError, match="which is no stratum"):
        pool_of(r, params(audit={"options_by_stratum": {"X": 2}}))


def test_unknown_options_accept_letters_up_to_the_highest_key():
    pool = tiny_pool({("m", "full"): ["A", "E", "C", "D"]}, KEYS, options=[[]] * 4)
    assert pool.letters["full"][:, 0].tolist() == [0, ABSTAINED, 2, 3]
    assert pool.coverage["reason"].str.contains("options unknown: letters up to D").any()


def test_yes_no_items_have_their_own_arm():
    pool = tiny_pool({("m", "full"): ["Yes.", "No", "Yes"]}, ["Yes", "Yes", "No"], options=[[]] * 3)
    assert "exact" not in pool.arms
    assert pool.arms["exact_yesno"].hits["full"][:, 0].tolist() == [1, 0, 0]
    assert pool.items["k"].tolist() == [2, 2, 2]
    assert pool.coverage["reason"].str.contains("exact arm: no item has an option letter as its key").any()


def test_from_hits_checks_shape_and_values():
    good = np.ones((4, 2), np.uint8)
    assert Pool.from_hits(good, good).arm.hits["full"] is good
    with pytest.raises(AuditError, match="shape"):
        Pool.from_hits(good, good[:3])
    with pytest.raises(AuditError, match="other than 0 and 1"):
        Pool.from_hits(good * 2)


def test_one_model_only_is_audited():
    replies = {("m", "full"): ["A", "B", "C", "A"], ("m", "blind"): ["A", "A", "A", "A"]}
    audit = auditlib.audit(tiny_pool(replies, KEYS))
    states = audit.detectors.set_index("detector")["state"]
    assert states["visual_dependency"] == "run"
    assert audit.detectors.set_index("detector").loc["consensus_error", "reason"] == "needs at least two models"


def _cells(trials_full, trials_blind, hits=None):
    t = {"full": np.array(trials_full, np.uint8), "blind": np.array(trials_blind, np.uint8)}
    hits = hits or {c: x.copy() for c, x in t.items()}
    n, m = t["full"].shape
    arm = Arm("judged", hits, t)
    items = pd.DataFrame({"item": [str(i) for i in range(n)]})
    return Pool("p", "p", items, pd.DataFrame({"model": [f"m{j}" for j in range(m)]}), {"judged": arm})


def test_complete_cases_while_they_keep_95_percent():
    trials = np.ones((100, 2))
    trials[:5, 0] = 0
    c = count(_cells(trials, np.ones((100, 2))), "judged")
    assert (c.n, c.complete, c.note) == (95, True, "complete cases: 95 of 100 items")


def test_ragged_cells_need_both_runs_of_a_model_and_group_by_pattern():
    full, blind = np.ones((200, 2)), np.ones((200, 2))
    full[:80, 0] = 0  # model 0 has no full run on 80 items, so its blind run does not count there either
    c = count(_cells(full, blind), "judged")
    assert (c.n, c.complete) == (200, False)
    assert np.unique(c.total).tolist() == [1, 2]
    assert (c.total[:80] == 1).all() and (c.B[:80] == 1).all()
    assert len(np.unique(c.group)) == 2
    assert "120 of 200 items have every cell" in c.note


def test_why_not_names_the_missing_run():
    pool = tiny_pool({("m", "full"): KEYS, ("n", "full"): KEYS}, KEYS)
    assert "blind run" in why_not(pool, pool.arm)
    assert not pool.has_blind


def test_bounds_count_only_the_cells_that_count():
    """A blind abstention of a model whose full reply failed belongs to no count, so it cannot move a bound."""
    full, blind = ["A", "", "A"] * 10, ["hm", "hm", "A"] * 10
    replies = {(m, "full"): full for m in "ab"} | {(m, "blind"): blind for m in "ab"}
    replies["b", "full"] = ["A"] * 30
    audit = auditlib.audit(tiny_pool(replies, ["A"] * 30))
    row = audit.statistic("zero_gain_share", policy="bounds", arm="exact").iloc[0]
    assert (row["n"], row["low"], row["high"]) == (30, pytest.approx(1 / 3), 1.0)


@pytest.mark.parametrize(
    ("full", "more", "words"),
    [
        ([[0.9, 0.2], [0.7, 1.0]], {}, "other than 0 and 1"),
        ([[np.nan, 1], [0, 0]], {}, "other than 0 and 1"),
        ([["1", "0"], ["0", "1"]], {}, "other than 0 and 1"),
        ([[1, 0], [0, 1]], {"models": ["a"]}, "models has 1 entries"),
        ([[1, 0], [0, 1]], {"models": ["a", "a"]}, "same name"),
        ([[1, 0], [0, 1]], {"stratum": ["x"]}, "stratum has 1 entries"),
    ],
)
def test_from_hits_refuses_what_it_would_have_to_guess(full, more, words):
    with pytest.raises(AuditError, match=words):
        Pool.from_hits(np.array(full), **more)


def test_models_left_out_of_the_comparison_are_said_and_the_card_counts_the_rest():
    replies = {(m, c): KEYS * 5 for m in "abc" for c in ("full", "blind") if (m, c) != ("c", "blind")}
    audit = auditlib.audit(tiny_pool(replies, KEYS * 5))
    said = audit.coverage[(audit.coverage["model"] == "c") & (audit.coverage["condition"] == "blind")]
    assert said["reason"].str.contains("no scored run").any()
    assert audit.summary()["note"].str.contains("on 20 items x 2 models").any()


def test_uneven_draws_are_said():
    r = runs({(m, c): KEYS for m in "ab" for c in ("full", "blind")}, KEYS)
    again = r.responses[r.responses["model"] == "a"].assign(sample=1)
    import dataclasses

    audit = auditlib.audit(pool_of(dataclasses.replace(r, responses=pd.concat([r.responses, again])), params()))
    assert audit.coverage.loc[audit.coverage["model"] == "b", "reason"].str.contains("1 of 2 draws").any()


def test_items_without_a_letter_key_are_said():
    pool = tiny_pool({("m", "full"): ["A", "B", "C", "D"]}, ["A", "", "7", "D"])
    reasons = pool.coverage.loc[pool.coverage["what"] == "excluded", ["n", "reason"]]
    assert reasons["n"].tolist() == [1, 1]
    assert pool.arms["exact"].trials["full"][:, 0].tolist() == [1, 0, 0, 1]


def test_twenty_six_options_never_make_z_an_answer():
    options = [[f"o{i}" for i in range(28)]] * 3
    pool = tiny_pool({("m", "full"): ["Z", "A", "Y"]}, ["Z", "A", "Y"], options=options)
    assert pool.letters["full"][:, 0].tolist() == [ABSTAINED, 0, 24]
    assert pool.arms["exact"].trials["full"][:, 0].tolist() == [0, 1, 1]
    assert auditlib.audit(pool).detectors.set_index("detector").loc["distractor_similarity", "state"] == "run"


def test_names_that_the_tables_use_are_kept_apart():
    pool = tiny_pool({("m", "full"): KEYS}, KEYS, stratum=["all", "design:x", "", "y"])
    assert pool.strata.tolist() == ["(all)", "(design:x)", "(none)", "y"]
    with pytest.raises(AuditError, match="rename the model"):
        tiny_pool({("all", "full"): KEYS}, KEYS)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"audit": {"design": {"column": "nope", "positive": "VD"}}}, "which the items lack"),
        ({"audit": {"design": {"column": "stratum", "positive": "nope"}}}, "use one of x, y"),
        ({"models": [{"name": "m", "text_base": "nope"}]}, "which has no run"),
    ],
)
def test_params_that_name_nothing_are_refused(more, words):
    r = runs({("m", "full"): KEYS}, KEYS, stratum=["x", "x", "y", "y"])
    with pytest.raises(AuditError, match=words):
        pool_of(r, params(**more))


def test_replies_that_the_chain_cannot_read_are_said_with_what_would_read_them():
    colours = ["red", "blue", "green", "white"] * 5
    replies = {("text", "full"): colours, ("letter", "full"): KEYS * 5}
    pool = tiny_pool(replies, KEYS * 5)
    row = pool.coverage[(pool.coverage["model"] == "text") & (pool.coverage["what"] == "warning")].iloc[0]
    assert "add to audit.exact: option_text reads 100%" in row["reason"]
    both = tiny_pool(replies, KEYS * 5, settings={"exact": ["letters", "option_text"]})
    assert not both.coverage["reason"].str.contains("reads next to none").any()
