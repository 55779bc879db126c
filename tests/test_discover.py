"""Recognising results folders and writing params for them."""

from __future__ import annotations

import pickle
import sys

import pytest
import toolkit_trees as trees

import auditlib
from auditlib import starting
from auditlib.errors import AuditError
from auditlib.params import load_params
from auditlib.readers import read_runs
from auditlib.readers.discover import chief_benchmarks, discover, discover_all, params_of_folder, survey, toolkit_of
from auditlib.readers.discover_params import pool_names, write_params
from auditlib.readers.discover_roots import look
from auditlib.synth.embedded import materialise


def test_tinysee():
    found = discover(materialise("tinysee", "unused"))
    assert found.benchmarks == ["TinySee"]
    assert found.models("TinySee") == [f"tinyvlm-{n}" for n in ("alpha", "beta", "delta", "gamma")]
    assert found.judges("TinySee") == {"tiny-judge": 8}
    assert found.missing("TinySee") == []


def test_written_params_read_the_same_runs(tmp_path):
    folder = materialise("tinysee", "unused")
    path = write_params(discover(folder), "TinySee", tmp_path)
    assert path == tmp_path / "tinysee.yaml"
    params = load_params(path)
    assert (params.benchmark, params.judge) == ("TinySee", "tiny-judge")
    assert params.data.folder == folder and params.data.dataset == folder / "TinySee.tsv"
    runs = read_runs(params.data, benchmark=params.benchmark, judge=params.judge)
    assert len(runs.responses) == 2400 and len(runs.dataset) == 300
    same = params_of_folder(folder)
    assert same.model_dump(exclude={"source"}) == params.model_dump(exclude={"source"}) and same.source is None
    with pytest.raises(AuditError, match="exists already"):
        write_params(discover(folder), "TinySee", tmp_path)


def test_what_is_missing_is_said(write_run, toy_rows, tmp_path):
    for model in ("a", "a_blind", "b", "c_blind"):
        write_run(model, toy_rows)
    write_run("a", [{**r, "hit": 1, "log": "Match Log: Z. "} for r in toy_rows], tail="_gpt_result")
    found = discover(tmp_path / "results")
    assert found.models("Toy", "full") == ["a", "b"] and found.models("Toy", "blind") == ["a", "c"]
    assert found.missing("Toy") == [
        "b has no run without image", "c has no run with image",
        "no verdicts of gpt for a (blind), b (full), c (blind)",
        "no Toy.tsv: options as written and pictures are unknown"]  # fmt: skip
    text = write_params(found, "Toy", tmp_path).read_text()
    assert "# Toy: 2 models with image, 2 without, 1 with both." in text
    assert "# Missing: b has no run without image." in text


def test_only_full_runs(write_run, toy_rows, tmp_path):
    write_run("a", toy_rows)
    found = discover(tmp_path / "results")
    assert found.missing("Toy")[0] == "no run without image: visual dependency cannot be judged"
    assert "no verdict files: only the exact arm is possible" in found.missing("Toy")
    assert params_of_folder(tmp_path / "results").judge is None


def test_sibling_folder(write_run, toy_rows, tmp_path):
    write_run("a", toy_rows)
    write_run("a", toy_rows, folder="results_text-only")
    found = discover(tmp_path / "results")
    assert found.blind_folder == tmp_path / "results_text-only"
    assert found.models("Toy", "blind") == ["a"]
    params = params_of_folder(tmp_path / "results")
    assert params.data.blind_folder == tmp_path / "results_text-only"


def test_judge_is_chosen_and_the_others_named(write_run, toy_rows, tmp_path):
    write_run("a", toy_rows)
    for judge in ("exact_matching", "gpt", "qwen"):
        write_run("a", [{**r, "hit": 1, "log": "x"} for r in toy_rows], tail=f"_{judge}_result")
    found = discover(tmp_path / "results")
    assert "verdicts of 3 judges: 'judge' says which one counts" in found.missing("Toy")
    assert "judge: qwen # also here: exact_matching, gpt" in write_params(found, "Toy", tmp_path).read_text()


def test_several_benchmarks(write_run, toy_rows, tmp_path):
    for bench in ("Toy", "Toy_circular", "Other"):
        write_run("a", toy_rows, bench=bench)
    # verdicts of other question types: the judge's name is all that tells the file from predictions
    write_run("a", [{**r, "res": "1", "log": "x"} for r in toy_rows], tail="_gpt-4o-mini")
    assert discover(tmp_path / "results").benchmarks == ["Other", "Toy", "Toy_circular"]
    with pytest.raises(AuditError, match=r"several benchmarks.*Other, Toy, Toy_circular"):
        params_of_folder(tmp_path / "results")
    assert params_of_folder(tmp_path / "results", "Toy_circular").pool == "toy_circular"
    with pytest.raises(AuditError, match="benchmarks here: Other, Toy"):
        params_of_folder(tmp_path / "results", "Toys")


@pytest.mark.parametrize("name", ["m: x", "yes", "1.0", "a#b", "naïve 'q'", '"q"', "null", "Qwen2.5-VL-7B"])
def test_odd_model_names_survive_the_yaml(write_run, toy_rows, tmp_path, name):
    write_run(name, toy_rows)
    params = load_params(write_params(discover(tmp_path / "results"), "Toy", tmp_path))
    assert [m.name for m in params.models] == [name]


def test_benchmark_names_become_pool_names(write_run, toy_rows, tmp_path):
    write_run("a", toy_rows, bench="My Bench (v2)")
    path = write_params(discover(tmp_path / "results"), "My Bench (v2)", tmp_path)
    assert path.name == "my_bench_v2.yaml"
    assert load_params(path).benchmark == "My Bench (v2)"


def test_files_without_model_folders(shared_data):
    found = discover(shared_data / "real" / "mmstar_llava_next")
    assert found.benchmarks == ["MMStar"] and found.models("MMStar") == ["llava_next_yi_34b"]


def test_unknown_folders(write_run, tmp_path, shared_data):
    with pytest.raises(AuditError, match="no such results folder"):
        discover(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AuditError, match="no results of a known toolkit"):
        discover(tmp_path / "empty")
    (tmp_path / "empty" / "runs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(AuditError, match=r"read runs.csv with data: \{table"):
        discover(tmp_path / "empty")
    run = tmp_path / "pickles" / "m"
    run.mkdir(parents=True)
    (run / "m_Toy.pkl").write_bytes(pickle.dumps({"1": "B"}))
    with pytest.raises(AuditError, match="a pickle is never opened"):
        discover(tmp_path / "pickles")


def test_files_that_are_not_recognised_are_said(write_run, toy_rows, tmp_path):
    path = write_run("m", toy_rows)
    path.with_name("preds.xlsx").write_bytes(path.read_bytes())
    found = discover(tmp_path / "results")
    assert found.benchmarks == ["Toy"]
    assert "m/preds.xlsx is not recognised and not read" in found.missing("Toy")
    assert "m/preds.xlsx is not recognised" in write_params(found, "Toy", tmp_path).read_text()
    path.unlink()
    with pytest.raises(AuditError, match=r"not recognised: m/preds.xlsx"):
        discover(tmp_path / "results")


def test_run_folders_of_real_files(shared_data):
    found = discover(shared_data / "toolkit_runs" / "vlmevalkit" / "outputs")
    vlms = [f"tinyvlm-{n}" for n in ("alpha", "beta", "delta", "gamma")]
    assert found.benchmarks == ["TinySee", "TinySee_circular", "TinySee_text"]
    assert found.models("TinySee", "full") == vlms
    assert found.models("TinySee", "blind") == ["gemma-3-270m", *vlms]
    assert found.models("TinySee_circular") == ["tinyvlm-beta"]
    assert found.models("TinySee_text", "full") == ["tinyvlm-alpha"] and found.blind_benchmark("TinySee") is None


def test_loops_dangling_links_and_second_names(write_run, toy_rows, tmp_path):
    path = write_run("a", toy_rows, folder="tree/results")
    path.parent.joinpath("loop").symlink_to(tmp_path / "tree")
    (tmp_path / "tree" / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "tree" / "again").symlink_to(tmp_path / "tree" / "results")
    tree = look(tmp_path / "tree")
    assert tree.roots == [(tmp_path / "tree" / "results", "vlmevalkit")]
    assert tree.notes == ["gone is a link that leads nowhere"]


def test_roots_of_the_four_toolkits(shared_data):
    folder = shared_data / "toolkit_runs"
    roots = {(r.relative_to(folder).as_posix(), kit) for r, kit in look(folder).roots}
    ends = ("", "_flaky", "_flaky_split_think", "_json", "_local", "_local_text-only", "_same_folder", "_tsv")
    logs = ("", "_blind_same_task", "_cache", "_cache_blind_same_task", "_cache_full_after_blind", "_flaky")
    expected = {(f"vlmevalkit/outputs{e}", "vlmevalkit") for e in ends}
    expected |= {(f"lmms-eval/logs{e}", "lmms-eval") for e in logs}
    expected |= {(f"inspect-ai/logs{e}", "inspect") for e in ("", "_flaky", "_json", "_shuffled")}
    assert roots == expected | {("lm-eval/results", "lm-eval")}


def seen(folder, founds):
    """(toolkit, root, benchmark) -> models with image, models without."""
    return {
        (f.toolkit, f.folder.relative_to(folder).as_posix(), b): (f.models(b, "full"), f.models(b, "blind"))
        for f in founds
        for b in chief_benchmarks(f)
    }


def test_tree_of_four_toolkits(tmp_path):
    pytest.importorskip("inspect_ai")
    both = (["one", "two"], ["one", "two"])
    founds = discover_all(trees.everything(tmp_path))
    assert seen(tmp_path, founds) == {
        ("lmms-eval", "lmms/logs", "mmstar"): both,
        ("lm-eval", "lm/results", "mmstar_text"): (["one", "two"], []),
        ("inspect", "inspect/logs", "mmstar"): both,
        ("every-eval-ever", "exchange", "mmstar"): both,
    }
    assert founds[0].blind_benchmark("mmstar") == "mmstar_text_only"
    pairs = [(f, b) for f in founds for b in chief_benchmarks(f)]
    assert pool_names(founds, pairs) == ["mmstar", "mmstar_text", "mmstar_inspect", "mmstar_every-eval-ever"]


def test_written_params_of_a_tree_are_read(tmp_path):
    """Oracle: four items, two models, both conditions; of the blind replies one of four is right."""
    pytest.importorskip("inspect_ai")
    files, notes = starting.init(starting.Wish(trees.everything(tmp_path / "tree")), to=tmp_path / "params")
    assert notes == [] and [m.toolkit for _, m in files] == ["lmms-eval", "lm-eval", "inspect", "every-eval-ever"]
    for file, made in files:
        pool = auditlib.read_pool(file)
        assert (len(pool.items), pool.model_names) == (4, ["one", "two"])
        hits = pool.arms["judged"].hits
        if made.toolkit == "lm-eval":  # the strict filter loses one answer
            assert load_params(file).judge == "strict-letter" and hits["full"].sum(axis=0).tolist() == [3, 3]
        else:
            assert [hits[c].sum(axis=0).tolist() for c in ("full", "blind")] == [[4, 4], [1, 1]]


def test_toolkit_of_a_folder(tmp_path):
    assert toolkit_of(trees.lm_eval(tmp_path / "lm")) == "lm-eval"
    trees.lmms_eval(tmp_path / "lmms")
    with pytest.raises(AuditError, match=r"results of 2 toolkits lie here: lm-eval, lmms-eval"):
        toolkit_of(tmp_path)


def test_logs_by_the_row_that_they_hold(tmp_path):
    """The older name of lmms-eval's samples is lm-eval's name, too."""
    folder = trees.lmms_eval(tmp_path / "lmms", tasks=("mmstar",))
    for path in folder.glob("*/*"):
        path.rename(path.with_name("samples_mmstar_2026-01-01T00-00-00.jsonl"))
    assert toolkit_of(folder) == "lmms-eval"


def test_sibling_folder_before_a_task_without_image(tmp_path):
    logs = trees.lmms_eval(tmp_path / "logs")
    trees.lmms_eval(tmp_path / "logs_blind", tasks=("mmstar",))
    text = write_params(discover(logs), "mmstar", tmp_path).read_text()
    assert "  blind_folder: logs_blind # runs without image" in text and "  blind_benchmark:" not in text
    assert ("# Note: the runs without image are those in logs_blind; if mmstar_text_only is meant instead, write "
            "blind_benchmark: mmstar_text_only and take blind_folder out.") in text  # fmt: skip
    pool = auditlib.read_pool(tmp_path / "mmstar.yaml")
    assert pool.arms["judged"].hits["blind"].sum(axis=0).tolist() == [4, 4]


def test_sibling_folder_of_another_benchmark_is_not_written(tmp_path):
    logs = trees.lmms_eval(tmp_path / "logs", tasks=("mmstar",))
    trees.lmms_eval(tmp_path / "logs_blind", tasks=("other",))
    assert "blind_folder" not in write_params(discover(logs), "mmstar", tmp_path).read_text()


def test_logs_of_a_package_that_is_missing_are_a_note(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    trees.inspect(tmp_path / "tree" / "logs")
    with pytest.raises(AuditError, match=r"need the package inspect-ai. Mend: pip install 'auditlib\[inspect\]'"):
        discover_all(tmp_path / "tree")
    trees.lmms_eval(tmp_path / "tree" / "lmms")
    found = survey(tmp_path / "tree")
    assert [f.toolkit for f in found.founds] == ["lmms-eval"]
    [note] = found.notes
    assert note.startswith("logs (inspect) is left out: Inspect's logs need the package inspect-ai")
    assert note in discover(tmp_path / "tree").remarks("mmstar")


def test_damaged_and_empty_logs_are_passed_over(tmp_path):
    logs = trees.lmms_eval(tmp_path / "logs")
    (logs / "one" / "20260101_000009_samples_mmstar.jsonl").write_text('{"doc_id": 0, "filt')
    (logs / "one" / "20260101_000008_samples_mmstar.jsonl").write_bytes(b"")
    (logs / "broken.eval").write_bytes(b"PK")
    assert discover(logs).models("mmstar") == ["one", "two"]


def test_real_tree(shared_data, tmp_path):
    """Oracle: the table of runs beside the real files."""
    pytest.importorskip("inspect_ai")
    folder = shared_data / "toolkit_runs"
    alpha, beta, delta, gamma = (f"tinyvlm-{n}" for n in ("alpha", "beta", "delta", "gamma"))
    four = [alpha, beta, delta, gamma]
    files, _ = starting.init(starting.Wish(folder), to=tmp_path)
    assert seen(folder, discover_all(folder)) == {
        ("vlmevalkit", "vlmevalkit/outputs", "TinySee"): (four, ["gemma-3-270m", *four]),
        ("vlmevalkit", "vlmevalkit/outputs", "TinySee_circular"): ([beta], [beta]),
        ("vlmevalkit", "vlmevalkit/outputs", "TinySee_text"): ([alpha], []),
        ("vlmevalkit", "vlmevalkit/outputs_flaky", "TinySee"): ([alpha], []),
        ("vlmevalkit", "vlmevalkit/outputs_flaky_split_think", "TinySee"): ([alpha], []),
        ("vlmevalkit", "vlmevalkit/outputs_json", "TinySee"): ([gamma], [gamma]),
        ("vlmevalkit", "vlmevalkit/outputs_local", "TinySee"): ([alpha], [alpha]),
        ("vlmevalkit", "vlmevalkit/outputs_same_folder", "TinySee"): ([alpha], []),
        ("vlmevalkit", "vlmevalkit/outputs_tsv", "TinySee"): ([beta], [beta]),
        ("lmms-eval", "lmms-eval/logs", "tinysee"): (four, four),
        ("lmms-eval", "lmms-eval/logs_blind_same_task", "tinysee"): ([alpha], []),
        ("lmms-eval", "lmms-eval/logs_cache", "tinysee"): ([alpha], [alpha]),
        ("lmms-eval", "lmms-eval/logs_cache_blind_same_task", "tinysee"): ([alpha], []),
        ("lmms-eval", "lmms-eval/logs_cache_full_after_blind", "tinysee"): ([alpha], []),
        ("lmms-eval", "lmms-eval/logs_flaky", "tinysee"): ([alpha], []),
        ("lm-eval", "lm-eval/results", "tinysee_text"): (["gemma-3-270m", *four], []),
        ("inspect", "inspect-ai/logs", "tinysee"): ([alpha, beta, gamma], [alpha, beta, gamma]),
        ("inspect", "inspect-ai/logs_flaky", "tinysee"): ([alpha], []),
        ("inspect", "inspect-ai/logs_json", "tinysee"): ([gamma], [gamma]),
        ("inspect", "inspect-ai/logs_shuffled", "tinysee"): ([], [alpha]),
    }
    made = {m.folder.relative_to(folder).as_posix(): load_params(f) for f, m in reversed(files)}
    assert len(files) == 20 and len({load_params(f).pool for f, _ in files}) == 20
    assert made["lmms-eval/logs"].judge == "acc" and made["lmms-eval/logs"].data.blind_benchmark == "tinysee_text_only"
    for root, models, rows in [
        ("vlmevalkit/outputs", 5, {"full": 1200, "blind": 1500}),
        ("lmms-eval/logs", 4, {"full": 1200, "blind": 1200}),
        ("lm-eval/results", 5, {"full": 1500}),
        ("inspect-ai/logs_flaky", 1, {"full": 120}),
    ]:
        pool = auditlib.read_pool(made[root])
        assert len(pool.model_names) == models
        assert pool.responses.groupby("condition").size().to_dict() == rows
