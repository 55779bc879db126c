"""Open answers: whether a reply gives one of the accepted answers, and by which rule.

Compared is the answer slot of a reply (see ``option_text``): the last box, else what follows "answer is" or "answer:",
else the whole reply. ``yesno`` is read by the reader of that name. ``number`` takes the slot as one quantity, or the
only number in a short reply, and compares with a relative tolerance and, where both sides have one, the unit; a range
is no number. ``list`` compares entry by entry, in order. ``text`` compares after NFKC, case folding and dropping
articles and punctuation. ``auto`` takes the kind from each reference. Dates are text.

A reply that cannot be read is ``None``, an abstention; nothing is guessed.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from auditlib.extract.numeric import Quantity, read_quantity
from auditlib.extract.option_text import slots
from auditlib.extract.text import normalise, prepare
from auditlib.extract.yesno import read_yesno

KINDS = ("yesno", "number", "list", "text", "auto")
#: other names of the kind ``number``
_NUMBER = ("number", "numeric", "integer", "float", "int")

RULES: list[tuple[str, str]] = [
    ("yesno", "Yes or no, read as the reader yesno does; true and false count as yes and no."),
    ("quantity", "The answer slot is one number with an optional unit, equal to an answer within the tolerance."),
    ("only-number", "The reply is short and holds one number, compared as quantity."),
    ("unit", "The number carries another unit than the accepted answer: wrong."),
    ("list", "Entries compared one by one, in order, numbers as quantities and the rest as text."),
    ("text", "The answer slot equals an answer up to case, articles, punctuation and white space."),
    ("range", "A range of numbers names no single number: unread."),
    ("several-numbers", "The reply holds more than one number and no answer slot: unread."),
    ("no-number", "The reply holds no number: unread."),
    ("no-yesno", "The reply says neither yes nor no: unread."),
    ("no-reference", "The item has no accepted answer: unread."),
]

_NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_WORDS = {name: str(n) for n, name in enumerate(_NAMES)}
_POWERS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SCALED = re.compile(
    r"(?P<number>.*\d)\s*(?P<power>thousand|million|billion|trillion)s?(?P<unit>(?:\s+\S+){0,2})", re.I | re.S
)
_MIXED = re.compile(
    r"(?P<sign>[-−]?)(?P<whole>\d{1,9})\s+(?P<over>\d{1,9})\s*[/⁄]\s*(?P<under>\d{1,9})(?P<unit>(?:\s+\S+)?)"
)
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ '’]\d{3})+(?![\d])")
_MINUS = re.compile(r"^\s*(?:minus|negative)\s+(?=\d)", re.I)
_DIGITS = r"[-+−]?[$€£¥]?\s?(?:\d{1,3}(?:,\d{3})+|\d{1,18})(?:\.\d{1,18})?(?:e[-+]?\d{1,3})?"
_RANGE = re.compile(
    rf"(?:between\s+|from\s+)?{_DIGITS}\s*%?\s*(?:-|–|—|~|to|and|\.\.+)\s*{_DIGITS}\s*[^\W\d]{{0,12}}%?\.?", re.I
)
_NUMERAL = re.compile(
    r"(?<![\w.,:/])[-+−]?[$€£¥]?(?:\d{1,3}(?:,\d{3})+|\d{1,18})(?:\.\d{1,18})?(?:e[-+]?\d{1,3}|\s?/\s?\d{1,9})?(?![\w/]|[.,:]\d)"
    r"\s?(?:%|percent|(?:thousand|million|billion|trillion)\b)?",
    re.I,
)
_NUMBER_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(_WORDS)})(?![\w-])", re.I)
#: longest reply, in characters, of which the only number is taken
_SHORT = 300
#: longest slot that is compared
_LONGEST = 4000

Verdict = tuple[bool | None, str]


def matches(
    reply: str, references: Sequence[str], *, kind: str, tolerance: float = 0.0, unit: str | None = None
) -> Verdict:
    """Whether a reply gives one of the accepted answers.

    Parameters
    ----------
    reply : the raw reply, think block included.
    references : all accepted answers.
    kind : one of :data:`KINDS`; integer, float and numeric mean ``number``.
    tolerance : largest relative difference of two numbers, as a share of the accepted one.
    unit : unit of the accepted answers where their text does not carry it.

    Returns
    -------
    verdict : True or False, or None where the reply cannot be read.
    rule : name of one of :data:`RULES`, or the reason (``empty``, ``truncated-think``).

    Raises
    ------
    ValueError
        An unknown kind, or a tolerance below 0.

    Examples
    --------
    >>> matches("The answer is 1,250 kg.", ["1250"], kind="number")
    (True, 'quantity')
    >>> matches("9.7", ["10"], kind="number", tolerance=0.05)
    (True, 'quantity')
    >>> matches("between 9 and 11", ["10"], kind="number")
    (None, 'range')
    >>> matches("The Eiffel Tower!", ["eiffel tower"], kind="text")
    (True, 'text')
    """
    kind = "number" if kind in _NUMBER else kind
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(KINDS)}")
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}, expected 0 or more")
    accepted = [r for r in references if isinstance(r, str) and r.strip()]
    clean, problem = prepare(reply if isinstance(reply, str) else "")
    if problem:
        return None, problem
    if not accepted:
        return None, "no-reference"
    verdicts = [_one(clean, r, kind if kind != "auto" else kind_of(r), tolerance, unit) for r in accepted]
    # True before False before None
    return min(verdicts, key=lambda v: (v[0] is not True, v[0] is None))


def kind_of(reference: str) -> str:
    """Kind of an accepted answer, from its text.

    Examples
    --------
    >>> [kind_of(t) for t in ("Yes", "[1, 2]", "12.5%", "2010-11", "blue")]
    ['yesno', 'list', 'number', 'text', 'text']
    """
    text = reference.strip()
    if text.lower().rstrip(".") in ("yes", "no"):
        return "yesno"
    if text.startswith("[") and text.endswith("]"):
        return "list"
    return "text" if quantity(text) is None else "number"


def vqa_score(reply: str, references: Sequence[str]) -> float:
    """Soft score of a reply against several people's answers: a third for each that agrees, at most 1.

    Examples
    --------
    >>> round(vqa_score("a dog", ["dog"] * 2 + ["cat"] * 8), 3), vqa_score("cat", ["cat"] * 3)
    (0.667, 1.0)
    """
    agree = sum(matches(reply, [r], kind="text")[0] is True for r in references)
    return min(1.0, agree / 3)


def _one(clean: str, reference: str, kind: str, tolerance: float, unit: str | None) -> Verdict:
    if kind == "yesno":
        return _yesno(clean, reference)
    found = [s for s in slots(clean) if len(s) <= _LONGEST]
    if kind == "number":
        return _number(clean, found, reference, tolerance, unit)
    if kind == "list":
        return _list(found, reference, tolerance)
    return _text(found, reference), "text"


_TRUTH = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}


def _yesno(clean: str, reference: str) -> Verdict:
    wanted = _TRUTH.get(plain(reference))
    if wanted is None:
        return None, "no-reference"
    said = _TRUTH.get(plain(clean)) or read_yesno(clean).value
    return (said == wanted, "yesno") if said in _TRUTH else (None, "no-yesno")


def quantity(text: str) -> Quantity | None:
    """A text as one quantity; also number words to twelve, ``3.1 million``, ``1 1/2`` and ``1 234``."""
    text = normalise(text.strip()[:1000]).replace("\u202f", " ").replace("\xa0", " ")
    text = _MINUS.sub("-", _GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), text))
    text = _NUMBER_WORD.sub(lambda m: _WORDS[m[0].lower()], text)
    mixed = _MIXED.fullmatch(text.rstrip(" ."))
    if mixed and float(mixed["under"]):
        value = float(mixed["whole"]) + float(mixed["over"]) / float(mixed["under"])
        whole = read_quantity("1" + mixed["unit"])
        return whole and Quantity(-value if mixed["sign"] else value, whole.unit, False)
    scaled = _SCALED.fullmatch(text.rstrip(" ."))
    if scaled:
        base = read_quantity(scaled["number"] + scaled["unit"])
        value = base.value * _POWERS[scaled["power"].lower()] if base else math.inf
        return Quantity(value, base.unit, float(value).is_integer()) if base and math.isfinite(value) else None
    return read_quantity(text)


def equal(said: Quantity, accepted: Quantity, tolerance: float = 0.0) -> bool:
    """Whether a quantity equals the accepted one within a relative tolerance; a percentage also as its hundredth."""
    percent = said.unit == "%", accepted.unit == "%"
    if said.unit and accepted.unit and said.unit != accepted.unit:
        return False
    values = [said.value]
    if percent[0] != percent[1]:
        values.append(said.value / 100 if percent[0] else said.value * 100)
    return any(abs(v - accepted.value) <= max(tolerance, 1e-9) * abs(accepted.value) for v in values)


def _number(clean: str, found: list[str], reference: str, tolerance: float, unit: str | None) -> Verdict:
    accepted = quantity(reference)
    if accepted is None:
        return _text(found, reference), "text"
    if unit and not accepted.unit:
        known = read_quantity("1 " + unit)
        accepted = accepted._replace(unit=known.unit if known else unit)
    said, rule = _said(clean, found)
    if said is None:
        return None, rule
    if said.unit and accepted.unit and said.unit != accepted.unit and "%" not in (said.unit, accepted.unit):
        return False, "unit"
    return equal(said, accepted, tolerance), rule


def _said(clean: str, found: list[str]) -> tuple[Quantity | None, str]:
    """The quantity that a reply states and the rule, or None and the reason."""
    for slot in found:
        if _RANGE.fullmatch(slot.strip(" *_$`\"'")):
            return None, "range"
        said = quantity(slot)
        if said is not None:
            return said, "quantity"
    # without an answer slot the only slot is the whole reply
    short = min(found, key=len) if found else clean
    if len(short) > _SHORT:
        return None, "no-number"
    if _RANGE.search(short):
        return None, "range"
    if len(entries(short)) > 1 and _LIST.fullmatch(short.strip()):
        return None, "several-numbers"
    said = {q for m in _NUMERAL.finditer(short) if (q := quantity(m[0])) is not None}
    if not said:
        said = {Quantity(float(_WORDS[m[0].lower()]), "", True) for m in _NUMBER_WORD.finditer(short)}
    if len(said) == 1:
        return said.pop(), "only-number"
    return None, "several-numbers" if said else "no-number"


_LIST = re.compile(r"[\[({]([^\[\](){}]*)[\])}]")


def entries(text: str) -> list[str]:
    """Entries of a list: of the last bracketed one, else of the text cut at commas, semicolons and "and"."""
    inside = _LIST.findall(text)
    parts = re.split(r"[,;，、]|\s+and\s+", inside[-1] if inside else text)
    return [p.strip(" \t\n\"'“”‘’`*_$.") for p in parts if p.strip(" \t\n\"'“”‘’`*_$.")]


def _list(found: list[str], reference: str, tolerance: float) -> Verdict:
    wanted = entries(reference)
    if not wanted:
        return None, "no-reference"
    return any(_same_entries(entries(slot), wanted, tolerance) for slot in found), "list"


def _same_entries(said: list[str], wanted: list[str], tolerance: float) -> bool:
    return len(said) == len(wanted) and all(_same(a, b, tolerance) for a, b in zip(said, wanted))


def _same(said: str, accepted: str, tolerance: float = 0.0) -> bool:
    if plain(said) == plain(accepted):
        return True
    a, b = quantity(said), quantity(accepted)
    return a is not None and b is not None and equal(a, b, tolerance)


def _text(found: list[str], reference: str) -> bool:
    return any(_same(slot, reference) for slot in found)


_ARTICLE = re.compile(r"(?<!\w)(?:an?|the)\s+(?=\S)")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")


def plain(text: str) -> str:
    """Text as open answers are compared: NFKC, case folded, without articles, punctuation and repeated space.

    Marks that tell numbers apart stay: a sign before and a point or comma between digits, per cent and currency.

    Examples
    --------
    >>> plain("The  Cat's-eye, “U.S.”!"), plain("-1.5 %")
    ('cats eye us', '-1.5%')
    """
    text = _APOSTROPHE.sub("", normalise(text).casefold())
    text = re.sub(r"(?<!\d)\.|\.(?!\d)", "" if re.search(r"\w\.\w", text) else " ", text)
    text = re.sub(r"\s+%", "%", re.sub(r"(?<=\d),(?=\d{3})", "", text))
    kept = [
        c if c.isalnum() or c in "%$€£¥+√∛π°^=<>≤≥≠±×÷" or _inner(text, i) or unicodedata.category(c)[0] == "M" else " "
        for i, c in enumerate(text)
    ]
    text = " ".join("".join(kept).split())
    return _ARTICLE.sub("", text) or text


def _inner(text: str, at: int) -> bool:
    """Whether a point stands between digits or a minus before one, at the start of a word."""
    after = text[at + 1 : at + 2].isdigit()
    if text[at] in ".:/":
        return after and text[at - 1 : at].isdigit()
    return text[at] in "-−" and after and not text[at - 1 : at].strip()
