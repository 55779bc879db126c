"""Retention, composition, what is known of sources, groups of models, profiles and cost: hand counts and scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from outcome_builders import pool_of
from scipy import stats

from auditlib.curation.composition import composition, reasons_by_source, retention, source_table
from auditlib.curation.cost import cost_table
from auditlib.curation.groups import group_table, jagged_profiles, model_groups
from auditlib.errors import AuditError
from auditlib.stats.intervals import wilson

STAGES = ("text_ablation", "saturation", "defects")


def test_retention_follows_the_published_chain():
    # MMGist: 23,250 -> 13,785 -> 8,831 -> 7,262 items
    gone = np.repeat(["text_ablation", "saturation", "defects", ""], [9465, 4954, 1569, 7262])
    table = retention(np.where(np.arange(23250) % 2, "a", "b"), gone, STAGES)
    total = table[table["source"] == "all"]
    assert total["left"].tolist() == [13785, 8831, 7262]
    assert total["removed"].tolist() == [9465, 4954, 1569]
    np.testing.assert_allclose(total["removed_share"], [0.407, 0.359, 0.178], atol=5e-4)
    assert total["left_share"].iloc[-1] == pytest.approx(0.312, abs=5e-4)
    parts = table[table["source"] != "all"].groupby("stage", sort=False)[["entered", "removed", "left"]].sum()
    np.testing.assert_array_equal(parts.to_numpy(), total[["entered", "removed", "left"]].to_numpy())


def test_source_emptied_early_has_no_later_share():
    table = retention(["a", "a", "b"], ["text_ablation", "text_ablation", ""], STAGES)
    row = table.query("source == 'a' and stage == 'saturation'").iloc[0]
    assert (row["entered"], row["left"]) == (0, 0) and np.isnan(row["removed_share"])
    with pytest.raises(AuditError, match="unknown stage 'judges'"):
        retention(["a"], ["judges"], STAGES)


def test_reasons_exclusive_and_overlapping():
    text, solved = np.array([1, 1, 0, 0, 1], bool), np.array([1, 0, 1, 0, 0], bool)
    table = reasons_by_source(list("aaabb"), {"text": text, "solved": solved}, ["text", "text", "solved", "", "text"])
    row = table.set_index(["source", "reason"])
    assert row.loc[("all", "text"), ["exclusive", "any", "alone"]].tolist() == [3, 3, 2]
    assert row.loc[("all", "solved"), ["exclusive", "any", "alone"]].tolist() == [1, 2, 1]
    assert row.loc[("a", "any reason"), ["items", "exclusive", "any", "alone"]].tolist() == [3, 3, 3, 2]
    assert row.loc[("b", "any reason"), "any_share"] == 0.5
    with pytest.raises(AuditError, match="unknown reason 'odd'"):
        reasons_by_source(["a"], {"text": [True]}, ["odd"])


def test_composition_with_wilson_retention():
    table = composition(["x"] * 30 + ["y"] * 10, np.arange(40) % 4 == 0).set_index("name")
    assert table.loc["x", ["raw", "curated"]].tolist() == [30, 8]
    assert table.loc["y", "change"] == pytest.approx(2 / 10 - 10 / 40)
    ends = wilson(8, 30)
    assert (table.loc["x", "low"], table.loc["x", "high"]) == (ends.low, ends.high)
    assert table.loc["all", "curated_share"] == 1


def test_source_table(rng):
    full = np.array([[8, 8, 8], [8, 8, 5], [8, 8, 6], [0, 0, 0]])
    blind = np.array([[4, 2, 0], [8, 8, 0], [0, 0, 0], [2, 6, 0]])
    items = {"license": ["CC-BY", "CC-BY", "MIT", None], "provenance": ["web", "exam", "web", "web"],
             "sensitive": ["yes", "", "no", True]}  # fmt: skip
    pool = pool_of(full, source=list("aaab"), capability=list("xyxx"), blind=blind, items=items, inspectors=[0, 1])
    table = source_table(pool, np.array([1, 0, 0, 1], bool)).set_index("source")
    a, b = table.loc["a"], table.loc["b"]
    # item 0 has 24 of 24, items 1 and 2 have 21 and 22 of 24: 22 of 24 is above 0.90, 21 of 24 is not
    assert a["solved"] == 2 and b["solved"] == 0
    assert a["text_only"] == pytest.approx((3 / 8 + 1 + 0) / 3) and b["text_only"] == 0.5
    assert a["text_only_low"] < a["text_only"] < a["text_only_high"]
    assert np.isnan(b["text_only_low"])  # one item has no interval
    assert (a["licence"], b["licence"], a["provenance"]) == ("CC-BY, MIT", "unknown", "web, exam")
    assert table.loc["all", "licence"] == "CC-BY, MIT (unknown for 1 items)"
    assert (a["sensitive"], a["sensitive_kinds"], a["sensitive_unknown"], b["sensitive"]) == (1, "", 1, 1)
    assert a["capabilities"] == "x, y" and a["retention"] == pytest.approx(1 / 3)


def test_share_above_ninety_is_strict_and_exact():
    # nine of ten draws is 0.9 and not above it, whatever floats say
    row = source_table(pool_of([[9, 9, 9], [9, 9, 10]], 10), np.ones(2, bool)).iloc[-1]
    assert (row["solved"], row["solved_share"]) == (1, 0.5)
    assert np.isnan(row["text_only"]) and row["sensitive_unknown"] == 2


def test_sensitive_kinds_are_named():
    items = {"sensitive": ["medical", "Faces", "medical", "none", "unknown", True]}
    row = source_table(pool_of(np.ones((6, 1), int), items=items), np.ones(6, bool)).iloc[-1]
    assert (row["sensitive"], row["sensitive_kinds"], row["sensitive_unknown"]) == (4, "medical, faces", 1)


def test_model_groups_guess_nothing():
    models = pd.DataFrame({"open": [True, True, True, False, None], "params_b": [30, 29.9, None, None, 7],
                           "tier": ["", "", "", "", ""]})  # fmt: skip
    assert model_groups(models).tolist() == ["large-open", "small-open", "", "closed", ""]
    assert model_groups(models.assign(tier="small-open")).tolist() == ["small-open"] * 5
    assert model_groups(pd.DataFrame({"model": ["a"]})).tolist() == [""]


def test_group_gaps_are_paired_t_tests(rng):
    hits = rng.binomial(8, rng.uniform(0.2, 0.9, (40, 1)), (40, 5))
    capability = np.repeat(["x", "y"], 20)
    groups = np.array(["closed", "closed", "large-open", "small-open", ""], object)
    kept = np.arange(40) % 3 > 0
    table = group_table(pool_of(hits, capability=capability), kept, groups)
    rate = hits / 8
    row = table.query("set == 'curated' and capability == 'x' and name == 'closed - large-open'").iloc[0]
    at = kept & (capability == "x")
    other = stats.ttest_rel(rate[at][:, :2].mean(axis=1), rate[at, 2])
    ends = other.confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))
    assert row["value"] == pytest.approx(rate[at][:, :2].mean() - rate[at, 2].mean())
    assert (row["models"], row["items"]) == (3, at.sum())
    macro = table.query("set == 'raw' and capability == 'macro average' and name == 'closed'").iloc[0]
    assert macro["value"] == pytest.approx(rate[:, :2].mean())
    assert len(table) == 2 * 4 * 6
    with pytest.raises(AuditError, match="open or closed"):
        group_table(pool_of(hits), kept, np.full(5, "", object))


def test_jagged_profiles_and_their_noise(rng):
    hits = np.column_stack([np.repeat([8, 4, 0], 30), rng.binomial(8, 0.5, 90)])
    pool = pool_of(hits, capability=np.repeat(["x", "y", "z"], 30))
    table = jagged_profiles(pool, np.arange(90) % 2 == 0, rng=rng, worlds=20_000)
    first, second = table.iloc[0], table.iloc[1]
    assert (first["range"], first["best"], first["worst"]) == (1.0, "x", "z")
    assert first["noise"] == 0
    # the mean range of three normal means is 1.6926 standard errors (Tippett)
    se = np.mean([hits[i : i + 30, 1].std(ddof=1) / 8 / np.sqrt(30) for i in (0, 30, 60)])
    assert second["noise"] == pytest.approx(1.6926 * se, rel=0.03)
    with pytest.raises(AuditError, match="no capability"):
        jagged_profiles(pool_of(hits), np.ones(90, bool), rng=rng)


def test_cost_counts_only_what_is_known():
    pool = pool_of(np.zeros((4, 3), int), evaluated=[0, 1])
    kept = np.array([1, 0, 0, 1], bool)
    table = cost_table(pool, kept, tokens=np.array([300, 100, np.nan, 300]), price=2.0).set_index("what")
    assert table.loc["calls", ["raw", "curated"]].tolist() == [64, 32]
    assert table.loc["tokens", ["raw", "curated", "known"]].tolist() == [700, 600, 0.75]
    assert table.loc["cost", "raw"] == pytest.approx(0.0014)
    # half of the items saved, but only a seventh of the tokens: the kept items are the dear ones
    assert table.loc["items", "saved"] == 0.5 and table.loc["tokens", "saved"] == pytest.approx(1 / 7)
    assert table.loc["tokens", "per_item"] == pytest.approx(300 / (700 / 3))
    assert "unknown for 1 of 4 items" in table.loc["tokens", "note"]
    assert "tokens" not in set(cost_table(pool, kept, tokens=np.full((4, 2), np.nan))["what"])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"price": 1.0}, "a price is given but no tokens"),
        ({"tokens": np.ones(3)}, r"tokens have shape \(3,\)"),
        ({"seconds": -np.ones(4)}, "seconds of an item are negative"),
    ],
)
def test_unfit_costs_are_refused(more, says):
    with pytest.raises(AuditError, match=says):
        cost_table(pool_of(np.zeros((4, 2), int)), np.ones(4, bool), **more)
