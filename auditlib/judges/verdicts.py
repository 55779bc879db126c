"""What a cell or a reply of a judge says: a slot, a tie, a score, or nothing that can be read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from auditlib.errors import AuditError

#: what a mapping of verdicts may translate to
MEANINGS = ("first", "second", "tie", "tie_failure", "unparsed", "no_reply")
_FIRST = frozenset(
    ("1", "a", "first", "answer1", "answera", "response1", "responsea", "model1", "modela", "assistanta", "option1",
     "optiona", "output1", "outputa", "image1", "imagea", "left")
)  # fmt: skip
_SECOND = frozenset(
    ("2", "b", "second", "answer2", "answerb", "response2", "responseb", "model2", "modelb", "assistantb", "option2",
     "optionb", "output2", "outputb", "image2", "imageb", "right")
)  # fmt: skip
_TIE = frozenset(
    ("tie", "tied", "c", "equal", "draw", "same", "both", "neither", "bothgood", "bothbad", "nodifference")
)
_UNDECIDED = re.compile(r"(?:tie\b|(?:unable|cannot|can't|can not) (?:to )?(?:decide|choose|tell))", re.IGNORECASE)
_BROKEN = re.compile(r"\b(?:error|failed|failure|exception|timed? ?out|timeout|invalid)\b", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_LAST = re.compile(
    r"(?:final |my )?(?:choice|verdict|answer|decision|winner)\s*(?:is)?\s*[:=]\s*(?P<said>[^\n]{1,60})\s*$",
    re.IGNORECASE | re.MULTILINE,
)


def pair_verdict(
    text: str, shown: Sequence[str] = (), meanings: Mapping[str, str] | None = None, failed: bool = False
) -> tuple[str, int]:
    """State and slot of a pairwise verdict.

    Parameters
    ----------
    text : the cell. shown : names of the two candidates in the order of their slots: a verdict may name one.
    meanings : the file's own words -> one of :data:`MEANINGS`; they are looked up first, as written.
    failed : another cell of the row says that the call failed: a tie is then one from failure.

    Examples
    --------
    >>> pair_verdict("[[B]]"), pair_verdict("Answer1"), pair_verdict("unable to decide: situation one")
    (('chosen', 1), ('chosen', 0), ('tie', -1))
    >>> pair_verdict("tie (error)"), pair_verdict("tie", failed=True), pair_verdict(""), pair_verdict("0")
    (('tie_failure', -1), ('tie_failure', -1), ('no_reply', -1), ('unparsed', -1))
    """
    said = text.strip()
    means = (meanings or {}).get(said)
    if means is not None:
        state, slot = ("chosen", ("first", "second").index(means)) if means in ("first", "second") else (means, -1)
    else:
        state, slot = _pair(said, shown)
    if failed:
        return ("tie_failure" if state in ("tie", "tie_failure") else "no_reply"), -1
    return state, slot


def _pair(said: str, shown: Sequence[str]) -> tuple[str, int]:
    if not said:
        return "no_reply", -1
    if said in shown:
        return "chosen", list(shown).index(said)
    word = re.sub(r"[\s_*\[\](){}.\"'`:,-]+", "", said).casefold()
    if word in _FIRST or word in _SECOND:
        return "chosen", int(word in _SECOND)
    tie = word in _TIE or _UNDECIDED.match(said) is not None
    if _BROKEN.search(said):
        return ("tie_failure" if tie else "no_reply"), -1
    return ("tie" if tie else "unparsed"), -1


def check_meanings(meanings: Mapping[str, str] | None) -> None:
    """Refuse a mapping of verdicts to words that are none of :data:`MEANINGS`."""
    for said, means in (meanings or {}).items():
        if means not in MEANINGS:
            raise AuditError(f"verdict {said!r} is to mean {means!r}", mend=f"use one of {', '.join(MEANINGS)}")


def score_value(
    text: str, sentinels: Sequence[float] = (-1.0,), scale: tuple[float, float] | None = None
) -> tuple[str, float | None]:
    """State and score of a cell.

    Parameters
    ----------
    sentinels : numbers that stand for no score. scale : lowest and highest score; a number outside it is none.

    Examples
    --------
    >>> score_value("4"), score_value("-1"), score_value(""), score_value("good"), score_value("9", scale=(1, 5))
    (('scored', 4.0), ('sentinel', None), ('no_reply', None), ('unparsed', None), ('unparsed', None))
    """
    said = text.strip()
    if not said or said.casefold() in ("nan", "none", "null"):
        return "no_reply", None
    try:
        value = float(said)
    except ValueError:
        return "unparsed", None
    if value in sentinels:
        return "sentinel", None
    if value != value or value in (float("inf"), float("-inf")) or (scale and not scale[0] <= value <= scale[1]):
        return "unparsed", None
    return "scored", value


def written_choice(text: str, n: int) -> tuple[str, int]:
    """State and slot of a judge's reply that was asked to end with ``Choice: <number>``.

    The last line of that form counts; a reply that is a bare number or letter counts too. Anything else is unparsed:
    a number somewhere in the text is no choice.

    Examples
    --------
    >>> written_choice("2 looks odd.\\nChoice: 3", 4), written_choice("**2**", 4), written_choice("B", 2)
    (('chosen', 2), ('chosen', 1), ('chosen', 1))
    >>> written_choice("Choice: tie", 2), written_choice("1 is better than 2", 2), written_choice("Choice: 7", 4)
    (('tie', -1), ('unparsed', -1), ('unparsed', -1))
    """
    said = text.strip()
    if not said:
        return "no_reply", -1
    found = list(_LAST.finditer(said))
    word = re.sub(r"[\s*_\[\](){}.\"'`<>#]+", "", found[-1]["said"] if found else said).casefold()
    word = re.sub(r"^(?:candidate|answer|image|option|response|output|number)", "", word)
    if _NUMBER.fullmatch(word) and word.isdigit() and 1 <= int(word) <= n:
        return "chosen", int(word) - 1
    if len(word) == 1 and "a" <= word <= "z" and ord(word) - ord("a") < n:
        return "chosen", ord(word) - ord("a")
    return ("tie" if word in ("tie", "tied", "equal", "none") else "unparsed"), -1


def written_score(text: str, scale: tuple[float, float]) -> tuple[str, float | None]:
    """State and score of a reply that was asked to end with ``Score: <number>``.

    Examples
    --------
    >>> written_score("Clear.\\nScore: 4/5", (1, 5)), written_score("3", (1, 5)), written_score("four", (1, 5))
    (('scored', 4.0), ('scored', 3.0), ('unparsed', None))
    """
    said = text.strip()
    found = re.findall(r"score\s*(?:is)?\s*[:=]\s*\**\s*([-+]?\d+(?:\.\d+)?)(?:\s*/\s*\d+)?\W*$", said, re.I | re.M)
    return score_value(found[-1] if found else said.strip("*` ."), (), scale) if said else ("no_reply", None)
