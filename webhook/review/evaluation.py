"""The last two stages: a thing and what it implies against every constraint, then the results.

Whoever cannot go on here hands this to another thread: what is left of a walk is one value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from webhook.constraint import enforcement
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.result import DEFERRED, Responses, answer_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.constraint.expansion import ExpansionTemplate, Resultant
    from webhook.constraint.limits import Limits
    from webhook.constraint.result import Undecided
    from webhook.constraint.review import AugmentedObject
    from webhook.constraint.snapshot import Snapshot
    from webhook.review.policy_set import PolicySet, ResultStage

    Implied = tuple[Resultant, AugmentedObject]


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
    stages: tuple[ResultStage, ...]

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
        for stage in self.stages:
            responses = stage(self.snapshot, value, responses)
        return responses


def evaluation(policies: PolicySet, implied: Sequence[Implied] = ()) -> Reviewing:
    """What reviews a thing that implies these; a snapshot alone where that says the same.

    A call more for each request is not for nothing.
    """
    if implied or policies.stages:
        return Evaluation(policies.snapshot, tuple(implied), policies.stages)
    return policies.snapshot


def with_implied(parent: Responses, implied: Sequence[tuple[Resultant, Responses]]) -> Responses:
    """A generator's responses with those of what it implies, which say by which template."""
    evaluated, deadline_exceeded = parent.evaluated, parent.deadline_exceeded
    tells = False
    for _, told in implied:
        evaluated += told.evaluated
        deadline_exceeded = deadline_exceeded or told.deadline_exceeded
        tells = tells or bool(told.results or told.faults or told.undecided)
    if not tells:
        # As nearly always: then there is nothing to put in order.
        return Responses(
            parent.results, parent.faults, deadline_exceeded, evaluated, parent.undecided
        )
    results = list(parent.results)
    faults = list(parent.faults)
    undecided = list(parent.undecided)
    for resultant, responses in implied:
        template = resultant.template
        faults += responses.faults
        undecided += [_as_implied(item, template) for item in responses.undecided]
        results += [
            result._replace(
                msg=f"[Implied by {template.name}] {result.msg}",
                enforcement_action=template.enforcement_action or result.enforcement_action,
            )
            for result in responses.results
        ]
    return Responses(
        results=tuple(sorted(results, key=answer_order)),
        faults=tuple(faults),
        deadline_exceeded=deadline_exceeded,
        evaluated=evaluated,
        undecided=tuple(undecided),
    )


def _as_implied(item: Undecided, template: ExpansionTemplate) -> Undecided:
    """What is answered for a constraint that was not decided of what a template makes.

    Where the template's action denies nothing, it refuses nothing either.
    """
    action = template.enforcement_action
    if item.answer != "reject" or action not in ("warn", "dryrun"):
        return item
    return replace(item, answer="warn" if action == "warn" else "record")
