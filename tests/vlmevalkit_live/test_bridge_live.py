"""The bridge with the packaged VLMEvalKit: its own command line, full and blind, against a server of this machine.

``make test-vlmeval`` makes the environment and runs this; AUDITLIB_VLMEVAL_PYTHON names a Python that can import
``vlmeval``, where this one cannot. Starting the toolkit takes about a minute, so full and blind run side by side.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from auditlib.calls import Picture
from auditlib.inference.conditions import ablate
from auditlib.inference.items import read_question_items
from auditlib.inference.prompts import build_prompt
from auditlib.params import load_params
from auditlib.reading import read_pool
from auditlib.synth.embedded import items_file

ROOT = Path(__file__).resolve().parents[2]
ITEMS = 12
#: what the server says to every prompt without a picture; with one it says the key
GUESS = "B"


def _toolkit_python() -> str:
    """A Python that imports VLMEvalKit; skips where there is none."""
    python = os.environ.get("AUDITLIB_VLMEVAL_PYTHON") or sys.executable
    look = "import importlib.util as u; raise SystemExit(u.find_spec('vlmeval') is None)"
    try:
        found = subprocess.run([python, "-c", look], capture_output=True, cwd="/", timeout=60).returncode == 0
    except OSError:
        pytest.fail("AUDITLIB_VLMEVAL_PYTHON names no program")
    if not found:
        pytest.skip("vlmeval is not installed; 'make test-vlmeval' makes an environment that has it")
    return python


@pytest.fixture(scope="module")
def python() -> str:
    return _toolkit_python()


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """The first items of TinySee that differ in their texts and hold their pictures, as a data set of its own."""
    path = tmp_path_factory.mktemp("lmudata") / "Mini.tsv"
    rows, seen = [], set()
    csv.field_size_limit(10**8)
    with open(items_file("tinysee"), encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle, delimiter="\t")
        for row in reader:
            text = tuple(row[c] for c in ("question", "A", "B", "C", "D"))
            # the toolkit reads "None" as no option at all
            if len(row["image"]) > 64 and text not in seen and "None" not in text and len(rows) < ITEMS:
                seen.add(text)
                rows.append(row)
        with open(path, "w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, reader.fieldnames, delimiter="\t")
            writer.writeheader()
            writer.writerows(rows)
    return path


class Endpoint:
    """Answers with the item's key where a picture came, else with GUESS; keeps what was asked."""

    def __init__(self, keys: dict[str, str]):
        self.asked: list[dict] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.asked.append(body)
                text, pictures = _read(body)
                said = keys[text.strip()] if pictures else GUESS
                data = json.dumps({
                    "choices": [{"index": 0, "finish_reason": "stop",
                                 "message": {"role": "assistant", "content": said}}],
                    "model": body["model"], "usage": {"prompt_tokens": len(text.split()), "completion_tokens": 1},
                }).encode()  # fmt: skip
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Endpoint:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _read(body: dict) -> tuple[str, int]:
    """Text of the user's message, its parts joined, and the number of pictures in it."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content, 0
    texts = [p["text"] for p in content if p["type"] == "text"]
    return "\n".join(texts), sum(p["type"] != "text" for p in content)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def keys(table) -> dict[str, str]:
    """The toolkit's prompt of each item, as this project builds it, to the item's key."""
    found = {}
    for item in read_question_items(table):
        prompt = "\n".join(p for p in build_prompt(item).parts if isinstance(p, str))
        found[prompt.strip()] = item.key
    assert len(found) == ITEMS
    return found


@pytest.fixture(scope="module", params=["api", "local"])
def runs(request, python, table, keys, tmp_path_factory):
    """Both runs of one of the toolkit's two modes: its results folder, what was asked full, what blind."""
    out = tmp_path_factory.mktemp(f"results-{request.param}")
    with Endpoint(keys) as full, Endpoint(keys) as blind:
        started = [
            _start(python, module, endpoint, table.parent, out, request.param)
            for module, endpoint in (("vlmeval", full), ("auditlib.inference.bridge", blind))
        ]
        for process in started:
            said, _ = process.communicate(timeout=900)
            assert process.returncode == 0, said[-3000:]
    return out / "outputs", full.asked, blind.asked


def _start(python: str, module: str, endpoint: Endpoint, data: Path, out: Path, mode: str) -> subprocess.Popen:
    """The toolkit's command line, or the bridge with the same arguments."""
    arguments = ["--data", "Mini", "--model", "tiny", "--work-dir", str(out / "outputs"), "--base-url", endpoint.url]
    arguments += ["--api-nproc", "2", "--max-tokens", "12", "--retry", "1", "--judge", "exact_matching"]
    arguments += ["--api-mode", "--monitor-interval", "60"] if mode == "api" else []
    settings = {
        "LMUData": str(data), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    return subprocess.Popen(
        [python, "-m", module, *arguments], cwd=out, env=os.environ | settings, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_texts_are_equal_and_no_picture_is_sent_blind(runs, table):
    _, full, blind = runs
    assert len(full) == len(blind) == ITEMS
    assert {_read(b)[1] for b in full} == {1} and {_read(b)[1] for b in blind} == {0}
    assert "image" not in json.dumps([b["messages"] for b in blind])
    texts = [sorted(_digest(_read(b)[0]) for b in asked) for asked in (full, blind)]
    assert texts[0] == texts[1] and len(set(texts[0])) == ITEMS
    # and they are the texts that this project's own blind prompts hold, but for a line end between question and options
    own = {
        _digest("\n".join(p for p in ablate(build_prompt(i).parts, "blind") if not isinstance(p, Picture)))
        for i in read_question_items(table)
    }
    assert own == set(texts[0])
    assert {b["model"] for b in (*full, *blind)} == {"tiny"}  # the server knows the model's true name


def test_results_lie_beside_the_full_ones(runs):
    out, _, _ = runs
    assert sorted(p.name for p in out.iterdir() if p.name.startswith("tiny")) == ["tiny", "tiny_blind"]
    names = {p.name for p in out.rglob("*_Mini.xlsx")}
    assert names == {"tiny_Mini.xlsx", "tiny_blind_Mini.xlsx"}
    said = {n: pd.read_excel(next(out.rglob(n)), dtype=str, engine="calamine")["prediction"].tolist() for n in names}
    assert set(said["tiny_blind_Mini.xlsx"]) == {GUESS} and len(set(said["tiny_Mini.xlsx"])) > 1


def test_the_audit_reads_both_runs(runs, table, tmp_path):
    out, _, _ = runs
    (tmp_path / "mini.yaml").write_text(
        f"pool: mini\nbenchmark: Mini\ndata:\n  folder: {out}\n  dataset: {table}\njudge: exact_matching\n"
    )
    params = load_params(tmp_path / "mini.yaml")
    pool = read_pool(params, outputs=tmp_path / "outputs")
    assert pool.models["model"].tolist() == ["tiny"]
    share = sum(i.key == GUESS for i in read_question_items(table))
    hits = pool.arms["exact"].hits
    assert hits["full"].shape == (ITEMS, 1)
    assert hits["full"].sum() == ITEMS and hits["blind"].sum() == share
