"""The report: what it says, what it warns of, that both formats say the same, and that bytes repeat."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache

import pandas as pd
import pytest
from builders import ROOT, embedded_audit, scratch
from demo_audit import bare as bare_audit
from demo_audit import demo
from report_pages import Page, bare, is_local, pdf_text, saved

from auditlib.errors import AuditError
from auditlib.figures import save_figures
from auditlib.lookup import pool_range
from auditlib.numerals import percent, points, pp, span
from auditlib.outputs import load_audit
from auditlib.paths import RunPaths
from auditlib.report import flags, write_report
from auditlib.report.content import content
from auditlib.report.flagged import flagged_text, write_flagged
from auditlib.report.index import summary, write_index
from auditlib.report.known import known
from auditlib.stats.multiplicity import holm
from auditlib.summary import headline_row
from auditlib.tables import TABLES

SECTIONS = ["headline", "findings", "integrity", "next", "checks", "coverage", "methods", "reproduce", "use"]


@cache
def written(name: str) -> RunPaths:
    audits = {"full": demo, "noblind": lambda: demo(blind=False), "bare": bare_audit,
              "tinysee": lambda: embedded_audit("tinysee"),
              "hallusion": lambda: embedded_audit("hallusionbench_replica")}  # fmt: skip
    paths = saved(audits[name](), scratch() / f"report-{name}")
    if name == "full":
        save_figures(load_audit(paths), paths, ["fig1_pipeline", "fig2b_null", "fig2c_no_gain"])
    if name == "tinysee":
        from auditlib.synth.planted import confusion

        confusion(embedded_audit("tinysee")).to_csv(paths.folder / "truth.csv", index=False)
    write_report(paths)
    return paths


def page(name: str) -> Page:
    return Page(written(name).report_html.read_text(encoding="utf-8"))


def section(name: str, which: str) -> str:
    """Plain text of one section."""
    paths = written(name)
    said = content(load_audit(paths), paths)
    return _words(next(s for s in said["sections"] if s["id"] == which))


def _words(value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(_words(v) for k, v in value.items() if k not in ("kind", "tone", "role"))
    if isinstance(value, list) and len(value) == 2 and value[0] in ("", "b", "em", "code", "link"):
        return value[1] if isinstance(value[1], str) else _words(value[1])
    return " ".join(_words(v) for v in value) if isinstance(value, list) else ""


@pytest.mark.parametrize("name", ["full", "noblind", "bare"])
def test_every_section_is_there_in_both_formats(name):
    found = page(name)
    assert set(SECTIONS) <= found.ids
    assert all(h[1:] in found.ids for t, k, h in found.addresses if h.startswith("#"))
    paths = written(name)
    titles = [s["title"] for s in content(load_audit(paths), paths)["sections"]]
    text = pdf_text(paths.report_pdf)
    assert all(bare(t) in text and t in found.text for t in titles)


@pytest.mark.parametrize("name", ["full", "noblind", "bare"])
def test_pages_name_nothing_outside(name):
    found = page(name)
    assert "script" not in found.tags and "link" not in found.tags
    assert [a for a in found.addresses if not is_local(a[2])] == []


def test_figures_are_inside_with_words_for_those_who_cannot_see_them():
    found = page("full")
    assert len(found.images) == 3
    assert all(i["src"].startswith("data:image/svg+xml;base64,") and len(i["alt"]) > 60 for i in found.images)


def test_headline_states_the_row_of_the_statistics_frame():
    audit, text = demo(), section("full", "headline")
    r = headline_row(audit)
    ends = pool_range(audit.statistics, "zero_gain_share", "excess", arm=audit.arm, policy="wrong", null_kind="within")
    for wanted in (percent(r["estimate"]), percent(r["null"]), points(r["excess"]),
                   span(r["low"], r["high"], percent), span(*ends, pp)):  # fmt: skip
        assert wanted in text


def test_both_formats_say_the_same_numbers():
    """Every number in the headline's paragraphs and cards of the page stands in the PDF too."""
    text = pdf_text(written("full").report_pdf)
    for number in set(re.findall(r"[+−]?\d+\.\d+", section("full", "headline"))):
        assert number in text


def test_significance_is_said_only_where_it_is():
    audit = demo()
    s = audit.statistics.copy()
    mine = s["metric"].eq("zero_gain_share") & s["models"].eq("all") & s["stratum"].eq("all")
    for p, low, wanted in ((0.4, -0.01, "within what chance explains"), (0.001, 0.01, "More items gain nothing")):
        s.loc[mine, ["p", "excess", "excess_low"]] = [p, 0.03, low]
        paths = saved(audit, scratch() / f"p{p}", statistics=s)
        assert wanted in _words(content(load_audit(paths), paths)["sections"][0])


def test_without_a_blind_run_the_first_page_says_so_and_how_to_get_one():
    text = section("noblind", "headline")
    assert "No run without the image" in text and "_blind" in text and "auditlib run" in text
    assert "consensus error" in text
    assert "gain" not in page("noblind").ids and "zero gain from the image" not in page("noblind").text
    assert "Make the blind run" in section("noblind", "next")


def test_bare_hits_are_reported_with_what_they_lack():
    assert "Votes against the key could not be counted" in section("bare", "headline")
    assert "no replies" in section("bare", "checks")


def test_binary_items_carry_a_warning_on_the_headline():
    text = section("hallusion", "headline")
    assert "Outside the calibrated range" in text and "at chance" in text and "0.49" in text
    assert "callout warn" in written("hallusion").report_html.read_text(encoding="utf-8")
    assert "Do not quote the excess" in section("hallusion", "next")


def test_four_option_items_carry_none():
    assert "calibrated range" not in section("tinysee", "headline")


def test_tinysee_advice_names_the_planted_items():
    text = section("tinysee", "next")
    assert "17, 32, 76" in text and "8 unanimous candidates" in text and "9 items" in text
    assert "Rewrite or replace what needs no image: 15 items" in text
    assert "Review key and image of 1 item answered without the image but missed with it" in text


def test_what_needs_no_image_is_right_with_and_without_it_by_three_models():
    audit = embedded_audit("tinysee")
    counts = audit.counts[audit.counts["arm"] == audit.arm].set_index("item")
    needless, missed = flags.solved_blind(audit)
    every = counts["B"] == counts["n"] * counts["R"]
    assert set(needless["item"]) == set(counts.index[every & (counts["F"] == counts["B"])]) and len(needless) == 15
    assert set(missed["item"]) == set(counts.index[every & (counts["F"] < counts["B"])]) == {"101"}
    assert [len(part) for part in flags.solved_blind(audit, 5)] == [0, 0]


def test_steps_that_cannot_be_taken_are_one_closing_paragraph():
    audit, paths = embedded_audit("hallusionbench_replica"), written("hallusion")
    blocks = next(s for s in content(load_audit(paths), paths)["sections"] if s["id"] == "next")["blocks"]
    steps = _words([b for b in blocks if b["kind"] == "list"])
    closing = _words([b for b in blocks if b["kind"] == "p"])
    assert "ot run" not in steps and "needs no image" not in steps
    assert "items need no image is not judged: items lie outside the calibrated range" in closing
    idle = audit.detectors.loc[audit.detectors["state"] != "run", "detector"]
    assert len(idle) == 4 and all(d.replace("_", " ") in closing for d in idle)


@pytest.mark.parametrize("name", ["tinysee", "hallusion", "full"])
def test_counts_of_flagged_items_agree_everywhere(name):
    """Table, text and flagged.md count what the headline arm says, and detectors.csv says the same."""
    paths = written(name)
    audit = load_audit(paths)
    table = TABLES["detectors"].build(audit).set_index("detector")
    states = audit.detectors.set_index("detector")
    columns = ["flagged", "high", "medium", "low", "info"]
    assert (table.loc[states.index, columns] == states[columns]).all(axis=None)
    assert flags.severities(audit) == audit.steps["severities"]
    serious = flags.flagged(audit)
    serious = set(serious.loc[serious["severity"] != "info", "item"])
    assert len(re.findall(r"^#### Item", flagged_text(audit), re.MULTILINE)) == len(serious)
    for detector in flags.detectors_with_findings(audit):
        assert flags.flagged(audit, detector)["item"].nunique() == table.loc[detector, "flagged"]


def test_an_arm_without_flags_does_not_fall_back_on_another():
    audit = demo()
    second = audit.findings["detector"].eq("visual_dependency") & audit.findings["arm"].ne(audit.arm)
    mine = audit.findings["detector"].eq("visual_dependency") & ~second
    assert second.any() and mine.any()
    audit = dataclasses.replace(audit, findings=audit.findings.assign(flag=second))
    assert not len(flags.flagged(audit)) and "Nothing to review" in flagged_text(audit)


def test_flagged_list_shows_answers_where_items_have_no_letters():
    text = flagged_text(embedded_audit("hallusionbench_replica"))
    assert "| model | run | answer | reply |" in text and "| letter |" not in text
    assert "| gpt-5-nano | full | yes |" in text and "(exact_yesno)" not in text


def test_equal_ends_are_one_number_and_fewer_models_tie_more_often():
    text = section("hallusion", "headline")
    assert "one model left out: +3.1 pp" in text and "the excess +3.1 pp. Fewer models tie more often" in text
    assert "smaller pools" not in text


def test_published_rows_say_by_which_rule_they_are_met():
    row = {"name": "a", "published": "1", "tolerance": "0", "exact": "1", "monte_carlo": "", "seeds": "",
           "kind": "split halves", "met": "yes", "rule": "inside the central 95% of seeds, 0.70 to 1.62"}  # fmt: skip
    paths = saved(demo(), scratch() / "published")
    for columns in (list(row), [c for c in row if c != "rule"]):
        pd.DataFrame([row])[columns].to_csv(paths.folder / "published.csv", index=False)
        text = _words(known(demo(), paths))
        assert "1 of 1 rows are met" in text and "need not equal the published value" in text
        assert (row["rule"] in text) == ("rule" in columns)


def test_tinysee_known_answers():
    assert "finds 43 of 43 planted defects" in section("tinysee", "known")


def test_auditing_the_audit_names_judge_fills_and_rules():
    text = section("tinysee", "checks")
    for wanted in ("tiny-judge", "60 filled at random", "tinyvlm-gamma 71.7%", "letters:bare", "option_text:exact",
                   "one permutation of item ids", "8 instead of 8"):  # fmt: skip
        assert wanted in text


def test_settings_and_commands_name_no_place_on_the_machine():
    text = written("tinysee").report_html.read_text(encoding="utf-8")
    assert str(scratch()) not in text and str(ROOT) not in text
    assert "python -m auditlib.tables" in text and "auditlib run params/tinysee.yaml" in text


def test_the_same_bytes_twice():
    paths = written("full")
    before = paths.report_html.read_bytes(), paths.report_pdf.read_bytes()
    write_report(paths)
    assert (paths.report_html.read_bytes(), paths.report_pdf.read_bytes()) == before


def test_an_audit_that_was_not_run_is_one_clear_line(tmp_path):
    with pytest.raises(AuditError, match="has not been audited"):
        write_report(RunPaths(tmp_path, "nothing"))


def test_flagged_list_has_every_item_above_info_once():
    audit = embedded_audit("tinysee")
    text = flagged_text(audit)
    f = audit.findings
    wanted = set(f.loc[f["flag"] & f["severity"].ne("info"), "item"])
    found = re.findall(r"^#### Item (\S+)", text, re.MULTILINE)
    assert sorted(found) == sorted(wanted)
    assert text.index("## High") < text.index("## Medium") < text.index("## Low")
    assert "| tinyvlm-alpha | full |" in text


def test_flagged_list_of_nothing(tmp_path):
    audit = dataclasses.replace(demo(), findings=demo().findings.assign(flag=False))
    assert "Nothing to review" in write_flagged(audit, RunPaths(tmp_path, "a")).read_text(encoding="utf-8")


@pytest.fixture
def outputs_of_four(tmp_path):
    """A good pool, one without a blind run, a quick look, one whose audit failed, and a folder to pass over."""
    from auditlib.outputs import save_audit

    for name, audit in (("good", demo()), ("noblind", demo(blind=False)), ("good.limit50", demo())):
        if "limit" in name:
            audit = dataclasses.replace(audit, steps=audit.steps | {"limit": 50})
        save_audit(audit, RunPaths(tmp_path, name))
    status = {"pool": "broken", "benchmark": "B", "state": "failed",
              "stages": {"10_audit": {"state": "failed", "error": "ValueError: <b>no</b>\nkey"}}}  # fmt: skip
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/status.json").write_text(json.dumps(status))
    (tmp_path / ".embedded").mkdir()
    (tmp_path / "stray").mkdir()
    return tmp_path


def test_index_lists_every_pool_with_its_state(outputs_of_four):
    found = Page(write_index(outputs_of_four).read_text(encoding="utf-8"))
    assert "ValueError: <b>no</b> key" in found.text and "first 50 items only" in found.text
    assert "no blind run" in found.text and "embedded" not in found.text and "stray" not in found.text
    assert [a for a in found.addresses if not is_local(a[2])] == []
    local = [a[2] for a in found.addresses if not a[2].startswith(("#", "data:"))]
    assert all((outputs_of_four / a).exists() for a in local)


def test_summary_holds_headline_and_holm_over_full_pools_only(outputs_of_four):
    table = summary(outputs_of_four).set_index("pool")
    assert list(table.index) == ["broken", "good", "good.limit50", "noblind"]
    r = headline_row(demo())
    assert table.loc["good", "excess"] == pytest.approx(r["excess"], abs=1e-11)
    assert table.loc["good", "p_holm"] == pytest.approx(holm([r["p"]])[0])
    assert pd.isna(table.loc["good.limit50", "p_holm"]) and pd.isna(table.loc["noblind", "p"])
    assert table.loc["broken", "state"] == "failed"


def test_holm_over_two_pools(tmp_path):
    from auditlib.outputs import save_audit

    for name, seed in (("a", 0), ("b", 3)):
        save_audit(demo(seed=seed), RunPaths(tmp_path, name))
    table = summary(tmp_path)
    assert table["p_holm"].tolist() == pytest.approx(holm(table["p"].to_numpy()).tolist())


def _with_rows(audit, *rows):
    from auditlib.metrics.rows import statistics_frame

    extra = statistics_frame(audit.pool_name, list(rows))
    others = audit.statistics[~audit.statistics["metric"].isin(extra["metric"])]
    return dataclasses.replace(audit, statistics=pd.concat([others, extra], ignore_index=True))


def _integrity(audit) -> str:
    from auditlib.report.integrity import integrity

    return _words(integrity(audit))


def test_the_gate_lists_what_it_found_passed_and_could_not_run():
    text = section("tinysee", "integrity")
    for wanted in ("every option of the dataset reached the models", "17, 32, 76", "no two options are equal",
                   "passed", "not run", "the audit holds one set of verdicts", "Where verdicts came from"):  # fmt: skip
        assert wanted in text
    rows = pd.Series(section("bare", "integrity"))
    assert rows.str.contains("no option texts").all() and "Where verdicts came from" not in rows[0]
    for name in ("tinysee", "full"):
        assert bare("no two options are equal") in pdf_text(written(name).report_pdf)


def test_verdict_sources_by_run_add_up():
    audit, text = embedded_audit("tinysee"), section("tinysee", "integrity")
    fills = audit.judgements[audit.judgements["source"] == "random_fill"].groupby(["model", "condition"]).size()
    assert "random_fill" in text and fills["tinyvlm-gamma", "blind"] == 43
    assert "tinyvlm-gamma blind tiny-judge" in text


def test_the_ceiling_is_said_with_its_count():
    from auditlib.metrics.rows import row

    rows = (row("attainable_ceiling", n=491, estimate=459 / 491),
            row("attainable_ceiling", stratum="teeth", n=64, estimate=0.5),
            row("attainable_ceiling", level="source s", n=246, estimate=230 / 246))  # fmt: skip
    text = _integrity(_with_rows(demo(), *rows))
    assert "32 of 491 items have a key that no option shown can meet" in text and "93.48%" in text
    assert "teeth official category 64 32 50.00%" in text and "s source 246 16 93.50%" in text


def test_a_silent_key_gets_one_sentence_and_never_more():
    from auditlib.metrics.rows import row

    def key(stratum, kappa, low, high, share, ends):
        return (row("key_kappa", stratum=stratum, n=134, estimate=kappa, low=low, high=high, null=0.0),
                row("key_majority", stratum=stratum, n=134, estimate=share, low=ends[0], high=ends[1],
                    null=1 / 3))  # fmt: skip

    none = key("reflectance", 0.03, -0.01, 0.06, 0.33, (0.25, 0.41))
    sense = key("similarity", 0.37, 0.3, 0.44, 0.82, (0.75, 0.88))
    text = _integrity(_with_rows(demo(), *none, *sense))
    assert "this key carries no measurable information for this pool" in text and "reflectance 134 0.03" in text
    assert "2 categories were tested" in text and "similarity" not in text and "key is wrong" not in text
    assert "no measurable information" not in _integrity(_with_rows(demo(), *sense))


def test_denominators_are_shown_by_run():
    from auditlib.metrics.rows import row

    counts = {"asked": 118, "answered": 110, "abstained": 7, "failed": 8, "missing": 2}
    rows = [row(f"items_{k}", models="Model-A", level="full", n=n, estimate=n / 120) for k, n in counts.items()]
    rows.append(row("items_scored", models="Model-A", level="full", arm="judged", n=109, estimate=109 / 120))
    text = _integrity(_with_rows(demo(), *rows))
    assert "Model-A full 118 110 7 8 2 109" in text and "Scored judged" in text


def test_other_readers_are_shown_where_they_were_tried():
    from auditlib.metrics.rows import row

    rows = (row("parser_accuracy_range", arm="exact", models="Model-A", level="full", n=120, estimate=0.5, low=0.4,
                high=0.6, note="lowest by x, highest by y"),
            row("parser_only_hits", arm="exact", models="Model-A", level="full", n=120, estimate=0.1))  # fmt: skip
    text = _integrity(_with_rows(demo(), *rows))
    assert "Model-A full 120 50.0% 40.0% to 60.0% 12 lowest by x, highest by y" in text
