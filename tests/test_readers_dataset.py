"""The dataset's own table. Oracle: the published counts of TinySee, and pictures encoded by the test."""

from __future__ import annotations

import base64

import pandas as pd
import pytest

from auditlib.errors import AuditError
from auditlib.readers.dataset import read_dataset, read_images
from auditlib.readers.vlmevalkit import read_vlmevalkit
from auditlib.synth.embedded import materialise, truth


@pytest.fixture(scope="module")
def tinysee():
    return materialise("tinysee", "unused") / "TinySee.tsv"


def test_tinysee_options_as_written(tinysee):
    items = read_dataset(tinysee).set_index("item")
    known = truth().set_index("index")
    assert len(items) == 300
    assert items["stratum"].value_counts().to_dict() == {"color": 130, "count": 60, "shape": 55, "spatial": 55}
    assert items["key"].value_counts().to_dict() == {"B": 91, "C": 82, "A": 64, "D": 63}
    assert (items["key"] == known["key"].reindex(items.index)).all()
    assert (items["k"] == 3).sum() == (known["planted"] == "three_options").sum() == 10
    lost = items.loc[known.index[known["planted"] == "none_key"]]
    assert [o["ABCD".index(k)] for o, k in zip(lost["options"], lost["key"])] == ["None"] * 3
    assert items["image_key"].str.fullmatch(r"[0-9a-f]{64}").all()


def test_pictures_are_read_when_asked(tinysee):
    got = read_images(tinysee, ["53", "0", "no such"])
    assert sorted(got) == ["0", "53"]
    assert all(b.startswith(b"\x89PNG\r\n\x1a\n") for b in got.values())


def test_pictures_given_as_another_row(shared_data):
    path = shared_data / "toolkit_runs" / "bench" / "TinySee_circular.tsv"
    items = read_dataset(path)
    assert len(items) == 240 and items["cluster"].nunique() == 60
    assert (items.groupby("cluster")["image_key"].nunique() == 1).all()
    got = read_images(path, ["3000004", "4"])
    assert got["3000004"] == got["4"]


def test_table_without_pictures(shared_data):
    items = read_dataset(shared_data / "toolkit_runs" / "bench" / "TinySee_text.tsv")
    assert len(items) == 300 and "image_key" not in items.columns


def picture(n):
    return base64.b64encode(bytes([n]) * 60).decode()


def test_references_and_copies(tmp_path):
    path = tmp_path / "d.tsv"
    rows = [("b", "a", "q2"), ("a", picture(1), "q1"), ("c", picture(2), "q3"), ("a", picture(1), "q1")]
    pd.DataFrame(rows, columns=["index", "image", "question"]).to_csv(path, sep="\t", index=False)
    items = read_dataset(path).set_index("item")
    assert len(items) == 3
    assert items.at["b", "image_key"] == items.at["a", "image_key"] != items.at["c", "image_key"]
    assert read_images(path, ["b"]) == {"b": bytes([1]) * 60}


@pytest.mark.parametrize("name", ["d.parquet", "d.tsv.gz", "d.csv"])
def test_other_formats(tmp_path, name):
    table = pd.DataFrame({"Index": [1, 2], "Image": [picture(1), "1"], "A": ["None", "x"], "Answer": ["A", "A"]})
    if name.endswith("parquet"):
        table.to_parquet(tmp_path / name)
    else:
        table.to_csv(tmp_path / name, sep="\t" if ".tsv" in name else ",", index=False)
    items = read_dataset(tmp_path / name)
    assert items["options"].tolist() == [["None"], ["x"]] and items["image_key"].nunique() == 1
    assert read_images(tmp_path / name, ["2"]) == {"2": bytes([1]) * 60}


def test_reference_to_nothing(tmp_path):
    path = tmp_path / "d.tsv"
    pd.DataFrame([("a", "zz")], columns=["index", "image"]).to_csv(path, sep="\t", index=False)
    with pytest.raises(AuditError, match=r"d.tsv, row 2: the picture refers to item 'zz', which has none"):
        read_dataset(path)
    assert read_images(path, ["a"]) == {}


def test_conflicting_copies_are_refused(tmp_path):
    path = tmp_path / "d.tsv"
    pd.DataFrame([("a", "A", "x"), ("a", "B", "x")], columns=["index", "answer", "A"]).to_csv(
        path, sep="\t", index=False
    )
    with pytest.raises(AuditError, match=r"row 3: item 'a' occurs twice with different key; the first is row 2"):
        read_dataset(path)


def test_pictures_given_twice_are_one(tmp_path):
    """Shared pictures are visible by reference and by content, strata and clusters by VLMEvalKit's column names."""
    path = tmp_path / "d.tsv"
    rows = [
        ("0", picture(1), "A", "c", "fine"),
        ("1", picture(1), "B", "c", "fine"),
        ("2", "0", "B", "d", "coarse"),
        ("1000000", "0", "B", "c", "fine"),
    ]
    pd.DataFrame(rows, columns=["index", "image", "answer", "category", "l2-category"]).to_csv(
        path, sep="\t", index=False
    )
    items = read_dataset(path).set_index("item")
    assert items["image_key"].nunique() == 1
    assert items["stratum"].tolist() == ["c", "c", "d", "c"] and items.at["2", "substratum"] == "coarse"
    assert items.at["1000000", "cluster"] == items.at["0", "cluster"] == "0"


def test_localised_dataset_is_found(write_run, toy_rows, tmp_path):
    """Datasets above a gigabyte lie beside their pictures as BENCHMARK_local.tsv, with paths."""
    write_run("m", toy_rows)
    table = pd.DataFrame(toy_rows).drop(columns="prediction").assign(image_path=["a.png", "a.png", "b.png", "c.png"])
    table.to_csv(tmp_path / "results" / "Toy_local.tsv", sep="\t", index=False)
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.dataset["image_key"].tolist() == ["a.png", "a.png", "b.png", "c.png"]
    assert runs.inputs[0].name == "Toy_local.tsv"


def test_another_version_of_the_dataset_is_left_to_be_said(write_run, toy_rows, tmp_path):
    """Both keys and both texts come through, so that joining can say that they differ."""
    write_run("m", toy_rows)
    later = pd.DataFrame(toy_rows).drop(columns="prediction").assign(answer=["C", "A", "A", "D"], D="gray")
    later.to_csv(tmp_path / "results" / "Toy.tsv", sep="\t", index=False)
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.dataset["key"].tolist() == ["C", "A", "A", "D"] and runs.items["key"].tolist() == ["B", "A", "A", "D"]
    assert runs.dataset["options"].iloc[0][3] == "gray" and runs.items["options"].iloc[0][3] == "grey"


def test_lists_of_answers(tmp_path):
    """A list of one letter is a list of answers, not a key in brackets; an option text in brackets stays one."""
    path = tmp_path / "d.tsv"
    rows = [("0", "['X']", "", ""), ("1", "['a', 'b']", "", ""), ("2", "(B)", "x", "y"), ("3", "[1]", "[1]", "[2]")]
    pd.DataFrame(rows, columns=["index", "answer", "A", "B"]).to_csv(path, sep="\t", index=False)
    items = read_dataset(path)
    assert items["key"].tolist() == ["X", "a", "B", "A"]
    assert items["answer_type"].tolist() == ["open", "open", "choice", "choice"]
    assert items["references"].tolist() == [["X"], ["a", "b"], None, None]
