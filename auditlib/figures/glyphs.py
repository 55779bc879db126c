"""Which characters the figures and the PDF can show, and what stands in for those they cannot.

Figures and PDF are set in DejaVu Sans, which comes with matplotlib: Latin, Greek, Cyrillic, Hebrew, Arabic,
mathematics, some emoji. A character that it lacks is looked for in the machine's own fonts; one that no font has is
spelled out as ``⟨U+1F680⟩``, never dropped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from auditlib.escape import spelled, visible

#: steer the drawing of neighbours and have no picture of their own
_INVISIBLE = frozenset("\u200b\u200c\u200d\u2060\ufe0e\ufe0f\u00ad")


def bundled_folder() -> Path:
    """The folder of fonts that matplotlib installs."""
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


@lru_cache(maxsize=1)
def bundled() -> frozenset[int]:
    """Code points of the bundled DejaVu Sans."""
    return _codes(str(bundled_folder() / "DejaVuSans.ttf"))


@lru_cache(maxsize=64)
def _codes(path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (RuntimeError, OSError):
        return frozenset()


@lru_cache(maxsize=256)
def _system_font(code: int) -> str | None:
    """Path of an installed font that has a character, or None."""
    from matplotlib import font_manager

    for entry in sorted(font_manager.fontManager.ttflist, key=lambda f: (f.weight != 400, f.name, str(f.fname))):
        name = entry.name.lower()
        if entry.style != "normal" or "last resort" in name or "lastresort" in name or name.startswith("dejavu"):
            continue
        if code in _codes(str(entry.fname)):
            return str(entry.fname)
    return None


def missing(text: str) -> set[str]:
    """Characters of a text that the bundled font lacks."""
    if text.isascii():
        return set()
    have = bundled()
    return {c for c in text if ord(c) not in have and c not in _INVISIBLE and not c.isspace()}


def extra_fonts(texts: Iterable[str]) -> list[tuple[str, str]]:
    """(family, path) of the machine's own fonts that the characters of some texts need besides the bundled one."""
    from matplotlib import font_manager

    found = {f for c in sorted(set().union(*map(missing, texts))) if (f := _system_font(ord(c)))}
    return [(font_manager.get_font(f).family_name, f) for f in sorted(found)]


def drawable(text: object, *, system: bool = True, newlines: bool = False) -> str:
    """Text with every character that has no glyph spelled out.

    Parameters
    ----------
    system : count the machine's own fonts too.
    """
    line = visible(text, newlines=newlines)
    lacking = {c for c in missing(line) if not (system and _system_font(ord(c)))}
    if lacking:
        # a joiner or a variation selector after a spelled character would be left hanging
        line = "".join(spelled(c) if c in lacking else c for c in line)
        line = "".join(c for i, c in enumerate(line) if c not in _INVISIBLE or (i and line[i - 1] != "⟩"))
    return line


def short(text: object, width: int = 34) -> str:
    """One line of at most ``width`` characters; the middle gives way, since names differ at their ends."""
    line = drawable(unicodedata.normalize("NFC", visible(text, newlines=False)))
    if len(line) <= width:
        return line
    head = (width - 1) * 3 // 5
    return f"{line[:head].rstrip()}…{line[len(line) - (width - 1 - head) :].lstrip()}"
