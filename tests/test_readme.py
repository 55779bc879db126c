"""What the README tells a user to type, typed."""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import toolkit_trees as trees
import yaml
from PIL import Image

import auditlib
from auditlib.__main__ import _parser, _wish, main
from auditlib.figures import save_figures
from auditlib.inference.stage import plan_run
from auditlib.outputs import save_audit
from auditlib.params import check_params
from auditlib.paths import RunPaths
from auditlib.starting import params_for_audit

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def _commands() -> list[list[str]]:
    return [shlex.split(c) for c in re.findall(r"^    auditlib (.*)$", README, flags=re.M)]


@pytest.fixture
def my_results(tmp_path, monkeypatch, write_run, toy_rows):
    for model in ("one", "two", "one_blind", "two_blind"):
        write_run(model, toy_rows, bench="MMStar", folder="my_results")
    trees.lmms_eval(tmp_path / "logs")
    trees.lm_eval(tmp_path / "lm_results")
    pixel = base64.b64encode(png(b"\x00\x00\x00")).decode()
    table = pd.DataFrame(toy_rows).drop(columns="prediction").assign(image=pixel)
    table.to_csv(tmp_path / "MMStar.tsv", sep="\t", index=False)
    [block] = [b for b in _blocks("yaml") if "inference:" in b]
    (tmp_path / "params").mkdir()
    for path in ("params/mmstar_rerun.yaml", "rerun.yaml"):  # the block stands in the project's folder, or in params/
        up = "../" if "/" in path else ""
        moved = block.replace("folder: my_results", f"folder: {up}my_results").replace("MMStar.tsv", f"{up}MMStar.tsv")
        (tmp_path / path).write_text(moved)
    monkeypatch.chdir(tmp_path)


def png(pixel: bytes) -> bytes:
    """A picture of one pixel."""
    file = io.BytesIO()
    Image.frombytes("RGB", (1, 1), pixel).save(file, "PNG")
    return file.getvalue()


def batch(command: list[str]) -> None:
    """``batch write`` makes one request per question and model; the results of an endpoint that says B come back."""
    if command[1] == "write":
        assert main([*command, "--outputs", "o"]) == 0
        return
    files = sorted(Path("batches").glob("batch-*.jsonl"))
    asked = [json.loads(x) for f in files for x in f.read_text().splitlines()]
    assert len(asked) == 8 and {a["body"]["model"] for a in asked} == {"one", "two-instruct"}
    said = {"choices": [{"message": {"role": "assistant", "content": "B"}, "finish_reason": "stop", "index": 0}]}
    rows = [{"custom_id": a["custom_id"], "response": {"status_code": 200, "body": said}} for a in asked]
    Path("batches/results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert main([*command, "--outputs", "o"]) == 0


LATER = ("errata", "diff", "latex", "leaderboard", "cache")


def test_commands_on_a_results_folder(my_results, tmp_path, capsys):
    seen = []
    for command in _commands():
        if command[0] in LATER or "--scheduler-file" in command:
            continue
        seen.append(" ".join(command[:2]))
        if command[0] == "init":
            assert main(command) == 0
            assert (tmp_path / "params" / "mmstar.yaml").exists()
        elif command[0] == "check":
            assert main([*command, "--outputs", "o"]) == 0
            assert "one" in capsys.readouterr().out
        elif command[0] == "run":  # the whole run is what `make audit` does; here: that it would run
            assert main([*command, "--dry-run", "--outputs", "o"]) == 0
            assert "10_audit" in capsys.readouterr().out
        elif command[0] == "batch":
            batch(command)
        elif command[0] == "export":
            assert main([*command, "--outputs", "o"]) == 0
            assert sorted(p.name for p in Path("exchange").rglob("*_samples.jsonl")) == [
                "blind_samples.jsonl", "blind_samples.jsonl", "full_samples.jsonl", "full_samples.jsonl"]  # fmt: skip
        else:  # up to the pool that would be audited
            file, _ = params_for_audit(_wish(_parser().parse_args(command)), tmp_path / "o")
            pool = auditlib.read_pool(file)
            assert (len(pool.items), pool.model_names) == (4, ["one", "two"])
            if "--judge" in command:
                assert pool.arms["judged"].hits["full"].sum(axis=0).tolist() == [4, 4]
            else:
                assert pool.has_blind
    assert seen == ["audit my_results", "init my_results", "check params/mmstar.yaml", "run params/mmstar.yaml",
                    "audit lm_results", "export params/mmstar.yaml", "audit exchange", "batch write",
                    "batch read"]  # fmt: skip


def test_commands_that_hand_it_on(my_results, toy_rows, capsys):
    assert main(["init", "my_results", "--benchmark", "MMStar", "--to", "params"]) == 0
    paths = RunPaths(Path("outputs").absolute(), "mmstar")
    save_audit(auditlib.audit(auditlib.read_pool("params/mmstar.yaml", outputs="outputs")), paths)
    first, second = toy_rows[:2]
    new = next(x for x in "AB" if x != first["answer"])
    reports = [(first["index"], new, "confirmed"), (second["index"], "A", "rejected")]
    pd.DataFrame(reports, columns=["item", "key", "status"]).to_csv("reports.csv", index=False)
    seen = []
    for command in _commands():
        if command[0] in LATER:
            seen.append(" ".join(command[:2]))
            where = [] if command[:2] in (["errata", "patch"], ["errata", "text"]) else ["--outputs", "outputs"]
            assert main([*command, *where]) == 0, capsys.readouterr().err
    assert seen == ["errata write", "errata text", "errata patch", "diff MMStar.tsv", "latex write",
                    "leaderboard my_results", "cache"]  # fmt: skip
    before, after = (pd.read_csv(f, sep="\t", dtype=str) for f in ("MMStar.tsv", "MMStar_v2.tsv"))
    changed = before.compare(after)
    assert changed.shape == (1, 2) and changed.iloc[0].tolist() == [first["answer"], new]
    assert "confirmed" in Path("issue.md").read_text().lower() and Path("paper/audit/numbers.tex").exists()
    assert Path("outputs/leaderboard.html").exists()
    [page] = Path("outputs/diff").rglob("*.html")
    assert str(first["index"]) in page.read_text()


def test_commands_of_a_cluster():
    lines = re.findall(r"^    (dask .*?|auditlib run .*--scheduler-file.*?)(?:\s+#.*)?$", README, flags=re.M)
    scheduler, worker, run = map(shlex.split, lines)
    names = {scheduler[-1], worker[3], run[-1]}
    assert scheduler[:2] == ["dask", "scheduler"] and worker[:3] == ["dask", "worker", "--scheduler-file"]
    assert len(names) == 1 and _parser().parse_args(run[1:]).scheduler_file == Path(names.pop())
    for command in (scheduler, worker):  # dask itself knows the options
        known = subprocess.run([sys.executable, "-m", "distributed.cli.dask_" + command[1], "--help"],
                               capture_output=True, text=True, check=True).stdout  # fmt: skip
        assert all(word in known for word in command if word.startswith("--"))
    [script] = _blocks("bash")
    assert " ".join(worker[:4]) in script and subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_init_over_the_whole_tree(my_results, tmp_path):
    assert main(["init", ".", "--to", "made"]) == 0
    assert sorted(p.name for p in Path("made").iterdir()) == [
        "mmstar.yaml",
        "mmstar_lmms-eval.yaml",
        "mmstar_text.yaml",
    ]


def test_params_blocks_are_whole_params_files(tmp_path, my_results):
    pytest.importorskip("inspect_ai")
    said = [("a", "full", "A", "A", "x"), ("a", "no_image", "A", "B", "x")]
    said += [("b", "full", "B", "B", "y"), ("b", "no_image", "B", "B", "y")]
    rows = [(item, "s1", *rest) for item, *rest in said]
    columns = ["id", "system", "run", "gold", "answer", "category"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "runs.csv", index=False)
    prefixes = ("", "<no_image>", "<no_question>", "<no_info>")
    pd.DataFrame([["s1"] + [1, 0] * 4], columns=["model", *(p + i for p in prefixes for i in "ab")]).to_csv(
        tmp_path / "hits.csv", index=False
    )
    items = {"id": ["a", "b"], "gold": ["A", "B"], "options": ['["x", "y"]'] * 2, "subject": ["m", "n"]}
    pd.DataFrame(items).to_csv(tmp_path / "items.csv", index=False)
    trees.inspect(tmp_path / "inspect_logs")
    blocks = (check_params(yaml.safe_load(b), tmp_path / "p.yaml") for b in _blocks("yaml"))
    lmms, inspect, table, matrix, rerun, _ = blocks
    plan = plan_run(rerun, RunPaths(tmp_path / "o", rerun.pool))
    assert {m: plan.forecast(m).calls for m in plan.settings} == {"one": 4, "two": 4}
    for pool in (auditlib.read_pool(lmms), auditlib.read_pool(inspect)):
        hits = pool.arms["judged"].hits
        assert [hits[c].sum(axis=0).tolist() for c in ("full", "blind")] == [[4, 4], [1, 1]]
    pool = auditlib.read_pool(table)
    assert pool.has_blind and pool.arms["exact"].hits["blind"][:, 0].tolist() == [0, 1]
    pool = auditlib.read_pool(matrix)
    assert set(pool.arms["judged"].hits) == {"full", "blind", "image_only", "none"}
    assert pool.items["stratum"].tolist() == ["m", "n"]


def test_python_block(monkeypatch, tmp_path):
    [code] = [b for b in _blocks("python") if "read_pool" in b]
    monkeypatch.chdir(Path(__file__).resolve().parents[1])
    names: dict = {}
    exec(code.replace('tinysee.yaml")', f'tinysee.yaml", outputs=r"{tmp_path}")'), names)
    assert len(names["a"].findings) and names["a"].item("268").item == "268"


def test_a_detector_a_figure_and_a_reader_of_ones_own(tmp_path):
    detector, figure, reader = (b for b in _blocks("python") if "read_pool" not in b)
    (tmp_path / "checks").mkdir()
    for name, code in {"long_question": detector, "key_counts": figure, "my_reader": reader}.items():
        assert f"checks/{name}.py" in README
        (tmp_path / "checks" / f"{name}.py").write_text(code)
    [block] = [b for b in _blocks("yaml") if "extensions" in b]
    (tmp_path / "my_logs.yaml").write_text(block)
    (tmp_path / "my_logs").mkdir()
    cells = [(m, c, i) for m in ("one", "two") for c in ("full", "blind") for i in (1, 2)]
    rows = [{"model": m, "condition": c, "id": i, "question": "why " * 30 * i, "A": "x", "B": "y", "gold": "AB"[i - 1],
             "said": "A"} for m, c, i in cells]  # fmt: skip
    (tmp_path / "my_logs" / "all.log").write_text("".join(json.dumps(r) + "\n" for r in rows))
    audit = auditlib.audit(auditlib.read_pool(tmp_path / "my_logs.yaml"))
    mine = audit.findings[audit.findings["detector"] == "long_question"]
    assert mine[["item", "score", "flag", "message"]].to_numpy().tolist() == [
        ["1", 0.5, False, "30 words"], ["2", 1.0, True, "60 words"]]  # fmt: skip
    paths = RunPaths(tmp_path / "o", "my_logs")
    assert save_figures(audit, paths, ["key_counts"])["caption"].tolist() == ["Keys of 2 items."]
    assert (paths.figures / "key_counts.csv").read_text() == "key,items\nA,1\nB,1\n"
