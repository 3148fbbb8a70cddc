"""The one walk: every door's way from a subject to what the policies say of it.

The stages, in their order:

1. exclude: a namespace that Config takes out of the process is spared whole, and so is an update
   that only lets an object go;
2. mutate: what is reviewed is what would be stored;
3. expand: what the object implies is told by ExpansionTemplates;
4. match and evaluate: the object, and all that it implies, against every constraint;
5. results: what was found becomes what is to be answered (``evaluation.RESULT_STAGES``).

The server makes stages 2 and 3 in two requests and 4 and 5 on one thread or another, of the same
parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.constraint.result import DEFERRED, Responses
from webhook.constraint.review import AugmentedReview
from webhook.review.evaluation import evaluation
from webhook.review.expanding import expand_value
from webhook.review.mutating import mutate
from webhook.review.outcome import Found, Needs
from webhook.review.releasing import only_releases
from webhook.review.subject import object_of_value

if TYPE_CHECKING:
    from webhook.review.policy_set import PolicySet
    from webhook.review.subject import Subject


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
    responses = evaluation(policies.snapshot, implied).review(
        value, enforcement_point=subject.point, limits=subject.limits
    )
    if responses is DEFERRED:
        return Needs(time=True)
    objects = tuple(one.object for _, one in implied)
    return Found(responses, object_of_value(value), mutated, None, unmutated, unexpanded, objects)


# --- 1. exclude -----------------------------------------------------------------------------------


def _is_excluded(policies: PolicySet, subject: Subject) -> bool:
    if subject.object is None:
        return False  # A document is in no namespace.
    exclusions = policies.exclusions
    is_excluded = exclusions.audit if subject.process == "audit" else exclusions.webhook
    return is_excluded(subject.counted_place)
