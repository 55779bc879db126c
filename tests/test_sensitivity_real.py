"""Real corruptions: VizWiz under blur, with grey, foreign and shuffled images; ChartQA's distractor image."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from auditlib.sensitivity import curves, flips
from auditlib.sensitivity.conditions import parse
from auditlib.sensitivity.contrasts import mcnemar_exact, trend_table
from auditlib.sensitivity.records import Calls, read_calls, without_credit

DRAWS = 200
COLUMNS = {"item": "id", "hit": "acc", "answer": "pred", "abstained": "abstain"}
WORDS = {"clean": "full", "blur_s1": "blur@1", "blur_s3": "blur@3", "blur_s5": "blur@5", "crop_s2": "crop@2",
         "crop_s4": "crop@4", "overexp_s2": "overexposed@2", "underexp_s2": "underexposed@2",
         "mismatched": "wrong_image"}  # fmt: skip
FIVE = ["gemma3_12b", "idefics3_8b", "internvl35_8b", "internvl3_8b", "llava16_13b"]


@cache
def vizwiz(folder, name) -> Calls:
    return read_calls([folder / "real/vizwiz_audit" / name], columns=COLUMNS, conditions=WORDS,
                      where={"dataset": "vizwiz_val"})  # fmt: skip


@cache
def table(folder, name):
    return curves.condition_table(vizwiz(folder, name).table, rng=np.random.default_rng(1), draws=DRAWS)


def test_where_a_model_may_decline_the_image_of_two_models_is_worth_less_than_nothing(shared_data):
    here = table(shared_data, "results_final_5models.csv.gz")
    gain = here[here["family"].eq("blind")].set_index("model")
    assert list(gain.index) == FIVE
    assert gain["n"].eq(4319).all()
    # declining is credited where the people declined too: two models score better without the picture
    worse = gain[gain["drop"].lt(0)].index.tolist()
    assert worse == ["gemma3_12b", "internvl35_8b"]
    assert gain.loc[worse, "undefined"].isin([curves.NEGATIVE, curves.ZERO]).all()
    assert here[here["model"].isin(worse)]["lost"].isna().all()


def test_without_leave_to_decline_all_nine_models_gain_from_the_image(shared_data):
    here = table(shared_data, "results_imgq2.csv.gz").set_index("model")
    assert len(here) == 9 and here["family"].eq("blind").all() and here["n"].eq(1500).all()
    assert here["undefined"].eq("").all() and here["lost"].eq(1).all(), "blind loses all of the gain by definition"
    assert here["full"].mean() == pytest.approx(0.269, abs=0.02)
    assert here["accuracy"].mean() == pytest.approx(0.041, abs=0.02)


def test_blur_raises_scores_where_declining_is_credited_and_lowers_them_where_it_is_not(shared_data):
    calls = vizwiz(shared_data, "results_final_5models.csv.gz").table
    few = calls[calls["family"].isin(["full", "blind", "blur"])]
    credited = table(shared_data, "results_final_5models.csv.gz")
    credited = credited[credited["family"].eq("blur")]
    assert credited["n"].eq(1500).all() and credited["images"].eq(1500).all()
    assert (credited[credited["level"].eq(5)]["high"] < 0).sum() >= 4, "more declining, more credit"
    bare = without_credit(few)
    here = curves.condition_table(bare, rng=np.random.default_rng(2), draws=DRAWS)
    blur = here[here["family"].eq("blur")]
    assert blur["undefined"].eq("").all()
    drop = blur.pivot(index="model", columns="level", values="drop")
    assert (drop[5.0] > drop[3.0]).all() and (drop[3.0] > drop[1.0]).all() and (drop[5.0] > 0.03).all()
    for r in blur.itertuples():
        assert r.lost == pytest.approx(r.drop / r.gain, abs=1e-9) and r.lost_low < r.lost < r.lost_high
    curve = curves.curve_table(bare, rng=np.random.default_rng(2), draws=DRAWS)
    assert len(curve) == 5 and curve["undefined"].eq("").all() and curve["area"].between(0.05, 0.6).all()
    trend = trend_table(bare, rng=np.random.default_rng(3), draws=999)
    every = trend[trend["model"].eq("all models")].iloc[0]
    assert every["p"] <= 0.002 and every["low"] > 0 and every["page"] < 0.01
    assert trend["q"].notna().sum() == 5


def test_nine_models_on_grey_foreign_and_shuffled_images(shared_data):
    calls = vizwiz(shared_data, "results_cr_imgctrl.csv.gz").table
    assert calls["model"].nunique() == 9 and set(calls["family"]) == {"gray", "wrong_image", "shuffled"}
    # four of the nine have no run with the picture under the same prompt here: nothing is put in its place
    five = vizwiz(shared_data, "results_final_5models.csv.gz").table
    both = pd.concat([calls, five[five["family"].isin(["full", "blind"])]], ignore_index=True)
    here = curves.condition_table(both, rng=np.random.default_rng(4), draws=DRAWS)
    assert sorted(here["model"].unique()) == FIVE and here[here["family"].eq("gray")]["n"].eq(1500).all()
    flip = flips.flip_table(both[both["model"].isin(FIVE[:2])], rng=np.random.default_rng(5), draws=DRAWS)
    assert flip["base"].isna().all() and flip["other"].gt(0).any(), "no repeats; graded verdicts"
    assert (flip["flip"] > 0.3).all()


def test_chartqa_with_a_foreign_chart_is_no_better_than_without(shared_data):
    file = shared_data / "real/chartqa_audit/chartqa_test_image_noimage_distractor.csv.gz"
    ours = {"image": "full", "no_image": "blind", "distractor_image": "wrong_image"}
    columns = {"item": "index", "hit": "correct", "answer": "pred", "key": "gold"}
    calls = read_calls([file], columns=columns, conditions=ours).table
    assert calls.groupby("family").size().to_dict() == {"blind": 8000, "full": 8000, "wrong_image": 500}
    here = curves.condition_table(calls, rng=np.random.default_rng(6), draws=DRAWS)
    blind = here[here["family"].eq("blind")].set_index("model")
    assert blind["undefined"].eq("").all() and (blind["gain"] > 0.3).all()
    wrong = here[here["family"].eq("wrong_image")].iloc[0]
    assert (wrong["model"], wrong["n"], wrong["p_method"]) == ("qwen2-vl-7b", 500, "exact McNemar")
    assert wrong["lost"] > 0.9 and wrong["lost_low"] > 0.8
    # the foreign chart against none at all, on the same questions
    own = calls[calls["model"].eq("qwen2-vl-7b")].pivot(index="item", columns="family", values="hit").dropna()
    lost = int((own["blind"].eq(1) & own["wrong_image"].eq(0)).sum())
    won = int((own["blind"].eq(0) & own["wrong_image"].eq(1)).sum())
    assert len(own) == 500
    assert mcnemar_exact(lost, won) == pytest.approx(mcnemar_exact(won, lost))
    assert abs(lost - won) / 500 < 0.05


def test_names_of_changes_made_elsewhere_are_conditions_too():
    assert [parse(w).family for w in WORDS.values()][-1] == "wrong_image"
    assert parse("overexposed@2").level == 2
