"""Full, blind and grey runs of TinySee by a model on this machine's GPU: one table.

usage: python tests/device/gpu.py [MODEL] [--items 300] [--seconds 450] [--cpu]

MODEL is a folder of weights (or a name that is in the local cache); by default the smallest of TinySee's own models in
``../shared/peers/tiny_vlms``. vLLM runs it where it is installed, else transformers. Every question is asked twice,
the second time in reverse order: ``flips`` counts the replies that differ, which on a GPU need not be none. No test of
the suite; ends by itself after ``--seconds``. ``--cpu`` tries the script itself where no GPU is.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
WEIGHTS = ROOT.parent / "shared" / "peers" / "tiny_vlms" / "alpha-vllm"
CONDITIONS = ("full", "blind", "gray")
MOST_TOKENS = 16

#: requests -> replies and prompt tokens, in their order
Chat = Callable[[Sequence], tuple[list[str], list[int]]]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("model", nargs="?", default=str(WEIGHTS))
    words.add_argument("--items", type=int, default=300)
    words.add_argument("--seconds", type=float, default=450)
    words.add_argument("--cpu", action="store_true")
    asked = words.parse_args()
    device = "the processor" if asked.cpu else gpu()
    if asked.model == str(WEIGHTS) and not WEIGHTS.is_dir():
        sys.exit("no model: name a folder of weights, for ../shared/peers/tiny_vlms is not here")
    begun = time.monotonic()
    watch = threading.Timer(asked.seconds, _out_of_time, [asked.seconds])
    watch.daemon = True
    watch.start()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    engine, chat = loaded(asked.model, asked.cpu)
    ready = time.monotonic() - begun
    rows = [measured(chat, condition, asked.items) for condition in CONDITIONS]
    watch.cancel()
    print(f"\n{engine} on {device}: {asked.model}, ready in {ready:.0f} s, {time.monotonic() - begun:.0f} s in all\n")
    print(f"{'condition':10}{'asked':>7}{'right':>8}{'no option':>11}{'tokens in':>11}{'flips':>7}{'a second':>10}")
    for r in rows:
        print("{:10}{:7d}{:8.3f}{:11.3f}{:11.1f}{:7d}{:10.1f}".format(*r))


def gpu() -> str:
    """The GPU's name; ends the script where there is none."""
    try:
        import torch
    except ImportError:
        sys.exit("no GPU run: torch is not installed here (make test-vllm installs it with vLLM)")
    if not torch.cuda.is_available():
        sys.exit("no GPU run: torch sees no GPU on this machine")
    return torch.cuda.get_device_name(0)


def loaded(model: str, cpu: bool) -> tuple[str, Chat]:
    """The engine's name with its version, and a function that asks it."""
    try:
        return f"vllm {metadata.version('vllm')}", by_vllm(model)
    except metadata.PackageNotFoundError:
        return f"transformers {metadata.version('transformers')}", by_transformers(model, cpu)


def by_vllm(model: str) -> Chat:
    from auditlib.inference.vllm_client import VllmClient

    client = VllmClient(model, max_model_len=2048)

    def chat(requests: Sequence) -> tuple[list[str], list[int]]:
        replies = client.chat(requests)
        if failed := [r.error for r in replies if not r.answered]:
            sys.exit(f"{len(failed)} of {len(replies)} questions were not answered ({failed[0]})")
        return [r.text for r in replies], [r.tokens_in or 0 for r in replies]

    return chat


def by_transformers(model: str, cpu: bool) -> Chat:
    """One question after the other, greedily."""
    import torch
    from PIL import Image
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(model)
    network = AutoModelForImageTextToText.from_pretrained(model, dtype="auto").to("cpu" if cpu else "cuda").eval()

    def one(request) -> tuple[str, int]:
        parts = [{"type": "text", "text": p} if isinstance(p, str) else {"type": "image"} for p in request.parts]
        content = parts if request.pictures else request.text
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
        pictures = [Image.open(io.BytesIO(p.load())).convert("RGB") for p in request.pictures]
        given = processor(text=text, images=pictures or None, return_tensors="pt").to(network.device)
        with torch.inference_mode():
            out = network.generate(**given, max_new_tokens=MOST_TOKENS, do_sample=False)
        length = given["input_ids"].shape[1]
        return processor.decode(out[0, length:], skip_special_tokens=True), length

    def chat(requests: Sequence) -> tuple[list[str], list[int]]:
        said = [one(r) for r in requests]
        return [text for text, _ in said], [length for _, length in said]

    return chat


def measured(chat: Chat, condition: str, n: int) -> tuple[str, int, float, float, float, int, float]:
    """One row of the table."""
    import pandas as pd

    from auditlib.calls import Generation
    from auditlib.extract import extract_frame
    from auditlib.inference.items import items_table, read_question_items
    from auditlib.inference.plan import RunSettings, requests_of

    items = read_question_items(ROOT / "auditlib/synth/data/tinysee/TinySee.tsv")[:n]
    settings = RunSettings("model", (condition,), generation=Generation(max_tokens=MOST_TOKENS))
    requests = list(requests_of(items, settings))
    start = time.monotonic()
    replies, tokens = chat(requests)
    again = chat(requests[::-1])[0][::-1]
    rate = 2 * len(requests) / (time.monotonic() - start)
    table = items_table(items)
    responses = pd.DataFrame({"item": [r.item for r in requests], "prediction": replies})
    letters = extract_frame(responses, table, ("letters", "option_text"))["letter"].fillna("Z")
    keys = responses["item"].map(table.set_index("item")["key"])
    flips = sum(a != b for a, b in zip(replies, again))
    right, none = float((letters == keys).mean()), float((letters == "Z").mean())
    return condition, len(requests), right, none, sum(tokens) / len(tokens), flips, rate


def _out_of_time(seconds: float) -> None:
    print(
        f"stopped after {seconds:g} s without a table: fewer --items, or a smaller model", file=sys.stderr, flush=True
    )
    os._exit(3)


if __name__ == "__main__":
    main()
