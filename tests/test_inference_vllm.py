"""The vLLM client with a stand-in for the ``vllm`` module.

The stand-in keeps the shapes that vLLM 0.32 was seen to use (``LLM.chat`` with a list of conversations and one
``SamplingParams`` each, ``outputs[0].logprobs`` by token id). A test of the real engine (``make test-vllm``, to come)
covers what only that can show: that a picture reaches the model, that text as a string and as one part give the same
tokens, that the values of ``logprob_token_ids`` are the raw ones, that an image sent to a text model is refused in
these words, and accuracies.
"""

from __future__ import annotations

import asyncio
import math
import sys
from types import ModuleType, SimpleNamespace

import pytest

from auditlib.calls import Generation, Picture, Request
from auditlib.errors import AuditError
from auditlib.inference.canary import solid
from auditlib.inference.failures import StopRun
from auditlib.inference.store import Store
from auditlib.inference.vllm_client import VllmClient

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
