r"""Reader ``boxed``: the letter inside the last ``\boxed{...}`` of a reply.

The content of the last box is read by the rules ``bare`` and ``start`` of the reader ``letters`` and by its guards;
earlier boxes are intermediate results and never count. A box that is not closed was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditlib.extract.letters import read_letters
from auditlib.extract.text import Reading, abstain, prepare

RULES: list[tuple[str, str]] = [
    ("last-box", r"The letter inside the last \boxed{...}, read by the rules bare and start of letters."),
    ("no-box", r"The reply holds no \boxed{...}: Z."),
    ("unclosed-box", "The last box is not closed, so the answer was cut off: Z."),
]

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")


def last_box(text: str) -> tuple[str, str]:
    r"""Content of the last ``\boxed{...}`` and, where there is none, the reason.

    Examples
    --------
    >>> last_box(r"\boxed{A}, no, \boxed{{B}}.")
    ('{B}', '')
    """
    start = -1
    for found in _BOX.finditer(text):
        start = found.end()
    if start < 0:
        return "", "no-box"
    depth = 1
    for brace in re.finditer(r"(?<!\\)[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start : start + brace.start()], ""
    return "", "unclosed-box"


def read_boxed(text: str, options: Sequence[str]) -> Reading:
    r"""Read the option letter inside the last ``\boxed{...}``.

    Parameters
    ----------
    text : the raw reply.
    options : option texts in letter order.

    Examples
    --------
    >>> read_boxed(r"First \boxed{A}, but then \boxed{\text{B}}", ["red", "blue"])
    Reading(value='B', rule='last-box')
    """
    clean, problem = prepare(text if isinstance(text, str) else "")
    if problem:
        return abstain(problem)
    content, problem = last_box(clean)
    if problem:
        return abstain(problem)
    found = read_letters(content, options)
    if not found.answered:
        return abstain(found.rule)
    warning = "+letter-text" if found.rule.endswith("+letter-text") else ""
    return Reading(found.value, "last-box" + warning)
