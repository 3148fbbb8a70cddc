"""A thread whose work ends with its deadline, whatever it is."""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeVar, cast

from webhook.app.priority import stand_behind

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_Work = tuple["Callable[[], object]", float, "Future[object]"]


class TimeIsOver(BaseException):
    """Work that was ended by its deadline. No ``except Exception`` of the work may stop it."""


class BoundedThread:
    """Does one thing after the other, each for so many seconds at most.

    What takes longer gets :class:`TimeIsOver` raised in it: between two bytecodes, so it
    must be work of Python's own that changes nothing others see, as compiling is. (A process
    that is killed would have to be given all policies and data first.)
    """

    def __init__(self, name: str, *, waiting_max: int) -> None:
        self._name = name
        self._queue: queue.Queue[_Work | None] = queue.Queue(waiting_max)
        self._lock = threading.Lock()
        self._busy = False
        self._thread: threading.Thread | None = None
        self._stopped = False

    def submit(self, work: Callable[[], T], seconds: float) -> Future[T]:
        """Do this within so many seconds; the error is TimeoutError. Raises ``queue.Full``."""
        future: Future[object] = Future()
        self._queue.put_nowait((work, seconds, future))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return cast("Future[T]", future)

    def stop(self) -> None:
        """Do nothing more, and end what is being done."""
        self._stopped = True
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)
        self._end()

    def _run(self) -> None:
        stand_behind()
        while not self._stopped:
            # It may come a moment after the work has ended.
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
        # The end may come between any two bytecodes from here on, also before the work begins and
        # after it is done, until nothing is ended any more; whoever waits is told in any case.
        self._busy = True
        try:
            try:
                timer.start()
                outcome = work()
            except TimeIsOver:
                error = ended
            except Exception as raised:  # noqa: BLE001  # told to whoever waits for it
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
        """Raise in the thread, if it works."""
        thread = self._thread
        with self._lock:
            if self._busy and thread is not None and thread.ident is not None:
                _raise_in(thread.ident)


def _raise_in(thread: int) -> None:
    _SET(ctypes.c_ulong(thread), ctypes.py_object(TimeIsOver))


_SET: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc
