"""Wide 0/1 matrices. Oracles: published counts of the real matrix and arrays written by the test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from auditlib.errors import AuditError
from auditlib.params import DataParams, Params
from auditlib.readers import read_runs
from auditlib.readers.matrix import read_matrix
from auditlib.reading import read_pool

PREFIXES = {"<no_image>": "blind", "<no_question>": "image_only", "<no_info>": "none"}


def mmmu(shared_data, **more):
    return DataParams(
        matrix=shared_data / "real" / "m3irt" / "mmmu" / "normal_mmmu.csv",
        prefixes=PREFIXES,
        items=shared_data / "real" / "mmmu_outputs" / "mmmu_val_llava13b_qwenvl.csv",
        item_columns={"item": "id", "key": "gold", "options": "options", "stratum": "subject"},
        **more,
    )


def test_mmmu_matrix_with_keys_options_and_subjects(shared_data):
    got = read_runs(mmmu(shared_data), benchmark="MMMU")
    assert len(got.models) == 24
    assert set(got.hits) == {"full", "blind", "image_only", "none"}
    assert all(h.shape == (847, 24) and h.dtype == np.uint8 for h in got.hits.values())
    assert all(m is None for m in got.missing.values())
    full, blind = got.hits["full"].sum(axis=1), got.hits["blind"].sum(axis=1)
    assert round(100 * (full == blind).mean(), 2) == 17.83
    null = (np.bincount(full, minlength=25) / 847 * np.bincount(blind, minlength=25) / 847).sum()
    assert round(100 * null, 2) == 4.14
    items = got.items
    assert items["item"].is_unique and (items["answer_type"] == "choice").all()
    assert sorted(items["k"].unique()) == [2, 3, 4, 5, 6, 7, 9]
    assert round((1 / items["k"].astype(float)).mean(), 3) == 0.262
    assert items["stratum"].nunique() == 30
    counts = got.coverage.set_index("what")["n"]
    assert counts["joined"] == 847 and counts["excluded"] == 53


def test_mathvista_matrix_without_bom(shared_data):
    path = shared_data / "real" / "m3irt" / "mathvista" / "normal_mathvista.csv"
    got = read_matrix(DataParams(matrix=path, prefixes=PREFIXES))
    assert {c: h.shape for c, h in got.hits.items()} == dict.fromkeys(("full", *PREFIXES.values()), (1000, 24))


def test_forgotten_prefix_is_reported(shared_data):
    data = mmmu(shared_data).model_copy(update={"prefixes": {"<no_image>": "blind"}})
    got = read_matrix(data)
    assert got.hits["full"].shape == (3 * 847, 24)
    lacking = got.coverage[got.coverage["reason"].str.startswith("items without a column")]
    assert lacking[["condition", "n"]].values.tolist() == [["blind", 2 * 847]]
    warnings = got.coverage[got.coverage["reason"].str.startswith("items that start with")]
    assert warnings["n"].tolist() == [847, 847]
    assert [p in r for p, r in zip(("<no_info>", "<no_question>"), warnings["reason"])] == [True, True]


def test_exclude_models(shared_data):
    got = read_matrix(mmmu(shared_data), exclude=["minimax01"])
    assert "minimax01" not in got.models and got.hits["full"].shape == (847, 23)
    assert got.coverage.loc[got.coverage["model"] == "minimax01", "what"].tolist() == ["excluded"]


def test_missing_cells_and_items_that_one_condition_lacks(tmp_path):
    (tmp_path / "m.csv").write_text("name,1,2,b:1\nx,1,,0\ny,0,1.0,true\n")
    got = read_matrix(DataParams(matrix=tmp_path / "m.csv", prefixes={"b:": "blind"}))
    assert got.items["item"].tolist() == ["1", "2"] and got.models == ["x", "y"]
    assert got.hits["full"].tolist() == [[1, 0], [0, 1]]
    assert got.missing["full"].tolist() == [[False, False], [True, False]]
    assert got.hits["blind"].tolist() == [[0, 1], [0, 0]]
    assert got.missing["blind"].tolist() == [[False, False], [True, True]]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".tsv"])
@pytest.mark.parametrize("kind", ["uint8", "bool", "float64", "str"])
def test_rows_are_items(tmp_path, rng, suffix, kind):
    hits = rng.integers(0, 2, size=(50, 6), dtype=np.uint8)
    table = pd.DataFrame(hits.astype(kind), columns=[*"abc", "blind a", "blind b", "blind c"])
    table.insert(0, "id", [f"i{i}" for i in range(50)])
    path = tmp_path / f"m{suffix}"
    if suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    got = read_matrix(DataParams(matrix=path, rows="items", prefixes={"blind ": "blind"}))
    assert got.models == ["a", "b", "c"]
    assert got.items["item"].tolist() == [f"i{i}" for i in range(50)]
    np.testing.assert_array_equal(got.hits["full"], hits[:, :3])
    np.testing.assert_array_equal(got.hits["blind"], hits[:, 3:])


def test_parquet_nulls_are_missing(tmp_path):
    table = pd.DataFrame({"id": [1, 2, 3], "m": pd.array([1, None, 0], dtype="Int64"), "n": [1.0, 0.0, np.nan],
                          "o": pd.array([True, None, False], dtype="boolean")})  # fmt: skip
    table.to_parquet(tmp_path / "m.parquet")
    got = read_matrix(DataParams(matrix=tmp_path / "m.parquet", rows="items"))
    assert got.hits["full"].tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert got.missing["full"].tolist() == [[False] * 3, [True, False, True], [False, True, False]]


@pytest.mark.parametrize(
    ("text", "message"),
    [("n,1,2\nx,1,0\ny,2,1\n", "row 3: column '1' holds '2'; a matrix holds 0, 1 or nothing"),
     ("n,1,2\nx,1,0\ny,1,B\n", "row 3: column '2' holds 'B'"),
     ("n,1,2\nx,1,0.5\n", "row 2: column '2' holds '0.5'"),
     ("n,1,2\nx,1,0\nx,1,1\n", "row 3: 'x' occurs twice in the first column"),
     ("n,1,1.0\nx,1,0\n", "row 1: column '1' occurs twice in one condition"),
     ("n,1,2\n,1,0\n", "row 2: a row without a name"), ("n,1,2\n", "no rows below the header")],
)  # fmt: skip
def test_wrong_cells_name_row_and_column(tmp_path, text, message):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(AuditError) as e:
        read_matrix(DataParams(matrix=tmp_path / "m.csv"))
    assert message in str(e.value) and "m.csv" in str(e.value)


def test_wrong_cell_in_parquet(tmp_path):
    pd.DataFrame({"id": ["a", "b"], "m": [0, 3]}).to_parquet(tmp_path / "m.parquet")
    with pytest.raises(AuditError, match="row 3: column 'm' holds '3'"):
        read_matrix(DataParams(matrix=tmp_path / "m.parquet", rows="items"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_mapped_columns_describe_the_items_of_an_items_matrix(tmp_path, kind):
    table = pd.DataFrame({"id": ["a", "b"], "cat": ["x", "y"], "gold": ["A", "B"], "m1": [1, 0], "blind|m1": [0, 1]})
    path = tmp_path / f"m.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, index=False)
    data = DataParams(
        matrix=path,
        rows="items",
        prefixes={"blind|": "blind"},
        columns={"item": "id", "stratum": "cat", "key": "gold"},
    )
    m = read_matrix(data)
    assert m.models == ["m1"]
    assert m.items["stratum"].astype(str).tolist() == ["x", "y"]
    assert m.items["key"].tolist() == ["A", "B"]
    assert m.hits["blind"][:, 0].tolist() == [0, 1]
    with pytest.raises(AuditError, match="no column 'kat'"):
        read_matrix(data.model_copy(update={"columns": {"item": "id", "stratum": "kat"}}))


def test_gaps_are_in_the_coverage(tmp_path):
    (tmp_path / "m.csv").write_text("name,1,2,b:1,b:3\nx,1,,0,1\ny,0,1.0,true,\nz,,,1,1\n")
    cover = read_matrix(DataParams(matrix=tmp_path / "m.csv", prefixes={"b:": "blind"})).coverage
    warned = cover[cover["what"] == "warning"]
    assert warned[["condition", "model", "item", "n"]].values.tolist() == [
        ["full", "", "3", 1], ["full", "", "", 3], ["full", "z", "", 3], ["blind", "", "2", 1], ["blind", "", "", 1]
    ]  # fmt: skip
    assert warned["reason"].tolist()[:3] == [
        "items without a column in this condition, which only blind has", "empty cells", "a model without a cell"
    ]  # fmt: skip
    (tmp_path / "i.csv").write_text("item,m,n,b:m\n1,1,,0\n2,0,,1\n")
    cover = read_matrix(DataParams(matrix=tmp_path / "i.csv", rows="items", prefixes={"b:": "blind"})).coverage
    warned = cover[cover["what"] == "warning"]
    assert warned[["condition", "model", "n"]].values.tolist() == [["full", "", 2], ["full", "n", 2], ["blind", "n", 1]]


def test_empty_matrix_and_a_prefix_without_columns(tmp_path):
    (tmp_path / "m.csv").write_text("name,1,2\nx,,\n")
    with pytest.raises(AuditError, match=r"m.csv: every cell of the matrix is empty"):
        read_matrix(DataParams(matrix=tmp_path / "m.csv"))
    (tmp_path / "p.csv").write_text("name,b_1,2\nx,1,0\n")
    with pytest.raises(AuditError, match=r"no column starts with the prefix 'b:'.*columns start with 'b_1', '2'"):
        read_matrix(DataParams(matrix=tmp_path / "p.csv", prefixes={"b:": "blind"}))


def test_items_file_wins_over_mapped_columns_where_it_has_a_value(tmp_path):
    (tmp_path / "m.csv").write_text("id,cat,m1\na,x,1\nb,y,0\n")
    (tmp_path / "i.csv").write_text("item,stratum,A,B,key\na,new,red,blue,blue\n")
    columns = {"item": "id", "stratum": "cat"}
    data = DataParams(matrix=tmp_path / "m.csv", rows="items", columns=columns, items=tmp_path / "i.csv")
    got = read_runs(data, benchmark="x", judge="rule")
    assert got.items["stratum"].tolist() == ["new", "y"] and got.items["key"].iloc[0] == "B"
    assert got.coverage.set_index("reason").at["keys are the text of an option; its letter is taken", "n"] == 1
    assert got.provenance == {"judge": "rule"}


def test_hits_stay_with_their_model_where_the_params_order_models(tmp_path):
    (tmp_path / "m.csv").write_text("name,1,2,b:1,b:2\nx,1,1,0,\ny,0,0,1,1\n")
    data = {"matrix": tmp_path / "m.csv", "prefixes": {"b:": "blind"}}
    pool = read_pool(Params(pool="p", benchmark="B", data=data, models=[{"name": "y", "provider": "P"}]))
    assert pool.model_names == ["y", "x"]
    assert pool.arm.hits["full"].T.tolist() == [[0, 0], [1, 1]]
    assert pool.arm.hits["blind"].T.tolist() == [[1, 1], [0, 0]]
    assert pool.arm.trials["blind"].T.tolist() == [[1, 1], [1, 0]]
