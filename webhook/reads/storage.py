"""Reduces stored objects to the paths that policies read; evaluations see no difference.

In :mod:`webhook.reads.projection` results are only compared. Here they are evaluated: types and
paths of the read parts stay as they are.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import compact, encode
from webhook.reads.read_set import EVERY_KEY, ReadPath, ReadSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.reads.projection import Projection

NOTHING: Final = ReadSet(scalar=False)
"""Reads only that the object exists."""

SHARED_MAX: Final = 4_096
"""The most distinct values that are shared, enough for the Nodes of a large cluster."""

SHARED_BYTES_MAX: Final = 256
"""The largest shared value, in bytes of JSON: larger values are rarely equal in two objects."""

_NO_FIELDS: Final[dict[str, Any]] = {}
_NO_ITEMS: Final[list[Any]] = []


def covers(reads: ReadSet, needed: ReadSet) -> bool:
    """Returns whether ``reads`` includes all of ``needed``."""
    if reads.whole or needed.whole:
        return reads.whole
    if needed.scalar and not reads.scalar:
        return False
    for name, below in needed.children.items():
        at = reads.at(name)
        if at is None or not covers(at, below):
            return False
    return True


def of_kind(inventory: ReadSet, group_version: str, kind: str) -> ReadSet:
    """Returns the paths that are read of a kind's objects, from the reads of ``data.inventory``.

    A policy may name a namespace or an object; its reads count for all objects of the kind.
    """
    reads = NOTHING
    namespaces = _any_of(inventory.at("namespace"))
    for level in (inventory.at("cluster"), namespaces):
        of_all = None if level is None else _any_of(level.at(group_version, kind))
        if of_all is not None:
            reads = reads | of_all
    return reads


def _any_of(reads: ReadSet | None) -> ReadSet | None:
    """Returns the union of the reads at all keys; None for no reads."""
    if reads is None or reads.whole:
        return reads
    below = NOTHING
    for child in reads.children.values():
        below = below | child
    return below


def reads_of(paths: Iterable[ReadPath]) -> ReadSet:
    """Returns a read set of the scalars at these paths."""
    reads = NOTHING
    for path in paths:
        at = ReadSet()
        for name in reversed(path):
            at = ReadSet(scalar=False, children=MappingProxyType({name: at}))
        reads = reads | at
    return reads


def keeping(reads: ReadSet) -> Projection:
    """Returns the function that reduces a value to a read set.

    Three cases: all keys and items stay, in their order, if every key is read; a container without
    reads becomes an empty container of its type; a text without reads becomes an empty text.
    """
    if reads.whole:
        return _all
    every = reads.children.get(EVERY_KEY)
    keep_every = None if every is None else keeping(every)
    named = {
        name: keeping(below)
        for name in reads.children
        if name != EVERY_KEY and (below := reads.at(name)) is not None
    }
    is_scalar = reads.scalar

    def keep(value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            if keep_every is not None:
                return {key: named.get(key, keep_every)(item) for key, item in value.items()}
            kept = {key: of(value[key]) for key, of in named.items() if key in value}
            return kept or _NO_FIELDS
        if kind is list:
            return _NO_ITEMS if keep_every is None else [keep_every(item) for item in value]
        return value if is_scalar or kind is not str else ""

    return keep


def _all(value: Any) -> Any:
    return value


class SharedValues:
    """Keeps equal values once, such as those of many Pods on one Node.

    The number of values is limited; at the limit it starts again from empty.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}

    def shared(self, value: Any) -> tuple[Any, int]:
        """Returns the value, or an equal value that is kept already, and its JSON length in bytes."""
        text = encode(value)
        size = len(text)
        if size > SHARED_BYTES_MAX:
            return value, size
        if len(self._known) >= SHARED_MAX:
            self._known.clear()
        known = self._known.get(text)
        if known is None:
            known = self._known[compact(text)] = value
        # A lone surrogate has the same JSON as another character, so values are compared, too.
        return (known if known == value else value), size
