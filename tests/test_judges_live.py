"""Judges that are asked through a local endpoint: changes planted, scored, compared; decisions; a second run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fault_server import FaultServer
from PIL import Image

from auditlib.calls import Reply
from auditlib.errors import AuditError
from auditlib.inference.asking import asker
from auditlib.judges import change_requests, live, study
from auditlib.judges.measures import measure
from auditlib.judges.outcomes import outcomes
from auditlib.judges.reliability import overall_table
from auditlib.params import check_params
from auditlib.paths import RunPaths
from auditlib.pool import Pool
from auditlib.synth.decision_judges import planted_candidates

COLOURS = ("red", "blue", "green", "grey")
QUALITY = re.compile(r"quality (-?[\d.]+)")


def said(model: str, text: str, pictures: int) -> str:
    """A writer that changes colours, a judge that sees them, one that reads only, one that takes the first slot."""
    if model == "writer":
        answer = text.partition("<<<\n")[2].partition("\n>>>")[0]
        if "exactly as good" in text:
            return json.dumps({"answer": f"Well: {answer}", "changed": "words"})
        return json.dumps({"answer": answer.replace("true", "false"), "changed": "colour"})
    if "Score: <number>" in text:
        judged = text.rpartition("Answer:\n<<<")[2]
        wrong = "false" in judged and (model == "eyes" and pictures > 0)
        return f"Looked.\nScore: {2 if wrong else 4}"
    shown = re.split(r"\nCandidate \d+:", text)[1:]
    if model == "first":
        return "Choice: 1"
    if "quality" in text:
        return f"Choice: {1 + int(np.argmax([float(QUALITY.search(s)[1]) for s in shown]))}"
    wrong = ["false" in s for s in shown]
    return f"Choice: {wrong.index(False) + 1}" if any(wrong) and pictures else "Choice: 1"


@pytest.fixture
def folder(tmp_path) -> Path:
    """Gold answers with pictures, and candidates that people rated."""
    for i, c in enumerate(COLOURS):
        Image.new("RGB", (8, 8), c).save(tmp_path / f"{i}.png")
    golds = [{"instance": f"g{i}", "prompt": "What do you see?", "answer": f"A true {c} square, number {i}.",
              "image": f"{i}.png", "cluster": f"i{i}"} for i, c in enumerate(COLOURS)]  # fmt: skip
    pd.DataFrame(golds).to_csv(tmp_path / "golds.csv", index=False)
    rated = planted_candidates(8, seed=2)
    rated = rated.assign(request="Make a square.", text=[f"quality {r:.3f}" for r in rated["rating"]])
    rated.to_csv(tmp_path / "rated.csv", index=False)
    return tmp_path


def _study(folder: Path, url: str, **more):
    ask = {"models": [{"name": "eyes"}, {"name": "first"}], "base_url": url, "golds": "golds.csv",
           "perturber": {"name": "writer"}, "dimensions": ["i2t_colour", "i2t_neutral_paraphrase"],
           "decisions": "rated.csv", "paradigms": ["single", "pairwise", "reference"]}  # fmt: skip
    block = {"ask": ask | more, "candidates": "rated.csv", "draws": 200}
    params = check_params({"pool": "p", "benchmark": "B", "data": {"table": "x.csv"}, "judges": block},
                          folder / "p.yaml")  # fmt: skip
    items = pd.DataFrame({"item": [f"i{i}" for i in range(4)]})
    return study.read(Pool.from_hits(np.ones((4, 1)), items=items, params=params), folder)


def _run(folder: Path, url: str, **more):
    """What the notebook does."""
    j, paths = _study(folder, url, **more), RunPaths(folder / "outputs", "p")
    a = j.params.ask
    pace = {"base_url": a.base_url, "api_key_env": a.api_key_env, "concurrency": a.concurrency}
    write = asker([a.perturber], paths, **pace) if a.perturber else None
    sheet, coverage = live.planted(j, write, folder / "changes.csv")
    return live.asked(j, asker(a.models, paths, **pace), sheet=sheet, coverage=coverage)


def test_live_judges_end_to_end_and_again_without_a_call(folder):
    with FaultServer(reply=said) as server:
        j = _run(folder, server.url)
        asked = sum(server.calls.values())
        again = _run(folder, server.url)
        assert sum(server.calls.values()) == asked, "what was answered is not asked again"
    pd.testing.assert_frame_equal(j.calls.table, again.calls.table)
    sheet = pd.read_csv(folder / "changes.csv", dtype=str, keep_default_na=False)
    assert len(sheet) == 8 and (sheet["valid"] == "").all()
    assert "planted changes that nobody checked: counted" in j.calls.coverage["reason"].tolist()
    result = measure(j)
    overall = result.frames["overall"].set_index(["judge", "paradigm", "image", "quantity"])["estimate"]
    for paradigm in ("single", "pairwise", "reference"):
        assert overall["eyes", paradigm, "shown", "detection"] == 1
        assert overall["eyes", paradigm, "withheld", "detection"] == 0
        assert overall["first", paradigm, "shown", "d_prime"] == pytest.approx(0)
    assert overall["first", "pairwise", "shown", "locked"] == 1
    assert overall["eyes", "single", "shown", "floor"] == 0
    images = result.frames["images"].set_index(["judge", "paradigm"])["estimate"]
    assert images["eyes", "single"] == 1 and images["first", "single"] == 0
    share = result.frames["value"].query("quantity == 'share'").set_index("judge")["estimate"]
    assert share["eyes"] == pytest.approx(1) and abs(share["first"]) < 1e-9  # every candidate once in every slot
    orders = result.frames["orders"].set_index(["judge", "quantity"])["estimate"]
    assert orders["first", "follows the slot"] == 1 and orders["first", "change in the same order"] == 0
    assert orders["eyes", "change"] == 0
    assert result.frames["coverage"].query("what == 'not run'").empty
    # cards know what answered: the server's name and fingerprint, one prompt whatever the number of candidates
    made = result.frames["cards"]
    assert set(made["version"]) == {"served-name fp"} and made["prompt_sha256"].nunique() == 1
    assert made["lacks"].eq("").all() and made["date"].str.fullmatch(r"\d{4}-\d{2}-\d{2}").all()


def test_people_refuse_a_change_and_it_does_not_count(folder):
    with FaultServer(reply=said) as server:
        _run(folder, server.url)
        sheet = pd.read_csv(folder / "changes.csv", dtype=str, keep_default_na=False)
        sheet["valid"] = ["no", *["yes"] * 7]
        sheet.to_csv(folder / "checked.csv", index=False)
        j = _study(folder, server.url)
        j = study.replace(j, params=j.params.model_copy(update={"perturbations": folder / "checked.csv"}))
        changes, gone = change_requests.read_changes(folder / "checked.csv", lambda *_: ())
        assert len(changes) == 7 and [r["n"] for r in gone] == [1]
        j = live.asked(j, asker(j.params.ask.models, RunPaths(folder / "outputs", "p"), base_url=server.url))
    table = j.calls.table
    assert sheet["instance"][0] not in set(table["instance"]) and table["dimension"].ne("").any()


def test_a_judge_that_fails_now_and_then_leaves_calls_without_reply(folder):
    """Filtered and cut replies are calls without a judgement; a busy server is asked again."""
    golds = pd.read_csv(folder / "golds.csv")
    golds["prompt"] = ["ok", "<<filtered>>", "<<length>>", "<<busy x1>>"]
    golds.to_csv(folder / "golds.csv", index=False)
    sheet = pd.DataFrame([
        {"instance": g.instance, "dimension": "i2t_colour", "effect": "degrade", "prompt": g.prompt, "gold": g.answer,
         "perturbed": g.answer.replace("true", "false"), "image": g.image, "cluster": g.cluster}
        for g in golds.itertuples()
    ])  # fmt: skip
    sheet.to_csv(folder / "changes.csv", index=False)
    with FaultServer(reply=said) as server:
        j = _run(folder, server.url, decisions=None, paradigms=["single"], images=["shown"])
    states = j.calls.table.groupby(["judge", "instance"])["state"].agg(lambda s: sorted(set(s)))
    assert states["eyes", "g0"] == states["eyes", "g3"] == ["scored"]
    assert states["eyes", "g1"] == states["eyes", "g2"] == ["no_reply"]
    assert measure(j).frames["overall"].set_index(["judge", "quantity"])["estimate"]["eyes", "unanswered"] == 0.5


def test_swapped_pictures_come_from_another_cluster(folder):
    find = live.pictures_for((folder / "golds.csv",))
    changes = [change_requests.Change(f"g{i}", "i2t_colour", "degrade", "p", "true", "false", cluster=f"i{i}",
                                      pictures=find(f"{i}.png", "", 2)) for i in range(3)]  # fmt: skip
    moved = change_requests.swapped(changes)
    assert len(moved) == 3 and all(a.pictures != b.pictures for a, b in zip(changes, moved))
    assert change_requests.swapped(changes[:1]) == []
    s = change_requests.ScoreSettings("j", style="axis_rubric", image="withheld")
    planned = change_requests.plan_scores(changes, s)
    assert len(planned) == 3 * (2 + 1) and not any(p.request.pictures for p in planned)
    assert "that the answer gives an object another colour" in planned[0].request.text
    assert "gold" not in planned[0].request.text and "perturbed" not in planned[0].request.text
    texts = {c: change_requests.score_calls(planned, lambda key, c=c: Reply(key, "ok", c)).table for c in ("5", "9")}
    assert texts["5"]["state"].eq("scored").all() and texts["9"]["state"].eq("unparsed").all()
    assert texts["5"]["image"].eq("withheld").all()
    lost = change_requests.score_calls(planned, lambda key: None)
    assert lost.coverage["n"].tolist() == [9] and not len(lost.table)


def test_mistakes_say_where(folder):
    with pytest.raises(AuditError, match=r"judges\.ask names judges, but not what to show them"):
        live.asked(_study(folder, "http://127.0.0.1:9/v1", golds=None, perturber=None, decisions=None), lambda r: [])
    with pytest.raises(AuditError, match="golds and perturber belong together"):
        _study(folder, "http://127.0.0.1:9/v1", perturber=None)
    find = live.pictures_for((folder / "golds.csv",))
    golds = pd.read_csv(folder / "golds.csv")
    golds.assign(image="none.png").to_csv(folder / "golds.csv", index=False)
    with pytest.raises(AuditError, match=r"golds\.csv, row 2: picture 'none\.png' is not there"):
        live.read_golds(folder / "golds.csv", find)
    rated = pd.read_csv(folder / "rated.csv")
    rated.assign(text="").to_csv(folder / "rated.csv", index=False)
    with pytest.raises(AuditError, match=r"rated\.csv, row 2: candidate .* has neither text nor image"):
        live.read_decisions(folder / "rated.csv", find)
    pd.DataFrame([{"instance": "a", "dimension": "d", "effect": "worse", "prompt": "p", "gold": "g", "perturbed": "x"}]
                 ).to_csv(folder / "s.csv", index=False)  # fmt: skip
    with pytest.raises(AuditError, match=r"s\.csv, row 2: effect is 'worse'"):
        change_requests.read_changes(folder / "s.csv", lambda *_: ())


def test_real_planted_errors_are_put_to_a_judge(shared_data, tmp_path):
    """1,246 real pairs of 24 kinds and a neutral set: a judge that goes by length, against the count by hand."""
    raw = pd.read_csv(shared_data / "real" / "fbi_perturbations" / "perturbations_half.csv.gz", keep_default_na=False)
    neutral = raw["perturbation"].eq("score_invariant")
    sheet = pd.DataFrame({
        "instance": raw["cdx"], "dimension": raw["perturbation"], "effect": np.where(neutral, "neutral", "degrade"),
        "prompt": raw["question"], "gold": raw["og"], "perturbed": raw["perturbed_gpt4"], "cluster": raw["question"],
    })  # fmt: skip
    sheet.to_csv(tmp_path / "fbi.csv", index=False)
    changes, gone = change_requests.read_changes(tmp_path / "fbi.csv", lambda *_: ())
    same = raw["og"].str.split() == raw["perturbed_gpt4"].str.split()
    assert [r["n"] for r in gone] == [int(same.sum())] and same.sum() >= 4, "planted errors that changed nothing"
    assert len(changes) == len(raw) - same.sum() and len({c.dimension for c in changes}) == 25
    planned = change_requests.plan_scores(changes, change_requests.ScoreSettings("long", repeats=1, scale=(1, 10_000)))
    size = {p.request.key: len(p.change.gold if p.which == "gold" else p.change.perturbed) for p in planned}
    calls = change_requests.score_calls(planned, lambda key: Reply(key, "ok", f"Score: {1 + size[key]}"))
    table = outcomes(calls.table)[0]
    kept = raw[~same]
    shorter = kept["perturbed_gpt4"].str.len() < kept["og"].str.len()
    assert table["outcome"].eq("detected").sum() == shorter.sum()
    overall = overall_table(table, draws=200).set_index("quantity")["estimate"]
    assert overall["detection"] == pytest.approx(shorter[~neutral].mean())
    assert overall["false_alarm"] == pytest.approx(shorter[neutral].mean())
    assert overall["d_prime"] < -0.5, "harmless rewriting shortens more often than damage does"
