"""Tiny notebooks and params files for tests of the runner."""

from __future__ import annotations

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
