"""Several endpoints that serve one model and share one list of requests; one of them ends in the middle."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
from fault_server import FaultServer

from auditlib.calls import Request
from auditlib.errors import AuditError
from auditlib.inference.failures import StopRun
from auditlib.inference.runner import run_blocking
from auditlib.inference.shared import check_each, client_at, members_of
from auditlib.inference.store import Store


def requests(n: int, text: str = "say B") -> list[Request]:
    return [Request(f"i{k}", "m", "blind", (f"question {k}, {text}",)) for k in range(n)]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "answers.sqlite") as opened:
        yield opened


def ended(server: FaultServer) -> None:
    """End a server and its connections, as a machine that goes down."""
    server.__exit__(None, None, None)


def test_three_endpoints_share_the_work_and_one_dies_half_way(store):
    asked, said = requests(240), []
    b = FaultServer(delay=0.01).__enter__()  # it ends before its block would
    with FaultServer(delay=0.01) as a, FaultServer(delay=0.01) as c:
        client = client_at([a.url, b.url, c.url], say=said.append, timeout=1.0)
        assert len(members_of(client)) == 3

        def kill() -> None:
            while len(b.times) < 30:
                time.sleep(0.005)
            ended(b)

        killer = threading.Thread(target=kill)
        killer.start()
        summary = run_blocking(asked, client, store, concurrency=12, backoff=0.05)
        killer.join()
    assert summary.outcomes == {"ok": 240} and len(store) == 240
    served = [len(s.times) for s in (a, b, c)]
    assert served[1] < 60 < min(served[0], served[2])
    assert any(line.startswith("endpoint 2 of 3 does not answer (") for line in said)
    # nothing is paid twice but what the dead one had in flight
    times = Counter(text for s in (a, b, c) for _, text in s.times)
    assert set(times) == {r.text for r in asked} and sum(times.values()) - 240 <= 12


def test_work_is_shared_evenly_by_equal_endpoints(store):
    with FaultServer(delay=0.02) as a, FaultServer(delay=0.02) as b, FaultServer(delay=0.02) as c:
        run_blocking(requests(90), client_at([a.url, b.url, c.url]), store, concurrency=9)
    assert all(25 <= len(s.times) <= 35 for s in (a, b, c))
    assert all(s.peak <= 4 for s in (a, b, c))


def test_endpoint_that_cannot_serve_is_left_out_and_the_last_reason_ends_the_run(store):
    said = []
    with FaultServer() as good, FaultServer() as bad:
        wrong = client_at([good.url, bad.url], say=said.append)

        async def no_model(request, *, listed=False):
            raise StopRun("the endpoint answers 404 for model 'm'", mend="check the name")

        members_of(wrong)[1].ask = no_model
        summary = run_blocking(requests(20), wrong, store, concurrency=4, backoff=0.01)
        assert summary.outcomes == {"ok": 20}
        assert said == ["endpoint 2 of 2 is left out: the endpoint answers 404 for model 'm'. Mend: check the name"]
        members_of(wrong)[0].ask = no_model
        with pytest.raises(AuditError, match="answers 404"):
            run_blocking(requests(5, "say C"), wrong, store, concurrency=4, backoff=0.01)


def test_a_rate_limit_makes_its_own_endpoint_wait(store):
    asked = requests(60)
    with FaultServer(limit=1, delay=0.01) as narrow, FaultServer(delay=0.01) as wide:
        summary = run_blocking(asked, client_at([narrow.url, wide.url]), store, concurrency=8, backoff=0.02)
    assert summary.outcomes == {"ok": 60}
    assert narrow.over > 0 and len(wide.times) > 30


def test_all_down_is_one_message(store):
    with FaultServer() as a, FaultServer() as b:
        urls = [a.url, b.url]
    with pytest.raises(AuditError, match=r"requests in a row failed.*endpoint|rest after failures"):
        run_blocking(requests(40), client_at(urls, timeout=0.3), store, concurrency=8, backoff=0.01, max_attempts=2,
                     give_up_after=5)  # fmt: skip
    assert len(store) == 0


def test_each_endpoint_is_looked_at_and_one_that_passes_is_enough():
    with FaultServer() as a, FaultServer() as b:
        client = client_at([a.url, b.url])
        one, two = members_of(client)

        def check(member):
            if member is two:
                raise AuditError("down")
            return "fine"

        assert [(n, str(r)) for n, r in check_each(client, check)] == [(1, "fine"), (2, "down")]
        with pytest.raises(AuditError, match="down"):
            check_each(two, check)
        assert check_each(one, check) == [(1, "fine")]
