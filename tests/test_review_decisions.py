"""Decisions in: what people do to files, outcomes, agreement, accuracy on probes, and the panel's state."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from review_packets import READERS, fill, packet, written
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

from auditlib.errors import AuditError
from auditlib.review.agreement import agreement, probe_accuracy
from auditlib.review.decisions import read_decisions
from auditlib.review.files import write_packet
from auditlib.review.outcomes import _majority, _two_or_third, by_item, due_thirds, outcomes
from auditlib.review.session import open_session
from auditlib.review.task import CURATION, DEPENDENCE


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    return written(folder), folder


def labels(made, reader="ann", label="no_issue") -> dict[str, str]:
    return dict.fromkeys(made.of(reader)["row"], label)


def save(table: pd.DataFrame, path, **more):
    table.to_csv(path, index=False, **more)
    return path


# ------------------------------------------------------------------------------------------- mended with a note


def test_plain_file_reads_back(made, tmp_path):
    pack, folder = made
    want = labels(pack)
    found = read_decisions([save(fill(folder, "ann", want), tmp_path / "x.csv")], pack)
    assert dict(zip(found.table["row"], found.table["label"])) == want and not len(found.notes)
    due = pack.assignment[pack.assignment["role"].eq("first")]
    assert len(found.missing) == len(due) - len(want) and set(found.missing["reader"]) == {"bob", "cy"}


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ({"sep": ";"}, "semicolons"),
        ({"sep": "\t"}, "tabs"),
        ({"encoding": "utf-8-sig"}, None),
        ({"encoding": "utf-16"}, "UTF-16"),
        ({"lineterminator": "\r\n"}, None),
    ],
)
def test_spreadsheets_ways_of_writing(made, tmp_path, damage, says):
    pack, folder = made
    found = read_decisions([save(fill(folder, "ann", labels(pack)), tmp_path / "x.csv", **damage)], pack)
    assert dict(zip(found.table["row"], found.table["label"])) == labels(pack)
    assert [n for n in found.notes["note"] if says and says in n] or says is None


def test_spaces_capitals_words_blank_rows_and_edited_texts_are_mended(made, tmp_path):
    pack, folder = made
    sheet = fill(folder, "ann", labels(pack)).reset_index(drop=True)
    sheet.loc[0, ["label", "row"]] = [" NO_ISSUE ", f" {sheet.at[0, 'row'].upper()}\u00a0"]
    sheet.loc[1, "label"] = "Key error"
    sheet.loc[2, "label"] = "cannot-tell"
    sheet.loc[3, ["question", "note"]] = ["I changed this text", "caf\u00e9"]
    sheet.columns = [f" {c.title()} " for c in sheet]
    text = sheet.to_csv(index=False) + ",,,,\n\n"
    (tmp_path / "x.csv").write_text(text, encoding="cp1252", errors="replace")
    found = read_decisions([tmp_path / "x.csv"], pack)
    assert found.table["label"].value_counts().to_dict() == {
        "no_issue": len(sheet) - 2, "key_error": 1, "cannot_tell": 1
    }  # fmt: skip
    notes = " | ".join(found.notes["note"])
    for words in ("Windows-1252", "blank rows", "spaces or capitals", "texts edited"):
        assert words in notes
    assert "café" in found.table["note"].tolist()


def test_duplicates_that_agree_and_two_files_are_joined(made, tmp_path):
    pack, folder = made
    sheet = fill(folder, "ann", labels(pack)).reset_index(drop=True)
    one = save(pd.concat([sheet.iloc[:3].assign(note="a"), sheet.iloc[:1].assign(note="b")]), tmp_path / "1.csv")
    two = save(sheet.iloc[2:], tmp_path / "2.csv")
    found = read_decisions([one, two], pack)
    assert dict(zip(found.table["row"], found.table["label"])) == labels(pack)
    assert found.table.set_index("row").at[sheet.at[0, "row"], "note"] == "a; b"
    assert found.notes["note"].str.contains("joined").sum() == 2


def test_rows_without_label_stay_open_and_their_notes_are_kept(made, tmp_path):
    pack, folder = made
    sheet = fill(folder, "ann", {}, keep=True)
    sheet.loc[0, "note"] = "hard"
    found = read_decisions([save(sheet, tmp_path / "x.csv")], pack)
    assert not len(found.table) and found.unlabelled["note"].tolist() == ["hard"]
    with pytest.raises(AuditError, match=r"ann lacks .* bob lacks"):
        read_decisions([tmp_path / "x.csv"], pack, complete=True)


def test_reader_from_the_files_name_or_argument(made, tmp_path):
    pack, folder = made
    bare = fill(folder, "ann", labels(pack))[["row", "label"]]
    for name, given in (("from ANN.csv", None), ("x.csv", "ann")):
        found = read_decisions([save(bare, tmp_path / name)], pack, reader=given)
        assert set(found.table["reader"]) == {"ann"}
    with pytest.raises(AuditError, match="neither the file's name"):
        read_decisions([save(bare, tmp_path / "y.csv")], pack)


# ------------------------------------------------------------------------------------------------ refused


def test_every_problem_is_named_at_once(made, tmp_path):
    pack, folder = made
    sheet = fill(folder, "ann", labels(pack)).reset_index(drop=True)
    theirs = next(r for r in pack.rows["row"] if r not in set(pack.assignment.query("reader == 'ann'")["row"])) \
        if len(set(pack.assignment.query("reader == 'ann'")["row"])) < len(pack.rows) else None  # fmt: skip
    sheet.loc[0, "label"] = "keyerror"
    sheet.loc[1, "label"] = "keyerror"
    sheet.loc[2, "row"] = "R-aaaaaaa"
    sheet.loc[3, "reader"] = "anm"
    twice = sheet.iloc[[4]].assign(label="ambiguous")
    one = save(pd.concat([sheet, twice]), tmp_path / "one.csv")
    two = save(fill(folder, "bob", labels(pack, "bob", "Nonsense")).iloc[:1], tmp_path / "two.csv")
    with pytest.raises(AuditError) as e:
        read_decisions([one, two], pack)
    said = str(e.value)
    for words in ("one.csv, rows 2, 3: unknown label 'keyerror' (meant 'key_error'?)", "row 4: unknown row 'R-aaaaaaa'",
                  "row 5: unknown reader 'anm' (meant 'ann'?)", f"row {len(sheet) + 2}: ann says ambiguous of",
                  "but no_issue in row 6", "two.csv, row 2: unknown label 'Nonsense'", "6 problems"):  # fmt: skip
        assert words in said, words
    assert theirs is None or theirs not in said


def test_two_files_that_contradict(made, tmp_path):
    pack, folder = made
    one = save(fill(folder, "ann", labels(pack)), tmp_path / "1.csv")
    two = save(fill(folder, "ann", labels(pack, label="ambiguous")).iloc[:1], tmp_path / "2.csv")
    with pytest.raises(AuditError, match=r"2\.csv, row 2: ann says ambiguous of .* but no_issue in 1\.csv, row 2"):
        read_decisions([one, two], pack)


def test_labels_sorted_apart_from_their_rows(made, tmp_path):
    pack, folder = made
    sheet = fill(folder, "ann", labels(pack))
    sheet[["row", "label"]] = sheet[["row", "label"]].iloc[::-1].to_numpy()
    with pytest.raises(AuditError, match="belongs to another row"):
        read_decisions([save(sheet, tmp_path / "x.csv")], pack)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "empty"), (b"\xef\xbb\xbf \n", "empty"), (b"PK\x03\x04xx", "spreadsheet file"), (b"a\0b", "not a text"),
     (b"item,label\n1,x\n", "no column 'row'"), (b"row,label,label\n", "stands twice"), (b"[1]", "list of tasks"),
     (b"[{", "no JSON"), (b"row,label\nR-b\n", "1 cells under 2 columns"), (b"row,label\na,b,c\n", "3 cells")],
)  # fmt: skip
def test_unreadable_files(made, tmp_path, content, says):
    (tmp_path / "ann.csv").write_bytes(content)
    with pytest.raises(AuditError, match=says):
        read_decisions([tmp_path / "ann.csv"], made[0])
    with pytest.raises(AuditError, match="no such file"):
        read_decisions([tmp_path / "none.csv"], made[0])


def test_file_of_another_packet_and_a_row_of_another_reader(made, tmp_path):
    other = packet(seed=9)
    write_packet(other, tmp_path)
    with pytest.raises(AuditError, match="unknown row"):
        read_decisions([save(fill(tmp_path, "ann", labels(other)), tmp_path / "x.csv")], made[0])
    pack = replace(made[0], assignment=made[0].assignment.query("role == 'first'"))
    foreign = sorted(set(pack.rows["row"]) - set(pack.of("ann")["row"]))[:1]
    (tmp_path / "y.csv").write_text(f"row,reader,label\n{foreign[0]},ann,no_issue\n")
    with pytest.raises(AuditError, match="not in the packet of ann"):
        read_decisions([tmp_path / "y.csv"], pack)


# ------------------------------------------------------------------------------------------- Label Studio


def test_label_studio_exports(made, tmp_path):
    pack, folder = made
    tasks = json.loads((folder / "packet_ann.label_studio.json").read_text())
    choice = {"from_name": "label", "type": "choices", "value": {"choices": ["Key error"]}}
    text = {"from_name": "note", "type": "textarea", "value": {"text": ["why"]}}
    said = [{"result": [choice, text]}, {"was_cancelled": True, "result": []}]
    full = [t | {"annotations": copy.deepcopy(said)} for t in tasks]
    small = [t["data"] | {"id": t["id"], "label": "no_issue", "annotator": 1} for t in tasks]
    (tmp_path / "full.json").write_text(json.dumps(full))
    (tmp_path / "min.json").write_text(json.dumps(small))
    found = read_decisions([tmp_path / "full.json"], pack)
    assert set(found.table["label"]) == {"key_error"} and set(found.table["note"]) == {"why"}
    assert len(found.table) == len(tasks) and f"{len(tasks)} skipped" in found.notes["note"].iloc[0]
    assert set(read_decisions([tmp_path / "min.json"], pack).table["label"]) == {"no_issue"}
    full[0]["annotations"][0]["result"][0]["value"]["choices"].append("Ambiguous")
    (tmp_path / "full.json").write_text(json.dumps(full))
    with pytest.raises(AuditError, match="task 1: unknown label"):
        read_decisions([tmp_path / "full.json"], pack)


# ------------------------------------------------------------------------------------------------ outcomes


def test_two_or_third_by_enumeration():
    """All 5 x 5 x 6 readings against the rule said in words."""
    of = CURATION.outcome_of
    for a, b, c in product(CURATION.values, CURATION.values, (*CURATION.values, "")):
        used, label, outcome, due = _two_or_third(CURATION, [a, b], [c])
        if a == b:
            assert (used, label, outcome, due) == ([a, a], a, of[a], "")
        elif not c:
            assert (label, outcome, due) == ("", "open", "third")
        else:
            kinds = [of[x] for x in (a, b, c)]
            shared = [k for k in set(kinds) if kinds.count(k) >= 2]
            assert label == (c if c in (a, b) else "") and due == ""
            assert outcome == (of[c] if c in (a, b) else shared[0] if shared else "cannot_tell")


def test_majority_by_enumeration():
    """All readings of five, missing ones too: early decisions are never overturned by what is still to come."""
    values = (*DEPENDENCE.values, "")
    for said in product(values, repeat=5):
        _, _, outcome, due = _majority(DEPENDENCE, list(said), [])
        given = [DEPENDENCE.outcome_of[x] for x in said if x]
        best = [o for o in set(given) if given.count(o) >= 3]
        assert outcome == (best[0] if best else "open" if len(given) < 5 else "cannot_tell")
        assert due == ("first" if outcome == "open" else "")


def _readings(pack, choose) -> pd.DataFrame:
    rows = [(r, who, choose(r, who, role)) for r, who, role, _ in pack.assignment.itertuples(index=False)]
    return pd.DataFrame([x for x in rows if x[2]], columns=["row", "reader", "label"])


def test_third_readings_come_up_and_settle(made):
    pack = made[0]
    kind = dict(zip(pack.key.rows["row"], pack.key.rows["kind"]))
    split = {r for r in kind if kind[r] == "flagged"}
    first = {r: who for r, who, role, _ in pack.assignment.itertuples(index=False) if role == "first"}
    table = _readings(pack, lambda r, who, role: "" if role == "third" else
                      "key_error" if r in split and first[r] == who else "no_issue")  # fmt: skip
    assert set(due_thirds(pack, table)) == split
    more = _readings(pack, lambda r, who, role: "key_error" if role == "third" and r in split else "")
    found = outcomes(pack, pd.concat([table, more]))
    assert not due_thirds(pack, pd.concat([table, more]))
    assert found[found["outcome"].eq("confirmed")]["row"].isin(split).all()
    assert found.set_index("item").loc["i1", ["label", "labels", "proposed"]].tolist() == [
        "key_error", "key_error 2, no_issue 1", "key_error"
    ]  # fmt: skip
    assert len(by_item(found)) == 7
    for reader in READERS:
        rows = pack.of(reader, split)["row"].tolist()
        assert len(rows) == len(set(rows)) >= len(pack.of(reader))


def test_kappas_against_statsmodels(rng):
    pack = packet(12, sample=6)
    table = _readings(pack, lambda r, who, role: CURATION.values[int(rng.integers(4))] if role == "first" else "")
    found = agreement(pack, table, rng=rng, draws=400).set_index(["rows", "of", "statistic", "readers"])
    code = table["label"].map({v: i for i, v in enumerate(CURATION.values)})
    counts = pd.crosstab(table["row"], code).reindex(columns=range(5), fill_value=0).to_numpy()
    got = found.loc[("all", "label", "fleiss_kappa", "ann, bob, cy"), "estimate"]
    assert got == pytest.approx(fleiss_kappa(counts), abs=1e-12)
    wide = table.assign(code=code).pivot(index="row", columns="reader", values="code")
    for a, b in (("ann", "bob"), ("ann", "cy"), ("bob", "cy")):
        both = wide[[a, b]].dropna().astype(int)
        square = np.zeros((5, 5))
        np.add.at(square, (both[a].to_numpy(), both[b].to_numpy()), 1)
        assert found.loc[("all", "label", "cohen_kappa", f"{a}, {b}"), "estimate"] == pytest.approx(
            cohens_kappa(square).kappa, abs=1e-12
        )
    assert found.loc[("without probes", "label", "fleiss_kappa", "ann, bob, cy"), "n"] == 10


def test_probe_accuracy(made):
    pack = made[0]
    kind = dict(zip(pack.key.rows["row"], pack.key.rows["kind"]))
    says = {"planted": "ambiguous", "clean": "cannot_tell"}
    table = _readings(pack, lambda r, who, role: says.get(kind[r], "no_issue") if role == "first" else "")
    got = probe_accuracy(pack, table, outcomes(pack, table)).set_index(["reader", "measure"])
    assert got.loc[("all readers", "sensitivity"), ["hits", "n"]].tolist() == [2, 2]
    assert got.loc[("final outcome", "right kind"), ["hits", "n"]].tolist() == [0, 1]
    assert got.loc[("final outcome", "specificity"), ["hits", "n", "cannot_tell"]].tolist() == [0, 1, 1]
    with pytest.raises(AuditError, match="sealed"):
        probe_accuracy(replace(pack, key=None), table, outcomes(pack, table))


# ------------------------------------------------------------------------------------------------ the panel's state


def test_session_saves_each_decision_and_goes_on(tmp_path):
    pack = written(tmp_path)
    order = pack.of("ann")["row"].tolist()
    one = open_session(tmp_path, "ann")
    one.note('=x "y"')
    one.decide("key_error")
    assert one.row == order[1]
    with pytest.raises(AuditError, match="no label"):
        one.decide("nonsense")
    two = open_session(tmp_path, "ann")
    assert (two.row, two.done, two.decisions[order[0]].note) == (order[1], 1, '=x "y"')
    two.decide("no_issue")
    one.decide("ambiguous")  # the other window's decision on the same row gives way, nothing else is lost
    assert {r: d.label for r, d in open_session(tmp_path, "ann").decisions.items()} == {
        order[0]: "key_error", order[1]: "ambiguous"
    }  # fmt: skip
    assert one.undo() and one.current.label == "no_issue" and one.row == order[1]
    assert one.undo() and one.undo() and not one.undo() and one.row == order[0]
    assert open_session(tmp_path, "ann").decisions.keys() == {order[1]}


def test_session_shows_due_third_readings_and_bears_others_damage(tmp_path):
    pack = written(tmp_path)
    row = pack.rows["row"].iloc[0]
    who = pack.assignment[pack.assignment["row"].eq(row)].set_index("role")
    for reader, label in zip(who.loc["first", "reader"], ("key_error", "no_issue")):
        session = open_session(tmp_path, reader)
        session.place = session.rows["row"].tolist().index(row)
        session.decide(label)
    third = who.loc["third", "reader"]
    assert open_session(tmp_path, third).rows["row"].tolist() == [*pack.of(third)["row"], row]
    (tmp_path / f"decisions_{who.loc['first', 'reader'].iloc[0]}.csv").write_text("junk")
    session = open_session(tmp_path, third)
    assert session.notice and row not in session.rows["row"].tolist()


def test_decision_that_cannot_be_saved_is_not_taken(tmp_path, monkeypatch):
    written(tmp_path)
    session = open_session(tmp_path, "ann")
    session.decide("no_issue")
    before = (tmp_path / "decisions_ann.csv").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    place = session.place
    with pytest.raises(AuditError, match="not saved"):
        session.decide("key_error")
    assert session.place == place and session.done == 1
    assert (tmp_path / "decisions_ann.csv").read_bytes() == before


def test_widgets_of_the_panel(tmp_path):
    """Buttons and note of the widgets, without a browser; foreign text is escaped, a warning is shown."""
    from auditlib.review.panel import open_panel

    pack = written(tmp_path)
    hostile = pack.rows.loc[pack.rows["question"].str.contains("script"), "row"].iloc[0]
    reader = pack.assignment[pack.assignment["row"].eq(hostile)]["reader"].iloc[0]
    panel = open_panel(tmp_path, reader)
    panel.session.place = panel.session.rows["row"].tolist().index(hostile)
    panel._show()
    assert "<script" not in panel._item.value and "&lt;script&gt;" in panel._item.value
    panel._note.value = "a note"
    panel._labels["ambiguous"].click()
    saved = read_decisions([tmp_path / f"decisions_{reader}.csv"], pack).table
    assert saved[["row", "label", "note"]].to_numpy().tolist() == [[hostile, "ambiguous", "a note"]]
    bundle = panel._repr_mimebundle_()
    assert "1 decided" in bundle["text/html"] and "script" not in bundle["text/html"]
    (tmp_path / f"decisions_{reader}.csv").write_text("junk")
    panel._labels["ambiguous"].click()
    assert "no column" in panel._place.value and (tmp_path / f"decisions_{reader}.csv").read_text() == "junk"
