"""Whole packages at run time: base documents merged with the documents of rules, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from webhook.rego.run.runtime import (
    CONTEXT,
    DATA,
    MISSING,
    REPLACED,
    State,
    index,
    pairs_in_order,
    path,
    replaced,
    size,
)
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, Value, key, make_object


class DataNode:
    """A step of a path below ``data`` at run time.

    It has a ``document`` computed by rules, or ``children`` by the keys of their names. The
    documents above omit a ``hidden`` step.
    """

    __slots__ = ("children", "document", "hidden", "name")

    def __init__(
        self,
        name: Value,
        document: Callable[[State], Value] | None,
        *,
        hidden: bool = False,
    ) -> None:
        self.name = name
        self.document = document
        self.children: dict[Any, DataNode] = {}
        self.hidden = hidden


def set_children(node: DataNode, children: Sequence[DataNode]) -> None:
    """Sets the children of a step."""
    node.children = {key(child.name): child for child in children}


def extent(state: State, node: DataNode | None, names: tuple[Value, ...]) -> Value:
    """Returns the whole document at a path: base documents merged with the documents of rules."""
    state[CONTEXT].charge(1)
    if state[REPLACED] and node is not None:
        document = replaced(state, names)
        if document is not MISSING:
            return document
    base = path(state[DATA], names)
    if node is None:
        return base
    if node.document is not None:
        return node.document(state)
    virtual = _leaves(state, node, names)
    if base is UNDEFINED:
        return virtual
    return merge(base, virtual)


def _leaves(state: State, node: DataNode, names: tuple[Value, ...]) -> Value:
    leaves = []
    for child in node.children.values():
        if child.hidden:
            continue
        below = (*names, child.name)
        value = replaced(state, below) if state[REPLACED] else MISSING
        if value is MISSING:
            if child.document is not None:
                value = child.document(state)
            else:
                value = _leaves(state, child, below)
        if value is not UNDEFINED:
            leaves.append((child.name, value))
    return make_object(leaves)


def merge(base: Value, virtual: Value) -> Value:
    """Merge two objects; where they disagree the base document stands."""
    kinds = (dict, RegoObject)
    if type(base) not in kinds or type(virtual) not in kinds:
        return base
    members = []
    for name, value in base.items():
        other = index(virtual, name)
        members.append((name, value if other is UNDEFINED else merge(value, other)))
    members.extend((k, v) for k, v in virtual.items() if index(base, k) is UNDEFINED)
    return make_object(members)


def explore(
    state: State, node: DataNode | None, names: tuple[Value, ...], rest: Sequence[Value]
) -> Iterator[tuple[Value, ...]]:
    """Yields every document at a path whose steps are values, or UNDEFINED for any name.

    Yields the names found for the open steps, in order, and the document last.
    """
    if not rest:
        value = extent(state, node, names)
        if value is not UNDEFINED:
            yield (value,)
        return
    step = rest[0]
    if step is not UNDEFINED:
        yield from _descend(state, node, names, step, rest)
        return
    base = path(state[DATA], names)
    seen = []
    for name, _ in pairs_in_order(base):
        state[CONTEXT].charge(1)
        seen.append(name)
        for below in _descend(state, node, names, name, rest):
            yield (name, *below)
    if node is None:
        return
    known = RegoSet(seen)
    for child in sorted(node.children.values(), key=lambda c: str(c.name)):
        if child.name not in known:
            for below in _descend(state, node, names, child.name, rest):
                yield (child.name, *below)


def _descend(
    state: State,
    node: DataNode | None,
    names: tuple[Value, ...],
    step: Value,
    rest: Sequence[Value],
) -> Iterator[tuple[Value, ...]]:
    below = (*names, step)
    if state[REPLACED] and node is not None and replaced(state, below) is not MISSING:
        node = None
    child = None if node is None else node.children.get(key(step))
    if child is not None and child.document is not None:
        value = child.document(state)
        if value is not UNDEFINED:
            yield from inside(state, value, rest[1:])
        return
    yield from explore(state, child, below, rest[1:])


def inside(state: State, value: Value, rest: Sequence[Value]) -> Iterator[tuple[Value, ...]]:
    """Yields the same as :func:`explore`, within one value."""
    if not rest:
        yield (value,)
        return
    if rest[0] is not UNDEFINED:
        member = index(value, rest[0])
        if member is not UNDEFINED:
            yield from inside(state, member, rest[1:])
        return
    state[CONTEXT].charge(size(value))
    for name, item in pairs_in_order(value):
        for more in inside(state, item, rest[1:]):
            yield (name, *more)
