"""TinySee: real toolkit files of four tiny models, and a truth that is known (oracle: what was planted)."""

from __future__ import annotations

import json

import pytest
from builders import embedded_audit, embedded_pool

from auditlib.synth.embedded import truth
from auditlib.synth.planted import confusion

FULL = {"tinyvlm-alpha": 0.900, "tinyvlm-beta": 0.893, "tinyvlm-gamma": 0.867, "tinyvlm-delta": 0.610}
BLIND = {"tinyvlm-alpha": 0.257, "tinyvlm-beta": 0.207, "tinyvlm-gamma": 0.053, "tinyvlm-delta": 0.240}


@pytest.fixture(scope="module")
def audit():
    return embedded_audit("tinysee")


@pytest.fixture(scope="module")
def planted():
    return truth("tinysee").set_index("index")["planted"]


@pytest.mark.parametrize(("condition", "expected"), [("full", FULL), ("blind", BLIND)])
def test_accuracies_by_key(audit, condition, expected):
    s = audit.statistics
    rows = s[(s["metric"] == "accuracy") & (s["arm"] == "exact") & (s["level"] == condition) & (s["policy"] == "wrong")]
    assert {m: round(e, 3) for m, e in zip(rows["models"], rows["estimate"])} == expected


def test_gamma_names_no_option_in_three_quarters_of_blind_replies(audit):
    s = audit.statistics
    row = s[(s["metric"] == "blind_unparseable_rate") & (s["models"] == "tinyvlm-gamma")].iloc[0]
    assert round(row["estimate"], 2) == 0.75


def test_letters_alone_read_nothing_of_delta():
    pool = embedded_pool("tinysee")
    delta = pool.responses[pool.responses["model"] == "tinyvlm-delta"]
    read = delta[delta["letter"] != "Z"]
    assert (len(delta), len(read)) == (600, 600 - 17 - 26)
    assert read["rule"].str.startswith("option_text:").all()


def _items(audit, detector, arm, holds):
    f = audit.findings
    mine = f[(f["detector"] == detector) & (f["arm"] == arm) & f["flag"]]
    return {i for i, e in zip(mine["item"], mine["evidence"]) if holds(json.loads(e))}


def test_wrong_keys(audit, planted):
    wrong = set(planted.index[planted == "wrong_key"])
    unanimous = _items(audit, "consensus_error", "exact", lambda e: e["tier"] == "unanimous")
    high = _items(audit, "consensus_error", "exact", lambda e: e["tier"] == "high")
    assert (len(wrong), len(unanimous & wrong), len(high & wrong)) == (15, 8, 7)
    assert unanimous <= wrong


@pytest.mark.parametrize("arm", ["exact", "judged"])
def test_items_answered_blind_by_all(audit, planted, arm):
    solved = _items(audit, "visual_dependency", arm, lambda e: e["B"] == e["total"])
    assert solved == set(planted.index[planted.isin(["text_prior", "lookup"])])
    assert planted.value_counts()[["text_prior", "lookup"]].tolist() == [12, 4]


def test_near_duplicate_options(audit, planted):
    assert _items(audit, "distractor_similarity", "", lambda e: True) == set(planted.index[planted == "near_dup"])


def test_lost_none_options(audit, planted):
    lost = _items(audit, "integrity", "", lambda e: e["check"] == "lost_option")
    assert lost == set(planted.index[planted == "none_key"]) == {"17", "32", "76"}


def test_confusion_table(audit):
    table = confusion(audit).set_index("planted")
    assert table["items"].to_dict() == {"wrong_key": 15, "text_prior": 12, "lookup": 4, "near_dup": 9, "none_key": 3}
    assert (table["found"] == table["items"]).all()
    assert (table["also"] == 0).all()


def test_random_fills_are_no_hits(audit):
    """The toolkit stores .087 for gamma's blind run; 6 of its hits are letters drawn after the judge failed."""
    s = audit.statistics
    row = s[
        (s["metric"] == "accuracy")
        & (s["arm"] == "judged")
        & (s["level"] == "blind")
        & (s["policy"] == "wrong")
        & (s["models"] == "tinyvlm-gamma")
    ]
    assert round(row["estimate"].iloc[0], 3) == 0.067
    verdicts = audit.judgements[
        audit.judgements["model"].eq("tinyvlm-gamma") & audit.judgements["condition"].eq("blind")
    ]
    assert (verdicts["source"] == "random_fill").sum() == 43


def test_an_item_shows_image_options_votes_and_reasons(audit, planted):
    item = planted.index[planted == "wrong_key"][0]
    view = audit.item(item)
    assert view.image.startswith(b"\x89PNG")
    assert len(view.replies) == 8
    assert "consensus_error" in set(view.findings["detector"])
    html = view._repr_html_()
    assert "data:image/png;base64," in html
    assert view.question in html


def test_a_lost_option_was_not_shown(audit):
    """Three models' options short of one: k is what the runs showed, and joins the stratum of the within null."""
    items = audit.items.set_index("item")
    assert items.loc[["17", "32", "76"], "k"].tolist() == [3, 3, 3]
    row = audit.statistic("zero_gain_share", arm="judged", null_kind="within", p_method="exact").iloc[0]
    assert (round(row["null"], 5), round(row["excess"], 4), round(row["p"], 3)) == (0.10438, 0.0023, 0.478)
    assert audit.statistic("key_position").iloc[0]["n"] == 297
