"""Batch files: lines equal what the client sends, results come back in any order, nothing is lost silently."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from fault_server import FaultServer, completion

from auditlib.calls import Generation, Request
from auditlib.errors import AuditError
from auditlib.inference.batch import read_batches, write_batches
from auditlib.inference.canary import solid
from auditlib.inference.openai_client import OpenAIClient
from auditlib.inference.store import Store

ALL_SET = Generation(0.5, 9, 0.9, 3, "low", True, 5, (("min_p", 0.1),))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "answers.sqlite") as opened:
        yield opened


def asked(n: int, model: str = "m", **settings) -> list[Request]:
    return [Request(f"i{k}", model, "blind", (f"question {k}",), **settings) for k in range(n)]


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def result(key: str, body: dict | None = None, status: int = 200, error: dict | None = None) -> dict:
    return {"id": "r", "custom_id": key, "response": {"status_code": status, "body": body}, "error": error}


def written(path: Path, *results: dict | str) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in results))
    return path


def reasons(summary) -> dict[str, int]:
    return {f"{r['what']}: {r['reason']}": r["n"] for r in summary.coverage}


def test_bodies_are_those_that_the_client_sends(tmp_path):
    picture = solid((1, 2, 3))
    requests = [
        Request("a", "m", "blind", ("say A", "so"), system="be brief"),
        Request("b", "m", "full", (picture, "say B"), generation=ALL_SET),
    ]
    with FaultServer() as server:

        async def work() -> None:
            client = OpenAIClient(server.url)
            for request in requests:
                await client.ask(request)
            await client.close()

        asyncio.run(work())
        (file,) = write_batches(requests, tmp_path / "b")
        found = lines(file)
        assert [line["body"] for line in found] == server.bodies
    assert [line["custom_id"] for line in found] == [r.key for r in requests]
    assert {(line["method"], line["url"]) for line in found} == {("POST", "/v1/chat/completions")}
    (other,) = write_batches(requests[:1], tmp_path / "c", served={"m": "s"}, limit_name="max_completion_tokens")
    body = lines(other)[0]["body"]
    assert body["model"] == "s" and body["max_completion_tokens"] == 512 and "max_tokens" not in body


def test_files_are_split_by_count_bytes_and_model(tmp_path, store):
    two = [r for pair in zip(asked(5), asked(5, "n")) for r in pair]
    files = write_batches([*two, *two], tmp_path / "count", max_requests=2)
    assert [len(lines(f)) for f in files] == [2, 2, 2, 2, 1, 1]  # duplicates once
    assert all(len({line["body"]["model"] for line in lines(f)}) == 1 for f in files)
    names = [*(f"batch-00{k}.jsonl" for k in range(1, 7)), "index.jsonl"]
    assert sorted(p.name for p in (tmp_path / "count").iterdir()) == names
    (whole,) = write_batches(asked(5), tmp_path / "whole")
    size = whole.stat().st_size // 5
    files = write_batches(asked(5), tmp_path / "bytes", max_bytes=2 * size)
    assert [len(lines(f)) for f in files] == [2, 2, 1] and all(f.stat().st_size <= 2 * size for f in files)
    with pytest.raises(AuditError, match=r"item 'i0' has .* bytes"):
        write_batches(asked(5), tmp_path / "small", max_bytes=size - 1)
    assert list((tmp_path / "small").iterdir()) == []  # nothing half written
    with pytest.raises(AuditError, match="holds batch files already"):
        write_batches(asked(5), tmp_path / "whole")


def test_what_is_stored_is_not_written(tmp_path, store):
    requests = asked(3)
    (file,) = write_batches(requests, tmp_path / "a")
    read_batches([written(tmp_path / "r", result(requests[0].key, completion("B")))], tmp_path / "a", store)
    (file,) = write_batches(requests, tmp_path / "b", skip=store)
    assert [line["custom_id"] for line in lines(file)] == [r.key for r in requests[1:]]
    assert write_batches(requests[:1], tmp_path / "c", skip=store) == [] and list((tmp_path / "c").iterdir()) == []


def test_results_in_any_order_errors_gaps_and_foreign_lines(tmp_path, store):
    requests = [Request("p", "m", "full", (solid((9, 9, 9)), "look"), generation=ALL_SET, letters="AB"), *asked(8)]
    write_batches(requests, tmp_path / "b")
    key = [r.key for r in requests]
    good = written(
        tmp_path / "out.jsonl",
        result("someone else's", completion("A")),
        result(key[3], completion("C", "length")),
        result(key[2], completion("")),
        result(key[1], completion("B")),
        result(key[0], completion("A")),
        result(key[4], completion(None, "content_filter")),
    )
    bad = written(
        tmp_path / "errors.jsonl",
        result(key[5], None, 400, {"error": {"message": "too long", "code": 400}}),
        result(key[6], None, 500, {"message": "overloaded"}),
        {"id": "r", "custom_id": key[7], "response": None, "error": {"code": "batch_expired", "message": "expired"}},
        result(key[1], None, 500, {"message": "first try"}),  # the answer above counts
    )
    summary = read_batches([bad, good], tmp_path / "b", store)
    assert summary.outcomes == {
        "empty": 1, "failed": 2, "filtered": 1, "ok": 2, "refused_request": 1, "truncated": 1,
    }  # fmt: skip
    assert [store.get(k) and store.get(k).outcome for k in key] == [
        "ok", "ok", "empty", "truncated", "filtered", "refused_request", None, None, None,
    ]  # fmt: skip
    assert (summary.missing, summary.foreign, summary.repeated) == (1, 1, 0)
    assert summary.tokens_in == 7 * 5
    assert reasons(summary) == {
        "excluded: result lines with a custom_id that none of these requests has": 1,
        "not run: the batch answered with an error; resubmit": 2,
        "missing: no result line came back; resubmit": 1,
    }
    (again,) = summary.resubmit
    assert again == tmp_path / "b" / "resubmit-001.jsonl"
    original = {line["custom_id"]: line for line in lines(tmp_path / "b" / "batch-001.jsonl")}
    assert lines(again) == [original[k] for k in key[6:9]]  # as they were, in order
    row = next(r for r in store.rows() if r["item"] == "p")
    assert json.loads(row["pictures"]) == [requests[0].pictures[0].sha256] and row["prompt"] == "look"

    rest = written(tmp_path / "rest.jsonl", *(result(k, completion("D")) for k in key[6:9]))
    summary = read_batches([good, rest], tmp_path / "b", store)
    assert summary.outcomes == {"ok": 3} and summary.known == 5 and summary.resubmit == () and summary.missing == 0


def test_a_batch_without_any_result_is_not_resubmitted(tmp_path, store):
    requests = asked(4)
    write_batches(requests, tmp_path / "b", max_requests=2)
    out = written(tmp_path / "o", *(result(r.key, completion("B")) for r in requests[:2]))
    summary = read_batches([out], tmp_path / "b" / "index.jsonl", store)
    assert summary.missing == 0 and summary.resubmit == ()
    assert reasons(summary) == {"not run: no result of batch-002.jsonl was read; it may still run": 2}


def test_requests_themselves_stand_for_the_index(tmp_path, store):
    requests = asked(2)
    summary = read_batches([written(tmp_path / "o", result(requests[0].key, completion("B")))], iter(requests), store)
    assert summary.outcomes == {"ok": 1} and summary.missing == 1


def test_a_missing_or_damaged_index_is_said(tmp_path, store):
    with pytest.raises(AuditError, match="index of the batch files cannot be read"):
        read_batches([], tmp_path, store)
    requests = asked(1)
    write_batches(requests, tmp_path / "b")
    index = tmp_path / "b" / "index.jsonl"
    index.write_text(index.read_text().replace("question 0", "question 1"))
    out = written(tmp_path / "o", result(requests[0].key, completion("B")))
    with pytest.raises(AuditError, match="does not describe"):
        read_batches([out], index, store)
    index.write_text("{\n")
    with pytest.raises(AuditError, match="row 1: this line of the index"):
        read_batches([out], index, store)
