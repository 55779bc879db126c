"""The ``engine`` settings of an inference block: to vLLM's constructor as they are, slips of the pen named."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from auditlib.errors import AuditError
from auditlib.inference import offline
from auditlib.params import load_params


class LLM:
    """Keeps what the engine is constructed with."""

    made: list[dict] = []  # noqa: RUF012

    def __init__(self, **settings):
        LLM.made.append(settings)

    def get_tokenizer(self):
        return None


@pytest.fixture
def made(monkeypatch):
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams, module.__version__ = LLM, object, "0.0"
    monkeypatch.setitem(sys.modules, "vllm", module)
    LLM.made.clear()
    yield LLM.made
    offline.free()


def block(folder: Path, **inference):
    given = {"client": "vllm", "conditions": ["full"], "models": [{"name": "m", "served_as": "weights/m"}]}
    content = {"pool": "p", "benchmark": "B", "data": {"dataset": "b.tsv"}, "inference": given | inference}
    file = folder / "p.yaml"
    file.write_text(yaml.safe_dump(content))
    return load_params(file).inference


ENGINE = {"tensor_parallel_size": 4, "pipeline_parallel_size": 2, "dtype": "bfloat16", "max_model_len": 8192,
          "limit_mm_per_prompt": {"image": 4}, "enforce_eager": True, "gpu_memory_utilization": 0.85,
          "a_setting_of_a_later_version": 1}  # fmt: skip


def test_the_engine_is_constructed_with_the_settings_of_the_params(made, tmp_path):
    inference = block(tmp_path, engine=ENGINE)
    with offline.clients_of(inference) as clients:
        assert clients["m"].model == "weights/m"
    assert made == [{"model": "weights/m"} | ENGINE]
    assert inference.devices == 8


def test_parallel_sizes_of_the_block(made, tmp_path):
    inference = block(tmp_path, tensor_parallel=2, pipeline_parallel=3, engine={"dtype": "half"})
    with offline.clients_of(inference) as clients:
        clients["m"]
    assert made == [
        {"model": "weights/m", "tensor_parallel_size": 2, "pipeline_parallel_size": 3, "dtype": "half"}
    ]  # fmt: skip
    assert inference.devices == 6
    same = block(tmp_path, tensor_parallel=2, engine={"tensor_parallel_size": 2})
    assert same.parallel == {"tensor_parallel_size": 2, "pipeline_parallel_size": 1}


@pytest.mark.parametrize(
    ("inference", "words"),
    [
        ({"engine": {"tensor_paralel_size": 2}}, "no setting 'tensor_paralel_size'; did you mean 'tensor_parallel_siz"),
        ({"engine": {"max_model_length": 9}}, "did you mean 'max_model_len'"),
        ({"engine": {"tensor_parallel_size": 0}}, "tensor_parallel_size is 0; a whole number of at least 1"),
        ({"engine": {"pipeline_parallel_size": "two"}}, "pipeline_parallel_size is 'two'"),
        ({"engine": {"model": "x"}}, "models stand in inference.models"),
        ({"engine": {"hf_token": "x"}}, "set HF_TOKEN instead"),
        ({"tensor_parallel": 4, "engine": {"tensor_parallel_size": 2}}, "leave one out"),
        ({"client": "openai", "engine": {"dtype": "half"}}, "it goes with client vllm"),
        ({"client": "openai", "base_url": "http://h/v1", "base_urls": ["http://i/v1"]}, "leave one out"),
        ({"client": "openai", "base_urls": ["http://i/v1", "http://i/v1"]}, "twice"),
        ({"client": "openai", "base_urls": ["http://i/v1?key=1"]}, "without user, query or key"),
    ],
)  # fmt: skip
def test_mistakes_in_the_block(tmp_path, inference, words):
    with pytest.raises(AuditError) as caught:
        block(tmp_path, **inference)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_addresses_of_a_model(tmp_path):
    inference = block(
        tmp_path, client="openai", base_urls=["http://a/v1", "http://b/v1"],
        models=[{"name": "m"}, {"name": "n", "base_url": "http://c/v1"}, {"name": "o", "base_urls": ["http://d/v1"]}],
    )  # fmt: skip
    assert [inference.addresses(m) for m in inference.models] == [
        ["http://a/v1", "http://b/v1"], ["http://c/v1"], ["http://d/v1"]]  # fmt: skip
    alone = block(tmp_path, client="openai")
    assert alone.addresses(alone.models[0]) == [None]
    with pytest.raises(AuditError, match="has a base_url"):
        offline.Offline(block(tmp_path, models=[{"name": "m", "base_urls": ["http://d/v1"]}]))
