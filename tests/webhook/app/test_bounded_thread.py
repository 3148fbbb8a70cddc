"""Work ends with its deadline, whatever it is."""

from __future__ import annotations

import contextlib
import queue
import threading

import pytest

from webhook.app.bounded_thread import BoundedThread

PATIENCE_SECONDS = 60


def forever() -> None:
    """Work that no exception of its own ends."""
    while True:
        with contextlib.suppress(Exception):
            sum(range(100))


def test_work_beyond_its_deadline_is_ended_and_the_next_is_done() -> None:
    thread = BoundedThread("test", waiting_max=2)
    endless = thread.submit(forever, 0.05)
    following = thread.submit(lambda: "done", 30)
    with pytest.raises(TimeoutError, match=r"not done within 0.05 s"):
        endless.result(PATIENCE_SECONDS)
    assert following.result(PATIENCE_SECONDS) == "done"
    thread.stop()


def test_what_the_work_raises_is_its_own() -> None:
    thread = BoundedThread("test", waiting_max=2)
    with pytest.raises(ZeroDivisionError):
        thread.submit(lambda: 1 // 0, 30).result(PATIENCE_SECONDS)
    thread.stop()


def test_more_than_may_wait_is_refused_and_a_stop_ends_what_runs() -> None:
    thread = BoundedThread("test", waiting_max=1)
    began = threading.Event()

    def work() -> None:
        began.set()
        forever()

    first = thread.submit(work, 600)
    assert began.wait(PATIENCE_SECONDS)
    thread.submit(forever, 600)
    with pytest.raises(queue.Full):
        thread.submit(forever, 600)
    thread.stop()
    with pytest.raises(TimeoutError):
        first.result(PATIENCE_SECONDS)


def test_an_end_that_comes_before_the_work_begins_is_reported_too(monkeypatch) -> None:
    """A timer whose time is over at once: on a busy machine it is over before the work begins."""
    thread = BoundedThread("test", waiting_max=2)

    class Over(threading.Timer):
        def start(self) -> None:
            self.function()

    with monkeypatch.context() as patched:
        patched.setattr(threading, "Timer", Over)
        endless = thread.submit(lambda: "begun", 30)
        with pytest.raises(TimeoutError, match=r"not done within 30 s"):
            endless.result(PATIENCE_SECONDS)
    assert thread.submit(lambda: "done", 30).result(PATIENCE_SECONDS) == "done"
    thread.stop()
