"""Circuit breakers of constraints whose evaluations take too long.

A constraint whose evaluations repeatedly exceed their budget is *suspended* (its breaker is open).
After a back-off with jitter one evaluation is tried (half-open): it closes the breaker or doubles
the back-off. Healthy constraints have no breaker, so they cost nothing.

Large objects take long with any policy, and a user who may create large objects must not be able to
suspend a policy for everybody. So a breaker counts only reviews of a size that is usual for their
kind, and reviews that are much smaller than the slow ones are still evaluated. Sizes are bytes of a
request, 0 if unknown.

Nor may a user suspend a policy for everybody with a small object that takes long. An overrun
suspends the constraint for its requester; it is suspended for everybody only after overruns for
several requesters. Reviews without a requester (``""``) each count as another requester.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.entry import Entry

BreakerState: TypeAlias = Literal["closed", "open", "half-open"]

OVERRUNS_MAX: Final = 3
"""Overruns within :data:`WINDOW_SECONDS` that open a breaker: two may come from two odd objects.
Overruns of as many requesters open it for everybody.
"""

REQUESTERS_MAX: Final = 256
"""Requesters of one constraint whose overruns are remembered."""

WINDOW_SECONDS: Final = 60.0

BACKOFF_SECONDS: Final = 10.0
"""The first back-off. A trial costs a budget: at 100 ms, one hundredth of the time."""

BACKOFF_SECONDS_MAX: Final = 300.0

JITTER: Final = 0.2
"""The random part of a back-off, so that replicas do not try at the same time."""

SLOW_SECONDS: Final = 60.0
"""How long a constraint that was too slow for the admission thread is evaluated on another one."""


SIZE_USUAL: Final = 16 * 1024
"""The size that counts as usual for every kind, in bytes: the largest Pods that people write."""

USUAL_FACTOR: Final = 4
"""How many times the median of its kind a review may have to count as usual."""

MEDIAN_STEP: Final = 1.05
"""The factor by which each review moves its kind's median. As many reviews are above the median as
below, so a user who sends few cannot move it.
"""

MEDIAN_FIRST: Final = 4096.0
"""The first median, in bytes: an object that people write, not the first one that arrives."""

KINDS_MAX: Final = 1024

SMALLER: Final = 2
"""A review this many times smaller than the slow ones is evaluated though they are not."""


@dataclass(slots=True)
class Breaker:
    """The breaker of one constraint, from its first overrun on."""

    constraint: Constraint
    evaluator: object
    state: BreakerState = "closed"
    overruns: list[tuple[float, str]] = field(default_factory=list)
    """The overruns within :data:`WINDOW_SECONDS`: time on the guard's clock, and requester. The
    breaker for everybody keeps the latest of each requester.
    """
    total: int = 0
    retry_at: float = 0.0
    openings: int = 0
    slow_until: float = 0.0
    slow_size: int = 0
    """The smallest recent review that was too slow for the admission thread."""
    overrun_size: int = 0
    """The smallest recent review that exceeded its budget."""
    message: str = ""
    """The message of the last overrun."""
    requester: str = ""
    """The user whose requests it suspends; empty for all."""
    by_requester: dict[str, Breaker] = field(default_factory=dict)
    """The breakers of single requesters, the latest last."""


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A breaker as statuses, metrics and the log show it."""

    kind: str
    name: str
    state: BreakerState
    overruns: int
    message: str
    requester: str = ""
    """The requester for which it is suspended; empty for everybody."""


class Guard:
    """The breakers of one process. Any thread may read and report."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``clock`` is in seconds, ``chance`` between 0 and 1."""
        self._clock = clock
        self._chance = chance
        self._lock = threading.Lock()
        self.breakers: dict[tuple[str, str], Breaker] = {}
        """By kind and name; empty while every constraint is healthy."""
        self._medians: dict[Hashable, float] = {}
        self.changes = 0
        """Counts changes of what :meth:`views` gives."""
        self.notify: Callable[[BreakerView], None] | None = None
        """Called at each change of state."""

    def saw(self, kind: Hashable, size: int) -> None:
        """Notes the size of a review of this kind, for the median."""
        median = self._medians.get(kind)
        if median is None:
            if len(self._medians) >= KINDS_MAX:
                self._medians.clear()
            self._medians[kind] = MEDIAN_FIRST
        else:
            self._medians[kind] = median * MEDIAN_STEP if size > median else median / MEDIAN_STEP

    def is_usual(self, kind: Hashable, size: int) -> bool:
        """Whether a slow review of this size counts against the policies, not against the object."""
        return size <= max(SIZE_USUAL, USUAL_FACTOR * self._medians.get(kind, 0.0))

    def _find(self, entry: Entry, constraint: Constraint) -> Breaker | None:
        """Returns the breaker of this revision of the constraint; a changed constraint starts anew."""
        breaker = self.breakers.get(constraint.key)
        if breaker is None:
            return None
        if (
            breaker.evaluator is not entry.evaluator
            or breaker.constraint.parameters_key != constraint.parameters_key
        ):
            with self._lock:
                self.breakers.pop(constraint.key, None)
                self.changes += 1
            return None
        return breaker

    def is_slow(
        self, entry: Entry, constraint: Constraint, size: int = 0, requester: str = ""
    ) -> bool:
        """Whether the constraint must not be evaluated on the admission thread now."""
        breaker = self._find(entry, constraint)
        if breaker is None:
            return False
        of_requester = breaker.by_requester.get(requester)
        if (
            of_requester is not None
            and of_requester.state != "closed"
            and not _is_smaller(size, of_requester.overrun_size)
        ):
            return of_requester.state == "open" and self._clock() >= of_requester.retry_at
        if breaker.state == "closed" or _is_smaller(size, breaker.overrun_size):
            return self._clock() < breaker.slow_until and not _is_smaller(size, breaker.slow_size)
        return breaker.state == "open" and self._clock() >= breaker.retry_at

    def admits(
        self, entry: Entry, constraint: Constraint, size: int = 0, requester: str = ""
    ) -> bool:
        """Whether to evaluate the constraint now for a requester; a trial is admitted once."""
        breaker = self._find(entry, constraint)
        if breaker is None:
            return True
        of_requester = breaker.by_requester.get(requester)
        return (of_requester is None or self._admits(of_requester, size)) and self._admits(
            breaker, size
        )

    def _admits(self, breaker: Breaker, size: int) -> bool:
        if breaker.state == "closed":
            return True
        if _is_smaller(size, breaker.overrun_size):
            return True
        with self._lock:
            # A trial whose request was given up on must not leave it half-open for good.
            if self._clock() < breaker.retry_at:
                return False
            self._wait(breaker)
            self._become(breaker, "half-open")
            return True

    def suspended(self, constraint: Constraint, requester: str = "") -> str:
        """Returns why the constraint is suspended for a requester."""
        breaker = self.breakers.get(constraint.key)
        last = f": {breaker.message}" if breaker is not None else ""
        of_requester = None if breaker is None else breaker.by_requester.get(requester)
        whom = (
            " for this user" if of_requester is not None and of_requester.state != "closed" else ""
        )
        return f"evaluation is suspended{whom} after repeated overruns{last}"

    def slowed(self, entry: Entry, constraint: Constraint, size: int = 0) -> None:
        """Notes an evaluation that was too slow for the admission thread, but no overrun yet."""
        self._slow(self._known(entry, constraint), size)

    def _slow(self, breaker: Breaker, size: int) -> None:
        now = self._clock()
        was = now < breaker.slow_until
        breaker.slow_size = min(size, breaker.slow_size) if was else size
        breaker.slow_until = now + SLOW_SECONDS

    def overran(
        self,
        entry: Entry,
        constraint: Constraint,
        message: str,
        size: int = 0,
        requester: str = "",
    ) -> None:
        """Notes an overrun of a requester's review; reviews of unusual size do not count."""
        breaker = self._known(entry, constraint)
        with self._lock:
            self._slow(breaker, size)
            self._count(breaker, message, size, requester)
            if requester:
                of_requester = breaker.by_requester.pop(requester, None)
                if of_requester is None:
                    of_requester = Breaker(constraint, entry.evaluator, requester=requester)
                    if len(breaker.by_requester) >= REQUESTERS_MAX:
                        del breaker.by_requester[next(iter(breaker.by_requester))]
                breaker.by_requester[requester] = of_requester
                self._count(of_requester, message, size, requester)

    def _count(self, breaker: Breaker, message: str, size: int, requester: str) -> None:
        """Counts an overrun, and opens the breaker after :data:`OVERRUNS_MAX`."""
        now = self._clock()
        breaker.total += 1
        breaker.message = message
        known = breaker.overruns or breaker.state != "closed"
        breaker.overrun_size = min(size, breaker.overrun_size) if known else size
        recent = [item for item in breaker.overruns if now - item[0] < WINDOW_SECONDS]
        if requester and not breaker.requester:  # Several of one are one of several.
            recent = [item for item in recent if item[1] != requester]
        breaker.overruns = [*recent, (now, requester)][-OVERRUNS_MAX:]
        if breaker.state == "half-open" or len(breaker.overruns) >= OVERRUNS_MAX:
            breaker.openings += 1
            self._wait(breaker)
            self._become(breaker, "open")

    def finished(
        self, entry: Entry, constraint: Constraint, size: int = 0, requester: str = ""
    ) -> None:
        """Notes an evaluation within its budget."""
        breaker = self._find(entry, constraint)
        if breaker is None:
            return
        for item in (breaker, breaker.by_requester.get(requester)):
            if item is not None:
                self._end_trial(item, size)

    def _end_trial(self, breaker: Breaker, size: int) -> None:
        if breaker.state != "half-open":
            return
        if _is_smaller(size, breaker.overrun_size):
            return  # It was no trial.
        with self._lock:
            # On probation: the overruns that opened it count on for the rest of their time.
            self._become(breaker, "closed")

    def keep(self, constraints: Iterable[tuple[str, str]]) -> None:
        """Drops breakers of deleted constraints, and those without a recent overrun."""
        kept: Collection[tuple[str, str]] = frozenset(constraints)
        now = self._clock()
        with self._lock:
            for key, breaker in tuple(self.breakers.items()):
                for name, of_requester in tuple(breaker.by_requester.items()):
                    if _is_well(of_requester, now):
                        del breaker.by_requester[name]
                if key not in kept or (_is_well(breaker, now) and not breaker.by_requester):
                    del self.breakers[key]
                    self.changes += 1

    def views(self) -> Mapping[tuple[str, str], BreakerView]:
        """Returns the breakers of all constraints with recent overruns."""
        return {
            key: _view(breaker) for key, breaker in tuple(self.breakers.items()) if breaker.total
        }

    def _known(self, entry: Entry, constraint: Constraint) -> Breaker:
        breaker = self._find(entry, constraint)
        if breaker is None:
            with self._lock:
                breaker = self.breakers[constraint.key] = Breaker(constraint, entry.evaluator)
                self.changes += 1
        return breaker

    def _wait(self, breaker: Breaker) -> None:
        doublings = max(breaker.openings - 1, 0)
        seconds = min(BACKOFF_SECONDS * 2 ** min(doublings, 10), BACKOFF_SECONDS_MAX)
        breaker.retry_at = self._clock() + seconds * (1 + JITTER * (2 * self._chance() - 1))

    def _become(self, breaker: Breaker, state: BreakerState) -> None:
        if breaker.state != state:
            breaker.state = state
            self.changes += 1
            if self.notify is not None:
                self.notify(_view(breaker))


def _is_smaller(size: int, slow_size: int) -> bool:
    """Whether a review is small enough that earlier slow ones do not predict it."""
    return size * SMALLER < slow_size


def _is_well(breaker: Breaker, now: float) -> bool:
    """Whether a breaker can be dropped."""
    return (
        breaker.state == "closed"
        and now >= breaker.slow_until
        and all(now - moment >= WINDOW_SECONDS for moment, _ in breaker.overruns)
    )


def _view(breaker: Breaker) -> BreakerView:
    kind, name = breaker.constraint.key
    return BreakerView(kind, name, breaker.state, breaker.total, breaker.message, breaker.requester)
