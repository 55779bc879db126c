"""The report as plain data: sections of blocks, which :mod:`html` and :mod:`pdf` set each in its own way.

A *run* is a text or a pair ``(style, text)``; styles are ``b``, ``em``, ``code`` and ``link`` (a file beside the
report). Runs hold literal text, never markup: every setter escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Run = str | tuple[str, str]
Block = dict[str, Any]
Section = dict[str, Any]


def runs(*parts: Run) -> list[list[str]]:
    """Runs as ``[style, text]`` lists; plain text has style ``""``."""
    return [["", p] if isinstance(p, str) else [p[0], str(p[1])] for p in parts if p]


def b(text: object) -> Run:
    """Strong."""
    return ("b", str(text))


def code(text: object) -> Run:
    """A name, file or command."""
    return ("code", str(text))


def link(text: str) -> Run:
    """A file beside the report."""
    return ("link", text)


def p(*parts: Run, role: str = "") -> Block:
    """A paragraph; role ``lede``, ``note``, or ``intro`` (kept with what follows)."""
    return {"kind": "p", "runs": runs(*parts), "role": role}


def callout(*parts: Run, tone: str = "info") -> Block:
    """A paragraph in a box; tone ``info`` or ``warn``."""
    return {"kind": "callout", "runs": runs(*parts), "tone": tone}


def ul(items: Iterable[Sequence[Run]], *, ordered: bool = False) -> Block:
    """A list."""
    return {"kind": "list", "items": [runs(*i) for i in items], "ordered": ordered}


def pre(text: str) -> Block:
    """A command on lines of its own."""
    return {"kind": "code", "text": text}


def h3(text: str) -> Block:
    """A heading inside a section."""
    return {"kind": "h3", "text": text}


def cards(items: list[dict[str, str]]) -> Block:
    """Headline numbers: ``label``, ``value``, ``sub`` (several lines)."""
    return {"kind": "cards", "items": items}


def card(label: str, value: str, *sub: str) -> dict[str, str]:
    """One headline number."""
    return {"label": label, "value": value, "sub": "\n".join(s for s in sub if s)}


def table(name: str, title: str, head: Sequence[str], left: Sequence[bool], rows: Sequence[Sequence[str]], *,
          note: str = "", more: str = "", widths: Sequence[float] = (),
          items: Sequence[str] = ()) -> Block:  # fmt: skip
    """A table.

    Parameters
    ----------
    name : file stem in ``tables/``, ``""`` for a table of the report alone.
    left : whether a column holds words.
    more : where the rest is, when rows were left out.
    widths : relative widths of the columns on paper, 0 for as wide as its content; empty for a choice by content.
    items : ids of the items that the rows are about, where their first column names one.
    """
    return {"kind": "table", "name": name, "title": title, "head": list(head), "left": list(left),
            "rows": [list(r) for r in rows], "note": note, "more": more, "widths": list(widths),
            "items": list(items)}  # fmt: skip


def figures(rows: Sequence[dict[str, Any]]) -> Block | None:
    """Figures that belong together: ``name``, ``title``, ``caption`` each; None where there are none."""
    return {"kind": "figures", "items": list(rows)} if rows else None


def section(name: str, title: str, *blocks: Block | None) -> Section:
    """A section; blocks that are None are left out."""
    return {"id": name, "title": title, "blocks": [x for x in blocks if x is not None]}


def numbered(sections: Sequence[Section]) -> list[Section]:
    """The sections, with a running ``number`` in every figure and in every table."""
    count = {"figures": 0, "table": 0}
    for part in sections:
        for block in part["blocks"]:
            for thing in block["items"] if block["kind"] == "figures" else [block] * (block["kind"] == "table"):
                count[block["kind"]] += 1
                thing["number"] = count[block["kind"]]
    return list(sections)
