"""The bridge with a tiny stand-in for VLMEvalKit: same layout of modules, same calls, files under the model's name."""

from __future__ import annotations

import importlib
import json
import sys

import pytest

from auditlib.errors import AuditError
from auditlib.inference import bridge

_RUN = """
import argparse, json, os
from vlmeval.config import supported_VLM
from vlmeval.dataset import build_dataset

def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", nargs="+")
    p.add_argument("--model", nargs="+")
    p.add_argument("--config")
    p.add_argument("--base-url")
    p.add_argument("--work-dir", default="outputs")
    return p.parse_args()

class LMDeployAPI:
    def __init__(self, model):
        self.model = model

def main():
    args = parse_args()
    if args.config:
        cfg = json.load(open(args.config))
        args.model, args.data = list(cfg["model"]), list(cfg["data"])
    for name in args.model:
        served = LMDeployAPI(model=name).model if args.base_url else None
        model = None if served else supported_VLM[name]()
        for data in args.data:
            dataset = build_dataset(data)
            own = model is not None and model.use_custom_prompt(data)
            prompt = model.build_prompt("q", dataset=data) if own else dataset.build_prompt("q")
            os.makedirs(f"{args.work_dir}/{name}", exist_ok=True)
            with open(f"{args.work_dir}/{name}/{name}_{data}.json", "w") as f:
                json.dump({"prompt": prompt, "served": served}, f)
"""
_DATASET = """
class Base:
    def build_prompt(self, line):
        return [{"type": "image", "value": "p.png"}, {"type": "text", "value": f"Question: {line} <image 1>?"}]

class Placed(Base):
    def build_prompt(self, line):
        picture, text = super().build_prompt(line)
        before, after = text["value"].split("<image 1>")
        return [{"type": "text", "value": before}, picture, {"type": "text", "value": after}]

class Turns(Base):
    def build_prompt(self, line):
        return [{"role": "user", "content": super().build_prompt(line)}]

def build_dataset(name):
    return {"plain": Base, "placed": Placed, "turns": Turns}[name]()
"""
_CONFIG = """
class Plain:
    def use_custom_prompt(self, dataset):
        return False

class Own(Plain):
    def use_custom_prompt(self, dataset):
        return True
    def build_prompt(self, line, dataset=None):
        return [{"type": "text", "value": "own"}, {"type": "image", "value": "p.png"}]

supported_VLM = {"Plain": Plain, "Own": Own}
"""


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    package = tmp_path / "site" / "vlmeval"
    (package / "dataset").mkdir(parents=True)
    for name, text in (("__init__", ""), ("run", _RUN), ("config", _CONFIG), ("dataset/__init__", _DATASET)):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    _forget()
    importlib.invalidate_caches()
    yield tmp_path / "out"
    _forget()


def _forget() -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "vlmeval"]:
        del sys.modules[name]


def _run(out, *arguments: str) -> dict[str, dict]:
    bridge.main([*arguments, "--work-dir", str(out)])
    return {p.relative_to(out).as_posix(): json.loads(p.read_text()) for p in sorted(out.rglob("*.json"))}


def _text(value: str) -> dict[str, str]:
    return {"type": "text", "value": value}


def test_prompts_lose_pictures_and_nothing_else_and_files_get_the_blind_name(toolkit):
    full = toolkit / "Plain" / "Plain_plain.json"
    full.parent.mkdir(parents=True)
    full.write_text('{"full": 1}')
    arguments = list(sys.argv)
    found = _run(toolkit, "--model", "Plain", "--data", "plain", "placed", "turns")
    assert sorted(found) == [
        "Plain/Plain_plain.json", "Plain_blind/Plain_blind_placed.json", "Plain_blind/Plain_blind_plain.json",
        "Plain_blind/Plain_blind_turns.json",
    ]  # fmt: skip
    assert found["Plain/Plain_plain.json"] == {"full": 1}  # the full run is as it was
    whole = _text("Question: q <image 1>?")
    assert found["Plain_blind/Plain_blind_plain.json"]["prompt"] == [whole]
    # the inner call still had the picture to place
    assert found["Plain_blind/Plain_blind_placed.json"]["prompt"] == [_text("Question: q "), _text("?")]
    assert found["Plain_blind/Plain_blind_turns.json"]["prompt"] == [{"role": "user", "content": [whole]}]
    assert sys.argv == arguments


def test_prompts_of_a_model_of_its_own_lose_pictures_too(toolkit):
    found = _run(toolkit, "--model", "Own", "--data", "plain")
    assert found["Own_blind/Own_blind_plain.json"]["prompt"] == [_text("own")]


def test_models_of_a_configuration_and_of_a_server(toolkit, tmp_path):
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"model": {"Plain": {}}, "data": {"plain": {}}}))
    assert list(_run(toolkit, "--config", str(config))) == ["Plain_blind/Plain_blind_plain.json"]
    assert json.loads(config.read_text())["model"] == {"Plain": {}}
    found = _run(toolkit, "--model", "served", "--data", "plain", "--base-url", "http://localhost/v1")
    assert found["served_blind/served_blind_plain.json"]["served"] == "served"  # the server knows the true name


def test_a_wrong_configuration_is_said(toolkit, tmp_path):
    (tmp_path / "c.json").write_text("[]")
    with pytest.raises(AuditError, match="no configuration of VLMEvalKit"):
        _run(toolkit, "--config", str(tmp_path / "c.json"))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (["p.png", "text"], "unknown shape"),
        (None, "unknown shape"),
        ([{"type": "image", "value": "p.png"}], "nothing is left"),
    ],
)
def test_prompts_that_cannot_be_blind_are_errors(message, said):
    with pytest.raises(AuditError, match=said):
        bridge.without_pictures(message)


def test_without_the_toolkit_the_error_says_how_to_get_it(monkeypatch):
    _forget()
    monkeypatch.setitem(sys.modules, "vlmeval", None)
    with pytest.raises(AuditError, match=r"VLMEvalKit is not installed.*pip install ms-vlmeval"):
        bridge.main([])
