"""Questions read from the tables in which benchmarks are handed out, and pictures that stay in their files."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import tracemalloc
from pathlib import Path

import pandas as pd
import PIL.Image
import pytest

from auditlib.errors import AuditError
from auditlib.inference.items import items_table, read_question_items
from auditlib.readers.dataset import read_dataset
from auditlib.synth.embedded import materialise


def png(n: int) -> bytes:
    out = io.BytesIO()
    PIL.Image.new("RGB", (3, 3), (n, n, 0)).save(out, "PNG")
    return out.getvalue()


def b64(n: int) -> str:
    return base64.b64encode(png(n)).decode()


def sha(n: int) -> str:
    return hashlib.sha256(png(n)).hexdigest()


def tsv(path: Path, rows: list[dict]) -> Path:
    pd.DataFrame(rows).to_csv(path, sep="\t", index=False)
    return path


def row(index, image="", **more) -> dict:
    return {"index": index, "image": image, "question": f"q{index}", "A": "x", "B": "y", "answer": "B", **more}


def keys(items) -> list[list[str]]:
    return [[p.sha256 for p in i.pictures] for i in items]


def test_tinysee_joins_with_the_audits_items():
    path = materialise("tinysee", "unused") / "TinySee.tsv"
    items, audit = read_question_items(path), read_dataset(path)
    assert [i.item for i in items] == audit["item"].tolist()
    table = items_table(items)
    for column in ("question", "key", "answer_type", "stratum", "substratum", "row"):
        assert table[column].tolist() == audit[column].tolist(), column
    assert table["options"].tolist() == audit["options"].tolist() and table["k"].tolist() == audit["k"].tolist()
    for i in items[::50]:
        assert hashlib.sha256(i.pictures[0].load()).hexdigest() == i.pictures[0].sha256 == i.image_key
    assert "None" in {o for i in items for o in i.options}


def test_references_hint_and_ids(tmp_path):
    path = tsv(tmp_path / "B.tsv", [row(1, b64(1), hint="h"), row(2, "1"), row(3, "1.0", hint="")])
    items = read_question_items(path)
    assert keys(items) == [[sha(1)]] * 3 and [i.hint for i in items] == ["h", "", ""]
    assert [i.item for i in items] == ["1", "2", "3"] and items[0].letters == "AB" and items[0].k == 2


def test_rows_with_line_ends_quotes_and_blank_lines(tmp_path):
    path = tmp_path / "B.tsv"
    question = 'two\nlines, a "quote"\tand\x0ba tab\u2028end'
    with path.open("w", encoding="utf-8-sig", newline="") as f:
        writer = csv.writer(f, delimiter="\t", lineterminator="\r\n")
        writer.writerow(["index", "question", "image", "A", "B", "answer"])
        writer.writerow([1, question, b64(1), "x", "y", "A"])
        f.write("\r\n")
        writer.writerow([2, "ü", b64(2), "x", "y", "A"])
    items = read_question_items(path)
    assert items[0].question == question and [i.row for i in items] == [2, 4]
    assert keys(items) == [[sha(1)], [sha(2)]]
    assert [i.pictures[0].load() for i in items] == [png(1), png(2)]


def test_several_pictures_in_one_cell(tmp_path):
    path = tsv(tmp_path / "B.tsv", [row(1, str([b64(1), b64(2)])), row(2, json.dumps([b64(3)]))])
    items = read_question_items(path)
    assert keys(items) == [[sha(1), sha(2)], [sha(3)]]
    assert items[0].pictures[1].load() == png(2) and items[0].image_key not in (sha(1), sha(2))


@pytest.mark.parametrize("kind", ["bytes", "mapping", "base64", "list"])
def test_parquet(tmp_path, kind):
    def cell(n: int):
        return {
            "bytes": png(n),
            "mapping": {"bytes": png(n), "path": None},
            "base64": b64(n),
            "list": [{"bytes": png(n), "path": "x.png"}],
        }[kind]

    path = tmp_path / "b.parquet"
    frame = pd.DataFrame([row(n, **{"image": cell(n)}) for n in range(5)])
    frame.to_parquet(path, index=False, row_group_size=2)
    items = read_question_items(path)
    assert keys(items) == [[sha(n)] for n in range(5)]
    assert [i.pictures[0].load() for i in reversed(items)] == [png(n) for n in (4, 3, 2, 1, 0)]


def test_parquet_with_numbered_pictures_option_list_and_other_names(tmp_path):
    rows = [
        {"id": "v_1", "question": "q", "options": "['red', 'blue', 'green']", "gold": "C",
         "image_1": {"bytes": png(1), "path": "1.png"}, "image_2": {"bytes": png(2), "path": "2.png"}},
        {"id": "v_2", "question": "q", "options": "['red', 'blue']", "gold": "A",
         "image_1": {"bytes": png(3), "path": "3.png"}, "image_2": None},
    ]  # fmt: skip
    path = tmp_path / "b.parquet"
    pd.DataFrame(rows).to_parquet(path, index=False)
    items = read_question_items(path, columns={"answer": "gold"})
    assert keys(items) == [[sha(1), sha(2)], [sha(3)]]
    assert [(i.item, i.options, i.key) for i in items] == [
        ("v_1", ("red", "blue", "green"), "C"),
        ("v_2", ("red", "blue"), "A"),
    ]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl"])
def test_folder_of_pictures(tmp_path, suffix):
    (tmp_path / "images").mkdir()
    for n in (1, 2, 3):
        (tmp_path / "images" / f"{n}.png").write_bytes(png(n))
    rows = [
        {"index": 1, "question": "q", "A": "x", "B": "y", "answer": "A", "image_path": "1.png"},
        {"index": 2, "question": "q", "A": "x", "B": "y", "answer": "A", "image_path": "['images/2.png', '3.png']"},
    ]
    table, path = pd.DataFrame(rows), tmp_path / f"t{suffix}"
    if suffix == ".csv":
        table.to_csv(path, index=False)
    elif suffix == ".xlsx":
        table.to_excel(path, index=False, engine="xlsxwriter")
    else:
        table.to_json(path, orient="records", lines=True)
    assert keys(read_question_items(tmp_path)) == keys(read_question_items(path)) == [[sha(1)], [sha(2), sha(3)]]
    table.rename(columns={"image_path": "image"}).head(1).to_csv(tmp_path / "u.csv", index=False)
    assert keys(read_question_items(tmp_path / "u.csv", image_folder=tmp_path / "images")) == [[sha(1)]]


def test_where_and_a_text_only_table(tmp_path):
    rows = [row(1, split="dev"), row(2, split="val")]
    path = tsv(tmp_path / "B.tsv", [{k: v for k, v in r.items() if k != "image"} for r in rows])
    (item,) = read_question_items(path, where={"split": "val"})
    assert (item.item, item.pictures, item.image_key) == ("2", (), None)
    with pytest.raises(AuditError, match="no question is left"):
        read_question_items(path, where={"split": "test"})
    with pytest.raises(AuditError, match="where names the column 'spl'"):
        read_question_items(path, where={"spl": "test"})


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([row(1, b64(1)), row(2, "!" * 80)], r"B\.tsv, row 3: the picture is no base64.*Mend: write the row again"),
        ([row(1, b64(1)), row(2, base64.b64encode(b"text " * 30).decode())], r"row 3: the picture is no png, jpeg"),
        ([row(1, b64(1)), row(2, "9")], r"row 3: the picture refers to '9', which is no item"),
        ([row(1, "2"), row(2, "")], r"row 2: the picture refers to item '2', which has none"),
        ([row(1, b64(1)), row(2, "nowhere/2.png")], r"row 3: there is no image file 'nowhere/2.png'.*Mend: name the"),
        ([row(1, b64(1)), row(1, b64(1), A="z")], r"row 3: item '1' occurs twice with different options"),
        ([row("", b64(1))], r"row 2: a row without id"),
    ],
)
def test_mistakes_name_file_row_and_mend(tmp_path, rows, says):
    path = tsv(tmp_path / "B.tsv", rows)
    with pytest.raises(AuditError, match=says):
        read_question_items(path)


def test_files_that_are_no_tables_of_questions(tmp_path):
    with pytest.raises(AuditError, match="no table of questions"):
        read_question_items(tmp_path)
    tsv(tmp_path / "a.tsv", [row(1)])
    tsv(tmp_path / "b.tsv", [row(1)])
    with pytest.raises(AuditError, match=r"2 tables in this folder. Mend: name the table: a.tsv, b.tsv"):
        read_question_items(tmp_path)
    with pytest.raises(AuditError, match="no column 'gold'"):
        read_question_items(tmp_path / "a.tsv", columns={"answer": "gold"})
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(AuditError, match="not readable as parquet"):
        read_question_items(tmp_path / "c.parquet")
    pd.read_csv(tmp_path / "a.tsv", sep="\t").to_csv(tmp_path / "d.tsv.gz", sep="\t", index=False)
    with pytest.raises(AuditError, match=r"pictures are not read from a packed file.*gunzip"):
        read_question_items(tmp_path / "d.tsv.gz")


def test_a_changed_table_is_noticed(tmp_path):
    path = tsv(tmp_path / "B.tsv", [row(1, b64(1)), row(2, b64(2))])
    item = read_question_items(path)[1]
    tsv(path, [row(1, b64(2)), row(2, b64(1))])
    with pytest.raises(AuditError, match="changed since"):
        item.pictures[0].load()


def test_pictures_are_not_held(tmp_path):
    """300 pictures of 60 kB: what is kept of them is a few hundred bytes each."""
    path = tmp_path / "B.tsv"
    with path.open("w", newline="") as f:
        writer = csv.writer(f, delimiter="\t")
        writer.writerow(["index", "image", "question", "A", "B", "answer"])
        for n in range(300):
            writer.writerow([n, base64.b64encode(png(n % 256) + bytes(60_000)).decode(), "q", "x", "y", "A"])
    tracemalloc.start()
    items = read_question_items(path)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(items) == 300 and kept < 2_000_000
