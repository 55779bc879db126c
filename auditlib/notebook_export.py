"""Executed notebooks as HTML that fetches nothing, and as PDF where a program that prints pages is at hand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from auditlib.paths import atomic

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

_SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)

#: A4, no picture or table row cut in two, long code wrapped, no prompts
PRINT_CSS = """
@page { size: A4; margin: 16mm 14mm; }
.jp-InputPrompt, .jp-OutputPrompt { display: none !important; }
.jp-Cell { padding-left: 0 !important; }
.jp-OutputArea-output { overflow-x: auto; }
.jp-OutputArea-output img, .jp-OutputArea-output svg { max-width: 100%; height: auto; }
@media print {
  body { zoom: 0.72; margin: 0; padding: 0; }
  .jp-Notebook { padding: 0 !important; }
  .jp-Cell-inputWrapper, .jp-OutputArea-child, .jp-OutputArea-output, figure, tr { break-inside: avoid; }
  .jp-OutputArea-output { overflow: visible; }
  .jp-OutputArea-output table { table-layout: auto; }
  .jp-OutputArea-output td { padding: 3px 5px; overflow-wrap: anywhere; }
  .jp-OutputArea-output th { padding: 3px 5px; }
  .highlight pre, .jp-OutputArea-output pre { white-space: pre-wrap; word-break: break-word; }
  .jp-Cell-inputWrapper, h1, h2, h3 { break-after: avoid; }
}
"""


def to_html(notebook: Path, page: Path) -> None:
    """Write an executed notebook as one HTML file with its pictures inside.

    Injected parameters are hidden, and with them the defaults that they replace, which would name another pool; no
    script, style or picture is fetched when the page is opened.
    """
    import nbformat
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    content = nbformat.read(notebook, as_version=4)
    injected = any("injected-parameters" in cell.metadata.get("tags", []) for cell in content.cells)
    config = Config()
    config.TagRemovePreprocessor.enabled = True
    config.TagRemovePreprocessor.remove_cell_tags = {"injected-parameters", "parameters"} if injected else set()
    exporter = HTMLExporter(config=config, require_js_url="", jquery_url="", mathjax_url="", mermaid_js_url="")
    content.metadata.pop("widgets", None)
    html, _ = exporter.from_notebook_node(content, resources={"metadata": {"name": notebook.stem}})
    head, body = html.split("</head>", 1)
    head = _SCRIPT.sub("", head)  # loaders of diagrams, formulas and widgets, which these notebooks do not have
    with atomic(page) as t:
        t.write_text(f"{head}<style>{PRINT_CSS}</style>\n</head>{body}", encoding="utf-8")


def find_printer() -> str:
    """Path of a browser that prints pages, ``"weasyprint"`` where that is installed, or ``""``."""
    stated = os.environ.get("AUDITLIB_CHROMIUM")
    for name in ([stated] if stated else []) + list(BROWSERS):
        if found := shutil.which(name):
            return found
    return "weasyprint" if find_spec("weasyprint") else ""


def to_pdf(page: Path, pdf: Path, printer: str) -> None:
    """Print an HTML file.

    Raises
    ------
    RuntimeError
        The program ended without a PDF; its last words are the message.
    """
    with atomic(pdf) as t:
        if printer == "weasyprint":
            import weasyprint

            weasyprint.HTML(filename=str(page)).write_pdf(str(t))
            return
        profile = tempfile.mkdtemp(prefix="au")  # a shared profile makes parallel calls clash
        command = [printer, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-background-networking", "--no-first-run", "--no-pdf-header-footer",
                   f"--user-data-dir={profile}", f"--print-to-pdf={t}", page.resolve().as_uri()]  # fmt: skip
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise RuntimeError(str(e)) from None
        finally:
            shutil.rmtree(profile, ignore_errors=True)
        if not t.exists() or t.read_bytes()[:5] != b"%PDF-":
            raise RuntimeError((ended.stderr.strip().splitlines() or ["no PDF was written"])[-1])


def export_notebooks(folder: Path, names: Sequence[str]) -> str:
    """Export executed notebooks as HTML, and as PDF where possible; says in words what became of the PDFs.

    Parameters
    ----------
    folder : where ``<name>.ipynb`` lie; pages are written beside them.
    """
    for name in names:
        to_html(folder / f"{name}.ipynb", folder / f"{name}.html")
    printer = find_printer()
    if not printer:
        return "notebook PDFs skipped: install chromium, or 'pip install weasyprint'"
    try:
        for name in names:
            to_pdf(folder / f"{name}.html", folder / f"{name}.pdf", printer)
    except RuntimeError as e:
        return f"notebook PDFs skipped: {Path(printer).name} failed ({e})"
    return f"notebook PDFs by {Path(printer).name}"
