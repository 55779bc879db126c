"""A user's mistake is one clear line that names the file, the row where there is one, and the mend."""

from __future__ import annotations

import gzip
import pickle

import pandas as pd
import pytest
import xlsxwriter

from auditlib.errors import AuditError
from auditlib.params import DataParams
from auditlib.readers.files import open_table
from auditlib.readers.table import read_table
from auditlib.readers.vlmevalkit import read_vlmevalkit


def refusal(call, *args, **kwargs) -> str:
    with pytest.raises(AuditError) as e:
        call(*args, **kwargs)
    text = str(e.value)
    assert "\n" not in text
    assert "Mend: " in text
    return text


def test_missing_file_and_folder(tmp_path):
    assert "no.csv: there is no such file" in refusal(open_table, tmp_path / "no.csv")
    assert "this is a folder" in refusal(open_table, tmp_path)
    (tmp_path / "link.csv").symlink_to(tmp_path / "gone.csv")
    assert "a link that leads nowhere" in refusal(open_table, tmp_path / "link.csv")
    assert "no such results folder" in refusal(read_vlmevalkit, tmp_path / "no", "Toy")
    (tmp_path / "f.txt").write_text("x")
    assert "a results folder was expected" in refusal(read_vlmevalkit, tmp_path / "f.txt", "Toy")


def test_wrong_sheet(write_run, toy_rows):
    path = write_run("m", toy_rows)
    assert "m_Toy.xlsx: there is no sheet 'Runs'. Mend: sheets here: Sheet1" in refusal(open_table, path, "Runs")
    assert len(open_table(path, "Sheet1")) == 4
    csv = path.with_suffix(".csv")
    csv.write_text("a\n1\n")
    assert "has no sheet" in refusal(open_table, csv, "Sheet1")


def test_pickles_under_any_name(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "opened"), "w"))

    for name in ("a.pkl", "a.xlsx", "a.csv"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        text = refusal(open_table, tmp_path / name)
        assert f"{name}: a pickle is never opened" in text
        assert f"pd.read_pickle('{name}')).to_csv('a.tsv'" in text
    run = tmp_path / "results" / "m"
    run.mkdir(parents=True)
    (run / "m_Toy.pkl").write_bytes(pickle.dumps(Bomb()))
    assert "m_Toy.pkl: a pickle" in refusal(read_vlmevalkit, tmp_path / "results", "Toy")
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize("name", ["e.csv", "e.xlsx", "e.json", "e.parquet"])
def test_empty_file(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    assert f"{name}: the file is empty (0 bytes)" in refusal(open_table, tmp_path / name)


def test_files_without_rows(tmp_path):
    (tmp_path / "h.csv").write_text("index,prediction\n")
    assert "no rows below the header" in refusal(open_table, tmp_path / "h.csv")
    (tmp_path / "b.csv").write_text("\n\n")
    assert "names no columns" in refusal(open_table, tmp_path / "b.csv")
    for name, header in (("h.xlsx", ["index"]), ("s.xlsx", [])):
        book = xlsxwriter.Workbook(tmp_path / name)
        book.add_worksheet("Sheet1").write_row(0, 0, header)
        book.close()
        assert "no rows below" in (t := refusal(open_table, tmp_path / name)) or "is empty" in t


def test_damaged_spreadsheets(write_run, toy_rows, tmp_path):
    path = write_run("m", toy_rows)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "m_Toy.xlsx: the spreadsheet is truncated" in refusal(read_vlmevalkit, tmp_path / "results", "Toy")
    path.write_bytes(b"index,prediction\n1,B\n")
    assert "this is no spreadsheet" in refusal(read_vlmevalkit, tmp_path / "results", "Toy")


def test_not_utf8(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes(b"index,prediction\n1,B\n2,caf\xe9\n")
    assert "latin.csv, row 3: not UTF-8: byte 0xe9 at position 6 of the line" in refusal(open_table, path)
    with gzip.open(tmp_path / "latin.csv.gz", "wb") as f:
        f.write(path.read_bytes())
    assert "row 3: not UTF-8" in refusal(open_table, tmp_path / "latin.csv.gz")
    (tmp_path / "wide.csv").write_text("index,prediction\n1,B\n", encoding="utf-16")
    assert "UTF-16" in refusal(open_table, tmp_path / "wide.csv")
    (tmp_path / "x.json").write_bytes(b'[{"a": "caf\xe9"}]')
    assert "x.json, row 1: not UTF-8" in refusal(open_table, tmp_path / "x.json")


def test_broken_text_tables(tmp_path):
    for text, message in (
        ("a,b\n1,2\n3,4,5\n", "row 3: 3 fields where the header has 2"),
        ("a,b\n1,2,3\n4,5,6\n", "row 2: rows have more fields than the header"),
        ('a,b\n1,2\n3,"4\n', "row 3: a quote is never closed"),
        ("a,a\n1,2\n", "row 1: column 'a' occurs twice"),
    ):
        (tmp_path / "t.csv").write_text(text)
        assert f"t.csv, {message}" in refusal(open_table, tmp_path / "t.csv")


def test_blank_lines_do_not_shift_row_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("item,prediction\n1,A\n\n2,B\n")
    assert read_table(DataParams(table=tmp_path / "t.csv")).responses["row"].tolist() == [2, 4]


def test_broken_json_gzip_parquet(tmp_path):
    (tmp_path / "t.json").write_text('[{"a": 1},\n {"a": ')
    assert "t.json, row 2: not readable as JSON" in refusal(open_table, tmp_path / "t.json")
    (tmp_path / "u.json").write_text("[1, 2]")
    assert "no list of records" in refusal(open_table, tmp_path / "u.json")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 500)[:40])
    assert "gzip file is damaged" in refusal(open_table, tmp_path / "t.csv.gz")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 nonsense")
    assert "not readable as parquet" in refusal(open_table, tmp_path / "t.parquet")
    (tmp_path / "t.docx").write_bytes(b"x")
    assert "files of kind '.docx' are not read" in refusal(open_table, tmp_path / "t.docx")


def test_no_id_column(write_run, toy_rows, tmp_path):
    write_run("m", [{k: v for k, v in r.items() if k != "index"} for r in toy_rows])
    text = refusal(read_vlmevalkit, tmp_path / "results", "Toy")
    assert "m_Toy.xlsx, row 1: no id column 'index' (columns: question, A, B" in text
    (tmp_path / "t.csv").write_text("number,prediction\n1,B\n")
    text = refusal(read_table, DataParams(table=tmp_path / "t.csv"))
    assert "t.csv, row 1: no id column (item)" in text and "columns: {item: NAME} (columns here: number" in text


def test_no_prediction_column(write_run, toy_rows, tmp_path):
    write_run("m", [{k: v for k, v in r.items() if k != "prediction"} for r in toy_rows])
    assert "no column 'prediction'" in refusal(read_vlmevalkit, tmp_path / "results", "Toy")
    (tmp_path / "t.csv").write_text("item,said\n1,B\n")
    assert "neither a prediction nor a hit column" in refusal(read_table, DataParams(table=tmp_path / "t.csv"))


def test_column_map_mistakes(tmp_path):
    (tmp_path / "t.csv").write_text("item,said\n1,B\n")
    text = refusal(read_table, DataParams(table=tmp_path / "t.csv", columns={"prediction": "sad"}))
    assert "there is no column 'sad' (for prediction). Mend: columns here: item, said" in text
    text = refusal(read_table, DataParams(table=tmp_path / "t.csv", columns={"predictoin": "said"}))
    assert "columns maps the unknown name 'predictoin'" in text


def test_duplicate_ids_with_different_content(write_run, toy_rows, tmp_path):
    for change, what in (({"prediction": "D"}, "prediction"), ({"answer": "C"}, "key"), ({"B": "teal"}, "options")):
        write_run("m", [*toy_rows, {**toy_rows[2], **change}])
        text = refusal(read_vlmevalkit, tmp_path / "results", "Toy")
        assert f"m_Toy.xlsx, row 6: item '2' occurs twice with different {what}; the first is row 4" in text


def test_verdicts_that_are_none(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    write_run("m", [{**r, "hit": "maybe", "log": "x"} for r in toy_rows], tail="_gpt_result")
    text = refusal(read_vlmevalkit, tmp_path / "results", "Toy")
    assert "m_Toy_gpt_result.xlsx, row 2: column 'hit' holds 'maybe', no verdict between 0 and 1" in text
    write_run("m", toy_rows, tail="_gpt_result")
    assert "no verdict column" in refusal(read_vlmevalkit, tmp_path / "results", "Toy")


def test_row_without_id(write_run, toy_rows, tmp_path):
    write_run("m", [toy_rows[0], {**toy_rows[1], "index": None}])
    assert "m_Toy.xlsx, row 3: a row without id" in refusal(read_vlmevalkit, tmp_path / "results", "Toy")


def test_no_such_benchmark(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows, bench="Toy_circular")
    assert "no run of 'Toy' to read. Mend: benchmarks here: Toy_circular" in refusal(
        read_vlmevalkit, tmp_path / "results", "Toy"
    )


def test_items_file_of_another_benchmark(tmp_path):
    (tmp_path / "t.csv").write_text("item,prediction\na,B\n")
    (tmp_path / "i.csv").write_text("item,key\nz,B\n")
    text = refusal(read_table, DataParams(table=tmp_path / "t.csv", items=tmp_path / "i.csv"))
    assert "no id of the items file occurs in the runs" in text


def test_options_that_are_no_list(tmp_path):
    (tmp_path / "t.csv").write_text("item,prediction,options\n1,B,red; blue\n")
    assert "t.csv, row 2: options 'red; blue'" in refusal(read_table, DataParams(table=tmp_path / "t.csv"))


def test_all_replies_empty_are_read_and_counted(write_run, toy_rows, tmp_path):
    """Not an error of the reader: the rows are there, every one of them is missing."""
    write_run("m", [{**r, "prediction": None} for r in toy_rows])
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert set(runs.responses["status"]) == {"missing"}
    assert runs.coverage.set_index("reason").at["empty replies", "n"] == 4


def test_blank_rows_are_left_out_and_numbers_stay(tmp_path):
    pd.DataFrame({"item": ["1", None, "3"], "prediction": ["A", None, "B"]}).to_excel(
        tmp_path / "t.xlsx", index=False, engine="xlsxwriter"
    )
    runs = read_table(DataParams(table=tmp_path / "t.xlsx"))
    assert runs.responses["row"].tolist() == [2, 4]


def test_columns_that_differ_in_capitals_only(write_run, toy_rows, tmp_path):
    write_run("m", [{**r, "ANSWER": "A"} for r in toy_rows])
    text = refusal(read_vlmevalkit, tmp_path / "results", "Toy")
    assert "m_Toy.xlsx, row 1: columns 'answer' and 'ANSWER' have the same name" in text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[" * 200_000, "brackets are nested too deeply"),
        ("a.json", '[{"index": ' + "1" * 6000 + "}]", "a number has too many digits"),
        ("a.json", '{"index": {"0": 1}, "prediction": ["A", "B"]}', "columns differ in length or kind"),
        ("a.json", '{"index": [1], "prediction": ["A", "B"]}', "columns differ in length or kind"),
        (
            "a.json",
            '[{"item": "1"}, {"item": "x \\ud83d"}]',
            r"row 3: column 'item' holds half of a character (\ud83d)",
        ),
        ("a.jsonl", '{"item": 1}\n' + "[" * 200_000, "brackets are nested too deeply"),
        ("a.tsv", '"index\tprediction\n' + "x" * 200_000, "row 1: row 1 is too long (a quote may never be closed)"),
    ],
    ids=["deep", "digits", "mixed", "ragged", "surrogate", "deep line", "quote"],
)
def test_damaged_text_files(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    assert message in refusal(open_table, tmp_path / name)


def test_only_a_newline_ends_a_json_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"item": 1, "prediction": "a\u2028b"}\r\n{"item": 2, "prediction": "c"}\n')
    assert open_table(tmp_path / "a.jsonl")["prediction"].tolist() == ["a\u2028b", "c"]


def test_half_characters_spelled_out_stay_spelled_out(tmp_path):
    (tmp_path / "a.csv").write_text("item,prediction\n1,_xD83D__x0041_\n")
    assert open_table(tmp_path / "a.csv")["prediction"].tolist() == ["_xD83D_A"]
