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
    the work. ``rest`` is told about twice for each millisecond of work how many
    seconds that was, so that what may wait lets others go first. ``guard`` is told of overruns and
    says what is suspended. With ``deferrable`` an evaluation that takes more is
    no overrun yet: the review ends as :data:`~webhook.constraint.result.DEFERRED`,
    to be done elsewhere with more.
    """

    seconds: float
    steps: int
    rest: Callable[[float], None] | None = None
    guard: Guard | None = None
    deferrable: bool = False

    @classmethod
    def of(
        cls,
        seconds: float,
        *,
        rest: Callable[[float], None] | None = None,
        guard: Guard | None = None,
        deferrable: bool = False,
    ) -> Budget:
        """The budget of so much time."""
        return cls(seconds, int(seconds * STEPS_PER_SECOND), rest, guard, deferrable)

    def at_most(self, seconds: float) -> Budget:
        """This with no more time than that."""
        return Budget.of(
            min(seconds, self.seconds),
            rest=self.rest,
            guard=self.guard,
            deferrable=self.deferrable,
        )


ELSEWHERE: Final = Budget(0.0, 0, deferrable=True)
"""For what is not even begun here: to be done elsewhere, with more."""


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
        """Keep what was found of the rest."""


class Limits(NamedTuple):
    """Bounds of one review, and what it lends its templates.

    ``deadline`` is in seconds on :func:`time.monotonic`'s clock, None for none.
    ``steps`` bounds the work of one template, in units of about 50 ns, None for
    the engine's own default. ``print_`` receives each line that a policy prints,
    with its place. ``budget`` bounds each evaluation apart. ``observer`` is told of each.
    ``requester`` is who is behind the request, if anybody asks. ``known`` gives what providers
    answered; without it nothing is. ``begin`` has requests sent while the rest is evaluated.
    ``moment`` is that of templates which ask them. ``memo`` knows what evaluations found before.
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
"""The part of a review's time that one evaluation may take of what is left: what takes it all leaves
those after it as much again, and what they deny is denied."""


DEFERRED_AFTER: Final = 2.0
"""How many budgets of an evaluation a whole review may take where it is deferrable: of many
constraints each might take nearly its own."""


UNLIMITED: Final = Limits()
"""No deadline, and the engine's own budget of work."""

UNTIL_NOW: Final = Limits(deadline=0.0)
"""No time at all: what matches is found, and nothing is evaluated."""
