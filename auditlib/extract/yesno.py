"""Reader ``yesno``: yes or no, for items that ask for nothing else.

A reply that opens with the word and a punctuation mark or line break, or consists of it, is decided by it (``leading``).
Else the last "answer is" or "answer:" with a yes or no after it decides (``keyword``). Else the two words are counted where
they stand as an answer (before punctuation, the end or a reason), and the reply is read if only one of them occurs
(``only``). "No" before a noun is a determiner: "No image was provided" says nothing about the question. Yes and no in one
answer slot, and a negated one, give ``Z``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditlib.extract.text import WORD, Reading, abstain, prepare

RULES: list[tuple[str, str]] = [
    ("leading", "The reply is, or opens with, Yes or No and a punctuation mark or line break."),
    ("keyword", "The last yes or no after 'answer is' or 'answer:'."),
    ("only", "Only one of the two words stands as an answer: before punctuation, the end, a reason or a pronoun."),
    ("both", "Yes and no both stand as answers, and neither leads: Z."),
    ("negated", "'not' stands before the yes or no of the answer: Z."),
    ("no-yesno", "Neither word stands as an answer: Z."),
]

_OPEN = r"[\s(\[{<*$~_\"'“”‘’`>#•-]*+"
_CLOSE = r"[)\]}*$~_\"'“”’`>]*+"
_WORD = rf"(?<!{WORD})(?<!-)(?P<word>(?i:yes|no))(?!{WORD}|[-'’]{WORD})"
#: "No. 5" is a number, "yes/no" a pair
_END = rf"{_CLOSE}(?:\s*$|[ \t]*\n|\s*[,;:!?。、—–]|\s+-\s|\.(?!\s*\d)|</)"
_REASON = r"\s+(?:because|since|as|it|this|that|they|he|she|we|the|there|these|those|you)(?![^\W_])"
_LEADING = re.compile(rf"{_OPEN}{_WORD}{_END}")
_PAIR = re.compile(
    rf"{_CLOSE}\s*(?:[,/&]|and/or|and|or)*\s*{_OPEN}(?P<word>(?i:yes|no))(?!{WORD})(?=\W*$|\W*\n|[.,;:!?/])"
)
_KEYWORD = re.compile(
    rf"(?<!{WORD})(?<!</)(?i:answer)(?!{WORD})[*_\"'`\])]*+\s*+(?:[:=>]|(?i:is)(?!{WORD}))[\s:=<>(\[{{*$~_\"'“”‘’`-]*+"
    rf"(?:\\boxed\s*\{{\s*)?(?P<not>(?i:not\s+)?){_WORD}(?=(?P<end>{_END}|{_REASON})?)"
)
_ANSWER = re.compile(rf"{_WORD}(?:{_END}|(?:{_REASON}))")


def read_yesno(text: str, options: Sequence[str] = ()) -> Reading:
    """Read a yes or no.

    Parameters
    ----------
    text : the raw reply.
    options : not used; here so that all readers are called alike.

    Examples
    --------
    >>> read_yesno("Yes, judging by the chart.")
    Reading(value='yes', rule='leading')
    >>> read_yesno("No image was provided, so the question cannot be resolved.")
    Reading(value='Z', rule='no-yesno')
    """
    clean, problem = prepare(text if isinstance(text, str) else "")
    if problem:
        return abstain(problem)
    leading = _LEADING.match(clean)
    if leading:
        return _one(clean, leading, "leading")
    keyword = None
    for found in _KEYWORD.finditer(clean):
        if found["end"] is not None or found["word"].lower() == "yes":
            keyword = found
    if keyword:
        return abstain("negated") if keyword["not"] else _one(clean, keyword, "keyword")
    said = {m["word"].lower() for m in _ANSWER.finditer(clean)}
    if len(said) == 1:
        return Reading(said.pop(), "only")
    return abstain("both" if said else "no-yesno")


def _one(text: str, found: re.Match[str], rule: str) -> Reading:
    word = found["word"].lower()
    other = _PAIR.match(text, found.end("word"))
    return abstain("both") if other and other["word"].lower() != word else Reading(word, rule)
