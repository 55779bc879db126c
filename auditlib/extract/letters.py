"""Reader ``letters``: an option letter by three ordered rules, with guards against prose that looks like one.

Only capitals count, and only one letter. Rule 1 (``bare``): the whole reply is a letter, possibly punctuated or wrapped.
Rule 2 (``start``): the reply opens with a letter and a delimiter, one of ``. ) : , ] }``, a full-width or CJK stop or a
line break; or with a letter, a space and because, since or as. A space alone is no delimiter. Rule 3 (``keyword``): the
last letter after the whole word "answer" or "option" in any case, with nothing between but spaces, "is", and
``: = < > ( [ {``, quotes, ``* $``, dashes, arrows or ``\\boxed{``. The first rule that fires decides, and a guard that objects makes
the reply an abstention. Two exceptions go on to a later statement that says "answer": a reply that opens with several
letters, and one that repeats its options. A mention of an option that the reply rejects ("option A is wrong", "not option
A") is passed over, never taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditlib.extract.text import WORD, Options, Reading, abstain, prepare, read_options

RULES: list[tuple[str, str]] = [
    ("bare", "The whole reply is one capital letter, possibly punctuated or wrapped (B, (B), **B**, $B$)."),
    (
        "start",
        "The reply opens with a letter and a delimiter: . ) : , ] } or a full-width or CJK stop, or a line break.",
    ),
    ("start-because", "The reply opens with a letter, a space and because, since or as."),
    ("keyword", "The last letter after the whole word answer or option, only 'is' and marks between them."),
    ("…+letter-text", "As above, and a warning: the text of some option of this item is another option's letter."),
    ("two-letters", "Two different letters in one answer slot, joined by a comma, slash, &, and, or: Z."),
    ("negated", "'not' stands before the letter, or the reply rejects the option it names: Z."),
    ("article", "A (or I) is followed by a space and a lower-case word, so it is an article or a pronoun: Z."),
    ("word", "The capital is part of a word or an abbreviation (A-frame, D.C., I'm), not an option letter: Z."),
    ("option-text", "The words are the text of another option that happens to open with a letter (C. elegans): Z."),
    ("outside-options", "The letter is not among the options that the item shows: Z."),
    ("echoed-list", "At least two segments open with different letters and their own option texts: Z."),
    ("stated-abstention", "The reply is the letter Z itself: Z."),
    ("lower-case", "Only a lower-case letter is given: Z."),
    ("boxed-only", "A letter stands in a box only, which the reader boxed reads: Z."),
    ("non-english-keyword", "The answer is announced in another language than English: Z."),
    ("no-letter", "No rule finds a letter: Z."),
]

_QUOTE = "\"'“”‘’„«»「」『』`"
_OPEN = rf"(?:[\s(\[{{<*$~_【《〈{_QUOTE}]|[-–—•·+](?=\s)|[>#](?=[\s>#*(]))*+"
_CLOSE = rf"[*$~_>{_QUOTE}]*+"
_DELIMITER = r"[.):,\]}。、】》〉]"
#: what may not follow a letter that is to stand alone: the rest of a word, a subscript, a sharp, a grade, a possessive's kin
_TAIL = rf"(?!{WORD}|_{WORD})"
_BARE = re.compile(
    rf"(?:[\s(\[{{<*$~_【《〈.:,!?¿¡。、|{_QUOTE}]|[-–—•·+](?=\s)|[>#](?=[\s>#*(]))*+"
    rf"([A-Z])[.):,\]}}。、】》〉;!?|\s<>*$~_{_QUOTE}]*+"
)
_START = re.compile(
    rf"{_OPEN}([A-Z]){_TAIL}(?P<close>{_CLOSE})(?:(?P<mark>{_DELIMITER})|[ \t]*\n|(?P<why>[ \t]+(?:because|since|as){_TAIL}))"
)
_KEYWORD = rf"(?<!{WORD})(?<!</)(?<!\[/)(?P<key>(?i:answer|option)){_TAIL}"
_FILL = rf"(?:[\s:=<>(\[{{\]}}*$~_→⇒–—-]|[{_QUOTE}]|(?i:is){_TAIL}|\\(?:boxed|fbox)\s*\{{)*+"
_NOT = r"(?i:not|never|neither|isn['’]t|(?:can|could|will|would|must)(?:\s?not|n['’]t|['’]t)\sbe)"
_SLOT = re.compile(rf"{_KEYWORD}{_FILL}(?P<not>(?:{_NOT}{_TAIL}{_FILL})?)(?P<letter>[A-Z]){_TAIL}")
_BEFORE_NOT = re.compile(
    r"(?i:(?<![^\W_])(?:not|never|neither|nor|no|without|than|unlike|instead\sof|opposed\sto|\w+n['’]t))"
    rf"(?:\s(?i:the|an?))?[\s{_QUOTE}*(]*$"
)
_ANSWER_NOT = re.compile(rf"(?i:answer)\s(?:is\s)?{_NOT}\s")
_REJECTED = re.compile(
    rf"{_CLOSE}[)\]}}]?(?:\s(?:is|was|seems|looks)(?:\s\w+ly|\s(?:also|just))?\s"
    r"(?:not\s(?:\w+ly\s)?(?:an?\s|the\s)?(?:\w+\s)?(?:answer|correct|right|it|option|choice)"
    r"|incorrect|wrong|ruled\sout|eliminated|excluded)"
    r"|\s(?:isn['’]t|wasn['’]t|cannot\sbe|can['’]t\sbe)\s(?:an?\s|the\s)?(?:\w+\s)?(?:answer|correct|right|it)"
    rf"|\s(?:can|must)\sbe\s(?:ruled\sout|eliminated|excluded|dismissed)){_TAIL}",
    re.I,
)
_NEXT = re.compile(
    rf"[)\]}}*$~_>{_QUOTE}]*+(?P<dot>\.?)(?:\s*(?P<mark>[,/&;+])\s*(?:and/or|and|or|AND|OR)?|[ \t]+(?P<word>and/or|and|or|AND|OR)"
    rf"|(?P<space>(?=[ \t])))[ \t]*(?:(?:the|either)\s)?(?:(?i:answer|option|choice)s?\s+)?"
    rf"[(\[{{<*$~_{_QUOTE}]*+(?P<letter>[A-Z]){_TAIL}"
)
_LISTED = re.compile(rf"[)\]]?[*$~_{_QUOTE}]*+(?::|[ \t]+[-–—=](?=[ \t]))[*_ \t]*[^\W_]")
_LIST_HEAD = re.compile(r"(?:^|\n|[.;]\s)[\s>*_#•–—(\[\d.)-]*$")
_PROSE = re.compile(r"[ \t]+[a-zß-öø-ÿ]")
_CLAUSE = re.compile(r"[ \t]+(?:because|since|as|is)(?![^\W_])")
_PRONOUN = re.compile(
    r"[ \t]+(?:\w+ly[ \t]+)?(?:am|believe|can|cannot|chose|choose|consider|could|did|do|feel|find|gave|give|got|guess|had|have|like"
    r"|may|might|must|pick|prefer|see|select|should|suggest|support|think|want|was|will|would)(?![^\W_])|['’](?:d|m|ll|ve)(?![^\W_])"
)
_PLURAL = re.compile(
    r"[ \t]+(?:are|is|were|was|both|could|can|may|might|or|and|seem|look|because|since|as|together)(?![^\W_])"
)
_COMPOUND = re.compile(rf"['’](?!s{_TAIL}){WORD}|[-‐‑]{WORD}|[+#♭♯♮°]")
_ABBREVIATION = re.compile(r"\.(?:[A-Za-z]\.|[A-Z](?![^\W_]))")
_LETTER_ROW = re.compile(r"(?:[^\w]*[A-Z](?!\w)){2,}[^\w]*")
_SEGMENT = re.compile(rf"(?<!{WORD})([A-Z])[*_$~`\"']*+(?:[.):\]}},。、】]|\s*\n)[*_$~`\"'\s]*+")


def read_letters(text: str, options: Sequence[str]) -> Reading:
    """Read an option letter from a reply.

    Parameters
    ----------
    text : the raw reply.
    options : option texts in letter order; ``""`` for a letter without text, ``[]`` for an item without letters.

    Returns
    -------
    Reading
        The letter and the rule, or ``Z`` and the reason.

    Notes
    -----
    The ordered rules are those of "Auditing VLM Benchmarks from Existing Evaluation Runs"; word ends, the upper-case
    condition and the guards are ours. The key plays no part. Time is linear in the length of the reply.

    Examples
    --------
    >>> read_letters("Option A is wrong. The answer is **B**.", ["red", "blue"])
    Reading(value='B', rule='keyword')
    >>> read_letters("The answer is a dog", ["a dog", "a cat"])
    Reading(value='Z', rule='no-letter')
    """
    shown = read_options(options)
    clean, problem = prepare(text if isinstance(text, str) else "")
    if problem:
        return abstain(problem)
    found = _read(clean, shown)
    return Reading(found.value, found.rule + "+letter-text") if found.answered and shown.letter_text else found


def _read(text: str, options: Options) -> Reading:
    bare = _BARE.fullmatch(text)
    if bare:
        return _shown(bare[1], "bare", options)
    echo = _echo_end(text, options)
    start = _START.match(text)
    if start and not echo:
        found = _judge_start(text, start, options)
        if found.rule not in ("two-letters", "word", "option-text"):
            return found
        return _keyword(text, options, stated=found.rule != "word") or found
    found = _keyword(text, options, after=echo, stated=bool(echo))
    return found or abstain("echoed-list" if echo else _why(text))


def _shown(letter: str, rule: str, options: Options) -> Reading:
    if letter in options.shown:
        return Reading(letter, rule)
    return abstain("stated-abstention" if letter == "Z" and rule == "bare" else "outside-options")


def _judge_start(text: str, start: re.Match[str], options: Options) -> Reading:
    letter, end = start[1], start.end(1)
    rule = "start-because" if start["why"] else "start"
    own = options.texts.get(letter)
    if own and start["mark"] not in (None, ",") and _says(text, start.end(), own):
        return _shown(letter, rule, options)
    if _ABBREVIATION.match(text, end):
        return abstain("word")
    if _opens_other_option(text, start.start(1), letter, options):
        return abstain("option-text")
    if _joined(text, end, letter, options) or _only_letters(text, start, options):
        return abstain("two-letters")
    return _shown(letter, rule, options)


def _only_letters(text: str, start: re.Match[str], options: Options) -> bool:
    """Whether nothing but further letters follows: another bare letter on the next line, or two or more anywhere."""
    if start["why"]:
        return False
    rest = text[start.end() : start.end() + 99].lstrip()
    other = _BARE.fullmatch(rest.split("\n", 1)[0])
    if start["mark"] is None and other and other[1] != start[1] and other[1] in options.shown:
        return True
    return len(text) < 99 and bool(_LETTER_ROW.fullmatch(rest))


def _keyword(text: str, options: Options, *, after: int = 0, stated: bool = False) -> Reading | None:
    """Rule 3 with its guards; ``stated`` wants the word answer and not merely option. None where nothing matches."""
    slots: list[tuple[re.Match[str], bool]] = []
    joined_up_to = -1
    for slot in _SLOT.finditer(text):
        end = slot.end("letter")
        partner = _joined(text, end, slot["letter"], options)
        in_pair = partner is not None or slot.start("letter") < joined_up_to
        joined_up_to = partner.end() if partner else joined_up_to
        if slot.start("letter") >= after and (not stated or slot["key"].lower() == "answer"):
            slots.append((slot, in_pair))
    listed = [slot for slot, _ in slots if _lists(text, slot)]
    if len({slot["letter"] for slot in listed}) > 1:
        slots = [(slot, in_pair) for slot, in_pair in slots if slot not in listed]
        if not slots:
            return abstain("echoed-list")
    rejected = set()
    for slot, in_pair in reversed(slots):
        if (
            slot["letter"] == "I"
            and text[slot.end("key") : slot.start("letter")] == " "
            and _PRONOUN.match(text, slot.end("letter"))
        ):
            continue
        verdict = _rejects(text, slot)
        if verdict == "pass":
            rejected.add(slot["letter"])
            continue
        if verdict == "stop" or slot["letter"] in rejected:
            return abstain("negated")
        return _judge_slot(text, slot, in_pair, options)
    return abstain("negated") if rejected else None


def _lists(text: str, slot: re.Match[str]) -> bool:
    """Whether a slot opens an entry of a list of options: ``Option A: what is said about it``."""
    if slot["key"].lower() == "answer" or not _LISTED.match(text, slot.end("letter")):
        return False
    return slot.start() == 0 or bool(_LIST_HEAD.search("." + text[max(0, slot.start() - 12) : slot.start()]))


def _rejects(text: str, slot: re.Match[str]) -> str:
    """``"stop"`` where an answer is negated, ``"pass"`` where a mentioned option is rejected, else ``""``."""
    if slot["not"]:
        return "stop" if slot["key"].lower() == "answer" else "pass"
    before = text[max(0, slot.start() - 24) : slot.start()]
    if _BEFORE_NOT.search(before):
        return "stop" if _ANSWER_NOT.search(text[max(0, slot.start() - 40) : slot.start()]) else "pass"
    return "pass" if _REJECTED.match(text, slot.end("letter")) else ""


def _judge_slot(text: str, slot: re.Match[str], in_pair: bool, options: Options) -> Reading:
    letter, at, end = slot["letter"], slot.start("letter"), slot.end("letter")
    if in_pair:
        return abstain("two-letters")
    if _COMPOUND.match(text, end) or _ABBREVIATION.match(text, end):
        return abstain("word")
    if letter in "AI" and _PROSE.match(text, end) and not _CLAUSE.match(text, end):
        if slot["key"].lower() != "option" or text[slot.end("key") : at] != " ":
            return abstain("article")
    if _opens_other_option(text, at, letter, options):
        return abstain("option-text")
    return _shown(letter, "keyword", options)


def _joined(text: str, end: int, letter: str, options: Options) -> re.Match[str] | None:
    """The other letter that shares the slot of a letter ending at ``end``, if there is one."""
    other = _NEXT.match(text, end)
    if not other or other["letter"] == letter:
        return None
    after = other.end("letter")
    if _REJECTED.match(text, after):
        return None
    if other["dot"] and not (other["word"] or other["mark"]):
        return None
    if other["space"] is not None and other["letter"] not in options.shown:
        return None
    wrapped, opened = text[end : end + 1] in ")]}", text[other.start("letter") - 1] in "([{"
    if other["space"] is not None and wrapped != opened:
        return None
    if _COMPOUND.match(text, after) or _ABBREVIATION.match(text, after):
        return None
    if other["letter"] in "AI" and _PROSE.match(text, after) and not _PLURAL.match(text, after):
        return None
    return other


def _says(text: str, at: int, option: str) -> bool:
    """Whether the text from ``at`` on opens with an option's text."""
    piece = " ".join(text[at : at + 2 * len(option) + 40].casefold().split()).lstrip("\"'“”‘’`*_ ")
    return piece.startswith(option) and not _GOES_ON.match(piece, len(option))


def _opens_other_option(text: str, at: int, letter: str, options: Options) -> bool:
    return any(_says(text, at, t) for other, t in options.lettered.items() if other != letter)


def _echo_end(text: str, options: Options) -> int:
    """Where the letter of an echoed list's last segment stands, 0 where the reply holds no such list."""
    if len(options.texts) < 2:
        return 0
    seen: set[str] = set()
    last = 0
    for segment in _SEGMENT.finditer(text):
        own = options.texts.get(segment[1])
        if own and _says(text, segment.end(), own):
            seen.add(segment[1])
            last = segment.start(1)
    return last if len(seen) > 1 else 0


_GOES_ON = re.compile(r"[^\W_]|[.,]\d")
_LOWER = re.compile(rf"\W*[a-z]\W*|.*(?<!{WORD})(?i:answer|option){_TAIL}{_FILL}[a-z]{_TAIL}(?! [a-z]).*", re.S)
_NEGATED = re.compile(rf"(?<![^\W_])(?i:not|n['’]t)\s(?:(?i:option|answer)\s)?[(*\"']*[A-Z]{_TAIL}(?! [a-z])")
_SEVERAL = re.compile(rf"(?<!{WORD})([A-Z])[)\]*]*(?: ?[,/&] ?| (?:and|or|nor) )[(\[*]*(?!\1)[A-Z]{_TAIL}(?! [a-z])")
_FOREIGN = re.compile(
    r"答案|正确|正確|选|選|答え|回答|解答|正解|정답|답|(?<![^\W_])(?:respuesta|réponse|antwort|resposta|risposta|odpowied[źz]"
    r"|ответ|cevap|jawaban|đáp án|الإجابة|الجواب|उत्तर|תשובה)(?![^\W_])",
    re.I,
)
#: a reply this short, in characters, is an answer rather than prose about the options
_SHORT = 80


def _why(text: str) -> str:
    """The most specific reason why no rule found a letter."""
    short = text if len(text) <= _SHORT else ""
    piece = text if len(text) <= 4000 else text[:2000] + "\n" + text[-2000:]
    for reason, pattern, where in (
        ("negated", _NEGATED, short),
        ("two-letters", _SEVERAL, short),
        ("non-english-keyword", _FOREIGN, piece),
    ):
        if pattern.search(where):
            return reason
    if text[:1] == "A" and _PROSE.match(text, 1):
        return "article"
    if "\\boxed" in piece:
        return "boxed-only"
    return "lower-case" if _LOWER.fullmatch(piece) else "no-letter"
