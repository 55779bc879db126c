"""Names that LaTeX allows: keys of ``\\auditnum`` and macros, which hold letters only."""

from __future__ import annotations

import re
import unicodedata

DIGITS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
#: what every macro begins with, so that none takes the place of a command of LaTeX or a package
PREFIX = "audit"
#: longest part of a key that a foreign name makes
LONGEST = 48


def slug(text: object) -> str:
    """A text as part of a key: small letters, digits and single hyphens.

    Letters with accents lose them; what has no such form is spelled as its code point. Two texts can have one slug:
    who makes keys tells them apart.

    Examples
    --------
    >>> slug("Fine-grained perception"), slug("InternVL3-8B"), slug("été 100%")
    ('fine-grained-perception', 'internvl3-8b', 'ete-100')
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", str(text)) if not unicodedata.combining(c)).lower()
    spelled = "".join(c if c.isascii() or not c.isalnum() else f"-u{ord(c):x}-" for c in plain)
    return re.sub(r"[^a-z0-9]+", "-", spelled).strip("-")[:LONGEST].rstrip("-") or "x"


def macro(*parts: str) -> str:
    """The name of a macro, without its backslash: words joined with capitals, digits spelled out.

    Examples
    --------
    >>> macro("mmgist_18", "excess", "interval")
    'auditMmgistOneEightExcessInterval'
    """
    words = [w for part in parts for w in re.split(r"[^A-Za-z0-9]+", part) if w]
    shown = "".join(w[0].upper() + w[1:] for w in words)
    return PREFIX + re.sub(r"\d", lambda m: DIGITS[int(m.group())], shown)


def unique(keys: list[str]) -> list[str]:
    """The keys, those that stood before with ``-2``, ``-3`` ... at their end."""
    seen: set[str] = set()
    out = []
    for key in keys:
        name, n = key, 1
        while name in seen:
            n += 1
            name = f"{key}-{n}"
        seen.add(name)
        out.append(name)
    return out
