"""Inspect's logs: what is read from real logs, denominators, shuffled options."""

from __future__ import annotations

import math
import shutil

import pytest

from auditlib.errors import AuditError
from auditlib.params import DataParams
from auditlib.readers.inspect_logs import read_inspect, scan
from auditlib.readers.inspect_samples import to_hit


@pytest.fixture
def inspect_runs(shared_data):
    pytest.importorskip("inspect_ai")
    return shared_data / "toolkit_runs" / "inspect-ai"


@pytest.mark.parametrize(
    ("folder", "model", "condition", "rows", "own"),
    [
        ("logs", "tinyvlm-alpha", "full", 600, 0.870),
        ("logs", "tinyvlm-beta", "blind", 600, 0.215),
        ("logs_flaky", "tinyvlm-alpha", "full", 120, 0.905),
        ("logs_json", "tinyvlm-gamma", "full", 60, 0.783),
    ],
)
def test_rows_and_stored_scores(inspect_runs, folder, model, condition, rows, own):
    runs = read_inspect(DataParams(folder=inspect_runs / folder), "tinysee")
    r = runs.responses[(runs.responses["model"] == model) & (runs.responses["condition"] == condition)]
    j = runs.judgements[(runs.judgements["model"] == model) & (runs.judgements["condition"] == condition)]
    assert len(r) == rows
    assert round(j["hit"].mean(), 3) == own


def test_errored_samples_are_failures_outside_the_denominator(inspect_runs):  # inspect_ai#4412
    runs = read_inspect(DataParams(folder=inspect_runs / "logs_flaky"), "tinysee")
    assert runs.responses["status"].eq("failed").sum() == 4
    assert "scored_samples 116" in runs.coverage.loc[runs.coverage["what"] == "read", "reason"].iloc[0]


def test_shuffled_options_are_read_through_their_texts(inspect_runs, tmp_path):
    for name, mark in (("logs", "00-29-16"), ("logs_shuffled", "00-31-46")):
        for path in (inspect_runs / name).glob(f"*{mark}*"):
            shutil.copy(path, tmp_path)
    runs = read_inspect(DataParams(folder=tmp_path), "tinysee")
    keys = runs.items.groupby("item")[["key"]].nunique()
    assert (keys["key"] == 1).all()
    row = runs.responses[(runs.responses["condition"] == "blind") & (runs.responses["item"] == "0")].iloc[0]
    # shown yellow, green, blue, red; the item lists yellow, red, green, blue
    assert row["order"] == "ACDB"
    assert runs.judgements.set_index(["condition", "item"]).loc[("blind", "0"), "extracted"] == "C"


def test_task_and_scan(inspect_runs):
    found = scan(inspect_runs)
    assert len(found) == 10 and {f.benchmark for f in found} == {"tinysee"}
    with pytest.raises(AuditError, match="tasks here: tinysee"):
        read_inspect(DataParams(folder=inspect_runs / "logs_json"), "other")


def test_values():
    assert [to_hit(v) for v in ("C", "P", "I", "N", True, 0, "0.5")] == [1, 0.5, 0, 0, 1, 0, 0.5]
    assert all(math.isnan(to_hit(v)) for v in (None, float("nan"), "maybe", [1]))
