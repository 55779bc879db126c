"""TinySee's models by ``LLM.chat`` in this process (oracles: their recorded runs, and what was planted)."""

from __future__ import annotations

import json
from functools import partial

import pytest
from scipy.stats import binomtest
from tinysee import MODELS, accuracy, blind_run, folder_of, letters, params_file, planted, recorded

import auditlib
from auditlib.inference import offline
from auditlib.inference.vllm_client import VllmClient

CONDITIONS = ["full", "blind", "blank", "gray", "image_only"]


@pytest.fixture(scope="module")
def file(weights, tmp_path_factory):
    served = [{"name": m, "served_as": str(folder_of(weights, m))} for m in MODELS]
    return params_file(tmp_path_factory.mktemp("offline"), served, CONDITIONS, client="vllm")


@pytest.fixture(scope="module")
def done(file):
    """The run, in the precision of the recorded ones and without the minute that a compiler takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offline, "VllmClient", partial(VllmClient, dtype="float32", enforce_eager=True))
        return blind_run(file, file.parent / "out")


@pytest.fixture(scope="module")
def pool(file, done):
    return auditlib.read_pool(file, outputs=file.parent / "out")


def test_every_question_is_answered_by_every_model(done):
    count = done.responses.groupby(["model", "condition"]).size()
    assert count.to_dict() == {(m, c): 300 for m in MODELS for c in CONDITIONS}
    outcomes = done.responses.groupby("condition")["outcome"].value_counts().unstack(fill_value=0)
    assert outcomes.loc[["full", "blind", "blank", "gray"], "ok"].tolist() == [1200] * 4
    assert outcomes.loc["image_only"].sum() == 1200 and outcomes.loc["image_only", "ok"] > 1150, "some say nothing"


@pytest.mark.parametrize("condition", ["full", "blind"])
@pytest.mark.parametrize("model", MODELS)
def test_accuracies_are_the_recorded_ones(pool, model, condition):
    assert accuracy(pool, model, condition) == pytest.approx(accuracy(recorded(), model, condition), abs=0.02)


@pytest.mark.parametrize("model", MODELS)
def test_blind_replies_follow_the_planted_prior(done, model):
    said, facts = letters(done, model, "blind"), planted()
    prior = facts.index[facts["planted"] == "text_prior"]
    assert (len(prior), said[prior].tolist()) == (12, facts.loc[prior, "key"].tolist())
    usual = facts.index[facts["planted"].eq("") & facts["prior_letter"].ne("") & facts["text_solvable"].eq("0")]
    assert len(usual) > 50 and said[usual].tolist() == facts.loc[usual, "prior_letter"].tolist()


@pytest.mark.parametrize("condition", ["blank", "gray"])
@pytest.mark.parametrize("model", MODELS)
def test_an_empty_picture_leaves_chance(done, model, condition):
    """A blank picture has its picture's mean colour, which tells colours and, by its brightness, counts."""
    facts = planted()
    plain = facts.index[facts["planted"].isin(["", "wrong_key"]) & facts["text_solvable"].eq("0")]
    colours = plain[facts.loc[plain, "category"] == "color"]
    if condition == "blank":
        told = (letters(done, model, condition)[colours] == facts.loc[colours, "key"]).mean()
        assert told > 0.5 > (letters(done, model, "gray")[colours] == facts.loc[colours, "key"]).mean()
        plain = plain[facts.loc[plain, "category"].isin(["shape", "spatial"])]
    said = letters(done, model, condition)[plain]
    named = said.index[said != "Z"]
    options = done.items.set_index("item").loc[named, "options"].map(lambda o: sum(bool(x) for x in o))
    right = int((said[named] == facts.loc[named, "key"]).sum())
    chance = float((1 / options).mean())
    print(f"{model} {condition}: {right} of {len(named)} right, {len(plain) - len(named)} name no option, {chance:.3f}")
    assert binomtest(right, len(named), chance).pvalue > 0.001


def test_a_picture_reaches_the_model(done):
    tokens = done.responses.groupby("condition")["tokens_in"].mean()
    assert tokens["full"] > tokens["blind"] and tokens["gray"] == tokens["blank"] == tokens["full"]
    assert tokens["image_only"] < tokens["full"]


def test_the_audit_shows_the_planted_prior(pool):
    audit = auditlib.audit(pool)
    f = audit.findings
    mine = f[(f["detector"] == "visual_dependency") & (f["arm"] == "exact") & f["flag"]]
    evidence = mine["evidence"].map(json.loads)
    solved = set(mine["item"][evidence.map(lambda e: e["B"] == e["total"])])
    facts = planted()
    prior = set(facts.index[facts["planted"].isin(["text_prior", "lookup"])])
    # an option "None" is shown here, which the recorded prompts left out, and it is what all four say without a picture
    assert len(prior) == 16 and prior <= solved <= prior | set(facts.index[facts["planted"] == "none_key"])


def test_a_second_run_loads_no_model(file, done, monkeypatch):
    def loaded(**settings):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(offline, "VllmClient", loaded)
    again = blind_run(file, file.parent / "out")
    assert [s.asked for s in again.summaries.values()] == [0] * 4
    assert again.responses["prediction"].tolist() == done.responses["prediction"].tolist()
