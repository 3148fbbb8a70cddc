"""Bounds the work of mutation: by the clock, and with pauses for others."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Final

from webhook.constraint.limits import LOOK_SECONDS
from webhook.mutation.errors import OutOfTime, OverBudget
from webhook.rego.errors import EvaluationError

LOOK_ITEMS: Final = 31
"""Items of a list between two looks, as bits: some 30 µs of assigning in each of them."""


class Pace:
    """The time limit for mutating one object, and the pauses of the thread.

    For one thread. Code that mutates checks it between mutators, within long lists and while
    objects are compared.
    """

    __slots__ = ("_began", "_next", "_rest", "_rested", "_seconds", "_until", "iteration")

    def __init__(
        self,
        until: float = inf,
        seconds: float | None = None,
        rest: Callable[[float], None] | None = None,
    ) -> None:
        """``until`` is on the monotonic clock, ``seconds`` are of the thread's processor.

        ``rest`` is called about twice for each millisecond of work, with the seconds of work. Work
        of more than ``seconds`` raises :class:`~webhook.mutation.errors.OverBudget`.
        """
        self._until = until
        self._seconds = seconds
        self._rest = rest
        self._next = -inf
        self._began: float | None = None
        self._rested = 0.0
        self.iteration = 1
        """The current pass, for errors."""

    def begin(self) -> None:
        """Checks the time left; work before the first check is not counted.

        Reading a thread's time from the system takes longer than mutating most objects. Raises
        :class:`~webhook.mutation.errors.OutOfTime`.
        """
        if time.monotonic() > self._until:
            raise self._out_of_time()
        if self._seconds == 0:
            raise self._too_long()

    def look(self) -> None:
        """Rest, if it is time; raises :class:`~webhook.mutation.errors.OutOfTime` where it is over."""
        now = time.monotonic()
        if now > self._next:
            self._look(now)

    def _look(self, now: float) -> None:
        if now > self._until:
            raise self._out_of_time()
        if self._rest is None and self._seconds is None:
            self._next = self._until
            return
        # A thread that waits for the processor has not worked meanwhile.
        worked = time.thread_time()
        if self._began is None:
            self._began = self._rested = worked
        if self._seconds is not None and worked - self._began > self._seconds:
            raise self._too_long()
        if self._rest is not None and worked > self._rested:
            try:
                self._rest(worked - self._rested)
            except EvaluationError as error:  # it took too much memory, or the process ends
                raise OutOfTime(str(error), self.iteration) from None
            self._rested = time.thread_time()
        self._next = time.monotonic() + LOOK_SECONDS

    def _out_of_time(self) -> OutOfTime:
        return OutOfTime("the time limit of mutating this object passed", self.iteration)

    def _too_long(self) -> OverBudget:
        return OverBudget("mutating this object takes longer than others can wait", self.iteration)


UNBOUNDED: Final = Pace()
"""The pace of a caller that has no deadline."""
