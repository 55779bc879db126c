"""The calibration of one pool: its list, the reviews of a sample, what is lacking, and what it shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditlib
from auditlib.calibration.study import calibrate_pool
from auditlib.errors import AuditError
from auditlib.params import load_params
from auditlib.paths import project_root
from auditlib.stats.label_conflict import label_conflict
from auditlib.studies import STUDIES
from auditlib.synth.embedded import truth
from auditlib.threads import single_threaded

SMALL = {"calibration.repeats": 2, "calibration.shuffles": 19, "audit.bootstrap": 200, "audit.permutations": 99,
         "audit.splits": 2}  # fmt: skip


def pool_of(tmp_path_factory, **more):
    params = load_params(project_root() / "params/tinysee.yaml", SMALL | more)
    return auditlib.read_pool(params, outputs=tmp_path_factory)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    pool = pool_of(tmp_path_factory.mktemp("o"))
    audit = auditlib.audit(pool)
    with single_threaded():
        return pool, audit, calibrate_pool(pool, audit)


def test_list_is_the_ranking_and_finds_planted_keys(made):
    pool, _, result = made
    ranked = result.frame("ranked")
    letters = pool.letters["full"].astype(int)
    assert set(ranked["item"]) <= set(pool.items["item"]) and ranked["rank"].tolist() == list(range(1, len(ranked) + 1))
    family = pool.models["family"].astype(str).to_numpy()
    margins = label_conflict(letters, pool.key_codes.astype(int), families=family).margin
    at = pd.Index(pool.items["item"]).get_indexer(ranked["item"])
    assert np.allclose(ranked["margin"], margins[at]) and len(at) == np.isfinite(margins).sum()
    known = truth().set_index("index")
    wrong = set(known.index[known["planted"].str.contains("key") & ~known["planted"].str.contains("none_key")])
    found = [i in wrong for i in ranked["item"].head(len(wrong))]
    assert len(wrong) >= 5 and np.mean(found) > 5 * len(wrong) / len(ranked)


def test_what_cannot_be_said_is_said(made):
    _, _, result = made
    assert result.facts["lacking"]["fdr"].startswith("no reviews")
    assert set(result.frame("findings")["severity"]) == {"low"}, "votes alone prove nothing"
    assert (result.frame("bounds")["lower"] == 0).all()
    assert "an upper value" in result.facts["spike_line"]


def test_reviews_make_an_error_rate(made, tmp_path):
    _, audit, before = made
    sample = before.frame("review_sample")
    known = truth().set_index("index")["planted"]
    wrong = known[known.str.contains("key") & ~known.str.contains("none_key")].index
    table = pd.DataFrame({"item": sample["item"], "defect": sample["item"].isin(wrong).astype(int)})
    table.to_csv(tmp_path / "reviews.csv", index=False)
    pool = pool_of(tmp_path / "o", **{"calibration.reviews": str(tmp_path / "reviews.csv")})
    result = calibrate_pool(pool, audit)
    first = result.frame("first").set_index("r")
    inside = result.frame("ranked")["item"].head(25).isin(wrong).sum()
    assert first.loc[25, "low"] * 25 <= inside <= first.loc[25, "high"] * 25
    assert first.loc[25, "found"] == (table.loc[sample["rank"] <= 25, "defect"]).sum()
    assert "weighted by probability of defect" in set(result.frame("board")["variant"])
    assert "fdr" not in result.facts["lacking"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("item;defect\n1;1\n", "no column 'item'"),
        ("item,defect\nnowhere,1\n", "row 2: item 'nowhere' is not in the ranked list"),
        ("item,defect\n{0},2\n", "row 2: defect is '2'"),
        ("item,defect\n{0},1\n{0},1\n", "row 3: item '{0}' is reviewed twice"),
    ],
)
def test_damaged_reviews_are_named(made, tmp_path, rows, said):
    _, audit, before = made
    item = before.frame("ranked")["item"].iloc[0]
    (tmp_path / "r.csv").write_text(rows.replace("{0}", item))
    pool = pool_of(tmp_path / "o", **{"calibration.reviews": str(tmp_path / "r.csv")})
    with pytest.raises(AuditError) as caught:
        calibrate_pool(pool, audit)
    assert said.replace("{0}", item) in str(caught.value) and "r.csv" in str(caught.value)


def test_every_figure_and_table_is_made_or_says_why(made):
    _, _, result = made
    study = STUDIES["calibration"]
    for figure in study.figures:
        if figure.name != "calibration_fdr":
            frame = figure.prepare(result)
            assert figure.caption(frame) and figure.draw(frame).figure
    assert {t.name for t in study.tables if t.name != "calibration_first" and len(t.build(result))} >= {
        "calibration_spikes", "calibration_bounds", "calibration_ranked", "calibration_claims"}  # fmt: skip
    assert study.words(result)
