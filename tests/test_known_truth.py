"""Known truth: tables against what people found, pools of one benchmark, and the notebook with and without its data."""

from __future__ import annotations

import json

import nbformat
import numpy as np
import pandas as pd
import pytest

from auditlib.calibration import known_truth
from auditlib.errors import AuditError
from auditlib.kernels import run_notebook
from auditlib.paths import project_root
from auditlib.synth.plant import spoil
from auditlib.synth.worlds import Recipe, world

SOURCE = project_root() / "notebooks/explore/known_truth.ipynb"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table as people fill it, of a world with 5% wrong keys."""
    w = spoil(world(Recipe(items=400, models=4, misconception=0.6), 1), {"wrong_key": 0.05}, 1)
    bad = w.planted("wrong_key")
    rows = pd.DataFrame(
        {
            "question": [f"question {'x' * (i % 9)}" for i in range(len(bad))],
            "choices": "['a', 'b', 'c', 'd']",
            "groundtruth_answer": w.key,
            "error_type": np.where(bad, "wrong_groundtruth", "ok"),
        }
        | {f"m{j}_x": ["ABCD"[c] for c in w.full[:, j]] for j in range(4)}
    )
    file = tmp_path_factory.mktemp("checked") / "checked.csv"
    rows.to_csv(file, index=False)
    return file, w, bad


def test_table_is_read_as_it_stands(table):
    file, w, bad = table
    data = known_truth.read_checked(file)
    assert (data.letters == w.full).all() and (data.key == w.key).all()
    assert (data.found["wrong key"] == bad).all() and data.found["wrong key"].sum() == 20
    assert data.family.tolist() == ["m0", "m1", "m2", "m3"]


def test_tables_of_the_list(table):
    data = known_truth.read_checked(table[0])
    ranking = known_truth.ranking_table(data, sizes=(3, 4), count=9, draws=5).set_index(["models", "target"])
    assert ranking.loc[(3, "wrong key"), "pools"] == 4 and ranking.loc[(4, "wrong key"), "pools"] == 1
    assert (ranking["list"] > 0.2).all() and (ranking["low"] <= ranking["high"]).all()
    bounds = known_truth.bound_table(data, sizes=(4,), count=1)
    order = data.pool(np.arange(4)).order
    assert bounds["realised"].tolist()[:3] == [data.found["wrong key"][order[:r]].mean() for r in known_truth.AT]
    assert bounds["bound"].isna().equals(bounds["said"].eq(0))
    reviews = known_truth.review_table(data, sizes=(4,), count=1, replications=12, draws=300)
    assert (reviews["coverage"] >= 0.6).all() and (reviews["half_width"] < 0.3).all()


def test_wrong_tables_are_refused(tmp_path):
    file = tmp_path / "t.csv"
    for text, says in (
        ("question,choices,groundtruth_answer\nq,c,1\n", "error_type"),
        ("question,choices,groundtruth_answer,error_type\nq,c,1,ok\n", "model"),
        ("question,choices,groundtruth_answer,error_type,m\nq,c,B,ok,A\n", "no number"),
    ):
        file.write_text(text)
        with pytest.raises(AuditError, match=says):
            known_truth.read_checked(file)
    with pytest.raises(AuditError, match="no item has a column"):
        known_truth.read_matrix(file)


def test_matrix_and_shares_of_nested_pools(tmp_path):
    file = tmp_path / "hits.csv"
    full, blind = np.random.default_rng(0).integers(0, 2, (2, 60, 4))
    columns = {f"i{j}": full[j] for j in range(60)} | {f"<no_image>i{j}": blind[j] for j in range(60)}
    pd.DataFrame(columns, index=list("abcd")).to_csv(file)
    f, b = known_truth.read_matrix(file)
    assert (f == full).all() and (b == blind).all()
    shares = known_truth.share_table(f, b, sizes=(2, 4))
    assert shares["ties"].iloc[1] == pytest.approx((full.sum(1) == blind.sum(1)).mean())
    assert (shares[["any_low", "low"]].to_numpy() <= shares[["any_high", "high"]].to_numpy()).all()


def _run(tmp_path, data: str) -> str:
    """All that the notebook prints and shows, as a quick look, with its folder of data set."""
    book = json.loads(SOURCE.read_text())
    [cell] = [c for c in book["cells"] if any(line.startswith("data = ") for line in c["source"])]
    cell["source"] = [f"data = {data!r}\n" if line.startswith("data = ") else line for line in cell["source"]]
    copy = tmp_path / "known_truth.ipynb"
    copy.write_text(json.dumps(book))
    values = {"params": str(project_root() / "params/tinysee.yaml"), "outputs": str(tmp_path / "outputs"),
              "overrides": {"limit": 50}}  # fmt: skip
    run = run_notebook(copy, tmp_path / "done.ipynb", values, cwd=tmp_path)
    assert run.error == ""
    done = nbformat.read(tmp_path / "done.ipynb", as_version=4)
    outputs = [o for c in done.cells if c.cell_type == "code" for o in c.outputs]
    return "\n".join(o.get("text", "") or str(o.get("data", {})) for o in outputs)


def test_notebook_without_its_data_says_so(tmp_path):
    said = _run(tmp_path, str(tmp_path / "nowhere"))
    assert "MMLU-Redux is not here: skipped." in said and "MMMU is not here: skipped." in said
    assert said.count("not here, its part is skipped") == 2


def test_notebook_with_its_data(tmp_path, shared_data):
    folder = shared_data / "real"
    if not (folder / "mmlu_redux" / "mmlu_redux_half.csv.gz").is_file():
        pytest.skip("MMLU-Redux is not here")
    said = _run(tmp_path, str(folder))
    assert "2,794 items, 14 models" in said and "skipped" not in said
    assert "half_width" in said and "mixture" in said and "width with 24 models: 0.2" in said
