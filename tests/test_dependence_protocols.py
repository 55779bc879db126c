"""Baselines and validation protocols of modality dependence, against scipy, statsmodels, enumeration, hand counts."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from m3irt_tables import read_contaminated, read_tensor
from scipy import stats
from scipy.optimize import approx_fprime

from auditlib.dependence.ablations import ablate, small_scale_pool, subsample_pool
from auditlib.dependence.baselines import (
    Baseline,
    all_baselines,
    fixed_fusion,
    latent_class,
    native_profile,
    one_parameter,
    random_guess,
    raw_difference,
    raw_relative,
)
from auditlib.dependence.diagnosis import diagnose
from auditlib.dependence.item_response import fit_m2irt, fit_mirt, fit_two_parameter, m2irt_loss
from auditlib.dependence.labels import compare_benchmarks, compare_paired, evaluate_labels, label_codes, mcnemar
from auditlib.dependence.margins import group_margins, label_margins, leave_family_out
from auditlib.dependence.refinement import ContaminatedPool, contaminate, rank_correlations, rank_curve, refine
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.errors import AuditError
from auditlib.seeds import generator
from auditlib.synth.modality import simulate_modality

FAMILIES = ("a", "a", "a", "b", "b", "b", "c", "c", "c", "d", "d", "d")


@pytest.fixture(scope="module")
def planted():
    """A pool, its responses with families, and a prior that is right more often than not."""
    pool = simulate_modality(7, items=160, dimensions=2)
    responses = ResponseTensor.from_arrays(pool.hits, k=pool.k, families=FAMILIES)
    noise = np.random.default_rng(0).dirichlet(np.ones(4), 160)
    return pool, responses, StructuralPrior.from_profile(0.7 * noise + 0.3 * np.eye(4)[pool.label])


@pytest.fixture(scope="module")
def damaged():
    """Half of the items have lost their image: what it adds is gone, and so is what both views add together."""
    pool = simulate_modality(8, items=80, dimensions=2)
    p = pool.probability.copy()
    p[:, :, 1] = p[:, :, 0]
    p[:, :, 3] = p[:, :, 2]
    hits = (np.random.default_rng(1).random(p.shape) < p).astype(float)
    clean = ResponseTensor.from_arrays(pool.hits, k=4)
    other = ResponseTensor.from_arrays(hits, k=4, items=[f"damaged {i}" for i in range(80)])
    return contaminate(clean, other)


def scores_by_hand(truth, predicted) -> tuple[float, float]:
    pairs = list(zip(truth, predicted))
    f1 = []
    for c in range(4):
        tp = sum(t == c == p for t, p in pairs)
        fp, fn = sum(p == c != t for t, p in pairs), sum(t == c != p for t, p in pairs)
        f1.append(2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0)
    return sum(t == p for t, p in pairs) / len(pairs), sum(f1) / 4


def test_label_scores_by_hand(rng):
    truth, predicted = rng.integers(0, 3, 50), rng.integers(0, 3, 50)
    s = evaluate_labels(truth, predicted)
    assert (s.accuracy, s.macro_f1) == pytest.approx(scores_by_hand(truth, predicted))
    # the fourth class is empty on both sides and still counts
    assert s.f1[3] == 0
    assert s.macro_f1 == pytest.approx(s.f1[:3].sum() / 4)
    assert s.confusion.sum() == s.n == 50
    letters = evaluate_labels(np.array(list("RVTS"))[truth], np.array(list("RVTS"))[predicted])
    np.testing.assert_array_equal(letters.confusion, s.confusion)
    for wrong, said in ((["R", "U"], "'U'"), ([0, 4], "4"), ([[0, 1]], "shape")):
        with pytest.raises(AuditError, match=said):
            label_codes(wrong)
    with pytest.raises(AuditError, match="2 true and 1"):
        evaluate_labels([0, 1], [0])


@pytest.mark.parametrize(("b", "c"), [(0, 0), (3, 9), (12, 12), (13, 12), (30, 11), (40, 40)])
def test_mcnemar_against_statsmodels(b, c):
    from statsmodels.stats.contingency_tables import mcnemar as reference

    found = mcnemar(b, c)
    exact = b + c < 25
    assert found.method.startswith("exact" if exact else "chi-square")
    if b != c or exact:
        expected = reference([[5, b], [c, 7]], exact=exact, correction=True).pvalue
        assert found.p == pytest.approx(min(1.0, expected))
    else:
        # the correction does not go below 0
        assert found.p == 1.0


def test_randomisation_against_all_swaps():
    truth = np.array([0, 0, 1, 1, 2, 2, 3, 3, 0, 1])
    first = np.array([0, 0, 1, 1, 2, 3, 3, 3, 1, 2])
    second = np.array([0, 1, 1, 0, 3, 3, 2, 3, 1, 1])
    seen = np.subtract(scores_by_hand(truth, first), scores_by_hand(truth, second))
    null = []
    for swap in product((False, True), repeat=10):
        a, b = np.where(swap, second, first), np.where(swap, first, second)
        null.append(np.subtract(scores_by_hand(truth, a), scores_by_hand(truth, b)))
    exact = (np.abs(null) >= np.abs(seen) - 1e-12).mean(0)
    c = compare_paired(truth, first, second, rng=np.random.default_rng(0), draws=20_000)
    assert list(c.difference.values()) == pytest.approx(seen)
    np.testing.assert_allclose(list(c.p.values()), exact, atol=0.015)
    assert (c.mcnemar.first, c.mcnemar.second) == (4, 1)


def test_bootstrap_against_all_resamples():
    truth, first, second = np.array([[0, 1, 2, 3, 1], [0, 1, 2, 0, 0], [0, 2, 3, 3, 1]])
    drawn = []
    for at in product(range(5), repeat=5):
        at = list(at)
        drawn.append(np.subtract(scores_by_hand(truth[at], first[at]), scores_by_hand(truth[at], second[at])))
    c = compare_paired(truth, first, second, rng=np.random.default_rng(0), draws=20_000, level=0.8)
    for values, interval in zip(np.array(drawn).T, c.interval.values()):
        for end, at in ((interval.low, 0.1), (interval.high, 0.9)):
            # steps of the exact distribution are wide: the end must lie where it crosses its level
            assert (values < end - 1e-9).mean() - 0.01 <= at <= (values <= end + 1e-9).mean() + 0.01


def test_strata_keep_their_sizes():
    """One benchmark where the first is always right alone, one where both are: the pooled difference cannot vary."""
    truth = np.zeros(40, int)
    first, second = truth.copy(), np.repeat([1, 0], 20)
    strata = np.repeat(["x", "y"], 20)
    within = compare_paired(truth, first, second, rng=np.random.default_rng(0), strata=strata, draws=500)
    across = compare_paired(truth, first, second, rng=np.random.default_rng(0), draws=500)
    assert (within.interval["accuracy"].low, within.interval["accuracy"].high) == (0.5, 0.5)
    assert across.interval["accuracy"].low < 0.4 < 0.6 < across.interval["accuracy"].high


def test_benchmarks_are_corrected_together(rng):
    from statsmodels.stats.multitest import multipletests

    truth = rng.integers(0, 4, 90)
    noisy = [np.where(rng.random(90) < share, truth, rng.integers(0, 4, 90)) for share in (0.7, 0.5, 0.45)]
    table = compare_benchmarks({"x": (truth, noisy[0], noisy[1]), "y": (truth, noisy[1], noisy[2])},
                               rng=rng, draws=999)  # fmt: skip
    assert table[["benchmark", "metric"]].to_numpy().tolist() == [
        ["x", "accuracy"], ["x", "macro-F1"], ["y", "accuracy"], ["y", "macro-F1"]
    ]  # fmt: skip
    np.testing.assert_allclose(table["p_holm"], multipletests(table["p"], method="holm")[1])
    np.testing.assert_allclose(table["difference"], table["first"] - table["second"])
    same = compare_paired(truth, noisy[0], noisy[0], rng=rng, draws=99)
    assert same.p == {"accuracy": 1.0, "macro-F1": 1.0}


def test_two_parameter_model(rng):
    m, n = 200, 60
    theta, a, d = rng.normal(size=m), rng.uniform(0.4, 2, n), rng.normal(size=n)
    hits = (rng.random((m, n)) < 1 / (1 + np.exp(-(theta[:, None] * a + d)))).astype(float)
    found = fit_two_parameter(hits, np.ones_like(hits))
    assert found.converged
    assert np.corrcoef(found.theta, theta)[0, 1] > 0.94
    assert np.corrcoef(found.a, a)[0, 1] > 0.8
    # Fisher information is p'^2 / (p (1 - p))
    p = [1 / (1 + np.exp(-(t * found.a + found.d))) for t in (0.3 - 1e-5, 0.3, 0.3 + 1e-5)]
    np.testing.assert_allclose(found.information(0.3), ((p[2] - p[0]) / 2e-5) ** 2 / (p[1] * (1 - p[1])), rtol=1e-6)
    rasch = fit_two_parameter(hits, np.ones_like(hits), slopes=False)
    assert rasch.converged
    # number right is sufficient for ability where slopes are equal
    order = np.argsort(hits.sum(1), kind="stable")
    assert (np.diff(rasch.theta[order]) > -1e-3).all()
    np.testing.assert_allclose(rasch.a, 1)


def test_exploratory_model_finds_two_planted_dimensions(rng):
    theta, a = rng.normal(size=(150, 2)), np.repeat(np.eye(2), 30, axis=0) * 1.5
    hits = (rng.random((150, 60)) < 1 / (1 + np.exp(-(theta @ a.T)))).astype(float)
    found = fit_mirt(hits, np.ones_like(hits), 2)
    x, y = (np.linalg.qr(z - z.mean(0))[0] for z in (theta, found.theta))
    assert np.linalg.svd(x.T @ y)[1].min() > 0.85
    with pytest.raises(ValueError, match="4 dimensions"):
        fit_mirt(hits[:4], np.ones((4, 60)), 4)


def test_m2irt_gradient_and_fit(rng):
    trials = rng.integers(0, 3, (4, 6, 4)).astype(float)
    hits = rng.binomial(trials.astype(int), 0.6).astype(float)
    x = rng.normal(size=16 + 48)
    numeric = approx_fprime(x, lambda y: m2irt_loss(y, hits, trials, 0.3)[0], 1e-7)
    np.testing.assert_allclose(m2irt_loss(x, hits, trials, 0.3)[1], numeric, atol=2e-5)
    pool = simulate_modality(5, "six models", 60)
    found = fit_m2irt(pool.hits, np.ones_like(pool.hits))
    # fitted means follow observed ones
    assert np.corrcoef(found.probability.mean(0).ravel(), pool.hits.mean(0).ravel())[0, 1] > 0.9


def test_native_profile_by_hand():
    # contributions 1 (options), 2 (image), 3 (question), 4 (joint): shared 1 + 2, none left to the image
    made = native_profile(np.ones((1, 4)), np.array([[1.0, 2, 3, 4]]), np.zeros((1, 4)))
    np.testing.assert_allclose(made, np.array([[3, 0, 1, 4]]) / 8, atol=1e-3)


def test_baselines_share_one_result(planted, rng):
    pool, responses, prior = planted
    made = all_baselines(responses, prior, lsmi=prior, rng=rng)
    assert set(made) == {
        "random", "raw difference (A)", "raw relative (B)", "1PL", "2PL", "MIRT", "M2IRT", "M3IRT, native coordinates",
        "M3IRT + profile A", "M3IRT + profile B", "latent class", "LSMI only", "structure only", "fusion alpha=0.25",
        "fusion alpha=0.5", "fusion alpha=0.75", "latent class + prior",
    }  # fmt: skip
    score = {}
    for name, b in made.items():
        assert b.profile is not None or b.utility is not None
        if b.profile is not None:
            np.testing.assert_allclose(b.profile.sum(1), 1, rtol=1e-9)
            score[name] = (b.label == pool.label).mean()
        if b.utility is not None:
            assert np.isfinite(b.utility).all()
    assert score["random"] < 0.4 < score["raw relative (B)"]
    assert score["latent class + prior"] > score["latent class"] - 0.03
    with pytest.raises(AuditError, match="1PL gives no labels"):
        _ = made["1PL"].label
    strong = made["M3IRT + profile B"]
    np.testing.assert_array_equal(fixed_fusion(prior, strong, 0).profile, strong.profile)
    np.testing.assert_array_equal(fixed_fusion(prior, strong, 1).label, made["structure only"].label)
    with pytest.raises(AuditError, match="two profiles"):
        fixed_fusion(prior, Baseline("x"), 0.5)
    without = all_baselines(responses, rng=rng)
    assert not any("fusion" in n or "prior" in n or "structure" in n for n in without)
    np.testing.assert_array_equal(latent_class(responses).profile, made["latent class"].profile)


def test_raw_baselines_by_hand():
    hits = np.zeros((4, 2, 4))
    hits[:3, 0, 1] = hits[:, 0, 3] = hits[0, 0, 0] = 1
    hits[0, 1] = 1
    responses = ResponseTensor.from_arrays(hits, k=2)
    np.testing.assert_allclose(raw_difference(responses).utility, [0.25, 0])
    np.testing.assert_allclose(raw_relative(responses).utility, [0.25, -0.25])
    # gains over the options alone: image .5, question below 0, both .75
    np.testing.assert_allclose(raw_difference(responses).profile[0], [0, 2 / 3, 0, 1 / 3], atol=0.01)
    # equal slopes: the item nearer to one half of right answers tells more
    assert np.argmax(one_parameter(responses).utility) == 1


def test_random_labels_follow_their_shares():
    b = random_guess(20_000, np.random.default_rng(0), (0.5, 0.3, 0.2, 0))
    np.testing.assert_allclose(np.bincount(b.label, minlength=4) / 20_000, [0.5, 0.3, 0.2, 0], atol=0.015)
    again = random_guess(20_000, np.random.default_rng(0), (0.5, 0.3, 0.2, 0))
    np.testing.assert_array_equal(b.utility, again.utility)


def test_rank_curve_against_scipy(rng):
    rate = (rng.random((9, 50)) < rng.random((9, 1))).astype(float)
    utility = rng.random(50)
    curve = rank_curve(rate, utility, shares=(1, 20, 100))
    assert curve["items"].tolist() == [1, 10, 50]
    best = np.argsort(-utility)[:10]
    sub, whole = rate[:, best].mean(1), rate.mean(1)
    assert curve["spearman"][1] == pytest.approx(stats.spearmanr(sub, whole)[0])
    assert curve["kendall"][1] == pytest.approx(stats.kendalltau(sub, whole)[0])
    assert curve["spearman"][2] == pytest.approx(1)
    assert np.isnan(rank_correlations(np.ones(5), np.arange(5.0))).all()
    assert rank_correlations([1, 2, np.nan, 3], [1, 2, 0, 3]) == pytest.approx((1, 1))
    with pytest.raises(ValueError, match="per cent"):
        rank_curve(rate, utility, shares=(0,))


def test_joining_clean_and_damaged_items(damaged):
    assert damaged.corrupted.tolist() == [False] * 80 + [True] * 80
    r = damaged.responses
    clean, other = r.take_items(~damaged.corrupted), r.take_items(damaged.corrupted)
    turned = contaminate(clean, other.take_subjects(np.arange(11, -1, -1)))
    np.testing.assert_array_equal(turned.responses.hits, r.hits)
    with pytest.raises(AuditError, match="one of the two parts"):
        contaminate(clean, other.take_subjects(np.arange(11)))
    with pytest.raises(AuditError, match="clean and corrupted"):
        contaminate(clean, clean)


def test_refinement_keeps_damaged_items_out(damaged):
    found = refine(damaged, shares=(10, 50))
    t = found.table.set_index(["utility", "share"])
    assert t.loc[("gap x information", 10), "corrupted"] < 0.3
    assert t.loc[("gap x information", 50), "corrupted"] < 0.4
    assert t.loc[("random", 50), "corrupted"] == pytest.approx(0.5, abs=0.08)
    assert t.loc[("gap x information", 50), "spearman"] > 0.5
    assert t["defined"].between(1, 6).all()
    # one split of one utility by other means
    order = generator(0, "refinement", "0").permutation(12)
    fitted, held = order[:6], order[6:]
    r = damaged.responses
    best = np.argsort(-one_parameter(r.take_subjects(fitted)).utility, kind="stable")[:16]
    full = r.hits[:, :, 3]
    expected = stats.spearmanr(full[held][:, best].mean(1), full[held][:, ~damaged.corrupted].mean(1))[0]
    d = found.draws.query("split == 0 and utility == '1PL information' and share == 10").iloc[0]
    assert d["spearman"] == pytest.approx(expected)
    assert d["corrupted"] == damaged.corrupted[best].mean()
    part = found.draws.query("utility == 'raw gap' and share == 50")
    assert t.loc[("raw gap", 50), "kendall"] == pytest.approx(part["kendall"].mean())


def test_refinement_by_own_abilities_and_with_structure(damaged, rng):
    small = ContaminatedPool(damaged.responses.take_items(np.arange(0, 160, 2)), damaged.corrupted[::2])
    prior = StructuralPrior.from_profile(rng.dirichlet(np.ones(4), 80))
    found = refine(small, prior, protocol="m3irt", shares=(20,))
    names = set(found.table["utility"])
    assert {"diagnosis: rho_S", "M3IRT log determinant", "MIRT information", "M2IRT information"} <= names
    # each held-out subject has its own subset: the share is a mean over subjects, finer than sixteenths
    d = found.draws.query("utility == 'M3IRT log determinant'")["corrupted"] * 16
    assert (np.abs(d - d.round()) > 1e-9).any()
    pooled = found.draws.query("utility == 'MIRT information'")["corrupted"] * 16
    np.testing.assert_allclose(pooled, pooled.round())


def test_refinement_refuses(damaged):
    r = damaged.responses
    with pytest.raises(ValueError, match="5 splits"):
        refine(damaged, splits=5)
    with pytest.raises(ValueError, match="none of full, m3irt"):
        refine(damaged, protocol="x")
    with pytest.raises(AuditError, match="6 models"):
        refine(ContaminatedPool(r.take_subjects(np.arange(6)), damaged.corrupted))
    with pytest.raises(AuditError, match="no clean or no corrupted"):
        refine(ContaminatedPool(r, np.zeros(160, bool)))


def test_margins_by_hand():
    q = np.array([[0.2, 0.7, 0.6, 0.9], [0.2, 0.8, 0.3, 0.9], [0.2, 0.3, 0.9, 0.9], [0.2, 0.3, 0.4, 0.9]])
    np.testing.assert_allclose(group_margins(q), [0.4, 0.5, 0.6, 0.5])


def test_margin_intervals_and_null(rng):
    x, label = rng.random((7, 4)), np.array([0, 0, 1, 1, 2, 2, 3])
    found = label_margins(x, label, rng=np.random.default_rng(0), draws=4_000).set_index("group")
    null = []
    for turned in {tuple(p) for p in permutations(label.tolist())}:
        z = np.array(turned)
        null.append(group_margins(np.stack([x[z == j].mean(0) for j in range(4)])))
    exact = (np.array(null) >= found["margin"].to_numpy() - 1e-12).mean(0)
    np.testing.assert_allclose(found["p"], exact, atol=0.025)
    np.testing.assert_allclose(found["null"], np.mean(null, 0), atol=0.025)
    big, z = rng.random((200, 4)), np.repeat([0, 1, 2, 3], 50)
    i = label_margins(big, z, rng=np.random.default_rng(0), draws=4_000).set_index("group").loc["T"]
    gap = (big[:, 2] - big[:, 1])[z == 2]
    ref = stats.bootstrap((gap,), np.mean, n_resamples=4_000, method="percentile",
                          rng=np.random.default_rng(1)).confidence_interval  # fmt: skip
    np.testing.assert_allclose([i["low"], i["high"]], ref, atol=0.012)
    # labels without content: V and T mirror each other
    both = label_margins(big, z, rng=np.random.default_rng(0), draws=2_000)
    assert both["null"][1] + both["null"][2] == pytest.approx(0, abs=0.01)
    assert both["null_positive"][1:3].sum() == pytest.approx(1, abs=0.1)
    with pytest.raises(ValueError, match="full matrix"):
        label_margins(np.where(big > 0.99, np.nan, big), z, rng=rng)


def test_an_empty_group_has_no_margin(rng):
    found = label_margins(rng.random((6, 4)), np.array([0, 0, 1, 1, 2, 2]), rng=rng, draws=50)
    assert np.isnan(found[["margin", "low", "high", "p"]].iloc[3].to_numpy(float)).all()
    assert found["margin"].iloc[:3].notna().all()


def test_left_out_families(planted, rng):
    _, responses, _ = planted
    found = leave_family_out(responses, rng=np.random.default_rng(0), draws=300)
    assert found.of == 16
    assert found.positive >= 15
    # V and T margins mirror each other, and R and S margins are high for any labels
    assert 8 <= found.positive_null < 14
    assert (found.table["p_holm"] >= found.table["p"]).all()
    # what the left-out family answered has no part in the labels
    hits = responses.hits.copy()
    own = np.array(FAMILIES) == "b"
    hits[own] = rng.random(hits[own].shape) < 0.5
    other = leave_family_out(replace(responses, hits=hits), rng=np.random.default_rng(0), families=["b"], draws=50)
    before = found.table.query("family == 'b'")
    assert other.table["items"].tolist() == before["items"].tolist()
    assert other.table["margin"].abs().mean() < 0.5 * before["margin"].mean()
    with pytest.raises(AuditError, match="no model names its family"):
        leave_family_out(replace(responses, families=("",) * 12), rng=rng)
    with pytest.raises(AuditError, match="'z' has 0 of 12"):
        leave_family_out(responses, rng=rng, families=["z"])


def test_ablations_leave_one_part_out(planted):
    pool, responses, prior = planted
    made = ablate(responses, prior)
    np.testing.assert_array_equal(made["- responses"], prior.profile)
    np.testing.assert_allclose(made["- structure"], diagnose(responses, prior).alone, atol=1e-12)
    d = diagnose(responses, prior, compare=False)
    np.testing.assert_array_equal(made["stacked"], d.profile)
    np.testing.assert_array_equal(made["response model"], d.by_model)
    right = {n: (p.argmax(1) == pool.label).mean() for n, p in made.items()}
    assert right["response model"] > right["- profile alignment"]
    parts = [made[n] for n in made if n.startswith("- ")]
    assert len(parts) == 6
    assert all(not np.allclose(p, made["response model"]) for p in parts)
    with pytest.raises(AuditError, match="says nothing"):
        ablate(responses, StructuralPrior.none(160))


def test_smaller_pools(planted):
    pool, responses, prior = planted
    found = subsample_pool(responses, prior, pool.label, rng=np.random.default_rng(0), sizes=(3, 10), draws=2)
    full = evaluate_labels(pool.label, diagnose(responses, prior, compare=False).label)
    accuracy = found.query("metric == 'accuracy'")
    assert accuracy["full"].tolist() == [full.accuracy] * 2
    np.testing.assert_allclose(found["retention"], found["mean"] / found["full"])
    np.testing.assert_allclose(found["retention_sd"], found["sd"] / found["full"])
    assert accuracy["mean"].is_monotonic_increasing
    alone = subsample_pool(responses, prior, rng=np.random.default_rng(0), sizes=(8,), draws=1)
    assert alone[["metric", "full"]].iloc[0].tolist() == ["agreement", 1.0]
    with pytest.raises(AuditError, match="12 models"):
        subsample_pool(responses, prior, rng=np.random.default_rng(0), sizes=(12,))
    small = small_scale_pool(responses, [2, 3, 7, 12, 12.1, np.nan] * 2)
    assert small.subjects == tuple(f"subject_{j}" for j in (2, 3, 4, 8, 9, 10))
    with pytest.raises(AuditError, match="0 models have"):
        small_scale_pool(responses, [70] * 12)


def test_public_tables_of_24_models(shared_data):
    """A part of MMMU: damaged items are kept out, and groups hold for left-out families."""
    folder = shared_data / "real" / "m3irt" / "mmmu"
    pool = read_contaminated(folder)
    assert pool.responses.hits.shape == (24, 1747, 4)
    assert pool.corrupted.sum() == 900
    cut = np.arange(0, 1747, 12)
    part = ContaminatedPool(pool.responses.take_items(cut), pool.corrupted[cut])
    t = refine(part, shares=(20, 50)).table.set_index(["utility", "share"])
    assert t.loc[("gap x information", 50), "corrupted"] < 0.25 < 0.4 < t.loc[("random", 50), "corrupted"]
    assert t.loc[("gap x information", 50), "spearman"] > t.loc[("M3IRT log determinant", 50), "spearman"]
    assert t.loc[("gap x information", 20), "corrupted"] < t.loc[("rho_S", 20), "corrupted"] - 0.2
    clean = read_tensor(folder / "normal_mmmu.csv").take_items(np.arange(0, 847, 3))
    found = leave_family_out(clean, rng=np.random.default_rng(0), families=["gpt"], draws=200)
    assert (found.positive, found.of) == (4, 4)
