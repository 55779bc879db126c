"""The extraction judge: what it is shown, how it is read, and what its silence counts as."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from auditlib.calls import Generation, Reply
from auditlib.frames import COLUMNS
from auditlib.inference.items import QuestionItem
from auditlib.inference.judge import PURPOSE, JudgeSettings, judge_requests, judgements_of, read_judge_reply
from auditlib.inference.store import Store

SETTINGS = JudgeSettings("tiny-judge")
CHOICE = QuestionItem("1", "Which colour?", ("red", "blue", "", "green"), key="B", stratum="s")
YES_NO = QuestionItem("2", "Is it red?", key="Yes", answer_type="yesno")
OPEN = QuestionItem("3", "How many?", key="7", answer_type="open")


def response(item: str = "1", prediction: str = "It is the blue one", **more) -> dict:
    return {"run": "m/blind", "row": 1, "item": item, "model": "m", "condition": "blind", "sample": 0,
            "prediction": prediction, "status": "ok", **more}  # fmt: skip


def table(*rows: dict) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


def judged(said, *rows: dict, settings: JudgeSettings = SETTINGS, items=(CHOICE, YES_NO, OPEN)):
    """Verdicts where the judge says ``said``: a text, a Reply, None, or one of these per repeat."""
    responses = table(*rows)
    each = said if isinstance(said, list) else [said] * settings.repeats
    answers = {}
    for r in judge_requests(items, responses, settings):
        reply = each[r.sample]
        if reply is not None:
            answers[r.key] = Reply(r.key, "ok", reply) if isinstance(reply, str) else replace(reply, key=r.key)
    return judgements_of(items, responses, settings, answers.get)


def test_a_request_shows_question_options_and_reply():
    (request,) = judge_requests([CHOICE], table(response()), SETTINGS)
    assert "Question: Which colour?\n\nOptions:\nA. red\nB. blue\nD. green\n\nReply:\n<<<\nIt is the blue one\n>>>" in (
        request.text
    )
    assert request.text.endswith("Write one letter (A, B, D, Z) only.")
    assert (request.purpose, request.model, request.pictures, request.system) == (PURPOSE, "tiny-judge", (), None)


@pytest.mark.parametrize("item", [CHOICE, YES_NO])
def test_the_key_plays_no_part_in_a_request(item):
    rows = table(response(item.item))
    plain = replace(item, key="", references=())
    planted = replace(item, key="KEY-5f1c", references=("KEY-5f1c", "OTHER-77aa"), stratum="KEY-5f1c")
    (a,), (b,) = (list(judge_requests([i], rows, SETTINGS)) for i in (plain, planted))
    assert a == b and a.key == b.key
    assert "KEY-5f1c" not in repr(b) and "OTHER-77aa" not in repr(b)


def test_yes_no_and_open_questions():
    (request,) = judge_requests([YES_NO, OPEN], table(response("2", "Surely so"), response("3", "seven")), SETTINGS)
    assert request.item == "2" and "Options" not in request.text and request.text.endswith("Write Yes, No or Z only.")
    out = judged("yes.", response("2", "Surely so")).judgements
    assert (out.at[0, "extracted"], out.at[0, "hit"]) == ("Yes", 1.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", "B"), (" B. ", "B"), ("(B)", "B"), ("**B**", "B"), ('"B"', "B"), ("<think>A?</think>\nB", "B"),
        ("Z", "Z"), ("b", "Z"), ("B or C", "Z"), ("The answer is B", "Z"), ("C", "Z"), ("", "Z"), ("BB", "Z"),
        ("<think>B", "Z"), ("<think>A or B", "Z"), ("B\nbecause", "Z"),
    ],
)  # fmt: skip
def test_reading_is_strict(text, expected):
    assert read_judge_reply(text, "ABD") == expected


def test_hits_come_from_comparing_with_the_key_after_reading():
    for letter, hit in (("B", 1.0), ("A", 0.0), ("Z", 0.0)):
        out = judged(letter, response())
        (row,) = out.judgements.to_dict("records")
        assert row == {
            "run": "m/blind", "item": "1", "model": "m", "condition": "blind", "sample": 0, "judge": "tiny-judge",
            "hit": hit, "extracted": letter, "source": "llm", "hit_stored": hit,
        }  # fmt: skip
        assert out.coverage == [] and out.agreement is None
        assert list(out.judgements.columns) == [*COLUMNS["judgements"], "hit_stored"]


@pytest.mark.parametrize("outcome", ["empty", "filtered", "truncated", "refused_request"])
def test_a_judge_that_says_nothing_has_abstained(outcome):
    out = judged(Reply("", outcome, "B" if outcome == "truncated" else ""), response())
    assert (out.judgements.at[0, "extracted"], out.judgements.at[0, "hit"]) == ("Z", 0.0)
    assert out.coverage[0]["what"] == "warning" and out.coverage[0]["n"] == 1


@pytest.mark.parametrize("said", [None, Reply("", "failed")])
def test_a_call_that_failed_gives_no_row(said):
    out = judged(said, response(), response("2", "yes"))
    assert len(out.judgements) == 0 and out.coverage[0]["n"] == 2 and out.coverage[0]["what"] == "not run"


def test_options_are_shown_in_the_replys_order_and_mapped_back():
    rows = table(response(order="DBAC"))
    (request,) = judge_requests([CHOICE], rows, SETTINGS)
    assert "A. green\nB. blue\nC. red\n\n" in request.text
    assert judged("A", response(order="DBAC")).judgements.at[0, "extracted"] == "D"
    assert judged("B", response(order="DBAC")).judgements.at[0, "hit"] == 1.0


def test_equal_replies_share_one_request_and_each_has_a_verdict():
    rows = (response(), response(condition="full", run="n/full", model="n"), response(prediction="red"))
    assert len(list(judge_requests([CHOICE], table(*rows), SETTINGS))) == 2
    assert len(judged("B", *rows).judgements) == 3


def test_replies_that_are_none_are_not_judged():
    rows = [response(status=s) for s in ("failed", "missing", "filtered")]
    rows += [response(prediction=""), response(prediction="<think>x</think>"), response("9")]
    assert list(judge_requests([CHOICE], table(*rows), SETTINGS)) == []


def test_thinking_and_the_head_of_long_replies_are_not_shown():
    rows = table(response(prediction="<think>secret</think>B"), response(prediction="y" * 9000 + " so B"))
    first, second = (r.text for r in judge_requests([CHOICE], rows, SETTINGS))
    assert "secret" not in first and "<<<\nB\n>>>" in first
    assert "[...] yyy" in second and second.count("y") < 8100 and " so B\n>>>" in second


def test_repeats_tell_self_agreement():
    settings = JudgeSettings("tiny-judge", Generation(temperature=1.0, max_tokens=4), repeats=3)
    assert [r.sample for r in judge_requests([CHOICE], table(response()), settings)] == [0, 1, 2]
    out = judged(["B", "B", "A"], response(), response(prediction="other"), settings=settings)
    assert (out.agreement, out.repeated, out.judgements["extracted"].tolist()) == (0.0, 2, ["B", "B"])
    assert judged("B", response(), settings=settings).agreement == 1.0
    assert judged(["B", None, None], response(), settings=settings).agreement is None


def test_answers_are_cached_in_the_store(tmp_path):
    rows = table(response())
    (request,) = judge_requests([CHOICE], rows, SETTINGS)
    with Store(tmp_path / "a.sqlite") as store:
        store.put(request, Reply(request.key, "ok", "B"))
        assert judgements_of([CHOICE], rows, SETTINGS, store.get).judgements.at[0, "hit"] == 1.0
        assert list(store.rows()) == [] and len(list(store.rows(PURPOSE))) == 1
