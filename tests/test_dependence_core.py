"""Modality dependence: gradients, closed forms, invariances, awkward inputs, recovery of planted labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from auditlib.dependence.bootstrap import bootstrap_subjects
from auditlib.dependence.curvature import curvature
from auditlib.dependence.diagnosis import diagnose
from auditlib.dependence.fit import adam, fit, minimise, predicted, start
from auditlib.dependence.information import adaptive_order, log_determinant, logits, select_subset, utility
from auditlib.dependence.latent_class import fit_latent_class
from auditlib.dependence.newcomer import score_new_subject
from auditlib.dependence.objective import evaluate
from auditlib.dependence.pid import decompose, pointwise_information
from auditlib.dependence.problem import GATES, Settings, bounded, make_problem
from auditlib.dependence.profile import difference_profile, marginals, product_profile, relative_profile
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.errors import AuditError
from auditlib.pool import Pool
from auditlib.synth.modality import simulate_modality


def embedded(pool) -> StructuralPrior:
    return StructuralPrior.from_embeddings(pool.visual, pool.textual, pool.options, pool.key)


@pytest.fixture(scope="module")
def main():
    pool = simulate_modality(3, items=300)
    responses = ResponseTensor.from_arrays(pool.hits, k=pool.k)
    prior = embedded(pool)
    return pool, responses, prior, diagnose(responses, prior)


def awkward(rng: np.random.Generator, m: int = 5, n: int = 23, **settings):
    """Repeats, missing cells, options of three sizes, an uneven prior."""
    trials = rng.integers(0, 3, (m, n, 4)).astype(float)
    if settings.pop("single", False):
        trials = np.minimum(trials, 1)
    hits = rng.binomial(trials.astype(int), 0.6).astype(float)
    prior = StructuralPrior.from_profile(rng.dirichlet([0.5] * 4, n))
    chance = 1 / rng.integers(2, 6, n)
    return make_problem(hits, trials, chance, prior.profile, prior.weight, settings=Settings(**settings))


@pytest.mark.parametrize(
    "settings",
    [{}, {"single": True}, {"guess": "chance"}, {"use_bridge": False}, {"use_align": False}, {"use_confidence": False}],
    ids=str,
)
def test_gradient_against_differences(rng, settings):
    problem = awkward(rng, **settings)
    x = start(problem) + 0.3 * rng.normal(size=problem.size)
    g = evaluate(problem, x)[1]
    step = 1e-5 * np.eye(problem.size)
    numeric = [(evaluate(problem, x + e)[0] - evaluate(problem, x - e)[0]) / 2e-5 for e in step]
    np.testing.assert_allclose(g, numeric, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"single": True}, {"use_align": False}], ids=str)
@pytest.mark.parametrize("one_draw", [False, True])
def test_compiled_passes_equal_the_arrays(rng, monkeypatch, settings, one_draw):
    pytest.importorskip("numba")
    problem = awkward(rng, m=6, **settings)
    if one_draw:
        hits = rng.integers(0, 2, (5, 40, 4)).astype(float)
        profile, weight = rng.dirichlet(np.ones(4), 40), rng.uniform(0, 2, 40)
        problem = make_problem(hits, np.ones_like(hits), np.full(40, 0.25), profile, weight)
    x = start(problem) + 2 * rng.normal(size=problem.size)
    quick = evaluate(problem, x)
    monkeypatch.setenv("AUDITLIB_NO_NUMBA", "1")
    plain = evaluate(problem, x)
    assert quick[0] == pytest.approx(plain[0], rel=1e-12)
    np.testing.assert_allclose(quick[1], plain[1], rtol=0, atol=1e-12)


def test_metric_inverts_the_gauss_newton_matrix(rng):
    """Against the dense matrix of logits' and sufficiency logits' derivatives, by differences."""
    problem = awkward(rng, m=4, n=9)
    x = start(problem) + 0.3 * rng.normal(size=problem.size)
    m, n = problem.subjects, problem.items
    block, s = problem.blocks[0], problem.settings

    def eta(x):
        theta, a, b = bounded(problem, x)
        return theta[:, None] * a.T - b.T

    def all_logits(x):
        flat = (eta(x) @ GATES.T).transpose(0, 2, 1).reshape(m, -1)
        q = (1 / (1 + np.exp(-flat))).mean(0).reshape(4, n)
        gain = np.maximum(q[3] - problem.chance, s.delta)
        return np.append(flat.ravel(), ((q[1:3] - problem.chance) / gain / s.kappa).ravel())

    step = 1e-6 * np.eye(problem.size)
    jac = np.array([(all_logits(x + e) - all_logits(x - e)) / 2e-6 for e in step]).T
    at = all_logits(x)
    p = 1 / (1 + np.exp(-at[: 4 * m * n]))
    sure = 1 / (1 + np.exp(-(at[4 * m * n :].reshape(2, n) - problem.thresholds[:, None] / s.kappa)))
    weight = np.append(block.trials.ravel() * p * (1 - p), (problem.weight * sure * (1 - sure)).ravel())
    ridge = np.append(np.full(4 * m, s.ability), np.full(8 * n, s.residual))
    dense = (jac.T * weight) @ jac + np.diag(ridge)
    g = rng.normal(size=problem.size)
    np.testing.assert_allclose(curvature(problem, x)(g), np.linalg.solve(dense / n, g), rtol=1e-4, atol=1e-3)


def test_layout_in_blocks_changes_no_value(rng, monkeypatch):
    """Nine blocks, some without an item that the border of abilities is estimated from."""
    whole = awkward(rng, m=4, n=130)
    x = start(whole) + 0.3 * rng.normal(size=whole.size)
    hits, trials = (np.concatenate([getattr(b, y).reshape(4, 4, -1) for b in whole.blocks], 2).transpose(0, 2, 1)
                    for y in ("hits", "trials"))  # fmt: skip
    monkeypatch.setattr("auditlib.dependence.problem._BLOCK", 60)
    monkeypatch.setattr("auditlib.dependence.curvature._BORDER_ITEMS", 5)
    profile = np.zeros((130, 4))
    parts = make_problem(hits, trials, whole.chance, profile, np.ones(130))
    parts = replace(parts, design=whole.design, weight=whole.weight, target=whole.target)
    assert len(parts.blocks) == 9
    np.testing.assert_allclose(evaluate(parts, x)[1], evaluate(whole, x)[1], atol=1e-13)
    g = rng.normal(size=whole.size)
    # the border is only estimated, so that both metrics agree roughly
    assert np.corrcoef(curvature(parts, x)(g), curvature(whole, x)(g))[0, 1] > 0.9


def test_value_against_the_formula(rng):
    """The written-out objective at the anchor's optimum, found here by a general minimiser's normal equations."""
    problem = awkward(rng, m=7, single=True)
    s = problem.settings
    x = start(problem) + 0.5 * rng.normal(size=problem.size)
    m, n = problem.subjects, problem.items
    tau, u, v = x[: 4 * m].reshape(m, 4), x[4 * m : 4 * m + 4 * n].reshape(4, n).T, x[4 * m + 4 * n :].reshape(4, n).T
    theta, a, b = 3 * np.tanh(tau / 3), 3 / (1 + np.exp(-u)), 5 * np.tanh(v / 5)
    eta = (theta[:, None] * a - b) @ GATES.T
    block = problem.blocks[0]
    hits, trials = (y.reshape(m, 4, n).transpose(0, 2, 1) for y in (block.hits, block.trials))
    p = 1 / (1 + np.exp(-eta))
    f = -(hits * np.log(p) + (trials - hits) * np.log(1 - p)).sum() + 0.5 * (tau**2).sum()
    rho = relative_profile(p.mean(0), problem.chance)
    sv = marginals(rho).T
    f -= (problem.weight * (problem.target * np.log(sv) + (1 - problem.target) * np.log(1 - sv))).sum()
    from auditlib.dependence.problem import BRIDGE_DIFFICULTY, BRIDGE_SLOPE

    for values, template in ((u, BRIDGE_SLOPE), (v, BRIDGE_DIFFICULTY)):
        # ridge as least squares on stacked rows
        top = np.sqrt(s.residual) * problem.design
        low = np.sqrt(s.bridge) * np.eye(5)[1:]
        rows, right = np.vstack([top, low]), np.vstack([np.sqrt(s.residual) * values, np.sqrt(s.bridge) * template])
        w = np.linalg.lstsq(rows, right, rcond=None)[0]
        f += 0.5 * ((rows @ w - right) ** 2).sum()
    assert evaluate(problem, x)[0] == pytest.approx(f / n, rel=1e-10)


def test_lbfgs_is_at_least_as_low_as_adam(main):
    _, responses, prior, _ = main
    problem = make_problem(responses.hits, responses.trials, responses.chance, prior.profile, prior.weight)
    quick, slow = minimise(problem), adam(problem, epochs=100)
    assert quick.value < slow.value + 0.02
    assert quick.trace == tuple(sorted(quick.trace, reverse=True))
    a, b = (relative_profile(predicted(problem, r.x), responses.chance).argmax(1) for r in (quick, slow))
    assert (a == b).mean() > 0.95


def test_determinant_in_closed_form(rng):
    theta, a, b = rng.normal(size=4), rng.uniform(0.2, 2, (6, 4)), rng.normal(size=(6, 4))
    p = 1 / (1 + np.exp(-logits(theta, a, b)))
    for i in range(6):
        x = GATES * a[i]
        information = x.T @ np.diag(p[i] * (1 - p[i])) @ x
        assert log_determinant(theta, a, b)[i] == pytest.approx(np.linalg.slogdet(information)[1], abs=1e-10)
    order = adaptive_order(theta, a, b)
    assert (np.diff(log_determinant(theta, a, b)[order]) <= 0).all()


def test_profiles_are_distributions_and_name_the_corners():
    g = 0.25
    corners = np.array([[g, 1, 1, 1], [g, 1, g, 1], [g, g, 1, 1], [g, g, g, 1]])
    for made in (relative_profile(corners, g, kappa=0.1), difference_profile(corners), difference_profile(corners, g)):
        np.testing.assert_array_equal(made.argmax(1), [0, 1, 2, 3])
        np.testing.assert_allclose(made.sum(1), 1)
    # a give-away: both views suffice, though neither adds to the options
    assert relative_profile(np.ones((1, 4)), g).argmax() == 0
    np.testing.assert_allclose(marginals(product_profile([0.3], [0.6])), [[0.3, 0.6]])


@pytest.mark.parametrize("method", ["min", "ccs", "lsmi"])
def test_parts_of_information_add_up(rng, method):
    p, k = rng.uniform(0.05, 0.95, (40, 4)), rng.integers(2, 6, 40)
    r, u, w, s = decompose(p, k, method, surprisals=tuple(rng.normal(size=(2, 40)))).T
    i = pointwise_information(p, k)
    np.testing.assert_allclose(np.stack([r + u, r + w, r + u + w + s], 1), i[:, 1:])


def test_order_of_items_and_subjects_does_not_matter(main):
    _, responses, prior, d = main
    n, m = len(responses.items), len(responses.subjects)
    items, subjects = np.random.default_rng(0).permutation(n), np.random.default_rng(1).permutation(m)
    turned = responses.take_items(items).take_subjects(subjects)
    other = diagnose(turned, StructuralPrior.from_profile(prior.profile[items]), compare=False)
    assert (other.label == d.label[items]).mean() > 0.99
    np.testing.assert_allclose(other.profile, d.profile[items], atol=0.05)


def test_same_again_and_standardised(main):
    _, responses, prior, d = main
    again = diagnose(responses, prior)
    np.testing.assert_array_equal(again.profile, d.profile)
    np.testing.assert_allclose(d.theta.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(d.theta.std(0), 1)
    q = (1 / (1 + np.exp(-logits(d.theta, d.a, d.b)))).mean(0)
    np.testing.assert_allclose(q, d.q, atol=1e-10)


def test_missing_cells_equal_a_row_left_out(rng):
    pool = simulate_modality(1, "six models", 40)
    gone = np.append(pool.hits, np.full((1, 40, 4), np.nan), axis=0)
    with pytest.warns(UserWarning, match="never asked"):
        wide = ResponseTensor.from_arrays(gone, k=4)
    narrow = ResponseTensor.from_arrays(pool.hits, k=4)
    uniform = (np.full((40, 4), 0.25), np.zeros(40))
    big = make_problem(wide.hits, wide.trials, wide.chance, *uniform)
    small = make_problem(narrow.hits, narrow.trials, narrow.chance, *uniform)
    x = 0.3 * rng.normal(size=small.size)
    y = np.concatenate([x[:24], np.zeros(4), x[24:]])
    f, g = evaluate(small, x)
    f2, g2 = evaluate(big, y)
    assert f2 == pytest.approx(f, rel=1e-12)
    np.testing.assert_allclose(np.delete(g2, range(24, 28)), g, atol=1e-14)


def test_options_differ_between_items(rng):
    pool = simulate_modality(2, "six models", 60)
    k = rng.integers(2, 7, 60)
    d = diagnose(ResponseTensor.from_arrays(pool.hits, k=k), compare=False)
    np.testing.assert_allclose(d.solvability, (d.q[:, 3] - 1 / k) / (1 - 1 / k))
    fine = fit_latent_class(pool.hits, np.ones_like(pool.hits), 1 / k)
    np.testing.assert_allclose(fine.profile.sum(1), 1)


def test_unsolvable_items_are_undetermined():
    pool = simulate_modality(4, items=80)
    hits = pool.hits.copy()
    hits[:, :10] = np.random.default_rng(0).random((12, 10, 4)) < 0.1
    d = diagnose(ResponseTensor.from_arrays(hits, k=4), compare=False)
    assert d.undetermined[:10].mean() > 0.8 > 5 * d.undetermined[10:].mean()
    chosen = select_subset(utility(d.theta, d.a, d.b, 0.25), 0.25)
    assert not set(chosen) & set(range(10))


def test_refusals_are_plain():
    hits = np.ones((3, 5, 4))
    hits[0] = 0
    cases = [
        ({"hits": hits[:1], "k": 4}, "1 subject"),
        ({"hits": np.where(np.arange(4) == 1, np.nan, hits), "k": 4}, "image_only"),
        ({"hits": hits, "k": np.nan}, "options is unknown for 5"),
        ({"hits": hits[:, :, :2], "k": 4}, "shape"),
        ({"hits": 2 * hits, "k": 4}, "exceed"),
        ({"hits": hits, "k": 4, "subjects": ["a", "a", "b"]}, "names"),
    ]
    for given, said in cases:
        with pytest.raises(AuditError, match=said):
            ResponseTensor.from_arrays(given.pop("hits"), **given)
    with pytest.warns(UserWarning, match="3 subjects"):
        few = ResponseTensor.from_arrays(hits, k=4)
    with pytest.raises(AuditError, match="4 items"):
        diagnose(few, StructuralPrior.none(4))
    with pytest.raises(ValueError, match="not identified"):
        diagnose(few, settings=Settings(residual=0.0))
    with pytest.raises(AuditError, match="no run under none, image_only"):
        ResponseTensor.from_pool(Pool.from_hits(np.eye(3, dtype=int), np.eye(3, dtype=int)))


def test_constant_columns_are_warned_about_and_fitted(rng):
    hits = (rng.random((5, 30, 4)) < 0.6).astype(float)
    hits[:, :, 3] = 1
    with pytest.warns(UserWarning, match="under full every answer is right"):
        responses = ResponseTensor.from_arrays(hits, k=4)
    assert np.isfinite(diagnose(responses, compare=False).profile).all()
    with pytest.warns(UserWarning, match="same for every item"):
        flat = StructuralPrior.from_probs(np.full((30, 4), 0.4), 4)
    assert not flat.informative


def test_long_table_counts_draws_and_abstentions():
    rows = [
        {"model": m, "item": i, "condition": c, "hit": 1, "k": 4, "abstained": m == "a" and c == "none"}
        for m in "abcd" for i in "xy" for c in ("none", "image_only", "blind", "full", "full")
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    with pytest.warns(UserWarning, match="every answer"):
        r = ResponseTensor.from_long(table)
    assert r.trials[0, 0].tolist() == [1, 1, 1, 2]
    assert r.hits[0, 0].tolist() == [0, 1, 1, 2]
    with pytest.warns(UserWarning, match="every answer"):
        r = ResponseTensor.from_long(table, abstain="missing")
    assert r.trials[0, 0].tolist() == [0, 1, 1, 2]
    with pytest.raises(AuditError, match="unknown condition 'gray'"):
        ResponseTensor.from_long(table.replace("blind", "gray"))


def test_newcomer_stands_where_the_fit_put_the_same_answers(main):
    _, responses, _, d = main
    found = [score_new_subject(responses.hits[j], d.a, d.b) for j in range(12)]
    assert all(n.converged for n in found)
    assert np.corrcoef([n.theta[2] for n in found], d.theta[:, 2])[0, 1] > 0.95
    one = found[0]
    eta = logits(one.theta, d.a, d.b)
    slope = (((1 / (1 + np.exp(-eta)) - responses.hits[0]) @ GATES) * d.a).sum(0) + one.theta
    np.testing.assert_allclose(slope, 0, atol=1e-5)


def test_bootstrap_knows_which_labels_are_uncertain(main):
    pool, responses, _, d = main
    s = bootstrap_subjects(responses, d, rng=np.random.default_rng(0), draws=6, iterations=8)
    np.testing.assert_allclose(s.shares.sum(1), 1)
    assert (s.low <= s.high).all()
    right = d.label == pool.label
    assert s.label[right].mean() > s.label[~right].mean() + 0.05


def test_labels_as_prior():
    prior = StructuralPrior.from_labels(["R", "V", "", "S"])
    np.testing.assert_array_equal(prior.profile.argmax(1)[[0, 1, 3]], [0, 1, 3])
    assert prior.weight[2] == 0 < prior.weight[0]
    with pytest.raises(AuditError, match="'U'"):
        StructuralPrior.from_labels(["U"])


def test_recovery_of_planted_labels():
    """Floors on the generator: structure and responses together beat responses alone, and noise does not hurt."""
    got = {}
    for regime in ("main", "silent structure"):
        pool = simulate_modality(0, regime, 500)
        d = diagnose(ResponseTensor.from_arrays(pool.hits, k=pool.k), embedded(pool))
        got[regime] = [(p.argmax(1) == pool.label).mean() for p in (d.profile, d.alone)]
    both, alone = got["main"]
    assert both >= 0.79
    assert both >= alone + 0.05
    noisy, bare = got["silent structure"]
    assert noisy >= bare - 0.01


def test_threshold_rounds_move_towards_what_the_pool_shows(main):
    _, responses, prior, d = main
    assert (d.thresholds < 0.5).all()
    problem = make_problem(responses.hits, responses.trials, responses.chance, prior.profile, prior.weight)
    _, once = fit(problem, rounds=1)
    np.testing.assert_array_equal(once.thresholds, 0.5)
