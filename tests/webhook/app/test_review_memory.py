"""Of reviews that make much of memory one goes on alone, and ends when it makes too much."""

from __future__ import annotations

import threading
import time

import pytest

from tests.patience import PATIENCE_SECONDS
from webhook.app.review_memory import (
    ALONE_BYTES_MAX,
    BLOCK_BYTES,
    LIGHT_SECONDS,
    TOGETHER_BYTES_MAX,
    ReviewMemory,
)
from webhook.rego.errors import EvaluationError

LONG = 1.0


class Held:
    """The memory that a process reports."""

    def __init__(self) -> None:
        self.resident = self.decoded = 0
        self.blocks = 0
        self.memory = ReviewMemory(lambda: self.decoded, lambda: self.resident, lambda: self.blocks)
        self.memory.begin()

    def look(self, review: object, worked_seconds: float = LONG, until: float = 0.0) -> None:
        self.memory.look(review, worked_seconds, until or time.monotonic() + PATIENCE_SECONDS)


def test_who_makes_too_much_alone_ends_and_what_follows_of_it_begins_anew() -> None:
    held = Held()
    held.resident = TOGETHER_BYTES_MAX + 1
    held.look("a")
    held.resident += ALONE_BYTES_MAX
    held.look("a")
    held.resident += 1
    with pytest.raises(EvaluationError, match="made more than 64 MiB") as raised:
        held.look("a")
    assert raised.value.code == "eval_cancel_error"
    held.look("a")
    held.resident += ALONE_BYTES_MAX
    held.look("a")


def test_what_is_decoded_meanwhile_is_not_laid_to_a_review() -> None:
    held = Held()
    held.resident = held.decoded = 1 << 30
    held.look("a")
    held.look("b")
    held.resident += TOGETHER_BYTES_MAX + 1
    held.look("b")
    with pytest.raises(EvaluationError, match="deadline"):
        held.look("a", until=time.monotonic())


def test_who_has_hardly_worked_waits_for_nobody() -> None:
    held = Held()
    held.resident = TOGETHER_BYTES_MAX + 1
    held.look("a")
    held.look("b", LIGHT_SECONDS / 2, until=time.monotonic())
    with pytest.raises(EvaluationError, match="deadline"):
        held.look("b", until=time.monotonic())


def test_the_others_wait_until_that_one_has_ended() -> None:
    held = Held()
    held.resident = TOGETHER_BYTES_MAX + 1
    held.look("a")
    with pytest.raises(EvaluationError, match="deadline"):
        held.look("b", until=time.monotonic())
    went_on = threading.Event()

    def go_on() -> None:
        held.look("b")
        went_on.set()

    thread = threading.Thread(target=go_on)
    thread.start()
    assert not went_on.wait(0.05)
    held.memory.end("b")
    held.memory.end("a")
    assert went_on.wait(PATIENCE_SECONDS)
    thread.join()
    held.resident += ALONE_BYTES_MAX + 1
    with pytest.raises(EvaluationError, match="made more"):
        held.look("b")


def test_a_process_that_stops_keeps_nobody_waiting() -> None:
    held = Held()
    held.resident = TOGETHER_BYTES_MAX + 1
    held.look("a")
    waiting = threading.Thread(target=held.look, args=("b",))
    waiting.start()
    held.memory.wake()
    waiting.join(PATIENCE_SECONDS)
    assert not waiting.is_alive()


def test_objects_count_where_the_process_does_not_grow_by_them() -> None:
    held = Held()
    held.blocks = TOGETHER_BYTES_MAX // BLOCK_BYTES + 1
    held.look("a")
    with pytest.raises(EvaluationError, match="deadline"):
        held.look("b", until=time.monotonic())
