"""Batch files for endpoints that answer overnight at a lower price: requests out, results in."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditlib.calls import Request
from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.inference.batch_files import INDEX, LineWriter, index_line, lines_of
from auditlib.inference.batch_results import Asked, Taken
from auditlib.inference.chat import LIMIT_NAMES, merged, request_body
from auditlib.inference.loops import blocking
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
    repeated : result lines of requests that an earlier line answered.
    waiting : requests of batch files of which no line was read. resubmit : files that ask again what failed or is
        missing. coverage : rows on all of these.
    """

    missing: int = 0
    foreign: int = 0
    repeated: int = 0
    waiting: int = 0
    resubmit: tuple[Path, ...] = ()
    coverage: tuple[dict[str, Any], ...] = ()


def write_batches(
    requests: Iterable[Request],
    folder: str | Path,
    *,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
    skip: Container[str] = (),
    served: Mapping[str, str] | None = None,
    limit_name: str = LIMIT_NAMES[0],
) -> list[Path]:
    """Write requests as batch files, one model a file, and ``index.jsonl`` beside them.

    Parameters
    ----------
    requests : read one by one; one picture is in memory at a time.
    folder : made when it is not there.
    max_requests, max_bytes : limits of one file.
    skip : keys not to ask: a store.
    served : a model's name on the server, where it is not the request's.
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
    names = served or {}

    async def write() -> None:
        written: set[str] = set()
        for request in requests:
            if request.key in written or request.key in skip:
                continue
            written.add(request.key)
            line = await _line(request, names.get(request.model), limit_name)
            index.write(index_line(request, writer.write(line, request.model, request.item)) + b"\n")

    with (
        atomic(folder / INDEX) as temporary,
        LineWriter(folder, "batch", max_requests, max_bytes) as writer,
        open(temporary, "wb") as index,
    ):
        blocking(write)
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

    Raises
    ------
    AuditError
        A file cannot be read, or holds lines that are no results. The other lines are stored by then, and nothing is
        resubmitted: the damaged lines may be paid answers.
    """
    start = time.monotonic()
    asked = Asked(requests)
    taken = Taken(store, asked)
    for path in [Path(f) for f in files]:
        for row, _, content in lines_of(path):
            taken.line(path, row, content)
    taken.finish()
    if taken.damaged:
        raise _damaged(taken)
    heard = {asked.file(k) for k in taken.seen}
    silent = Counter(asked.file(k) for k in asked if asked.file(k) not in heard and k not in store)
    missing = [k for k in asked if k not in taken.seen and asked.file(k) in heard and k not in store]
    again = [k for k in [*taken.failed, *missing] if k not in store]
    resubmit = _resubmit(again, asked, max_requests, max_bytes)
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
        repeated=taken.repeated,
        waiting=sum(silent.values()),
        resubmit=tuple(resubmit),
        coverage=(*taken.coverage(), *_missing_rows(missing, asked), *_silent_rows(silent)),
    )


async def _line(request: Request, served_name: str | None, limit_name: str) -> bytes:
    body = merged(await request_body(request, served_name=served_name, limit_name=limit_name))
    content = {"custom_id": request.key, "method": "POST", "url": URL, "body": body}
    return json.dumps(content, separators=(",", ":")).encode("ascii")


def _damaged(taken: Taken) -> AuditError:
    """One error for all lines that are no results; it names the first."""
    path, row, what = taken.damaged[0]
    others = len(taken.damaged) - 1
    more = f", nor are {others:,} other lines of these files" if others else ""
    stored = sum(n for outcome, n in taken.outcomes.items() if outcome != "failed")
    return AuditError(
        f"{what}{more}; {stored:,} answers of the good lines are stored now",
        file=path,
        row=row,
        mend="give the result files as they were downloaded; where a line is lost for good, delete it and read again",
    )


def _missing_rows(missing: Sequence[str], asked: Asked) -> list[dict[str, Any]]:
    counts = Counter((r.model, r.condition) for r in map(asked.request, missing))
    reason = "no result line came back; resubmit"
    return [coverage_row("missing", n=n, model=m, condition=c, reason=reason) for (m, c), n in counts.items()]


def _silent_rows(silent: Counter[str]) -> list[dict[str, Any]]:
    return [
        coverage_row("not run", n=n, reason=f"no result of {file or 'any request'} was read; it may still run")
        for file, n in silent.items()
    ]


def _resubmit(keys: Sequence[str], asked: Asked, max_requests: int, max_bytes: int) -> list[Path]:
    """Lines of the requests once more, as they were; without the batch files there are none to copy."""
    if not keys or asked.index is None:
        return []
    left, folder = set(keys), asked.index.folder
    with LineWriter(folder, "resubmit", max_requests, max_bytes) as writer:
        for name in sorted({asked.file(k) for k in keys}):
            for _, line, content in lines_of(folder / name) if (folder / name).is_file() else ():
                key = content.get("custom_id") if content else None
                if key in left:
                    left.discard(key)
                    writer.write(line, asked.request(key).model, asked.request(key).item)
        return writer.files
