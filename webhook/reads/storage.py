"""What is kept of an object of which policies read some paths, so that no evaluation sees a difference.

Beside :mod:`webhook.reads.projection`, whose results are compared, these results are evaluated: they
are values of the same kinds, with whatever is read of the whole value at the same places.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import compact, encode
from webhook.reads.read_set import EVERY_KEY, ReadSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.reads.projection import Projection
    from webhook.reads.read_set import ReadPath

NOTHING: Final = ReadSet(scalar=False)
"""No evaluation sees more than that there is an object."""

SHARED_MAX: Final = 4_096
"""Different values that are shared at a time, as the Nodes of a large cluster are."""

SHARED_BYTES_MAX: Final = 256
"""Of JSON: what is larger is hardly ever the same for two objects."""

_NO_FIELDS: Final[dict[str, Any]] = {}
_NO_ITEMS: Final[list[Any]] = []


def covers(reads: ReadSet, needed: ReadSet) -> bool:
    """Whether all that ``needed`` names is named by ``reads``."""
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
    """What is read of an object of a kind, by what is read of ``data.inventory``.

    A policy may name a namespace or an object: what is read of any counts for all of the kind.
    """
    reads = NOTHING
    namespaces = _any_of(inventory.at("namespace"))
    for level in (inventory.at("cluster"), namespaces):
        of_all = None if level is None else _any_of(level.at(group_version, kind))
        if of_all is not None:
            reads = reads | of_all
    return reads


def _any_of(reads: ReadSet | None) -> ReadSet | None:
    """What is read at any key; None for nothing."""
    if reads is None or reads.whole:
        return reads
    below = NOTHING
    for one in reads.children.values():
        below = below | one
    return below


def reads_of(paths: Iterable[ReadPath]) -> ReadSet:
    """A set of scalars at these paths."""
    reads = NOTHING
    for path in paths:
        at = ReadSet()
        for name in reversed(path):
            at = ReadSet(scalar=False, children=MappingProxyType({name: at}))
        reads = reads | at
    return reads


def keeping(reads: ReadSet) -> Projection:
    """Return the function that keeps of a value what a set names.

    Keys and items stay all where any is read, in their order. A container of which nothing is read
    stays an empty one of its kind, a text an empty text.
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
    """Values that are equal are kept once: of many Pods, those of one Node.

    It holds a bounded number of them, and begins anew beyond that.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}

    def shared(self, value: Any) -> tuple[Any, int]:
        """Return the value, or one that is equal to it, and its length in JSON, in bytes."""
        text = encode(value)
        size = len(text)
        if size > SHARED_BYTES_MAX:
            return value, size
        if len(self._known) >= SHARED_MAX:
            self._known.clear()
        known = self._known.get(text)
        if known is None:
            known = self._known[compact(text)] = value
        # A lone surrogate is written as another character is.
        return (known if known == value else value), size
