"""Hostile text from data sets and models shows literally in everything that people open, and does nothing."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from builders import scratch
from demo_audit import HOSTILE, HOSTILE_MODEL, demo
from report_pages import Page, bare, is_local, pdf_text, saved

from auditlib.escape import visible
from auditlib.figures import save_figures
from auditlib.figures.glyphs import bundled, drawable
from auditlib.outputs import load_audit
from auditlib.paths import RunPaths
from auditlib.report import write_report
from auditlib.report.flagged import write_flagged
from auditlib.report.index import write_index

NAME = 'P <script>alert(2)</script> #read("x") $ _ | & % \\input{x} =HYPERLINK("y") 🚀 שלום'
STRATUM = "<i>& $_ {x}"


@cache
def hostile() -> RunPaths:
    """A pool whose item, model, category, benchmark and pool name are hostile, with report, figures and lists."""
    paths = saved(demo(hostile=True), scratch() / "hostile", pool_name=NAME, benchmark="B " + NAME)
    audit = load_audit(paths)
    save_figures(audit, paths, ["fig3a_strata_excess", "blind_profile"])
    write_flagged(audit, paths)
    write_report(paths)
    write_index(paths.outputs)
    return paths


def html_pages() -> list[Path]:
    paths = hostile()
    return [paths.report_html, paths.index, paths.figures / "index.html"]


@pytest.mark.parametrize("which", range(3), ids=["report", "index", "figures"])
def test_no_foreign_text_becomes_markup(which):
    """Only tags that the templates write, no handler, nothing that is fetched or run."""
    page = Page(html_pages()[which].read_text(encoding="utf-8"))
    assert not {"script", "iframe", "object", "embed", "link", "base", "form", "i", "svg"} & set(page.tags)
    assert page.handlers == []
    assert [a for a in page.addresses if not is_local(a[2])] == []


@pytest.mark.parametrize("which", range(3), ids=["report", "index", "figures"])
def test_style_sheets_fetch_nothing(which):
    text = html_pages()[which].read_text(encoding="utf-8")
    styles = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "@import" not in styles and "url(" not in styles
    assert "default-src 'none'" in text


def test_report_html_shows_everything_literally():
    text = bare(Page(hostile().report_html.read_text(encoding="utf-8")).text)
    question = visible(HOSTILE["question"])
    assert bare(question[:85]) in text  # tables of findings cut long questions, and say so with an ellipsis
    for wanted in (NAME, "B " + NAME, HOSTILE_MODEL, STRATUM):
        assert bare(wanted) in text
    assert "⟨U+202E⟩" in text


def _left_to_right(text: str) -> list[str]:
    """Pieces of a text without right-to-left letters, which extraction may reorder."""
    return [p for p in re.split(r"[\u0590-\u06ff]+", text) if len(p.strip()) > 3]


def test_report_pdf_shows_everything_literally():
    text = pdf_text(hostile().report_pdf)
    for wanted in (visible(HOSTILE["question"])[:60], NAME, HOSTILE_MODEL, STRATUM):
        for piece in _left_to_right(drawable(wanted, system=False)):
            assert bare(piece) in text


def test_right_to_left_letters_reach_the_pdf():
    text = pdf_text(hostile().report_pdf)
    assert set("שלום") <= set(text)


def test_characters_without_a_glyph_are_spelled_out_in_the_pdf():
    """U+1FAE8 and a CJK letter are not in the bundled font: a visible code stands for each, none is dropped."""
    assert 0x1FAE8 not in bundled() and ord("語") not in bundled()
    paths = saved(demo(), scratch() / "glyphs", benchmark="face \U0001fae8 語 end")
    write_report(paths)
    text = pdf_text(paths.report_pdf)
    assert "face⟨U+1FAE8⟩⟨U+8A9E⟩end" in text
    assert "face \U0001fae8 語 end" in paths.report_html.read_text(encoding="utf-8")


def test_flagged_list_is_escaped_markdown():
    text = hostile().flagged.read_text(encoding="utf-8")
    assert r"\<script\>alert(1)\</script\>" in text
    assert r'\#read("x")' in text
    assert re.search(r"(?<!\\)<script", text) is None
    assert re.search(r"(?<!\\)<img", text) is None
    assert "⟨U+202E⟩" in text
    shown = re.sub(r"\\([\\`*_{}\[\]<>#|~$&!().+-])", r"\1", text)
    for wanted in (HOSTILE["question"], *HOSTILE["options"], NAME, HOSTILE_MODEL):
        assert visible(wanted, newlines=False) in shown


def test_summary_is_safe_in_a_spreadsheet():
    paths = saved(demo(), scratch() / "sheet", benchmark='=HYPERLINK("x")')
    write_index(paths.outputs)
    assert "'=HYPERLINK" in paths.summary.read_text(encoding="utf-8")
