"""The client and the runner over a real socket: every fault ends in its outcome, and none is hammered."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import threading
import time
from dataclasses import replace

import pytest
from fault_server import FaultServer

from auditlib.calls import Generation, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.canary import canary_blocking, solid
from auditlib.inference.failures import LONGEST_ERROR, Retry, StopRun, judge_error, retry_after, scrub
from auditlib.inference.logprobs import letter_logprobs, margin
from auditlib.inference.openai_client import OpenAIClient
from auditlib.inference.runner import run, run_blocking
from auditlib.inference.store import Store

KEY = "secret/key+0123456789"
#: faults that one or two tries mend
MENDED = (
    "busy", "busy_ms", "busy_silent", "broken", "gateway", "conflict", "timeout_status", "bad_json", "no_json",
    "error_200", "no_choices", "null_choices", "page", "string", "latin1", "reset", "half",
)  # fmt: skip


@pytest.fixture
def server():
    with FaultServer() as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("AUDIT_TEST_KEY", KEY)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "answers.sqlite") as opened:
        yield opened


def client(server: FaultServer, timeout: float = 5.0) -> OpenAIClient:
    return OpenAIClient(server.url, api_key_env="AUDIT_TEST_KEY", timeout=timeout)


def requests(texts, condition="blind", **settings) -> list[Request]:
    return [Request(f"i{n}", "m", condition, (text,), **settings) for n, text in enumerate(texts)]


def one(server: FaultServer, text: str, *parts, **settings) -> Reply:
    """The outcome of one request, asked once."""

    async def work() -> Reply:
        c = client(server)
        try:
            return await c.ask(Request("i", "m", "full" if parts else "blind", (*parts, text), **settings))
        finally:
            await c.close()

    return asyncio.run(work())


# ----------------------------------------------------------------------------------------------------- what is sent


def test_text_alone_is_one_string_and_pictures_are_data_urls(server):
    picture, threads = solid((1, 2, 3)), []

    def load() -> bytes:
        threads.append(threading.current_thread())
        return picture.load()

    one(server, "say A", replace(picture, load=load))

    async def text_only() -> None:
        c = client(server)
        await c.ask(Request("i", "m", "blind", ("first", "second"), system="be brief"))
        await c.close()

    asyncio.run(text_only())
    with_picture, plain = server.bodies
    shown, said = with_picture["messages"][0]["content"]
    assert shown["image_url"]["url"].split(",")[0] == "data:image/png;base64"
    assert base64.b64decode(shown["image_url"]["url"].split(",")[1]) == picture.load()
    assert said == {"type": "text", "text": "say A"}
    assert threads and threads[0] is not threading.main_thread()
    assert [m["content"] for m in plain["messages"]] == ["be brief", "first\nsecond"]


def test_settings_are_sent_only_when_set(server):
    one(server, "say A", generation=Generation(temperature=None, max_tokens=None))
    assert set(server.bodies[0]) == {"model", "messages"}
    all_set = Generation(0.5, 9, 0.9, 3, "low", True, 5, (("min_p", 0.1),))
    one(server, "say A", generation=all_set)
    body = server.bodies[1]
    body.pop("messages")
    assert body == {
        "model": "m", "temperature": 0.5, "max_tokens": 9, "top_p": 0.9, "seed": 3, "reasoning_effort": "low",
        "logprobs": True, "top_logprobs": 5, "min_p": 0.1,
    }  # fmt: skip


def test_a_missing_key_names_its_variable(monkeypatch):
    monkeypatch.delenv("AUDIT_TEST_KEY")
    with pytest.raises(AuditError, match="AUDIT_TEST_KEY holds no key"):
        OpenAIClient("http" + "://example.org/v1", api_key_env="AUDIT_TEST_KEY")
    OpenAIClient("http" + "://localhost:1/v1", api_key_env="AUDIT_TEST_KEY")
    monkeypatch.setenv("AUDIT_TEST_KEY", "two words")
    with pytest.raises(AuditError, match="AUDIT_TEST_KEY") as e:
        OpenAIClient(None, api_key_env="AUDIT_TEST_KEY")
    assert "two words" not in str(e.value)


# ------------------------------------------------------------------------------------------------ outcomes of a reply


@pytest.mark.parametrize(
    ("name", "outcome", "text"),
    [
        ("none", "ok", "B"), ("empty", "empty", ""), ("null", "empty", ""), ("filtered", "filtered", ""),
        ("length", "truncated", "The answer is"), ("no_usage", "ok", "B"), ("parts", "ok", "C"),
        ("thinking", "ok", "D"), ("refusal", "ok", "I cannot help with that."), ("too_long", "refused_request", ""),
        ("too_large", "refused_request", ""), ("unprocessable", "refused_request", ""),
        ("bad_picture", "refused_request", ""), ("azure_filter", "filtered", ""), ("echo_400", "refused_request", ""),
    ],
)  # fmt: skip
def test_outcome_of_each_answer(server, name, outcome, text):
    got = one(server, f"question <<{name}>>" if name != "none" else "question")
    assert (got.outcome, got.text) == (outcome, text)
    finish = {"filtered": "content_filter", "truncated": "length", "ok": "stop", "empty": "stop"}
    assert got.finish == (None if name == "azure_filter" else finish.get(outcome))
    if outcome == "ok":
        assert (got.server_model, got.fingerprint) == ("served-name", "fp")
        assert (got.tokens_in is None) == (name == "no_usage")
    else:
        assert len(got.error or "") <= LONGEST_ERROR + 6 and KEY not in (got.error or "")
    assert got.reasoning == {"thinking": "let me see", "parts": "so"}.get(name)


@pytest.mark.parametrize("name", [*MENDED, "busy_date", "busy_long"])
def test_what_may_succeed_later_is_raised_as_that(server, name):
    with pytest.raises(Retry) as e:
        one(server, f"<<{name}>>")
    assert e.value.limited == name.startswith("busy")
    after = {"busy": 0.05, "busy_ms": 0.04, "busy_long": 3600}.get(name)
    assert after is None or e.value.after == pytest.approx(after)
    if name == "busy_date":
        assert 0 <= e.value.after <= 1.5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("quota", "no quota left"), ("quota_200", "no quota left"), ("key", "answers 401"),
        ("forbidden", "answers 403"), ("no_model", "answers 404"),
    ],
)  # fmt: skip
def test_what_no_request_survives_is_one_message(server, name, said):
    with pytest.raises(StopRun, match=said) as e:
        one(server, f"<<{name}>>")
    assert isinstance(e.value, AuditError) and "Mend:" in str(e.value)
    assert KEY not in str(e.value)


def test_a_hang_ends_at_the_timeout_of_one_attempt(server):
    async def work() -> None:
        await client(server, timeout=0.3).ask(requests(["<<hang>>"])[0])

    start = time.monotonic()
    with pytest.raises(Retry, match=r"0\.3 s"):
        asyncio.run(work())
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("message", "stops"),
    [
        ("tiny is not a multimodal model", True),
        ("Invalid content type. image_url is only supported by certain models.", True),
        ("image input is not supported - hint: you may need to provide the mmproj", True),
        ("messages[0].content must be a string", True),
        ("unknown variant `image_url`, expected `text`", True),
        ("No endpoints found that support image input", True),
        ("At most 0 image(s) may be provided in one prompt.", True),
        ("This model does not support images", True),
        ("At most 1 image(s) may be provided in one prompt.", False),
        ("You uploaded an unsupported image. Please make sure your image has one of these formats: png", False),
        ("Failed to load image: cannot identify image file", False),
        ("image dimensions are not supported", False),
        ("maximum context length is 2048 tokens", False),
    ],
)
def test_an_endpoint_without_pictures_is_told_from_a_picture_it_dislikes(message, stops):
    body = {"error": {"message": message}}
    if stops:
        with pytest.raises(StopRun, match="takes no images"):
            judge_error(400, body, {}, pictures=True, model="m")
    else:
        assert judge_error(400, body, {}, pictures=True, model="m")[0] == "refused_request"
    assert judge_error(400, body, {}, pictures=False, model="m")[0] == "refused_request"


def test_one_refused_picture_after_answered_ones_ends_no_run(server, store):
    asked = [Request(f"i{n}", "m", "full", (solid((n, 0, 0)), f"{n} say A")) for n in range(5)]
    run_blocking([*asked], used := client(server), store, concurrency=1)
    odd = Request("odd", "m", "full", (solid((9, 9, 9)), "<<no_vision>>"))
    assert run_blocking([odd], used, store, concurrency=1).outcomes == {"refused_request": 1}
    with pytest.raises(Retry):
        judge_error(500, {"error": {"message": "image op not supported"}}, {}, pictures=True, model="m")
    with pytest.raises(StopRun):
        judge_error(500, {"error": {"message": "image input is not supported"}}, {}, pictures=True, model="m")


def test_the_other_name_of_the_token_limit_is_tried_once(store):
    with FaultServer(newer=True) as newer:
        asked = requests(map(str, range(6)), generation=Generation(max_tokens=9))
        got = run_blocking(asked, client(newer), store, concurrency=1)
        assert got.outcomes == {"ok": 6} and len(newer.bodies) == 7
        assert newer.bodies[-1]["max_completion_tokens"] == 9 and "max_tokens" not in newer.bodies[-1]


def test_retry_after_in_its_three_forms():
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after": "Wed, 21 Oct 2026 07:28:10 GMT"}, now=1792567680.0) == 10
    assert retry_after({"retry-after": "soon"}) is retry_after({}) is retry_after({"retry-after": "nan"}) is None


def test_scrub_takes_out_keys_and_what_looks_like_one():
    said = scrub(f"a {KEY} b sk-abcdef012345 Bearer xyz {'http' + '://'}me:pass@host c\n d", [KEY])
    assert said == f"a *** b *** Bearer *** {'http' + '://'}***@host c d"
    assert len(scrub("x" * 400)) <= LONGEST_ERROR
    assert KEY[:9] not in scrub("x" * (LONGEST_ERROR - 10) + KEY, [KEY])


# ------------------------------------------------------------------------------------------------------------- runs


def test_all_200_are_answered_where_a_retry_can_help(server, store):
    texts = [f"question {n} say {'ABCD'[n % 4]}" for n in range(200)]
    for n in range(0, 200, 2):
        name = MENDED[n // 2 % len(MENDED)]
        texts[n] += f" <<{name} x{1 + n // 2 % 2}>>"
    texts[7] += " <<hang x1>>"
    got = run_blocking(requests(texts), client(server, 1.0), store, concurrency=16, backoff=0.05)
    assert got.outcomes == {"ok": 200} and len(store) == 200 and store.failures() == []
    said = {row["item"]: row["text"] for row in store.rows()}
    assert all(said[f"i{n}"] == "ABCD"[n % 4] for n in range(200)), "each reply is under its own question"
    for text in texts:
        count = int(text.partition(" x")[2][:1] or 0)
        assert server.calls[text] == 1 + count, text
    assert got.calls == sum(server.calls.values())
    assert server.peak <= 16


def test_what_fails_for_ever_is_tried_so_often_and_asked_again_by_a_resume(server, store):
    texts = [f"{n} <<{name}>>" for n, name in enumerate(("broken", "bad_json", "reset", "error_200", "busy"))]
    asked = requests([*texts, "good", "<<empty>>", "<<filtered>>", "<<too_long>>"])
    got = run_blocking(asked, client(server), store, concurrency=4, max_attempts=3, backoff=0.02)
    assert got.outcomes == {"ok": 1, "empty": 1, "filtered": 1, "refused_request": 1, "failed": 5}
    assert {server.calls[t] for t in texts} == {3}
    assert {(f["attempts"], bool(f["error"])) for f in store.failures()} == {(3, True)} and len(store.failures()) == 5
    again = run_blocking(asked, client(server), store, concurrency=4, max_attempts=1, backoff=0.02)
    assert (again.known, again.asked) == (4, 5)
    assert {server.calls[t] for t in texts} == {4} and server.calls["good"] == 1


def test_quota_stops_the_run_with_one_message_after_few_requests(server, store):
    texts = [f"{n} say A" for n in range(20)] + [f"{n} <<quota>>" for n in range(480)]
    with pytest.raises(StopRun, match="no quota left") as e:
        run_blocking(requests(texts), client(server), store, concurrency=8)
    assert "\n" not in str(e.value) and KEY not in str(e.value)
    assert 20 <= len(store) and sum(server.calls.values()) <= 20 + 8


def test_an_endpoint_without_pictures_gives_one_error_not_1500(store):
    asked = [Request(f"i{n}", "m", "full", (solid((n % 256, 0, 0)), f"q{n}")) for n in range(1500)]
    with FaultServer(vision=False) as blind, pytest.raises(AuditError, match="takes no images") as e:
        run_blocking(asked, client(blind), store, concurrency=8)
    assert "blind condition only" in str(e.value)
    assert sum(blind.calls.values()) <= 8 and len(store) == 0


def test_nothing_but_refusals_stops_the_run_and_is_asked_again(server, store):
    asked = requests([f"{n} <<unprocessable x1>>" for n in range(60)])
    with pytest.raises(StopRun, match="refused each of the first 20"):
        run_blocking(asked, client(server), store, concurrency=4)
    assert len(store) == 0 and sum(server.calls.values()) <= 24
    server.calls.update({r.text: 1 for r in asked})
    assert run_blocking(asked, client(server), store, concurrency=4).outcomes == {"ok": 60}


def test_an_endpoint_that_is_down_is_not_asked_1500_times(store):
    with FaultServer() as gone:
        pass
    with pytest.raises(StopRun, match="20 requests in a row failed"):
        run_blocking(requests(map(str, range(1500))), client(gone), store, concurrency=8, max_attempts=2, backoff=0.01)


def test_a_long_wait_ends_the_run_and_a_short_one_is_shared(server, store):
    with pytest.raises(StopRun, match="asks to wait 3600 s"):
        run_blocking(requests(["<<busy_long>>"]), client(server), store)
    # ten callers meet the limit at once; all stay away for its time, and each comes back once
    texts = [f"{n} <<busy x1>>" for n in range(10)]
    start = time.monotonic()
    got = run_blocking(requests(texts), client(server), store, concurrency=10)
    assert got.outcomes == {"ok": 10} and got.calls == 20
    assert 0.05 <= time.monotonic() - start < 3


def test_rate_limited_endpoint_is_not_stormed(store):
    with FaultServer(limit=4, delay=0.01) as narrow:
        got = run_blocking(requests(map(str, range(120))), client(narrow), store, concurrency=32, max_attempts=12)
    assert got.outcomes == {"ok": 120}
    assert narrow.over < 80, "halving finds the width"
    assert max(narrow.calls.values()) <= 12


def test_requests_a_minute_are_kept(server, store):
    start = time.monotonic()
    run_blocking(requests(map(str, range(10))), client(server), store, concurrency=10, rpm=1200)
    assert max(t for t, _ in server.times) - start >= 0.45, "ten requests, 0.05 s apart"
    start = time.monotonic()
    asked = requests([f"more {n}" for n in range(6)], generation=Generation(max_tokens=100))
    run_blocking(asked, client(server), store, concurrency=6, tpm=60_000)
    assert 0.4 <= time.monotonic() - start < 3, "about 100 tokens each at 1,000 a second"


def test_the_same_request_twice_is_asked_once(server, store):
    asked = requests(["a"]) * 50
    got = run_blocking(asked, client(server), store, concurrency=8)
    assert server.calls["a"] == 1 and (got.known, got.asked) == (49, 1)


def test_pictures_are_loaded_a_few_at_a_time(store):
    loaded, lock = [0, 0], threading.Lock()

    def load() -> bytes:
        with lock:
            loaded[0] += 1
            loaded[1] = max(loaded[1], loaded[0] - sum(slow.calls.values()))
        return b"x" * 1000

    def many():
        for n in range(60):
            digest = hashlib.sha256(str(n).encode()).hexdigest()
            yield Request(f"i{n}", "m", "full", (Picture(digest, "image/png", load), f"q{n}"))

    with FaultServer(delay=0.02) as slow:
        got = run_blocking(many(), client(slow), store, concurrency=5)
    assert got.outcomes == {"ok": 60} and loaded[0] == 60
    assert loaded[1] <= 5 and slow.peak <= 5


def test_a_picture_that_cannot_be_read_is_named(server, store):
    def load() -> bytes:
        raise FileNotFoundError("p.png")

    asked = [Request("item 7", "m", "full", (Picture("0", "image/png", load), "q"))]
    with pytest.raises(AuditError, match="picture of item 'item 7' cannot be read"):
        run_blocking(asked, client(server), store)


def test_the_key_is_in_no_error_and_not_in_the_store(server, store, tmp_path):
    texts = ["1 <<echo>>", "2 <<echo_400>>", "3 say A", f"4 <<broken>> {KEY[:4]}"]
    run_blocking(requests(texts), client(server), store, concurrency=2, max_attempts=2, backoff=0.01)
    assert KEY not in repr(store.failures()) + repr(list(store.rows())) + repr(client(server))
    store.close()
    for path in tmp_path.iterdir():
        assert KEY.encode() not in path.read_bytes(), path


def test_progress_is_told_now_and_then_and_at_the_end(store):
    lines = []
    with FaultServer(delay=0.05) as slow:
        run_blocking(
            requests(map(str, range(40))),
            client(slow),
            store,
            concurrency=4,
            every=0.15,
            say=lambda *a: lines.append(a),
        )
    assert 2 <= len(lines) <= 8
    done, total, failed, rate = lines[-1]
    assert (done, total, failed) == (40, 40, 0) and rate > 1
    assert [line[0] for line in lines] == sorted(line[0] for line in lines)


def test_a_run_inside_a_running_loop_as_in_a_notebook(server, store):
    async def notebook() -> object:
        return run_blocking(requests(map(str, range(30))), client(server), store, concurrency=4)

    assert asyncio.run(notebook()).outcomes == {"ok": 30}
    assert len(store) == 30, "the store was opened by this thread and written by another"

    async def stopped() -> object:
        return run_blocking(requests(["<<key>>"]), client(server), store)

    with pytest.raises(StopRun, match="answers 401"):
        asyncio.run(stopped())


@pytest.mark.parametrize("where", ["script", "coroutine", "notebook"])
def test_an_interrupt_ends_cleanly_and_keeps_what_was_answered(store, where):
    import _thread

    threads = threading.active_count()
    with FaultServer(delay=0.02) as slow:
        asked = requests(map(str, range(3000)))

        def interrupt() -> None:  # once something was answered, however slow the machine
            end = time.monotonic() + 20
            while sum(slow.calls.values()) < 8 and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(0.1)
            _thread.interrupt_main()

        timer = threading.Thread(target=interrupt)
        timer.start()

        async def inside() -> None:
            run_blocking(asked, client(slow), store, concurrency=4)

        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            if where == "script":
                run_blocking(asked, client(slow), store, concurrency=4)
            elif where == "coroutine":
                asyncio.run(inside())
            else:  # a kernel's loop leaves the signal to Python
                with contextlib.closing(asyncio.new_event_loop()) as loop:
                    loop.run_until_complete(inside())
        assert time.monotonic() - start < 25
        kept = len(store)
        assert 4 <= kept < 3000
        got = run_blocking(asked[: kept + 20], client(slow), store, concurrency=16)
    assert got.known >= kept - 20 and len(store) >= kept + 20 - got.failed
    timer.join()
    assert threading.active_count() <= threads + 8


def test_an_error_of_the_plan_ends_the_run(server, store):
    def broken():
        yield from requests(["a", "b"])
        raise AuditError("the table ends early", file="items.tsv")

    with pytest.raises(AuditError, match="ends early"):
        run_blocking(broken(), client(server), store, concurrency=4)
    assert len(store) <= 2

    async def awaited() -> object:
        return await run(requests(["a", "b"]), client(server), store)

    assert asyncio.run(awaited()).failed == 0


# --------------------------------------------------------------------------------------------------- log-probabilities


def tokens(*named: str, top: dict[str, float], own: float | None = None) -> list[dict]:
    entries = [{"token": t, "logprob": v} for t, v in top.items()]
    own = top.get(named[-1], -9.0) if own is None else own
    return [{"token": t, "logprob": own, "top_logprobs": entries} for t in named]


def test_letters_are_summed_over_variants_and_bounded_where_not_listed():
    import math

    got = letter_logprobs(tokens("B", top={"B": -0.5, " B": -2.0, "b": -3.0, "A": -1.5, "x": -4.0}), "ABC", "B")
    assert got["B"][0] == pytest.approx(math.log(math.exp(-0.5) + math.exp(-2) + math.exp(-3)))
    assert got["A"] == (-1.5, False) and got["C"] == (-4.0, True)
    assert margin(got) == (pytest.approx(got["B"][0] + 1.5), False)
    assert margin({"A": (-0.1, False), "B": (-4.0, True), "C": (-4.0, True)}) == (pytest.approx(3.9), True)
    assert margin({"A": (-4.0, True), "B": (-4.0, True)}) is margin(None) is margin({"A": (-1.0, False)}) is None


def test_the_sampled_token_from_below_the_list_bounds_nothing():
    top = {"A": -0.2, "B": -2.0, "D": -7.0}
    got = letter_logprobs(tokens("D", top=top), "ABCD", "D", asked=2)
    assert got == {"A": (-0.2, False), "B": (-2.0, False), "C": (-2.0, True), "D": (-7.0, False)}


@pytest.mark.parametrize(
    ("first", "text", "there"),
    [
        (["B"], "B", True), ([" B"], " B.", True), (["(", "B"], "(B)", True), (["B"], "B. blue", True),
        (["b"], "b", True), (["A"], "A dog is shown", False), (["The"], "The answer is B", False),
        (["<think>"], "B", False), (["E"], "E", False), (["Blue"], "Blue", False),
    ],
)  # fmt: skip
def test_margins_only_where_the_reply_opens_with_a_bare_letter(first, text, there):
    assert (letter_logprobs(tokens(*first, top={"A": -1.0, "B": -0.5}), "ABCD", text) is not None) == there


def test_logprobs_ride_on_the_reply_when_asked_for(server):
    asked = Generation(logprobs=True, top_logprobs=4)
    got = one(server, "say B", generation=asked, letters="ABC")
    assert got.letter_logprobs["C"] == (-4.0, True) and got.letter_logprobs["A"] == (-1.5, False)
    assert one(server, "say B", letters="ABC").letter_logprobs is None
    server.logprobs = False
    assert one(server, "say B", generation=asked, letters="ABC").letter_logprobs is None


# ------------------------------------------------------------------------------------------------------------- canary


def test_canary_of_a_sound_endpoint(server):
    got = canary_blocking(
        client(server), "m", conditions=["full", "blind"], generation=Generation(logprobs=True, top_logprobs=4)
    )
    assert [c.verdict for c in got.checks] == ["ok", "ok", "warn", "ok"], "it says B to red and to blue"
    assert got.logprobs and got.worst == "warn" and "prompt tokens" in str(got)
    assert max(b["max_tokens"] for b in server.bodies) <= 16


def test_canary_of_an_endpoint_that_loses_lists():
    with FaultServer(drops_lists=True) as lossy:
        got = canary_blocking(client(lossy), "m")
        assert [c.verdict for c in got.checks] == ["warn"]
        with pytest.raises(AuditError, match="pictures do not reach model 'm'"):
            canary_blocking(client(lossy), "m", conditions=["full"])
        assert canary_blocking(client(lossy), "m", conditions=["full"], allow_unseen=True).worst == "fail"


def test_canary_of_a_text_only_and_of_a_silent_endpoint():
    with FaultServer(vision=False, logprobs=False) as text_only:
        got = canary_blocking(client(text_only), "m", generation=Generation(logprobs=True))
        assert not got.logprobs and got.checks[-1].verdict == "warn"
        assert len(text_only.bodies) == 2 and all("image_url" not in str(b) for b in text_only.bodies)
        with pytest.raises(AuditError, match="takes no images"):
            canary_blocking(client(text_only), "m", conditions=["gray"])
