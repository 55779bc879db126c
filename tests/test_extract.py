"""The other readers, the chain and whole frames. Oracles: stated readings; the replicas' letters; TinySee's README."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from auditlib.extract import Reading, extract, extract_frame, read_boxed, read_letters, read_numeric, read_option_text
from auditlib.extract import read_yesno as yesno
from auditlib.extract.numeric import Quantity, read_quantity, same_quantity

COLOURS = ["red", "blue", "green", "A dog"]


@pytest.mark.parametrize(
    ("text", "letter", "rule"),
    [
        (r"\boxed{B}", "B", "last-box"),
        (r"\boxed{A}, then \boxed{\text{B}}", "B", "last-box"),
        (r"$$\boxed{\textbf{(B) } blue}$$", "B", "last-box"),
        ("so <|begin_of_box|>B<|end_of_box|>", "B", "last-box"),
        (r"\boxed{A, B}", "Z", "two-letters"),
        (r"\boxed{E}", "Z", "outside-options"),
        (r"\boxed{12}", "Z", "no-letter"),
        (r"\boxed{B", "Z", "unclosed-box"),
        ("B", "Z", "no-box"),
        (r"<think>\boxed{B}", "Z", "truncated-think"),
    ],
)
def test_boxed(text, letter, rule):
    assert read_boxed(text, COLOURS) == Reading(letter, rule)


@pytest.mark.parametrize(
    ("text", "letter", "rule"),
    [
        ("blue", "B", "exact"),
        ("Blue.", "B", "exact"),
        ("**blue**", "B", "exact"),
        ("The answer is blue", "B", "exact"),
        ("The answer is Blue. The image shows it.", "B", "exact"),
        ("Answer: blue\nIt is the sky.", "B", "exact"),
        ('{"answer": "blue"}', "B", "exact"),
        ("<answer>blue</answer>", "B", "exact"),
        (r"So \boxed{\text{blue}}", "B", "exact"),
        ("The answer is a dog", "D", "exact"),
        ("The answer is the dog.", "D", "without-articles"),
        ("It is blue", "Z", "no-option"),
        ("The color is blue", "Z", "no-option"),
        ("The answer is not blue", "Z", "no-option"),
        ("blue or green", "Z", "no-option"),
        ("bluebell", "Z", "no-option"),
        ("", "Z", "empty"),
    ],
)
def test_option_text(text, letter, rule):
    assert read_option_text(text, COLOURS) == Reading(letter, rule)


def test_option_text_needs_one_match():
    assert read_option_text("circle", ["circle", "a circle", "square"]) == Reading("A", "exact")
    assert read_option_text("the circle", ["circle", "a circle", "square"]) == Reading("Z", "ambiguous")
    assert read_option_text("3 dots", ["3", "3 dots"]) == Reading("B", "exact")
    assert read_option_text("10", ["100", "10.5", "1"]) == Reading("Z", "no-option")
    assert read_option_text("x", ["", ""]) == Reading("Z", "no-texts")


@pytest.mark.parametrize(
    ("text", "answer", "rule"),
    [
        ("Yes", "yes", "leading"),
        ("**No.**", "no", "leading"),
        ("yes\nThe chart shows it.", "yes", "leading"),
        ("No, the bar is lower; yes, that is sure.", "no", "leading"),
        ("Yes, no doubt about it.", "yes", "leading"),
        ("<think>no</think>Yes", "yes", "leading"),
        ("The answer is no.", "no", "keyword"),
        ('{"answer": "Yes"}', "yes", "keyword"),
        (r"The lines differ. Answer: \boxed{No}", "no", "keyword"),
        ("Is it? no, it is not. The answer is yes.", "yes", "keyword"),
        ("So, yes, the value of x is 5.", "yes", "only"),
        ("Yes it is", "yes", "only"),
        ("No it is not", "no", "only"),
        ("Yes or no? Yes.", "yes", "only"),
        ("Pacific: No, it does not. Southern: Yes, it does.", "Z", "both"),
        ("Yes/No", "Z", "both"),
        ("yes or no", "Z", "both"),
        ("Yes, no", "Z", "both"),
        ("The answer is not yes.", "Z", "negated"),
        ("No image was provided, so the question cannot be resolved.", "Z", "no-yesno"),
        ("There is no picture here for me to look at.", "Z", "no-yesno"),
        ("No. 5 is the largest bar", "Z", "no-yesno"),
        ("I know nothing", "Z", "no-yesno"),
        ("Yesterday", "Z", "no-yesno"),
        ("<think>Yes", "Z", "truncated-think"),
    ],
)
def test_yesno(text, answer, rule):
    assert yesno(text) == Reading(answer, rule)


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("5", 5, ""),
        ("-1,250.5 kilograms", -1250.5, "kg"),
        ("50%", 50, "%"),
        ("1/4", 0.25, ""),
        (r"\frac{1}{4}", 0.25, ""),
        ("x = 3.5e2 cm", 350, "cm"),
        ("2 x 10^3 m/s^2", 2000, "m/s^2"),
        ("about $12", 12, "$"),
        ("25 ℃", 25, "°c"),
    ],
)
def test_quantities(text, value, unit):
    assert read_quantity(text)[:2] == (pytest.approx(value, rel=1e-15), unit)


def test_numeric():
    assert read_quantity("5 of 6 dots") is None and read_quantity("1/0") is None and read_quantity("1e999") is None
    assert same_quantity(Quantity(1999, "", True), Quantity(2000, "", True)) is False
    assert same_quantity(Quantity(3.14, "cm", False), Quantity(3.1416, "", False)) is True
    assert same_quantity(Quantity(1, "cm", True), Quantity(1, "m", True)) is False
    assert read_numeric("The answer is 0.5.", ["1/2", "1/4"]) == Reading("A", "quantity")
    assert read_numeric("Answer: 3 cm", ["3 m", "3 cm", "4 cm"]) == Reading("B", "quantity")
    assert read_numeric("3", ["3 m", "3 cm"]) == Reading("Z", "ambiguous")
    assert read_numeric("7", ["3 m", "3 cm"]) == Reading("Z", "no-option")
    assert read_numeric("Answer: 1,250.50 kg", []) == Reading("1250.5 kg", "quantity")
    assert read_numeric("I see dots", []) == Reading("Z", "no-number")


def test_chain_takes_the_first_answer_and_the_first_reason():
    text = r"The answer is A or B, so \boxed{blue}"
    assert extract(text, COLOURS) == Reading("Z", "letters:two-letters")
    assert extract(text, COLOURS, ("boxed", "letters", "option_text")) == Reading("B", "option_text:exact")
    assert extract("I see", COLOURS, ("boxed", "letters")) == Reading("Z", "boxed:no-box")
    with pytest.raises(KeyError):
        extract("B", COLOURS, ("letter",))
    with pytest.raises(ValueError, match="at least one"):
        extract("B", COLOURS, ())


def _frames():
    items = pd.DataFrame(
        {
            "item": ["1", "2", "3", "4", "5"],
            "options": [np.array(["red", "blue", ""], object), ["", "", ""], None, None, []],
            "k": [2, 3, 2, None, 4],
            "answer_type": ["choice", "choice", "yesno", "number", "choice"],
            "key": ["C", "A", "yes", "5", "A"],
        }
    )
    cells = [("1", "B", "ok"), ("1", "C", "ok"), ("2", "C", "ok"), ("3", "Yes.", "ok"), ("3", "A", "ok"),
             ("4", "Answer: 5", "ok"), ("1", "", "missing"), ("3", "Failed to obtain answer", "failed"),
             ("1", "A...", "truncated"), ("3", "Yes", "truncated"), ("1", "", "ok"), ("5", "D", "ok"),
             ("9", "A", "ok")]  # fmt: skip
    return pd.DataFrame(cells, columns=["item", "prediction", "status"]), items


def test_frame():
    responses, items = _frames()
    filled = extract_frame(responses, items)
    expected = [("B", "letters:bare", None), ("Z", "letters:outside-options", None), ("C", "letters:bare", None),
                ("Z", "yesno:leading", "yes"), ("Z", "yesno:no-yesno", "Z"), ("Z", "numeric:quantity", "5"),
                (None, "missing", None), (None, "failed", None), ("Z", "truncated", None), ("Z", "truncated", "Z"),
                ("Z", "letters:empty", None), ("D", "letters:bare", None), (None, "no-item", None)]  # fmt: skip
    got = filled[["letter", "rule", "answer"]].astype(object)
    assert list(got.where(got.notna(), None).itertuples(index=False, name=None)) == expected
    assert {str(filled[c].dtype) for c in ("letter", "rule", "answer")} == {"str"}
    assert "letter" not in responses


def test_frame_ignores_order_index_and_key():
    responses, items = _frames()
    filled = extract_frame(responses, items)
    shuffled = extract_frame(responses.sample(frac=1, random_state=1), items.sample(frac=1, random_state=2))
    pd.testing.assert_frame_equal(shuffled.sort_index(), filled)
    pd.testing.assert_frame_equal(extract_frame(responses, items.drop(columns="key")), filled)
    assert len(extract_frame(responses[:0], items)) == 0


@pytest.mark.parametrize(("name", "cells"), [("mmstar", 9000), ("hallusionbench", 5706)])
def test_replica_letters(shared_data, name, cells):
    table = pd.read_csv(shared_data / "replica" / f"{name}_items.csv", dtype=str, keep_default_na=False)
    options = table[list("ABCD")].to_numpy().tolist() if name == "mmstar" else [[]] * len(table)
    runs = [c.removesuffix("prediction") for c in table.columns if c.endswith("|prediction")]
    pairs = [
        (read_letters(text, opts).value, letter)
        for run in runs
        for text, letter, opts in zip(table[run + "prediction"], table[run + "letter"], options)
    ]
    assert (len(pairs), sum(got != letter for got, letter in pairs)) == (cells, 0)


def test_replica_yes_and_no_agree_with_its_verdicts(shared_data):
    table = pd.read_csv(shared_data / "replica" / "hallusionbench_items.csv", dtype=str, keep_default_na=False)
    for column in [c for c in table.columns if c.endswith("|prediction")]:
        said = [yesno(t).value for t in table[column]]
        hits = [str(int(s == k.lower())) for s, k in zip(said, table["answer"])]
        assert hits == list(table[column.replace("prediction", "hit")])


ACCURACIES = [("alpha", "", 0.900, 0.013), ("alpha", "_blind", 0.257, 0.040), ("beta", "", 0.893, 0.020),
              ("beta", "_blind", 0.207, 0.120), ("gamma", "", 0.867, 0.030), ("gamma", "_blind", 0.053, 0.747),
              ("delta", "", 0.610, 0.057), ("delta", "_blind", 0.240, 0.087)]  # fmt: skip


@pytest.mark.parametrize(("model", "tail", "accuracy", "none"), ACCURACIES)
def test_tinysee_accuracies(shared_data, model, tail, accuracy, none):
    """By key, and the share of replies that name no option, as the toolkit runs' README states them."""
    name = f"tinyvlm-{model}{tail}"
    file = min((shared_data / "toolkit_runs" / "vlmevalkit" / "outputs" / name).rglob(f"{name}_TinySee.xlsx"))
    table = pd.read_excel(file, dtype=str, na_filter=False, engine="calamine")
    read = [
        extract(text, options, ("letters", "option_text")).value
        for text, options in zip(table["prediction"], table[list("ABCD")].to_numpy().tolist())
    ]
    assert len(read) == 300
    assert round(np.mean([r == k for r, k in zip(read, table["answer"])]), 3) == accuracy
    assert round(read.count("Z") / 300, 3) == none


def test_flaky_replies_read_strictly(shared_data):
    """Unclosed think blocks and ``=C`` count as abstentions: .863 where the toolkit says .883."""
    root = shared_data / "toolkit_runs"
    items = [json.loads(line) for line in (root / "bench" / "items_text.jsonl").read_text("utf-8").splitlines()]
    file = next((root / "lmms-eval" / "logs_flaky").rglob("*_samples_tinysee.jsonl"))
    hits = 0
    for row in map(json.loads, file.read_text("utf-8").splitlines()):
        said = row.get("resps", row["filtered_resps"])
        said = said[0] if isinstance(said, list) else said
        item = items[row["doc_id"]]
        options = item["options"].values() if isinstance(item["options"], dict) else item["options"]
        hits += extract(said, list(options), ("letters", "option_text")).value == item["answer"]
    assert round(hits / len(items), 3) == 0.863
