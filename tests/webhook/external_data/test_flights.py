"""Real providers are asked over real sockets: who shares a request, what is kept, how it is bounded."""

import asyncio
import base64
import datetime as dt
import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.patience import PATIENCE_SECONDS, until
from tests.provider_process import ProviderProcess, make_authority
from webhook.certificates import pairs
from webhook.cluster.event_loop import EventLoop
from webhook.external_data import flights
from webhook.external_data.cache import ResponseCache
from webhook.external_data.connection import ProviderConnection
from webhook.external_data.exchange import ProviderAnswers, ProviderRequest, ProviderResponse
from webhook.external_data.flights import Flights, ProviderRound
from webhook.external_data.provider import DataProvider, read_provider
from webhook.external_data.suspension import FAULTS_MAX
from webhook.log import Log
from webhook.metrics.providers import (
    PROVIDER_ABANDONED,
    PROVIDER_KEYS,
    PROVIDER_REQUESTS,
    PROVIDER_WAITS_ENDED,
)
from webhook.metrics.registry import Registry


def encoded(certificates: bytes) -> str:
    """Returns a ``caBundle``."""
    return base64.b64encode(certificates).decode()


FOREIGN = encoded(make_authority().certificate)


class Awaited(NamedTuple):
    """The answer to one request, when it is there."""

    round: ProviderRound
    answers: Future[ProviderAnswers]

    def result(self, seconds: float) -> ProviderResponse:
        """The answer."""
        (answer,) = self.answers.result(seconds).values()
        return answer

    def cancel(self) -> bool:
        """Wait no longer."""
        return self.round.cancel()


class Caller:
    """A thread that asks providers, with the Providers that it knows."""

    def __init__(self, pair: Any = None, clock: Callable[[], float] | None = None) -> None:
        self.providers: dict[str, DataProvider] = {}
        self.registry = Registry()
        self.lines: list[bytes] = []
        self.cache = ResponseCache(
            value_seconds=180.0, error_seconds=10.0, clock=clock or time.monotonic
        )
        self.flights = Flights(
            lambda: self.providers,
            self.cache,
            self.registry,
            Log(self.lines.append).logger("providers"),
            pair=pair,
        )

    def put(self, process: ProviderProcess, name: str = "p", **spec: Any) -> None:
        """Put a Provider in force that is this process."""
        self.providers = {**self.providers, name: read_provider(process.manifest(name, **spec))}

    def begin(self, *keys: str, name: str = "p", **options: Any) -> Awaited:
        """Ask for keys."""
        begun = self.flights.round(**options)
        begun.begin(ProviderRequest(name, keys))
        answers: Future[ProviderAnswers] = Future()
        begun.add_done_callback(lambda done: answers.set_result(done.answers))
        return Awaited(begun, answers)

    def ask(self, *keys: str, name: str = "p", **options: Any) -> ProviderResponse:
        """Returns the answer of a provider."""
        return self.begin(*keys, name=name, **options).result(PATIENCE_SECONDS)

    def counted(self, outcome: str) -> int:
        """Requests that came to this, as a scrape shows them."""
        self.flights.refresh()
        return self.registry.counters.get(PROVIDER_REQUESTS, {}).get(("p", outcome), 0)


@contextmanager
def running(**options: Any) -> Iterator[Caller]:
    made = Caller(**options)
    tasks: list[asyncio.Task[None]] = []
    loops: list[asyncio.AbstractEventLoop] = []
    started = threading.Event()

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        async with asyncio.TaskGroup() as group:
            tasks.append(group.create_task(made.flights.run()))
            started.set()

    def run() -> None:
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            runner.run(main())

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    try:
        yield made
    finally:
        loops[0].call_soon_threadsafe(tasks[0].cancel)
        thread.join()
    assert not [line for line in made.lines if b"stacktrace" in line], made.lines


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    with ProviderProcess(tmp_path_factory.mktemp("provider"), authority=make_authority()) as run:
        yield run


@pytest.fixture
def caller(process: ProviderProcess) -> Iterator[Caller]:
    process.forget()
    with running() as made:
        made.put(process, timeout=30)
        yield made


def keys_requested(process: ProviderProcess) -> list[list[str]]:
    return [request["keys"] for request in process.requests()]


def test_keys_are_asked_in_their_order_and_known_ones_come_first(caller, process):
    assert caller.ask("o/b", "o/a", "o/b").responses == (
        *(("o/b", "o/b is known"), ("o/a", "o/a is known"), ("o/b", "o/b is known")),
    )
    response = caller.ask("o/c", "o/a")
    assert (response.responses, response.status_code, response.is_cached) == (
        (("o/a", "o/a is known"), ("o/c", "o/c is known")),
        200,
        False,
    )
    response = caller.ask("o/c", "o/b")
    assert (response.status_code, response.is_cached, response.is_idempotent) == (0, True, True)
    assert keys_requested(process) == [["o/b", "o/a", "o/b"], ["o/c"]]
    assert caller.registry.counters[PROVIDER_KEYS] == {("asked",): 4, ("cached",): 3}


def test_equal_questions_at_once_are_one_request_and_others_are_not_joined(caller, process):
    begun = [caller.begin("slow500/a", "e/b") for _ in range(5)]
    begun.append(caller.begin("e/b", "slow500/a"))
    responses = {future.result(PATIENCE_SECONDS).responses for future in begun}
    assert len(responses) == 2
    assert sorted(keys_requested(process)) == [["e/b", "slow500/a"], ["slow500/a", "e/b"]]


def test_one_key_that_fails_a_request_fails_no_other(caller):
    bad, good = caller.begin("system/a", "f/b"), caller.begin("f/b")
    assert bad.result(PATIENCE_SECONDS).system_error == "system/a cannot be looked up"
    assert good.result(PATIENCE_SECONDS).responses == (("f/b", "f/b is known"),)


def test_whoever_gives_up_leaves_an_answer_for_the_next(caller, process):
    first = caller.begin("slow500/late")
    until(lambda: keys_requested(process), "it is asked")
    assert first.cancel()
    assert caller.registry.counters[PROVIDER_WAITS_ENDED] == {(): 1}
    until(lambda: caller.cache.look("p", ["slow500/late"]).items, "it is kept")
    assert caller.ask("slow500/late").is_cached
    assert keys_requested(process) == [["slow500/late"]]


@pytest.mark.parametrize(("last", "count"), [("hang/a", 1), ("slow500/a", 2)])
def test_the_last_answer_under_way_has_all_kept_also_where_it_fails(
    caller, process, monkeypatch, last, count
):
    swept = threading.Event()
    monkeypatch.setattr(caller.cache, "sweep", swept.set)
    caller.put(process, timeout=1)
    long = caller.begin(last)
    until(lambda: keys_requested(process), "it is asked")
    assert caller.ask("n/0").responses
    long.result(PATIENCE_SECONDS)
    until(lambda: len(caller.cache) == count, "all are kept, and nobody has asked again")
    assert not swept.is_set()


def test_many_answers_are_kept_while_another_is_under_way(caller, process, monkeypatch):
    monkeypatch.setattr(flights, "LANDINGS_MAX", 2)
    caller.put(process, timeout=30)
    long = caller.begin("hang/a")
    until(lambda: keys_requested(process), "it is asked")
    for each in [caller.begin(f"n/{number}") for number in range(3)]:
        assert each.result(PATIENCE_SECONDS).responses
    until(lambda: len(caller.cache) >= 2, "two are kept, and nobody has asked again")
    assert not long.answers.done()
    long.cancel()


def test_a_provider_that_uses_most_of_its_timeout_is_reported_as_slow(caller, process):
    """Whether it answers just in time or just too late, admissions wait for it."""
    assert caller.flights.slow() == {}
    caller.put(process, timeout=1)
    caller.ask("slow700/a")
    assert caller.flights.slow()["p"] > 0.5
    caller.put(process, timeout=30)
    assert caller.flights.slow() == {}
    caller.providers = {}
    assert caller.flights.slow() == {}


def test_an_unknown_provider_is_reported_and_what_was_known_of_one_that_is_gone_stays(caller):
    caller.ask("g/a")
    caller.providers = {}
    assert caller.ask("g/a").responses == (("g/a", "g/a is known"),)
    response = caller.ask("g/a", "g/b")
    assert (response.responses, response.errors, response.status_code, response.system_error) == (
        *(None, None, 400, "key is not found in provider cache"),
    )
    assert caller.ask("a", name="nobody").status_code == 400
    assert caller.registry.counters[PROVIDER_REQUESTS]["_other", "unknown"] == 2


def test_what_another_generation_said_is_forgotten(caller, process):
    caller.ask("h/a")
    caller.put(process, timeout=29)
    assert not caller.ask("h/a").is_cached
    assert keys_requested(process) == [["h/a"], ["h/a"]]
    connections = [request["connection"] for request in process.requests()]
    assert len(set(connections)) == 2, "a client of its own"


def test_connections_are_kept(caller, process):
    for number in range(5):
        caller.ask(f"k/{number}")
    assert len({request["connection"] for request in process.requests()}) == 1


def test_all_connections_of_a_crowd_are_kept_for_the_next(caller, process):
    """With ten of them kept, most requests of eight admissions at once began with a handshake."""

    def crowd(name: str) -> set[int]:
        for waiting in [caller.begin(f"slow300/{name}-{number}") for number in range(20)]:
            assert waiting.result(PATIENCE_SECONDS).responses
        return {request["connection"] for request in process.requests()}

    connections = crowd("first")
    assert len(connections) > 10
    assert crowd("second") == connections


def test_a_mutator_has_what_is_said_now(caller, process):
    assert caller.ask("counted/a").responses == (("counted/a", "1"),)
    assert caller.ask("error/a", fresh=True).errors == (("error/a", "error/a is refused"),)
    assert not caller.ask("error/a", fresh=True).is_cached
    assert caller.ask("counted/a", fresh=True).is_cached, "what was said a moment ago"


def test_a_value_that_is_used_is_asked_for_again_before_it_is_too_old(process):
    now = [1000.0]
    process.forget()
    with running(clock=lambda: now[0]) as caller:
        caller.put(process, timeout=30)
        assert caller.ask("counted/r").responses == (("counted/r", "1"),)
        now[0] += 100
        assert caller.ask("counted/r").responses == (("counted/r", "1"),)
        until(lambda: len(process.requests()) == 2, "it is asked again")
        until(lambda: caller.ask("counted/r").responses == (("counted/r", "2"),), "kept anew")
        assert caller.ask("counted/r").is_cached
        assert keys_requested(process) == [["counted/r"], ["counted/r"]]


def test_a_provider_that_restarts_is_asked_again(caller, process):
    caller.ask("i/a")
    process.restart()
    assert caller.ask("i/b").responses == (("i/b", "i/b is known"),)


def test_a_provider_that_is_away_is_not_asked_for_a_while(caller, process):
    process.stop()
    try:
        for number in range(FAULTS_MAX):
            assert "connection refused" in caller.ask(f"away/{number}").system_error
        response = caller.ask("away/x")
        assert response.system_error.startswith("failed to send external data request: Post ")
        assert "not asked again for" in response.system_error
        assert caller.counted("suspended") == 1
    finally:
        process.start()
    until(lambda: caller.ask("away/y").responses, "it is asked again")
    assert any(b"provider answers again" in line for line in caller.lines)


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("plain/z", "failed to unmarshal external data response"),
        ("redirect/z", "redirects"),
        ("big/z", "it is over"),
    ],
)
def test_a_provider_that_answers_is_not_suspended_whatever_the_answer_is(
    caller, process, key, fault
):
    process.stop()
    try:
        for number in range(FAULTS_MAX):
            assert "connection refused" in caller.ask(f"away/{number}").system_error
    finally:
        process.start()
    until(lambda: fault in caller.ask(key).system_error, "it is asked again")
    assert caller.ask("a").responses == (("a", "a is known"),)


def test_beyond_its_bound_a_request_is_reported_at_once(caller, process, monkeypatch):
    monkeypatch.setattr(flights, "FLIGHTS_MAX", 4)
    askers = ["a", "a", "b", "c"]
    waiting = [caller.begin(f"slow1000/{n}", requester=name) for n, name in enumerate(askers)]
    until(lambda: len(process.requests()) == 4, "they are under way")
    refused = caller.begin("j/a", requester="d").result(PATIENCE_SECONDS).system_error
    assert "too many requests to provider p are under way" in refused
    assert all(future.result(PATIENCE_SECONDS).responses for future in waiting)
    assert caller.counted("crowded") == 1


def test_one_requester_leaves_half_of_the_places_to_others(caller, process, monkeypatch):
    monkeypatch.setattr(flights, "FLIGHTS_MAX", 8)
    waiting = [caller.begin(f"slow1000/{number}", requester="mallory") for number in range(8)]
    until(lambda: len(process.requests()) == 4, "half of them are under way")
    assert caller.begin("alices", requester="alice").result(PATIENCE_SECONDS).responses
    answers = [future.result(PATIENCE_SECONDS) for future in waiting]
    assert [bool(answer.responses) for answer in answers] == [True] * 4 + [False] * 4
    assert caller.counted("crowded") == 4


def test_of_requests_that_nobody_waits_for_the_oldest_end(caller, process, monkeypatch):
    monkeypatch.setattr(flights, "UNAWAITED_MAX", 2)
    begun = [caller.begin(f"hang/{number}") for number in range(4)]
    until(lambda: len(process.requests()) == 4, "they are under way")
    for future in begun:
        future.cancel()
    until(lambda: caller.registry.counters.get(PROVIDER_ABANDONED, {}).get((), 0) == 2, "two ended")


def test_a_name_that_is_looked_up_for_long_delays_no_other_provider(caller, process, monkeypatch):
    look_up, goes_on = socket.getaddrinfo, threading.Event()

    def slow(host, *rest, **options):
        if host == "slow.invalid" and not options.get("flags"):
            goes_on.wait(PATIENCE_SECONDS)
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return look_up(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    caller.put(process, "slow", url="https://slow.invalid/validate", timeout=30)
    caller.put(process, url=process.url.replace("127.0.0.1", "localhost"), timeout=30)
    waiting = [caller.begin(f"w/{number}", name="slow") for number in range(40)]
    try:
        assert caller.ask("l/a").responses
        assert not [each.result(0).system_error for each in waiting if each.answers.done()]
    finally:
        goes_on.set()
    for each in waiting:
        assert "lookup slow.invalid: no such host" in each.result(PATIENCE_SECONDS).system_error


def test_each_call_times_out_whether_others_are_under_way_or_none(caller, process):
    """One timer serves all calls of a provider."""
    caller.put(process, timeout=1)
    first = caller.begin("hang/a")
    time.sleep(0.3)
    second = caller.begin("hang/b")
    for waiting in (first, second, caller.begin("hang/c")):
        assert "no answer within 1 s" in waiting.result(PATIENCE_SECONDS).system_error
    assert caller.ask("t/a").responses


def test_too_many_keys_are_not_sent(caller, process):
    response = caller.ask(*(f"k{number}" for number in range(1001)))
    assert response.responses is None
    assert "1001 keys are asked for at once, and 1000 may be" in response.system_error
    assert keys_requested(process) == []


def test_neither_a_proxy_nor_other_authorities_count(caller, process, monkeypatch, tmp_path):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    (tmp_path / "roots.pem").write_bytes(process.authority.certificate)
    assert caller.ask("l/a").responses
    foreign = ProviderProcess(tmp_path, authority=make_authority())
    with foreign:
        caller.put(foreign, caBundle=process.ca_bundle)
        assert "tls: failed to verify certificate: x509: " in caller.ask("l/b").system_error


@pytest.mark.parametrize(
    ("names", "days", "why"),
    [
        (("elsewhere.example",), 30, "mismatch"),
        (("127.0.0.1",), -1, "expired"),
    ],
)
def test_a_certificate_is_for_the_host_and_in_its_time(caller, tmp_path, names, days, why):
    with ProviderProcess(tmp_path, authority=make_authority(names, days)) as foreign:
        caller.put(foreign)
        error = caller.ask("m/a").system_error
        assert "tls: failed to verify certificate: x509: " in error
        assert why in error


@pytest.mark.parametrize("is_first", [True, False])
def test_an_authority_that_replaces_one_of_its_name_is_tried_too(caller, process, is_first):
    both = [process.authority.certificate, make_authority().certificate]
    caller.put(process, caBundle=encoded(b"".join(both if is_first else reversed(both))))
    assert caller.ask("replaced/a").responses
    assert caller.ask("replaced/b").responses
    caller.put(process, caBundle=encoded(2 * make_authority().certificate + both[1]))
    assert "failed to verify certificate: x509" in caller.ask("replaced/c").system_error


def test_a_host_that_ends_with_a_dot_is_that_of_the_certificate(process, monkeypatch):
    known = socket.getaddrinfo

    def look_up(host: str, *args: Any, **options: Any) -> Any:
        if host == "localhost.":
            host = "localhost"
            if options.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "a name")
        return known(host, *args, **options | {"family": socket.AF_INET})

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with running() as caller:
        caller.put(process, url=f"https://localhost.:{process.port}/", timeout=30)
        assert caller.ask("dotted/a").system_error == ""


def test_a_host_beyond_ascii_is_named_as_resolvers_know_it(tmp_path, monkeypatch):
    known = socket.getaddrinfo

    def look_up(host: str, *args: Any, **options: Any) -> Any:
        if host != "b\u00fccher":
            return known(host, *args, **options)
        if options.get("flags"):
            raise socket.gaierror(socket.EAI_NONAME, "a name")
        return known("127.0.0.1", *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    authority = make_authority(("xn--bcher-kva",))
    with ProviderProcess(tmp_path, authority=authority) as process, running() as caller:
        caller.put(process, url=f"https://b\u00fccher:{process.port}/", timeout=30)
        assert caller.ask("named/a").system_error == ""
        (request,) = process.requests()
        assert request["host"] == f"xn--bcher-kva:{process.port}"


@pytest.mark.parametrize("password", ["secret", "sec@ret", "sec%40ret"])
def test_no_part_of_a_password_is_in_a_fault(caller, process, password):
    port = process.port
    caller.put(process, url=f"https://ada:{password}@127.0.0.1:{port}/?to=a@b", caBundle=FOREIGN)
    error = caller.ask("secret/a").system_error
    assert f'Post "https://ada:***@127.0.0.1:{port}/?to=a@b": tls: ' in error


def test_a_server_without_tls_gets_nothing(caller, process, tmp_path):
    with ProviderProcess(tmp_path, authority=None) as plain:
        caller.put(plain, caBundle=process.ca_bundle, timeout=1)
        response = caller.ask("n/a")
        assert response.system_error.startswith("failed to send external data request: Post ")
        assert plain.requests() == []


class Shown:
    """Shows a pair that a test may change."""

    def __init__(self) -> None:
        self.version = pairs.self_signed(["one"], dt.datetime.now(tz=dt.UTC))

    def lend(self, context: Any) -> None:
        pairs.show(context, self.version)


def test_a_provider_that_asks_is_shown_the_pair_that_is_served_now(tmp_path: Path):
    shown = Shown()
    first = shown.version
    second = pairs.self_signed(["two"], dt.datetime.now(tz=dt.UTC))
    (tmp_path / "trusted.pem").write_bytes(first.certificate + second.certificate)
    trusted = tmp_path / "trusted.pem"
    with (
        ProviderProcess(
            tmp_path / "p", authority=make_authority(), client_authority=trusted
        ) as provider,
        running(pair=shown) as caller,
    ):
        caller.put(provider, timeout=30)
        assert caller.ask("a").responses
        shown.version = second
        provider.restart()
        assert caller.ask("b").responses
        assert [request["client"] for request in provider.requests()] == ["one", "two"]
    with (
        ProviderProcess(
            tmp_path / "q", authority=make_authority(), client_authority=trusted
        ) as provider,
        running() as caller,
    ):
        caller.put(provider, timeout=30)
        response = caller.ask("a")
        assert response.responses is None
        assert response.system_error.startswith("failed to send external data request: Post ")


def test_whoever_waits_when_it_ends_is_reported(process):
    with running() as caller:
        caller.put(process, timeout=30)
        waiting = caller.begin("hang/end")
        until(process.requests, "it is under way")
    assert waiting.result(PATIENCE_SECONDS).responses is None


def test_whoever_waits_for_an_earlier_version_of_a_provider_is_reported_when_it_ends(process):
    process.forget()
    with running() as caller:
        caller.put(process, timeout=30)
        waiting = caller.begin("hang/earlier")
        until(process.requests, "it is under way")
        caller.put(process, timeout=29)
        assert caller.ask("v/a").responses
    assert waiting.answers.done()
    assert waiting.result(0).responses is None


@pytest.mark.parametrize("key", ["a", "cut/a", "hang/a"])
def test_what_has_ended_needs_no_collection_of_garbage(process, key):
    """A collection of all there is comes hours apart in a server."""
    made = (ProviderConnection, flights._Flight, ProviderRound)  # objects that refer to each other

    def kept() -> int:
        return sum(type(one) in made for one in gc.get_objects())

    gc.collect()
    before = kept()
    gc.disable()
    try:
        with running() as caller:
            caller.put(process, timeout=1)
            for number in range(3):
                caller.ask(f"{key}{number}")
            caller.providers = {}
            del caller
        until(lambda: kept() <= before, "nothing is kept")
    finally:
        gc.enable()
