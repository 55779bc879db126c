"""The runner, over tiny notebooks in a temporary project: what runs, what is skipped, what is caught, what is left."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from tiny_notebooks import DRIVER, alive, children, notebook, params, parent, wait_for

from auditlib import crew, locks, pipeline, stages, worker
from auditlib.errors import AuditError
from auditlib.freshness import Basis, HashCache, differences, file_hash, input_files
from auditlib.kernels import THREADS, NotebookRun, one_line
from auditlib.params import load_params
from auditlib.paths import RunPaths

#: writes what the stage must write, as the library would
WRITE = """
from pathlib import Path
from auditlib.nb import start
from auditlib.stages import expected
checked, paths, limit = start(params, outputs, overrides)
for file in expected("{stage}", paths):
    file = file / "t.csv" if file.name == "tables" else file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("1")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of one pool whose notebooks only write the files that are expected of them."""
    (tmp_path / "auditlib").symlink_to(Path(worker.__file__).parent)
    for stage in ("10_audit", "80_figures", "90_tables"):
        notebook(tmp_path / "notebooks" / f"{stage}.ipynb", WRITE.format(stage=stage))
    params(tmp_path, "a")
    (tmp_path / "params" / "runs.csv").write_text("item,model,hit\n1,m,1\n")
    monkeypatch.chdir(tmp_path)
    package = Path(worker.__file__).parent
    monkeypatch.setattr("auditlib.freshness.code_files", lambda: {"errors.py": package / "errors.py"})
    return tmp_path


@pytest.fixture
def here(monkeypatch):
    """Run pools in this process, with reading and reporting replaced: they have tests of their own."""
    kernels = []

    def without_kernel(source, copy, values, *, cwd):
        kernels.append(source.stem)
        scope = {}
        for cell in nbformat.read(source, as_version=4).cells:
            exec(cell.source, scope)
            if "parameters" in cell.metadata.get("tags", []):
                scope.update(values)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("{}")
        return NotebookRun(copy, 0.0)

    def report(job, before):
        for file in stages.expected(stages.REPORT, before.paths):
            file.write_text("{}")
        return {"pdf": "notebook PDFs skipped: install chromium"}

    monkeypatch.setattr(worker, "run_notebook", without_kernel)
    monkeypatch.setattr(worker, "_report", report)
    monkeypatch.setattr(worker, "_read", lambda params, job: {"inputs": {}, "provenance": {}})
    monkeypatch.setattr("auditlib.notebook_export.find_printer", lambda: "")
    return kernels


def go(root: Path, *pools: str, **more) -> list[tuple[worker.Outcome, dict[str, str]]]:
    """Run pools in this process; per pool the outcome and the last sentence said before each stage."""
    out = []
    for job in pipeline.jobs_for([root / "params" / f"{p}.yaml" for p in pools or ("a",)], root=root, **more):
        said: dict[str, str] = {}
        out.append((worker.run_pool(job, lambda s, t, said=said: said.setdefault(s, t)), said))
    return out


# ------------------------------------------------------------------------------------------------- what runs


def test_first_run_runs_all_and_second_none(project, here):
    [(outcome, said)] = go(project)
    assert (outcome.code, outcome.ran) == (0, ("10_audit", "80_figures", "90_tables", "report"))
    assert said["10_audit"] == "runs: never run"
    [(outcome, said)] = go(project)
    assert (outcome.code, outcome.ran) == (0, ())
    assert all(t.startswith("skipped, fresh: same inputs, params and code as on 20") for t in said.values())
    assert here == ["10_audit", "80_figures", "90_tables"]


@pytest.mark.parametrize(
    ("change", "stage", "why"),
    [
        (lambda root: (root / "params" / "runs.csv").write_text("item,model,hit\n1,m,0\n"), "10_audit",
         "runs.csv changed"),
        (lambda root: params(root, "a", seed=7), "10_audit", "params: seed changed"),
        (lambda root: params(root, "a", audit={"permutations": 99}), "10_audit", "audit.permutations changed"),
        (lambda root: (root / "outputs/a/statistics.csv").unlink(), "10_audit", "statistics.csv is missing"),
        (lambda root: notebook(root / "notebooks/80_figures.ipynb", WRITE.format(stage="80_figures"), "1"),
         "80_figures", "notebooks/80_figures.ipynb changed"),
        (lambda root: (root / "outputs/a/report.html").unlink(), "report", "report.html is missing"),
    ],
)  # fmt: skip
def test_a_change_reruns_its_stage_and_those_after(project, here, change, stage, why):
    go(project)
    change(project)
    [(outcome, said)] = go(project)
    order = ["10_audit", "80_figures", "90_tables", "report"]
    assert list(outcome.ran) == order[order.index(stage) :]
    assert why in said[stage]
    for later in order[order.index(stage) + 1 :]:
        assert said[later].startswith("runs: ")


def test_code_and_versions_are_part_of_the_basis(project):
    [job] = pipeline.jobs_for([project / "params/a.yaml"], root=project)
    now = worker.look(job).basis
    assert now.code["errors.py"] == file_hash(Path(worker.__file__).with_name("errors.py"))[:16]
    assert set(now.versions) >= {"python", "numpy", "pandas", "scipy"}
    before = json.loads(json.dumps(now.as_dict()))
    assert differences(before, now) == ""
    before["code"]["errors.py"] = "0"
    assert differences(before, now) == "code: errors.py changed"
    before = now.as_dict() | {"versions": now.versions | {"numpy": "0.1"}}
    assert differences(before, now) == "version of numpy changed"


def test_an_earlier_stage_reruns_the_later_ones(project, here):
    go(project)
    (project / "outputs/a/findings.csv").unlink()
    [(_, said)] = go(project)
    assert said["10_audit"] == "runs: findings.csv is missing"
    assert said["80_figures"] == said["report"] == "runs: 10_audit runs again"


def test_new_and_lost_files_are_named():
    assert differences({"inputs": {"a": "1"}}, Basis(inputs={"a": "1", "b": "2"})) == "b is new"
    assert differences({"inputs": {"a": "1", "b": "2"}}, Basis(inputs={"a": "1"})) == "b is gone"
    assert differences({"inputs": {}}, Basis(inputs={"a": "1", "b": "2"})) == "a is new (and 1 more)"


def test_force_repeats_everything(project, here):
    go(project)
    [(outcome, said)] = go(project, force=True)
    assert len(outcome.ran) == 4
    assert said["10_audit"] == "runs: asked to (--force)"


def test_printer_that_appears_later_reruns_the_report_only(project, here, monkeypatch):
    go(project)
    monkeypatch.setattr("auditlib.notebook_export.find_printer", lambda: "/usr/bin/chromium")
    [(outcome, _)] = go(project)
    assert outcome.ran == ("report",)


def test_limit_never_touches_the_full_run(project, here):
    go(project)
    before = {p: p.stat().st_mtime_ns for p in (project / "outputs/a").rglob("*")}
    [job] = pipeline.jobs_for([project / "params/a.yaml"], root=project, limit=5)
    assert job.overrides == {"limit": 5}
    [(outcome, _)] = go(project, limit=5)
    assert (outcome.pool, outcome.code) == ("a.limit5", 0)
    assert {p: p.stat().st_mtime_ns for p in (project / "outputs/a").rglob("*")} == before
    assert json.loads((project / "outputs/a.limit5/status.json").read_text())["limit"] == 5


def test_input_files_leave_out_outputs_hidden_files_and_logs(tmp_path):
    for name in ("r/m/m_B.xlsx", "r/m/log.txt", "r/.x/a.csv", "r/outputs/t.csv", "r/m/~$m_B.xlsx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    params(tmp_path, "f", data={"folder": "../r"})
    loaded = load_params(tmp_path / "params/f.yaml")
    assert [p.name for p in input_files(loaded, tmp_path / "r/outputs")] == ["m_B.xlsx"]


def test_hash_cache_notices_a_change_of_size_or_time(tmp_path):
    file, memory = tmp_path / "a", tmp_path / "m.json"
    file.write_text("1")
    cache = HashCache(memory)
    first = cache(file)
    cache.save()
    assert HashCache(memory)(file) == first == file_hash(file)
    file.write_text("22")
    assert HashCache(memory)(file) == file_hash(file) != first


# --------------------------------------------------------------------------------------------- what is caught


def test_swallowed_error_is_caught_by_its_missing_output(project, here):
    notebook(project / "notebooks/10_audit.ipynb", "try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass")
    [(outcome, _)] = go(project)
    assert outcome.code == 1
    assert "did not write items.parquet" in outcome.error
    assert outcome.ran == ("10_audit",)


def test_output_of_an_earlier_run_does_not_hide_a_swallowed_error(project, here):
    go(project)
    notebook(project / "notebooks/90_tables.ipynb", "pass")
    [(outcome, _)] = go(project)
    assert outcome.code == 1
    assert "90_tables failed: it ended without an error but did not write tables" in outcome.error
    [(outcome, said)] = go(project)
    assert said["90_tables"] == "runs: failed last time"


def test_mistake_in_the_files_leaves_nothing_behind(project, here, monkeypatch):
    def wrong(params, job):
        raise AuditError("no id column", file="runs.csv", mend="name it in data.columns")

    monkeypatch.setattr(worker, "_read", wrong)
    [(outcome, _)] = go(project)
    assert (outcome.code, outcome.error) == (2, "runs.csv: no id column. Mend: name it in data.columns")
    assert not (project / "outputs" / "a").exists()


def test_missing_input_is_a_mistake_before_anything_runs(project):
    (project / "params/runs.csv").unlink()
    [job] = pipeline.jobs_for([project / "params/a.yaml"], root=project)
    outcome = worker.run_pool(job, lambda *_: None)
    assert outcome.code == 2
    assert "data.table names 'runs.csv', which does not exist" in outcome.error
    assert not (project / "outputs").exists()


def test_all_params_mistakes_are_named_at_once(project):
    params(project, "b", sede=1)
    params(project, "c", seed="x")
    with pytest.raises(pipeline.Mistakes) as caught:
        pipeline.jobs_for(sorted((project / "params").glob("*.yaml")), root=project)
    first, second = caught.value.lines
    assert "unknown key 'sede'" in first and "'seed'" in first
    assert "c.yaml" in second
    assert len(pipeline.jobs_for(sorted((project / "params").glob("*.yaml")), root=project, pools="a")) == 1


def test_two_files_of_one_pool_are_refused(project):
    (project / "params/z.yaml").write_text((project / "params/a.yaml").read_text())
    with pytest.raises(AuditError, match=r"'a' is also the pool of .*a\.yaml"):
        pipeline.jobs_for(sorted((project / "params").glob("*.yaml")), root=project)


def test_second_runner_on_a_pool_is_told(project, here):
    with locks.locked(project / "outputs", "a"):
        [(outcome, _)] = go(project)
        [row] = pipeline.states(pipeline.jobs_for([project / "params/a.yaml"], root=project))
    assert outcome.code == 2
    assert f"pool a is being run by another auditlib (process {os.getpid()}, since 20" in outcome.error
    assert row["state"] == "running"
    assert go(project)[0][0].code == 0


def test_states_of_a_pool(project, here):
    def state():
        [row] = pipeline.states(pipeline.jobs_for([project / "params/a.yaml"], root=project))
        return row["state"], row["why"]

    assert state() == ("never run", "")
    go(project)
    assert state() == ("fresh", "")
    params(project, "a", seed=3)
    assert state() == ("stale", "10_audit: params: seed changed")
    notebook(project / "notebooks/10_audit.ipynb", "pass")
    go(project)
    assert state()[0] == "failed"
    status = stages.read_status(RunPaths(project / "outputs", "a"))
    status["stages"]["10_audit"]["state"] = "running"  # as a killed runner leaves it
    stages.write_status(RunPaths(project / "outputs", "a"), status)
    assert state() == ("interrupted", "started and not ended; run it again")
    [(_, said)] = go(project)
    assert said["10_audit"] == "runs: interrupted last time"


def test_dry_run_names_files_reasons_and_time_and_writes_nothing(project, here):
    jobs = pipeline.jobs_for([project / "params/a.yaml"], root=project)
    text = "\n".join(pipeline.describe(jobs))
    assert "a: file runs.csv; results go to a/" in text
    assert "10_audit    runs: never run" in text
    assert "by a rule of thumb" in text
    assert not (project / "outputs").exists()
    go(project)
    params(project, "a", seed=3)
    text = "\n".join(pipeline.describe(jobs))
    assert "runs: params: seed changed" in text and "as long as last time" in text


def test_no_keep_going_starts_nothing_after_a_failure(project, monkeypatch):
    for pool in ("b", "c"):
        params(project, pool)
    files = sorted((project / "params").glob("*.yaml"))

    def work(self, job):
        return worker.Outcome(Path(job.params).stem, worker.FAILED, "no")

    monkeypatch.setattr(crew.Crew, "work", work)
    monkeypatch.setattr(pipeline, "_index", lambda outputs: None)
    jobs = pipeline.jobs_for(files, root=project)
    assert [o.pool for o in pipeline.run(jobs, workers=1, keep_going=True)] == ["a", "b", "c"]
    assert [o.pool for o in pipeline.run(jobs, workers=1, keep_going=False)] == ["a"]


# -------------------------------------------------------------------------------- files that a stage left behind

#: what the stages write beside the files that are always expected
MORE = """
for name in {names}:
    file = paths.folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("12")
"""


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("responses.parquet", "10_audit"),
        ("detectors.csv", "10_audit"),
        ("draws.parquet", "10_audit"),
        ("notebooks/10_audit.ipynb", "10_audit"),
        ("figures/nulls.png", "80_figures"),
        ("tables/headline.csv", "90_tables"),
        ("manifest.json", "report"),
        ("report.pdf", "report"),
    ],
)
def test_deleted_or_cut_output_is_made_again(project, here, name, stage):
    for at, names in (("10_audit", ["responses.parquet"]), ("80_figures", ["figures/nulls.png"]),
                      ("90_tables", ["tables/headline.csv", "tables/note.md"])):  # fmt: skip
        notebook(project / f"notebooks/{at}.ipynb", WRITE.format(stage=at), MORE.format(names=names))
    go(project)
    assert go(project)[0][0].ran == ()
    file = project / "outputs/a" / name
    file.unlink()
    [(outcome, said)] = go(project)
    assert said[stage] == f"runs: {name} is missing" and outcome.ran[0] == stage
    assert file.exists() and go(project)[0][0].ran == ()
    file.write_text("cut")
    [(outcome, said)] = go(project)
    assert said[stage] == f"runs: {name} has another size than when it was written" and outcome.ran[0] == stage


def test_file_that_no_stage_wrote_is_nobodys(project, here):
    (project / "outputs/a/tables").mkdir(parents=True)
    (project / "outputs/a/tables/mine.txt").write_text("1")
    go(project)
    (project / "outputs/a/tables/mine.txt").unlink()
    assert go(project)[0][0].ran == ()


def test_report_belongs_with_its_exported_notebooks(tmp_path):
    paths = RunPaths(tmp_path, "a")
    for name in ("notebooks/10_audit.ipynb", "notebooks/10_audit.html", "notebooks/10_audit.pdf", "report.html"):
        (paths.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.folder / name).write_text("1")
    assert stages.left(stages.REPORT, paths, {}) == {
        "notebooks/10_audit.html": 1, "notebooks/10_audit.pdf": 1, "report.html": 1}  # fmt: skip


def test_load_audit_names_the_missing_file(tmp_path):
    from auditlib.outputs import load_audit

    paths = RunPaths(tmp_path, "a")
    with pytest.raises(
        AuditError, match=r"pool 'a' has not been audited \(audit.json is missing\).*run PARAMS --force"
    ):
        load_audit(paths)
    paths.folder.mkdir()
    paths.steps.write_text("{}")
    with pytest.raises(AuditError, match=r"items\.parquet is missing\. Mend: .*'auditlib run PARAMS --force'"):
        load_audit(paths)


# ------------------------------------------------------------------------------------- what the system refuses


@pytest.mark.parametrize(
    ("number", "mend"), [(errno.ENOSPC, "free space"), (errno.EACCES, "give yourself the right"), (errno.EIO, "check")]
)
def test_refusal_of_the_system_is_one_line_and_exit_2(project, here, monkeypatch, number, mend):
    def refused(*_):
        raise OSError(number, os.strerror(number), "runs.csv")

    monkeypatch.setattr(worker, "_read", refused)
    [(outcome, _)] = go(project)
    assert outcome.code == 2
    assert outcome.error.startswith(f"runs.csv: {os.strerror(number)}. Mend: {mend}") and "\n" not in outcome.error
    assert not (project / "outputs/a").exists()


def test_disk_full_while_reporting_is_recorded(project, here, monkeypatch):
    def full(job, before):
        raise OSError(errno.ENOSPC, "No space left on device", str(before.paths.folder / ".report.123.tmp.html"))

    monkeypatch.setattr(worker, "_report", full)
    [(outcome, _)] = go(project)
    assert outcome.code == 2 and outcome.error.startswith("report failed: ")
    assert "a/report.html: No space left on device. Mend: free space" in outcome.error
    assert stages.read_status(RunPaths(project / "outputs", "a"))["stages"]["report"]["state"] == "failed"


def test_disk_full_inside_a_notebook():
    line = one_line("OSError", "[Errno 28] No space left on device")
    assert line == "OSError: [Errno 28] No space left on device. Mend: free space on that disk, then run it again"
    assert one_line("ValueError", "no") == "ValueError: no"


def test_pool_named_like_a_file_over_all_pools(project):
    for pool in ("index.html", "summary.csv", "Index.HTML"):
        file = params(project, pool)
        with pytest.raises(AuditError, match=rf"'{pool}': the reserved name"):
            pipeline.jobs_for([file], root=project)


def test_own_files_are_no_inputs(tmp_path):
    """The folder of results is, or holds, the folder that is read."""
    params(tmp_path, "f", data={"folder": "../r"})
    loaded = load_params(tmp_path / "params/f.yaml")
    own = ["summary.csv", "index.html", "f/findings.csv", "f/items.parquet", "f/tables/t.csv"]
    for name in ["m/m_B.xlsx", "m/status.json", *own, *(f"o/{n}" for n in own)]:
        (tmp_path / "r" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "r" / name).write_text("{}")
    for folder in ("r", "r/o"):
        stages.write_status(RunPaths(tmp_path / folder, "f"), {"stages": {}, "bases": {}})
    mine = ["m_B.xlsx", "status.json"]  # written by the tool that ran the models
    assert [p.name for p in input_files(loaded, tmp_path / "r/o")] == [*mine, "summary.csv"]
    for name in ("o/summary.csv", "o/index.html"):
        (tmp_path / "r" / name).unlink()
    assert [p.name for p in input_files(loaded, tmp_path / "r")] == mine


def test_pool_folder_among_its_results_is_refused(tmp_path):
    params(tmp_path, "r", data={"folder": "../r"})
    (tmp_path / "r/m").mkdir(parents=True)
    (tmp_path / "r/m/m_B.csv").write_text("1")
    loaded = load_params(tmp_path / "params/r.yaml")
    for outputs, pool in ((tmp_path, "r"), (tmp_path / "r", "m")):
        with pytest.raises(AuditError, match="among the results that it is read from"):
            stages.refuse_overlap(loaded, RunPaths(outputs, pool))
    stages.refuse_overlap(loaded, RunPaths(tmp_path / "r", "b"))


# ------------------------------------------------------------------------------------- processes and their ends


@pytest.fixture
def processes(project, monkeypatch):
    """Workers as processes, started from a small driver."""
    driver = project / "driver.py"
    driver.write_text(DRIVER)
    monkeypatch.setattr(crew, "WORKER", [sys.executable, str(driver)])
    monkeypatch.setattr(pipeline, "_index", lambda outputs: None)
    return project


def test_one_failing_pool_does_not_stop_the_other(processes):
    params(processes, "a", notebooks=["10_audit"])
    params(processes, "b", notebooks=["10_audit", "80_figures"], benchmark="Bad")
    fail = "if checked.benchmark == 'Bad': raise ValueError('no\\nway')"
    notebook(processes / "notebooks/80_figures.ipynb", WRITE.format(stage="80_figures"), fail)
    said = []
    jobs = pipeline.jobs_for(sorted((processes / "params").glob("*.yaml")), root=processes)
    outcomes = pipeline.run(jobs, workers=2, say=lambda *event: said.append(event))
    assert [(o.pool, o.code) for o in outcomes] == [("a", 0), ("b", 1)]
    assert outcomes[1].error == "80_figures failed: ValueError: no way (see outputs/b/notebooks/80_figures.ipynb)"
    assert (processes / "outputs/b/notebooks/80_figures.ipynb").exists()
    assert not (processes / "outputs/b/report.html").exists()
    assert pipeline.exit_code(outcomes) == 1
    assert THREADS["OMP_NUM_THREADS"] == "1"


def test_worker_that_is_killed_is_one_failed_pool(processes):
    kill = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    notebook(processes / "notebooks/10_audit.ipynb", kill)
    [outcome] = pipeline.run(pipeline.jobs_for([processes / "params/a.yaml"], root=processes))
    assert (outcome.code, outcome.error) == (1, "its process was ended by signal 9: out of memory?")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to see processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_runner_leaves_no_process_and_no_fresh_stage(processes, how):
    mark = processes / "started"
    sleep = f"from pathlib import Path\nPath({str(mark)!r}).write_text('1')\nimport time\ntime.sleep(60)"
    notebook(processes / "notebooks/80_figures.ipynb", sleep)
    script = processes / "go.py"
    script.write_text(
        "import signal, sys; from pathlib import Path; from auditlib import crew, pipeline\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a suite run in the background ignores it
        f"crew.WORKER = {[sys.executable, str(processes / 'driver.py')]!r}\n"
        f"pipeline.run(pipeline.jobs_for([Path({str(processes)!r}) / 'params/a.yaml']))\n"
    )
    runner = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    wait_for(mark.exists, 150)
    mine = children(str(processes / "driver.py"))
    kernels = [p for p in children("ipykernel_launcher") if parent(p) in mine]
    assert mine and kernels
    runner.send_signal(how)
    runner.communicate(timeout=30)
    wait_for(lambda: not any(alive(p) for p in mine + kernels), 20)
    paths = RunPaths(processes / "outputs", "a")
    assert stages.read_status(paths)["stages"]["10_audit"]["state"] == "done"
    [row] = pipeline.states(pipeline.jobs_for([processes / "params/a.yaml"], root=processes))
    assert row["state"] == "interrupted"
    assert not locks.is_locked(processes / "outputs", "a")
    assert not list(processes.rglob(".*.tmp*"))
