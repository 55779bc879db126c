"""One table in four formats: CSV with full precision, Markdown, LaTeX (booktabs), HTML. The same bytes in every run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from auditlib import escape, numerals

#: in LaTeX, a longer text wraps and a longer table runs over pages
LONG, MANY = 44, 40


@dataclass(frozen=True)
class Column:
    """A column as it is printed.

    ``kind``: ``text``, ``count``, ``pct`` (share as percent), ``pp`` (difference in points), ``p``, ``number``,
    ``auto`` (percent, or a number where the row's ``unit`` says so), ``any`` (numbers of unknown kind), or
    ``range:LOW:HIGH:KIND`` (two columns of the frame as an interval).
    """

    name: str
    label: str
    kind: str = "text"

    @property
    def left(self) -> bool:
        return self.kind == "text"


_SHOW: dict[str, Callable[[Any], str]] = {
    "count": numerals.count,
    "pct": numerals.pct,
    "pp": numerals.pp,
    "p": numerals.p_value,
    "number": numerals.number,
    "any": numerals.general,
}


def cell(row: dict[str, Any], column: Column) -> str:
    """One cell as text, without any escaping."""
    kind = column.kind
    if kind.startswith("range:"):
        _, low, high, inner = kind.split(":")
        return numerals.interval(row.get(low), row.get(high), _SHOW[_unit(row) if inner == "auto" else inner])
    shown = row.get(column.name)
    if kind == "text":
        if isinstance(shown, bool):
            return "yes" if shown else "no"
        return escape.visible(shown, newlines=False)
    return _SHOW[_unit(row) if kind == "auto" else kind](shown)


def spread(low: Any, high: Any, show: Callable[[Any], str] = numerals.pct) -> str:
    """A range as ``19.4 to 34.4``, or as one number where both ends print alike."""
    text = numerals.span(low, high, show)
    return show(low) if text != numerals.NONE and show(low) == show(high) else text


def _unit(row: dict[str, Any]) -> str:
    return "number" if row.get("unit") == "number" else "pct"


def cells(frame: pd.DataFrame, columns: tuple[Column, ...]) -> list[list[str]]:
    """All cells as text; a column that is empty throughout stays, so that shapes do not depend on the data."""
    return [[cell(row, c) for c in columns] for row in frame.to_dict("records")]


def columns_of(frame: pd.DataFrame) -> tuple[Column, ...]:
    """Columns for a frame that nobody described: text as text, numbers as they are."""
    text = {c: not pd.api.types.is_numeric_dtype(frame[c]) or pd.api.types.is_bool_dtype(frame[c]) for c in frame}
    return tuple(Column(c, str(c).replace("_", " "), "text" if text[c] else "any") for c in frame)


def csv(frame: pd.DataFrame) -> str:
    """Full precision (12 digits, as in all our CSV files); text cells guarded against spreadsheets."""
    return escape.guard_csv(frame).to_csv(index=False, float_format="%.12g", lineterminator="\n")


def markdown(title: str, columns: tuple[Column, ...], rows: list[list[str]], note: str = "") -> str:
    """A pipe table with its title above and its note below."""
    head = "| " + " | ".join(escape.markdown(c.label) for c in columns) + " |"
    rule = "| " + " | ".join(":--" if c.left else "--:" for c in columns) + " |"
    body = ["| " + " | ".join(escape.markdown(v) if c.left else v for v, c in zip(row, columns)) + " |" for row in rows]
    parts = [f"**{escape.markdown(title)}**", "", head, rule, *body]
    return "\n".join([*parts, *(["", escape.markdown(note)] if note else [])]) + "\n"


def latex(
    name: str, title: str, columns: tuple[Column, ...], rows: list[list[str]], note: str = "", *, before: str = ""
) -> str:
    """A booktabs table: a ``table`` float, or a ``longtable`` where texts wrap or there are many rows.

    The comment on top names the packages. Letters outside ASCII stand as they are, so names and texts in other
    scripts need XeLaTeX or LuaLaTeX and a font that has them. ``before`` is LaTeX that opens the caption.
    """
    caption = before + escape.latex_words(f"{title.rstrip('.')}." + (f" {note}" if note else ""))
    longest = [max([len(c.label), *(len(r[i]) for r in rows)], default=0) for i, c in enumerate(columns)]
    texts = sum(n > LONG for n in longest)
    long, wide = texts > 0 or len(rows) > MANY, texts == 0 and sum(n + 2 for n in longest) > 72
    # about 100 characters of small type on a line: texts share what the short columns leave over
    rest = max(0.3, 0.92 - sum(n + 2 for n in longest if n <= LONG) / 100) / max(texts, 1)
    text = f">{{\\raggedright\\arraybackslash}}p{{{rest:.2f}\\linewidth}}"
    spec = "".join(text if n > LONG else "l" if c.left else "r" for c, n in zip(columns, longest))
    head = [" & ".join(escape.latex_words(c.label) for c in columns) + " \\\\", "\\midrule"]
    body = [" & ".join(_latex_cell(v, c) for v, c in zip(row, columns)) + " \\\\" for row in rows]
    label = f"\\label{{tab:{name.replace('_', '-')}}}"
    shrink = wide and not long
    needs = [
        "booktabs",
        *(["longtable"] if long else []),
        *(["array"] if texts else []),
        *(["graphicx"] if shrink else []),
    ]
    lines = [f"% needs \\usepackage{{{', '.join(needs)}}}"]
    if not all(v.isascii() for r in rows for v, c in zip(r, columns) if c.left):
        lines.append("% holds text outside ASCII: XeLaTeX or LuaLaTeX, with a font that has it")
    if long:
        lines += [f"{{\\small\n\\begin{{longtable}}{{{spec}}}", f"\\caption{{{caption}}}{label} \\\\", "\\toprule",
                  *head, "\\endhead", *body, "\\bottomrule", "\\end{longtable}}"]  # fmt: skip
    else:
        lines += ["\\begin{table}", "\\centering", f"\\caption{{{caption}}}", label,
                  *(["\\resizebox{\\linewidth}{!}{%"] if shrink else []), f"\\begin{{tabular}}{{{spec}}}", "\\toprule",
                  *head, *body, "\\bottomrule", "\\end{tabular}" + ("}" if shrink else ""), "\\end{table}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _latex_cell(text: str, column: Column) -> str:
    if column.left:
        return escape.latex(text)
    if column.kind == "p" and "e−" in text:
        sign, digits = ("< ", text[2:]) if text.startswith("< ") else ("", text)
        mantissa, exponent = digits.split("e−")
        factor = "" if mantissa == "1" else mantissa + r" \times "
        return f"${sign}{factor}10^{{-{exponent}}}$"
    out = escape.latex_words(text)
    return f"{{{out}}}" if out.startswith("[") else out


def html_rows(columns: tuple[Column, ...], rows: list[list[str]], *, anchors: bool = False) -> str:
    """``thead`` and ``tbody`` of a table; foreign text keeps its own direction.

    With ``anchors`` the rows are called ``r1``, ``r2`` ..., for links to them.
    """
    head = "".join(f'<th class="{_side(c)}" scope="col">{escape.html(c.label)}</th>' for c in columns)
    body = "\n".join(
        (f'<tr id="r{i}">' if anchors else "<tr>")
        + "".join(f'<td class="{_side(c)}"{_auto(c)}>{escape.html(v)}</td>' for v, c in zip(row, columns))
        + "</tr>"
        for i, row in enumerate(rows, 1)
    )
    return f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"


def _side(column: Column) -> str:
    return "l" if column.left else "r"


def _auto(column: Column) -> str:
    return ' dir="auto"' if column.left else ""


def html(title: str, columns: tuple[Column, ...], rows: list[list[str]], note: str = "") -> str:
    """A page with one table, which fetches and runs nothing."""
    from auditlib.report.page import page

    caption = f"<caption>{escape.html(title)}</caption>"
    after = f'<p class="note">{escape.html(note)}</p>' if note else ""
    return page(
        title,
        f'<div class="scroll"><table>{caption}\n{html_rows(columns, rows, anchors=True)}</table></div>{after}',
        kind="wide",
    )
