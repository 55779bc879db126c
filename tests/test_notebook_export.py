"""Exported notebooks: nothing is fetched, parameters are hidden, PDFs appear where something can print them."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import nbformat
import pytest

from auditlib import notebook_export as export
from auditlib.nb import show

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
HOSTILE = '<script>alert(1)</script><img src=http://x.invalid/p.png> $x$ #read("x") \\input{x} =HYPERLINK(1) 😀 שלום'


@pytest.fixture
def executed(tmp_path) -> Path:
    """An executed notebook with a picture, a hostile table, injected parameters and widget state."""
    import pandas as pd

    v4 = nbformat.v4
    picture = v4.new_output("display_data", {"image/png": PIXEL, "text/plain": "figure"})
    table = v4.new_output(
        "execute_result", {"text/html": show(pd.DataFrame({"reply": [HOSTILE]})).data}, execution_count=1
    )
    printed = v4.new_output("stream", text=HOSTILE)
    book = v4.new_notebook(metadata={"widgets": {"application/vnd.jupyter.widget-state+json": {"state": {"a": 1}}}})
    book.cells = [
        v4.new_markdown_cell("# Title\n\n## What is drawn"),
        v4.new_code_cell("params = 1", metadata={"tags": ["parameters"]}),
        v4.new_code_cell("params = 'INJECTED'", metadata={"tags": ["injected-parameters"]}),
        v4.new_code_cell("f()", outputs=[picture, table, printed], execution_count=1),
    ]
    nbformat.write(book, tmp_path / "n.ipynb")
    return tmp_path / "n.ipynb"


def fetched(html: str) -> list[str]:
    """Addresses that a browser would load by itself."""
    found = re.findall(
        r"""<(?:script|img|link|iframe|source|object|embed)\b[^>]*?(?:src|href|data)\s*=\s*["']?([^"'\s>]+)""", html
    )
    found += re.findall(r"""url\(\s*["']?([^"')]+)""", html) + re.findall(r"@import\s+([^;]+)", html)
    return [a for a in found if not a.startswith(("data:", "#"))]


def test_page_fetches_nothing_and_hides_the_injected_cell(executed):
    page = executed.with_suffix(".html")
    export.to_html(executed, page)
    html = page.read_text()
    assert fetched(html) == []
    assert "<script" not in html
    assert "INJECTED" not in html and "params" not in html
    assert f"data:image/png;base64,{PIXEL}" in html.replace("\n", "")
    assert "@page" in html and "A4" in html
    assert not list(page.parent.glob(".*tmp*"))


def test_hostile_text_appears_literally(executed):
    page = executed.with_suffix(".html")
    export.to_html(executed, page)
    html = page.read_text()
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2
    for text in ("$x$", "\\input{x}", "=HYPERLINK(1)", "😀", "שלום"):
        assert text in html


def test_order_of_the_search_for_a_printer(tmp_path, monkeypatch):
    def program(name: str) -> Path:
        file = tmp_path / name
        file.write_text("#!/bin/sh\nexit 3\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return file

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("AUDITLIB_CHROMIUM", raising=False)
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    assert export.find_printer() == ""
    monkeypatch.setattr(export, "find_spec", lambda name: object())
    assert export.find_printer() == "weasyprint"
    chrome = program("google-chrome")
    assert export.find_printer() == str(chrome)
    chromium = program("chromium")
    assert export.find_printer() == str(chromium)
    own = program("own")
    monkeypatch.setenv("AUDITLIB_CHROMIUM", str(own))
    assert export.find_printer() == str(own)


def test_without_a_printer_pages_stay_and_the_word_says_what_to_install(executed, monkeypatch):
    monkeypatch.setattr(export, "find_printer", lambda: "")
    assert export.export_notebooks(executed.parent, ["n"]) == (
        "notebook PDFs skipped: install chromium, or 'pip install weasyprint'"
    )
    assert executed.with_suffix(".html").exists() and not executed.with_suffix(".pdf").exists()


def test_printer_that_fails_is_no_failure_of_the_run(executed, tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no display >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(export, "find_printer", lambda: str(broken))
    assert export.export_notebooks(executed.parent, ["n"]) == "notebook PDFs skipped: broken failed (no display)"
    assert not executed.with_suffix(".pdf").exists()


@pytest.mark.skipif(not export.find_printer(), reason="no chromium or weasyprint here")
def test_pdf_is_a4_and_holds_the_text(executed):
    import pypdf

    assert export.export_notebooks(executed.parent, ["n"]).startswith("notebook PDFs by ")
    reader = pypdf.PdfReader(executed.with_suffix(".pdf"))
    assert [round(float(x)) for x in reader.pages[0].mediabox[2:]] == [595, 842]
    text = "".join(p.extract_text() for p in reader.pages)
    assert "What is drawn" in text and "<script>alert(1)</script>" in text and "INJECTED" not in text
