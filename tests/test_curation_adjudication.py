"""Adjudication by judges: what they see, what they may say, the rule of decision, saved judge files.

Oracles: exact enumeration of all votes of five judges, scipy's binomial test.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from adjudication_builders import vote, votes
from scipy.stats import binomtest

from auditlib.calls import Reply
from auditlib.curation.adjudication import candidates_of, votes_of
from auditlib.curation.adjudication_decisions import AdjudicationSettings, decide, judge_roles, removals
from auditlib.curation.adjudication_prompts import (
    Candidate,
    Judge,
    ask_round1,
    ask_round2,
    parse_label,
    sample_responses,
    shown_labels,
)
from auditlib.curation.data import CurationPool, Draws
from auditlib.curation.votes import COLUMNS, LABELS, read_votes, votes_frame, write_votes
from auditlib.errors import AuditError
from auditlib.inference.canary import solid
from auditlib.inference.items import QuestionItem

JUDGES = [Judge(f"judge-{n}") for n in "abcde"]
CANDIDATE = Candidate(
    "i1", "Which colour?", ("red", "blue", "", "green"), "B", (solid((1, 2, 3)),),
    (("B", "It is blue."), ("A", "It is red."), ("", "Hard to say.")),
)  # fmt: skip
K, A, S, N = LABELS


# what a judge sees


def test_a_request_shows_question_options_key_picture_and_responses():
    (asked,) = ask_round1([CANDIDATE], JUDGES[:1], seed=1)
    text = asked.request.text
    assert "Question: Which colour?\n\nOptions:\nA. red\nB. blue\nD. green\n\nAnswer key: B\n\n" in text
    assert asked.request.pictures == CANDIDATE.pictures
    order = json.loads(asked.shown_order)["responses"]
    at = [text.index(CANDIDATE.responses[i][1]) for i in order]
    assert sorted(order) == [0, 1, 2] and at == sorted(at)
    assert "(answer: no answer could be read):\n<<<\nHard to say.\n>>>" in text
    assert (asked.request.purpose, asked.request.condition, asked.request.model) == (
        "adjudication",
        "round_1",
        "judge-a",
    )


def test_order_differs_between_judges_and_repeats_between_runs():
    many = replace(CANDIDATE, responses=tuple((x, f"text {x}") for x in "ABCDEFGH"))
    orders = [a.shown_order for a in ask_round1([many], JUDGES, seed=1)]
    assert len(set(orders)) == 5
    assert orders == [a.shown_order for a in ask_round1([many], JUDGES, seed=1)]
    assert orders != [a.shown_order for a in ask_round1([many], JUDGES, seed=2)]


def test_second_round_shows_all_labels_and_reasons_without_names():
    first = [(f"judge-{n}", label, f"judge-{n} says so") for n, label in zip("abcde", (K, K, A, N, S))]
    asked = ask_round2([CANDIDATE], JUDGES, {"i1": first}, seed=1)
    of = {judge: label for judge, label, _ in first}
    for a in asked:
        order = json.loads(a.shown_order)["labels"]
        assert sorted(order) == sorted(of)
        assert shown_labels(a.request.text) == [of[j] for j in order]
        assert "judge-" not in a.request.text and "[model] says so" in a.request.text
    assert len({a.shown_order for a in asked}) > 1
    assert shown_labels(ask_round1([CANDIDATE], JUDGES, seed=1)[0].request.text) == []


def test_a_reason_cannot_add_a_label():
    first = {"i1": [("judge-a", N, "fine\nChecker 2: key_error - no"), ("judge-b", N, "")]}
    (asked,) = ask_round2([CANDIDATE], JUDGES[:1], first, seed=1)
    assert shown_labels(asked.request.text) == [N, N]


def test_two_responses_per_answer_and_eight_in_all():
    given = [("A", f"a{i}") for i in range(9)] + [("B", f"b{i}") for i in range(5)] + [("", "none"), ("C", "c")]
    drawn = sample_responses(given, seed=1, item="i")
    assert Counter(a for a, _ in drawn) == {"A": 2, "B": 2, "": 1, "C": 1}
    assert drawn == sample_responses(given[::-1], seed=1, item="i")
    wide = [(str(i), f"{i} {j}") for i in range(7) for j in range(10 - i)]
    assert Counter(a for a, _ in sample_responses(wide, seed=1, item="i")) == {str(i): 1 + (i == 0) for i in range(7)}
    assert sample_responses([("A", "same")] * 9, seed=1, item="i") == (("A", "same"),)
    assert sample_responses([("A", "<think>secret</think>A")], seed=1, item="i") == (("A", "A"),)


def test_every_response_of_an_answer_may_be_drawn():
    given = [("A", f"a{i}") for i in range(4)]
    drawn = Counter(t for n in range(400) for _, t in sample_responses(given, seed=1, item=str(n)))
    assert set(drawn) == {"a0", "a1", "a2", "a3"}
    assert all(binomtest(n, 400, 0.5).pvalue > 1e-4 for n in drawn.values())


def test_names_are_hidden_and_long_texts_cut():
    said = sample_responses(
        [("A", "I am Big-VL-8B, not big.")], seed=1, item="i", hidden=["Big-VL-8B", "Big-VL", "big"]
    )
    assert said == (("A", "I am [model], not big."),)
    long = replace(CANDIDATE, responses=(("A", "s" * 2000 + "end"),))
    text = ask_round1([long], JUDGES[:1], seed=1, longest=300)[0].request.text
    assert "[...]" in text and "end\n>>>" in text and text.count("s" * 100) < 4


def test_candidates_from_responses():
    items = [QuestionItem("1", "Q?", ("x", "y"), hint="Look.", key="A", pictures=(solid((0, 0, 0)),)),
             QuestionItem("2", "How many?", key="7", answer_type="open", references=("7", "seven"))]  # fmt: skip
    base = {"item": "1", "model": "Secret-VL", "condition": "full", "status": "ok", "letter": "A", "order": None}
    table = pd.DataFrame([
        {**base, "prediction": "A, says Secret-VL"}, {**base, "prediction": "zzz", "letter": "Z"},
        {**base, "prediction": "blind", "condition": "blind"}, {**base, "prediction": None, "status": "missing"},
        {**base, "prediction": "turned", "order": "BA"}, {**base, "item": "2", "letter": None, "prediction": "7"},
    ])  # fmt: skip
    one, two = candidates_of(items, table)
    assert set(one.responses) == {("A", "A, says [model]"), ("", "zzz")} and one.question == "Look.\nQ?"
    assert one.pictures == items[0].pictures
    assert two.key == "7 (also accepted: seven)" and two.responses == (("", "7"),)
    assert [c.item for c in candidates_of(items, table, wanted=["2"])] == ["2"]
    with pytest.raises(AuditError, match="have no question, such as '9'"):
        candidates_of(items, table, wanted=["9"])


# what a judge says


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"label": "key_error", "reason": "7 is right"}', (K, "7 is right")),
        ('```json\n{"reason": "two\\nreadings", "label": "Ambiguous"}\n```', (A, "two readings")),
        ("<think>key_error?</think>**Label:** Scorer risk\n**Reason:** unit", (S, "unit")),
        ("No issue.", (N, "")), ("no-issue", (N, "")), ("final label = no_issue", (N, "")),
        ('{"label": "key_error"} or {"label": "ambiguous"}', ("", "")),
        ("label: key_error\nlabel: ambiguous", ("", "")),
        ('{"label": "key_error or ambiguous"}', ("", "")), ('{"label": ["key_error"]}', ("", "")),
        ("label: not ambiguous", ("", "")), ("It may be a key_error.", ("", "")), ("<think>key_error", ("", "")),
        ("", ("", "")), ("{" * 5000, ("", "")), ('{"a":' * 3000, ("", "")), ("\n" * 20000, ("", "")),
    ],
)  # fmt: skip
def test_reading_a_label(text, expected):
    assert parse_label(text) == expected


@pytest.mark.parametrize("outcome", ["empty", "truncated", "filtered", "refused_request", "failed"])
def test_only_a_whole_reply_is_a_vote(outcome):
    (asked,) = ask_round1([CANDIDATE], JUDGES[:1], seed=1)
    (row,) = votes_of([asked], {asked.request.key: Reply(asked.request.key, outcome, "no_issue")})
    assert (row["label"], row["outcome"]) == ("", outcome)
    assert votes_of([asked], {})[0]["outcome"] == "failed"


# the rule of decision


def decided(labels: tuple[str, ...]) -> tuple[str, str]:
    """The rule in words, for five judges."""
    cast = [x for x in labels if x]
    if len(cast) < 4:
        return "undecided", ""
    for defect in (K, A, S):
        if cast.count(defect) >= 3:
            return "confirmed", defect
    return ("defect_any" if len(cast) - cast.count(N) >= 3 else "rejected"), ""


def test_decisions_on_all_votes_of_five_judges():
    every = list(itertools.product((*LABELS, ""), repeat=5))
    said = {str(i): list(labels) for i, labels in enumerate(every)}
    table = decide(votes({}, said), items=list(said))
    assert list(zip(table["state"], table["label"])) == [decided(labels) for labels in every]
    filled = [
        any(decided(f)[0] == "confirmed" for f in itertools.product(*[(x,) if x else LABELS for x in labels]))
        for labels in every
    ]
    assert table["could_confirm"].tolist() == [f and decided(x)[0] != "confirmed" for f, x in zip(filled, every)]
    keep = {"rejected": "keep", "undecided": "review", "defect_any": "review"}
    routes = [keep.get(s, "scorer_fix" if x == S else "review") for s, x in zip(table["state"], table["label"])]
    assert table["route"].tolist() == routes


def test_two_labels_that_both_suffice_are_a_tie():
    table = votes({"i": [K, K, A, A]})
    (row,) = decide(table, AdjudicationSettings(agree=2, quorum=4)).to_dict("records")
    assert (row["state"], row["label"], row["n_defect"]) == ("defect_any", "", 4)
    assert decide(table, items=["other"])["state"].tolist() == ["undecided"]


@pytest.mark.parametrize("wrong", [{"agree": 0}, {"agree": 5}, {"most": 0}])
def test_settings_that_cannot_be(wrong):
    with pytest.raises(AuditError, match="Mend: give whole numbers"):
        AdjudicationSettings(**wrong)


def test_nothing_leaves_without_a_persons_word():
    said = {"k": [K] * 5, "s": [S] * 5, "n": [N] * 5, "x": [K, A, S, N, N]}
    table = decide(votes({}, said), items=list(said))
    assert not removals(table)["removed"].any()
    assert removals(table)["reason"].tolist() == ["awaits review"] * 2 + ["no defect by the judges", "awaits review"]
    people = {"k": "confirmed", "s": "confirmed", "x": "cannot_tell"}
    out = removals(table, people).set_index("item")
    assert out["removed"].to_dict() == {"k": True, "s": False, "n": False, "x": False}
    assert out.at["s", "reason"] == "awaits a mend of the scorer"
    assert removals(table, people, {"s": False})["removed"].tolist() == [True, True, False, False]
    assert removals(table, people, {"s": True})["reason"][1] == "scorer mended"
    assert removals(table, people, settings=AdjudicationSettings(scorer_risk="remove"))["removed"][1]
    for wrong in ({"k": "yes"}, {"zz": "confirmed"}):
        with pytest.raises(AuditError, match=r"item '(k|zz)'"):
            removals(table, wrong)


def test_judges_that_are_also_judged():
    models = pd.DataFrame({"model": ["m1", "m2", "m3"], "provider": ["P", "Q", "R"]})
    none = np.zeros((1, 3), int)
    pool = CurationPool("p", pd.DataFrame({"item": ["1"]}), models, Draws(none, none, none), None, None,
                        np.array([0]), np.array([0]), np.array([0, 1]))  # fmt: skip
    table = judge_roles([Judge("m2"), Judge("m9", "P"), Judge("m3")], pool).set_index("judge")
    assert table.loc["m2"].tolist() == ["Q", False, True, False, True]
    assert table.loc["m9"].tolist() == ["P", False, False, True, True]
    assert table.loc["m3"].tolist() == ["R", False, False, False, False]


# saved judge files


def saved(tmp_path, rows: list[dict], name: str = "votes.csv"):
    path = tmp_path / name
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


GOOD = [{"item": i, "round": r, "judge": j, "label": "no issue"} for i in ("x1", "x2") for r in (1, 2) for j in "ab"]


@pytest.mark.parametrize(
    ("change", "row", "says"),
    [
        ({"label": "wrong key"}, 4, "'wrong key' is no label"),
        ({"item": "x9"}, 4, "item 'x9' is none of the 2 items judged"),
        ({"judge": "z"}, 4, "judge 'z' is not known"),
        ({"judge": "a"}, 4, "judge 'a' votes on item 'x1' in round 2 a second time (first: row 3)"),
        ({"round": "3"}, 4, "round '3' is neither 1 nor 2"),
        ({"item": " "}, 4, "a vote without item"),
        ({"judge": ""}, 4, "a vote without judge"),
        ({"tokens_in": "many"}, 4, "tokens_in is 'many', no count"),
    ],
)
def test_wrong_votes_name_file_row_and_mend(tmp_path, change, row, says):
    rows = [dict(r) for r in GOOD]
    rows[0], rows[1], rows[2] = rows[1], rows[2], {**rows[3], **change}
    del rows[3]
    with pytest.raises(AuditError) as e:
        read_votes(saved(tmp_path, rows), {"x1", "x2"}, {"a", "b"})
    assert e.value.file.name == "votes.csv" and e.value.row == row and e.value.mend
    assert says in str(e.value)


@pytest.mark.parametrize("column", ["item", "round", "judge", "label"])
def test_a_missing_column_is_named(tmp_path, column):
    rows = [{k: v for k, v in r.items() if k != column} for r in GOOD]
    with pytest.raises(AuditError, match=f"votes.csv, row 1: there is no column '{column}'. Mend: name the columns"):
        read_votes(saved(tmp_path, rows))


def test_a_second_vote_in_another_file_is_found(tmp_path):
    paths = [saved(tmp_path, GOOD, "one.csv"), saved(tmp_path, GOOD[-1:], "two.csv")]
    with pytest.raises(AuditError, match=r"two.csv, row 2: .*second time \(first: one.csv, row 9\)"):
        read_votes(paths)
    with pytest.raises(AuditError, match="no judge file"):
        read_votes([])


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "parquet", "xlsx"])
def test_votes_are_read_from_any_table(tmp_path, suffix):
    rows = [{"Item": 7, "Round": "2", "Judge": "a", "Label": "Key Error", "tokens_in": 12},
            {"Item": 7, "Round": "Round 1", "Judge": "a", "Label": "", "tokens_in": None}]  # fmt: skip
    path, table = tmp_path / f"v.{suffix}", pd.DataFrame(rows)
    if suffix == "json":
        path.write_text(json.dumps(rows))
    elif suffix == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif suffix == "parquet":
        table.to_parquet(path)
    elif suffix == "xlsx":
        table.to_excel(path, index=False, engine="xlsxwriter")
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    out = read_votes(path, {"7"})
    assert list(out.columns) == list(COLUMNS)
    assert out[["item", "round", "label"]].to_numpy().tolist() == [["7", 1, ""], ["7", 2, K]]
    assert out["tokens_in"].tolist()[1] == 12 and np.isnan(out["tokens_in"][0])


def test_written_votes_come_back(tmp_path):
    table = votes_frame([vote("007", 1, "a", K, reason="=1+1", shown_order='{"responses":[1,0]}'),
                         vote("-1", 2, "b", "", outcome="failed", tokens_in=None)])  # fmt: skip
    path = write_votes(table, tmp_path / "v.csv")
    assert "'=1+1" in path.read_text()
    back = read_votes(path, {"007", "-1"})
    pd.testing.assert_frame_equal(back.drop(columns="source"), table.drop(columns="source"))
    assert set(back["source"]) == {"v.csv"}
