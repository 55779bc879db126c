"""Instance files of Every Eval Ever: written, read again, and read from other writers."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from builders import params, runs

from auditlib.errors import AuditError
from auditlib.exchange import write_instances
from auditlib.params import DataParams
from auditlib.pool import Pool
from auditlib.readers.every_eval_ever import read_every_eval_ever, scan
from auditlib.readers.vlmevalkit import read_vlmevalkit
from auditlib.reading import pool_of
from auditlib.synth.embedded import materialise

TINY = {"pool": "tinysee", "benchmark": "TinySee", "audit": {"exact": ["letters", "option_text"]}}
TOP = {
    "schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "sample_hash", "interaction_type",
    "input", "output", "messages", "answer_attribution", "evaluation", "token_usage", "performance", "error",
    "metadata",
}  # fmt: skip


@pytest.fixture(scope="module")
def tinysee(embedded_outputs):
    found = read_vlmevalkit(materialise("tinysee", embedded_outputs), "TinySee", judge="tiny-judge")
    return pool_of(found, params(**TINY))


def again(folder, settings) -> Pool:
    data = DataParams(folder=folder, toolkit="every-eval-ever")
    return pool_of(read_every_eval_ever(data, settings.benchmark), settings)


def same(a: Pool, b: Pool) -> None:
    assert a.items["item"].tolist() == b.items["item"].tolist() and a.model_names == b.model_names
    assert a.items["key"].tolist() == b.items["key"].tolist()
    assert a.arm_names == b.arm_names
    for name, arm in a.arms.items():
        for condition, hits in arm.hits.items():
            assert np.array_equal(hits, b.arms[name].hits[condition])
            assert np.array_equal(arm.trials[condition], b.arms[name].trials[condition])
    for condition, codes in a.letters.items():
        assert np.array_equal(codes, b.letters[condition])
        assert np.array_equal(a.failed[condition], b.failed[condition])


def test_round_trip_of_the_embedded_pool(tinysee, tmp_path):
    written = write_instances(tinysee, tmp_path, created=1_790_000_000)
    assert len(written) == 16 and all(p.is_file() for p in written)
    back = again(tmp_path, params(**TINY))
    same(tinysee, back)
    assert back.strata.tolist() == tinysee.strata.tolist()
    assert back.items["options"].tolist() == tinysee.items["options"].tolist()
    # alpha, beta, delta, gamma: the numbers of the toolkit's own files
    assert back.arms["exact"].hits["full"].sum(axis=0).tolist() == [270, 268, 183, 260]
    assert back.arms["judged"].hits["blind"].sum(axis=0).tolist() == [77, 62, 72, 20]
    assert back.judgements["source"].value_counts().to_dict() == tinysee.judgements["source"].value_counts().to_dict()
    assert back.provenance["judge"] == "tiny-judge"


def test_written_records_keep_to_the_schema(tinysee, tmp_path):
    instances, totals = write_instances(tinysee, tmp_path, created=1_790_000_000)[:2]
    lines = [json.loads(t) for t in instances.read_text().split("\n")[:-1]]
    told = json.loads(totals.read_text())
    assert len(lines) == told["detailed_evaluation_results"]["total_rows"] == 300
    assert told["detailed_evaluation_results"]["checksum"] == hashlib.sha256(instances.read_bytes()).hexdigest()
    assert told["retrieved_timestamp"] == "1790000000" and told["schema_version"] == "0.2.2"
    for r in lines:
        assert set(r) <= TOP and r["schema_version"] == "instance_level_eval_0.2.2"
        assert r["evaluation_id"] == told["evaluation_id"]
        assert all(isinstance(v, str) for v in r["metadata"].values())
        assert isinstance(r["output"]["raw"][0], str) and r["messages"] is None if "messages" in r else True
        assert isinstance(r["evaluation"]["score"], float) and isinstance(r["evaluation"]["is_correct"], bool)
        assert sum(a["is_terminal"] for a in r["answer_attribution"]) == 1
        text = r["input"]["raw"] + "".join(r["input"]["reference"])
        assert r["sample_hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert {r["metadata"]["stratum"] for r in lines} == set(tinysee.strata)
    score = told["evaluation_results"][0]["score_details"]
    judged = tinysee.arms["judged"]
    model, condition = lines[0]["model_id"], lines[0]["metadata"]["condition"]
    hits = judged.hits[condition][:, tinysee.model_names.index(model)].sum()
    assert score["score"] == pytest.approx(hits / int(score["details"]["scored"]))


def test_bytes_repeat_and_nothing_else_is_left(tinysee, tmp_path):
    first = {p.relative_to(tmp_path / "a"): p.read_bytes() for p in write_instances(tinysee, tmp_path / "a", created=1)}
    again_ = write_instances(tinysee, tmp_path / "b", created=1)
    assert first == {p.relative_to(tmp_path / "b"): p.read_bytes() for p in again_}
    assert sorted(p for p in (tmp_path / "b").rglob("*") if p.is_file()) == sorted(again_)


def test_failures_abstentions_graded_verdicts_and_repeats(tmp_path):
    found = runs({("m", "full"): ["A", "I cannot say", "Failed to obtain answer via API.", ""]}, ["A", "B", "C", "D"])
    more = found.responses.assign(sample=1, prediction=["B", "B", "C", "D"])
    responses = pd.concat([found.responses, more], ignore_index=True)
    responses["status"] = ["ok", "ok", "failed", "missing", "ok", "ok", "ok", "ok"]
    verdicts = responses.loc[[0, 1, 4], ["run", "item", "model", "condition", "sample"]].assign(
        judge="j", hit=[1.0, 0.25, 0.5], extracted=["A", "", "B"], source="llm"
    )
    settings = params(audit={"failed": "wrong"})
    pool = pool_of(type(found)(found.items, found.models, responses, verdicts.reset_index(drop=True)), settings)
    path, totals = write_instances(pool, tmp_path)
    lines = [json.loads(t) for t in path.read_text().splitlines()]
    said = {(r["sample_id"], r["metadata"]["sample"]): r for r in lines}
    assert said["2", "0"]["metadata"]["status"] == "failed" and said["2", "0"]["error"]
    assert said["1", "0"]["answer_attribution"][0]["extracted_value"] == ""
    assert said["1", "0"]["evaluation"] == {"score": 0.25, "is_correct": False}
    assert said["3", "1"]["metadata"]["scored_by"] == "exact"
    metric = json.loads(totals.read_text())["evaluation_results"][0]["metric_config"]
    assert (metric["score_type"], metric["min_score"], metric["max_score"]) == ("continuous", 0.0, 1.0)
    back = again(tmp_path, settings)
    same(pool, back)
    assert back.arms["judged"].unit == 4


def test_shuffled_options_come_back_in_the_items_order(tmp_path):
    found = runs({("m", "full"): ["A", "B"], ("m", "blind"): ["A", "B"], ("n", "full"): ["A", "A"]}, ["C", "B"])
    found.responses["order"] = ["", "", "CABD", "DBCA", "", ""]
    pool = pool_of(found, params())
    assert pool.letters["blind"][:, 0].tolist() == [2, 1]
    write_instances(pool, tmp_path)
    back = again(tmp_path, params())
    same(pool, back)
    assert "order" in back.responses and set(back.responses["order"]) == {"", "CABD", "DBCA"}


def test_model_names_that_no_file_name_keeps(tmp_path):
    found = runs({("org/m:1", "full"): ["A"], ("org/m 1", "full"): ["B"]}, ["A"], options=[["x", 'y \ud800 "z"']])
    pool = pool_of(found, params())
    assert len({p.parent for p in write_instances(pool, tmp_path)}) == 2
    same(pool, again(tmp_path, params()))


def test_a_pool_of_bare_results_has_nothing_to_write(tmp_path):
    with pytest.raises(AuditError, match="holds no replies"):
        write_instances(Pool.from_hits(np.eye(3, dtype=int)), tmp_path)


def record(item="1", said="A", **more) -> dict:
    """A record as another writer makes one."""
    return {
        "schema_version": "instance_level_eval_0.2.1", "evaluation_id": "e/m/100", "model_id": "org/m",
        "evaluation_name": "E", "sample_id": item, "interaction_type": "single_turn",
        "input": {"raw": f"question {item}", "reference": ["A"], "choices": ["red", "blue"]},
        "output": {"raw": [said]},
        "answer_attribution": [{"turn_idx": 0, "source": "output.raw", "extracted_value": said,
                                "extraction_method": "regex", "is_terminal": True}],
        "evaluation": {"score": float(said == "A"), "is_correct": said == "A"},
    } | more  # fmt: skip


def put(path, *records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in records))
    return path


def read(folder, benchmark="E", judge=None, **data):
    return read_every_eval_ever(DataParams(folder=folder, **data), benchmark, judge=judge)


def test_files_of_other_writers(tmp_path):
    put(tmp_path / "a" / "x_samples.jsonl", record("1"), record("2", "B"))
    put(tmp_path / "b" / "y.jsonl", record("1", "B", model_id="org/m_blind"), record("2", model_id="org/m_blind"))
    put(tmp_path / "other.jsonl", {"doc_id": 1})
    assert [(f.model, f.condition, f.benchmark) for f in scan(tmp_path)] == [
        ("org/m", c, "E") for c in ("full", "blind")
    ]
    found = read(tmp_path)
    assert found.responses["condition"].tolist() == ["full", "full", "blind", "blind"]
    assert found.judgements["hit"].tolist() == [1, 0, 0, 1]
    assert found.judgements["judge"].unique().tolist() == ["is_correct"]
    assert "the same values" in " ".join(found.coverage["reason"])


def test_conditions_come_from_the_params_first(tmp_path):
    put(tmp_path / "run" / "a.jsonl", record("1"))
    put(tmp_path / "run" / "b.jsonl", record("1", "B", evaluation_name="E_text_only"))
    put(tmp_path / "other" / "c.jsonl", record("1", "B"))
    assert read(tmp_path / "run").responses["condition"].tolist() == ["full"]
    assert read(tmp_path / "run", blind_benchmark="E_text_only").responses["condition"].tolist() == ["full", "blind"]
    assert read(tmp_path / "run", conditions={"*": "gray"}).responses["condition"].tolist() == ["gray"]
    beside = read(tmp_path / "run", blind_folder=tmp_path / "other")
    assert beside.responses[["condition", "prediction"]].to_numpy().tolist() == [["full", "A"], ["blind", "B"]]
    with pytest.raises(AuditError, match="evaluations here: E, E_text_only"):
        read(tmp_path / "run", "F")


def test_score_and_mark_that_differ_are_a_choice(tmp_path):
    half = {"score": 0.5, "is_correct": False}
    put(tmp_path / "a.jsonl", record("1"), record("2", evaluation=half))
    with pytest.raises(AuditError, match=r"is_correct, score.*judge: NAME"):
        read(tmp_path)
    assert read(tmp_path, judge="score").judgements["hit"].tolist() == [1, 0.5]
    put(tmp_path / "a.jsonl", record("1", evaluation={"score": 87.5, "is_correct": True}))
    assert read(tmp_path).judgements["hit"].tolist() == [1]
    put(tmp_path / "a.jsonl", record("1", evaluation={"is_correct": True}))
    assert read(tmp_path).judgements["hit"].tolist() == [1]


@pytest.mark.parametrize("field", ["evaluation_id", "model_id", "evaluation_name", "sample_id", "input", "evaluation"])
def test_a_missing_field_names_file_and_line(tmp_path, field):
    faulty = record("2") | {field: None}
    path = put(tmp_path / "a.jsonl", record("1"), faulty)
    with pytest.raises(AuditError, match=f"lacks {field}") as e:
        read(tmp_path)
    assert (e.value.file, e.value.row) == (path, 2)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"evaluation_id": "e", "samp', "cut off"),
        ("[1]\n", "lacks a record"),
        (json.dumps(record("2", output=None)) + "\n", "lacks output"),
        (json.dumps(record("2", evaluation={})) + "\n", "score and evaluation.is_correct"),
        (json.dumps(record("2", metadata="x")) + "\n", "metadata"),
        ("[" * 100_000 + "\n", "no JSON"),
    ],
)
def test_damaged_lines(tmp_path, line, says):
    put(tmp_path / "a.jsonl", record("1"), line)
    with pytest.raises(AuditError, match=says) as e:
        read(tmp_path)
    assert e.value.row == 2


def test_several_replies_turns_and_errors(tmp_path):
    turns = [{"turn_idx": 0, "role": "user", "content": "?"}, {"turn_idx": 1, "role": "assistant", "content": "B"}]
    chat = record("3", output=None, messages=turns, interaction_type="multi_turn")
    put(tmp_path / "a.jsonl", record("1", output={"raw": ["A", "B"]}), record("2", error="timeout"), chat)
    found = read(tmp_path)
    assert found.responses[["item", "sample", "prediction"]].to_numpy().tolist() == [
        ["1", 0, "A"], ["1", 1, "B"], ["2", 0, "A"], ["3", 0, "B"]
    ]  # fmt: skip
    assert found.responses["status"].tolist() == ["ok", "ok", "failed", "ok"]
    assert found.judgements["item"].tolist() == ["2", "3"]


def test_repeats_without_numbers_and_doubled_lines(tmp_path):
    put(tmp_path / "a.jsonl", record("1"), record("2"), record("1", "B"), record("2", "B"))
    assert read(tmp_path).responses["sample"].tolist() == [0, 0, 1, 1]
    put(tmp_path / "a.jsonl", record("1"), record("2"), record("2", "B"))
    found = read(tmp_path)
    assert len(found.responses) == 2 and found.coverage["what"].eq("conflict").sum() == 1


def test_the_newest_of_several_files_is_read(tmp_path):
    put(tmp_path / "new.jsonl", record("1", "B", evaluation_id="e/m/200"))
    put(tmp_path / "old.jsonl", record("1"), record("2"))
    put(tmp_path / "rest.jsonl", record("9", evaluation_id="e/m/50"))
    found = read(tmp_path)
    assert found.responses[["item", "prediction"]].to_numpy().tolist() == [["1", "B"], ["9", "A"]]
    older = found.coverage["reason"].str.contains("older file")
    assert found.coverage.loc[older, "run"].tolist() == ["old.jsonl"]
