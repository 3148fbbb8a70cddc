"""The walk: from a subject to its findings, in five stages.

1. exclude: a namespace that Config excludes is not reviewed, nor is an update that only lets an
object go. 2. mutate: the later stages see the object that would be stored. 3. expand:
ExpansionTemplates generate implied objects. 4. match and evaluate: every constraint that matches
the object or an implied object. 5. results: ``PolicySet.stages`` change the findings, such as
groups and exceptions.

The admission thread sets a deferrable budget. A walk that exceeds it starts again on another
thread. A walk does not wait for providers either: it returns their requests, and starts again with
the responses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.constraint.limits import ELSEWHERE
from webhook.constraint.result import DEFERRED, Responses
from webhook.constraint.review import AugmentedReview
from webhook.external_data.exchange import Unanswered
from webhook.mutation.errors import OverBudget
from webhook.review.evaluation import evaluation
from webhook.review.expanding import expand_value
from webhook.review.mutating import mutate
from webhook.review.outcome import Found, Needs
from webhook.review.policy_set import nothing_excluded
from webhook.review.ratchet import is_ending
from webhook.review.releasing import only_releases
from webhook.review.subject import object_of_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.constraint.limits import Limits
    from webhook.review.evaluation import Implied, Reviewing
    from webhook.review.outcome import StoredSubject
    from webhook.review.policy_set import PolicySet
    from webhook.review.subject import Subject


def walk(policies: PolicySet, subject: Subject) -> Found | Needs:
    """Reviews a subject, or returns the data to fetch first.

    Raises :class:`~webhook.constraint.errors.UnsupportedEnforcementPoint`.
    """
    if subject.excludes and _is_excluded(policies, subject):
        return Found(Responses(), subject.object, excluded=subject.counted_place)
    value, budget = subject.value, subject.limits.budget
    if subject.releases and type(value) is AugmentedReview and only_releases(value.request):
        return Found(Responses(), subject.object, released=True)
    if subject.reads_namespace and _lacks_namespace(policies, subject):
        return Needs(namespace=subject.place)
    if budget is ELSEWHERE:
        return Needs(time=True)
    stored = None
    try:
        if subject.mutates and policies.mutates:
            stored = mutate(policies, subject)
            value = stored.value
        implied, unexpanded = expand_value(policies, subject, value)
    except OverBudget:
        return Needs(time=True)
    except Unanswered as wanting:
        return Needs(requests=tuple(dict.fromkeys(wanting.requests)))
    prepared = _Prepared(policies, subject, value, implied, unexpanded, stored)
    limits = subject.limits
    if limits.moment is None:
        limits = limits._replace(moment=subject.moment)
    if subject.rounds:
        limits = limits._replace(known=subject.known)
    return prepared.evaluate(subject, limits)


class _Prepared(NamedTuple):
    """A subject after the first three stages."""

    policies: PolicySet
    subject: Subject
    value: Any
    implied: Sequence[Implied]
    unexpanded: str
    stored: StoredSubject | None

    def again(self, limits: Limits, rounds: int) -> Found | Needs:
        """Evaluates with the responses of so many rounds of provider requests.

        They are in the subject's ``answers`` by now; ``limits`` has them, too, and the moment.
        """
        if limits.budget is ELSEWHERE:
            return Needs(time=True)
        policies, subject = self.policies, self.subject
        may_expand = self.implied or policies.stages or policies.snapshot.lets_existing
        if may_expand or is_ending(self.value):
            subject = replace(subject, limits=limits, rounds=rounds)
        return self.evaluate(subject, limits)

    def evaluate(self, subject: Subject, limits: Limits) -> Found | Needs:
        """Evaluates every constraint, and runs the stages of the results."""
        policies, _, value, implied, unexpanded, stored = self
        reviewing = evaluation(policies, subject, value, implied)
        try:
            responses = _evaluated(reviewing, subject, value, limits)
        except OverBudget:
            return Needs(time=True)
        except Unanswered as wanting:
            requests = tuple(dict.fromkeys(wanting.requests))
            return Needs(requests=requests, again=self.again)
        if responses is DEFERRED:
            return Needs(time=True)
        if responses.requests:
            return Needs(requests=tuple(dict.fromkeys(responses.requests)), again=self.again)
        objects = tuple(implied_object.object for _, implied_object in implied) if implied else ()
        mutated, unmutated = (None, "") if stored is None else (stored.mutated, stored.fault)
        return Found(
            responses,
            object_of_value(value),
            mutated,
            unmutated=unmutated,
            unexpanded=unexpanded,
            implied=objects,
            stored=stored,
        )


def _evaluated(reviewing: Reviewing, subject: Subject, value: Any, limits: Limits) -> Responses:
    """Evaluates every constraint with the provider responses so far.

    Output of ``print`` is kept once.
    """
    lines: list[tuple[Any, str]] = []
    if (print_ := limits.print_) is not None:
        limits = limits._replace(print_=lambda *line: lines.append(line))
    responses = reviewing.review(value, enforcement_point=subject.point, limits=limits)
    if responses is DEFERRED or responses.requests:
        return responses
    if print_ is not None and lines:
        for line in lines:
            print_(*line)
    return responses._replace(answers=subject.answers) if subject.answers else responses


def _lacks_namespace(policies: PolicySet, subject: Subject) -> bool:
    """Whether the Namespace of a subject must be fetched.

    An object of a list brings the current one; for a request the known one is enough.
    """
    value = subject.value
    if type(value) is AugmentedReview:
        name = value.request.namespace
        return bool(name) and value.namespace is None and name not in policies.snapshot.namespaces
    return bool(subject.place) and getattr(value, "namespace", None) is None


# --- 1. exclude -----------------------------------------------------------------------------------


def _is_excluded(policies: PolicySet, subject: Subject) -> bool:
    exclusions = policies.exclusions
    is_excluded = exclusions.audit if subject.process == "audit" else exclusions.webhook
    if is_excluded is nothing_excluded or subject.object is None:
        return False  # A document is in no namespace.
    return is_excluded(subject.counted_place)
