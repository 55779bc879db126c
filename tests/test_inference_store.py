"""The answer store: nothing that was acknowledged is lost, nothing is asked or kept twice, and damage is said."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from store_writer import requests as all_requests

from auditlib.calls import Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.runner import run_blocking
from auditlib.inference.store import Store

WRITER = Path(__file__).with_name("store_writer.py")


class Stub:
    """Answers at once and counts."""

    def __init__(self):
        self.asked: list[str] = []

    async def ask(self, request: Request) -> Reply:
        self.asked.append(request.key)
        await asyncio.sleep(0)
        return Reply(request.key, "ok", "B")

    async def close(self) -> None: ...


def some(n: int, start: int = 0) -> list[Request]:
    return [Request(f"i{k}", "m", "blind", (f"q{k}",)) for k in range(start, start + n)]


def test_two_writers_killed_twenty_times_lose_and_repeat_nothing(tmp_path):
    path, chance = tmp_path / "answers.sqlite", random.Random(7)
    logs = [tmp_path / f"log{w}" for w in range(2)]

    def stored_lines() -> int:
        return sum(log.read_bytes().count(b"stored") for log in logs if log.exists())

    with subprocess.Popen([sys.executable, WRITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forks:

        def told(line: str) -> list[int]:
            forks.stdin.write(f"{line}\n")
            forks.stdin.flush()
            return [int(word) for word in forks.stdout.readline().split()]

        for kill in range(20):
            before, wanted = stored_lines(), chance.randrange(0, 40)
            writers = [told(f"{path}\t{log}\t{kill} {w}")[0] for w, log in enumerate(logs)]
            until = time.monotonic() + 20
            while stored_lines() <= before + wanted and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.005))
            for pid in chance.sample(writers, 2):
                os.kill(pid, signal.SIGKILL)
            assert told("wait") == [-signal.SIGKILL] * 2
    lines = [log.read_text().splitlines() for log in logs]
    stored = [line.split()[1] for each in lines for line in each if line.startswith("stored")]
    with Store(path) as store:
        assert len(stored) > 200, "the writers got to work between the kills"
        assert store.known(stored) == set(stored), "acknowledged and lost"
        rows = [row["key"] for row in store.rows()]
        assert len(rows) == len(set(rows)) == len(store)
        for each in lines:  # within a writer's own log the order is that of the events
            seen: set[str] = set()
            for line in each:
                word, key = line.split()
                assert not (word == "asked" and key in seen), "asked again after it was stored"
                seen |= {key} if word == "stored" else set()
        stub = Stub()
        got = run_blocking(all_requests(), stub, store, concurrency=8)
        assert not set(stub.asked) & set(rows) and got.known == len(rows)
        assert len(store) == got.known + got.asked
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_resume_with_more_finished_rows_than_concurrency(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        run_blocking(some(500), Stub(), store, concurrency=4)
        stub, done = Stub(), []
        worker = threading.Thread(
            target=lambda: done.append(run_blocking(some(510), stub, store, concurrency=2)), daemon=True
        )
        worker.start()
        worker.join(20)
        assert done, "it hangs"
        assert (done[0].known, done[0].asked, len(stub.asked)) == (500, 10, 10)
        nothing = run_blocking(some(510), stub, store, concurrency=2)
        assert (nothing.known, nothing.asked) == (510, 0)


def test_a_reply_comes_back_as_it_was_put(tmp_path):
    request = Request("i", "m", "blind", ("lone \ud800 surrogate",), letters="AB")
    reply = Reply(
        request.key, "truncated", "text é\n", "thought", "length", {"A": (-0.25, False), "B": (-9.5, True)}, 3, 4, 0.5,
        2, "server", "fp", None, 12.5,
    )  # fmt: skip
    with Store(tmp_path / "a" / "b" / "s.sqlite") as store:
        store.put(request, reply)
        store.put(request, Reply(request.key, "ok", "later"))
        assert store.get(request.key) == reply and request.key in store
        assert store.get("none") is None and "none" not in store
        [row] = store.rows()
        assert row["prompt"] == "lone ? surrogate" and row["text_sha256"] == request.text_sha256
        with pytest.raises(ValueError, match="another request"):
            store.put(some(1)[0], reply)


def test_failures_are_listed_until_answered(tmp_path):
    first, second = some(2)
    with Store(tmp_path / "s.sqlite") as store:
        for error in ("e1", "e2"):
            store.put(first, Reply(first.key, "failed", attempts=6, error=error))
        store.put(second, Reply(second.key, "failed", error="e3"))
        assert [(f["item"], f["error"]) for f in store.failures()] == [("i0", "e2"), ("i1", "e3")]
        assert first.key not in store and len(store) == 0
        store.put(first, Reply(first.key, "ok", "B"))
        assert [f["item"] for f in store.failures()] == ["i1"]


def test_many_processes_may_make_the_file_together(tmp_path):
    script = "import sys; from auditlib.inference.store import Store; Store(sys.argv[1]).close()"
    makers = [
        subprocess.Popen([sys.executable, "-c", script, tmp_path / "s.sqlite"], stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    assert [m.communicate()[1] for m in makers] == [b""] * 6


def test_threads_share_a_store(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        parts = [some(100, 50 * k) for k in range(4)]
        threads = [
            threading.Thread(target=lambda p=p: [store.put(r, Reply(r.key, "ok", "B")) for r in p]) for p in parts
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(store) == 250


def test_what_is_no_store_is_said_in_one_line(tmp_path):
    text, other, later, folder = (tmp_path / n for n in ("text", "other", "later", "folder"))
    text.write_text("index\tquestion\n" * 500)
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (x)")
    Store(later).close()
    with sqlite3.connect(later) as db:
        db.execute("UPDATE meta SET value = '99'")
    folder.mkdir()
    before = text.read_bytes(), other.read_bytes()
    for path, said in ((text, "no answer store"), (other, "tables mine"), (later, "version 99"), (folder, "no answer")):
        with pytest.raises(AuditError, match=said) as e:
            Store(path)
        assert str(path) in str(e.value) and "Mend:" in str(e.value)
    assert (text.read_bytes(), other.read_bytes()) == before


def test_a_store_damaged_in_the_middle_is_said_and_ends_the_run(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        run_blocking(some(2000), Stub(), store)
    content = bytearray(path.read_bytes())
    for page in range(8, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    stub = Stub()
    with Store(path) as store, pytest.raises(AuditError, match="cannot be read or written") as e:
        run_blocking(some(3000), stub, store, concurrency=4)
    assert str(path) in str(e.value) and len(stub.asked) < 100


def test_a_disk_that_is_full_stops_before_more_is_paid(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        store._db.execute("PRAGMA max_page_count = 20")
        stub = Stub()
        with pytest.raises(AuditError, match="full"):
            run_blocking(some(3000), stub, store, concurrency=4)
        assert len(stub.asked) <= len(store) + 4
