"""Requests that wait for the thread: each user's behind its own, and answered before they are given up."""

import asyncio
import json
import math
import time
from typing import TYPE_CHECKING

import pytest

from tests.patience import turns_until
from tests.webhook.server.crowds import beginning, refused, sent_by
from tests.webhook.server.paused import PausedTransport, Port
from webhook.api.admission import AdmissionRequest, AdmissionResponse
from webhook.server.http import request_queue
from webhook.server.http.fair_queue import FairQueue, Flow
from webhook.server.responsibility import NOTHING_KNOWN

if TYPE_CHECKING:
    from webhook.server.http.connection import Connection

SECONDS = 0.05
"""Of a decision here: longer than a slice of time."""


class Slow:
    """Takes its time on the thread that answers, and notes whose requests it has answered."""

    def __init__(self) -> None:
        self.answered: list[str] = []

    def __call__(
        self, request: AdmissionRequest, query: bytes, received_at: float
    ) -> AdmissionResponse:
        """Allow it."""
        time.sleep(SECONDS)
        self.answered.append(request.username)
        return AdmissionResponse(request.uid, allowed=True)


def request_of(user: str, timeout: str) -> bytes:
    """A whole request."""
    body = beginning(user)
    head = f"POST /v1/admit?timeout={timeout} HTTP/1.1\r\nHost: x\r\n"
    fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + fields).encode() + body


def answers(port: Port, users: list[str], timeout: str) -> list[tuple[int, dict[str, object]]]:
    """Returns the answers to these users, who send at the same moment."""

    async def run() -> list[tuple[int, dict[str, object]]]:
        connected: list[tuple[Connection, PausedTransport]] = []
        for user in users:
            connection, transport = port.connect()
            connected.append((connection, transport))
            connection.receive(request_of(user, timeout))
        await turns_until(lambda: all(transport.sent for _, transport in connected))
        for connection, _ in connected:
            connection.connection_lost(None)
        return [sent_by(transport) for _, transport in connected]

    found = asyncio.run(run())
    assert port.is_as_at_the_start()
    return found


def undecided(
    given: list[tuple[int, dict[str, object]]],
) -> list[tuple[int, dict[str, object]]]:
    """The answers that do not allow."""
    return [
        (code, document)
        for code, document in given
        if '"allowed": true' not in json.dumps(document)
    ]


def test_what_waits_behind_its_users_own_is_refused_before_its_time_is_over() -> None:
    """Late requests were decided in order: the API server had given them up, and stored them."""
    decide = Slow()
    given = answers(Port(decide=decide), ["mallory"] * 40, "1s")
    late = undecided(given)
    assert len(late) + len(decide.answered) == len(given)
    assert decide.answered
    assert late, "all together take twice the time that each has"
    assert [refused(answer) for answer in late] == [429] * len(late)


def test_what_waits_behind_others_alone_is_left_to_failure_policy() -> None:
    decide = Slow()
    given = answers(Port(decide=decide), [f"user-{number}" for number in range(40)], "1s")
    late = undecided(given)
    assert late
    assert {code for code, _ in late} == {504}


def test_nobody_waits_behind_all_requests_of_another() -> None:
    decide = Slow()
    answers(Port(decide=decide), ["mallory"] * 8 + ["bob"], "30s")
    assert decide.answered.index("bob") <= 2, "one was begun before, and one of each had its turn"
    assert decide.answered.count("mallory") == 8


def test_what_leaves_the_queue_takes_nobody_elses_place() -> None:
    queue: FairQueue[int] = FairQueue(waiting_max=9, workers=2)
    for number in range(6):
        queue.put(Flow(f"user-{number % 2}", f"namespace-{number % 3}"), number)
    assert sorted(queue.remove(lambda number: number < 3)) == [0, 1, 2]
    assert sorted(queue) == [3, 4, 5]
    assert queue.size == 3
    assert queue.before(Flow("user-1", "")).places_taken == 2


class Clock:
    """Time that goes on by hand, of the world and of this thread's processor."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0

    def monotonic(self) -> float:
        """Return the time of the world."""
        return self.now

    def thread_time(self) -> float:
        """Return the processor time of this thread."""
        return self.worked


class Timed:
    """A request that takes so much time, and so much of it of a processor."""

    before = NOTHING_KNOWN
    run_until = math.inf

    def __init__(
        self,
        clock: Clock,
        answered: list[str],
        user: str,
        seconds: float,
        worked: float,
        size: int = 0,
    ) -> None:
        self.flow = Flow(user, "a")
        self.size = size
        self._clock, self._answered = clock, answered
        self._seconds, self._worked = seconds, worked

    def run(self) -> None:
        """Take the time."""
        self._clock.now += self._seconds
        self._clock.worked += self._worked
        self._answered.append(self.flow.user)

    def give_up(self) -> None:
        """Do nothing: none has an end."""

    def abandon(self) -> None:
        """Do nothing: none has a fault."""


def test_who_had_to_wait_for_a_processor_pays_nothing_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that stood still for 100 ms had its user's next ones behind 100 ms of all others'."""
    clock, answered = Clock(), list[str]()
    monkeypatch.setattr(request_queue, "time", clock)
    queue = request_queue.RequestQueue(lambda error, _: pytest.fail(str(error)))

    def put(user: str, seconds: float, worked: float) -> None:
        queue.put(Timed(clock, answered, user, seconds, worked))

    put("mallory", 0.01, 0.01)  # The slice is over, and what waits is shared out.
    for _ in range(4):
        put("mallory", 0.002, 0.002)
    put("bob", 0.1, 0.001)
    put("bob", 0.001, 0.001)
    for _ in range(20):
        queue.answer(0.005)
    assert not len(queue)
    assert answered == ["mallory", "mallory", "bob", "bob", "mallory", "mallory", "mallory"]


def test_what_waits_behind_a_long_request_is_shared_out_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small request stood behind those of 60 KB that came before it, of users nobody knew."""
    clock, answered = Clock(), list[str]()
    monkeypatch.setattr(request_queue, "time", clock)
    queue = request_queue.RequestQueue(lambda error, _: pytest.fail(str(error)))
    for number in range(3):
        queue.put(Timed(clock, answered, f"mallory-{number}", 0.004, 0.004, size=60_000))
    queue.put(Timed(clock, answered, "bob", 0.0003, 0.0003, size=600))
    queue.answer(0.005)
    assert answered[:2] == ["mallory-0", "bob"]
    while queue:
        queue.answer(0.005)
    assert answered[2:] == ["mallory-1", "mallory-2"]


def flooded(clock: Clock, answered: list[str]) -> request_queue.RequestQueue:
    """Returns a queue that has answered bob's request between long ones of two others."""
    queue = request_queue.RequestQueue(lambda error, _: pytest.fail(str(error)))
    for user, seconds in (
        ("mallory", 0.004),
        ("bob", 0.0005),
        ("trudy", 0.004),
        ("mallory", 0.004),
    ):
        queue.put(Timed(clock, answered, user, seconds, seconds, size=60_000))
        queue.answer(0.001)
    answered.clear()
    return queue


def test_requests_of_a_flood_count_although_none_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each found the queue empty, and counted for nobody; who sent small ones had used the most."""
    clock, answered = Clock(), list[str]()
    monkeypatch.setattr(request_queue, "time", clock)
    queue = flooded(clock, answered)
    for user in ("mallory", "trudy", "bob"):
        queue.put(Timed(clock, answered, user, 0.0005, 0.0005, size=600))
    while queue:
        queue.answer(0.001)
    assert answered[0] == "bob"


def test_a_small_request_is_answered_as_it_arrives_if_it_is_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, answered = Clock(), list[str]()
    monkeypatch.setattr(request_queue, "time", clock)
    queue = flooded(clock, answered)

    def ahead(user: str, size: int) -> float:
        request = Timed(clock, answered, user, 0.0005, 0.0005, size=size)
        queue.put(request)
        return queue.answer_ahead(request)

    assert not ahead("trudy", 60_000), "it is large"
    assert ahead("bob", 600) == pytest.approx(0.0005)
    assert not ahead("trudy", 600), "it waits behind its user's other one"
    assert answered == ["bob"]
    while queue:
        queue.answer(0.001)
    assert answered == ["bob", "trudy", "trudy"]
    clock.now += request_queue.SHARED_SECONDS
    assert not ahead("bob", 600), "no request has taken long lately"
    assert not queue.is_shared


def test_where_nobody_else_has_a_request_under_way_nothing_is_shared_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, answered = Clock(), list[str]()
    monkeypatch.setattr(request_queue, "time", clock)
    queue = request_queue.RequestQueue(lambda error, _: pytest.fail(str(error)), lambda: False)
    queue.put(Timed(clock, answered, "mallory", 0.004, 0.004))
    queue.answer(0.005)
    assert answered == ["mallory"]
    assert not queue.is_shared
