"""Recognising results folders and writing params for them."""

from __future__ import annotations

import pickle

import pytest

from auditlib.errors import AuditError
from auditlib.params import load_params
from auditlib.readers import read_runs
from auditlib.readers.discover import discover, params_of_folder
from auditlib.readers.discover_params import write_params
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
    assert "verdicts of 3 judges: choose one with 'judge'" in found.missing("Toy")
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
