"""The benchmark card: one page for the maintainer's repository, as ``card.html``, ``card.pdf`` and ``card.md``."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib import escape
from auditlib.figures.glyphs import bundled_folder
from auditlib.paths import RunPaths, atomic
from auditlib.report.card_content import card_content
from auditlib.report.page import page
from auditlib.report.pdf import shown

if TYPE_CHECKING:
    from PIL.Image import Image

_HERE = Path(__file__).parent


def write_card(audit: Any, paths: RunPaths) -> list[Path]:
    """Write the card of a saved audit in three formats.

    Parameters
    ----------
    audit : as loaded from ``paths``, so that the rows that numbers lead to are those on disk.

    Returns
    -------
    list of Path
        The same bytes for the same audit, tables and manifest.
    """
    said = card_content(audit, paths)
    texts = {paths.card_html: card_html(said), paths.card_md: card_markdown(said)}
    for file, text in texts.items():
        with atomic(file) as temporary:
            temporary.write_text(text, encoding="utf-8")
    with atomic(paths.card_pdf) as temporary:
        temporary.write_bytes(card_pdf(said))
    return [paths.card_html, paths.card_pdf, paths.card_md]


# --- HTML ---


def card_html(said: dict[str, Any]) -> str:
    """The card as a page of its own; on paper it fills one A4 page at most."""
    facts = "".join(f"<div><dt>{escape.html(k)}</dt><dd>{_html(v)}</dd></div>" for k, v in said["facts"])
    caution = f'<p class="callout" role="note">{_html(said["caution"])}</p>' if said["caution"] else ""
    tiles = "".join(map(_tile, said["tiles"]))
    reading = "".join(f"<p>{_html(line)}</p>" for line in said["reading"])
    parts = "".join(f"<section><h2>{escape.html(p.title)}</h2>{_lines(p.lines)}</section>" for p in said["parts"])
    advice = "".join(f"<li>{_html(line)}</li>" for line in said["advice"])
    date = f"<p>{escape.html(said['date'])}</p>" if said["date"] else ""
    body = (
        f'<header><div><p class="kicker">Benchmark card</p><h1 dir="auto">{escape.html(said["benchmark"])}</h1></div>'
        f'<div class="when"><p>pool <strong dir="auto">{escape.html(said["pool"])}</strong></p>{date}</div></header>\n'
        f'{caution}\n<dl class="facts">{facts}</dl>\n'
        f'<section class="reading"><h2>What it measures of images</h2>\n'
        f'<div class="tiles">{tiles}</div>\n'
        f'<div class="beside"><div>{reading}</div>{_figure(said["figure"])}</div></section>\n'
        f'<div class="parts">{parts}</div>\n'
        f'<section class="advice"><h2>Recommended</h2><ul>{advice}</ul></section>\n'
        f"<footer><p>{_html(said['footer'])}</p></footer>"
    )
    return page(said["title"], body, kind="onepage", style_too=(_HERE / "card.css").read_text(encoding="utf-8"))


def _tile(tile: dict[str, Any]) -> str:
    lines = "<br>".join(_html(line) for line in tile["lines"] if line)
    upto = f" – {_html([tile['upto']])}" if tile.get("upto") else ""
    return (f'<div class="tile"><p class="label">{escape.html(tile["label"])}</p>'
            f'<p class="value">{_html([tile["value"]])}{upto}</p><p class="sub">{lines}</p></div>')  # fmt: skip


def _figure(drawn: dict[str, str] | None) -> str:
    if drawn is None:
        return ""
    import base64

    data = base64.b64encode(drawn["svg"].encode()).decode("ascii")
    return (f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{escape.html(drawn["alt"])}">'
            f"<figcaption>{escape.html(drawn['caption'])}</figcaption></figure>")  # fmt: skip


def _lines(lines: list[list[Any]]) -> str:
    return "".join(f"<p>{_html(line)}</p>" for line in lines)


def _html(runs: list[Any]) -> str:
    out = []
    for r in runs:
        if isinstance(r, str):
            out.append(escape.html(r))
        elif r[0] == "to":
            out.append(f'<a href="{escape.html(r[2])}">{escape.html(r[1])}</a>')
        else:
            out.append(f"<strong>{escape.html(r[1])}</strong>")
    return "".join(out)


# --- PDF ---


def card_pdf(said: dict[str, Any], *, form: str = "pdf", ppi: float | None = None) -> bytes:
    """The card on one A4 page: the largest type in which everything fits; as a picture with ``form`` ``"png"``."""
    import typst

    with tempfile.TemporaryDirectory(prefix="auditlib-") as holder:
        folder = Path(holder)
        shutil.copy(_HERE / "card.typ", folder / "card.typ")
        if said["figure"]:
            (folder / "figure.svg").write_text(said["figure"]["svg"], encoding="utf-8")
        plain = said | {"parts": [{"title": p.title, "lines": p.lines} for p in said["parts"]],
                        "figure": said["figure"] and {k: said["figure"][k] for k in ("alt", "caption")}}  # fmt: skip
        (folder / "card.json").write_text(json.dumps(_plain(plain), ensure_ascii=False), encoding="utf-8")
        return typst.compile(str(folder / "card.typ"), root=holder, font_paths=[str(bundled_folder())],
                             ignore_system_fonts=True, format=form, ppi=ppi)  # fmt: skip


def _plain(value: Any) -> Any:
    """Runs as ``[style, text, address]``, every text drawable."""
    if isinstance(value, tuple) and value and value[0] in ("b", "to"):
        return [value[0], shown(value[1]), *value[2:]]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return shown(value) if isinstance(value, str) else value


# --- Markdown ---


def card_markdown(said: dict[str, Any]) -> str:
    """The card for a README: the same numbers, with links relative to the pool's folder."""
    out = [f"# {escape.markdown(said['benchmark'])}: benchmark card", ""]
    out += [f"> {_markdown(said['caution'])}", ""] if said["caution"] else []
    out += [f"- **{k}:** {_markdown(v)}" for k, v in [*said["facts"], ("Pool", [said["pool"]])]]
    out += ["", "## What it measures of images", ""]
    for t in said["tiles"]:
        upto = f" to {_markdown([t['upto']])}" if t.get("upto") else ""
        more = "; ".join(_markdown(line) for line in t["lines"] if line)
        out.append(f"- **{escape.markdown(t['label'])}:** {_markdown([t['value']])}{upto}; {more}")
    out += ["", *(_markdown(line, start=True) for line in said["reading"])]
    for part in said["parts"]:
        out += ["", f"## {escape.markdown(part.title)}", "", *(f"- {_markdown(line, start=True)}"
                                                               for line in part.lines)]  # fmt: skip
    out += ["", "## Recommended", "", *(f"- {_markdown(line, start=True)}" for line in said["advice"])]
    return "\n".join([*out, "", f"<sub>{_markdown(said['footer'])}</sub>"]) + "\n"


def _markdown(runs: list[Any], *, start: bool = False) -> str:
    out = []
    for i, r in enumerate(runs):
        text = r if isinstance(r, str) else r[1]
        inner, lead, tail = text.strip(" "), text[: len(text) - len(text.lstrip(" "))], text[len(text.rstrip(" ")) :]
        inner = escape.markdown(inner, start=start and i == 0 and isinstance(r, str))
        if not isinstance(r, str):
            inner = f"[{inner}](<{r[2]}>)" if r[0] == "to" else f"**{inner}**"
        out.append(f"{lead}{inner}{tail}" if inner else text)
    return "".join(out)


# --- a picture ---


def _main(arguments: Sequence[str]) -> int:
    """``outputs/POOL --png FILE``: the card of a saved audit as a picture."""
    from auditlib.errors import AuditError
    from auditlib.outputs import load_audit
    from auditlib.paths import resolve

    if len(arguments) != 3 or arguments[1] != "--png":
        print("usage: python -m auditlib.report.card outputs/POOL --png FILE", file=sys.stderr)
        return 2
    folder, file = resolve(Path(arguments[0])), Path(arguments[2])
    try:
        paths = RunPaths(folder.parent, folder.name)
        drawn = card_pdf(card_content(load_audit(paths), paths), form="png", ppi=110)
    except AuditError as e:
        print(f"auditlib: {e}", file=sys.stderr)
        return 2
    with atomic(file) as temporary:
        _framed(drawn).save(temporary, "PNG", optimize=True)
    print(file)
    return 0


def _framed(drawn: bytes) -> Image:
    """A page as far as it is written on, with a thin frame, in few colours."""
    from io import BytesIO

    from PIL import Image, ImageChops, ImageOps

    page = Image.open(BytesIO(drawn)).convert("RGB")
    written = ImageChops.difference(page, Image.new("RGB", page.size, "white")).getbbox() or (0, 0, *page.size)
    left, top = min(written[0], 32), min(written[1], 32)
    box = (written[0] - left, written[1] - top, written[2] + left, written[3] + top)
    return ImageOps.expand(page.crop(box), 1, (200, 205, 210)).quantize(256)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
