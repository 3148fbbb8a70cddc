"""The stage that tolerates violations of the old object.

It does so for constraints that ask for it, and for all policies where the object is being deleted
(:func:`~webhook.review.releasing.is_of_ending`): it then runs again behind the other stages, which
add results of Kyverno's policies and of groups. The API server's own policies are left out, because
the API server refuses by them whatever Waddle says. The old object is reviewed as an update to
itself. A violation is the same if constraint, message and details are equal. A violation that grew
worse has another message, and is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.admission_policies.kinds import POLICY
from webhook.api.encoding import encode
from webhook.constraint.result import DEFERRED, answer_order
from webhook.constraint.review import AugmentedReview
from webhook.review.releasing import is_of_ending
from webhook.slices import sorted_in_slices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.constraint.result import Responses, Result
    from webhook.review.policy_set import Examination

_Violation: TypeAlias = "tuple[tuple[str, str], str, str]"

_PATH: Final = re.compile(r"\b[A-Za-z]\w*+(?:\.[A-Za-z]\w*+|\[\d{1,6}\])++")
"""A path in a message: fields, and indexes below the most items that an object can have.

It begins at a word's beginning and never goes back: a message may hold a MiB of one word.
"""

_NAME_MAX: Final = 253
"""The longest name of an item, as of an object; a longer text is too dear to repeat."""

_STEP: Final = re.compile(r"\[(\d+)\]|\w+")

_PLACES: Final = ((), ("spec", "template"), ("spec", "jobTemplate", "spec", "template"))
"""The parts of an object whose paths a message may have: itself, or a Pod that it implies."""


def ratchet(examined: Examination, responses: Responses) -> Responses:
    """Returns the responses; violations that the old object has too become warnings."""
    ends = is_ending(examined.value)
    if not any(_may_stay(result, ends=ends) for result in responses.results):
        return responses
    request = examined.value.request if type(examined.value) is AugmentedReview else None
    if request is None or request.operation != "UPDATE" or request.old_object is None:
        return responses
    violations = [
        _violation(result, request.object) if _may_stay(result, ends=ends) else None
        for result in responses.results
    ]
    known: Counter[_Violation] = Counter()
    pending = Counter(violation for violation in violations if violation is not None)
    for value in _before(examined.value):
        before = examined.again(value)
        if before is DEFERRED:
            return DEFERRED
        known |= Counter(
            _violation(result, request.old_object)
            for result in before.results
            if _may_stay(result, ends=ends)
        )
        if pending <= known:
            break
    if not known:
        return responses
    results = [
        result if violation is None else _ratcheted(result, violation, known)
        for result, violation in zip(responses.results, violations, strict=True)
    ]
    return responses._replace(results=tuple(sorted_in_slices(results, answer_order)))


def is_ending(value: Any) -> bool:
    """Whether a reviewed value is such an update of an object that is being deleted."""
    return type(value) is AugmentedReview and is_of_ending(value.request)


def _may_stay(result: Result, *, ends: bool) -> bool:
    if result.cause != "violation" or result.constraint.kind == POLICY:
        return False
    return ends or result.constraint.lets_existing


def _before(value: AugmentedReview) -> Iterator[AugmentedReview]:
    """Yields the requests that update the old object to itself, and that create it."""
    request = value.request
    old = request.old_object
    document = {**request.document, "object": old}
    yield value._replace(request=request._replace(object=old, document=document))
    document |= {"operation": "CREATE", "oldObject": None}
    created = request._replace(object=old, old_object=None, operation="CREATE", document=document)
    yield value._replace(request=created)


def _violation(result: Result, obj: Mapping[str, Any] | None) -> _Violation:
    details = encode(result.details, sort_keys=True).decode()
    return result.constraint.key, _with_items(result.msg, obj), _with_items(details, obj)


def _with_items(text: str, obj: Mapping[str, Any] | None) -> str:
    """Returns a text with the item of the object in the place of each index of a path."""
    if "[" not in text:
        return text
    return _PATH.sub(lambda path: _path_with_items(path[0], obj), text)


def _path_with_items(path: str, obj: Any) -> str:
    for place in _PLACES:
        value, steps = obj, []
        for field in place:
            value = value.get(field) if type(value) is dict else None
        for step in _STEP.finditer(path):
            value, shown = _step(value, step)
            if not shown:
                break
            steps.append(shown)
        else:
            return ".".join(steps)
    return path


def _step(value: Any, step: re.Match[str]) -> tuple[Any, str]:
    """Returns what a step of a path leads to and its text; no text where it leads nowhere.

    A field that is absent leads to nothing, which a violation may be about.
    """
    index = step[1]
    if index is None:
        is_field = value is None or type(value) is dict
        return (value or {}).get(step[0]) if is_field else None, step[0] if is_field else ""
    if type(value) is not list or int(index) >= len(value):
        return None, ""
    item = value[int(index)]
    name = item.get("name") if type(item) is dict else item
    is_short = type(name) is str and len(name) <= _NAME_MAX
    return item, f"[{encode(name).decode()}]" if is_short else step[0]


def _ratcheted(result: Result, violation: _Violation, known: Counter[_Violation]) -> Result:
    """Returns a violation with its new action; each old violation tolerates one new violation."""
    if not known[violation]:
        return result
    known[violation] -= 1
    if "deny" not in result.actions:
        return result._replace(existing=True)
    if result.enforcement_action != "scoped":
        return result._replace(enforcement_action="warn", existing=True)
    actions = {"warn" if action == "deny" else action for action in result.scoped_actions}
    return result._replace(scoped_actions=tuple(sorted(actions)), existing=True)
