"""A pool is worked on by one runner at a time, also where several machines share the folder of results."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from auditlib.errors import AuditError

#: seconds between two signs of life of a holder, and without one after which a holder elsewhere is taken for dead
BEAT, QUIET = 4.0, 12.0
#: seconds for ``auditlib status``, which does not wait for a sign: clocks of machines differ
FORGOTTEN = 90.0
#: length of the text in a lock file; it is written over in place, so that no reader meets half of it
_WIDTH = 240


@dataclass(frozen=True)
class Holder:
    """Who works on a pool: process and machine, since when, and a number that grows as long as it lives."""

    process: int
    host: str
    since: str
    beat: int = 0

    @property
    def elsewhere(self) -> str:
        """The machine in words, where it is not this one."""
        return "" if self.host == _host() else f" on {self.host}"

    def __str__(self) -> str:
        return f"process {self.process}{self.elsewhere}, since {self.since}"


@contextmanager
def locked(outputs: Path, pool: str, *, patience: float = 0.3) -> Iterator[float]:
    """Hold a pool for one runner; the lock goes with its process, however that ends.

    Parameters
    ----------
    patience : seconds to wait for another holder to end.

    Yields
    ------
    float
        Seconds that were waited.

    Raises
    ------
    AuditError
        Another runner works on this pool.

    Notes
    -----
    The system's lock (``flock``) tells at once where a process of this machine has ended. Some shared file systems keep
    it from other machines, or have none, so that a holder also gives signs of life in the file: the lock of a holder
    elsewhere is taken when they stop.
    """
    began = time.monotonic()
    file = _file(outputs, pool)
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _take(handle, file, pool, began + patience)
        ended = threading.Event()
        me = Holder(os.getpid(), _host(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        _sign(handle, me)
        thread = threading.Thread(target=_live, args=(handle, me, ended), daemon=True)
        thread.start()
        try:
            yield time.monotonic() - began
        finally:
            ended.set()
            thread.join()
            with suppress(OSError):
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def holder(outputs: Path, pool: str) -> Holder | None:
    """Who works on a pool at this moment, as far as this machine can tell."""
    file = _file(outputs, pool)
    try:
        handle = os.open(file, os.O_RDONLY)  # enough for a look, also where nothing can be written
    except FileNotFoundError:
        return None
    try:
        free, found = _flock(handle, shared=True), _read(file)
        if free is False:
            return found or Holder(0, _host(), "unknown")
        if found is None:
            return None
        if found.host == _host():
            return found if free is None and _runs(found.process) else None
        return found if time.time() - os.fstat(handle).st_mtime < FORGOTTEN else None
    finally:
        os.close(handle)


def is_locked(outputs: Path, pool: str) -> bool:
    """Whether a runner works on a pool at this moment."""
    return holder(outputs, pool) is not None


def _take(handle: int, file: Path, pool: str, until: float) -> None:
    while (free := _flock(handle)) is False or _held_without_lock(file, free):
        if time.monotonic() > until:
            by = _read(file)
            raise AuditError(f"pool {pool} is being run by another auditlib ({by or 'unknown'})",
                             mend="wait until it ends, or choose another folder with --outputs")  # fmt: skip
        time.sleep(0.1)


def _held_without_lock(file: Path, free: bool | None) -> bool:
    """Whether somebody works there whom the system's lock does not show: it may end at a machine."""
    found = _read(file)
    if found is None:
        return False
    if found.host == _host():
        return free is None and found.process != os.getpid() and _runs(found.process)
    end = time.monotonic() + QUIET
    while time.monotonic() < end:
        time.sleep(min(0.5, QUIET / 4))
        if _read(file) != found:
            return _read(file) is not None
    return False


def _live(handle: int, me: Holder, ended: threading.Event) -> None:
    beat = 0
    while not ended.wait(BEAT):
        beat += 1
        with suppress(OSError):
            _sign(handle, Holder(me.process, me.host, me.since, beat))


def _sign(handle: int, me: Holder) -> None:
    os.pwrite(handle, json.dumps(asdict(me)).ljust(_WIDTH).encode(), 0)
    os.fsync(handle)  # other machines read what has left this one


def _read(file: Path) -> Holder | None:
    """The text of a lock file, opened anew: a network file system looks again then."""
    try:
        return Holder(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _flock(handle: int, *, shared: bool = False) -> bool | None:
    """Take the system's lock: whether it was free; None where there is no such lock."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as e:
        return False if e.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES) else None
    return True


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _host() -> str:
    return socket.gethostname()


def _file(outputs: Path, pool: str) -> Path:
    return outputs / ".locks" / f"{pool}.lock"
