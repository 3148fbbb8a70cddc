"""The last two stages: evaluates constraints, then runs the result stages.

Constraints are evaluated on an object and on its implied objects. The rest of a walk is one value,
so that another thread can continue it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from webhook.constraint import enforcement
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.result import DEFERRED, Fault, Responses, answer_order
from webhook.external_data.exchange import Unanswered, is_failure, of_another_form
from webhook.review.expanding import expand_value
from webhook.review.ratchet import is_ending, ratchet
from webhook.slices import sorted_in_slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.constraint.expansion import ExpansionTemplate, Resultant
    from webhook.constraint.limits import Limits
    from webhook.constraint.result import Undecided
    from webhook.constraint.review import AugmentedObject
    from webhook.constraint.snapshot import Snapshot
    from webhook.external_data.exchange import ProviderRequest
    from webhook.review.policy_set import PolicySet, ResultStage
    from webhook.review.subject import Subject

    Implied = tuple[Resultant, AugmentedObject]


class Reviewing(Protocol):
    """The common interface of a snapshot and an :class:`Evaluation`."""

    def review(
        self,
        value: Any,
        *,
        enforcement_point: str = enforcement.ALL,
        limits: Limits = UNLIMITED,
    ) -> Responses:
        """Reviews a value; see :meth:`webhook.constraint.snapshot.Snapshot.review`."""


# Made for each request: a named tuple takes half the time of a frozen dataclass.
class Evaluation(NamedTuple):
    """Reviews a value and its implied objects by a snapshot, then applies the result stages.

    ``subject`` is the subject of the walk, for stages that review another value of it.
    """

    policies: PolicySet
    subject: Subject
    implied: Sequence[Implied]
    stages: tuple[ResultStage, ...]

    def review(
        self,
        value: Any,
        *,
        enforcement_point: str = enforcement.ALL,
        limits: Limits = UNLIMITED,
    ) -> Responses:
        """Reviews the value and its implied objects. The result is deferred if any review is.

        Raises :class:`~webhook.external_data.exchange.Unanswered` with the provider requests of all
        reviews, so that they are sent together; and the errors of a snapshot.
        """
        policies, _, implied, stages = self
        review = policies.snapshot.review
        responses = review(value, enforcement_point=enforcement_point, limits=limits)
        if responses is DEFERRED:
            return DEFERRED
        requests = responses.requests
        of_implied = []
        for resultant, subject in implied:
            findings = review(subject, enforcement_point=enforcement_point, limits=limits)
            if findings is DEFERRED:
                return DEFERRED
            requests += findings.requests
            of_implied.append((resultant, findings))
        if requests:
            raise Unanswered(requests)
        if of_implied:
            responses = with_implied(responses, of_implied)
        for number, stage in enumerate(stages):
            examined = self, value, enforcement_point, limits, number
            # Of a named tuple, this takes half the time of calling the class.
            responses = stage(tuple.__new__(_Examined, examined), responses)
            if responses is DEFERRED:
                return DEFERRED
        return responses


class _Examined(NamedTuple):
    """The examination that a stage sees."""

    evaluation: Evaluation
    value: Any
    point: str
    limits: Limits
    number: int
    """The number of stages before this one."""

    @property
    def snapshot(self) -> Snapshot:
        """Returns the snapshot of the review."""
        return self.evaluation.policies.snapshot

    @property
    def at(self) -> float:
        """Returns the time of the decision, in seconds since the epoch."""
        at = self.evaluation.subject.at
        return time.time() if at is None else at

    def again(self, value: Any) -> Responses:
        """Reviews another value; the result has a fault if its implied objects are not known."""
        earlier, limits, failed = self.evaluation, self.limits, self._failed()
        implied, unexpanded = expand_value(earlier.policies, earlier.subject, value)
        if unexpanded:
            return Responses(faults=(Fault("", "", unexpanded),))
        if limits.known is not None:
            limits = limits._replace(known=of_another_form(limits.known, failed))
        inner = earlier._replace(implied=implied, stages=earlier.stages[: self.number])
        return inner.review(value, enforcement_point=self.point, limits=limits)

    def _failed(self) -> frozenset[ProviderRequest]:
        """Returns the failed requests of the value itself: those before its first other form."""
        subject = self.evaluation.subject
        known = subject.moment.failed
        if known is None or known[0] is not subject.value:
            answers = subject.answers or {}
            failed = frozenset(request for request in answers if is_failure(answers[request]))
            known = subject.moment.failed = subject.value, failed
        return known[1]


def evaluation(
    policies: PolicySet,
    subject: Subject,
    value: Any,
    implied: Sequence[Implied],
) -> Reviewing:
    """Returns the reviewer of a subject's value.

    The snapshot itself if there are no stages and nothing is implied.

    Otherwise an :class:`Evaluation`, which costs one more call for each request.
    """
    stages = policies.stages
    if is_ending(value):
        stages = (ratchet, *stages, ratchet) if stages else (ratchet,)
    elif policies.snapshot.lets_existing:
        stages = (ratchet, *stages)
    if implied or stages:
        # Made for each request: it takes half the time of calling the class.
        return tuple.__new__(Evaluation, (policies, subject, implied, stages))
    return policies.snapshot


def with_implied(parent: Responses, implied: Sequence[tuple[Resultant, Responses]]) -> Responses:
    """Returns the responses of an object and its implied objects, marked with their template."""
    evaluated, deadline_exceeded = parent.evaluated, parent.deadline_exceeded
    recalled = parent.recalled
    has_results = False
    for _, of_implied in implied:
        evaluated += of_implied.evaluated
        recalled += of_implied.recalled
        deadline_exceeded = deadline_exceeded or of_implied.deadline_exceeded
        has_results = has_results or bool(
            of_implied.results or of_implied.faults or of_implied.undecided
        )
    if not has_results:
        # As nearly always: then there is nothing to put in order.
        return Responses(
            parent.results,
            parent.faults,
            deadline_exceeded,
            evaluated,
            parent.undecided,
            recalled=recalled,
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
        results=tuple(sorted_in_slices(results, answer_order)),
        faults=tuple(faults),
        deadline_exceeded=deadline_exceeded,
        evaluated=evaluated,
        undecided=tuple(undecided),
        recalled=recalled,
    )


def _as_implied(item: Undecided, template: ExpansionTemplate) -> Undecided:
    """Returns an implied object's undecided constraint, with the template's enforcement action.

    A template that does not deny makes it a warning.
    """
    action = template.enforcement_action
    if item.answer != "reject" or action not in ("warn", "dryrun"):
        return item
    return replace(item, answer="warn" if action == "warn" else "record")
