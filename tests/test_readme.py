"""What the README tells a user to type, typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
import yaml

import auditlib
from auditlib.__main__ import main
from auditlib.params import check_params

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def _commands() -> list[list[str]]:
    return [shlex.split(c) for c in re.findall(r"^    auditlib (.*)$", README, flags=re.M)]


@pytest.fixture
def my_results(tmp_path, monkeypatch, write_run, toy_rows):
    for model in ("one", "two", "one_blind", "two_blind"):
        write_run(model, toy_rows, bench="MMStar", folder="my_results")
    monkeypatch.chdir(tmp_path)


def test_commands_on_a_results_folder(my_results, tmp_path, capsys):
    seen = []
    for command in _commands():
        seen.append(command[0])
        if command[0] == "init":
            assert main(command) == 0
            assert (tmp_path / "params" / "mmstar.yaml").exists()
        elif command[0] == "check":
            assert main([*command, "--outputs", "o"]) == 0
            assert "one" in capsys.readouterr().out
        elif command[0] == "run":  # the whole run is what `make audit` does; here: that it would run
            assert main([*command, "--dry-run", "--outputs", "o"]) == 0
            assert "10_audit" in capsys.readouterr().out
        else:
            assert command == ["audit", "my_results", "--benchmark", "MMStar"]
    assert seen == ["audit", "init", "check", "run"]


def test_params_blocks_are_whole_params_files(tmp_path):
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
    table, matrix = (check_params(yaml.safe_load(b), tmp_path / "p.yaml") for b in _blocks("yaml"))
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
