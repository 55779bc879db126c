"""Shared fixtures: where real data lie, a seeded generator, closed figures, small results folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real files beside the project; tests that need it are skipped where it is absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("../shared/data is not here")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261129)


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """An outputs folder of the test's own."""
    return tmp_path / "outputs"


@pytest.fixture(scope="session")
def embedded_outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One outputs folder for the session, so that the replicas are written once."""
    return tmp_path_factory.mktemp("embedded")


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    """``write_run(model, rows, ...)`` writes one VLMEvalKit file below ``tmp_path / "results"``, returns its path."""

    def write(
        model: str, rows: list[dict], *, bench: str = "Toy", tail: str = "", suffix: str = ".xlsx", folder="results"
    ) -> Path:
        path = tmp_path / folder / model / f"{model}_{bench}{tail}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pd.DataFrame(rows)
        if suffix == ".xlsx":
            table.to_excel(path, index=False, engine="xlsxwriter")
        elif suffix == ".tsv":
            table.to_csv(path, sep="\t", index=False, quoting=1)
        else:
            table.to_json(path, orient="records")
        return path

    return write


@pytest.fixture
def toy_rows() -> list[dict]:
    """Four multiple-choice items of two strata, answered B, A, C, A."""
    return [
        {"index": i, "question": f"question {i}", "A": "red", "B": "blue", "C": "green", "D": "grey", "answer": key,
         "category": "colour" if i < 2 else "shape", "l2_category": "x", "prediction": said}
        for i, (key, said) in enumerate([("B", "B"), ("A", "A"), ("A", "C"), ("D", "A")])
    ]  # fmt: skip
