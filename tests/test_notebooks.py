"""The notebooks, run in batch over three small pools: outputs, copies, pages, repetition to the byte."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pandas as pd
import pytest
import yaml
from builders import embedded_audit

import auditlib
from auditlib import pipeline
from auditlib.figures import FIGURES, save_figures
from auditlib.kernels import run_notebook
from auditlib.nb import start
from auditlib.paths import RunPaths, project_root
from auditlib.tables import TABLES, save_tables

STAGES = ("10_audit", "80_figures", "90_tables")
HOSTILE = '<script>alert(1)</script> #read("x") $ _ | & % \\input{x} =HYPERLINK("http://x.invalid") 😀 שלום'
#: the pool of one model, full run only, first eight items
SINGLE = "single.limit8"
LITERAL = "&lt;script&gt;alert(1)&lt;/script&gt;"


def hostile_runs(folder: Path) -> None:
    """Two models, with and without image, of twelve items; question, options and replies of item 7 are hostile.

    Its key stands beside an equal option, so that it is the most severe finding and is shown.
    """
    rows = []
    for model in ("m", "<i>n"):
        for condition in ("full", "blind"):
            for i in range(12):
                bad = i == 7
                said = HOSTILE if bad and model == "m" else "C" if condition == "full" and i % 3 else "ABCD"[i % 4]
                rows.append({"item": str(i), "model": model, "condition": condition, "prediction": said,
                             "question": HOSTILE if bad else f"question {i}", "key": "B" if bad else "ABCD"[i % 4],
                             "A": HOSTILE if bad else "red", "B": HOSTILE if bad else "blue", "C": "=1+1", "D": "grey",
                             "stratum": "<b>s</b>" if i < 6 else "t"})  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "hostile.csv", index=False)


@pytest.fixture(scope="session")
def batch(tmp_path_factory) -> SimpleNamespace:
    """One run of three pools: the demo pool, hostile text, and a quick look at one model without blind run."""
    folder = tmp_path_factory.mktemp("batch")
    hostile_runs(folder)
    runs = pd.read_csv(folder / "hostile.csv", dtype=str, keep_default_na=False)
    single = runs[(runs["model"] == "m") & (runs["condition"] == "full") & (runs["item"] != "7")]
    single.to_csv(folder / "single.csv", index=False)
    files = {"tinysee": project_root() / "params/tinysee.yaml"}
    for name, stages in (("hostile", STAGES), ("single", STAGES[:1])):
        content = {"pool": name, "benchmark": "Toy", "data": {"table": f"{name}.csv"}, "notebooks": list(stages)}
        files[name] = folder / f"{name}.yaml"
        files[name].write_text(yaml.safe_dump(content))
    jobs = pipeline.jobs_for([files["tinysee"], files["hostile"]], outputs=folder / "outputs")
    jobs += pipeline.jobs_for([files["single"]], outputs=folder / "outputs", limit=8)
    said: list[tuple[str, str, str]] = []
    outcomes = pipeline.run(jobs, workers=2, say=lambda *event: said.append(event))
    return SimpleNamespace(jobs=jobs, outcomes=outcomes, outputs=folder / "outputs", said=said)


def paths(batch, pool: str) -> RunPaths:
    return RunPaths(batch.outputs, pool)


def test_all_pools_end_well(batch):
    assert [(o.pool, o.code, o.error) for o in batch.outcomes] == [
        ("tinysee", 0, ""), ("hostile", 0, ""), ("single.limit8", 0, "")
    ]  # fmt: skip
    assert {p for p, _, text in batch.said if text == "runs: never run"} == {o.pool for o in batch.outcomes}


@pytest.mark.parametrize("pool", ["tinysee", "hostile"])
def test_every_expected_file_is_there(batch, pool):
    at = paths(batch, pool)
    names = {p.relative_to(at.folder).as_posix() for p in at.folder.rglob("*") if p.is_file()}
    assert names >= {"manifest.json", "params.resolved.yaml", "status.json", "items.parquet", "models.parquet",
                     "responses.parquet", "findings.parquet", "findings.csv", "statistics.csv", "coverage.csv",
                     "flagged.md", "report.html", "report.pdf", "figures/index.html"}  # fmt: skip
    assert names >= {f"notebooks/{s}.{ending}" for s in STAGES for ending in ("ipynb", "html")}
    assert not [n for n in names if ".tmp" in n]
    assert at.index.exists() and at.summary.exists()


@pytest.mark.parametrize(
    ("pool", "stage"), [(p, s) for p in ("tinysee", "hostile") for s in STAGES] + [(SINGLE, STAGES[0])]
)
def test_executed_copy_is_complete_and_holds_the_values(batch, pool, stage):
    book = nbformat.read(paths(batch, pool).notebooks / f"{stage}.ipynb", as_version=4)
    code = [c for c in book.cells if c.cell_type == "code"]
    assert all(c.execution_count for c in code)
    outputs = [o for c in code for o in c.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    [injected] = [c for c in code if "injected-parameters" in c.metadata.get("tags", [])]
    assert f"{pool.split('.')[0]}.yaml" in injected.source
    assert "/" not in book.metadata.papermill.input_path + book.metadata.papermill.output_path


@pytest.mark.parametrize("pool", ["tinysee", "hostile", SINGLE])
def test_pages_hide_the_injected_cell_and_fetch_nothing(batch, pool):
    for page in paths(batch, pool).notebooks.glob("*.html"):
        html = page.read_text()
        assert "injected-parameters" not in html and str(batch.outputs) not in html
        assert "<script" not in html
        loaded = re.findall(
            r"<(?:img|link|iframe|source|object|embed)\b[^>]*?(?:src|href|data)\s*=\s*[\"']?([^\"'\s>]+)", html
        )
        assert all(a.startswith("data:") for a in loaded)


def test_hostile_text_is_literal_in_the_notebook(batch):
    html = (paths(batch, "hostile").notebooks / "10_audit.html").read_text()
    assert LITERAL in html
    assert "&lt;b&gt;s&lt;/b&gt;" in html and "<b>s</b>" not in html
    for text in ("#read(", "\\input{x}", "=HYPERLINK(", "😀", "שלום"):
        assert text in html


def test_single_model_without_blind_run_says_what_was_not_run(batch):
    audit = auditlib.load_audit(paths(batch, SINGLE))
    states = audit.detectors.set_index("detector")
    assert states.at["visual_dependency", "state"] == "not run" and states.at["visual_dependency", "reason"]
    assert states.at["answer_options_distribution", "state"] == "run"
    assert paths(batch, SINGLE).report_html.exists() and paths(batch, SINGLE).report_pdf.exists()


def test_limit_is_kept_apart_and_marked(batch):
    at = paths(batch, SINGLE)
    assert pd.read_parquet(at.frame("items"))["item"].tolist() == ["0", "1", "2", "3", "4", "5", "6", "8"]
    assert json.loads(at.status.read_text())["limit"] == json.loads(at.manifest.read_text())["limit"] == 8
    assert "--limit 8" in json.loads(at.manifest.read_text())["command"]
    assert not (batch.outputs / "single").exists()


def test_nothing_runs_again(batch):
    assert [row["state"] for row in pipeline.states(batch.jobs)] == ["fresh"] * 3


def test_same_bytes_in_another_process(batch, tmp_path):
    """What the batch wrote in kernels against what this process writes from the same files."""
    settings, again, _ = start(batch.jobs[1].params, tmp_path)
    for at, audit in (
        (RunPaths(tmp_path, "tinysee"), embedded_audit("tinysee")),
        (again, auditlib.audit(auditlib.read_pool(settings, outputs=tmp_path))),
    ):
        auditlib.save_audit(audit, at)
    saved = auditlib.load_audit(again)
    save_figures(saved, again)
    save_tables(saved, again)
    compared = 0
    for pool in ("tinysee", "hostile"):
        mine, theirs = RunPaths(tmp_path, pool).folder, paths(batch, pool).folder
        for file in sorted(p for p in mine.rglob("*") if p.is_file() and p.name != "audit.json"):
            name = file.relative_to(mine)  # audit.json names the data relative to its own place
            assert (theirs / name).read_bytes() == file.read_bytes(), f"{pool}/{name}"
            compared += 1
    assert compared > 60


def test_manifest_speaks_of_the_files_read(batch):
    m = json.loads(paths(batch, "tinysee").manifest.read_text())
    assert sum(name.endswith(".xlsx") for name in m["inputs"]) == 16
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in m["inputs"].values())
    assert m["judge"] == "tiny-judge" and set(m["stages"]) == {*STAGES, "report"} - {"report"}
    assert m["outputs"]["statistics.csv"] and any(n.startswith("tables/") for n in m["outputs"])
    assert str(project_root()) not in paths(batch, "tinysee").manifest.read_text()


def test_items_notebook_explores_a_finished_pool(batch, tmp_path):
    source = project_root() / "notebooks/explore/items.ipynb"
    values = {"params": batch.jobs[1].params, "outputs": str(batch.outputs)}
    run = run_notebook(source, tmp_path / "items.ipynb", values, cwd=source.parent)
    assert run.error == ""


@pytest.mark.parametrize(
    ("stage", "call", "names"), [("80_figures", "picture", FIGURES), ("90_tables", "table", TABLES)]
)
def test_every_figure_and_table_has_its_cell(stage, call, names):
    text = (project_root() / f"notebooks/{stage}.ipynb").read_text()
    assert sorted(re.findall(rf'nb\.{call}\(\w+, \\"(\w+)\\"\)', text)) == sorted(names)


def test_papermill_sees_the_three_parameters():
    import papermill

    for file in sorted((project_root() / "notebooks").rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in file.parts:
            seen = papermill.inspect_notebook(file)
            assert list(seen) == ["params", "outputs", "overrides"]
            assert all(p["help"] for p in seen.values())
