"""What ``audit`` leaves and says beside its numbers: status, other pools' folders, replies that no reader reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import auditlib
from auditlib.__main__ import main
from auditlib.errors import AuditError
from auditlib.paths import RunPaths
from auditlib.report.advice import advice, unread
from auditlib.starting import Wish, params_for_audit


def test_what_an_audit_of_a_folder_says_beside_the_numbers(tmp_path, write_run, toy_rows, monkeypatch, capsys):
    """Pools of ``audit`` stand in ``status``; an empty scheduler and a broken extension are one line."""
    for model in ("one", "two", "one_blind", "two_blind"):
        write_run(model, toy_rows, bench="MMStar", folder="runs")
    monkeypatch.chdir(tmp_path)
    outputs = tmp_path / "o"
    made, _ = params_for_audit(Wish(Path("runs"), "MMStar", pool="mine"), outputs)
    assert main(["status", "--outputs", str(outputs)]) == 0
    assert [x.split()[:3] for x in capsys.readouterr().out.splitlines() if x.startswith("mine ")] == [
        ["mine", "never", "run"]
    ]
    assert main(["run", str(made), "--outputs", str(outputs), "--scheduler", ""]) == 2
    assert "--scheduler names no address" in capsys.readouterr().err
    (outputs / "mine" / "bad.py").write_text("x = 1")
    made.write_text(made.read_text() + "\nextensions: [bad.py]\n")
    assert main(["check", str(made), "--outputs", str(outputs)]) == 2
    assert "holds no Detector" in capsys.readouterr().err


def test_an_audit_leaves_a_pool_of_other_params_alone(tmp_path, write_run, toy_rows):
    write_run("one", toy_rows, bench="MMStar", folder="runs")
    paths = RunPaths(tmp_path / "o", "mine")
    paths.folder.mkdir(parents=True)
    paths.status.write_text(json.dumps({"params": "params/other.yaml", "stages": {}}))
    with pytest.raises(AuditError, match="belong to another params file"):
        params_for_audit(Wish(tmp_path / "runs", "MMStar", pool="mine"), tmp_path / "o")
    assert [p.name for p in paths.folder.iterdir()] == [paths.status.name]


def test_replies_that_no_reader_reads_are_said_first(write_run, toy_rows, tmp_path):
    rows = [r | {"index": i, "prediction": "it is not a letter at all"} for i, r in enumerate(toy_rows * 5)]
    write_run("one", rows, bench="MMStar", folder="runs")
    write_run("two", [r | {"prediction": r["answer"]} for r in rows], bench="MMStar", folder="runs")
    (tmp_path / "p.yaml").write_text("pool: p\nbenchmark: MMStar\ndata: {folder: runs}\n")
    found = auditlib.audit(auditlib.read_pool(tmp_path / "p.yaml"))
    assert unread(found)["model"].tolist() == ["one"]
    first = str(advice(found, "auditlib run p.yaml"))
    assert "Read the replies of one" in first.split("Look into the warnings")[0]
