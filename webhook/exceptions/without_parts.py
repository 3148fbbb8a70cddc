"""Reviews an object again without parts: the violations that vanish are excused, for any policy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode
from webhook.constraint.result import DEFERRED
from webhook.constraint.review import AugmentedObject
from webhook.external_data.exchange import Unanswered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.constraint.result import Excuse, ExcuseEffect, Responses, Result
    from webhook.exceptions.exception import PolicyException
    from webhook.exceptions.parts import Parts
    from webhook.external_data.exchange import ProviderRequest
    from webhook.review.policy_set import Examination

AGAIN_MAX: Final = 16
"""The most repeated reviews of one object without parts: each takes as long as the first."""

LENIENT: Final[tuple[ExcuseEffect, ...]] = ("skip", "dryrun", "warn")
"""The effects, the most lenient first: the most lenient of several exceptions applies."""


class Deferred(Exception):
    """A review without parts takes too long on this thread."""


class WithoutParts:
    """The repeated reviews of one object, each without the parts of some exceptions."""

    def __init__(self, examined: Examination, responses: Responses) -> None:
        self._examined = examined
        self._responses = responses
        self._has_parts: dict[int, bool] = {}
        """Whether the object has parts of an exception, by its identity."""
        self._gone: dict[tuple[int, ...], Mapping[tuple[str, str], Counter[_Violation]]] = {}
        """The violations that vanish without the parts of some exceptions, by constraint."""
        self._requests: list[ProviderRequest] = []
        """The provider requests of these reviews that have no answer yet."""

    def check_answers(self) -> None:
        """Raises :class:`~webhook.external_data.exchange.Unanswered` for missing provider responses.

        The requests of all exceptions are sent at once: there are more exceptions than rounds.
        """
        if self._requests:
            raise Unanswered(self._requests)

    def excusing(self, result: Result, items: Sequence[PolicyException]) -> list[Excuse]:
        """Returns the exceptions whose parts cause a violation.

        If only several exceptions excuse it together, the strictest effect among them applies. The
        one that ends first is then shown, with the others.
        """
        items = [item for item in items if self._is_present(item)]
        if alone := [item for item in items if self._goes_without(result, (item,))]:
            return [item.excuse for item in alone]
        if self._requests:
            return []  # Only with the answers it is known whether several are needed together.
        tried = 1
        for rank in range(len(LENIENT)):
            some = tuple(item for item in items if _rank(item) <= rank)
            if len(some) > tried and self._goes_without(result, some):
                return [_shared(some)]
            tried = max(tried, len(some))
        return []

    def _is_present(self, item: PolicyException) -> bool:
        if (known := self._has_parts.get(id(item))) is None:
            known = _without(self._examined.value, _parts_of((item,))) is not None
            self._has_parts[id(item)] = known
        return known

    def _goes_without(self, result: Result, items: tuple[PolicyException, ...]) -> bool:
        key = tuple(id(item) for item in items)
        if (gone := self._gone.get(key)) is None:
            if len(self._gone) >= AGAIN_MAX:
                return False
            gone = self._gone[key] = self._found_gone(_parts_of(items))
        return gone.get(result.constraint.key, Counter())[_violation(result)] > 0

    def _found_gone(self, parts: Sequence[Parts]) -> dict[tuple[str, str], Counter[_Violation]]:
        """Returns the results that vanish without some parts, by constraint.

        If a constraint then has new results, or is undecided, none of its results count: its
        messages may describe the rest in other words.
        """
        value = _without(self._examined.value, parts)
        try:
            earlier = self._examined.again(value)
        except Unanswered as wanting:
            self._requests += wanting.requests
            return {}
        if earlier is DEFERRED:
            raise Deferred
        faulty = {fault.kind for fault in earlier.faults}
        if "" in faulty or earlier.deadline_exceeded:
            return {}
        before = _by_constraint(self._responses.results)
        after = _by_constraint(earlier.results)
        undecided = {item.constraint.key for item in earlier.undecided}
        return {
            key: violations - after.get(key, Counter())
            for key, violations in before.items()
            if key not in undecided
            and key[0] not in faulty
            and not after.get(key, Counter()) - violations
        }


_Violation = tuple[str, bytes]


def _rank(item: PolicyException) -> int:
    return LENIENT.index(item.excuse.effect)


def _shared(items: Iterable[PolicyException]) -> Excuse:
    shown, *others = sorted(items, key=lambda item: (-_rank(item), item.ends))
    return replace(shown.excuse, others=tuple(item.excuse for item in others))


def _parts_of(items: Iterable[PolicyException]) -> list[Parts]:
    return [item.parts for item in items if item.parts is not None]


def _violation(result: Result) -> _Violation:
    return result.msg, encode(result.details, sort_keys=True)


def _by_constraint(results: Iterable[Result]) -> dict[tuple[str, str], Counter[_Violation]]:
    by_constraint: dict[tuple[str, str], Counter[_Violation]] = {}
    for result in results:
        by_constraint.setdefault(result.constraint.key, Counter())[_violation(result)] += 1
    return by_constraint


def _without(value: Any, parts: Sequence[Parts]) -> Any:
    """Returns the review without some parts of its objects; None if it has none of them."""
    if type(value) is AugmentedObject:
        reviewed = _taken(value.object, parts)
        return None if reviewed is value.object else value._replace(object=reviewed)
    request = value.request
    was, old_was = request.object, request.old_object
    obj = None if was is None else _taken(was, parts)
    old = None if old_was is None else _taken(old_was, parts)
    if obj is was and old is old_was:
        return None
    document = {**request.document, "object": obj, "oldObject": old}
    return value._replace(request=request._replace(document=document, object=obj, old_object=old))


def _taken(obj: dict[str, Any], parts: Sequence[Parts]) -> dict[str, Any]:
    for part in parts:
        obj = part.taken_from(obj) or obj
    return obj
