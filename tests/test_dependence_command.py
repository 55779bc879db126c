"""``python -m auditlib.dependence``: what each part is worth on one pool, and what smaller pools keep."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from auditlib.dependence.__main__ import main
from auditlib.params import load_params
from auditlib.reading import read_pool
from auditlib.synth.embedded import materialise

PARAMS = """
pool: dependence_synthetic
benchmark: Synthetic
data: {embedded: dependence_synthetic}
models: [{name: lynx-large}, {name: lynx-small}, {name: heron-large}, {name: otter-large}, {name: ibex-small}]
dependence: {prior: {source: SOURCE}, fit: {iterations: 25}}
"""


def written(folder, source):
    file = folder / "dependence_synthetic.yaml"
    file.write_text(PARAMS.replace("SOURCE", source), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def pool(embedded_outputs, tmp_path_factory):
    params = load_params(written(tmp_path_factory.mktemp("pool"), "none"))
    return read_pool(params, outputs=embedded_outputs).head(80)


@pytest.fixture
def command(tmp_path, monkeypatch, pool):
    """Runs the command on the first eighty items."""
    monkeypatch.setattr("auditlib.reading.read_pool", lambda s, outputs: replace(pool, params=s))

    def call(*more, source="embeddings"):
        file = written(tmp_path, source)
        return main([str(file), "--outputs", str(tmp_path / "out"), "--draws", "2", "--sizes", "4", *map(str, more)])

    return call


def test_parts_against_known_labels(command, embedded_outputs, tmp_path, capsys):
    known = materialise("dependence_synthetic", embedded_outputs) / "truth.csv"
    assert command("--labels", known, "--save", tmp_path / "tables") == 0
    parts = pd.read_csv(tmp_path / "tables" / "ablations.csv").set_index("method")
    assert parts.loc["stacked", "as whole"] == 1 > parts["as whole"].drop("stacked").max()
    assert parts.loc["stacked", "accuracy"] > parts.loc["- responses", "accuracy"]
    # no difference without its interval and corrected p
    shown = parts.drop("stacked")[["difference", "low", "high", "p_holm"]]
    assert shown.notna().all().all()
    assert ((shown["low"] <= shown["difference"]) & (shown["difference"] <= shown["high"])).all()
    smaller = pd.read_csv(tmp_path / "tables" / "smaller_pools.csv")
    assert smaller["metric"].tolist() == ["accuracy", "macro-F1"]
    assert smaller["full"][0] == pytest.approx(parts.loc["stacked", "accuracy"])
    assert "- threshold calibration" in capsys.readouterr().out


def test_without_labels_or_structure_only_agreement_is_shown(command, capsys):
    assert command(source="none") == 0
    seen = capsys.readouterr()
    assert "agreement" in seen.out and "Parts left out" not in seen.out
    assert "no structural prior" in seen.err


@pytest.mark.parametrize(
    ("table", "said"),
    [("item,name\nd0001,R\n", "no column 'label'"), ("item,label\nd0001,X\n", "'X' is unknown"),
     ("item,label\nd0001,R\nd0001,S\n", "there twice"), ("item,label\nq1,R\n", "no label is of an item")],
)  # fmt: skip
def test_labels_that_do_not_fit(command, tmp_path, capsys, table, said):
    file = tmp_path / "labels.csv"
    file.write_text(table, encoding="utf-8")
    assert command("--labels", file) == 1
    seen = capsys.readouterr()
    assert said in seen.err and not seen.out
