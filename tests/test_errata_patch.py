"""The patcher: exactly the confirmed rows change, and of those only the key; everything else stays to the byte."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from auditlib.__main__ import main
from auditlib.errata.changes import with_key
from auditlib.errata.patch import patch
from auditlib.errata.table import COLUMNS, Errata, read_errata
from auditlib.errors import AuditError
from auditlib.readers.dataset import read_dataset

TINYSEE = ROOT / "auditlib" / "synth" / "data" / "tinysee" / "TinySee.tsv"


def errata(*rows: tuple[str, str, str, str, str], digest: str = "") -> Errata:
    """Rows (item, old key, proposed key, reason, status)."""
    table = pd.DataFrame(rows, columns=["item", "old_key", "proposed_key", "reason", "status"], dtype="str")
    table = table.assign(dataset_sha256=digest).reindex(columns=list(COLUMNS), fill_value="").astype("str")
    return Errata(table, {"benchmark": "Toy"})


def confirmed(*changes: tuple[str, str, str]) -> Errata:
    return errata(*((i, old, new, "wrong_key", "confirmed") for i, old, new in changes))


def run(made: Errata, source: Path, to: Path, **more):
    table = source.parent / "errata.csv"
    made.rows.to_csv(table, index=False)
    return patch(made, table, source, to, **more)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Eight pairs of items, as a toolkit writes them: quotes, a tab and a line break in texts, pictures, CR LF."""
    picture = "iVBORw0KGgo" + "A" * 200_000
    rows = ["index\tquestion\tA\tB\tanswer\timage"]
    for i in range(1, 17):
        key, image = "AB"[(i + 1) % 2], picture if i % 2 else str(i - 1)
        question = {3: '"He said ""no""\tand left"', 5: '"two\r\nlines"', 7: 'a 5" screen'}.get(i, f"q{i}")
        rows.append(f"{i}\t{question}\tleft\tright\t{key}\t{image}")
    path = tmp_path / "Pairs.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + ("\r\n".join(rows) + "\r\n").encode())
    return path


# ------------------------------------------------------------------------------------------------ text files


def test_eight_pairs_two_confirmed_six_cleared(pairs, tmp_path):
    suspects = [(str(i), "A" if i % 2 else "B") for i in range(1, 17, 2)]
    decided = ["confirmed" if i in ("3", "11") else "rejected" for i, _ in suspects]
    made = errata(*((i, k, "B" if d == "confirmed" else "", "wrong_key", d) for (i, k), d in zip(suspects, decided)))
    before = pairs.read_bytes()
    done = run(made, pairs, tmp_path / "new.tsv")
    assert pairs.read_bytes() == before
    old, new = lines(pairs), lines(done.file)
    assert len(old) == len(new) and sum(a != b for a, b in zip(old, new)) == 2
    for a, b in zip(old, new):
        if a != b:
            assert a.split(b"\t")[0] in (b"3", b"11") and b == a.replace(b"\tright\tA\t", b"\tright\tB\t")
    keys = read_dataset(done.file).set_index("item")["key"]
    assert (read_dataset(pairs).set_index("item")["key"] != keys).sum() == 2 and keys[["3", "11"]].tolist() == [
        "B",
        "B",
    ]
    said = json.loads(done.record.read_text())
    changed = [(c["item"], c["old_key"], c["new_key"], c["row"]) for c in said["changed"]]
    assert changed == [("3", "A", "B", 4), ("11", "A", "B", 12)]
    assert said["new"]["sha256"] == hashlib.sha256(done.file.read_bytes()).hexdigest()
    assert said["old"]["md5"] == hashlib.md5(before).hexdigest() and said["not_decided"] == {"rejected": 6}


def test_tinysee_round_trip_by_command(tmp_path, capsys):
    made = errata(("150", "A", "D", "wrong_key", "confirmed"), ("257", "C", "B", "wrong_key", "confirmed"),
                  ("121", "A", "C", "wrong_key", "candidate"), ("52", "B", "", "wrong_key", "disputed"))  # fmt: skip
    table = tmp_path / "tinysee.csv"
    made.rows.to_csv(table, index=False)
    new = tmp_path / "New.tsv"
    assert main(["errata", "patch", str(table), str(TINYSEE), "--to", str(new)]) == 0
    out = capsys.readouterr().out
    assert "2 keys changed, 0 rows left out, 300 of 300 rows stay" in out and "1 candidate, 1 disputed" in out
    assert hashlib.sha256(new.read_bytes()).hexdigest() in out and hashlib.md5(new.read_bytes()).hexdigest() in out
    changed = [(a, b) for a, b in zip(lines(TINYSEE), lines(new)) if a != b]
    assert sorted(a.split(b"\t")[0] for a, _ in changed) == [b"150", b"257"]
    # back again, to the byte
    back = confirmed(("150", "D", "A"), ("257", "B", "C"))
    assert run(back, new, tmp_path / "back.tsv").file.read_bytes() == TINYSEE.read_bytes()
    # a second time it is stale, and says that the key is there already
    assert main(["errata", "patch", str(table), str(new), "--to", str(tmp_path / "x.tsv")]) == 2
    assert "row 2: stale: item '150' has the proposed key already" in capsys.readouterr().err
    assert not (tmp_path / "x.tsv").exists() and not list(tmp_path.glob(".*tmp*"))


@pytest.mark.parametrize(
    ("cell", "key", "new"),
    [("B", "C", "C"), (" B ", "C", " C "), ("(B)", "C", "(C)"), ("b.", "C", "c."), ("two", "three", "three"),
     ("", "A", "A")],
)  # fmt: skip
def test_a_key_keeps_its_dress(cell, key, new):
    assert with_key(cell, key) == new


def test_a_key_written_as_a_text_stays_a_text(tmp_path):
    source = tmp_path / "d.csv"
    source.write_text('index,question,A,B,answer\n1,q,red,"dark, blue",red\n2,q,red,"dark, blue","dark, blue"\n')
    assert read_dataset(source)["key"].tolist() == ["A", "B"]
    done = run(confirmed(("1", "A", "B"), ("2", "B", "A")), source, tmp_path / "n.csv")
    assert lines(done.file)[1:] == [b'1,q,red,"dark, blue","dark, blue"\n', b'2,q,red,"dark, blue","red"\n']


def test_other_names_of_the_columns(tmp_path):
    source = tmp_path / "d.csv"
    source.write_text("id,gold\n7,A\n")
    with pytest.raises(AuditError, match=r"no column 'index'.*--map item=COLUMN"):
        run(confirmed(("7", "A", "B")), source, tmp_path / "n.csv")
    done = run(confirmed(("7", "A", "B")), source, tmp_path / "n.csv", columns={"item": "ID", "key": "Gold"})
    assert done.file.read_text() == "id,gold\n7,B\n"


def test_copies_change_together_and_must_agree(tmp_path):
    source = tmp_path / "d.tsv"
    source.write_text("index\tanswer\n1\tA\n2\tA\n1\tA\n")
    done = run(confirmed(("1", "A", "B")), source, tmp_path / "n.tsv")
    assert done.file.read_text() == "index\tanswer\n1\tB\n2\tA\n1\tB\n"
    source.write_text("index\tanswer\n1\tA\n1\tC\n")
    with pytest.raises(AuditError, match=r"2 times with different keys \(A, C; rows 2, 3\)"):
        run(confirmed(("1", "A", "B")), source, tmp_path / "m.tsv")


def circular(path: Path, *, twist: str = "") -> Path:
    """Item 5 with four options, turned three times; item 6 beside it."""
    options = ["red", "blue", "green", "grey"]
    rows = ["index\tquestion\tA\tB\tC\tD\tanswer", "6\tother\tred\tblue\tgreen\tgrey\tA"]
    for turn in range(4):
        shown = options[turn:] + options[:turn]
        key = "ABCD"[shown.index("blue")]
        shown = [twist if (twist and turn == 2 and t == "green") else t for t in shown]
        rows.append("\t".join([str(5 + turn * 1_000_000), "colour", *shown, key]))
    path.write_text("\n".join(rows) + "\n")
    return path


def test_circular_variants_get_the_same_option(tmp_path):
    source = circular(tmp_path / "c.tsv")
    done = run(confirmed(("5", "B", "C")), source, tmp_path / "n.tsv")
    table = pd.read_csv(done.file, sep="\t", dtype=str)
    variants = table[table["question"].eq("colour")]
    assert [r[r["answer"]] for r in variants.to_dict("records")] == ["green"] * 4
    assert table.loc[0, "answer"] == "A" and len(done.said["changed"]) == 4
    assert done.said["changed"][1]["variant_of"] == "5"
    # a variant named instead of its base says the same
    other = run(confirmed(("1000005", "A", "B")), source, tmp_path / "m.tsv")
    assert other.file.read_bytes() == done.file.read_bytes()
    with pytest.raises(AuditError, match="would get two keys"):
        run(confirmed(("5", "B", "C"), ("1000005", "A", "C")), source, tmp_path / "o.tsv")


def test_variants_that_cannot_be_matched_are_refused(tmp_path):
    source = circular(tmp_path / "c.tsv", twist="teal")
    with pytest.raises(AuditError, match="'2000005' is a circular variant of '5', but its options"):
        run(confirmed(("5", "B", "C")), source, tmp_path / "n.tsv")
    divided = errata(("5", "B", "C", "wrong_key", "confirmed"), ("1000005", "A", "", "wrong_key", "rejected"))
    with pytest.raises(AuditError, match="is rejected, but item '5', the same question"):
        run(divided, source, tmp_path / "n.tsv")


def test_large_ids_that_are_no_variants_stay_apart(tmp_path):
    source = tmp_path / "d.tsv"
    source.write_text("index\tquestion\tanswer\n7\ta\tA\n1000007\tb\tA\n")
    done = run(confirmed(("7", "A", "B")), source, tmp_path / "n.tsv")
    assert done.file.read_text() == "index\tquestion\tanswer\n7\ta\tB\n1000007\tb\tA\n"


def test_dropping_is_asked_for_and_keeps_the_rest(pairs, tmp_path):
    made = errata(("2", "B", "", "no_right_option", "confirmed"), ("4", "B", "", "ambiguous", "candidate"),
                  ("6", "B", "", "scorer_risk", "confirmed"))  # fmt: skip
    kept = run(made, pairs, tmp_path / "kept.tsv")
    assert kept.file.read_bytes() == pairs.read_bytes()
    assert [r["item"] for r in kept.said["confirmed_and_left"]] == ["2", "6"]
    done = run(made, pairs, tmp_path / "new.tsv", drop=True)
    assert done.file.read_bytes() == b"".join(x for x in lines(pairs) if not x.startswith(b"2\t"))
    assert [r["item"] for r in done.said["dropped"]] == ["2"] and done.said["new"]["rows"] == 15
    assert [r["item"] for r in done.said["confirmed_and_left"]] == ["6"]


def test_a_picture_that_others_show_is_not_dropped(pairs, tmp_path):
    made = errata(("3", "A", "", "no_right_option", "confirmed"))
    with pytest.raises(AuditError, match="item '3' cannot be dropped: item '4' shows its picture") as e:
        run(made, pairs, tmp_path / "new.tsv", drop=True)
    assert e.value.row == 5
    both = errata(*((i, k, "", "no_right_option", "confirmed") for i, k in (("3", "A"), ("4", "B"))))
    assert len(read_dataset(run(both, pairs, tmp_path / "new.tsv", drop=True).file)) == 14


def test_of_items_dropped_as_copies_the_first_stays(tmp_path):
    source = tmp_path / "d.tsv"
    source.write_text("index\tquestion\tanswer\n1\tsame\tA\n2\tother\tA\n3\tSame\tA\n")
    made = errata(*((i, "A", "", "duplicate_item", "confirmed") for i in "123"))
    done = run(made, source, tmp_path / "n.tsv", drop=True)
    assert done.file.read_text() == "index\tquestion\tanswer\n1\tsame\tA\n2\tother\tA\n"
    assert [r["item"] for r in done.said["confirmed_and_left"]] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "words", "row"),
    [
        ('index\tanswer\n1\t"A\n', "a quote is never closed", 2),
        ("index\tanswer\n1\tA\tx\n", "3 fields where the header has 2", 2),
        ("index\tanswer\n2\tA\n", "has no item '1'", 2),
        ("index\tanswer\n1\tC\n", "stale: item '1' has the key 'C', the table says 'A'", 2),
        ("index\tanswer\n1\n", "stale: item '1' has the key ''", 2),
        ("answer\nA\n", "no column 'index'", 1),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(tmp_path, text, words, row):
    source = tmp_path / "d.tsv"
    source.write_text(text)
    with pytest.raises(AuditError, match=words) as e:
        run(confirmed(("1", "A", "B")), source, tmp_path / "n.tsv")
    assert e.value.row == row and sorted(p.name for p in tmp_path.iterdir()) == ["d.tsv", "errata.csv"]


@pytest.mark.parametrize("key", ["Z", "E", "=1+1", "C\nD", "AC", "hello", "7"])
def test_a_key_that_names_no_option_is_refused(tmp_path, key):
    source = tmp_path / "d.tsv"
    source.write_text("index\tquestion\tA\tB\tC\tD\tanswer\n1\tq\tred\tblue\tgreen\tgrey\tA\n")
    with pytest.raises(AuditError, match="names no answer of item '1'") as e:
        run(confirmed(("1", "A", key)), source, tmp_path / "n.tsv")
    assert (e.value.file, e.value.row) == (tmp_path / "errata.csv", 2)
    assert "give one of A, B, C, D" in str(e.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.tsv", "errata.csv"]


@pytest.mark.parametrize(
    ("head", "row", "key", "wanted"),
    [
        ("A,B,C", "red,blue,green,A", "c", "C"),
        ("A,B,C", "red,blue,green,A", "Green", "C"),
        ("A,B,C", "red,blue,green,0", "2", "2"),
        ("A,B,C", "red,blue,green,0", "3", None),
        ("A,B,C", "red,,green,A", "B", None),
        ("A,B,C", "red,blue,green,AB", "BC", "BC"),
        ("A,B,C", "red,blue,green,AB", "BD", None),
        ("note", "n,A", "hello", None),
        ("note", "n,A", "b", "B"),
        ("note", "n,Yes", "NO", "No"),
        ("note", "n,yes", "B", None),
        ("note", "n,three", "four", "four"),
        ("question", '"q\nOptions: A: red, B: blue",A', "b", "B"),
        ("question", '"q\nOptions: A: red, B: blue",A', "C", None),
    ],
)
def test_keys_are_written_as_their_row_gives_keys(tmp_path, head, row, key, wanted):
    source = tmp_path / "d.csv"
    source.write_text(f"index,{head},answer\n1,{row}\n")
    old = pd.read_csv(source, dtype=str)["answer"].iloc[0]
    if wanted is None:
        with pytest.raises(AuditError, match="names no answer"):
            run(confirmed(("1", old, key)), source, tmp_path / "n.csv")
    else:
        done = run(confirmed(("1", old, key)), source, tmp_path / "n.csv")
        assert pd.read_csv(done.file, dtype=str)["answer"].tolist() == [wanted]


def test_a_reason_that_is_not_about_the_key_changes_none(tmp_path, capsys):
    source, table = tmp_path / "d.tsv", tmp_path / "errata.csv"
    source.write_text("index\tanswer\n1\tA\n2\tA\n3\tA\n4\tA\n")
    said = [("1", "B", "no_image_needed"), ("2", "B", "scorer_risk"), ("3", "B", "contradictory_duplicate"),
            ("4", "A", "wrong_key")]  # fmt: skip
    errata(*((i, "A", new, reason, "confirmed") for i, new, reason in said)).rows.to_csv(table, index=False)
    assert main(["errata", "patch", str(table), str(source), "--to", str(tmp_path / "n.tsv")]) == 0
    said = capsys.readouterr().out
    assert "left as it is: item 1, no_image_needed (the reason does not concern the key: 'B' is not taken)" in said
    assert "item 2, scorer_risk (the" in said and "item 4, wrong_key (the proposed key A is its key already)" in said
    assert (tmp_path / "n.tsv").read_text() == "index\tanswer\n1\tA\n2\tA\n3\tB\n4\tA\n"


def test_another_record_is_never_replaced(pairs, tmp_path):
    (tmp_path / "n.tsv.json").write_text("mine")
    with pytest.raises(AuditError, match="record of the new file would replace this one"):
        run(confirmed(("1", "A", "B")), pairs, tmp_path / "n.tsv")
    assert (tmp_path / "n.tsv.json").read_text() == "mine" and not (tmp_path / "n.tsv").exists()


def test_the_original_is_never_written(pairs, tmp_path):
    made = confirmed(("1", "A", "B"))
    link = tmp_path / "link.tsv"
    link.symlink_to(pairs)
    for to, words in (
        (pairs, "the dataset itself"),
        (link, "the dataset itself"),
        (tmp_path / "a.csv", "another kind"),
    ):
        with pytest.raises(AuditError, match=words):
            run(made, pairs, to)
    (tmp_path / "b.tsv").write_text("mine")
    with pytest.raises(AuditError, match="there already"):
        run(made, pairs, tmp_path / "b.tsv")
    (tmp_path / "d.json").write_text("[]")
    with pytest.raises(AuditError, match=r"a \.json file is not patched"):
        run(made, tmp_path / "d.json", tmp_path / "e.json")


# ------------------------------------------------------------------------------------------------ any text file

cell = st.text(alphabet='ab"\t,\n\r é|=', max_size=6)


@st.composite
def files(draw):
    """A delimited file with its parts: how each cell is written, and which rows get which key."""
    mark, end = draw(st.sampled_from(["\t", ","])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    n = draw(st.integers(1, 6))
    place = draw(st.integers(0, 2))
    header = ["index", "question"]
    header.insert(place, "answer")
    rows, keys = [], []
    for i in range(n):
        keys.append(draw(st.sampled_from("ABC")))
        said = [str(i), draw(cell)]
        said.insert(place, keys[-1])
        rows.append([_written(t, mark, force=draw(st.booleans())) for t in said])
    last = draw(st.booleans())
    body = end.join(mark.join(r) for r in [header, *rows]) + (end if last else "")
    bom = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    chosen = draw(st.lists(st.integers(0, n - 1), unique=True))
    news = {str(i): draw(st.sampled_from([k for k in "ABCD" if k != keys[i]])) for i in chosen}
    return mark, bom + body.encode(), keys, news


def _written(text: str, mark: str, *, force: bool) -> str:
    if force or text.startswith('"') or any(c in text for c in mark + "\r\n"):
        return '"' + text.replace('"', '""') + '"'
    return text


@settings(max_examples=50, deadline=None)
@given(files())
def test_only_chosen_keys_change_in_any_file(made):
    mark, data, keys, news = made
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / ("d.tsv" if mark == "\t" else "d.csv")
        source.write_bytes(data)
        to = source.with_name("n" + source.suffix)
        done = run(confirmed(*((i, keys[int(i)], k) for i, k in news.items())), source, to)
        new = done.file.read_bytes()
    # the bytes that differ are the keys', and nothing moves: each key is one letter for one letter
    assert len(new) == len(data)
    differing = [i for i in range(len(data)) if data[i] != new[i]]
    assert len(differing) == len(news)
    assert all(chr(data[i]) in "ABC" and chr(new[i]) in "ABCD" for i in differing)
    # an independent reader sees the same table but for those keys
    old_rows, new_rows = (_parsed(b, mark) for b in (data, new))
    assert len(old_rows) == len(new_rows)
    at, index = old_rows[0].index("answer"), old_rows[0].index("index")
    for a, b in zip(old_rows[1:], new_rows[1:]):
        wanted = list(a)
        wanted[at] = news.get(a[index], a[at])
        assert b == wanted


def _parsed(data: bytes, mark: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=mark))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(cell, min_size=1, max_size=3), min_size=1, max_size=5), st.sampled_from([b"\t", b","]))
def test_records_are_those_of_an_independent_reader(rows, mark):
    from auditlib.errata import delimited

    text = "\n".join(mark.decode().join(_written(t, mark.decode(), force=False) for t in r) for r in rows) + "\n"
    data = text.encode()
    path = Path("d.tsv")
    found = [[delimited.text(data, s, path, r.row) for s in r.fields] for r in delimited.records(data, mark, path)]
    wanted = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark.decode()))
    assert found == [r or [""] for r in wanted]
    spans = [(r.start, r.end) for r in delimited.records(data, mark, path)]
    assert b"".join(data[a:b] for a, b in spans) == data


def test_quotes_inside_a_field_are_read_as_the_readers_do():
    from auditlib.errata import delimited

    data = b'a"b\t"c"d\t"x""y"\n'
    (record,) = delimited.records(data, b"\t", Path("d.tsv"))
    found = [delimited.text(data, s, Path("d.tsv"), 1) for s in record.fields]
    wanted = pd.read_csv(io.BytesIO(data), sep="\t", header=None, dtype=str).iloc[0].tolist()
    assert found == wanted == ['a"b', "cd", 'x"y']


def test_a_large_picture_is_no_burden(tmp_path):
    import time

    source = tmp_path / "big.tsv"
    with source.open("wb") as f:
        f.write(b"index\tquestion\tanswer\timage\n")
        for i in range(24):
            f.write(b"%d\tq\tA\t%b\n" % (i, b"QUJD" * (1 << 18)))
    start = time.perf_counter()
    done = run(confirmed(("5", "A", "B")), source, tmp_path / "n.tsv")
    assert time.perf_counter() - start < 10, "24 MB take well under a second on one core"
    assert done.said["new"]["bytes"] == source.stat().st_size and [c["row"] for c in done.said["changed"]] == [7]


# ------------------------------------------------------------------------------------------------ parquet


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = 30
    table = pa.table({
        "index": pa.array(range(n), pa.int32()),
        "image": pa.array([{"bytes": b"\x89PNG" + bytes([i]), "path": None} for i in range(n)]),
        "answer": pa.array([None if i == 9 else "ABC"[i % 3] for i in range(n)]),
        "score": pa.array(np.linspace(0, 1, n, dtype=np.float32)),
    })  # fmt: skip
    index = pa.Schema.from_pandas(table.to_pandas().astype({"image": object}), preserve_index=None).metadata[b"pandas"]
    told = {b"huggingface": b'{"info": {"features": {}}}', b"pandas": index}
    path = tmp_path / "d.parquet"
    pq.write_table(table.replace_schema_metadata(told), path, row_group_size=10,
                   compression={"index": "snappy", "answer": "zstd"})  # fmt: skip
    return path


def test_parquet_keeps_schema_metadata_and_all_other_values(parquet, tmp_path):
    import pyarrow.parquet as pq

    done = run(confirmed(("4", "B", "C"), ("25", "B", "A")), parquet, tmp_path / "n.parquet")
    old, new = pq.ParquetFile(parquet), pq.ParquetFile(done.file)
    assert new.schema_arrow.equals(old.schema_arrow, check_metadata=True)
    assert [new.metadata.row_group(g).num_rows for g in range(3)] == [10, 10, 10]
    for c in range(new.metadata.num_columns):
        a, b = (f.metadata.row_group(0).column(c) for f in (old, new))
        assert (a.path_in_schema, a.compression) == (b.path_in_schema, b.compression)
    before, after = old.read(), new.read()
    for name in ("index", "image", "score"):
        assert before[name].equals(after[name])
    pairs = zip(before["answer"].to_pylist(), after["answer"].to_pylist())
    assert {i: b for i, (a, b) in enumerate(pairs) if a != b} == {4: "C", 25: "A"}
    assert [c["row"] for c in done.said["changed"]] == [5, 26]


def test_parquet_drops_rows_and_shortens_the_counted_index(parquet, tmp_path):
    import pyarrow.parquet as pq

    made = errata(("3", "A", "", "unreadable_image", "confirmed"), ("4", "B", "C", "wrong_key", "confirmed"))
    done = run(made, parquet, tmp_path / "n.parquet", drop=True)
    new = pq.ParquetFile(done.file)
    assert new.metadata.num_rows == 29 and new.read()["index"].to_pylist() == [i for i in range(30) if i != 3]
    assert json.loads(new.schema_arrow.metadata[b"pandas"])["index_columns"][0]["stop"] == 29
    assert new.schema_arrow.metadata[b"huggingface"] == b'{"info": {"features": {}}}'
    assert len(pd.read_parquet(done.file)) == 29


def test_parquet_keys_of_another_kind(tmp_path):
    frame = pd.DataFrame({"index": [1, 2], "answer": pd.Categorical(["A", "B"])})
    frame.to_parquet(tmp_path / "c.parquet")
    done = run(confirmed(("1", "A", "C")), tmp_path / "c.parquet", tmp_path / "n.parquet")
    assert pd.read_parquet(done.file)["answer"].tolist() == ["C", "B"]
    frame.assign(answer=[0, 1]).to_parquet(tmp_path / "i.parquet")
    done = run(confirmed(("1", "0", "3")), tmp_path / "i.parquet", tmp_path / "o.parquet")
    assert pd.read_parquet(done.file)["answer"].tolist() == [3, 1]
    with pytest.raises(AuditError, match="the keys here are of kind int64, and 'C' is none"):
        run(confirmed(("1", "0", "C")), tmp_path / "i.parquet", tmp_path / "p.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(AuditError, match="not readable as parquet"):
        run(confirmed(("1", "A", "C")), tmp_path / "bad.parquet", tmp_path / "q.parquet")


def test_a_table_for_another_version_says_so_and_stays_usable(pairs, tmp_path, capsys):
    made = errata(("1", "A", "B", "wrong_key", "confirmed"), digest="f" * 64)
    assert run(made, pairs, tmp_path / "n.tsv").said["made_for_this_file"] is False
    right = errata(("1", "A", "B", "wrong_key", "confirmed"), digest=hashlib.sha256(pairs.read_bytes()).hexdigest())
    assert run(right, pairs, tmp_path / "m.tsv").said["made_for_this_file"] is True
    assert read_errata(pairs.parent / "errata.csv").rows["item"].tolist() == ["1"]
