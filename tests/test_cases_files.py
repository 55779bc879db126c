"""Awkward files from public reports: options, keys, damaged cells, verdict files, logs; read by the public functions.

Each test names the threads that told of the input; variants of the same kind stand beside it.
"""

from __future__ import annotations

import pytest
from case_files import FOUR, defects, folder_pool, inspect_log, lm_lines, lmms_lines, said, share, table_pool

import auditlib

NAMES = list("ABCD")


def choice(index, options, key, reply, **more):
    letters = dict(zip("ABCDEFGHIJ", options))
    return {"index": index, "question": f"What is seen in picture {index}?", **letters, "answer": key,
            "prediction": reply, **more}  # fmt: skip


def colour(index, key, reply, **more):
    return choice(index, FOUR.values(), key, reply, **more)


# options and keys -----------------------------------------------------------------------------------------------------


def test_option_named_none_that_was_read_as_missing(write_run, tmp_path):
    """VLMEvalKit#1559: the right option never reached the model."""
    write_run("m", [choice(0, ["", "Two", "One", "Three"], "A", "B"), colour(1, "B", "B")])
    assert defects(auditlib.audit(folder_pool(tmp_path))) == {("0", "key_without_text"): "high"}


@pytest.mark.parametrize("text", ["None", "N/A", "null", "nan", "NA", "#N/A"])
@pytest.mark.parametrize("suffix", [".tsv", ".xlsx", ".json"])
def test_option_named_none_stays_an_option(write_run, tmp_path, text, suffix):
    """VLMEvalKit#1559: literal words that table readers take for missing values."""
    write_run("m", [choice(0, [text, "Two", "One", "Three"], "A", "A"), colour(1, "B", "B")], suffix=suffix)
    pool = folder_pool(tmp_path)
    assert pool.items["k"].tolist() == [4, 4] and pool.items["options"].iloc[0][0] == text
    assert defects(auditlib.audit(pool)) == {} and share(pool, "exact") == (2, 2)


def test_reply_named_none_stays_a_reply(tmp_path):
    """VLMEvalKit#1559, the same damage on the other side: a prediction "None" is a reply."""
    pool = table_pool(tmp_path, [{"item": i, "key": "A", "prediction": p} for i, p in enumerate(["None", "NA", "A"])])
    assert pool.responses["status"].tolist() == ["ok"] * 3 and share(pool, "exact") == (1, 3)


@pytest.mark.parametrize(
    ("options", "key", "check"),
    [
        (["yes", "no"], "C", "key_outside_options"),  # VLMEvalKit#677: rows 105, 633 and 731 lost their third option
        (list("uvwxyz"), "J", "key_outside_options"),  # OpenGVLab/MMT-Bench#5
        (["u", "v", "w"], "D", "key_outside_options"),
        (["u", "v", ""], "C", "key_outside_options"),
        (["u", "", "w"], "B", "key_without_text"),
        (["red", "blue", "green"], "purple", "key_text_unmatched"),  # Sakshi113/MMAU#12
        (["12 dB", "24 dB"], "13 dB", "key_text_unmatched"),
    ],
)
def test_key_that_no_option_can_meet(write_run, tmp_path, options, key, check):
    write_run("m", [choice(105, options, key, "A"), colour(1, "B", "B")])
    found = auditlib.audit(folder_pool(tmp_path))
    assert defects(found) == {("105", check): "high"}
    assert found.statistic("attainable_ceiling")["estimate"].tolist() == [0.5]


def test_keys_as_option_texts_are_letters(write_run, tmp_path):
    """Sakshi113/MMAU#12: a text key that does match is no defect and is scored by letter."""
    write_run("m", [colour(0, "blue", "B"), colour(1, "White", "D"), colour(2, "C", "A")])
    pool = folder_pool(tmp_path)
    assert pool.items["key"].tolist() == ["B", "D", "C"] and share(pool, "exact") == (2, 3)
    assert defects(auditlib.audit(pool)) == {}


def test_ceiling_by_source_and_stratum(tmp_path):
    """isjinghao/OralGPT#11: 32 of 491 keys point to an empty option, so that nobody can pass 93.48%."""
    rows = [
        {"item": i, "key": "C", "prediction": "C", "stratum": "ab"[i % 2], "source": "x" if i < 64 else "y",
         "A": "red", "B": "blue", "C": "" if i < 32 else "green", "D": "white"}
        for i in range(491)
    ]  # fmt: skip
    found = auditlib.audit(table_pool(tmp_path, rows))
    rows = found.statistics[found.statistics["metric"] == "attainable_ceiling"]
    got = {
        (s, v): (n, round(e, 4)) for s, v, n, e in rows[["stratum", "level", "n", "estimate"]].itertuples(index=False)
    }
    assert got == {("all", ""): (491, 0.9348), ("a", ""): (246, 0.935), ("b", ""): (245, 0.9347),
                   ("all", "source x"): (64, 0.5), ("all", "source y"): (427, 1.0)}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "check", "severity"),
    [
        (["B", "A", "C", "D"], "letter_valued_options", "low"),
        (["C.", "x", "y", "z"], "letter_valued_options", "low"),
        (["x", "y", "Either of the above", "z"], "position_dependent_option", "medium"),
        (["All of the above", "x", "y", "z"], "position_dependent_option", "medium"),
        (["x", "y", "z", "Either of the above"], "position_dependent_option", "info"),
        (["x", "y", "z", "Both A and B"], "position_dependent_option", "info"),
    ],
)
def test_options_that_depend_on_letters_or_places(write_run, tmp_path, options, check, severity):
    """MMMU-Benchmark/MMMU#83, #84: shuffling moves "above" and confuses options that are letters."""
    write_run("m", [choice(0, options, "A", "B"), colour(1, "B", "B")])
    assert defects(auditlib.audit(folder_pool(tmp_path))) == {("0", check): severity}


def test_reply_by_letter_where_options_are_letters(write_run, tmp_path):
    """MMMU-Benchmark/MMMU#83, #84: "A. B" is option A, whose text is the letter B; counted, with a warning."""
    write_run("m", [choice(0, ["B", "A"], "A", "A. B"), choice(1, ["B", "A"], "B", "B. A"), colour(2, "B", "B")])
    pool = folder_pool(tmp_path)
    assert pool.responses["letter"].tolist() == ["A", "B", "B"] and share(pool, "exact") == (3, 3)
    assert said(pool, "another option's letter") == [("", 2)]


# replies --------------------------------------------------------------------------------------------------------------


def test_prediction_that_the_spreadsheet_dropped(write_run, tmp_path):
    """VLMEvalKit#1689: an emptied cell is a missing prediction, not a wrong one."""
    write_run("m", [colour(0, "A", "A"), colour(1, "B", "A"), colour(2, "C", ""), colour(3, "D", None)])
    pool = folder_pool(tmp_path)
    assert pool.responses["status"].tolist() == ["ok", "ok", "missing", "missing"]
    assert share(pool, "exact") == (1, 2)
    found = auditlib.audit(pool)
    counted = found.statistic("items_failed", models="m")
    assert counted["n"].tolist() == [2] and found.statistic("items_abstained", models="m")["n"].tolist() == [0]
    wrong = folder_pool(tmp_path, audit={"failed": "wrong"})
    assert share(wrong, "exact") == (1, 4)


def test_refusals_are_abstentions_whatever_a_guess_scored(tmp_path):
    """MMMU-Benchmark/MMMU#72: a random letter for what cannot be parsed made 2 of 8 refusals hits."""
    sorry = "Sorry, I can't recognise the image"
    rows = [{"item": i, "key": NAMES[i % 4], "prediction": sorry, "hit": int(i < 2)} for i in range(8)]
    rows.append({"item": 8, "key": "A", "prediction": "A", "hit": 1})
    pool = table_pool(tmp_path, rows)
    assert share(pool, "exact") == (1, 9) and share(pool, "judged") == (3, 9)
    assert int(pool.abstained["full"].sum()) == 8
    found = auditlib.audit(pool)
    assert found.statistic("items_abstained", models="m" if "m" in pool.model_names else "runs")["n"].tolist() == [8]
    assert found.statistic("judge_parser_disagreement", models=pool.model_names[0], level="full")["n"].tolist() == [2]


def test_files_without_a_hit_column(write_run, tmp_path):
    """VLMEvalKit#981: right or wrong by item without any verdict file."""
    write_run("m", [colour(i, "A", r) for i, r in enumerate(["A", "B", "(A)", "no idea"])])
    pool = folder_pool(tmp_path)
    assert list(pool.arms) == ["exact"]
    assert pool.arms["exact"].hits["full"][:, 0].tolist() == [1, 0, 1, 0]
    assert auditlib.audit(pool).counts.empty  # no blind run, so no comparison


# verdict files of VLMEvalKit ------------------------------------------------------------------------------------------


def test_loose_parser_makes_hits_of_refusals(write_run, tmp_path):
    """VLMEvalKit#1552: "answer is d..." counts as D in a blind run."""
    reply = "The answer is difficult to determine"
    rows = [colour(0, "D", reply), colour(1, "A", "A")]
    for model in ("m", "m_blind"):
        write_run(model, rows)
        made = [{**r, "hit": 1, "log": f"Match Log: {r['prediction']}. "} for r in rows]
        write_run(model, made, tail="_gpt-4o-mini_result")
    pool = folder_pool(tmp_path)
    assert pool.letters["blind"][:, 0].tolist() == [-1, 0]
    assert share(pool, "exact", "blind") == (1, 2) and share(pool, "judged", "blind") == (2, 2)
    found = auditlib.audit(pool)
    made = found.statistic("parser_only_judged_hits", models="m", level="blind")
    assert made[["n", "estimate"]].values.tolist() == [[2, 0.5]]
    only = found.statistic("parser_only_hits", models="m", level="blind")
    assert only["estimate"].tolist() == [0.5]


def circular(replies, keys="ABCD"):
    """One question in four rotations."""
    words = ["red", "blue", "green", "white"]
    rows = []
    for turn, (key, reply) in enumerate(zip(keys, replies)):
        options = words[-turn:] + words[:-turn] if turn else words
        rows.append(choice(1 + turn * 1_000_000, options, key, reply) | {"question": "Which colour has the car?"})
    return rows


@pytest.mark.parametrize(
    ("replies", "item", "all_right"),
    [("ABCA", 0.75, 0.0), ("ABCD", 1.0, 1.0), ("BCDA", 0.0, 0.0)],
)
def test_circular_scoring_is_not_the_letter_match(write_run, tmp_path, replies, item, all_right):
    """VLMEvalKit#141, #121: the verdict file has one row of four, and its score is all four right."""
    rows = circular(replies)
    write_run("m", rows)
    passed = int(all_right)
    log = "Succeed During Pre-fetching" if passed else "Failed in Prefetching Rolling 3: Answer is D, Prediction is A"
    write_run("m", [{**rows[0], "g_index": 1, "hit": passed, "log": log}], tail="_exact_matching_result")
    pool = folder_pool(tmp_path)
    assert len(pool.items) == 4 and pool.items["cluster"].nunique() == 1
    found = auditlib.audit(pool)
    assert found.statistic("accuracy", models="m", level="full", arm="exact", policy="wrong")["estimate"].tolist() == [
        item
    ]
    got = found.statistic("circular_accuracy", models="m").set_index(["arm", "level"])["estimate"]
    assert got["exact", "full"] == all_right and got["judged", "full, stored"] == all_right


def test_judge_that_was_never_asked(write_run, tmp_path):
    """VLMEvalKit#305: the file has the judge's name, 30% of its log says that exact matching failed."""
    rows = [colour(i, NAMES[i % 4], NAMES[i % 4] if i >= 6 else "cannot tell") for i in range(20)]
    write_run("m", rows)
    failed = "Match Log: Failed in Prefetch, no GPT-based answer matching under `exact_matching` policy.. "
    made = [{**r, "hit": int(i >= 6), "log": failed if i < 6 else f"Match Log: {r['prediction']}. "}
            for i, r in enumerate(rows)]  # fmt: skip
    write_run("m", made, tail="_gpt-4o-mini_result")
    pool = folder_pool(tmp_path)
    assert pool.judgements["source"].value_counts().to_dict() == {"regex": 14, "exact_fallback": 6}
    found = auditlib.audit(pool)
    assert said(found, "exact matching") == [("m", 6)]
    assert found.statistic("fallback_share", models="m", level="full")["estimate"].tolist() == [0.3]


def test_one_judge_on_equal_replies(write_run, tmp_path):
    """VLMEvalKit#806: equal predictions, hits differ on 2 of 10."""
    rows = [colour(i, "B", f"I would say it is more blue, number {i}") for i in range(10)]
    for model, hits in (("m", [1] * 10), ("n", [0, 0] + [1] * 8)):
        write_run(model, rows)
        made = [{**r, "hit": h, "log": f"Match Log: {'B' if h else 'A'}. "} for r, h in zip(rows, hits)]
        write_run(model, made, tail="_gpt_result")
    found = auditlib.audit(folder_pool(tmp_path))
    assert said(found, "of 10 replies that were judged more than once, 2 were judged unlike") == [("", 2)]


def test_mathvista_lists_can_be_right(write_run, tmp_path):
    """VLMEvalKit#1679: a list as free-form answer was never right."""

    def row(index, answer, res):
        return {"index": index, "question": f"q{index}", "question_type": "free_form", "answer_type": "list",
                "choices": "", "answer": answer, "answer_option": "", "precision": "", "prediction": f"It is {res}",
                "res": res, "log": "Succeed"}  # fmt: skip

    rows = [row(1, "[1, 2]", "[1, 2]"), row(2, "[1, 2]", "[1,2]"), row(3, "[1, 2]", "[2, 1]")]
    write_run("m", [{k: v for k, v in r.items() if k not in ("res", "log")} for r in rows], bench="MathVista_MINI")
    write_run("m", rows, bench="MathVista_MINI", tail="_gpt-4o-mini")
    pool = folder_pool(tmp_path, benchmark="MathVista_MINI")
    assert pool.judgements["hit"].tolist() == [1, 1, 0] and set(pool.judgements["source"]) == {"recomputed"}


def test_random_letter_after_a_failed_judge(write_run, tmp_path):
    """openai/evals pulls #1447, #1767: a random option where there is no answer is no verdict."""
    rows = [colour(i, "A", "A" if i < 6 else "no idea") for i in range(10)]
    write_run("m", rows)
    lost = "Match Log: Failed to predict, thus randomly generate one. . "
    made = [{**r, "hit": int(i < 7), "log": lost if i > 5 else "Match Log: A. "} for i, r in enumerate(rows)]
    write_run("m", made, tail="_gpt_result")
    pool = folder_pool(tmp_path)
    assert pool.judgements["source"].value_counts().to_dict() == {"regex": 6, "random_fill": 4}
    assert share(pool, "judged") == (6, 10) and share(pool, "exact") == (6, 10)
    row = auditlib.audit(pool).statistic("random_fill_hits", models="m", level="full")
    assert row["estimate"].tolist() == [0.1]


def test_fallback_decided_most_answers(write_run, tmp_path):
    """hexo-ai/sia pull #57: a fallback decided 163 of 198 answers."""
    rows = [colour(i, "A", "A" if i < 35 else "no idea") for i in range(198)]
    write_run("m", rows, suffix=".tsv")
    lost = "Match Log: Failed to predict, thus randomly generate one. . "
    made = [{**r, "hit": int(i < 35 or i % 4 == 0), "log": lost if i >= 35 else "Match Log: A. "}
            for i, r in enumerate(rows)]  # fmt: skip
    write_run("m", made, tail="_gpt_result", suffix=".tsv")
    found = auditlib.audit(folder_pool(tmp_path))
    row = found.statistic("fallback_share", models="m", level="full")
    assert row["estimate"].tolist() == [163 / 198] and row["n"].tolist() == [198]


# logs of other toolkits -----------------------------------------------------------------------------------------------


def test_decorated_letters_that_a_scorer_missed(tmp_path):
    """UKGovernmentBEIS/inspect_ai#5145: exact 4 of 4 where the log scored 1 of 4."""
    pytest.importorskip("inspect_ai")
    texts = ["ANSWER: $B$", "ANSWER: **B**", "ANSWER: (B)", "B"]
    samples = [{"id": i, "choices": list(FOUR.values()), "target": "B", "said": t, "value": "IIIC"[i]}
               for i, t in enumerate(texts)]  # fmt: skip
    inspect_log(tmp_path / "results" / "2026-01-01T00-00-00_toy_a.json", samples)
    pool = folder_pool(tmp_path, benchmark="toy", toolkit="inspect")
    assert share(pool, "exact") == (4, 4) and share(pool, "judged") == (1, 4)
    found = auditlib.audit(pool)
    assert found.statistic("judge_parser_disagreement", models="m", level="full")["n"].tolist() == [3]


def test_errored_samples_and_their_denominators(tmp_path):
    """UKGovernmentBEIS/inspect_ai#4412: errored samples leave the denominator; both counts are printed."""
    pytest.importorskip("inspect_ai")
    samples = [{"id": i, "choices": list(FOUR.values()), "target": "B", "said": "ANSWER: B", "value": "C"}
               | ({"error": "timeout"} if i > 7 else {}) for i in range(10)]  # fmt: skip
    inspect_log(tmp_path / "results" / "2026-01-01T00-00-00_toy_a.json", samples)
    pool = folder_pool(tmp_path, benchmark="toy", toolkit="inspect")
    assert share(pool, "exact") == (8, 8) and said(pool, "scored_samples 8")
    found = auditlib.audit(pool)
    counted = {m: found.statistic(f"items_{m}", models="m", level="full")["n"].iloc[0]
               for m in ("asked", "answered", "failed")}  # fmt: skip
    assert counted == {"asked": 10, "answered": 8, "failed": 2}


def test_repeated_samples_are_no_further_items(tmp_path):
    """UKGovernmentBEIS/inspect_ai#1251, pulls #1113, #1118: five epochs do not shrink the error of 12 items."""
    pytest.importorskip("inspect_ai")
    wide = []
    for epochs in (1, 5):
        samples = [{"id": i, "epoch": e + 1, "choices": list(FOUR.values()), "target": "B",
                    "said": f"ANSWER: {'B' if i < 6 else 'A'}" + "." * e, "value": "CI"[i > 5]}
                   for e in range(epochs) for i in range(12)]  # fmt: skip
        inspect_log(tmp_path / f"{epochs}" / "results" / "2026-01-01T00-00-00_toy_a.json", samples)
        pool = folder_pool(tmp_path / f"{epochs}", benchmark="toy", toolkit="inspect")
        assert share(pool, "exact") == (6 * epochs, 12 * epochs)
        row = auditlib.audit(pool).statistic("accuracy", models="m", level="full", arm="exact", policy="wrong").iloc[0]
        assert row["estimate"] == 0.5
        wide.append(row["high"] - row["low"])
    assert wide[1] >= 0.95 * wide[0] > 0.4


def harness(i, said, key="B", **more):
    doc = {"index": 100 + i, "question": f"What is seen in picture {i}?", "options": list(FOUR.values()), "answer": key}
    return {"doc_id": i, "doc": doc, "target": key, "resps": [[f"The answer is {said}"]], "filtered_resps": [said],
            "metrics": ["exact_match"], "exact_match": float(said == key), **more}  # fmt: skip


def test_one_line_per_filter(tmp_path):
    """EleutherAI/lm-evaluation-harness#1687, #2025: each document stands there twice, once per filter."""
    rows = [harness(i, s, filter=f) for f, said_ in (("strict", "BA"), ("loose", "BB")) for i, s in enumerate(said_)]
    lm_lines(tmp_path, "m", rows)
    with pytest.raises(auditlib.AuditError, match=r"loose.*strict.*judge: NAME"):
        folder_pool(tmp_path, benchmark="toy", toolkit="lm-eval")
    for name, right in (("strict", 1), ("loose", 2)):
        pool = folder_pool(tmp_path, benchmark="toy", toolkit="lm-eval", judge=name)
        assert len(pool.items) == 2 and share(pool, "judged") == (right, 2)


def test_one_line_per_filter_without_its_name(tmp_path):
    """EleutherAI/lm-evaluation-harness#1687, #2025: old files do not name the filter; nothing is averaged blindly."""
    rows = [harness(i, s) for said_ in ("BA", "BB") for i, s in enumerate(said_)]
    lm_lines(tmp_path, "m", rows)
    with pytest.raises(auditlib.AuditError):
        folder_pool(tmp_path, benchmark="toy", toolkit="lm-eval")


@pytest.mark.parametrize(
    "nested",
    [
        {"filtered_resps": "B", "resps": ["B"]},
        {"filtered_resps": ["B"], "resps": [["B"]]},
        {"filtered_resps": "B"},
        {"filtered_resps": ["B"]},
    ],
)
def test_nesting_of_replies(tmp_path, nested):
    """EvolvingLMMs-Lab/lmms-eval#1103, #712: the same reply in three versions of the log."""
    asked = "What is seen?\nA. red\nB. blue\nC. green\nD. white\nAnswer with the option's letter."
    rows = [{"doc_id": i, "target": "B", "input": f"{i}: {asked}", "acc": 1.0, **nested} for i in range(3)]
    lmms_lines(tmp_path, "m", rows)
    pool = folder_pool(tmp_path, benchmark="toy", toolkit="lmms-eval")
    assert pool.responses["letter"].tolist() == ["B"] * 3
    assert share(pool, "exact") == (3, 3) and share(pool, "judged") == (3, 3)


@pytest.mark.parametrize("toolkit", ["lmms-eval", "lm-eval", "vlmevalkit"])
def test_replies_of_another_run(write_run, tmp_path, toolkit):
    """lm-evaluation-harness#4063, #4089; lmms-eval#1116: a cache gave the blind run the replies of the full run."""
    texts = [f"I look at thing number {i} and see it well. The answer is {NAMES[i % 4]}" for i in range(100)]
    blind = ["I cannot see anything at all, so my answer has to be a guess", *texts[1:]]
    for model, said_ in (("m", texts), ("m_blind", blind)):
        if toolkit == "vlmevalkit":
            write_run(model, [colour(i, NAMES[i % 4], t) for i, t in enumerate(said_)], suffix=".tsv")
        elif toolkit == "lm-eval":
            rows = [
                harness(i, NAMES[i % 4], NAMES[i % 4], filter="none") | {"resps": [[t]]} for i, t in enumerate(said_)
            ]
            lm_lines(tmp_path, model, rows)
        else:
            lmms_lines(tmp_path, model, [
                {"doc_id": i, "target": NAMES[i % 4], "filtered_resps": t, "acc": 1.0,
                 "input": f"{i}?\nA. red\nB. blue\nC. green\nD. white"} for i, t in enumerate(said_)
            ])  # fmt: skip
    pool = folder_pool(tmp_path, benchmark="Toy" if toolkit == "vlmevalkit" else "toy", toolkit=toolkit)
    assert pool.has_blind
    assert said(auditlib.audit(pool), "probably the same run twice") == [("m", 99)]
