"""The gate on items: what files prove about keys, options and repeated items (cases of public reports)."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pytest
from builders import params, runs, tiny_pool

from auditlib.integrity import check_items, integrity_rows
from auditlib.integrity.ceiling import ceiling_rows, cluster_rows
from auditlib.integrity.duplicates import duplicates
from auditlib.metrics.rows import statistics_frame
from auditlib.reading import pool_of

FOUR = ["red", "blue", "green", "white"]


def gate(options, key="A", *, written=None, n=1, settings=None, **columns):
    """Check -> severity of one item (the first of ``n`` alike)."""
    r = runs({("m", "full"): ["B"] * n}, [key] * n, options=[options] * n, judged={("m", "full"): [1.0] * n}, **columns)
    if written is not None:
        r.items["options_written"] = [written] * len(r.items)
    return _said(check_items(pool_of(r, params())))


def _said(found: pd.DataFrame) -> dict[str, str]:
    return {json.loads(e)["check"]: s for e, s in zip(found["evidence"], found["severity"])}


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        (["a", "b", "c", "d", "e", "f"], "J", {"key_outside_options": "high"}),  # MMT-Bench#5
        (["red", "blue"], "C", {"key_outside_options": "high"}),  # VLMEvalKit#677
        (["", "Two", "One", "Three"], "A", {"key_without_text": "high"}),  # VLMEvalKit#1559
        (["None", "Two", "One", "Three"], "A", {}),
        (FOUR, "?", {"key_placeholder": "high"}),
        (FOUR, "N/A", {"key_placeholder": "high"}),
        (["N/A", "blue"], "N/A", {}),
        (FOUR, "purple", {"key_text_unmatched": "high"}),  # MMAU#12
        (FOUR, "Blue ", {}),
        (FOUR, "A, C", {}),
        (FOUR, "AB", {}),
        (FOUR, "['A', 'C']", {}),
    ],
)
def test_keys(options, key, expected):
    assert gate(options, key) == expected


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        (["red", "red", "green"], "A", {"equal_options": "high"}),
        (["red", " red", "green"], "C", {"equal_options": "medium"}),
        (["Aa", "aa", "AA"], "A", {"equal_options": "low"}),
        (["10²", "102", "11"], "A", {"equal_options": "low"}),
        (["red", "", "green", "white"], "A", {"empty_option_inside": "medium"}),
        (["red", "blue", "", ""], "A", {}),  # padding
        (["red", "", ""], "A", {"single_option": "medium"}),
        (["B", "A", "C"], "A", {"letter_valued_options": "low"}),  # MMMU#83
        (["A", "B", "C"], "A", {}),
        (["x", "y", "Both of the above"], "A", {"position_dependent_option": "info"}),
        (["All of the above", "x", "y"], "A", {"position_dependent_option": "medium"}),
        (["x", "y", "All of the above", "None of the above"], "A", {"position_dependent_option": "info"}),
        (["x", "y", "A and B"], "A", {"position_dependent_option": "info"}),
        (["x", "y", "以上都不对"], "A", {"position_dependent_option": "info"}),
        (["A/(A+C)", "A + B", "C/D"], "A", {}),
        (["the shelf above the door", "none", "x and y"], "A", {}),
        (["vitamin A and fibre", "both sides", "neither"], "A", {}),
    ],
)
def test_options(options, key, expected):
    assert gate(options, key) == expected


def test_a_lost_option_is_said_once():
    assert gate(["Two", "", "Three"], "A", written=["Two", "None", "Three"]) == {"lost_option": "high"}
    assert gate(["Two", "", "Three"], "B", written=["Two", "None", "Three"]) == {"lost_option": "high"}
    assert gate(["Two", "", "Three"], "A", written=["Two", "", "Three"]) == {"empty_option_inside": "medium"}


def test_shuffled_orders_make_above_a_fault():
    r = runs({("m", "full"): ["B"]}, ["A"], options=[["x", "y", "Either of the above"]])
    r.responses["order"] = "CAB"
    assert _said(check_items(pool_of(r, params()))) == {"position_dependent_option": "medium"}


def _items(questions, keys=None, pictures=None, options=None, **more):
    n = len(questions)
    frame = pd.DataFrame({"item": [str(i) for i in range(n)], "question": questions, "key": keys or ["A"] * n})
    frame["options"] = options or [FOUR] * n
    if pictures:
        frame["image_key"] = pictures
    return frame.assign(answer_type="choice", **more)


def _filled(questions, n=40, **facts):
    """The questions among others that are all different."""
    words = ["lamp", "river", "engine", "violin", "castle", "meadow", "harbour", "pepper", "glacier", "saddle"]
    rest = [f"Which {words[i % 10]} stands beside the {words[(i // 10 + 3) % 10]} of owner {i}?" for i in range(n)]
    return _items(questions + rest, **{k: v + [d] * n if not callable(d) else v + [d(i) for i in range(n)]
                                       for k, (v, d) in facts.items()})  # fmt: skip


def _named(items):
    return {(i, d[0]): d[1] for i, d in duplicates(items).found}


LONG = "What is the colour of the car that stands in front of the house?"


def test_equal_text_and_picture_is_a_duplicate_and_with_another_key_a_contradiction():
    items = _filled([LONG, LONG.upper(), LONG], pictures=(["p", "p", "q"], lambda i: f"x{i}"))
    assert _named(items) == {("0", "duplicate_item"): "low", ("1", "duplicate_item"): "low"}
    items["key"] = ["A", "B", *["A"] * 41]
    assert _named(items) == {("0", "contradictory_duplicate"): "high", ("1", "contradictory_duplicate"): "high"}


def test_the_same_answer_under_another_letter_is_no_contradiction():
    turned = [FOUR, FOUR[::-1]]
    items = _filled(
        [LONG, LONG], keys=(["A", "D"], "A"), options=(turned, FOUR), pictures=(["p", "p"], lambda i: f"x{i}")
    )
    assert set(_named(items).values()) == {"low"}


def test_unknown_pictures_prove_nothing():
    items = _filled([LONG, LONG], keys=(["A", "A"], "A"))
    found = duplicates(items).found
    assert {d[1] for _, d in found} == {"info"} and all("picture unknown" in d[2] for _, d in found)
    items = _filled([LONG, LONG], keys=(["A", "B"], "A"))
    assert set(_named(items).values()) == {"low"}


def test_texts_that_repeat_by_design_are_only_counted():
    items = _items(["Is the cat left of the dog?"] * 60, keys=["A", "B"] * 30)
    found = duplicates(items)
    assert (found.found, found.repeats, found.by_design) == ([], 60, True)
    few = _items(
        [*["Is it red or is it blue in here?"] * 4, *[f"Question number {i} about things?" for i in range(96)]]
    )
    few["answer_type"] = ["yesno"] * 4 + ["choice"] * 96
    assert duplicates(few).by_design


@pytest.mark.parametrize(
    ("other", "near"),
    [
        (LONG.replace("?", " ?"), True),
        (LONG.replace("colour", "color"), True),
        (LONG.replace("the house", "a house"), True),
        (LONG.replace("front", "back"), False),
        (LONG.replace("house", "horse"), True),
    ],
)
def test_near_duplicates_differ_in_spelling_only(other, near):
    items = _filled([LONG, other], pictures=(["p", "p"], lambda i: f"x{i}"))
    assert (("0", "near_duplicate_item") in _named(items)) == near
    items["image_key"] = [f"p{i}" for i in range(len(items))]
    assert not _named(items)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("How many of the 12 apples in the basket are green?", "How many of the 13 apples in the basket are green?"),
        ("Compute the value of x + y at the point P in it.", "Compute the value of x - y at the point P in it."),
        ("Does the bar increase from the first to the second?", "Does the bar decrease from the first to the second?"),
        ("Is the dog to the left of the cat in the picture?", "Is the cat to the left of the dog in the picture?"),
    ],
)  # fmt: skip
def test_other_questions_in_like_words_are_no_duplicates(one, two):
    assert not _named(_filled([one, two], pictures=(["p", "p"], lambda i: f"x{i}")))


def test_ten_thousand_items_take_seconds():
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(3000)])
    questions = [" ".join(words[rng.integers(0, 3000, 12)]) for _ in range(9_990)]
    questions += [q.replace("word", "Word", 1) + "!" for q in questions[:10]]
    start = time.perf_counter()
    found = duplicates(_items(questions))
    assert time.perf_counter() - start < 20
    assert len({i for i, d in found.found if d[0] == "near_duplicate_item"}) == 20


def test_rotations_of_one_item_are_no_duplicates():
    items = _filled([LONG, LONG], pictures=(["p", "p"], lambda i: f"x{i}"))
    items["cluster"] = ["7", "7", *[None] * 40]
    assert not _named(items)


def test_attainable_ceiling_of_32_of_491():
    """OralGPT#11: 32 of 491 keys point at an empty option; 459/491 = 93.48%."""
    options = [["", "Two", "Three"] if i < 32 else ["One", "Two", "Three"] for i in range(491)]
    pool = tiny_pool({("m", "full"): ["A"] * 491}, ["A"] * 491, options=options,
                     stratum=["x" if i < 64 else "y" for i in range(491)], source=["s", "t"] * 245 + ["s"])  # fmt: skip
    rows = statistics_frame("p", ceiling_rows(pool)).set_index(["stratum", "level"])
    assert round(100 * rows.loc[("all", ""), "estimate"], 2) == 93.48 and rows.loc[("all", ""), "n"] == 491
    assert rows.loc[("x", ""), "estimate"] == 0.5 and rows.loc[("y", ""), "estimate"] == 1
    assert rows.loc[("all", "source s"), "estimate"] == pytest.approx(1 - 16 / 246)
    assert "32 of 491" in rows.loc[("all", ""), "note"]
    assert check_items(pool)["item"].nunique() == 32


def test_effective_items_of_shared_pictures():
    """Two pictures with two items each, one with one: (2+2+1)^2 / (4+4+1)."""
    pool = tiny_pool({("m", "full"): ["A"] * 5}, ["A"] * 5, image_key=["p", "p", "q", "q", "r"])
    row = cluster_rows(pool)[0]
    assert row["estimate"] == row["low"] == pytest.approx(25 / 9) and row["high"] == row["n"] == 5
    assert "2 pictures are shared by 4 items" in row["note"]


def test_denominators_add_up():
    replies = {("a", "full"): ["A", "B", "no idea", ""], ("a", "blind"): ["A", "A", "A", "A"],
               ("b", "full"): ["A", "A", "A", "A"]}  # fmt: skip
    pool = tiny_pool(replies, ["A"] * 4)
    from auditlib.integrity.denominators import denominators

    table = denominators(pool).set_index(["model", "condition"])
    wanted = {"asked": 4, "answered": 3, "abstained": 1, "failed": 1, "missing": 0, "scored_exact": 3}
    assert table.loc[("a", "full"), list(wanted)].to_dict() == wanted
    assert ("b", "blind") not in table.index
    rows = statistics_frame("p", integrity_rows(pool))
    mine = rows[(rows["models"] == "a") & (rows["level"] == "full")].set_index("metric")["n"]
    assert (mine["items_asked"], mine["items_failed"], mine["items_scored"]) == (4, 1, 3)
