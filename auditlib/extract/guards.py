"""What keeps the reader ``letters`` from taking prose for a letter.

Each guard is a question about one place in a prepared reply: does another letter share the slot, is the mention
negated or rejected, is the capital a word, an article or the opening of another option's text, is this an echoed list
of options.
"""

from __future__ import annotations

import re

from auditlib.extract.text import WORD, Options

#: quotation marks that may wrap a letter
QUOTE = "\"'“”‘’„«»「」『』`"
#: what may not follow a letter that is to stand alone: the rest of a word, a subscript
TAIL = rf"(?!{WORD}|_{WORD})"
#: marks that may close a letter's wrapping without being a delimiter
CLOSE = rf"[*$~_>{QUOTE}]*+"
#: words that may negate an answer between the keyword and the letter
NOT = r"(?i:not|never|neither|isn['’]t|(?:can|could|will|would|must)(?:\s?not|n['’]t|['’]t)\sbe)"
#: one letter and nothing else, possibly punctuated or wrapped; ``=``, a grade (``A+``) or a cross beside it is too much
BARE = re.compile(
    rf"(?:[\s(\[{{<*$~_【《〈.:,!?¿¡。、|{QUOTE}]|[-–—•·+](?=\s)|[>#](?=[\s>#*(]))*+"
    rf"([A-Z])[.):,\]}}。、】》〉;!?|\s<>*$~_{QUOTE}]*+"
)

_END = r"(?![^\W_])"
_BEFORE_NOT = re.compile(
    rf"(?i:(?<![^\W_])(?:not|never|neither|nor|no|without|than|unlike|instead[ ]of|opposed[ ]to|\w+n['’]t))"
    rf"(?:[ ](?i:the|an?))?[ \t{QUOTE}*(]+$"
)
_ANSWER_NOT = re.compile(rf"(?i:answer)\s(?:is\s)?{NOT}\s")
_REJECTED = re.compile(
    rf"{CLOSE}[)\]}}]?\s(?:"
    r"(?:is|was|seems|looks)(?:\s\w+ly|\s(?:also|just))?\s"
    r"(?:not\s(?:\w+ly\s)?(?:an?\s|the\s)?(?:\w+\s)?(?:answer|correct|right|it|option|choice)"
    r"|incorrect|wrong|ruled\sout|eliminated|excluded)"
    r"|(?:isn['’]t|wasn['’]t|cannot\sbe|can['’]t\sbe)\s(?:an?\s|the\s)?(?:\w+\s)?(?:answer|correct|right|it)"
    rf"|(?:can|must)\sbe\s(?:ruled\sout|eliminated|excluded|dismissed)){TAIL}",
    re.I,
)
_NEXT = re.compile(
    rf"[)\]}}*$~_>{QUOTE}]*+(?P<dot>\.?)"
    r"(?:\s*(?P<mark>[,/&;+、和或与及])\s*(?:and/or|and|or|AND|OR)?"
    r"|[ \t]+(?P<word>and/or|and|or|AND|OR|as\swell\sas|vs\.?|versus|und|oder|et|ou|y)"
    r"|(?P<space>(?=[ \t(\[{])))"
    rf"[ \t]*(?:(?:the|either)\s)?(?:(?i:answer|option|choice)s?\s+)?[(\[{{<*$~_{QUOTE}]*+(?P<letter>[A-Z]){TAIL}"
)
_PROSE = re.compile(r"[ \t]+[a-zß-öø-ÿ]")
_REASON = re.compile(rf"[ \t]+(?:because|since){_END}")
_CLAUSE = re.compile(rf"[ \t]+(?:because|since|as|is){_END}")
_PRONOUN = re.compile(
    r"[ \t]+(?:\w+ly[ \t]+)?(?:am|believe|can|cannot|chose|choose|consider|could|did|do|feel|find|gave|give|got|guess"
    r"|had|have|like|may|might|must|pick|prefer|see|select|should|suggest|support|think|want|was|will|would)"
    rf"{_END}|['’](?:d|m|ll|ve){_END}"
)
_PLURAL = re.compile(
    rf"[ \t]+(?:are|is|were|was|both|could|can|may|might|or|and|seem|look|because|since|as|together){_END}"
)
_COMPOUND = re.compile(rf"['’](?!s{TAIL}){WORD}|[-‐‑]{WORD}|–[A-Z]{TAIL}|[+#♭♯♮°]")
_ABBREVIATION = re.compile(rf"\.(?:[A-Za-z]\.|[A-Z]{_END})")
_ROW = re.compile(r"(?:[^\w]*[A-Z](?!\w)){2,}[^\w]*")
_SEGMENT = re.compile(rf"(?<!{WORD})([A-Z])[*_$~`\"']*+(?:[.):\]}},。、】]|\s*\n)[*_$~`\"'\s]*+")
_LISTED = re.compile(rf"[)\]]?[*$~_{QUOTE}]*+(?::|[ \t]+[-–—=](?=[ \t]))[*_ \t]*[^\W_]")
_LIST_HEAD = re.compile(r"(?:^|\n|[.;]\s)[\s>*_#•–—(\[\d.)-]*$")
_GOES_ON = re.compile(r"[^\W_]|[.,]\d")
#: characters of an option's text that decide whether a segment repeats it
_ENOUGH = 200


def joined(text: str, end: int, letter: str, options: Options) -> re.Match[str] | None:
    """The other letter that shares the answer slot of the letter ending at ``end``, if there is one.

    Joined are ``B, C``, ``B/C``, ``B & C``, ``B and C``, ``option B or option C`` and, if C is shown, ``B C`` and
    ``(B)(C)``; not
    ``B, A dog`` (an article), ``B, I think`` (a pronoun) or ``B, and A is wrong`` (rejected).
    """
    other = _NEXT.match(text, end)
    if not other or other["letter"] == letter:
        return None
    after = other.end("letter")
    if is_word(text, after) or _REJECTED.match(text, after):
        return None
    if other["letter"] in "AI" and _PROSE.match(text, after) and not _PLURAL.match(text, after):
        return None
    if other["space"] is not None:
        wrapped, opened = text[end : end + 1] in ")]}", text[other.start("letter") - 1] in "([{"
        return other if not other["dot"] and wrapped == opened and other["letter"] in options.shown else None
    return other if other["word"] or other["mark"] else None


def only_letters(text: str, letter: str, end: int, options: Options) -> bool:
    """Whether only further letters follow an opening one: another alone on the next line, or two or more in a row."""
    rest = text[end : end + 100]
    line = rest.lstrip("*$_`\"' \t")
    other = BARE.fullmatch(line.lstrip().split("\n", 1)[0]) if line.startswith("\n") else None
    if other and other[1] != letter and other[1] in options.shown:
        return True
    return len(rest) < 100 and bool(_ROW.fullmatch(rest))


def is_word(text: str, end: int) -> bool:
    """Whether the capital ending at ``end`` belongs to a word or an abbreviation (``A-frame``, ``I'm``, ``D.C.``)."""
    return bool(_COMPOUND.match(text, end) or _ABBREVIATION.match(text, end))


def is_article(text: str, letter: str, end: int) -> bool:
    """Whether ``A`` or ``I`` goes on as prose: a space and a lower-case word other than because, since, as and is."""
    return letter in "AI" and bool(_PROSE.match(text, end)) and not _CLAUSE.match(text, end)


def is_aside(text: str, letter: str, end: int) -> bool:
    """Whether an opening ``I,`` is the pronoun before an aside ("I, as an assistant, cannot")."""
    aside = letter == "I" and text[end : end + 1] == "," and _PROSE.match(text, end + 1)
    return bool(aside) and not _REASON.match(text, end + 1)


def is_relative_pronoun(text: str, slot: re.Match[str]) -> bool:
    """Whether the ``I`` of a slot is the pronoun of "the option I would choose"."""
    near = slot["letter"] == "I" and text[slot.end("key") : slot.start("letter")] == " "
    return near and bool(_PRONOUN.match(text, slot.end("letter")))


def denial(text: str, slot: re.Match[str]) -> str:
    """How a slot is denied: ``"answer"`` ("the answer is not B"), ``"mention"`` ("not option B"), or ``""``."""
    of_answer = slot["key"].lower() == "answer"
    if slot["not"]:
        return "answer" if of_answer else "mention"
    if _BEFORE_NOT.search(text[max(0, slot.start() - 24) : slot.start()]):
        return "answer" if _ANSWER_NOT.search(text[max(0, slot.start() - 40) : slot.start()]) else "mention"
    return "mention" if _REJECTED.match(text, slot.end("letter")) else ""


def lists(text: str, slot: re.Match[str]) -> bool:
    """Whether a slot opens an entry of a list of options: ``Option A: what is said about it``."""
    if slot["key"].lower() == "answer" or not _LISTED.match(text, slot.end("letter")):
        return False
    return bool(_LIST_HEAD.search(text[max(0, slot.start() - 12) : slot.start()]))


def says(text: str, at: int, option: str) -> bool:
    """Whether the text from ``at`` on opens with an option's text (of a long one, with its first 200 characters)."""
    start = option[:_ENOUGH]
    piece = text[at : at + 2 * len(start) + 40].lstrip("\"'“”‘’`*_ \t\n").casefold()
    if piece[:1] != start[:1]:
        return False
    piece = " ".join(piece.split())
    return piece.startswith(start) and (len(option) > _ENOUGH or not _GOES_ON.match(piece, len(start)))


def opens_other_option(text: str, at: int, letter: str, options: Options) -> bool:
    """Whether the words at ``at`` are the text of another option that opens with a letter, as ``C. elegans`` does."""
    return any(says(text, at, t) for other, t in options.lettered.items() if other != letter)


def echo_at(text: str, options: Options) -> int:
    """Where the last segment of an echoed list of options opens; -1 where the reply holds no such list.

    A segment opens with a letter, a delimiter and that letter's option text; a list has two with different letters.
    """
    if len(options.texts) < 2:
        return -1
    seen: set[str] = set()
    last = -1
    for segment in _SEGMENT.finditer(text):
        own = options.texts.get(segment[1])
        if own and says(text, segment.end(), own):
            seen.add(segment[1])
            last = segment.start(1)
    return last if len(seen) > 1 else -1
