"""A look at the first items with files on all of them; votes that cannot confirm; judges asked at a local endpoint."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from fault_server import FaultServer

from auditlib.curation import packet, study
from auditlib.curation.from_files import effort_tables, error_tables
from auditlib.curation.measures import measure
from auditlib.curation.people import People
from auditlib.curation.reading import curation_pool
from auditlib.errors import AuditError
from auditlib.inference.asking import asker
from auditlib.inference.items import QuestionItem
from auditlib.params import check_params
from auditlib.paths import RunPaths
from auditlib.pool import Pool
from auditlib.reading import read_pool
from auditlib.review.files import load_packet
from auditlib.synth.embedded import companion

FIRST = 150


def params_of(folder, **curation):
    return check_params(
        {"pool": "mmgist_small", "benchmark": "MMGist", "data": {"embedded": "mmgist_small"}, "curation": curation},
        folder / "p.yaml",
    )


@cache
def whole(outputs):
    return read_pool(params_of(outputs), outputs=outputs)


def quick(outputs, **curation):
    """The first items, under params with files."""
    pool = replace(whole(outputs).head(FIRST), params=params_of(outputs, **curation))
    return study.recall(pool)


def test_a_quick_look_remembers_the_items_it_leaves_out(embedded_outputs):
    pool = whole(embedded_outputs)
    look = pool.head(FIRST).head(100)
    ids = pool.items["item"].astype(str).tolist()
    assert look.beyond == frozenset(ids[100:]) and pool.beyond == frozenset()
    assert look.items["item"].tolist() == ids[:100]


def test_votes_on_items_beyond_the_limit_are_left_out_and_counted(embedded_outputs, tmp_path):
    file = tmp_path / "votes.csv"
    votes = pd.read_csv(companion("mmgist_small", "votes", embedded_outputs), dtype=str, keep_default_na=False)
    votes.to_csv(file, index=False)
    found = study.judged(quick(embedded_outputs, adjudication={"votes": [str(file)]}), embedded_outputs)
    said = found.adjudication.coverage.set_index("reason")["n"]
    inside = set(found.pool.items["item"])
    beyond = int((~votes["item"].isin(inside)).sum())
    assert said["votes on items beyond the limit of this quick look"] == beyond > 0
    assert set(found.adjudication.votes["item"]) <= inside and len(found.adjudication.votes)
    # an item of no pool is still a mistake
    votes.loc[3, "item"] = "nowhere"
    votes.to_csv(file, index=False)
    with pytest.raises(AuditError, match=r"row 5: item 'nowhere' is none of"):
        study.judged(quick(embedded_outputs, adjudication={"votes": [str(file)]}), embedded_outputs)


def test_labels_and_effort_beyond_the_limit_are_left_out_and_counted(embedded_outputs, tmp_path):
    ids = whole(embedded_outputs).items["item"].astype(str).tolist()
    both = ids[:FIRST:3] + ids[FIRST::40]
    rows = [{"item": i, "model": m, "level": level, "correct": float(n % 3 == 0)}
            for n, i in enumerate(both) for m in ("a", "b") for level in ("low", "high")]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "effort.csv", index=False)
    labels = pd.DataFrame({"item": both, "labeller": "ann", "label": "reasoning"})
    labels.to_csv(tmp_path / "errors.csv", index=False)
    c = quick(embedded_outputs, labelled_errors=str(tmp_path / "errors.csv"), effort=str(tmp_path / "effort.csv"))
    lost = len(ids[FIRST::40])
    made = error_tables(c) | effort_tables(c)
    assert made["labelled_coverage"]["n"].tolist() == [lost]
    assert made["effort_coverage"]["n"].tolist() == [4 * lost]  # models x levels
    assert "beyond the limit" in made["effort_coverage"]["reason"].iloc[0]
    assert made["effort"].set_index("capability").loc["item mean", "items"] == len(ids[:FIRST:3])


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (lambda v: v[v["round"].eq("1")], "all votes are of round 1: no judge saw the others' reasons"),
        (lambda v: v[v["round"].eq("2")], "all votes are of round 2: what judges said before"),
        (lambda v: v[v["judge"].eq(v["judge"].iloc[0])], "3 must agree to confirm: nothing can be confirmed"),
    ],
)
def test_votes_of_one_round_or_one_judge_are_stated(embedded_outputs, tmp_path, part, says):
    votes = pd.read_csv(companion("mmgist_small", "votes", embedded_outputs), dtype=str, keep_default_na=False)
    votes["round"] = votes["round"].str.removesuffix(".0")
    kept = part(votes)
    kept.to_csv(tmp_path / "votes.csv", index=False)
    found = study.judged(quick(embedded_outputs, adjudication={"votes": [str(tmp_path / "votes.csv")]}),
                         embedded_outputs)  # fmt: skip
    said = found.adjudication.coverage
    said = said[said["what"].eq("warning") & said["reason"].str.contains(says, regex=False)]
    assert said["n"].tolist() == [int(kept["label"].ne("").sum())]


def test_both_rounds_of_enough_judges_need_no_word():
    votes = pd.DataFrame({"label": "no_issue", "round": [1, 2] * 4, "judge": list("aabbccdd")})
    assert study.lopsided(votes, 3) == []


def test_a_model_twice_in_a_role_is_refused(embedded_outputs):
    pool = whole(embedded_outputs)
    name = pool.model_names[0]
    params = params_of(embedded_outputs, panel=[name, name])
    with pytest.raises(AuditError, match=rf"curation\.panel names '{name}' twice"):
        curation_pool(pool, params.curation)


def test_counts_of_no_draw_say_so():
    pool = Pool.from_hits(np.ones((4, 2)))
    none = {"full": np.zeros((4, 2), int)}
    pool = replace(pool, arms={n: replace(a, hits=none, trials=none) for n, a in pool.arms.items()})
    with pytest.raises(AuditError, match="every count with the image is 0: no draw was made"):
        curation_pool(pool)


def test_decisions_without_a_packet_name_the_notebook(tmp_path):
    with pytest.raises(AuditError, match="run notebook 25_review first"):
        load_packet(tmp_path)


def test_a_quick_look_reads_the_packet_of_the_whole_pool(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("auditlib.review.stage.decision_files", lambda settings, folder: [folder])
    monkeypatch.setattr("auditlib.review.stage.load_review", lambda settings, paths: seen.append(paths.pool))
    monkeypatch.setattr(packet, "from_review", lambda review: People({}, {}, {}, pd.DataFrame()))
    packet.people_of(None, RunPaths(tmp_path, "p.limit50"))
    own = tmp_path / "q.limit50" / "review"
    own.mkdir(parents=True)
    (own / "packet.json").write_text("{}")
    packet.people_of(None, RunPaths(tmp_path, "q.limit50"))
    assert seen == ["p", "q.limit50"]


# judges that are asked


def test_live_judges_confirm_what_they_all_see_and_are_asked_once(tmp_path):
    """Four judges at a local endpoint, two rounds: one item has a wrong key, which three of them see at once."""
    n = 24
    wrong = "q3"
    letters = ["ABCD"[i % 4] for i in range(n)]
    rows = []
    for j in range(6):
        for i in range(n):
            # all models answer C to the item whose key is wrong
            said = "C" if f"q{i}" == wrong else letters[i] if (i + j) % 5 else "ABCD"[(i + 1) % 4]
            for condition in ("full", "blind"):
                rows.append({"item": f"q{i}", "model": f"m{j}", "condition": condition, "question": f"question {i}",
                             "prediction": said if condition == "full" else "ABCD"[j % 4], "key": letters[i],
                             "A": "red", "B": "blue", "C": "green", "D": "grey"})  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    judges = [{"name": f"judge{k}"} for k in range(4)]
    params = check_params({"pool": "p", "benchmark": "B", "data": {"table": "runs.csv"},
                           "curation": {"adjudication": {"judges": judges}, "subsets": 10}}, tmp_path / "p.yaml"
                          )  # fmt: skip
    c = study.recall(read_pool(params, outputs=tmp_path))
    assert wrong in c.candidates
    items = [QuestionItem(f"q{i}", f"question {i}", ("red", "blue", "green", "grey"), key=letters[i]) for i in range(n)]
    asked: Counter[str] = Counter()

    def said(model, text, pictures):
        asked[model] += 1
        second = "Several checkers labelled this item" in text
        bad = "question 3\n" in text or text.rstrip().endswith("question 3")
        label = "key_error" if bad and (model != "judge3" or second) else "no_issue"
        return json.dumps({"label": label, "reason": "looked"})

    with FaultServer(reply=said) as server:
        ask = asker(params.curation.adjudication.judges, RunPaths(tmp_path / "out", "p"), base_url=server.url)
        found = study.judged(c, tmp_path, ask=ask, questions=items)
        total = sum(asked.values())
        again = study.judged(c, tmp_path, ask=ask, questions=items)
        assert sum(asked.values()) == total >= 4 * len(c.candidates)
    pd.testing.assert_frame_equal(found.adjudication.votes, again.adjudication.votes)
    state = found.adjudication.decisions.set_index("item")
    assert state.loc[wrong, ["state", "label"]].tolist() == ["confirmed", "key_error"]
    assert not state.drop(index=wrong)["state"].eq("confirmed").any()
    last = found.adjudication.votes.query("item == @wrong and judge == 'judge3'").set_index("round")["label"]
    assert last.to_dict() == {1: "no_issue", 2: "key_error"}
    result = measure(study.read_by_people(found, tmp_path))
    assert result.frames["adjudicated"].set_index("item").loc[wrong, "state"] == "confirmed"
    assert not result.frames["decisions"]["stage"].eq("defects").any(), "nobody has read it yet"
