"""Joining runs by item id."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from builders import params, runs

from auditlib.align import align, item_order
from auditlib.errors import AuditError
from auditlib.reading import pool_of

KEYS = ["A", "B", "C"]
SAME = {("m", "full"): ["A", "B", "C"], ("m", "blind"): ["A", "A", "A"]}


def test_ids_sort_as_numbers_only_when_all_are():
    assert item_order(["10", "9", "-1", "9"]) == ["-1", "9", "10"]
    assert item_order(["10", "9", "x"]) == ["10", "9", "x"]


def test_row_and_file_order_change_nothing():
    base = runs(SAME, KEYS)
    mixed = dataclasses.replace(
        base,
        items=base.items.iloc[::-1].reset_index(drop=True),
        responses=base.responses.sample(frac=1, random_state=1).reset_index(drop=True),
    )
    a, b = (pool_of(r, params()) for r in (base, mixed))
    pd.testing.assert_frame_equal(a.items, b.items)
    for condition in ("full", "blind"):
        assert (a.arms["exact"].hits[condition] == b.arms["exact"].hits[condition]).all()


def _with_other_key(item="1", key="D"):
    r = runs(SAME, KEYS)
    items = r.items.copy()
    items.loc[(items["run"] == "m/blind") & (items["item"] == item), "key"] = key
    return dataclasses.replace(r, items=items)


def test_keys_that_differ_are_refused_and_named():
    with pytest.raises(AuditError) as e:
        align(_with_other_key())
    text = str(e.value)
    assert "key of item 1 differs" in text and "m/full row 3: B" in text and "m/blind row 3: D" in text
    assert "audit.keys_from" in text


def test_keys_from_settles_them_with_a_coverage_row():
    items, _, coverage = align(_with_other_key(), keys_from="m/blind")
    assert items["key"].tolist() == ["A", "D", "C"]
    assert coverage.loc[coverage["what"] == "conflict", "n"].tolist() == [1]


def test_keys_from_must_name_a_run():
    with pytest.raises(AuditError, match="which is no run"):
        align(_with_other_key(), keys_from="m/ful")


def test_option_texts_that_differ_are_reported_not_refused():
    r = runs(SAME, KEYS)
    items = r.items.copy()
    items.at[0, "options"] = ["red", "blue", "green", "black"]
    _, _, coverage = align(dataclasses.replace(r, items=items))
    row = coverage[coverage["what"] == "conflict"].iloc[0]
    assert row["item"] == "0" and "option texts differ" in row["reason"]


def test_trailing_blank_options_are_no_difference():
    r = runs(SAME, KEYS)
    items = r.items.copy()
    items.at[0, "options"] = ["red", "blue", "green", "white", "", ""]
    _, _, coverage = align(dataclasses.replace(r, items=items))
    assert not (coverage["what"] == "conflict").any()


def test_items_of_one_run_only_are_reported_and_kept():
    full, blind = runs({("m", "full"): ["A", "B", "C"]}, KEYS), runs({("m", "blind"): ["A", "B"]}, KEYS[:2])
    both = dataclasses.replace(
        full, items=pd.concat([full.items, blind.items]), responses=pd.concat([full.responses, blind.responses])
    )
    items, _, coverage = align(both)
    assert items["item"].tolist() == ["0", "1", "2"]
    missing = coverage[coverage["what"] == "missing"].iloc[0]
    assert (missing["n"], missing["condition"]) == (1, "blind")
    assert coverage.loc[coverage["what"] == "joined", "n"].tolist() == [2]


def test_no_shared_item_is_an_error():
    full = runs({("m", "full"): ["A", "B", "C"]}, KEYS)
    other = runs({("m", "blind"): ["A", "B", "C"]}, KEYS, ids=["x", "y", "z"])
    both = dataclasses.replace(
        full, items=pd.concat([full.items, other.items]), responses=pd.concat([full.responses, other.responses])
    )
    with pytest.raises(AuditError, match="share no item id"):
        align(both)


def test_an_answer_given_twice_is_an_error():
    r = runs(SAME, KEYS)
    twice = dataclasses.replace(r, responses=pd.concat([r.responses, r.responses.iloc[[1]]]))
    with pytest.raises(AuditError, match="answered twice"):
        pool_of(twice, params())


def test_dataset_options_never_replace_what_was_shown():
    r = runs(SAME, KEYS, options=[["red", "blue", "green", ""], *[["red", "blue", "green", "white"]] * 2])
    dataset = pd.DataFrame(
        {"item": ["0", "1", "2", "9"], "options": [["red", "blue", "green", "None"]] * 4, "key": [*KEYS, "A"]}
    )
    items, _, coverage = align(dataclasses.replace(r, dataset=dataset))
    assert list(items["options"][0]) == ["red", "blue", "green", ""]
    assert list(items["options_written"][0]) == ["red", "blue", "green", "None"]
    assert coverage.loc[coverage["what"] == "excluded", "n"].tolist() == [1]


def test_nothing_read_is_an_error():
    r = runs(SAME, KEYS)
    with pytest.raises(AuditError, match="no replies"):
        align(dataclasses.replace(r, responses=r.responses.iloc[:0]))
