"""TinySee's models behind ``vllm serve``, asked by the openai client (oracle: their recorded runs)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from tinysee import MODELS, accuracy, blind_run, folder_of, params_file, recorded

import auditlib

#: seconds that a server gets to start
PATIENCE = 400


@contextmanager
def served(folder: Path, name: str, log: Path):
    """A server of one model on a free local port; ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("vllm")), "serve", str(folder), "--host", "127.0.0.1", "--port",
               str(port), "--served-model-name", name, "--max-model-len", "1024", "--dtype", "float32",
               "--enforce-eager"]  # fmt: skip
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=dict(os.environ))
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen, url: str, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (OSError, urllib.error.URLError):
            time.sleep(1)
    raise AssertionError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="module", params=MODELS)
def pool(request, weights, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with served(folder_of(weights, request.param), request.param, folder / "log") as url:
        file = params_file(folder, [{"name": request.param}], ["full", "blind", "image_only"], base_url=url)
        done = blind_run(file, folder / "out")
    return request.param, done, auditlib.read_pool(file, outputs=folder / "out")


@pytest.mark.parametrize("condition", ["full", "blind"])
def test_accuracies_are_the_recorded_ones(pool, condition):
    model, _, own = pool
    assert accuracy(own, model, condition) == pytest.approx(accuracy(recorded(), model, condition), abs=0.02)


def test_a_picture_without_its_question_is_answered(pool):
    _, done, _ = pool
    alone = done.responses[done.responses["condition"].eq("image_only")]
    assert len(alone) == 300 and alone["outcome"].eq("ok").sum() > 285, "a few replies are empty"


def test_the_server_counts_the_picture(pool):
    _, done, _ = pool
    tokens = done.responses.groupby("condition")["tokens_in"].mean()
    assert tokens["full"] > tokens["blind"] > 0
