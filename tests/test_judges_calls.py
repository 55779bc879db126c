"""Judge calls: reading them from files and live replies, what is counted apart, and the extraction judge's check."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from auditlib.calls import Reply
from auditlib.errors import AuditError
from auditlib.inference.items import QuestionItem
from auditlib.inference.judge import JudgeSettings, judge_requests
from auditlib.inference.store import Store
from auditlib.judges import extraction_judge as ej
from auditlib.judges.calls import STATES, answer_states, calls_frame, settle
from auditlib.judges.decision_data import choices_of, prompts_of
from auditlib.judges.pairs import length_effect, order_consistency, slot_preference
from auditlib.judges.readers import read_candidates, read_choices, read_pairs, read_ratings, read_scores
from auditlib.judges.requests import Decision, DecisionSettings, calls_of, orders_of, plan_decisions
from auditlib.judges.validity_card import (
    BINDING,
    ValidityCard,
    read_card,
    same_judge,
    text_sha256,
    why_expired,
    write_card,
)
from auditlib.judges.verdicts import pair_verdict, score_value, written_choice
from auditlib.synth.decision_judges import GOOD, PlantedJudge, planted_calls, planted_candidates

CALL = {"judge": "j", "instance": "p", "paradigm": "best_of_n", "shown": ("a", "b"), "state": "chosen", "slot": 1}


def _csv(tmp_path, text, name="calls.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


# the contract


def test_slot_and_choice_follow_from_each_other():
    table = calls_frame([CALL, CALL | {"slot": -1, "choice": "a"}, CALL | {"state": "tie", "slot": -1}])
    assert table["choice"].tolist() == ["b", "a", ""] and table["slot"].tolist() == [1, 0, -1]
    assert table["order"].tolist() == ["a | b"] * 3 and table["cluster"].tolist() == ["p"] * 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"slot": 2}, "chooses a slot that was not shown"),
        ({"slot": -1}, "'chosen' without a slot"),
        ({"state": "tie"}, "names a slot without being 'chosen'"),
        ({"choice": "a"}, "slot 2 showed 'b', not 'a'"),
        ({"slot": -1, "choice": "z"}, "chooses 'z', which was not shown"),
        ({"shown": ("a", "a")}, "one candidate in two slots"),
        ({"paradigm": "pairwise", "shown": ("a", "b", "c")}, "does not show two"),
        ({"paradigm": "single"}, "scores more than one candidate"),
        ({"state": "maybe", "slot": -1}, "unknown state"),
        ({"effect": "worse"}, "unknown effect"),
        ({"state": "scored", "slot": -1}, "'scored' without a score"),
        ({"score": 3.0}, "a score without being 'scored'"),
    ],
)
def test_calls_that_contradict_themselves_are_refused(change, says):
    with pytest.raises(AuditError, match=re.escape(says)) as e:
        calls_frame([CALL | change | {"run": "x.csv", "row": 7}])
    assert e.value.row == 7 and e.value.file == "x.csv" and e.value.mend


def test_duplicates_count_once_and_contradictions_not_at_all():
    rows = [CALL, CALL, CALL | {"repeat": 1, "slot": 0}, CALL | {"shown": ("b", "a")},
            CALL | {"shown": ("b", "a"), "slot": 0}, CALL | {"comparison": "other"}]  # fmt: skip
    table, coverage = settle(calls_frame(rows))
    assert [(r["what"], r["n"]) for r in coverage] == [("duplicate", 1), ("conflict", 2)]
    assert "rows of 1 calls" in coverage[1]["reason"]
    assert table[["comparison", "order", "repeat"]].to_numpy().tolist() == [
        ["", "a | b", 0], ["", "a | b", 1], ["other", "a | b", 0]]  # fmt: skip


# readers


def test_pairwise_votes_are_counted_apart(tmp_path):
    path = _csv(tmp_path, "q,m1,m2,said,broken,who\n"
                "1,x,y,Answer1,,one\n1,y,x,Answer2,,one\n"  # follows x
                "2,x,y,[[A]],,one\n2,y,x,A,,one\n"  # first slot twice
                "3,x,y,tie,,one\n3,y,x,tie,1,one\n"  # declared, from failure
                "4,x,y,both are lovely,,one\n4,y,x,,,one\n"  # unparsed, no reply
                "5,x,y,y,,one\n5,x,y,y,,one\n6,x,y,A,,one\n6,x,y,B,,one\n"  # duplicate, contradiction
                "1,x,y,hm,,two\n1,y,x,hm,,two\n")  # fmt: skip
    columns = {"prompt": "q", "first": "m1", "second": "m2", "verdict": "said", "error": "broken", "judge": "who"}
    calls = read_pairs(path, columns)
    states = answer_states(calls.table).set_index("judge")
    assert states.loc["one", list(STATES)].tolist() == [5, 0, 1, 1, 1, 0, 1]
    assert states["answered"].tolist() == pytest.approx([6 / 9, 0])
    said = {(r["what"], r["model"]): (r["n"], r["reason"]) for r in calls.coverage.to_dict("records")}
    assert said["read", ""][0] == 14 and said["duplicate", "one"][0] == 1 and said["conflict", "one"][0] == 2
    assert "name the column 'repeat'" in said["conflict", "one"][1]
    assert "nothing can be said about it" in said["warning", "two"][1]
    reasons = " / ".join(calls.coverage["reason"])
    assert "one order only: not in the order comparison" in reasons and "something failed" in reasons
    table = order_consistency(calls.table[calls.table["judge"].eq("one")]).iloc[0]
    # pairs 1 and 2 are whole, 3 and 4 lack a judgement, 5 has one order
    assert table[["pairs", "estimate", "locked", "same_slot_first", "unanswered", "one_order"]].tolist() == [
        2, 0.5, 1, 1, 2, 1]  # fmt: skip


def test_one_order_for_all_is_said(tmp_path):
    calls = read_pairs(_csv(tmp_path, "prompt,first,second,verdict\n1,x,y,A\n2,x,y,B\n"))
    assert "an effect of the order cannot be told" in calls.coverage["reason"].iloc[-1]
    assert order_consistency(calls.table).iloc[0][["pairs", "one_order"]].tolist() == [0, 2]


def test_verdicts_of_the_file_come_first():
    assert pair_verdict("A", meanings={"A": "second"}) == ("chosen", 1)
    assert pair_verdict("x", shown=("y", "x")) == ("chosen", 1)
    assert pair_verdict("Unable to decide: situation two")[0] == "tie"
    assert pair_verdict("error: timeout")[0] == "no_reply"
    with pytest.raises(AuditError, match="is to mean 'win'"):
        read_pairs("nowhere.csv", verdicts={"A": "win"})


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_choices_read_alike_from_every_format(tmp_path, suffix):
    table = pd.DataFrame({
        "prompt": ["1", "1", "2", "2"], "shown": [["a", "b", "c"], ["b", "c", "a"], ["a", "b"], ["b", "a"]],
        "choice": ["a", None, "hm", "tie"], "slot": [1, 3, None, None], "repeat": [0, 0, 0, 0],
    })  # fmt: skip
    path = tmp_path / f"calls.{suffix}"
    if suffix == "csv":
        table.assign(shown=table["shown"].map("|".join)).to_csv(path, index=False)
    elif suffix == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)
    calls = read_choices(path).table
    assert calls["state"].tolist() == ["chosen", "chosen", "unparsed", "tie"]
    assert calls["choice"].tolist() == ["a", "a", "", ""] and calls["slot"].tolist() == [0, 2, -1, -1]
    assert calls["row"].tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "says", "row"),
    [
        ("prompt,shown,choice,slot\n1,a|b,a,2\n", "slot 2 showed 'b', the choice is 'a'", 2),
        ("prompt,shown,choice\n1,a|b,a\n2,a|a,a\n", "candidates shown are 'a|a'", 3),
        ("prompt,shown\n1,a|b\n", "no column says what was chosen", None),
        ("prompt,choice\n1,a\n", "there is no column 'shown'", 1),
        ("prompt,shown,choice\n,a|b,a\n", "no prompt is named", 2),
        ("prompt,shown,choice,repeat\n1,a|b,a,x\n", "repeat is 'x'", 2),
        ("prompt,shown,choice,repeat\n1,a|b,a,\n", "repeat is ''", 2),
    ],
)
def test_choices_that_cannot_be_read_name_the_row(tmp_path, text, says, row):
    path = _csv(tmp_path, text)
    with pytest.raises(AuditError, match=re.escape(says)) as e:
        read_choices(path)
    assert e.value.file == path and e.value.row == row and e.value.mend


def test_scores_know_their_sentinel_and_scale(tmp_path):
    path = _csv(tmp_path, "prompt,one,two\n1,4,-1\n2,,9\n3,fine,2.5\n")
    calls = read_scores(path, judges={"x": "one", "y": "two"}, scale=(1, 5)).table
    by = {j: t["state"].tolist() for j, t in calls.groupby("judge")}
    assert by == {"x": ["scored", "no_reply", "unparsed"], "y": ["sentinel", "unparsed", "scored"]}
    assert calls["score"].dropna().tolist() == [4, 2.5]
    # where -1 is on the scale, it is a score
    assert score_value("-1", sentinels=()) == ("scored", -1.0)
    with pytest.raises(AuditError, match="there is no column 'three'"):
        read_scores(path, judges={"z": "three"})
    with pytest.raises(AuditError, match="columns name 'promt'"):
        read_scores(path, {"promt": "x"})


def test_candidates_and_ratings(tmp_path):
    good = "prompt,candidate,rating,similarity\n1,a,3,.2\n1,b,4.5,.3\n"
    assert read_candidates(_csv(tmp_path, good))["rating"].tolist() == [3, 4.5]
    for text, says, row in (
        (good + "1,a,2,.1\n", "a second time", 4),
        (good + "2,a,high,.1\n", "rating is 'high'", 4),
        (good + "2,a,,.1\n", "rating is ''", 4),
    ):
        with pytest.raises(AuditError, match=re.escape(says)) as e:
            read_candidates(_csv(tmp_path, text))
        assert e.value.row == row
    with pytest.raises(AuditError, match="rates 'a' a second time"):
        read_ratings(_csv(tmp_path, "prompt,candidate,rater,rating\n1,a,r,1\n1,a,r,2\n"))


# live judges


def _decisions():
    return [Decision(f"p{i}", "a red house", tuple((c, (f"text of {c}",)) for c in names), cluster="one")
            for i, names in enumerate(("abc", "de"))]  # fmt: skip


def test_requests_show_every_candidate_in_every_slot_and_no_name():
    settings = DecisionSettings("judge", repeats=2, ties=True)
    planned = list(plan_decisions(_decisions(), settings))
    assert len(planned) == (3 + 2) * 2 == len({p.request.key for p in planned})
    for j in "abc":
        assert sorted(p.shown.index(j) for p in planned if j in p.shown) == [0, 0, 1, 1, 2, 2]
    assert planned[0].request.text.index("text of a") < planned[0].request.text.index("text of b")
    assert not re.search(r"\bp0\b", planned[0].request.text)
    assert orders_of(4, "given") == [(0, 1, 2, 3)]
    pairs = list(plan_decisions(_decisions(), DecisionSettings("judge", paradigm="pairwise")))
    assert [p.shown for p in pairs[:2]] == [("a", "b"), ("b", "a")] and len(pairs) == 2 * (3 + 1)
    with pytest.raises(AuditError, match="fewer than two candidates"):
        list(plan_decisions([Decision("p", "x", (("a", ("t",)),))], settings))


def test_replies_become_calls():
    settings = DecisionSettings("judge")
    planned = list(plan_decisions(_decisions(), settings))
    texts = ["Fine.\nChoice: 1", "Choice: **3**", "I like 2", "Choice: tie", ""]
    answers = {p.request.key: Reply(p.request.key, "ok" if t else "empty", t, tokens_out=5)
               for p, t in zip(planned, texts)}  # fmt: skip
    calls = calls_of(planned, settings, answers.get)
    assert calls.table["state"].tolist() == ["chosen", "chosen", "unparsed", "unparsed", "no_reply"]
    # the second order is b, c, a
    assert calls.table["choice"].tolist() == ["a", "a", "", "", ""] and (calls.table["cluster"] == "one").all()
    del answers[planned[0].request.key]
    assert "calls that were not made" in calls_of(planned, settings, answers.get).coverage["reason"].tolist()
    assert written_choice("The best: candidate 2", 3)[0] == "unparsed"


def test_pairs_of_one_prompt_are_compared_pair_by_pair():
    planned = list(plan_decisions(_decisions()[:1], DecisionSettings("judge", paradigm="pairwise")))
    settings = DecisionSettings("judge", paradigm="pairwise")
    # a beats b in both orders, the first slot wins a against c, b against c is asked in one order only
    said = dict(zip((p.request.key for p in planned[:-1]), ["1", "2", "1", "1", "2"]))
    calls = calls_of(planned, settings, lambda key: Reply(key, "ok", said[key]) if key in said else None)
    row = order_consistency(calls.table).iloc[0]
    assert row[["pairs", "estimate", "locked", "one_order"]].tolist() == [2, 0.5, 1, 1]
    assert calls.coverage.set_index("what")["n"].to_dict() == {"warning": 1, "not run": 1}


def test_a_stopped_run_goes_on_from_the_store(tmp_path):
    settings = DecisionSettings("judge", repeats=2)
    planned = list(plan_decisions(_decisions(), settings))
    with Store(tmp_path / "answers.sqlite") as store:
        for p in planned[:4]:
            store.put(p.request, Reply(p.request.key, "ok", "Choice: 2", tokens_in=9, tokens_out=3))
    with Store(tmp_path / "answers.sqlite") as store:
        left = [p.request for p in planned if p.request.key not in store]
        assert len(left) == 6
        calls = calls_of(planned, settings, store.get)
    assert calls.table[["repeat", "choice"]].to_numpy().tolist() == [[0, "b"], [1, "b"], [0, "c"], [1, "c"]]
    assert calls.table["tokens_in"].tolist() == [9.0] * 4


# validity card


def test_card_expires_when_anything_changes(tmp_path):
    card = ValidityCard("j", "v1", text_sha256("prompt"), "cyclic", "all orders agree", "2026-01-10", 300,
                        {"coverage": 0.4}, expires="2026-12-31")  # fmt: skip
    again = read_card(write_card(card, tmp_path / "card.json"))
    assert again == card
    now = {name: getattr(card, name) for name in BINDING}
    assert why_expired(card, now, "2026-06-01") == []
    for name in BINDING:
        assert len(why_expired(card, now | {name: "other"}, "2026-06-01")) == 1
    assert "not known any more" in why_expired(card, {k: v for k, v in now.items() if k != "version"}, "2026-06-01")[0]
    assert why_expired(card, now, "2027-01-01") == ["the card held until 2026-12-31"]
    (tmp_path / "card.json").write_text(json.dumps({"judge": "j"}))
    with pytest.raises(AuditError, match="no validity card"):
        read_card(tmp_path / "card.json")


def test_another_judge_behind_the_name_is_seen():
    candidates = planted_candidates(80, seed=3)
    prompts = prompts_of(candidates)

    def ask(judge, seed):
        return choices_of(planted_calls(candidates, [judge], seed=seed), prompts, judge.name)

    rng = np.random.default_rng(4)
    same = same_judge(ask(GOOD, 1), ask(GOOD, 2), rng=rng, draws=300)
    assert not same.changed and same.left_out == 0
    shifted = same_judge(ask(GOOD, 1), ask(replace(GOOD, locked=0.4), 2), rng=rng, draws=300)
    assert shifted.slots < 0.01
    dull = same_judge(ask(GOOD, 1), ask(PlantedJudge("good", sharpness=0.5), 2), rng=rng, draws=300)
    assert dull.candidates < 0.01 and dull.changed
    card = ValidityCard("j", "v", "h", "cyclic", "f", "2026-01-10", 80)
    now = {n: getattr(card, n) for n in BINDING}
    assert "chooses otherwise" in why_expired(card, now, "2026-02-01", dull)[0]


# the extraction judge


ITEM = QuestionItem("i", "Which?", ("red", "blue", "green"), key="B")
YES = QuestionItem("y", "Is it?", key="Yes", answer_type="yesno")


def _responses():
    return pd.DataFrame({"run": "r", "item": ["i", "i", "y"], "model": "m", "condition": "full", "sample": 0,
                         "status": "ok", "prediction": ["the green one", "A, surely", "yes it is"],
                         "order": ["", "CBA", ""]})  # fmt: skip


def test_variants_change_one_thing_and_plain_is_the_audits_own_request():
    settings = JudgeSettings("judge", repeats=2)
    found = list(ej.variant_requests([ITEM, YES], _responses(), settings))
    plain = [r for _, v, r in found if v == "plain"]
    assert [r.key for r in plain] == [r.key for r in judge_requests([ITEM, YES], _responses(), settings)]
    text = {(p, v): r.text for p, v, r in found if r.sample == 0}
    assert "A. red\nB. blue\nC. green" in text[0, "plain"] and "C. green\nB. blue\nA. red" in text[0, "permuted"]
    # the second reply saw green as A: the judge lists it so, reversed in the variant
    assert "C. red\nB. blue\nA. green" in text[1, "permuted"]
    for place, key in ((0, "B"), (1, "B"), (2, "Yes")):
        said = f"\n\nThe right answer is {key}."
        assert said not in text[place, "plain"] and text[place, "key_shown"].replace(said, "") == text[place, "plain"]
    assert (2, "permuted") not in text
    moved = _responses().assign(order=["", "BCA", ""])
    assert "The right answer is A." in next(
        r.text for p, v, r in ej.variant_requests([ITEM], moved, settings) if (p, v) == (1, "key_shown")
    )


def test_readings_are_mapped_to_own_letters():
    settings = JudgeSettings("judge")
    found = list(ej.variant_requests([ITEM, YES], _responses(), settings))
    answers = {r.key: Reply(r.key, "ok", "Yes" if p == 2 else "A") for p, _, r in found}
    lost = found[-1][2].key
    answers[lost] = Reply(lost, "failed")
    readings = ej.variant_readings([ITEM, YES], _responses(), settings, answers.get)
    plain = readings[readings["variant"].eq("plain")]
    assert plain["said"].tolist() == ["A", "C", "Yes"]
    assert readings[readings["outcome"].eq("failed")]["said"].tolist() == [""]


def _planted(n, lean, rng):
    """A judge that misreads 10 %, and says the key with chance ``lean`` when it is shown."""
    truth = rng.choice(list("ABCZ"), n)
    key = np.where(rng.random(n) < 0.5, truth, rng.choice(list("ABC"), n))

    def read():
        return np.where(rng.random(n) < 0.1, rng.choice(list("ABCZ"), n), truth)

    shown = np.where(rng.random(n) < lean, key, read())
    return pd.DataFrame({"response": np.arange(n), "truth": truth, "key": key, "plain": read(), "permuted": read(),
                         "key_shown": shown, "again": read(), "kind": rng.choice(["long", "short"], n),
                         "cluster": np.arange(n).astype(str), "weight": 1.0})  # fmt: skip


def test_a_judge_that_leans_to_the_key_is_found(rng):
    table = _planted(900, 0.3, rng)
    lenient = ej.leniency(table).set_index("variant")
    wrong = lenient.loc["key_shown"]
    # leans with .3, and else misreads to the key by chance: .7 x .1 x 1/4
    assert wrong["false_right_low"] < 0.3 + 0.7 * 0.025 < wrong["false_right_high"] and wrong["q"] < 1e-6
    assert lenient.loc["plain", "false_right_high"] < 0.06
    moved = ej.variant_changes(table).set_index(["variant", "truth"])
    assert moved.loc[("key_shown", "wrong"), "to_key"] > 10 * moved.loc[("key_shown", "wrong"), "from_key"]
    assert moved.loc[("key_shown", "wrong"), "q"] < 0.001 and moved.loc[("key_shown", "all"), "low"] > 0.02
    # options permuted: no more change than asking again
    assert moved.loc[("permuted", "all"), "low"] < 0 < moved.loc[("permuted", "all"), "high"]
    accuracy = ej.accuracy_by_kind(table).set_index("kind")
    assert accuracy.loc["all", "estimate"] == pytest.approx(0.925, abs=0.025) and accuracy["n"].iloc[1:].sum() == 900


def test_an_unmoved_judge_shows_no_leaning(rng):
    moved = ej.variant_changes(_planted(900, 0.0, rng))
    assert (moved["q"].dropna() > 0.01).all() and moved["p"].notna().all()


def test_truth_is_joined_once():
    readings = pd.DataFrame({"response": [0, 0, 1], "variant": ["plain", "plain", "plain"], "repeat": [0, 1, 0],
                             "said": ["A", "B", ""]})  # fmt: skip
    truth = pd.DataFrame({"response": [0, 1], "truth": ["A", "Z"], "key": ["A", "B"]})
    table = ej.joined_readings(readings, truth)
    assert table[["plain", "again", "permuted"]].to_numpy().tolist() == [["A", "B", ""], ["", "", ""]]
    assert ej.accuracy_by_kind(table).iloc[0][["n", "unread", "estimate"]].tolist() == [1, 1, 1]
    with pytest.raises(AuditError, match="read twice by people"):
        ej.joined_readings(readings, truth.assign(response=0))
    with pytest.raises(AuditError, match="no reading by people"):
        ej.joined_readings(readings, truth.assign(truth=["A", ""]))
    with pytest.raises(AuditError, match="weight is not positive"):
        ej.joined_readings(readings, truth.assign(weight=[1, 0]))


# real votes in both orders


def test_mllm_bench_votes_in_both_orders(shared_data):
    path = shared_data / "real" / "mllm_bench_swaps" / "pairwise_votes_both_orders.csv.gz"
    columns = {"prompt": "question_idx", "first": "model_1", "second": "model_2", "verdict": "raw_verdict",
               "comparison": "source"}  # fmt: skip
    calls = read_pairs(path, columns, judge="GPT-4V")
    assert answer_states(calls.table).iloc[0][["chosen", "tie", "unparsed", "calls"]].tolist() == [8163, 237, 0, 8400]
    consistent = order_consistency(calls.table).set_index("comparison")
    rates = consistent["estimate"].sort_values()
    assert (rates.iloc[0], rates.iloc[-1]) == pytest.approx((0.7119, 0.9667), abs=1e-4)
    assert rates.index[0] == "qwen-vl-chat_no_criteria" and rates.index[-1].startswith("claude")
    assert (consistent["pairs"] == 420).all() and (consistent["estimate"] <= consistent["decided"]).all()
    raw = pd.read_csv(path)
    # the same by hand, from the cells
    one = raw[raw["source"].eq("qwen-vl-chat_no_criteria")]
    model = one["model_1"].where(one["raw_verdict"].eq("Answer1"), one["model_2"])
    said = model.where(one["raw_verdict"].str.startswith("Answer"), "tie").groupby(one["question_idx"])
    assert said.nunique().eq(1).mean() == rates.iloc[0]
    prefer = slot_preference(calls.table).set_index("comparison")
    marked = prefer.index[prefer["q_clusters"] < 0.05]
    assert sorted(marked) == ["microsoft/phi-3-medium-128k-instruct_llava_criteria", "qwen-vl-chat_no_criteria"]
    # the first slot for one, the second for the other
    assert prefer.loc[marked, "estimate"].sort_values().tolist() == pytest.approx([0.4536, 0.5346], abs=1e-3)
    lengths = raw[["len_1", "len_2"]].to_numpy(float)[calls.table["row"].to_numpy() - 2]
    longer = length_effect(calls.table, lengths).set_index("comparison")
    assert (longer["q"] < 0.05).sum() == 8 and (longer.loc[longer["q"] < 0.05, "coef"] > 0).all()
    assert longer.loc[marked, "slot_q"].max() < 0.01


def test_sentinels_of_real_scores(shared_data):
    path = shared_data / "real" / "vlm_judge_human" / "mllm_judge_scores_3judges_half.csv.gz"
    judges = {"llava": "llava_critic_7b_score", "phi": "phi4_score", "gemini": "gemini25flash_score"}
    calls = read_scores(path, {"prompt": "sample_id", "comparison": "orig_dataset"}, judges=judges, scale=(1, 5))
    raw = pd.read_csv(path)
    states = answer_states(calls.table).set_index("judge")
    for name, column in judges.items():
        assert states.loc[name, "sentinel"] == (raw[column] == -1).sum()
        assert states.loc[name, "scored"] + states.loc[name, "sentinel"] == len(raw)
    by_set = answer_states(calls.table, ("comparison", "judge"))
    assert by_set["sentinel"].sum() == (raw[list(judges.values())] == -1).sum().sum()
    assert len(by_set) == raw["orig_dataset"].nunique() * 3
