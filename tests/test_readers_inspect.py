"""Inspect's logs: what is read from real logs, denominators, shuffled options."""

from __future__ import annotations

import json
import math
import shutil
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from builders import params

from auditlib.errors import AuditError
from auditlib.extract import extract_frame
from auditlib.params import DataParams
from auditlib.readers.inspect_logs import read_inspect, scan
from auditlib.readers.inspect_samples import to_hit
from auditlib.reading import pool_of


@cache
def whole(folder):
    """All runs of a folder, read once: the package takes seconds per log."""
    return read_inspect(DataParams(folder=folder), "tinysee")


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
    runs = whole(inspect_runs / folder)
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


def said(responses, items):
    """Letters as read from the replies, and the key and truth of each reply's item."""
    read = extract_frame(responses, items.drop_duplicates("item"), ("letters", "option_text"))
    return read["letter"].astype(object).where(read["letter"].notna(), "").to_numpy(dtype=object)


@pytest.mark.parametrize(
    ("folder", "model", "condition", "rows", "key", "true", "none"),
    [
        ("logs", "tinyvlm-alpha", "full", 600, 0.870, 0.910, 0.010),
        ("logs", "tinyvlm-alpha", "blind", 600, 0.263, 0.260, 0.120),
        ("logs", "tinyvlm-beta", "full", 600, 0.842, 0.890, 0.023),
        ("logs", "tinyvlm-beta", "blind", 600, 0.215, 0.202, 0.117),
        ("logs", "tinyvlm-gamma", "full", 300, 0.857, 0.903, 0.007),
        ("logs", "tinyvlm-gamma", "blind", 300, 0.063, 0.063, 0.737),
        ("logs_flaky", "tinyvlm-alpha", "full", 120, 0.842, 0.875, 0.092),
        ("logs_json", "tinyvlm-gamma", "full", 60, 0.783, 0.833, 0.000),
        ("logs_json", "tinyvlm-gamma", "blind", 60, 0.083, 0.083, 0.750),
    ],
)
def test_letters_against_key_and_truth(shared_data, inspect_runs, folder, model, condition, rows, key, true, none):
    """Shares counted over all rows, epochs and failures included, as the table beside the files counts them."""
    runs = whole(inspect_runs / folder)
    r = runs.responses[(runs.responses["model"] == model) & (runs.responses["condition"] == condition)]
    letters = said(r, runs.items)
    keys = r["item"].map(runs.items.drop_duplicates("item").set_index("item")["key"]).to_numpy(dtype=object)
    truth = pd.read_csv(shared_data / "toolkit_runs" / "truth.csv", dtype=str).set_index("index")["true_letter"]
    assert len(r) == rows
    assert round(float((letters == keys).mean()), 3) == key
    assert round(float((letters == r["item"].map(truth).to_numpy(dtype=object)).mean()), 3) == true
    assert round(float(np.isin(letters, ["Z", ""]).mean()), 3) == none


def test_epochs_are_samples_and_seeded_copies_count_once(inspect_runs):
    runs = whole(inspect_runs / "logs")
    assert set(runs.responses["sample"]) == {0, 1}
    pool = pool_of(runs, params(pool="x", benchmark="tinysee"))
    trials = {m: int(t) for m, t in zip(pool.model_names, pool.arms["exact"].trials["full"].sum(axis=0))}
    assert trials["tinyvlm-alpha"] == 300 and trials["tinyvlm-gamma"] == 300  # alpha's epochs are copies
    assert trials["tinyvlm-beta"] == 600


# ---- logs made by hand, with the fields that a log needs and nothing else


def sample(item="1", said="ANSWER: A", scores=None, **more) -> dict:
    return {
        "id": item, "epoch": 1, "input": f"question {item}", "choices": ["red", "blue", "green", "white"],
        "target": "A", "messages": [],
        "output": {"model": "m", "choices": [
            {"message": {"role": "assistant", "content": said}, "stop_reason": "stop"}]},
        "scores": {"choice": {"value": "C", "answer": "A"}} if scores is None else scores,
    } | more  # fmt: skip


def log(path, samples, *, model="provider/m", created="2026-01-01T00:00:00+00:00", status="success", **spec):
    names = sorted({n for s in samples for n in s["scores"] or {}})
    told = {
        "version": 2, "status": status,
        "eval": {
            "created": created, "task": "toy", "dataset": {"sample_ids": [s["id"] for s in samples]}, "model": model,
            "config": {},
        } | spec,
        "plan": {},
        "results": {"total_samples": len(samples), "completed_samples": len(samples),
                    "scores": [{"name": n, "scorer": n, "metrics": {}} for n in names]},
        "stats": {}, "samples": samples,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told))
    return path


@pytest.fixture
def inspect_ai():
    return pytest.importorskip("inspect_ai")


def read(folder, *, judge=None, exclude=(), **data):
    return read_inspect(DataParams(folder=folder, **data), "toy", judge=judge, exclude=exclude)


def test_answers_that_the_scorer_missed(inspect_ai, tmp_path):  # inspect_ai#5145
    replies = ["ANSWER: $B$", "ANSWER: **B**", "**ANSWER: B**", "ANSWER: B"]
    samples = [
        sample(str(i), t, {"choice": {"value": v, "answer": a}}, target="B")
        for i, (t, v, a) in enumerate(zip(replies, "IIIC", ["", "", "", "B"]))
    ]
    log(tmp_path / "a.json", samples)
    pool = pool_of(read(tmp_path), params(pool="x", benchmark="toy"))
    assert pool.arms["exact"].hits["full"].sum() == 4
    assert pool.arms["judged"].hits["full"].sum() == 1 and pool.arms["judged"].trials["full"].sum() == 4


def test_a_score_that_is_a_mapping_gives_a_judge_per_key(inspect_ai, tmp_path):
    log(tmp_path / "a.json", [sample("1", scores={"both": {"value": {"shape": 1, "colour": "I"}, "answer": "A"}})])
    with pytest.raises(AuditError, match="both/colour, both/shape"):
        read(tmp_path)
    assert read(tmp_path, judge="both/shape").judgements["hit"].tolist() == [1]
    assert read(tmp_path, judge="both/colour").judgements["hit"].tolist() == [0]


def test_several_scorers(inspect_ai, tmp_path):
    two = {"choice": {"value": "C", "answer": "A"}, "model_graded_qa": {"value": "P", "answer": "red"}}
    path = log(tmp_path / "a.json", [sample(scores=two)])
    assert scan(tmp_path)[0].judges == ("choice", "model_graded_qa")
    with pytest.raises(AuditError, match=r"choice, model_graded_qa.*judge: NAME"):
        read(tmp_path)
    row = read(tmp_path, judge="model_graded_qa").judgements.iloc[0]
    assert (row["hit"], row["extracted"], row["source"]) == (0.5, "red", "llm")
    with pytest.raises(AuditError, match=r"no verdicts of 'other'.*choice, model_graded_qa"):
        read(tmp_path, judge="other")
    two["model_graded_qa"]["value"] = 1
    log(path, [sample(scores=two)])
    found = read(tmp_path)
    assert found.provenance["judge"] == "choice" and "the same values" in " ".join(found.coverage["reason"])


def test_the_newest_log_that_ended_well_is_read(inspect_ai, tmp_path):
    log(tmp_path / "a.json", [sample(said="ANSWER: B"), sample("2")])
    log(tmp_path / "b.json", [sample(said="ANSWER: C")], created="2026-01-02T00:00:00+00:00")
    log(tmp_path / "c.json", [sample(said="ANSWER: D")], created="2026-01-03T00:00:00+00:00", status="cancelled")
    log(tmp_path / "d.json", [sample(said="ANSWER: D")], model="provider/n")
    found = read(tmp_path, exclude=["n"])
    assert found.responses[["model", "prediction"]].to_numpy().tolist() == [["m", "ANSWER: C"]]
    out = found.coverage[found.coverage["what"] == "excluded"].set_index("run")["reason"]
    assert "older log" in out["a.json"] and "1 of its items are not in that one" in out["a.json"]
    assert "ended as 'cancelled'" in out["c.json"] and out[""] == "excluded in the params"


@pytest.mark.parametrize("status", ["started", "cancelled", "error"])
def test_an_unfinished_log_is_read_with_a_warning(inspect_ai, tmp_path, status):
    log(tmp_path / "a.json", [sample()], status=status)
    found = read(tmp_path)
    assert len(found.responses) == 1
    assert any(f"own state is {status!r}" in t for t in found.coverage["reason"])


def test_damaged_logs_are_named(inspect_ai, inspect_runs, tmp_path):
    whole = next((inspect_runs / "logs").glob("*00-41-23*")).read_bytes()
    (tmp_path / "cut.eval").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.json").write_text(log(tmp_path / "x" / "y.json", [sample()]).read_text()[:400])
    (tmp_path / "notes.json").write_text('{"title": "no log"}')
    found = read(tmp_path)
    bad = found.coverage[found.coverage["what"] == "unreadable"].set_index("run")["reason"]
    assert len(found.responses) == 1 and sorted(bad.index) == ["cut.eval", "cut.json"]
    assert bad["cut.eval"] == "the archive is cut off or damaged" and "\n" not in bad["cut.json"]
    (tmp_path / "x" / "y.json").unlink()
    with pytest.raises(AuditError, match=r"every log is excluded.*unreadable: cut.eval \(the archive is cut off"):
        read(tmp_path)


def test_samples_that_failed_and_values_that_mean_nothing(inspect_ai, tmp_path):
    wrong = {"message": "boom", "traceback": "", "traceback_ansi": ""}
    empty = sample("2", "", {"choice": {"value": "N", "answer": ""}})
    samples = [
        sample("1", scores={}, error=wrong), empty,
        sample("3", scores={"choice": {"value": "?"}}), sample("4", scores={"choice": {"value": float("nan")}}),
        sample("5", scores={"choice": {"value": "unsure"}}), sample("6", scores={}),
    ]  # fmt: skip
    log(tmp_path / "a.json", samples)
    found = read(tmp_path)
    assert found.responses["status"].tolist() == ["failed", "missing", "ok", "ok", "ok", "ok"]
    hits = found.judgements.set_index("item")["hit"]
    assert hits["2"] == 0 and hits[["3", "4", "5"]].isna().all() and "6" not in hits and "1" not in hits
    reasons = " ".join(found.coverage["reason"])
    assert "values of 'choice' mean neither right nor wrong" in reasons and "no scorer has judged" in reasons


def test_epochs_and_doubled_samples(inspect_ai, tmp_path):
    log(tmp_path / "a.json", [sample(), sample(said="ANSWER: B", epoch=2), sample(said="ANSWER: C", epoch=2)])
    found = read(tmp_path)
    assert found.responses[["sample", "prediction"]].to_numpy().tolist() == [[0, "ANSWER: A"], [1, "ANSWER: B"]]
    assert found.coverage["what"].eq("conflict").sum() == 1


def test_conditions(inspect_ai, tmp_path):
    log(tmp_path / "a.json", [sample()])
    log(tmp_path / "b.json", [sample(said="B")], model="provider/m_blind")
    log(tmp_path / "c.json", [sample()], model="provider/n", task_args={"use_image": False})
    log(tmp_path / "d.json", [sample()], model="provider/o", task="toy_text_only")
    found = read(tmp_path)
    have = found.responses[["model", "condition"]].to_numpy().tolist()
    assert have == [["m", "full"], ["m", "blind"], ["n", "blind"]]
    named = read(tmp_path, blind_benchmark="toy_text_only", conditions={"a.json": "skip", "c*": "gray"})
    have = named.responses[["model", "condition"]].to_numpy().tolist()
    assert have == [["m", "blind"], ["n", "gray"], ["o", "blind"]]


def test_a_missing_package_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    log(tmp_path / "a.json", [sample()])
    with pytest.raises(AuditError, match=r"package inspect-ai.*pip install 'auditlib\[inspect\]'"):
        scan(tmp_path)
