"""Texts and printed numbers as LaTeX."""

from __future__ import annotations

import re

from auditlib import escape

#: signs of our own sentences and captions, beyond those that :mod:`auditlib.escape` knows
_MATHS = {
    "×": r"\times", "→": r"\rightarrow", "≠": r"\neq", "≈": r"\approx", "⟨": r"\langle", "⟩": r"\rangle", "−": "-",
    "²": "^2", "≥": r"\geq", "≤": r"\leq", "κ": r"\kappa", "α": r"\alpha", "ρ": r"\rho",
}  # fmt: skip
_SIGNS = {c: rf"\ensuremath{{{m}}}" for c, m in _MATHS.items()} | {
    "’": "'", "‘": "{`}", "“": "{``}", "”": "{''}", "…": r"\ldots{}", "·": r"\textperiodcentered{}", "—": "---",
}  # fmt: skip
_POWER = re.compile(r"(< )?(?:([\d.]+))e−(\d+)")


def text(words: object) -> str:
    """A sentence or a name, on one line, with no command in it; letters outside ASCII stay as they are."""
    line = escape.visible(words, newlines=False)
    return "".join(_SIGNS.get(c) or escape.latex_words(c) for c in line)


def value(shown: str) -> str:
    """A printed number: signs and powers in mathematics, percent escaped, brackets out of the way of arguments.

    Examples
    --------
    >>> value("20.2%"), value("[−1.8, +2.4]")
    ('20.2\\\\%', '{[}\\\\ensuremath{-}1.8, \\\\ensuremath{+}2.4{]}')
    >>> value("1.3e−4"), value("< 1e−15")
    ('\\\\ensuremath{1.3\\\\times10^{-4}}', '\\\\ensuremath{<10^{-15}}')
    """
    powered = _POWER.sub(_power, shown)
    if powered != shown:
        return powered
    out = shown.replace("%", r"\%").replace("−", r"\ensuremath{-}").replace("+", r"\ensuremath{+}")
    return out.replace("[", "{[}").replace("]", "{]}")


def _power(m: re.Match[str]) -> str:
    less, mantissa, exponent = m.groups()
    factor = "" if mantissa == "1" else rf"{mantissa}\times"
    return rf"\ensuremath{{{'<' if less else ''}{factor}10^{{-{exponent}}}}}"


def p_said(p: float) -> str:
    """A p value as a statement: ``p = .043`` in mathematics."""
    from auditlib.numerals import p_value

    inner = value(p_value(p))
    if inner.startswith(r"\ensuremath{"):
        inner = inner[len(r"\ensuremath{") : -1]
    return rf"\ensuremath{{p {inner if inner.startswith('<') else '= ' + inner}}}"
