"""Finds mutators that cannot affect each other, by their specs, without an object.

If no mutator writes a field that another reads or writes, their order does not matter: one pass
assigns all values, and a second pass changes no field. A mutator reads the fields on its path
(their existence and type), the value at its end, and the labels that it matches. So no location may
be the beginning of another. Two locations may share only fields and whole lists whose existence no
mutator tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.mutation.location import Field, ListItem, Node
from webhook.mutation.path_tests import ANYTHING
from webhook.mutation.setting import Constant, FromMetadata, Image, Merge, Prune
from webhook.mutation.values import MISSING
from webhook.mutation.walk import Below, Fields, Items, Leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.mutation.mutator import Mutator

_KNOWN: Final = (Constant, FromMetadata, Image, Merge, Prune)
"""The setters that change no value of their own making (an image setter is tested)."""

_LABELS: Final = (Field("metadata"), Field("labels"))


class Dependent(Exception):
    """Some of the mutators may have to do with each other."""


def tree_of(mutators: Sequence[Mutator], labels_read: frozenset[str]) -> Fields | None:
    """Returns the tree for a walk; None if the order of the mutators may matter.

    ``labels_read`` are the labels in selectors of all mutators for the same objects: a label added
    by one mutator may make another match.
    """
    known = all(type(item.assignment.setter) in _KNOWN and item.location for item in mutators)
    if not known or not labels_read.isdisjoint(_labels_written(mutators)):
        return None
    try:
        return _fields(list(enumerate(mutators)), 0)
    except Dependent:
        return None


def _labels_written(mutators: Sequence[Mutator]) -> set[str]:
    return {
        node.name
        for mutator in mutators
        if mutator.location[:2] == _LABELS and type(node := mutator.location[-1]) is Field
    }


def _fields(users: Sequence[tuple[int, Mutator]], depth: int) -> Fields:
    """Returns the fields of the locations at a depth; the locations are equal above it."""
    by_name: dict[str, list[tuple[int, Mutator]]] = {}
    for number, mutator in users:
        node = mutator.location[depth]
        if type(node) is not Field:
            raise Dependent
        by_name.setdefault(node.name, []).append((number, mutator))
    values: dict[str, Any] = {}
    together: list[Leaf] = []
    leaves: list[Leaf] = []
    below: list[tuple[str, Below, bool]] = []
    for name, fields in by_name.items():
        try:
            inner = _below(fields, depth)
        except Dependent:
            if len(fields) > 1:
                raise
        else:
            below.append((name, inner, fields[0][1].assignment.null_is_missing))
            continue
        [(number, mutator)] = fields  # A field of one mutator only: its own assignment applies.
        leaf = Leaf(name, mutator.assignment, depth, 1 << number)
        value = _value_where_missing(mutator, depth)
        if value is MISSING:
            leaves.append(leaf)
        else:
            values[name] = value
            together.append(leaf)
    return Fields(values, together, leaves, below)


def _below(users: Sequence[tuple[int, Mutator]], depth: int) -> Below:
    """Returns the nodes below a field that several locations share."""
    _check_untested(users, depth)
    kinds = {type(_node(mutator, depth + 1)) for _, mutator in users}
    if kinds == {Field}:
        return _fields(users, depth + 1)
    items = {_node(mutator, depth + 1) for _, mutator in users}
    [item, *others] = items
    if others or type(item) is not ListItem or item.value is not None:
        raise Dependent
    _check_untested(users, depth + 1)
    for _, mutator in users:
        _node(mutator, depth + 2)
    return Items(_fields(users, depth + 2))


def _node(mutator: Mutator, depth: int) -> Node:
    """Returns the node at a depth of a location; raises Dependent beyond its end."""
    if depth >= len(mutator.location):
        raise Dependent
    return mutator.location[depth]


def _check_untested(users: Sequence[tuple[int, Mutator]], depth: int) -> None:
    """Raises :class:`Dependent` if a mutator tests the existence of the field."""
    if any(mutator.assignment.allowed[depth] != ANYTHING for _, mutator in users):
        raise Dependent


def _value_where_missing(mutator: Mutator, depth: int) -> Any:
    """Returns the value for a missing last field; ``MISSING`` where that is not known."""
    assignment = mutator.assignment
    if depth + 1 < len(assignment.location) or not assignment.allowed[depth].missing:
        return MISSING
    setter = assignment.setter
    if type(setter) is Constant:
        return setter.value
    if type(setter) is Merge:
        return list(setter.values)
    return MISSING
