"""Locks of pools: of processes that live, died, or are on another machine; with and without the system's lock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tiny_notebooks import wait_for

from auditlib import locks
from auditlib.errors import AuditError

#: holds a pool until it is killed
HOLD = "import sys, time; from pathlib import Path; from auditlib.locks import locked\nwith locked(Path(sys.argv[1]), 'p'): time.sleep(60)"  # noqa: E501


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(locks, "QUIET", 0.6)
    monkeypatch.setattr(locks, "BEAT", 0.1)


@pytest.fixture
def other(tmp_path):
    """A process that holds pool ``p``."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)])
    wait_for(lambda: locks.is_locked(tmp_path, "p"), 60)
    yield process
    process.kill()
    process.wait()


def left_by(outputs: Path, host: str, process: int = 4_000_000) -> Path:
    """The lock file of a process that was killed."""
    file = outputs / ".locks" / "p.lock"
    file.parent.mkdir(exist_ok=True)
    held = {"process": process, "host": host, "since": "2026-01-01T00:00:00Z", "beat": 3}
    file.write_text(json.dumps(held).ljust(240))
    return file


def test_holder_is_named_and_gone_after_the_block(tmp_path):
    assert locks.holder(tmp_path, "p") is None
    with locks.locked(tmp_path, "p") as waited:
        assert waited < 0.3
        found = locks.holder(tmp_path, "p")
        assert found.process == os.getpid() and found.elsewhere == ""
        time.sleep(0.35)
        assert locks.holder(tmp_path, "p").beat > found.beat
        with (
            pytest.raises(AuditError, match=rf"pool p is being run by another auditlib \(process {os.getpid()}, since"),
            locks.locked(tmp_path, "p"),
        ):
            pass
        assert not locks.is_locked(tmp_path, "q")
    assert locks.holder(tmp_path, "p") is None
    with locks.locked(tmp_path, "p"):
        pass


def test_killed_process_of_this_machine_blocks_nobody(tmp_path, other):
    with pytest.raises(AuditError, match=f"process {other.pid}, since"), locks.locked(tmp_path, "p"):
        pass
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert not locks.is_locked(tmp_path, "p")
    with locks.locked(tmp_path, "p") as waited:
        assert waited < 0.5


def test_patience_waits_for_the_end_of_another(tmp_path, other):
    threading.Timer(0.8, other.kill).start()
    with locks.locked(tmp_path, "p", patience=30) as waited:
        assert 0.5 < waited < 20


def test_lock_of_a_lost_machine_is_taken_after_a_while(tmp_path):
    file = left_by(tmp_path, "node7")
    assert str(locks.holder(tmp_path, "p")) == "process 4000000 on node7, since 2026-01-01T00:00:00Z"
    os.utime(file, (time.time() - 1000,) * 2)
    assert locks.holder(tmp_path, "p") is None
    with locks.locked(tmp_path, "p") as waited:
        assert waited >= 0.6, "signs of life are waited for"
        assert locks.holder(tmp_path, "p").process == os.getpid()


def test_holder_that_lives_on_another_machine_is_respected(tmp_path, monkeypatch):
    """Its system's lock is not seen from here, its signs of life are."""
    file, ended = left_by(tmp_path, "node7"), threading.Event()

    def live() -> None:
        beat = 3
        while not ended.wait(0.1):
            beat += 1
            held = {"process": 12, "host": "node7", "since": "2026-01-01T00:00:00Z", "beat": beat}
            with open(file, "r+") as handle:
                handle.write(json.dumps(held).ljust(240))
        with open(file, "r+") as handle:
            handle.truncate(0)  # it ends well

    thread = threading.Thread(target=live)
    thread.start()
    try:
        with pytest.raises(AuditError, match="process 12 on node7, since"), locks.locked(tmp_path, "p"):
            pass
        threading.Timer(0.5, ended.set).start()
        with locks.locked(tmp_path, "p", patience=20) as waited:
            assert 0.3 < waited < 15
    finally:
        ended.set()
        thread.join()


def test_file_system_without_locks(tmp_path, monkeypatch):
    """Where ``flock`` is refused, processes of this machine are looked up, and no pool is blocked for ever."""
    real = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(locks, "_flock", lambda handle, shared=False: None)
    try:
        left_by(tmp_path, locks._host(), real.pid)
        assert locks.is_locked(tmp_path, "p")
        with pytest.raises(AuditError, match=f"process {real.pid}, since"), locks.locked(tmp_path, "p"):
            pass
    finally:
        real.kill()
        real.wait()
    assert not locks.is_locked(tmp_path, "p")
    with locks.locked(tmp_path, "p"):
        assert locks.is_locked(tmp_path, "p")
    assert not locks.is_locked(tmp_path, "p")


def test_errors_of_the_system_that_mean_no_lock(tmp_path, monkeypatch):
    import errno
    import fcntl

    for number, free in ((errno.EAGAIN, False), (errno.EACCES, False), (errno.ENOLCK, None), (errno.EOPNOTSUPP, None)):

        def refuse(*_, number=number):
            raise OSError(number, "no")

        monkeypatch.setattr(fcntl, "flock", refuse)
        assert locks._flock(0) is free


def test_damaged_lock_file_blocks_nobody(tmp_path):
    for text in ("", "{", '{"process": 1}', "process 12, since 2026"):
        left_by(tmp_path, "x").write_text(text)
        with locks.locked(tmp_path, "p") as waited:
            assert waited < 0.5
