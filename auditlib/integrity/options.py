"""What the item files themselves prove about options: equal ones, holes, letters, and texts that point at others."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations

from auditlib.frames import LETTERS, option_name
from auditlib.integrity.facts import Defect, ItemFacts, exact, loose

#: options that speak of the options before them
_ABOVE = re.compile(
    r"^(all|none|both|either|neither|any|two|some|more than one)( of| from)?( the)?( \w+)? (above|preceding|previous)\b"
    r"|^(all|none|both|either|neither) of the (options|choices|answers) above\b|^以上(都|皆|均|全|选项)"
    r"|^(前|上)述.{0,4}(都|皆|均)"
)
#: options that name other options by letter
_NAMES = re.compile(
    r"^(?:both |either |neither |only |all of |options? )?\(?([a-j])\)?"
    r"(?:(?:,? (?:and|or|nor) |\s?[,&]\s?|[和与或])\(?([a-j])\)?)+(?: only)?\.?$"
)
_BARE = re.compile(r"^[\(\[]?([A-Z])[\)\]]?[.:]?$")


def _equal_options(f: ItemFacts, shuffled: bool) -> Defect | None:
    shown = [i for i, t in enumerate(f.options) if t.strip()]
    same = _pairs(f, shown, exact)
    if same:
        beside = any(f.place in pair for pair in same)
        names = "; ".join(f"{option_name(a)} and {option_name(b)}" for a, b in same)
        said = f"options {names} are equal" + (f", and {f.key} is the key" if beside else "")
        facts = {"key": f.key, "options": list(f.options), "beside_key": beside}
        return "equal_options", "high" if beside else "medium", said, facts
    same = _pairs(f, shown, loose)
    if not same:
        return None
    names = "; ".join(f"{option_name(a)} and {option_name(b)}" for a, b in same)
    said = f"options {names} differ in letter case or in the form of characters only"
    return "equal_options", "low", said, {"key": f.key, "options": list(f.options)}


def _pairs(f: ItemFacts, shown: list[int], form: Callable[[str], str]) -> list[tuple[int, int]]:
    texts = {i: form(f.options[i]) for i in shown}
    if len(set(texts.values())) == len(texts):
        return []
    return [(a, b) for a, b in combinations(shown, 2) if texts[a] == texts[b]]


def _hole(f: ItemFacts, shuffled: bool) -> Defect | None:
    """A blank between options with text. Blanks at the end are padding and say nothing."""
    holes = [i for i, t in enumerate(f.options[: f.last + 1]) if not t.strip() and i != f.place]
    written = f.written or ()
    holes = [i for i in holes if not (i < len(written) and written[i])]  # lost on the way: said as such
    if not holes:
        return None
    names = ", ".join(option_name(i) for i in holes)
    said = f"option {names} has no text although {option_name(f.last)} has one: a hole, not padding"
    return "empty_option_inside", "medium", said, {"key": f.key, "options": list(f.options)}


def _single(f: ItemFacts, shuffled: bool) -> Defect | None:
    if f.last < 0 or sum(bool(t.strip()) for t in f.options) != 1 or (f.place >= 0 and f.place != f.last):
        return None
    return "single_option", "medium", "only one option has a text", {"key": f.key, "options": list(f.options)}


def _letter_valued(f: ItemFacts, shuffled: bool) -> Defect | None:
    said = {}
    for i, text in enumerate(f.options):
        m = _BARE.match(text.strip())
        if m and LETTERS.index(m.group(1)) <= f.last and LETTERS.index(m.group(1)) != i:
            said[option_name(i)] = m.group(1)
    if not said:
        return None
    names = ", ".join(f"{a} says {b!r}" for a, b in said.items())
    words = f"option {names}: a reply of one letter can mean the option or its text"
    return "letter_valued_options", "low", words, {"key": f.key, "options": list(f.options)}


def _position_dependent(f: ItemFacts, shuffled: bool) -> Defect | None:
    shown = [i for i, t in enumerate(f.options) if t.strip()]
    above = [i for i in shown if _ABOVE.search(loose(f.options[i]))]
    named = [i for i in shown if i not in above and _names_others(f.options[i], f.last)]
    mine = sorted(above + named)
    if not mine:
        return None
    first = mine[0]
    early = [i for i in above if any(j > i and j not in mine for j in shown)]
    where = f"option {option_name(first)} ({f.options[first].strip()[:40]!r}) speaks of other options"
    facts = {"key": f.key, "options": list(f.options)}
    if early:
        where = f"option {option_name(early[0])} ({f.options[early[0]].strip()[:40]!r}) speaks of the options above"
        return "position_dependent_option", "medium", where + " and is not the last", facts
    if shuffled:
        return "position_dependent_option", "medium", where + ", and this pool holds shuffled orders", facts
    return "position_dependent_option", "info", where + ": its meaning hangs on their order", facts


def _names_others(text: str, last: int) -> bool:
    said = loose(text)
    if not _NAMES.match(said):
        return False
    letters = re.findall(r"(?<![a-z])([a-j])(?![a-z])", said)
    return len(set(letters)) > 1 and all(LETTERS.index(c.upper()) <= last for c in letters)


OPTION_CHECKS: tuple[Callable[[ItemFacts, bool], Defect | None], ...] = (
    _equal_options,
    _hole,
    _single,
    _letter_valued,
    _position_dependent,
)
