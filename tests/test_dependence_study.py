"""A study of modality dependence: planted labels, closed forms, frozen items, too few conditions, what is shown."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from auditlib import table_formats
from auditlib.dependence import held_out, measures, study
from auditlib.dependence.frozen import load_frozen, save_frozen, score_model
from auditlib.dependence.information import log_determinant
from auditlib.dependence.item_tables import card, movers
from auditlib.dependence.newcomer import score_new_subject
from auditlib.dependence.profile import CONDITIONS, LABELS
from auditlib.errors import AuditError
from auditlib.frames import COLUMNS, SEVERITIES
from auditlib.lookup import Lacking
from auditlib.params import DependenceParams, check_params
from auditlib.paths import RunPaths
from auditlib.pool import Arm, Pool
from auditlib.reading import read_pool
from auditlib.studies import STUDIES, load_result, save_result
from auditlib.synth.embedded import materialise

ITEMS = 160


def settings(outputs, **dependence):
    block = {"prior": {"source": "embeddings"}, "bootstrap": 6, "splits": 2, "subsets": [0.1, 0.5]} | dependence
    models = [{"name": f"{f}-{s}", "family": f} for f in ("lynx", "heron", "otter", "ibex") for s in ("large", "small")]
    return check_params(
        {"pool": "dependence_synthetic", "benchmark": "Synthetic", "data": {"embedded": "dependence_synthetic"},
         "models": models, "dependence": block},
        outputs / "p.yaml",
    )  # fmt: skip


@cache
def whole(outputs):
    return read_pool(settings(outputs), outputs=outputs)


@cache
def fitted(outputs):
    return study.fitted(study.with_prior(study.read(whole(outputs).head(ITEMS)), outputs))


@cache
def result(outputs):
    return measures.measure(fitted(outputs))


def truth(outputs):
    table = pd.read_csv(materialise("dependence_synthetic", outputs) / "truth.csv", keep_default_na=False)
    return table.head(ITEMS)


def changed(pool, **dependence):
    """The pool under other params, read no second time."""
    block = DependenceParams(**dependence)
    return replace(pool, params=pool.params.model_copy(update={"dependence": block}))


def bare(**more):
    """Four models, full and blind runs of twelve items with four options; the first six need the image."""
    full = np.ones((12, 4), int)
    full[10:] = 0
    blind = np.zeros((12, 4), int)
    blind[6:10] = 1
    blind[5, 0] = 1
    items = pd.DataFrame({"item": [f"i{j}" for j in range(12)], "k": [4] * 12, "stratum": ["a"] * 6 + ["b"] * 6})
    return Pool.from_hits(full, blind, items=items, **more)


# ------------------------------------------------------------------------------------------------- embedded pool


def test_pool_is_the_same_again_and_shows_what_was_planted(embedded_outputs, tmp_path):
    folders = [materialise("dependence_synthetic", x) for x in (embedded_outputs, tmp_path)]
    for name in ("runs.parquet", "structure.npz", "truth.csv"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    pool = whole(embedded_outputs)
    known = pd.read_csv(folders[0] / "truth.csv", keep_default_na=False)
    rate = {c: h.mean(1) for c, h in pool.arm.hits.items()}
    mean = {z: {c: rate[c][known["label"].eq(z) & known["broken"].eq("")].mean() for c in rate} for z in LABELS}
    assert mean["V"]["image_only"] > mean["V"]["blind"] + 0.2 and mean["T"]["blind"] > mean["T"]["image_only"] + 0.2
    assert mean["S"]["full"] > max(mean["S"]["blind"], mean["S"]["image_only"]) + 0.3
    broken = known["broken"].eq("yes")
    assert broken.sum() == 16 and rate["full"][broken].mean() == pytest.approx(0.25, abs=0.1)
    assert pool.refused["full"].sum() == 0 < pool.refused["none"].sum()
    assert pool.items["item"].tolist() == known["item"].tolist()


# ---------------------------------------------------------------------------------------------------- diagnosis


def test_planted_labels_and_broken_items(embedded_outputs):
    items, known = result(embedded_outputs).frames["items"], truth(embedded_outputs)
    sound = known["broken"].eq("").to_numpy()
    right = items["label"].eq(known["label"])[sound].mean()
    alone = items["alone_label"].eq(known["label"])[sound].mean()
    prior = items["prior_label"].eq(known["label"])[sound].mean()
    assert right > 0.7 and right > alone and right > prior
    assert items["undetermined"][sound].mean() < 0.1 < 0.7 < items["undetermined"][~sound].mean()


def test_profiles_are_distributions_inside_their_intervals(embedded_outputs):
    items = result(embedded_outputs).frames["items"]
    for stem in ("", "alone_", "prior_"):
        np.testing.assert_allclose(items[[stem + z for z in LABELS]].sum(axis=1), 1, atol=1e-9)
    assert (items["label"] == np.array(LABELS)[items[list(LABELS)].to_numpy().argmax(1)]).all()
    for z in LABELS:
        assert (items[f"{z}_low"] <= items[f"{z}_high"]).all()
    assert items["stability"].between(0, 1).all()


def test_who_moved_an_item():
    table = pd.DataFrame(
        {"label": list("RRRRS"), "alone_label": list("RRVVV"), "prior_label": ["R", "S", "R", "S", ""]}
    )
    assert movers(table).tolist() == ["agree", "responses", "structure", "both", "no structure"]


def test_composition_adds_up(embedded_outputs):
    r = result(embedded_outputs)
    table, items = r.frames["composition"], r.frames["items"]
    for stratum, part in table.groupby("stratum"):
        mine = items if stratum == "all" else items[items["stratum"].eq(stratum)]
        assert part["n"].sum() == part["solvable"].iloc[0] == (~mine["undetermined"]).sum()
        assert part["share"].sum() == pytest.approx(1)
    assert (table["low"] <= table["share"]).all() and (table["share"] <= table["high"]).all()
    assert r.frames["moved"]["n"].sum() == (~items["undetermined"]).sum()


def test_zero_gain_is_the_audit_s(embedded_outputs):
    r, pool = result(embedded_outputs), fitted(embedded_outputs).pool
    hits = pool.arm.hits
    zero = hits["full"].sum(1) == hits["blind"].sum(1)
    table, items = r.frames["zero_gain"].set_index("label"), r.frames["items"]
    assert table["zero_gain"].sum() == zero.sum()
    mine = items["label"].eq("T").to_numpy() & ~items["undetermined"].to_numpy()
    assert table.loc["T", "zero_gain"] == zero[mine].sum() and table.loc["T", "items"] == mine.sum()
    # the image adds nothing to a textual-dominant item, and everything to a visual-dominant one
    assert table.loc["T", "gain"] < 0.3 < table.loc["V", "gain"]


def test_order_follows_the_determinant(embedded_outputs):
    r, g = result(embedded_outputs), fitted(embedded_outputs).diagnosis
    table = r.frames["order"].set_index("item")
    value = pd.Series(log_determinant(np.zeros(4), g.a, g.b), index=list(g.items))
    assert value.sort_values(ascending=False, kind="stable").index.tolist() == table.index.tolist()
    assert sorted(table["place_weak"]) == sorted(table["place_strong"]) == list(range(1, ITEMS + 1))


def test_findings_keep_the_contract(embedded_outputs):
    r = result(embedded_outputs)
    table, items = r.frames["findings"], r.frames["items"].set_index("item")
    assert set(COLUMNS["findings"]) <= set(table.columns)
    assert set(table["severity"]) <= set(SEVERITIES) and table["score"].between(0, 1).all()
    assert table["item"].is_unique and table["detector"].eq("dependence").all()
    low = items.loc[table.loc[table["severity"].eq("low"), "item"]]
    assert (low["undetermined"] | low["label"].isin(["R", "T"])).all()
    assert set(items.index[items["undetermined"]]) <= set(table["item"])


def test_agreement_of_ranks_is_scipy_s(rng):
    for _ in range(30):
        x, y = rng.integers(0, 5, (2, 7)).astype(float)
        if np.ptp(x) and np.ptp(y):
            want = stats.spearmanr(x, y).statistic, stats.kendalltau(x, y).statistic
            np.testing.assert_allclose(held_out._agree(x, y), want)
    assert np.isnan(held_out._agree(np.ones(4), np.arange(4.0))).all()


def test_subsets_and_left_out_families(embedded_outputs):
    frames = result(embedded_outputs).frames
    curve = frames["subset"]
    assert curve["items"].unique().tolist() == [16, 80] and curve["ranked"].eq(4).all()
    assert curve["spearman"].dropna().between(-1, 1).all()
    table, new = frames["margins"], frames["newcomers"]
    assert set(table["family"]) == {"lynx", "heron", "otter", "ibex"} and len(table) == 16
    vt = table[table["group"].isin(["V", "T"])]
    assert (vt["margin"] > 0).all(), "labels without content would make half of these positive"
    assert (new["predicted_full"] - new["observed_full"]).abs().max() < 0.1
    assert len(new) == 8 and new["model"].is_unique


# ----------------------------------------------------------------------------------------------------- new models


def test_frozen_items_score_a_new_model(embedded_outputs, tmp_path):
    d, r = fitted(embedded_outputs), result(embedded_outputs)
    file = save_frozen(r.frames["frozen"], tmp_path / "frozen.npz")
    r.frames["frozen"].to_parquet(tmp_path / "frozen.parquet")
    items = load_frozen(file)
    pd.testing.assert_frame_equal(items, load_frozen(tmp_path / "frozen.parquet")[items.columns])
    hits = d.responses.hits[2]
    rows = [{"item": i, "condition": c, "hit": hits[j, k]} for j, i in enumerate(d.responses.items)
            for k, c in enumerate(CONDITIONS)]  # fmt: skip
    table = pd.DataFrame(rows).sample(frac=1, random_state=0)
    got = score_model(table, items)
    want = score_new_subject(hits, d.diagnosis.a, d.diagnosis.b)
    np.testing.assert_allclose(got.theta, want.theta, atol=1e-9)
    some = score_model(table[table["condition"].isin(["blind", "full"])], items)
    assert some.converged and (some.standard_error >= got.standard_error).all()


def test_answers_that_do_not_fit_are_refused(embedded_outputs, tmp_path):
    items = result(embedded_outputs).frames["frozen"]
    row = {"item": items["item"].iloc[0], "condition": "full", "hit": 1}
    for change, says in (({"condition": "dark"}, "unknown condition 'dark'"), ({"hit": 2}, "no number of 0..1"),
                         ({"item": "zz"}, "no answer is to an item")):  # fmt: skip
        with pytest.raises(AuditError, match=says):
            score_model(pd.DataFrame([row | change]), items)
    with pytest.raises(AuditError, match="no column 'hit'"):
        score_model(pd.DataFrame([row]).drop(columns="hit"), items)
    np.savez(tmp_path / "x.npz", item=np.array(["a"]), a=np.ones((1, 3)), b=np.ones((1, 4)))
    with pytest.raises(AuditError, match="no item parameters"):
        load_frozen(tmp_path / "x.npz")


# ----------------------------------------------------------------------------------------------- fewer conditions


def test_two_conditions_get_a_plain_statement():
    d = study.fitted(study.with_prior(study.read(bare()), "unused"))
    assert d.missing == ("none", "image_only") and d.diagnosis is None
    r = measures.measure(d)
    table = r.frames["partial"].set_index("item")
    # full 1, chance 1/4: a gain of 3/4; one of four models right without the image is chance
    assert table["sufficiency_blind"].head(10).to_list() == pytest.approx([-1 / 3] * 5 + [0] + [1] * 4)
    assert table["sufficiency_blind"].isna().tolist() == [False] * 10 + [True] * 2
    assert r.facts["partial"]["sufficiency_blind"] == {"items": 10, "sufficient": 4}
    assert set(r.facts["unknown"]) == {"none", "image_only"}
    said = " ".join(t for b in STUDIES["dependence"].words(r) for _, t in b.get("runs", []))
    assert "No model was run on the options alone and image and options" in said and "4 (40.0%)" in said


def test_report_without_the_four_conditions_names_what_lacks():
    r = measures.measure(study.read(bare()))
    for figure in STUDIES["dependence"].figures:
        with pytest.raises(Lacking, match="no run under none, image_only"):
            figure.prepare(r)
    made = [t.name for t in STUDIES["dependence"].tables if _made(t, r)]
    assert made == ["dependence_partial"]


def _made(table, r):
    try:
        return len(table.build(r)) > 0
    except Lacking:
        return False


def test_other_conditions_can_stand_in(embedded_outputs):
    pool = whole(embedded_outputs).head(40)
    arm = pool.arm
    hits = {("gray" if c == "blind" else c): h for c, h in arm.hits.items()}
    trials = None if arm.trials is None else {("gray" if c == "blind" else c): t for c, t in arm.trials.items()}
    grey = replace(pool, arms={arm.name: Arm(arm.name, hits, trials)}, abstained={}, refused={}, failed={}, letters={})
    assert study.read(changed(grey)).missing == ("blind",)
    d = study.read(changed(grey, conditions={"blind": "gray"}))
    np.testing.assert_array_equal(d.responses.hits, study.read(changed(pool)).responses.hits)


def test_items_with_unknown_options_are_left_out_and_counted(embedded_outputs):
    pool = whole(embedded_outputs).head(40)
    items = pool.items.assign(k=pd.array([None] * 3 + [4] * 37, dtype="Int64"))
    d = study.read(changed(replace(pool, items=items)))
    assert len(d.responses.items) == 37 and list(d.left_out.values()) == [3]
    with pytest.raises(AuditError, match="known number of options"):
        study.read(changed(replace(pool, items=items.assign(k=pd.array([None] * 40, dtype="Int64")))))


def test_abstentions_can_be_missing(embedded_outputs):
    pool = whole(embedded_outputs).head(40)
    d = study.read(changed(pool, abstain="missing"))
    gone = pool.abstained["none"].T
    assert gone.any() and (d.responses.trials[:, :, 0] == ~gone).all()


# ------------------------------------------------------------------------------------------------ params and errors


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({"conditions": {"blind": "dark"}}, "names 'dark'"),
        ({"conditions": {"blind": "full"}}, "names one condition twice"),
        ({"prior": {"source": "labels"}}, "needs dependence.prior.files"),
        ({"prior": {"source": "none", "files": ["x.csv"]}}, "no effect"),
        ({"prior": {"source": "encoder"}}, "dependence.prior.encoder"),
        ({"fit": {"residual": 0}}, "greater than 0"),
        ({"annotation": {"readers": ["a", "b"]}}, "at least 13"),
        ({"bootsrap": 3}, "did you mean 'bootstrap'"),
    ],
)
def test_params_that_do_not_fit(tmp_path, block, says):
    with pytest.raises(AuditError, match=says):
        settings(tmp_path, **block)


def test_block_brings_its_notebook_and_located_files(tmp_path):
    made = settings(tmp_path, prior={"source": "labels", "files": ["labels.csv"]})
    assert made.notebooks == ["10_audit", "30_dependence", "80_figures", "90_tables"]
    assert made.dependence.prior.files == [(tmp_path / "labels.csv").resolve()]


def test_wrong_names_are_refused(embedded_outputs):
    pool = whole(embedded_outputs).head(40)
    with pytest.raises(AuditError, match="no arm 'jugded'"):
        study.read(changed(pool, arm="jugded"))
    d = study.read(changed(pool, families=["lynx", "wolf"]))
    with pytest.raises(AuditError, match="'wolf', which no model has"):
        _ = d.families
    other = replace(pool, params=None)
    d = replace(study.read(other), params=DependenceParams(prior={"source": "embeddings"}))
    with pytest.raises(AuditError, match="no file of them is named"):
        study.with_prior(d, embedded_outputs)


# ----------------------------------------------------------------------------------------------------- what is shown


def test_everything_is_shown_again_from_disk(embedded_outputs, tmp_path):
    paths = RunPaths(tmp_path, "p")
    save_result(result(embedded_outputs), paths)
    r, shown = load_result(paths, "dependence"), STUDIES["dependence"]
    for figure in shown.figures:
        frame = figure.prepare(r)
        ax = figure.draw(frame)
        assert ax.get_xlabel() and len(ax.figure.axes) == 1
        assert any(c.isdigit() for c in figure.caption(frame)) and len(figure.caption(frame)) > 100
    lacking = set()
    for table in shown.tables:
        try:
            frame = table.build(r)
        except Lacking:
            lacking.add(table.name)
            continue
        columns = table.columns_of(frame)
        cells = table_formats.cells(frame, columns)
        assert len(cells) == len(frame) > 0
        assert all(any(row[j] for row in cells) for j, c in enumerate(columns) if c.kind != "text"), table.name
    people = {"dependence_people", "dependence_compared", "dependence_agreement"}
    assert lacking == people | {"dependence_partial"}
    kinds = [b["kind"] for b in shown.words(r)]
    assert kinds[0] == "cards" and "p" in kinds


def test_words_count_what_the_frames_hold(embedded_outputs):
    r = result(embedded_outputs)
    cards = STUDIES["dependence"].words(r)[0]["items"]
    items = r.frames["items"]
    solvable = items[~items["undetermined"]]
    for shown, z in zip(cards, LABELS):
        assert f"{solvable['label'].eq(z).sum()} items" in shown["sub"]
    assert cards[-1]["value"] == str(int(items["undetermined"].sum()))


def test_card_of_an_item(embedded_outputs):
    r = result(embedded_outputs)
    table = card(r, "d0003").set_index("what")["value"]
    row = r.frames["items"].set_index("item").loc["d0003"]
    assert table["accuracy, full"] == f"{100 * row['accuracy_full']:.1f}%" and table["chance"] == "25.0%"
    with pytest.raises(AuditError, match="ids look like d0000"):
        card(r, "nope")


def test_without_structure_responses_decide(embedded_outputs):
    d = study.read(changed(whole(embedded_outputs).head(60), bootstrap=2))
    d = study.fitted(study.with_prior(d, embedded_outputs))
    items = measures.item_table(d)
    assert set(items["moved_by"]) == {"no structure"} and items["label"].equals(items["alone_label"])
    assert items["prior_R"].isna().all() and d.diagnosis.thresholds.tolist() == [0.5, 0.5]
