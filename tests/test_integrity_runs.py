"""The gate on runs: replies of others, verdicts of nobody, accuracies that nothing has."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
from builders import embedded_audit, runs, tiny_pool
from builders import params as make_params

import auditlib
from auditlib.integrity import check_runs
from auditlib.integrity.checks import CHECKS, gate_table
from auditlib.integrity.verdicts import same_reply_verdicts
from auditlib.reading import pool_of

KEYS = list("ABCD") * 15
LONG = [f"The picture number {i} shows a thing of its own kind. The answer is {k}" for i, k in enumerate(KEYS)]


def warned(pool, words):
    table = check_runs(pool)
    return table[table["reason"].astype(str).str.contains(words, regex=False)]


def test_one_run_under_two_names():
    other = [t.replace("picture", "image") for t in LONG]
    pool = tiny_pool({("a", "full"): LONG, ("b", "full"): LONG, ("c", "full"): other}, KEYS)
    found = warned(pool, "one run under two names")
    assert len(found) == 1 and "a and b" in found["reason"].iloc[0]


def test_equal_letters_are_one_run_only_with_equal_mistakes():
    right = {("a", "full"): KEYS, ("b", "full"): KEYS}
    assert not len(warned(tiny_pool(right, KEYS), "one run under two names"))
    wrong = [("B" if k == "A" else k) for k in KEYS]
    assert len(warned(tiny_pool({("a", "full"): wrong, ("b", "full"): wrong}, KEYS), "mistakes too")) == 1


def test_a_long_reply_given_to_other_items():
    said = [f"{'I look closely and compare what is there before I say anything. ' * 2}The answer is {k}" for k in KEYS]
    pool = tiny_pool({("a", "full"): said, ("b", "full"): LONG}, KEYS)
    found = warned(pool, "word for word")
    assert found["model"].tolist() == ["a"] and found["n"].iloc[0] == 60
    refusal = [
        "I cannot see any image here, so that I am not able to say which of these options is the right one. " * 2
    ]
    assert not len(warned(tiny_pool({("a", "full"): refusal * 60, ("b", "full"): LONG}, KEYS), "word for word"))


def test_everything_right_or_nothing_is_not_believed():
    pool = tiny_pool({("a", "full"): KEYS, ("b", "full"): ["A"] * 60}, KEYS)
    assert warned(pool, "accuracy is exactly")["model"].tolist() == ["a"]
    few = tiny_pool({("a", "full"): KEYS[:12], ("b", "full"): ["A"] * 12}, KEYS[:12])
    assert not len(warned(few, "accuracy is exactly"))


def test_fallback_under_the_name_of_a_judge():
    """VLMEvalKit#305: 30% of the verdicts come from exact matching."""
    read = runs({("a", "full"): LONG}, KEYS, judged={("a", "full"): [1.0] * 60})
    read.judgements.loc[read.judgements.index[:18], "source"] = "exact_fallback"
    found = warned(pool_of(read, make_params()), "really exact matching")
    assert found["n"].tolist() == [18] and "30% of 60" in found["reason"].iloc[0]


def test_equal_replies_judged_unlike():
    """VLMEvalKit#806: one judge, equal predictions, hits differ on 2 of 10."""
    hits = [1.0] * 10
    other = [0.0, 0.0, *hits[2:]]
    same = [f"it is {k}" for k in KEYS[:10]]
    pool = tiny_pool({("a", "full"): same, ("b", "full"): same}, KEYS[:10], judged={("a", "full"): hits,
                                                                                    ("b", "full"): other})  # fmt: skip
    table = same_reply_verdicts(pool)
    assert (len(table), int(table["unlike"].sum())) == (10, 2)
    assert (
        "of 10 replies that were judged more than once, 2 were judged unlike"
        in warned(pool, "unlike")["reason"].iloc[0]
    )


def test_nothing_is_warned_of_in_ordinary_runs():
    rng = np.random.default_rng(0)
    said = {(m, c): [str(x) for x in rng.choice(list("ABCD"), 60)] for m in "abc" for c in ("full",)}
    table = check_runs(tiny_pool(said, KEYS))
    assert set(table["what"]) <= {"warning"} and not table["reason"].str.contains("names|word for word|exactly").any()


def test_gate_table_tells_found_passed_and_why_not_run():
    audit = embedded_audit("tinysee")
    table = gate_table(audit).set_index("check")
    assert len(table) == len(CHECKS)
    lost = table.loc["lost_option"]
    assert (lost["state"], lost["n"], lost["severity"]) == ("found", 3, "high") and "17" in lost["examples"]
    assert table.loc["random_fill", "state"] == "found"
    assert table.loc["two_judges", "do"] == "the audit holds one set of verdicts"
    assert table.loc["equal_options", "state"] == "passed"


def test_gate_table_of_bare_hits_says_what_is_lacking():
    full, blind = (np.random.default_rng(0).random((30, 3)) < p for p in (0.7, 0.3))
    table = gate_table(auditlib.audit(auditlib.Pool.from_hits(full, blind))).set_index("check")
    assert table.loc["same_run", "do"] == "no replies" and table.loc["equal_options", "do"] == "no option texts"
    assert table.loc["blind_above_full", "state"] == "passed"


def test_conflicts_between_runs_stand_in_the_table():
    conflicts = pd.DataFrame(
        [
            {"what": "conflict", "item": "3", "n": 1, "reason": "option texts differ between a, b"},
            {"what": "conflict", "item": "", "n": 2, "reason": "keys differed between runs; those of a are used"},
            {"what": "conflict", "item": "", "n": 9, "reason": "category (stratum) differs between runs (b)"},
        ]
    ).assign(run="", model="", condition="")
    pool = tiny_pool({("a", "full"): KEYS, ("b", "full"): ["A"] * 60}, KEYS)
    audit = auditlib.audit(pool)
    shown = SimpleNamespace(**{k: getattr(audit, k) for k in ("items", "findings", "responses", "judgements", "models",
                                                              "has_blind")}, coverage=conflicts)  # fmt: skip
    table = gate_table(shown).set_index("check")
    assert table.loc[["key_differs", "options_differ", "category_differs"], "n"].tolist() == [2, 1, 9]
    assert table.loc["options_differ", "examples"] == "3"
