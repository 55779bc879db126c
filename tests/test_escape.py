"""Escaping: what a reader of each format sees is the text itself, and nothing in it acts."""

from __future__ import annotations

import html as html_parser
import re

import pandas as pd
import pytest
from demo_audit import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from auditlib import escape

TEXTS = [HOSTILE["question"], HOSTILE["reply"], *HOSTILE["options"], "gpt-5-nano", "a--b ''x'' ,,", "[x]", "* y",
         "1. x", "- x",
         "&amp; &lt; AT&T a & b", "__init__ snake_case _em_", "~~gone~~", "C:\\new\\table", "''=x"]  # fmt: skip
PRINTABLE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=60)


def seen(text: str) -> str:
    return escape.visible(text, newlines=False)


def from_markdown(text: str) -> str:
    """Backslash escapes undone, as CommonMark does for ASCII punctuation."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def from_latex(text: str) -> str:
    """What TeX sets, for the output of :func:`escape.latex`."""
    words = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">",
             "textbar": "|", "textasciigrave": "`"}  # fmt: skip
    text = re.sub(r"\\(text[a-z]+)\{\}", lambda m: "\0" + words[m.group(1)], text)
    text = re.sub(r"(?<!\\)\{\}", "", text)
    text = re.sub(r"^\{([\[*])\}", r"\1", text)
    return re.sub(r"\\([{}$&#%_])", r"\1", text).replace("\0", "")


@pytest.mark.parametrize("text", TEXTS)
def test_html_shows_the_text(text):
    out = escape.html(text)
    assert html_parser.unescape(out) == escape.visible(text)
    assert not re.search("[<>\"']", out)


@pytest.mark.parametrize("text", TEXTS)
def test_markdown_shows_the_text(text):
    for start in (False, True):
        out = escape.markdown(text, start=start)
        assert from_markdown(out) == seen(text)
        assert not re.search(r"(?<!\\)[<>|`$*\[\]#~]", out)
    assert "\n" not in escape.markdown("a\nb")


@pytest.mark.parametrize("text", TEXTS)
def test_latex_shows_the_text(text):
    out = escape.latex(text)
    assert from_latex(out) == seen(text)
    assert not re.search(r"(?<!\\)[$&#%_^~<>|]", out) and "--" not in out and "''" not in out
    assert set(re.findall(r"\\([a-zA-Z]+)", out)) <= {
        "textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar", "textasciigrave",
    }  # fmt: skip


@given(PRINTABLE)
def test_any_text_comes_back_from_each_format(text):
    assert html_parser.unescape(escape.html(text)) == escape.visible(text)
    assert from_markdown(escape.markdown(text)) == seen(text)
    assert escape.csv_unguard(escape.csv_cell(text)) == text


def test_what_starts_a_list_is_escaped_only_at_a_start():
    assert escape.markdown("- x", start=True) == "\\- x" and escape.markdown("- x") == "- x"
    assert escape.markdown("12. x", start=True) == "12\\. x"
    assert escape.markdown("-3.5") == "-3.5"


def test_an_underscore_inside_a_word_stays_readable():
    assert escape.markdown("visual_dependency") == "visual_dependency" and escape.markdown("_a_") == "\\_a\\_"


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@SUM(A1)", "\t=1", "\r=1", "＝1", "＋1", "－1", "＠x", "'=1"])
def test_csv_guards_formulas(text):
    assert escape.csv_cell(text) == f"'{text}"
    assert escape.csv_unguard(escape.csv_cell(text)) == text


@pytest.mark.parametrize("text", ["A", "", "-3", "+0.5", "-1e5", "-20%", "a=b", "'quoted'", "Model-A"])
def test_csv_leaves_plain_cells_alone(text):
    assert escape.csv_cell(text) == text == escape.csv_unguard(text)


def test_guarded_frames_keep_numbers_and_missing_cells():
    frame = pd.DataFrame({"=a": ["=1", None, "b"], "n": [-1.5, 2, 3], "flag": [True, False, True]})
    out = escape.guard_csv(frame)
    assert list(out.columns) == ["'=a", "n", "flag"] and out["'=a"].tolist()[::2] == ["'=1", "b"]
    assert out["'=a"].isna().tolist() == [False, True, False] and out["n"].tolist() == [-1.5, 2, 3]
    assert frame.columns[0] == "=a"


def test_controls_and_overrides_are_spelled_out():
    assert escape.visible("a\x00b\x1b[31m\u202ec\u2066d\ud800") == "a⟨U+0000⟩b⟨U+001B⟩[31m⟨U+202E⟩c⟨U+2066⟩d⟨U+D800⟩"
    assert escape.visible("a\r\nb\tc") == "a\nb\tc" and escape.visible("a\r\n b", newlines=False) == "a b"
    assert escape.visible("👩\u200d🚀 שלום") == "👩\u200d🚀 שלום"  # joiners and right-to-left letters are text
    assert escape.visible(None) == escape.visible(float("nan")) == escape.visible(pd.NA) == ""


def test_a_fence_is_longer_than_any_inside():
    assert escape.fenced("a ```` b").splitlines()[0] == "`````text"


def test_typst_strings_cannot_end_early():
    assert escape.typst('a"#read("x")\\\n') == '"a\\"#read(\\"x\\")\\\\\\n"'
