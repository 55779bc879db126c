"""Reader ``numeric``: a number with its unit, compared with a tolerance.

The answer slot (as in ``option_text``) must be one quantity and nothing else: an optional "about", a sign, digits
with thousands commas, a decimal part, an exponent, a fraction or a percent sign, then a unit. With option texts, the
one option that is the same quantity is the answer; without, the value is the number in plain form with its unit. Two
quantities are the same when their numbers are equal or, unless both are whole numbers, differ by at most
:data:`TOLERANCE` of the larger, and their units agree or one of them has none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from auditlib.extract.option_text import slots
from auditlib.extract.text import Reading, abstain, normalise, prepare, read_options, words

RULES: list[tuple[str, str]] = [
    ("quantity", "The answer slot is one number with an optional unit; with options, the one option of that quantity."),
    ("ambiguous", "More than one option is the same quantity: Z."),
    ("no-option", "No option is that quantity: Z."),
    ("no-number", "The answer slot is not one number with an optional unit: Z."),
]

#: relative difference at which two numbers with a decimal part still count as equal
TOLERANCE = 1e-3


class Quantity(NamedTuple):
    """A number, its unit (``""`` for none) and whether it was written as a whole number."""

    value: float
    unit: str
    whole: bool


_UNITS = {
    "percent": "%", "per cent": "%", "degree": "°", "degrees": "°", "deg": "°", "centimeter": "cm", "centimetre": "cm",
    "meter": "m", "metre": "m", "millimeter": "mm", "millimetre": "mm", "kilometer": "km", "kilometre": "km",
    "kilogram": "kg", "gram": "g", "second": "s", "sec": "s", "minute": "min", "hour": "h", "hr": "h", "dollar": "$",
    "usd": "$", "euro": "€", "eur": "€", "liter": "l", "litre": "l",
}  # fmt: skip
_QUANTITY = re.compile(
    r"(?:(?:about|approximately|approx\.?|around|roughly|nearly|~|≈|=)\s*)*(?:[a-z]\s*[=≈]\s*)?(?P<currency>[$€£¥]?)\s*"
    r"(?P<sign>[-+−–]?)\s*(?P<currency2>[$€£¥]?)\s*"
    r"(?:(?P<over>\d{1,15})\s*[/⁄]\s*(?P<under>\d{1,15})"
    r"|\\d?frac\{(?P<top>\d{1,15})\}\{(?P<bottom>\d{1,15})\}"
    r"|(?P<number>(?:\d{1,3}(?:,\d{3})+|\d{1,300})(?:\.\d{0,300})?|\.\d{1,300})"
    r"(?:\s*(?:e|[x×*]\s*10\s*\^?\s*\{?)(?P<power>[-+−]?\d{1,3})\}?)?)"
    r"\s*(?P<unit>%|\^?\\?°\s*[cfk]?|[^\W\d_][\w/·*^²³.-]{0,20}(?:\s[^\W\d_][\w/·*^²³.-]{0,20})?|[$€£¥]|)"
)


def read_quantity(text: str) -> Quantity | None:
    """A text that is one number with an optional unit; None for anything else.

    Examples
    --------
    >>> read_quantity("about 1,250.5 kilograms")
    Quantity(value=1250.5, unit='kg', whole=False)
    >>> read_quantity("1/2").value
    0.5
    """
    found = _QUANTITY.fullmatch(words(normalise(text[:1000])).replace("\\%", "%"))
    if not found:
        return None
    if found["number"] is None:
        over, under = float(found["over"] or found["top"]), float(found["under"] or found["bottom"])
        if not under:
            return None
        value = over / under
    else:
        value = float(found["number"].replace(",", "") + "e" + (found["power"] or "0").replace("−", "-"))
    if not math.isfinite(value):
        return None
    unit = found["currency"] or found["currency2"] or _unit(found["unit"])
    whole = found["number"] is not None and "." not in found["number"] and not found["power"]
    return Quantity(-value if found["sign"] in ("-", "−", "–") and value else value, unit, whole)


def _unit(text: str) -> str:
    text = text.strip(" .")
    singular = text[:-1] if text.endswith("s") and len(text) > 3 else text
    return _UNITS.get(text) or _UNITS.get(singular) or singular


def same_quantity(a: Quantity, b: Quantity, *, relative: float = TOLERANCE) -> bool:
    """Whether two quantities agree.

    Parameters
    ----------
    a, b : quantities.
    relative : largest difference, as a share of the larger magnitude; not used between two whole numbers.
    """
    if a.unit and b.unit and a.unit != b.unit:
        return False
    if a.whole and b.whole:
        return a.value == b.value
    return math.isclose(a.value, b.value, rel_tol=relative, abs_tol=0.0)


def read_numeric(text: str, options: Sequence[str] = ()) -> Reading:
    """Read a quantity: an option's letter where there are option texts, else the number and its unit.

    Parameters
    ----------
    text : the raw reply.
    options : option texts in letter order, ``[]`` for an open question.

    Examples
    --------
    >>> read_numeric("The answer is 0.5.", ["1/2", "1/4"])
    Reading(value='A', rule='quantity')
    >>> read_numeric("Answer: 1,250.50 kg")
    Reading(value='1250.5 kg', rule='quantity')
    """
    clean, problem = prepare(text if isinstance(text, str) else "")
    if problem:
        return abstain(problem)
    said = next((q for q in map(read_quantity, (s for s in slots(clean) if len(s) < 1000)) if q), None)
    if said is None:
        return abstain("no-number")
    texts = read_options(options).texts
    if not texts:
        return Reading(f"{said.value:.15g} {said.unit}".strip(), "quantity")
    known = {letter: q for letter, t in texts.items() if (q := read_quantity(t))}
    for relative in (1e-9, TOLERANCE):
        same = [letter for letter, q in known.items() if same_quantity(said, q, relative=relative)]
        if len(same) == 1:
            return Reading(same[0], "quantity")
        if same:
            return abstain("ambiguous")
    return abstain("no-option")
