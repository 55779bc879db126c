"""``auditlib batch``: requests that the store lacks go out as files, results come back, the run asks nothing again."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest
from fault_server import FaultServer, completion

from auditlib.__main__ import main
from auditlib.inference.canary import solid
from auditlib.inference.stage import ask, plan_run
from auditlib.inference.store import Store
from auditlib.params import load_params
from auditlib.paths import RunPaths

#: three items, each with and without its picture
N = 6


@pytest.fixture
def params(tmp_path) -> Path:
    rows = ["index\timage\tquestion\tA\tB\tanswer\tcategory"]
    for i in range(N // 2):
        image = base64.b64encode(solid((i, 0, 0)).load()).decode()
        rows.append(f"{i}\t{image}\tquestion {i}\tred\tblue\tA\tcolour")
    (tmp_path / "Toy.tsv").write_text("\n".join(rows) + "\n")
    file = tmp_path / "toy.yaml"
    file.write_text(
        "pool: toy\nbenchmark: Toy\ndata:\n  dataset: Toy.tsv\ninference:\n  base_url: http://127.0.0.1:9/v1\n"
        "  models:\n    - {name: m, served_as: lab/m-1}\n  conditions: [full, blind]\n"
    )
    return file


def batch(params: Path, step: str, *arguments: object) -> int:
    return main(["batch", step, str(params), *map(str, arguments), "--outputs", str(params.parent / "outputs")])


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def result(key: str, text: str = "A") -> str:
    body = completion(text)
    return json.dumps({"custom_id": key, "response": {"status_code": 200, "body": body}, "error": None}) + "\n"


def broken(key: str) -> str:
    error = {"code": "batch_expired", "message": "expired"}
    return json.dumps({"custom_id": key, "response": None, "error": error}) + "\n"


def test_write_read_resubmit_and_a_run_that_asks_nothing(params, tmp_path, capsys):
    out = tmp_path / "b"
    assert batch(params, "write", "--out", out, "--max-requests", 4) == 0
    files = sorted(out.glob("batch-*.jsonl"))
    assert [len(lines(f)) for f in files] == [4, 2]
    asked = [line for f in files for line in lines(f)]
    assert {line["body"]["model"] for line in asked} == {"lab/m-1"}
    assert "6 requests, 0 of them answered before, 6 written" in capsys.readouterr().out
    key = [line["custom_id"] for line in asked]

    # out of order, one answered twice, one with an error, one without any line
    found = [result(key[5]), result(key[2]), result(key[0]), result(key[0], "B"), broken(key[1]), result(key[4])]
    random.Random(1).shuffle(found)
    found.sort(key=lambda line: json.loads(line)["custom_id"] == key[0])
    (out / "results.jsonl").write_text("".join(found))
    assert batch(params, "read", out / "results.jsonl") == 1
    said = capsys.readouterr().out
    assert "4 answered, 1 failed, 1 missing" in said and "2 requests of the params have no answer yet" in said
    assert "1 excluded: result lines of requests that an earlier line answered; the first counts" in said
    assert [line["custom_id"] for line in lines(out / "resubmit-001.jsonl")] == [key[1], key[3]]

    (out / "rest.jsonl").write_text(result(key[3]) + result(key[1]))
    assert batch(params, "read", out / "rest.jsonl") == 0
    assert "2 answered, 0 failed, 0 missing" in capsys.readouterr().out
    assert batch(params, "write", "--out", tmp_path / "again") == 0
    assert "6 requests, 6 of them answered before, 0 written" in capsys.readouterr().out

    with FaultServer() as server:
        params.write_text(params.read_text().replace("http://127.0.0.1:9/v1", server.url))
        paths = RunPaths(tmp_path / "outputs", "toy")
        run = ask(plan_run(load_params(params), paths), say=lambda line: None)
        assert server.bodies == []
    assert len(run.responses) == N and set(run.responses["model"]) == {"m"}
    assert set(run.responses["prediction"]) <= {"A", "B"}


def test_a_damaged_line_is_named_and_the_others_are_kept(params, tmp_path, capsys):
    out = tmp_path / "b"
    batch(params, "write", "--out", out)
    key = [line["custom_id"] for line in lines(out / "batch-001.jsonl")]
    (out / "results.jsonl").write_text(result(key[0]) + result(key[1])[:40] + "\n" + result(key[2]))
    assert batch(params, "read", out / "results.jsonl") == 2
    error = capsys.readouterr().err
    assert "results.jsonl, row 2: this line is cut off or damaged; 2 answers of the good lines are stored" in error
    assert not list(out.glob("resubmit-*"))
    with Store(RunPaths(tmp_path / "outputs", "toy").answers) as store:
        assert [k in store for k in key] == [True, False, True, False, False, False]
    assert batch(params, "read", out / "batch-001.jsonl") == 2
    assert "row 1: this line is a request, no result" in capsys.readouterr().err


def test_results_without_their_batch_files(params, tmp_path, capsys):
    (tmp_path / "r.jsonl").write_text(result("k"))
    assert batch(params, "read", tmp_path / "r.jsonl") == 2
    assert "were not found" in capsys.readouterr().err
