"""lm-eval's files of samples: real runs with known accuracies, filters, log-likelihoods."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from auditlib.errors import AuditError
from auditlib.extract import extract_frame
from auditlib.params import DataParams
from auditlib.readers.lm_eval import read_lm_eval, scan

DOC = {"question": "Which?", "options": ["red", "blue", "green"], "answer": "A", "category": "colour"}


def row(at, said="A", *, name="none", **more):
    return {"doc_id": at, "doc": DOC | {"index": 100 + at}, "target": "A", "resps": [[f"so {said}"]],
            "filtered_resps": [said], "filter": name, "metrics": ["exact_match"], "exact_match": float(said == "A"),
            **more}  # fmt: skip


def write(folder, rows, *, model="m", name="samples_toy_2026-01-01T00-00-00.000001.jsonl"):
    path = folder / model / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def read(folder, *, judge=None, **kw):
    return read_lm_eval(DataParams(folder=folder, **kw), "toy", judge=judge)


def says(runs, what):
    return runs.coverage.loc[runs.coverage["what"] == what, "reason"].tolist()


REAL = {  # the table of the runs' README: strict-letter, flexible-letter, key
    "gemma-3-270m": (0.233, 0.233, 0.233), "tinyvlm-alpha": (0.277, 0.277, 0.277),
    "tinyvlm-beta": (0.213, 0.213, 0.213),
    "tinyvlm-delta": (0.000, 0.000, 0.217), "tinyvlm-gamma": (0.000, 0.063, 0.063),
}  # fmt: skip


@pytest.mark.parametrize("at", [0, 1])
def test_real_runs_give_their_stored_and_exact_accuracies(shared_data, at):
    folder = shared_data / "toolkit_runs" / "lm-eval" / "results"
    judge = ("strict-letter", "flexible-letter")[at]
    runs = read_lm_eval(DataParams(folder=folder, conditions={"*": "blind"}), "tinysee_text", judge=judge)
    assert runs.responses.groupby("model").size().to_dict() == dict.fromkeys(REAL, 300)
    assert runs.responses["condition"].unique().tolist() == ["blind"]
    own = runs.judgements.groupby("model")["hit"].mean().round(3).to_dict()
    assert own == {m: v[at] for m, v in REAL.items()}
    items = runs.items.drop_duplicates("item").set_index("item")
    filled = extract_frame(runs.responses, items.reset_index(), ("letters", "option_text"))
    hit = filled["letter"].eq(filled["item"].map(items["key"]))
    assert hit.groupby(filled["model"]).mean().round(3).to_dict() == {m: v[2] for m, v in REAL.items()}
    assert not runs.judgements["extracted"].eq("[invalid]").any()
    assert all("told apart by index" in r for r in says(runs, "read"))
    assert runs.provenance["toolkit_version"] == "0.4.13"


def test_real_filters_are_the_judges(shared_data):
    folder = shared_data / "toolkit_runs" / "lm-eval" / "results"
    assert {f.judges for f in scan(folder)} == {("flexible-letter", "strict-letter")}
    with pytest.raises(AuditError, match="flexible-letter, strict-letter"):
        read_lm_eval(DataParams(folder=folder), "tinysee_text")


def test_one_run_alone_is_read_by_its_folder(tmp_path):
    write(tmp_path, [row(i) for i in range(3)], model="m_blind")
    runs = read(tmp_path)
    assert runs.responses[["model", "condition"]].drop_duplicates().to_numpy().tolist() == [["m", "blind"]]
    assert runs.items[["item", "stratum", "key", "k"]].to_numpy().tolist()[0] == ["100", "colour", "A", 3]
    assert runs.judgements["judge"].unique().tolist() == ["exact_match"]


def test_filters_with_equal_verdicts_need_no_choice(tmp_path):
    write(tmp_path, [row(i, name=n) for n in ("strict", "flexible") for i in range(3)])
    runs = read(tmp_path)
    assert runs.judgements["judge"].unique().tolist() == ["flexible"]
    assert len(runs.responses) == 3
    assert any(r.startswith("strict: the same values") for r in says(runs, "excluded"))


def test_order_of_rows_changes_nothing(tmp_path):
    rows = [row(i, "ABC"[(i + k) % 3], name=n) for k, n in enumerate(("s", "f")) for i in range(4)]
    for r in rows:
        r["resps"] = [["so A"]]
    write(tmp_path / "a", rows)
    write(tmp_path / "b", rows[::-1])
    a, b = read(tmp_path / "a", judge="s"), read(tmp_path / "b", judge="s")
    pd.testing.assert_frame_equal(a.responses.drop(columns="row"), b.responses.drop(columns="row"))
    pd.testing.assert_frame_equal(a.judgements, b.judgements)
    pd.testing.assert_frame_equal(a.items.drop(columns="row"), b.items.drop(columns="row"))


def test_unmatched_is_an_empty_answer(tmp_path):
    write(tmp_path, [row(0), row(1, "[invalid]")])
    assert read(tmp_path).judgements["extracted"].tolist() == ["A", ""]


def test_older_files_without_filter_names(tmp_path):
    rows = [{k: v for k, v in row(i, s).items() if k not in ("filter", "metrics")} for s in "AB" for i in range(3)]
    for r in rows:
        r["resps"] = [["so A"]]
    write(tmp_path, rows)
    with pytest.raises(AuditError, match="filter 1, filter 2"):
        read(tmp_path)
    assert read(tmp_path, judge="filter 2").judgements["hit"].tolist() == [0] * 3


def test_two_runs_in_one_file(tmp_path):
    rows = [row(i) for i in range(3)]
    write(tmp_path, rows + rows)
    runs = read(tmp_path)
    assert len(runs.responses) == 3 and runs.coverage["what"].eq("duplicate").any()
    write(tmp_path, [*rows, row(1, "B")])
    with pytest.raises(AuditError, match="document 1 is there 2 times by filter 'none'"):
        read(tmp_path)


def test_repeats_are_samples(tmp_path):
    write(tmp_path, [row(0, resps=[["A", "B", "C"]]), row(1, resps=[["A", "A", "A"]])])
    runs = read(tmp_path)
    assert runs.responses["sample"].tolist() == [0, 1, 2] * 2
    assert runs.judgements["sample"].tolist() == [0, 0]
    assert any("stored verdict is of all together" in r for r in says(runs, "warning"))


@pytest.mark.parametrize("spelling", ["lists", "text", "nested"])  # lm-eval#1687, lm-eval#2025
def test_log_likelihoods(tmp_path, spelling):
    table = [[-3.0, -1.0, -2.0], [-1.0, -5.0, -1.0]]
    rows = []
    for i, values in enumerate(table):
        pairs = [[str(v), "False"] for v in values]
        said = [f"({v}, False)" for v in values] if spelling == "text" else pairs
        resps = [[p] for p in said] if spelling != "lists" else said
        rows.append(
            row(i, target="1", resps=resps, filtered_resps=said, metrics=["acc", "acc_norm"], acc=float(i == 0),
                acc_norm=0.0)
        )  # fmt: skip
    write(tmp_path, rows)
    with pytest.raises(AuditError, match="acc, acc_norm"):
        read(tmp_path)
    runs = read(tmp_path, judge="acc")
    assert runs.responses["prediction"].tolist() == ["B", "A"]
    assert runs.responses["chosen"].all() and runs.responses["status"].eq("ok").all()
    assert runs.items["key"].tolist() == ["B", "B"]
    assert runs.judgements["hit"].tolist() == [1, 0] and runs.judgements["extracted"].eq("").all()
    told = next(r for r in says(runs, "condition") if "log-likelihood" in r)
    assert "no text was generated" in told and "1 rows with a tie" in told


def test_options_of_log_likelihoods_from_the_calls(tmp_path):
    calls = {f"gen_args_{i}": {"arg_0": "Which?", "arg_1": f" {t}"} for i, t in enumerate(("red", "blue"))}
    r = row(
        0, target="0", resps=[[["-1", "True"]], [["-2", "False"]]], filtered_resps=[["-1", "True"], ["-2", "False"]]
    )
    write(tmp_path, [r | {"doc": {"text": "Which?"}, "arguments": calls}])
    item = read(tmp_path).items.iloc[0]
    assert (item["question"], item["options"], item["key"]) == ("Which?", ["red", "blue"], "A")


def test_own_id_that_repeats_is_no_id(tmp_path):  # lm-eval#4089
    write(tmp_path, [row(i) | {"doc": DOC | {"index": 7}} for i in range(3)])
    runs = read(tmp_path)
    assert runs.items["item"].tolist() == ["0", "1", "2"]
    assert "told apart by doc_id" in says(runs, "read")[0]


def test_two_models_with_the_same_replies_stay_two_runs(tmp_path):  # lm-eval#4063: a cache without the model in its key
    for model in ("one", "two"):
        write(tmp_path, [row(i) for i in range(3)], model=model)
    assert read(tmp_path).responses.groupby("model").size().to_dict() == {"one": 3, "two": 3}


def test_prompt_gives_options_where_the_document_has_none(tmp_path):
    message = json.dumps([{"role": "user", "content": "Which?\nA. red\nB. blue\nSay it."}])
    arguments = {"gen_args_0": {"arg_0": [message], "arg_1": {"temperature": 0.0}}}
    write(tmp_path, [row(0) | {"doc": {"n": 1}, "arguments": arguments}])
    item = read(tmp_path).items.iloc[0]
    assert (item["question"], item["options"]) == ("Which?", ["red", "blue"])
