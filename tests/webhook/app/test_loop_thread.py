"""A thread with an event loop of its own, begun and ended by another."""

import asyncio
import threading

import pytest

from tests.patience import PATIENCE_SECONDS
from webhook.app import loop_thread
from webhook.app.loop_thread import LoopThread
from webhook.cluster.event_loop import EventLoop


class Work:
    """A coroutine that says where it runs, and ends when the test says so."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.began = threading.Event()
        self.cancelled = threading.Event()
        self.released = threading.Event()
        self.ended = threading.Event()
        self.names: list[str] = []
        self._stubborn = stubborn

    async def run(self) -> None:
        assert isinstance(asyncio.get_running_loop(), EventLoop)
        self.names.append(threading.current_thread().name)
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
            if self._stubborn:
                assert await asyncio.to_thread(self.released.wait, PATIENCE_SECONDS)
            await asyncio.sleep(0)
            self.ended.set()


def test_it_runs_on_a_thread_of_its_name_until_it_is_stopped() -> None:
    """The running work has cleaned up by then."""
    work = Work()
    thread = LoopThread("cluster", work.run)
    assert thread.loop is None
    thread.start()
    assert work.began.wait(PATIENCE_SECONDS)
    assert work.names == ["cluster"]
    thread.stop()
    assert work.ended.is_set()


def test_its_loop_takes_calls_of_other_threads() -> None:
    work, called = Work(), threading.Event()
    thread = LoopThread("cluster", work.run)
    thread.start()
    assert work.began.wait(PATIENCE_SECONDS)
    assert thread.loop is not None
    thread.loop.call_soon_threadsafe(called.set)
    assert called.wait(PATIENCE_SECONDS)
    thread.stop()


def test_what_will_not_end_is_not_waited_for_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process must end within its grace, whatever a thread has under way."""
    monkeypatch.setattr(loop_thread, "STOP_SECONDS", 0.01)
    work = Work(stubborn=True)
    thread = LoopThread("audit", work.run)
    thread.start()
    assert work.began.wait(PATIENCE_SECONDS)
    thread.stop()
    assert work.cancelled.wait(PATIENCE_SECONDS)
    assert not work.ended.is_set()
    work.released.set()
    assert work.ended.wait(PATIENCE_SECONDS)


def test_one_that_never_began_or_has_ended_is_stopped_at_once() -> None:
    async def nothing() -> None:
        ended.set()

    ended = threading.Event()
    thread = LoopThread("audit", nothing)
    thread.stop()
    thread.start()
    assert ended.wait(PATIENCE_SECONDS)
    thread.stop()
    thread.stop()


def test_one_whose_loop_is_closed_while_it_is_stopped_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has ended by itself, and its thread is not gone yet."""
    closed, released = threading.Event(), threading.Event()

    class Lingering(EventLoop):
        def close(self) -> None:
            super().close()
            closed.set()
            assert released.wait(PATIENCE_SECONDS)

    async def nothing() -> None:
        """End at once."""

    monkeypatch.setattr(loop_thread, "EventLoop", Lingering)
    monkeypatch.setattr(loop_thread, "STOP_SECONDS", 0.01)
    thread = LoopThread("audit", nothing)
    thread.start()
    assert closed.wait(PATIENCE_SECONDS)
    try:
        thread.stop()
    finally:
        released.set()


def test_a_fault_that_leaves_the_coroutine_ends_the_thread_and_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail() -> None:
        raise RuntimeError("planted")

    reported, faults = threading.Event(), []

    def notify(arguments: threading.ExceptHookArgs) -> None:
        faults.append(arguments.exc_value)
        reported.set()

    monkeypatch.setattr(threading, "excepthook", notify)
    thread = LoopThread("audit", fail)
    thread.start()
    assert reported.wait(PATIENCE_SECONDS)
    thread.stop()
    assert [str(fault) for fault in faults] == ["planted"]
