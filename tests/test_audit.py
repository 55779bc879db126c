"""Audits: worlds with known answers, determinism, files."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from builders import embedded_pool, params, tiny_pool, world

import auditlib
from auditlib.outputs import load_audit, save_audit
from auditlib.paths import RunPaths


def _row(audit, kind, metric="zero_gain_share", **more):
    rows = audit.statistic(metric, null_kind=kind, **more)
    exact = rows[rows["p_method"] == "exact"]
    return (exact if len(exact) else rows).iloc[0]


def test_category_difficulty_alone_gives_pooled_excess_and_none_within():
    """Two categories of different difficulty, no item-level link: over worlds, the within interval covers 0."""
    covered, pooled = 0, []
    settings = params(audit={"bootstrap": 2000})
    for seed in range(40):
        rng = np.random.default_rng(seed)
        easy = np.repeat([True, False], 400)
        p_full, p_blind = np.where(easy, 0.9, 0.25), np.where(easy, 0.85, 0.1)
        hits = [(rng.random((800, 3)) < p[:, None]).astype(np.uint8) for p in (p_full, p_blind)]
        pool = auditlib.Pool.from_hits(*hits, stratum=np.where(easy, "easy", "hard"), name=f"w{seed}", params=settings)
        rows = _shares_only(pool)
        pooled.append(rows["pooled"]["excess"])
        covered += rows["within"]["excess_low"] <= 0 <= rows["within"]["excess_high"]
    assert np.mean(pooled) > 0.05
    assert covered >= 33  # 40 worlds at nominal .95: P(fewer than 33) < .001


def _shares_only(pool):
    from auditlib.counts import count
    from auditlib.metrics.blocks import blocks_of, strata_labels
    from auditlib.metrics.shares import measure

    counts = count(pool, "judged")
    out = {}
    for kind, labels in (("pooled", None), ("within", strata_labels(pool)[0])):
        place = {"arm": "judged", "models": "all", "stratum": "all", "null_kind": kind}
        out[kind] = measure(pool, "zero_gain", blocks_of(counts, labels), place, family="", intervals=True)[0][0]
    return out


def test_exact_p_is_that_of_full_enumeration():
    full, blind = np.array([[1], [1], [0], [0], [1], [0]]), np.array([[1], [0], [0], [0], [1], [1]])
    pool = auditlib.Pool.from_hits(full, blind, name="enumerated")
    row = _row(auditlib.audit(pool), "pooled")
    ties = [sum(f == b for f, b in zip(full[:, 0], p)) for p in itertools.permutations(blind[:, 0].tolist())]
    seen = int((full == blind).sum())
    assert row["p"] == pytest.approx(np.mean(np.array(ties) >= seen), abs=1e-12)
    assert row["null"] == pytest.approx(np.mean(ties) / 6, abs=1e-12)
    assert row["null_sd"] == pytest.approx(np.std(ties) / 6, abs=1e-12)


def test_same_seed_same_numbers_and_pools_do_not_disturb_each_other():
    a, b = (auditlib.audit(world(120, 3, seed=5, strata=2)) for _ in range(2))
    assert a.statistics.equals(b.statistics)
    assert a.findings.equals(b.findings)
    other = auditlib.audit(
        auditlib.Pool.from_hits(
            *(world(120, 3, seed=5).arms["judged"].hits[c] for c in ("full", "blind")), name="other"
        )
    )
    tables = [x.statistic("zero_gain_share", null_kind="pooled", p_method="tables")["null"].iloc[0] for x in (a, other)]
    assert tables[0] != tables[1], "another pool draws from its own stream"


def test_item_and_model_order_change_no_share():
    pool = world(150, 4, seed=2, strata=3)
    hits = pool.arms["judged"].hits
    order = np.random.default_rng(0).permutation(150)
    moved = auditlib.Pool.from_hits(
        hits["full"][order][:, ::-1],
        hits["blind"][order][:, ::-1],
        stratum=pool.items["stratum"].to_numpy()[order],
        models=pool.model_names[::-1],
        name=pool.name,
    )
    a, b = (auditlib.audit(p) for p in (pool, moved))
    for kind in ("pooled", "within"):
        for column in ("estimate", "null", "excess", "p"):
            assert _row(a, kind)[column] == pytest.approx(_row(b, kind)[column], abs=1e-12)


def test_saved_audit_reads_back_and_bytes_repeat(tmp_path):
    pool = world(80, 3, seed=1, strata=2)
    folders = [RunPaths(tmp_path / x, pool.name) for x in "ab"]
    for paths in folders:
        save_audit(auditlib.audit(pool), paths)
    names = sorted(p.name for p in folders[0].folder.iterdir())
    assert "findings.csv" in names and "statistics.csv" in names
    for name in names:
        assert (folders[0].folder / name).read_bytes() == (folders[1].folder / name).read_bytes(), name
    a, b = auditlib.audit(pool), load_audit(folders[0])
    assert np.allclose(a.statistics["estimate"], b.statistics["estimate"], equal_nan=True, atol=1e-11)
    assert b.statistics["level"].tolist() == a.statistics["level"].tolist()
    assert b.summary().equals(a.summary())
    assert not [p for p in folders[0].folder.iterdir() if "tmp" in p.name]


def test_loading_what_was_not_run_says_so(tmp_path):
    with pytest.raises(auditlib.AuditError, match="has not been audited"):
        load_audit(RunPaths(tmp_path, "none"))


def test_limit_takes_the_first_items_and_says_so():
    audit = auditlib.audit(embedded_pool("tinysee"), limit=20)
    assert len(audit.items) == 20
    assert audit.steps["limit"] == 20


def test_failed_calls_show_both_policies_where_they_differ():
    full = ["A", "B", "C", "D", "A", "", "C", "D"] * 5
    replies = {(m, "full"): full for m in "ab"} | {(m, "blind"): ["A"] * 40 for m in "ab"}
    audit = auditlib.audit(tiny_pool(replies, ["A", "B", "C", "D"] * 10))
    s = audit.statistics
    rows = s[
        (s["metric"] == "zero_gain_share") & (s["models"] == "all") & (s["null_kind"] == "pooled")
    ].drop_duplicates("policy")
    values = rows.set_index("policy")["estimate"]
    assert values["wrong"] == pytest.approx(10 / 35) and values["failed_wrong"] == pytest.approx(15 / 40)


def test_bh_family_of_strata():
    from statsmodels.stats.multitest import multipletests

    s = auditlib.audit(world(400, 3, seed=3, link=1.5, strata=4)).statistics
    family = s[s["family"] == "strata:zero_gain_share:judged"]
    assert len(family) == 4
    assert np.allclose(family["q"], multipletests(family["p"], method="fdr_bh")[1])
    assert s.loc[s["family"] == "sensitivity", "q"].isna().all()


def test_formulas_in_names_are_guarded_in_csv_and_read_back(tmp_path):
    name = '=HYPERLINK("http://x.invalid")'
    replies = {(name, c): ["A", "B", "C", "D"] for c in ("full", "blind")}
    pool = tiny_pool(replies, ["A", "B", "C", "D"], stratum=["+x", "+x", "-y", "-y"])
    paths = RunPaths(tmp_path, pool.name)
    audit = auditlib.audit(pool)
    save_audit(audit, paths)
    text = paths.statistics.read_text()
    assert "\"'=HYPERLINK" in text and ",=HYPERLINK" not in text and ",+x," not in text
    back = load_audit(paths)
    assert back.statistics["models"].tolist() == audit.statistics["models"].tolist()
    assert back.statistics["stratum"].tolist() == audit.statistics["stratum"].tolist()
    assert back.coverage["model"].tolist() == audit.coverage["model"].tolist()


def test_smaller_pools_cover_models_and_families_of_several():
    from auditlib.counts import smaller_pools

    r = {(m, "full"): ["A", "B", "C", "D"] for m in "abcd"}
    pool = tiny_pool(r, ["A", "A", "C", "D"])
    pool.models["family"] = ["F", "F", "G", "G"]
    found = dict(smaller_pools(pool, pool.model_names))
    assert found["without a"] == ["b", "c", "d"] and found["without family F"] == ["c", "d"]
    assert len(found) == 6
    s = auditlib.audit(pool).statistics
    kept = s[(s["metric"] == "unanimous_share") & s["models"].str.startswith("without")]
    assert sorted(kept["models"]) == sorted(found)
    assert (kept["estimate"] == 0.25).all()


def test_short_forms_hold_the_headline_and_no_path():
    pool = embedded_pool("tinysee")
    text = repr(pool) + repr(auditlib.audit(pool, limit=30))
    assert "300 items of TinySee x 4 models" in text and "zero gain from the image" in text
    assert "/" not in text.replace("2/2", "")


def test_a_model_without_a_full_run_leaves_votes_and_kappa_alone(write_run, toy_rows, tmp_path):
    def numbers(models: list[str]) -> tuple[pd.DataFrame, list[str]]:
        folder = "_".join(models)
        for model in models:
            write_run(model, toy_rows, bench="MMStar", folder=folder)
        file = tmp_path / f"{folder}.yaml"
        file.write_text(f"pool: toy\nbenchmark: MMStar\ndata: {{folder: {folder}}}\n")
        audit = auditlib.audit(auditlib.read_pool(file))
        votes = audit.findings.loc[audit.findings["detector"].eq("consensus_error"), "evidence"].tolist()
        return audit.statistic("fleiss_kappa")[["n", "estimate", "low", "high"]].reset_index(drop=True), votes

    full = ["one", "two", "one_blind", "two_blind"]
    (kappa, votes), (more, also) = numbers(full), numbers([*full, "three_blind"])
    assert len(kappa) == 1 and kappa.equals(more) and votes == also
