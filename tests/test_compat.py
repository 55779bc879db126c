"""The parsers of other toolkits. Oracle: outputs measured with VLMEvalKit, and its neighbours' rules as described."""

from __future__ import annotations

import pytest
from builders import params, runs
from hypothesis import given, settings
from hypothesis import strategies as st

from auditlib.extract.compat import PARSERS, RANDOM, SENTENCES
from auditlib.metrics.extraction import extraction_rows, parser_hits
from auditlib.reading import pool_of

COLOURS = ["red", "blue", "green", "A dog"]
REFUSAL = "The answer is difficult to determine without seeing the image."
# fmt: off
#: what VLMEvalKit's current version reads with COLOURS; "Z" where it hands over to a judge
MEASURED = {
    "B": ["B", "(B)", "B.", "B)", "B:", "**B**", "[B]", "Option B", "Answer: B", "The answer is B", r"\boxed{B}",
          "选择 B", "I think B", "It is B", "Choice B", "blue", "The color is blue", "The answer is Blue",
          "The answer is not B"],
    "A": ["The answer is a dog", "A dog is shown", "A red ball on the left", "A is not correct", "A image is needed"],
    "C": ["Without the image, the answer is cannot be determined", "…I would guess C"],
    "D": [REFUSAL],
    "Z": ["b", "answer b", "option c", "$B$", '"B"', "`B`", "B?", "<answer>B</answer>", '{"answer":"B"}', "（B）",
          "B。", "Ｂ", "答案是B", "答案：B", "选B", "The answer is not A, it is B", "A and B", "B, C", "B,C",
          "B because A is wrong", "B\n\nExplanation: A large ball", "<think>A or C?</think>B",
          "I'm sorry, but without the image provided …", "Failed to obtain answer via API. B", "Z", ""],
}
# fmt: on


@pytest.mark.parametrize(("text", "letter"), [(t, letter) for letter, texts in MEASURED.items() for t in texts])
def test_vlmevalkit_current(text, letter):
    assert PARSERS["vlmevalkit_current"](text, COLOURS).value == letter


def test_versions_of_vlmevalkit_differ():
    early, middle, late = (PARSERS[f"vlmevalkit_{v}"] for v in ("before_2025_08", "before_2026_06", "current"))
    assert [p("The answer is a dog", COLOURS).value for p in (early, middle, late)] == ["D", "D", "A"]
    long = "I choose B for it has the colour of the sky at noon"
    assert [p(long, COLOURS).value for p in (early, middle, late)] == ["B", "Z", "Z"]
    assert late("100", ["10", "7"]) == ("A", "option-text")


def test_neighbours():
    lmms, mmstar, mmmu = PARSERS["lmms_eval"], PARSERS["mmstar"], PARSERS["mmmu"]
    assert lmms("The answer is B because A is wrong", COLOURS).value == "A"
    assert lmms("Based on", COLOURS) == ("B", "anywhere")
    assert lmms("(H)", COLOURS).value == "H" and lmms("none of it", COLOURS).value == "Z"
    said = ["Because it is", "(c)", "option d", "The answer is B", "**B**"]
    assert [mmstar(t, COLOURS).value for t in said] == ["B", "C", "D", "B", "Z"]
    assert mmmu("A dog is shown", COLOURS).value == "A" and mmmu("no idea", COLOURS) == ("Z", RANDOM)


def test_every_parser_has_a_sentence():
    assert set(SENTENCES) == set(PARSERS)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=6))
def test_parsers_never_raise_and_ignore_white_space_around(text, options):
    for name, parser in PARSERS.items():
        value, rule = parser(text, options)
        assert rule and len(value) == 1, name
        assert parser(f" \n{text}\n ", options) == (value, rule), name


def test_blind_refusals_become_hits_only_under_a_parser():
    replies = {("m", "full"): ["B", "D", "A", "B"], ("m", "blind"): ["B", REFUSAL, "A dog is shown", "I see nothing"]}
    pool = pool_of(runs(replies, ["B", "D", "A", "B"], options=[COLOURS] * 4), params())
    hits = parser_hits(pool)
    assert set(hits["condition"]) == {"blind"} and set(hits["item"]) == {"1", "2"}
    assert hits[hits["item"] == "1"][["parser", "letter", "key"]].to_numpy().tolist() == [
        ["vlmevalkit_current", "D", "D"],
        ["mmstar", "D", "D"],
    ]
    rows = {(r["metric"], r["level"]): r for r in extraction_rows(pool) if r["models"] == "m"}
    assert rows["parser_accuracy", "blind:exact"]["estimate"] == 0.25
    assert rows["parser_accuracy", "blind:vlmevalkit_current"]["estimate"] == 0.75
    # B; random (1/4) for the refusal and "I see nothing"; A by its article
    assert rows["parser_accuracy", "blind:mmmu"]["estimate"] == (1 + 0.25 + 1 + 0.25) / 4
    span = rows["parser_accuracy_range", "blind"]
    assert (span["low"], span["estimate"], span["high"]) == (0.25, 0.25, 0.75)
    assert rows["parser_only_hits", "blind"]["estimate"] == 0.5
    assert rows["parser_only_hits", "full"]["estimate"] == 0
