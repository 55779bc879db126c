"""All figures of a pool on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import escape
from auditlib.report.page import page, picture, svg_size


def figures_page(audit: Any, table: pd.DataFrame, folder: Path) -> str:
    """The page ``figures/index.html``: pictures with captions and links to their files; what is not drawn, and why."""
    title = f"Figures: {audit.benchmark}, pool {audit.pool_name}"
    parts = [
        f'<h1 dir="auto">{escape.html(title)}</h1>',
        '<p class="note"><a href="../report.html">report</a> · each figure as PDF (for a paper), SVG, PNG, '
        "and the numbers drawn as CSV</p>",
    ]
    for r in table.to_dict("records"):
        if r["state"] == "drawn":
            parts.append(figure_block(r, folder, links=True))
    absent = [r for r in table.to_dict("records") if r["state"] != "drawn"]
    if absent:
        rows = "".join(f"<li><b>{escape.html(r['title'])}</b>: {escape.html(r['reason'])}</li>" for r in absent)
        parts.append(f"<h2>Not drawn</h2>\n<ul>{rows}</ul>")
    return page(title, "\n".join(parts), kind="wide")


def figure_block(row: dict[str, str], folder: Path, *, links: bool = False) -> str:
    """One ``figure`` element; a very large SVG gives way to the PNG."""
    name = row["name"]
    svg = folder / f"{name}.svg"
    file = svg if svg.stat().st_size < 1_500_000 else folder / f"{name}.png"
    to = " · ".join(f'<a href="{name}.{e}">{e}</a>' for e in ("pdf", "svg", "png", "csv")) if links else ""
    where = f' <span class="files">{to}</span>' if links else ""
    return (
        f'<figure id="{name}">{picture(file, row["caption"], width=min(svg_size(svg)[0] * 1.18, 7.4))}\n'
        f'<figcaption dir="auto"><b>{escape.html(row["title"])}.</b> {escape.html(row["caption"])}{where}</figcaption>'
        "</figure>"
    )
