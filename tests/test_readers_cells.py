"""Cells: text, ids, keys, options, states of a reply, options inside the question."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from auditlib.readers import cells, choices


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.0, "12"), (1.5, "1.5"), (True, "True"), (None, ""), (float("nan"), ""), (np.int64(7), "7"), (pd.NA, ""),
     ("None", "None"), ("NA", "NA"), (" B ", " B "), (["a", None], '["a", null]'), (np.array([1, 2]), "[1, 2]"),
     (10.0**20, "1" + "0" * 20), (np.float64(0.1), "0.1"), (np.bool_(False), "False")],
)  # fmt: skip
def test_cell_text(value, text):
    assert cells.cell_text(value) == text
    assert cells.column_text([value]) == [text]


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [(["12.0", " 3 ", "7"], ["12", "3", "7"]),
     (["007", "010"], ["7", "10"]),  # all integers: a spreadsheet of numbers would have lost the zeros
     (["007", "x1"], ["007", "x1"]),  # an id that is no number: zeros are part of the text
     (["01", "1"], ["01", "1"]),  # dropping zeros would join two items
     (["12.50", "a"], ["12.50", "a"]), (["1000000.0", "-0"], ["1000000", "-0"]), ([], [])],
)  # fmt: skip
def test_item_ids(ids, wanted):
    assert cells.item_ids(pd.Series(ids, dtype="str")).tolist() == wanted


@pytest.mark.parametrize(
    ("raw", "key"),
    [("(A)", "A"), ("B.", "B"), ("c", "C"), (" D ", "D"), ("Yes", "Yes"), ("(AB)", "(AB)"), ("", ""), ("14", "14"),
     ("A dog", "A dog")],
)  # fmt: skip
def test_key_text(raw, key):
    assert cells.key_text(raw) == key


@pytest.mark.parametrize(
    ("raw", "options"),
    [('{"A": "x", "C": "z"}', ["x", "", "z"]), ('["x", "y", ""]', ["x", "y"]), ("['x', 'None']", ["x", "None"]),
     ("", []), ("{}", []), ('["1", 2.0]', ["1", "2"]), ("{'(B)': 'y', '(A)': 'x'}", ["x", "y"])],
)  # fmt: skip
def test_option_list(raw, options):
    assert cells.option_list(raw) == options


@pytest.mark.parametrize("raw", ["red, blue", "12", '{"first": "x"}', "__import__('os')"])
def test_option_list_refuses(raw):
    with pytest.raises(ValueError):
        cells.option_list(raw)


def test_unescape_decodes_only_four_hex_digits():
    raw = pd.Series(["a_x0007_b", "x_x000D_\ny", "plain", "_x12_", "my_xylophone"], dtype="str")
    assert cells.unescape(raw).tolist() == ["a\x07b", "x\r\ny", "plain", "_x12_", "my_xylophone"]


def test_prediction_status():
    said = pd.Series(
        ["B", "", "  ", "Failed to obtain answer via API.", "Failed to obtain answer via API. : content_filter",
         "Failed to obtain answer: <class 'RuntimeError'> out of memory", "x" * 32_767, "x" * 32_766,
         "Chat Mode: Failed with all possible conversation turns.", "[LMMS_EVAL_REQUEST_FAILED after 1 retries] x",
         "The plan Failed to obtain answer", "nan", "None"], dtype="str")  # fmt: skip
    assert cells.prediction_status(said).tolist() == [
        "ok", "missing", "missing", "failed", "filtered", "failed", "truncated", "ok", "failed", "failed", "ok", "ok",
        "ok"]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["I cannot see the image.", "I'm unable to view the image. Please provide it so I can help.",
     "I can’t see any image in this conversation.", "It seems the image did not come through. Please resend it.",
     "No image was provided, so the question cannot be resolved.", "The image is missing, so I cannot determine it.",
     "There is no picture here for me to look at. Could you share it?", "Without the image I cannot tell.",
     "I do not see the figure mentioned in the question.", "I'm sorry, but I can't help with identifying people.",
     "B. However, no image is attached, so this cannot be confirmed."],
)  # fmt: skip
def test_refused(text):
    assert cells.refused(pd.Series([text], dtype="str")).tolist() == [True]


@pytest.mark.parametrize(
    "text",
    ["B", "The answer is B.", "There is no picture on the wall, so B.", "I see no difference: A", "Yes, in general.",
     "No, judging by the chart.", "Without the image, my best guess is option C.", "The man cannot see the dog: D",
     "The details are too small to read, so none of the choices can be confirmed."],
)  # fmt: skip
def test_not_refused(text):
    assert cells.refused(pd.Series([text], dtype="str")).tolist() == [False]


@pytest.mark.parametrize(
    ("question", "bare", "options"),
    [("Which?\nOptions: A: a, b, B: vitamin C: low, C: x", "Which?", ["a, b", "vitamin C: low", "x"]),
     ("Hint: h\nQuestion: Which?\nChoices:\n(A) A\n(B) 8 (B)\n(C)9", "Hint: h\nQuestion: Which?", ["A", "8 (B)", "9"]),
     ("Which?\n(A) 54\n(B) 52", "Which?", ["54", "52"]),
     ("Look at (A) and (B).", "Look at (A) and (B).", []),
     ("Which?\n(A) x\n(C) y", "Which?\n(A) x\n(C) y", [])],
)  # fmt: skip
def test_options_inside_the_question(question, bare, options):
    assert choices.from_question(question) == (bare, options)


def test_option_columns_stop_at_the_first_gap():
    assert choices.option_columns(["A", "B", "D", "E"]) == ["A", "B"]


def test_answer_types_and_counts():
    options = [["x", "", "z"], [], [], []]
    types = choices.answer_types(options, pd.Series(["B", "Yes", "1.06", "C"]))
    assert types == ["choice", "yesno", "open", "choice"]
    assert choices.counts(options, types).tolist() == [2, 2, pd.NA, pd.NA]
