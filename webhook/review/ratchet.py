"""The stage that tolerates violations of the old object.

It does so for constraints that ask for it, and for all policies where the object is being deleted
(:func:`~webhook.review.releasing.is_of_ending`): it then runs again behind the other stages, which
add results of Kyverno's policies and of groups. The API server's own policies are left out, because
the API server refuses by them whatever Waddle says. The old object is reviewed as an update to
itself. A violation is the same if constraint, message and details are equal. A violation that grew
worse has another message, and is refused. A group has one violation for all its members' violations:
it is the same if no member has a violation that it had not, and none that accepts now is its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook.admission_policies.kinds import POLICY
from webhook.api.encoding import encode
from webhook.api.names import CONSTRAINT_GROUP
from webhook.constraint.result import DEFERRED, answer_order
from webhook.constraint.review import AugmentedReview
from webhook.external_data.exchange import Unanswered
from webhook.review.releasing import is_of_ending
from webhook.slices import sorted_in_slices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.constraint.result import Responses, Result
    from webhook.external_data.exchange import ProviderRequest
    from webhook.review.policy_set import Examination

_Violation: TypeAlias = "tuple[tuple[str, str], str, str]"


class _Verdicts(NamedTuple):
    """A group's violation: the members that accept, that failed, and the violations of the others.

    ``implied`` is the beginning of the message about an implied object. ``limiting`` are the members
    whose acceptance can be the reason of the violation, as in ``!a()``.
    """

    implied: str
    accepting: frozenset[str]
    failed: frozenset[str]
    violations: Counter[tuple[str, str, str]]
    limiting: frozenset[str]

    def includes(self, other: _Verdicts) -> bool:
        """Whether another violation of the group is the same or a part of this."""
        return (
            self.implied == other.implied
            and other.accepting & other.limiting <= self.accepting
            and other.failed <= self.failed
            and other.violations <= self.violations
        )


_IMPLIED: Final = re.compile(r"\[Implied by [^]]*\] ")

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
    verdicts: dict[_Violation, _Verdicts] = {}
    pending = Counter(violation for violation in violations if violation is not None)
    requests: list[ProviderRequest] = []
    for value in _before(examined.value):
        try:
            before = examined.again(value)
        except Unanswered as wanting:
            requests += wanting.requests
            continue
        if before is DEFERRED:
            return DEFERRED
        were = [result for result in before.results if _may_stay(result, ends=ends)]
        of_before = [_violation(result, request.old_object) for result in were]
        known |= Counter(of_before)
        for result, violation in zip(were, of_before, strict=True):
            if (of_members := _verdicts(result, request.old_object)) is not None:
                verdicts[violation] = of_members
        if pending <= known:
            break
    if requests and not pending <= known:
        raise Unanswered(requests)  # of both forms, which take one round so
    if not known:
        return responses
    if verdicts:
        violations = [
            violation and _known_as(violation, _verdicts(result, request.object), known, verdicts)
            for result, violation in zip(responses.results, violations, strict=True)
        ]
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


def _verdicts(result: Result, obj: Mapping[str, Any] | None) -> _Verdicts | None:
    """Returns the members' verdicts in a group's violation; None for that of a constraint."""
    if result.constraint.kind != CONSTRAINT_GROUP:
        return None
    members = result.details["members"]
    formula = result.constraint.parameters.formula
    return _Verdicts(
        implied[0] if (implied := _IMPLIED.match(result.msg)) else "",
        frozenset(name for name, member in members.items() if member.get("accepts")),
        frozenset(name for name, member in members.items() if "error" in member),
        Counter(
            (
                name,
                _with_items(violation["msg"], obj),
                _with_items(encode(violation["details"], sort_keys=True).decode(), obj),
            )
            for name, member in members.items()
            for violation in member.get("violations", ())
        ),
        frozenset(() if formula is None else formula.limiting_members()),
    )


def _known_as(
    violation: _Violation,
    of_members: _Verdicts | None,
    known: Counter[_Violation],
    verdicts: Mapping[_Violation, _Verdicts],
) -> _Violation:
    """Returns the old violation that tolerates a new one, or the new one itself."""
    if of_members is None or known[violation]:
        return violation
    for old, of_old in verdicts.items():
        if old[0] == violation[0] and known[old] and of_old.includes(of_members):
            return old
    return violation


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
