"""Reader ``option_text``: the one option whose whole text fills the answer slot.

The slot is the content of the last box; else what follows the last "answer is", "answer:" or kin, up to the end of
the reply, the line or the sentence; else the whole reply. An option matches when the texts are equal after NFKC, case
folding and dropping outer quotes and final punctuation (``exact``); failing that, when they are equal without
articles. Part of a sentence never matches: "It is blue" names no option. Two options that match equally well give
``Z``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditlib.extract.boxed import last_box
from auditlib.extract.text import WORD, Reading, abstain, bare_words, prepare, read_options, words

RULES: list[tuple[str, str]] = [
    ("exact", "One option's text equals the answer slot, up to case, outer quotes and final punctuation."),
    ("without-articles", "As exact, after a, an and the are dropped on both sides."),
    ("ambiguous", "More than one option equals the answer slot: Z."),
    ("no-option", "No option equals the answer slot: Z."),
    ("no-texts", "The item's option texts are not known: Z."),
]

_QUOTE = "\"'“”‘’«»「」『』`"
_SLOT = re.compile(
    rf"(?<!{WORD})(?<!</)(?<!\[/)(?i:answer)(?!{WORD})[*_{_QUOTE}\])]*+\s*+(?:[:=>]|(?i:is)(?!{WORD}))"
    rf"[\s:=<>(\[{{*$~_→⇒–—{_QUOTE}-]*+"
)
_TAG = re.compile(r"<?/?\w+>\s*$")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+(?=[^\Wa-z])|(?<=。)")
#: longest slot worth comparing, in characters; option texts are shorter
_LONGEST = 4_000


def slots(text: str) -> list[str]:
    """The stretches of a prepared reply that may be its answer, the strongest first."""
    content, missing = last_box(text)
    if not missing:
        return [_unbrace(content)]
    start = -1
    for found in _SLOT.finditer(text):
        start = found.end()
    if start < 0:
        return [text]
    rest = text[start : start + _LONGEST]
    line = rest.split("\n", 1)[0]
    return list(dict.fromkeys(_trim(s) for s in (rest, line, _SENTENCE.split(line, maxsplit=1)[0])))


def _unbrace(slot: str) -> str:
    slot = slot.strip()
    while slot.startswith("{") and slot.endswith("}") and not set("{}") & set(slot[1:-1]):
        slot = slot[1:-1].strip()
    return slot


def _trim(slot: str) -> str:
    slot = _TAG.sub("", slot.split("</", 1)[0].strip())
    slot = slot.rstrip("\"'“”’»」』`*_$~ ,;")
    for opened, closed in ("()", "[]", "{}"):
        while slot.endswith(closed) and slot.count(closed) > slot.count(opened):
            slot = slot[:-1].rstrip("\"'“”’»」』`*_$~ ,;")
    return slot


def read_option_text(text: str, options: Sequence[str]) -> Reading:
    """Read an answer given by an option's text.

    Parameters
    ----------
    text : the raw reply.
    options : option texts in letter order.

    Examples
    --------
    >>> read_option_text("The answer is a dog.", ["a cat", "a dog"])
    Reading(value='B', rule='exact')
    >>> read_option_text("It is a dog.", ["a cat", "a dog"])
    Reading(value='Z', rule='no-option')
    """
    shown = read_options(options)
    clean, problem = prepare(text if isinstance(text, str) else "")
    if problem:
        return abstain(problem)
    if not shown.texts:
        return abstain("no-texts")
    for slot in slots(clean):
        if len(slot) > _LONGEST:
            continue
        for rule, form in (("exact", words), ("without-articles", bare_words)):
            wanted = form(slot)
            same = [letter for letter, t in shown.texts.items() if wanted and form(t) == wanted]
            if len(same) == 1:
                return Reading(same[0], rule)
            if same:
                return abstain("ambiguous")
    return abstain("no-option")
