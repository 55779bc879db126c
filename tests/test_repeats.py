"""Several draws of a run: copies are one draw, real repeats are counted as integers."""

from dataclasses import replace

import pandas as pd
from builders import params, runs

from auditlib.auditing import audit
from auditlib.reading import pool_of
from auditlib.repeats import without_copied_repeats

KEYS = ["A", "B", "C", "D"] * 5


def twice(r, second: dict[tuple[str, str], list[str]]):
    """The runs with a second draw of the given replies."""
    parts = [r.responses]
    for (model, condition), replies in second.items():
        part = r.responses[(r.responses["model"] == model) & (r.responses["condition"] == condition)]
        parts.append(part.assign(sample=1, prediction=replies))
    return replace(r, responses=pd.concat(parts, ignore_index=True))


def test_equal_draws_are_one_draw():
    r = twice(runs({("m", "full"): KEYS, ("m", "blind"): KEYS}, KEYS), {("m", "full"): KEYS, ("m", "blind"): KEYS})
    once = without_copied_repeats(r)
    assert len(r.responses) == 80 and len(once.responses) == 40
    assert set(once.responses["sample"]) == {0}
    said = once.coverage[once.coverage["reason"].str.contains("seeded repeat")]
    assert said["n"].tolist() == [20, 20] and said["condition"].tolist() == ["blind", "full"]


def test_one_differing_reply_keeps_all_draws():
    other = ["B", *KEYS[1:]]
    r = twice(runs({("m", "full"): KEYS, ("m", "blind"): KEYS}, KEYS), {("m", "full"): other, ("m", "blind"): other})
    assert len(without_copied_repeats(r).responses) == 80
    arm = pool_of(r, params()).arms["exact"]
    assert arm.trials["full"].tolist() == [[2]] * 20
    assert arm.hits["full"][:, 0].tolist() == [1] + [2] * 19


def test_repeats_count_in_the_audit():
    blind = ["A"] * 20
    draws = {("m", "full"): KEYS, ("m", "blind"): ["B", *blind[1:]]}
    a = audit(pool_of(twice(runs({("m", "full"): KEYS, ("m", "blind"): blind}, KEYS), draws), params()))
    full = a.statistics[(a.statistics["metric"] == "accuracy") & (a.statistics["level"] == "full")]
    assert full["estimate"].tolist() == [1.0]
    # F = 2 of 2 everywhere; B = 2 on the four other items with key A, 1 on the first, 0 elsewhere
    assert a.counts["F"].tolist() == [2] * 20
    assert sorted(a.counts["B"]) == [0] * 15 + [1] + [2] * 4
    assert a.statistic("zero_gain_share", null_kind="pooled")["estimate"].iloc[0] == 4 / 20
