"""Large bodies are decoded the smallest first, and the huge ones in nobody's way."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.serving import pod, review
from tests.patience import PATIENCE_SECONDS
from tests.patience import until as waited_for
from webhook.api.admission import TEXT_CHARACTERS_MAX, UndecidableReview
from webhook.server.decoding import HUGE_BYTES, Decoded, Decoding, Memory, NoRoom

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

MIB = 1024 * 1024


def body(size: int, user: str = "alice") -> bytes:
    document = review(pod(), userInfo={"username": user})
    document["request"]["object"]["data"] = ["x" * MIB] * (size // MIB) + ["x" * (size % MIB)]
    return json.dumps(document).encode()


def until() -> float:
    return time.monotonic() + PATIENCE_SECONDS


class Held:
    """Decoding whose threads begin when the test says so."""

    def __init__(
        self, memory: Memory | None = None, rests_of: Callable[[str], int] = lambda _: 0
    ) -> None:
        self.go = threading.Event()
        self.given_back = threading.Event()
        self.decoding = Decoding(
            body_max=64 * MIB,
            memory=memory,
            begin=self._begin,
            give_back=self.given_back.set,
            rests_of=rests_of,
        )

    def _begin(self) -> None:
        assert self.go.wait(PATIENCE_SECONDS)


def then(future: Future[Decoded], order: list[str], name: str) -> Future[Decoded]:
    """The same, which notes its name when it is done."""
    future.add_done_callback(lambda _: order.append(name))
    return future


def test_the_smallest_is_decoded_first_and_those_of_strangers_last() -> None:
    held = Held()
    order: list[str] = []
    bodies = {"large": 900_000, "small": 100_000, "middle": 500_000}
    stranger = held.decoding.decode(body(70_000), until(), "stranger")
    futures = [then(stranger, order, "stranger")]
    for name, size in bodies.items():
        futures.append(then(held.decoding.decode(body(size), until()), order, name))
    held.go.set()
    for future in futures:
        assert future.result(PATIENCE_SECONDS).request is not None
    assert order == ["small", "middle", "large", "stranger"]
    held.decoding.stop()


def test_one_user_s_bodies_rest_while_another_s_reviews_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bodies that were then refused for want of a place took the processor from the reviews."""
    monkeypatch.setattr("webhook.server.decoding.REST_SECONDS_MAX", 10 * PATIENCE_SECONDS)
    held = Held(rests_of=lambda user: 10**9 if user == "mallory" else 0)
    small = held.decoding.decode(body(100_000, "mallory"), until())
    large = held.decoding.decode(body(900_000), until())
    held.go.set()
    assert large.result(PATIENCE_SECONDS).request is not None
    assert not small.done()
    held.decoding.stop()


def test_a_rest_ends() -> None:
    held = Held(rests_of=lambda _: 5)
    held.go.set()
    for _ in range(3):
        decoded = held.decoding.decode(body(100_000, "mallory"), until())
        assert decoded.result(PATIENCE_SECONDS).request is not None
    held.decoding.stop()


def test_nobody_waits_behind_a_huge_one_that_waits_for_memory() -> None:
    memory = Memory(64 * MIB)
    held = Held(memory)
    taken = memory.take(50 * MIB)
    huge = held.decoding.decode(body(20 * MIB), until())
    other = held.decoding.decode(body(2 * MIB), until())
    small = held.decoding.decode(body(100_000), until())
    held.go.set()
    assert small.result(PATIENCE_SECONDS).request is not None
    decoded = other.result(PATIENCE_SECONDS)
    assert decoded.request is not None, "smaller than what waits before it"
    assert not huge.done()
    memory.give(taken)
    memory.give(decoded.room)
    assert huge.result(PATIENCE_SECONDS).request is not None
    held.decoding.stop()


def test_huge_ones_together_leave_memory_to_others() -> None:
    memory = Memory(64 * MIB)
    held = Held(memory)
    held.go.set()
    first = held.decoding.decode(body(40 * MIB), until()).result(PATIENCE_SECONDS)
    assert first.request is not None
    left = memory.bytes_max - memory.taken
    late = held.decoding.decode(body(left - MIB), time.monotonic() + 0.1)
    assert isinstance(late.result(PATIENCE_SECONDS).error, NoRoom)
    memory.take(left - MIB)
    held.decoding.stop()


def test_what_was_answered_is_freed_beside_once_nobody_has_it() -> None:
    """To free a million parts takes 40 ms: on the thread that answers, everybody waited for it."""
    memory = Memory()
    held = Held(memory)
    held.go.set()
    decoded = held.decoding.decode(body(4 * MIB), until()).result(PATIENCE_SECONDS)
    assert decoded.request is not None
    reviewed, room = decoded.request.object, decoded.room
    del decoded
    held.decoding.free(room)
    assert reviewed is not None
    assert len(reviewed["data"]) == 5, "it is still looked at"
    assert memory.taken
    del reviewed
    waited_for(lambda: not memory.taken, "its room is given back")
    assert room.large == []
    held.decoding.stop()


def test_an_error_keeps_no_body() -> None:
    """Six of 38 MiB that were refused took 540 MiB together."""
    held = Held()
    held.go.set()
    longest = body(0).replace(b'[""]', b'["' + b"x" * (TEXT_CHARACTERS_MAX + 1) + b'"]')
    error = held.decoding.decode(longest, until()).result(PATIENCE_SECONDS).error
    assert isinstance(error, UndecidableReview)
    assert error.__traceback__ is None
    assert error.__context__ is None
    held.decoding.stop()


def test_memory_of_huge_ones_is_given_back_once_there_are_no_more() -> None:
    held = Held()
    held.go.set()
    assert held.decoding.decode(body(2 * HUGE_BYTES), until()).result(PATIENCE_SECONDS).request
    assert held.given_back.wait(PATIENCE_SECONDS)
    held.decoding.stop()


def test_what_waits_when_all_ends_is_cancelled() -> None:
    memory = Memory(MIB)
    held = Held(memory)
    memory.take(MIB)
    waiting = held.decoding.decode(body(100_000), until())
    held.go.set()
    held.decoding.stop()
    with pytest.raises(Exception) as raised:
        waiting.result(PATIENCE_SECONDS)
    assert type(raised.value).__name__ == "CancelledError"


def test_who_had_less_decoded_comes_before_who_had_more() -> None:
    held = Held()
    order: list[str] = []
    futures = []
    for user, size in (("a", 100_000), ("a", 110_000), ("a", 120_000), ("b", 200_000)):
        raw = body(size).replace(b'"username": "alice"', b'"username": "%s"' % user.encode())
        futures.append(then(held.decoding.decode(raw, until()), order, user))
    held.go.set()
    for future in futures:
        assert future.result(PATIENCE_SECONDS).request is not None
    assert order == ["a", "b", "a", "a"]
    held.decoding.stop()


@pytest.mark.parametrize(("holder", "responsible"), [("alice", "requester"), ("other", "others")])
def test_who_has_taken_all_the_memory_has_nobody_else_to_blame(
    holder: str, responsible: str
) -> None:
    memory = Memory(MIB)
    memory.take(MIB, holder)
    held = Held(memory)
    held.go.set()
    late = held.decoding.decode(body(100_000), time.monotonic())
    error = late.result(PATIENCE_SECONDS).error
    assert isinstance(error, NoRoom)
    assert error.responsible == responsible
    held.decoding.stop()


def test_of_several_users_who_crowd_each_other_out_each_is_responsible() -> None:
    """Each user's last body, and of three users every body, was left to failurePolicy."""
    memory = Memory(MIB)
    memory.take(MIB, "other")
    held = Held(memory)
    now = time.monotonic()
    users = [f"user-{number}" for number in range(7)]
    late = [held.decoding.decode(body(100_000, user), now) for _ in range(3) for user in users]
    held.go.set()
    errors = [future.result(PATIENCE_SECONDS).error for future in late]
    assert all(isinstance(error, NoRoom) for error in errors)
    responsible = [error.responsible for error in errors if isinstance(error, NoRoom)]
    assert responsible == ["requester"] * 21
    held.decoding.stop()
