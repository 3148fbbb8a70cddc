"""Work that is repeated beside a test: callers, watchers and undisturbed users."""

import threading
from collections.abc import Callable
from typing import Self

BREATH_SECONDS = 0.02
"""A caller's pause between two admissions, of several callers at once: more than 100 a second, which
is about what two cores answer that other tests use too, and something is left of them."""


class Repeating:
    """Calls each of these again and again, on a thread of its own, while a block runs.

    A call that raises ends its thread, and pytest tells of that.
    """

    def __init__(self, *calls: Callable[[], object], pause_seconds: float = 0) -> None:
        self._stop = threading.Event()
        self._pause_seconds = pause_seconds
        self._threads = [threading.Thread(target=self._repeat, args=(call,)) for call in calls]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def threads_count(self) -> int:
        """Returns the number of concurrent calls."""
        return len(self._threads)

    def _repeat(self, call: Callable[[], object]) -> None:
        while not self._stop.is_set():
            call()
            self._stop.wait(self._pause_seconds)
