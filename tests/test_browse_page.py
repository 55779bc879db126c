"""The pages of a pool in a real browser: no complaint, no request, keys, filters, links; ``items.html`` when full."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pytest
from browser import Page as Tab
from browser import find_browser, until
from builders import scratch
from demo_audit import HOSTILE, HOSTILE_MODEL, demo
from report_pages import Rendered, pages_of, saved

from auditlib.browse.cases import Cases
from auditlib.browse.filters import SORTS, Filter, select
from auditlib.browse.note import note
from auditlib.browse.session import COLUMNS
from auditlib.browse.static import page_content, page_text
from auditlib.escape import csv_unguard, visible
from auditlib.paths import RunPaths
from auditlib.report import write_report
from auditlib.report.index import write_index

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
PAGES = ("report.html", "items.html", "card.html", "index.html")


@cache
def written() -> RunPaths:
    """A pool with hostile text and everything that the report writes."""
    paths = saved(demo(hostile=True), scratch() / "browse-page")
    write_report(paths)
    write_index(paths.outputs)
    return paths


@cache
def cases() -> Cases:
    return Cases(demo(hostile=True))


@pytest.fixture(scope="module")
def downloads(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def tab(downloads):
    page = Tab(BROWSER, downloads)
    yield page
    page.close()


def page_file(name: str) -> Path:
    found = {p.name: p for p in pages_of(written())}
    if name not in found:
        pytest.skip(f"the report writes no {name}")
    return found[name]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_complains_of_nothing_and_asks_for_nothing(tab, name):
    page = Rendered(tab, page_file(name))
    assert page.errors == [] and page.requests == [] and page.nameless() == []
    assert tab.value("document.documentElement.lang") == "en"
    assert tab.value("document.querySelectorAll('h1').length") == 1
    twice = "(() => { const ids = [...document.querySelectorAll('[id]')].map((n) => n.id); "
    assert tab.value(twice + "return ids.filter((x, i) => ids.indexOf(x) !== i); })()") == []


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_what_the_mouse_does(tab, name):
    page = Rendered(tab, page_file(name))
    assert len(page.focused(25)) >= 5


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_its_window(tab, name, width):
    page = Rendered(tab, page_file(name), width=width)
    assert page.overflow() <= 0


# ------------------------------------------------------------------------------------------------------- items.html


@pytest.fixture
def items(tab) -> Rendered:
    tab.value("try { localStorage.clear() } catch (error) { 0 }") if tab.value("location.protocol") == "file:" else None
    page = Rendered(tab, written().items_html)
    tab.wait("document.documentElement.dataset.ready === 'yes'")
    return page


def ids(tab) -> list[str]:
    return tab.value("[...document.querySelectorAll('#list b')].map((n) => n.textContent)")


def shown(tab) -> str:
    return tab.value("document.querySelector('#item h2')?.textContent ?? ''").removeprefix("Item ")


def choose(tab, **values: str) -> None:
    for name, value in values.items():
        box = f"document.getElementById({json.dumps(name)})"
        tab.value(f"{box}.value = {json.dumps(value)}; {box}.dispatchEvent(new Event('change'))")


def wanted(filter_: Filter, sort: str = "suspicion") -> list[str]:
    return [visible(i) for i in select(cases(), filter_, sort)]


def test_filters_let_the_same_items_through_as_in_the_notebook(items):
    tab = items.tab
    c = cases()
    assert ids(tab) == wanted(Filter())[:100]
    names = {"detector": "detector", "severity": "severity", "stratum": "stratum", "category": "category",
             "states": "state"}  # fmt: skip
    tried = 0
    for box, field in names.items():
        options = tab.value(f"[...document.getElementById({box!r}).options].map((o) => [o.value, o.textContent])")
        for value, words in options[1:]:
            raw = next((s for s in c.table["stratum"] if visible(s) == value), value)
            want = wanted(Filter(**{field: raw if box == "stratum" else value}))
            choose(tab, **{box: value})
            assert ids(tab) == want[:100]
            assert words.endswith(f"({len(want)})")
            assert tab.value("document.getElementById('count').textContent").startswith(f"{len(want)} ")
            tried += 1
        choose(tab, **{box: ""})
    assert tried > 12
    choose(tab, detector="consensus_error", severity="medium")
    assert ids(tab) == wanted(Filter("consensus_error", "medium")) != []
    tab.value("document.getElementById('reset').click()")
    tab.wait("document.querySelectorAll('#list b').length > 20")
    for sort in SORTS:
        choose(tab, sort=sort)
        assert ids(tab) == wanted(Filter(), sort)[:100]


def test_a_search_is_typed_and_left_with_escape(items):
    tab = items.tab
    tab.press("/")
    assert tab.value("document.activeElement.id") == "text"
    tab.call("Input.insertText", text="Voters picture SAY")
    want = wanted(Filter(text="voters picture say"))
    tab.wait(f"document.querySelectorAll('#list b').length === {len(want)}")
    assert ids(tab) == want and 0 < len(want) < 60
    before = shown(tab)
    tab.press(" ")
    tab.press("s")  # a letter in the field, no selection
    assert tab.value("document.getElementById('text').value").endswith("SAY s")
    assert shown(tab) == before and tab.value("document.getElementById('save').disabled")
    tab.press("Escape")
    assert tab.value("document.activeElement.id") != "text"


def test_keys_move_through_the_items(items):
    tab = items.tab
    order = wanted(Filter())
    assert shown(tab) == order[0]
    for key, at in (("j", 1), ("ArrowRight", 2), ("k", 1), ("ArrowLeft", 0), ("k", 0)):
        tab.press(key)
        assert shown(tab) == order[at]
    tab.value("document.querySelector('#list [aria-current]').focus()")
    tab.press("ArrowDown")
    assert shown(tab) == order[1] == tab.value("document.activeElement.querySelector('b').textContent")
    tab.value("document.getElementById('next').focus()")
    tab.press("Enter")
    tab.value("document.getElementById('next').click()")
    assert tab.value("document.activeElement.id") == "next"
    assert tab.value("decodeURIComponent(location.hash)") == f"#item={shown(tab)}"
    assert items.errors == []


def test_links_lead_to_one_item(tab):
    order = wanted(Filter())
    for item in (order[7], order[-1], "0"):
        tab.go("about:blank")
        tab.go(written().items_html.as_uri() + "#item=" + quote(item, safe=""))
        tab.wait("document.documentElement.dataset.ready === 'yes'")
        assert shown(tab) == item
        assert tab.value("document.querySelector('#list [aria-current] b').textContent") == item
    tab.value("location.hash = '#item=no%20such'")
    tab.wait("!document.getElementById('lost').hidden")
    assert "Item no such is not on this page" in tab.value("document.getElementById('lost').textContent")
    choose(tab, severity="high")
    tab.value(f"location.hash = {json.dumps('#item=' + order[-1])}")
    tab.wait(f"document.querySelector('#item h2').textContent === {json.dumps('Item ' + order[-1])}")


def test_votes_notes_and_texts_on_the_page_are_those_of_the_pool(items):
    tab, c = items.tab, cases()
    for step, item in enumerate(c.flagged[:12]):
        case = c.case(item)
        assert shown(tab) == visible(item)
        found = tab.value("[...document.querySelectorAll('#item > .scroll tbody tr')].map((r) => "
                          "[...r.querySelectorAll('.n')].map((n) => Number(n.textContent) || 0))")  # fmt: skip
        asked = [k for k in c.conditions if any(said.get(k) for _, said in case.votes)]
        assert found == [[len(said.get(k, ())) for k in asked] for _, said in case.votes], step
        assert tab.value("document.getElementById('note').value") == note(case, c.audit.benchmark)
        said = tab.value("[...document.querySelectorAll('#item td.said')].map((n) => n.textContent)")
        by = [r for k in c.conditions for r in case.replies if r.condition == k]
        assert said == [visible(r.text) or "(empty)" for r in by]
        tab.press("j")


def test_hostile_text_is_text(tab):
    tab.go("about:blank")
    tab.go(written().items_html.as_uri() + "#item=0")
    tab.wait("document.documentElement.dataset.ready === 'yes'")
    text = tab.value("document.getElementById('item').textContent")
    for wanted_ in (visible(HOSTILE["question"]), *HOSTILE["options"], visible(HOSTILE["reply"]), HOSTILE_MODEL):
        assert wanted_ in text
    assert tab.value("document.querySelectorAll('#item script, #item b > b, #item img, #item i, #item m').length") == 0
    blocked = "new Promise((done) => { const s = document.createElement('script'); s.textContent = 'window.bad = 1'; "
    assert tab.value(blocked + "document.body.append(s); setTimeout(() => done(window.bad ?? 0), 50); })") == 0


def test_a_selection_is_kept_and_saved_as_a_csv(items, downloads):
    tab = items.tab
    order = wanted(Filter())
    tab.press("s")
    tab.press("j")
    tab.press("j")
    tab.value("document.getElementById('pick').click()")
    tab.value("document.getElementById('mine').click()")
    assert ids(tab) == [order[0], order[2]]
    tab.value("window.stale = true")
    tab.call("Page.reload")
    tab.wait("window.stale === undefined && document.documentElement.dataset.ready === 'yes'")
    tab.value("document.getElementById('save').click()")
    until(lambda: (downloads / "selection.csv").exists(), "the download", 30)
    table = pd.read_csv(downloads / "selection.csv", dtype=str, keep_default_na=False)
    assert tuple(table.columns) == COLUMNS and [csv_unguard(i) for i in table["item"]] == [order[0], order[2]]
    assert items.requests == []


@cache
def large() -> Path:
    """The page of 3,000 flagged items, made from the demo pool's."""
    content = copy.deepcopy(page_content(demo()))
    one = content["items"]
    content["items"] = [one[i % len(one)] | {"id": f"n{i}", "place": i} for i in range(3000)]
    file = scratch() / "large.html"
    file.write_text(page_text(content, []), encoding="utf-8")
    return file


def test_three_thousand_items_open_and_filter_at_once(tab):
    page = Rendered(tab, large())
    tab.wait("document.documentElement.dataset.ready === 'yes'")
    assert len(ids(tab)) == 100 and shown(tab) == "n0"
    spent = tab.value(
        "(() => { const t = performance.now(); const box = document.getElementById('sort'); "
        "box.value = 'stratum'; box.dispatchEvent(new Event('change')); return performance.now() - t; })()"
    )
    assert spent < 3000, f"{spent:.0f} ms for one filter"
    choose(tab, sort="benchmark")
    tab.value("location.hash = '#item=n2990'")
    tab.wait("document.querySelector('#item h2').textContent === 'Item n2990'")
    assert ids(tab) == [f"n{i}" for i in range(2900, 3000)]
    assert tab.value("document.getElementById('more').textContent").startswith("2901 to 3000 of 3000")
    tab.value("document.querySelector('#more button').click()")
    assert shown(tab) == "n2800" and page.errors == [] and page.requests == []


def test_a_page_without_scripts_says_where_the_items_are(tab):
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.go("about:blank")
        tab.go(written().items_html.as_uri())
        until(lambda: "flagged.md" in _text(tab), "the page", 30)
        assert "needs JavaScript" in _text(tab)
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


def _text(tab) -> str:
    return tab.call("Runtime.evaluate", expression="document.body?.innerText ?? ''")["result"]["value"]
