"""Threads of which one runs at a time, and gives way only where it waits.

Each simulated thread has a real one of a pool behind it and the two hand a baton to and fro: what
the product writes for threads runs as it is, in an order that the seed chooses.
"""

import _thread
import contextvars
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.simulation import doors
from tests.simulation.doors import Killed

if TYPE_CHECKING:
    from tests.simulation.loop import Loop
    from tests.simulation.process import Process


class _Worker:
    """A real thread that runs one job after another, while whoever resumed it waits."""

    def __init__(self) -> None:
        self.mine = _thread.allocate_lock()
        self.mine.acquire()
        self.others = _thread.allocate_lock()
        self.others.acquire()
        self.job: Callable[[], None] | None = None
        _thread.start_new_thread(self._work, ())

    def resume(self) -> None:
        """Let the thread go on until it gives the baton back."""
        self.mine.release()
        self.others.acquire()

    def give_way(self) -> None:
        """Give the baton back, and wait to be resumed."""
        self.others.release()
        self.mine.acquire()

    def _work(self) -> None:
        while True:
            self.mine.acquire()
            assert self.job is not None
            self.job()
            self.job = None
            _idle.append(self)
            self.others.release()


_idle: "Final[deque[_Worker]]" = deque()


class Lane:
    """A thread as the loop sees it: waits for ``ready``, or until ``deadline``."""

    def __init__(self, loop: "Loop", process: "Process", job: Callable[[], None]) -> None:
        self.loop = loop
        self.process = process
        self.alive = True
        self.ready: Callable[[], Any] = lambda: True
        self.deadline: float | None = None
        self._job = job
        self._worker = _idle.pop() if _idle else _Worker()
        self._worker.job = self._run

    def _run(self) -> None:
        try:
            if not self.process.dead:
                self._job()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001  # a thread's boundary: told at the world's
            self.loop.fail(f"a thread of {self.process.name} ended: {error!r}", error)
        self.alive = False
        self.loop.something_changed()

    def resume(self) -> None:
        """Run until it waits or ends; called by the loop alone."""
        outer, self.loop.running = self.loop.running, self
        self._worker.resume()
        self.loop.running = outer

    def block(self, ready: Callable[[], Any], deadline: float | None) -> None:
        """Give way until ``ready`` or the deadline; called by the thread itself."""
        if self.process.dead:
            raise Killed
        self.ready, self.deadline = ready, deadline
        self._worker.give_way()
        if self.process.dead:
            raise Killed


def _loop() -> "Loop":
    world = doors._world
    assert world is not None, "threads are simulated only within a world"
    return world  # type: ignore[return-value]


class Thread:
    """threading.Thread, as far as the product uses it."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., Any] | None = None,
        name: str = "",
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name
        self.daemon = daemon
        self._call = (target, args, kwargs or {})
        self._lane: Lane | None = None

    def run(self) -> None:
        target, args, kwargs = self._call
        if target is not None:
            target(*args, **kwargs)

    def start(self) -> None:
        loop = _loop()
        context = contextvars.copy_context()
        self._lane = Lane(loop, loop.process_of(context), lambda: context.run(self.run))
        loop.new_lane(self._lane)

    def is_alive(self) -> bool:
        return self._lane is not None and self._lane.alive

    def join(self, timeout: float | None = None) -> None:
        lane = self._lane
        assert lane is not None
        _loop().wait_until(lambda: not lane.alive, timeout)


class Condition:
    """threading.Condition with its reentrant lock."""

    def __init__(self, lock: Any = None) -> None:
        assert lock is None
        self._owner: Any = None
        self._depth = 0
        self._waiters: list[list[Any]] = []

    def __enter__(self) -> bool:
        me = _loop().running
        if self._owner is not me or not self._depth:
            if self._depth:
                _loop().wait_until(lambda: not self._depth, None)
            self._owner = me
        self._depth += 1
        return True

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            _loop().something_changed()

    def wait(self, timeout: float | None = None) -> bool:
        waiter = [False]
        self._waiters.append(waiter)
        depth, self._depth = self._depth, 0
        loop = _loop()
        me = loop.running
        try:
            loop.wait_until(lambda: waiter[0], timeout)
            return waiter[0]
        finally:
            self._waiters = [other for other in self._waiters if other is not waiter]
            if self._depth and not loop.process_is_dead():
                loop.wait_until(lambda: not self._depth, None)
            self._owner, self._depth = me, depth

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        loop = _loop()
        until = None if timeout is None else loop.now() + timeout
        result = predicate()
        while not result:
            left = None if until is None else until - loop.now()
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        for waiter in self._waiters[:n]:
            waiter[0] = True
        del self._waiters[:n]
        _loop().something_changed()

    def notify_all(self) -> None:
        self.notify(len(self._waiters))


class Event:
    """threading.Event."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        if doors._world is not None:
            _loop().something_changed()

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        _loop().wait_until(lambda: self._set, timeout)
        return self._set
