"""Lines of progress that a notebook and the runner of notebooks both see."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from auditlib.inference.runner import Say
from auditlib.paths import RunPaths


def teller(paths: RunPaths, say: Callable[[str], None]) -> Callable[[str], None]:
    """Say a line, and add it to the file that the runner of notebooks watches, where it made one."""

    def tell(line: str) -> None:
        say(line)
        if paths.progress.exists():
            with contextlib.suppress(OSError), open(paths.progress, "a", encoding="utf-8") as f:
                f.write(f"{line}\n")

    return tell


def line_of(name: str, tell: Callable[[str], None]) -> Say:
    """Tells the state of a model's part of a run, for :func:`~auditlib.inference.runner.run`."""

    def said(done: int, total: int | None, failed: int, rate: float) -> None:
        whole = f" of {total:,}" if total is not None else ""
        left = f", about {(total - done) / rate:,.0f} s left" if total is not None and rate > 0 and total > done else ""
        tell(f"{name}: {done:,}{whole} answered, {failed:,} failed, {rate:.1f} a second{left}")

    return said
