"""The manifest: hashes, parameters, versions, commit; no secret, no machine path, and times nowhere else."""

from __future__ import annotations

import hashlib
import json
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from tiny_notebooks import params

from auditlib import manifest
from auditlib.freshness import HashCache, basis
from auditlib.nb import start
from auditlib.reading import read_pool
from auditlib.stages import write_status

RUNS = "item,model,condition,prediction,key\n1,m,full,A,A\n2,m,full,B,A\n"


@pytest.fixture
def written(tmp_path):
    """Manifest of a pool of one table, in a project of its own."""
    file = params(tmp_path, "a", models=[{"name": "m", "family": "F"}])
    (tmp_path / "params/runs.csv").write_text(RUNS)
    checked, paths, _ = start(file, tmp_path / "outputs", {"seed": 7})
    facts = manifest.read_facts(read_pool(checked, outputs=paths.outputs), tmp_path, HashCache())
    paths.folder.mkdir(parents=True)
    paths.statistics.write_text("x")
    stage = {"state": "done", "started": "2026-11-30T00:00:00Z", "seconds": 1.5, "notebook": "ab", "basis": "b"}
    write_status(paths, {"params": "params/a.yaml", "read": facts, "stages": {"10_audit": stage}, "bases": {}})
    made_from = basis(checked, paths.outputs, HashCache(), root=tmp_path)
    manifest.write_manifest(checked, paths, made_from, root=tmp_path, overrides={"seed": 7})
    return paths, json.loads(paths.manifest.read_text())


def test_hashes_are_those_of_the_files(written, tmp_path):
    _, m = written
    assert m["inputs"] == {"runs.csv": hashlib.sha256(RUNS.encode()).hexdigest()}
    assert m["outputs"]["statistics.csv"] == hashlib.sha256(b"x").hexdigest()


def test_params_are_resolved_and_can_be_run_again(written, tmp_path):
    paths, m = written
    stated = yaml.safe_load(paths.params.read_text())
    assert stated == m["params"]
    assert (stated["seed"], stated["audit"]["permutations"], stated["data"]["table"]) == (7, 999, "runs.csv")
    again = tmp_path / "params/again.yaml"
    again.write_text(yaml.safe_dump(stated))
    # into outputs of its own: those of another params file are not replaced unasked
    assert start(again, tmp_path / "outputs again").params.data.table == tmp_path / "params/runs.csv"


def test_versions_command_seed_times(written):
    _, m = written
    assert m["versions"]["numpy"] == metadata.version("numpy") and m["versions"]["python"].startswith("3.")
    assert m["auditlib"] == metadata.version("auditlib")
    assert m["command"] == "auditlib run params/a.yaml"
    assert m["overrides"] == {"seed": 7} and m["seeds"]["run"] == 7
    assert m["stages"]["10_audit"] == {"started": "2026-11-30T00:00:00Z", "seconds": 1.5}
    assert m["written"].endswith("Z")


def test_no_machine_path(written, tmp_path):
    paths, _ = written
    for file in (paths.manifest, paths.params):
        assert str(tmp_path) not in file.read_text()
        assert str(Path.home()) + "/" not in file.read_text()


def test_secrets_are_left_out():
    told = {"judge": "gpt", "api_key": "sk-1", "Authorization": "Bearer x", "max_tokens": 512, "temperature": 0,
            "runs": [{"openai_token": "x", "seed": 1}], "nested": {"password": "x", "model": "m"}}  # fmt: skip
    kept = {"judge": "gpt", "max_tokens": 512, "temperature": 0, "runs": [{"seed": 1}], "nested": {"model": "m"}}
    assert manifest.without_secrets(told) == kept


def test_git_state(tmp_path):
    assert manifest.git_state(tmp_path) is None

    def git(*words):
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@x", *words], check=True,
                       capture_output=True)  # fmt: skip

    git("init")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-m", "one")
    state = manifest.git_state(tmp_path)
    assert len(state["commit"]) == 40 and state["dirty"] is False
    (tmp_path / "new").write_text("1")
    assert manifest.git_state(tmp_path)["dirty"] is False, "untracked files change nothing that is run"
    (tmp_path / "a").write_text("2")
    assert manifest.git_state(tmp_path)["dirty"] is True
