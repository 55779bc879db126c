"""Reader ``yesno``: yes or no, for items that ask for nothing else.

A reply that is one of the words, or opens with one and a punctuation mark or line break, is decided by it
(``leading``). Else the last yes or no after "answer is" or "answer:" decides (``keyword``). Else the words are looked
for where they stand as an answer (before punctuation, the end, a reason or a pronoun), and one that occurs alone
decides (``only``). "No" before a noun is a determiner: "No image was provided" says nothing about the question. The
pair in "yes or no" and "yes/no" counts as neither, and a negated answer gives ``Z``.
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
#: "No. 5" is a number
_END = rf"{_CLOSE}(?:\s*$|[ \t]*\n|\s*[,;:!?。、—–]|\s+-\s|\.(?!\s*\d)|</)"
_REASON = r"\s+(?:because|since|as|it|this|that|they|he|she|we|the|there|these|those|you)(?![^\W_])"
_BOTH = re.compile(
    rf"(?<!{WORD})(?i:yes(?P<yes>)|no){_CLOSE}\s*"
    rf"(?:(?i:/|\||&|\bor\b|\band\b|\bnor\b)+\s*{_OPEN}|,\s*(?=(?i:yes|no)\W*(?:$|\n)))"
    rf"(?i:(?(yes)no|yes))(?!{WORD})"
)
_LEADING = re.compile(rf"{_OPEN}{_WORD}{_END}")
_KEYWORD = re.compile(
    rf"(?<!{WORD})(?<!</)(?i:answer)(?!{WORD})[*_\"'`\])]*+\s*+(?:[:=>]|(?i:is)(?!{WORD}))[\s:=<>(\[{{*$~_\"'“”‘’`-]*+"
    rf"(?:\\boxed\s*\{{\s*)?(?P<not>(?i:not\s+)?){_WORD}(?=(?P<end>{_END}|{_REASON})?)"
)
_ANSWER = re.compile(rf"(?<!not )(?<!not a ){_WORD}(?:{_END}|{_REASON})")


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
    clean, pairs = _BOTH.subn(" ... ", clean)
    leading = _LEADING.match(clean)
    if leading:
        return Reading(leading["word"].lower(), "leading")
    keyword = None
    for found in _KEYWORD.finditer(clean):
        if found["end"] is not None or found["word"].lower() == "yes":
            keyword = found
    if keyword:
        return abstain("negated") if keyword["not"] else Reading(keyword["word"].lower(), "keyword")
    said = {m["word"].lower() for m in _ANSWER.finditer(clean)}
    if len(said) == 1:
        return Reading(said.pop(), "only")
    return abstain("both" if said or pairs else "no-yesno")
