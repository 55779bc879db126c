"""Properties of the readers on arbitrary text: total, bounded to the options shown, blind to decoration, linear."""

from __future__ import annotations

import time

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from auditlib.extract import READERS, extract, extract_frame, read_letters, read_option_text
from auditlib.extract.text import prepare, read_options

LETTERS = "ABCDEFGHIJ"
OPTIONS = ["red", "blue", "green", "A dog", "C. elegans"]
# fmt: off
#: pieces that the rules look for, so that random texts reach them
PIECES = [
    "answer", " is ", "option ", ": ", "A", "B", "E", "I", "Z", "not ", ", ", " or ", " and ", ". ", "\n", "(",
    ")", "**", "$", "\\boxed{", "}", "<think>", "</think>", "yes", "no", "red", "blue", "A dog", "wrong",
    "3.5 cm", "1/2", "1e999", "\u0300", "\u200b", "，", "😀", "because ",
]
# fmt: on
pieced = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=25).map("".join)
texts = st.one_of(st.text(alphabet=st.characters(), max_size=80), pieced)
option_lists = st.lists(st.one_of(st.just(""), st.sampled_from(OPTIONS), st.text(max_size=8)), max_size=10)
few = settings(max_examples=150, deadline=None)


@few
@given(texts, option_lists)
@example("\ud800 \x00 Answer: \udfff", ["a", "b"])
@example("answer: " + "9" * 400, ["1", "2"])
@example("1" * 10 + "e999", ["1", "2"])
def test_readers_never_raise_and_keep_to_the_options_shown(text, options):
    shown = read_options(options).shown
    for name in ("letters", "boxed", "option_text"):
        value, rule = READERS[name](text, options)
        assert rule and (value == "Z" or value in shown)
    value, rule = READERS["yesno"](text, options)
    assert rule and value in ("yes", "no", "Z")
    value, rule = READERS["numeric"](text, options)
    assert rule and value and (value in (*shown, "Z") or not read_options(options).texts)
    assert extract(text, options, tuple(READERS)) == extract(text, options, tuple(READERS))


# fmt: off
DECORATIONS = [
    "{}", "({})", "[{}]", "**{}**", "*{}*", "__{}__", "${}$", '"{}"', "“{}”", "`{}`", "{}.", "{})", "{}:",
    "{}。", "（{}）", " {} ", "\n{}\n", "\u200b{}\u2060", "<b>{}</b>", "\\text{{{}}}", "\\({}\\)", "- {}", "> {}",
    "✅ {}", "{}<|im_end|>",
]
# fmt: on


@few
@given(st.sampled_from(LETTERS), st.lists(st.sampled_from(DECORATIONS), max_size=3))
def test_a_decorated_letter_stays_the_letter(letter, decorations):
    text = letter
    for decoration in decorations:
        text = decoration.format(text)
    assert read_letters(text, [""] * 10) == (letter, "bare")


# fmt: off
STATEMENTS = [
    "Answer: {}", "The answer is {}.", "Final answer: **{}**", "So the correct option is ({}).", "Option {}",
    "{}. text", "{}\n\nText", "Option J is wrong. The answer is {}", "{} because it fits", '{{"answer": "{}"}}',
    "<answer>{}</answer>", "ANSWER: $\\boxed{{{}}}$",
]
# fmt: on


@few
@given(st.sampled_from(LETTERS[:9]), st.sampled_from(STATEMENTS))
def test_no_letter_is_read_differently_from_another(letter, statement):
    assert read_letters(statement.format(letter), [""] * 10).value == letter
    assert read_letters(statement.format(letter), [""] * LETTERS.index(letter)).rule == "outside-options"


@few
@given(texts, texts, option_lists)
@example("reasons", "\u0338 B", ["a", "b"])
def test_a_think_block_in_front_changes_nothing(thoughts, text, options):
    for name, reader in READERS.items():
        assert reader(f"<think>{thoughts}</think>{text}", options) == reader(text, options), name


@few
@given(texts, st.text(alphabet=" \n\t\u200b\u2060\ufeff\x00", max_size=6))
def test_invisible_surroundings_change_nothing(text, space):
    for name, reader in READERS.items():
        assert reader(space + text + space, OPTIONS) == reader(text, OPTIONS), name


@few
@given(texts)
def test_without_a_capital_there_is_no_letter(text):
    assert not any(c in LETTERS for c in prepare(text.lower())[0])
    assert read_letters(text.lower(), OPTIONS).value == "Z"


@few
@given(texts)
def test_an_item_without_options_accepts_no_letter(text):
    assert read_letters(text, []).value == "Z"


@few
@given(st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=6, unique=True), st.data())
def test_an_options_own_text_never_names_another_option(options, data):
    place = data.draw(st.integers(0, len(options) - 1))
    assert read_option_text(options[place], options).value in (LETTERS[place], "Z")


@few
@given(st.lists(st.tuples(st.sampled_from(["1", "2"]), pieced), max_size=12), st.randoms(use_true_random=False))
def test_a_frame_is_read_row_by_row(cells, shuffle):
    items = pd.DataFrame({"item": ["1", "2"], "options": [OPTIONS, ["x", "y"]], "answer_type": ["choice", "choice"]})
    expected = [extract(text, items["options"][int(item) - 1]) for item, text in cells]
    order = list(range(len(cells)))
    shuffle.shuffle(order)
    table = pd.DataFrame(cells, columns=["item", "prediction"]).iloc[order]
    filled = extract_frame(table, items).sort_index()
    assert list(zip(filled["letter"], filled["rule"])) == [tuple(e) for e in expected]


# fmt: off
LONG = [
    "a", "A", " ", "(", "*", "<", "\\", "$", "\n", "-", "1", "1,", "A, ", "A B ", "A.B.", "B\n", "x. ", "yes, ",
    "no ", "answer ", "answer: ", "answer is ", "answer: A, ", "not option A ", "Option A: x\n",
    "A. red B. blue ", "<think>", "<think></think>", "<b ", "&lt;", "\\boxed{", "<|begin_of_box|>", "\u200b",
    "\u0300\u0316", "é\u0323", "ﷺ", "\ud800", "Option A is not quite ",
]
# fmt: on


@pytest.mark.parametrize("piece", LONG)
def test_time_is_linear_in_the_length(piece):
    """100,000 characters by all readers; anything quadratic takes minutes (the bound is wide for a busy machine)."""
    text = (piece * (100_000 // len(piece))) + "!"
    start = time.perf_counter()
    for reader in READERS.values():
        reader(text, OPTIONS)
    assert time.perf_counter() - start < 6


def test_twenty_thousand_rows_take_seconds():
    said = [
        "B",
        "(C)",
        "The answer is {}.",
        "B. blue",
        "It is blue {}",
        "I cannot see image {}: the answer is unclear.",
    ]
    options = [[f"a{i}", "b", "c", "d"] for i in range(2000)]
    items = pd.DataFrame({"item": [str(i) for i in range(2000)], "options": options})
    rows = [(str(i % 2000), said[i % 6].format(i)) for i in range(20_000)]
    start = time.perf_counter()
    filled = extract_frame(pd.DataFrame(rows, columns=["item", "prediction"]), items, ("letters", "option_text"))
    assert time.perf_counter() - start < 8
    assert filled["letter"].value_counts().to_dict() == {"B": 6667, "Z": 9999, "C": 3334}
