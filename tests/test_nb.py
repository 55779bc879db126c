"""What notebooks call: the first step and the readable views."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tiny_notebooks import params

from auditlib import nb
from auditlib.errors import AuditError
from auditlib.pool import Pool


def test_start_finds_files_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings, paths, limit = nb.start("params/tinysee.yaml", "outputs", {"audit.permutations": 199})
    assert (settings.pool, settings.audit.permutations, limit) == ("tinysee", 199, None)
    assert paths.folder.is_absolute() and paths.folder.parts[-2:] == ("outputs", "tinysee")
    assert paths.outputs.parent == settings.source.parent.parent


def test_limit_names_another_pool(tmp_path):
    file = params(tmp_path, "a")
    settings, paths, limit = nb.start(file, tmp_path / "o", {"limit": 5, "seed": 3})
    assert (settings.pool, settings.seed, limit, paths.pool) == ("a.limit5", 3, 5, "a.limit5")
    for wrong in (0, -1, "5", True, 2.5):
        with pytest.raises(AuditError, match="limit is"):
            nb.start(file, tmp_path / "o", {"limit": wrong})
    with pytest.raises(AuditError, match=r"unknown key 'sede'.*did you mean 'seed'"):
        nb.start(file, tmp_path / "o", {"sede": 3})


def test_reading_counts_scored_items():
    full, blind = np.ones((5, 2), np.uint8), np.zeros((5, 2), np.uint8)
    table = nb.reading(Pool.from_hits(full, blind, models=["m", "n"]))
    assert table.to_dict("records") == [
        {"model": "m", "full, judged": 5, "blind, judged": 5},
        {"model": "n", "full, judged": 5, "blind, judged": 5},
    ]


def test_left_out_adds_up_equal_reasons():
    coverage = pd.DataFrame(
        [("read", 9, ""), ("excluded", 2, "no key"), ("excluded", 3, "no key"), ("warning", 1, "odd")],
        columns=["what", "n", "reason"],
    )
    assert nb.left_out(coverage).to_dict("records") == [
        {"what": "excluded", "n": 5, "places": 2, "reason": "no key"},
        {"what": "warning", "n": 1, "places": 1, "reason": "odd"},
    ]


def test_readable_prints_percent_points_and_drops_what_is_empty():
    row = {"metric": "m", "n": 1500, "estimate": 0.202, "low": 0.1825, "high": 0.2231, "null": 0.1704, "excess": 0.0316,
           "excess_low": np.nan, "excess_high": np.nan, "p": 0.00013, "p_method": "exact"}  # fmt: skip
    table = nb.readable(pd.DataFrame([row]), "metric")
    assert table.to_dict("records") == [
        {"metric": "m", "items": "1500", "share": "20.2%", "95% interval (%)": "[18.2, 22.3]", "by chance": "17.0%",
         "excess": "+3.2 pp", "p": "1.3e−4", "p from": "exact"}
    ]  # fmt: skip
    assert list(nb.readable(pd.DataFrame([row]).iloc[:0], "metric")) == ["metric"]


def test_findings_are_flagged_ones_worst_first():
    table = pd.DataFrame({
        "item": list("abcd"), "detector": "d", "arm": "exact", "severity": ["low", "high", "high", "info"],
        "score": [0.9, 0.5, 0.7, 1.0], "flag": [True, True, True, False], "message": "",
    })  # fmt: skip
    assert nb.findings(table)["item"].tolist() == ["c", "b", "a"]
    assert nb.findings(table, "other").empty
    assert nb.findings(table, most=1)["item"].tolist() == ["c"]


def test_show_escapes_and_never_cuts_texts():
    text = "<b>x</b>" + "y" * 300
    html = nb.show(pd.DataFrame({"reply": [text], "n": [1200], "ok": [True], "share": [0.5], "none": [None]})).data
    assert "&lt;b&gt;x&lt;/b&gt;" + "y" * 300 in html and "<b>" not in html
    assert "<td style='text-align:right'>1200</td>" in html and "<td style='text-align:left'>yes</td>" in html
    assert "<th style='text-align:left'>&lt;i&gt;</th>" in nb.show(pd.DataFrame({"<i>": ["a"]})).data
    assert ">none</td>" in nb.show(pd.DataFrame({"a": []})).data
    named = pd.DataFrame({"v": [1]}, index=pd.Index(["k"], name="key"))
    assert "<th style='text-align:left'>key</th>" in nb.show(named).data


def test_picture_shows_the_saved_file_or_the_reason(tmp_path):
    _, paths, _ = nb.start(params(tmp_path, "a"), tmp_path / "o")
    with pytest.raises(AuditError, match="no figures have been saved"):
        nb.picture(paths, "f")
    paths.figures.mkdir(parents=True)
    listing = "name,title,state,reason,caption\nf,F,drawn,,how <to> read\ng,G,not drawn,no blind run,\n"
    (paths.figures / "index.csv").write_text(listing)
    (paths.figures / "f.png").write_bytes(bytes(16) + (400).to_bytes(4, "big"))
    html = nb.picture(paths, "f").data
    assert 'src="data:image/png;base64,AAAA' in html and 'alt="how &lt;to&gt; read" style="width:236px' in html
    assert nb.picture(paths, "g").data == "<p><b>G</b>: not drawn, no blind run.</p>"
    with pytest.raises(AuditError, match=r"no figure 'h'. Mend: figures: f, g"):
        nb.picture(paths, "h")


def test_overrides_as_json_text_of_plain_papermill(tmp_path):
    file = params(tmp_path, "a")
    settings, paths, limit = nb.start(file, tmp_path / "o", '{"audit.permutations": 99, "limit": 5}')
    assert (settings.audit.permutations, limit, paths.pool) == (99, 5, "a.limit5")
    assert nb.start(file, tmp_path / "o", "").limit is None
    for wrong in ("{audit.permutations: 99}", "[1]", "99", ["limit"]):
        with pytest.raises(
            AuditError, match=r"""overrides: .* is no mapping.*-p overrides '\{"audit.permutations": 999"""
        ):
            nb.start(file, tmp_path / "o", wrong)


def test_results_of_another_params_file_are_not_overwritten_by_hand(tmp_path):
    """A notebook opened on one's own file must not mix into a pool of the same name."""
    import json

    from auditlib.nb import start

    mine, outputs = tmp_path / "tinysee.yaml", tmp_path / "outputs"
    mine.write_text("pool: tinysee\nbenchmark: TinySee\ndata: {embedded: tinysee}\n")
    status = outputs / "tinysee" / "status.json"
    status.parent.mkdir(parents=True)
    status.write_text(json.dumps({"stages": {}, "bases": {}, "params": "params/tinysee.yaml"}))
    with pytest.raises(AuditError, match=r"belong to another params file \(params/tinysee.yaml\).*--force"):
        start(mine, outputs)
    assert start(mine, outputs, replace=True).params.pool == "tinysee"
    assert start("params/tinysee.yaml", outputs).params.pool == "tinysee"
