"""The command: exit codes, one line on stderr for a user's mistake, nothing half-written, files that init writes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import toolkit_trees as trees
import yaml

from auditlib import pipeline, stages, starting, worker
from auditlib.__main__ import main
from auditlib.errors import AuditError
from auditlib.params import load_params

ROOT = Path(__file__).resolve().parents[1]
TINYSEE = ROOT / "auditlib/synth/data/tinysee"


@pytest.fixture
def in_process(monkeypatch):
    """Run pools in this process, so that a mistake in the files is met without starting another Python."""

    def work(crew, job):
        return worker.run_pool(job, lambda stage, text: crew.say("", stage, text))

    monkeypatch.setattr(pipeline.Crew, "work", work)


def mistake(capsys, *words: str | Path) -> str:
    """Run the command, expect exit code 2, and return its only line on stderr."""
    assert main([str(w) for w in words]) == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err + said.out
    [line] = said.err.strip().splitlines()
    assert line.startswith("auditlib: ")
    return line


def results(tmp_path: Path, toy_rows: list[dict], write_run) -> Path:
    """Two models, full and blind, of four items, as VLMEvalKit writes them."""
    for model in ("m", "n", "m_blind", "n_blind"):
        write_run(model, toy_rows)
    return tmp_path / "results"


# ----------------------------------------------------------------------------------------------------- arguments


def test_help_and_unknown_arguments(capsys):
    for words in (["--help"], ["run", "--help"], ["audit", "--help"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0
    assert "--benchmark" in capsys.readouterr().out
    for words in ([], ["rnu"], ["run"], ["run", "x.yaml", "--limit", "0"], ["run", "x.yaml", "--jobs", "two"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 2


def test_command_starts_light():
    code = (
        "import sys, auditlib.__main__ as m; m._parser(); print([n for n in sys.modules if n in ('numpy', 'pandas')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------------ params mistakes


def test_params_typo_names_the_nearest_key(tmp_path, capsys):
    file = tmp_path / "p.yaml"
    file.write_text("pool: p\nbenchmark: B\ndata: {embedded: tinysee}\naudit: {permutation: 99}\n")
    for command in ("run", "check", "status"):
        line = mistake(capsys, command, file, "--outputs", tmp_path / "o")
        assert "p.yaml: unknown key 'audit.permutation'. Mend: did you mean 'permutations'?" in line
    assert not (tmp_path / "o").exists()


def test_params_file_that_is_none(tmp_path, capsys):
    assert "there is no such params file" in mistake(capsys, "run", tmp_path / "no.yaml")
    (tmp_path / "p.yaml").write_text("pool: [")
    assert "p.yaml, row" in mistake(capsys, "run", tmp_path / "p.yaml")
    (tmp_path / "p.yaml").write_text("pool: a\nbenchmark: B\ndata: {embedded: tinysee}\n")
    assert "no pool matches 'b*'" in mistake(capsys, "run", tmp_path / "p.yaml", "--pools", "b*")


def test_each_broken_params_file_has_its_line(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(f"pool: {name}\nbenchmark: B\n")
    assert main(["run", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert [Path(line.split(": ")[1]).name for line in lines] == ["a.yaml", "b.yaml"]


@pytest.mark.slow
def test_params_typo_under_plain_papermill(tmp_path):
    (tmp_path / "bad.yaml").write_text("pool: p\nbenchmark: B\ndata: {embedded: tinysee}\nsede: 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "papermill", "notebooks/10_audit.ipynb", str(tmp_path / "out.ipynb"), "-p", "params",
         str(tmp_path / "bad.yaml"), "-p", "outputs", str(tmp_path / "o")],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("AuditError: ") and "bad.yaml: unknown key 'sede'. Mend: did you mean 'seed'?" in last
    assert not (tmp_path / "o").exists()


# ------------------------------------------------------------------------------------------- mistakes in the files


def _missing(folder: Path) -> None:
    (folder / "runs.csv").unlink()


def _empty(folder: Path) -> None:
    (folder / "runs.csv").write_bytes(b"")


def _no_id(folder: Path) -> None:
    (folder / "runs.csv").write_text("number,model,condition,prediction,key\n1,m,full,A,A\n")


def _latin(folder: Path) -> None:
    (folder / "runs.csv").write_bytes(b"item,model,condition,prediction,key\n1,m,full,caf\xe9,A\n")


def _pickle(folder: Path) -> None:
    (folder / "runs.csv").write_bytes(pickle.dumps({"item": [1]}))


def _duplicates(folder: Path) -> None:
    (folder / "runs.csv").write_text("item,model,condition,prediction,key\n1,m,full,A,A\n1,m,full,B,A\n2,m,full,B,A\n")


def _keys_differ(folder: Path) -> None:
    (folder / "runs.csv").write_text(
        "item,model,condition,prediction,key\n1,m,full,A,A\n2,m,full,A,B\n1,n,full,A,B\n2,n,full,A,B\n"
    )


def _nothing_shared(folder: Path) -> None:
    (folder / "runs.csv").write_text("item,model,condition,prediction,key\n1,m,full,A,A\n2,n,full,A,A\n")


def _all_empty(folder: Path) -> None:
    (folder / "runs.csv").write_text("item,model,condition,prediction,key\n1,m,full,,A\n2,m,full,,A\n")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_missing, "data.table names 'runs.csv', which does not exist"),
        (_empty, "runs.csv: the file is empty"),
        (_no_id, "runs.csv, row 1: no id column"),
        (_latin, "runs.csv, row 2: not UTF-8"),
        (_pickle, "runs.csv: a pickle is never opened"),
        (_duplicates, "twice"),
        (_keys_differ, "key"),
        (_nothing_shared, "no item"),
        (_all_empty, "all 2 predictions are empty"),
    ],
)
def test_mistake_in_a_table(tmp_path, capsys, in_process, spoil, words):
    (tmp_path / "runs.csv").write_text("item,model,condition,prediction,key\n1,m,full,A,A\n2,m,full,B,A\n")
    (tmp_path / "p.yaml").write_text("pool: p\nbenchmark: B\ndata: {table: runs.csv}\n")
    spoil(tmp_path)
    line = mistake(capsys, "run", tmp_path / "p.yaml", "--outputs", tmp_path / "o")
    assert words in line and "Mend: " in line
    assert not [p for p in (tmp_path / "o").rglob("*") if p.is_file()] if (tmp_path / "o").exists() else True


def test_wrong_sheet_and_truncated_spreadsheet(tmp_path, capsys, in_process):
    table = pd.DataFrame({"item": ["1", "2"], "model": "m", "condition": "full", "prediction": "A", "key": "A"})
    table.to_excel(tmp_path / "runs.xlsx", index=False, engine="xlsxwriter")
    (tmp_path / "p.yaml").write_text("pool: p\nbenchmark: B\ndata: {table: runs.xlsx, sheet: Runs}\n")
    line = mistake(capsys, "run", tmp_path / "p.yaml", "--outputs", tmp_path / "o")
    assert "runs.xlsx: there is no sheet 'Runs'. Mend: sheets here: Sheet1" in line
    whole = (tmp_path / "runs.xlsx").read_bytes()
    (tmp_path / "runs.xlsx").write_bytes(whole[: len(whole) // 2])
    line = mistake(capsys, "run", tmp_path / "p.yaml", "--outputs", tmp_path / "o")
    assert "runs.xlsx: the spreadsheet is truncated" in line
    assert not (tmp_path / "o" / "p").exists()


def test_audit_of_a_folder_with_a_mistake_leaves_nothing(tmp_path, capsys, in_process, toy_rows, write_run):
    folder = results(tmp_path, toy_rows, write_run)
    run = folder / "n/n_Toy.xlsx"
    run.write_bytes(run.read_bytes()[:200])
    out = tmp_path / "o"
    assert main(["audit", str(folder), "--benchmark", "Toy", "--outputs", str(out)]) == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    [line] = said.err.strip().splitlines()
    assert "n_Toy.xlsx" in line and "Mend: " in line
    assert not (out / "toy").exists()


def test_audit_of_no_folder_and_no_benchmark(tmp_path, capsys, toy_rows, write_run):
    folder = results(tmp_path, toy_rows, write_run)
    out = ("--outputs", tmp_path / "o")
    assert "there is no such file or folder" in mistake(capsys, "audit", tmp_path / "no", "--benchmark", "Toy", *out)
    assert "benchmarks here: Toy" in mistake(capsys, "audit", folder, "--benchmark", "Tow", *out)
    assert "cannot name a pool" in mistake(capsys, "audit", folder, "--benchmark", "Toy", "--pool", "a b", *out)
    file = folder / "m/m_Toy.xlsx"
    assert "a results folder is needed" in mistake(capsys, "audit", file, "--benchmark", "Toy", *out)
    assert not (tmp_path / "o").exists()


# -------------------------------------------------------------------------------------- what the system refuses


def test_outputs_or_to_that_is_a_file(tmp_path, capsys, in_process, toy_rows, write_run):
    folder = results(tmp_path, toy_rows, write_run)
    (tmp_path / "file").write_text("")
    words = ("--benchmark", "Toy")
    for line in (
        mistake(capsys, "audit", folder, *words, "--outputs", tmp_path / "file"),
        mistake(capsys, "init", folder, *words, "--to", tmp_path / "file"),
    ):
        assert "/file" in line and "Mend: a folder is needed where" in line
    (tmp_path / "p.yaml").write_text(f"pool: p\nbenchmark: Toy\ndata: {{folder: {folder.name}}}\n")
    assert "/file" in mistake(capsys, "run", tmp_path / "p.yaml", "--outputs", tmp_path / "file")
    assert (tmp_path / "file").read_text() == ""


def test_names_too_long_and_null_bytes(tmp_path, capsys, in_process, toy_rows, write_run):
    folder = results(tmp_path, toy_rows, write_run)
    long = "p" * 300
    line = mistake(capsys, "audit", folder, "--benchmark", "Toy", "--pool", long, "--outputs", tmp_path / "o")
    assert "File name too long. Mend: choose a shorter pool name" in line
    (tmp_path / "p.yaml").write_text(f"pool: {long}\nbenchmark: Toy\ndata: {{folder: {folder.name}}}\n")
    assert "File name too long" in mistake(capsys, "run", tmp_path / "p.yaml", "--outputs", tmp_path / "o")
    (tmp_path / "p.yaml").write_text('pool: p\nbenchmark: Toy\ndata: {table: "a\\0b"}\n')
    line = mistake(capsys, "run", tmp_path / "p.yaml", "--outputs", tmp_path / "o")
    assert "p.yaml" in line and "null" in line
    assert not list(tmp_path.glob("o/p*")) and not list(tmp_path.glob(".init*"))


def test_params_that_cannot_be_read(tmp_path, capsys, monkeypatch):
    (tmp_path / "p.yaml").write_text("pool: p\n")

    def refused(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", refused)
    for command in ("run", "check"):
        line = mistake(capsys, command, tmp_path / "p.yaml")
        assert "p.yaml" in line and "Permission denied" in line


@pytest.mark.parametrize("code", [worker.FAILED, worker.MISTAKE, None])
def test_audit_that_ends_before_anything_was_read_leaves_no_folder(
    tmp_path, capsys, monkeypatch, toy_rows, write_run, code
):
    def work(crew, job):
        if code is None:
            raise OSError(28, "No space left on device")
        return worker.Outcome("toy", code, "its process was ended by signal 9")

    monkeypatch.setattr(pipeline.Crew, "work", work)
    folder = results(tmp_path, toy_rows, write_run)
    ended = main(["audit", str(folder), "--benchmark", "Toy", "--outputs", str(tmp_path / "o")])
    assert ended == (worker.MISTAKE if code is None else code)
    assert not (tmp_path / "o/toy").exists()
    assert "Traceback" not in capsys.readouterr().err


def test_reserved_pool_name(tmp_path, capsys, toy_rows, write_run):
    folder = results(tmp_path, toy_rows, write_run)
    for words in (("audit", "--outputs"), ("init", "--to")):
        line = mistake(capsys, words[0], folder, "--benchmark", "Toy", "--pool", "index.html", words[1], tmp_path / "o")
        assert "the reserved name of a file over all pools" in line
    assert not (tmp_path / "o").exists()


# ---------------------------------------------------------------------------------------------------------- init


def test_init_pairs_full_and_blind_and_says_what_is_missing(tmp_path, capsys, toy_rows, write_run):
    folder = results(tmp_path, toy_rows, write_run)
    write_run("o", toy_rows)
    assert main(["init", str(folder), "--benchmark", "Toy", "--to", str(tmp_path / "params")]) == 0
    said = capsys.readouterr().out
    assert "3 models with image, 2 without, 2 with both" in said
    assert "Missing: o has no run without image" in said
    made = load_params(tmp_path / "params/toy.yaml")
    assert made.data.folder == folder.resolve()
    assert {m.name for m in made.models} == {"m", "n", "o"}
    line = mistake(capsys, "init", folder, "--benchmark", "Toy", "--to", tmp_path / "params")
    assert "the params file exists already" in line
    assert main(["init", str(folder), "--benchmark", "Toy", "--to", str(tmp_path / "params"), "--force"]) == 0
    assert sorted(p.name for p in (tmp_path / "params").iterdir()) == ["toy.yaml"]


def test_init_over_a_tree(tmp_path, capsys):
    trees.lmms_eval(tmp_path / "tree" / "logs")
    trees.lmms_eval(tmp_path / "tree" / "more" / "logs")
    trees.lm_eval(tmp_path / "tree" / "lm", task="mmstar")
    (tmp_path / "tree" / "gone").symlink_to(tmp_path / "nowhere")
    words = ("init", tmp_path / "tree", "--to", tmp_path / "params")
    assert main([str(w) for w in words]) == 0
    said = capsys.readouterr().out.splitlines()
    names = ["mmstar", "mmstar_lm-eval", "mmstar_logs"]
    assert sorted(p.stem for p in (tmp_path / "params").iterdir()) == names
    assert [line for line in said if not line.startswith(" ")] == [
        f"mmstar: lmms-eval, {tmp_path}/tree/logs", f"mmstar_logs: lmms-eval, {tmp_path}/tree/more/logs",
        f"mmstar_lm-eval: lm-eval, {tmp_path}/tree/lm", "Note: gone is a link that leads nowhere.",
        "3 params files; next: auditlib check FILE, or auditlib run FILES"]  # fmt: skip
    assert "exists already (and 2 more of this tree)" in mistake(capsys, *words)
    assert main([str(w) for w in (*words, "--force", "--toolkit", "LM_Eval", "--judge", "flexible-letter")]) == 0
    assert load_params(tmp_path / "params" / "mmstar.yaml").judge == "flexible-letter"


def test_mistakes_about_a_tree(tmp_path, capsys):
    trees.lmms_eval(tmp_path / "tree" / "logs")
    trees.lm_eval(tmp_path / "tree" / "lm", task="mmstar")
    (tmp_path / "empty").mkdir()
    (tmp_path / "pickles" / "m").mkdir(parents=True)
    (tmp_path / "pickles" / "m" / "m_Toy.pkl").write_bytes(pickle.dumps({"1": "B"}))
    to = ("--to", tmp_path / "params")
    tree = tmp_path / "tree"
    lists = "vlmevalkit, lmms-eval, lm-eval, inspect, every-eval-ever"
    for words, said in [
        ((tmp_path / "empty",), "no results of a known toolkit here: the folder is empty"),
        ((tmp_path / "pickles",), "a pickle is never opened"),
        ((tree / "logs" / "one" / "20260101_000000_samples_mmstar.jsonl",), "a results folder is needed"),
        ((tree, "--toolkit", "helm"), f"there is no toolkit 'helm'. Mend: toolkits: {lists}"),
        ((tree, "--toolkit", "inspect"), "no results of inspect here. Mend: toolkits here: lm-eval, lmms-eval"),
        ((tree, "--judge", "f1"), "no verdict files of judge 'f1'. Mend: judges here: acc, flexible-letter"),
        ((tree, "--toolkit", "lm-eval", "--judge", "x"), "no verdicts of filter 'x'. Mend: filters here: flexible-"),
        ((tree, "--pool", "p"), "--pool goes with one benchmark and folder, here are 2: mmstar in logs, mmstar in lm"),
    ]:
        assert said in mistake(capsys, "init", *words, *to)
    line = mistake(capsys, "audit", tree, "--benchmark", "mmstar", "--outputs", tmp_path / "o")
    assert "the folder holds 2 sets of results: logs (lmms-eval), lm (lm-eval). Mend: name the subfolder" in line
    assert not (tmp_path / "params").exists() and not (tmp_path / "o").exists()


def test_audit_of_any_toolkit_by_its_name(tmp_path):
    trees.lmms_eval(tmp_path / "logs")
    trees.lm_eval(tmp_path / "lm", task="mmstar")
    for toolkit, judge in (("lmms-eval", "acc"), ("lm-eval", "strict-letter")):
        wish = starting.Wish(tmp_path, "mmstar", toolkit=toolkit, pool=toolkit)
        params = load_params(starting.params_for_audit(wish, tmp_path / "o")[0])
        assert (params.data.toolkit, params.judge) == (toolkit, judge)


def test_init_with_judge_blind_folder_and_dataset(tmp_path, toy_rows, write_run):
    for model in ("m", "n"):
        write_run(model, toy_rows)
        write_run(model, toy_rows, folder="other")
        for judge in ("gpt", "exact_matching"):
            write_run(model, [{**r, "hit": 1, "log": ""} for r in toy_rows], tail=f"_{judge}_result")
    dataset = tmp_path / "Toy.tsv"
    pd.DataFrame(toy_rows).drop(columns="prediction").to_csv(dataset, sep="\t", index=False)
    wish = starting.Wish(tmp_path / "results", "Toy", judge="exact_matching", blind=tmp_path / "other", dataset=dataset)
    name, text = starting.params_text(wish, tmp_path / "deep/er/params")
    made = yaml.safe_load(text)
    assert name == "toy.yaml"
    assert made["judge"] == "exact_matching"
    assert made["data"]["folder"] == "../../../results"
    assert made["data"]["blind_folder"] == "../../../other"
    assert made["data"]["dataset"] == "../../../Toy.tsv"
    assert not (tmp_path / "deep").exists() and not list(tmp_path.glob(".init*"))
    with pytest.raises(AuditError, match=r"no verdict files of judge 'gtp'.*judges here: exact_matching, gpt"):
        starting.params_text(starting.Wish(tmp_path / "results", "Toy", judge="gtp"), tmp_path / "params")


def test_second_audit_keeps_an_edited_params_file(tmp_path, toy_rows, write_run):
    wish = starting.Wish(results(tmp_path, toy_rows, write_run), "Toy")
    file, is_new = starting.params_for_audit(wish, tmp_path / "o")
    assert (file, is_new) == (tmp_path / "o/toy/toy.yaml", True)
    file.write_text(file.read_text().replace("{name: m}", "{name: m, family: M}"))
    assert starting.params_for_audit(wish, tmp_path / "o") == (file, False)
    assert "family: M" in file.read_text()
    write_run("k", toy_rows, folder="others")
    with pytest.raises(AuditError, match="audit of other files"):
        starting.params_for_audit(starting.Wish(tmp_path / "others", "Toy"), tmp_path / "o")
    other = starting.Wish(tmp_path / "others", "Toy", pool="toy2")
    assert starting.params_for_audit(other, tmp_path / "o")[0] == tmp_path / "o/toy2/toy2.yaml"


# ------------------------------------------------------------------------------------------------ check and status


def test_check_prints_models_and_coverage_and_writes_nothing(tmp_path, capsys, toy_rows, write_run):
    folder = results(tmp_path, [*toy_rows, toy_rows[0]], write_run)
    (tmp_path / "p.yaml").write_text(f"pool: p\nbenchmark: Toy\ndata: {{folder: {folder.name}}}\n")
    assert main(["check", str(tmp_path / "p.yaml"), "--outputs", str(tmp_path / "o")]) == 0
    said = capsys.readouterr().out
    assert "p: 4 items of Toy, 2 models, 4 files" in said
    assert any(line.split()[:3] == ["m", "4", "4"] for line in said.splitlines())
    assert "duplicate" in said
    assert not (tmp_path / "o").exists()


def test_text_table_aligns_and_drops_empty_columns():
    table = pd.DataFrame({"a": ["x", "long"], "n": [1, 200], "none": ["", ""]})
    assert starting.text_table(table) == ["a       n", "x       1", "long  200"]


def test_reasons_are_wrapped_to_the_terminal(tmp_path, capsys, monkeypatch):
    table = pd.DataFrame({"n": [1, 20], "reason": ["short", "word " * 20]})
    nine, five = " ".join(["word"] * 9), " ".join(["word"] * 5)
    beside = [" n  reason", " 1  short", f"20  {nine}", f"    {nine}", "    word word"]
    assert starting.text_table(table, width=50) == beside
    below = [" n  reason", " 1", "      short", "20", *[f"      {five}"] * 4]
    assert starting.text_table(table, width=30) == below
    trees.lmms_eval(tmp_path / "logs")
    (tmp_path / "p.yaml").write_text("pool: p\nbenchmark: mmstar\ndata: {folder: logs, toolkit: lmms-eval, "
                                     "blind_benchmark: mmstar_text_only}\n")  # fmt: skip
    for columns in (100, 140):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["check", str(tmp_path / "p.yaml"), "--outputs", str(tmp_path / "o")]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= columns


def test_export(tmp_path, capsys):
    trees.lmms_eval(tmp_path / "logs")
    assert main(["init", str(tmp_path / "logs"), "--to", str(tmp_path)]) == 0
    capsys.readouterr()
    words = ["export", str(tmp_path / "mmstar.yaml"), "--to", str(tmp_path / "out"), "--outputs", str(tmp_path / "o")]
    assert main(words) == 0
    said = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert len(said) == 8 and sorted(said) == sorted(p for p in (tmp_path / "out").rglob("*") if p.is_file())
    with pytest.raises(SystemExit):
        main(words[:2])


def test_status_and_dry_run_of_the_embedded_pools(tmp_path, capsys):
    files = [str(p) for p in sorted((ROOT / "params").glob("*.yaml"))]
    assert main(["status", *files, "--outputs", str(tmp_path / "o")]) == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == [load_params(f).pool for f in files]
    assert all("never run" in line for line in said.splitlines())
    assert main(["run", *files, "--dry-run", "--outputs", str(tmp_path / "o"), "--limit", "5"]) == 0
    said = capsys.readouterr().out
    assert "tinysee.limit5: embedded pool tinysee, part of the package; results go to tinysee.limit5/" in said
    assert "10_audit    runs: never run" in said and "nothing was run" in said
    assert not (tmp_path / "o").exists()


def test_stop_by_the_user_is_said(monkeypatch, capsys):
    def stop(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("auditlib.__main__._status", stop)
    assert main(["status"]) == 130
    assert "finished stages are kept" in capsys.readouterr().err


def test_exit_codes():
    def outcome(code):
        return worker.Outcome("p", code)

    assert pipeline.exit_code([outcome(0)]) == 0
    assert pipeline.exit_code([outcome(0), outcome(2)]) == 2
    assert pipeline.exit_code([outcome(2), outcome(1), outcome(0)]) == 1
    assert stages.REPORT == "report"
