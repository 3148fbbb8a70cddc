"""The last two stages: a thing and what it implies against every constraint, then the results.

Whoever cannot go on here hands this to another thread: what is left of a walk is one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from webhook.constraint import enforcement
from webhook.constraint.expansion import with_implied
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.result import DEFERRED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.constraint.expansion import Resultant
    from webhook.constraint.limits import Limits
    from webhook.constraint.result import Responses
    from webhook.constraint.review import AugmentedObject
    from webhook.constraint.snapshot import Snapshot

    ResultStage = Callable[[Snapshot, Any, Responses], Responses]
    Implied = tuple[Resultant, AugmentedObject]

RESULT_STAGES: Final[tuple[ResultStage, ...]] = ()
"""Each makes of what was found of a thing what is to be answered: the place for groups of policies
and for excuses."""


class Reviewing(Protocol):
    """Reviews a thing: a snapshot, or one that knows what the thing implies."""

    def review(
        self,
        value: Any,
        *,
        enforcement_point: str = enforcement.ALL,
        limits: Limits = UNLIMITED,
    ) -> Responses:
        """What is found; see :meth:`webhook.constraint.snapshot.Snapshot.review`."""


class Evaluation(NamedTuple):
    """Reviews one thing by a snapshot, and then what it implies."""

    snapshot: Snapshot
    implied: tuple[Implied, ...]

    def review(
        self,
        value: Any,
        *,
        enforcement_point: str = enforcement.ALL,
        limits: Limits = UNLIMITED,
    ) -> Responses:
        """What is found of all; deferred if one of them is, and raises as a snapshot does."""
        review = self.snapshot.review
        responses = review(value, enforcement_point=enforcement_point, limits=limits)
        if responses is DEFERRED:
            return DEFERRED
        of_implied = []
        for resultant, one in self.implied:
            own = review(one, enforcement_point=enforcement_point, limits=limits)
            if own is DEFERRED:
                return DEFERRED
            of_implied.append((resultant, own))
        if of_implied:
            responses = with_implied(responses, of_implied)
        for stage in RESULT_STAGES:
            responses = stage(self.snapshot, value, responses)
        return responses


def evaluation(snapshot: Snapshot, implied: Sequence[Implied] = ()) -> Reviewing:
    """What reviews a thing that implies these; a snapshot alone where that says the same.

    A call more for each request is not for nothing.
    """
    return Evaluation(snapshot, tuple(implied)) if implied or RESULT_STAGES else snapshot
