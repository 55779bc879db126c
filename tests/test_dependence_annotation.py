"""People's labels of modality dependence: sample, packets, label rule, scores. Oracle: readings of known truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from builders import params
from review_packets import entries

from auditlib.dependence import annotation
from auditlib.dependence.profile import LABELS
from auditlib.errors import AuditError
from auditlib.params import DependenceParams
from auditlib.paths import RunPaths
from auditlib.pool import Pool
from auditlib.review.files import load_packet

READERS = [f"r{i}" for i in range(13)]
#: view -> whether it suffices, by label
SUFFICES = {"image_only": "RV", "text_only": "RT"}


@pytest.fixture(scope="module")
def table():
    return entries(12)


def pool_of(table):
    items = table[["item", "question", "options"]].assign(k=3, stratum=["a"] * 8 + ["b"] * 4)
    return Pool.from_hits(np.ones((12, 2), int), items=items, name="toy")


def settings(**more):
    block = {"readers": READERS, "items": 9} | more
    return params(pool="toy", dependence=DependenceParams(annotation=block))


def prepared(table, tmp_path, **more):
    paths, given = RunPaths(tmp_path, "toy"), settings(**more)
    pictures = dict(zip(table["item"], table["picture"]))
    return annotation.prepare(pool_of(table), given, paths, pictures=pictures), given, paths


def label_of(item):
    return LABELS[int(item[1:]) % 4]


def say(packet, row, reader, wrong=()):
    """A reader's word on a row: the truth, or its opposite; nobody finds the whole of i11 sufficient."""
    at = packet.key.rows.set_index("row").loc[row]
    enough = at["item"] != "i11" if at["view"] == "full" else label_of(at["item"]) in SUFFICES[at["view"]]
    return "sufficient" if enough != ((row, reader) in wrong) else "not_sufficient"


def decided(paths, packet, *, wrong=(), silent=()):
    for reader in READERS:
        rows = packet.assignment.loc[packet.assignment["reader"].eq(reader), "row"]
        said = [{"row": r, "reader": reader, "label": say(packet, r, reader, wrong), "note": ""}
                for r in rows if (r, reader) not in silent]  # fmt: skip
        pd.DataFrame(said).to_csv(annotation.annotation_folder(paths) / f"decisions_{reader}.csv", index=False)


def test_sample_keeps_the_mix_of_the_categories(rng):
    names, strata = [str(i) for i in range(100)], ["a"] * 61 + ["b"] * 30 + ["c"] * 9
    chosen = annotation.sample_items(names, 20, rng, strata=strata)
    assert len(chosen) == len(set(chosen)) == 20 and chosen == sorted(chosen, key=int)
    by = pd.Series(strata)[[int(c) for c in chosen]].value_counts()
    # exact shares 12.2, 6.0, 1.8: rounded down, the place left goes to the largest remainder
    assert by.to_dict() == {"a": 12, "b": 6, "c": 2}
    assert annotation.sample_items(names, 500, rng) == names
    often = sum(("7" in annotation.sample_items(names, 10, rng)) for _ in range(400))
    assert 15 < often < 70, "a tenth of 400 draws, binomial sd 6"


def test_nobody_sees_two_views_of_one_item(table, tmp_path):
    packet, _, paths = prepared(table, tmp_path)
    key = packet.key.rows
    assert key["item"].nunique() == 9 and key.groupby("item")["view"].nunique().eq(3).all()
    mine = packet.assignment.merge(key[["row", "item", "view"]], on="row")
    assert not mine.duplicated(["item", "reader"]).any()
    assert mine.groupby("view")["reader"].size().to_dict() == {"full": 27, "image_only": 45, "text_only": 45}
    shown = packet.rows.set_index("row").join(key.set_index("row")["item"])
    assert shown.loc[shown["view"].eq("image_only"), "question"].eq("").all()
    assert shown.loc[shown["view"].eq("image_only"), "picture"].ne("").all()
    assert shown.loc[shown["view"].eq("text_only"), "picture"].eq("").all()
    again, *_ = prepared(table, tmp_path / "again")
    assert again.fingerprint == packet.fingerprint
    assert (annotation.annotation_folder(paths) / "packet_r0.csv").exists()


def test_items_without_picture_are_not_drawn(table, tmp_path):
    some = dict(list(zip(table["item"], table["picture"]))[:5])
    packet = annotation.prepare(pool_of(table), settings(), RunPaths(tmp_path, "toy"), pictures=some)
    assert set(packet.key.rows["item"]) == set(some)
    with pytest.raises(AuditError, match="nobody can judge the image alone"):
        annotation.prepare(pool_of(table), settings(), RunPaths(tmp_path, "toy"), pictures={})
    bare = Pool.from_hits(np.ones((2, 2), int), name="bare")
    with pytest.raises(AuditError, match="no questions"):
        annotation.prepare(bare, settings(), RunPaths(tmp_path, "toy"))


def test_label_rule():
    views = [("confirmed", a, b) for a in ("confirmed", "rejected") for b in ("confirmed", "rejected")]
    views += [
        ("confirmed", "cannot_tell", "confirmed"),
        ("rejected", "confirmed", "confirmed"),
        ("cannot_tell", "open", "open"),
        ("confirmed", "open", "confirmed"),
        ("open", "confirmed", "rejected"),
    ]
    table = pd.DataFrame(views, columns=["full", "image_only", "text_only"])
    table.insert(0, "item", [str(i) for i in range(len(table))])
    got = annotation.label_items(table)
    assert got["label"].tolist() == ["R", "V", "T", "S", "T", "", "", "", ""]
    assert got["state"].tolist() == ["labelled"] * 5 + ["filtered", "filtered", "open", "open"]


def test_decisions_come_back_as_labels(table, tmp_path):
    _, given, paths = prepared(table, tmp_path, items=12)
    assert annotation.read_annotation(given, paths) is None
    packet = load_packet(annotation.annotation_folder(paths), open_key=True)
    key = packet.key.rows.set_index(["item", "view"])["row"]
    # two of five readers of a view err: the majority still stands
    firsts = packet.assignment[packet.assignment["row"].eq(key["i1", "image_only"])]["reader"].tolist()
    decided(paths, packet, wrong={(key["i1", "image_only"], who) for who in firsts[:2]})
    people = annotation.read_annotation(given, paths)
    got = people.table.set_index("item")
    assert got.loc["i11", "state"] == "filtered" and got.loc["i11", "label"] == ""
    rest = got.drop(index="i11")
    assert rest["state"].eq("labelled").all()
    assert {i: rest.loc[i, "label"] for i in rest.index} == {i: label_of(i) for i in rest.index}
    kappa = people.agreement.query("statistic == 'fleiss_kappa' and of == 'label' and rows == 'all'").set_index("view")
    assert kappa.loc["text_only", "estimate"] == pytest.approx(1)
    # 12 rows of 5 readings, 11 unanimous; one of 3 to 2 has 4 of its 10 pairs alike
    assert kappa.loc["image_only", "observed"] == pytest.approx((11 + 0.4) / 12)


def test_missing_readings_leave_items_open(table, tmp_path):
    _, given, paths = prepared(table, tmp_path, items=12)
    packet = load_packet(annotation.annotation_folder(paths), open_key=True)
    row = packet.key.rows.set_index(["item", "view"]).loc[("i2", "text_only"), "row"]
    readers = packet.assignment.loc[packet.assignment["row"].eq(row), "reader"].tolist()
    decided(paths, packet, silent={(row, who) for who in readers[:3]})
    people = annotation.read_annotation(given, paths)
    assert people.table.set_index("item").loc["i2", "state"] == "open"
    assert len(people.decisions.missing) == 3


def test_decisions_without_a_packet_are_refused(tmp_path):
    folder = annotation.annotation_folder(RunPaths(tmp_path, "toy"))
    folder.mkdir(parents=True)
    (folder / "decisions_r1.csv").write_text("row,reader,label\n")
    with pytest.raises(AuditError, match="no packet that they belong to"):
        annotation.read_annotation(settings(), RunPaths(tmp_path, "toy"))


def test_methods_are_scored_on_common_items(rng):
    ids = [f"i{i}" for i in range(80)]
    truth = pd.DataFrame({"item": ids, "state": ["labelled"] * 78 + ["open", "filtered"],
                          "label": [LABELS[i % 4] for i in range(78)] + ["", ""]})  # fmt: skip
    right = pd.Series([LABELS[i % 4] for i in range(80)], index=ids)
    worse = right.copy()
    worse.iloc[:39] = [LABELS[(i + 1) % 4] for i in range(39)]
    worse.iloc[40] = ""
    scores, pairs = annotation.score_methods(truth, {"ours": right, "theirs": worse}, rng=rng, draws=500)
    at = scores.set_index("method")
    assert at["n"].tolist() == [77, 77] and at.loc["ours", "accuracy"] == at.loc["ours", "macro_f1"] == 1
    assert at.loc["theirs", "accuracy"] == pytest.approx(38 / 77)
    row = pairs[pairs["metric"].eq("accuracy")].iloc[0]
    assert row["against"] == "theirs" and row["difference"] == pytest.approx(39 / 77)
    assert row["low"] < 39 / 77 < row["high"] and row["p_holm"] < 0.01
    with pytest.raises(AuditError, match="no item has both"):
        annotation.score_methods(truth.assign(state="open"), {"ours": right}, rng=rng)


def test_methods_of_a_study():
    items = pd.DataFrame({"item": ["a"], "label": ["R"], "alone_label": ["T"], "prior_label": [""]})
    assert list(annotation.methods_of(items)) == ["responses and structure", "responses alone"]
    assert annotation.methods_of(items.assign(prior_label="S"))["structure alone"].to_dict() == {"a": "S"}
