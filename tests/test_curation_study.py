"""A whole curation of the embedded small pool: chain of counts, people's word, damaged files, what is shown of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from auditlib import table_formats
from auditlib.curation import again, study
from auditlib.curation.effort import MACRO
from auditlib.curation.funnel import funnel
from auditlib.curation.measures import measure
from auditlib.curation.packet import from_review
from auditlib.curation.people import People
from auditlib.curation.sensitivity import Thresholds
from auditlib.curation.wrong_removal import wrong_removal
from auditlib.errors import AuditError
from auditlib.lookup import Lacking
from auditlib.params import check_params
from auditlib.reading import read_pool
from auditlib.review.stage import Review
from auditlib.studies import STUDIES, study_of
from auditlib.synth.embedded import companion


def settings(outputs, **curation):
    return check_params(
        {"pool": "mmgist_small", "benchmark": "MMGist", "data": {"embedded": "mmgist_small"},
         "curation": {"adjudication": {}, "scorer_risk": "remove", "subsets": 20} | curation},
        outputs / "p.yaml",
    )  # fmt: skip


@cache
def recalled(outputs):
    return study.recall(read_pool(settings(outputs), outputs=outputs))


@cache
def curated(outputs):
    return study.read_by_people(study.judged(recalled(outputs), outputs), outputs)


@cache
def measured(outputs):
    return measure(curated(outputs))


def with_params(outputs, **curation):
    """The recalled pool under other params, which need no new reading."""
    c, params = recalled(outputs), settings(outputs, **curation)
    return replace(c, params=params.curation, source=replace(c.source, params=params))


def chain(result):
    table = result.frames["stages"]
    table = table[table["mode"].eq("sequential")].set_index("stage")
    return [int(table["items_in"].iloc[0]), *table["left"].astype(int)]


def test_chain_of_the_embedded_pool(embedded_outputs):
    result = measured(embedded_outputs)
    assert chain(result) == [1800, 1067, 684, 563]
    assert result.facts["kept"] == 563 and result.facts["waiting"] == {}
    listed = result.frames["decisions"]
    assert listed["decision"].value_counts().to_dict() == {"removed": 1237, "kept": 563}
    assert listed.loc[listed["decision"].eq("removed"), "author"].ne("").all(), "every removal has its author"


def test_nothing_is_removed_as_defective_without_a_persons_word(embedded_outputs):
    c = study.judged(recalled(embedded_outputs), embedded_outputs)
    result = measure(replace(c, params=c.params.model_copy(update={"subsets": 10})))
    assert int(c.kept.sum()) == 684 and "people" in result.facts["waiting"]
    waits = result.frames["decisions"]["author"].eq("waits for people")
    named = c.adjudication.decisions["state"].isin(["confirmed", "defect_any"]).sum()
    assert waits.sum() == named > 0
    found = result.frames["findings"].groupby("severity").size().to_dict()
    assert found == {"low": 733, "info": 383, "medium": int(named)}
    said = " ".join(t for b in STUDIES["curation"].words(result) for _, t in b.get("runs", []))
    assert "wait for readers" in said and f"{named} items" in said


def test_item_without_an_outcome_waits(embedded_outputs):
    c = study.judged(recalled(embedded_outputs), embedded_outputs)
    named = c.adjudication.decisions.query("state == 'confirmed'")["item"].tolist()
    none = pd.DataFrame(columns=["measure", "n", "estimate", "low", "high", "note"])
    word = People(
        {named[0]: "confirmed", named[1]: "rejected"}, {named[0]: "key_error"}, {named[0]: "ann and bob"}, none
    )
    done = study.read_by_people(c, embedded_outputs, word)
    removed = done.funnel.decisions.query("stage == 'defects'")["item"].tolist()
    assert removed == [named[0]]


def test_damaged_votes_are_refused(embedded_outputs, tmp_path):
    votes = pd.read_csv(companion("mmgist_small", "votes", embedded_outputs), dtype=str, keep_default_na=False)
    votes.loc[5, "label"] = "key eror"
    votes.to_csv(tmp_path / "votes.csv", index=False)
    c = with_params(embedded_outputs, adjudication={"votes": [str(tmp_path / "votes.csv")]})
    with pytest.raises(AuditError, match=r"votes\.csv.*key eror"):
        study.judged(c, embedded_outputs)


def test_judges_need_something_to_show(embedded_outputs):
    c = with_params(embedded_outputs, adjudication={"judges": [{"name": "m"}], "base_url": "http://127.0.0.1:9/v1"})
    with pytest.raises(AuditError, match="items"):
        study.judged(c, embedded_outputs)


def test_again_equals_the_funnel(embedded_outputs):
    """Against the funnel itself, at other models and at other thresholds."""
    c = recalled(embedded_outputs)
    some = np.sort(np.concatenate([c.pool.panel[::2], c.pool.inspectors[1:]]))
    pool = replace(c.pool, inspectors=np.intersect1d(c.pool.inspectors, some), panel=np.intersect1d(c.pool.panel, some))
    assert (again.with_models(c, some) == funnel(pool, c.settings).kept).all()
    kept, wrong = again.at_thresholds(c)
    t = Thresholds("0.70", "0.45", "0.95")
    s = study.stage_settings(c.params.model_copy(update={"text_binary": 0.7, "text_other": 0.45, "saturation": 0.95}))
    there = funnel(c.pool, s)
    assert (kept(t) == there.kept).all()
    blind = c.pool.blind.of(c.pool.inspectors)
    assert wrong(t) == wrong_removal(blind, c.pool.k, there.ablation, s.ablation).expected
    with pytest.raises(AuditError, match="panel"):
        again.with_models(c, np.setdiff1d(c.pool.inspectors, c.pool.panel)[:0])


def test_labelled_errors_are_weighted_back(embedded_outputs, tmp_path):
    c = curated(embedded_outputs)
    model = c.pool.models["model"].iloc[0]
    from auditlib.curation.error_labels import sample_wrong

    drawn = sample_wrong(c.pool, model, n=70, rng=np.random.default_rng(1))
    hard = drawn["capability"].eq("Medical")
    labels = drawn[["item", "draw", "model"]].assign(labeller="ann", label=np.where(hard, "knowledge", "reasoning"))
    labels.to_csv(tmp_path / "errors.csv", index=False)
    c = replace(c, params=c.params.model_copy(update={"labelled_errors": tmp_path / "errors.csv"}))
    from auditlib.curation.from_files import error_tables

    table = error_tables(c)["errors"].set_index(["capability", "label"])
    wrong = drawn.drop_duplicates("capability").set_index("capability")["population"]
    assert table.loc[("all", "knowledge"), "share"] == pytest.approx(wrong["Medical"] / wrong.sum())
    assert table.loc[("Medical", "knowledge"), "share"] == 1
    labels.assign(draw=labels["draw"] + 98).to_csv(tmp_path / "errors.csv", index=False)
    with pytest.raises(AuditError, match=r"draw \d+ is labelled"):
        error_tables(c)


def test_effort_file_takes_capabilities_from_the_pool(embedded_outputs, tmp_path):
    c = curated(embedded_outputs)
    items = c.pool.items["item"].astype(str).tolist()[:300:3]
    rows = [{"item": i, "model": m, "level": level, "correct": float((n % 4 == 0) or level == "high")}
            for m in ("a", "b") for n, i in enumerate(items) for level in ("low", "high")]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "effort.csv", index=False)
    from auditlib.curation.from_files import effort_tables

    c = replace(c, params=c.params.model_copy(update={"effort": tmp_path / "effort.csv"}))
    table = effort_tables(c)["effort"].set_index("capability")
    assert table.loc["item mean", ["before", "after", "change"]].tolist() == pytest.approx([0.25, 1, 0.75])
    assert MACRO in table.index
    pd.DataFrame(rows).replace({"item": {items[0]: "nowhere"}}).to_csv(tmp_path / "effort.csv", index=False)
    with pytest.raises(AuditError, match="nowhere"):
        effort_tables(c)


def test_every_figure_and_table_is_made_or_says_why(embedded_outputs):
    import matplotlib.pyplot as plt

    result, lacking = measured(embedded_outputs), set()
    for f in STUDIES["curation"].figures:
        try:
            frame = f.prepare(result)
        except Lacking as why:
            lacking.add((f.name, str(why)))
            continue
        assert f.caption(frame).endswith(".")
        plt.close(f.draw(frame).figure)
        assert study_of(f.name).name == "curation"
    for t in STUDIES["curation"].tables:
        try:
            frame = t.build(result)
        except Lacking as why:
            lacking.add((t.name, str(why)))
            continue
        columns = t.columns_of(frame)
        known = {x for c in columns for x in ([c.name] if ".." not in c.name else c.kind.split(":")[1:3])}
        assert known <= set(frame.columns), t.name
        assert table_formats.cells(frame, columns)
    assert {n for n, _ in lacking} == {"curation_errors", "curation_effort"}


def test_tables_repeat_the_frames(embedded_outputs):
    result = measured(embedded_outputs)
    tables = {t.name: t for t in STUDIES["curation"].tables}
    main = tables["curation_main"].build(result)
    names = [c for c in main if c not in ("group", "model", "macro average")]
    rows = main[main["model"].str.startswith("Model")]
    assert len(rows) == 27 and len(names) == 7
    assert np.allclose(rows["macro average"], rows[names].mean(axis=1), atol=1e-12)
    means = main[main["model"].str.startswith("mean of")].set_index("group")["macro average"]
    groups = tables["curation_groups"].build(result).set_index("capability").loc["macro average"]
    assert means.tolist() == pytest.approx([groups[f"curated_{g}"] for g in ("closed", "large-open", "small-open")])
    sources = tables["curation_sources"].build(result)
    assert sources["source"].iloc[-1] == "all"
    gone = sources[["at_text_ablation", "at_saturation", "at_defects"]].sum(axis=1)
    assert (sources["items"] - gone == sources["kept"]).all()
    q = tables["curation_quality"].build(result).set_index("measure")
    ratio = q.loc["SD between models", "ratio"] / (q.loc["mean of the benchmark average", "curated"]
                                                   / q.loc["mean of the benchmark average", "raw"])  # fmt: skip
    assert q.loc["coefficient of variation", "ratio"] == pytest.approx(ratio, abs=1e-12)


def test_the_same_seed_measures_the_same(embedded_outputs):
    c = curated(embedded_outputs)
    first, second = measured(embedded_outputs), measure(c)
    for name in ("band", "quality", "jagged", "crossfit", "rounds", "grid", "scores"):
        pd.testing.assert_frame_equal(first.frames[name], second.frames[name])


def test_frames_agree_with_each_other(embedded_outputs):
    """Numbers that several frames hold, made in different modules."""
    f = measured(embedded_outputs).frames
    q, band = f["quality"].set_index("measure"), f["band"].set_index("statistic")["observed"]
    for row, name in (("Spearman, curated and all items", "spearman"), ("coefficient of variation", "cv"),
                      ("SD between models", "sd"), ("resolvable pairs of models", "resolvable"),
                      ("Spearman, curated and removed items", "spearman_rest")):  # fmt: skip
        assert q.loc[row, "curated"] == pytest.approx(band[name]), row
    scores = f["scores"].query("name == 'benchmark average'").set_index("model")
    ranks = f["ranks"].set_index("model")
    for name in ("raw", "curated"):
        mine = scores.loc[scores["set"].eq(name), "score"]
        assert mine.sort_index().tolist() == pytest.approx(ranks[name].sort_index().tolist())
    assert q.loc["Spearman, curated and all items", "curated"] == pytest.approx(
        ranks["rank_raw"].corr(ranks["rank_curated"])
    )
    assert f["pairs"]["resolvable"].sum() == q.loc["resolvable pairs of models", "curated"]


def test_people_of_a_review():
    """Own items only, open ones left out, probes never; the summary repeats the review's frames."""
    outcomes = pd.DataFrame({
        "row": ["r1", "r2", "r3", "r4"], "view": "item", "item": ["a", "b", "c", "d"],
        "kind": ["flagged", "unflagged", "flagged", "planted"],
        "outcome": ["confirmed", "rejected", "open", "confirmed"],
        "label": ["key_error", "no_issue", "", "key_error"], "conflict": False,
    })  # fmt: skip
    table = pd.DataFrame({"row": ["r1", "r1", "r2", "r2", "r3"], "reader": ["bob", "ann", "ann", "bob", "ann"]})
    agreement = pd.DataFrame([{"view": "item", "rows": "without probes", "of": "label", "statistic": "cohen_kappa",
                               "readers": "ann, bob", "n": 2, "observed": 1.0, "estimate": 1.0, "low": 0.1,
                               "high": 1.0, "note": ""}])  # fmt: skip
    probes = pd.DataFrame([{"reader": "final outcome", "measure": "sensitivity", "hits": 1, "n": 1, "estimate": 1.0,
                            "low": 0.2, "high": 1.0, "cannot_tell": 0}])  # fmt: skip
    prevalence = pd.DataFrame([{"rows": "all", "read": 2, "estimate": 0.5, "low": 0.1, "high": 0.9, "note": ""}])

    class Read:
        pass

    read = Read()
    read.table = table
    word = from_review(Review(read, outcomes, agreement, probes, prevalence))
    assert word.outcome == {"a": "confirmed", "b": "rejected"}
    assert word.label == {"a": "key_error", "b": "no_issue"}
    assert word.author == {"a": "ann and bob", "b": "ann and bob"}
    rows = word.summary.set_index("measure")
    assert rows["estimate"].tolist() == pytest.approx([2 / 3, 1.0, 1.0, 0.5])
    assert "Cohen's kappa, label" in rows.index and "defective among all items" in rows.index
