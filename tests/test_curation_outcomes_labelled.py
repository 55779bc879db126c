"""Error classes and effort levels from labelled files: statsmodels, scipy, exact counts, damaged files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from outcome_builders import pool_of
from scipy import stats

from auditlib.curation.data import CurationPool, Draws
from auditlib.curation.effort import MACRO, effort_changes, read_effort, sign_test
from auditlib.curation.error_labels import (
    ERROR_CLASSES,
    _allocate,
    read_error_labels,
    sample_wrong,
    wrong_population,
)
from auditlib.curation.errors import audited_shares, error_classes, label_agreement
from auditlib.errors import AuditError

PUBLISHED = {
    "reasoning": 0.415,
    "perception": 0.228,
    "knowledge": 0.179,
    "misunderstanding": 0.103,
    "calculation": 0.075,
}


def labels_of(rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["item", "draw", "labeller", "label"])


def one_each(counts: dict[str, int], labeller="ann") -> pd.DataFrame:
    names = [c for c, n in counts.items() for _ in range(n)]
    return labels_of([(f"i{k}", 1, labeller, c) for k, c in enumerate(names)])


# sampling


def test_wrong_answers_exclude_unanswered_draws():
    pool = pool_of([[8], [3], [0]], capability=list("xxy"))
    full = Draws(pool.full.hits, pool.full.trials, np.array([[0], [2], [8]]))
    table = wrong_population(CurationPool(**{**vars(pool), "full": full}), "m0").set_index("capability")
    assert table.loc["x"].tolist() == [1, 16, 3, 2]
    assert table.loc["y"].tolist() == [0, 8, 0, 8]
    with pytest.raises(AuditError, match="no model 'm9'"):
        wrong_population(pool, "m9")


@pytest.mark.parametrize(("allocation", "quota"), [("equal", {"x": 30, "y": 30, "z": 4}),
                                                   ("proportional", {"x": 48, "y": 16, "z": 0})])  # fmt: skip
def test_sample_is_stratified(allocation, quota, rng):
    capability = np.repeat(["x", "y", "z"], [300, 100, 1])
    pool = pool_of(np.full((401, 1), 4), capability=capability)
    sample = sample_wrong(pool, "m0", rng=rng, n=64, allocation=allocation)
    assert sample["capability"].value_counts().reindex(list("xyz"), fill_value=0).to_dict() == quota
    assert not sample.duplicated(["item", "draw"]).any() and sample["draw"].between(1, 4).all()
    total = sample.groupby("capability")["weight"].sum()
    assert total["x"] == pytest.approx(1200) and total["y"] == pytest.approx(400)


@pytest.mark.parametrize("allocation", ["equal", "proportional"])
def test_allocation_fits_and_adds_up(allocation, rng):
    for _ in range(300):
        size = rng.integers(1, 60, rng.integers(1, 8))
        n = int(rng.integers(1, 150))
        quota = _allocate(size, n, allocation)
        assert quota.sum() == min(n, size.sum()) and (quota <= size).all() and (quota >= 0).all()
        if allocation == "equal":
            # what is not exhausted differs by one at most, and no exhausted stratum is larger
            free = quota[quota < size]
            assert not len(free) or (np.ptp(free) <= 1 and quota.max() <= free.max() + 1)
        else:
            assert (np.abs(quota - min(n, size.sum()) * size / size.sum()) <= 1).all()


def test_small_pool_gives_all_its_wrong_answers(rng):
    sample = sample_wrong(pool_of([[6], [8], [7]]), "m0", rng=rng)
    assert list(zip(sample["item"], sample["draw"], strict=True)) == [("i0", 1), ("i0", 2), ("i2", 1)]
    assert (sample["weight"] == 1).all()
    with pytest.raises(AuditError, match="m0 has no wrong answer"):
        sample_wrong(pool_of([[8]]), "m0", rng=rng)
    with pytest.raises(AuditError, match="allocation is 'neyman'"):
        sample_wrong(pool_of([[6]]), "m0", rng=rng, allocation="neyman")


# shares


def test_goodman_intervals_are_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    counts = dict(zip(ERROR_CLASSES, (41, 91, 72, 166, 30), strict=True))
    found = error_classes(one_each(counts)).table
    wanted = proportion.multinomial_proportions_confint(np.array(list(counts.values())), method="goodman")
    np.testing.assert_allclose(found[["low", "high"]], wanted, rtol=1e-9)
    np.testing.assert_allclose(found["share"], np.array(list(counts.values())) / 400)
    assert found["label"].tolist() == list(ERROR_CLASSES)


def test_bonferroni_intervals_are_exact_binomial():
    counts = dict(zip(ERROR_CLASSES, (0, 10, 20, 50, 20), strict=True))
    found = error_classes(one_each(counts), interval="bonferroni").table
    for k, (_, row) in zip(counts.values(), found.iterrows(), strict=True):
        wanted = stats.binomtest(k, 100).proportion_ci(0.99, method="exact")
        assert (row["low"], row["high"]) == pytest.approx((wanted.low, wanted.high))
    with pytest.raises(AuditError, match="interval is 'wald'"):
        error_classes(one_each(counts), interval="wald")


@pytest.mark.parametrize("interval", ["goodman", "bonferroni"])
def test_intervals_hold_jointly(interval):
    rng, p, inside = np.random.default_rng(8), np.array([PUBLISHED[c] for c in ERROR_CLASSES]), 0
    for _ in range(60):
        counts = dict(zip(ERROR_CLASSES, rng.multinomial(200, p), strict=True))
        table = error_classes(one_each(counts), interval=interval).table
        inside += bool(((table["low"] <= p) & (p <= table["high"])).all())
    # P(<= 50 of 60 | 95%) is below 0.1%
    assert inside > 50


def test_weights_undo_the_stratified_sample(rng):
    # x: 900 wrong answers, all reasoning; y: 100, all calculation; 20 of each are labelled
    sample = pd.DataFrame({"item": [f"i{k}" for k in range(40)], "draw": 1, "capability": ["x"] * 20 + ["y"] * 20,
                           "population": [900] * 20 + [100] * 20})  # fmt: skip
    labels = labels_of([(f"i{k}", 1, "ann", "reasoning" if k < 20 else "calculation") for k in range(40)])
    table = error_classes(labels, sample).table.set_index(["capability", "label"])
    assert table.loc[("all", "reasoning"), ["share", "unweighted"]].tolist() == pytest.approx([0.9, 0.5])
    assert table.loc[("y", "calculation"), "share"] == 1
    # one answer of y less: its weight goes to the others of y
    found = error_classes(labels.iloc[:-1], sample)
    assert found.unlabelled == 1 and found.answers == 39
    assert found.table.set_index(["capability", "label"]).loc[("all", "calculation"), "share"] == pytest.approx(0.1)
    with pytest.raises(AuditError, match="item 'i99', draw 1, is labelled but not in the sample"):
        error_classes(pd.concat([labels, labels_of([("i99", 1, "ann", "reasoning")])]), sample)


def test_weighted_intervals_cover():
    rng, inside = np.random.default_rng(4), 0
    p = {"x": np.array([0.1, 0.2, 0.2, 0.4, 0.1]), "y": np.array([0.3, 0.3, 0.1, 0.1, 0.2])}
    truth = 0.8 * p["x"] + 0.2 * p["y"]
    sample = pd.DataFrame({"item": [f"i{k}" for k in range(200)], "draw": 1, "capability": np.repeat(["x", "y"], 100),
                           "population": np.repeat([800, 200], 100)})  # fmt: skip
    for _ in range(60):
        names = np.concatenate([rng.choice(ERROR_CLASSES, 100, p=p[c]) for c in "xy"])
        table = error_classes(labels_of([(f"i{k}", 1, "a", c) for k, c in enumerate(names)]), sample).table
        table = table[table["capability"] == "all"]
        inside += bool(((table["low"] <= truth) & (truth <= table["high"])).all())
    assert inside > 50


def test_conflicts_are_split_or_settled():
    labels = labels_of([("i0", 1, "ann", "reasoning"), ("i0", 1, "bob", "knowledge"), ("i1", 1, "ann", "reasoning"),
                        ("i1", 1, "bob", "perception"), ("i1", 1, "final", "perception")])  # fmt: skip
    found = error_classes(labels)
    share = found.table.set_index("label")["share"]
    assert found.conflicts == 1
    assert share[["reasoning", "knowledge", "perception", "calculation"]].tolist() == [0.25, 0.25, 0.5, 0]


def test_answers_of_one_item_are_no_independent_evidence():
    rows = [(f"i{k}", d, "a", "reasoning" if k % 2 else "perception") for k in range(30) for d in range(1, 6)]
    repeated = error_classes(labels_of(rows)).table.set_index("label").loc["reasoning"]
    single = error_classes(labels_of([r for r in rows if r[1] == 1])).table.set_index("label").loc["reasoning"]
    assert repeated["high"] - repeated["low"] == pytest.approx(single["high"] - single["low"], rel=0.05)


def test_kappa_is_statsmodels(rng):
    inter = pytest.importorskip("statsmodels.stats.inter_rater")
    a = rng.choice(ERROR_CLASSES, 100)
    b = np.where(rng.random(100) < 0.7, a, rng.choice(ERROR_CLASSES, 100))
    labels = pd.concat([labels_of([(f"i{k}", 1, who, c) for k, c in enumerate(x)]) for who, x in (("a", a), ("b", b))])
    row = label_agreement(labels, rng=rng).iloc[0]
    table, _ = inter.to_table(np.column_stack([[ERROR_CLASSES.index(v) for v in x] for x in (a, b)]), 5)
    assert row["kappa"] == pytest.approx(inter.cohens_kappa(table).kappa)
    assert row["low"] < row["kappa"] < row["high"] and row["answers"] == 100


def test_audit_corrects_the_judge(rng):
    truth = rng.choice(ERROR_CLASSES, 400, p=[0.1, 0.2, 0.2, 0.4, 0.1])
    # the judge calls half of the reasoning errors knowledge
    judged = np.where((truth == "reasoning") & (rng.random(400) < 0.5), "knowledge", truth)
    labels = pd.concat([labels_of([(f"i{k}", 1, "judge", c) for k, c in enumerate(judged)]),
                        labels_of([(f"i{k}", 1, "ann", truth[k]) for k in rng.permutation(400)[:100]])])  # fmt: skip
    table = audited_shares(labels, "judge").set_index("label")
    row = table.loc["reasoning"]
    assert row["audited"] == 100
    assert row["judge"] == pytest.approx((judged == "reasoning").mean())
    assert row["correction"] > 0.1 and row["low"] < (truth == "reasoning").mean() < row["high"]
    assert table["share"].sum() == pytest.approx(1)
    # a full audit is the people's own count
    both = pd.concat([labels[labels["labeller"] == "judge"], labels_of([(f"i{k}", 1, "ann", c) for k, c in
                                                                        enumerate(truth)])])  # fmt: skip
    np.testing.assert_allclose(audited_shares(both, "judge")["share"], [(truth == c).mean() for c in ERROR_CLASSES])
    with pytest.raises(AuditError, match="nobody named 'x'"):
        audited_shares(labels, "x")
    with pytest.raises(AuditError, match="fewer than two answers"):
        audited_shares(labels[labels["labeller"] == "judge"], "judge")


# reading labels


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_labels_are_read_in_any_usual_spelling(tmp_path):
    path = write(tmp_path / "l.csv", "Item, Labeller ,LABEL,draw,note\n 1.0,ann, Reasoning error ,2,x\n"
                                     "2,Final,perception,1,\n3,ann,,1,later\n")  # fmt: skip
    table = read_error_labels(path, items=["1", "2", "3"])
    assert table.to_dict("list") == {"item": ["1", "2"], "draw": [2, 1], "labeller": ["ann", "final"],
                                     "label": ["reasoning", "perception"]}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("item,label\n1,reasoning\n", r"row 1: there is no column 'labeller'"),
        (
            "item,labeller,label\n1,a,resoning\n",
            r"row 2: 'resoning' is no error class. Mend: did you mean 'reasoning'\?",
        ),
        ("item,labeller,label\n1,a,error\n", "'error' is no error class"),
        ("item,labeller,label\n1,a,reasoning\n1,a,knowledge\n", r"row 3: 'a' labels item '1' a second time"),
        ("item,labeller,label\n9,a,reasoning\n", "item '9' is none of the 2 items"),
        ("item,labeller,label\n1,,reasoning\n", "a label without labeller"),
        ("item,labeller,label\n,a,reasoning\n", "row 2: there is no item"),
        ("item,labeller,label\n1,a,\n", "no row has a label"),
        ("item,labeller,label,draw\n1,a,reasoning,0\n", "draw of item '1' is '0'"),
        ("item,labeller,label,draw\n1,a,reasoning,1.5\n2,a,reasoning,x\n", "and 1 more such row"),
    ],
)
def test_damaged_label_files(tmp_path, text, says):
    path = write(tmp_path / "labels.csv", text)
    with pytest.raises(AuditError, match=says) as error:
        read_error_labels(path, items=["1", "2"])
    assert "labels.csv" in str(error.value)


# effort


def runs_of(low, high, *, capability=None, tokens=(100.0, 300.0)) -> pd.DataFrame:
    """Two levels of several models on the same items, from arrays (items, models) of 0 and 1."""
    rows = []
    for name, x, cost in (("low", low, tokens[0]), ("high", high, tokens[1])):
        for (i, j), v in np.ndenumerate(np.asarray(x, float)):
            if not np.isnan(v):
                rows.append({"item": f"i{i}", "model": f"m{j}", "level": name, "hits": v, "trials": 1, "tokens": cost})
    out = pd.DataFrame(rows)
    return (
        out
        if capability is None
        else out.assign(capability=out["item"].str[1:].astype(int).map(list(capability).__getitem__))
    )


def test_one_model_is_a_paired_t_test(rng):
    low, high = rng.integers(0, 2, (60, 1)), rng.integers(0, 2, (60, 1))
    row = effort_changes(runs_of(low, high)).changes.iloc[0]
    wanted = stats.ttest_rel(high[:, 0], low[:, 0])
    ends = wanted.confidence_interval()
    assert row["p"] == pytest.approx(wanted.pvalue)
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))
    inner = wanted.confidence_interval(0.90)
    assert row["bound"] == pytest.approx(max(abs(inner.low), abs(inner.high)))
    assert row["relative"] == pytest.approx(high.mean() / low.mean() - 1)


def test_absolute_relative_and_macro_changes():
    low = np.array([[1], [0], [0], [0], [1], [1], [1], [0]])
    high = np.array([[1], [1], [0], [0], [1], [1], [1], [1]])
    found = effort_changes(runs_of(low, high, capability="xxxxyyyy")).changes.set_index("capability")
    # x: 1/4 -> 2/4, y: 3/4 -> 4/4; relative +100% and +33%
    assert found["change"].tolist() == pytest.approx([0.25] * 4)
    assert found.loc[["x", "y"], "relative"].tolist() == pytest.approx([1, 1 / 3])
    assert found.loc[MACRO, "relative"] == pytest.approx(0.5)
    assert found.loc[MACRO, "relative_mean"] == pytest.approx(2 / 3)
    assert found.loc[["x", "y"], "relative_mean"].isna().all()


def test_relative_interval_covers():
    rng, inside = np.random.default_rng(6), 0
    for _ in range(60):
        low = rng.random((200, 1)) < 0.4
        high = low | (rng.random((200, 1)) < 1 / 6)
        row = effort_changes(runs_of(low, high)).changes.iloc[0]
        inside += row["relative_low"] <= 0.25 <= row["relative_high"]
    # P(<= 50 of 60 | 95%) is below 0.1%
    assert inside > 50


def test_holm_over_capabilities_and_the_sign_test(rng):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    low = rng.integers(0, 2, (140, 5))
    high = np.where(rng.random((140, 5)) < 0.15, 1, low)
    found = effort_changes(runs_of(low, high, capability=np.repeat(list("abcdefg"), 20))).changes
    own = found[found["q"].notna()]
    assert own["capability"].tolist() == list("abcdefg")
    np.testing.assert_allclose(own["q"], multitest.multipletests(own["p"], method="holm")[1])
    for _, row in found.iterrows():
        n = row["up"] + row["down"]
        if n:
            assert row["sign_p"] == pytest.approx(stats.binomtest(int(row["up"]), int(n)).pvalue)
    # five models cannot give less than 1/16
    assert found["sign_p"].min() >= 0.0625
    assert sign_test([0.0, 0.0])[:2] == (0, 0) and np.isnan(sign_test([0.0])[2])


def test_flat_needs_evidence(rng):
    same = rng.integers(0, 2, (40, 3))
    assert effort_changes(runs_of(same, same)).changes.iloc[-1]["flat"]
    noisy = effort_changes(runs_of(same, 1 - same)).changes.iloc[-1]
    # no significant change, and nothing near flat either
    assert noisy["p"] > 0.01 and not noisy["flat"]
    big = rng.integers(0, 2, (20_000, 1))
    moved = np.where(rng.random(big.shape) < 0.005, 1 - big, big)
    row = effort_changes(runs_of(big, moved)).changes.iloc[-1]
    assert row["flat"] and row["bound"] < 0.02


def test_clusters_and_repeats_add_no_items(rng):
    low, high = rng.integers(0, 2, (20, 2)), rng.integers(0, 2, (20, 2))
    single = effort_changes(runs_of(low, high)).changes.iloc[0]
    copied = runs_of(np.repeat(low, 4, axis=0), np.repeat(high, 4, axis=0))
    group = {f"i{k}": str(k // 4) for k in range(80)}
    assert effort_changes(copied, cluster=group).changes.iloc[0]["p"] == pytest.approx(single["p"])
    more = runs_of(low, high).assign(hits=lambda t: t["hits"] * 8, trials=8)
    assert effort_changes(more).changes.iloc[0]["p"] == pytest.approx(single["p"])


def test_unpaired_items_do_not_count():
    low, high = np.array([[1, 0], [0, np.nan], [1, 1.0]]), np.array([[0, 1], [np.nan, 1], [1, 1.0]])
    found = effort_changes(runs_of(low, high))
    assert found.unpaired[["paired", "unpaired"]].to_numpy().tolist() == [[2, 1], [2, 1]]
    own = found.models.set_index("model")
    assert own["change"].tolist() == [-0.5, 0.5] and own["items"].tolist() == [2, 2]
    assert found.changes.iloc[0]["change"] == 0 and found.changes.iloc[0]["items"] == 2


def test_tokens_by_level():
    runs = runs_of(np.ones((4, 1)), np.ones((4, 1)), capability="xxyy")
    runs.loc[0, "tokens"] = np.nan
    table = effort_changes(runs).tokens.set_index(["capability", "level"])
    assert table.loc[("all", "high"), "ratio"] == 3
    assert table.loc[("x", "low"), ["calls", "known", "tokens"]].tolist() == [1, 0.5, 100]


def test_effort_files(tmp_path):
    path = write(tmp_path / "e.csv", "item,model,level,sample,correct,tokens,capability\n1,a,Low,0,1,50,x\n"
                                     "1,a,low,1,0,70,x\n1,a,high,0,1,,x\n"
                                     "2,a,low,0,0.5,10,y\n2,a,high,0,1,20,y\n")  # fmt: skip
    runs = read_effort(path)
    first = runs.iloc[0]
    assert (first["hits"], first["trials"], first["tokens"]) == (1, 2, 120)
    assert np.isnan(runs[runs["level"] == "high"].iloc[0]["tokens"])
    assert effort_changes(runs).changes.set_index("capability")["change"].to_dict() == {
        "x": 0.5, "y": 0.5, "macro average": 0.5, "item mean": 0.5}  # fmt: skip
    counted = write(tmp_path / "c.csv", "item,model,level,hits,trials\n1,a,low,3,8\n1,a,high,5,8\n")
    assert effort_changes(read_effort(counted)).changes["change"].tolist() == [0.25]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("item,model,level\n1,a,low\n", "row 1: there is no column 'correct'"),
        ("item,model,level,correct\n1,a,lw,1\n", "row 2: 'lw' is no effort level. Mend: did you mean 'low'"),
        ("item,model,level,correct\n1,a,low,2\n", "correct of item '1' is '2'. Mend: write a number from 0 to 1"),
        ("item,model,level,correct\n1,a,low,\n", "correct of item '1' is ''"),
        ("item,model,level,correct\n1,a,low,1\n1,a,low,0\n", "row 3: item '1' of a at level low is given a second"),
        ("item,model,level,hits,trials\n1,a,low,9,8\n", "item '1' has more hits than trials"),
        ("item,model,level,correct,capability\n1,a,low,1,x\n1,a,high,1,y\n", "item '1' has two entries under capab"),
        ("item,model,level,correct,tokens\n1,a,low,1,many\n", "tokens of item '1' is 'many'"),
        ("item,model,level,correct\n1,,low,1\n", "there is no model"),
    ],
)  # fmt: skip
def test_damaged_effort_files(tmp_path, text, says):
    with pytest.raises(AuditError, match=says):
        read_effort(write(tmp_path / "effort.csv", text))


def test_levels_that_cannot_be_compared():
    runs = runs_of(np.ones((2, 1)), np.ones((2, 1)))
    with pytest.raises(AuditError, match="runs at 1 effort level"):
        effort_changes(runs[runs["level"] == "low"])
    apart = pd.concat([runs[(runs["level"] == "low") & (runs["item"] == "i0")],
                       runs[(runs["level"] == "high") & (runs["item"] == "i1")]])  # fmt: skip
    with pytest.raises(AuditError, match="no model answered the same item"):
        effort_changes(apart)
    with pytest.raises(AuditError, match="2 items of the effort runs have no capability"):
        effort_changes(runs, capability={})
