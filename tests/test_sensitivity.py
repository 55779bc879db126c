"""Sensitivity: planted weights recovered, exact tests against enumeration, records, layers, and real corruptions."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from auditlib.errors import AuditError
from auditlib.params import check_params
from auditlib.pool import Pool
from auditlib.sensitivity import contrasts, curves, evidence, flips, layers, margins, study
from auditlib.sensitivity.conditions import Condition
from auditlib.sensitivity.measures import measure, sensitivity_findings
from auditlib.sensitivity.pairing import pairs
from auditlib.sensitivity.records import calls_frame, join, read_calls
from auditlib.stats.signal import detection
from auditlib.studies import STUDIES
from auditlib.synth import sensitivity_worlds as world

DRAWS = 300


def rng():
    return np.random.default_rng(7)


@cache
def big(*models, only=("blur", "tokens")):
    """A world of single questions, large enough that Monte-Carlo error is small."""
    lookers = [m for m in world.MODELS if m.name in models] or list(world.MODELS)
    wanted = [c for c in world.ladder(1) if c.family in (*only, "blind")]
    drawn = world.draw(11, items=1000, models=lookers, conditions=wanted, samples=2, per_image=1)
    return calls_frame(drawn.calls).table


# ------------------------------------------------------------------------------------------------------ planted truth


def test_share_lost_area_and_half_level_recover_what_was_planted():
    table = curves.curve_table(big("kestrel", "plover", "moth"), rng=rng(), draws=DRAWS)
    for family, levels in {"blur": world.LEFT["blur"], "tokens": world.LEFT["tokens"]}.items():
        planted = [1 - e for e in levels.values()]
        area = float(curves.curve_area(list(levels), planted))
        half = next(level for level, lost in zip(levels, planted) if lost >= 0.5)
        for r in table[table["family"].eq(family)].itertuples():
            assert r.low - 0.02 <= area <= r.high + 0.02, (r.model, family)
            assert r.half == half
            assert r.undefined == ""


def test_evidence_specificity_is_the_weight_times_what_the_evidence_adds():
    table = big("kestrel", "dunnock", "mole", only=("occlude_evidence", "occlude_control"))
    found = evidence.evidence_table(evidence.evidence_items(table), rng=rng(), draws=DRAWS).set_index("model")
    full = table[table["family"].eq("full")].groupby("model")["hit"].mean()
    blind = table[table["family"].eq("blind")].groupby("model")["hit"].mean()
    for model in ("kestrel", "dunnock"):
        planted = (0.9 - 0.1) * (full[model] - blind[model])  # evidence left by the two boxes, times the gain
        assert found.loc[model, "low"] - 0.01 <= planted <= found.loc[model, "high"] + 0.01
        assert found.loc[model, "p_bound"] < 1e-6 < found.loc["mole", "p_bound"]
    assert found.loc["mole", "specificity"] == 0
    assert abs(found.loc["mole", "bound"] - 0.25) < 4 * np.sqrt(0.25 * 0.75 / found.loc["mole", "scored"])


def test_a_model_that_reads_only_text_has_no_share_and_passes_the_equivalence_test():
    table = curves.condition_table(big("mole"), rng=rng(), draws=DRAWS)
    assert table["undefined"].eq(curves.ZERO).all() and table["lost"].isna().all()
    assert table["drop"].eq(0).all() and (table["p_same_drop"] < 0.05).all()
    assert {contrasts.say_same(r) for r in table.to_dict("records")} == {"insensitive"}


def test_a_noisy_model_that_looks_is_not_sensitive_by_sampling():
    table = flips.flip_table(big("moth"), rng=rng(), draws=DRAWS)
    mild = table[table["family"].eq("tokens") & table["level"].eq(0.25)].iloc[0]  # leaves all evidence
    assert mild["flip"] > 0.25, "the answers do change"
    assert mild["excess_low"] < 0 < mild["excess_high"] and mild["p"] > 0.05
    heavy = table[table["family"].eq("blind")].iloc[0]
    assert heavy["excess_low"] > 0.1


def test_erosion_where_the_answer_stays_right_is_the_planted_loss():
    table = margins.erosion_table(pairs(big("kestrel", "plover")), rng=rng(), draws=DRAWS)
    weight = {m.name: m.sight for m in world.MODELS}
    for r in table.itertuples():
        left = world.evidence_left(Condition(r.family, r.variant, r.level))
        assert r.erosion == pytest.approx(world.MARGIN_GAIN * weight[r.model] * (1 - left), abs=0.02)
        assert r.relative == pytest.approx(1 - left, abs=0.02)
        assert r.unconditional >= r.erosion - 0.1, "items that turned wrong lose more"


# ------------------------------------------------------------------------------------------------------- exact oracles


def test_mcnemar_is_the_binomial_of_the_discordant_pairs():
    from statsmodels.stats.contingency_tables import mcnemar

    for lost, won in ((8, 1), (3, 3), (0, 5), (40, 22)):
        seen = mcnemar([[10, lost], [won, 10]], exact=True).pvalue
        assert contrasts.mcnemar_exact(lost, won) == pytest.approx(seen)
    assert contrasts.mcnemar_exact(0, 0) == 1
    # all ways in which seven discordant pairs can fall
    lost = np.array([sum(one) for one in product((0, 1), repeat=7)])
    assert contrasts.mcnemar_exact(6, 1) == pytest.approx((np.abs(lost - 3.5) >= 2.5).mean())


def test_max_t_against_all_sign_flips():
    d = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1], [-1, 0, 1], [0, 1, 1]], float)
    p, adjusted = contrasts.max_t(d, rng=rng(), draws=40_000)
    z = d / np.sqrt((d**2).sum(axis=0))
    every = np.array([(np.array(s) @ z).max() for s in product((-1, 1), repeat=6)])
    exact = [(every >= t - 1e-9).mean() for t in z.sum(axis=0)]
    assert adjusted == pytest.approx(exact, abs=0.01) and p == pytest.approx(min(exact), abs=0.01)


def test_max_t_holds_its_level_on_noise():
    g = np.random.default_rng(3)
    rejected = [contrasts.max_t(g.choice((-1.0, 0.0, 1.0), (60, 4)), rng=g, draws=199)[0] <= 0.05 for _ in range(300)]
    assert binom.cdf(sum(rejected) - 1, 300, 0.05) < 0.999


def test_evidence_bound_is_an_exact_binomial_and_varies_with_the_boxes():
    assert evidence.bound_test([1] * 9 + [0] * 11, [3] * 20)["p_bound"] == pytest.approx(binom.sf(8, 20, 0.25))
    mixed = evidence.bound_test([1, 1, 0], [1, 3, 3])
    # two or three of three at 1/2, 1/4, 1/4
    assert mixed["p_bound"] == pytest.approx(1 / 32 + (3 / 32 + 3 / 32 + 1 / 32))


def test_half_level_is_isotonic_and_none_where_half_is_never_lost():
    assert curves.half_level([1, 2, 4], [0.1, 0.2, 0.3]) != curves.half_level([1, 2, 4], [0.1, 0.2, 0.3])
    # the dip at the third level is pooled with the second: their mean is below one half
    assert curves.half_level([1, 2, 4, 8], [0.0, 0.6, 0.2, 0.7]) == 8
    assert float(curves.curve_area([1, 2], [1.0, 1.0])) == pytest.approx(0.75)


def test_d_prime_of_constant_and_coin_answers():
    assert detection(0, 400, 0, 4000)[0] == pytest.approx(0)
    assert detection(400, 400, 4000, 4000)[0] == pytest.approx(0)
    d, c = detection(200, 400, 2000, 4000)
    assert d == pytest.approx(0, abs=1e-12) and c == pytest.approx(0, abs=1e-12)
    assert detection(80, 100, 20, 100)[0] == pytest.approx(2 * 0.8416 * 0.99, abs=0.03)
    assert detection(90, 100, 60, 100)[1] < 0, "yes too often"


def test_matched_erosion_weighs_deciles_alike():
    full = np.arange(20.0)
    changed = full - np.where(full < 10, 1.0, 3.0)
    same = full >= 8  # only one decile of the lower half keeps its answers
    erosion, gone = margins.matched_erosion(full, changed, same)
    assert gone == 8 and erosion == pytest.approx((2 * 1 + 10 * 3) / 12)
    assert margins.margin_of_samples(["A"] * 5, "A", "AB") != margins.margin_of_samples(["A"] * 5, "A", "AB")
    assert margins.margin_of_scores({"A": -2.0, "B": -3.0}, "A", {"A": 2, "B": 1}) == pytest.approx(2.0)


# ------------------------------------------------------------------------------------------------------------- records


def rows(**more):
    base = {"model": ["m", "m"], "item": ["1", "1"], "condition": ["full", "blur@2"], "answer": ["A", "B"],
            "key": ["A", "A"]}  # fmt: skip
    return pd.DataFrame(base | more)


def test_verdicts_follow_from_answer_and_key_and_margins_from_scores():
    table = calls_frame(rows(scores=['{"A": -0.1, "B": -2.1}', ""])).table
    assert table["hit"].tolist() == [1, 0] and table["margin"].tolist()[0] == pytest.approx(2.0)
    assert table[["family", "level", "image"]].to_numpy().tolist() == [["full", 0.0, "1"], ["blur", 2.0, "1"]]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"condition": ["full", "blur s2"]}, "names no condition"),
        ({"hit": ["1", "2"]}, "a hit of 2"),
        ({"hit": ["1", "often"]}, "hit holds 'often'"),
        ({"condition": ["full", "blurr@2"]}, "'blurr' is no family of changes, 'blur' is"),
        ({"level": ["0", "inf"]}, "level holds inf"),
        ({"level": ["0", "-2"]}, "level holds -2"),
        ({"margin": ["inf", ""]}, "margin holds inf"),
        ({"condition": ["full", "full"]}, "called twice under one condition, with different content"),
        ({"scores": ["x", ""]}, "no mapping"),
        ({"answer": ["", ""]}, "no call is scored"),
    ],
)
def test_mistakes_in_calls_are_refused(more, said):
    with pytest.raises(AuditError, match=said):
        calls_frame(rows(**more))


def test_copies_are_counted_and_a_file_names_its_row(tmp_path):
    table = rows()
    calls = calls_frame(pd.concat([table, table]))
    assert len(calls.table) == 2 and calls.coverage.set_index("what").loc["duplicate", "n"] == 2
    file = tmp_path / "calls.csv"
    table.assign(hit=["1", "9"]).to_csv(file, index=False)
    with pytest.raises(AuditError, match=r"calls\.csv, row 3: a hit of 9"):
        read_calls([file])
    with pytest.raises(AuditError, match=r"calls\.csv, row 1: there is no column 'guess'"):
        read_calls([file], columns={"answer": "guess"})
    both = join(calls_frame(table.head(1)), calls_frame(table.tail(1)))
    assert len(both.table) == 2


def test_changes_made_elsewhere_are_stated():
    calls = calls_frame(rows(condition=["full", "overexposed@2"]))
    said = calls.coverage[calls.coverage["what"].eq("warning")]
    assert said["n"].tolist() == [1] and "'overexposed', a change that is not made here" in said["reason"].iloc[0]


def test_levels_of_the_params_are_finite_and_positive(tmp_path):
    for level in (float("inf"), float("nan"), 0, -1):
        ask = {"models": [{"name": "m"}], "levels": {"blur": [level]}}
        with pytest.raises(AuditError, match=r"sensitivity\.ask\.levels\.blur"):
            check_params({"pool": "p", "benchmark": "B", "data": {"table": "x.csv"}, "sensitivity": {"ask": ask}},
                         tmp_path / "p.yaml")  # fmt: skip


def test_calls_on_other_items_are_left_out_or_kept_with_a_word(tmp_path):
    calls = pd.DataFrame({"model": "m", "item": list("abcd"), "condition": "full", "hit": [1, 0, 1, 1]})
    calls.to_csv(tmp_path / "calls.csv", index=False)
    params = check_params({"pool": "p", "benchmark": "B", "data": {"table": "calls.csv"},
                           "sensitivity": {"calls": ["calls.csv"]}}, tmp_path / "p.yaml")  # fmt: skip
    for items, what, n, kept in ((list("ab"), "excluded", 2, 2), (["x"], "warning", 4, 4)):
        pool = Pool.from_hits(np.ones((len(items), 1)), items=pd.DataFrame({"item": items}), models=["m"],
                              params=params)  # fmt: skip
        s = study.read(pool, tmp_path)
        assert len(s.calls.table) == kept
        said = s.calls.coverage[s.calls.coverage["what"].eq(what)]
        assert said["n"].tolist() == [n] and "item" in said["reason"].iloc[0]


def test_a_saved_call_with_the_unchanged_picture_is_an_error():
    table = calls_frame(rows(image_sha256=["aa", "aa"])).table
    with pytest.raises(AuditError, match="sent the picture as it is, first item '1' under blur 2"):
        study.verify(table)
    study.verify(calls_frame(rows(image_sha256=["aa", "bb"])).table)


def test_insensitive_items_and_equal_answers_to_both_polarities_are_found():
    heavy = [("full", "A", 1), ("blur@8", "A", 1), ("blind", "A", 1)]
    r = [{"model": m, "item": i, "condition": c, "answer": a, "key": "A", "hit": float(h and (i == "1" or c == "full"))}
         for m in "xy" for i in "12" for c, a, h in heavy]  # fmt: skip
    r += [{"model": m, "item": "3", "condition": c, "answer": "yes", "key": k, "hit": float(k == "yes")}
          for m in "xy" for c, k in (("full", "yes"), ("full+negation", "no"))]  # fmt: skip
    found = sensitivity_findings(calls_frame(r).table).set_index("item")
    assert found["severity"].to_dict() == {"1": "low", "3": "medium"}


# -------------------------------------------------------------------------------------------------------------- layers


def test_cosine_without_pairs_is_that_of_all_pairs(rng):
    h = rng.standard_normal((3, 7, 5)) + 0.5
    u = h / np.linalg.norm(h, axis=-1, keepdims=True)
    every = [np.mean([u[i, a] @ u[i, b] for a in range(7) for b in range(7) if a != b]) for i in range(3)]
    assert layers.pairwise_cosine(h) == pytest.approx(every)
    assert layers.cka(h[0], h[0] @ np.linalg.qr(rng.standard_normal((5, 5)))[0] * 3) == pytest.approx(1)
    rank, part = layers.spread([3.0, 3.0, 3.0, 0.0])
    assert (rank, part) == (pytest.approx(3), pytest.approx(3))


def test_moving_tokens_between_images_destroys_the_excess(tmp_path):
    arrays = world.states(2, images=30)
    np.savez(tmp_path / "s.npz", **arrays)
    s = layers.read_states(tmp_path / "s.npz", rng=rng())
    tests = layers.layer_tests(s, rng=rng(), draws=DRAWS).set_index("what")
    assert tests.loc["excess of corrected cosine over moved tokens", "low"] > 0.2
    control = tests.loc["corrected cosine of moved tokens"]
    assert control["low"] < 0.01 and abs(control["estimate"]) < 0.01
    assert tests.loc["Spearman of corrected cosine with layer", "estimate"] > 0.9
    table = layers.layer_table(s)
    assert table["nearest"].iloc[-1] > table["nearest"].iloc[0]


def test_sums_say_the_same_as_tokens_and_damaged_states_are_named(tmp_path):
    arrays = world.states(3, images=8)
    whole = layers.summarise(arrays["item"], arrays["tokens"], rng=rng())
    h = arrays["tokens"].astype(float)
    unit = h / np.linalg.norm(h, axis=-1, keepdims=True)
    inner = h - h.mean(axis=2, keepdims=True)
    file = tmp_path / "sums.npz"
    np.savez(file, item=arrays["item"], unit_sum=unit.sum(axis=2), mean=h.mean(axis=2), count=np.full(8, h.shape[2]),
             singular=np.linalg.svd(inner, compute_uv=False))  # fmt: skip
    sums = layers.read_states(file, rng=rng())
    assert sums.cosine == pytest.approx(whole.cosine) and sums.rank == pytest.approx(whole.rank)
    assert sums.control is None
    np.savez(file, item=arrays["item"], unit_sum=unit.sum(axis=2)[:5], mean=h.mean(axis=2), count=np.full(8, 2))
    with pytest.raises(AuditError, match="unit_sum has 5 rows for 8"):
        layers.read_states(file, rng=rng())
    file.write_bytes(b"no zip")
    with pytest.raises(AuditError, match="not readable as npz"):
        layers.read_states(file, rng=rng())
    np.savez(file, item=np.array([{}], dtype=object), tokens=np.zeros(1))
    with pytest.raises(AuditError, match="not readable"):
        layers.read_states(file, rng=rng())


def test_the_link_takes_out_the_number_of_tokens():
    g = np.random.default_rng(5)
    n = 200
    tokens = g.integers(10, 100, n)
    cosine = np.repeat((tokens / 100 + g.normal(0, 0.05, n))[:, None], 3, axis=1)
    items = np.array([f"i{k}" for k in range(n)])
    drop = pd.Series(tokens / 50 + g.normal(0, 0.1, n), index=items)
    alone = layers.link(layers.States(items, cosine, np.zeros((n, 3, 2)), np.full(n, 5)), drop)
    given = layers.link(layers.States(items, cosine, np.zeros((n, 3, 2)), tokens), drop)
    assert alone["rho"] > 0.8 and given["controls"] == "tokens"
    assert abs(given["rho"]) < 0.2 and given["p"] > 0.01


# ------------------------------------------------------------------------------------------------------- whole studies


def small_pool(tmp_path, calls, **more):
    calls.to_csv(tmp_path / "calls.csv", index=False)
    block = {"calls": ["calls.csv"], "draws": 200} | more
    full = calls[calls["family"].eq("full") & calls["sample"].eq(0) & calls["form"].eq("")]
    wide = full.pivot(index="item", columns="model", values="hit")
    params = check_params({"pool": "p", "benchmark": "B", "data": {"table": "calls.csv"}, "sensitivity": block},
                          tmp_path / "p.yaml")  # fmt: skip
    return Pool.from_hits(wide.to_numpy(), items=pd.DataFrame({"item": wide.index.astype(str)}),
                          models=list(wide.columns), params=params)  # fmt: skip


def test_a_study_from_files_shows_all_its_exhibits(tmp_path):
    drawn = world.draw(2, items=60, models=world.MODELS[1:4], conditions=[
        Condition("blur", level=2.0), Condition("blur", level=8.0), Condition("blind"), Condition("occlude_evidence"),
        Condition("occlude_control"), Condition(form="negation"), Condition(form="cannot_tell")])  # fmt: skip
    pool = small_pool(tmp_path, drawn.calls)
    s = study.read(pool, tmp_path)
    result = measure(s)
    assert s.sources == ("1 file of calls",)
    shown = STUDIES["sensitivity"]
    assert {"grid", "layers"} <= set(result.facts["lacking"])
    for figure in shown.figures:
        if figure.name != "sensitivity_layers":
            frame = figure.prepare(result)
            figure.draw(frame)
            assert len(figure.caption(frame)) > 40
    made = [t.name for t in shown.tables if "layer" not in t.name and len(t.build(result))]
    assert len(made) == len(shown.tables) - 2
    assert any("undefined" in str(block) for block in shown.words(result))


def test_a_pool_without_calls_says_what_to_do(tmp_path):
    pool = Pool.from_hits(np.ones((3, 2)))
    result = measure(study.read(pool, tmp_path))
    assert result.facts["lacking"]["conditions"] == "no image was changed"
    with pytest.raises(AuditError, match=r"sensitivity\.calls"):
        study.scored(study.Sensitivity(pool, check_params(
            {"pool": "p", "benchmark": "B", "data": {"table": "x.csv"}, "sensitivity": {}}, tmp_path / "p.yaml"
        ).sensitivity))  # fmt: skip
