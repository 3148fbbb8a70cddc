"""Values cached by an evaluation: of documents, and of functions called repeatedly.

Each cache replaces a function of generated code and has its own slot in the evaluation's state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from webhook.rego.run.runtime import CONTEXT, INPUT, MISSING, REPLACED, State, index, replaced
from webhook.rego.run.values import RegoSet, Value, key
from webhook.rego.run.weight import CHARACTERS_A_STEP

LONG_NAME: Final = 1024
"""Characters of a shared document's name from which on it is paid for."""

MAX_KEPT: Final = 256
"""The most values of one function that an evaluation caches."""


def once(function: Callable[[State], Value], slot: int) -> Callable[[State], Value]:
    """Returns a document's function that computes the document at its first use."""

    def document(state: State) -> Value:
        value = state[slot]
        if value is MISSING:
            value = state[slot] = function(state)
        return value

    return document


def once_unless_replaced(
    function: Callable[[State], Value], slot: int, path: tuple[Value, ...]
) -> Callable[[State], Value]:
    """Returns a document's function that keeps its value, and heeds ``with`` that replaces it."""

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


def shared(
    function: Callable[[State], Value], slot: int, name: str, fields: Sequence[str]
) -> Callable[[State], Value]:
    """Returns a document's function that keeps its value for all policies of one review.

    The document depends only on ``input.review`` and these fields of the parameters. All policies
    with a document of this name compute it in the same way.
    """

    def document(state: State) -> Value:
        value = state[slot]
        if value is MISSING:
            values = state[CONTEXT].shared
            if values is None:
                value = function(state)
            else:
                at = name
                if fields:
                    at = shared_name(name, fields, index(state[INPUT], "parameters"))
                    if len(at) > LONG_NAME:
                        state[CONTEXT].charge(len(at) // CHARACTERS_A_STEP)
                value = values.get(at, MISSING)
                if value is MISSING:
                    value = values[at] = function(state)
            state[slot] = value
        return value

    return document


def shared_name(name: str, fields: Sequence[str], parameters: Value) -> str:
    """Returns a document's name with the parameters that it depends on, as they were written."""
    if type(parameters) is not dict:
        return f"{name} {parameters!r}" if fields else name
    given = [(field, parameters[field]) for field in fields if field in parameters]
    return f"{name} {given!r}" if given else name


def kept(function: Callable[[State, Value], Value], slot: int) -> Callable[[State, Value], Value]:
    """Returns a function that caches its values by the identity of the operand.

    Several rules call it with the same container, and a test for the same object is cheap.
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
    """A comprehension's solutions, grouped by the values of the variables around it.

    The length is the number of solutions, so the limit of one collection bounds all groups.
    """

    __slots__ = ("_found", "_size")

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Any] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add_item(self, values: tuple[Value, ...], item: Value) -> None:
        """Adds to the array for these values."""
        self._size += 1
        self._found.setdefault(_keys(values), []).append(item)

    def add_member(self, values: tuple[Value, ...], member: Value) -> None:
        """Adds to the set for these values."""
        self._size += 1
        at = _keys(values)
        members = self._found.get(at)
        if members is None:
            members = self._found[at] = RegoSet()
        members.add(member)

    def array_of(self, values: tuple[Value, ...]) -> list[Value]:
        """Returns the array for these values; callers must not change it."""
        items: list[Value] = self._found.get(_keys(values), _NO_ITEMS)
        return items

    def set_of(self, values: tuple[Value, ...]) -> RegoSet:
        """Returns the set for these values."""
        members: RegoSet = self._found.get(_keys(values), _NO_MEMBERS)
        return members


def _keys(values: tuple[Value, ...]) -> tuple[object, ...]:
    return tuple([key(value) for value in values])


_NO_ITEMS: Final[list[Value]] = []
_NO_MEMBERS: Final = RegoSet()
