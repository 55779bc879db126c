"""Benchmarks that VLMEvalKit writes in forms of their own. Oracle: small files in these forms, answered by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from auditlib.readers import layout
from auditlib.readers import vlmevalkit_families as families
from auditlib.readers.vlmevalkit import read_vlmevalkit


def said(runs, what, column="reason"):
    return runs.coverage.loc[runs.coverage["what"] == what, column].tolist()


def test_open_questions_of_mmmu(write_run, tmp_path):
    """Judged files hold an open question as two options, the answer and 'Other Answers', with the key A."""
    asked = [
        {"index": 1, "question": "q1", "A": "x", "B": "y", "C": "z", "answer": "B", "split": "dev", "prediction": "B"},
        {"index": 2, "question": "q2", "A": "", "B": "", "C": "", "answer": "24", "split": "val", "prediction": "24"},
        {"index": 3, "question": "q3", "A": "", "B": "", "C": "", "answer": "['Kelvin', 'K']", "split": "val",
         "prediction": "Kelvin"},
    ]  # fmt: skip
    logs = [f"Match Log: {r['prediction']}. " for r in asked]
    judged = [{**r, "hit": h, "log": log} for r, h, log in zip(asked, (1, 1, 0), logs)]
    for r in judged[1:]:
        r |= {"A": r["answer"], "B": "Other Answers", "answer": "A"}
    write_run("m", asked, bench="MMMU_DEV_VAL")
    write_run("m", judged, bench="MMMU_DEV_VAL", tail="_openai_result")
    runs = read_vlmevalkit(tmp_path / "results", "MMMU_DEV_VAL")
    assert runs.items["answer_type"].tolist() == ["choice", "open", "open"]
    assert runs.items["key"].tolist() == ["B", "24", "Kelvin"]
    assert runs.items["references"].tolist()[2] == ["Kelvin", "K"]
    assert runs.items["options"].tolist() == [["x", "y", "z"], [], []]
    assert runs.judgements["hit"].tolist() == [1, 1, 0]
    assert len(read_vlmevalkit(tmp_path / "results", "MMMU_DEV_VAL", where={"split": "val"}).responses) == 2
    # the judged file alone tells the same items
    (tmp_path / "results" / "m" / "m_MMMU_DEV_VAL.xlsx").unlink()
    alone = read_vlmevalkit(tmp_path / "results", "MMMU_DEV_VAL")
    pd.testing.assert_series_equal(alone.items["key"], runs.items["key"])
    assert alone.items["answer_type"].tolist() == ["choice", "open", "open"]


def mathvista(index, kind, answer, res, *, log="Prefetch succeed", choices="", letter="", precision=""):
    return {
        "index": index, "question": f"q{index}", "question_type": "multi_choice" if choices else "free_form",
        "answer_type": kind, "choices": choices, "answer": answer, "answer_option": letter, "precision": precision,
        "task": "t", "category": "c", "prediction": f"I get {res}", "res": res, "log": log,
    }  # fmt: skip


def test_mathvista_is_recomputed(write_run, tmp_path):
    listed = "['Yes', 'No']"
    rows = [
        mathvista(1, "text", "No", "B", choices=listed, letter="B"),
        mathvista(2, "text", "No", "Yes", choices=listed, letter="B"),
        mathvista(3, "integer", "14", "14.0"),
        mathvista(4, "float", "1.2", "1.23", precision="1.0"),
        mathvista(5, "float", "1.2", "1.3", precision="1.0"),
        mathvista(6, "list", "[1, 2]", "[1, 2.0]", log="Succeed"),
        mathvista(7, "list", "[1, 2]", "[2, 1]", log="Succeed"),
        mathvista(8, "text", "Paris", "paris"),
        mathvista(9, "integer", "3", "", log="All 5 retries failed.\n"),
    ]
    asked = [{k: v for k, v in r.items() if k not in ("res", "log")} for r in rows]
    write_run("m", asked, bench="MathVista_MINI")
    write_run("m", rows, bench="MathVista_MINI", tail="_gpt-4o-mini")
    (tmp_path / "results" / "m" / "m_MathVista_MINI_gpt-4o-mini_score.csv").write_text("a,b\n1,2\n")
    runs = read_vlmevalkit(tmp_path / "results", "MathVista_MINI")
    got = runs.judgements.set_index("item")
    assert runs.provenance["judge"] == "gpt-4o-mini"
    assert got["hit"].fillna(-1).tolist() == [1, 0, 1, 1, 0, 1, 0, 1, -1]
    assert got["source"].tolist() == ["recomputed"] * 8 + ["unknown"]
    assert got["hit_stored"].isna().all() and got.at["6", "extracted"] == "[1, 2.0]"
    assert runs.items["key"].tolist() == ["B", "B", "14", "1.2", "1.2", "[1, 2]", "[1, 2]", "Paris", "3"]
    assert runs.items["options"].tolist()[:3] == [["Yes", "No"], ["Yes", "No"], []]
    assert runs.items["answer_type"].tolist() == ["choice"] * 2 + ["open"] * 7
    notes = runs.coverage.set_index("reason")["n"]
    assert notes["answers extracted by the toolkit's rule, without the judge"] == 6
    assert notes["items whose judge failed every time: no verdict (not counted)"] == 1
    assert layout.benchmark_names(layout.scan(tmp_path / "results")) == ["MathVista_MINI"]


def test_ocrbench_by_substring(write_run, tmp_path):
    formula = "Handwritten Mathematical Expression Recognition"
    rows = [
        {"index": i, "question": "q", "answer": a, "category": c, "prediction": p}
        for i, (a, c, p) in enumerate(
            [
                ("['CENTRE']", "Text", "It says Centre."),
                ("['10', 'ten']", "Text", "I see TEN of them"),
                ("['abc']", "Text", "xyz"),
                ("['x ^ 2']", formula, "x^2"),
                ("['X']", formula, "x"),
            ]
        )
    ]
    write_run("m", rows, bench="OCRBench")
    (tmp_path / "results" / "m" / "m_OCRBench_score.json").write_text(json.dumps({"Final Score": 3}))
    runs = read_vlmevalkit(tmp_path / "results", "OCRBench")
    assert runs.judgements["hit"].tolist() == [1, 1, 0, 1, 0]
    assert set(runs.judgements["source"]) == {"recomputed"} and runs.judgements["hit_stored"].isna().all()
    assert runs.items["references"].tolist()[1] == ["10", "ten"] and runs.items["key"].tolist()[1] == "10"
    assert set(runs.items["answer_type"]) == {"open"}
    assert any("totals only" in r for r in said(runs, "read"))


def test_verifier_files(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    rows = [
        {**r, "verifier_score": s, "verifier_match": float(s)} for r, s in zip(toy_rows, (True, True, False, False))
    ]
    write_run("m", rows, tail="_detailed_results")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.judgements["hit"].tolist() == [1, 1, 0, 0]
    assert set(runs.judgements["judge"]) == {"verifier"} and set(runs.judgements["source"]) == {"llm"}


def test_two_stage_files(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    write_run("m", [{**r, "extract": "x", "log_extract": ""} for r in toy_rows], tail="_gpt_extract")
    rows = [{**r, "extract": "x", "score": s} for r, s in zip(toy_rows, (True, False, True, False))]
    write_run("m", rows, tail="_gpt_score")
    (tmp_path / "results" / "m" / "m_Toy_gpt_score.csv").write_text("a,b\n1,2\n")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.judgements["hit"].tolist() == [1, 0, 1, 0] and set(runs.judgements["judge"]) == {"gpt"}


def test_side_products_are_no_runs(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    rows = [{**r, "hit": 1, "log": "Match Log: B. "} for r in toy_rows]
    for tail in ("_gpt_vanilla_circ0_result", "_gpt_vanilla_all_result", "_cotpost_gpt_result", "_judge_one_gpt"):
        write_run("m", rows, tail=tail)
    write_run("m", toy_rows, tail="_cotpost")
    (tmp_path / "results" / "m" / "m_Toy_acc_all.csv").write_text("a,b\n1,2\n")
    runs = read_vlmevalkit(tmp_path / "results", "Toy", judge=None)
    assert len(runs.responses) == 4
    rewritten = [r for r in said(runs, "excluded") if "rewritten" in r]
    assert len(rewritten) == 2
    assert layout.benchmark_names(layout.scan(tmp_path / "results")) == ["Toy"]


@pytest.mark.parametrize("first", ["MMStar", "BLINK"])
def test_prefixes_among_names(write_run, toy_rows, tmp_path, first):
    for bench, n in ((first, 4), (f"{first}_KO", 3), (f"{first}_circular", 2)):
        for model in ("tinyvlm-alpha", "tinyvlm-alpha_blind", "tinyvlm"):
            write_run(model, toy_rows[:n], bench=bench)
    for bench, n in ((first, 4), (f"{first}_KO", 3), (f"{first}_circular", 2)):
        sizes = read_vlmevalkit(tmp_path / "results", bench).responses.groupby(["model", "condition"]).size()
        assert sizes.to_dict() == {
            ("tinyvlm", "full"): n,
            ("tinyvlm-alpha", "blind"): n,
            ("tinyvlm-alpha", "full"): n,
        }


def test_equal_questions_stay_items(write_run, toy_rows, tmp_path):
    write_run("m", [{**r, "question": "placeholder"} for r in toy_rows], bench="MMMU_Pro_V")
    assert len(read_vlmevalkit(tmp_path / "results", "MMMU_Pro_V").items) == 4


def test_circular_group_without_its_verdict(write_run, tmp_path):
    """Base rows 0 and 4 with rotations; one group is judged, with several lines in its log."""
    rows = [
        {"index": b + k * 1_000_000, "question": "q", "A": "x", "B": "y", "answer": "AB"[k], "prediction": "B"}
        for b in (0, 4)
        for k in (0, 1)
    ]
    write_run("m", rows)
    log = "Rolling 0 Matched.\nFailed in Rolling 1: Answer is B; Prediction is B; Pre-fetched is Z; Match Log is Z.\n"
    write_run("m", [{**rows[0], "g_index": 0, "hit": 0, "log": log}], tail="_gpt_result")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.judgements[["item", "level", "source", "hit"]].values.tolist() == [["0", "circular", "llm", 0.0]]
    assert runs.items["cluster"].tolist() == ["0", "0", "4", "4"]
    assert runs.coverage.set_index("reason").at["items without a verdict", "n"] == 1


@pytest.mark.parametrize(
    ("res", "answer", "kind", "precision", "right"),
    [
        ("3", "3", "integer", "", True),
        ("three", "3", "integer", "", False),
        ("2.50", "2.5", "float", "2.0", True),
        ("1,200", "1200", "integer", "", True),
        ("['a', 'b']", "['A', 'b']", "list", "", True),
        ("[1]", "[1, 2]", "list", "", False),
        ("", "", "text", "", False),
    ],
)
def test_answers_against_extracted_ones(res, answer, kind, precision, right):
    row = mathvista(1, kind, answer, res, precision=precision)
    hits, sources, _ = families.mathvista_verdicts(pd.DataFrame([row], dtype="str"))
    assert hits.tolist() == [float(right)] and sources.tolist() == ["recomputed"]


def test_substring_without_references():
    items = pd.DataFrame({"item": ["1"], "key": ["Red"]})
    assert np.array_equal(families.substring_hits(items, pd.Series(["a red ball"])), [1.0])
