"""The errata table: candidates, readers' decisions and other people's lists become rows; the text for maintainers."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from builders import ROOT, runs

import auditlib
from auditlib.__main__ import main
from auditlib.errata.benchmark import Benchmark
from auditlib.errata.build import build_errata
from auditlib.errata.candidates import reason_for
from auditlib.errata.imports import read_list
from auditlib.errata.reasons import REASONS, STATUSES, reason_of, status_of
from auditlib.errata.reports import Report, merge
from auditlib.errata.table import COLUMNS, Errata, read_errata, write_errata
from auditlib.errata.text import errata_text
from auditlib.errors import AuditError
from auditlib.outputs import save_audit
from auditlib.params import Params, load_params
from auditlib.paths import RunPaths
from auditlib.reading import pool_of
from auditlib.review.files import write_packet
from auditlib.review.packets import make_packet
from auditlib.review.task import CURATION, DEPENDENCE

LETTERS = "ABCD"


@pytest.fixture
def toy() -> Benchmark:
    """Sixteen items in eight pairs, keys A and B by turns, as in a set of picture pairs."""
    n = 16
    items = pd.DataFrame({"item": [str(i + 1) for i in range(n)], "question": [f"Which {i // 2}?" for i in range(n)],
                          "key": ["A" if i % 2 == 0 else "B" for i in range(n)],
                          "options": [[f"left {i // 2}", f"right {i // 2}"] for i in range(n)]})  # fmt: skip
    return Benchmark("Toy", "0" * 64, "Toy.tsv", items)


def report(item="1", reason="wrong_key", status="candidate", source="a.csv", people=True, **more) -> Report:
    return Report(item, reason, status, source, people, **more)


def one(*reports: Report) -> dict[str, str]:
    rows = merge(reports)
    assert len(rows) == 1
    return next(iter(rows.values()))


# ------------------------------------------------------------------------------------------------ words


def test_words_of_other_schemes_have_a_reason():
    redux = ("wrong_groundtruth", "multiple_correct_answers", "no_correct_answer", "bad_question_clarity",
             "bad_options_clarity")  # fmt: skip
    assert [reason_of(w) for w in redux] == ["wrong_key", "several_keys", "no_right_option", "ambiguous",
                                             "option_defect"]  # fmt: skip
    # readers who confirm something always have a reason to confirm
    confirming = [x.value for x in CURATION.labels if x.outcome == "confirmed"]
    assert [reason_of(w) for w in confirming] == ["wrong_key", "ambiguous", "scorer_risk"]
    assert reason_of("nonsense") is None and status_of("perhaps") is None
    assert {status_of(s) for s in STATUSES} == set(STATUSES)


def test_every_check_of_the_gate_has_a_reason():
    import ast

    checks = set()
    for file in ("items.py", "options.py", "duplicates.py"):
        tree = ast.parse((ROOT / "auditlib" / "integrity" / file).read_text())
        for node in ast.walk(tree):  # a defect is a tuple (check, severity, words, facts)
            if isinstance(node, ast.Tuple) and len(node.elts) == 4 and isinstance(node.elts[0], ast.Constant):
                checks.add(node.elts[0].value)
    assert {"key_outside_options", "contradictory_duplicate", "equal_options"} <= checks
    assert [c for c in checks if reason_for("integrity", {"check": c}) not in REASONS] == []
    assert reason_for("integrity", {"check": "equal_options", "beside_key": True}) == "several_keys"
    assert reason_for("visual_dependency", {"F": 0, "B": 0, "total": 4}) is None
    assert reason_for("visual_dependency", {"F": 3, "B": 4, "total": 4}) == "no_image_needed"


# ------------------------------------------------------------------------------------------------ merging


def test_detectors_only_make_candidates():
    row = one(report(source="audit", people=False, key="C", says="all 4 voters say C", detectors=("consensus_error",)))
    assert (row["status"], row["proposed_key"], row["detectors"]) == ("candidate", "C", "consensus_error")
    # a detector that calls its own finding confirmed decides nothing
    assert one(report(source="audit", people=False, status="confirmed", key="C"))["status"] == "candidate"


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        ([report(key="B"), report(source="b.csv", key="C")], "different keys are proposed (B, C)"),
        ([report(key="B"), report(source="b.csv", reason="unspecified", key="A")], "keys are proposed (A, B)"),
        ([report(key="B"), report(source="audit", people=False, key="D", says="4 say D")], "different keys"),
        ([report(status="confirmed"), report(source="review", status="rejected")], "people decided both ways"),
        ([report(status="confirmed", key="B"), report(source="b.csv", status="confirmed", key="C")], "different keys"),
        ([report(reason="several_keys"), report(source="b.csv", reason="ambiguous")], "people give different reasons"),
        ([report(status="disputed")], "the reports contradict each other"),
    ],
)  # fmt: skip
def test_contradictory_reports_are_disputed_and_name_no_key(reports, words):
    row = one(*reports)
    assert (row["status"], row["proposed_key"]) == ("disputed", "") and words in row["evidence"]
    backwards = one(*reversed(reports))
    assert (backwards["status"], backwards["proposed_key"]) == ("disputed", "")


def test_people_decide_over_votes_and_a_list_completes_what_readers_confirm():
    votes = report(source="audit", people=False, key="D", says="all 4 voters say D", detectors=("consensus_error",))
    confirmed = report(source="review", status="confirmed", outcome="confirmed: key_error 2")
    row = one(votes, confirmed)
    assert (row["status"], row["proposed_key"]) == ("confirmed", ""), "models' votes change no key"
    row = one(votes, report(key="C"), confirmed)
    assert (row["status"], row["proposed_key"], row["sources"]) == ("confirmed", "C", "audit, a.csv, review")
    assert row["detectors"] == "consensus_error" and "all 4 voters say D" in row["evidence"]
    ambiguous = report(source="review", status="confirmed", reason="ambiguous")
    row = one(report(key="C"), ambiguous)
    assert (row["reason"], row["proposed_key"]) == ("ambiguous", ""), "the list's key answers another reason"
    assert one(votes, report(key="C"), report(source="review", status="rejected"))["status"] == "rejected"


def test_questions_of_an_item_are_rows_of_their_own():
    cleared = report(source="review", status="rejected", reason="unspecified", topics=("key", "options"), lone=False)
    rows = merge([report(reason="no_image_needed", people=False), report(key="B"), cleared])
    assert {(t, r["status"]) for (_, t), r in rows.items()} == {("key", "rejected"), ("image need", "candidate")}
    assert merge([cleared]) == {}, "an item that nobody doubted is no erratum"


def test_reports_on_a_pair_that_change_different_items_are_disputed():
    first = report("3", key="B", pair="2", source="one")
    second = report("4", key="A", pair="2", source="two")
    alone = report("5", key="B", pair="3", source="one")
    rows = merge([first, second, alone])
    assert {i: r["status"] for (i, _), r in rows.items()} == {"3": "disputed", "4": "disputed", "5": "candidate"}
    assert "name different items" in rows["3", "key"]["evidence"]
    # two sources that say the same of both items agree
    same = [report(i, key=k, pair="2", source=s) for s in ("one", "two") for i, k in (("3", "B"), ("4", "A"))]
    assert {r["status"] for r in merge(same).values()} == {"candidate"}
    settled = [first, second, report("3", status="confirmed", source="review", key="B")]
    rows = merge(settled)
    assert (rows["3", "key"]["status"], rows["4", "key"]["status"]) == ("confirmed", "disputed")


# ------------------------------------------------------------------------------------------------ lists of others


def write(path, rows, **more):
    pd.DataFrame(rows).to_csv(path, index=False, **more)
    return path


def test_plain_list_and_mapping(toy, tmp_path):
    found = read_list(write(tmp_path / "l.csv", {"item": ["1", "2"], "key": ["B", "b"]}), toy)
    said = [(r.item, r.reason, r.status, r.key) for r in found.reports]
    assert said == [("1", "wrong_key", "candidate", "B"), ("2", "unspecified", "candidate", "B")]
    assert "1 rows name the key that the dataset has" in found.notes[0]
    assert not found.reports[1].lone, "a list that keeps the key speaks against nothing"
    (tmp_path / "m.json").write_text(json.dumps({"1": "right 0"}))
    assert read_list(tmp_path / "m.json", toy).reports[0].key == "B", "an option's text is its letter"


def test_rows_in_the_scheme_of_mmlu_redux(toy, tmp_path):
    rows = [("Which 0?", "['left 0', 'right 0']", 0, "wrong_groundtruth", "1"),
            ("Which 1?", "['left 1', 'right 1']", 0, "ok", ""),
            ("Which 2?", "['left 2', 'right 2']", 0, "no_correct_answer", "none of them")]  # fmt: skip
    table = pd.DataFrame(rows, columns=["question", "choices", "answer", "error_type", "correct_answer"])
    solo = Benchmark("Toy", "", "Toy.tsv", toy.items.iloc[::2].reset_index(drop=True))
    found = read_list(write(tmp_path / "redux.csv", table), solo).reports
    assert [(r.item, r.reason, r.status, r.old_key, r.key) for r in found] == [
        ("1", "wrong_key", "confirmed", "A", "B"), ("3", "unspecified", "rejected", "A", ""),
        ("5", "no_right_option", "confirmed", "A", "")]  # fmt: skip
    assert "none of them" in found[2].says and not found[1].lone
    with pytest.raises(AuditError, match="2 items have this question"):
        read_list(tmp_path / "redux.csv", toy)


def test_mmlu_redux_itself(shared_data, tmp_path):
    source = shared_data / "real" / "mmlu_redux" / "mmlu_redux_half.csv.gz"
    if not source.is_file():
        pytest.skip("MMLU-Redux is not here")
    from auditlib.readers.cells import option_list

    table = pd.read_csv(source, dtype=str, keep_default_na=False)
    table = table[~table["question"].map(lambda t: " ".join(t.casefold().split())).duplicated(keep=False)]
    items = pd.DataFrame({"item": [f"q{i}" for i in range(len(table))], "question": table["question"].tolist(),
                          "options": [option_list(c) for c in table["choices"]],
                          "key": ["ABCD"[int(k)] for k in table["groundtruth_answer"]]})  # fmt: skip
    path = write(tmp_path / "r.csv", table[["question", "choices", "groundtruth_answer", "error_type"]])
    found = read_list(path, Benchmark("MMLU", "", "MMLU", items)).reports
    assert [r.item for r in found] == items["item"].tolist()
    said = pd.Series([r.reason for r in found if r.status == "confirmed"]).value_counts().to_dict()
    wanted = table["error_type"].value_counts().drop("ok").to_dict()
    names = {"wrong_groundtruth": "wrong_key", "multiple_correct_answers": "several_keys",
             "no_correct_answer": "no_right_option", "bad_question_clarity": "ambiguous",
             "bad_options_clarity": "option_defect", "expert": "unspecified"}  # fmt: skip
    assert said == {names[word]: n for word, n in wanted.items()}


@pytest.mark.parametrize(
    ("rows", "row", "words"),
    [
        ({"item": ["1", "99"], "key": ["B", "B"]}, 3, "has no item '99'"),
        ({"item": ["1", "2"], "key": ["B", "E"]}, 3, "names no option"),
        ({"item": ["1"], "key": ["B"], "old_key": ["B"]}, 2, "stale: item '1' has the key 'A'"),
        ({"item": ["2"], "key": ["B"], "reason": ["wrong_key"]}, 2, "stale: item '2' has the key B in Toy.tsv already"),
        ({"item": ["1"], "reason": ["wrong_kye"]}, 2, "did you mean 'wrong_key'"),
        ({"item": ["1"], "status": ["maybe"], "key": ["B"]}, 2, "is no status"),
        ({"item": ["1"], "answer": ["B"]}, 1, "no column says what is wrong"),
        ({"number": ["1"], "key": ["B"]}, 1, "no column names the item"),
        ({"item": ["1"], "key": ["B"], "benchmark": ["Other"]}, None, "no row is on Toy"),
    ],
)  # fmt: skip
def test_mistakes_in_a_list_name_their_row(toy, tmp_path, rows, row, words):
    with pytest.raises(AuditError, match=words.replace("(", r"\(")) as e:
        read_list(write(tmp_path / "l.csv", rows), toy)
    assert e.value.row == row and e.value.file == tmp_path / "l.csv"


def test_columns_by_other_names_and_rows_on_other_benchmarks(toy, tmp_path):
    path = write(tmp_path / "l.csv", {"n": ["1", "7"], "gold": ["B", "x"], "benchmark": ["toy", "Other"]})
    found = read_list(path, toy, {"item": "n", "key": "gold"})
    assert [r.item for r in found.reports] == ["1"] and found.notes == ("1 rows on other benchmarks are left out",)
    with pytest.raises(AuditError, match="no column 'gone'"):
        read_list(path, toy, {"item": "gone"})


# ------------------------------------------------------------------------------------------------ readers


def packet_of(folder, labels, *, notes=None, task=CURATION, pool="tiny", keys="AABB"):
    """A packet of four items on disk, read by two; ``labels``: item -> the two readers' labels."""
    entries = pd.DataFrame({"item": list("0123"), "question": [f"q{i}" for i in range(4)],
                            "options": [["red", "blue", "green", "white"]] * 4, "key": list(keys)})  # fmt: skip
    packet = make_packet(task, entries, readers=["ann", "bob"], seed=1, pool=pool, flagged=list("0123"), sample=0)
    write_packet(packet, folder)
    rows = packet.key.rows.set_index("item")["row"]
    for place, reader in enumerate(("ann", "bob")):
        said = [(rows[i], pair[place], (notes or {}).get(i, "")) for i, pair in labels.items()]
        pd.DataFrame(said, columns=["row", "label", "note"]).to_csv(folder / f"decisions_{reader}.csv", index=False)
    return [folder / f"decisions_{r}.csv" for r in ("ann", "bob")]


@pytest.fixture
def audit():
    """Four items; all models name another letter than the key on items 0 and 1."""
    said = {(m, "full"): ["C", "D", "B", "B"] for m in ("a", "b", "c")}
    return auditlib.audit(pool_of(runs(said, list("AABB")), Params(pool="tiny", benchmark="Tiny",
                                                                   data={"embedded": "tinysee"})))  # fmt: skip


def test_readers_confirm_clear_and_leave_open(audit, tmp_path):
    same = {i: (x, x) for i, x in (("0", "key_error"), ("1", "no_issue"), ("2", "scorer_risk"))}
    files = packet_of(tmp_path, same | {"3": ("key_error", "no_issue")}, notes={"0": "see the sign; key: C"})
    rows = build_errata(audit, packet=tmp_path, decisions=files).errata.rows.set_index("item")
    assert rows["status"].to_dict() == {"0": "confirmed", "1": "rejected", "2": "confirmed"}
    assert rows.loc["0", ["proposed_key", "votes", "detectors"]].tolist() == ["C", "C 3", "consensus_error"]
    assert rows.loc["0", "outcome"] == "confirmed: key_error 2 of 2 readings"
    assert rows.loc["2", "reason"] == "scorer_risk" and rows.loc["2", "proposed_key"] == ""
    assert rows.loc["1", "outcome"] == "in order: no_issue 2 of 2 readings"
    assert set(rows["dataset_sha256"].str.len()) == {64}


def test_readers_who_name_different_keys_dispute(audit, tmp_path):
    files = packet_of(tmp_path, {"0": ("key_error", "key_error")})
    for file, key in zip(files, "CD"):
        pd.read_csv(file).assign(note=f"key: {key}").to_csv(file, index=False)
    row = build_errata(audit, packet=tmp_path, decisions=files).errata.rows.set_index("item").loc["0"]
    assert (row["status"], row["proposed_key"]) == ("disputed", "") and "readers name different keys" in row["evidence"]


def test_without_a_named_key_the_note_says_so(audit, tmp_path):
    files = packet_of(tmp_path, {"0": ("key_error", "key_error")})
    made = build_errata(audit, packet=tmp_path, decisions=files)
    assert made.errata.rows.set_index("item").loc["0", "proposed_key"] == ""
    assert any("1 confirmed wrong keys have no proposed key" in n for n in made.notes)


def test_a_packet_on_other_keys_or_another_pool_is_refused(audit, tmp_path):
    files = packet_of(tmp_path, {"0": ("key_error", "key_error")}, keys="BABB")
    with pytest.raises(AuditError, match="stale: item '0' has the key 'A'"):
        build_errata(audit, packet=tmp_path, decisions=files)
    files = packet_of(tmp_path / "b", {"0": ("no_issue", "no_issue")}, pool="another")
    with pytest.raises(AuditError, match="packet is of pool 'another'"):
        build_errata(audit, packet=tmp_path / "b", decisions=files)


def test_readers_of_the_text_alone_say_whether_the_image_is_needed():
    from auditlib.errata.people import _reason

    packet = type("P", (), {"task": DEPENDENCE})
    assert _reason(packet, "text_only", "sufficient") == "no_image_needed"
    assert _reason(packet, "full", "sufficient") is None


# ------------------------------------------------------------------------------------------------ table and text


def table(**columns) -> Errata:
    n = len(next(iter(columns.values())))
    base = {c: [""] * n for c in COLUMNS} | {"benchmark": ["Toy"] * n, "old_key": ["A"] * n}
    return Errata(pd.DataFrame(base | columns, columns=list(COLUMNS), dtype="str"), {"benchmark": "Toy", "pool": "toy"})


def test_table_survives_its_files(tmp_path):
    made = table(item=["=1+1", "2"], reason=["wrong_key", "no_image_needed"], status=["candidate", "confirmed"],
                 proposed_key=["B", ""], evidence=["=HYPERLINK(1)", "a, \"b\"\nc"])  # fmt: skip
    write_errata(made, tmp_path / "e.csv", tmp_path / "e.json")
    assert "\n'=1+1" in (tmp_path / "e.csv").read_text().replace("Toy,,", "\n"), "no spreadsheet runs a cell"
    for name in ("e.csv", "e.json"):
        back = read_errata(tmp_path / name)
        pd.testing.assert_frame_equal(back.rows, made.rows)
        assert back.facts["pool"] == "toy"
    said = json.loads((tmp_path / "e.json").read_text())
    assert said["reasons"] == {c: REASONS[c].meaning for c in ("wrong_key", "no_image_needed")}


def test_an_empty_table_and_odd_characters_survive(audit, tmp_path):
    write_errata(table(item=[]), tmp_path / "n.csv", tmp_path / "n.json")
    assert [len(read_errata(tmp_path / f"n.{e}").rows) for e in ("csv", "json")] == [0, 0]
    (tmp_path / "l.json").write_text(json.dumps([{"item": "0", "key": "C", "note": "a\u202e b\n  c\u0007"}]))
    made = build_errata(audit, lists=[tmp_path / "l.json"]).errata
    row = made.rows.set_index("item").loc["0"]
    assert "a⟨U+202E⟩ b c⟨U+0007⟩" in row["evidence"]
    write_errata(made, tmp_path / "e.csv", tmp_path / "e.json")
    assert read_errata(tmp_path / "e.csv").rows.equals(read_errata(tmp_path / "e.json").rows)


def test_an_edited_table_is_checked(tmp_path):
    base = {"item": ["1", "1"], "old_key": "A", "proposed_key": "B", "status": "confirmed"}
    for reasons, words in ((["wrong_key", "ambiguous"], "stands here twice"), (["wrong_key", "typo"], "is no reason")):
        path = write(tmp_path / "e.csv", pd.DataFrame(base | {"reason": reasons}))
        with pytest.raises(AuditError, match=words) as e:
            read_errata(path)
        assert e.value.row == 3
    with pytest.raises(AuditError, match="no column 'reason'"):
        read_errata(write(tmp_path / "e.csv", pd.DataFrame(base)))


def test_text_is_neutral_and_escaped():
    made = table(item=["7", "8", "9", "10"], reason=["wrong_key"] * 4,
                 status=["candidate", "confirmed", "rejected", "disputed"], proposed_key=["B", "C", "", ""],
                 evidence=["<img src=x> *bold* | @someone", "y", "", "different keys are proposed (B, C)"],
                 models=["m_1 B, m2 B"] * 4, outcome=["", "confirmed: key_error 2 of 2 readings", "", ""])  # fmt: skip
    text = errata_text(made)
    places = [text.index(h) for h in ("## Confirmed (1)", "## Disputed (1)", "## Candidates (1)", "## Found in order")]
    assert places == sorted(places)
    assert "(key A → B proposed)" in text and "(key A → C)" in text
    assert "In question: whether another option is right." in text.split("## Candidates")[1]
    assert "<img" not in text.replace(r"\<img", "") and r"\*bold\* \| `@`someone" in text
    assert "auditlib errata write params/toy.yaml" in text
    assert "No report speaks against an item." in errata_text(table(item=[]))


def test_a_text_replaces_only_a_text(tmp_path, capsys):
    made = table(item=["7"], reason=["wrong_key"], status=["candidate"], proposed_key=["B"])
    write_errata(made, tmp_path / "e.csv", tmp_path / "e.json")
    to = tmp_path / "t.md"
    command = ["errata", "text", str(tmp_path / "e.csv"), "--to", str(to)]
    assert main(command) == 0 and main(command) == 0, "its own text is written again"
    for mine in (b"# Notes: errata\nmine\n", b"\xff\xfe", b""):
        to.write_bytes(mine)
        assert main(command) == 2 and to.read_bytes() == mine
        assert "did not make it" in capsys.readouterr().err
    write_errata(table(item=[]), tmp_path / "e.csv", tmp_path / "e.json")
    to.unlink()
    assert main(command) == 0 and main(command) == 0, "so is one without items"


@pytest.mark.parametrize(("name", "value"), [("items", "many"), ("models", -1), ("items", 1.5), ("pool", ["p"])])
def test_facts_of_another_kind_are_one_line(tmp_path, capsys, name, value):
    made = table(item=["7"], reason=["wrong_key"], status=["candidate"])
    write_errata(made, tmp_path / "e.csv", tmp_path / "e.json")
    said = json.loads((tmp_path / "e.json").read_text()) | {name: value}
    (tmp_path / "e.json").write_text(json.dumps(said))
    assert main(["errata", "text", str(tmp_path / "e.json")]) == 2
    err = capsys.readouterr().err
    assert f"e.json: {name!r} is" in err.replace(str(tmp_path), "") and len(err.strip().splitlines()) == 1


def test_command_reads_the_review_of_the_pool(audit, tmp_path, capsys):
    save_audit(audit, RunPaths(tmp_path, "tiny"))
    params = tmp_path / "tiny.yaml"
    params.write_text("pool: tiny\nbenchmark: Tiny\ndata: {embedded: tinysee}\n")
    command = ["errata", "write", str(params), "--outputs", str(tmp_path)]
    assert main(command) == 0 and "2 rows on 2 items: 2 candidate" in capsys.readouterr().out
    labels = {"0": ("key_error", "key_error"), "1": ("no_issue", "no_issue")}
    files = packet_of(tmp_path / "tiny" / "review", labels, notes={"0": "key: C"})
    assert main(command) == 0 and "1 confirmed, 1 rejected" in capsys.readouterr().out
    # decisions that lie elsewhere are named
    moved = [f.rename(tmp_path / f.name) for f in files]
    assert main(command) == 0 and "2 candidate" in capsys.readouterr().out
    assert main([*command, "--review", *map(str, moved)]) == 0 and "1 confirmed" in capsys.readouterr().out
    assert main(["errata", "write", str(params), "--outputs", str(tmp_path / "none"), "--review", str(moved[0])]) == 2


# ------------------------------------------------------------------------------------------------ TinySee


@pytest.fixture(scope="module")
def tinysee(embedded_outputs):
    """The audit of the embedded pool, with few random draws."""
    params = load_params(ROOT / "params" / "tinysee.yaml")
    few = params.audit.model_copy(update={"permutations": 99, "bootstrap": 200, "splits": 2})
    return auditlib.audit(auditlib.read_pool(params.model_copy(update={"audit": few}), outputs=embedded_outputs))


def test_tinysee_candidates_are_the_votes_against_the_key(tinysee):
    built = build_errata(tinysee)
    rows = built.errata.rows
    assert set(rows["status"]) == {"candidate"}
    keyed = rows[rows["reason"].eq("wrong_key")]
    wanted = tinysee.findings
    wanted = wanted[wanted["detector"].eq("consensus_error") & wanted["severity"].isin(["medium", "low"])]
    assert set(keyed["item"]) == set(wanted["item"])
    assert (keyed["proposed_key"] != keyed["old_key"]).all() and keyed["votes"].str.len().gt(0).all()
    assert set(rows["reason"]) <= set(REASONS)


def test_command_writes_table_and_text(tinysee, tmp_path, capsys):
    save_audit(tinysee, RunPaths(tmp_path, "tinysee"))
    params = str(ROOT / "params" / "tinysee.yaml")
    write(tmp_path / "list.csv", {"item": ["150", "257"], "key": ["B", "B"]})
    assert main(["errata", "write", params, "--outputs", str(tmp_path), "--import", str(tmp_path / "list.csv")]) == 0
    assert "1 disputed" in capsys.readouterr().out
    rows = read_errata(tmp_path / "tinysee" / "errata.csv").rows.set_index("item")
    assert rows.loc["150", "status"] == "disputed" and rows.loc["257", "sources"] == "audit, list.csv"
    assert main(["errata", "text", str(tmp_path / "tinysee" / "errata.csv"), "--to", str(tmp_path / "t.md")]) == 0
    assert (tmp_path / "t.md").read_text().startswith("# TinySee: ")
    # people edit the table: it is not written over, and read again it keeps what they decided
    path = tmp_path / "tinysee" / "errata.csv"
    edited = pd.read_csv(path, dtype=str, keep_default_na=False)
    edited.loc[edited["item"].eq("57"), "status"] = "confirmed"
    edited.loc[edited["item"].eq("121"), ["status", "outcome"]] = ["rejected", "looked at"]
    edited.to_csv(path, index=False)
    assert main(["errata", "write", params, "--outputs", str(tmp_path)]) == 2
    assert "has been edited since it was written" in capsys.readouterr().err
    assert main(["errata", "write", params, "--outputs", str(tmp_path), "--import", str(path)]) == 0
    again = read_errata(path).rows.set_index("item")
    assert again["status"].to_dict() == dict(zip(edited["item"], edited["status"]))
    assert again.loc["57", ["proposed_key", "sources"]].tolist() == ["D", "audit, errata.csv"]
    assert again.loc["121", "outcome"] == "looked at" and again.loc["150", "proposed_key"] == ""
    write(tmp_path / "list.csv", {"item": ["150"], "key": ["B"], "old_key": ["C"]})
    assert main(["errata", "write", params, "--outputs", str(tmp_path), "--import", str(tmp_path / "list.csv"),
                 str(path)]) == 2  # fmt: skip
    assert "row 2: stale: item '150'" in capsys.readouterr().err
