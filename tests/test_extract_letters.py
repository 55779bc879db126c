"""The reader ``letters``: one stated reading per sentence (oracle: the rules as its docstring gives them)."""

from __future__ import annotations

import pytest

from auditlib import extract as ex
from auditlib.extract import Reading, extract, read_letters
from auditlib.extract.letters import RULES as LETTER_RULES

COLOURS = ["red", "blue", "green", "A dog"]
NINE = [f"text {i}" for i in range(9)]

# replies by rule, for options A red, B blue, C green, D "A dog"; the first three lists all say B
# fmt: off
BARE = [
    "B", "(B)", "B.", "B)", "B:", "**B**", "[B]", "$B$", '"B"', "`B`", "B?", "（B）", "B。", "Ｂ", "Ⓑ", "𝐁",
    "【B】", "「B」", "“B”",
    "{B}", "<B>", "_B_", "__B__", "***B***", "- B", "• B", "### B", "> B", "(B", "B).", " B \n", "B!", "B...",
    "((B))", "['B']", r"\(B\)", r"\[ B \]", r"$\text{B}$", r"$$\mathbf{B}$$", "<b>B</b>", "<p>B</p>",
    "<span style='x'>B</span>", "B</s>", "B<|im_end|>", "\u200bB\u200d", "\ufeffB", "\u202bB\u202c", "B\x00", "✅ B",
    "👉 B 🎉", "B\ufe0f", "<think>A or C?</think>B", "<think>a<think>b</think>c</think>B",
    "no opening tag, A.</think>\n\nB", "<THINK>A</THINK>B", "◁think▷A◁/think▷B",
]
START = [
    "B. blue", "B, the blue one", "B: blue", "B) blue", "(B) blue", "[B] blue", "**B. blue**", "**B**: blue",
    "**B.** It is blue", "B、blue", "Ｂ．blue", "B。 It is blue", "B\n\nExplanation: A large ball", "B\nblue",
    "B.\n\nA is not right", '"B. blue"', "B, not C", "B. A is wrong", "B,blue", "B: the answer could also be C",
    "B, A dog would bark", "B, I think", "B, and A is wrong",
]
KEYWORD = [
    "Option B", "Answer: B", "The answer is B", "Answer:B", "ANSWER: $B$", "ANSWER: **B**", "ANSWER: (B)",
    "**Answer:** B", "Final answer: (B)", "Answer - B", "Answer — B", "Answer → B", "answer = B",
    "the correct option is **B**.", "oPtIoN B", "<answer>B</answer>", '{"answer":"B"}',
    '{"final_answer": "B", "why": "A is not"}', "[ANSWER] B [/ANSWER]", r"The answer is \boxed{B}.",
    r"Answer: \boxed{\text{B}}", "So the final answer is:\n\n$$\n\\boxed{B}\n$$", r"Answer: $\text{B}$",
    "### Answer\n\nB", "**Answer:**\n\n**B**", "The answer is “B”.", "Answer: `B`", "Answer: <b>B</b>",
    "Option B's shape fits", "Option A is wrong. The answer is B", "The answer is B. Option A is wrong.",
    "The answer is B, not option A", "The answer is: B. blue", "I'd go for option B; option C can be ruled out.",
    "The answer is B rather than option A.", "The answer is option (B)",
    "First I say the answer is A. Hmm.\nLet me look.\n\nTherefore, the answer is B.",
    "Answer: B\nB is blue because A is not.", "A, C and D are wrong. The answer is B.",
    "A. red\nB. blue\nC. green\nD. A dog\nAnswer: B", "A. red B. blue. The answer is B. blue",
    "The answer is B. That is the option I would choose.", "Answer: Option B", "D.C. is far, so the answer is B",
    "Answer: B (not C)", "Option A: two dots\nOption B: three dots\nThe answer is (B)",
    "<answer>B</answer>\nA is wrong", "Answer: B, not C", "Answer is\nB", "Answer：【B】",
]
OTHER = {
    ("B", "start-because"): ["B because A is wrong", "B since it is blue", "B as it is blue"],
    ("A", "keyword"): [
        "Option A fits the visible details", "The answer is A because it is red", "The answer is A is red",
        "The correct answer is option A which is red", "Answer: A\nred", "Answer: A (red)",
    ],
    ("D", "keyword"): ["Answer: D (A and B)"],
    ("D", "start"): ["D, both A and B", "D: A and B"],
    ("C", "keyword"): ["The answer is definitely option C because it is green"],
    ("Z", "empty"): ["", " \n\u200b", "<think>B</think>"],
    ("Z", "truncated-think"): ["<think>A or C? The answer is B", "<think>a</think> B <think>again"],
    ("Z", "lower-case"): ["b", "(b)", "answer b", "option c"],
    ("Z", "boxed-only"): [r"\boxed{B}", r"$\boxed{\text{B}}$", "<|begin_of_box|>B<|end_of_box|>"],
    ("Z", "non-english-keyword"): [
        "答案是B", "答案：B", "选B", "选择 B", "정답: B", "Respuesta: B", "الإجابة هي B",
    ],
    ("Z", "no-letter"): [
        "I think B", "It is B", "Choice B", "B blue", "B - blue", "blue", "The color is blue", "The answer is Blue",
        "The answer is a dog", "ANSWER: AB", "Answer: B1", "Answers: B", "Options: A", "A+", "=C", "Because",
        "Based on the image, it is blue", "The correct answer is actually not shown in the picture",
        "The answer is difficult to determine without seeing the image.",
        "Without the image, the answer is cannot be determined", "…I would guess C",
        "I'm sorry, but without the image provided …", "Sorry, I can't recognise the image",
        "Answer with the option's letter from the given choices directly.",
    ],
    ("Z", "article"): [
        "The answer is A dog", "A dog is shown", "A red ball on the left", "A is not correct", "A image is needed",
        "Option: A dog", "cannot answer: A picture is needed", "Answer: I think it is B",
    ],
    ("Z", "option-text"): ["The answer is A Dog"],
    ("Z", "negated"): [
        "The answer is not B", "The answer isn't B", "Answer: not B", "not B", "It is not option B.",
        "The answer is not A, it is B", "The answer is A. No: the answer is not A.",
        "The answer is neither option A nor option B", "Option A is wrong.", "There is no option B here", "❌ B",
    ],
    ("Z", "two-letters"): [
        "A and B", "A or B", "B, C", "B,C", "A/B", "(A) or (B)", "A) and B) are right", "['A', 'B']",
        "A, B and C are wrong, so D", "Answer: A or B", "Answer: B & C", "Answer: **B** and **C**", "Answer: B C",
        "Answer: A as well as B", "option A or option B", "The answer is B. Wait, the answer is C or D.",
        "Please answer A, B, C, or D.", "A\nB\nC", "A. B. C. D.", "(A) (B)",
        "B、C", "B、C。", "Answer: B、C", "Answer: B和C", "Answer: B或C", "Answer: B vs. C", "Answer: B und C",
    ],
    ("Z", "echoed-list"): [
        "A. red B. blue C. green D. A dog", "A. red\nB. blue", "A: red, then B: blue", "**A)** Red\n**B)** Blue",
        "The answer is A. red or B. blue", "Option A: two dots\nOption B: three dots",
    ],
    ("Z", "outside-options"): ["E", "G. grey", "The answer is E", "The answer is B. No, the answer is E."],
    ("Z", "stated-abstention"): ["(Z)", "Answer: Z"],
    ("Z", "word"): [
        "The answer is D.C.", "D.C. is the capital", "Answer: A-frame", "Answer: C++", "Answer: A-D", "Answer: A–D",
        "Answer: I'm not sure",
    ],
}
# fmt: on
SENTENCES = [(t, "B", rule) for rule, texts in (("bare", BARE), ("start", START), ("keyword", KEYWORD)) for t in texts]
SENTENCES += [(t, letter, rule) for (letter, rule), texts in OTHER.items() for t in texts]


@pytest.mark.parametrize(("text", "letter", "rule"), SENTENCES)
def test_letters(text, letter, rule):
    assert read_letters(text, COLOURS) == Reading(letter, rule)


def test_every_letter_rule_is_described_and_occurs():
    described = {name for name, _ in LETTER_RULES} | {"empty", "truncated-think"}
    seen = {rule for _, _, rule in SENTENCES} | {"+letter-text"}
    assert seen == described
    assert all(sentence.endswith(".") and len(sentence) < 130 for _, sentence in ex.RULES)
    assert len({name for name, _ in ex.RULES}) == len(ex.RULES)


def test_option_that_is_a_letter_is_read_with_a_warning():
    assert read_letters("A. B", ["B", "A"]) == Reading("A", "start+letter-text")
    assert read_letters("B", ["B", "A"]) == Reading("B", "bare+letter-text")
    assert read_letters("B", ["A", "B"]) == Reading("B", "bare")


def test_option_text_that_opens_with_a_letter_is_no_letter():
    species = ["E. coli", "C. elegans", "yeast"]
    assert read_letters("C. elegans", species) == Reading("Z", "option-text")
    assert read_letters("The answer is C. elegans.", species) == Reading("Z", "option-text")
    assert read_letters("B. C. elegans", species) == Reading("B", "start")
    assert extract("C. elegans", species, ("letters", "option_text")) == Reading("B", "option_text:exact")


def test_pronoun_is_an_option_only_where_it_is_shown():
    assert read_letters("I", NINE) == Reading("I", "bare")
    assert read_letters("Option I fits", NINE) == Reading("I", "keyword")
    assert read_letters("Answer: I", NINE) == Reading("I", "keyword")
    for text in ("Answer: I think so", "I think it is C", "the option I prefer"):
        assert read_letters(text, NINE).value == "Z"
    assert read_letters("I", COLOURS) == Reading("Z", "outside-options")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["a", "b", "c", ""], "ABC"),
        (["", "Two", "One", "Three"], "BCD"),
        (["", "", ""], "ABC"),
        ([], ""),
        (["None", "NA", "nan", "null"], "ABCD"),
        ([None, "x", float("nan"), " "], "B"),
    ],
)
def test_letters_without_text_were_not_shown(options, shown):
    read = "".join(c for c in "ABCDE" if read_letters(c, options).value == c)
    assert read == shown == ex.read_options(options).shown
    assert all(read_letters(c, options).rule == "outside-options" for c in set("ABCDE") - set(shown))
