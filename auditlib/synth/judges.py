"""Judges of items with planted accuracy and herding, as a function and as a local OpenAI-compatible server."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from auditlib.calls import Reply, Request
from auditlib.curation.adjudication_prompts import Candidate, Judge, shown_labels
from auditlib.curation.votes import LABELS
from auditlib.inference.canary import solid
from auditlib.seeds import generator
from auditlib.synth.server import PICTURE_TOKENS

_QUESTION = re.compile(r"^Question: (.*)$", re.M)


@dataclass(frozen=True)
class SimulatedJudge:
    """How a judge behaves.

    Attributes
    ----------
    accuracy : probability of the right label in round 1; the wrong ones are equally likely.
    toward : probability that, outside a unique majority of the labels shown, it takes the majority's label in round 2.
    away : probability that, with that majority, it leaves it for another label, each equally likely.
    unreadable : probability of a reply without a label. fails_every : each so many-th call fails; 0 = none.
    """

    name: str
    accuracy: float = 0.8
    toward: float = 0.0
    away: float = 0.0
    unreadable: float = 0.0
    fails_every: int = 0
    provider: str = ""

    @property
    def judge(self) -> Judge:
        """This judge as the adjudication knows it."""
        return Judge(self.name, self.provider)


@dataclass(frozen=True)
class PlantedItems:
    """Items with a known label: ``candidates`` and ``truth`` (item -> label)."""

    candidates: list[Candidate]
    truth: dict[str, str]


def planted_items(n: int, *, seed: int, shares: Sequence[float] = (0.2, 0.1, 0.1, 0.6)) -> PlantedItems:
    """Items whose labels are drawn with the given shares, in the order of :data:`~auditlib.curation.votes.LABELS`."""
    rng = generator(seed, "planted items for judges")
    labels = rng.choice(LABELS, n, p=np.asarray(shares) / np.sum(shares))
    options = ("red", "green", "blue", "grey")
    candidates = [
        Candidate(
            item=f"p{i:04d}",
            question=f"Which colour has patch {i} of the synthetic chart?",
            options=options,
            key="A",
            pictures=(solid((200, 30, 10 + i % 40), side=2),),
            responses=tuple((letter, f"The patch looks {options['ABCD'.index(letter)]}. {letter}") for letter in "AAB"),
        )
        for i in range(n)
    ]
    return PlantedItems(candidates, {c.item: str(label) for c, label in zip(candidates, labels)})


@lru_cache(maxsize=65_536)
def said_first(judge: SimulatedJudge, item: str, truth: str, seed: int) -> str:
    """The judge's label of round 1, the same whenever it is asked."""
    rng = generator(seed, "simulated judge", judge.name, item, "1")
    if rng.random() < judge.accuracy:
        return truth
    return str(rng.choice([label for label in LABELS if label != truth]))


def said_second(judge: SimulatedJudge, item: str, truth: str, shown: Iterable[str], seed: int) -> str:
    """The judge's label of round 2, after the labels that it was shown."""
    mine = said_first(judge, item, truth, seed)
    counts = Counter(shown).most_common()
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return mine
    majority = counts[0][0]
    rng = generator(seed, "simulated judge", judge.name, item, "2")
    if mine != majority:
        return majority if rng.random() < judge.toward else mine
    return str(rng.choice([label for label in LABELS if label != mine])) if rng.random() < judge.away else mine


def written(judge: SimulatedJudge, item: str, truth: str, prompt: str, seed: int) -> str:
    """The judge's whole reply to a prompt of :mod:`auditlib.curation.adjudication_prompts`."""
    second = "\nChecker 1: " in prompt
    rng = generator(seed, "simulated judge", judge.name, item, "form", str(second))
    if rng.random() < judge.unreadable:
        return "I cannot decide between these."
    label = said_second(judge, item, truth, shown_labels(prompt), seed) if second else (
        said_first(judge, item, truth, seed)
    )  # fmt: skip
    reason = f"simulated reason for {label.replace('_', ' ')}"
    if rng.random() < 0.5:
        return json.dumps({"label": label, "reason": reason})
    return f"Label: {label.replace('_', ' ')}\nReason: {reason}"


@dataclass
class SimulatedJudges:
    """Judges that answer; ``calls`` counts calls by judge, ``paid`` answered calls by judge and hash of the prompt."""

    judges: Sequence[SimulatedJudge]
    items: PlantedItems
    seed: int
    calls: Counter[str] = field(default_factory=Counter)
    paid: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._by_name = {j.name: j for j in self.judges}
        self._by_question = {c.question: c.item for c in self.items.candidates}
        self._lock = threading.Lock()

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer requests without a server."""
        return [self._reply(r) for r in requests]

    def answer(self, model: str, prompt: str) -> str | None:
        """The reply of a judge to a prompt; None where this call fails.

        Raises
        ------
        KeyError
            There is no such judge or item.
        """
        judge, item = self._by_name[model], self._by_question[_QUESTION.search(prompt + "\nQuestion: ").group(1)]
        with self._lock:
            self.calls[model] += 1
            if judge.fails_every and self.calls[model] % judge.fails_every == 0:
                return None
            self.paid[model, hashlib.sha256(prompt.encode()).hexdigest()] += 1
        return written(judge, item, self.items.truth[item], prompt, self.seed)

    def _reply(self, request: Request) -> Reply:
        text = self.answer(request.model, request.text)
        if text is None:
            return Reply(request.key, "failed", error="a simulated failure")
        return Reply(request.key, "ok", text, tokens_in=_tokens(request.text, len(request.pictures)),
                     tokens_out=_tokens(text, 0))  # fmt: skip


@contextlib.contextmanager
def serve(judges: SimulatedJudges) -> Iterator[str]:
    """Serve the judges on this machine's own address; gives the base URL. A failing call gets status 500."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # head and body leave in one packet: two would wait for each other's acknowledgement
        wbufsize = -1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, said = _completion(judges, body)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _completion(judges: SimulatedJudges, body: bytes) -> tuple[int, dict[str, Any]]:
    try:
        asked: Mapping[str, Any] = json.loads(body)
        content = asked["messages"][-1]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        prompt = "\n".join(p["text"] for p in parts if p["type"] == "text")
        pictures = sum(p["type"] != "text" for p in parts)
        text = judges.answer(asked["model"], prompt)
    except KeyError as e:
        return 404, {"error": {"message": f"there is no {e} here", "type": "simulated", "code": None}}
    except (ValueError, TypeError, IndexError):
        return 400, {"error": {"message": "this is no chat completion request", "type": "simulated", "code": None}}
    if text is None:
        return 500, {"error": {"message": "a simulated failure", "type": "simulated", "code": None}}
    tokens = _tokens(prompt, pictures), _tokens(text, 0)
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    message = {"role": "assistant", "content": text}
    return 200, {
        "id": "judge", "object": "chat.completion", "created": 0, "model": asked["model"], "usage": usage,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }  # fmt: skip


def _tokens(text: str, pictures: int) -> int:
    return len(text.split()) + PICTURE_TOKENS * pictures
