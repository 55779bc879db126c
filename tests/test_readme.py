"""What the README tells a user to type, typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
import toolkit_trees as trees
import yaml

import auditlib
from auditlib.__main__ import _parser, _wish, main
from auditlib.params import check_params
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
    monkeypatch.chdir(tmp_path)


def test_commands_on_a_results_folder(my_results, tmp_path, capsys):
    seen = []
    for command in _commands():
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
                    "audit lm_results", "export params/mmstar.yaml", "audit exchange"]  # fmt: skip


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
    lmms, inspect, table, matrix = blocks
    for pool in (auditlib.read_pool(lmms), auditlib.read_pool(inspect)):
        hits = pool.arms["judged"].hits
        assert [hits[c].sum(axis=0).tolist() for c in ("full", "blind")] == [[4, 4], [1, 1]]
    pool = auditlib.read_pool(table)
    assert pool.has_blind and pool.arms["exact"].hits["blind"][:, 0].tolist() == [0, 1]
    pool = auditlib.read_pool(matrix)
    assert set(pool.arms["judged"].hits) == {"full", "blind", "image_only", "none"}
    assert pool.items["stratum"].tolist() == ["m", "n"]


def test_python_block(monkeypatch, tmp_path):
    [code] = _blocks("python")
    monkeypatch.chdir(Path(__file__).resolve().parents[1])
    names: dict = {}
    exec(code.replace('tinysee.yaml")', f'tinysee.yaml", outputs=r"{tmp_path}")'), names)
    assert len(names["a"].findings) and names["a"].item("268").item == "268"
