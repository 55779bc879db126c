"""Studies on pools too small or too odd for them, and on votes and reviews as people save them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import auditlib
from auditlib.calibration.spike_in import spike_in
from auditlib.calibration.study import _reviewed
from auditlib.curation import composition, study
from auditlib.curation.measures import measure
from auditlib.dependence.source_files import make_embeddings
from auditlib.dependence.sources import prior_from_labels, prior_from_probabilities
from auditlib.errors import AuditError
from auditlib.params import CalibrationParams, check_params
from auditlib.paths import project_root
from auditlib.sensitivity.records import read_calls
from auditlib.stats.label_conflict import label_conflict


def small_pool(folder: Path, models=("a", "b", "c"), n: int = 8, drop=(), **blocks):
    """A table of ``n`` items; with the image everyone chooses B on the first half, whose key is A."""
    rows = [
        {"item": f"q{i}", "model": m, "condition": c, "key": "A", "hit": int(i >= n // 2 and c == "full"),
         "prediction": "A" if i >= n // 2 and c == "full" else "B", "stratum": f"s{i % 2}",
         "options": json.dumps({"A": "x", "B": "y", "C": "z"})}
        for i in range(n) for m in models for c in ("full", "blind")
    ]  # fmt: skip
    pd.DataFrame(rows).drop(columns=list(drop)).to_csv(folder / "runs.csv", index=False)
    raw = {"pool": "odd", "benchmark": "Odd", "data": {"table": "runs.csv"}, **blocks}
    return auditlib.read_pool(check_params(raw, folder / "p.yaml"), outputs=folder)


def votes(folder: Path, items) -> None:
    rows = [f"{i},{r},{j},KEY_ERROR" for i in items for r in (1, 2) for j in "uvwxy"]
    (folder / "v.csv").write_text("item,round,judge,label\n" + "\n".join(rows))


def test_one_model_still_tells_which_items_leave(tmp_path):
    result = measure(study.recall(small_pool(tmp_path, models=("a",), curation={"subsets": 10})))
    assert len(result.frames["decisions"]) == 8 and "quality" not in result.frames
    assert "fewer than two models" in result.facts["lacking"]["quality"]


def test_no_reason_at_all_is_a_table_of_noughts():
    table = composition.reasons_by_source(["s", "s", "t"], {}, ["", "", ""])
    assert table["reason"].tolist() == ["any reason"] * 3 and table["any"].sum() == 0


def test_notebook_shows_saturation_of_models_without_tiers(tmp_path):
    decisions = measure(study.recall(small_pool(tmp_path, curation={"subsets": 10}))).frames["decisions"]
    assert "all_tiers" not in decisions
    cells = json.loads((project_root() / "notebooks/20_curation.ipynb").read_text(encoding="utf-8"))["cells"]
    [code] = [s for c in cells if (s := "".join(c["source"])).startswith("reached =")]
    code = code.rsplit("\n", 1)[0]
    for table, columns in ((decisions, 2), (decisions.assign(all_tiers=True), 3)):
        names = {"frames": {"decisions": table}}
        exec(code, names)
        assert names["by"].shape[1] == columns and names["by"]["items"].sum() > 0


@pytest.mark.parametrize("items, left, aside", [(["q0", "q7"], 10, 10), (["q0"], 10, 0)])
def test_votes_on_items_that_no_rule_recalled_are_counted(tmp_path, items, left, aside):
    votes(tmp_path, items)
    pool = small_pool(tmp_path, curation={"subsets": 10, "adjudication": {"votes": ["v.csv"]}})
    recalled = study.recall(pool)
    assert "q0" in recalled.candidates and "q7" not in recalled.candidates
    found = study.judged(recalled, tmp_path).adjudication
    assert len(found.votes) == left and set(found.votes["label"]) == {"key_error"}
    assert found.coverage["n"].sum() == aside


def test_only_votes_on_other_items_is_said(tmp_path):
    votes(tmp_path, ["q7"])
    pool = small_pool(tmp_path, curation={"subsets": 10, "adjudication": {"votes": ["v.csv"]}})
    waiting = study.judged(study.recall(pool), tmp_path).waiting
    assert waiting["adjudication"] == "all 10 votes on items that no rule recalled"


def test_planted_defects_of_a_pool_without_keys(tmp_path):
    found = spike_in(small_pool(tmp_path, n=24, drop=("key", "prediction", "options")), share=0.25, repeats=1)
    assert found.lacking["shuffled key"] == "no letter keys"


@pytest.mark.parametrize(
    "text, said",
    [
        ("item,defect\n\n\nq1,1\nq2,yes\n", "row 5: defect is 'yes'"),
        ("item,defect\nq1,1\n\nq1,1\n", "row 4: item 'q1' is reviewed twice"),
        ("item,defect\nq1,1,x\nq2,0,y\n", "row 2"),
        ("item,defect,defect\nq1,1,0\n", "column 'defect' occurs twice"),
        ("item,defect\n", "there are no rows"),
    ],
)
def test_reviews_are_refused_at_their_row(tmp_path, text, said):
    pool = small_pool(tmp_path)
    (tmp_path / "r.csv").write_text(text)
    found = label_conflict(pool.letters["full"].astype(int), pool.key_codes.astype(int))
    with pytest.raises(AuditError) as error:
        _reviewed(CalibrationParams(reviews=tmp_path / "r.csv"), pool.items["item"].to_numpy(object), found,
                  np.array([0, 4, 8]), pool)  # fmt: skip
    assert said in str(error.value) and "r.csv" in str(error.value)


@pytest.mark.parametrize(
    "column, cell, said",
    [
        ("sample", "inf", "sample holds inf"),
        ("sample", "0.5", "sample holds 0.5"),
        ("condition", "blur@strong", "names no condition"),
        ("scores", "{bad", "scores are no mapping"),
    ],
)
def test_calls_are_refused_at_their_row(tmp_path, column, cell, said):
    row = {"model": "a", "condition": "full", "answer": "A", "key": "A", "sample": "0", "scores": ""}
    table = pd.DataFrame([row | {"item": "q0"}, row | {"item": "q1", column: cell}])
    table.to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(AuditError) as error:
        read_calls([tmp_path / "c.csv"])
    assert said in str(error.value) and "c.csv, row 3" in str(error.value)


@pytest.mark.parametrize(
    "text, said",
    [
        ("item,label\nq0,R\nq1,X\n", "p.csv, row 3: unknown structure label 'X'"),
        ("item,R,V,T,S\nq1,.25,.25,.25,.25\nq0,-.5,.5,.5,.5\n", "p.csv, row 3: R, V, T and S"),
        ("item,R,V,T,S\nq0,.5,.5,,\n", "p.csv, row 2: R, V, T and S"),
    ],
)
def test_structure_labels_are_refused_at_their_row(tmp_path, text, said):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(AuditError) as error:
        prior_from_labels(tmp_path / "p.csv", ["q0", "q1"])
    assert said in str(error.value)


def test_a_row_longer_than_its_header_is_no_item(tmp_path):
    (tmp_path / "p.csv").write_text("item,none,image_only,blind,full\nq0,.2,.4,.5,.8,9\nq1,.3,.4,.5,.8,9\n")
    with pytest.raises(AuditError, match="more cells than the header"):
        prior_from_probabilities(tmp_path / "p.csv", ["q0", "q1"], [4, 4])


def test_part_of_an_option_vector_is_damage():
    options = np.ones((2, 3, 4))
    options[0, 2] = np.nan  # an option that the item does not have
    assert make_embeddings(["a", "b"], np.ones((2, 4)), np.ones((2, 4)), options).options[0, 2].sum() == 0
    options[1, 0, 1] = np.nan
    with pytest.raises(AuditError, match="options of 1 items hold NaN or infinity, first b"):
        make_embeddings(["a", "b"], np.ones((2, 4)), np.ones((2, 4)), options)
