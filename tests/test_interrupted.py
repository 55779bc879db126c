"""A run that meets a full disk anywhere: one clear line, and the next run makes everything whole again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_notebooks import notebook, params

from auditlib import worker

#: as the library writes: some files at once, some in one step
WRITE = """
from auditlib.nb import start
from auditlib.paths import atomic
from auditlib.stages import expected
checked, paths, limit = start(params, outputs, overrides)
for i, file in enumerate(expected("{stage}", paths)):
    file = file / "t.csv" if file.name == "tables" else file
    file.parent.mkdir(parents=True, exist_ok=True)
    text = f"{{file.name}} " * 300
    if i % 2:
        file.write_text(text)
    else:
        with atomic(file) as temporary:
            temporary.write_text(text)
"""
#: in a namespace of its own: outputs on a small disk, filled but for some pages
SCRIPT = """
import json, shutil, subprocess, sys
from pathlib import Path
from auditlib import pipeline, stages, worker
root, kernel = Path(sys.argv[1]), sys.argv[2] == "kernel"
outputs = root / "outputs"
outputs.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "small", str(outputs)], check=True)
package = Path(worker.__file__).parent
worker.basis.__globals__["code_files"] = lambda: {"errors.py": package / "errors.py"}
worker._read = lambda params, job: {"inputs": {}, "provenance": {}}

def report(job, before):
    for file in stages.expected(stages.REPORT, before.paths):
        with stages.atomic(file) as temporary:
            temporary.write_text(file.name * 300)
    return {}

worker._report = report
if not kernel:
    def quick(source, copy, values, *, cwd):
        scope = {}
        for cell in json.loads(source.read_text())["cells"]:
            exec("".join(cell["source"]), scope)
            scope.update(values if "tags" in cell["metadata"] else {})
        copy.parent.mkdir(parents=True, exist_ok=True)
        with stages.atomic(copy) as temporary:
            temporary.write_text("{}")
        return worker.NotebookRun(copy, 0.0)
    import auditlib.kernels
    def told(source, copy, values, *, cwd):
        try:
            return quick(source, copy, values, cwd=cwd)
        except OSError as e:
            line = auditlib.kernels.one_line("OSError", str(e))
            return worker.NotebookRun(copy, 0.0, line, True)
    worker.run_notebook = told

def go():
    [job] = pipeline.jobs_for([root / "params/a.yaml"], root=root, outputs=outputs)
    outcome = worker.run_pool(job, lambda *_: None)
    files = {p.relative_to(outputs).as_posix(): p.read_text() for p in sorted(outputs.rglob("*"))
             if p.is_file() and p.name != "status.json" and p.suffix != ".ipynb" and ".locks" not in p.parts}
    files.pop(".hashes.json", None)
    return vars(outcome), files

whole = go()
results = []
for pages in map(int, sys.argv[3:]):
    for old in outputs.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    ballast = outputs / "ballast.bin"
    free = shutil.disk_usage(outputs).free
    with open(ballast, "wb") as f:
        f.write(bytes(free - pages * 4096))
    first = go()[0]
    ballast.unlink()
    again = go()
    differ = sorted(n for n in {*again[1], *whole[1]} if again[1].get(n) != whole[1].get(n))
    results.append([pages, first, again[0], differ, go()[0]])
print(json.dumps({"whole": whole, "results": results}))
"""


def on_a_small_disk(root: Path, how: str, *pages: int) -> dict:
    (root / "auditlib").symlink_to(Path(worker.__file__).parent)
    for stage in ("10_audit", "80_figures"):
        notebook(root / "notebooks" / f"{stage}.ipynb", WRITE.format(stage=stage))
    params(root, "a", notebooks=["10_audit", "80_figures"])
    (root / "params" / "runs.csv").write_text("item,model,hit\n1,m,1\n")
    (root / "go.py").write_text(SCRIPT)
    command = ["unshare", "-rm", sys.executable, "go.py", str(root), how, *map(str, pages)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def root(tmp_path) -> Path:
    probe = "mkdir -p m && mount -t tmpfs -o size=64k small m"
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "sh", "-c", probe], cwd=tmp_path,
                                                         capture_output=True).returncode:  # fmt: skip
        pytest.skip("no small disk can be mounted here")
    return tmp_path


def test_disk_that_is_full_after_any_number_of_pages(root):
    """Whichever write is the first to fail: one line with what to do, and nothing half-written is taken for fresh."""
    told = on_a_small_disk(root, "quick", *range(0, 60, 10))
    assert told["whole"][0]["code"] == 0 and len(told["whole"][1]) > 15
    ended = {0: 0, 1: 0, 2: 0}
    for pages, first, again, differ, fresh in told["results"]:
        ended[first["code"]] += 1
        if first["code"]:
            assert "No space left on device" in first["error"] and "Mend: free space on that disk" in first["error"]
            assert "\n" not in first["error"] and "Traceback" not in first["error"], first
        assert (again["code"], again["error"], differ) == (0, "", []), (pages, first, again)
        assert first["code"] == 0 or again["ran"], pages
        assert (fresh["code"], fresh["ran"]) == (0, []), "whole now"
    assert ended[worker.FAILED] == 0 and ended[worker.MISTAKE] > 2 and ended[worker.DONE] > 0, ended


def test_disk_that_is_full_while_a_notebook_is_written(root):
    """With a real kernel: papermill meets the full disk while it writes the executed copy."""
    told = on_a_small_disk(root, "kernel", 4)
    [[_, first, again, differ, fresh]] = told["results"]
    assert first["code"] == worker.MISTAKE
    assert "No space left on device" in first["error"] and "Mend: free space" in first["error"]
    assert (again["code"], again["error"], differ, fresh["ran"]) == (0, "", [], [])
