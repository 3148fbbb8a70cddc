"""A thread that interrupts its work at a deadline."""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar, cast

from webhook.app.priority import stand_behind

T = TypeVar("T")

_Work = tuple["Callable[[], object]", float, "Future[object]"]


class TimeIsOver(BaseException):
    """Work that was ended by its deadline. No ``except Exception`` of the work may stop it."""


class BoundedThread:
    """Does one piece of work after the other, each within its number of seconds.

    Work that takes longer gets :class:`TimeIsOver` raised between two bytecodes. So it must be pure
    Python without side effects, such as compiling. (A separate process could be killed, but would
    first need all policies and data.)
    """

    def __init__(self, name: str, *, waiting_max: int) -> None:
        self._name = name
        self._queue: queue.Queue[_Work | None] = queue.Queue(waiting_max)
        self._lock = threading.Lock()
        self._busy = False
        self._thread: threading.Thread | None = None
        self._stopped = False

    def submit(self, work: Callable[[], T], seconds: float) -> Future[T]:
        """Queues work with a time limit; the error is TimeoutError. Raises ``queue.Full``."""
        future: Future[object] = Future()
        self._queue.put_nowait((work, seconds, future))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return cast("Future[T]", future)

    def stop(self) -> None:
        """Takes no more work, and interrupts the current work."""
        self._stopped = True
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)
        self._end()

    def _run(self) -> None:
        stand_behind()
        while not self._stopped:
            # The interrupt may come a moment after the end of the work.
            with contextlib.suppress(TimeIsOver):
                taken = self._queue.get()
                if taken is None:
                    return
                self._carry_out(*taken)

    def _carry_out(
        self, work: Callable[[], object], seconds: float, future: Future[object]
    ) -> None:
        if not future.set_running_or_notify_cancel():
            return
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        ended = TimeoutError(f"not done within {seconds:g} s")
        outcome: object = None
        error: Exception | None = None
        # The interrupt may come between any two bytecodes from here on, also before the work begins
        # and after it is done, until ``_busy`` is false. The waiting thread gets an outcome in any
        # case.
        self._busy = True
        try:
            try:
                timer.start()
                outcome = work()
            except TimeIsOver:
                error = ended
            except Exception as raised:  # noqa: BLE001  # passed to the waiting thread
                error = raised
            self._leave()
        except TimeIsOver:
            self._leave()
            error = error or ended
        timer.cancel()
        if error is None:
            future.set_result(outcome)
        else:
            future.set_exception(error)

    def _leave(self) -> None:
        """Nothing is ended from now on."""
        with self._lock:
            self._busy = False

    def _end(self) -> None:
        """Raises in the thread, if it works."""
        thread = self._thread
        with self._lock:
            if self._busy and thread is not None and thread.ident is not None:
                _raise_in(thread.ident)


def _raise_in(thread: int) -> None:
    _SET(ctypes.c_ulong(thread), ctypes.py_object(TimeIsOver))


_SET: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc
