"""Values as an evaluation walks through them, replaces parts of them, and makes them of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.rego.errors import EvaluationError
from webhook.rego.run.values import UNDEFINED, RegoSet, equal, key, make_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.rego.check.tree import Node
    from webhook.rego.location import Location
    from webhook.rego.run.values import Key, Value


def replaced(value: Value, path: Sequence[str], new: Value) -> Value:
    """Returns a document with another value at a path; missing objects around it are made."""
    if not path:
        return new
    first, *rest = path
    around = dict(value) if isinstance(value, dict) else {}
    around[first] = replaced(around.get(first, UNDEFINED), rest, new)
    return around


class PartialDocument:
    """The document of the partial rules of one path: a set, or nested objects."""

    def __init__(self, node: Node) -> None:
        self._set = all(rule.kind == "set" for rule in node.rules)
        self._members: dict[Key, Any] = {}
        self.depth = max(
            (len(rule.rest) + (rule.key is not None) for rule in node.rules), default=0
        )
        """How many steps of a reference the rules may bind."""

    def add(self, keys: list[Value], value: Value, place: Location) -> bool:
        """Puts in a member; whether it was there before."""
        if self._set:
            return self._put(self._members, keys[0], UNDEFINED, place)
        inner = self._members
        for name in keys[:-1]:
            entry = inner.setdefault(key(name), (name, {}))
            if not isinstance(entry[1], dict) or (entry[1] and entry[1].get("") is not None):
                raise EvaluationError("eval_conflict_error", "object keys must be unique", place)
            inner = entry[1]
        if value is UNDEFINED:  # a set at the end of a path
            inner = inner if len(keys) > 1 else self._members
        return self._put(inner, keys[-1], value, place)

    def _put(self, inner: dict[Key, Any], name: Value, value: Value, place: Location) -> bool:
        at = key(name)
        if at not in inner:
            inner[at] = (name, _Leaf(value))
            return False
        there = inner[at][1]
        if not isinstance(there, _Leaf) or (
            value is not UNDEFINED and not equal(there.value, value)
        ):
            raise EvaluationError("eval_conflict_error", "object keys must be unique", place)
        return True

    def value(self) -> Value:
        """Returns the values added so far, as a set or an object."""
        return RegoSet() if self._set and not self._members else _value(self._members)


class _Leaf:
    """The end of a path; UNDEFINED marks a set's member."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


def _value(members: dict[Key, Any]) -> Value:
    if members and all(
        isinstance(inner, _Leaf) and inner.value is UNDEFINED for _, inner in members.values()
    ):
        return RegoSet([name for name, _ in members.values()])
    return make_object(
        [
            (name, inner.value if isinstance(inner, _Leaf) else _value(inner))
            for name, inner in members.values()
        ]
    )
