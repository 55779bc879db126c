"""One image left out, judges pooled, own family, validity cards of a study, the judge that reads answers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fault_server import FaultServer

from auditlib.errors import AuditError
from auditlib.inference.asking import asker
from auditlib.inference.items import QuestionItem
from auditlib.judges import cards, extraction_study, robustness, study
from auditlib.judges.calls import calls_frame
from auditlib.judges.decision_data import choices_of, prompts_of
from auditlib.judges.decisions import aggregate
from auditlib.judges.filters import Filter, filter_table
from auditlib.judges.measures import measure
from auditlib.judges.outcomes import GOLD, PERTURBED, outcomes
from auditlib.judges.validity_card import read_card, write_card
from auditlib.params.judges import ExtractionParams, JudgeIdentity, JudgesParams
from auditlib.paths import RunPaths
from auditlib.stats.influence import leave_one_out
from auditlib.stats.paired import mean_ratio
from auditlib.stats.random_effects import pool_effects
from auditlib.synth.decision_judges import PlantedJudge, planted_calls, planted_candidates
from auditlib.synth.extraction_readings import planted_readings
from auditlib.synth.judge_files import AUTHORS, FAMILIES, KIN, OWN, own_first

# pooling and influence


def test_pooled_effects_are_statsmodels_paule_mandel():
    from statsmodels.stats.meta_analysis import combine_effects

    rng = np.random.default_rng(3)
    for spread in (0.0, 0.5):
        se = rng.uniform(0.1, 0.5, 12)
        effect = 0.3 + spread * rng.normal(size=12) + se * rng.normal(size=12)
        mine, theirs = pool_effects(effect, se), combine_effects(effect, se**2, method_re="iterated")
        assert mine.spread**2 == pytest.approx(max(0.0, theirs.tau2), abs=1e-6)
        assert mine.mean == pytest.approx(theirs.mean_effect_re, abs=1e-6)
        assert mine.se == pytest.approx(theirs.sd_eff_w_re, abs=1e-6)
    assert np.isnan(pool_effects([0.3, np.nan], [0.1, 0.1]).mean)
    two = pool_effects([0.3, 0.9], [0.1, 0.1])
    assert two.mean == pytest.approx(0.6) and np.isnan(two.shrunk).all(), "two units say nothing of a spread"


def test_units_are_drawn_as_the_integral_says():
    from scipy.integrate import quad

    y, v = np.array([0.1, 0.8, 0.4, -0.2]), np.array([0.04, 0.09, 0.01, 0.25])

    def joint(tau, weigh):
        w = 1 / (v + tau**2)
        m = w @ y / w.sum()
        dense = np.prod(np.sqrt(w)) / np.sqrt(w.sum()) * np.exp(-0.5 * (w * (y - m) ** 2).sum())
        return dense * ((m + tau**2 * w[1] * (y[1] - m)) if weigh else 1.0)

    exact = quad(joint, 0, np.inf, args=(True,))[0] / quad(joint, 0, np.inf, args=(False,))[0]
    assert pool_effects(y, np.sqrt(v)).shrunk[1] == pytest.approx(exact, abs=2e-3)


def test_shrunk_effects_cover_the_truth_and_are_nearer():
    rng = np.random.default_rng(4)
    covered, near = [], []
    for _ in range(300):
        true = rng.normal(0.2, 0.4, 5)
        se = rng.uniform(0.2, 0.6, 5)
        seen = true + se * rng.normal(size=5)
        found = pool_effects(seen, se)
        covered += ((found.shrunk_low <= true) & (true <= found.shrunk_high)).tolist()
        near.append(((found.shrunk - true) ** 2).mean() / ((seen - true) ** 2).mean())
    # 1,500 units in 300 sets: the share covered has a standard error of about .008
    assert 0.93 < np.mean(covered) < 0.99 and np.mean(near) < 0.9


def test_leaving_one_out_is_done_one_by_one(rng):
    x, cluster = rng.random(40), rng.integers(8, size=40)
    found = leave_one_out(np.column_stack([x, np.ones(40)]), cluster, mean_ratio)
    left = {str(c): x[cluster != c].mean() for c in range(8)}
    assert (found["least"], found["most"]) == pytest.approx((min(left.values()), max(left.values())))
    most = max(left, key=lambda c: abs(left[c] - x.mean()))
    assert (found["most_moving"], found["moved"]) == (most, pytest.approx(left[most] - x.mean()))
    assert leave_one_out(np.ones((3, 2)), ["a"] * 3, mean_ratio)["most_moving"] == ""


def _scores(name, cluster, hit, effect="degrade"):
    return [{"judge": "j", "instance": name, "cluster": cluster, "paradigm": "single", "shown": (which,),
             "dimension": "i2t_text" if effect == "degrade" else "i2t_neutral_synonym", "effect": effect,
             "score": s, "state": "scored"} for which, s in ((GOLD, 4), (PERTURBED, 4 - hit))]  # fmt: skip


def test_the_image_that_carries_detection_is_named():
    rows = [r for i in range(6) for r in _scores(f"a{i}", "loud", 1)]
    rows += [r for i in range(6) for r in _scores(f"b{i}", f"c{i}", 0)]
    found = robustness.damage_without_one(outcomes(calls_frame(rows))[0]).set_index("quantity").loc["detection"]
    assert found[["estimate", "least", "most_moving"]].tolist() == [0.5, 0.0, "loud"]


# own family


@pytest.fixture(scope="module")
def world():
    candidates = planted_candidates(160, seed=21)
    candidates = candidates.assign(author=[AUTHORS[i % 3] for i in range(len(candidates))])
    prompts = prompts_of(candidates)
    fair = planted_calls(candidates, [replace(KIN, name="good"), PlantedJudge("locked", locked=0.5)], seed=4)
    kin = own_first(planted_calls(candidates, [KIN], seed=5), candidates, seed=6)
    calls = pd.concat([fair, kin], ignore_index=True)
    return candidates, prompts, {j: choices_of(calls, prompts, j) for j in ("good", "locked", "kin")}


def test_a_liking_for_the_own_family_is_found_and_no_other(world):
    candidates, prompts, given = world
    table = robustness.own_family(prompts, given, candidates, FAMILIES).set_index("judge")
    kin = table.loc["kin"]
    fair = table.loc[["good", "locked"]]
    # takes an own one with chance OWN, else as a fair judge does, which is the expected share on average
    implied = OWN + (1 - OWN) * kin["expected"]
    assert kin["excess_low"] - 0.02 <= implied - kin["expected"] <= kin["excess_high"] + 0.02
    assert kin["q"] < 1e-6 and kin["low"] > 0.5 and (fair["q"] > 0.01).all()
    assert ((fair["low"] < 0) & (fair["high"] > 0)).all()
    pooled = table.loc["all judges"]
    assert pooled["low"] < 0 < pooled["high"], "one of three judges is no trait of judges"
    assert abs(table.loc["kin", "shrunk"]) < abs(kin["coef"])


def test_expected_share_of_the_own_family_is_exact(world):
    candidates, prompts, given = world
    table = robustness.own_family(prompts, {"kin": given["kin"]}, candidates, FAMILIES)
    family = candidates["author"].map(FAMILIES).eq("kite").groupby(candidates["prompt"])
    share, n = family.mean(), family.size()
    mixed = share[(share > 0) & (share < 1)]
    # cyclic orders: each prompt is asked as often as it has candidates
    by_hand = float((mixed * n[mixed.index]).sum() / n[mixed.index].sum())
    assert table["expected"].iloc[0] == pytest.approx(by_hand) and table["prompts"].iloc[0] == len(mixed)
    assert robustness.own_family(prompts, given, candidates, {}).empty
    alone = robustness.own_family(prompts, {"kin": given["kin"]}, candidates.assign(author="kite-1"), FAMILIES)
    assert alone["note"].iloc[0].startswith("no call shows")


def test_damage_to_the_own_familys_answers_passes():
    rows, sheet = [], []
    for i in range(60):
        own = i % 2 == 0
        rows += _scores(f"a{i}", f"c{i}", int(not own or i % 10 == 0))
        sheet.append({"instance": f"a{i}", "dimension": "i2t_text", "author": "kite-1" if own else "wren-1"})
    table = outcomes(calls_frame(rows))[0]
    found = robustness.own_gold(table, pd.DataFrame(sheet), {"j": "kite", "kite-1": "kite"}).iloc[0]
    assert found["estimate"] == pytest.approx(6 / 30 - 1) and found["high"] < -0.5 and found["p"] < 0.001
    assert robustness.own_gold(table, pd.DataFrame(sheet), {}).empty


# validity cards


def test_cards_state_what_they_rest_on_and_expire(world, tmp_path):
    candidates, prompts, given = world
    keep = np.arange(160) % 2 == 0
    rules = [Filter("half", keep), Filter("one", np.arange(160) == 0)]
    table = filter_table(prompts, aggregate(prompts, given["good"]), rules, draws=200).assign(judge="good")
    few = table[table["filter"].eq("one")].set_index("quantity")
    assert few.loc["interaction", "note"] == "too few for an interval: 1 kept" and np.isnan(few.loc["gain_kept", "low"])
    assert few.loc["gain_dropped", "low"] < few.loc["gain_dropped", "high"]
    who = {"good": JudgeIdentity(version="v1", prompt_sha256="a" * 64, generation_sha256="b" * 64, date="2026-03-01")}
    found = cards.card_table(prompts, {"good": given["good"]}, table, who).set_index("filter")
    assert found["verdict"].tolist()[1] == "too few" and found["lacks"].tolist() == ["", ""]
    assert found["order_scheme"].iloc[0] == "balanced orders, 1 repeat"
    unknown = cards.card_table(prompts, {"good": given["good"]}, table, {})
    assert unknown["lacks"].iloc[0] == "version, prompt, settings, date"
    paths = cards.write_cards(found.reset_index(), tmp_path)
    assert [read_card(p).filter for p in paths] == ["half", "one"]
    checks = cards.card_checks(paths, found.reset_index())
    assert checks["holds"].all() and checks["was"].tolist() == pytest.approx(checks["now"].tolist())
    write_card(replace(read_card(paths[0]), version="v0"), paths[0])
    write_card(replace(read_card(paths[1]), filter="gone"), paths[1])
    checks = cards.card_checks(paths, found.reset_index())
    assert checks["why"].tolist() == ["version was 'v0', is 'v1'", "this judge and filter were not measured now"]
    # another judge behind the same name
    earlier = planted_calls(candidates, [PlantedJudge("good", locked=0.8)], seed=9)
    same = cards.compared(prompts, given, earlier)
    row = cards.same_table(same).set_index("judge").loc["good"]
    assert row["changed"] and row["slots"] < 0.01 and set(same) == {"good"}
    assert "chooses otherwise" in cards.card_checks(paths[:1], found.reset_index(), same)["why"].iloc[0]


# the judge that reads answers


def _judges(path, **more):
    params = JudgesParams(extraction=ExtractionParams(truth=path, **more), draws=200)
    pool = SimpleNamespace(params=SimpleNamespace(judges=params, data=SimpleNamespace(embedded=None)), seed=3,
                           items=pd.DataFrame({"item": ["i", "y"], "key": ["B", "Yes"]}), responses=None)  # fmt: skip
    return study.read(pool, path.parent)


def test_saved_readings_are_measured(tmp_path):
    path = tmp_path / "readings.csv"
    planted_readings([f"i{k}" for k in range(50)], size=900, lean=0.3, seed=5).to_csv(path, index=False)
    result = measure(extraction_study.examined(_judges(path)))
    lenient = result.frames["extraction_leniency"].set_index("variant")
    assert (
        lenient.loc["key_shown", "false_right_low"] < 0.3 + 0.02 < lenient.loc["key_shown", "false_right_high"] + 0.02
    )
    assert lenient.loc["key_shown", "q"] < 1e-6 < lenient.loc["plain", "q"]
    moved = result.frames["extraction_changes"].set_index(["variant", "truth"])
    assert moved.loc[("key_shown", "wrong"), "to_key"] > 5 * moved.loc[("key_shown", "wrong"), "from_key"]
    assert moved.loc[("permuted", "all"), "excess"] < 0.05 < moved.loc[("key_shown", "all"), "excess"]
    kinds = result.frames["extraction_accuracy"].query("variant == 'plain'").set_index("kind")["estimate"]
    assert kinds["letter alone"] > kinds["long argument"] > kinds["no clear answer"]
    assert set(result.frames) >= {"coverage", "extraction_accuracy"} and result.facts["lacking"]["value"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"truth": ["perhaps", "yes"]}, r"row 2: truth is 'perhaps'"),
        ({"truth": ["", "yes"]}, r"row 2: truth is ''"),
        ({"plain": ["B", "BC"]}, r"row 3: plain is 'BC'"),
        ({"weight": ["1", "0"]}, r"row 3: weight is '0'"),
        ({"item": ["i", "x"]}, r"row 3: no key of item 'x' is known"),
        ({"item": ["i", "i"], "model": ["m", "m"]}, r"row 3: the reply of 'm' to item 'i' is read twice"),
    ],
)
def test_readings_that_cannot_be_used_name_the_row(tmp_path, change, says):
    rows = pd.DataFrame({"item": ["i", "y"], "model": ["m", "m"], "truth": ["b", "yes"], "plain": ["B", "Z"]} | change)
    rows.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(AuditError, match=says):
        extraction_study.examined(_judges(tmp_path / "t.csv"))


def test_a_live_reader_is_asked_under_every_variant_and_once(tmp_path):
    """It says the key when it is told, and otherwise reads what the reply says."""
    items = [QuestionItem("i", "Which?", ("red", "blue", "green"), key="B"),
             QuestionItem("y", "Is it?", key="Yes", answer_type="yesno")]  # fmt: skip
    responses = pd.DataFrame({"run": "r", "item": ["i", "i", "y"], "model": ["m", "n", "m"], "condition": "full",
                              "sample": 0, "status": "ok", "prediction": ["green", "blue", "no"]})  # fmt: skip
    truth = pd.DataFrame({"item": ["i", "i", "y", "i"], "model": ["m", "n", "m", "lost"],
                          "truth": ["C", "B", "No", "A"]})  # fmt: skip
    truth.to_csv(tmp_path / "t.csv", index=False)

    def said(model, text, pictures):
        if "The right answer is" in text:
            return text.partition("The right answer is ")[2].partition(".")[0]
        reply = text.partition("<<<\n")[2].partition("\n>>>")[0]
        return {"green": "C", "blue": "B", "no": "No"}[reply]

    j = _judges(tmp_path / "t.csv", judge={"name": "reader"})
    j = replace(j, source=SimpleNamespace(**{**vars(j.source), "responses": responses}))
    with FaultServer(reply=said) as server:
        ask = asker([j.params.extraction.judge], RunPaths(tmp_path, "p"), base_url=server.url)
        first = extraction_study.examined(j, ask, items)
        asked = sum(server.calls.values())
        again = extraction_study.examined(j, ask, items)
        assert sum(server.calls.values()) == asked == 3 * (2 + 1) + 2
    pd.testing.assert_frame_equal(first.extraction, again.extraction)
    assert first.extraction[["plain", "permuted", "key_shown", "again"]].to_numpy().tolist() == [
        ["C", "C", "B", "C"], ["B", "B", "B", "B"], ["No", "", "Yes", "No"]]  # fmt: skip
    gone = first.calls.coverage[first.calls.coverage["reason"].str.contains("the pool does not have")]
    assert gone["n"].tolist() == [1]
    with pytest.raises(AuditError, match="names a judge, but not what it reads"):
        extraction_study.examined(j, None, items)
