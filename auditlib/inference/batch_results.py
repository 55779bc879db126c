"""Result lines of batches: which request a line answers, with what outcome, and what came of a whole reading."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditlib.calls import Reply, Request
from auditlib.frames import coverage_row
from auditlib.inference.batch_files import Index
from auditlib.inference.chat import choice_of, reply_of
from auditlib.inference.failures import Retry, StopRun, error_of, judge_error, scrub
from auditlib.inference.store import Store

#: so many refusals of one model and condition, and nothing else, are a mistake in the settings and no answers
ALL_REFUSED = 20


def outcome_of(request: Request, content: dict[str, Any]) -> Reply:
    """The outcome in a result line, judged as the client judges the same answer to a call.

    Parameters
    ----------
    request : what was asked.
    content : the line: ``response`` with ``status_code`` and ``body``, or ``error``.
    """
    response = content.get("response") if isinstance(content.get("response"), dict) else {}
    body = response.get("body")
    error = content.get("error") or (body if isinstance(body, dict) and body.get("error") else None)
    first, status = choice_of(body), response.get("status_code")
    status = status if isinstance(status, int) else 200 if first else None
    if error is None and first and not first.get("error") and status < 300:
        return reply_of(request, body)
    error = error or first.get("error") or body or "a result without an answer"
    if status is None or status < 300:
        status = error_of(error)[2] or 500
    try:
        outcome, said = judge_error(status, error, {}, pictures=bool(request.pictures), model=request.model)
    except Retry as e:
        return Reply(request.key, "failed", error=e.why)
    except StopRun as e:
        return Reply(request.key, "failed", error=scrub(e))
    return Reply(request.key, outcome, error=said, created=time.time())


class Asked:
    """The requests that were asked, from the index of the batch files or as given; iterates over their keys."""

    def __init__(self, requests: Iterable[Request] | str | Path):
        self.index = Index(Path(requests)) if isinstance(requests, str | Path) else None
        self._given = {} if self.index else {r.key: r for r in requests}  # type: ignore[union-attr]

    def __iter__(self) -> Iterator[str]:
        return iter(self.index.files if self.index else self._given)

    def __contains__(self, key: object) -> bool:
        return key in (self.index.files if self.index else self._given)

    def request(self, key: str) -> Request:
        return self.index.request(key) if self.index else self._given[key]

    def file(self, key: str) -> str:
        """The batch file that asks a request; empty without an index."""
        return self.index.files[key] if self.index else ""


@dataclass
class Taken:
    """What has been read so far; final outcomes are in the store when :meth:`line` returns."""

    store: Store
    asked: Asked
    seen: set[str] = field(default_factory=set)
    failed: dict[str, Reply] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    damaged: list[tuple[Path, int, str]] = field(default_factory=list)
    known: int = 0
    lines: int = 0
    foreign: int = 0
    repeated: int = 0
    _refused: dict[str, tuple[Request, Reply]] = field(default_factory=dict)
    _stored: set[str] = field(default_factory=set)

    def line(self, path: Path, row: int, content: dict[str, Any] | None) -> None:
        """Take one line; what is wrong with it goes to :attr:`damaged`."""
        if content is None:
            self.damaged.append((path, row, "this line is cut off or damaged"))
            return
        key = content.get("custom_id")
        if not isinstance(key, str) or not ("response" in content or "error" in content):
            asks = "body" in content and "url" in content
            self.damaged.append((path, row, f"this line is {'a request' if asks else 'something else'}, no result"))
            return
        self.lines += 1
        if key not in self.asked:
            self.foreign += 1
            return
        self.seen.add(key)
        if key in self._stored:
            self.repeated += 1
            return
        if key in self.store:
            self.known += 1
            return
        request = self.asked.request(key)
        reply = outcome_of(request, content)
        if reply.outcome == "failed":
            self.failed[key] = reply
        elif reply.outcome == "refused_request":
            self._refused[key] = (request, reply)
        else:
            self._put(request, reply)

    def finish(self) -> None:
        """Settle what waits for other lines: failures count where no line brought an answer, refusals are stored
        unless a model and condition has nothing else."""
        held = {k: pair for k, pair in self._refused.items() if k not in self.store}
        places = Counter((r.model, r.condition) for r, _ in held.values())
        others = {(r.model, r.condition) for r in map(self.asked.request, self._stored)}
        for key, (request, reply) in held.items():
            place = (request.model, request.condition)
            if places[place] >= ALL_REFUSED and place not in others:
                self.failed[key] = Reply(key, "failed", error=reply.error)
            else:
                self._put(request, reply)
        self.failed = {k: reply for k, reply in self.failed.items() if k not in self.store}
        for key, reply in self.failed.items():
            self._put(self.asked.request(key), reply)

    def _put(self, request: Request, reply: Reply) -> None:
        self.store.put(request, reply)
        if reply.outcome != "failed":
            self._stored.add(request.key)
        self.outcomes[reply.outcome] += 1
        self.tokens["in"] += reply.tokens_in or 0
        self.tokens["out"] += reply.tokens_out or 0
        if reply.error:
            self.errors[reply.error] += 1

    def coverage(self) -> list[dict[str, Any]]:
        """Rows on lines that were not taken and on requests that failed."""
        rows = []
        if self.foreign:
            reason = "result lines with a custom_id that none of these requests has"
            rows.append(coverage_row("excluded", n=self.foreign, reason=reason))
        if self.repeated:
            reason = "result lines of requests that an earlier line answered; the first counts"
            rows.append(coverage_row("excluded", n=self.repeated, reason=reason))
        why = Counter((r.model, r.condition) for r in map(self.asked.request, self.failed))
        rows += [
            coverage_row("not run", n=n, model=m, condition=c, reason="the batch answered with an error; resubmit")
            for (m, c), n in why.items()
        ]
        return rows
