"""The runner on a dask cluster: a scheduler and workers on loopback, over tiny notebooks on one file system."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tiny_notebooks import DRIVER, alive, children, notebook, params, parent, wait_for

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
QUICK = DRIVER.replace(
    "worker._main()",
    """
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
""",
)
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
    try:
        wait_for(running.file.exists, 60)
        running.worker()
        running.worker()
        yield running
    finally:
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
        try:
            wait_for(lambda: waits.exists() and waits.read_text(), 200)
            [row] = pipeline.states(jobs_of(here, "far", "b"))
            states.append((row["state"], row["why"]))
            runner = int(waits.read_text())
            node = next(p for p in nodes.processes if parent(parent(runner)) == p.pid)
            os.killpg(node.pid, signal.SIGKILL)  # the worker and its nanny, as a node that is lost
            wait_for(lambda: not alive(runner), 20)
            states.append("ended")
        finally:
            (here / "hold-b").unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = pipeline.run(jobs_of(here, "far", *"abc"), say=lambda *event: said.append(event), tell=told.append,
                            cluster=cluster.Cluster(file=nodes.file))  # fmt: skip
    killer.join()
    assert [(o.pool, o.code, o.error) for o in outcomes] == [(p, 0, "") for p in "abc"]
    assert states == [("running", "80_figures"), "ended"], "of the lost worker nothing runs on"
    of_b = [(stage, text.split(":")[0]) for pool, stage, text in said if pool == "b"]
    again = [i for i, (stage, text) in enumerate(of_b) if stage == "worker"]
    assert len(again) == 2 and of_b[again[1]][1].startswith("lost; started again on ")
    assert ("10_audit", "skipped, fresh") in of_b[again[1] :]
    assert told[0] in [f"0 of 3 pools ended; running: {p}" for p in "abc"] and told[-1] == "3 of 3 pools ended"
    for pool in "abc":
        mine, theirs = contents(here / "local" / pool), contents(here / "far" / pool)
        assert len(mine) > 12 and mine == theirs
    assert not drivers(here)


#: the command in a process of its own, as a user runs it; what the tests replace is replaced here too
GO = """
import signal, sys
from pathlib import Path
from auditlib import cluster_tasks, freshness, pipeline
from auditlib.__main__ import main
one = {"errors.py": Path(pipeline.__file__).with_name("errors.py")}
cluster_tasks.code_files = freshness.code_files = lambda: one
pipeline._index = lambda outputs: None
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_client_stops_its_pools(nodes, here, how):
    """Ctrl-C cancels and waits; after a kill of the client the scheduler forgets its tasks, and the pools end too."""
    waits, outputs = hold(here, "b"), here / f"stop-{how.name}"
    where = ["--scheduler-file", str(nodes.file)]
    if how == signal.SIGINT:
        where = ["--scheduler", json.loads(nodes.file.read_text())["address"]]
    client = subprocess.Popen([sys.executable, "-c", GO, "run", "params/b.yaml", *where, "--outputs", str(outputs)],
                              cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    try:
        wait_for(waits.exists, 200)
        [runner] = drivers(here)
        client.send_signal(how)
        out, err = client.communicate(timeout=40)
        if how == signal.SIGINT:
            assert (client.returncode, err.strip()) == (130, "auditlib: stopped; finished stages are kept")
            assert "started on" in out and "80_figures  runs: never run" in out
            assert not alive(runner)
        wait_for(lambda: not alive(runner), 20)
    finally:
        client.kill()
        (here / "hold-b").unlink()
    [row] = pipeline.states(jobs_of(here, outputs.name, "b"))
    assert row["state"] == "interrupted" and not locks.is_locked(outputs, "b")
    assert stages.read_status(RunPaths(outputs, "b"))["stages"]["10_audit"]["state"] == "done"
    assert not [p for p in outputs.rglob(".*.tmp*") if p.suffix != ".lock"]


def test_versions_and_paths_must_be_the_same(nodes, here, monkeypatch):
    where, [job] = cluster.Cluster(file=nodes.file), jobs_of(here, "far", "a")
    mine = cluster_tasks.facts()
    for changed, words in (
        (
            mine | {"versions": mine["versions"] | {"python": "2.7.18"}},
            r"differs: python is 3\.\S+ there and 2.7.18 here",
        ),
        (mine | {"code": "0"}, "differs: auditlib there has other code than here. Mend: start the workers from"),
    ):
        with monkeypatch.context() as m:
            m.setattr(cluster_tasks, "facts", lambda changed=changed: changed)
            with pytest.raises(AuditError, match=f"worker tcp://127.0.0.1:[0-9]+ on .* {words}"):
                pipeline.run([job], cluster=where)
    with pytest.raises(
        AuditError, match=r"does not see /nowhere/project\. Mend: keep the project and --outputs on a file"
    ):
        pipeline.run([worker.Job(**vars(job) | {"root": "/nowhere/project"})], cluster=where)
    # a path of one pool: that pool is told, and with --no-keep-going nothing follows
    plans_of = cluster.plans_of

    def one_unseen(*args):
        first, *others = plans_of(*args)
        first.files["/nowhere/runs.csv"] = ""
        return [first, *others]

    monkeypatch.setattr(cluster, "plans_of", one_unseen)
    [outcome] = pipeline.run(jobs_of(here, "far", *"abc"), cluster=where, keep_going=False)
    assert (outcome.pool, outcome.code) == ("a", worker.MISTAKE)
    assert (
        "it does not see /nowhere/runs.csv. Mend: put params, data and outputs on a file system that" in outcome.error
    )
    assert not list((here / "far" / ".locks").glob("seen-*"))


def test_a_pool_that_needs_a_tag_is_refused_or_goes_where_it_is(nodes, here):
    """The other pool goes on; the line tells the worker to start, and with that worker the pool runs."""
    inference = {"client": "vllm", "conditions": ["full"], "models": [{"name": "m"}], "items": "runs.csv",
                 "engine": {"tensor_parallel_size": 2}}  # fmt: skip
    params(here, "g", data={"dataset": "runs.csv"}, inference=inference, notebooks=["00_blind_run", "10_audit"])
    jobs, where = jobs_of(here, "far", "g", "a"), cluster.Cluster(file=nodes.file)
    refused, other = pipeline.run(jobs, cluster=where)
    assert (refused.pool, refused.code, other.pool, other.code) == ("g", worker.MISTAKE, "a", worker.DONE)
    assert "needs a worker tagged gpu=2, and none of " in refused.error
    assert refused.error.endswith(f"Mend: start one: dask worker --scheduler-file {nodes.file} --nthreads 1 "
                                  "--resources gpu=2; then run it again")  # fmt: skip
    assert not (here / "far/g").exists()
    words = refused.error.split("dask worker ")[1].split(";")[0].split()
    nodes.worker(*words[4:])
    with cluster.connected(where) as opened:
        wait_for(lambda: any(o["resources"] for o in cluster_run.offers_of(opened).values()), 200)
    [done] = pipeline.run(jobs[:1], cluster=where)
    assert (done.code, done.error, done.ran) == (0, "", ("00_blind_run", "10_audit", "report"))
    assert cluster_run.needs(jobs[0]) == {}, "what is fresh needs no GPU"


def test_a_lost_scheduler_ends_run_and_pools(nodes, here):
    waits = hold(here, "c")

    def kill() -> None:
        try:
            wait_for(waits.exists, 200)
        finally:
            os.killpg(nodes.processes[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(AuditError, match="the scheduler was lost; pools that were running have been stopped"):
            pipeline.run(jobs_of(here, "lost", "c"), cluster=cluster.Cluster(file=nodes.file))
        wait_for(lambda: not drivers(here), 30)
    finally:
        killer.join()
        (here / "hold-c").unlink()
    [row] = pipeline.states(jobs_of(here, "lost", "c"))
    assert row["state"] == "interrupted"


# ------------------------------------------------------------------------------------- mistakes, without a cluster


def refused(here: Path, capsys, *where: str | Path) -> str:
    assert main(["run", str(here / "params/a.yaml"), "--outputs", str(here / "none"), *map(str, where)]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert not (here / "none").exists()
    return line


def test_a_scheduler_that_is_not_there_is_one_line(here, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "CONNECT", 1.0)
    file = tmp_path / "s.json"
    assert "there is no such scheduler file. Mend: give the file that" in refused(
        here, capsys, "--scheduler-file", file
    )
    for text in ("", "{}", "[1]", "nothing"):
        file.write_text(text)
        assert "s.json: this is no scheduler file" in refused(here, capsys, "--scheduler-file", file)
    with socket.socket() as silent:  # something listens, and does not speak as a scheduler
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        assert f"no dask scheduler answers at 127.0.0.1:{port}" in refused(
            here, capsys, "--scheduler", f"127.0.0.1:{port}"
        )
    file.write_text(json.dumps({"address": f"tcp://127.0.0.1:{port}"}))
    assert "no dask scheduler answers at tcp://127.0.0.1" in refused(here, capsys, "--scheduler-file", file)
    assert "no dask scheduler answers at" in refused(here, capsys, "--scheduler", "what://x:1")
    assert "--jobs is for runs on this machine" in refused(here, capsys, "--scheduler", "x:1", "--jobs", "2")


def test_without_the_package_the_extra_is_named(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    line = refused(here, capsys, "--scheduler", "127.0.0.1:1")
    assert line.endswith(
        "'distributed', which is not installed. Mend: install the extra: pip install 'auditlib[cluster]'"
    )


def test_no_worker_is_said_after_a_while(monkeypatch):
    monkeypatch.setattr(cluster, "FIRST_WORKER", 0.1)
    monkeypatch.setattr(cluster, "offers_of", lambda client: {})
    said = []
    with pytest.raises(AuditError, match=r"no worker, also after 0 s\. Mend: start one: dask worker tcp://h:1 --nth"):
        cluster._workers(None, cluster.Cluster("tcp://h:1"), lambda *event: said.append(event))
    assert said == [("", "", "the scheduler has no worker yet; waiting for one")]

    def absent(client):
        raise ModuleNotFoundError("No module named 'auditlib'")

    monkeypatch.setattr(cluster, "offers_of", absent)
    with pytest.raises(AuditError, match="the scheduler runs in an environment without this version of auditlib"):
        cluster._workers(None, cluster.Cluster("tcp://h:1"), lambda *event: None)


class Pending:
    """A task that has not ended, and whether it was cancelled."""

    cancelled = False

    def cancel(self):
        self.cancelled = True


def test_a_pool_whose_last_worker_has_gone_is_given_up(monkeypatch):
    monkeypatch.setattr(cluster_run, "LOST", 0.0)
    monkeypatch.setattr(cluster_run, "offers_of", lambda client: {"w": {"threads": 1, "resources": {}}})
    said = []
    told = cluster_run.Told(lambda *event: said.append(event), crew.Standing(2, lambda line: None))
    plans = [cluster_run.PoolTask(None, p, {}, {}, n) for p, n in (("x", {}), ("y", {"gpu": 1}))]
    run = cluster_run.ClusterRun(None, plans, told, True, "tcp://h:1")
    x, y = Pending(), Pending()
    run.pending = {x: 0, y: 1}
    run._give_up()
    time.sleep(0.01)
    run._give_up()
    assert (x.cancelled, y.cancelled, list(run.pending.values())) == (False, True, [0])
    assert run.outcomes[1].code == worker.MISTAKE and "tagged gpu=1, and none of 1 offers" in run.outcomes[1].error
    assert said == [("y", "", run.outcomes[1].error)]


def test_standing_tells_ends_and_what_runs():
    told = []
    standing = crew.Standing(3, told.append)
    for step, pool in (("started", "a"), ("started", "b"), ("ended", "a"), ("started", "c"), ("ended", "b"),
                       ("ended", "c")):  # fmt: skip
        getattr(standing, step)(pool)
    ends = ("0 of 3 pools ended; running: a", "0 of 3 pools ended; running: a, b", "1 of 3 pools ended; running: b, c",
            "2 of 3 pools ended; running: c", "3 of 3 pools ended")  # fmt: skip
    assert told == list(ends)


def test_differences_of_machines_in_words(tmp_path):
    mine = {"versions": {"python": "3.12.1", "numpy": "2.2"}, "code": "1"}
    assert cluster_tasks.difference(mine, mine) == ""
    assert cluster_tasks.difference({"versions": {"python": "3.12.1"}}, mine) == "numpy is unknown there and 2.2 here"
    file = tmp_path / "p.yaml"
    file.write_text("a")
    digest = cluster_tasks.file_hash(file)
    assert cluster_tasks.unseen({str(file): digest, str(tmp_path): ""}) == ""
    assert cluster_tasks.unseen({str(file): "0" * 64}) == f"sees another file as {file}"
    assert cluster_tasks.unseen({str(tmp_path / "no"): ""}) == f"does not see {tmp_path / 'no'}"
