"""Answers out of the store: the audit's frames, VLMEvalKit's files, and the checks after a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from auditlib.calls import Generation, Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.export import collect, run_label, write_runs
from auditlib.inference.items import QuestionItem, items_table, read_question_items
from auditlib.inference.noop import noop_checks
from auditlib.inference.plan import RunSettings, plan_coverage, requests_of
from auditlib.inference.store import Store
from auditlib.inference.vlmevalkit_export import write_vlmevalkit
from auditlib.params import load_params
from auditlib.readers.own_runs import has_own, read_own
from auditlib.readers.vlmevalkit import read_vlmevalkit
from auditlib.reading import pool_of
from auditlib.synth.embedded import materialise

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = RunSettings("lab/tiny model", ("full", "blind"))
TEXT_ONLY = RunSettings("m", ("blind",))
#: replies that spreadsheets damage, by place
HAZARDS = ["=1+1", "http://a.b/c", "B\x07\x00.", "_x0041_ B", "line\r\nend\t|", " B ", "+5", "0012", "😀 é", '"B"']


def questions(n: int = 4, **more) -> list[QuestionItem]:
    return [
        QuestionItem(str(i), f"q{i}", ("red", "blue", "green"), key="ABC"[i % 3], stratum="st"[i % 2], **more)
        for i in range(n)
    ]


def answered(store: Store, requests, said) -> None:
    """``said(request)`` is a text or a Reply without key."""
    for r in requests:
        reply = said(r)
        reply = Reply(r.key, "ok", reply, finish="stop", created=1.0) if isinstance(reply, str) else reply
        store.put(r, replace(reply, key=r.key))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "answers.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def tinysee() -> list[QuestionItem]:
    return read_question_items(materialise("tinysee", "unused") / "TinySee.tsv")


def recorded() -> dict[tuple[str, str], str]:
    """The replies of one embedded model, by condition and item."""
    runs = read_vlmevalkit(materialise("tinysee", "unused"), "TinySee", models=["tinyvlm-alpha"])
    table = runs.responses
    return dict(zip(zip(table["condition"], table["item"]), table["prediction"]))


def test_tinysee_from_store_to_audit_and_to_the_toolkits_files(tinysee, store, tmp_path):
    said = recorded()
    answered(store, requests_of(tinysee, SETTINGS), lambda r: said[r.condition, r.item])
    collected = collect(store, tinysee, requests_of(tinysee, SETTINGS))
    write_runs(collected, tinysee, tmp_path / "runs", "TinySee")
    own = read_own(tmp_path / "runs")
    files, rows = write_vlmevalkit(own.responses, tinysee, tmp_path / "results", "TinySee")
    assert [f.relative_to(tmp_path / "results").as_posix() for f in files] == [
        "lab__tiny__model/lab__tiny__model_TinySee.xlsx",
        "lab__tiny__model_blind/lab__tiny__model_blind_TinySee.xlsx",
    ]
    assert rows == []
    theirs = read_vlmevalkit(tmp_path / "results", "TinySee")
    for runs in (own, theirs):
        got = dict(zip(zip(runs.responses["condition"], runs.responses["item"]), runs.responses["prediction"]))
        assert got == said
        assert set(runs.responses["status"]) == {"ok"} and len(runs.items) == 600
    facts = ["item", "question", "options", "key", "k", "answer_type", "stratum", "substratum"]
    first = own.items[own.items["run"] == "lab/tiny model/full"][facts].reset_index(drop=True)
    other = theirs.items[~theirs.items["run"].str.contains("blind")][facts].reset_index(drop=True)
    pd.testing.assert_frame_equal(first, other, check_dtype=False)


def test_the_audit_counts_own_runs_as_the_toolkits(tinysee, store, tmp_path):
    """Recorded replies put in the store give the counts that the toolkit's own files give."""
    params = load_params(ROOT / "params" / "tinysee.yaml")
    theirs = read_vlmevalkit(materialise("tinysee", "unused"), "TinySee")
    columns = ("model", "condition", "item")
    said = dict(zip(zip(*(theirs.responses[c] for c in columns)), theirs.responses["prediction"]))
    requests = [r for m in theirs.models["model"] for r in requests_of(tinysee, RunSettings(m))]
    answered(store, requests, lambda r: said[r.model, r.condition, r.item])
    write_runs(collect(store, tinysee, requests), tinysee, tmp_path, "TinySee")
    own, other = (pool_of(r, params).arms["exact"] for r in (read_own(tmp_path), theirs))
    for condition in ("full", "blind"):
        assert (own.hits[condition] == other.hits[condition]).all()
        assert own.hits[condition].size == 1200


@pytest.mark.parametrize("suffix", [".xlsx", ".tsv"])
def test_what_spreadsheets_do_to_replies(store, tmp_path, suffix):
    items = questions(len(HAZARDS))
    answered(store, requests_of(items, TEXT_ONLY), lambda r: HAZARDS[int(r.item)])
    responses = collect(store, items, requests_of(items, TEXT_ONLY)).responses
    (path,), _ = write_vlmevalkit(responses, items, tmp_path / "r", "Toy", suffix=suffix)
    assert path.suffix == suffix
    read = read_vlmevalkit(tmp_path / "r", "Toy").responses
    assert read["prediction"].tolist() == HAZARDS


def test_a_reply_too_long_for_a_cell_makes_a_tsv(store, tmp_path):
    items, long = questions(2), "B " * 20_000
    answered(store, requests_of(items, TEXT_ONLY), lambda r: long if r.item == "1" else "A")
    responses = collect(store, items, requests_of(items, TEXT_ONLY)).responses
    for _ in range(2):
        (path,), (row,) = write_vlmevalkit(responses, items, tmp_path / "r", "Toy")
        assert path.suffix == ".tsv" and row["n"] == 1 and "32,767" in row["reason"]
    assert read_vlmevalkit(tmp_path / "r", "Toy").responses["prediction"].tolist() == ["A", long]


def test_what_the_toolkits_layout_has_no_place_for(store, tmp_path):
    items = questions(2)
    for settings in (
        RunSettings("m", ("blind", "none"), samples=2),
        RunSettings("m", ("blind",), "told_to_guess"),
    ):
        answered(store, requests_of(items, settings), lambda r: "A")
    requests = [
        *requests_of(items, RunSettings("m", ("blind", "none"), samples=2)),
        *requests_of(items, RunSettings("m", ("blind",), "told_to_guess")),
    ]
    files, rows = write_vlmevalkit(collect(store, items, requests).responses, items, tmp_path / "r", "Toy")
    assert len(files) == 1
    assert {(r["condition"], r["n"], r["reason"].split(",")[0]) for r in rows} == {
        ("blind", 2, "repeats beyond the first"),
        ("none", 4, "neither full nor blind"),
        ("blind", 2, "another prompt mode"),
    }


OUTCOMES = {
    "0": (
        Reply("", "ok", "B", reasoning="It is B.", finish="stop", tokens_in=5, tokens_out=1, server_model="s-1"),
        "ok",
    ),
    "1": (Reply("", "empty", "", finish="stop"), "missing"),
    "2": (Reply("", "truncated", "The answer is C. Because", finish="length"), "ok"),
    "3": (Reply("", "truncated", "Let me think about the", finish="length"), "truncated"),
    "4": (Reply("", "filtered", "", finish="content_filter"), "filtered"),
    "5": (Reply("", "refused_request", error="400 this is no multimodal model"), "failed"),
    "6": (Reply("", "failed", error="timeout"), "failed"),
}


def test_outcomes_and_statuses(store, tmp_path):
    items = questions(8)
    answered(store, [r for r in requests_of(items, TEXT_ONLY) if r.item != "7"], lambda r: OUTCOMES[r.item][0])
    collected = collect(store, items, requests_of(items, TEXT_ONLY))
    write_runs(collected, items, tmp_path, "Toy", coverage=plan_coverage(items, TEXT_ONLY))
    assert has_own(tmp_path)
    runs = read_own(tmp_path)
    responses = runs.responses.set_index("item")
    assert responses["status"].to_dict() == {i: status for i, (_, status) in OUTCOMES.items()}
    assert responses.at["0", "reasoning"] == "It is B." and responses.at["0", "prediction"] == "B"
    assert responses.at["2", "finish"] == "length" and responses.at["0", "tokens_in"] == 5
    counts = {(r["what"], r["n"]) for r in runs.coverage.to_dict("records") if r["what"] != "warning"}
    assert counts == {("read", 7), ("not run", 1)}
    failed = [r for r in runs.coverage["reason"] if r.startswith("calls that failed")]
    assert (
        failed == ["calls that failed; run again to ask them (most often: 400 this is no multimodal model)"] or failed
    )
    fact = runs.provenance["runs"]["m/blind"]
    assert fact["server_model"] == ["s-1"] and fact["generation"]["temperature"] == 0.0
    assert fact["outcomes"]["not asked"] == 1 and fact["tokens_in"] == 5
    assert runs.provenance["prompt_mode"] == "silent"
    write_vlmevalkit(runs.responses, items, tmp_path / "r", "Toy")
    theirs = read_vlmevalkit(tmp_path / "r", "Toy").responses.set_index("item")["status"].to_dict()
    assert theirs == {**{i: s for i, (_, s) in OUTCOMES.items()}, "3": "ok"}


def test_prompt_modes_are_never_mixed(store, tmp_path):
    items = questions(2)
    both = [RunSettings("m", ("blind",), mode) for mode in ("silent", "told_to_guess")]
    requests = [r for s in both for r in requests_of(items, s)]
    answered(store, requests, lambda r: "A" if r.prompt_mode == "silent" else "B")
    write_runs(collect(store, items, requests), items, tmp_path, "Toy")
    with pytest.raises(AuditError, match=r"two prompt modes lie here.*Mend: choose one"):
        read_own(tmp_path)
    runs = read_own(tmp_path, "told_to_guess")
    assert set(runs.responses["prediction"]) == {"B"} and set(runs.items["run"]) == {"m/blind/told_to_guess"}
    with pytest.raises(AuditError, match="no runs of prompt mode 'x'"):
        read_own(tmp_path, "x")


def test_a_plan_that_asks_one_thing_in_two_ways_is_refused(store):
    items = questions(1)
    two = [RunSettings("m", ("blind",), layout=layout) for layout in ("vlmevalkit", "reasoning")]
    requests = [r for s in two for r in requests_of(items, s)]
    answered(store, requests, lambda r: "A")
    with pytest.raises(AuditError, match="asked twice in the run m/blind"):
        collect(store, items, requests)


def test_answers_to_another_plan_stay_out(store):
    items = questions(2)
    warm = replace(TEXT_ONLY, generation=Generation(temperature=1.0))
    answered(store, requests_of(items, warm), lambda r: "C")
    collected = collect(store, items, requests_of(items, TEXT_ONLY))
    assert len(collected.responses) == 0 and collected.coverage[-1]["n"] == 2


def test_damaged_own_runs(store, tmp_path):
    with pytest.raises(AuditError, match=r"no runs\.json in this folder"):
        read_own(tmp_path)
    items = questions(1)
    answered(store, requests_of(items, TEXT_ONLY), lambda r: "A")
    write_runs(collect(store, items, requests_of(items, TEXT_ONLY)), items, tmp_path, "Toy")
    facts = json.loads((tmp_path / "runs.json").read_text())
    (tmp_path / "runs.json").write_text(json.dumps(facts | {"format": 99}))
    with pytest.raises(AuditError, match="another version"):
        read_own(tmp_path)
    (tmp_path / "runs.json").write_text(json.dumps(facts))
    (tmp_path / "items.parquet").write_bytes(b"no")
    with pytest.raises(AuditError, match="damaged"):
        read_own(tmp_path)


def test_labels():
    request = Request("1", "a/b", "blind", ("t",), prompt_mode="told_to_guess")
    assert run_label(request) == "a/b/blind/told_to_guess"


def check_frame(full: list[str], blind: list[str], tokens=(50, 40), key="A") -> pd.DataFrame:
    """Checks on one model's two runs, by name."""
    items = [QuestionItem(str(i), "q", ("red", "blue"), key=key, stratum="s") for i in range(len(full))]
    rows = [
        {"run": c, "row": i, "item": str(i), "model": "m", "condition": c, "sample": 0, "prediction": t, "status": "ok",
         "tokens_in": n}
        for c, texts, n in (("full", full, tokens[0]), ("blind", blind, tokens[1]))
        for i, t in enumerate(texts)
    ]  # fmt: skip
    return noop_checks(pd.DataFrame(rows), items_table(items)).set_index("name")


def test_checks_of_a_sound_run():
    found = check_frame(["The picture shows a red ball, so A"] * 30, ["B"] * 30)
    assert found["verdict"].to_dict() == {
        "identical_replies": "info", "long_identical_replies": "pass", "prompt_tokens_equal": "pass",
        "prompt_tokens_saved": "info", "mentions_image": "pass", "refuses": "info", "accuracy": "info",
    }  # fmt: skip
    assert found.at["prompt_tokens_saved", "value"] == 10 and found.at["accuracy", "value"] == 0
    assert found.at["accuracy", "reference"] == 1.0


def test_checks_find_a_picture_that_was_never_taken_away():
    text = "A, as the image shows a red ball."
    found = check_frame([text] * 30, [text] * 30, tokens=(50, 50))
    expected = {"identical_replies": "warn", "long_identical_replies": "fail", "prompt_tokens_equal": "fail"}
    assert {n: found.at[n, "verdict"] for n in expected} == expected
    assert found.at["mentions_image", "value"] == 1 and found.at["mentions_image", "verdict"] == "warn"


def test_checks_count_refusals_apart_from_mentions():
    found = check_frame(["A"] * 4, ["I cannot see the image.", "In the picture, A", "B", "B"], tokens=(None, None))
    assert found.at["refuses", "value"] == 0.25 and found.at["mentions_image", "value"] == 0.25
    assert found.at["prompt_tokens_equal", "verdict"] == "warn" and found.at["prompt_tokens_equal", "n"] == 0


def test_accuracy_is_held_against_the_commonest_key():
    items = [QuestionItem(str(i), "q", ("a", "b", "c", "d"), key="ABCD"[i % 4], stratum="s") for i in range(100)]
    rows = [
        {"run": "b", "row": i, "item": str(i), "model": "m", "condition": "blind", "sample": 0, "status": "ok",
         "prediction": "ABCD"[i % 4] if i < 60 else "Z"}
        for i in range(100)
    ]  # fmt: skip
    found = noop_checks(pd.DataFrame(rows), items_table(items)).set_index("name")
    assert (found.at["accuracy", "value"], found.at["accuracy", "reference"]) == (0.6, 0.25)
    assert found.at["accuracy", "verdict"] == "warn" and "gives away" in found.at["accuracy", "sentence"]


def test_nothing_to_check_gives_no_rows():
    assert len(noop_checks(pd.DataFrame(columns=["model", "condition", "item", "sample", "prediction", "status"]),
                           items_table(questions(1)))) == 0  # fmt: skip
