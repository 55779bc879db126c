"""The benchmark card: one page, every number where it says it stands, nothing headlined that may not be."""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import Page as Tab
from browser import find_browser
from builders import embedded_audit, scratch
from demo_audit import HOSTILE_MODEL, demo
from demo_audit import bare as bare_audit
from report_pages import Page, is_local, pdf_text, saved
from report_pages import bare as without_spaces

from auditlib import numerals
from auditlib.lookup import one
from auditlib.numerals import count, percent, points, pp
from auditlib.outputs import load_audit
from auditlib.paths import RunPaths
from auditlib.report import write_report
from auditlib.report.blocks import numbered
from auditlib.report.card import write_card
from auditlib.report.card_content import card_content
from auditlib.report.card_figure import prepare
from auditlib.report.flagged import write_flagged
from auditlib.report.html import _section
from auditlib.report.integrity import integrity
from auditlib.summary import headline_row
from auditlib.tables import save_tables

AUDITS = {
    "hallusion": lambda: embedded_audit("hallusionbench_replica"),
    "full": demo,
    "noblind": lambda: demo(blind=False),
    "one": lambda: demo(models=1, blind=False),
    "hostile": lambda: demo(models=6, strata=9, hostile=True, long_names=True),
}
#: numbers that are no result: margins, levels and limits of the method, and what names hold
CONSTANT = {"95%", "90%", "0", ".05", "5", "3.0 pp", "1.0 pp"}


@cache
def written(name: str) -> RunPaths:
    """A pool with its card on disk; some with tables, one with its whole report."""
    paths = saved(AUDITS[name](), scratch() / f"card-{name}")
    digests = {"digests": {"items": "ab" * 32, "runs": "cd" * 32}, "written": "2026-11-30T00:00:00Z", "auditlib": "0"}
    paths.manifest.write_text(json.dumps(digests))
    audit = load_audit(paths)
    if name in ("full", "hallusion", "hostile"):
        save_tables(audit, paths, ["headline", "strata", "accuracy", "agreement", "same_wrong_option"])
    if name == "full":
        write_report(paths)
    else:  # the list and the section that the card leads to
        write_flagged(audit, paths)
        part = _section(numbered([integrity(audit)])[0], paths)
        paths.report_html.write_text(part, encoding="utf-8")
        write_card(audit, paths)
    return paths


def said(name: str):
    paths = written(name)
    return card_content(load_audit(paths), paths)


class Links(HTMLParser):
    """Addresses with the text that leads to them, and the text that leads nowhere."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.rest: list[str] = []
        self._at, self._skip = "", False
        self.feed(text.partition("<main>")[2])

    def handle_starttag(self, tag, attrs):
        self._at = dict(attrs).get("href", "") if tag == "a" else self._at

    def handle_endtag(self, tag):
        self._at = "" if tag == "a" else self._at

    def handle_data(self, data):
        if self._at:
            self.links.append((self._at, data))
        else:
            self.rest.append(data)


def row_texts(paths: RunPaths, file: str, row: int) -> set[str]:
    """Every form in which a number of a CSV row can be printed."""
    table = pd.read_csv(paths.folder / file)
    r = table.iloc[row - 2]
    values = pd.to_numeric(r, errors="coerce").dropna()
    shows = (numerals.percent, lambda v: percent(v, 2), lambda v: percent(v, 0), points, pp, numerals.p_value,
             numerals.number, count, numerals.pct)  # fmt: skip
    out = {show(v) for v in values for show in shows} | {str(v) for v in r}
    return out | ({count(r["estimate"] * r["n"])} if {"estimate", "n"} <= set(r.index) else set())


def target_texts(paths: RunPaths, address: str) -> tuple[str, set[str]]:
    """Text of the place that a link names, and the numbers it may hold in other forms."""
    file, _, part = address.partition("#")
    path = paths.folder / file
    assert path.exists(), address
    if part.startswith("row="):
        return "", row_texts(paths, file, int(part[4:]))
    if file == "items.parquet":
        items = pd.read_parquet(path)
        k = pd.to_numeric(items["k"], errors="coerce").dropna() if "k" in items else pd.Series(dtype=float)
        kinds = items["answer_type"].value_counts() if "answer_type" in items else []
        return "", {count(v) for v in [*kinds, *k.unique()]} | {percent(np.mean(1 / k[k > 1]))}
    if file == "audit.json":
        return "", {count(v) for v in json.loads(path.read_text())["steps"].values() if isinstance(v, int)}
    text = path.read_text(encoding="utf-8")
    if not part:
        return text, set()
    assert f'id="{part}"' in text, address
    inner = text.split(f'id="{part}"', 1)[1]
    end = "</tr>" if part.startswith("r") and part[1:].isdigit() else "</section>"
    return Page(inner.split(end, 1)[0].partition(">")[2]).text, set()


def holds(paths: RunPaths, address: str, shown: str) -> bool:
    text, forms = target_texts(paths, address)
    core = shown.removeprefix("p = ").removeprefix("p ").removesuffix("%").removesuffix(" pp")
    parts = re.findall(r"[^\[\], ]+", core) if core.startswith("[") else [core]
    if forms:
        return all({p, f"{p}%", f"{p} pp", p.removesuffix(" models").removesuffix(" model")} & forms for p in parts)
    return all(p in text for p in parts)


@pytest.mark.parametrize("name", list(AUDITS))
def test_every_link_leads_to_its_number(name):
    paths = written(name)
    found = Links(paths.card_html.read_text(encoding="utf-8"))
    numbers = [(a, t) for a, t in found.links if re.search(r"\d", t) or "#" in a]
    wrong = [(a, t) for a, t in numbers if t != "more" and not holds(paths, a, t)]
    assert len(numbers) > 8 and wrong == []
    assert all(is_local(a) for a, _ in found.links)
    beside = [a for a, t in found.links if not re.search(r"\d", t)]
    assert all((paths.folder / a.partition("#")[0]).exists() or a == "../index.html" for a in beside)


@pytest.mark.parametrize("name", ["full", "noblind"])
def test_no_result_stands_without_a_link(name):
    found = Links(written(name).card_html.read_text(encoding="utf-8"))
    rest = " ".join(found.rest)
    for word in ("2026-11-30", "auditlib 0", *demo().models["model"]):
        rest = rest.replace(word, "")
    assert set(re.findall(r"[+−]?\.?\d(?:[\d.,]*\d)?(?:%| pp)?", rest)) <= CONSTANT


@pytest.mark.parametrize("name", list(AUDITS))
def test_the_card_is_one_page(name):
    from pypdf import PdfReader

    [page] = PdfReader(written(name).card_pdf).pages
    assert [round(float(v) * 25.4 / 72) for v in page.mediabox[2:]] == [210, 297]
    last = "Auxiliary evidence: people review an item before it is changed or dropped."
    assert without_spaces(last) in pdf_text(written(name).card_pdf)  # nothing is clipped at its end


@pytest.mark.parametrize("name", ["full", "hostile"])
def test_the_page_prints_on_one_sheet(name):
    if find_browser() is None:
        pytest.skip("no Chromium here")
    from io import BytesIO

    from pypdf import PdfReader

    tab = Tab(find_browser())
    try:
        tab.go(written(name).card_html.as_uri())
        tab.wait("document.readyState === 'complete' && document.querySelector('footer') !== null")
        wide = tab.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        printed = tab.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"]
    finally:
        tab.close()
    assert len(PdfReader(BytesIO(base64.b64decode(printed))).pages) == 1 and wide <= 0


@pytest.mark.parametrize("name", ["full", "noblind"])
def test_all_formats_say_the_same_numbers_with_the_same_links(name):
    from pypdf import PdfReader

    paths = written(name)
    links = Links(paths.card_html.read_text(encoding="utf-8")).links
    marks = paths.card_md.read_text(encoding="utf-8")
    in_md = re.findall(r"(?<!\\)\[((?:\\.|[^\]\\])*)\]\(<([^>]*)>\)", marks)
    plain = [(a, re.sub(r"\\(.)", r"\1", t)) for t, a in in_md]
    assert sorted(plain) == sorted(links)
    notes = [n.get_object() for n in PdfReader(paths.card_pdf).pages[0]["/Annots"]]
    assert {n["/A"]["/URI"] for n in notes} == {a for a, _ in links}
    text = pdf_text(paths.card_pdf)
    assert all(without_spaces(t) in text for _, t in links)


def test_tiles_state_the_headline_row():
    audit = demo()
    r, tiles = headline_row(audit), said("full")["tiles"]
    assert tiles[0]["value"][1] == points(r["excess"]) and tiles[1]["value"][1] == percent(r["estimate"])
    assert [t["label"] for t in tiles] == ["zero gain beyond chance", "items without gain", "blind accuracy",
                                           "visual dependent"]  # fmt: skip
    share = one(audit.statistics, "visual_dependent_share", arm=audit.arm, policy="wrong", models="all", stratum="all")
    assert tiles[3]["value"][1] == percent(share["estimate"])


def test_outside_the_calibrated_range_nothing_is_headlined():
    c, page = said("hallusion"), written("hallusion").card_html.read_text(encoding="utf-8")
    assert c["tiles"] == [] and 'class="tile"' not in page
    text = Page(page).text
    assert "No headline." in text and "951 items" in text and "description of these runs only" in text
    assert "Quote no excess over chance" in text and "Quote the excess, not the share" not in text
    assert "More items gain nothing" not in text and "No category is named for zero gain" in text


def test_a_pool_without_blind_run_says_what_it_lacks():
    c, text = said("noblind"), Page(written("noblind").card_html.read_text(encoding="utf-8")).text
    assert c["tiles"] == [] and "Whether items need their image cannot be said: no run without the image" in text
    assert "Make a run without the image" in text and "none without" in text
    assert set(prepare(load_audit(written("noblind")))["row"]) == {"with the image"}


def test_one_model_gives_no_range_and_no_votes():
    text = Page(written("one").card_html.read_text(encoding="utf-8")).text
    assert "Agreement needs the letters of two models." in text and "1 model is few" in text
    assert "one model left out" not in text


def test_sentences_hold_only_where_their_conditions_do():
    audit = demo()
    s = audit.statistics.copy()
    mine = s["metric"].eq("zero_gain_share") & s["arm"].eq(audit.arm)
    for p, low, wanted, not_wanted in (
        (0.4, 0.01, "p = .400, above .05", "Quote the excess, not the share"),
        (0.001, -0.01, "reaches 0", "Quote the excess, not the share"),
        (0.001, 0.01, "Quote the excess, not the share", "Quote no excess"),
    ):
        s.loc[mine, ["p", "excess", "excess_low", "excess_high"]] = [p, 0.03, low, 0.05]
        paths = saved(audit, scratch() / f"card-{p}-{low}", statistics=s)
        write_card(load_audit(paths), paths)
        text = Page(paths.card_html.read_text(encoding="utf-8")).text
        assert wanted in text and not_wanted not in text


def test_missing_statistics_are_named_not_printed():
    audit = demo()
    kept = audit.statistics[audit.statistics["metric"].str.startswith("items_")]
    paths = saved(audit, scratch() / "card-empty", statistics=kept)
    write_card(load_audit(paths), paths)
    text = Page(paths.card_html.read_text(encoding="utf-8")).text
    assert "Whether items need their image cannot be said" in text and "no votes against a key could be counted" in text
    assert "nan" not in text.lower().split() and "None" not in text.split()


def test_a_pool_of_bare_hits_has_a_card():
    paths = saved(bare_audit(), scratch() / "card-bare")
    write_card(load_audit(paths), paths)
    text = Page(paths.card_html.read_text(encoding="utf-8")).text
    assert "Answersnot known" in text and "no official categories" in text and "chance not known" in text
    assert "no option letters of full runs" in text


def test_hostile_names_do_nothing():
    paths = written("hostile")
    page = Page(paths.card_html.read_text(encoding="utf-8"))
    assert "script" not in page.tags and page.handlers == [] and "m" not in page.tags
    assert HOSTILE_MODEL in page.text and "<Demo> & $Bench_ #1" in page.text
    assert without_spaces(HOSTILE_MODEL) in pdf_text(paths.card_pdf)
    marks = paths.card_md.read_text(encoding="utf-8")
    assert r"\<Demo\>" in marks and "<Demo>" not in marks.replace(r"\<Demo\>", "")


def test_bytes_repeat_and_the_report_links_here():
    paths = written("full")
    files = [paths.card_html, paths.card_pdf, paths.card_md]
    before = [f.read_bytes() for f in files]
    write_card(load_audit(paths), paths)
    assert [f.read_bytes() for f in files] == before
    assert 'href="card.html"' in paths.report_html.read_text(encoding="utf-8")


def test_hashes_are_those_of_the_manifest():
    facts = dict(said("full")["facts"])
    assert facts["Hashes"] == [
        "items ",
        ("to", "ab" * 6, "manifest.json"),
        ", runs ",
        ("to", "cd" * 6, "manifest.json"),
    ]


def test_items_digest_follows_the_benchmark_alone():
    from auditlib.manifest import items_digest

    items = demo().items
    same = items.assign(stratum="x")
    assert items_digest(items) == items_digest(same) != items_digest(items.assign(key="A"))


def test_the_figure_draws_what_the_statistics_hold():
    audit = demo()
    frame, r = prepare(audit), headline_row(audit)
    gain = frame[frame["row"].eq("zero gain")].set_index("kind")
    assert (gain.loc["point", "low"], gain.loc["chance", "low"]) == (r["estimate"], r["null"])
    dots = frame[frame["kind"].eq("point")].groupby("row").size()
    assert dots["with the image"] == dots["without it"] == len(audit.models)
    assert frame.loc[frame["kind"].eq("chance") & frame["row"].ne("zero gain"), "low"].eq(0.25).all()


def test_card_lies_beside_the_other_files_of_the_report():
    from auditlib import stages

    paths = RunPaths(Path("outputs"), "p")
    assert {paths.card_html, paths.card_pdf, paths.card_md} <= set(stages.expected(stages.REPORT, paths))
