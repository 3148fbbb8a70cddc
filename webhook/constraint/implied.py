"""A thing reviewed together with what it implies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from webhook.constraint import enforcement
from webhook.constraint.expansion import with_implied
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.result import DEFERRED

if TYPE_CHECKING:
    from webhook.constraint.expansion import Resultant
    from webhook.constraint.limits import Limits
    from webhook.constraint.result import Responses
    from webhook.constraint.review import AugmentedObject


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


class WithImplied(NamedTuple):
    """Reviews one thing by a snapshot, and then what it implies."""

    snapshot: Reviewing
    implied: tuple[tuple[Resultant, AugmentedObject], ...]

    def review(
        self,
        value: Any,
        *,
        enforcement_point: str = enforcement.ALL,
        limits: Limits = UNLIMITED,
    ) -> Responses:
        """What is found of all; deferred if one of them is, and raises as a snapshot does."""
        own = self.snapshot.review(value, enforcement_point=enforcement_point, limits=limits)
        if own is DEFERRED:
            return DEFERRED
        of_implied = []
        for resultant, subject in self.implied:
            responses = self.snapshot.review(
                subject, enforcement_point=enforcement_point, limits=limits
            )
            if responses is DEFERRED:
                return DEFERRED
            of_implied.append((resultant, responses))
        return with_implied(own, of_implied)
