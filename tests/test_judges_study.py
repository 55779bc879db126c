"""The study of judges: params, synthetic files, what is measured and left out, exhibits, the sheet of changes."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from auditlib.calls import Reply
from auditlib.errors import AuditError
from auditlib.judges import extraction_study, perturb, study
from auditlib.judges.dimensions import I2T, NEUTRAL
from auditlib.judges.measures import measure
from auditlib.judges.sheet import checked, read_sheet
from auditlib.lookup import Lacking
from auditlib.params.judges import JudgeFiles, JudgesParams, ScoreFiles
from auditlib.studies import STUDIES
from auditlib.synth.judge_files import FAMILIES, NAMES, synthetic_judges
from auditlib.table_formats import cells


def _pool(params, items=("i0", "i1")):
    block = SimpleNamespace(judges=params, data=SimpleNamespace(embedded=None))
    return SimpleNamespace(params=block, items=pd.DataFrame({"item": list(items)}), seed=7)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """Three items, few prompts, everything measured once."""
    folder = tmp_path_factory.mktemp("judges")
    items = [f"i{k}" for k in range(12)]
    made = synthetic_judges(items, per_dimension=4, prompts=40, seed=3).tables
    paths = {name: folder / f"{name}.csv" for name in NAMES}
    for name, table in made.items():
        table.to_csv(paths[name], index=False)
    params = JudgesParams(
        scores=ScoreFiles(files=[paths["scores"]]), pairs={"files": [paths["pairs"]]},
        choices=JudgeFiles(files=[paths["choices"]]), candidates=paths["candidates"], ratings=paths["ratings"],
        perturbations=paths["perturbations"], families=FAMILIES, extraction={"truth": paths["readings"]}, draws=200,
    )  # fmt: skip
    return measure(extraction_study.examined(study.read(_pool(params, items), folder)))


def test_params_name_calls():
    with pytest.raises(ValidationError, match="names no calls"):
        JudgesParams()
    with pytest.raises(ValidationError, match="stands alone"):
        JudgesParams(synthetic=True, choices={"files": ["a.csv"]})
    with pytest.raises(ValidationError, match="quorum"):
        JudgesParams(synthetic=True, quorum=[0.0])


def test_planted_habits_are_found(result):
    overall = result.frames["overall"].set_index(["judge", "paradigm", "image", "quantity"])["estimate"]
    assert overall["grump", "single", "shown", "d_prime"] == pytest.approx(0, abs=1e-12)
    assert overall["grump", "single", "shown", "detection"] == overall["grump", "single", "shown", "false_alarm"] == 1
    assert overall["keen", "single", "shown", "d_prime"] > 1
    images = result.frames["images"].set_index("judge")
    assert images.at["keen", "low"] > 0.3 and abs(images.at["reader", "estimate"]) < 0.2
    slots = result.frames["slots"]
    first = slots[slots["scope"].eq("all") & slots["slot"].eq("1")].set_index("judge")
    assert first.at["locked", "q"] < 1e-6 and first.at["good", "q"] > 0.01
    share = result.frames["value"].query("quantity == 'share'").set_index("judge")["estimate"]
    assert share["good"] > share["locked"] > 0
    shared = result.frames["shared_errors"].set_index(["first", "second"])
    assert shared.at[("shared one", "shared two"), "excess"] > 0.2


def test_refused_changes_do_not_count(result):
    gone = result.frames["coverage"]
    gone = gone[gone["reason"].str.contains("not to be what they should be")]
    assert len(gone) == 1 and gone["n"].iloc[0] > 0
    assert result.facts["lacking"]["people"] and "consistency" in result.facts["lacking"]


def test_every_exhibit_is_made_or_says_why_not(result):
    made = STUDIES["judges"]
    for figure in made.figures:
        frame = figure.prepare(result)
        figure.draw(frame)
        assert any(c.isdigit() for c in figure.caption(frame)) and figure.caption(frame).endswith(".")
    lost = []
    for table in made.tables:
        try:
            frame = table.build(result)
        except Lacking:
            lost.append(table.name)
            continue
        rows = cells(frame, table.columns_of(frame))
        assert len(rows) == len(frame) and any(any(row) for row in rows)
    assert lost == ["judges_people", "judges_consistency", "judges_own_gold", "judges_card_checks", "judges_same"]
    said = json.dumps(made.words(result), ensure_ascii=False)
    assert "marks 100% of the harmless changes down too" in said and "nan" not in said


def test_findings_are_of_the_pools_items(result):
    found = result.frames.get("findings", pd.DataFrame({"item": [], "detector": []}))
    assert set(found["item"]) <= {f"i{k}" for k in range(12)} and set(found["detector"]) <= {"judges"}


def test_a_judge_that_never_answers_and_no_candidates(tmp_path):
    rows = [{"prompt": f"p{i}", "judge": judge, "shown": "a | b", "choice": "" if judge == "mute" else "a"}
            for i in range(6) for judge in ("mute", "first")]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "c.csv", index=False)
    plain = JudgesParams(choices={"files": [tmp_path / "c.csv"]}, draws=200)
    out = measure(study.read(_pool(plain), tmp_path))
    assert out.facts["lacking"]["value"] == "people's ratings are not named"
    states = out.frames["states"].set_index("judge")
    assert states.at["mute", "answered"] == 0 and states.at["first", "answered"] == 1
    rated = [
        {"prompt": f"p{i}", "candidate": c, "rating": r} for i in range(6) for c, r in (("a", 1 + i % 2), ("b", 2))
    ]
    pd.DataFrame(rated).to_csv(tmp_path / "r.csv", index=False)
    both = plain.model_copy(update={"candidates": tmp_path / "r.csv"})
    out = measure(study.read(_pool(both), tmp_path))
    assert set(out.frames["value"]["judge"]) == {"first"}
    said = out.frames["coverage"]
    assert said[said["model"].eq("mute") & said["reason"].str.contains("left out of the decisions")]["n"].tolist() == [
        6
    ]
    assert said[said["model"].eq("first")]["reason"].str.contains("two orders|one order").any()
    assert STUDIES["judges"].words(out)


# planted changes


GOLD = perturb.Gold("q1", "What colour is the car?", "The car is red.")


def _reply(key, text, outcome="ok"):
    return Reply(key=key, outcome=outcome, text=text)


def test_changes_are_planned_and_read():
    kinds = ["i2t_colour", "i2t_neutral_paraphrase"]
    planned = perturb.plan_changes([GOLD], kinds, "writer", severities=(1, 3))
    assert [(p.dimension.id, p.severity) for p in planned] == [
        ("i2t_colour", 1), ("i2t_colour", 3), ("i2t_neutral_paraphrase", None)]  # fmt: skip
    assert len({p.request.key for p in planned}) == 3 and "The car is red." in planned[0].request.parts[-1]
    changed = 'Sure: {"answer": "The car is {dark} blue.", "changed": "x"}'
    said = {
        planned[0].request.key: _reply(planned[0].request.key, changed),
        planned[1].request.key: _reply(planned[1].request.key, '{"answer": "The  car is red."}'),
    }  # fmt: skip
    sheet, lost = perturb.changed_answers(planned, said.get)
    assert sheet["instance"].tolist() == ["q1.i2t_colour.1"] and sheet["longer"].tolist() == [23 - 15]
    assert sheet["valid"].tolist() == [""]
    assert set(lost["reason"]) == {"perturbing: the answer came back unchanged", "perturbing: calls that were not made"}


@pytest.mark.parametrize(
    "kinds, severities, why",
    [(["i2t_colour"], (2,), "no neutral"), (["t2i_blur", "i2t_neutral_synonym"], (2,), "pictures"),
     (["i2t_colour", "i2t_neutral_synonym"], (4,), "severity")],
)  # fmt: skip
def test_plans_that_cannot_be(kinds, severities, why):
    with pytest.raises(AuditError, match=why):
        perturb.plan_changes([GOLD], kinds, "writer", severities=severities)


def test_all_dimensions_of_answers_can_be_asked_for():
    kinds = [d.id for d in (*I2T, *NEUTRAL) if d.task == "I2T"]
    assert len(perturb.plan_changes([GOLD], kinds, "writer")) == 23


def test_sheet_goes_out_and_comes_back(tmp_path):
    planned = perturb.plan_changes([GOLD], ["i2t_colour", "i2t_neutral_synonym"], "writer")
    sheet, _ = perturb.changed_answers(planned, lambda key: _reply(key, '{"answer": "=The car is blue."}'))
    path = perturb.write_sheet(sheet, tmp_path / "sheet.csv")
    with pytest.raises(AuditError, match="people's work"):
        perturb.write_sheet(sheet, path)
    back = pd.read_csv(path, dtype=str, keep_default_na=False)
    back.loc[0, "valid"] = "no"
    back.to_csv(path, index=False)
    read = read_sheet(path)
    assert read["valid"].tolist()[0] is False and read["valid"].isna().tolist() == [False, True]
    calls = pd.DataFrame({"instance": sheet["instance"], "dimension": sheet["dimension"], "severity": np.nan})
    kept, rows = checked(calls, read)
    assert kept["instance"].tolist() == [sheet["instance"].iloc[1]]
    assert {(r["what"], r["n"]) for r in rows} == {("excluded", 1), ("warning", 1)}
    back.loc[1, "valid"] = "perhaps"
    back.to_csv(path, index=False)
    with pytest.raises(AuditError, match="valid is 'perhaps'"):
        read_sheet(path)
