"""Constraints that take too long: which are, and which are not evaluated for a while.

A constraint whose evaluations repeatedly take more than their budget is
*suspended* (its breaker is open); after a jittered back-off one evaluation is
tried (half-open), which closes the breaker or doubles the back-off. Healthy
constraints are unknown here, so that they cost nothing.

What is large takes long, whatever the policy: whoever may create large objects must
not be able to suspend it for everybody. So a breaker learns only from reviews of a
size that is usual for their kind, and what is much smaller than what overran is
evaluated all the same. Sizes are in bytes of a request, 0 where they are not known.

Nor may whoever finds a small object that takes long. What overruns for one requester
suspends the constraint for that one; for everybody it is suspended where it overran for
several. Where no requester is named (``""``) each counts as another.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

    from webhook.constraint.constraint import Constraint

BreakerState: TypeAlias = Literal["closed", "open", "half-open"]

OVERRUNS_MAX: Final = 3
"""Overruns within :data:`WINDOW_SECONDS` that open a breaker: two may be two odd objects. Those of
as many requesters open it for everybody."""

REQUESTERS_MAX: Final = 256
"""Requesters of one constraint that are remembered for their overruns."""

WINDOW_SECONDS: Final = 60.0

BACKOFF_SECONDS: Final = 10.0
"""The first back-off. A trial costs a budget: at 100 ms, one hundredth of the time."""

BACKOFF_SECONDS_MAX: Final = 300.0

JITTER: Final = 0.2
"""The part of a back-off that is left to chance: replicas must not try all at once."""

SLOW_SECONDS: Final = 60.0
"""How long a constraint that was too slow for the admission thread is evaluated beside it."""


SIZE_USUAL: Final = 16 * 1024
"""The size of a usual object of every kind, in bytes: the largest Pods that people write."""

USUAL_FACTOR: Final = 4
"""How much larger than the median of its kind a review may be, and be usual."""

MEDIAN_STEP: Final = 1.05
"""By what a kind's median moves with each review: as many are above it as below, so those who
send few cannot move it, whatever they send."""

MEDIAN_FIRST: Final = 4096.0
"""Where it begins: with an object that people write, not with the first that is sent."""

KINDS_MAX: Final = 1024

SMALLER: Final = 2
"""A review this many times smaller than those that were too slow is tried where those are not."""


class Evaluated(Protocol):
    """A template's entry in a snapshot, as the breaker guards it."""

    @property
    def evaluator(self) -> object:
        """Another for another revision of the template."""


@dataclass(slots=True)
class Breaker:
    """One constraint's, from its first overrun on."""

    constraint: Constraint
    evaluator: object
    state: BreakerState = "closed"
    overruns: list[tuple[float, str]] = field(default_factory=list)
    """When, on the guard's clock, and whose; of the last :data:`WINDOW_SECONDS`. For everybody's
    the latest of each requester."""
    total: int = 0
    retry_at: float = 0.0
    openings: int = 0
    slow_until: float = 0.0
    slow_size: int = 0
    """The smallest review that was too slow for the admission thread lately."""
    overrun_size: int = 0
    """The smallest that overran lately."""
    message: str = ""
    """The message of the last overrun."""
    requester: str = ""
    """The user whose requests it suspends; empty for all."""
    own: dict[str, Breaker] = field(default_factory=dict)
    """The breakers of single users, the latest last."""


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A breaker as statuses, metrics and the log show it."""

    kind: str
    name: str
    state: BreakerState
    overruns: int
    message: str
    requester: str = ""
    """For whom alone it is suspended; empty for everybody."""


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
        self.tell: Callable[[BreakerView], None] | None = None
        """Is told of each change of state."""

    def saw(self, kind: Hashable, size: int) -> None:
        """A review of something of a kind begins."""
        median = self._medians.get(kind)
        if median is None:
            if len(self._medians) >= KINDS_MAX:
                self._medians.clear()
            self._medians[kind] = MEDIAN_FIRST
        else:
            self._medians[kind] = median * MEDIAN_STEP if size > median else median / MEDIAN_STEP

    def is_usual(self, kind: Hashable, size: int) -> bool:
        """Return whether a slow review of this size is the policies' fault rather than the object's."""
        return size <= max(SIZE_USUAL, USUAL_FACTOR * self._medians.get(kind, 0.0))

    def _find(self, entry: Evaluated, constraint: Constraint) -> Breaker | None:
        """The breaker of this very policy: a changed one begins anew."""
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
        self, entry: Evaluated, constraint: Constraint, size: int = 0, requester: str = ""
    ) -> bool:
        """Whether it must not be evaluated on the admission thread now."""
        breaker = self._find(entry, constraint)
        if breaker is None:
            return False
        of_requester = breaker.own.get(requester)
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
        self, entry: Evaluated, constraint: Constraint, size: int = 0, requester: str = ""
    ) -> bool:
        """Whether to evaluate it now for a requester; where it is a trial, only once."""
        breaker = self._find(entry, constraint)
        if breaker is None:
            return True
        of_requester = breaker.own.get(requester)
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
        """Why it is not evaluated for a requester."""
        breaker = self.breakers.get(constraint.key)
        last = f": {breaker.message}" if breaker is not None else ""
        of_requester = None if breaker is None else breaker.own.get(requester)
        whom = (
            " for this user" if of_requester is not None and of_requester.state != "closed" else ""
        )
        return f"evaluation is suspended{whom} after repeated overruns{last}"

    def slowed(self, entry: Evaluated, constraint: Constraint, size: int = 0) -> None:
        """It took too long for the admission thread, which is not yet an overrun."""
        self._slow(self._known(entry, constraint), size)

    def _slow(self, breaker: Breaker, size: int) -> None:
        now = self._clock()
        was = now < breaker.slow_until
        breaker.slow_size = min(size, breaker.slow_size) if was else size
        breaker.slow_until = now + SLOW_SECONDS

    def overran(
        self,
        entry: Evaluated,
        constraint: Constraint,
        message: str,
        size: int = 0,
        requester: str = "",
    ) -> None:
        """It took more than its budget, with something of usual size, for a requester."""
        breaker = self._known(entry, constraint)
        with self._lock:
            self._slow(breaker, size)
            self._count(breaker, message, size, requester)
            if requester:
                of_requester = breaker.own.pop(requester, None)
                if of_requester is None:
                    of_requester = Breaker(constraint, entry.evaluator, requester=requester)
                    if len(breaker.own) >= REQUESTERS_MAX:
                        del breaker.own[next(iter(breaker.own))]
                breaker.own[requester] = of_requester
                self._count(of_requester, message, size, requester)

    def _count(self, breaker: Breaker, message: str, size: int, requester: str) -> None:
        """One more overrun, which may open a breaker."""
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
        self, entry: Evaluated, constraint: Constraint, size: int = 0, requester: str = ""
    ) -> None:
        """It was evaluated within its budget, for a requester."""
        breaker = self._find(entry, constraint)
        if breaker is None:
            return
        for item in (breaker, breaker.own.get(requester)):
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
        """Forget constraints that are no more, and those that have been well for a while."""
        kept: Collection[tuple[str, str]] = frozenset(constraints)
        now = self._clock()
        with self._lock:
            for key, breaker in tuple(self.breakers.items()):
                for name, of_requester in tuple(breaker.own.items()):
                    if _is_well(of_requester, now):
                        del breaker.own[name]
                if key not in kept or (_is_well(breaker, now) and not breaker.own):
                    del self.breakers[key]
                    self.changes += 1

    def views(self) -> Mapping[tuple[str, str], BreakerView]:
        """Every constraint that overran lately, as it is shown."""
        return {
            key: _view(breaker) for key, breaker in tuple(self.breakers.items()) if breaker.total
        }

    def _known(self, entry: Evaluated, constraint: Constraint) -> Breaker:
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
            if self.tell is not None:
                self.tell(_view(breaker))


def _is_smaller(size: int, slow_size: int) -> bool:
    """Whether a review is so much smaller than what was too slow that it is none of it."""
    return size * SMALLER < slow_size


def _is_well(breaker: Breaker, now: float) -> bool:
    """Whether there is nothing to remember of it."""
    return (
        breaker.state == "closed"
        and now >= breaker.slow_until
        and all(now - moment >= WINDOW_SECONDS for moment, _ in breaker.overruns)
    )


def _view(breaker: Breaker) -> BreakerView:
    kind, name = breaker.constraint.key
    return BreakerView(kind, name, breaker.state, breaker.total, breaker.message, breaker.requester)
