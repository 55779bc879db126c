"""lmms-eval's files of samples: real runs with known accuracies, and small files of every shape."""

from __future__ import annotations

import gzip
import json
import math

import pandas as pd
import pytest

from auditlib.errors import AuditError
from auditlib.extract import extract_frame
from auditlib.params import DataParams
from auditlib.readers.jsonl import read_jsonl
from auditlib.readers.lmms_eval import read_lmms_eval, scan
from auditlib.readers.prompts import options_in

PROMPT = "Which colour?\nA. red\nB. blue\nC. green\nAnswer with the letter."


def row(at, said="A", *, target="A", **more):
    return {"doc_id": at, "target": target, "filtered_resps": said, "input": PROMPT, "acc": float(said[:1] == target),
            **more}  # fmt: skip


def write(folder, rows, *, model="m", name="20260101_000000_samples_toy.jsonl", tail="\n"):
    path = folder / model / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(r) for r in rows) + tail)
    return path


def read(folder, **kw):
    judge = kw.pop("judge", None)
    return read_lmms_eval(DataParams(folder=folder, **kw), "toy", judge=judge)


def says(runs, what):
    return runs.coverage.loc[runs.coverage["what"] == what, "reason"].tolist()


def exact(runs):
    items = runs.items.drop_duplicates("item")
    filled = extract_frame(runs.responses, items, ("letters", "option_text"))
    filled["hit"] = filled["letter"].eq(filled["item"].map(items.set_index("item")["key"]))
    return filled.groupby(["model", "condition"])["hit"].mean().round(3)


@pytest.fixture
def real(shared_data):
    return shared_data / "toolkit_runs" / "lmms-eval"


LOGS = {  # the table of the runs' README: own, key
    ("tinyvlm-alpha", "full"): (0.910, 0.910), ("tinyvlm-alpha", "blind"): (0.277, 0.277),
    ("tinyvlm-beta", "full"): (0.877, 0.877), ("tinyvlm-beta", "blind"): (0.213, 0.213),
    ("tinyvlm-delta", "full"): (0.000, 0.587), ("tinyvlm-delta", "blind"): (0.000, 0.217),
    ("tinyvlm-gamma", "full"): (0.863, 0.863), ("tinyvlm-gamma", "blind"): (0.063, 0.063),
}  # fmt: skip


def test_real_runs_give_their_stored_and_exact_accuracies(real):
    runs = read_lmms_eval(DataParams(folder=real / "logs", blind_benchmark="tinysee_text_only"), "tinysee")
    assert runs.responses.groupby(["model", "condition"]).size().eq(300).all()
    own = runs.judgements.groupby(["model", "condition"])["hit"].mean().round(3)
    assert {k: (own[k], exact(runs)[k]) for k in LOGS} == LOGS
    assert sum("5 input tokens less on every item" in r for r in says(runs, "condition")) == 4
    read_rows = says(runs, "read")
    assert len(read_rows) == 8 and all("told apart by question_id" in r for r in read_rows)
    assert not any("redacted" in str(v).lower() or "http" in str(v) for v in runs.provenance.values())


@pytest.mark.parametrize(
    ("folder", "own", "key"),
    [("logs_flaky", 0.883, 0.863), ("logs_blind_same_task", 0.277, 0.277),
     ("logs_cache_full_after_blind", 0.277, 0.277),
     ("logs_cache_blind_same_task", 0.277, 0.277), ("logs_cache", 0.910, 0.910)],
)  # fmt: skip
def test_real_single_runs(real, folder, own, key):
    runs = read_lmms_eval(DataParams(folder=real / folder), "tinysee")
    assert len(runs.responses) == 300
    assert round(runs.judgements["hit"].mean(), 3) == own
    assert exact(runs)["tinyvlm-alpha", "full"] == key
    cached = [r for r in says(runs, "warning") if "cache" in r]
    hits = folder in ("logs_cache", "logs_cache_full_after_blind")
    assert cached == (["300 replies come from a cache, which ignores pictures"] if hits else [])


def test_failed_and_empty_replies_are_no_answers(real):
    status = read_lmms_eval(DataParams(folder=real / "logs_flaky"), "tinysee").responses["status"].value_counts()
    assert status["failed"] == 4 and status["missing"] > 0


def test_newest_of_two_real_runs_is_read(real):
    runs = read_lmms_eval(DataParams(folder=real / "logs_cache"), "tinysee")
    assert any("0 of 300 replies differ" in r for r in says(runs, "excluded"))
    assert "083112" in runs.responses["run"].iloc[0]


def test_real_log_without_documents(shared_data):
    runs = read_lmms_eval(DataParams(folder=shared_data / "real" / "lmms_eval_scienceqa_llava15"), "scienceqa_img")
    assert len(runs.responses) == 2017
    assert round(runs.judgements["hit"].mean(), 3) == 0.695
    assert exact(runs).iloc[0] == 0.695
    assert runs.items["k"].between(2, 5).all() and runs.items["options"].map(all).all()
    assert all(ord(k) - ord("A") < len(o) for k, o in zip(runs.items["key"], runs.items["options"]))


@pytest.mark.parametrize("shape", ["A", ["A"], [["A"]], [[["A"]]]])
def test_every_nesting(tmp_path, shape):  # lmms-eval#1103
    write(tmp_path, [row(i) | {"filtered_resps": shape} for i in range(3)])
    assert read(tmp_path).responses["prediction"].tolist() == ["A"] * 3
    write(tmp_path, [row(i) | {"filtered_resps": "x", "resps": shape} for i in range(3)])
    assert read(tmp_path).responses["prediction"].tolist() == ["A"] * 3


def test_raw_reply_is_read_and_draws_are_samples(tmp_path):
    write(tmp_path, [row(0, resps=["<think>B?</think> A"]), row(1, resps=[["A", "B"]])])
    r = read(tmp_path).responses
    assert r[["item", "sample", "prediction"]].to_numpy().tolist() == [
        ["0", 0, "<think>B?</think> A"], ["1", 0, "A"], ["1", 1, "B"]]  # fmt: skip


def test_order_of_rows_and_files_changes_nothing(tmp_path):
    rows = [row(i, "ABC"[i % 3], doc={"id": 10 + i, "category": "x"}) for i in range(7)]
    write(tmp_path / "a", rows)
    write(tmp_path / "b", rows[::-1])
    a, b = read(tmp_path / "a"), read(tmp_path / "b")
    for x, y in ((a.items, b.items), (a.responses, b.responses), (a.judgements, b.judgements)):
        drop = [c for c in ("row",) if c in x]
        pd.testing.assert_frame_equal(x.drop(columns=drop), y.drop(columns=drop))


def test_documents_give_options_key_and_strata(tmp_path):
    doc = {"question": "Q", "options": "['x', 'None', 'z']", "answer": 1, "category": "c", "l2_category": "s", "qid": 5}
    write(tmp_path, [row(0, target="1", doc=doc)])
    item = read(tmp_path).items.iloc[0]
    assert (item["question"], item["options"], item["key"]) == ("Q", ["x", "None", "z"], "B")
    assert (item["item"], item["stratum"], item["substratum"], item["k"]) == ("5", "c", "s", 3)


def test_category_named_metric_is_the_stratum_and_average_the_verdict(tmp_path):
    rows = []
    for i in range(4):
        score = {"question_id": 100 + i, "l2_category": "fine", "score": i % 2}
        r = row(i) | {"math" if i < 2 else "logic": score, "average": score}
        del r["acc"]
        rows.append(r)
    write(tmp_path, rows)
    runs = read(tmp_path)
    assert runs.judgements["judge"].unique().tolist() == ["average"]
    assert runs.judgements["hit"].tolist() == [0, 1, 0, 1]
    assert runs.items[["item", "stratum", "substratum"]].to_numpy().tolist()[1:3] == [
        ["101", "math", "fine"], ["102", "logic", "fine"]]  # fmt: skip


def test_verdict_is_recomputed_where_only_the_parts_are_stored(tmp_path):
    said = [["B"], "C", ["seven"]]
    truth = ["B", "B", ["7", "seven"]]
    rows = []
    for i, (p, a) in enumerate(zip(said, truth)):
        r = row(i) | {"mmmu_acc": {"id": f"v_{i}", "subdomain": "Art", "answer": a, "parsed_pred": p}}
        r.pop("acc")
        rows.append(r | {"submission": {"v": "x"}})
    write(tmp_path, rows)
    runs = read(tmp_path)
    assert runs.judgements["hit"].tolist() == [1, 0, 1]
    assert runs.judgements["source"].unique().tolist() == ["recomputed"]
    assert runs.judgements["extracted"].tolist() == ["B", "C", "seven"]
    assert runs.items["item"].tolist() == ["v_0", "v_1", "v_2"] and runs.items["stratum"].eq("Art").all()


def test_metrics_that_differ_need_a_choice(tmp_path):
    write(tmp_path, [row(i, other=0.5, loss=7.0, text="x") for i in range(3)])
    with pytest.raises(AuditError, match=r"acc, other.*judge: NAME"):
        read(tmp_path)
    assert read(tmp_path, judge="other").judgements["hit"].tolist() == [0.5] * 3
    assert any("'loss' go beyond 0 to 1" in r for r in says(read(tmp_path, judge="acc"), "excluded"))
    with pytest.raises(AuditError, match="no verdicts of 'gpt'"):
        read(tmp_path, judge="gpt")


def test_rows_without_verdicts(tmp_path):
    write(tmp_path, [{k: v for k, v in row(i).items() if k != "acc"} for i in range(2)])
    runs = read(tmp_path)
    assert not len(runs.judgements) and len(runs.responses) == 2


def test_bare_nan_is_no_verdict(tmp_path):
    path = write(tmp_path, [row(0), row(1)])
    path.write_text(path.read_text().replace('"acc": 1.0', '"acc": NaN', 1))
    hits = read(tmp_path).judgements["hit"]
    assert math.isnan(hits[0]) and hits[1] == 1


def test_several_filters_without_a_name(tmp_path):  # lmms-eval#712
    one = [row(i, "A", resps=["so A"]) for i in range(3)]
    two = [row(i, "B", resps=["so A"]) for i in range(3)]
    write(tmp_path, one + two)
    with pytest.raises(AuditError, match="filter 1, filter 2"):
        read(tmp_path)
    runs = read(tmp_path, judge="filter 2")
    assert runs.judgements["hit"].tolist() == [0] * 3 and len(runs.responses) == 3


def test_two_runs_in_one_file(tmp_path):
    rows = [row(i) for i in range(3)]
    write(tmp_path, rows + rows)
    runs = read(tmp_path)
    assert len(runs.responses) == 3
    assert runs.coverage.loc[runs.coverage["what"] == "duplicate", "n"].tolist() == [3]
    write(tmp_path, [*rows, row(0, "B")])
    with pytest.raises(AuditError, match=r"row 4: document 0 .* two runs in one file"):
        read(tmp_path)
    write(tmp_path, rows + [row(i, "B") for i in range(3)])
    with pytest.raises(AuditError, match="two runs in one file"):
        read(tmp_path)


def test_half_written_last_line(tmp_path):
    write(tmp_path, [row(0), row(1)], tail='\n{"doc_id": 2, "tar')
    runs = read(tmp_path)
    assert len(runs.responses) == 2
    assert says(runs, "unreadable") == ["line 3, the last one, is only half written: left out"]


def test_broken_line_in_between_names_file_and_line(tmp_path):
    path = write(tmp_path, [row(0)])
    path.write_text(path.read_text() + '{"half\n' + json.dumps(row(1)) + "\n")
    with pytest.raises(AuditError, match=r"toy\.jsonl, row 2: line 2 is no complete JSON"):
        read(tmp_path)


def test_gzip_byte_order_mark_and_blank_lines(tmp_path):
    text = "\ufeff" + json.dumps(row(0)) + "\r\n\r\n" + json.dumps(row(1)) + "\n"
    path = tmp_path / "m" / "20260101_000000_samples_toy.jsonl.gz"
    path.parent.mkdir()
    packed = gzip.compress(text.encode())
    path.write_bytes(packed)
    assert [f.benchmark for f in scan(tmp_path)] == ["toy"]
    assert read(tmp_path).responses["row"].tolist() == [1, 3]
    path.write_bytes(packed[:-12])
    lines = read_jsonl(path)
    assert lines.cut and len(lines.rows) <= 2


def test_conditions_in_their_order(tmp_path):
    write(tmp_path / "r", [row(0)], model="x")
    write(tmp_path / "r", [row(0)], model="x_blind")
    write(tmp_path / "r", [row(0)], model="y", name="20260101_000000_samples_toy_text_only.jsonl")
    write(tmp_path / "b", [row(0)], model="z")
    runs = read(tmp_path / "r")
    assert sorted(map(tuple, runs.responses[["model", "condition"]].to_numpy())) == [("x", "blind"), ("x", "full")]
    runs = read(tmp_path / "r", blind_benchmark="toy_text_only", blind_folder=tmp_path / "b",
                conditions={"x/*": "gray", "x_blind/*": "skip"})  # fmt: skip
    assert sorted(map(tuple, runs.responses[["model", "condition"]].to_numpy())) == [
        ("x", "gray"), ("y", "blind"), ("z", "blind")]  # fmt: skip
    with pytest.raises(AuditError, match="tasks here: toy, toy_text_only"):
        read_lmms_eval(DataParams(folder=tmp_path / "r"), "other")


def test_equal_input_tokens_are_a_warning(tmp_path):
    counts = [{"input_tokens": 47, "output_tokens": 1}]
    write(tmp_path, [row(i, token_counts=counts) for i in range(3)])
    write(tmp_path, [row(i, token_counts=counts) for i in range(3)], model="m_blind")
    assert any(
        "same number of input tokens: the picture may still be there" in r for r in says(read(tmp_path), "warning")
    )


def test_newest_run_counts_and_differences_are_told(tmp_path):
    write(tmp_path, [row(i, "A") for i in range(3)])
    write(tmp_path, [row(i, "AAB"[i]) for i in range(3)], name="20260102_000000_samples_toy.jsonl")
    runs = read(tmp_path)
    assert runs.responses["prediction"].tolist() == ["A", "A", "B"]
    assert any("1 of 3 replies differ" in r for r in says(runs, "excluded"))


def test_rows_by_value_of_a_column(tmp_path):
    write(tmp_path, [row(i, doc={"split": "dev" if i else "val"}) for i in range(3)])
    runs = read(tmp_path, where={"split": "dev"})
    assert len(runs.responses) == len(runs.judgements) == 2
    assert says(runs, "excluded") == ["rows outside split=dev"]


def test_older_names_and_foreign_files(tmp_path):
    write(tmp_path, [row(0)], name="samples_toy_0807_1430.jsonl")
    write(tmp_path, [{"doc_id": 0, "filter": "none", "resps": [["A"]]}], name="samples_toy_2025-01-01T00-00-00.1.jsonl")
    assert [(f.benchmark, f.judges) for f in scan(tmp_path)] == [("toy", ("acc",))]


@pytest.mark.parametrize(
    ("prompt", "want"),
    [
        ("Q?\nA. x\nB. y\nSay it.", ("Q?", ["x", "y"])),
        ("Q?\n(A) x\n(B) y", ("Q?", ["x", "y"])),
        ("Q?\nA) x\nmore\nB) y\nC) z", ("Q?", ["x\nmore", "y", "z"])),
        ("Shot\nA. no\nB. no\nQ?\nA. x\nB. y", ("Shot\nA. no\nB. no\nQ?", ["x", "y"])),
        ("Q?\nA. x\nAnswer.", ("Q?\nA. x\nAnswer.", [])),
        ("Q?\nOptions: A: x, B: y", ("Q?", ["x", "y"])),
        ("A. Smith asks: which?\nA. x\nB. y", ("A. Smith asks: which?", ["x", "y"])),
        ("How many?", ("How many?", [])),
    ],
)
def test_options_from_a_prompt(prompt, want):
    assert options_in(prompt) == want
