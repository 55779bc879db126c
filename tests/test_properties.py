"""Properties that hold for every pool: audits of random replies, whatever they say and in whatever order they come."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
from builders import params, runs
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import auditlib
from auditlib.reading import pool_of
from auditlib.stats.categories import CATEGORIES, categories

REPLY = st.sampled_from(["A", "B.", "(C)", "The answer is D.", "hm", "", "I cannot see the image.", "Z", "E", "A or B"])
# audits are too slow to shrink over: a failure is shown as found
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
FAST = {"bootstrap": 200, "permutations": 99, "splits": 2}


@st.composite
def pools(draw):
    n, models = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    keys = draw(st.lists(st.sampled_from("ABCDE"), min_size=n, max_size=n))
    keys[0] = "A"
    conditions = draw(st.sampled_from([("full",), ("full", "blind")]))
    replies = {(f"m{j}", c): draw(st.lists(REPLY, min_size=n, max_size=n)) for j in range(models) for c in conditions}
    replies["m0", "full"][0] = "A"  # something can be scored
    stratum = draw(st.lists(st.sampled_from(["x", "y"]), min_size=n, max_size=n))
    return runs(replies, keys, stratum=stratum)


def _audit(r):
    return auditlib.audit(pool_of(r, params(audit=FAST)))


@settings(max_examples=30, deadline=None, phases=PHASES)
@given(pools())
def test_audits_of_anything_keep_the_contracts(r):
    a = _audit(r)
    s = a.statistics
    shares = s[s["metric"].str.endswith("_share") & s["estimate"].notna()]
    assert shares["estimate"].between(0, 1).all()
    assert (s["p"].dropna().between(0, 1)).all()
    gap = (s["estimate"] - s["null"] - s["excess"]).dropna()
    assert (gap.abs() < 1e-12).all()
    bounds = s[s["policy"] == "bounds"].merge(
        s[(s["policy"] == "wrong") & (s["null_kind"] == "pooled") & (s["models"] == "all") & (s["stratum"] == "all")],
        on=["metric", "arm"],
    )
    assert (bounds["low_x"] <= bounds["estimate_y"] + 1e-12).all()
    assert (bounds["high_x"] >= bounds["estimate_y"] - 1e-12).all()
    assert a.findings["score"].between(0, 1).all()
    assert a.findings["flag"].dtype == bool
    for arm, part in a.counts.groupby("arm"):
        assert part["item"].is_unique, arm
        assert (part["F"] <= part["n"] * part["R"]).all() and (part["B"] <= part["n"] * part["R"]).all()


@settings(max_examples=15, deadline=None, phases=PHASES)
@given(pools(), st.randoms(use_true_random=False))
def test_row_order_changes_nothing(r, random):
    order = list(range(len(r.responses)))
    random.shuffle(order)
    shuffled = dataclasses.replace(
        r, responses=r.responses.iloc[order].reset_index(drop=True), items=r.items.iloc[order].reset_index(drop=True)
    )
    a, b = _audit(r), _audit(shuffled)
    pd.testing.assert_frame_equal(a.statistics, b.statistics)
    pd.testing.assert_frame_equal(a.findings, b.findings)


@given(st.integers(1, 60), st.data())
def test_categories_partition_and_mirror_floats_away_from_the_boundary(total, data):
    F, B = (data.draw(st.integers(0, total)) for _ in range(2))
    name = CATEGORIES[categories([F], [B], total)[0]]
    gain = F - B
    if 5 * abs(gain) != total:  # off the boundary the float rule says the same
        f, b = F / total, B / total
        expected = (
            "visual_dependent"
            if f >= 0.99 and b <= 0.01
            else "conflicting"
            if b - f > 0.2
            else "visual_supplement"
            if f - b >= 0.2
            else "text_only"
        )
        assert name == expected
    else:
        assert name == ("visual_supplement" if gain > 0 else "text_only") or name == "visual_dependent"
    assert np.isin(name, CATEGORIES)
