"""Tables: the statistics, printed alike in four formats."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from builders import embedded_audit
from demo_audit import HOSTILE, HOSTILE_MODEL, bare, demo
from test_escape import from_latex, from_markdown

from auditlib import escape, numerals, table_formats
from auditlib.flagged_rows import clip, flagged
from auditlib.lookup import Lacking, one
from auditlib.paths import RunPaths
from auditlib.table_formats import Column
from auditlib.tables import TABLES, formats_of, save_tables


def build(name: str, audit) -> pd.DataFrame:
    return TABLES[name].build(audit)


def missing(audit) -> dict[str, str]:
    out = {}
    for name, table in TABLES.items():
        try:
            assert len(table.build(audit))
        except Lacking as why:
            out[name] = str(why)
    return out


# --- numbers in print ---


def test_numbers_are_printed_as_in_a_paper():
    assert (numerals.pct(0.202), numerals.percent(0.2019), numerals.pct(0)) == ("20.2", "20.2%", "0.0")
    assert (numerals.pp(0.0316), numerals.pp(-0.0172), numerals.pp(1e-5), numerals.pp(-1e-5)) == (
        "+3.2",
        "−1.7",
        "0.0",
        "0.0",
    )
    assert numerals.points(0.0316) == "+3.2 pp" and numerals.interval(0.1825, 0.2231) == "[18.2, 22.3]"
    assert numerals.pct(np.nan) == numerals.pp(None) == numerals.p_value(np.nan) == numerals.count(None) == "–"
    assert (numerals.count(9999), numerals.count(12345.0)) == ("9999", "12,345")
    assert [numerals.general(v) for v in (3.0, 0.12345, -2, True, None)] == ["3", "0.1235", "−2", "yes", "–"]


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.043, ".043"), (0.001, ".001"), (1.312e-4, "1.3e−4"), (9.6e-4, ".001"), (1, "1.000"), (0.9996, "1.000"),
     (0.5, ".500"), (3.8e-15, "3.8e−15"), (0.0, "< 1e−15")],
)  # fmt: skip
def test_p_values(p, text):
    assert numerals.p_value(p) == text
    assert numerals.p_says(p) == (f"p {text}" if text.startswith("<") else f"p = {text}")


# --- contents ---


def test_a_pool_with_everything_has_every_table():
    assert missing(demo(design=True)) == {}


def test_what_a_pool_lacks_is_not_made_and_says_why():
    lacking = missing(demo(blind=False, judged=False))
    assert set(lacking) == {"table2_pools", "categories", "abstention", "composition", "disagreement", "verdicts"}
    assert lacking["table2_pools"] == "this pool has no blind run"
    assert {"extraction", "verdicts", "letters", "strata"} <= set(missing(bare()))
    assert {"agreement", "same_wrong_option", "strata"} <= set(missing(demo(models=1, strata=0, judged=False)))


def test_table_1_is_the_paper_taxonomy():
    table = build("table1_detectors", demo(design=True)).set_index("detector")
    assert table["judge_dependent"].to_dict() == {
        "visual_dependency": True, "consensus_error": False, "fleiss_kappa_agreement": False,
        "correctness_agreement": True, "answer_options_distribution": False, "distractor_similarity": False,
    }  # fmt: skip


def test_table_2_prints_the_published_values():
    """Table 2 of the paper: observed, null mean, excess."""
    audit = embedded_audit("mmstar_replica")
    table = build("table2_pools", audit)
    shown = table_formats.cells(table, TABLES["table2_pools"].columns)
    assert [[r[0], *r[2:5]] for r in shown] == [
        ["all models", "20.2", "17.0", "+3.2"],
        ["without InternVL3-8B", "27.9", "24.1", "+3.7"],
        ["without Ristretto-3B", "25.5", "21.9", "+3.6"],
        ["without gpt-5-nano", "34.4", "26.7", "+7.7"],
    ]
    assert table["p_method"].eq("exact").all() and table["p"].max() < 1.4e-4
    assert table["p_monte_carlo"].between(0.001, 0.002).all()


def test_strata_and_headline_equal_the_statistics():
    audit = demo(design=True)
    for r in build("strata", audit).itertuples():
        row = one(audit.statistics, "zero_gain_share", arm="judged", models="all", stratum=r.stratum, policy="wrong")
        assert (r.zero_gain, r.excess, r.q) == (row["estimate"], row["excess"], row["q"])
        votes = one(audit.statistics, "unanimous_share", models="all", stratum=r.stratum)
        assert r.unanimous == votes["estimate"]
    head = build("headline", audit).set_index(["quantity", "arm"])
    pools = build("table2_pools", audit)
    mine = head.loc[("zero gain, null pooled", "judged")]
    assert mine["estimate"] == pools["estimate"][0] and mine["p"] == pools["p"][0]
    assert (mine["pool_low"], mine["pool_high"]) == (pools["estimate"][1:].min(), pools["estimate"][1:].max())
    assert head.loc[("zero gain, null within categories", "exact"), "n"] == 120


def test_extraction_counts_every_reply_once():
    audit = demo(design=True)
    table = build("extraction", audit)
    assert table["replies"].sum() == len(audit.responses)
    assert table.groupby(["model", "condition"])["share"].sum().to_numpy() == pytest.approx(1)
    lost = table[table["read"] == "abstention"].groupby(["model", "condition"])["replies"].sum()
    row = one(audit.statistics, "blind_unparseable_rate", models="Model-C")
    assert lost["Model-C", "blind"] == round(row["estimate"] * row["n"])


def test_unread_yes_and_no_are_abstentions():
    """The replica holds 916 replies without yes or no, and 4790 with one."""
    table = build("extraction", embedded_audit("hallusionbench_replica"))
    assert table.groupby(["read", "rule"])["replies"].sum().to_dict() == {
        ("abstention", "yesno:no-yesno"): 916, ("read", "yesno:leading"): 4790,
    }  # fmt: skip


def test_ranges_with_equal_ends_are_one_number():
    assert table_formats.spread(0.2571, 0.2574) == "25.7" and table_formats.spread(0.1, 0.2) == "10.0 to 20.0"
    assert table_formats.spread(np.nan, np.nan) == "–"


def test_flagged_items_come_once_worst_first():
    audit = demo(design=True)
    table = flagged(audit, None)
    assert table["item"].is_unique
    rank = table["severity"].map({"high": 0, "medium": 1, "low": 2, "info": 3})
    assert rank.is_monotonic_increasing
    found = audit.findings[audit.findings["flag"] & audit.findings["arm"].isin(["", "judged", "exact"])]
    assert set(table["item"]) <= set(found["item"])
    high = found[found["severity"].isin(["medium", "high"]) & (found["arm"] != "exact")]
    assert set(high["item"]) <= set(table.loc[rank <= 1, "item"])


def test_long_texts_are_cut_with_an_ellipsis():
    assert clip("x" * 400) == "x" * 299 + "…" and clip("short") == "short" and clip(None) == clip(np.nan) == ""


# --- formats ---


class _Cells(HTMLParser):
    """Rows of cells of an HTML table, as a browser would show their text."""

    def __init__(self):
        super().__init__()
        self.rows, self.inside = [], False

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def html_cells(text: str) -> list[list[str]]:
    parser = _Cells()
    parser.feed(text)
    return parser.rows


def markdown_cells(text: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[from_markdown(c.strip()) for c in re.split(r"(?<!\\)\|", r)[1:-1]] for r in rows[:1] + rows[2:]]


def latex_cells(text: str) -> list[list[str]]:
    body = text.split("\\midrule")[1].split("\\bottomrule")[0]
    rows = [r.lstrip("\n").removeprefix("\\endhead\n") for r in body.split(" \\\\\n") if r.strip()]
    return [[from_latex(c) for c in re.split(r"(?<!\\) & ", r)] for r in rows]


@pytest.mark.parametrize("name", TABLES)
def test_all_formats_hold_the_same_cells(name):
    audit = demo(design=True, hostile=True)
    table, frame = TABLES[name], build(name, audit)
    shown = table_formats.cells(frame, table.columns)
    out = formats_of(table, frame)
    assert html_cells(out["html"])[1:] == shown
    assert markdown_cells(out["md"])[1:] == shown
    tex = latex_cells(out["tex"])
    texts = [i for i, c in enumerate(table.columns) if c.left]
    assert [[r[i] for i in texts] for r in tex] == [[r[i] for i in texts] for r in shown]
    assert all(len(r) == len(table.columns) for r in tex)


def test_hostile_texts_are_literal_in_every_format():
    out = formats_of(TABLES["flagged_texts"], build("flagged_texts", demo(design=True, hostile=True)))
    wanted = [escape.visible(HOSTILE["question"]), *HOSTILE["options"], HOSTILE["reply"], HOSTILE_MODEL]
    as_text = {
        "html": " ".join(html_cells(out["html"])[1]),
        "md": " ".join(markdown_cells(out["md"])[1]),
        "tex": " ".join(latex_cells(out["tex"])[0]),
    }
    for shape, text in as_text.items():
        for w in wanted:
            assert w in text, (shape, w)
    assert "<script" not in out["html"] and "<img" not in out["html"] and "\\input{" not in out["tex"]


def test_csv_keeps_full_precision_and_guards_texts():
    audit = demo(design=True, hostile=True)
    frame = build("table2_pools", audit)
    read = pd.read_csv(StringIO(formats_of(TABLES["table2_pools"], frame)["csv"]))
    pd.testing.assert_frame_equal(read, frame, check_dtype=False, rtol=1e-11)
    text = table_formats.csv(pd.DataFrame({"option": HOSTILE["options"]}))
    assert text.splitlines()[1] == '"\'=HYPERLINK(""http://x.invalid"",""y"")"'


def test_latex_prints_powers_and_wraps_long_texts():
    columns = (Column("name", "Name"), Column("p", "p", "p"), Column("x", "x", "range:a:b:pct"))
    tex = table_formats.latex(
        "t_1", "A title", columns, [["m_1", "1.3e−4", "[1.0, 2.0]"], ["[x]", "< 1e−15", "–"]], "Note."
    )
    assert "\\label{tab:t-1}" in tex and "m\\_1 & $1.3 \\times 10^{-4}$ & {[1.0, 2.0]} \\\\" in tex
    assert "{[}x] & $< 10^{-15}$ & -- \\\\" in tex and "\\caption{A title. Note.}" in tex
    long = table_formats.latex("t", "T", columns[:1], [["word " * 20]])
    assert "\\begin{longtable}" in long and "raggedright" in long and "longtable" in long.splitlines()[0]


def test_files_and_states(tmp_path):
    audit, paths = demo(blind=False, judged=False), RunPaths(tmp_path, "demo")
    paths.tables.mkdir(parents=True)
    (paths.tables / "table2_pools.tex").write_text("old")
    table = save_tables(audit, paths)
    assert table["name"].tolist() == list(TABLES)
    for r in table.itertuples():
        files = [paths.tables / f"{r.name}.{e}" for e in ("csv", "md", "tex", "html")]
        assert all(f.exists() for f in files) if r.state == "made" else not any(f.exists() for f in files)
        assert r.rows > 0 if r.state == "made" else r.reason
    again = RunPaths(tmp_path / "again", "demo")
    save_tables(audit, again)
    for file in paths.tables.iterdir():
        assert file.read_bytes() == (again.tables / file.name).read_bytes()
    for file in paths.tables.glob("*.html"):
        page = file.read_text(encoding="utf-8")
        assert "<script" not in page and not re.search(r'(src|href)="(https?:)?//', page)
