"""What the client takes for granted of the engine, seen in the engine itself."""

from __future__ import annotations

import json
import shutil

import pytest
from tinysee import ROOT, folder_of

from auditlib.calls import Generation, Request
from auditlib.errors import AuditError
from auditlib.inference.canary import canary_blocking, solid
from auditlib.inference.failures import StopRun
from auditlib.inference.items import read_question_items
from auditlib.inference.plan import RunSettings, requests_of
from auditlib.inference.vllm_client import VllmClient

ENGINE = {"dtype": "float32", "enforce_eager": True, "max_model_len": 512}
SHORT = Generation(max_tokens=8)


@pytest.fixture(scope="module")
def client(weights):
    client = VllmClient(str(folder_of(weights, "tinyvlm-alpha")), **ENGINE)
    yield client
    client.free()


@pytest.fixture(scope="module")
def questions() -> list[Request]:
    items = read_question_items(ROOT / "auditlib/synth/data/tinysee/TinySee.tsv")[:40]
    return list(requests_of(items, RunSettings("tinyvlm-alpha", ("full", "blind"), generation=SHORT)))


def test_small_questions_find_nothing_wrong(client):
    found = canary_blocking(client, "tinyvlm-alpha", conditions=("full", "blind"))
    assert {c.name: c.verdict for c in found.checks} == {
        "text as a string and as a list of one part": "ok",
        "text without and with a picture": "ok",
        "a red and a blue picture": "ok",
    }


def test_order_and_company_change_no_reply(client, questions):
    together = client.chat(questions)
    backwards = client.chat(questions[::-1])[::-1]
    alone = [client.chat([q])[0] for q in questions[:8]]
    assert [r.text for r in together] == [r.text for r in backwards]
    assert [r.text for r in together[:8]] == [r.text for r in alone]
    assert {r.outcome for r in together} == {"ok"} and all(r.fingerprint.startswith("vllm ") for r in together)


def test_a_picture_alone_is_answered(client):
    (reply,) = client.chat([Request("1", "m", "image_only", (solid((220, 30, 30)),), SHORT)])
    assert reply.outcome in ("ok", "truncated") and reply.text.startswith("red")


def test_named_tokens_have_the_values_of_the_whole_list(client):
    import vllm

    message = [{"role": "user", "content": "Question: What color is the banana?\nA. red\nB. yellow\n"}]
    (whole,) = client._llm.chat([message], vllm.SamplingParams(temperature=0, max_tokens=1, logprobs=20),
                                use_tqdm=False)  # fmt: skip
    listed = {i: e.logprob for i, e in whole.outputs[0].logprobs[0].items()}
    named = sorted(listed)[:4]
    (exact,) = client._llm.chat([message], vllm.SamplingParams(temperature=0, max_tokens=1, logprob_token_ids=named),
                                use_tqdm=False)  # fmt: skip
    found = {i: e.logprob for i, e in exact.outputs[0].logprobs[0].items()}
    assert exact.outputs[0].token_ids == whole.outputs[0].token_ids
    assert [found[i] for i in named] == pytest.approx([listed[i] for i in named], abs=1e-5)


def test_a_prompt_that_is_too_long_is_refused_and_spoils_no_other(client):
    texts = ("What color is the banana?", "What color is the banana? " * 600, "What color is the grass?")
    replies = client.chat([Request(str(n), "m", "blind", (t,), SHORT) for n, t in enumerate(texts)])
    assert [r.outcome for r in replies] == ["ok", "refused_request", "ok"]
    assert "maximum context length is 512" in replies[1].error


def test_a_model_that_reads_text_only_takes_no_picture(client, weights, tmp_path):
    """Weights at random, by the configuration alone. (After the others: it takes their engine's place.)"""
    client.free()
    for file in folder_of(weights, "tinyvlm-alpha").glob("*token*"):
        shutil.copy(file, tmp_path)
    shutil.copy(folder_of(weights, "tinyvlm-alpha") / "chat_template.jinja", tmp_path)
    size = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
            "num_key_value_heads": 2, "vocab_size": 1024, "max_position_embeddings": 512}  # fmt: skip
    config = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "eos_token_id": 2} | size
    (tmp_path / "config.json").write_text(json.dumps(config))
    text_model = VllmClient(str(tmp_path), load_format="dummy", **ENGINE)
    try:
        assert text_model.chat([Request("1", "m", "blind", ("red",), SHORT)])[0].outcome != "failed"
        with pytest.raises(StopRun, match="takes no images"):
            text_model.chat([Request("1", "m", "full", (solid((1, 2, 3)), "red"), SHORT)])
    finally:
        text_model.free()


def test_weights_that_are_not_there_are_named(weights):
    with pytest.raises(AuditError, match="cannot load the model"):
        VllmClient(str(weights / "nowhere"), **ENGINE)
