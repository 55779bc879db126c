"""How a worker's process ends: with its runner, softly first, and its kernel with it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress

#: seconds that a worker gets to stop its kernel by itself after its runner has gone
GRACE = 6.0


def end_with_parent() -> None:
    """End this process when its standard input closes: its runner has ended, or was killed, however that came."""
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    while sys.stdin.readline():
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)  # still here: the main thread is in a long call, or a kernel does not end
    kill_tree(os.getpid())


def kill_tree(process: int) -> None:
    """Kill a process and everything it started, kernels in sessions of their own included."""
    import psutil  # comes with ipykernel

    with suppress(psutil.Error):
        root = psutil.Process(process)
        for child in root.children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
        root.kill()
