"""The shell of every HTML page: the style inside, nothing fetched, no script."""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path

from auditlib import escape

#: the browser itself refuses scripts and anything from elsewhere, should a text ever slip through
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@cache
def style() -> str:
    """The style sheet."""
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def page(title: str, body: str, *, kind: str = "plain", style_too: str = "", script: str = "") -> str:
    """A complete page; ``title`` is escaped here, ``body`` is markup.

    Parameters
    ----------
    kind : ``plain`` (a column of text), ``wide`` (tables and pictures), ``report`` (contents aside), ``onepage``.
    style_too : rules of this page alone.
    script : the hash of the one script that the body holds, as a policy names it; none runs otherwise.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}{f"; script-src {script}" * bool(script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape.html(title)}</title>\n<style>\n{style()}{style_too}</style>\n</head>\n"
        f'<body class="{kind}">\n<main>\n{body}\n</main>\n</body>\n</html>\n'
    )


def picture(file: Path, alt: str, *, width: float | None = None) -> str:
    """An image inside the page, as a data address; ``width`` in inches."""
    kind = {"svg": "image/svg+xml", "png": "image/png"}[file.suffix[1:]]
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    size = f' style="width:{width:.2f}in"' if width else ""
    return f'<img src="data:{kind};base64,{data}" alt="{escape.html(alt)}"{size}>'


def svg_size(file: Path) -> tuple[float, float]:
    """Width and height of one of our SVG files in inches (it states them in points)."""
    head = file.read_text(encoding="utf-8")[:3000]
    found = [re.search(rf'<svg[^>]*?\b{name}="([\d.]+)pt"', head, re.DOTALL) for name in ("width", "height")]
    return tuple(float(f.group(1)) / 72 if f else 3.4 for f in found)
