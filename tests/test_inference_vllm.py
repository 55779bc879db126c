"""The vLLM client with a stand-in for the ``vllm`` module.

The stand-in keeps the shapes that vLLM 0.32 was seen to use (``LLM.chat`` with a list of conversations and one
``SamplingParams`` each, ``outputs[0].logprobs`` by token id). What only the real engine can show (that a picture
reaches the model, that named tokens' values are the raw ones, in which words it refuses, accuracies) is in
``tests/vllm_live``, run by ``make test-vllm``.
"""

from __future__ import annotations

import asyncio
import gc
import io
import math
import sys
import weakref
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import pytest
import yaml
from builders import embedded_pool
from PIL import Image

import auditlib
from auditlib.calls import Generation, Picture, Request
from auditlib.errors import AuditError
from auditlib.inference import offline, stage
from auditlib.inference.canary import solid
from auditlib.inference.failures import StopRun
from auditlib.inference.items import read_question_items
from auditlib.inference.store import Store
from auditlib.inference.vllm_client import VllmClient
from auditlib.nb import start
from auditlib.paths import project_root
from auditlib.synth.server import folded, recorded

TSV = project_root() / "auditlib/synth/data/tinysee/TinySee.tsv"
MODELS = ("tinyvlm-alpha", "tinyvlm-delta")

VOCABULARY = {"A": 1, "B": 2, " A": 3, " B": 4, "b": 5, "\n": 6}


class Tokenizer:
    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [VOCABULARY[text]] if text in VOCABULARY else [90, 91]

    def decode(self, ids: list[int]) -> str:
        return next((w for w, i in VOCABULARY.items() if i == ids[0]), "?")


class SamplingParams:
    def __init__(self, *, temperature=1.0, max_tokens=16, top_p=1.0, seed=None, logprobs=None, logprob_token_ids=None):
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})


class OldSamplingParams:
    def __init__(self, *, temperature=1.0, max_tokens=16, logprobs=None):
        self.temperature, self.max_tokens, self.logprobs, self.logprob_token_ids = (
            temperature,
            max_tokens,
            logprobs,
            None,
        )


class LLM:
    """Says B; the words of a question choose other outcomes."""

    def __init__(self, **settings):
        if settings["model"] == "absent":
            raise OSError("no such folder")
        self.settings, self.calls, self.templates = settings, [], []

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    def chat(self, messages, sampling_params, use_tqdm=True, chat_template_kwargs=None):
        assert not use_tqdm and len(messages) == len(sampling_params)
        self.calls.append(list(zip(messages, sampling_params)))
        self.templates.append(chat_template_kwargs)
        words = [str(m[-1]["content"]) for m in messages]
        for w in words:
            if "too long" in w:
                raise ValueError("the prompt is longer than the maximum model length")
            if "dead" in w:
                raise RuntimeError("engine core died")
            if "image_pil" in w and self.settings["model"] == "text-only":
                raise ValueError("text-only is not a multimodal model")
        return [self._answer(w, p) for w, p in zip(words, sampling_params)]

    @staticmethod
    def _answer(words: str, p) -> SimpleNamespace:
        text, finish = ("", "stop") if "nothing" in words else ("B", "length" if "cut" in words else "stop")
        logprobs = None
        if p.logprob_token_ids:
            values = {1: -3.0, 2: -0.2, 3: -4.0, 4: -2.0, 5: -5.0}
            logprobs = [{i: SimpleNamespace(logprob=values[i], decoded_token=None) for i in p.logprob_token_ids}]
        elif p.logprobs:
            logprobs = [{2: SimpleNamespace(logprob=-0.2, decoded_token="B"),
                         6: SimpleNamespace(logprob=-2.5, decoded_token="\n")}]  # fmt: skip
        said = SimpleNamespace(text=text, finish_reason=finish, token_ids=[2], logprobs=logprobs)
        return SimpleNamespace(prompt_token_ids=[0] * 7, outputs=[said])


@pytest.fixture
def vllm(monkeypatch):
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams, module.__version__ = LLM, SamplingParams, "0.0"
    monkeypatch.setitem(sys.modules, "vllm", module)
    return module


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "answers.sqlite") as opened:
        yield opened


def asked(*texts: str, **settings) -> list[Request]:
    return [Request(f"i{n}", "m", "blind", (t,), **settings) for n, t in enumerate(texts)]


def test_without_vllm_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(AuditError, match=r"vLLM is not installed.*install auditlib\[vllm\]"):
        VllmClient("m")


def test_settings_of_the_engine_are_passed_through(vllm):
    client = VllmClient("m", tensor_parallel_size=4, pipeline_parallel_size=2, dtype="float32")
    assert client._llm.settings == {
        "model": "m", "tensor_parallel_size": 4, "pipeline_parallel_size": 2, "dtype": "float32",
    }  # fmt: skip
    with pytest.raises(AuditError, match="cannot load the model 'absent'"):
        VllmClient("absent")


def test_text_is_a_string_and_pictures_are_pil_images(vllm):
    client = VllmClient("m")
    requests = [
        Request("a", "m", "blind", ("one", "two"), system="be brief"),
        Request("b", "m", "full", (solid((1, 2, 3)), "look"), generation=Generation(0.5, 9, 0.9, 3)),
    ]
    replies = client.chat(requests)
    ((plain, _), (seen, sampling)) = client._llm.calls[0]
    assert plain == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "one\ntwo"}]
    shown, said = seen[0]["content"]
    assert shown["image_pil"].mode == "RGB" and shown["image_pil"].getpixel((0, 0)) == (1, 2, 3)
    assert said == {"type": "text", "text": "look"}
    assert (sampling.temperature, sampling.max_tokens, sampling.top_p, sampling.seed) == (0.5, 9, 0.9, 3)
    assert [r.key for r in replies] == [r.key for r in requests]
    assert (replies[0].text, replies[0].tokens_in, replies[0].tokens_out) == ("B", 7, 1)
    assert (replies[0].server_model, replies[0].fingerprint) == ("m", "vllm 0.0")


def test_letters_are_exact_with_named_tokens(vllm):
    (reply,) = VllmClient("m").chat(asked("q", generation=Generation(logprobs=True), letters="AB"))
    a, b = reply.letter_logprobs["A"], reply.letter_logprobs["B"]
    assert a == (pytest.approx(math.log(math.exp(-3) + math.exp(-4))), False)
    assert b == (pytest.approx(math.log(math.exp(-0.2) + math.exp(-2) + math.exp(-5))), False)


def test_letters_are_bounded_where_named_tokens_are_not_to_be_had(vllm):
    g = Generation(logprobs=True, top_logprobs=2)
    (reply,) = VllmClient("m").chat(asked("q", generation=g, letters="ABC"))  # C is no single token
    assert reply.letter_logprobs == {"A": (-2.5, True), "B": (-0.2, False), "C": (-2.5, True)}
    vllm.SamplingParams = OldSamplingParams
    (reply,) = VllmClient("m").chat(asked("q", generation=g, letters="AB"))
    assert reply.letter_logprobs == {"A": (-2.5, True), "B": (-0.2, False)}


def test_each_outcome_and_one_bad_conversation_spoils_no_other(vllm):
    replies = VllmClient("m").chat(asked("q", "nothing", "cut", "too long", "q2"))
    assert [r.outcome for r in replies] == ["ok", "empty", "truncated", "refused_request", "ok"]
    assert "longer than the maximum" in replies[3].error


def test_a_text_model_that_is_shown_pictures_stops_with_one_message(vllm):
    with pytest.raises(StopRun, match="takes no images"):
        VllmClient("text-only").chat([Request("b", "m", "full", (solid((1, 2, 3)), "look"))])


def test_a_picture_that_cannot_be_read_is_named(vllm):
    broken = Picture("0", "image/png", lambda: b"no picture")
    with pytest.raises(AuditError, match="picture of item 'b'"):
        VllmClient("m").chat([Request("b", "m", "full", (broken, "look"))])


def test_chunks_are_stored_as_they_end_and_a_second_run_asks_the_rest(vllm, store):
    client, told = VllmClient("m"), []
    requests = asked("q0", "q1", "q2", "q3", "dead", "dead ")
    with pytest.raises(StopRun, match=r"answered none of 2 conversations.*engine core died"):
        client.run(requests, store, chunk=2)
    assert len(store) == 4 and len(store.failures()) == 2
    more = [*requests[:4], *requests[:1], *asked("n0", "n1", "n2", generation=Generation(seed=1))]
    summary = client.run(more, store, chunk=2, say=lambda *state: told.append(state), every=0.0)
    assert (summary.outcomes, summary.known, summary.tokens_in) == ({"ok": 3}, 5, 21)
    assert [t[0] for t in told] == [7, 8, 8] and told[-1][1] == 8
    assert len(client._llm.calls[-1]) == 1


def test_settings_of_the_chat_template_part_the_calls(vllm):
    client = VllmClient("m")
    extra = (("chat_template_kwargs", {"enable_thinking": False}),)
    client.chat([*asked("q"), *asked("q", generation=Generation(extra=extra, reasoning_effort="low"))])
    assert client._llm.templates == [None, {"enable_thinking": False, "reasoning_effort": "low"}]
    with pytest.raises(AuditError, match="does not take these generation settings"):
        client.chat(asked("q", generation=Generation(extra=(("unheard_of", 1),))))


def test_the_canary_may_ask_a_list(vllm):
    client = VllmClient("m")
    reply = asyncio.run(client.ask(asked("q")[0], listed=True))
    assert reply.outcome == "ok"
    assert client._llm.calls[0][0][0][-1]["content"] == [{"type": "text", "text": "q"}]


def test_an_error_of_the_engines_own_class_is_an_outcome(vllm):
    """Since 0.32 the errors of vLLM are no ValueError and no RuntimeError."""

    class VLLMClientError(Exception): ...

    class VLLMValidationError(VLLMClientError): ...

    class EngineDeadError(Exception): ...

    client = VllmClient("m")
    said = client._llm.chat
    for error, outcome in ((VLLMValidationError("prompt too long"), "refused_request"),
                           (EngineDeadError("engine core died"), "failed")):  # fmt: skip
        client._llm.chat = raising(error, "bad", said)
        assert [r.outcome for r in client.chat(asked("q", "bad"))] == ["ok", outcome]


def raising(error: Exception, word: str, otherwise):
    def chat(messages, *rest, **more):
        if any(word in str(m) for m in messages):
            raise error
        return otherwise(messages, *rest, **more)

    return chat


def test_nothing_but_refusals_ends_the_run_and_is_asked_again(vllm, store):
    client = VllmClient("m")
    long = asked(*[f"too long {n}" for n in range(30)])
    with pytest.raises(StopRun, match=r"refused each of the first 20 requests.*longer than the maximum"):
        client.run(long, store, chunk=8)
    assert len(store) == 0
    summary = client.run([*asked("q"), *long[1:]], store, chunk=8)
    assert summary.outcomes == {"ok": 1, "refused_request": 29}
    assert len(store) == 30


@pytest.mark.parametrize(
    ("said", "prompt", "text", "reasoning", "outcome"),
    [
        ("<think>A or C?</think>\n\nB", "", "B", "A or C?", "ok"),
        ("A or C?</think>B", "", "B", "A or C?", "ok"),
        ("A or C", "<|assistant|>\n<think>\n", "", "A or C", "empty"),
        ("<think>A or C", "", "", "A or C", "empty"),
        ("B", "Write <think> and </think> round it.", "B", None, "ok"),
        (" B. blue\n", "", " B. blue\n", None, "ok"),
    ],
)
def test_thoughts_are_kept_apart(vllm, said, prompt, text, reasoning, outcome):
    client = VllmClient("m")
    chat = client._llm.chat

    def thinking(*rest, **more):
        outputs = chat(*rest, **more)
        outputs[0].outputs[0].text, outputs[0].prompt = said, prompt
        return outputs

    client._llm.chat = thinking
    (reply,) = client.chat(asked("q", generation=Generation(logprobs=True), letters="AB"))
    assert (reply.text, reply.reasoning, reply.outcome) == (text, reasoning, outcome)
    assert (reply.letter_logprobs is None) == (reasoning is not None), "the first token of a thought is no answer"


# -------------------------------------------------------------------------------------------- a pool by its params


class Recorded(LLM):
    """Says what the model of that name said to the prompt when TinySee was recorded; one is loaded at a time."""

    loads: ClassVar[list[str]] = []
    alive: ClassVar[weakref.WeakSet] = weakref.WeakSet()

    def __init__(self, **settings):
        super().__init__(**settings)
        assert not Recorded.alive, "the model before is not freed"
        assert settings["tensor_parallel_size"] == 2 and settings["pipeline_parallel_size"] == 3
        self.itself = self  # only the collector frees it, as the engine
        Recorded.alive.add(self)
        Recorded.loads.append(settings["model"])

    def _answer(self, words: str, p) -> SimpleNamespace:
        raise AssertionError

    def chat(self, messages, sampling_params, use_tqdm=True, chat_template_kwargs=None):
        self.calls.append(list(zip(messages, sampling_params)))
        return [self._said(m[-1]["content"]) for m in messages]

    def _said(self, content) -> SimpleNamespace:
        shown, words = "", content
        if not isinstance(content, str):
            words = "\n".join(p["text"] for p in content if p["type"] == "text")
            shown = next((pixels()[p["image_pil"].tobytes()] for p in content if p["type"] == "image_pil"), "")
        name = self.settings["model"].removeprefix("weights/")
        text = recorded("tinysee")[name, folded(words), shown]
        said = SimpleNamespace(text=text, finish_reason="stop", token_ids=[2], logprobs=None)
        return SimpleNamespace(prompt_token_ids=[0] * (60 if shown else 40), outputs=[said])


@cache
def pixels() -> dict[bytes, str]:
    """Colours of each picture -> SHA-256 of its file."""
    pictures = [item.pictures[0] for item in read_question_items(TSV)]
    pictures += [solid((220, 20, 20)), solid((20, 20, 220))]
    return {Image.open(io.BytesIO(p.load())).convert("RGB").tobytes(): p.sha256 for p in pictures}


@pytest.fixture
def engine(vllm):
    vllm.LLM = Recorded
    Recorded.loads.clear()
    return Recorded


def offline_params(folder: Path, **inference) -> Path:
    models = [{"name": m, "served_as": f"weights/{m}"} for m in MODELS]
    block = {"client": "vllm", "models": models, "conditions": ["full", "blind"], "tensor_parallel": 2,
             "pipeline_parallel": 3}  # fmt: skip
    content = {"pool": "offline", "benchmark": "TinySee", "data": {"dataset": str(TSV)}, "inference": block | inference}
    content["audit"] = {"exact": ["letters", "option_text"]}
    file = folder / "offline.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def test_blind_run_of_two_models_one_after_the_other(engine, tmp_path):
    settings, paths, _ = start(offline_params(tmp_path), tmp_path / "out", {"limit": 60})
    told: list[str] = []
    done = stage.blind_run(settings, paths, say=told.append, limit=60)
    recorded_runs = embedded_pool("tinysee").responses
    theirs = recorded_runs.set_index(["model", "condition", "item"])["prediction"]
    mine = done.responses.set_index(["model", "condition", "item"])["prediction"]
    assert len(mine) == 240 and (mine == theirs.reindex(mine.index)).all()
    assert engine.loads == [f"weights/{m}" for m in MODELS]
    assert not engine.alive and not offline._loaded
    assert any("a red and a blue picture" in line for line in told), "the small questions come first"
    assert any(line.startswith(f"{MODELS[1]}: 120 of 120 answered, 0 failed") for line in told)
    pool = auditlib.read_pool(settings, outputs=tmp_path / "out")
    assert pool.provenance["runs"][f"{MODELS[0]}/full"]["fingerprint"] == ["vllm 0.0"]
    again = stage.blind_run(settings, paths, say=told.append, limit=60)
    assert len(engine.loads) == 2 and [s.known for s in again.summaries.values()] == [120, 120]
    assert again.responses["prediction"].tolist() == done.responses["prediction"].tolist()


def test_one_model_is_loaded_once_and_freed_after_an_error(engine, tmp_path, monkeypatch):
    one = [{"name": MODELS[0], "served_as": f"weights/{MODELS[0]}"}]
    settings, paths, _ = start(offline_params(tmp_path, models=one), tmp_path / "out", {"limit": 30})
    plan = stage.plan_run(settings, paths, limit=30)
    stage.try_endpoints(plan)
    forecast = stage.measure(plan)[MODELS[0]]
    assert (forecast.calls, forecast.basis) == (60, "20 replies")
    assert engine.loads == [f"weights/{MODELS[0]}"] and len(engine.alive) == 1, "it stays for the run"

    def interrupted(self, requests):
        raise KeyboardInterrupt

    monkeypatch.setattr(VllmClient, "chat", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stage.ask(plan)
    assert not offline._loaded
    monkeypatch.undo()
    gc.collect()
    assert not engine.alive


def test_client_vllm_without_vllm_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    settings, paths, _ = start(offline_params(tmp_path), tmp_path / "out")
    with pytest.raises(AuditError, match=r"vLLM is not installed.*install auditlib\[vllm\], or use a server"):
        stage.blind_run(settings, paths, limit=3)


def test_an_address_beside_client_vllm_is_a_mistake(engine, tmp_path):
    models = [{"name": MODELS[0], "base_url": "http://127.0.0.1:9/v1"}]
    settings, paths, _ = start(offline_params(tmp_path, models=models), tmp_path / "out")
    with pytest.raises(AuditError, match="has a base_url, and client vllm loads models in this process"):
        stage.blind_run(settings, paths, limit=3)
