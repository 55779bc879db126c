"""The runner on a dask cluster: a scheduler and workers on loopback, over tiny notebooks on one file system."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tiny_notebooks import DRIVER, alive, children, notebook, parent, params, wait_for

from auditlib import cluster, cluster_run, cluster_tasks, crew, locks, pipeline, stages, worker
from auditlib.__main__ import main
from auditlib.errors import AuditError
from auditlib.paths import RunPaths

pytest.importorskip("distributed")

#: a stage whose files depend on the pool's name and seed alone
WRITE = """
import hashlib
from auditlib.nb import start
from auditlib.stages import expected
checked, paths, limit = start(params, outputs, overrides)
for file in expected("{stage}", paths):
    file = file / "t.csv" if file.name == "tables" else file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(hashlib.sha256(f"{{checked.pool}} {{checked.seed}} {{file.name}}".encode()).hexdigest())
"""
#: waits in the pool that is told to, until a file is there; says which process waits
GATE = """
import os, time
from pathlib import Path
here = Path(checked.source).parents[1]
if (here / f"hold-{{checked.pool}}").exists():
    (here / f"waits-{{checked.pool}}").write_text(str(os.getpid()))
    while (here / f"hold-{{checked.pool}}").exists():
        time.sleep(0.05)
"""
#: as the driver, and a notebook without the word ``kernel`` runs in the worker's own process: a start costs seconds
QUICK = DRIVER.replace("worker._main()", """
import json
slow = worker.run_notebook

def quick(source, copy, values, *, cwd):
    cells = [c for c in json.loads(source.read_text())["cells"] if c["cell_type"] == "code"]
    if any("kernel" in "".join(c["source"]) for c in cells):
        return slow(source, copy, values, cwd=cwd)
    scope = {}
    for cell in cells:
        exec("".join(cell["source"]), scope)
        scope.update(values if "tags" in cell["metadata"] else {})
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text("{}")
    return worker.NotebookRun(copy, 0.0)

worker.run_notebook = quick
worker._main()
""")
#: files that state when, how long or by which process something ran; of everything else the bytes are compared
TIMED = ("status.json",)
#: put into each dask worker: the runner's processes are started from the test's driver
PRELOAD = """
import sys
from pathlib import Path
from auditlib import cluster_tasks, crew
crew.WORKER = [sys.executable, {driver!r}]
cluster_tasks.code_files = lambda: {{"errors.py": Path(crew.__file__).with_name("errors.py")}}
"""
ENV = os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s", "OMP_NUM_THREADS": "1"}


def dask(*words: str | Path) -> subprocess.Popen:
    """The command ``dask``, as the docstring of :mod:`auditlib.cluster` gives it, on loopback."""
    command = [str(Path(sys.executable).with_name("dask")), *map(str, words)]
    return subprocess.Popen(command, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)  # fmt: skip


def end(process: subprocess.Popen) -> None:
    from auditlib.ending import kill_tree

    kill_tree(process.pid)
    process.wait(10)


class Nodes:
    """A scheduler on loopback and the workers started at it."""

    def __init__(self, root: Path):
        self.root, self.file = root, root / "scheduler.json"
        self.processes = [dask("scheduler", "--scheduler-file", self.file, "--host", "127.0.0.1", "--port", "0",
                               "--no-dashboard", "--no-jupyter")]  # fmt: skip

    def worker(self, *more: str) -> subprocess.Popen:
        process = dask("worker", "--scheduler-file", self.file, "--host", "127.0.0.1", "--nworkers", "1", "--nthreads",
                       "1", "--no-dashboard", "--local-directory", self.root / "dask", "--preload",
                       self.root / "preload.py", *more)  # fmt: skip
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self.processes):
            end(process)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A project whose stages only write the files that are expected of them, and wait where they are told to."""
    root = tmp_path_factory.mktemp("cluster")
    (root / "auditlib").symlink_to(Path(worker.__file__).parent)
    for stage, more in (("00_blind_run", []), ("10_audit", []), ("80_figures", [GATE.format()])):
        notebook(root / "notebooks" / f"{stage}.ipynb", WRITE.format(stage=stage), *more)
    (root / "driver.py").write_text(QUICK)
    (root / "preload.py").write_text(PRELOAD.format(driver=str(root / "driver.py")))
    for i, pool in enumerate("abc"):
        params(root, pool, seed=i, notebooks=["10_audit", "80_figures"])
    (root / "params" / "runs.csv").write_text("item,model,hit\n1,m,1\n")
    return root


@pytest.fixture(scope="module")
def nodes(home):
    running = Nodes(home)
    running.worker()
    running.worker()
    yield running
    running.close()


@pytest.fixture
def here(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setattr(crew, "WORKER", [sys.executable, str(home / "driver.py")])
    monkeypatch.setattr(pipeline, "_index", lambda outputs: None)
    package = Path(worker.__file__).parent
    one = {"errors.py": package / "errors.py"}  # the package may be edited while the tests run
    monkeypatch.setattr(cluster_tasks, "code_files", lambda: one)
    monkeypatch.setattr("auditlib.freshness.code_files", lambda: one)
    return home


def jobs_of(root: Path, outputs: str, *pools: str) -> list[worker.Job]:
    return pipeline.jobs_for([root / "params" / f"{p}.yaml" for p in pools], root=root, outputs=root / outputs)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in TIMED and not any(part.startswith(".") for part in p.parts[-3:])
    }


def hold(root: Path, pool: str) -> Path:
    """Let a pool wait in its second stage; the file that says which process waits."""
    (root / f"hold-{pool}").touch()
    (root / f"waits-{pool}").unlink(missing_ok=True)
    return root / f"waits-{pool}"


def drivers(root: Path) -> list[int]:
    return [p for p in children(str(root / "driver.py")) if alive(p)]


def test_a_lost_worker_costs_no_pool_and_no_byte(nodes, here):
    """Two workers, one killed -9 in the middle: all pools end, with the files of a local run."""
    local = pipeline.run(jobs_of(here, "local", *"abc"), workers=2)
    assert [o.code for o in local] == [0, 0, 0], local
    said, told, states = [], [], []
    waits = hold(here, "b")

    def kill() -> None:
        wait_for(waits.exists, 100)
        [row] = pipeline.states(jobs_of(here, "far", "b"))
        states.append((row["state"], row["why"]))
        runner = int(waits.read_text())
        node = next(p for p in nodes.processes if parent(parent(runner)) == p.pid)
        os.killpg(node.pid, signal.SIGKILL)  # the worker and its nanny, as a node that is lost
        wait_for(lambda: not alive(runner), 20)
        (here / "hold-b").unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = pipeline.run(jobs_of(here, "far", *"abc"), say=lambda *event: said.append(event), tell=told.append,
                            cluster=cluster.Cluster(file=nodes.file))  # fmt: skip
    killer.join()
    assert [(o.pool, o.code, o.error) for o in outcomes] == [(p, 0, "") for p in "abc"]
    assert states == [("running", "80_figures")]
    of_b = [(stage, text.split(":")[0]) for pool, stage, text in said if pool == "b"]
    again = [i for i, (stage, text) in enumerate(of_b) if stage == "worker"]
    assert len(again) == 2 and of_b[again[1]][1].startswith("lost; started again on ")
    assert ("10_audit", "skipped, fresh") in of_b[again[1] :]
    assert told[0] in [f"0 of 3 pools ended; running: {p}" for p in "abc"] and told[-1] == "3 of 3 pools ended"
    for pool in "abc":
        mine, theirs = contents(here / "local" / pool), contents(here / "far" / pool)
        assert len(mine) > 12 and mine == theirs
    assert not drivers(here)
