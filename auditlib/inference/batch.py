"""Batch files for endpoints that answer overnight at a lower price: requests out, results in."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditlib.calls import Reply, Request
from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.inference.batch_files import INDEX, Index, LineWriter, index_line, lines_of
from auditlib.inference.failures import Retry, StopRun, error_of, judge_error, scrub
from auditlib.inference.loops import blocking
from auditlib.inference.openai_client import OpenAIClient
from auditlib.inference.runner import Summary
from auditlib.inference.store import Store
from auditlib.paths import atomic

URL = "/v1/chat/completions"
MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000


@dataclass(frozen=True)
class BatchSummary(Summary):
    """What reading results did; ``calls`` counts result lines.

    Attributes
    ----------
    missing : requests without a result line. foreign : result lines of other requests.
    unreadable : lines that are no result. resubmit : files that ask again what failed or is missing.
    coverage : rows on all of these.
    """

    missing: int = 0
    foreign: int = 0
    unreadable: int = 0
    resubmit: tuple[Path, ...] = ()
    coverage: tuple[dict[str, Any], ...] = ()


def write_batches(
    requests: Iterable[Request],
    folder: str | Path,
    *,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
    skip: Container[str] = (),
    served_name: str | None = None,
    limit_name: str = "max_tokens",
) -> list[Path]:
    """Write requests as batch files, one model a file, and ``index.jsonl`` beside them.

    Parameters
    ----------
    requests : read one by one; one picture is in memory at a time.
    folder : made when it is not there.
    max_requests, max_bytes : limits of one file.
    skip : keys not to ask: a store.
    served_name : the model's name on the server, where it is not the request's.
    limit_name : name of the token limit; reasoning models want ``max_completion_tokens``.

    Returns
    -------
    Files in the order of writing; none where all is stored. They appear together, complete.

    Raises
    ------
    AuditError
        The folder holds batch files already, or one request is too large for a file.
    """
    folder = Path(folder)
    if (folder / INDEX).exists():
        raise AuditError(
            "the folder holds batch files already",
            file=folder,
            mend="read their results first, or name another folder",
        )
    for stale in folder.glob("batch-*.jsonl"):  # of a writing that was broken off before its index
        stale.unlink()
    bodies = _Bodies(served_name, limit_name)
    with (
        atomic(folder / INDEX) as temporary,
        LineWriter(folder, "batch", max_requests, max_bytes) as writer,
        open(temporary, "wb") as index,
    ):
        blocking(lambda: _write(requests, bodies, writer, index, skip))
    if not writer.files:
        (folder / INDEX).unlink()
    return writer.files


def read_batches(
    files: Iterable[str | Path],
    requests: Iterable[Request] | str | Path,
    store: Store,
    *,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
) -> BatchSummary:
    """Take results of batches into the store.

    Parameters
    ----------
    files : result files and error files, in any order.
    requests : the folder of the batch files (or its index), or the requests themselves.
    store : gets every outcome; the first final one of a request stays.
    max_requests, max_bytes : limits of the files to resubmit.

    Notes
    -----
    Lines are joined by ``custom_id``, whatever their order. What failed or has no line goes to ``resubmit-001.jsonl``
    beside the batch files. A batch file of which no line has come back is reported, not resubmitted: it may still run.
    """
    start = time.monotonic()
    known = _Known(requests)
    taken = _Taken(store, known)
    for path in [Path(f) for f in files]:
        for row, _, content in lines_of(path):
            taken.line(path, row, content)
    taken.failures()
    heard = {known.file(k) for k in taken.seen}
    silent = Counter(known.file(k) for k in known if known.file(k) not in heard and k not in store)
    missing = [k for k in known if k not in taken.seen and known.file(k) in heard and k not in store]
    again = [k for k in [*taken.failed, *missing] if k not in store]
    resubmit = _resubmit(again, known, max_requests, max_bytes)
    return BatchSummary(
        outcomes=dict(sorted(taken.outcomes.items())),
        known=taken.known,
        calls=taken.lines,
        tokens_in=taken.tokens["in"],
        tokens_out=taken.tokens["out"],
        seconds=time.monotonic() - start,
        errors=tuple(taken.errors.most_common(5)),
        missing=len(missing),
        foreign=taken.foreign,
        unreadable=taken.unreadable,
        resubmit=tuple(resubmit),
        coverage=(*taken.coverage(), *_missing_rows(missing, known), *_silent_rows(silent)),
    )


class _Bodies(OpenAIClient):
    """Bodies and replies of the client, for lines of a file; sends nothing and needs no key."""

    def __init__(self, served_name: str | None = None, limit_name: str = "max_tokens"):
        super().__init__("http://localhost", served_name=served_name)
        self._limit_name = limit_name
        self._secrets = ()

    async def line(self, request: Request) -> bytes:
        body = await self._body(request, False)
        body |= body.pop("extra_body", {})  # the package merges these into what it sends
        content = {"custom_id": request.key, "method": "POST", "url": URL, "body": body}
        return json.dumps(content, separators=(",", ":")).encode("ascii")

    def outcome(self, request: Request, content: dict[str, Any]) -> Reply:
        """The outcome of a result line, as the client would judge the same answer."""
        response = content.get("response") if isinstance(content.get("response"), dict) else {}
        body = response.get("body")
        error = content.get("error") or (body if isinstance(body, dict) and body.get("error") else None)
        status = response.get("status_code")
        choices = body.get("choices") if isinstance(body, dict) else None
        first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        status = status if isinstance(status, int) else 200 if first else None
        if error is None and first and not first.get("error") and status < 300:
            return self._reply(request, body, None)  # type: ignore[arg-type]
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


async def _write(
    requests: Iterable[Request], bodies: _Bodies, writer: LineWriter, index: Any, skip: Container[str]
) -> None:
    written: set[str] = set()
    for request in requests:
        if request.key in written or request.key in skip:
            continue
        written.add(request.key)
        file = writer.write(await bodies.line(request), request.model, request.item)
        index.write(index_line(request, file) + b"\n")


class _Known:
    """The requests that were asked, from the index or as given."""

    def __init__(self, requests: Iterable[Request] | str | Path):
        self.index = Index(Path(requests)) if isinstance(requests, str | Path) else None
        self.given = {} if self.index else {r.key: r for r in requests}  # type: ignore[union-attr]

    def __iter__(self) -> Iterator[str]:
        return iter(self.index.files if self.index else self.given)

    def __contains__(self, key: object) -> bool:
        return key in (self.index.files if self.index else self.given)

    def request(self, key: str) -> Request:
        return self.index.request(key) if self.index else self.given[key]

    def file(self, key: str) -> str:
        return self.index.files[key] if self.index else ""


@dataclass
class _Taken:
    """What has been read so far."""

    store: Store
    asked: _Known
    bodies: _Bodies = field(default_factory=_Bodies)
    seen: set[str] = field(default_factory=set)
    failed: dict[str, Reply] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    known: int = 0
    lines: int = 0
    foreign: int = 0
    unreadable: int = 0

    def line(self, path: Path, row: int, content: dict[str, Any] | None) -> None:
        key = content.get("custom_id") if content else None
        if not isinstance(key, str) or content is None or not ("response" in content or "error" in content):
            self.unreadable += 1
            self.places["unreadable", f"lines of {path.name} are no results, the first is row {row}"] += 1
            return
        self.lines += 1
        if key not in self.asked:
            self.foreign += 1
            self.places["excluded", "result lines with a custom_id that none of these requests has"] += 1
            return
        self.seen.add(key)
        if key in self.store:
            self.known += 1
            return
        request = self.asked.request(key)
        reply = self.bodies.outcome(request, content)
        if reply.outcome == "failed":
            self.failed[key] = reply
            return
        self._count(reply)
        self.store.put(request, reply)

    def failures(self) -> None:
        """Failed lines count where no other line brought an answer."""
        self.failed = {k: reply for k, reply in self.failed.items() if k not in self.store}
        for key, reply in self.failed.items():
            self.store.put(self.asked.request(key), reply)
            self._count(reply)

    def _count(self, reply: Reply) -> None:
        self.outcomes[reply.outcome] += 1
        self.tokens["in"] += reply.tokens_in or 0
        self.tokens["out"] += reply.tokens_out or 0
        if reply.error:
            self.errors[reply.error] += 1

    def coverage(self) -> list[dict[str, Any]]:
        rows = [coverage_row(what, n=n, reason=reason) for (what, reason), n in self.places.items()]
        why = Counter((r.model, r.condition) for r in map(self.asked.request, self.failed))
        rows += [
            coverage_row("not run", n=n, model=m, condition=c, reason="the batch answered with an error; resubmit")
            for (m, c), n in why.items()
        ]
        return rows


def _missing_rows(missing: Sequence[str], known: _Known) -> list[dict[str, Any]]:
    counts = Counter((r.model, r.condition) for r in map(known.request, missing))
    reason = "no result line came back; resubmit"
    return [coverage_row("missing", n=n, model=m, condition=c, reason=reason) for (m, c), n in counts.items()]


def _silent_rows(silent: Counter[str]) -> list[dict[str, Any]]:
    return [
        coverage_row("not run", n=n, reason=f"no result of {file or 'any request'} was read; it may still run")
        for file, n in silent.items()
    ]


def _resubmit(keys: Sequence[str], known: _Known, max_requests: int, max_bytes: int) -> list[Path]:
    """Lines of the requests once more, as they were; without the batch files there are none to copy."""
    if not keys or known.index is None:
        return []
    left = set(keys)
    with LineWriter(known.index.folder, "resubmit", max_requests, max_bytes) as writer:
        for name in sorted({known.file(k) for k in keys}):
            path = known.index.folder / name
            for _, line, content in lines_of(path) if path.is_file() else ():
                key = content.get("custom_id") if content else None
                if key in left:
                    left.discard(key)
                    writer.write(line, known.request(key).model, known.request(key).item)
        return writer.files
