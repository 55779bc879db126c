"""Packets out: what is chosen, who reads it, what the files show and what they keep sealed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from review_packets import HOSTILE, READERS, entries, packet, written

from auditlib.errors import AuditError
from auditlib.review.files import SEALED, load_packet, write_packet
from auditlib.review.packets import KINDS, make_packet
from auditlib.review.probes import draw_probes, probe_number
from auditlib.review.task import CURATION, DEPENDENCE, Label, View, task_from_plain


def test_rows_are_the_flagged_the_sample_and_the_probes():
    key = packet(sample=3).key
    by = {k: set(part["item"]) for k, part in key.rows.groupby("kind")}
    assert by["flagged"] == {"i0", "i1", "i2", "i3"} and by["clean"] == {"i4"} and by["planted"] == {"i5"}
    assert len(by["unflagged"]) == 3 and by["unflagged"] <= {f"i{i}" for i in range(6, 12)}
    assert key.population == {"flagged": 4, "unflagged": 6, "clean": 0, "planted": 0}
    assert dict(zip(key.rows["item"], key.rows["proposed"]))["i1"] == "key_error"


def test_sample_is_never_larger_than_what_is_left_and_fair():
    assert (packet(sample=200).key.rows["kind"] == "unflagged").sum() == 6
    seen = pd.concat([packet(seed=s).key.rows.query("kind == 'unflagged'")["item"] for s in range(60)]).value_counts()
    # each of six items in half of 60 draws; binomial sd 3.9
    assert len(seen) == 6 and seen.between(30 - 18, 30 + 18).all()


def test_same_seed_same_packet_other_seed_other_names():
    a, b, c = packet(), packet(), packet(seed=2)
    assert a.fingerprint == b.fingerprint != c.fingerprint
    assert a.key.rows.equals(b.key.rows) and not set(a.rows["row"]) & set(c.rows["row"])


def test_entry_order_does_not_matter():
    table = entries()
    one = make_packet(CURATION, table, readers=READERS, seed=3, flagged=["i1"], sample=4)
    two = make_packet(CURATION, table[::-1].reset_index(drop=True), readers=READERS, seed=3, flagged=["i1"], sample=4)
    assert one.fingerprint == two.fingerprint


def test_two_readers_each_a_third_in_reserve_and_equal_shares():
    made = make_packet(CURATION, entries(60), readers=["a", "b", "c", "d", "e"], seed=5)
    deal = made.assignment
    assert len(made.rows) == 60
    roles = deal.groupby(["row", "role"]).size().unstack()
    assert (roles["first"] == 2).all() and (roles["third"] == 1).all()
    assert not deal.duplicated(["row", "reader"]).any()
    assert deal[deal["role"].eq("first")].groupby("reader").size().eq(24).all()
    assert np.ptp(deal[deal["role"].eq("third")].groupby("reader").size()) <= 2
    pairs = deal[deal["role"].eq("first")].groupby("row")["reader"].agg(lambda r: tuple(sorted(r)))
    assert set(pairs) == set(combinations("abcde", 2)), "readers are mixed, not fixed couples"
    for reader in made.readers:
        mine = deal[deal["reader"].eq(reader) & deal["role"].eq("first")]
        assert sorted(mine["place"]) == list(range(1, 25))


def test_two_readers_alone_have_no_third():
    made = make_packet(CURATION, entries(), readers=["a", "b"], seed=5)
    assert set(made.assignment["role"]) == {"first"}


def test_nobody_sees_two_views_of_one_item():
    made = make_packet(DEPENDENCE, entries(30), readers=[f"r{i}" for i in range(14)], seed=1)
    deal = made.assignment.merge(made.key.rows[["row", "item", "view"]], on="row")
    assert not deal.duplicated(["item", "reader"]).any()
    assert deal.groupby(["item", "view"]).size().unstack().drop_duplicates().to_dict("records") == [
        {"full": 3, "image_only": 5, "text_only": 5}
    ]
    shown = made.rows.set_index("view")
    assert (shown.loc["text_only", "picture"] == "").all() and (shown.loc["full", "picture"] != "").all()
    assert (shown.loc["image_only", "question"] == "").all()
    with pytest.raises(AuditError, match="13 are needed"):
        make_packet(DEPENDENCE, entries(30), readers=[f"r{i}" for i in range(12)], seed=1)


def test_place_and_name_tell_nothing_of_the_kind():
    """Mean rank of probes among 12 seeds' orders, against the exact mean of a uniform place."""
    ranks = []
    for seed in range(12):
        made = packet(seed=seed)
        kind = dict(zip(made.key.rows["row"], made.key.rows["kind"]))
        for reader in READERS:
            rows = made.of(reader)["row"].tolist()
            ranks += [(i + 0.5) / len(rows) for i, r in enumerate(rows) if kind[r] in ("clean", "planted")]
    assert abs(np.mean(ranks) - 0.5) < 4 * np.sqrt(1 / 12 / len(ranks))


def test_nothing_but_the_sealed_key_names_items_or_kinds(tmp_path):
    made = written(tmp_path)
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.suffix in (".json", ".csv", ".html", ".xml") and file != tmp_path / SEALED:
            text = file.read_text(encoding="utf-8-sig")
            assert file.suffix == ".html" or not re.search(r"\bi\d+\b", text), file.name
            assert not any(f'"{k}"' in text for k in KINDS), file.name
    assert (tmp_path / SEALED).stat().st_mode & 0o077 == 0
    assert load_packet(tmp_path).key is None
    opened = load_packet(tmp_path, open_key=True)
    assert opened.key.rows.equals(made.key.rows) and opened.fingerprint == made.fingerprint
    assert opened.rows.equals(made.rows) and opened.assignment.equals(made.assignment)
    assert {d: p.load() for d, p in opened.pictures.items()} == {d: p.load() for d, p in made.pictures.items()}


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [("sealed/key.json", '"planted"', '"clean"', "sealed key has been changed"),
     ("packet.json", "question 1", "question one", "packet has been changed"),
     ("packet.json", "{", "", "not readable")],
)  # fmt: skip
def test_changed_files_are_refused(tmp_path, name, old, new, says):
    written(tmp_path)
    file = tmp_path / name
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(AuditError, match=says):
        load_packet(tmp_path, open_key=True)


def test_other_packet_does_not_replace_one_with_decisions(tmp_path):
    written(tmp_path)
    write_packet(packet(), tmp_path)
    write_packet(packet(seed=2), tmp_path)
    (tmp_path / "decisions_ann.csv").write_text("row,label\n")
    with pytest.raises(AuditError, match="decisions on another packet"):
        write_packet(packet(seed=3), tmp_path)


def test_page_holds_foreign_text_as_data_only(tmp_path):
    written(tmp_path)
    html = (tmp_path / "packet_ann.html").read_text()
    assert html.count("<script") == 2 and "alert(1)</script>" not in html and "onerror=alert(2)>" not in html
    assert "default-src 'none'" in html and not re.search(r"(?:src|href)=[\"']?https?:", html)
    content = json.loads(re.search(r'id="content">(.*?)</script>', html, re.DOTALL).group(1))
    shown = {text for row in content["rows"] for _, text in row["fields"]}
    mine = load_packet(tmp_path).of("ann")
    assert [r["row"] for r in content["rows"]] == mine["row"].tolist()
    assert (HOSTILE in shown) == (HOSTILE in set(mine["question"]))
    for digest, uri in content["pictures"].items():
        assert hashlib.sha256(base64.b64decode(uri.split(",")[1])).hexdigest() == digest


def test_csv_opens_without_formulas_and_names_pictures(tmp_path):
    made = make_packet(CURATION, entries().assign(question="=1+1"), readers=READERS, seed=1)
    write_packet(made, tmp_path)
    sheet = pd.read_csv(tmp_path / "packet_ann.csv", dtype=str, keep_default_na=False, encoding="utf-8-sig")
    assert set(sheet["question"]) == {"'=1+1"} and (sheet["label"] == "").all()
    assert all((tmp_path / p).is_file() for p in sheet["picture"])


def test_label_studio_files(tmp_path):
    made = written(tmp_path)
    tasks = json.loads((tmp_path / "packet_cy.label_studio.json").read_text())
    assert [t["data"]["row"] for t in tasks] == made.of("cy")["row"].tolist()
    assert all(t["data"]["picture"].startswith("data:image/png;base64,") for t in tasks)
    tree = ElementTree.fromstring((tmp_path / "label_studio.xml").read_text())
    assert [(c.get("alias"), c.get("hotkey")) for c in tree.iter("Choice")] == [
        (v, str(i)) for i, v in enumerate(CURATION.values, 1)
    ]
    used = {e.get("value")[1:] for e in tree.iter() if (e.get("value") or "").startswith("$")}
    assert used <= set(tasks[0]["data"])


@pytest.mark.parametrize(
    ("change", "says"),
    [({"labels": ()}, "0 labels"), ({"labels": (Label("Bad Name", "x", "confirmed"),)}, "no plain name"),
     ({"labels": (Label("a", "x", "maybe"),)}, "outcome 'maybe'"), ({"rule": "coin"}, "rule 'coin'"),
     ({"views": (View("v", ("question",), readers=3),)}, "3 readers"),
     ({"views": (View("v", ("colour",)),)}, "no column 'colour'"),
     ({"views": (View("v", ("label",)),)}, "no column|cannot be named")],
)  # fmt: skip
def test_unfit_tasks(change, says):
    with pytest.raises(AuditError, match=says):
        make_packet(replace(CURATION, **change), entries(), readers=READERS, seed=1)


@pytest.mark.parametrize(
    ("more", "says"),
    [({"readers": ["a", "A"]}, "stands twice"), ({"readers": ["a", "../b"]}, "no name for a file"),
     ({"readers": ["a"]}, "2 are needed"), ({"flagged": ["nowhere"]}, "not among the entries"),
     ({"flagged": [], "sample": 0}, "would be empty")],
)  # fmt: skip
def test_unfit_packets(more, says):
    with pytest.raises(AuditError, match=says):
        make_packet(CURATION, entries(), **({"readers": READERS, "seed": 1} | more))


@pytest.mark.parametrize(
    ("change", "says"),
    [({"kind": "odd"}, "kind 'odd'"), ({"expected": "fine"}, "expects label"), ({"item": "i0"}, "also flagged")],
)
def test_unfit_probes(change, says):
    probe = entries().loc[4].to_dict() | {"kind": "clean", "expected": "no_issue"} | change
    with pytest.raises(AuditError, match=says):
        make_packet(CURATION, entries(), readers=READERS, seed=1, flagged=["i0"], probes=pd.DataFrame([probe]))


def test_tasks_survive_json():
    for task in (CURATION, DEPENDENCE):
        assert task_from_plain(json.loads(json.dumps(task.as_plain()))) == task.check()


@pytest.mark.parametrize(("rows", "share", "n"), [(180, 0.05, 10), (181, 0.05, 11), (1, 0.05, 1), (90, 0.0, 0)])
def test_probes_make_their_share_of_the_packet(rows, share, n):
    assert probe_number(rows, share) == n
    if share and n > 1:
        assert n / (rows + 2 * n) >= share > (n - 1) / (rows + 2 * (n - 1))


def test_damaged_probes_name_another_option(rng):
    table = entries(10)
    table.at[9, "options"] = ["same", "Same ", "same"]
    drawn = draw_probes(table, [f"i{i}" for i in range(4, 10)], 2, rng)
    assert drawn["kind"].tolist() == ["clean"] * 2 + ["planted"] * 2 and drawn["item"].is_unique
    damaged = drawn[drawn["kind"].eq("planted")]
    assert damaged["key"].isin(["A", "C"]).all() and (drawn.loc[drawn["kind"].eq("clean"), "key"] == "B").all()
    few = draw_probes(table, ["i9", "i4"], 5, rng)
    assert dict(zip(few["item"], few["kind"])) == {"i9": "clean", "i4": "planted"}, "equal options cannot be damaged"
