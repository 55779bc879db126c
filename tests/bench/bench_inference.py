"""The runner with its store against a bare client, in one run: ``python tests/bench/bench_inference.py``.

A server of zero latency in a process of its own; the same 64 callers, requests and transport; rounds take turns. Then
100,000 and 10,000 requests through the runner with a client that answers at once, each in its own process. Prints
requests a second, the ratios and the peaks of memory; exits 1 when a limit is missed.
"""

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from auditlib.calls import Reply, Request
from auditlib.inference.openai_client import OpenAIClient
from auditlib.inference.runner import run_blocking
from auditlib.inference.store import Store

LEAST_RATIO, MOST_GROWTH, CALLERS, REQUESTS, ROUNDS = 0.9, 1.2, 64, 1500, 4
_ANSWER = json.dumps({
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "B"}}],
    "usage": {"prompt_tokens": 90, "completion_tokens": 1, "total_tokens": 91},
}).encode()  # fmt: skip


class _Canned(asyncio.Protocol):
    """Counts the bytes of each request, and sends the same answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.held = transport, b""

    def data_received(self, data: bytes) -> None:
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end].lower()
            size = end + 4 + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self.held) < size:
                return
            self.held = self.held[size:]
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_ANSWER)
            self.transport.write(head + _ANSWER)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Canned, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def requests(n: int):
    for i in range(n):
        yield Request(f"i{i}", "m", "blind", (f"Question {i}: what is shown? " + "text " * 60,))


async def bare(url: str, n: int) -> float:
    """AsyncOpenAI over aiohttp; callers pull from one iterator, nothing is kept."""
    import openai

    client = openai.AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, timeout=60.0, http_client=openai.DefaultAioHttpClient(timeout=60.0)
    )
    asked = requests(n)

    async def work() -> None:
        for r in asked:
            message = [{"role": "user", "content": r.text}]
            reply = await client.chat.completions.create(model="m", messages=message, temperature=0.0, max_tokens=512)
            assert reply.choices[0].message.content == "B"

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CALLERS)))
    took = time.perf_counter() - start
    await client.close()
    return n / took


def ours(url: str, n: int, folder: str) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as here, Store(Path(here) / "answers.sqlite") as store:
        start = time.perf_counter()
        got = run_blocking(requests(n), OpenAIClient(url, timeout=60.0), store, concurrency=CALLERS)
        took = time.perf_counter() - start
        assert got.outcomes == {"ok": n} and len(store) == n
    return n / took


class _Instant:
    async def ask(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        return Reply(request.key, "ok", "B " * 400, tokens_in=90, tokens_out=1)

    async def close(self) -> None: ...


def peak() -> float:
    """MiB of this program alone: the usual counter starts at the size of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def memory(n: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "answers.sqlite") as store:
        start = time.perf_counter()
        got = run_blocking(requests(n), _Instant(), store, concurrency=CALLERS, total=n)
        assert got.asked == len(store) == n
        again = run_blocking(requests(n), _Instant(), store, concurrency=CALLERS, total=n)
        assert again.known == n
        return {
            "seconds": time.perf_counter() - start,
            "peak_mib": peak(),
        }


def speed() -> float:
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(bare(url, 100))
            ours(url, 100, folder)
            pairs = [(asyncio.run(bare(url, REQUESTS)), ours(url, REQUESTS, folder)) for _ in range(ROUNDS)]
    finally:
        server.kill()
    plain, stored = max(p for p, _ in pairs), max(s for _, s in pairs)
    print(f"{CALLERS} callers: bare client {plain:.0f} requests/s, runner with store {stored:.0f} requests/s")
    print(f"ratio {stored / plain:.2f} (at least {LEAST_RATIO:g})")
    return stored / plain


def growth() -> float:
    found = {}
    for n in (10_000, 100_000):
        command = [sys.executable, __file__, "memory", str(n)]
        found[n] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        f = found[n]
        print(f"{n:>7,} requests and again as a resume: {f['seconds']:.1f} s, peak {f['peak_mib']:.0f} MiB")
    ratio = found[100_000]["peak_mib"] / found[10_000]["peak_mib"]
    print(f"peak of 100,000 to that of 10,000 requests: {ratio:.2f} (below {MOST_GROWTH:g})")
    return ratio


def main() -> int:
    match sys.argv[1:]:
        case ["serve"]:
            asyncio.run(serve())
        case ["memory", n]:
            print(json.dumps(memory(int(n))))
        case _:
            ratio, grown = speed(), growth()
            return int(ratio < LEAST_RATIO or grown >= MOST_GROWTH)
    return 0


if __name__ == "__main__":
    sys.exit(main())
