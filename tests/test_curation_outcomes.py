"""Scores, ranks, spread and resolvable pairs: against plain loops, scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from outcome_builders import draws_of, pool_of, rasch
from scipy import stats

from auditlib.curation import scores
from auditlib.curation.clustered import codes, group_means, mean_covariance, score_interval, t_test
from auditlib.curation.ranking import compare_ranks, kendall, ranks, spearman, spread, spread_change
from auditlib.curation.resolvable import compare_resolvable, count_resolvable, resolvable_pairs
from auditlib.errors import AuditError
from auditlib.stats.rates import macro_interval, rate_interval

SOURCE = np.array(["b", "a", "a", "b", "c", "a", "c", "b"], object)
CAPABILITY = np.array(["x", "x", "y", "y", "y", "x", "z", "z"], object)


def by_loops(rate, source, capability):
    """Every average by its definition, one model after the other."""
    out = {name: [] for name in scores.AVERAGES}
    for column in rate.T:
        out["item mean"].append(np.mean(column))
        out["benchmark average"].append(np.mean([column[source == s].mean() for s in sorted(set(source))]))
        out["macro average"].append(np.mean([column[capability == c].mean() for c in sorted(set(capability))]))
        nested = []
        for c in sorted(set(capability)):
            inside = sorted(set(source[capability == c]))
            nested.append(np.mean([column[(capability == c) & (source == s)].mean() for s in inside]))
        out["macro average (source means)"].append(np.mean(nested))
    return out


def test_averages_are_their_definitions(rng):
    rate = rng.binomial(8, 0.5, (8, 4)) / 8
    found = scores.averages(rate, SOURCE, CAPABILITY)
    for name, wanted in by_loops(rate, SOURCE, CAPABILITY).items():
        np.testing.assert_allclose(found.of(name), wanted, atol=1e-15, err_msg=name)


def test_averages_without_capability_or_draws():
    rate = scores.rates(draws_of([[4, 8], [0, 0], [8, 0]], np.array([[8, 8], [8, 8], [8, 0]])))
    assert np.isnan(rate[2, 1])
    found = scores.averages(rate, ["s", "s", "t"])
    np.testing.assert_allclose(found.item, [0.5, 0.5])
    assert found.benchmark[0] == 0.625
    # the second model has no draw of source t, so its average over sources does not exist
    assert np.isnan(found.benchmark[1])
    assert np.isnan(found.macro).all()


def test_covariance_of_one_stratum_is_that_of_means(rng):
    x = rng.normal(size=(30, 3))
    fit = mean_covariance(x)
    np.testing.assert_allclose(fit.cov, np.cov(x.T) / 30, rtol=1e-12)
    assert (fit.df, fit.units) == (29, 30)


def test_clustered_error_is_statsmodels(rng):
    sm = pytest.importorskip("statsmodels.api")
    x, cluster = rng.normal(size=60), rng.integers(0, 17, 60)
    fit = mean_covariance(x[:, None], cluster=cluster)
    ols = sm.OLS(x, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": cluster, "df_correction": True})
    # statsmodels multiplies by (n - 1) / (n - k) too, which is 1 for a mean
    assert fit.cov[0, 0] == pytest.approx(ols.bse[0] ** 2, rel=1e-10)


def test_stratified_variance_by_hand(rng):
    x = rng.normal(size=(20, 2))
    stratum = np.repeat(["p", "q"], [8, 12])
    fit = mean_covariance(x, stratum, weights=[0.3, 0.7])
    parts = [x[:8], x[8:]]
    wanted = 0.3**2 * parts[0].var(axis=0, ddof=1) / 8 + 0.7**2 * parts[1].var(axis=0, ddof=1) / 12
    np.testing.assert_allclose(np.diag(fit.cov), wanted, rtol=1e-12)
    np.testing.assert_allclose(fit.mean, 0.3 * parts[0].mean(axis=0) + 0.7 * parts[1].mean(axis=0))


def test_stratum_of_one_item_is_counted_and_widens(rng):
    x = rng.normal(size=(11, 1))
    fit = mean_covariance(x, ["p"] * 10 + ["q"])
    assert fit.lonely == 1
    assert fit.cov[0, 0] > x[:10].var(ddof=1) / 10 / 4


def test_score_intervals_are_those_of_the_audit(rng):
    rate = rng.binomial(8, 0.6, 50) / 8
    cluster, stratum = rng.integers(0, 20, 50), np.repeat(["p", "q"], 25)
    for label, other in ((None, rate_interval(rate * 8, np.full(50, 8), cluster)),
                         (stratum, macro_interval(rate * 8, np.full(50, 8), stratum, cluster))):  # fmt: skip
        fit = mean_covariance(rate[:, None], label, cluster)
        low, high = score_interval(fit.mean, np.diag(fit.cov), fit.df, fit.units, 400)
        np.testing.assert_allclose([low[0], high[0]], [other.low, other.high], rtol=1e-9)


def test_score_table_holds_every_average(rng):
    hits = rng.binomial(8, 0.6, (8, 3))
    pool = pool_of(hits, source=SOURCE, capability=CAPABILITY, evaluated=[2, 0])
    kept = np.array([1, 1, 0, 1, 1, 1, 0, 1], bool)
    table = scores.score_table(pool, kept)
    wanted = by_loops(hits[kept][:, [2, 0]] / 8, SOURCE[kept], CAPABILITY[kept])
    for name, values in wanted.items():
        rows = table[(table["set"] == "curated") & (table["name"] == name)]
        assert rows["model"].tolist() == ["m2", "m0"]
        np.testing.assert_allclose(rows["score"], values, atol=1e-12)
    one = table.query("set == 'raw' and kind == 'source' and name == 'a' and model == 'm0'").iloc[0]
    assert one["score"] == pytest.approx(hits[SOURCE == "a", 0].sum() / 24)
    assert (one["items"], one["draws"]) == (3, 24)
    known = table.dropna(subset="low")
    assert ((known["low"] <= known["score"]) & (known["score"] <= known["high"])).all()


@pytest.mark.parametrize("kept", [np.ones(7, bool), np.ones(8, int), np.zeros(8, bool)])
def test_unfit_kept_items_are_refused(kept, rng):
    with pytest.raises(AuditError):
        scores.score_table(pool_of(rng.binomial(8, 0.5, (8, 2))), kept)


def test_item_clusters_leave_single_items_alone():
    items = pd.DataFrame({"item": ["a", "b", "c", "d"], "image_key": ["p", "p", None, ""]})
    label = scores.item_clusters(items)
    assert len(set(label)) == 3 and label[0] == label[1]
    assert scores.item_clusters(items.assign(image_key=["p", "q", "r", "s"])) is None


def test_rank_measures_are_scipys(rng):
    for _ in range(20):
        a, b = rng.integers(0, 6, (2, 9)) / 6
        np.testing.assert_allclose(ranks(a), stats.rankdata(-a))
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
        assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)
    many = rng.normal(size=(5, 9))
    np.testing.assert_allclose(spearman(many, many[0]), [stats.spearmanr(x, many[0]).statistic for x in many])
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3])) and np.isnan(kendall([1, 1, 1], [1, 2, 3]))


def test_sums_in_another_order_are_tied():
    a = (0.1 + 0.2) + 0.3
    assert a != 0.1 + (0.2 + 0.3)
    assert ranks([a, 0.1 + (0.2 + 0.3), 0.0]).tolist() == [1.5, 1.5, 3.0]


def test_rank_shifts():
    raw, curated = [0.9, 0.8, 0.7, 0.6, np.nan], [0.5, 0.3, 0.1, 0.4, 0.2]
    found = compare_ranks(raw, curated, list("abcde"))
    assert dict(zip(found.table["model"], found.table["shift"], strict=True)) == {"a": 0, "b": 1, "c": 1, "d": -2}
    assert (found.within_one, found.within_two, found.models, found.left_out) == (3, 4, 4, ("e",))
    assert found.top_unchanged == 1
    assert compare_ranks([3, 2, 1], [6, 5, 4], list("abc")).top_unchanged == 3
    assert compare_ranks([2, 2, 1], [6, 6, 4], list("abc")).top_unchanged == 0
    with pytest.raises(AuditError, match="fewer than two"):
        compare_ranks([1.0, np.nan], [np.nan, 1.0], ["a", "b"])


def test_cv_is_taken_apart_exactly(rng):
    for _ in range(200):
        raw = rng.uniform(0.2, 0.9, 27)
        change = spread_change(raw, raw * rng.uniform(0.4, 1) + rng.normal(0, 0.05, 27))
        assert abs(change.cv_ratio - change.sd_ratio / change.mean_ratio) < 1e-12
        assert change.from_sd + change.from_mean == pytest.approx(1)
        assert change.raw.cv == pytest.approx(stats.variation(raw, ddof=1), abs=1e-14)


def test_most_of_a_higher_cv_is_a_lower_mean():
    # MMGist: CV up by 78%, the gap of the ends by 20%, means of about 63.5 and 43.2 by its drop of 20.3 points
    raw = 0.635 + 0.09525 * stats.zscore(np.arange(27), ddof=1)
    curated = 0.432 + 0.09525 * 1.21 * stats.zscore(np.arange(27), ddof=1)
    change = spread_change(raw, curated)
    assert change.cv_ratio == pytest.approx(1.78, abs=0.005)
    assert change.gap_ratio == pytest.approx(1.21)
    assert change.drop == pytest.approx(0.203)
    assert change.from_mean > 0.6


def test_spread_of_few_models_shares_no_end():
    found = spread([0.1, 0.2, 0.9, np.nan])
    assert (found.models, found.ends) == (3, 1)
    assert found.gap == pytest.approx(0.8)
    assert spread(np.arange(12) / 10).gap == pytest.approx(0.7)


def test_pair_tests_are_paired_t_tests(rng):
    x = rasch(rng, 80, 5) / 8
    found = resolvable_pairs(x, list("abcde"), calls=80 * 5 * 8)
    p = {}
    for _, row in found.table.iterrows():
        i, j = "abcde".index(row["a"]), "abcde".index(row["b"])
        other = stats.ttest_rel(x[:, i], x[:, j])
        assert row["p"] == pytest.approx(other.pvalue, rel=1e-9)
        interval = other.confidence_interval()
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
        assert row["difference"] >= 0
        p[row["a"], row["b"]] = row["p"]
    q = stats.false_discovery_control(list(p.values()))
    assert found.resolvable == (q <= 0.05).sum() == count_resolvable(mean_covariance(x))
    assert found.per_1000_calls == pytest.approx(found.resolvable / 3.2)


def test_clusters_resolve_fewer_pairs(rng):
    x = np.repeat(rasch(rng, 40, 6, spread=0.3) / 8, 5, axis=0)
    alone, together = (resolvable_pairs(x, np.arange(6), cluster=c) for c in (None, np.repeat(np.arange(40), 5)))
    assert together.units == 40
    assert together.resolvable < alone.resolvable
    # five copies of each item are worth one
    single = resolvable_pairs(x[::5], np.arange(6))
    np.testing.assert_allclose(together.table["p"], single.table["p"], rtol=1e-9)


def test_pair_without_spread_uses_the_sign_test():
    assert t_test(0.5, 0.0, 5, 6) == 2.0**-5
    assert t_test(0.0, 0.0, 5, 6) == 1.0
    same = resolvable_pairs(np.array([[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]), ["a", "b"])
    assert same.table["p"].tolist() == [1.0] and same.resolvable == 0


def test_no_true_difference_is_seldom_resolved():
    rng, found = np.random.default_rng(5), 0
    for _ in range(200):
        hard = rng.beta(1, 1, (120, 1))
        found += (
            resolvable_pairs(
                rng.binomial(4, hard, (120, 4)) / 4, np.arange(4), stratum=SOURCE[:4].repeat(30)
            ).resolvable
            > 0
        )
    # P(>= 20 of 200 | 5%) is 0.3%
    assert found < 20


def test_pairs_resolved_on_one_set_only():
    raw = resolvable_pairs(np.array([[1, 0, 0.5]] * 10) + np.arange(10)[:, None] * 1e-3, list("abc"), calls=300)
    turned = resolvable_pairs(np.array([[0, 1, 0.5]] * 10) + np.arange(10)[:, None] * 1e-3, list("abc"), calls=100)
    found = compare_resolvable(raw, turned)
    assert found == {"raw": 3, "curated": 3, "both": 0, "reversed": 3, "lost": 0, "gained": 0,
                     "per_call_ratio": pytest.approx(3)}  # fmt: skip


def test_model_without_a_source_is_not_tested():
    x = np.array([[1, 0, np.nan], [0, 1, np.nan], [1, 0, 1], [0, 0, 1.0]])
    found = resolvable_pairs(x, list("abc"), stratum=["s", "s", "t", "t"])
    assert found.pairs == 1 and "2 pairs not tested" in found.note
    with pytest.raises(AuditError, match="fewer than two models"):
        resolvable_pairs(x[:, :1], ["a"])


def test_missing_draws_compare_the_reported_averages():
    x = np.array([[1, 0], [0, np.nan], [1, 1], [1, 0], [0, 0.0]])
    found = resolvable_pairs(x, list("ab"))
    assert found.table["difference"].iloc[0] == pytest.approx(0.6 - 0.25)


def test_group_means_skip_missing():
    code, names = codes(["b", "a", "b"], 3)
    found = group_means(np.array([[1.0, np.nan], [0.5, 0.5], [0.0, np.nan]]), code, 2)
    assert names.tolist() == ["a", "b"]
    np.testing.assert_array_equal(found, [[0.5, 0.5], [0.5, np.nan]])
