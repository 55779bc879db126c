"""Changed pictures and questions: what each transform does to pixels, hashes and keys; requests and their calls."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from auditlib.calls import Generation, Reply
from auditlib.errors import AuditError
from auditlib.inference.images import picture_from_bytes
from auditlib.inference.items import QuestionItem
from auditlib.params import check_params
from auditlib.pool import Pool
from auditlib.sensitivity import reformulate, rewriting, study
from auditlib.sensitivity.conditions import LEVELS, Condition, parse
from auditlib.sensitivity.measures import measure
from auditlib.sensitivity.requests import (
    PlanSettings,
    calls_of,
    conditions_of,
    plan_calls,
    read_answer,
    read_regions,
)
from auditlib.sensitivity.transforms import (
    NoPlace,
    Region,
    Unchanged,
    change,
    control_boxes,
    overlap,
    patch_mask,
    pixel_hash,
    pixels,
)


def picture(seed=0, size=(96, 64)):
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return picture_from_bytes(out.getvalue())


def flat(colour=(10, 200, 30)):
    out = io.BytesIO()
    Image.new("RGB", (40, 40), colour).save(out, "PNG")
    return picture_from_bytes(out.getvalue())


def array(p):
    return pixels(p.load())[0].astype(int)


BOX = [Region(0.25, 0.25, 0.5, 0.5)]
ALL = [
    *(Condition(f, "random" if f == "tokens" else "", float(levels[0])) for f, levels in LEVELS.items() if levels),
    Condition("grayscale"), Condition("occlude_evidence"), Condition("occlude_control"),
    Condition("occlude_grid", level=6.0), Condition("tokens", "contiguous", 0.5),
]  # fmt: skip


@pytest.mark.parametrize("condition", ALL, ids=lambda c: c.name)
def test_every_change_alters_pixels_keeps_the_size_and_repeats_to_the_byte(condition):
    p = picture()
    a, b = (change(p, condition, seed=3, item="i", regions=BOX) for _ in range(2))
    assert a.sha256 == b.sha256 != p.sha256 and a.load() == b.load()
    assert pixel_hash(a.load()) != pixel_hash(p.load())
    assert array(a).shape == array(p).shape


@pytest.mark.parametrize(
    "condition", [Condition("blur", level=4.0), Condition("grayscale"), Condition("occlude_evidence"),
                  Condition("tokens", "random", 1.0), Condition("downsample", level=2.0)], ids=lambda c: c.name
)  # fmt: skip
def test_a_change_that_changes_nothing_is_an_error(condition):
    one = flat((50, 50, 50))
    with pytest.raises(Unchanged, match="changes no pixel"):
        change(one, condition, item="x", regions=BOX)


def test_re_encoding_alone_is_no_change():
    p = picture()
    same = io.BytesIO()
    Image.open(io.BytesIO(p.load())).save(same, "PNG", optimize=True, compress_level=9)
    assert same.getvalue() != p.load() and pixel_hash(same.getvalue()) == pixel_hash(p.load())


def test_levels_grow_heavier():
    p = picture(size=(128, 128))
    for family in ("blur", "downsample", "noise", "tokens"):
        variant = "random" if family == "tokens" else ""
        changed = [change(p, Condition(family, variant, float(v)), item="i") for v in LEVELS[family]]
        error = [np.abs(array(c) - array(p)).mean() for c in changed]
        assert error == sorted(error), family


def test_occlusion_covers_exactly_its_box_with_the_mean_colour():
    p = picture()
    before, after = array(p), array(change(p, Condition("occlude_evidence"), item="i", regions=BOX))
    left, top, right, bottom = BOX[0].box(96, 64)
    assert (left, top, right, bottom) == (24, 16, 48, 32)
    inside = np.zeros(before.shape[:2], bool)
    inside[top:bottom, left:right] = True
    assert (after[~inside] == before[~inside]).all()
    assert (after[inside] == np.rint(before.reshape(-1, 3).mean(axis=0))).all()


def test_control_boxes_have_the_same_size_and_never_touch_the_evidence():
    own = [(10, 10, 40, 30), (60, 5, 70, 55)]
    for seed in range(50):
        made = control_boxes(own, 120, 80, np.random.default_rng(seed))
        assert [(b[2] - b[0], b[3] - b[1]) for b in made] == [(30, 20), (10, 50)]
        assert not any(overlap(a, b) for a in made for b in own) and not overlap(*made)
        assert all(0 <= b[0] and b[2] <= 120 and 0 <= b[1] and b[3] <= 80 for b in made)
    with pytest.raises(NoPlace, match="no room"):
        control_boxes([(0, 0, 100, 60)], 120, 80, np.random.default_rng(0))


def test_seeds_of_control_boxes_differ_and_do_not_depend_on_order():
    p = picture()
    three = [change(p, Condition("occlude_control", seed=s), item="i", regions=BOX).sha256 for s in (0, 1, 2)]
    assert len(set(three)) == 3
    assert change(p, Condition("occlude_control", seed=2), item="i", regions=BOX).sha256 == three[2]


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 0.9, 1.0])
def test_patch_removal_takes_the_stated_share(share):
    for variant in ("random", "contiguous"):
        mask = patch_mask(160, 320, share, variant, np.random.default_rng(1))
        assert mask.shape == (16, 32) and mask.sum() == round(share * 512)


def test_contiguous_patches_are_one_block():
    mask = patch_mask(160, 160, 0.25, "contiguous", np.random.default_rng(2))
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    assert (np.diff(rows) == 1).all() and (np.diff(columns) == 1).all()
    assert mask.sum() >= 0.6 * len(rows) * len(columns)


def test_the_grid_covers_the_picture_once():
    p = picture()
    covered = [array(change(p, Condition("occlude_grid", level=float(c)), item="i")) != array(p) for c in range(1, 17)]
    changed = np.stack([c.any(axis=2) for c in covered])
    assert changed.sum(axis=0).max() == 1 and changed.any(axis=0).mean() > 0.99


def test_bad_regions_and_files(tmp_path):
    with pytest.raises(AuditError, match="left < right"):
        Region(0.5, 0.1, 0.4, 0.2)
    file = tmp_path / "r.csv"
    file.write_text("item,left,top,right,bottom\na,0.1,0.1,0.2,0.2\na,0.5,0.5,0.6,1.6\n")
    with pytest.raises(AuditError, match=r"r\.csv, row 3: a region"):
        read_regions(file)
    file.write_text("item,left,top,right\na,0,0,1\n")
    with pytest.raises(AuditError, match="no column 'bottom'"):
        read_regions(file)
    with pytest.raises(AuditError, match="cannot be decoded"):
        change(picture_from_bytes(b"\x89PNG\r\n\x1a\nbroken"), Condition("blur", level=2.0))


def test_names_of_conditions_are_read_back():
    for c in [*ALL, Condition("tokens", "random", 0.5, 2, "negation"), Condition("blind", form="distractors-4")]:
        assert parse(c.name) == c
    with pytest.raises(AuditError, match="names no condition"):
        parse("blur s3")


# ---------------------------------------------------------------------------------------------------------- questions

YESNO = QuestionItem("y", "Is the boat red?", key="Yes", answer_type="yesno", stratum="s")
CHOICE = QuestionItem("c", "Which colour?", ("red", "blue", "green", "grey"), key="B", stratum="s")
PAIR = QuestionItem("p", "Which is larger?", ("cat", "dog"), key="B", stratum="s")


def test_a_negation_turns_the_key_and_its_answers_are_turned_back():
    form = reformulate.reworded(YESNO, "negation", "Is the boat not red?")
    assert form.item.key == "no" and form.meaning_of("no") == "yes" and form.meaning_of("yes") == "no"
    assert reformulate.reworded(YESNO, "paraphrase-1", "Does the boat have a red colour?").item.key == "Yes"


@pytest.mark.parametrize(
    ("item", "form", "question", "key", "said"),
    [
        (YESNO, "paraphrase-1", " is the boat RED ", "", "changes nothing"),
        (YESNO, "negation", "Is the boat not red?", "yes", "has the key 'yes'"),
        (CHOICE, "negation", "Which colour is it not?", "", "key of its negation is not known"),
        (PAIR, "negation", "Which is smaller?", "B", "keeps the key"),
        (replace(YESNO, key="unsure"), "negation", "Is it not?", "", "must be yes or no"),
    ],
)
def test_forms_without_a_known_key_or_without_a_change_are_refused(item, form, question, key, said):
    with pytest.raises(AuditError, match=said):
        reformulate.reworded(item, form, question, key)


def test_kinds_of_answer_by_rule():
    two = reformulate.two_options(YESNO)
    assert (two.item.options, two.item.key, two.meaning_of("B")) == (("Yes", "No"), "A", "no")
    back = reformulate.yes_no(PAIR)
    assert back.item.key == "no" and '"cat"' in back.item.question and back.meaning_of("no") == "B"
    alone = reformulate.without_options(CHOICE)
    assert alone.item.references == ("blue",) and alone.meaning_of("blue") == "B"
    none = reformulate.with_cannot(CHOICE)
    assert none.item.letters == "ABCDE" and none.item.key == "B" and none.meaning_of("E") == "cannot_tell"


@pytest.mark.parametrize("number", [2, 4, 8])
def test_distractors_keep_the_key_and_come_from_other_items(number):
    others = [f"thing {i}" for i in range(9)] + ["red", "Blue "]
    form = reformulate.with_distractors(CHOICE, number, others, np.random.default_rng(1))
    assert form.item.k == 4 + number and form.item.key == "B"
    new = form.item.options[4:]
    assert len(set(new)) == number and set(new) <= {f"thing {i}" for i in range(9)}
    assert form.meaning_of("A") == "A" and form.meaning_of("E") == "new:E"
    with pytest.raises(AuditError, match="not 20"):
        reformulate.with_distractors(CHOICE, 20, others, np.random.default_rng(1))


def test_forms_from_a_file_name_the_row_of_a_mistake(tmp_path):
    file = tmp_path / "forms.csv"
    table = pd.DataFrame({"item": ["y", "y", "zz"], "form": ["paraphrase-1", "negation", "negation"],
                          "question": ["Has the boat a red hull?", "Is the boat not red?", "?"]})  # fmt: skip
    table.to_csv(file, index=False)
    forms, coverage = rewriting.read_forms(file, [YESNO, CHOICE])
    assert set(forms) == {("y", "paraphrase-1"), ("y", "negation")} and coverage[0]["n"] == 1
    table.assign(item=["y", "c", "zz"]).to_csv(file, index=False)
    with pytest.raises(AuditError, match=r"forms\.csv, row 3: item 'c' is no yes/no"):
        rewriting.read_forms(file, [YESNO, CHOICE])


def test_a_model_writes_forms_and_what_it_leaves_unchanged_is_counted():
    wanted = rewriting.rewriting_requests([YESNO, CHOICE], ["paraphrase-1", "negation"], "writer")
    assert [(i.item, f) for _, i, f in wanted] == [("y", "paraphrase-1"), ("y", "negation"), ("c", "paraphrase-1")]
    assert not any("Yes" in r.text or r.pictures for r, _, _ in wanted)
    said = iter(['{"question": "Is the boat red?"}', 'Here: {"question": "Is the boat anything but red?"}', "no idea"])
    forms, coverage = rewriting.rewritten(wanted, lambda rs: [Reply(r.key, "ok", next(said)) for r in rs])
    assert set(forms) == {("y", "negation")} and forms["y", "negation"].item.key == "no"
    assert {c["reason"] for c in coverage} == {
        "rewriting: the question came back unchanged", "rewriting: no question in the reply"}  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- requests


def pictured():
    return [replace(CHOICE, item="c1", pictures=(picture(1),)), replace(PAIR, item="p1", pictures=(picture(2),)),
            replace(YESNO, item="y1", pictures=(picture(3),))]  # fmt: skip


def test_the_plan_holds_each_condition_once_and_hashes_what_is_sent():
    items = pictured()
    conditions = conditions_of(["full", "blur", "tokens", "blind", "blank", "wrong_image", "occlude_evidence",
                                "occlude_control"], forms=["cannot_tell", "two_options", "negation"])  # fmt: skip
    assert sum(c.family == "tokens" for c in conditions) == 4 * 3 + 1 + 5
    plan, left_out = plan_calls(items, conditions, PlanSettings(("m", "n"), samples=3),
                                regions={"c1": [Region(0, 0, 0.3, 0.3)]})  # fmt: skip
    keys = [p.request.key for p in plan]
    assert len(set(keys)) == len(keys)
    own = {i.item: i.pictures[0].sha256 for i in items}
    for p in plan:
        same = p.image_sha256 == own[p.request.item]
        assert same == (p.condition.family == "full")
        assert (p.image_sha256 == "") == (p.condition.family == "blind")
    full = [p for p in plan if p.condition == Condition()]
    assert len(full) == 3 * 2 * 3
    blurred = {p.request.text for p in plan if p.condition.family == "blur" and p.request.item == "c1"}
    assert blurred == {p.request.text for p in full if p.request.item == "c1"}
    reasons = dict(zip(left_out["condition"] + "|" + left_out["reason"].str[:20], left_out["n"]))
    assert reasons["occlude_evidence|no region of evidenc"] == 2
    assert reasons["full+negation|the form does not fi"] == 3


def test_an_unchanged_picture_stops_the_plan_or_is_left_out_and_counted():
    items = [replace(CHOICE, pictures=(flat((9, 9, 9)),)), replace(PAIR, pictures=(picture(),))]
    conditions = conditions_of(["full", "grayscale"])
    with pytest.raises(Unchanged, match="leave_out"):
        plan_calls(items, conditions, PlanSettings(("m",)))
    plan, left_out = plan_calls(items, conditions, PlanSettings(("m",), unchanged="leave_out"))
    assert [p.request.item for p in plan if p.condition.family == "grayscale"] == ["p"]
    assert left_out["reason"].tolist() == ["the change leaves the picture as it was"]


def test_replies_become_calls_with_key_meaning_and_margin():
    items = pictured()
    forms = {("y1", "negation"): reformulate.reworded(items[2], "negation", "Is the boat not red?")}
    plan, _ = plan_calls(items, [Condition(), Condition(form="negation"), Condition("blind")],
                         PlanSettings(("m",), generation=Generation(logprobs=True)), forms=forms)  # fmt: skip
    said = {}
    for p in plan:
        text = {"c1": "B", "p1": "I cannot say", "y1": "No"}[p.request.item]
        scores = {"A": (-3.0, False), "B": (-0.2, False), "C": (-9.0, True)} if p.request.item == "c1" else None
        outcome = "failed" if p.condition.family == "blind" and p.request.item == "p1" else "ok"
        said[p.request.key] = Reply(p.request.key, outcome, text if outcome == "ok" else "", letter_logprobs=scores)
    calls = calls_of(plan, said.get).table.set_index(["item", "family", "form"])
    assert calls.loc[("c1", "full", ""), "margin"] == pytest.approx(2.8)
    assert calls.loc[("p1", "full", ""), ["answer", "hit"]].tolist() == ["Z", 0.0]
    assert np.isnan(calls.loc[("p1", "blind", ""), "hit"])
    assert calls.loc[("y1", "full", ""), ["answer", "key", "hit"]].tolist() == ["no", "yes", 0.0]
    assert calls.loc[("y1", "full", "negation"), ["answer", "meaning", "key", "hit"]].tolist() == [
        "no", "yes", "no", 1.0]  # fmt: skip


def test_open_answers_are_matched_with_the_reference():
    alone = reformulate.without_options(CHOICE).item
    assert read_answer(Reply("k", "ok", "The answer is blue."), alone)[1] == 1.0
    assert read_answer(Reply("k", "ok", "The answer is red."), alone)[1] == 0.0
    assert read_answer(Reply("k", "filtered", ""), alone)[0] == ""


def test_models_that_the_params_name_are_asked_and_measured(tmp_path):
    items = [replace(CHOICE, item=f"c{i}", pictures=(picture(i),), key="ABCD"[i % 4]) for i in range(8)]
    params = check_params({
        "pool": "p", "benchmark": "B", "data": {"table": "none.csv"},
        "sensitivity": {"draws": 200, "ask": {
            "models": [{"name": "m"}, {"name": "n"}], "families": ["full", "blur", "blind"], "levels": {"blur": [2, 8]},
            "samples": 2, "wordings": ["cannot_tell"]}},
    }, tmp_path / "p.yaml")  # fmt: skip
    pool = Pool.from_hits(np.ones((8, 1)), items=pd.DataFrame({"item": [i.item for i in items]}), params=params)
    key = {i.item: i.key for i in items}
    asked = []

    def ask(requests):
        asked.extend(requests)
        sees = [r.model == "m" and bool(r.pictures) and "@8" not in r.condition for r in requests]
        return [Reply(r.key, "ok", key[r.item] if s else "A") for r, s in zip(requests, sees)]

    s = study.asked(study.read(pool, tmp_path), ask, items)
    assert len(asked) == 2 * 8 * (2 + 2 + 1 + 2)
    result = measure(s)
    table = result.frames["conditions"].set_index(["model", "family", "level"])
    assert table.loc[("m", "blur", 2.0), "drop"] == 0 and table.loc[("m", "blur", 8.0), "lost"] == 1
    assert table.loc[("n", "blur", 8.0), "undefined"] == "interval of the gain holds 0"
    assert result.facts["hashed"] == 2 * 8 * (2 + 2 + 1)
    assert result.frames["answer_space"]["family"].unique().tolist() == ["full", "blind"]
    with pytest.raises(AuditError, match=r"sensitivity\.ask\.items"):
        study.asked(study.read(pool, tmp_path), None, None)
