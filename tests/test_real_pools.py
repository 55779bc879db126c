"""Real result files of other people (skipped where they are absent): oracles are exact counts over the raw tables."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import auditlib
from auditlib.integrity import check_runs
from auditlib.params import check_params

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "real"
pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="../shared/data/real is not here")

BLINK_K = {
    "Counting": 4,
    "Forensic_Detection": 4,
    "Functional_Correspondence": 4,
    "Semantic_Correspondence": 4,
    "Visual_Correspondence": 4,
    "IQ_Test": 4,
    "Relative_Reflectance": 3,
    "Art_Style": 2,
    "Jigsaw": 2,
    "Multi-view_Reasoning": 2,
    "Object_Localization": 2,
    "Relative_Depth": 2,
    "Spatial_Relation": 2,
    "Visual_Similarity": 2,
}


def _read(**raw):
    return auditlib.read_pool(check_params(raw, REAL / "params.yaml"))


@cache
def mmmu():
    return _read(
        pool="mmmu",
        benchmark="MMMU",
        data={
            "matrix": "m3irt/mmmu/normal_mmmu.csv",
            "prefixes": {"<no_image>": "blind", "<no_question>": "image_only", "<no_info>": "none"},
            "items": "mmmu_outputs/mmmu_val_llava13b_qwenvl.csv",
            "item_columns": {"item": "id", "key": "gold", "options": "options", "stratum": "subject"},
        },
    )


@cache
def mmmu_audit():
    return auditlib.audit(mmmu())


def test_mmmu_is_read_whole():
    pool = mmmu()
    assert (len(pool.items), len(pool.models)) == (847, 24)
    assert pool.items["k"].min() == 2 and pool.items["k"].max() == 9
    assert round(float((1 / pool.k).mean()), 3) == 0.262
    raw = pd.read_csv(REAL / "m3irt/mmmu/normal_mmmu.csv", encoding="utf-8-sig", index_col=0)
    for prefix, condition in (("", "full"), ("<no_image>", "blind")):
        ours = pool.arms["judged"].hits[condition]
        theirs = raw.loc[pool.model_names, [prefix + i for i in pool.items["item"]]].to_numpy().T
        assert (ours == theirs).all()


def _pooled(share, policy="wrong"):
    rows = mmmu_audit().statistic(f"{share}_share", arm="judged", null_kind="pooled", policy=policy)
    return rows[rows["p_method"] != "tables"].iloc[0] if (rows["p_method"] != "tables").any() else rows.iloc[0]


def test_mmmu_shares_and_closed_form_nulls():
    """Exact-tie share 17.83% over a null of 4.14%; text_only 73.67% over 33.83%."""
    tie = _pooled("zero_gain")
    assert (round(100 * tie["estimate"], 2), round(100 * tie["null"], 2)) == (17.83, 4.14)
    assert tie["p_method"] == "exact"
    band = mmmu_audit().statistic("text_only_share", arm="judged", null_kind="pooled")
    assert round(100 * band["estimate"].iloc[0], 2) == 73.67
    from auditlib.stats.categories import category_region
    from auditlib.stats.null import region_null
    from auditlib.stats.tables import joint_table

    hits = mmmu().arms["judged"].hits
    table = joint_table(*(hits[c].sum(axis=1, dtype=int) for c in ("full", "blind")), 24)
    assert round(100 * region_null(table, category_region("text_only", 24), draws=0).null, 2) == 33.83


def test_mmmu_has_no_letters_and_says_so():
    states = mmmu_audit().detectors.set_index("detector")
    assert states.loc["consensus_error", "reason"] == "no option letters of full runs"
    assert states.loc["answer_options_distribution", "state"] == "run"
    assert states.loc["visual_dependency", "judged"] == 847


@cache
def blink_audit():
    pool = _read(
        pool="blink",
        benchmark="BLINK",
        data={
            "table": "blink_outputs/blink_val_predictions.csv.gz",
            "columns": {"item": "idx", "stratum": "task", "key": "gold", "prediction": "prediction"},
        },
        audit={
            "options_by_stratum": BLINK_K,
            "exclude_models": ["GPT4V* concatenate images", "GeminiProVision* concatenate images"],
        },
    )
    return auditlib.audit(pool)


def test_blink_pool():
    audit = blink_audit()
    assert (len(audit.items), len(audit.models)) == (1901, 19)
    excluded = audit.coverage[audit.coverage["what"] == "excluded"]
    assert set(excluded["model"]) == {"GPT4V* concatenate images", "GeminiProVision* concatenate images"}
    assert excluded["n"].tolist() == [1108, 1108]


def test_blink_accuracy_is_that_of_the_raw_letters():
    raw = pd.read_csv(REAL / "blink_outputs/blink_val_predictions.csv.gz", dtype=str, keep_default_na=False)
    s = blink_audit().statistics
    ours = s[(s["metric"] == "accuracy") & (s["arm"] == "exact") & (s["policy"] == "wrong")].set_index("models")[
        "estimate"
    ]
    said = raw["prediction"].str.extract(r"^(\([A-Z]\))", expand=False)
    theirs = (said == raw["gold"]).groupby(raw["model"]).mean()
    for model, value in ours.items():
        assert value == pytest.approx(theirs[model], abs=1e-12)


def test_blink_runs_what_full_runs_allow_and_says_what_they_do_not():
    audit = blink_audit()
    states = audit.detectors.set_index("detector")
    assert states.loc["visual_dependency", "state"] == "not run"
    assert "blind" in states.loc["visual_dependency", "reason"]
    for name in ("consensus_error", "fleiss_kappa_agreement", "correctness_agreement", "answer_options_distribution"):
        assert states.loc[name, "state"] == "run"
    assert not audit.has_blind
    assert len(audit.statistic("fleiss_kappa")) == 1
    assert len(audit.statistic("key_position")) == 1


def test_blink_key_positions_against_the_options_shown():
    """Oracle: expected letters counted by hand from k by task."""
    raw = pd.read_csv(REAL / "blink_outputs/blink_val_predictions.csv.gz", dtype=str, keep_default_na=False)
    items = raw.drop_duplicates("idx")
    k = items["task"].map(BLINK_K).to_numpy()
    s = blink_audit().statistics
    ours = s[s["metric"] == "key_letter_share"].set_index("level")
    for i, letter in enumerate("ABCD"):
        assert ours.loc[letter, "estimate"] == pytest.approx((items["gold"] == f"({letter})").mean(), abs=1e-12)
        assert ours.loc[letter, "null"] == pytest.approx(np.where(k > i, 1 / k, 0).mean(), abs=1e-12)


def test_original_mmstar_xlsx_has_its_options_inside_the_question():
    pool = _read(
        pool="mmstar_llava",
        benchmark="MMStar",
        data={"table": "mmstar_llava_next/llava_next_yi_34b_MMStar.xlsx"},
        audit={"exact": ["letters"]},
    )
    assert len(pool.items) == 1500
    assert all(sum(bool(t) for t in o) >= 2 for o in pool.items["options"])
    row = auditlib.audit(pool).statistics
    accuracy = row[(row["metric"] == "accuracy") & (row["arm"] == "exact")]["estimate"].iloc[0]
    raw = pd.read_excel(
        REAL / "mmstar_llava_next/llava_next_yi_34b_MMStar.xlsx", engine="calamine", dtype=str, keep_default_na=False
    )
    first = (raw["prediction"].str.strip().str[0] == raw["answer"]).mean()
    assert round(first, 3) == 0.520
    assert abs(accuracy - first) < 0.01


def vizwiz(name: str):
    raw = {
        "pool": "vizwiz",
        "benchmark": "VizWiz",
        "data": {
            "table": str(REAL / "vizwiz_audit" / name),
            "where": {"dataset": "vizwiz_val"},
            "columns": {"item": "id", "prediction": "pred", "hit": "acc", "abstained": "abstain"},
            "prefixes": {"clean": "full"},
        },
    }
    return auditlib.read_pool(check_params(raw, REAL / "vizwiz.yaml"))


def test_vizwiz_blind_beats_the_image_where_models_may_abstain_and_only_there():
    """.475 against .299 for gemma3-12b where abstaining is allowed and credited, .006 against .073 without."""
    allowed, forced = vizwiz("results_final_5models.csv.gz"), vizwiz("results_imgq2.csv.gz")
    expected = ((allowed, 0.299066, 0.474801, 4319), (forced, 0.073111, 0.006, 1500))
    for pool, full, blind, items in expected:
        arm, j = pool.arms["judged"], pool.model_names.index("gemma3_12b")
        assert arm.unit == 3 and len(pool.items) == items  # scores are thirds, counted in integers
        shares = {c: arm.hits[c][:, j].sum() / arm.trials[c][:, j].sum() for c in ("full", "blind")}
        assert shares == pytest.approx({"full": full, "blind": blind}, abs=5e-7)
    said = check_runs(allowed)
    above = said[said["reason"].str.contains("exceeds that with it")]["model"].tolist()
    assert above == ["gemma3_12b", "internvl35_8b"]
    assert not check_runs(forced)["reason"].str.contains("exceeds that with it").any()
    flagged = pd.read_csv(REAL / "vizwiz_audit/results_final_5models.csv.gz").query("dataset == 'vizwiz_val'")
    own = flagged[(flagged["model"] == "gemma3_12b") & (flagged["condition"] == "blind")]["abstain"]
    assert int(allowed.abstained["blind"][:, allowed.model_names.index("gemma3_12b")].sum()) == int(own.sum())
