"""Foreign text into HTML, LaTeX, typst, Markdown and CSV so that it shows literally and does nothing.

Whatever a model, a data set or a params file wrote passes through exactly one of these functions on its way to a
file. Two things are never shown as they are, in any format: control characters and the invisible characters that
reorder text (bidirectional overrides). They become ``⟨U+202E⟩``, so that a reader sees that something was there.
"""

from __future__ import annotations

import html as _html
import json
import re
import unicodedata
from collections.abc import Iterable

import pandas as pd

#: overrides, embeddings and isolates: they change the order of what follows and are invisible themselves
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
#: what a spreadsheet may take for the start of a formula (full-width forms too), or as a cell break before one
_FORMULA = re.compile("^'*[=+\\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?$")

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "`": r"\textasciigrave{}",
}  # fmt: skip
#: what the report's own words need; foreign text keeps its minus signs and dashes as they are
_LATEX_TYPOGRAPHY = {"−": "$-$", "–": "--", "≥": r"$\geq$", "≤": r"$\leq$", "κ": r"$\kappa$", "α": r"$\alpha$"}


def visible(text: object, *, newlines: bool = True) -> str:
    """Text with control and reordering characters spelled out as ``⟨U+XXXX⟩``.

    Parameters
    ----------
    text : anything; ``None`` and missing values become an empty string.
    newlines : keep line breaks; otherwise each run of white space becomes one space.
    """
    if text is None or text is pd.NA or (isinstance(text, float) and text != text):
        return ""
    text = str(text).replace("\r\n", "\n").replace("\r", "\n")
    if not newlines:
        text = " ".join(text.split())
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _harmless(c) else spelled(c) for c in text)


def spelled(char: str) -> str:
    """``⟨U+XXXX⟩`` for one character."""
    return f"⟨U+{ord(char):04X}⟩"


def _harmless(char: str) -> bool:
    if char in "\n\t":
        return True
    return char not in _REORDERING and unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")


def html(text: object) -> str:
    """Text for HTML content and quoted attributes."""
    return _html.escape(visible(text), quote=True)


def json_data(content: object) -> str:
    """Plain data as JSON inside a ``<script>``: it cannot end that element, nor open a comment in it."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def latex(text: object) -> str:
    """Text for a LaTeX paragraph or table cell, on one line; no ligature, no command, no optional argument.

    Letters outside ASCII stay as they are: XeLaTeX and LuaLaTeX set them where the font has them.
    """
    line = re.sub(r"(?<=([-',]))(?=\1)", "\0", visible(text, newlines=False))
    out = "".join("{}" if c == "\0" else _LATEX.get(c, c) for c in line)
    # after the \\ of the row above, a star or a bracket would be read as its argument
    return f"{{{out[0]}}}{out[1:]}" if out[:1] in ("[", "*") else out


def latex_words(text: str) -> str:
    """The project's own words for LaTeX: like :func:`latex`, with real dashes and signs."""
    return "".join(_LATEX_TYPOGRAPHY.get(c) or _LATEX.get(c, c) for c in text)


def typst(text: object) -> str:
    """Text as a typst string literal (``"..."``), for the few places where text is not read from JSON."""
    out = visible(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{out}"'


def markdown(text: object, *, start: bool = False) -> str:
    """Text inside a Markdown line or table cell (GitHub's dialect), on one line.

    Parameters
    ----------
    start : the text opens a line or a list item, where a hyphen or a number would begin a list.
    """
    line = re.sub(r"([\\`*{}\[\]<>#|~$])", r"\\\1", visible(text, newlines=False))
    # an underscore inside a word and a bare ampersand mean nothing
    line = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", line)
    line = re.sub(r"&(?=[A-Za-z\\][^\s&]*;)", r"\\&", line)
    if start:
        line = re.sub(r"^([-+])", r"\\\1", line)
        line = re.sub(r"^(\d+)([.)])", r"\1\\\2", line)
    return line


def fenced(text: object) -> str:
    """Text as a Markdown code block, with a fence longer than any inside."""
    body = visible(text)
    longest = max((len(m) for m in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{body}\n{fence}"


def csv_cell(text: str) -> str:
    """A text cell that no spreadsheet runs: an apostrophe before anything that could open a formula.

    Plain numbers stay as they are. The guard is reversible (:func:`csv_unguard`): text that already begins with
    apostrophes and then such a character gets one more.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.match(text) else text


def csv_unguard(text: str) -> str:
    """The text that :func:`csv_cell` guarded."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def guard_csv(frame: pd.DataFrame, columns: Iterable[str] | None = None) -> pd.DataFrame:
    """A copy of a frame whose text cells (and text column names) are safe to open in a spreadsheet.

    Numbers, booleans and missing cells are left alone. Lone surrogates, which no file can hold, are spelled out.
    """
    out = frame.copy()
    for name in out.columns if columns is None else columns:
        if pd.api.types.is_numeric_dtype(out[name]) or pd.api.types.is_bool_dtype(out[name]):
            continue
        out[name] = [_csv_text(v) if isinstance(v, str) else v for v in out[name].astype(object)]
    return out.rename(columns=lambda c: csv_cell(c) if isinstance(c, str) else c)


def _csv_text(text: str) -> str:
    text = "".join(spelled(c) if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
    return csv_cell(text)
