"""``report.html``: one file, style and figures inside, nothing fetched, readable without any script."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from auditlib import escape
from auditlib.paths import RunPaths, atomic
from auditlib.report.blocks import Block
from auditlib.report.flags import address
from auditlib.report.page import page, picture, svg_size

#: letters after which a word too long for a table may break
WORD = 24
_TAGS = {"b": "strong", "em": "em", "code": "code"}


def write_html(said: dict[str, Any], paths: RunPaths) -> Path:
    """Set a report's content as HTML."""
    contents = "\n".join(f'<li><a href="#{s["id"]}">{escape.html(s["title"])}</a></li>' for s in said["sections"])
    beside = (("report.pdf", "PDF"), ("card.html", "card on one page"), ("items.html", "items"),
              ("flagged.md", "flagged items"), ("figures/index.html", "figures"), ("tables", "tables"),
              ("../index.html", "all pools"))  # fmt: skip
    links = [f'<a href="{to}">{word}</a>' for to, word in beside if to == "report.pdf" or (paths.folder / to).exists()]
    head = (
        f'<header>\n<p class="kicker">Benchmark audit</p>\n<h1 dir="auto">{escape.html(said["benchmark"])}</h1>\n'
        f'<p class="pool">pool <strong dir="auto">{escape.html(said["pool"])}</strong> · '
        f"{' · '.join(links)}</p>\n</header>"
    )
    nav = f'<nav aria-label="Contents">\n<p>Contents</p>\n<ol>\n{contents}\n</ol>\n</nav>'
    body = "\n".join(_section(s, paths) for s in said["sections"])
    text = page(said["title"], f'{head}\n{nav}\n<div class="text">\n{body}\n</div>', kind="report")
    with atomic(paths.report_html) as file:
        file.write_text(text, encoding="utf-8")
    return paths.report_html


def _section(part: dict[str, Any], paths: RunPaths) -> str:
    inner = "\n".join(_SET[b["kind"]](b, paths) for b in part["blocks"])
    return f'<section id="{part["id"]}">\n<h2>{escape.html(part["title"])}</h2>\n{inner}\n</section>'


def _runs(runs: list[list[str]]) -> str:
    out = []
    for style, text in runs:
        shown = escape.html(text)
        if style == "link":
            shown = f'<a href="{shown}"><code>{shown}</code></a>'
        elif style:
            shown = f"<{_TAGS[style]}>{shown}</{_TAGS[style]}>"
        out.append(shown)
    return "".join(out)


def _p(block: Block, _: RunPaths) -> str:
    role = f' class="{block["role"]}"' if block["role"] else ""
    return f"<p{role}>{_runs(block['runs'])}</p>"


def _callout(block: Block, _: RunPaths) -> str:
    return f'<p class="callout {block["tone"]}" role="note">{_runs(block["runs"])}</p>'


def _list(block: Block, _: RunPaths) -> str:
    tag = "ol" if block["ordered"] else "ul"
    return f"<{tag}>\n" + "\n".join(f"<li>{_runs(i)}</li>" for i in block["items"]) + f"\n</{tag}>"


def _code(block: Block, _: RunPaths) -> str:
    return f"<pre><code>{escape.html(block['text'])}</code></pre>"


def _h3(block: Block, _: RunPaths) -> str:
    return f"<h3>{escape.html(block['text'])}</h3>"


def _cards(block: Block, _: RunPaths) -> str:
    cells = "\n".join(
        f'<div class="card"><p class="label">{escape.html(c["label"])}</p>'
        f'<p class="value">{escape.html(c["value"])}</p>'
        f'<p class="sub">{escape.html(c["sub"]).replace(chr(10), "<br>")}</p></div>'
        for c in block["items"]
    )
    kind = "cards four" if len(block["items"]) == 4 else "cards"
    return f'<div class="{kind}">\n{cells}\n</div>'


def _table(block: Block, paths: RunPaths) -> str:
    sides = ["l" if left else "r" for left in block["left"]]
    head = "".join(f'<th class="{s}" scope="col">{escape.html(h)}</th>' for h, s in zip(block["head"], sides))
    rows = "\n".join(
        "<tr>" + "".join(f'<td class="{s}"{_direction(s)}>{v}</td>' for v, s in zip(row, sides)) + "</tr>"
        for row in _cells(block, paths)
    )
    files = f'<span class="files">tables/{escape.html(block["name"])}</span>' if block["name"] else ""
    notes = " ".join(t for t in (block["note"], block["more"]) if t)
    after = f'\n<p class="note">{escape.html(notes)}</p>' if notes else ""
    caption = f"<caption><b>Table {block['number']}.</b> {escape.html(block['title'])} {files}</caption>"
    return (
        f'<div class="tablebox"><div class="scroll"><table>{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n'
        f"</tbody></table></div>{after}</div>"
    )


def _cells(block: Block, paths: RunPaths) -> list[list[str]]:
    """Cells as markup; a row about an item leads to it on the page of items."""
    rows = [[cell(v) for v in row] for row in block["rows"]]
    if block["items"] and paths.items_html.exists():
        for row, item in zip(rows, block["items"]):
            row[0] = f'<a href="{escape.html(address(item))}">{row[0]}</a>'
    return rows


def cell(text: str) -> str:
    """A table cell in which names can break after a mark, and endless words anywhere."""
    out = []
    for word in re.split(r"(\s+)", text):
        parts = [word[i : i + WORD] for i in range(0, len(word), WORD)] if len(word) > 2 * WORD else [word]
        out.append("<wbr>".join(escape.html(x) for x in parts))
    return re.sub(r"([_/])(?=\w)", r"\1<wbr>", "".join(out)) if len(text) > WORD else "".join(out)


def _direction(side: str) -> str:
    return ' dir="auto"' if side == "l" else ""


def _figures(block: Block, paths: RunPaths) -> str:
    return '<div class="figures">\n' + "\n".join(_figure(f, paths) for f in block["items"]) + "\n</div>"


def _figure(f: dict[str, Any], paths: RunPaths) -> str:
    svg, png = (paths.figures / f"{f['name']}.{e}" for e in ("svg", "png"))
    file = svg if svg.exists() and svg.stat().st_size < 1_500_000 else png
    if not file.exists():
        return f'<p class="note">Figure {f["number"]} ({escape.html(f["title"])}): its file is missing.</p>'
    inches = svg_size(svg)[0] if svg.exists() else 3.4
    size = "broad" if inches > 4.6 else "narrow"
    alt = f"Figure {f['number']}. {f['title']}. {f['caption']}"
    return (
        f'<figure id="{f["name"]}" class="{size}">{picture(file, alt, width=inches * 1.12)}\n<figcaption dir="auto">'
        f"<b>Figure {f['number']}. {escape.html(f['title'])}.</b> {escape.html(f['caption'])} "
        f'<span class="files">figures/{f["name"]}</span></figcaption></figure>'
    )


_SET = {
    "p": _p,
    "callout": _callout,
    "list": _list,
    "code": _code,
    "h3": _h3,
    "cards": _cards,
    "table": _table,
    "figures": _figures,
}
