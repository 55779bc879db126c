"""The synthetic 18-source pool, tables of answer counts, planted defects and calibrated rules.

Oracles: the numbers printed in the MMGist paper, counts made from the table of answers with pandas alone, brute force.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from auditlib.curation import calibration
from auditlib.curation.adjudication_decisions import decide
from auditlib.curation.calibration import calibrate, measure
from auditlib.curation.data import NO_ANSWER
from auditlib.curation.funnel import LABELS, CurationSettings, funnel
from auditlib.curation.reading import curation_pool
from auditlib.curation.rules import RuleSettings
from auditlib.curation.votes import read_votes
from auditlib.errors import AuditError
from auditlib.params import check_params
from auditlib.reading import read_pool
from auditlib.synth import embedded
from auditlib.synth.curated import curated
from auditlib.synth.curated_plan import CLASSES, KEPT_SCORES, full_plan, model_table, scaled_plan
from auditlib.synth.plant import plant

#: printed in the paper
PUBLISHED = {"items": 23250, "after_ablation": 13785, "after_saturation": 8831, "recalled": 5477, "confirmed": 1569,
             "kept": 7262, "above_90": 11555, "zero_correct": 695, "zero_confirmed": 193}  # fmt: skip
SMALL = {"items": 1800, "after_ablation": 1067, "after_saturation": 684, "recalled": 424, "confirmed": 121,
         "kept": 563, "above_90": 894, "zero_correct": 54, "zero_confirmed": 15}  # fmt: skip


@cache
def read(name, outputs):
    params = check_params({"pool": name, "benchmark": "MMGist", "data": {"embedded": name}}, outputs / "p.yaml")
    return read_pool(params, outputs=outputs)


@cache
def curated_pool(name, outputs):
    return curation_pool(read(name, outputs))


def saved(name, what, outputs):
    return pd.read_csv(embedded.companion(name, what, outputs), keep_default_na=False, dtype=str)


def outcome(readings):
    """Two readers agree, or the third decides."""
    return readings["reader_1"].where(readings["reader_1"] == readings["reader_2"], readings["reader_3"])


@cache
def by_hand(name, outputs):
    """Stage decisions and rates from the long table alone."""
    pool = read(name, outputs)
    t = pool.answer_counts
    t = t.assign(draws=t["odd"] + t["even"], item=t["item"].astype(str), model=t["model"].astype(str))
    t["right"] = t["draws"] * t["correct"]
    panel = pool.models.loc[pool.models["role"].str.contains("panel"), "model"]
    order = pool.items["item"]
    blind = t[t["condition"].eq("blind")].groupby("item")[["right", "draws"]].sum().reindex(order)
    full = (
        t[t["condition"].eq("full") & t["model"].isin(panel)].groupby("item")[["right", "draws"]].sum().reindex(order)
    )
    assert blind["draws"].unique().tolist() == [40] and full["draws"].unique().tolist() == [96]
    binary = pool.items["k"].eq(2).fillna(False).to_numpy(bool)
    gone = np.where(binary, blind["right"] > 32, blind["right"] > 20)
    return pd.DataFrame({"gone": gone, "solved": (full["right"] > 86.4).to_numpy(),
                         "zero": full["right"].eq(0).to_numpy(), "text": (blind["right"] / 40).to_numpy(),
                         "source": pool.items["source"].to_numpy()})  # fmt: skip


@pytest.mark.parametrize(("name", "chain"), [("mmgist_small", SMALL), ("mmgist_synthetic", PUBLISHED)])
def test_chain_is_exact(name, chain, embedded_outputs):
    pool = read(name, embedded_outputs)
    hand, truth = by_hand(name, embedded_outputs), saved(name, "truth", embedded_outputs)
    assert truth["item"].tolist() == pool.items["item"].tolist()
    confirmed = truth["planned"].str.startswith("confirmed").to_numpy()
    left = ~hand["gone"] & ~hand["solved"]
    assert len(hand) == chain["items"]
    assert int((~hand["gone"]).sum()) == chain["after_ablation"]
    assert int(left.sum()) == chain["after_saturation"]
    assert int(hand["solved"].sum()) == chain["above_90"]
    assert int(hand["zero"].sum()) == chain["zero_correct"]
    assert int((hand["zero"] & confirmed).sum()) == chain["zero_confirmed"]
    ours = curated_pool(name, embedded_outputs)
    assert [len(ours.inspectors), len(ours.panel), len(ours.evaluated)] == [5, 12, 27]
    labels = truth.loc[confirmed, ["item", "defect"]].rename(columns={"defect": "label"}).assign(state="confirmed")
    result = funnel(ours, CurationSettings(remove=LABELS), labels)
    table = result.stages[result.stages["mode"].eq("sequential")].set_index("stage")
    assert table["left"].tolist() == [chain["after_ablation"], chain["after_saturation"], chain["kept"]]
    assert table.loc["defects", "recalled"] == chain["recalled"]
    assert set(ours.items["item"][confirmed]) <= set(ours.items["item"][result.candidates])
    assert result.kept.tolist() == (left & ~confirmed).tolist()


def test_figures_of_sources(embedded_outputs):
    truth = saved("mmgist_synthetic", "truth", embedded_outputs)
    confirmed = truth["planned"].str.startswith("confirmed").to_numpy()
    hand = by_hand("mmgist_synthetic", embedded_outputs).assign(confirmed=confirmed)
    of = dict(list(hand.groupby("source", sort=False)))
    assert len(of) == 18
    left = {s: g[~g["gone"]] for s, g in of.items()}
    kept = {s: g[~g["gone"] & ~g["solved"] & ~g["confirmed"]] for s, g in of.items()}
    text = {s: round(100 * g["text"].mean(), 1) for s, g in of.items()}
    assert (text["AI2D"], text["MMMU"]) == (66.7, 51.2) and max(text, key=text.get) == "AI2D"
    lost = {s: round(100 * g["solved"].mean(), 1) for s, g in left.items()}
    assert (lost["CountBench"], lost["MME-SCI"], lost["ZeroBench"]) == (74.1, 1.0, 0.0)
    retained = {s: round(100 * len(kept[s]) / len(of[s]), 1) for s in of}
    assert max(retained.items(), key=lambda x: x[1]) == ("ZeroBench", 96.0)
    assert min(retained.items(), key=lambda x: x[1]) == ("MMMU", 15.7)


def test_scores_by_capability(embedded_outputs):
    pool = read("mmgist_synthetic", embedded_outputs)
    hand = by_hand("mmgist_synthetic", embedded_outputs)
    truth = saved("mmgist_synthetic", "truth", embedded_outputs)
    keep = (~hand["gone"] & ~hand["solved"] & ~truth["planned"].str.startswith("confirmed")).to_numpy()
    score = 100 * pool.arm.hits["full"] / pool.arm.trials["full"]
    capability = pool.items["capability"].to_numpy()
    kept = {c: score[keep & (capability == c)] for c in KEPT_SCORES}
    raw = {c: score[capability == c].mean() for c in KEPT_SCORES}
    printed = {"Expert Knowledge": 40.3, "Visual Logic": 22.5, "Medical": 32.1, "STEM Reasoning": 36.8,
               "Spatial Understanding": 60.4, "Diagram & OCR": 56.4}  # fmt: skip
    for name, value in printed.items():
        assert kept[name].mean() == pytest.approx(value, abs=0.06)
    assert raw["Expert Knowledge"] == pytest.approx(72.9, abs=0.06)
    assert raw["Visual Logic"] == pytest.approx(31.1, abs=0.06)
    drops = {c: raw[c] - kept[c].mean() for c in ("Diagram & OCR", "STEM Reasoning")}
    assert list(drops.values()) == pytest.approx([25.4, 22.5], abs=0.1)
    known = model_table().set_index("model").loc[pool.model_names]
    group = known["group"].to_numpy()
    macro = np.mean([k.mean(axis=0) for k in kept.values()], axis=0)
    assert [macro[group == g].mean() for g in range(3)] == pytest.approx([52.1, 43.6, 32.4], abs=0.06)
    assert macro.max() == pytest.approx(66.8, abs=1) and (macro > 60).sum() == 2
    logic = kept["Visual Logic"].mean(axis=0)
    assert [logic[group == g].mean() for g in (2, 1, 0)] == pytest.approx([14.8, 22.4, 29.5], abs=0.06)
    gap = kept["Expert Knowledge"].mean(axis=0)
    assert gap[group == 0].mean() - gap[group == 1].mean() == pytest.approx(16.5, abs=0.1)
    assert known["open"].sum() == 17 and known["provider"].nunique() == 10
    assert known.loc[known["role"].str.contains("panel"), ["provider", "tier"]].nunique().tolist() == [5, 3]


def test_plans_add_up():
    assert full_plan().chain == PUBLISHED and scaled_plan(1800).chain == SMALL
    whole = full_plan().counts
    assert (whole >= 0).all() and (scaled_plan(1800).counts.sum(axis=1) > 0).all()
    part = scaled_plan(1800).counts
    assert np.abs(part - whole * 1800 / 23250).max() < 1.5


def test_votes_and_readings_of_the_whole_pool(embedded_outputs):
    truth, votes, said = (saved("mmgist_synthetic", w, embedded_outputs) for w in ("truth", "votes", "readings"))
    last = votes[votes["round"].eq("2") & votes["label"].isin(LABELS)]
    tally = last.groupby(["item", "label"]).size()
    judged = tally[tally >= 3].reset_index().set_index("item")["label"]
    final = outcome(said.set_index("item")).loc[judged.index]
    confirmed = truth[truth["planned"].str.startswith("confirmed")].set_index("item")["defect"]
    assert votes["item"].nunique() == 5477 and len(confirmed) == 1569 < len(judged)
    assert final[final.isin(LABELS)].sort_index().equals(confirmed.sort_index().rename(final.name))
    assert judged.loc[confirmed.index].tolist() == confirmed.tolist()


def test_people_confirm_what_was_planned(embedded_outputs):
    name = "mmgist_small"
    truth = saved(name, "truth", embedded_outputs).set_index("item")
    votes = read_votes(embedded.companion(name, "votes", embedded_outputs))
    confirmed = truth[truth["planned"].str.startswith("confirmed")]
    recalled = truth["planned"].isin(["confirmed", "confirmed_zero", "recalled", "recalled_zero"])
    assert set(votes["item"]) == set(truth.index[recalled])
    assert votes.groupby(["item", "round"]).size().unique().tolist() == [5]
    decided = decide(votes).set_index("item")
    judged = decided[decided["state"].eq("confirmed")]
    assert decided["state"].ne("undecided").all()
    assert judged.loc[confirmed.index, "label"].tolist() == confirmed["defect"].tolist()
    said = outcome(saved(name, "readings", embedded_outputs).set_index("item").loc[judged.index])
    by_people = said.index[said.isin(LABELS)]
    assert set(by_people) == set(confirmed.index)
    assert said.loc[confirmed.index].tolist() == confirmed["defect"].tolist()
    # judges err in both directions: they confirm items in order, and miss some defects
    assert len(judged) > len(confirmed)
    assert truth.loc[decided.index[decided["state"].eq("rejected")], "defect"].ne("").sum() > 0
    # defects hide among the items that nobody suspects
    assert truth.loc[truth["planned"].eq("clear"), "defect"].ne("").sum() > 0


def test_same_seed_same_pool():
    one, two, other = curated(400), curated(400), curated(400, seed=7)
    for name in ("items", "models", "counts", "truth", "votes", "readings"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name))
    assert other.plan.chain == one.plan.chain
    assert not other.truth["planned"].equals(one.truth["planned"])
    assert set(one.truth["planned"]) <= set(CLASSES)
    assert one.items["provenance"].str.startswith("synthetic").all()


# tables of answer counts

ITEMS = pd.DataFrame({"item": ["1", "2", "3"], "question": ["q", "r", "s"], "A": ["x", "u", ""], "B": ["y", "v", ""],
                      "key": ["A", "B", "12"], "source": ["S", "S", "T"], "licence": ["L", "", ""]})  # fmt: skip
ROWS = [
    ["1", "m", "full", "A", 1, 4, 3], ["1", "m", "full", "", 0, 0, 1], ["2", "m", "full", "A", 0, 4, 4],
    ["3", "m", "full", "12", 1, 1, 1], ["3", "m", "full", "13", 0, 3, 3], ["1", "b", "full", "B", 0, 4, 4],
    ["2", "b", "full", "B", 1, 2, 2], ["2", "b", "full", "A", 0, 2, 2], ["1", "b", "blind", "B", 0, 4, 4],
    ["2", "b", "blind", "B", 1, 4, 4], ["3", "b", "blind", "13", 0, 2, 1],
]  # fmt: skip


def table(rows=ROWS):
    return pd.DataFrame(rows, columns=["item", "model", "condition", "answer", "correct", "odd", "even"])


def pool_from(folder, counts, kind="csv", **data):
    ITEMS.to_csv(folder / "items.csv", index=False)
    path = folder / f"counts.{kind}"
    counts.to_csv(path, index=False) if kind == "csv" else counts.to_parquet(path, index=False)
    raw = {"pool": "p", "benchmark": "B", "data": {"counts": path.name, "items": "items.csv"} | data,
           "models": [{"name": "m", "provider": "P"}]}  # fmt: skip
    return read_pool(check_params(raw, folder / "p.yaml"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_counts_become_a_pool(kind, tmp_path):
    pool = pool_from(tmp_path, table(), kind)
    assert pool.model_names == ["m", "b"] and pool.models["provider"].tolist()[0] == "P"
    assert pool.arm_names == ["judged"] and pool.arm.unit == 1
    assert pool.arm.hits["full"].tolist() == [[7, 0], [0, 4], [2, 0]]
    assert pool.arm.trials["full"].tolist() == [[8, 8], [8, 8], [8, 0]]
    assert pool.arm.hits["blind"].tolist() == [[0, 0], [0, 8], [0, 0]]
    assert pool.arm.trials["blind"].tolist() == [[0, 8], [0, 8], [0, 3]]
    assert pool.items["answer_type"].tolist() == ["choice", "choice", "open"]
    assert pool.items["licence"].tolist() == ["L", "", ""]
    assert len(pool.answer_counts) == len(ROWS)
    said = pool.coverage.set_index(["model", "condition", "what"])["n"]
    assert said["b", "full", "missing"] == 1 and said["m", "blind", "not run"] == 3
    assert said["b", "blind", "warning"] == 1
    half = pool.head(2)
    assert half.answer_counts["item"].astype(str).unique().tolist() == ["1", "2"]
    ours = curation_pool(pool)
    assert ours.full.abstained.tolist() == [[1, 0], [0, 0], [0, 0]]
    assert ours.answers.draws.sum() == pool.arm.trials["full"].sum()


def test_columns_are_mapped_and_empty_rows_said(tmp_path):
    more = [*ROWS, ["3", "m", "full", "14", 0, 0, 0]]
    pool = pool_from(tmp_path, table(more).rename(columns={"item": "idx"}), columns={"item": "idx"})
    assert len(pool.answer_counts) == len(ROWS)
    left = pool.coverage[pool.coverage["what"].eq("excluded")]
    assert left["n"].tolist() == [1] and "no draw gave" in left["reason"].iloc[0]


def test_key_that_counts_contradict_is_reported(tmp_path):
    rows = [r if r[0] != "2" else [*r[:4], int(r[3] == "A"), *r[5:]] for r in ROWS]
    pool = pool_from(tmp_path, table(rows))
    conflict = pool.coverage[pool.coverage["what"].eq("conflict")]
    assert conflict[["item", "n"]].values.tolist() == [["2", 1]]


@pytest.mark.parametrize(
    ("at", "column", "value", "says"),
    [
        (0, "odd", -1, "row 2: column 'odd' holds '-1', which is negative"),
        (2, "even", 1.5, "row 4: column 'even' holds '1.5', which is no whole number"),
        (2, "even", "", "row 4: column 'even' holds '', which is empty"),
        (3, "odd", "many", "row 5: column 'odd' holds 'many', which is no whole number"),
        (1, "item", "9", "row 3: item '9' is not in items.csv"),
        (6, "correct", 0, "wrong in another"),
        (0, "correct", 2, "row 2: column 'correct' holds '2', neither 0 nor 1"),
        (1, "correct", 1, "row 3: an empty answer is said to be correct"),
        (1, "answer", "A", "row 3: answer 'A' to item '1' is counted twice for m \\(full\\): also in row 2"),
        (0, "even", 3_000_000, "row 2: column 'even' holds '3000000', which is no whole number up to 1,000,000"),
        (4, "model", "", "row 6: the row names no model"),
        (4, "condition", "sideways", "row 6: 'sideways' is no condition"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_mistakes_in_counts(at, column, value, says, kind, tmp_path):
    counts = table().astype(object)
    counts.loc[at, column] = value
    if kind == "parquet":
        counts = counts.astype(str) if isinstance(value, str) else counts.infer_objects()
    with pytest.raises(AuditError, match=says):
        pool_from(tmp_path, counts, kind)


def test_parquet_of_other_types(tmp_path):
    typed = table().assign(item=[int(r[0]) for r in ROWS], correct=[bool(r[4]) for r in ROWS])
    typed["model"] = typed["model"].astype("category")
    pool = pool_from(tmp_path, typed, "parquet")
    assert pool.arm.hits["full"].tolist() == [[7, 0], [0, 4], [2, 0]]
    with pytest.raises(AuditError, match=r"counts.parquet: column 'answer' holds list<.*>, neither texts nor numbers"):
        pool_from(tmp_path, typed.assign(answer=[[a] for a in typed["answer"]]), "parquet")
    with pytest.raises(AuditError, match=r"row 3: column 'odd' holds '', which is empty"):
        pool_from(tmp_path, typed.assign(odd=typed["odd"].astype("Int64").where(typed.index != 1)), "parquet")
    with pytest.raises(AuditError, match="there are no rows"):
        pool_from(tmp_path, typed.iloc[:0], "parquet")


def test_missing_column_no_right_answer_and_no_items(tmp_path):
    with pytest.raises(AuditError, match=r"there is no column 'even' \(for even\)"):
        pool_from(tmp_path, table().drop(columns="even"))
    with pytest.raises(AuditError, match="no answer is said to be correct"):
        pool_from(tmp_path, table().assign(correct=0))
    with pytest.raises(AuditError, match=r"data.counts needs data.items"):
        check_params({"pool": "p", "benchmark": "B", "data": {"counts": "c.csv"}}, tmp_path / "p.yaml")
    with pytest.raises(AuditError, match="exactly one of embedded, folder, table, matrix, counts"):
        data = {"counts": "c.csv", "table": "t.csv", "items": "i.csv"}
        check_params({"pool": "p", "benchmark": "B", "data": data}, tmp_path / "p.yaml")


# planted defects and calibrated rules

SHARES = {"key_error": 0.04, "ambiguous": 0.03, "scorer_risk": 0.03}


def small(outputs):
    return curated_pool("mmgist_small", outputs)


def draws_of(pool):
    """(item, model) -> {answer: draws}."""
    a = pool.answers
    return pd.Series(a.draws, index=[a.item, a.model, a.answer])


def test_planting_moves_draws_and_nothing_else(embedded_outputs):
    pool = small(embedded_outputs)
    done = plant(pool, SHARES, seed=1)
    new, counts = done.pool, done.truth["planted"].value_counts()
    can = int((pool.answers.key >= 0).sum())
    assert {d: int(counts[d]) for d in SHARES} == {d: round(s * can) for d, s in SHARES.items()}
    untouched = done.truth["planted"].eq("").to_numpy()
    for name in ("hits", "trials", "abstained"):
        assert np.array_equal(getattr(new.full, name)[untouched], getattr(pool.full, name)[untouched])
    assert np.array_equal(new.full.trials, pool.full.trials)
    cell = new.answers.item * len(pool.models) + new.answers.model
    assert np.array_equal(np.bincount(cell, new.answers.draws).reshape(pool.full.trials.shape), pool.full.trials)
    right = new.answers.answer == new.answers.key[new.answers.item]
    made = np.bincount(cell, new.answers.draws * right).reshape(pool.full.trials.shape)
    assert np.array_equal(made, new.full.hits)
    none = np.bincount(cell, new.answers.draws * (new.answers.answer == NO_ANSWER)).reshape(pool.full.trials.shape)
    assert np.array_equal(none, new.full.abstained)
    wrong = done.is_("key_error")
    assert (new.answers.key[wrong] != pool.answers.key[wrong]).all()
    assert np.array_equal(new.answers.key[~wrong], pool.answers.key[~wrong])
    assert (new.items["key"][wrong] != pool.items["key"][wrong]).all()
    before, after = draws_of(pool), draws_of(new)
    same = [i for i in np.flatnonzero(wrong) if new.answers.key[i] >= 0]
    assert all(before.loc[i].sort_index().equals(after.loc[i].sort_index()) for i in same)
    solved = pool.full.hits.sum(axis=1) / pool.full.trials.sum(axis=1)
    stays = new.full.hits.sum(axis=1) / np.maximum(pool.full.hits.sum(axis=1), 1)
    easy = solved > 0.8
    assert 0.35 - 0.1 < stays[done.is_("ambiguous") & easy].min() <= stays[done.is_("ambiguous") & easy].max() < 0.75
    assert stays[done.is_("scorer_risk") & easy].max() < 0.6
    assert new.full.abstained[done.is_("scorer_risk")].sum() > 10 * pool.full.abstained[done.is_("scorer_risk")].sum()
    assert new.blind is None and pool.blind is not None


def test_planting_repeats_and_refuses(embedded_outputs):
    pool = small(embedded_outputs)
    one, two = plant(pool, SHARES, seed=3), plant(pool, SHARES, seed=3)
    assert np.array_equal(one.pool.full.hits, two.pool.full.hits) and one.truth.equals(two.truth)
    among = np.arange(len(pool.items)) < 200
    chosen = plant(pool, {"key_error": 0.5}, seed=3, among=among).is_("key_error")
    assert not chosen[~among].any() and 80 < chosen.sum() <= 100
    with pytest.raises(AuditError, match="unknown defect 'typo'"):
        plant(pool, {"typo": 0.1}, seed=1)
    with pytest.raises(AuditError, match="no shares"):
        plant(pool, {"key_error": 0.7, "ambiguous": 0.7}, seed=1)


def test_rules_find_planted_key_errors(embedded_outputs):
    pool = curated_pool("mmgist_synthetic", embedded_outputs)
    pool = pool.at(np.arange(len(pool.items)) % 3 == 0)
    assert len(pool.panel) == 12 and set(pool.full.trials[:, pool.panel].ravel().tolist()) == {8}
    done, again = (plant(pool, SHARES, seed=s) for s in (1, 2))
    here, there = ([(p.pool, p.truth["planted"])] for p in (done, again))
    default = measure(here)
    assert default.recall.set_index("label").loc["key_error", "recall"] >= 0.95 and default.share <= 0.40
    chosen = calibrate(here)
    assert chosen.recall.set_index("label").loc["key_error", "recall"] >= 0.95
    assert chosen.share < default.share
    # chosen with a margin, the thresholds also find the key errors of another planting
    safe = calibrate(here, sure=True)
    assert safe.recall.set_index("label").loc["key_error", "low"] >= 0.95 and chosen.share < safe.share
    elsewhere = measure(there, safe.settings)
    assert elsewhere.recall.set_index("label").loc["key_error", "recall"] >= 0.95 and elsewhere.share <= 0.40
    rows = chosen.precision.set_index("rule")
    assert rows.loc["any", "flagged"] == chosen.flagged
    assert (rows["planted"] == rows[list(SHARES)].sum(axis=1)).all()
    seen = rows[rows["flagged"] > 0]
    assert (seen["precision"] == seen["planted"] / seen["flagged"]).all()
    # each rule finds more of what it is meant for than planting alone would give
    prevalence = done.truth["planted"].ne("").mean()
    assert (default.precision["precision"] > prevalence).all()


def test_calibration_is_the_best_on_its_grid(embedded_outputs):
    pool = small(embedded_outputs)
    plantings = [(p.pool, p.truth["planted"]) for p in (plant(pool, SHARES, seed=s) for s in range(3))]
    wanted = {"key_error": 0.9, "scorer_risk": 0.8}
    chosen = calibrate(plantings, wanted=wanted)
    table = chosen.recall.set_index("label")
    assert all(table.loc[d, "recall"] >= least for d, least in wanted.items())
    planted = np.concatenate([p for _, p in plantings])
    score = np.concatenate([calibration._run(p, None).score for p, _ in plantings])
    aim = np.isin(planted, list(wanted))
    edges = [[*calibration._edges(score[aim, r]), np.inf] for r in range(5)]
    rng = np.random.default_rng(5)
    feasible = 0
    for _ in range(1500):
        cut = np.array([e[rng.integers(len(e))] for e in edges])
        flag = (score >= cut).any(axis=1)
        if all(flag[planted == d].mean() >= least for d, least in wanted.items()):
            feasible += 1
            assert flag.sum() >= chosen.flagged
    assert feasible > 20


def test_unreachable_recall_and_unplanted_label(embedded_outputs):
    pool = small(embedded_outputs)
    done = plant(pool, {"key_error": 0.05}, seed=1)
    with pytest.raises(AuditError, match="no ambiguous is planted"):
        calibrate([(done.pool, done.truth["planted"])], wanted={"ambiguous": 0.5})
    silent = done.truth["planted"].to_numpy().copy()
    # items that every panel model solves are beyond the rules
    solved = pool.full.of(pool.panel).hits.sum(axis=1) == 96
    silent[:] = ""
    silent[np.flatnonzero(solved & done.truth["planted"].eq("").to_numpy())[:20]] = "key_error"
    with pytest.raises(AuditError, match="no thresholds find 95% of the planted key_error"):
        calibrate([(done.pool, silent)], RuleSettings())


def test_cumulated_counts_are_counts():
    rng = np.random.default_rng(2)
    place = rng.integers(0, calibration.LEVELS, (60, 5))
    passed = calibration._passed(place)
    for at in product((0, 4, 15), repeat=5):
        assert passed[at] == (place <= np.array(at)).all(axis=1).sum()
