"""Schema conflicts: mutators whose locations contradict each other about one kind.

The locations of mutators imply a tree of a kind's objects. The value at each name is an object, a
list of items with a certain key, a set or a text: the next node of the location implies it, or the
mutator's kind at the end. Two mutators that contradict each other are both not applied
(Gatekeeper's pkg/mutation/schema).
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from webhook.mutation.location import Field, ListItem, Location
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.mutation.mutator import Mutator, MutatorId

UNKNOWN: Final = "Unknown"
_LIST: Final = "List"
_OBJECT: Final = "Object"


@dataclass(slots=True)
class _Node:
    users: set[MutatorId] = field(default_factory=set)
    enders: set[MutatorId] = field(default_factory=set)
    """The mutators whose location ends here and must not continue."""
    children: dict[str, dict[str, _Node]] = field(default_factory=dict)
    """Child nodes, by name and implied type."""

    def conflicting_at(self, name: str) -> set[MutatorId]:
        """Returns the mutators that disagree about the type at a name."""
        types = self.children.get(name, {})
        known = len(types) - (UNKNOWN in types)
        users: set[MutatorId] = set()
        for kind, child in types.items():
            if kind != UNKNOWN and (known > 1 or (kind == _LIST and len(child.children) > 1)):
                users |= child.users
        enders = set().union(*(child.enders for child in types.values()))
        below = [grand for child in types.values() for grand in child.grandchildren()]
        if enders and below:
            users |= enders.union(*(grand.users for grand in below))
        return users

    def grandchildren(self) -> Iterator[_Node]:
        """Yields the nodes below, of every name and type."""
        for types in self.children.values():
            yield from types.values()


class MutationSchema:
    """The schema of one kind at one operation, by the mutators that imply it."""

    def __init__(self, mutators: Iterable[Mutator]) -> None:
        self._root = _Node()
        self._known: dict[tuple[int, str], frozenset[MutatorId]] = {}
        """The mutators that contradict another about a name, by the node's identity: looked for
        once."""
        for mutator in mutators:
            node = self._root
            node.users.add(mutator.id)
            for name, kind in _steps(mutator.location, mutator.terminal):
                node = node.children.setdefault(name, {}).setdefault(kind, _Node())
                node.users.add(mutator.id)
            if mutator.must_terminate:
                node.enders.add(mutator.id)

    def conflicting(self) -> set[MutatorId]:
        """Returns every mutator that contradicts another."""
        users: set[MutatorId] = set()
        due = [self._root]
        while due:
            node = due.pop()
            for name in node.children:
                users |= self._conflicting_at(node, name)
            due.extend(node.grandchildren())
        return users

    def conflicts_of(self, mutator: Mutator) -> list[frozenset[MutatorId]]:
        """Returns the sets of mutators in conflict along a location, usually with itself.

        Each place has one set that all its mutators share: none is copied for thousands of
        mutators.
        """
        places: list[frozenset[MutatorId]] = []
        node = self._root
        for name, kind in _steps(mutator.location, mutator.terminal):
            if users := self._conflicting_at(node, name):
                places.append(users)
            node = node.children[name][kind]
        return places

    def _conflicting_at(self, node: _Node, name: str) -> frozenset[MutatorId]:
        key = id(node), name
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = frozenset(node.conflicting_at(name))
        return known


def _steps(location: Location, terminal: str) -> Iterator[tuple[str, str]]:
    """Yields the names of a location, each with the type that it implies."""
    for place, node in enumerate(location):
        name = node.key if isinstance(node, ListItem) else node.name
        if place + 1 == len(location):
            yield name, terminal
        else:
            yield name, _OBJECT if isinstance(location[place + 1], Field) else _LIST


PARTIES_SHOWN: Final = 50
"""Of a conflict: each party's status has them all, and is written by every replica."""


def message(conflicts: Sequence[MutatorId]) -> str:
    """Returns the message for each party to a conflict, in their order; Gatekeeper's sentence."""
    names = ",".join(sorted(map(str, conflicts[:PARTIES_SHOWN])))
    more = len(conflicts) - PARTIES_SHOWN
    if more > 0:
        names = f"{names} and {more} more"
    return f"the following mutators have conflicting schemas: [{names}]"
