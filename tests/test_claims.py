"""Sentences only where their conditions hold: the embedded replicas, and audits that lack one thing each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import embedded_audit

from auditlib.claim_arms import arms_difference
from auditlib.claims import abstract, claims, table


def _by_name(audit, **more):
    return {c.name: c for c in claims(audit, **more)}


@pytest.fixture(scope="module")
def mmstar():
    return embedded_audit("mmstar_replica")


def test_the_abstract_of_the_published_audit(mmstar):
    """Oracle: the numbers of the published abstract and conclusion (20.2%, 303, 134, 14.2 pp, the two categories)."""
    made = _by_name(mmstar)
    assert "303 of 1500 items (20.2%, 95% interval 18.2% to 22.3%)" in made["zero gain"].sentence
    assert "+3.0 pp" in made["excess over chance"].sentence  # inside categories; +3.2 pp over all items
    assert {"math", "science & technology"} == {n for n in ("math", "science & technology", "coarse perception")
                                                if n in made["where the excess is"].sentence}  # fmt: skip
    assert "exact arm" in made["where the excess is"].sentence  # and it says that the other arm is not sure
    assert "134 items" in made["label conflicts"].sentence and "not errors" in made["label conflicts"].sentence
    assert "fine-grained perception" in made["where label conflicts are"].sentence
    assert "coarse" not in made["where label conflicts are"].sentence  # 11.6% against 8.4%: not beyond chance
    assert "14.2 pp" in made["dependence on the models"].sentence
    text = abstract(mmstar)
    for c in made.values():
        assert c.text() in text


def test_what_the_replica_does_not_support(mmstar):
    made = _by_name(mmstar)
    assert not made["share of wrong keys"].made and "people review" in made["share of wrong keys"].text()
    judge = made["conclusions without the judge"]
    assert judge.sentence == "" and "1.0 pp" in judge.missing[0] and judge.text().startswith("Not claimed")
    assert not made["design labels"].made


def test_nothing_is_claimed_outside_the_calibrated_range():
    made = _by_name(embedded_audit("hallusionbench_replica"))
    for name in ("zero gain", "excess over chance", "where the excess is", "conclusions without the judge"):
        assert any("calibrated range" in m for m in made[name].missing), name
    assert "is not shown to recover" in made["design labels"].sentence


def test_each_condition_alone_takes_the_sentence_back(mmstar):
    assert "above .05" in _by_name(mmstar, headline_q=0.2)["excess over chance"].text()
    s = mmstar.statistics
    head = (s["metric"] == "zero_gain_share") & (s["stratum"] == "all") & (s["arm"] == "judged")
    everything = head & (s["models"] == "all")
    alone = s[~(head & s["models"].str.startswith("without"))]
    assert "no pool with one model left out" in _by_name(replace(mmstar, statistics=alone))["zero gain"].text()
    wide = s.copy()
    wide.loc[everything, "excess_low"] = -0.01
    assert "reaches 0" in _by_name(replace(mmstar, statistics=wide))["excess over chance"].text()
    weak = s.copy()
    weak.loc[head & s["models"].eq("without gpt-5-nano"), ["excess", "p"]] = [-0.01, 0.4]
    reasons = _by_name(replace(mmstar, statistics=weak))["excess over chance"].missing
    assert len(reasons) == 2 and all("one model left out" in r for r in reasons)
    unsure = s.copy()
    unsure["q"] = 0.3
    assert "no category has q" in _by_name(replace(mmstar, statistics=unsure))["where the excess is"].text()


def test_arms_differ_as_the_statistics_say(mmstar):
    """Oracle: the statistics frame's own excesses, and the share of items by hand."""
    d = arms_difference(mmstar, 0.03, 0.01)
    rows = mmstar.statistic("zero_gain_share", policy="wrong", null_kind="within")
    rows = rows[rows["p_method"] == "exact"].set_index("arm")
    assert d.excess == pytest.approx(rows.loc["exact", "excess"] - rows.loc["judged", "excess"], abs=1e-12)
    assert d.share == pytest.approx(rows.loc["exact", "estimate"] - rows.loc["judged", "estimate"], abs=1e-12)
    c = mmstar.counts
    ties = [(t["F"] == t["B"]).to_numpy(float) for _, t in c.groupby("arm")]
    assert d.share_se == pytest.approx(np.std(ties[0] - ties[1], ddof=1) / np.sqrt(1500), rel=1e-9)
    assert d.share_p < 0.05 < d.excess_p


def test_table_has_a_row_for_every_claim(mmstar):
    t = table(mmstar)
    assert len(t) == len(claims(mmstar)) and t["made"].sum() == 6 and t["text"].str.len().min() > 20
