"""The published numbers, from the embedded replicas (oracle: the paper's tables, as listed in targets.csv)."""

from __future__ import annotations

import numpy as np
import pytest
from builders import embedded_audit

from auditlib.stats.splits import half_difference
from auditlib.stats.tables import joint_table, tie_region
from auditlib.synth.embedded import replica
from auditlib.synth.published import compare, targets

POOLS = ("mmstar_replica", "hallusionbench_replica")


@pytest.mark.parametrize("pool", POOLS)
def test_every_published_number(pool):
    table = compare(embedded_audit(pool))
    judged = table[table["kind"] != "information"]
    assert judged["met"].eq("yes").all(), judged[judged["met"] != "yes"].to_string()


def test_no_target_is_left_out():
    compared = [n for p in POOLS for n in compare(embedded_audit(p))["name"]]
    assert sorted(compared) == sorted(targets()["name"])


def _hits(pool, condition, keep=None):
    """Judged hits in the replica's own row order, on which its shuffle protocol depends."""
    table = replica(pool)
    columns = [c for c in table.columns if c.endswith(f"|{condition}|hit")]
    return table[columns].to_numpy().astype(int)[:, slice(None) if keep is None else keep]


def _shuffle(pool, columns=None, rows=None):
    """The replica's own protocol: a fresh default_rng(0), 999 permutations of the blind vectors."""
    F, B = (_hits(pool, c, columns).sum(axis=1) for c in ("full", "blind"))
    if rows is not None:
        F, B = F[rows], B[rows]
    rng = np.random.default_rng(0)
    draws = np.array([(F == B[rng.permutation(len(F))]).mean() for _ in range(999)])
    seen = (F == B).mean()
    p = (1 + (draws >= seen - 1e-12).sum()) / 1000
    return 100 * draws.mean(), 100 * (seen - draws.mean()), p


def _published(name):
    t = targets().set_index("name").loc[name]
    return float(t["published"]), float(t["replica"])


TABLE2 = {"all": None, "without InternVL3-8B": [1, 2], "without Ristretto-3B": [0, 2], "without gpt-5-nano": [0, 1]}


@pytest.mark.parametrize("models", TABLE2)
def test_reference_shuffle_prints_table_2(models):
    null, excess, p = _shuffle("mmstar_replica", TABLE2[models])
    for value, what in ((null, "null mean %"), (excess, "excess pp"), (p, "p")):
        published, built = _published(f"Table 2 [{models}] {what} (999 permutations, seed 0)")
        assert round(value, len(str(published).partition(".")[2])) == published
        assert value == pytest.approx(built, abs=5e-5)


@pytest.mark.parametrize("stratum", ["math", "science & technology", "coarse perception"])
def test_reference_shuffle_prints_the_strata(stratum):
    rows = (replica("mmstar_replica")["category"] == stratum).to_numpy()
    published, built = _published(f"excess {stratum} pp (999 permutations, seed 0)")
    _, excess, _ = _shuffle("mmstar_replica", rows=rows)
    assert round(excess, 1) == published
    assert excess == pytest.approx(built, abs=5e-5)


def test_reference_shuffle_prints_hallusionbench():
    null, excess, p = _shuffle("hallusionbench_replica")
    assert (round(null, 1), round(excess, 1), p) == (18.5, 5.4, 0.001)
    labels = replica("hallusionbench_replica")["category"].to_numpy()
    for name in ("VS", "VD"):
        published, built = _published(f"HallusionBench excess {name} pp (999 permutations, seed 0)")
        _, excess, _ = _shuffle("hallusionbench_replica", rows=labels == name)
        assert round(excess, 1) == published
        assert excess == pytest.approx(built, abs=5e-5)


@pytest.mark.parametrize(("pool", "name"), list(zip(POOLS, ("MMStar", "HallusionBench"))))
def test_reference_splits_print_the_median(pool, name):
    """A fresh default_rng(0), 20 permutations, first half against second half, exact nulls."""
    F, B = (_hits(pool, c).sum(axis=1) for c in ("full", "blind"))
    rng, half, out = np.random.default_rng(0), len(F) // 2, []
    for _ in range(20):
        order = rng.permutation(len(F))
        a, b = (joint_table(F[o], B[o], 3) for o in (order[:half], order[half:]))
        out.append(100 * half_difference([a], [b], tie_region(4)))
    published, built = _published(f"{name} median abs split-half difference pp (20 splits), seed 0")
    assert np.median(out) == pytest.approx(built, abs=5e-4)
    assert round(float(np.median(out)), 1) == published


def test_backfilling_would_hide_seven_unanimous_items():
    row = embedded_audit("mmstar_replica").statistic("backfill_unanimous").iloc[0]
    assert (row["n"], round(row["null"] * 1500)) == (127, 134)


def test_bounds_of_zero_gain():
    row = embedded_audit("mmstar_replica").statistic("zero_gain_share", policy="bounds", arm="judged").iloc[0]
    assert (round(100 * row["low"], 1), round(100 * row["high"], 1)) == (7.0, 43.1)


def test_headline_is_the_within_stratum_excess():
    audit = embedded_audit("mmstar_replica")
    rows = audit.statistic("zero_gain_share", arm="judged", policy="wrong")
    pooled, within = (
        rows[(rows["null_kind"] == k) & (rows["p_method"] == "exact")].iloc[0] for k in ("pooled", "within")
    )
    between = audit.statistic("zero_gain_between_strata", arm="judged").iloc[0]["estimate"]
    assert between == pytest.approx(pooled["excess"] - within["excess"], abs=1e-12)
    # oracle: observed minus the mean of the six published-protocol nulls, each 250 items
    strata = audit.statistics[
        (audit.statistics["metric"] == "zero_gain_share")
        & (audit.statistics["arm"] == "judged")
        & (audit.statistics["p_method"] == "exact")
        & (audit.statistics["models"] == "all")
    ]
    strata = strata[strata["stratum"] != "all"]
    assert len(strata) == 6
    assert within["null"] == pytest.approx(strata["null"].mean(), abs=1e-12)


def test_binary_format_is_said_to_be_outside_the_calibrated_range():
    detectors = embedded_audit("hallusionbench_replica").detectors.set_index("detector")
    assert "outside the calibrated range" in detectors.loc["visual_dependency", "note"]
    for name in ("consensus_error", "fleiss_kappa_agreement", "answer_options_distribution", "distractor_similarity"):
        assert detectors.loc[name, "state"] == "not run"
        assert detectors.loc[name, "reason"]


@pytest.mark.parametrize("policy", ["bounds", "bounds_both"])
def test_yes_and_no_are_answers_so_bounds_stay_narrow(policy):
    """HallusionBench replies name no letter, but most say yes or no; full runs hold no abstention."""
    row = embedded_audit("hallusionbench_replica").statistic("zero_gain_share", policy=policy, arm="judged").iloc[0]
    assert (round(100 * row["low"], 1), round(100 * row["high"], 1)) == (10.5, 51.3)


def test_closed_form_null_stands_beside_a_monte_carlo_p():
    row = (
        embedded_audit("mmstar_replica").statistic("visual_supplement_share", arm="judged", null_kind="pooled").iloc[0]
    )
    assert row["p_method"] == "tables"
    assert round(row["null"], 6) == 0.482072
    assert row["p"] + row["p_lower"] > 1
