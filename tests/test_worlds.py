"""Pools with known truth: kinds of items, null worlds, planted defects, and the world as a pool and as files."""

from __future__ import annotations

import numpy as np
import pytest

import auditlib
from auditlib.errors import AuditError
from auditlib.frames import ABSTAINED
from auditlib.synth.null_worlds import FALSE_NULLS, NULLS, null_world
from auditlib.synth.plant import (
    WORLD_DEFECTS,
    commonest_wrong,
    flip_keys,
    second_answers,
    shift_keys,
    shuffle_keys,
    spoil,
    swap_runs,
)
from auditlib.synth.world_files import write_world
from auditlib.synth.worlds import KINDS, Recipe, world

SURE = {"vision": (9.0, 9.0), "text": (9.0, 9.0), "abstain": 0.0, "recalled": 1.0}


def _one(kind, **more):
    return world(Recipe(items=400, models=4, kinds={kind: 1.0}, **more), 5)


def test_what_able_models_know_of_each_kind():
    """Oracle: the definition of each kind. Who does not know guesses one of four options."""
    rates = {kind: tuple(_one(kind, **SURE).hits(c).mean() for c in ("full", "blind")) for kind in KINDS}
    for kind in ("text_suffices", "either", "contaminated", "unlinked"):
        assert rates[kind] == (1.0, 1.0)
    for kind in ("needs_image", "both"):
        assert rates[kind][0] == 1.0 and rates[kind][1] == pytest.approx(0.25, abs=0.06)
    assert rates["shared_failure"][0] < 0.25
    assert rates["give_away"][1] == pytest.approx(0.5 + 0.5 * 0.25, abs=0.06)
    assert rates["position_cue"][1] == pytest.approx(0.6 + 0.4 * 0.25, abs=0.06)


def test_shares_of_kinds_are_exact_and_the_draw_repeats():
    recipe = Recipe(items=101, kinds={"needs_image": 0.5, "either": 0.3, "both": 0.2})
    a, b, c = world(recipe, 1), world(recipe, 1), world(recipe, 2)
    assert a.truth["kind"].value_counts().to_dict() == {"needs_image": 51, "either": 30, "both": 20}
    assert (a.full == b.full).all() and (a.blind == b.blind).all() and a.truth.equals(b.truth)
    assert (a.full != c.full).any()


def test_abstention_families_pictures_and_strata():
    silent = world(Recipe(items=2000, models=3, abstain=(0.0, 0.5, 1.0), text=(-9, -9)), 3)
    assert (silent.blind == ABSTAINED).mean(0) == pytest.approx([0, 0.5, 1], abs=0.05)
    assert not (silent.full == ABSTAINED).any()
    kin = world(Recipe(items=4000, models=4, families=2, kin=0.9, vision=(0.5, 0.5), misconception=0.0), 3)
    r = np.corrcoef(kin.hits("full").T)
    assert r[0, 2] > r[0, 1] + 0.1 and r[1, 3] > r[1, 2] + 0.1  # models are dealt to families in turn
    shared = world(Recipe(items=400, per_image=4, k=(2, 5), strata=3), 3)
    assert shared.truth["image_key"].nunique() == 100
    assert (shared.truth.groupby("image_key")["stratum"].nunique() == 1).all()
    assert set(shared.truth["k"]) == {2.0, 5.0} and (shared.key < shared.truth["k"]).all()


@pytest.mark.parametrize("bad", [{"kinds": {"odd": 1.0}}, {"kinds": {"both": 0.4}}, {"k": 1}, {"abstain": (0.1, 0.2)}])
def test_a_recipe_that_makes_no_sense(bad):
    with pytest.raises(AuditError):
        Recipe(**bad)


def test_null_worlds_are_what_they_say():
    """F and B of an item correlate only where a link was made; strata only differ in the world of categories."""
    r, between = {}, {}
    for kind in NULLS:
        w = null_world(kind, 3, items=20_000)
        f, b = (w.hits(c).sum(1).astype(float) for c in ("full", "blind"))
        stratum = w.truth["stratum"].to_numpy()
        means = [np.array([x[stratum == s].mean() for s in sorted(set(stratum))]) for x in (f, b)]
        inside = [x - m[np.searchsorted(sorted(set(stratum)), stratum)] for x, m in zip((f, b), means)]
        r[kind], between[kind] = np.corrcoef(*inside)[0, 1], means[0].std()
    assert all(abs(r[k]) < 0.03 for k in ("zero_signal", "category_only", "abstention_only"))
    assert r["contamination_only"] > 0.15
    assert between["category_only"] > 0.2 > 3 * between["zero_signal"]
    assert set(FALSE_NULLS) == set(NULLS)
    assert (null_world("abstention_only", 1, models=5).blind < 0).mean() > 0.1
    with pytest.raises(AuditError, match="no null world"):
        null_world("nothing", 1)


def test_planted_defects_change_only_what_they_should():
    w = world(Recipe(items=1000, models=6), 1)
    s = spoil(w, {"wrong_key": 0.05, "ambiguous": 0.03, "near_duplicate": 0.03, "swapped_runs": 0.02}, 7)
    sizes = s.truth["planted"].value_counts().to_dict()
    assert sizes == {"": 870, "wrong_key": 50, "ambiguous": 30, "near_duplicate": 30, "swapped_runs": 20}
    sound = s.planted("")
    assert (s.full[sound] == w.full[sound]).all() and (s.blind[sound] == w.blind[sound]).all()
    assert ((s.key != w.key) == s.planted("wrong_key")).all() and (s.key < 4).all()
    assert (s.truth["true_key"] == w.key).all()
    swapped = s.planted("swapped_runs")
    assert (s.full[swapped] == w.blind[swapped]).all() and (s.blind[swapped] == w.full[swapped]).all()
    for defect in ("ambiguous", "near_duplicate"):
        here = s.planted(defect)
        before, after = (x.hits("full")[here].mean() for x in (w, s))
        assert after == pytest.approx(before / 2, abs=0.12)
    assert set(WORLD_DEFECTS) == set(sizes) - {""}
    for bad in ({"odd": 0.1}, {"wrong_key": 0.7, "ambiguous": 0.5}):
        with pytest.raises(AuditError):
            spoil(w, bad, 1)


def test_array_plants(rng):
    key, k = np.array([0, 1, 2, 3, 0, 1]), np.array([4, 4, 4, 4, 2, 2])
    new = flip_keys(key, k, [0, 4, 5], rng)
    assert (new != key).tolist() == [True, False, False, False, True, True] and new[4:].tolist() == [1, 0]
    assert flip_keys(key, k, [0, 1], rng, np.array([3, 1, 0, 0, 0, 0]))[0] == 3
    assert shift_keys(key, 1, 4).tolist() == [0, 3, 1, 2, 0, 1]
    assert sorted(shuffle_keys(key, [0, 1, 2, 3], rng)[:4]) == [0, 1, 2, 3]
    full, blind = np.zeros((3, 2), int), np.ones((3, 2), int)
    a, b = swap_runs(full, blind, [1])
    assert a[:, 0].tolist() == [0, 1, 0] and b[:, 0].tolist() == [1, 0, 1] and not full.any()
    said = np.zeros((1, 400), int)
    moved = second_answers(said, [0], [4], [0], rng, (0.5, 0.5))
    assert len(set(moved[0].tolist())) == 2 and (moved == 0).mean() == pytest.approx(0.5, abs=0.1)
    votes = np.array([[1, 1, 2], [0, 0, 0], [3, 2, 2]])
    assert commonest_wrong(votes, [0, 0, 2]).tolist() == [1, -1, 3]


@pytest.mark.parametrize("k", [2, (3, 5), None])
def test_files_and_arrays_hold_the_same_world(tmp_path, k):
    """Oracle: the world's own arrays, against what the reader makes of its files."""
    w = spoil(world(Recipe(items=60, models=2, k=k, per_image=2), 4), {"wrong_key": 0.1}, 1)
    folder = write_world(w, tmp_path / "runs")
    pool = auditlib.read_pool(folder / "params.yaml", outputs=tmp_path / "out")
    place = pool.items["item"].astype(int).to_numpy() - 1
    order = [pool.model_names.index(m) for m in w.model_names]
    name = "exact_open" if k is None else "exact"
    for condition in ("full", "blind"):
        assert (pool.arms[name].hits[condition][:, order] == w.hits(condition)[place]).all()
    if k is not None:
        assert (pool.letters["full"][:, order] == w.full[place]).all()
        assert (pool.letters["blind"][:, order] == w.blind[place]).all()
        assert (pool.k == w.truth["k"].to_numpy()[place]).all()
    mine = w.as_pool()
    assert (mine.arms[name].hits["full"] == w.hits("full")).all() and mine.cluster is not None
