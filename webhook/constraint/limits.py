"""The limits of a review, and of each evaluation within it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.constraint.breaker import Guard
    from webhook.constraint.constraint import Constraint
    from webhook.external_data.exchange import Answering, ProviderRequest, ReviewMoment

OnBug: TypeAlias = "Callable[[str, Exception], None]"
"""Called with the kind of a template and the exception of a bug that ended its evaluation."""

STEPS_PER_SECOND: Final = 40_000_000
"""Steps that a time budget allows: twice the usual work of a second, so that the clock decides.
They refuse long calls in C before they begin, which the clock would notice only afterwards.
"""


LOOK_SECONDS: Final = 0.0005
"""The time between two readings of the clock. A reading costs one or two microseconds; another
thread may wait this long for the interpreter.
"""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one evaluation of one constraint.

    ``seconds`` are processor time of its thread, so that a throttled replica does not blame a
    policy. ``steps`` bound the work. ``rest`` is called about twice for each millisecond of work,
    with the seconds worked, so that other threads can run; with 0 between templates, where it does
    not raise. ``guard`` counts overruns and suspends constraints. With ``deferrable`` an evaluation
    that takes longer is no overrun: the review ends as
    :data:`~webhook.constraint.result.DEFERRED` and runs on another thread; so does a review beyond
    ``review_seconds``.
    """

    seconds: float
    steps: int
    rest: Callable[[float], None] | None = None
    guard: Guard | None = None
    deferrable: bool = False
    review_seconds: float = 0.0
    """0 means :data:`DEFERRED_AFTER` budgets."""

    @property
    def whole_seconds(self) -> float:
        """Returns the processor time of a whole review, in seconds."""
        return self.review_seconds or DEFERRED_AFTER * self.seconds

    @classmethod
    def of(
        cls,
        seconds: float,
        *,
        rest: Callable[[float], None] | None = None,
        guard: Guard | None = None,
        deferrable: bool = False,
    ) -> Budget:
        """Returns a budget with this time and a proportional number of steps."""
        return cls(seconds, int(seconds * STEPS_PER_SECOND), rest, guard, deferrable)

    def at_most(self, seconds: float) -> Budget:
        """Returns this budget with at most this time."""
        limit = min(seconds, self.seconds)
        return Budget.of(limit, rest=self.rest, guard=self.guard, deferrable=self.deferrable)


ELSEWHERE: Final = Budget(0.0, 0, deferrable=True)
"""A budget that defers every review to another thread."""


class Observer(Protocol):
    """Receives each evaluation of a review, on the reviewing thread."""

    def evaluated(
        self,
        constraints: tuple[Constraint, ...],
        began_ns: int,
        ended_ns: int,
        violations: int,
        error: str,
    ) -> None:
        """Receives the result of an evaluation: the number of violations, or an error.

        Times are of the monotonic clock.
        """


class Remembering(Protocol):
    """Caches findings of evaluations (:mod:`webhook.constraint.memo`). For one thread."""

    def recall(self, snapshot: Any, selection: Any, document: Any) -> Any:
        """Returns the cached findings of a review by a snapshot's selection; None for none."""

    def keep(self, recall: Any, *, has_distinct_keys: bool) -> None:
        """Keeps what was not recalled; ``has_distinct_keys`` if no key of an object had two values."""


class Limits(NamedTuple):
    """The limits of one review, and the services of its templates.

    ``deadline`` is in seconds of :func:`time.monotonic`, None for none. ``steps`` bounds the work
    of one template, in units of about 50 ns, None for the engine's default. ``print_`` receives
    each printed line with its position. ``budget`` limits each evaluation. ``observer`` receives
    each evaluation. ``requester`` is the user of the request, if any. ``known`` returns provider
    responses; without it there are none. ``begin`` sends provider requests while other constraints
    are evaluated. ``moment`` is the review's fixed time for templates that ask providers. ``memo``
    caches findings.
    """

    deadline: float | None = None
    steps: int | None = None
    print_: Callable[[Any, str], None] | None = None
    budget: Budget | None = None
    observer: Observer | None = None
    requester: str = ""
    known: Answering | None = None
    begin: Callable[[Sequence[ProviderRequest]], None] | None = None
    moment: ReviewMoment | None = None
    memo: Remembering | None = None


LEFT_PART: Final = 0.5
"""The part of the remaining time that one evaluation may take, so that later constraints can still
deny.
"""


DEFERRED_AFTER: Final = 2.0
"""How many budgets of an evaluation a deferrable review may take: many constraints together might
take nearly one each.
"""


UNLIMITED: Final = Limits()
"""No deadline, and the engine's default steps."""

UNTIL_NOW: Final = Limits(deadline=0.0)
"""No time: constraints are matched, but none is evaluated."""
