"""VLMEvalKit run folders, links and ``status.json``.

Oracle of the real runs: the accuracies that the toolkit printed (own) and those read by hand from the same replies
(key), as listed beside the files.
"""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest

from auditlib.errors import AuditError
from auditlib.extract import extract_frame
from auditlib.readers import layout
from auditlib.readers.vlmevalkit import read_vlmevalkit
from auditlib.readers.vlmevalkit_status import plain_error, read_status

# folder, model, condition -> own by exact matching, own by the judge, by key
OWN = [
    ("outputs", "gemma-3-270m", "blind", 0.233, 0.233, 0.233),
    ("outputs", "tinyvlm-alpha", "full", 0.900, 0.900, 0.900),
    ("outputs", "tinyvlm-alpha", "blind", 0.257, 0.263, 0.257),
    ("outputs", "tinyvlm-beta", "full", 0.893, 0.893, 0.893),
    ("outputs", "tinyvlm-beta", "blind", 0.207, 0.213, 0.207),
    ("outputs", "tinyvlm-delta", "full", 0.610, 0.610, 0.610),
    ("outputs", "tinyvlm-delta", "blind", 0.240, 0.240, 0.240),
    ("outputs", "tinyvlm-gamma", "full", 0.867, 0.870, 0.867),
    ("outputs", "tinyvlm-gamma", "blind", 0.053, 0.087, 0.053),
    ("outputs_flaky", "tinyvlm-alpha", "full", None, 0.850, 0.867),
    ("outputs_flaky_split_think", "tinyvlm-alpha", "full", None, 0.867, 0.867),
    ("outputs_json", "tinyvlm-gamma", "full", None, None, 0.867),
    ("outputs_json", "tinyvlm-gamma", "blind", None, None, 0.053),
    ("outputs_local", "tinyvlm-alpha", "full", None, 0.900, 0.900),
    ("outputs_local", "tinyvlm-alpha", "blind", None, 0.260, 0.257),
    ("outputs_same_folder", "tinyvlm-alpha", "full", 0.900, None, 0.900),
    ("outputs_tsv", "tinyvlm-beta", "full", None, 0.893, 0.893),
    ("outputs_tsv", "tinyvlm-beta", "blind", None, 0.207, 0.207),
]


@pytest.fixture(scope="module")
def base(shared_data):
    return shared_data / "toolkit_runs" / "vlmevalkit"


@pytest.fixture(scope="module")
def read(base):
    kept: dict = {}

    def reading(folder, benchmark="TinySee", **more):
        key = (folder, benchmark, *sorted(more.items()))
        if key not in kept:
            kept[key] = read_vlmevalkit(base / folder, benchmark, **more)
        return kept[key]

    return reading


def said(runs, what, column="reason"):
    return runs.coverage.loc[runs.coverage["what"] == what, column].tolist()


def linked(base, model, dest, *, absolute=False):
    """A model's folder with the links that the toolkit leaves beside the run folders."""
    shutil.copytree(base / "outputs" / model, dest / model, ignore=shutil.ignore_patterns("*.log"))
    for run in sorted((dest / model).glob("T*")):
        for path in sorted(p for p in run.iterdir() if p.is_file() and p.name != "status.json"):
            link = dest / model / path.name
            link.unlink(missing_ok=True)
            link.symlink_to(path.resolve() if absolute else path.relative_to(dest / model))
    return dest


@pytest.mark.parametrize(("folder", "model", "condition", "exact", "judge", "key"), OWN)
def test_accuracies_of_real_runs(read, folder, model, condition, exact, judge, key):
    names = {"exact_matching": exact, "tiny-judge": judge}
    for name, accuracy in names.items():
        if accuracy is None:
            continue
        runs = read(folder, **({"judge": name} if folder == "outputs" else {}))
        rows = runs.judgements[(runs.judgements["model"] == model) & (runs.judgements["condition"] == condition)]
        assert len(rows) == 300 and set(rows["judge"]) == {name}
        assert round(rows["hit_stored"].mean(), 3) == accuracy
        assert "cache_stale" not in set(rows["source"])
    runs = read(folder, **({"judge": "tiny-judge"} if folder == "outputs" else {}))
    replies = runs.responses[(runs.responses["model"] == model) & (runs.responses["condition"] == condition)]
    items = runs.items[runs.items["run"] == replies["run"].iloc[0]]
    read_out = extract_frame(replies, items, ("letters", "option_text"))
    assert len(read_out) == 300
    letters = read_out.set_index("item")["letter"].astype(object).fillna("")
    assert round((letters == items.set_index("item")["key"]).mean(), 3) == key


def test_random_fills_are_void(read):
    """Refusals of gamma: 43 random letters, 6 of them hits; without these .067 is left of the printed .087."""
    rows = read("outputs", judge="tiny-judge").judgements
    rows = rows[(rows["model"] == "tinyvlm-gamma") & (rows["condition"] == "blind")]
    filled = rows[rows["source"] == "random_fill"]
    assert len(filled) == 43 and filled["hit_stored"].sum() == 6 and filled["hit"].isna().all()
    assert round(rows["hit_stored"].mean(), 3) == 0.087
    assert round(rows["hit"].sum() / 300, 3) == 0.067


def test_exact_matching_says_that_no_judge_was_asked(read):
    rows = read("outputs", judge="exact_matching").judgements
    gamma = rows[(rows["model"] == "tinyvlm-gamma") & (rows["condition"] == "blind")]
    assert (gamma["source"] == "exact_fallback").sum() > 200
    assert gamma.loc[gamma["source"] == "exact_fallback", "hit"].sum() == 0


def test_several_judges_need_a_choice(base):
    with pytest.raises(AuditError, match=r"several judges for TinySee: exact_matching, tiny-judge.*judge: NAME"):
        read_vlmevalkit(base / "outputs", "TinySee")


def test_older_runs_are_said(read):
    """Verdicts by exact matching lie in the first run, replies are read from the second, which copied them."""
    runs = read("outputs", judge="exact_matching")
    alpha = runs.coverage[runs.coverage["run"].str.startswith("tinyvlm-alpha/")]
    assert alpha.loc[alpha["what"] == "excluded", "reason"].tolist() == [
        "older run; tinyvlm-alpha/T20261130-002601/tinyvlm-alpha_TinySee.xlsx is read (the same replies)"
    ]
    assert set(runs.judgements.loc[runs.judgements["model"] == "tinyvlm-alpha", "run"]) == {
        "tinyvlm-alpha/T20261130-002537/tinyvlm-alpha_TinySee_exact_matching_result.xlsx",
        "tinyvlm-alpha_blind/T20261130-002617/tinyvlm-alpha_blind_TinySee_exact_matching_result.xlsx",
    }


def test_benchmark_of_the_blind_runs(read):
    """TinySee_text lies in the full model's folder; named as the blind benchmark it is alpha's blind run."""
    runs = read("outputs", judge="exact_matching", blind_benchmark="TinySee_text")
    blind = runs.responses[runs.responses["condition"] == "blind"]
    assert set(blind.loc[blind["model"] == "tinyvlm-alpha", "run"]) == {
        "tinyvlm-alpha/T20261130-003615/tinyvlm-alpha_TinySee_text.xlsx"
    }
    assert blind["model"].nunique() == 5
    assert said(runs, "excluded").count("the run of TinySee_text is used") == 4  # two runs: replies and verdicts
    alone = read("outputs", "TinySee_text")
    assert alone.responses.groupby(["model", "condition"]).size().to_dict() == {("tinyvlm-alpha", "full"): 300}


def test_circular_verdicts_stay_apart(read):
    runs = read("outputs", "TinySee_circular")
    assert runs.responses.groupby("condition").size().to_dict() == {"blind": 240, "full": 240}
    assert set(runs.judgements["level"]) == {"circular"}
    means = runs.judgements.groupby("condition")["hit_stored"].mean().round(3).to_dict()
    assert means == {"full": 0.867, "blind": 0.217}  # 60 groups, as printed
    assert (runs.judgements["item"].astype(int) < 1_000_000).all()
    assert set(runs.judgements["item"]) == set(runs.items["cluster"])
    assert "items without a verdict" not in said(runs, "warning")


@pytest.mark.parametrize("absolute", [False, True])
def test_links_into_several_runs_count_once(base, read, tmp_path, absolute):
    """Beside the run folders, the exact result links into run 1, replies and the judge's result into run 2."""
    folder = linked(base, "tinyvlm-alpha", tmp_path / "outputs", absolute=absolute)
    top = folder / "tinyvlm-alpha"
    assert "002537" in str((top / "tinyvlm-alpha_TinySee_exact_matching_result.xlsx").readlink())
    assert "002601" in str((top / "tinyvlm-alpha_TinySee.xlsx").readlink())
    for judge in ("exact_matching", "tiny-judge"):
        runs = read_vlmevalkit(folder, "TinySee", judge=judge)
        plain = read("outputs", judge=judge)
        mine = plain.responses[(plain.responses["model"] == "tinyvlm-alpha") & (plain.responses["condition"] == "full")]
        pd.testing.assert_frame_equal(runs.responses, mine.reset_index(drop=True))
        assert len(runs.judgements) == 300 and round(runs.judgements["hit_stored"].mean(), 3) == 0.900


def test_links_of_a_moved_folder(base, tmp_path):
    """Absolute links lead nowhere once the folder was moved; the run folders still hold the files."""
    linked(base, "tinyvlm-alpha", tmp_path / "before", absolute=True)
    (tmp_path / "before").rename(tmp_path / "after")
    runs = read_vlmevalkit(tmp_path / "after", "TinySee", judge="tiny-judge")
    assert len(runs.responses) == len(runs.judgements) == 300
    # replies, two results and two caches; the totals' link too
    moved = [r for r in said(runs, "warning") if "the folder was moved" in r]
    assert len(moved) == 6
    for path in (tmp_path / "after" / "tinyvlm-alpha").glob("T*/*.xlsx"):
        path.unlink()
    with pytest.raises(AuditError):
        read_vlmevalkit(tmp_path / "after", "TinySee", judge="tiny-judge")


def run_rows(n=24, reply="B"):
    return [
        {"index": i, "question": f"q{i}", "A": "red", "B": "blue", "C": "green", "answer": "A", "category": "c",
         "prediction": reply if i else "A"}
        for i in range(n)
    ]  # fmt: skip


def test_link_to_another_model_is_no_second_model(write_run, tmp_path):
    real = write_run("m", run_rows())
    other = tmp_path / "results" / "n" / "n_Toy.xlsx"
    other.parent.mkdir()
    other.symlink_to(real)
    blind = tmp_path / "results" / "m_blind" / "m_Toy.xlsx"
    blind.parent.mkdir()
    blind.symlink_to(real)
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert runs.responses[["model", "condition"]].drop_duplicates().values.tolist() == [["m", "full"]]
    foreign = runs.coverage[runs.coverage["reason"].str.contains("link to another run's file")]
    assert foreign["run"].tolist() == ["m_blind/m_Toy.xlsx", "n/n_Toy.xlsx"]


def test_newest_run_is_read_and_differences_are_counted(write_run, tmp_path):
    """Both spellings of run folders; a verdict file on the old replies is not taken for the new ones."""
    old, new = run_rows(), run_rows(reply="C")
    logs = [{"hit": 0, "log": f"Match Log: {r['prediction']}. "} for r in old]
    for name, rows, tail in (
        ("T20241108_G0123abcd", old, ""),
        ("T20241108_G0123abcd", [{**r, **log} for r, log in zip(old, logs)], "_j_result"),
        ("T20250101_Gunknown", new, ""),
    ):
        path = write_run("m", rows, tail=tail, folder="made")
        below = tmp_path / "results" / "m" / name / path.name
        below.parent.mkdir(parents=True, exist_ok=True)
        path.rename(below)
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert set(runs.responses["run"]) == {"m/T20250101_Gunknown/m_Toy.xlsx"}
    assert not len(runs.judgements)
    assert sorted(said(runs, "excluded")) == [
        "older run; m/T20250101_Gunknown/m_Toy.xlsx is read (23 replies differ)",
        "verdicts on replies of another run (23 of them differ)",
    ]
    assert said(runs, "not run") == ["no verdicts of judge 'j'"]
    own = layout.scan(tmp_path / "results" / "m", "Toy")  # one model's folder of run folders
    assert {f.model for f in own if f.kind == "predictions"} == {"m"}


def test_org_and_name_folders(write_run, tmp_path):
    source = write_run("x", run_rows(), folder="made")
    for below in ("org/name/name_Toy.xlsx", "org/name_blind/T20250101-000000/name_blind_Toy.xlsx",
                  "org2/other/org2--other_Toy.xlsx"):  # fmt: skip
        path = tmp_path / "results" / below
        path.parent.mkdir(parents=True)
        shutil.copy(source, path)
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    got = runs.responses[["model", "condition"]].drop_duplicates().values.tolist()
    assert got == [["org/name", "full"], ["org/name", "blind"], ["org2/other", "full"]]


def test_model_by_status_where_the_folder_was_renamed(write_run, tmp_path):
    path = write_run("m", run_rows())
    path.parent.rename(tmp_path / "results" / "renamed")
    runs_of = [f.kind for f in layout.scan(tmp_path / "results")]
    assert runs_of == ["unknown"]
    status = tmp_path / "results" / "renamed" / "status.json"
    status.write_text(json.dumps({"model_name": "m", "datasets": {}}))
    assert read_vlmevalkit(tmp_path / "results", "Toy").models["model"].tolist() == ["m"]


def test_conditions_by_pattern(write_run, tmp_path):
    for model, reply in (("m", "B"), ("m-noimg", "C"), ("m-gray", "A"), ("m-test", "B")):
        write_run(model, run_rows(reply=reply))
    stated = {"*-noimg/*": "blind", "*-gray/*": "gray", "m-test/*": "skip"}
    runs = read_vlmevalkit(tmp_path / "results", "Toy", conditions=stated)
    assert runs.responses.groupby(["model", "condition"]).size().to_dict() == {
        ("m", "blind"): 24,
        ("m", "full"): 24,
        ("m", "gray"): 24,
    }
    assert "skipped in the params" in said(runs, "excluded")
    left = read_vlmevalkit(tmp_path / "results", "Toy")
    assert set(left.responses["condition"]) == {"full"} and left.responses["model"].nunique() == 4


def test_pattern_beats_ending_and_blind_folder(write_run, tmp_path):
    write_run("m", run_rows())
    write_run("m_blind", run_rows(reply="C"))
    write_run("m", run_rows(reply="A"), folder="beside")
    runs = read_vlmevalkit(
        tmp_path / "results", "Toy", blind_folder=tmp_path / "beside", conditions={"m_blind/*": "blank"}
    )
    assert set(runs.responses["condition"]) == {"full", "blank", "blind"}


def test_rows_by_value(write_run, tmp_path):
    rows = [{**r, "split": "dev" if i < 4 else "validation"} for i, r in enumerate(run_rows())]
    write_run("m", rows)
    write_run("m", [{**r, "hit": 0, "log": f"Match Log: {r['prediction']}. "} for r in rows], tail="_j_result")
    pd.DataFrame(rows).drop(columns="prediction").to_csv(tmp_path / "results" / "Toy.tsv", sep="\t", index=False)
    runs = read_vlmevalkit(tmp_path / "results", "Toy", where={"split": "validation"})
    assert len(runs.responses) == len(runs.judgements) == len(runs.dataset) == 20
    assert runs.coverage.set_index("reason").at["rows outside split=validation", "n"] == 4
    with pytest.raises(AuditError, match="where names the column 'nope'"):
        read_vlmevalkit(tmp_path / "results", "Toy", where={"nope": "1"})
    with pytest.raises(AuditError, match="no row is left"):
        read_vlmevalkit(tmp_path / "results", "Toy", where={"split": "test"})


def test_provenance_without_arguments(read):
    runs = read("outputs", judge="tiny-judge")
    facts = runs.provenance["runs"]["tinyvlm-alpha/T20261130-002601/tinyvlm-alpha_TinySee.xlsx"]
    assert facts["eval_id"] == "T20261130-002601"
    assert facts["source_run"] == "T20261130-002537"
    assert facts["judge_model"] == "tiny-judge"
    assert facts["status"] == "done"
    assert not {"argv", "metrics", "prediction_file"} & set(facts)


def test_keys_in_arguments_and_logs_never_come_out(write_run, tmp_path):
    secret = "sk-verysecret12345"
    path = write_run("m", run_rows())
    argv = ["/Users/somebody/run.py", "--key", secret, f"--judge-key={secret}"]
    own = {"status": "done", "judge_model": "j", "error_message": f"401 for {secret} in /Users/somebody/x.py\nmore"}
    status = {"model_name": "m", "eval_id": "T1", "argv": argv, "api_key": secret, "datasets": {"Toy": own}}
    path.with_name("status.json").write_text(json.dumps(status))
    (path.parent / "logs").mkdir()
    (path.parent / "logs" / "a.log").write_text(f"Using API Base; API Key: {secret}")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    out = json.dumps(runs.provenance) + runs.coverage.to_csv() + runs.items.to_csv() + runs.responses.to_csv()
    assert secret not in out and "somebody" not in out and "argv" not in out
    assert said(runs, "warning") == ["evaluation failed, state 'done': 401 for ... in x.py"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("API Key: x", "API Key: ..."),
        ("'list' object has no attribute 'sort_values'", "'list' object has no attribute 'sort_values'"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ..."),
        ("got Bearer abc.def", "got Bearer ..."),
        ("KeyError: 'hit'", "KeyError: 'hit'"),
        ("x" * 200, "x" * 117 + "..."),
    ],
)
def test_error_messages(text, shown):
    assert plain_error(text) == shown


def test_damaged_status_is_no_obstacle(write_run, tmp_path):
    path = write_run("m", run_rows())
    for text in ("", "[1]", '{"datasets": [1]}', '{"datasets": {"Toy": 1}}', "{" * 5000):
        path.with_name("status.json").write_text(text)
        assert len(read_vlmevalkit(tmp_path / "results", "Toy").responses) == 24
        assert read_status(path.parent, "Toy").facts == {}


def test_crashed_evaluation_is_said(read):
    """Evaluation of json replies crashes in the toolkit, which writes 'done' all the same."""
    runs = read("outputs_json")
    crashed = [r for r in said(runs, "warning") if "evaluation failed, state 'done'" in r]
    assert len(crashed) == 2 and "sort_values" in crashed[0]


def test_run_that_asked_nothing(read, base, tmp_path, write_run):
    """The second run in one folder kept the first one's 300 replies; .3 s are too few to ask."""
    runs = read("outputs_same_folder")
    assert any("took 0.3 s for 300 replies" in r for r in said(runs, "warning"))
    for folder in ("outputs_local", "outputs_tsv", "outputs_flaky", "outputs_flaky_split_think", "outputs_json"):
        assert not any("asked nothing" in r for r in said(read(folder), "warning"))
    copied = tmp_path / "copied"
    for name in ("tinyvlm-alpha", "tinyvlm-alpha_blind"):
        (copied / name).mkdir(parents=True)
        source = base / "outputs_same_folder" / "tinyvlm-alpha" / "tinyvlm-alpha_TinySee.xlsx"
        shutil.copy(source, copied / name / f"{name}_TinySee.xlsx")
    runs = read_vlmevalkit(copied, "TinySee")
    assert said(runs, "warning") == [
        "all replies are those of tinyvlm-alpha/tinyvlm-alpha_TinySee.xlsx: one of the two runs asked nothing, "
        "or is a copied file"
    ]


def test_leftovers_are_an_unfinished_run(write_run, tmp_path):
    path = write_run("m", run_rows())
    for name in ("m_Toy_PREV.pkl", "m_Toy_supp.pkl", "m_Toy_checkpoint.pkl", "01_Toy.pkl"):
        path.with_name(name).write_bytes(b"\x80\x04N.")
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    rows = runs.coverage[runs.coverage["what"] == "unreadable"]
    assert rows["reason"].str.startswith("left by a run that did not end").sum() == len(rows) == 4


def test_local_layout_beside_an_empty_run_folder(write_run, tmp_path):
    write_run("m", run_rows())
    (tmp_path / "results" / "m" / "T20261130-002654").mkdir()
    (tmp_path / "results" / "logs").mkdir()
    runs = read_vlmevalkit(tmp_path / "results", "Toy")
    assert len(runs.responses) == 24 and not said(runs, "unreadable")


def test_lost_option_and_lost_formulas(read):
    """Option None is blank in the files, so the key letter of items 17, 32 and 76 has no text."""
    items = read("outputs", judge="tiny-judge").items.drop_duplicates("item").set_index("item")
    lost = [i for i, r in items.iterrows() if "ABCD".index(r["key"]) >= len(r["options"])
            or not r["options"]["ABCD".index(r["key"])]]  # fmt: skip
    assert sorted(lost, key=int) == ["17", "32", "76"]
    flaky = read("outputs_flaky")
    zeros = flaky.responses[flaky.responses["prediction"] == "0"]
    assert len(zeros) == 3
    assert next(n for r, n in zip(flaky.coverage["reason"], flaky.coverage["n"]) if "number 0" in r) == 3
