"""Answers that an evaluation keeps: of documents, and of functions that are asked again.

Each stands for a function of generated code, in whose place it is put, and has a
slot of the evaluation's state for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.run.runtime import MISSING, REPLACED, replaced
from webhook.rego.run.values import RegoSet, key

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.run.runtime import State
    from webhook.rego.run.values import Value

MAX_KEPT: Final = 256
"""Answers of one function that an evaluation remembers."""


def once(function: Callable[[State], Value], slot: int) -> Callable[[State], Value]:
    """A document that is computed when it is asked for first."""

    def document(state: State) -> Value:
        value = state[slot]
        if value is MISSING:
            value = state[slot] = function(state)
        return value

    return document


def once_unless_replaced(
    function: Callable[[State], Value], slot: int, path: tuple[Value, ...]
) -> Callable[[State], Value]:
    """The same of a document that a modifier may replace."""

    def document(state: State) -> Value:
        if state[REPLACED]:
            value = replaced(state, path)
            if value is not MISSING:
                return value
        value = state[slot]
        if value is MISSING:
            value = state[slot] = function(state)
        return value

    return document


def kept(function: Callable[[State, Value], Value], slot: int) -> Callable[[State, Value], Value]:
    """A function's answers by the identity of its operand.

    The same container is asked about by rule after rule; that it is the same
    object is cheap to see.
    """

    def answer(state: State, operand: Value) -> Value:
        known = state[slot]
        if known is MISSING:
            known = state[slot] = {}
        else:
            answered = known.get(id(operand))
            if answered is not None and answered[0] is operand:
                return answered[1]
        value = function(state, operand)
        if len(known) < MAX_KEPT:
            known[id(operand)] = (operand, value)
        return value

    return answer


# --- groups ----------------------------------------------------------------------------------------


class Groups:
    """A comprehension's solutions by the values that variables around it have.

    As long as there are solutions, so that they are bounded as those of one collection.
    """

    __slots__ = ("_found", "_size")

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Any] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add_item(self, values: tuple[Value, ...], item: Value) -> None:
        """Add to the array for these values."""
        self._size += 1
        self._found.setdefault(_keys(values), []).append(item)

    def add_member(self, values: tuple[Value, ...], member: Value) -> None:
        """Add to the set for these values."""
        self._size += 1
        at = _keys(values)
        members = self._found.get(at)
        if members is None:
            members = self._found[at] = RegoSet()
        members.add(member)

    def array_of(self, values: tuple[Value, ...]) -> list[Value]:
        """The array for these values, which nobody changes."""
        items: list[Value] = self._found.get(_keys(values), _NO_ITEMS)
        return items

    def set_of(self, values: tuple[Value, ...]) -> RegoSet:
        """The set for these values."""
        members: RegoSet = self._found.get(_keys(values), _NO_MEMBERS)
        return members


def _keys(values: tuple[Value, ...]) -> tuple[object, ...]:
    return tuple([key(value) for value in values])


_NO_ITEMS: Final[list[Value]] = []
_NO_MEMBERS: Final = RegoSet()
