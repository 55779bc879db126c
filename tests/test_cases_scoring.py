"""Awkward replies, verdicts and pools from public reports: extraction, scoring, duplicates, clusters, agreement.

Each test names the threads that told of the input; variants of the same kind stand beside it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from case_files import FOUR, defects, one, said, share, table_pool

import auditlib
from auditlib.extract import extract

COLOURS = list(FOUR.values())
NAMES = list("ABCD")


# one reply ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "letter", "rule"),
    [
        # UKGovernmentBEIS/inspect_ai#5145: decorated letters
        ("ANSWER: $B$", COLOURS, "B", "keyword"),
        ("ANSWER: **B**", COLOURS, "B", "keyword"),
        ("ANSWER: (B)", COLOURS, "B", "keyword"),
        ("B", COLOURS, "B", "bare"),
        ("ANSWER: `B`", COLOURS, "B", "keyword"),
        ("**Answer:** $\\mathbf{B}$", COLOURS, "B", "keyword"),
        # VLMEvalKit#1552: words that open with a to d
        ("The answer is difficult to determine", COLOURS, "Z", None),
        ("The answer is blue", COLOURS, "Z", None),
        ("The answer is clearly hidden", COLOURS, "Z", None),
        # aniri15/OPD-V#2: the first capital of "Answer"
        ("Answer", COLOURS, "Z", None),
        ("Answer: B", COLOURS, "B", "keyword"),
        ("Answer: the blue one", COLOURS, "Z", None),
        ("Analysis shows D", COLOURS, "Z", None),
        ("Based on the picture, the answer is C.", COLOURS, "C", "keyword"),
        # openai/evals#1447, #1767: two letters are no answer
        ("ANSWER: AB", COLOURS, "Z", None),
        ("ANSWER: A, B", COLOURS, "Z", "two-letters"),
        ("ANSWER: A or C", COLOURS, "Z", "two-letters"),
        # modelscope/evalscope#494: a letter beyond the options is a class of its own
        ("G", [*COLOURS, "grey"], "Z", "outside-options"),
        ("The answer is (G).", [*COLOURS, "grey"], "Z", "outside-options"),
        ("D", ["red", "blue", "green"], "Z", "outside-options"),
        # MMMU-Benchmark/MMMU#83, #84: options that are letters
        ("A. B", ["B", "A"], "A", "start+letter-text"),
        ("The answer is A", ["C", "A", "B"], "A", "keyword+letter-text"),
        # huggingface/lighteval#869, allenai/olmo-eval#348: reasoning goes before the reading
        ("<think>The answer is A, or C?</think>B", COLOURS, "B", "bare"),
        ("The answer is A ... no.</think>The answer is B", COLOURS, "B", "keyword"),
        ("<think>The answer is A, but let me", COLOURS, "Z", "truncated"),
        ("<think>A</think><think>C</think>\n\nB.", COLOURS, "B", None),
    ],
)
def test_letters_of_one_reply(text, options, letter, rule):
    got = extract(text, options)
    assert got.value == letter
    assert rule is None or rule in got.rule, got.rule


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"\boxed{A} so x = 3, then \boxed{C}", "C"),
        (r"First \boxed{A}. Finally \boxed{\text{B}}.", "B"),
        (r"\boxed{A} and then \boxed{", "Z"),
        (r"\boxed{A}, \boxed{B}, \boxed{the sum}", "Z"),
    ],
)
def test_last_box_counts(text, letter):
    """open-compass/VLMEvalKit#638: every boxed value was taken; 31.8% against 22.5%."""
    assert extract(text, COLOURS, ("boxed",)).value == letter


# replies of a pool ----------------------------------------------------------------------------------------------------


def test_unclosed_reasoning_is_an_incomplete_reply(tmp_path):
    """huggingface/lighteval#869, allenai/olmo-eval#348: a think block that never ends has no answer."""
    replies = ["<think>A</think>B", "<think>maybe B. The answer is B", "B"]
    pool = table_pool(tmp_path, [{"item": i, "key": "B", "prediction": r} for i, r in enumerate(replies)])
    assert pool.responses["status"].tolist() == ["ok", "truncated", "ok"]
    assert share(pool, "exact") == (2, 2) and said(pool, "think block never ends") == [("", 1)]


def test_letters_beyond_the_options_are_counted_apart(tmp_path):
    """modelscope/evalscope#494: G where the options end at D is an abstention with its own reason."""
    pool = table_pool(tmp_path, [{"item": i, "key": "B", "prediction": r} for i, r in enumerate("GBFA")])
    rules = pool.responses["rule"].tolist()
    assert [r.endswith("outside-options") for r in rules] == [True, False, True, False]
    assert share(pool, "exact") == (1, 4) and int(pool.abstained["full"].sum()) == 2


def test_abstentions_beside_accuracy_and_gain(tmp_path):
    """MMStar-Benchmark/MMStar#6, #4: a base model that refuses 40% of the questions makes leakage look larger."""
    rows = [{"item": i, "model": "vlm", "condition": c, "key": "A",
             "prediction": ("A" if i < 8 else "B") if c == "full" else ("no idea" if i < 4 else "A" if i < 7 else "B")}
            for c in ("full", "blind") for i in range(10)]  # fmt: skip
    found = auditlib.audit(table_pool(tmp_path, rows))
    assert one(found, "blind_unparseable_rate", models="vlm")["estimate"] == 0.4
    blind = found.statistic("accuracy", models="vlm", level="blind", arm="exact").set_index("policy")["estimate"]
    assert blind.to_dict() == {"wrong": 0.3, "excluded": 0.5, "chance": pytest.approx(0.4)}
    gains = found.statistic("multimodal_gain", models="vlm", arm="exact").set_index("policy")["estimate"]
    assert gains["wrong"] == pytest.approx(0.5)  # 8 of 10 against 3 of 10
    assert gains["excluded"] == pytest.approx(4 / 6 - 3 / 6)  # over the six items with an answer in both runs
    assert gains["chance"] == pytest.approx(0.4)


def test_accuracy_between_fill_policies(tmp_path):
    """MatthewCYM/VoiceBench#15: a high failure rate still showed 24%, for chance filled the gaps."""
    rows = [{"item": i, "model": "m", "key": NAMES[i % 4], "prediction": NAMES[i % 4] if i < 4 else "no idea"}
            for i in range(100)]  # fmt: skip
    found = auditlib.audit(table_pool(tmp_path, rows))
    got = found.statistic("accuracy", models="m", level="full", arm="exact").set_index("policy")["estimate"]
    assert got.to_dict() == {"wrong": 0.04, "excluded": 1.0, "chance": pytest.approx(0.04 + 0.96 / 4)}


def test_macro_and_micro_means_each_have_their_interval(tmp_path):
    """EleutherAI/lm-evaluation-harness pull #3882, #1390: a group's error bar belongs to the mean beside it."""
    rows = [{"item": i, "model": "m", "key": "A", "stratum": "easy" if i < 20 else "hard",
             "prediction": "A" if i < 18 or i % 5 == 0 else "B"} for i in range(100)]  # fmt: skip
    found = auditlib.audit(table_pool(tmp_path, rows))
    micro = one(found, "accuracy", models="m", level="full", arm="exact", policy="wrong")
    macro = one(found, "accuracy_macro", models="m", level="full", arm="exact")
    assert micro["estimate"] == pytest.approx((18 + 16) / 100)
    assert macro["estimate"] == pytest.approx((18 / 20 + 16 / 80) / 2) and macro["n"] == 2
    assert micro["low"] < micro["estimate"] < micro["high"] < macro["low"] < macro["estimate"] < macro["high"]


# keys, duplicates, clusters -------------------------------------------------------------------------------------------


def test_key_that_is_always_the_first_option(tmp_path):
    """penghao-wu/vstar#8: the right answer is always option A; exact p by the multinomial."""
    rows = [{"item": i, "model": "m", "key": "A", "prediction": "A"} for i in range(12)]
    row = one(auditlib.audit(table_pool(tmp_path, rows)), "key_position")
    assert row["p_method"] == "exact" and row["p"] == pytest.approx(float(4 * Fraction(1, 4) ** 12))
    rows = [r | {"key": "AB"[r["item"] % 2], "A": "yes", "B": "no"} for r in rows]
    assert one(auditlib.audit(table_pool(tmp_path, rows)), "key_position")["p"] == pytest.approx(1.0)


def question(i):
    words = ["lamp", "river", "engine", "violin", "castle", "meadow", "harbour", "pepper", "glacier", "saddle"]
    return f"Which {words[i % 10]} stands beside the {words[i // 10 % 10]} of the {words[i // 100]}?"


def test_duplicated_questions(tmp_path):
    """FuxiaoLiu/MMC#19, hmxiong/StreamChat#17, JinjieNi/MixEval#10: 30 of 303 questions stand there twice."""
    rows = [{"item": i, "model": m, "key": "A", "prediction": "AB"[i % 3 == 0], "question": question(i % 273),
             "image_key": f"p{i % 273}"} for m in "mn" for i in range(303)]  # fmt: skip
    found = auditlib.audit(table_pool(tmp_path, rows))
    named = {i for i, check in defects(found) if check == "duplicate_item"}
    assert named == {str(i) for i in [*range(30), *range(273, 303)]}
    row = one(found, "effective_items")
    assert row["n"] == 303 and row["estimate"] == pytest.approx(303**2 / (243 + 30 * 4))
    row = one(found, "accuracy", models="m", level="full", arm="exact", policy="wrong")
    assert row["estimate"] == pytest.approx(2 / 3) and "cluster" in row["note"]


def test_duplicates_with_different_keys_contradict_each_other(tmp_path):
    """FuxiaoLiu/MMC#19, the same kind: one of the two keys must be wrong."""
    rows = [{"item": i, "key": "AB"[i == 40], "prediction": "A", "question": question(i % 40),
             "image_key": f"p{i % 40}"} for i in range(41)]  # fmt: skip
    found = defects(auditlib.audit(table_pool(tmp_path, rows)))
    assert found == {("0", "contradictory_duplicate"): "high", ("40", "contradictory_duplicate"): "high"}


def test_interval_over_pictures_is_wider(tmp_path):
    """JinjieNi/MixEval#10, UKGovernmentBEIS/inspect_ai#1251: ten items of one picture are answered alike."""
    rows = [{"item": i, "model": "m", "key": "A", "prediction": "AB"[i // 10 % 2], "question": question(i)}
            for i in range(200)]  # fmt: skip
    width = []
    for more in ({}, {"image_key": True}):
        table = [r | ({"image_key": f"p{r['item'] // 10}"} if more else {}) for r in rows]
        row = one(auditlib.audit(table_pool(tmp_path, table)), "accuracy", models="m", level="full", arm="exact",
                  policy="wrong")  # fmt: skip
        assert row["estimate"] == 0.5
        width.append(row["high"] - row["low"])
    assert width[1] > 2.5 * width[0]  # sqrt(10) for items that are wholly alike


def test_repeats_in_a_table_are_no_further_items(tmp_path):
    """UKGovernmentBEIS/inspect_ai#1251, pulls #1113, #1118: eight samples of 30 items are 30 items."""
    width = []
    for repeats in (1, 8):
        rows = [{"item": i, "model": "m", "sample": s, "key": "A", "prediction": f"{'AB'[i % 2]}. take {s}"}
                for i in range(30) for s in range(repeats)]  # fmt: skip
        pool = table_pool(tmp_path, rows)
        assert share(pool, "exact") == (15 * repeats, 30 * repeats)
        row = one(auditlib.audit(pool), "accuracy", models="m", level="full", arm="exact", policy="wrong")
        width.append(row["high"] - row["low"])
    assert width[1] >= 0.95 * width[0]


# agreement ------------------------------------------------------------------------------------------------------------


def kappa(tmp_path, replies):
    rows = [{"item": i, "model": m, "key": "A", "prediction": r} for m, texts in replies.items()
            for i, r in enumerate(texts) if r]  # fmt: skip
    found = auditlib.audit(table_pool(tmp_path, rows))
    return found.statistic("correctness_kappa", arm="exact")


def test_kappa_where_all_agree(tmp_path):
    """statsmodels#4387, #7657, #7781: one where raters agree on two categories, none with a note where there is one."""
    assert kappa(tmp_path, {"m": "AABB", "n": "AABB"})["estimate"].tolist() == [1.0]
    row = kappa(tmp_path, {"m": "AAAA", "n": "AAAA"}).iloc[0]
    assert math.isnan(row["estimate"]) and row["note"]
    # three of four agree: P = .75, Pe = (5/8)^2 + (3/8)^2
    expected = 25 / 64 + 9 / 64
    got = kappa(tmp_path, {"m": "AABB", "n": "AAAB"})["estimate"].tolist()
    assert got == pytest.approx([(0.75 - expected) / (1 - expected)])


def test_kappa_of_raters_with_unequal_items(tmp_path):
    """statsmodels#7781: items that a rater lacks are left out and the number of items is printed."""
    row = kappa(tmp_path, {"m": ["A", "A", "B", "B", "A"], "n": ["A", "A", "B", "B", ""]})
    assert row[["n", "estimate"]].values.tolist() == [[4, 1.0]]


@pytest.mark.parametrize("twice", [{"prediction": "B"}, {"hit": 0}])
def test_rater_and_item_twice(tmp_path, twice):
    """nltk/nltk#2302: a pair of rater and item that stands there twice is refused, not counted twice."""
    rows = [{"item": i, "model": "m", "key": "A", "prediction": "A", "hit": 1} for i in (0, 1)]
    with pytest.raises(auditlib.AuditError, match=r"item '1' of m .*twice") as error:
        table_pool(tmp_path, [*rows, rows[1] | twice])
    assert error.value.row == 4 and error.value.mend
    pool = table_pool(tmp_path, [*rows, rows[1]])  # an equal copy is counted once
    assert share(pool, "exact") == (2, 2) and [n for _, n in said(pool, "repeats an earlier one")] == [1]


def test_verdict_files_and_fallbacks_of_a_table(tmp_path):
    """hexo-ai/sia pull #57: graded and missing verdicts keep their own denominators."""
    rows = [{"item": i, "model": "m", "hit": h} for i, h in enumerate(["1", "0.5", "", "0"])]
    pool = table_pool(tmp_path, rows)
    assert share(pool, "judged") == (3, 6)  # halves: 2 + 1 + 0 of three verdicts
    assert one(auditlib.audit(pool), "accuracy", models="m", level="full", policy="wrong")["estimate"] == 0.5
