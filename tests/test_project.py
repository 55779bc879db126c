"""The project's own files: environment, lock, notebooks' form, Makefile and README agree with each other."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(p for p in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
IDS = [p.relative_to(ROOT / "notebooks").as_posix() for p in NOTEBOOKS]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def environment() -> tuple[dict, list[str]]:
    """environment.yml, and the lines of its pip part."""
    content = yaml.safe_load((ROOT / "environment.yml").read_text())
    [pip] = [d["pip"] for d in content["dependencies"] if isinstance(d, dict)]
    return content, pip


def reachable(extra: str = "") -> dict[str, Requirement]:
    """Requirements that ``pip install .[extra]`` asks for on Linux."""
    listed = PYPROJECT["dependencies"] + (PYPROJECT["optional-dependencies"][extra] if extra else [])
    linux = default_environment() | {"sys_platform": "linux"}
    found = [Requirement(line) for line in listed]
    return {r.name: r for r in found if r.marker is None or r.marker.evaluate(linux)}


# ------------------------------------------------------------------------------------------- environment and lock


def test_environment_is_conda_forge_with_python_and_pip_only():
    content, pip = environment()
    assert content["channels"] == ["conda-forge"]
    assert [d for d in content["dependencies"] if isinstance(d, str)] == ["python=3.11", "pip"]
    assert pip == ["-e .[vllm]"]
    assert list(content["dependencies"][-1]) == ["pip"], "the pip part runs last"


def test_everything_asked_for_is_reachable_from_the_environment():
    _, [line] = environment()
    extra = re.fullmatch(r"-e \.\[(\w+)\]", line).group(1)
    found = reachable(extra)
    wanted = {
        "jupyterlab",
        "papermill",
        "nbconvert",
        "pandas",
        "numpy",
        "scipy",
        "seaborn",
        "matplotlib",
        "openai",
        "vllm",
    }
    assert wanted <= set(found)
    assert str(found["vllm"].specifier) == ">=0.30"
    assert Version("0.5.0") not in found["vllm"].specifier, "an unbounded vllm resolves to a release of 2024"
    assert Version("2.3.5") in found["numpy"].specifier, "current vllm needs numpy below 2.4"
    assert "3.11" in PYPROJECT["requires-python"]
    assert Version("1.17.1") in found["scipy"].specifier, "the newest scipy for Python 3.11"


def test_lock_has_versions_and_nothing_of_the_machine():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    for line in lines:
        assert "://" not in line and not re.match(r"\s*(-i|-f|--)", line), line
        assert "/root" not in line and "/home" not in line
    names = {m.group(1).lower() for line in lines if (m := re.match(r"([A-Za-z0-9._-]+)==", line))}
    asked = set(reachable()) | set(reachable("dev"))
    assert {n.lower() for n in asked} <= names
    assert not names & {"vllm", "torch"}


def test_lock_satisfies_the_ranges():
    locked = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if re.match(r"[A-Za-z0-9._-]+==", line):
            r = Requirement(line)
            locked.setdefault(r.name.lower(), []).append(next(iter(r.specifier)).version)
    for name, wanted in (reachable() | reachable("dev")).items():
        assert all(Version(v) in wanted.specifier for v in locked[name.lower()]), name


# ------------------------------------------------------------------------------------------------------ notebooks


def cells(path: Path, kind: str = "code") -> list[dict]:
    return [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == kind]


def source(cell: dict) -> str:
    text = "".join(cell["source"])
    return "\n".join(line for line in text.splitlines() if not line.startswith("%"))


def test_every_stage_has_its_notebook():
    from auditlib.params import BLIND_RUN, CAPABILITIES, STAGES

    stages = {BLIND_RUN, *STAGES, *CAPABILITIES.values(), "25_review"}
    assert {f"{s}.ipynb" for s in stages} | {"explore/items.ipynb", "explore/known_truth.ipynb"} == set(IDS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_notebook_is_committed_bare(path):
    content = json.loads(path.read_text())
    assert "papermill" not in content["metadata"] and "widgets" not in content["metadata"]
    assert content["metadata"]["kernelspec"]["name"] == "python3"
    identities = [c["id"] for c in content["cells"]]
    assert len(set(identities)) == len(identities)
    for cell in cells(path):
        assert cell["outputs"] == [] and cell["execution_count"] is None
        assert "papermill" not in cell["metadata"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_cells_are_short_and_define_nothing(path):
    for cell in cells(path):
        text = source(cell)
        assert len("".join(cell["source"]).splitlines()) <= 15
        banned = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try)
        assert not any(isinstance(node, banned) for node in ast.walk(ast.parse(text))), text
        assert "sys.path" not in text and "sklearn" not in text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_opening_cells_are_the_usual_ones(path):
    content = json.loads(path.read_text())["cells"]
    assert [c["cell_type"] for c in content[:4]] == ["markdown", "code", "code", "code"]
    title = "".join(content[0]["source"])
    assert title.startswith("# ") and "?" in title, "title and the question it answers"
    assert "".join(content[1]["source"]).startswith("%load_ext autoreload\n%autoreload 2\n")
    assert content[2]["metadata"]["tags"] == ["parameters"]
    assert source(content[3]).startswith("settings, paths, limit = nb.start(params, outputs, overrides)\n")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_parameters_cell_is_the_same_everywhere(path):
    tagged = [c for c in cells(path) if "parameters" in c["metadata"].get("tags", [])]
    assert len(tagged) == 1
    tree = ast.parse(source(tagged[0]))
    assert [type(n) for n in tree.body] == [ast.Assign] * 3, "annotated names are unseen by papermill's help"
    values = {n.targets[0].id: ast.literal_eval(n.value) for n in tree.body}
    assert values == {"params": "params/tinysee.yaml", "outputs": "outputs", "overrides": {}}
    assert all("#" in line for line in source(tagged[0]).splitlines()), "a comment each"
    assert not any(isinstance(v, str) and "=" in v for v in values.values()), "unseen by papermill's help"
    assert source(tagged[0]) == source(next(c for c in cells(NOTEBOOKS[0]) if c["metadata"].get("tags")))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_each_view_is_followed_by_a_sentence(path):
    content = json.loads(path.read_text())["cells"]
    for this, following in zip(content[4:], [*content[5:], None]):
        if this["cell_type"] == "code":
            assert following is not None and following["cell_type"] == "markdown", "".join(this["source"])
            assert not "".join(following["source"]).startswith("#"), "".join(this["source"])


# ------------------------------------------------------------------------------------------- Makefile, CI, README


def test_ci_runs_make_test():
    script = (ROOT / ".ci/run").read_text()
    assert script.startswith("#!/usr/bin/env bash\nset -euo pipefail\n")
    assert script.rstrip().endswith("make test")
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_make_targets():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", text, flags=re.M))
    assert {"audit", "audit-all", "test", "lab", "bench", "lint", "lock"} <= targets
    assert "requirements.lock pyproject.toml" in text
    assert "-m auditlib run params/*.yaml" in text


def test_readme_names_both_commands_and_those_without_make():
    text = (ROOT / "README.md").read_text()
    for command in ("make audit", "make test", "auditlib audit", "-m auditlib run params/*.yaml", "-m pytest"):
        assert command in text, command
    from auditlib.__main__ import _parser

    [commands] = [a for a in _parser()._actions if a.dest == "==SUPPRESS==" or a.choices]
    for name in re.findall(r"^(?:\$ )?auditlib (\w+)", text, flags=re.M):
        assert name in commands.choices, name


def test_no_machine_path_or_index_address_in_committed_files():
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    bad = re.compile(r"(?<![\w.])/(?:root|home/\w+|work)/|index-url|find-links")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if name == "tests/test_project.py" or not path.is_file() or path.suffix in (".xlsx", ".parquet", ".gz", ".png"):
            continue
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if len(line) < 5000:
                assert not bad.search(line), f"{name}: {line[:120]}"
