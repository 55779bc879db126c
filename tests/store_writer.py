"""Processes that fill a store and are killed.

Each line ``STORE LOG SEED`` (tabs between) on standard input forks one, whose id is printed; the line ``wait`` prints
how each ended. Each line of a log is written by one system call: ``asked KEY`` before a reply, ``stored KEY`` after
``put``.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys

from auditlib.calls import Reply, Request
from auditlib.inference.runner import run_blocking
from auditlib.inference.store import Store

ITEMS = 4000


def requests(order: random.Random | None = None):
    numbers = list(range(ITEMS))
    if order:
        order.shuffle(numbers)
    for n in numbers:
        yield Request(f"i{n}", "m", "blind", (f"question {n} " + "text " * 60,))


def main(path: str, log: str, seed: str) -> None:
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    class Told(Store):
        def put(self, request: Request, reply: Reply) -> None:
            super().put(request, reply)
            os.write(out, f"stored {request.key}\n".encode())

    class Stub:
        async def ask(self, request: Request) -> Reply:
            os.write(out, f"asked {request.key}\n".encode())
            await asyncio.sleep(0.001)
            return Reply(request.key, "ok", f"reply to {request.item} " + "word " * 150)

        async def close(self) -> None: ...

    with Told(path) as store:
        os.write(out, b"open -\n")
        run_blocking(requests(random.Random(seed)), Stub(), store, concurrency=8)


def serve() -> None:
    """Fork on demand, so that forty processes cost one start of Python."""
    children: list[int] = []
    for line in sys.stdin:
        if line.strip() == "wait":
            ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
            print(*ends, flush=True)
            children.clear()
            continue
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                main(*line.rstrip("\n").split("\t"))
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
        print(pid, flush=True)


if __name__ == "__main__":
    serve()
