"""The stage that tolerates violations of the old object.

It does so for constraints that ask for it, and for all policies where the object is being deleted
(:func:`~webhook.review.releasing.is_of_ending`): it then runs again behind the other stages, which
add results of Kyverno's policies and of groups. The API server's own policies are left out, because
the API server refuses by them whatever Waddle says. The old object is reviewed as an update to
itself. A violation is the same if constraint, message and details are equal. A violation that grew
worse has another message, and is refused.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from webhook.admission_policies.kinds import POLICY
from webhook.api.encoding import encode
from webhook.constraint.result import DEFERRED, answer_order
from webhook.constraint.review import AugmentedReview
from webhook.review.releasing import is_of_ending
from webhook.slices import sorted_in_slices

if TYPE_CHECKING:
    from webhook.constraint.result import Responses, Result
    from webhook.review.policy_set import Examination

_Violation: TypeAlias = "tuple[tuple[str, str], str, bytes]"


def ratchet(examined: Examination, responses: Responses) -> Responses:
    """Returns the responses; violations that the old object has too become warnings."""
    ends = is_ending(examined.value)
    if not any(_may_stay(result, ends=ends) for result in responses.results):
        return responses
    value = _unchanged(examined.value)
    if value is None:
        return responses
    before = examined.again(value)
    if before is DEFERRED:
        return DEFERRED
    known: Counter[_Violation] = Counter(
        _violation(result) for result in before.results if _may_stay(result, ends=ends)
    )
    if not known:
        return responses
    results = [
        _ratcheted(result, known) if _may_stay(result, ends=ends) else result
        for result in responses.results
    ]
    return responses._replace(results=tuple(sorted_in_slices(results, answer_order)))


def is_ending(value: Any) -> bool:
    """Whether a reviewed value is such an update of an object that is being deleted."""
    return type(value) is AugmentedReview and is_of_ending(value.request)


def _may_stay(result: Result, *, ends: bool) -> bool:
    if result.cause != "violation" or result.constraint.kind == POLICY:
        return False
    return ends or result.constraint.lets_existing


def _unchanged(value: Any) -> AugmentedReview | None:
    """Returns the request that updates the old object to itself; None if this is no update."""
    if type(value) is not AugmentedReview:
        return None
    request = value.request
    old = request.old_object
    if request.operation != "UPDATE" or old is None:
        return None
    document = {**request.document, "object": old}
    return value._replace(request=request._replace(object=old, document=document))


def _violation(result: Result) -> _Violation:
    return result.constraint.key, result.msg, encode(result.details, sort_keys=True)


def _ratcheted(result: Result, known: Counter[_Violation]) -> Result:
    """Returns a violation with its new action; each old violation tolerates one new violation."""
    violation = _violation(result)
    if not known[violation]:
        return result
    known[violation] -= 1
    if "deny" not in result.actions:
        return result._replace(existing=True)
    if result.enforcement_action != "scoped":
        return result._replace(enforcement_action="warn", existing=True)
    actions = {"warn" if action == "deny" else action for action in result.scoped_actions}
    return result._replace(scoped_actions=tuple(sorted(actions)), existing=True)
