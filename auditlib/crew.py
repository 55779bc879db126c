"""The worker processes of one run: each runs one pool, says what happens, and ends when it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from auditlib.ending import kill_tree
from auditlib.kernels import THREADS
from auditlib.nb import start
from auditlib.worker import FAILED, Job, Outcome

#: command of a worker; -P: whatever lies in the working directory is not imported
WORKER = [sys.executable, "-P", "-m", "auditlib.worker"]
#: seconds that a worker gets to stop its kernel before it is killed
GRACE = 8.0

#: told (pool, stage, sentence) as things happen
Say = Callable[[str, str, str], None]


class Standing:
    """How far a run is: told in a line whenever a pool starts, and when one ends that no other follows."""

    def __init__(self, total: int, tell: Callable[[str], None]):
        self.total, self.tell = total, tell
        self.running: list[str] = []
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._lock = threading.Lock()

    def started(self, pool: str) -> None:
        with self._lock:
            self._begun.add(pool)
            if pool not in self.running:
                self.running.append(pool)
            self.tell(self.line())

    def ended(self, pool: str) -> None:
        with self._lock:
            self._begun.add(pool)
            self._ended.add(pool)
            if pool in self.running:
                self.running.remove(pool)
            if len(self._begun) == self.total or not self.running:
                self.tell(self.line())

    def line(self) -> str:
        """For instance ``3 of 12 pools ended; running: mmstar, tinysee``."""
        names = self.running[:8] + ([f"{n} more"] if (n := len(self.running) - 8) > 0 else [])
        at = f"; running: {', '.join(names)}" if names else ""
        return f"{len(self._ended)} of {self.total} pools ended{at}"


class Crew:
    """The worker processes of one run.

    Parameters
    ----------
    say : told (pool, stage, sentence).
    keep_going : whether other pools start after one has failed.
    standing : told of starts and ends.
    cwd : working directory of the workers; this process's own when not given.
    """

    def __init__(self, say: Say, keep_going: bool = True, standing: Standing | None = None, cwd: Path | None = None):
        self.say, self.keep_going, self.standing, self.cwd = say, keep_going, standing, cwd
        self.closed = False
        self.alive: set[subprocess.Popen] = set()
        self.lock = threading.Lock()

    def run(self, job: Job) -> Outcome | None:
        """Run one pool, or nothing once the crew has closed."""
        if self.closed:
            return None
        outcome = self.work(job)
        if outcome is not None and outcome.code:
            self.closed = self.closed or not self.keep_going
            self.say(outcome.pool, "", outcome.error)
        if outcome is not None and self.standing is not None:
            self.standing.ended(outcome.pool)
        return outcome

    def work(self, job: Job) -> Outcome | None:
        """One pool in a process of its own; None when the crew closed before it could start."""
        pool = start(job.params, job.outputs, job.overrides, replace=True).paths.pool
        with self.lock:
            if self.closed:
                return None
            process = subprocess.Popen(
                WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                encoding="utf-8", env=os.environ | THREADS, cwd=self.cwd, start_new_session=True,
            )  # fmt: skip
            self.alive.add(process)
        if self.standing is not None:
            self.standing.started(pool)
        noise: list[str] = []
        reader = threading.Thread(target=lambda: noise.extend(process.stderr.readlines()[-20:]), daemon=True)
        reader.start()
        outcome = None
        try:
            process.stdin.write(json.dumps(vars(job)) + "\n")
            process.stdin.flush()  # and left open: a worker ends when its runner does
            for line in process.stdout:
                event = json.loads(line)
                if "outcome" in event:
                    outcome = Outcome(**event["outcome"] | {"ran": tuple(event["outcome"]["ran"])})
                else:
                    self.say(pool, event["stage"], event["text"])
        except BrokenPipeError:
            pass
        finally:
            process.wait()
            with self.lock:
                self.alive.discard(process)
        if outcome is None:
            reader.join(2)
            outcome = Outcome(pool, FAILED, _died(process.returncode, noise))
        return outcome

    def stop(self) -> None:
        """Ask every worker to stop its kernel and end, and kill those that do not."""
        with self.lock:
            self.closed = True
            left = list(self.alive)
        for process in left:
            with suppress(ProcessLookupError):
                process.terminate()
        for process in left:
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                kill_tree(process.pid)


def _died(code: int | None, noise: list[str]) -> str:
    if code and code < 0:
        more = ": out of memory?" if -code == getattr(signal, "SIGKILL", 9) else ""
        return f"its process was ended by signal {-code}{more}"
    return f"its process ended with code {code}: {noise[-1].strip() if noise else 'no message'}"
