"""Tiny notebooks, params files and a look at processes, for tests of the runner."""

from __future__ import annotations

import time
from pathlib import Path

import nbformat
import yaml

PARAMETERS = 'params = "params/a.yaml"\noutputs = "outputs"\noverrides = {}'


def notebook(path: Path, *cells: str, parameters: str = PARAMETERS) -> Path:
    """A notebook with a parameters cell and some cells of code."""
    book = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3",
                                                             "language": "python"}})  # fmt: skip
    book.cells = [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    book.cells += [nbformat.v4.new_code_cell(c) for c in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, path)
    return path


def params(root: Path, pool: str, **more) -> Path:
    file = root / "params" / f"{pool}.yaml"
    file.parent.mkdir(exist_ok=True)
    content = {"pool": pool, "benchmark": "Tiny", "data": {"table": "runs.csv"}} | more
    file.write_text(yaml.safe_dump(content))
    return file


#: a runner over this project's params, with reading and reporting replaced, in a process of its own
DRIVER = """
import sys
from pathlib import Path
from auditlib import worker
from auditlib.stages import REPORT, expected

def report(job, before):
    [p.write_text("{}") for p in expected(REPORT, before.paths)]
    return {}

package = Path(worker.__file__).parent
worker.basis.__globals__["code_files"] = lambda: {"errors.py": package / "errors.py"}
worker._report = report
worker._read = lambda params, job: {}
worker._main()
"""


def children(of: str) -> list[int]:
    """Processes whose command line holds a text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if of in line:
                found.append(int(entry.name))
    return found


def parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)
