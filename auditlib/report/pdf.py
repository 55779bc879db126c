"""``report.pdf``: the same content set by typst from a fixed template; texts reach it as data, never as markup."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from auditlib.figures.glyphs import bundled_folder, drawable
from auditlib.paths import RunPaths, atomic
from auditlib.report.page import svg_size

#: a word longer than this may be broken anywhere after STEP characters, else it would run out of its column
LONG, STEP = 18, 8
#: width of the text in points, letters from which a column of words wraps in a wide table, smallest type in points
ROOM, WRAP, SMALLEST = 482.0, 24, 5.2
_BREAK = "\u200b"
_TEMPLATE = Path(__file__).with_name("report.typ")


def write_pdf(said: dict[str, Any], paths: RunPaths) -> Path:
    """Set a report's content as PDF; needs no program beside the ``typst`` package, and no font of the machine."""
    import typst

    with tempfile.TemporaryDirectory(prefix="auditlib-") as holder:
        folder = Path(holder)
        shutil.copy(_TEMPLATE, folder / "report.typ")
        said = said | {"sections": [s | {"blocks": [_block(b, paths, folder) for b in s["blocks"]]}
                                    for s in said["sections"]]}  # fmt: skip
        (folder / "report.json").write_text(json.dumps(_shown(said), ensure_ascii=False), encoding="utf-8")
        data = typst.compile(str(folder / "report.typ"), root=holder, font_paths=[str(bundled_folder())],
                             ignore_system_fonts=True, format="pdf")  # fmt: skip
    with atomic(paths.report_pdf) as file:
        file.write_bytes(data)
    return paths.report_pdf


def _shown(value: Any) -> Any:
    """The content with every text made drawable: no invisible control, no character without a glyph."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {k: v if k in ("kind", "file", "tone", "role", "id") else _shown(v) for k, v in value.items()}
    return [_shown(v) for v in value] if isinstance(value, list | tuple) else value


def shown(text: str) -> str:
    """A text as the page can draw it, with places to break its long words."""
    return _breakable(drawable(text, system=False, newlines=True))


def _breakable(text: str) -> str:
    """Text whose long words have places to break."""
    if len(text) <= LONG or all(len(w) <= LONG for w in text.split()):
        return text
    return "".join(w if len(w) <= LONG else _spaced(w) for w in _pieces(text))


def _pieces(text: str) -> list[str]:
    out, word = [], ""
    for c in text:
        if c.isspace():
            out += [word, c]
            word = ""
        else:
            word += c
    return [*out, word]


def _spaced(word: str) -> str:
    out, since = "", 0
    for i, c in enumerate(word):
        out, since = out + c, since + 1
        rest = len(word) - i - 1
        natural = (c in "/_,;=" and since > 2) or (since >= STEP and not c.isalnum())
        if rest >= 3 and (natural or since >= 2 * STEP):
            out, since = out + _BREAK, 0
    return out


def _block(block: dict[str, Any], paths: RunPaths, folder: Path) -> dict[str, Any]:
    if block["kind"] == "figures":
        return {"kind": "figures", "rows": _rows([_figure(f, paths, folder) for f in block["items"]])}
    if block["kind"] == "table":
        widths, size = _layout(block)
        return block | {"widths": widths, "size": size}
    return block


def _figure(f: dict[str, Any], paths: RunPaths, folder: Path) -> dict[str, Any]:
    for ending in ("svg", "png"):
        file = paths.figures / f"{f['name']}.{ending}"
        if file.exists():
            shutil.copy(file, folder / file.name)
            svg = file.with_suffix(".svg")
            return f | {"file": file.name, "inches": round(svg_size(svg)[0], 3) if svg.exists() else 3.4}
    return f | {"file": "", "inches": 3.4}


def _rows(figures: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Figures in reading order, two narrow ones side by side."""
    out: list[list[dict[str, Any]]] = []
    for f in figures:
        if out and len(out[-1]) == 1 and out[-1][0]["inches"] <= 4.0 and f["inches"] <= 4.0:
            out[-1].append(f)
        else:
            out.append([f])
    return out


def _layout(block: dict[str, Any]) -> tuple[list[float], float]:
    """Relative widths of a table's columns (0: as wide as the content) and size of its type in points.

    A table that would not fit gets every width by need, in a type in which numbers stand on one line; columns of words
    wrap. A width as wide as the content beside one that takes the rest would leave the rest nothing.
    """
    many = len(block["head"])
    size = 6.9 if many > 9 else 7.5 if many > 7 else 8.2
    if block["widths"]:
        return block["widths"], size
    columns = list(zip(*block["rows"])) if block["rows"] else [() for _ in block["head"]]
    cells = [max((len(str(v)) for v in c), default=0) for c in columns]
    heads = [max(map(len, h.split()), default=0) for h in block["head"]]
    if sum(map(max, cells, heads)) + 2 * many <= ROOM / (0.56 * size):
        return [0.0] * many, size
    need = [max(min(n, WRAP) if left else n, h) + 3 for n, h, left in zip(cells, heads, block["left"])]
    return [float(n) for n in need], round(min(size, max(SMALLEST, ROOM / (0.52 * sum(need)))), 2)
