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
#: files that state when, how long or by which process something ran; of everything else the bytes are compared
TIMED = ("status.json", "10_audit.ipynb", "80_figures.ipynb")
#: put into each dask worker: the runner's processes are started from the test's driver
PRELOAD = """
import sys
from auditlib import crew
crew.WORKER = [sys.executable, {driver!r}]
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
    """A project whose stages only write the files that are expected of them."""
    root = tmp_path_factory.mktemp("cluster")
    (root / "auditlib").symlink_to(Path(worker.__file__).parent)
    for stage in ("10_audit", "80_figures"):
        notebook(root / "notebooks" / f"{stage}.ipynb", WRITE.format(stage=stage))
    (root / "driver.py").write_text(DRIVER)
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
    return home


def jobs_of(root: Path, outputs: str, *pools: str) -> list[worker.Job]:
    return pipeline.jobs_for([root / "params" / f"{p}.yaml" for p in pools], root=root, outputs=root / outputs)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in TIMED and not any(part.startswith(".") for part in p.parts[-3:])
    }


def test_a_lost_worker_costs_no_pool_and_no_byte(nodes, here):
    """Two workers, one killed -9 in the middle: all pools end, with the files of a local run."""
    local = pipeline.run(jobs_of(here, "local", *"abc"), workers=2)
    assert [o.code for o in local] == [0, 0, 0], local
    said, told = [], []
    gate = here / "gate"

    def say(pool, stage, text):
        said.append((pool, stage, text))

    mine = cluster.Cluster(file=nodes.file)
    outcomes = pipeline.run(jobs_of(here, "far", *"abc"), say=say, tell=told.append, cluster=mine)
    assert [(o.pool, o.code, o.error) for o in outcomes] == [(p, 0, "") for p in "abc"]
    print(said, told)
