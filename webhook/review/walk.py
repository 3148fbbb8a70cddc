"""The one walk: every door's way from a subject to what the policies say of it.

The stages, in their order:

1. exclude: a namespace that Config takes out of the process is spared whole, and so is an update
   that only lets an object go;
2. mutate: what is reviewed is what would be stored;
3. expand: what the object implies is told by ExpansionTemplates;
4. match and evaluate: the object, and all that it implies, against every constraint;
5. results: each of ``RESULT_STAGES`` makes of what was found what is to be answered. It is empty:
   the place for groups of policies and for excuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.expansion import with_implied
from webhook.constraint.result import DEFERRED, Responses
from webhook.constraint.review import AugmentedReview
from webhook.review.expanding import expand_value
from webhook.review.mutating import mutate
from webhook.review.outcome import Found, Needs
from webhook.review.releasing import only_releases
from webhook.review.subject import object_of_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.constraint.expansion import Resultant
    from webhook.constraint.review import AugmentedObject
    from webhook.review.policy_set import PolicySet
    from webhook.review.subject import Subject

    ResultStage = Callable[[PolicySet, Subject, Responses], Responses]

RESULT_STAGES: Final[tuple[ResultStage, ...]] = ()


def walk(policies: PolicySet, subject: Subject) -> Found | Needs:
    """What the policies say, or what is needed first.

    Raises :class:`~webhook.constraint.errors.UnsupportedEnforcementPoint`.
    """
    place = subject.place
    if subject.excludes and _is_excluded(policies, subject):
        return Found(Responses(), subject.object, excluded=subject.counted_place)
    value = subject.value
    if subject.releases and type(value) is AugmentedReview and only_releases(value.request):
        return Found(Responses(), subject.object)
    if subject.reads_namespace and place and getattr(value, "namespace", None) is None:
        return Needs(namespace=place)
    mutated, unmutated = None, ""
    if subject.mutates and policies.mutations:
        value, mutated, unmutated = mutate(policies, subject)
    implied, unexpanded = expand_value(policies, subject, value)
    responses = _evaluate(policies, subject, value, implied)
    if responses is DEFERRED:
        return Needs(time=True)
    for stage in RESULT_STAGES:
        responses = stage(policies, subject, responses)
    objects = tuple(one.object for _, one in implied)
    return Found(responses, object_of_value(value), mutated, None, unmutated, unexpanded, objects)


# --- 1. exclude -----------------------------------------------------------------------------------


def _is_excluded(policies: PolicySet, subject: Subject) -> bool:
    if subject.object is None:
        return False  # A document is in no namespace.
    exclusions = policies.exclusions
    is_excluded = exclusions.audit if subject.process == "audit" else exclusions.webhook
    return is_excluded(subject.counted_place)


# --- 4. match and evaluate ------------------------------------------------------------------------


def _evaluate(
    policies: PolicySet,
    subject: Subject,
    value: Any,
    implied: list[tuple[Resultant, AugmentedObject]],
) -> Responses:
    """What is found of the subject and of what it implies; deferred if one of them is."""
    snapshot, point, limits = policies.snapshot, subject.point, subject.limits
    own = snapshot.review(value, enforcement_point=point, limits=limits)
    if own is DEFERRED or not implied:
        return own
    of_implied = []
    for resultant, one in implied:
        responses = snapshot.review(one, enforcement_point=point, limits=limits)
        if responses is DEFERRED:
            return DEFERRED
        of_implied.append((resultant, responses))
    return with_implied(own, of_implied)
