"""Odd values in files of samples that no toolkit should write, and that some files hold all the same."""

from __future__ import annotations

import pytest
from case_files import folder_pool, lmms_lines, share


def _rows(**more) -> list[dict]:
    doc = {"question": "Which?", "options": ["red", "blue", "green", "grey"]}
    return [
        {"doc_id": i, "doc": doc | {"answer": k}, "target": k, "resps": [[k]], "filtered_resps": [k], "acc": 1.0} | more
        for i, k in enumerate("ABCD")
    ]


@pytest.mark.parametrize("count", ["n", float("nan"), float("inf"), None, [1]])
def test_counts_of_tokens_that_are_no_numbers_cost_no_run(tmp_path, count):
    for model in "ab":
        lmms_lines(tmp_path, model, _rows(token_counts=[{"input_tokens": count, "output_tokens": 3}]))
    assert share(folder_pool(tmp_path, benchmark="toy"), "exact") == (4, 4)


def test_half_a_character_is_replaced_and_a_whole_emoji_kept(tmp_path):
    for model, reply in (("a", "A \ud83d"), ("b", "A \U0001f600")):
        lmms_lines(tmp_path, model, _rows(resps=[[reply]]))
    said = folder_pool(tmp_path, benchmark="toy").responses.groupby("model")["prediction"].first()
    assert list(said) == ["A \ufffd", "A \U0001f600"]
