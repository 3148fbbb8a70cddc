"""The bounds of one review, and of one evaluation within it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.constraint.breaker import Guard
    from webhook.constraint.constraint import Constraint
    from webhook.external_data.exchange import Answering, ProviderRequest, ReviewMoment

OnBug: TypeAlias = "Callable[[str, Exception], None]"
"""Takes the kind of a template and the exception of ours that ended an evaluation of it."""

STEPS_PER_SECOND: Final = 40_000_000
"""Steps that a budget of time allows: twice what a second's work is, so that the clock decides.
They refuse work long in C before it begins, where the clock could tell only afterwards."""


LOOK_SECONDS: Final = 0.0005
"""Between two looks at the clock. A look costs one or two microseconds; as long may another thread
wait for the interpreter."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The bounds of one evaluation of one constraint.

    ``seconds`` are of its thread's processor: a replica that is throttled, or
    shares its core, must not find fault with a policy for it. ``steps`` bound
    the work. ``rest`` is called about twice for each millisecond of work with the
    seconds worked, so that others may go first. ``guard`` counts overruns and suspends constraints. With ``deferrable`` an evaluation that takes more is
    no overrun yet: the review ends as :data:`~webhook.constraint.result.DEFERRED`,
    to be done elsewhere with more; so does a whole review that takes more than ``review_seconds``.
    """

    seconds: float
    steps: int
    rest: Callable[[float], None] | None = None
    guard: Guard | None = None
    deferrable: bool = False
    review_seconds: float = 0.0
    """0 for :data:`DEFERRED_AFTER` budgets."""

    @property
    def whole_seconds(self) -> float:
        """Return the time of a whole review."""
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
        """Returns a budget of so many seconds, with steps to match."""
        return cls(seconds, int(seconds * STEPS_PER_SECOND), rest, guard, deferrable)

    def at_most(self, seconds: float) -> Budget:
        """Returns this budget with at most so much time."""
        return Budget.of(
            min(seconds, self.seconds),
            rest=self.rest,
            guard=self.guard,
            deferrable=self.deferrable,
        )


ELSEWHERE: Final = Budget(0.0, 0, deferrable=True)
"""A budget with which nothing begins here: the review is done elsewhere, with more."""


class Observer(Protocol):
    """Receives each evaluation of a review, in the thread that reviews."""

    def evaluated(
        self,
        constraints: tuple[Constraint, ...],
        began_ns: int,
        ended_ns: int,
        violations: int,
        error: str,
    ) -> None:
        """Constraints of the same template and parameters had so many violations, or failed.

        Times are of the monotonic clock.
        """


class Remembering(Protocol):
    """Keeps what evaluations found (:mod:`webhook.constraint.memo`). For one thread."""

    def recall(self, snapshot: Any, selection: Any, document: Any) -> Any:
        """Return the kept findings of a review by a snapshot's selection; None for nothing."""

    def keep(self, recall: Any) -> None:
        """Keeps the findings of evaluations that were not recalled."""


class Limits(NamedTuple):
    """Bounds of one review, and what it lends its templates.

    ``deadline`` is in seconds on :func:`time.monotonic`'s clock, None for none.
    ``steps`` bounds the work of one template, in units of about 50 ns, None for
    the engine's own default. ``print_`` receives each line that a policy prints,
    with its place. ``budget`` bounds each evaluation apart. ``observer`` receives each.
    ``requester`` names the user of the request, if there is one. ``known`` gives providers'
    answers; without it there are none. ``begin`` has requests sent while the rest is evaluated.
    ``moment`` is the review's, for templates that ask providers. ``memo`` keeps findings of
    earlier evaluations.
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
"""The part of a review's remaining time that one evaluation may take, so that those after it still
have time to deny."""


DEFERRED_AFTER: Final = 2.0
"""How many budgets of an evaluation a whole review may take where it is deferrable: of many
constraints each might take nearly its own."""


UNLIMITED: Final = Limits()
"""No deadline, and the engine's own budget of work."""

UNTIL_NOW: Final = Limits(deadline=0.0)
"""No time at all: constraints are matched, and none is evaluated."""
