"""Coroutines from ordinary code, also in a notebook whose event loop runs already."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end; in a thread with its own loop where this thread has one running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    return _in_thread(work)


def _in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Another thread's loop; an interrupt of this thread cancels the work there and waits for its end."""
    found: dict[str, Any] = {}
    ready = threading.Event()

    async def main() -> None:
        found["loop"], found["task"] = asyncio.get_running_loop(), asyncio.current_task()
        ready.set()
        found["value"] = await work()

    def thread_main() -> None:
        try:
            asyncio.run(main())
        except BaseException as e:
            found["error"] = e
        finally:
            ready.set()

    outer = asyncio.current_task()
    # the context holds where a notebook's print goes
    thread = threading.Thread(target=contextvars.copy_context().run, args=(thread_main,), daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)  # a wait without end cannot be interrupted everywhere
            if outer is not None and outer.cancelling():  # asyncio.run turns the first Ctrl-C into this
                raise asyncio.CancelledError
    except (KeyboardInterrupt, asyncio.CancelledError):
        ready.wait()
        if thread.is_alive() and "task" in found:
            with contextlib.suppress(RuntimeError):
                found["loop"].call_soon_threadsafe(found["task"].cancel)
        thread.join()
        raise
    if "error" in found:
        raise found["error"]
    return found["value"]
