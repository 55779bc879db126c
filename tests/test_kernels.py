"""One notebook in one kernel: values arrive, copies stay, errors are one line, kernels in parallel do not meet."""

from __future__ import annotations

import nbformat
import pytest
from tiny_notebooks import notebook

from auditlib.errors import AuditError
from auditlib.kernels import one_line, parameter_names, run_notebook


def test_notebook_runs_in_its_folder_with_its_values(tmp_path):
    book = notebook(tmp_path / "n.ipynb", "import os\nprint(os.getcwd(), params, overrides)")
    values = {"params": 'a"b', "overrides": {"x.y": None}}
    run = run_notebook(book, tmp_path / "out/n.ipynb", values, cwd=tmp_path)
    assert run.error == ""
    done = nbformat.read(tmp_path / "out/n.ipynb", as_version=4)
    assert done.cells[-1].outputs[0].text.strip() == f"{tmp_path} a\"b {{'x.y': None}}"
    assert done.metadata.papermill.input_path == done.metadata.papermill.output_path == "n.ipynb"
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["n.ipynb"]


def test_failed_notebook_leaves_its_copy_and_one_line(tmp_path):
    raise_it = "from auditlib.errors import AuditError\nraise AuditError('bad', file='x.csv', row=3, mend='fix it')"
    book = notebook(tmp_path / "n.ipynb", raise_it, "print('never')")
    run = run_notebook(book, tmp_path / "out/n.ipynb", {}, cwd=tmp_path)
    assert run.error == "x.csv, row 3: bad. Mend: fix it"
    copy = nbformat.read(tmp_path / "out/n.ipynb", as_version=4)
    assert any(o.output_type == "error" for c in copy.cells for o in c.get("outputs", []))


def test_kernel_that_dies_is_one_line_and_a_copy(tmp_path):
    book = notebook(tmp_path / "n.ipynb", "import os\nos._exit(3)")
    run = run_notebook(book, tmp_path / "out/n.ipynb", {}, cwd=tmp_path)
    assert run.error == "DeadKernelError: Kernel died"
    assert (tmp_path / "out/n.ipynb").exists()


def test_unknown_parameter_is_an_error_not_a_log_line(tmp_path):
    book = notebook(tmp_path / "n.ipynb")
    assert parameter_names(book) == ["params", "outputs", "overrides"]
    with pytest.raises(AuditError, match="assigns no param"):
        run_notebook(book, tmp_path / "o.ipynb", {"param": 1}, cwd=tmp_path)


def test_one_line_of_an_exception():
    assert one_line("ValueError", "a\n  b") == "ValueError: a b"
    assert one_line("KeyboardInterrupt", "") == "KeyboardInterrupt"
    assert one_line("AuditError", "x.csv: bad") == "x.csv: bad"


def test_kernels_in_parallel_do_not_meet(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    book = notebook(tmp_path / "n.ipynb", "import time\ntime.sleep(0.3)\nprint(params)")

    def one(i: int) -> str:
        copy = tmp_path / f"o{i}" / "n.ipynb"
        run = run_notebook(book, copy, {"params": str(i)}, cwd=tmp_path)
        return run.error or nbformat.read(copy, as_version=4).cells[-1].outputs[0].text.strip()

    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(one, range(4))) == ["0", "1", "2", "3"]
