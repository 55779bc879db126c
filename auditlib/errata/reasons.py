"""Why an item is in an errata table: the closed list of reasons, and the words that other lists use for them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """One reason.

    Attributes
    ----------
    meaning : said in tables and texts, without a full stop.
    topic : the question it answers; an item has at most one row per topic, and reports on one topic can contradict.
    drops : whether an item with this reason, confirmed and without another key, may leave the benchmark.
    """

    meaning: str
    topic: str
    drops: bool = True


#: every reason that a row may have
REASONS: dict[str, Reason] = {
    "wrong_key": Reason("another option is right", "key"),
    "several_keys": Reason("more than one option is right", "key"),
    "no_right_option": Reason("none of the options is right", "key"),
    "unusable_key": Reason("the key names no option", "key"),
    "ambiguous": Reason("the question does not say which answer is meant", "key"),
    "unspecified": Reason("the key is doubted, and it is not settled why", "key"),
    "option_defect": Reason("an option is empty, repeated, lost or unclear", "options"),
    "unreadable_image": Reason("the picture is missing, or does not show what is asked", "picture"),
    "no_image_needed": Reason("the question can be answered without the picture", "image need"),
    "duplicate_item": Reason("the item stands in the benchmark more than once", "repetition"),
    "contradictory_duplicate": Reason("the item stands in the benchmark more than once, with different keys",
                                      "repetition", drops=False),
    "scorer_risk": Reason("the key is right, but a right reply may be scored as wrong", "scoring", drops=False),
}  # fmt: skip

#: topics in the order of the table
TOPICS = tuple(dict.fromkeys(r.topic for r in REASONS.values()))

#: words of other lists: the error types of MMLU-Redux, the labels of this project's readers and checks
_SYNONYMS = {
    # MMLU-Redux
    "wrong_groundtruth": "wrong_key",
    "multiple_correct_answers": "several_keys",
    "no_correct_answer": "no_right_option",
    "bad_question_clarity": "ambiguous",
    "bad_options_clarity": "option_defect",
    "expert": "unspecified",
    # readers and judges
    "key_error": "wrong_key",
    "wrong_answer": "wrong_key",
    "wrong_gold": "wrong_key",
    "multiple_keys": "several_keys",
    "unclear": "ambiguous",
    "text_only": "no_image_needed",
    "bad_image": "unreadable_image",
    "duplicate": "duplicate_item",
    "": "unspecified",
    "unknown": "unspecified",
    "other": "unspecified",
    # checks of the item files
    "key_outside_options": "unusable_key",
    "key_without_text": "unusable_key",
    "key_placeholder": "unusable_key",
    "key_text_unmatched": "unusable_key",
    "lost_option": "option_defect",
    "equal_options": "option_defect",
    "empty_option_inside": "option_defect",
    "single_option": "option_defect",
    "letter_valued_options": "option_defect",
    "position_dependent_option": "option_defect",
    "near_duplicate_item": "duplicate_item",
}

CANDIDATE, CONFIRMED, REJECTED, DISPUTED = "candidate", "confirmed", "rejected", "disputed"
#: a row's status in the order of a text, with its meaning
STATUSES = {
    CONFIRMED: "people looked at the item and agree with the report",
    DISPUTED: "the reports on the item contradict each other",
    CANDIDATE: "reported or pointed at by saved runs; nobody has decided",
    REJECTED: "people looked at the item and found it in order",
}
_STATUS_WORDS = {
    "": CANDIDATE, "suspect": CANDIDATE, "suspected": CANDIDATE, "reported": CANDIDATE, "open": CANDIDATE,
    "unconfirmed": CANDIDATE, "fixed": CONFIRMED, "accepted": CONFIRMED, "confirmed_and_fixed": CONFIRMED,
    "cleared": REJECTED, "ok": REJECTED, "no_issue": REJECTED, "dismissed": REJECTED, "not_an_error": REJECTED,
    "contradictory": DISPUTED, "conflicting": DISPUTED,
}  # fmt: skip


def reason_of(word: str) -> str | None:
    """A reason code for a word of this or another list; None where it is none.

    Examples
    --------
    >>> reason_of("Wrong groundtruth"), reason_of("several-keys"), reason_of("nonsense")
    ('wrong_key', 'several_keys', None)
    """
    name = folded(word)
    return name if name in REASONS else _SYNONYMS.get(name)


def status_of(word: str) -> str | None:
    """A status for a word of this or another list; None where it is none."""
    name = folded(word)
    return name if name in STATUSES else _STATUS_WORDS.get(name)


def folded(word: str) -> str:
    """A word in lower case, with underscores between its parts."""
    return re.sub(r"[\s_-]+", "_", word.strip().lower())


def known_words(word: str, known: dict[str, object]) -> str:
    """The mend for an unknown word: the nearest known one, and all of them."""
    near = difflib.get_close_matches(folded(word), list(known), n=1, cutoff=0.6)
    return f"{f'did you mean {near[0]!r}? ' if near else ''}Known: {', '.join(known)}"
