"""Reader ``letters``: an option letter by three ordered rules, with guards against prose that looks like one.

Only capitals count, and only one letter. Rule 1 (``bare``): the whole reply is a letter, possibly punctuated or
wrapped. Rule 2 (``start``): the reply opens with a letter and a delimiter, one of ``. ) : , ] }``, a full-width or
CJK stop or a line break, or (``start-because``) with a letter, a space and because, since or as. A space alone is no
delimiter. Rule 3 (``keyword``): the *last* letter after the whole word "answer" or "option" in any case, with nothing
between but spaces, the word "is", brackets, quotes, ``: = < > * $ _``, dashes, arrows, ``\\boxed{`` or ``\\text{``.

The first rule that fires decides; a guard that objects makes the reply an abstention. There are three exceptions,
none of which takes a letter that no rule would find. A reply that opens with several letters, or repeats its options,
is read by rule 3 if it says "answer" and a letter after that. Mentions that the reply itself denies ("not option A",
"option A is wrong") are passed over, as is a list of the form "Option A: ... Option B: ...". An abbreviation at the
start is no letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditlib.extract import guards
from auditlib.extract.guards import BARE, CLOSE, NOT, QUOTE, TAIL
from auditlib.extract.text import WORD, Options, Reading, abstain, prepare, read_options

RULES: list[tuple[str, str]] = [
    ("bare", "The whole reply is one capital letter, possibly punctuated or wrapped: B, (B), **B**, $B$."),
    ("start", "The reply opens with a letter and a delimiter: . ) : , ] } a full-width or CJK stop, a line break."),
    ("start-because", "The reply opens with a letter, a space and because, since or as."),
    ("keyword", "The last letter after the whole word answer or option, with only 'is' and marks between them."),
    ("+letter-text", "Added to a rule as a warning: the text of one of the item's options is another option's letter."),
    ("two-letters", "Two different letters in one answer slot, joined by , / & and or: Z."),
    ("negated", "'not' stands before the letter, or the reply rejects the option it names: Z."),
    ("article", "A (or I) is followed by a space and a lower-case word, so it is an article or a pronoun: Z."),
    ("word", "The capital is part of a word or an abbreviation, not an option letter (A-frame, D.C., I'm): Z."),
    ("option-text", "The words are the text of another option that happens to open with a letter (C. elegans): Z."),
    ("outside-options", "The letter is not among the options that the item shows: Z."),
    ("echoed-list", "Two or more segments open with different letters and their option texts, or list options: Z."),
    ("stated-abstention", "The letter is Z: Z."),
    ("lower-case", "Only a lower-case letter is given: Z."),
    ("boxed-only", r"A \boxed{...} is there that only the reader boxed reads: Z."),
    ("non-english-keyword", "The answer is announced in another language than English: Z."),
    ("no-letter", "No rule finds a letter: Z."),
]

_START = re.compile(
    rf"(?:[\s(\[{{<*$~_【《〈{QUOTE}]|[-–—•·+](?=\s)|[>#](?=[\s>#*(]))*+([A-Z]){TAIL}{CLOSE}"
    rf"(?:(?P<mark>[.):,\]}}。、】》〉])|(?P<line>[ \t]*\n)|[ \t]+(?:because|since|as){TAIL})"
)
_KEYWORD = rf"(?<!{WORD})(?<!</)(?<!\[/)(?P<key>(?i:answer|option)){TAIL}"
_FILL = rf"(?:[\s:=<>(\[{{【《〈\]}}*$~_→⇒–—-]|[{QUOTE}]|(?i:is){TAIL}|\\(?:boxed|fbox)\s*\{{)*+"
_SLOT = re.compile(rf"{_KEYWORD}{_FILL}(?P<not>(?:{NOT}{TAIL}{_FILL})?)(?P<letter>[A-Z]){TAIL}")


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
    bare = BARE.fullmatch(text)
    if bare:
        return _shown(bare[1], "bare", options)
    echo = guards.echo_at(text, options)
    if echo >= 0:
        return _keyword(text, options, after=echo, stated=True) or abstain("echoed-list")
    start = _START.match(text)
    if not start:
        return _keyword(text, options) or abstain(_why(text))
    found = _judge_start(text, start, options)
    if found.rule == "word":
        return _keyword(text, options) or found
    if found.rule in ("two-letters", "option-text"):
        return _keyword(text, options, stated=True) or found
    return found


def _shown(letter: str, rule: str, options: Options) -> Reading:
    if letter in options.shown:
        return Reading(letter, rule)
    return abstain("stated-abstention" if letter == "Z" else "outside-options")


def _judge_start(text: str, start: re.Match[str], options: Options) -> Reading:
    letter, end = start[1], start.end(1)
    rule = "start" if start["mark"] or start["line"] else "start-because"
    own = options.texts.get(letter)
    if own and start["mark"] not in (None, ",") and guards.says(text, start.end(), own):
        return _shown(letter, rule, options)
    if guards.is_word(text, end):
        return abstain("word")
    if guards.is_aside(text, letter, end):
        return abstain("article")
    if guards.opens_other_option(text, start.start(1), letter, options):
        return abstain("option-text")
    if guards.joined(text, end, letter, options) or guards.only_letters(text, letter, end, options):
        return abstain("two-letters")
    return _shown(letter, rule, options)


def _keyword(text: str, options: Options, *, after: int = 0, stated: bool = False) -> Reading | None:
    """Rule 3 with its guards, None where it does not fire.

    ``after``: only letters from this place on; ``stated``: only after the word answer, not after a mere option.
    """
    slots: list[tuple[re.Match[str], bool]] = []
    pair_end = -1
    for slot in _SLOT.finditer(text):
        partner = guards.joined(text, slot.end("letter"), slot["letter"], options)
        paired = partner is not None or slot.start("letter") < pair_end
        pair_end = partner.end() if partner else pair_end
        if slot.start("letter") >= after and not (stated and slot["key"].lower() == "option"):
            slots.append((slot, paired))
    entries = {slot.start(): slot["letter"] for slot, _ in slots if guards.lists(text, slot)}
    if len(set(entries.values())) > 1:
        slots = [(slot, paired) for slot, paired in slots if slot.start() not in entries]
        if not slots:
            return abstain("echoed-list")
    denied = set()
    for slot, paired in reversed(slots):
        if guards.is_relative_pronoun(text, slot):
            continue
        denial = guards.denial(text, slot)
        if denial == "answer" or (not denial and slot["letter"] in denied):
            return abstain("negated")
        if not denial:
            return _judge_slot(text, slot, paired, options)
        denied.add(slot["letter"])
    return abstain("negated") if denied else None


def _judge_slot(text: str, slot: re.Match[str], paired: bool, options: Options) -> Reading:
    letter, at, end = slot["letter"], slot.start("letter"), slot.end("letter")
    if paired:
        return abstain("two-letters")
    if guards.is_word(text, end):
        return abstain("word")
    named = slot["key"].lower() == "option" and text[slot.end("key") : at] == " "
    if guards.is_article(text, letter, end) and not named:
        return abstain("article")
    if guards.opens_other_option(text, at, letter, options):
        return abstain("option-text")
    return _shown(letter, "keyword", options)


_NEGATED = re.compile(
    rf"(?<![^\W_])(?i:not|n['’]t)\s(?:(?i:option|answer)\s)?[(*\"']*[A-Z]{TAIL}(?! [a-z])|[✖✗✘❌❎☒⛔🚫👎]"
)
_SEVERAL = re.compile(rf"(?<!{WORD})([A-Z])[)\]*]*(?: ?[,/&] ?| (?:and|or|nor) )[(\[*]*(?!\1)[A-Z]{TAIL}(?! [a-z])")
_FOREIGN = re.compile(
    r"答案|正确|正確|选|選|答え|回答|解答|正解|정답|답|(?<![^\W_])(?:respuesta|réponse|antwort|resposta|risposta|odpowiedź"
    r"|ответ|cevap|jawaban|đáp án|الإجابة|الجواب|उत्तर|תשובה)(?![^\W_])",
    re.I,
)
_ARTICLE = re.compile(r"A[ \t]+[a-z]")
_LOWER = re.compile(rf"\W*[a-z]\W*|.*(?<!{WORD})(?i:answer|option){TAIL}{_FILL}[a-z]{TAIL}(?! [a-z]).*", re.S)
#: a reply this short, in characters, is an answer rather than prose about the options
_SHORT = 80


def _why(text: str) -> str:
    """The most specific reason why no rule found a letter."""
    short = text if len(text) <= _SHORT else ""
    piece = text if len(text) <= 4000 else text[:2000] + "\n" + text[-2000:]
    if _NEGATED.search(short):
        return "negated"
    if _SEVERAL.search(short):
        return "two-letters"
    if _FOREIGN.search(piece):
        return "non-english-keyword"
    if _ARTICLE.match(text):
        return "article"
    if "\\boxed" in piece:
        return "boxed-only"
    return "lower-case" if _LOWER.fullmatch(piece) else "no-letter"
