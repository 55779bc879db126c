"""VLMEvalKit folders. Oracles: the accuracies that the toolkit printed for real runs, and small hand-made folders."""

from __future__ import annotations

import pandas as pd
import pytest

from auditlib.errors import AuditError
from auditlib.readers import judged
from auditlib.readers.vlmevalkit import read_vlmevalkit


def said(runs, what, column="reason"):
    return runs.coverage.loc[runs.coverage["what"] == what, column].tolist()


def judge_rows(rows, logs, hits):
    return [{**r, "hit": h, "log": log} for r, h, log in zip(rows, hits, logs)]


REAL = [
    # folder, model, condition, verdict as the toolkit printed it (None: evaluation crashed), other accuracy by letters
    ("outputs_local", "tinyvlm-alpha", "full", 0.900),
    ("outputs_local", "tinyvlm-alpha", "blind", 0.260),
    ("outputs_tsv", "tinyvlm-beta", "full", 0.893),
    ("outputs_tsv", "tinyvlm-beta", "blind", 0.207),
    ("outputs_flaky_split_think", "tinyvlm-alpha", "full", 0.867),
    ("outputs_same_folder", "tinyvlm-alpha", "full", 0.900),
]


@pytest.mark.parametrize(("folder", "model", "condition", "accuracy"), REAL)
def test_stored_verdicts_are_the_printed_accuracies(shared_data, folder, model, condition, accuracy):
    runs = read_vlmevalkit(shared_data / "toolkit_runs" / "vlmevalkit" / folder, "TinySee")
    rows = runs.judgements[(runs.judgements["model"] == model) & (runs.judgements["condition"] == condition)]
    assert len(rows) == 300
    assert round(rows["hit_stored"].mean(), 3) == accuracy
    assert "cache_stale" not in set(rows["source"])


def test_sibling_folder_of_blind_runs_is_found(shared_data):
    runs = read_vlmevalkit(shared_data / "toolkit_runs" / "vlmevalkit" / "outputs_local", "TinySee")
    assert runs.responses.groupby("condition").size().to_dict() == {"blind": 300, "full": 300}
    assert set(runs.responses.loc[runs.responses["condition"] == "blind", "run"]) == {
        "../outputs_local_text-only/tinyvlm-alpha/tinyvlm-alpha_TinySee.xlsx"
    }


def test_json_predictions_with_bare_nan(shared_data):
    runs = read_vlmevalkit(shared_data / "toolkit_runs" / "vlmevalkit" / "outputs_json", "TinySee")
    full = runs.responses[runs.responses["condition"] == "full"].merge(
        runs.items.drop_duplicates("item"), on="item", suffixes=("", "_i")
    )
    right = full["prediction"].str.extract(r"answer is ([A-D])", expand=False) == full["key"]
    assert round(right.mean(), 3) == 0.867  # tinyvlm-gamma, full, by key
    assert not len(runs.judgements)
    assert (runs.items["k"] == 3).sum() == 2 * 13  # 10 three-option items and 3 whose option None was lost


def test_formats_of_one_model_agree(shared_data, tmp_path):
    """The tsv and xlsx files of tinyvlm-beta hold the same replies, so both readers must give the same frame."""
    base = shared_data / "toolkit_runs" / "vlmevalkit"
    tsv = read_vlmevalkit(base / "outputs_tsv", "TinySee").responses
    run = tmp_path / "flat" / "tinyvlm-beta"
    run.mkdir(parents=True)
    source = next((base / "outputs" / "tinyvlm-beta").glob("T*/tinyvlm-beta_TinySee.xlsx"))
    (run / source.name).write_bytes(source.read_bytes())
    xlsx = read_vlmevalkit(tmp_path / "flat", "TinySee").responses
    tsv = tsv[tsv["condition"] == "full"]
    columns = ["row", "item", "prediction", "status"]
    pd.testing.assert_frame_equal(xlsx[columns], tsv[columns].reset_index(drop=True))


def test_failed_calls_and_lost_formulas_are_counted(shared_data):
    runs = read_vlmevalkit(shared_data / "toolkit_runs" / "vlmevalkit" / "outputs_flaky_split_think", "TinySee")
    assert runs.responses["status"].value_counts().to_dict() == {"ok": 289, "failed": 11}
    notes = runs.coverage.set_index("reason")["n"]
    assert notes["failed calls"] == 11
    assert next(n for r, n in notes.items() if "number 0" in r) == 3
    assert runs.coverage.loc[runs.coverage["what"] == "unreadable", "run"].str.endswith(".pkl").all()


def test_original_mmstar_file_has_options_in_every_question(shared_data):
    runs = read_vlmevalkit(shared_data / "real" / "mmstar_llava_next", "MMStar")
    items = runs.items
    assert len(items) == 1500
    assert (items["k"] == items["options"].map(len)).all()
    assert items["k"].value_counts().to_dict() == {4: 1499, 3: 1}
    assert items["key"].value_counts().to_dict() == {"B": 447, "A": 429, "D": 315, "C": 309}
    assert items["stratum"].value_counts().tolist() == [250] * 6
    assert items["substratum"].nunique() == 18
    sources = {
        "SEEDBench_IMG": 424,
        "MMBench": 366,
        "MathVista": 345,
        "AI2D_TEST": 196,
        "MMMU": 100,
        "ScienceQA_TEST": 69,
    }
    assert items["source"].value_counts().to_dict() == sources
    assert not items["question"].str.contains(r"Options: A:|\n\(A\)").any()
    first = runs.responses["prediction"].str[0] == items["key"]
    assert round(first.mean(), 3) == 0.520


def test_names_that_are_prefixes_stay_apart(write_run, toy_rows, tmp_path):
    for bench, n in (("Toy", 4), ("Toy_text", 3), ("Toy_circular", 2)):
        write_run("m", toy_rows[:n], bench=bench)
        write_run("m_blind", toy_rows[:n], bench=bench)
        write_run("m", judge_rows(toy_rows[:n], ["Match Log: Z. "] * n, [0] * n), bench=bench, tail="_gpt_result")
    for bench, n in (("Toy", 4), ("Toy_text", 3), ("Toy_circular", 2)):
        runs = read_vlmevalkit(tmp_path / "results", bench)
        assert runs.responses.groupby(["model", "condition"]).size().tolist() == [n, n]
        assert len(runs.judgements) == n
        assert runs.provenance["judge"] == "gpt"


def test_values_survive_the_spreadsheet(write_run, toy_rows, tmp_path):
    replies = ["None", "NA", "a\x07b", "nan"]
    rows = [{**r, "B": "None", "A": 10, "prediction": p} for r, p in zip(toy_rows, replies)]
    write_run("m", rows)
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.responses["prediction"].tolist() == replies
    assert runs.responses["status"].tolist() == ["ok"] * 4
    assert runs.items["options"].tolist() == [["10", "None", "green", "grey"]] * 4
    assert runs.responses["row"].tolist() == [2, 3, 4, 5]
    assert runs.items["item"].tolist() == ["0", "1", "2", "3"]


def test_lost_option_keeps_its_letter(write_run, toy_rows, tmp_path):
    write_run("m", [{**toy_rows[1], "A": None}, {**toy_rows[0], "D": None}])
    items = read_vlmevalkit(tmp_path / "results", "Toy").items
    assert items["options"].tolist() == [["", "blue", "green", "grey"], ["red", "blue", "green"]]
    assert items["k"].tolist() == [3, 3]


def test_sources_come_from_the_log(write_run, toy_rows, tmp_path):
    rows = toy_rows + [{**toy_rows[0], "index": i, "prediction": p} for i, p in
                       ((4, "the second, I think"), (5, "blue or so"), (6, "cannot say"), (7, ""))]  # fmt: skip
    logs = ["Match Log: B. ", "Match Log: A. ", "Match Log: C. ", "Match Log: A. ", "Match Log: B. ",
            "Match Log: Failed to predict, thus randomly generate one. . ",
            "Match Log: Failed in Prefetch, no GPT-based answer matching under `exact_matching` policy.. ",
            "Match Log: nan. "]  # fmt: skip
    judged_rows = judge_rows(rows, logs, [1, 1, 0, 0, 1, 1, 0, 0])
    write_run("m", rows)
    write_run("m", judged_rows[::-1], tail="_gpt_result")  # verdict files have another row order
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    got = runs.judgements.set_index("item")
    assert got["source"].tolist() == ["regex"] * 4 + ["llm", "random_fill", "exact_fallback", "regex"]
    assert got["hit"].fillna(-1).tolist() == [1, 1, 0, 0, 1, -1, 0, 0]
    assert got["hit_stored"].tolist() == [1, 1, 0, 0, 1, 1, 0, 0]
    assert got.loc["4", "extracted"] == "B"
    reasons = said(runs, "warning")
    assert "verdicts on a random letter after the judge failed (not counted; 1 of them were hits)" in reasons
    assert "verdicts of exact matching: judge 'gpt' was not asked" in reasons


def test_cache_of_an_earlier_run_is_stale(write_run, toy_rows, tmp_path):
    """The folder was reused: predictions are the blind run's, the log still quotes the full run's."""
    rows = [{**r, "prediction": p} for r, p in zip(toy_rows, ["C", "C", "I cannot see the image.", "A"])]
    write_run("m", rows)
    logs = ["Match Log: B. ", "Match Log: A. ", "Match Log: C. ", "Match Log: A. "]
    write_run("m", judge_rows(rows, logs, [1, 1, 0, 0]), tail="_gpt_result")
    got = read_vlmevalkit(tmp_path / "results", "Toy").judgements
    assert got["source"].tolist() == ["cache_stale", "cache_stale", "cache_stale", "regex"]
    assert got["hit"].isna().tolist() == [True, True, True, False]


def test_verdicts_on_other_predictions_are_stale(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    old = [{**r, "prediction": "D"} for r in toy_rows[:1]] + toy_rows[1:]
    write_run("m", judge_rows(old, [f"Match Log: {r['prediction']}. " for r in old], [0, 1, 0, 0]), tail="_gpt_result")
    got = read_vlmevalkit(tmp_path / "results", "Toy").judgements
    assert got["source"].tolist() == ["cache_stale", "regex", "regex", "regex"]


def test_blind_verdicts_that_echo_the_full_run_are_stale(write_run, toy_rows, tmp_path):
    full = [{**toy_rows[0], "index": i, "prediction": "AB C"[i % 2] + "."} for i in range(40)]
    blind = [{**r, "prediction": "I cannot see the image."} for r in full]
    write_run("m", full)
    write_run("m_blind", blind)
    echo = judge_rows(blind, [f"Match Log: {r['prediction']}. " for r in full], [1] * 40)
    write_run("m_blind", echo, tail="_gpt_result")
    assert set(read_vlmevalkit(tmp_path / "results", "Toy").judgements["source"]) == {"cache_stale"}
    honest = judge_rows(blind, ["Match Log: Z. "] * 40, [0] * 40)
    write_run("m_blind", honest, tail="_gpt_result")
    assert set(read_vlmevalkit(tmp_path / "results", "Toy").judgements["source"]) == {"llm"}


@pytest.mark.parametrize(
    ("log", "source"),
    [("Succeed During Pre-fetching", "regex"),
     ("Failed in Prefetching Rolling 0: Answer is B, Prediction is C. red, Pre-fetched is C. ", "regex"),
     ("Failed in Rolling 0: Answer is A; Prediction is blue; Pre-fetched is B; Match Log is (Z).\n", "llm"),
     ("Failed in Rolling 0: Match Log is Failed to predict, thus randomly generate one. .\n", "random_fill"),
     ("", "unknown"), ("something else", "unknown")],
)  # fmt: skip
def test_circular_logs_are_not_taken_for_stale_ones(log, source):
    column = pd.Series(["C. red"], dtype="str")
    got = judged.choice_sources(pd.Series([log], dtype="str"), column, column, [{"A", "B", "C", "D"}])
    assert got.tolist() == [source]


def test_circular_items_share_a_cluster(shared_data, tmp_path):
    run = tmp_path / "r" / "tinyvlm-beta"
    run.mkdir(parents=True)
    base = shared_data / "toolkit_runs" / "vlmevalkit" / "outputs" / "tinyvlm-beta"
    source = next(base.glob("T*/tinyvlm-beta_TinySee_circular.xlsx"))
    (run / source.name).write_bytes(source.read_bytes())
    items = read_vlmevalkit(tmp_path / "r", "TinySee_circular").items
    assert len(items) == 240
    assert items["cluster"].value_counts().unique().tolist() == [4]
    assert items["cluster"].nunique() == 60


def test_yes_no_files(write_run, tmp_path):
    ids = [f"VD_chart_1_0_{f}_{q}" for f in (0, 1) for q in (0, 1)]
    replies = ["Yes, it is.", "No.", "yes and no", "It seems so"]
    rows = [{"index": i, "question": "q", "answer": "Yes", "category": "VD", "l2-category": "chart", "prediction": p}
            for i, p in zip(ids, replies)]  # fmt: skip
    write_run("m", rows)
    extracted, score = ["Yes", "Yes", "No", "Unknown"], [True, True, False, False]
    write_run("m", [{**r, "extracted": e, "score": s} for r, e, s in zip(rows, extracted, score)], tail="_auxmatch")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.judgements["source"].tolist() == ["regex", "cache_stale", "llm", "unknown"]
    assert runs.judgements["hit"].fillna(-1).tolist() == [1, -1, 0, 0]
    assert set(runs.items["answer_type"]) == {"yesno"}
    assert runs.items["cluster"].tolist() == ["VD_chart_0_0"] * 2 + ["VD_chart_0_1"] * 2
    assert runs.items["substratum"].tolist() == ["chart"] * 4


def test_judges(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    write_run("n", toy_rows)
    for judge, hits in (("openai", [0, 0, 0, 0]), ("gpt-4o-mini", [0, 0, 0, 1])):
        write_run("m", judge_rows(toy_rows, ["Match Log: Z. "] * 4, hits), tail=f"_{judge}_result")
    with pytest.raises(AuditError, match=r"gpt-4o-mini, openai.*judge: NAME"):
        read_vlmevalkit(tmp_path / "results", "Toy")
    with pytest.raises(AuditError, match=r"no verdicts of judge 'x'.*gpt-4o-mini, openai"):
        read_vlmevalkit(tmp_path / "results", "Toy", judge="x")
    runs = read_vlmevalkit(tmp_path / "results", "Toy", judge="chatgpt-0125")  # the toolkit writes this one as openai
    assert set(runs.judgements["judge"]) == {"openai"}
    assert said(runs, "not run") == ["no verdicts of judge 'openai'"]
    assert said(runs, "not run", "model") == ["n"]


def test_judges_that_agree_everywhere_need_no_choice(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    for judge in ("openai", "gpt-4o-mini"):
        write_run("m", judge_rows(toy_rows, ["Match Log: Z. "] * 4, [1, 0, 0, None]), tail=f"_{judge}_result")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.provenance["judge"] == "gpt-4o-mini"
    assert "verdicts of gpt-4o-mini, openai are equal everywhere; those of gpt-4o-mini are read" in said(
        runs, "excluded"
    )


def test_models_left_out_are_coverage_rows(write_run, toy_rows, tmp_path):
    for model in ("m", "m_blind", "n", "o"):
        write_run(model, toy_rows)
    runs = read_vlmevalkit(tmp_path / "results", "Toy", exclude=["m", "ghost"], models=["m", "n"])
    assert runs.models["model"].tolist() == ["n"]
    rows = runs.coverage[runs.coverage["what"] == "excluded"]
    assert rows[["model", "condition"]].values.tolist() == [["m", "full"], ["m", "blind"], ["o", "full"]]
    assert "to be excluded, but there is no such model" in said(runs, "warning")
    with pytest.raises(AuditError, match="every model is excluded"):
        read_vlmevalkit(tmp_path / "results", "Toy", exclude=["m", "n", "o"])


def test_equal_copies_are_coverage_rows(write_run, toy_rows, tmp_path):
    write_run("m", [*toy_rows, toy_rows[1]])
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert len(runs.responses) == 4
    assert runs.coverage.loc[runs.coverage["what"] == "duplicate", ["item", "reason"]].values.tolist() == [
        ["1", "row 6 repeats an earlier one"]
    ]


def test_one_run_in_two_formats_is_read_once(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    write_run("m", toy_rows, suffix=".tsv")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert len(runs.responses) == 4
    assert said(runs, "excluded") == ["the same run in another format; m_Toy.xlsx is read"]


def test_verdict_file_alone_serves_as_predictions(write_run, toy_rows, tmp_path):
    logs = [f"Match Log: {r['prediction']}. " for r in toy_rows]
    write_run("m", judge_rows(toy_rows, logs, [1, 1, 0, 0]), tail="_g_result")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.responses["prediction"].tolist() == ["B", "A", "C", "A"]
    assert runs.judgements["hit"].tolist() == [1, 1, 0, 0]


def test_links_are_followed_and_broken_ones_reported(write_run, toy_rows, tmp_path):
    real = write_run("m", toy_rows, folder="elsewhere")
    folder = tmp_path / "results" / "m"
    folder.mkdir(parents=True)
    (folder / "m_Toy.xlsx").symlink_to(real)
    (folder / "m_Toy_gpt_result.xlsx").symlink_to(tmp_path / "gone.xlsx")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert len(runs.responses) == 4
    assert said(runs, "unreadable") == ["a link that leads nowhere; copy the file it meant"]


def test_blind_folder_replaces_blind_runs_of_the_main_folder(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    write_run("m_blind", toy_rows)
    write_run("m", [{**r, "prediction": "D"} for r in toy_rows], folder="noimage")
    runs = read_vlmevalkit(tmp_path / "results", "Toy", blind_folder=tmp_path / "noimage")
    blind = runs.responses[runs.responses["condition"] == "blind"]
    assert blind["prediction"].tolist() == ["D"] * 4
    assert said(runs, "excluded") == ["the run of the blind folder is used"]


def test_missing_verdicts_are_counted(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    rows = judge_rows(toy_rows, [f"Match Log: {r['prediction']}. " for r in toy_rows], [1, None, 0, 0])
    write_run("m", [*rows[:3], {**rows[3], "index": 99}], tail="_gpt_result")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.judgements["hit"].fillna(-1).tolist() == [1, -1, 0]
    assert "items without a verdict" in said(runs, "warning")
    assert "verdicts on items that the run does not hold" in said(runs, "excluded")


def test_verdicts_on_other_keys_are_refused(write_run, toy_rows, tmp_path):
    write_run("m", toy_rows)
    logs = ["Match Log: Z. "] * 4
    old = [{**r, "answer": "(C)" if r["index"] == 1 else r["answer"]} for r in toy_rows]
    write_run("m", judge_rows(old[::-1], logs, [0] * 4), tail="_gpt_result")
    with pytest.raises(AuditError, match=r"row 4: item '1' was judged on the key 'C', the run's key is 'A'\.") as e:
        read_vlmevalkit(tmp_path / "results", "Toy")
    assert "m_Toy_gpt_result.xlsx" in str(e.value) and "Mend: judge again with the current keys" in str(e.value)
    spelled = [{**r, "answer": f"({r['answer'].lower()})"} for r in toy_rows]
    write_run("m", judge_rows(spelled, logs, [0] * 4), tail="_gpt_result")
    assert len(read_vlmevalkit(tmp_path / "results", "Toy").judgements) == 4


def test_keys_that_are_option_texts_become_letters(write_run, toy_rows, tmp_path):
    write_run("m", [{**r, "answer": "red" if r["answer"] == "A" else r["answer"]} for r in toy_rows])
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.items["key"].tolist() == ["B", "A", "A", "D"]
    assert runs.coverage.set_index("reason").at["keys are the text of an option; its letter is taken", "n"] == 2


def test_capital_suffixes_and_csv_are_read(write_run, toy_rows, tmp_path):
    path = write_run("m", toy_rows)
    path.rename(path.with_suffix(".XLSX"))
    folder = tmp_path / "results" / "n"
    folder.mkdir()
    pd.DataFrame(toy_rows).to_csv(folder / "n_Toy.csv", index=False)
    (folder / "n_Toy_acc.csv").write_text("split,Overall\nnone,0.5\n")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.responses.groupby("model").size().to_dict() == {"m": 4, "n": 4}
    assert not said(runs, "unreadable")


def test_files_that_are_not_recognised_are_listed(write_run, toy_rows, tmp_path):
    path = write_run("m", toy_rows)
    for name in ("other_Toy.xlsx", "preds.xlsx"):
        path.with_name(name).write_bytes(path.read_bytes())
    path.with_name("status.json").write_text("{}")
    below = tmp_path / "results" / "org" / "name" / "org_name_Toy.xlsx"
    below.parent.mkdir(parents=True)
    below.write_bytes(path.read_bytes())
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert said(runs, "unreadable", "run") == ["m/other_Toy.xlsx", "m/preds.xlsx", "org/name"]
    assert all("not recognised, not read" in r for r in said(runs, "unreadable"))


def test_equal_ids_with_another_category_are_refused(write_run, toy_rows, tmp_path):
    write_run("m", [*toy_rows, {**toy_rows[0], "category": "zzz"}])
    with pytest.raises(AuditError, match="row 6: item '0' occurs twice with different stratum; the first is row 2"):
        read_vlmevalkit(tmp_path / "results", "Toy")
