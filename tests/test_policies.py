"""Policies of abstention on the replica (oracle: 20.2% wrong, 32.7% left out, bounds 7.0 to 43.1%)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from auditlib import Pool
from auditlib.lookup import one
from auditlib.metrics import statistics
from auditlib.synth.embedded import replica


@pytest.fixture(scope="module")
def stats() -> pd.DataFrame:
    table = replica("mmstar_replica")
    models = [c.split("|")[0] for c in table.columns if c.endswith("|full|hit")]
    hits = {c: table[[f"{m}|{c}|hit" for m in models]].to_numpy(dtype=np.uint8) for c in ("full", "blind")}
    mute = {c: ~table[[f"{m}|{c}|letter" for m in models]].isin(list("ABCD")).to_numpy() for c in ("full", "blind")}
    items = pd.DataFrame({"item": table["index"].astype(str), "stratum": table["category"], "k": 4.0})
    pool = Pool.from_hits(hits["full"], hits["blind"], items=items, models=models, abstained=mute, name="r")
    return statistics(pool)[0]


def _share(stats, policy, column="estimate"):
    row = one(stats, "zero_gain_share", policy=policy, models="all", stratum="all", null_kind=("pooled", ""))
    return 100 * row[column]


def test_zero_gain_by_policy(stats):
    assert _share(stats, "wrong") == pytest.approx(20.2, abs=0.05)
    assert _share(stats, "excluded") == pytest.approx(32.7, abs=0.05)
    assert [_share(stats, "bounds", c) for c in ("low", "high")] == pytest.approx([7.0, 43.1], abs=0.05)


def test_every_share_has_every_policy(stats):
    for policy in ("excluded", "bounds", "bounds_both"):
        assert stats[(stats["policy"] == policy) & stats["metric"].str.endswith("_share")]["metric"].nunique() == 6


def test_chance_lifts_an_accuracy_by_a_quarter_of_the_abstentions(stats):
    rows = stats[(stats["metric"] == "accuracy") & (stats["level"] == "blind")]
    for _, part in rows.groupby("models"):
        by = part.set_index("policy")["estimate"]
        assert by["wrong"] < by["chance"] < by["excluded"]


def test_macro_accuracy_is_the_mean_of_the_categories(stats):
    rows = stats[stats["metric"] == "accuracy_macro"]
    micro = stats[(stats["metric"] == "accuracy") & (stats["policy"] == "wrong")]
    # the six categories of the benchmark have 250 items each
    assert rows["estimate"].tolist() == pytest.approx(micro["estimate"].tolist())
    assert (rows["low"] < rows["estimate"]).all() and (rows["estimate"] < rows["high"]).all()
