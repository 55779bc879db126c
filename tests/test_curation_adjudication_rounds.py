"""Two rounds of judging over a local endpoint: planted behaviour recovered, interrupted runs resumed, failing judges.

Oracles: what was planted (scipy's binomial test), statsmodels (Fleiss' kappa, Wilson), pandas' crosstab, expectation
maximisation written as loops, votes counted by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from adjudication_builders import vote, votes
from scipy.stats import binomtest
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as reference_kappa
from statsmodels.stats.proportion import proportion_confint

from auditlib.curation.adjudication import adjudicate
from auditlib.curation.adjudication_decisions import AdjudicationSettings, decide
from auditlib.curation.adjudication_measures import by_round, confusion, herding, majority, vote_codes
from auditlib.curation.adjudication_yield import cost, leave_out, rule_precision
from auditlib.curation.votes import LABELS, read_votes, votes_frame, write_votes
from auditlib.errors import AuditError
from auditlib.inference.failures import StopRun
from auditlib.inference.openai_client import OpenAIClient
from auditlib.inference.several import ask_several
from auditlib.inference.store import Store
from auditlib.stats.dawid_skene import dawid_skene
from auditlib.synth.judges import SimulatedJudge, SimulatedJudges, planted_items, said_first, said_second, serve

K, A, S, N = LABELS
SEED = 11
FIVE = [SimulatedJudge(f"j{i}", 0.65 + 0.06 * i, 0.15 + 0.15 * i, 0.02 + 0.03 * i) for i in range(5)]


def judges_of(five: list[SimulatedJudge]) -> list:
    return [j.judge for j in five]


def truly(five: list[SimulatedJudge], items, seed: int = SEED) -> dict[tuple[str, int, str], str]:
    """Every label as it is planted, from the judges' own behaviour."""
    out = {}
    for item, truth in items.truth.items():
        first = {j.name: said_first(j, item, truth, seed) for j in five}
        out |= {(item, 1, name): label for name, label in first.items()}
        out |= {(item, 2, j.name): said_second(j, item, truth, first.values(), seed) for j in five}
    return out


def labels(table: pd.DataFrame) -> dict[tuple[str, int, str], str]:
    return {(i, r, j): x for i, r, j, x in zip(table["item"], table["round"], table["judge"], table["label"])}


@contextmanager
def endpoint(simulated: SimulatedJudges, store: Store, *, breaks: int | None = None, **pace) -> Iterator:
    """A way to ask the judges over loopback; after ``breaks`` answers of all together no further call is made."""
    made = [0]

    class Breaking(OpenAIClient):
        async def ask(self, request, **more):
            if breaks is not None and made[0] >= breaks:
                raise StopRun("interrupted")
            made[0] += 1
            return await super().ask(request, **more)

    with serve(simulated) as url:
        clients = {j.name: Breaking(url) for j in simulated.judges}
        pace = {"backoff": 0.001, "concurrency": 4} | pace
        yield lambda requests: ask_several(requests, clients, store, **pace)


# over a local endpoint


def test_planted_behaviour_is_recovered_over_a_real_server(tmp_path):
    items = planted_items(16, seed=1)
    simulated = SimulatedJudges(FIVE, items, SEED)
    with Store(tmp_path / "a.sqlite") as store, endpoint(simulated, store) as ask:
        done = adjudicate(items.candidates, judges_of(FIVE), ask)
    assert labels(done.votes) == truly(FIVE, items)
    assert len(done.coverage) == 0 and set(done.votes["outcome"]) == {"ok"}
    assert set(simulated.calls.values()) == {32} and set(simulated.paid.values()) == {1}
    for j, row in zip(FIVE, confusion(done.votes, items.truth).accuracy.to_dict("records")):
        assert (row["judge"], row["n"]) == (j.name, 16)
        assert binomtest(round(row["estimate"] * 16), 16, j.accuracy).pvalue > 1e-3
    flips = herding(done.votes).iloc[0]
    assert flips["pairs"] == flips["inside"] + flips["outside"] and flips["elsewhere"] == 0
    assert done.decisions["item"].tolist() == [c.item for c in items.candidates]


def test_planted_accuracy_and_herding_within_error():
    items = planted_items(400, seed=2)
    done = adjudicate(items.candidates, judges_of(FIVE), SimulatedJudges(FIVE, items, SEED).ask)
    rng = np.random.default_rng(1)
    flips = herding(done.votes, rng=rng).set_index("judge")
    people, alone = confusion(done.votes, items.truth), confusion(done.votes)
    assert (people.source, alone.source) == ("people", "dawid_skene")
    for j, known, fitted in zip(FIVE, *(c.accuracy.to_dict("records") for c in (people, alone))):
        assert binomtest(round(known["estimate"] * 400), 400, j.accuracy).pvalue > 1e-3
        assert known["low"] < j.accuracy + 0.03 and known["high"] > j.accuracy - 0.03
        assert fitted["estimate"] == pytest.approx(j.accuracy, abs=4 * math.sqrt(0.25 / 400))
        row = flips.loc[j.name]
        assert binomtest(int(row["toward"]), int(row["outside"]), j.toward).pvalue > 1e-3
        assert binomtest(int(row["away"]), int(row["inside"]), j.away).pvalue > 1e-3
        assert row["low"] <= row["index"] <= row["high"]
    whole = flips.loc["all"]
    expected = sum(j.toward * flips.at[j.name, "outside"] - j.away * flips.at[j.name, "inside"] for j in FIVE)
    assert whole["index"] == pytest.approx(expected / whole["pairs"], abs=0.03)
    shares = pd.Series(items.truth).value_counts(normalize=True)
    assert alone.prevalence == pytest.approx({x: shares[x] for x in LABELS}, abs=0.07)


@pytest.mark.parametrize("breaks", [10, 40])
def test_an_interrupted_run_is_resumed_without_paying_twice(tmp_path, breaks):
    """Interrupted in round 1 (of 30 calls) and in round 2."""
    items = planted_items(6, seed=3)
    simulated = SimulatedJudges(FIVE, items, SEED)
    with Store(tmp_path / "a.sqlite") as store:
        with endpoint(simulated, store, breaks=breaks) as ask, pytest.raises(StopRun, match="interrupted"):
            adjudicate(items.candidates, judges_of(FIVE), ask)
        assert sum(simulated.paid.values()) == len(store) == breaks
    with Store(tmp_path / "a.sqlite") as store, endpoint(simulated, store) as ask:
        done = adjudicate(items.candidates, judges_of(FIVE), ask)
        again = adjudicate(items.candidates, judges_of(FIVE), ask)
    assert labels(done.votes) == truly(FIVE, items)
    pd.testing.assert_frame_equal(again.votes, done.votes)
    assert len(simulated.paid) == 60 and set(simulated.paid.values()) == {1}


def test_a_judge_that_fails_on_every_third_call(tmp_path):
    five = [SimulatedJudge("bad", 0.8, 0.5, 0.05, fails_every=3), *FIVE[1:]]
    items = planted_items(12, seed=4)
    simulated = SimulatedJudges(five, items, SEED)
    with Store(tmp_path / "a.sqlite") as store, endpoint(simulated, store, max_attempts=8) as ask:
        done = adjudicate(items.candidates, judges_of(five), ask)
    assert labels(done.votes) == truly(five, items) and len(done.coverage) == 0
    assert simulated.calls["bad"] == 35 and set(simulated.paid.values()) == {1}


def test_failed_calls_are_missing_votes_and_asked_again_later(tmp_path):
    five = [SimulatedJudge("bad", 0.8, 0.5, 0.05, fails_every=3), *FIVE[1:]]
    items = planted_items(6, seed=4)
    simulated = SimulatedJudges(five, items, SEED)
    waiting = AdjudicationSettings(wait=True)
    with Store(tmp_path / "a.sqlite") as store, endpoint(simulated, store, max_attempts=1) as ask:
        done = adjudicate(items.candidates, judges_of(five), ask)
        lost = done.votes[done.votes["outcome"] == "failed"]
        assert set(lost["judge"]) == {"bad"} and lost["round"].value_counts().to_dict() == {1: 2, 2: 2}
        assert done.coverage[["model", "what", "n"]].to_numpy().tolist() == [["bad", "not run", 2]] * 2
        by_item = done.decisions.set_index("item")["n_votes"]
        assert (by_item[lost.loc[lost["round"] == 2, "item"]] == 4).all() and (by_item >= 4).all()
        # saved votes close round 1 of these items: only calls of round 2 that failed are made
        before = simulated.calls.copy()
        more = adjudicate(items.candidates, judges_of(five), ask, votes=done.votes)
        assert {n: c - before[n] for n, c in simulated.calls.items() if c > before[n]} == {"bad": 2}
        assert len(more.votes) == 60 and more.votes["outcome"].eq("failed").sum() == 2
        assert set(simulated.paid.values()) == {1}
    simulated = SimulatedJudges(five, items, SEED)
    with Store(tmp_path / "b.sqlite") as store, endpoint(simulated, store, max_attempts=1) as ask:
        done = adjudicate(items.candidates, judges_of(five), ask, waiting)
        assert done.votes["round"].eq(2).sum() == 20 and done.coverage["n"].tolist()[-1] == 2
        for _ in range(5):
            done = adjudicate(items.candidates, judges_of(five), ask, waiting)
    assert labels(done.votes) == truly(five, items)
    assert len(simulated.paid) == 60 and set(simulated.paid.values()) == {1}


def test_an_endpoint_that_stops_does_not_stop_the_others(tmp_path):
    items = planted_items(4, seed=5)
    simulated = SimulatedJudges(FIVE[1:], items, SEED)  # j0 is unknown to the server: 404
    with Store(tmp_path / "a.sqlite") as store, serve(simulated) as url:
        clients = {j.name: OpenAIClient(url) for j in FIVE}
        with pytest.raises(StopRun, match="404 for model 'j0'"):
            adjudicate(items.candidates, judges_of(FIVE), lambda r: ask_several(r, clients, store))
        assert len(store) == 16
        with pytest.raises(AuditError, match="model 'j0' has no endpoint"):
            adjudicate(items.candidates, judges_of(FIVE), lambda r: ask_several(r, {}, store))


def test_saved_votes_of_some_judges_and_asked_ones_of_others(tmp_path):
    items = planted_items(6, seed=6)
    simulated = SimulatedJudges(FIVE, items, SEED)
    whole = adjudicate(items.candidates, judges_of(FIVE), simulated.ask)
    first = whole.votes[(whole.votes["round"] == 1) & whole.votes["judge"].isin(["j0", "j1", "j2"])]
    known = read_votes(write_votes(first, tmp_path / "v.csv"), {c.item for c in items.candidates})
    simulated = SimulatedJudges(FIVE, items, SEED)
    done = adjudicate(items.candidates, judges_of(FIVE), simulated.ask, votes=known)
    assert simulated.calls == {"j0": 6, "j1": 6, "j2": 6, "j3": 12, "j4": 12}
    assert labels(done.votes) == labels(whole.votes)
    assert done.votes.groupby("source").size().to_dict() == {"asked": 42, "v.csv": 18}
    no_one = adjudicate(items.candidates, [], simulated.ask, votes=whole.votes)
    pd.testing.assert_frame_equal(no_one.decisions, whole.decisions)


def test_unreadable_replies_are_no_votes():
    five = [SimulatedJudge(f"j{i}", 1.0, unreadable=float(i < 2)) for i in range(5)]
    items = planted_items(5, seed=7)
    done = adjudicate(items.candidates, judges_of(five), SimulatedJudges(five, items, SEED).ask)
    assert done.decisions["state"].tolist() == ["undecided"] * 5 and (done.decisions["n_votes"] == 3).all()
    assert done.coverage["what"].tolist() == ["unreadable"] * 4


@pytest.mark.parametrize("what", ["item", "judge", "votes"])
def test_what_cannot_be_adjudicated(what):
    items = planted_items(2, seed=8)
    candidates, five, given = items.candidates, judges_of(FIVE), None
    if what == "item":
        candidates = [*candidates, candidates[0]]
    elif what == "judge":
        five = [*five, five[0]]
    else:
        given = votes_frame([vote("zz", 1, "j0", K)])
    with pytest.raises(AuditError, match=r"'p0000' is there twice|'j0' is there twice|votes on item 'zz'"):
        adjudicate(candidates, five, lambda r: [], votes=given)


# measures


def test_herding_counted_by_hand():
    table = votes(
        {"i": [K, K, K, N, A], "tie": [K, K, N, N, ""], "m": [N, N, N, "", K]},
        {"i": [K, A, K, K, N], "tie": [N, N, N, N, N], "m": [N, "", N, N, N]},
    )
    assert majority(vote_codes(table).first).tolist() == [0, 3, -1]  # i, m, tie
    rows = herding(table).set_index("judge")
    counts = ["pairs", "outside", "toward", "elsewhere", "inside", "away"]
    assert rows.loc["all", counts].tolist() == [8, 3, 2, 1, 5, 1]
    assert rows.loc["all", "index"] == pytest.approx(1 / 8) and rows.loc["all", "toward_rate"] == pytest.approx(2 / 3)
    assert rows.loc["e", counts].tolist() == [2, 2, 1, 1, 0, 0] and np.isnan(rows.loc["e", "away_rate"])
    nobody = herding(votes({"i": [K, N]}, {"i": ["", ""]}), rng=np.random.default_rng(1))
    assert nobody["pairs"].tolist() == [0, 0, 0] and nobody["index"].isna().all()


def random_votes(rng: np.random.Generator, n: int = 60, judges: int = 5, missing: float = 0.0) -> pd.DataFrame:
    said = rng.choice([*LABELS, ""], (2, n, judges), p=[*([(1 - missing) / 4] * 4), missing])
    said = np.where(rng.random((2, n, 1)) < 0.5, said[:, :, :1], said)
    return votes(*({f"i{i:03d}": list(map(str, row)) for i, row in enumerate(r)} for r in said))


def test_kappa_per_round_is_statsmodels(rng):
    table = random_votes(rng)
    rows = by_round(table, rng=rng, draws=400).set_index(["measure", "round"])
    codes = vote_codes(table)
    expected = [reference_kappa(aggregate_raters(codes.of(n), 4)[0]) for n in (1, 2)]
    for n in (1, 2):
        assert rows.at[("fleiss_kappa", str(n)), "estimate"] == pytest.approx(expected[n - 1], abs=1e-12)
    gain = rows.loc[("fleiss_kappa", "gain")]
    assert gain["estimate"] == pytest.approx(expected[1] - expected[0], abs=1e-12)
    assert gain["low"] < gain["estimate"] < gain["high"] and gain["n"] == 60


def test_gains_compare_agreement_with_truth():
    truth = {"i": N, "j": N, "k": K, "open": K}
    first = {"i": [K, K, N], "j": [K, N, N], "k": [K, K, K], "x": [A, A, A]}
    second = {"i": [K, K, K], "j": [N, N, N], "k": [K, K, K], "x": [A, A, A]}
    rows = by_round(votes(first, second), truth).set_index(["measure", "round"])["estimate"]
    assert rows["votes_true"].tolist() == pytest.approx([6 / 9, 6 / 9, 0])
    assert rows["majority_true"].tolist() == pytest.approx([2 / 3, 2 / 3, 0])
    assert rows["fleiss_kappa", "2"] == 1 and rows["fleiss_kappa", "gain"] > 0
    with pytest.raises(AuditError, match="'wrong' is no label"):
        by_round(votes(first, second), {"i": "wrong"})


def test_confusion_against_people_is_a_crosstab(rng):
    table = random_votes(rng, missing=0.1)
    truth = {i: str(rng.choice(LABELS)) for i in table["item"].unique()[:50]}
    found = confusion(table, truth, number=2)
    mine = table[(table["round"] == 2) & table["item"].isin(truth)]
    expected = pd.crosstab([mine["judge"], mine["item"].map(truth)], mine["label"])
    for row in found.table.to_dict("records"):
        assert row["n"] == expected.get(row["label"], pd.Series(dtype=int)).get((row["judge"], row["truth"]), 0)
    shares = found.table[found.table["label"] != ""].groupby(["judge", "truth"])["share"].sum()
    assert shares.to_numpy() == pytest.approx(1)
    row = found.accuracy.iloc[0]
    low, high = proportion_confint(round(row["estimate"] * row["n"]), row["n"], method="wilson")
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=1e-12)


def loops(codes: np.ndarray, levels: int, pseudo: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Dawid and Skene's fit, one cell at a time."""
    n, raters = codes.shape
    post = np.array([[sum(x == c for x in row) / sum(x >= 0 for x in row) for c in range(levels)] for row in codes])
    for _ in range(steps):
        prevalence = post.mean(axis=0)
        pi = np.full((raters, levels, levels), pseudo)
        for i, r in np.ndindex(n, raters):
            if codes[i, r] >= 0:
                pi[r, :, codes[i, r]] += post[i]
        pi /= pi.sum(axis=2, keepdims=True)
        for i in range(n):
            like = [prevalence[c] * math.prod(pi[r, c, codes[i, r]] for r in range(raters) if codes[i, r] >= 0)
                    for c in range(levels)]  # fmt: skip
            post[i] = np.array(like) / sum(like)
    return post, pi


def test_dawid_skene_is_the_loop(rng):
    truth = rng.integers(0, 3, 80)
    codes = np.where(rng.random((80, 4)) < 0.7, truth[:, None], rng.integers(0, 3, (80, 4)))
    codes[rng.random((80, 4)) < 0.1] = -1
    codes[0] = -1
    fit = dawid_skene(codes, 3)
    post, pi = loops(codes[1:], 3, 0.01, fit.iterations)
    assert fit.converged and np.isnan(fit.posterior[0]).all()
    assert fit.posterior[1:] == pytest.approx(post, abs=1e-9) and fit.confusion == pytest.approx(pi, abs=1e-8)
    assert fit.prevalence.sum() == pytest.approx(1)
    for more in (1, 3, 9):  # the likelihood of the ratings never falls
        a, b = (dawid_skene(codes, 3, pseudo=0, most=m).log_likelihood for m in (more, more + 1))
        assert b >= a - 1e-9
    for wrong in (np.array([[3, 0]]), np.full((2, 2), -1), np.zeros((2, 2))):
        with pytest.raises(ValueError):
            dawid_skene(wrong, 3)


# what the decisions rest on and bring


def test_leaving_out_judges_and_providers():
    table = votes({}, {"i": [K, K, K, N, N], "j": [K, K, K, K, K], "k": [N, N, S, S, S], "l": [N] * 5})
    rows = leave_out(table, {"a": "P", "b": "P", "c": "Q", "d": "R", "e": "S"}).set_index("left_out")
    assert rows.loc["a", ["judges", "confirmed", "lost", "gained"]].tolist() == [4, 2, 1, 0]
    assert rows.loc["d", ["confirmed", "lost", "jaccard"]].tolist() == [2, 1, pytest.approx(2 / 3)]
    assert rows.loc["P", ["kind", "judges", "confirmed", "lost", "undecided"]].tolist() == ["provider", 3, 2, 1, 0]
    assert "Q" not in rows.index and len(rows) == 6
    few = leave_out(table[table["judge"].isin(["a", "b", "c"])], {"a": "P", "b": "P"}).set_index("left_out")
    assert few.at["P", "note"] == "1 judges cannot give 3 equal labels"


def test_cost_of_a_confirmed_defect():
    table = votes({"i": [K] * 5, "j": [N] * 5})
    table = table.assign(tokens_in=1000.0, tokens_out=100.0)
    table.loc[(table["item"] == "j") & (table["judge"] == "a"), ["outcome", "tokens_in", "tokens_out"]] = [
        "failed",
        None,
        None,
    ]
    decisions = decide(table)
    prices = dict.fromkeys("abcde", (2.0, 10.0))
    out = cost(table, decisions, prices, {"i": N})
    assert out["calls"].tolist() == [1, 1, *[2] * 8, 18]
    last = out.iloc[-1]
    assert last["cost"] == pytest.approx(18 * (1000 * 2 + 100 * 10) / 1e6) == last["per_confirmed"]
    assert last["calls_per_confirmed"] == 18 and np.isnan(last["per_true"])
    assert cost(table, decisions, prices, {"i": A}).iloc[-1]["per_true"] == last["cost"]
    assert np.isnan(cost(table, decisions, {"a": (1, 1)}).iloc[-1]["cost"])
    table.loc[0, "tokens_out"] = None
    assert cost(table, decisions).iloc[-1]["unknown"] == 1


def test_precision_of_each_rule_by_label():
    said = {"i": [K] * 5, "j": [A] * 5, "k": [N] * 5, "l": [K, K, A, A, N], "u": [K, "", "", N, N]}
    decisions = decide(votes({}, said))
    flags = pd.DataFrame({"item": [*said, "new"], "R1": [1, 1, 1, 0, 1, 1], "R2": [0, 0, 0, 1, 0, 0]})
    out = rule_precision(flags, decisions).set_index(["rule", "label"])
    row = out.loc[("R1", "key_error")]
    assert row[["flagged", "decided", "confirmed", "open"]].tolist() == [5, 3, 1, 2]
    assert row[["precision", "least", "most"]].tolist() == pytest.approx([1 / 3, 1 / 5, 3 / 5])
    assert (row["low"], row["high"]) == pytest.approx(proportion_confint(1, 3, method="wilson"), abs=1e-12)
    assert out.loc[("R1", "any defect"), "precision"] == pytest.approx(2 / 3)
    assert out.loc[("R2", "any defect"), ["decided", "confirmed"]].tolist() == [1, 0]
    people = rule_precision(flags, decisions, {"i": N, "l": S}).set_index(["rule", "label"])
    assert people.loc[("any rule", "any defect"), ["flagged", "decided", "confirmed"]].tolist() == [6, 2, 1]
    with pytest.raises(AuditError, match="occurs twice"):
        rule_precision(pd.concat([flags, flags]), decisions)
    with pytest.raises(AuditError, match="no column of a rule"):
        rule_precision(flags[["item"]], decisions)
