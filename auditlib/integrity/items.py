"""What the item files themselves prove about keys, before any model is counted."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd

from auditlib.detectors.contract import empty_findings, findings
from auditlib.frames import LETTERS, evidence, option_name
from auditlib.integrity.duplicates import duplicates
from auditlib.integrity.facts import Defect, ItemFacts, exact, item_facts, loose
from auditlib.integrity.options import OPTION_CHECKS
from auditlib.pool import Pool

NAME = "integrity"
#: what stands in a key cell when nobody has filled it in
PLACEHOLDERS = frozenset(
    ("?", "??", "???", "-", "--", "–", "—", "_", ".", "*", "n/a", "tbd", "todo", "unknown", "placeholder")
).union(("to be determined", "not available", "[key]", "<key>", "[answer]"))


def check_items(pool: Pool) -> pd.DataFrame:
    """Findings about keys, options and repeated items: one row per item and defect, score 1.

    Severity ``high`` means that the file itself proves the defect; what asks for a look at the picture is ``medium``
    or lower, and what is only good to know is ``info``.
    """
    shuffled = has_orders(pool)
    found: list[tuple[str, Defect]] = []
    for facts in item_facts(pool.items):
        found += [(facts.item, d) for check in KEY_CHECKS if (d := check(facts))]
        found += [(facts.item, d) for check in OPTION_CHECKS if (d := check(facts, shuffled))]
    found += duplicates(pool.items).found
    if not found:
        return empty_findings()
    place = {i: n for n, i in enumerate(pool.items["item"])}
    found.sort(key=lambda f: place[f[0]])
    return findings(
        NAME,
        "",
        item=[i for i, _ in found],
        score=1.0,
        flag=True,
        severity=[d[1] for _, d in found],
        evidence=[evidence(check=d[0], **d[3]) for _, d in found],
        message=[d[2] for _, d in found],
    )


def has_orders(pool: Pool) -> bool:
    """Whether any reply was given to options in another order than that of the items."""
    r = pool.responses
    if r is None or "order" not in r:
        return False
    orders = r["order"].astype(object).where(r["order"].notna(), "").astype(str)
    return any(o and o != LETTERS[: len(o)] for o in orders.unique())


def _written(f: ItemFacts) -> str:
    """The text of the key's option in the dataset file, ``""`` where there is none."""
    return f.written[f.place] if f.written is not None and 0 <= f.place < len(f.written) else ""


def _key_outside(f: ItemFacts) -> Defect | None:
    if f.place < 0 or f.place <= f.last or _written(f):
        return None
    said = f"the key is {f.key}, the options end at {option_name(f.last)}"
    return "key_outside_options", "high", said, {"key": f.key, "options": list(f.options)}


def _key_without_text(f: ItemFacts) -> Defect | None:
    if f.place < 0 or f.place > f.last or f.options[f.place].strip() or _written(f):
        return None  # an option lost on the way is said as such
    said = f"option {f.key}, the key, has no text in the runs"
    return "key_without_text", "high", said, {"key": f.key, "options": list(f.options)}


def lost_places(f: ItemFacts) -> list[int]:
    """Options with a text in the dataset file and none in the runs."""
    if f.written is None:
        return []
    return [i for i, t in enumerate(f.written) if t and not (f.options[i] if i < len(f.options) else "")]


def _lost_option(f: ItemFacts) -> Defect | None:
    lost = lost_places(f)
    if not lost or f.place < 0:
        return None
    names = ", ".join(f"{option_name(i)} {f.written[i]!r}" for i in lost)
    said = f"option {names} of the dataset never reached the models" + (" and is the key" if f.place in lost else "")
    facts = {"key": f.key, "lost": [option_name(i) for i in lost], "written": list(f.written)}
    return "lost_option", "high", said, facts


def _key_placeholder(f: ItemFacts) -> Defect | None:
    if f.place >= 0 or f.key.strip().casefold() not in PLACEHOLDERS or _among(f.key, f.options):
        return None
    return "key_placeholder", "high", f"the key is a placeholder ({f.key!r})", {"key": f.key}


def _key_text_unmatched(f: ItemFacts) -> Defect | None:
    if not _text_key(f) or f.key.strip().casefold() in PLACEHOLDERS or _among(f.key, f.options):
        return None
    return (
        "key_text_unmatched",
        "high",
        f"the key {f.key[:60]!r} is the text of none of the options",
        {"key": f.key, "options": list(f.options)},
    )


def _text_key(f: ItemFacts) -> bool:
    """Whether the key of a choice item is a text (not a letter, not several letters, not empty)."""
    key = f.key.strip()
    if not key or f.place >= 0 or f.kind == "yesno" or f.last < 1:
        return False
    letters = re.sub(r"[\s,;/&'\"\[\]()]", "", key)
    several = len(letters) > 1 and set(letters) <= set(LETTERS[: f.last + 1]) and len(set(letters)) == len(letters)
    return not several


def _among(key: str, options: tuple[str, ...]) -> bool:
    return exact(key) in {exact(t) for t in options} or loose(key) in {loose(t) for t in options}


def unreachable(f: ItemFacts) -> bool:
    """Whether no answer among the options shown can meet the key."""
    checks = (_key_outside, _key_without_text, _key_placeholder, _key_text_unmatched)
    return any(check(f) for check in checks) or (f.place >= 0 and f.place in lost_places(f))


KEY_CHECKS: tuple[Callable[[ItemFacts], Defect | None], ...] = (
    _key_outside,
    _key_without_text,
    _lost_option,
    _key_placeholder,
    _key_text_unmatched,
)
