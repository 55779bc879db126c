"""Detectors, figures, tables and readers that the params name: they join the audit, and their mistakes are one line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import auditlib
from auditlib.errors import AuditError
from auditlib.extensions import extensions_of
from auditlib.figures import save_figures
from auditlib.freshness import input_files
from auditlib.params import load_params
from auditlib.report import write_report
from auditlib.tables import save_tables

DETECTOR = """
from auditlib.detectors.contract import Detector, findings

def detect(pool, settings):
    letters = pool.items["question"].str.len()
    return findings("long_question", pool.arm_names[0], item=pool.items["item"], score=letters / letters.max(),
                    flag=letters > 5, severity="info", evidence="{}", message="a long question")

LONG = Detector("long_question", "length of the question", "unreadable items", False, detect, lambda pool: "")
"""

FIGURE = """
import pandas as pd
from auditlib.figures import Figure
from auditlib.figures.style import axes, styled
from auditlib.table_formats import Column
from auditlib.tables import Table

def prepare(audit):
    return audit.items["key"].value_counts().rename_axis("key").reset_index(name="items")

@styled
def draw(frame, *, ax=None):
    ax = axes(ax, 3, 2)
    ax.bar(frame["key"], frame["items"])
    ax.set(xlabel="key", ylabel="items")
    return ax

KEYS = Figure("own_keys", "Keys", prepare, draw, lambda frame: f"{frame['items'].sum()} keys.", "keys")
TABLE = Table("own_keys_table", "Keys, counted", prepare, (Column("key", "Key"), Column("items", "Items", "count")))
"""

READER = """
import json
import pandas as pd

def read(folder):
    rows = [json.loads(line) for f in sorted(folder.glob("*.log")) for line in f.read_text().splitlines()]
    return pd.DataFrame(rows).rename(columns={"id": "item", "gold": "key", "said": "prediction"})
"""


@pytest.fixture
def project(tmp_path, write_run, toy_rows):
    for model in ("one", "two", "one_blind", "two_blind"):
        write_run(model, toy_rows, bench="MMStar", folder="runs")
    (tmp_path / "checks").mkdir()

    def write(files: dict[str, str], data: str = "{folder: runs}") -> Path:
        for name, code in files.items():
            (tmp_path / "checks" / name).write_text(code)
        named = [f"checks/{n}" for n in files if n != "reader.py"]
        lines = ["pool: toy", "benchmark: MMStar", f"data: {data}", f"extensions: {json.dumps(named)}"]
        (tmp_path / "toy.yaml").write_text("\n".join(lines))
        return tmp_path / "toy.yaml"

    return write


def test_a_detector_joins_the_audit(project, toy_rows):
    audit = auditlib.audit(auditlib.read_pool(project({"long.py": DETECTOR})))
    mine = audit.findings[audit.findings["detector"] == "long_question"]
    lengths = {str(r["index"]): len(r["question"]) for r in toy_rows}
    assert dict(zip(mine["item"], mine["flag"])) == {i: n > 5 for i, n in lengths.items()}
    assert mine.set_index("item")["score"].to_dict() == {i: n / max(lengths.values()) for i, n in lengths.items()}
    state = audit.detectors.set_index("detector").loc["long_question"]
    assert (state["state"], state["judged"]) == ("run", len(lengths))


def test_figures_and_tables_are_written_and_shown(project, tmp_path):
    pool = auditlib.read_pool(project({"long.py": DETECTOR, "keys.py": FIGURE}), outputs=tmp_path / "o")
    paths = auditlib.paths.RunPaths(tmp_path / "o", "toy")
    auditlib.save_audit(auditlib.audit(pool), paths)
    audit = auditlib.load_audit(paths)
    drawn = save_figures(audit, paths, ["own_keys"])
    assert drawn["state"].tolist() == ["drawn"] and (paths.figures / "own_keys.pdf").stat().st_size > 1000
    assert pd.read_csv(paths.figures / "own_keys.csv")["items"].sum() == len(audit.items)
    save_tables(audit, paths)
    assert "Keys, counted" in (paths.tables / "own_keys_table.md").read_text()
    write_report(paths)
    page = paths.report_html.read_text()
    assert "Added to this audit" in page and "own_keys.svg" in page + str(list(paths.figures.iterdir()))
    assert str(tmp_path) not in page and "Long question" in page


def test_the_files_are_inputs_of_the_pool(project, tmp_path):
    params = load_params(project({"long.py": DETECTOR}))
    assert tmp_path / "checks/long.py" in input_files(params, tmp_path / "o")


def test_a_reader_gives_what_a_table_gives(project, tmp_path):
    rows = [{"id": i, "model": m, "condition": c, "gold": "A", "A": "x", "B": "y", "question": f"q{i}", "said": s}
            for m in ("one", "two") for c in ("full", "blind") for i, s in ((1, "A"), (2, "B"))]  # fmt: skip
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("\n".join(json.dumps(r) for r in rows))
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    own = auditlib.read_pool(project({"reader.py": READER}, "{folder: logs, reader: checks/reader.py}"))
    columns = "{item: id, key: gold, prediction: said}"
    table = auditlib.read_pool(project({}, f"{{table: runs.csv, columns: {columns}}}"))
    assert own.arms["exact"].hits["full"].tolist() == table.arms["exact"].hits["full"].tolist() == [[1, 1], [0, 0]]
    assert own.has_blind and own.model_names == ["one", "two"]
    assert {p.name for p in own.inputs} == {"reader.py", "a.log"}
    names = {p.name for p in input_files(own.params, tmp_path / "o")}
    assert {"reader.py", "a.log"} <= names


@pytest.mark.parametrize(
    ("files", "data", "words"),
    [
        ({"a.py": "x = ("}, None, ["a.py, row 1", "not valid Python"]),
        ({"a.py": "y = 1\nx = 1 / 0"}, None, ["a.py, row 2", "ZeroDivisionError"]),
        ({"a.py": "x = 1"}, None, ["a.py", "holds no Detector, Figure or Table"]),
        ({"a.py": DETECTOR.replace("long_question", "consensus_error")}, None, ["a.py", "is taken"]),
        ({"a.py": DETECTOR, "b.py": DETECTOR}, None, ["b.py", "'long_question' is taken"]),
        ({"a.py": DETECTOR.replace("/ letters.max()", "")}, None, ["a.py", "scores are in [0, 1]"]),
        ({"a.py": DETECTOR.replace('"info"', '"fatal"')}, None, ["a.py", "severity 'fatal'"]),
        ({"a.py": DETECTOR.replace('item=pool.items["item"]', 'item="99"')}, None, ["a.py", "item '99'"]),
        ({"a.py": DETECTOR.replace(".str.len()", ".str.length()")}, None, ["a.py, row 5", "detector long_question"]),
        ({"a.py": DETECTOR.replace("flag=letters > 5", "flag='no'")}, None, ["a.py", "neither True nor False"]),
        ({"a.py": DETECTOR.replace('"a long question"', "None")}, None, ["a.py", "no text"]),
        ({"a.py": DETECTOR.replace("pool.arm_names[0]", "'nope'")}, None, ["a.py", "arm 'nope'"]),
        ({"a.py": "import sys\nsys.exit(3)"}, None, ["a.py, row 2", "SystemExit: 3"]),
        ({"a.py": DETECTOR.replace('"{}"', '"long"')}, None, ["a.py", "evidence 'long'"]),
        ({"a.py": DETECTOR.replace("return findings", "return 3 or findings")}, None, ["a.py", "returned int"]),
        ({"reader.py": "x = 1"}, "{folder: runs, reader: checks/reader.py}", ["reader.py", "no function read"]),
        ({"reader.py": READER}, "{folder: runs, reader: checks/reader.py}", ["runs", "found nothing|KeyError"]),
        ({"reader.py": "def read(f):\n    return 1"}, "{folder: runs, reader: checks/reader.py}", ["returned int"]),
        ({"reader.py": "def read(f):\n    f.x"}, "{folder: runs, reader: checks/reader.py}", ["reader.py, row 2"]),
        ({"reader.py": READER}, "{folder: runs, reader: checks/reader.py, toolkit: lm-eval}", ["data.toolkit"]),
        ({"reader.py": READER}, "{folder: runs, reader: checks/none.py}", ["none.py", "no such file"]),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(project, files, data, words):
    with pytest.raises(AuditError) as e:
        auditlib.audit(auditlib.read_pool(project(files, *([data] if data else []))))
    line = str(e.value)
    assert "\n" not in line and "Mend: " in line
    for word in words:
        assert any(w in line for w in word.split("|")), line


def test_what_a_detector_changes_stays_its_own(project):
    code = DETECTOR.replace("    letters =", "    pool.arms['exact'].hits['full'][:] = 0\n    letters =")
    spoiled = auditlib.audit(auditlib.read_pool(project({"long.py": code})))
    plain = auditlib.audit(auditlib.read_pool(project({"long.py": DETECTOR})))
    assert spoiled.statistics.equals(plain.statistics) and spoiled.findings.equals(plain.findings)


def test_a_missing_file_is_named(project, tmp_path):
    path = project({"long.py": DETECTOR})
    (tmp_path / "checks/long.py").unlink()
    with pytest.raises(AuditError, match=r"long\.py: there is no such file"):
        extensions_of(load_params(path))
