"""Plain tables. Oracles: counts printed beside the real files, and small hand-made tables."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from auditlib.errors import AuditError
from auditlib.params import DataParams
from auditlib.readers import read_runs
from auditlib.readers.table import read_items, read_table

ROWS = [
    {"qid": "1", "who": "m", "run": "image", "said": "B", "gold": "(B)", "task": "t1"},
    {"qid": "2", "who": "m", "run": "image", "said": "None", "gold": "(A)", "task": "t2"},
    {"qid": "1", "who": "m", "run": "no_image", "said": "", "gold": "(B)", "task": "t1"},
    {"qid": "2", "who": "m", "run": "no_image", "said": "A", "gold": "(A)", "task": "t2"},
]
MAP = {"item": "qid", "model": "who", "condition": "run", "prediction": "said", "key": "gold", "stratum": "task"}
CONDITIONS = {"image": "full", "no_image": "blind"}


def write(path, rows, **how):
    table = pd.DataFrame(rows)
    if path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".xlsx":
        table.to_excel(path, index=False, engine="xlsxwriter")
    elif path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",", **how)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.xlsx", "t.jsonl"])
def test_every_format_gives_the_same_frames(tmp_path, name):
    data = DataParams(table=write(tmp_path / name, ROWS), columns=MAP, prefixes=CONDITIONS)
    runs = read_table(data)
    assert runs.responses["prediction"].tolist() == ["B", "None", "", "A"]
    assert runs.responses["status"].tolist() == ["ok", "ok", "missing", "ok"]
    assert runs.responses["condition"].tolist() == ["full", "full", "blind", "blind"]
    assert runs.responses["row"].tolist() == [2, 3, 4, 5]
    assert runs.items[["item", "key", "stratum", "answer_type"]].values.tolist() == [
        ["1", "B", "t1", "choice"], ["2", "A", "t2", "choice"]]  # fmt: skip
    assert runs.items["k"].isna().all()
    assert not len(runs.judgements)


def test_bom_newlines_in_fields_and_usual_names(tmp_path):
    path = tmp_path / "alpha.csv"
    path.write_bytes('\ufeffindex,prediction,answer,A,B\r\n7,"line one\nline two, ""B""",B,x,None\r\n'.encode())
    runs = read_table(DataParams(table=path))
    assert runs.responses[["item", "model", "condition", "prediction"]].values.tolist() == [
        ["7", "alpha", "full", 'line one\nline two, "B"']]  # fmt: skip
    assert runs.items["options"].tolist() == [["x", "None"]]
    assert runs.items["k"].tolist() == [2]


def test_options_inside_the_question_are_read(shared_data):
    path = shared_data / "real" / "mmstar_llava_next" / "llava_next_yi_34b_MMStar.xlsx"
    items = read_table(DataParams(table=path)).items
    assert len(items) == 1500 and items["options"].map(len).value_counts().to_dict() == {4: 1499, 3: 1}


def test_hits_become_judgements(tmp_path):
    rows = [{"item": i, "model": "m", "hit": h} for i, h in enumerate(["1", "0", "", "true", "0.5"])]
    runs = read_table(DataParams(table=write(tmp_path / "t.csv", rows)))
    assert runs.judgements["hit"].fillna(-1).tolist() == [1, 0, -1, 1, 0.5]
    assert set(runs.judgements["source"]) == {"unknown"}
    assert runs.responses["status"].tolist() == ["ok", "ok", "missing", "ok", "ok"]


def test_items_file_with_several_agreeing_rows(tmp_path):
    facts = [{"id": i, "options": json.dumps({"A": "x", "B": "None"}), "gold": "A"} for i in (1, 1, 2, 3)]
    items = write(tmp_path / "items.csv", facts)
    table = write(tmp_path / "t.csv", [{"item": i, "prediction": "A"} for i in (1, 2, 4)])
    runs = read_table(DataParams(table=table, items=items, item_columns={"item": "id", "key": "gold"}))
    assert runs.items["key"].fillna("").tolist() == ["A", "A", ""]
    assert runs.items["options"].tolist()[:2] == [["x", "None"]] * 2
    reasons = runs.coverage.set_index("reason")["n"]
    assert reasons["items without a row in the items file"] == 1
    assert reasons["rows of the items file that no run has"] == 1
    assert runs.inputs == (table, items)


def test_items_file_that_contradicts_itself(tmp_path):
    items = write(tmp_path / "items.csv", [{"id": 1, "gold": "A"}, {"id": 2, "gold": "A"}, {"id": 1, "gold": "B"}])
    with pytest.raises(AuditError, match=r"items.csv, row 4: item '1' has different key in rows 2 and 4"):
        read_items(items, {"item": "id", "key": "gold"})


def test_unmapped_texts_that_disagree_are_left_out(tmp_path):
    rows = [{"item": 1, "model": m, "prediction": "A", "category": c} for m, c in (("m", "x"), ("n", "y"))]
    runs = read_table(DataParams(table=write(tmp_path / "t.csv", rows)))
    assert "stratum" not in runs.items.columns
    assert runs.coverage.loc[runs.coverage["what"] == "conflict", "n"].tolist() == [1]
    with pytest.raises(AuditError, match="disagree in stratum"):
        read_table(DataParams(table=tmp_path / "t.csv", columns={"stratum": "category"}))


def test_copies(tmp_path):
    equal = [{"item": 1, "model": "m", "prediction": "A"}] * 2
    runs = read_table(DataParams(table=write(tmp_path / "equal.csv", equal)))
    assert len(runs.responses) == 1
    assert runs.coverage.loc[runs.coverage["what"] == "duplicate", "reason"].tolist() == [
        "row 3 repeats an earlier one"
    ]
    other = [equal[0], {**equal[0], "prediction": "B"}]
    with pytest.raises(AuditError, match=r"row 3: item '1' of m \(full\) occurs twice with different content"):
        read_table(DataParams(table=write(tmp_path / "other.csv", other)))
    repeats = [{**r, "try": t} for t, r in enumerate(other)]
    runs = read_table(DataParams(table=write(tmp_path / "repeats.csv", repeats), columns={"sample": "try"}))
    assert runs.responses["sample"].tolist() == [0, 1]


def test_blink(shared_data):
    path = shared_data / "real" / "blink_outputs" / "blink_val_predictions.csv.gz"
    out = ["GPT4V* concatenate images", "GeminiProVision* concatenate images"]
    columns = {"item": "idx", "key": "gold", "stratum": "task"}
    runs = read_runs(DataParams(table=path, columns=columns), benchmark="BLINK", exclude_models=out)
    assert runs.items["item"].nunique() == len(runs.items) == 1901
    assert runs.items["stratum"].nunique() == 14
    assert set(runs.items["key"]) == set("ABCD")
    assert runs.items["k"].isna().all()
    assert len(runs.models) == 19
    assert runs.responses.groupby("model").size().unique().tolist() == [1901]
    raw = pd.read_csv(path, dtype=str, keep_default_na=False)
    unread = raw["prediction"] == "(Z)"
    assert unread.sum() == 1306
    assert (runs.responses["prediction"] == "(Z)").sum() == (unread & ~raw["model"].isin(out)).sum() == 1222
    # the two excluded runs number their items differently, so that keys clash
    with pytest.raises(AuditError, match=r"'val_Art_Style_5' has different key in rows 6 and 1907.*exclude_models"):
        read_table(DataParams(table=path, columns=columns))
    excluded = runs.coverage[runs.coverage["what"] == "excluded"].set_index("model")["n"].to_dict()
    assert excluded == dict.fromkeys(out, 1108)


def test_chartqa_conditions_and_the_other_category_names(shared_data):
    path = shared_data / "real" / "chartqa_audit" / "chartqa_test_image_noimage_distractor.csv.gz"
    columns = {"item": "index", "key": "gold", "prediction": "pred", "hit": "correct"}
    prefixes = {"image": "full", "no_image": "blind", "distractor_image": "wrong_image"}
    runs = read_table(DataParams(table=path, columns=columns, prefixes=prefixes))
    assert len(runs.responses) == 16_500
    assert runs.responses.groupby("condition").size().to_dict() == {"blind": 8000, "full": 8000, "wrong_image": 500}
    # qwen2-vl-2b uses another partition (6 names): named, and never mixed into that of the three others
    conflict = runs.coverage[runs.coverage["what"] == "conflict"].set_index("model")
    assert conflict.index.tolist() == ["qwen2-vl-2b"] and conflict["reason"].str.startswith("category").all()
    table = pd.read_csv(path)
    others = table[table["model"] != "qwen2-vl-2b"].drop_duplicates("index").set_index("index")["category"]
    read = runs.items.set_index("item")["stratum"]
    assert read.to_dict() == {str(i): c for i, c in others.items()}


def test_hallusionbench_items_have_ids_of_five_fields(shared_data):
    path = shared_data / "real" / "hallusionbench" / "items_1129.csv"
    ids = "category+subcategory+set_id+figure_id+question_id"
    items = read_items(path, {"item": ids, "stratum": "category", "key": "gt_answer"})
    assert items["item"].nunique() == len(items) == 1129
    assert items["item"].iloc[0] == "VS_chart_0_0_0"
    assert items["stratum"].value_counts().to_dict() == {"VD": 591, "VS": 538}


def test_items_file_leaves_what_it_lacks_to_the_table(tmp_path):
    rows = [{"item": i, "prediction": "A", "A": "red", "B": "blue", "key": "B", "category": "own"} for i in (1, 2, 3)]
    (tmp_path / "i.csv").write_text("item,key,category\n1,A,file\n2,,\n")
    runs = read_table(DataParams(table=write(tmp_path / "t.csv", rows), items=tmp_path / "i.csv"))
    assert runs.items["key"].tolist() == ["A", "B", "B"]
    assert runs.items["stratum"].tolist() == ["file", "own", "own"]
    assert runs.items["options"].tolist() == [["red", "blue"]] * 3 and runs.items["k"].tolist() == [2, 2, 2]
    assert runs.coverage.set_index("reason").at["items without a row in the items file", "n"] == 1


def test_judge_chooses_verdicts_or_names_them(tmp_path):
    rows = [{"item": i, "model": "m", "judge": j, "hit": h} for i, j, h in
            ((1, "a", 1), (1, "b", 0), (2, "a", 0), (2, "b", 1), (3, "b", 1))]  # fmt: skip
    data = DataParams(table=write(tmp_path / "t.csv", rows))
    for judge, hits in (("a", [1, 0, -1]), ("b", [0, 1, 1])):
        runs = read_runs(data, benchmark="x", judge=judge)
        assert runs.judgements.set_index("item")["hit"].fillna(-1).to_dict() == dict(zip("123", hits))
        assert set(runs.judgements["judge"]) == {judge} and runs.provenance["judge"] == judge
    notes = read_table(data, judge="a").coverage.set_index("reason")["n"]
    assert notes["verdicts of other judges than 'a'"] == 3
    assert notes["replies without a verdict of judge 'a'"] == 1
    with pytest.raises(AuditError, match=r"t.csv: verdicts of several judges: a, b.*judge: NAME"):
        read_table(data)
    with pytest.raises(AuditError, match=r"no verdicts of judge 'c'.*judges here: a, b"):
        read_table(data, judge="c")
    plain = DataParams(table=write(tmp_path / "p.csv", [{"item": 1, "hit": 1}]))
    assert read_table(plain, judge="c").judgements["judge"].tolist() == ["c"]
    assert read_table(plain).judgements["judge"].tolist() == ["table"]


def test_status_words_in_any_spelling(tmp_path):
    words = ["error", "FAILED", "timeout", "Timed out", "missing", "truncated", "Content-Filter", "OK", ""]
    meant = ["failed"] * 4 + ["missing", "truncated", "filtered", "ok", "ok"]
    rows = [{"item": i, "prediction": "A", "status": w} for i, w in enumerate(words)]
    assert read_table(DataParams(table=write(tmp_path / "t.csv", rows))).responses["status"].tolist() == meant
    rows[1]["status"] = "weird"
    with pytest.raises(AuditError, match=r"u.csv, row 3: column 'status' holds unknown words: 'weird'"):
        read_table(DataParams(table=write(tmp_path / "u.csv", rows)))


def test_conditions_in_any_spelling_and_unusual_ones(tmp_path):
    values = ["Full", " BLIND", "Image-only", "no_image", "x"]
    rows = [{"item": 1, "prediction": "A", "condition": v} for v in values]
    data = DataParams(table=write(tmp_path / "t.csv", rows), prefixes={"x": "none", "y": "gray"})
    runs = read_table(data)
    assert runs.responses["condition"].tolist() == ["full", "blind", "image_only", "no_image", "none"]
    warned = runs.coverage[runs.coverage["what"] == "warning"]
    assert warned[["condition", "n"]].values.tolist() == [["no_image", 1], ["gray", 0]]
    assert "'no_image'" in warned["reason"].iloc[0] and "prefixes" in warned["reason"].iloc[0]


@pytest.mark.parametrize("column", ["A", "category", "key"])
def test_copies_must_agree_in_every_item_fact(tmp_path, column):
    row = {"item": 1, "model": "m", "prediction": "A", "A": "red", "B": "blue", "key": "A", "category": "x"}
    rows = [row, {**row, column: "B" if column == "key" else "other"}]
    data = DataParams(table=write(tmp_path / "t.csv", rows))
    if column == "category":  # not mapped: left out, and said
        runs = read_table(data)
        assert "conflict" in set(runs.coverage["what"]) and "stratum" not in runs.items
        data = DataParams(table=data.table, columns={"stratum": "category"})
    with pytest.raises(AuditError, match=r"row 3: item '1' of m \(full\) occurs twice with different content"):
        read_table(data)


def test_keys_that_are_the_text_of_an_option(tmp_path):
    facts = [("red", "blue", "red"), ("y", "x", "x"), ("x", "x", "x"), ("B", "A", "B"), ("red", "blue", "green")]
    rows = [{"item": i, "prediction": "A", "A": a, "B": b, "answer": key} for i, (a, b, key) in enumerate(facts)]
    runs = read_table(DataParams(table=write(tmp_path / "t.csv", rows)))
    assert runs.items["key"].tolist() == ["A", "B", "X", "B", "green"]
    assert runs.coverage.set_index("reason").at["keys are the text of an option; its letter is taken", "n"] == 2


def test_row_without_model(tmp_path):
    rows = [{"item": 1, "model": "m", "prediction": "A"}, {"item": 1, "model": " ", "prediction": "A"}]
    with pytest.raises(AuditError, match=r"t.csv, row 3: a row without model"):
        read_table(DataParams(table=write(tmp_path / "t.csv", rows)))


def test_large_repeat_numbers(tmp_path):
    rows = [{"item": 1, "prediction": "A", "sample": "9" * 30}]
    with pytest.raises(AuditError, match=r"t.csv, row 2: sample '9{30}' is no number of a repeat"):
        read_table(DataParams(table=write(tmp_path / "t.csv", rows)))
