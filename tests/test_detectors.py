"""The six detectors and the gate's item checks, on items whose answer is plain."""

from __future__ import annotations

import json

import numpy as np
import pytest
from builders import runs, tiny_pool

import auditlib
from auditlib.detectors import DETECTORS, run_detectors
from auditlib.detectors.consensus_error import consensus
from auditlib.detectors.distractor_similarity import similarity
from auditlib.frames import COLUMNS, SEVERITIES
from auditlib.integrity import check_items, check_runs
from auditlib.params import AuditParams
from auditlib.pool import Pool

Z = -1


@pytest.mark.parametrize(
    ("votes", "key", "tier", "score"),
    [
        ([1, 1, 1], 0, "unanimous", 1.0),
        ([1, 1, Z], 0, "unanimous", 1.0),
        ([1, 2, Z], 0, "high", 0.75),
        ([1, 2, 3], 0, "high", 2 / 3),
        ([1, 1, 0], 0, "medium", (1 + 2 / 3 - 1 / 3) / 2),
        ([1, 0, 0], 0, "none", (1 + 1 / 3 - 2 / 3) / 2),
        ([0, 0, 0], 0, "none", 0.0),
    ],
)
def test_consensus_tiers_and_scores(votes, key, tier, score):
    c = consensus(np.array([votes], np.int8), np.array([key], np.int8))
    assert c.tier.tolist() == [tier]
    assert c.score[0] == pytest.approx(score)
    assert c.voters[0] == sum(v >= 0 for v in votes)


def test_one_vote_is_not_judged():
    c = consensus(np.array([[1, Z, Z], [1, 1, Z]], np.int8), np.array([0, 0], np.int8))
    assert c.keep.tolist() == [False, True]


def test_severity_of_unanimity_depends_on_the_voters():
    replies = {("a", "full"): ["B", "B"], ("b", "full"): ["B", "B"], ("c", "full"): ["B", "hm"]}
    f = DETECTORS["consensus_error"].detect(tiny_pool(replies, ["A", "A"]), AuditParams())
    assert f["severity"].tolist() == ["medium", "low"]
    assert [json.loads(e)["voters"] for e in f["evidence"]] == [3, 2]


def _hits(full, blind):
    return Pool.from_hits(np.array(full, np.uint8), np.array(blind, np.uint8))


def test_visual_dependency_categories_flags_and_scores():
    pool = _hits(
        [[1, 1, 1], [1, 1, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1]], [[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]]
    )
    f = DETECTORS["visual_dependency"].detect(pool, AuditParams())
    category = [json.loads(e)["category"] for e in f["evidence"]]
    assert category == ["visual_dependent", "visual_supplement", "text_only", "conflicting", "text_only"]
    assert f["flag"].tolist() == [False, False, True, True, True]
    assert f["severity"].tolist() == ["info", "info", "info", "low", "medium"]
    assert f["score"].tolist() == pytest.approx([0, 1 / 3, 1 / 2, 2 / 3, 1 / 2])


def test_a_gain_of_one_in_five_is_a_supplement_whatever_the_floats_say():
    """0.6 - 0.4 < 0.2 in floats; in integers 5 (3 - 2) >= 5."""
    pool = _hits([[1, 1, 1, 0, 0]], [[1, 1, 0, 0, 0]])
    f = DETECTORS["visual_dependency"].detect(pool, AuditParams())
    assert json.loads(f["evidence"][0])["category"] == "visual_supplement"
    loss = DETECTORS["visual_dependency"].detect(_hits([[1, 1, 0, 0, 0]], [[1, 1, 1, 0, 0]]), AuditParams())
    assert json.loads(loss["evidence"].iloc[0])["category"] == "text_only"


def test_findings_keep_the_contract():
    replies = {(m, c): ["A", "B", "hm", "D"] for m in "abc" for c in ("full", "blind")}
    audit = auditlib.audit(tiny_pool(replies, ["A", "A", "C", "D"]))
    f = audit.findings
    assert tuple(f.columns) == COLUMNS["findings"]
    assert f["score"].between(0, 1).all()
    assert set(f["severity"]) <= set(SEVERITIES)
    assert not f.duplicated(["item", "detector", "arm"]).any()
    assert set(f["item"]) == {"0", "1", "2", "3"}


def test_not_run_has_a_reason_and_no_zero():
    _, states = run_detectors(_hits([[1, 0], [0, 0]], [[0, 0], [0, 1]]), AuditParams(), DETECTORS)
    states = states.set_index("detector")
    assert states.loc["consensus_error", ["state", "reason"]].tolist() == ["not run", "no option letters of full runs"]
    assert states.loc["distractor_similarity", "reason"] == "the texts of the options are unknown"
    assert states.loc["visual_dependency", "state"] == "run"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("circle", "a circle", 1),
        ("The cat.", "cat", 1),
        ("0.5", "1/2", 1),
        ("5 cm", "5cm", 1),
        ("1,000", "1000", 1),
        ("x = 2", "x=2", 1),
        ("Ｂ ig", "B ig", 1),
        ("left", "left side", 0.9),
        ("3", "3 dots", 0.9),
        ("red car", "car", 0.9),
        ("3 dots", "4 dots", 0),
        ("$6", "$7", 0),
        ("-5", "5", 0),
        ("x=2", "x=3", 0),
        ("Figure 1", "Figure 2", 0),
        ("5 cm", "5 km", 0),
        ("+", "-", 0),
        ("2:30", "2:45", 0),
        ("50%", "50", 0),
    ],
)
def test_option_similarity(a, b, expected):
    assert similarity(a, b) == similarity(b, a) == expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("not left", "left"),
        ("all cats", "cats"),
        ("CO", "Co"),
        ("Aa", "aa"),
        ("A", "B"),
        ("top left", "bottom left"),
        ("red", "read"),
    ],
)
def test_options_that_differ_are_below_the_flag(a, b):
    assert similarity(a, b) < 0.9


def test_an_option_equal_to_the_key_is_of_high_severity():
    options = [["circle", "a circle", "square", "star"], ["red", "blue", "a blue", "star"]]
    f = DETECTORS["distractor_similarity"].detect(
        tiny_pool({("m", "full"): ["A", "A"]}, ["A", "A"], options=options), AuditParams()
    )
    assert f["severity"].tolist() == ["high", "info"]
    assert f["flag"].tolist() == [True, True]


def _gate(options, key, written=None):
    r = runs({("m", "full"): ["B"]}, [key], options=[options])
    if written is not None:
        r.items["options_written"] = [written]
    from builders import params

    from auditlib.reading import pool_of

    pool = pool_of(r, params())
    return [json.loads(e)["check"] for e in check_items(pool)["evidence"]]


@pytest.mark.parametrize(
    ("options", "key", "written", "checks"),
    [
        (["red", "blue"], "C", None, ["key_outside_options"]),
        (["", "Two", "One", "Three"], "A", None, ["key_without_text"]),
        (["", "Two", "One", "Three"], "A", ["None", "Two", "One", "Three"], ["lost_option"]),
        (["Two", "One", ""], "C", ["Two", "One", "None"], ["lost_option"]),
        (["None", "Two", "One", "Three"], "A", ["None", "Two", "One", "Three"], []),
        (["red", "blue", "green", ""], "B", ["red", "blue", "green", ""], []),
    ],
)
def test_gate_on_keys_and_options(options, key, written, checks):
    assert _gate(options, key, written) == checks


def test_same_run_twice_is_said():
    text = [f"I look at the picture number {i} and answer A." for i in range(40)]
    pool = tiny_pool({("m", "full"): text, ("m", "blind"): text}, ["A"] * 40)
    assert check_runs(pool)["reason"].str.contains("probably the same run twice").any()


def test_blind_above_full_is_said():
    pool = tiny_pool({("m", "full"): ["B"] * 4, ("m", "blind"): ["A"] * 4}, ["A"] * 4)
    assert check_runs(pool)["reason"].str.contains("exceeds that with it").any()
