"""Functions that extract the read parts of a value, to compare two values by them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from webhook.reads.read_set import EVERY_KEY, WHOLE, ReadSet
from webhook.reads.text_tests import outcomes_of

Projection: TypeAlias = "Callable[[Any], Any]"

FUNCTIONS_MAX: Final = 1_000
"""The most parts of a read set for a projection: ten times those of the library's largest."""

_EVERYTHING: Final = MappingProxyType({EVERY_KEY: WHOLE})

_MISSING: Final[list[Any]] = []
_OBJECT: Final = [1]
_ARRAY: Final = [2]
_NAMES: Final = {
    "MISSING": _MISSING,
    "OBJECT": _OBJECT,
    "ARRAY": _ARRAY,
    "CONTAINERS": frozenset({dict, list}),
}


class TooManyParts(Exception):
    """A read set has too many parts for a projection."""


def widened(reads: ReadSet, depth: int, kept: Collection[str]) -> ReadSet:
    """Returns a larger read set that is faster to extract: containers below a depth are read whole.

    Children with ``kept`` names stay as they are. A scalar of which only the presence is read stays
    so, too.
    """
    if reads.whole or not reads.children:
        return reads
    if depth <= 0:
        return (
            ReadSet(scalar=False, children=_EVERYTHING, tests=reads.tests) if reads.tests else WHOLE
        )
    below = {
        name: child if name in kept else widened(child, depth - 1, kept)
        for name, child in reads.children.items()
    }
    return ReadSet(scalar=reads.scalar, children=below, tests=reads.tests)


def projection(reads: ReadSet) -> Projection:
    """Returns the projection of a read set. Raises :class:`TooManyParts`.

    The results have JSON's types and share parts of the value. Two results are equal as JSON
    exactly if the read parts of the two values are equal. A scalar is its own projection. A
    container or a missing value becomes an array that begins with a mark, and so does a text that is
    only tested. Where all keys are read, they keep their order.
    """
    writer = _Writer()
    name = writer.function(reads)
    code = compile("\n".join(writer.lines), "<projection>", "exec")
    namespace: dict[str, Any] = _NAMES | writer.values
    exec(code, namespace)  # noqa: S102  # generated names, and repr() of keys
    function: Projection = namespace[name]
    return function


class _Writer:
    """Writes a function for each distinct part of a read set."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Any] = {}
        """Values that the functions use, by name."""
        self._names: dict[Any, str] = {}
        self._tables = 0

    def function(self, reads: ReadSet) -> str:
        """Returns the name of a part's function."""
        key = _key(reads)
        name = self._names.get(key)
        if name is None:
            if len(self._names) >= FUNCTIONS_MAX:
                raise TooManyParts
            name = self._names[key] = f"part_{len(self._names)}"
            self.lines += self._written(name, reads)
        return name

    def _written(self, name: str, reads: ReadSet) -> list[str]:
        """Returns the lines of one function; the functions that it calls are written first."""
        lines = [f"def {name}(value):"]
        if reads.whole:
            return [*lines, " return [3, value]"]
        if reads.tests:
            lines += self._of_text(name, reads)
            reads = ReadSet(children=reads.children)
        if not reads.scalar and not reads.children:
            return [*lines, " return value is not False"]
        of_scalar = f" return {'value' if reads.scalar else 'value is not False'}"
        every = reads.children.get(EVERY_KEY)
        if every is not None and every.whole:
            return [*lines, " if type(value) in CONTAINERS:", "  return [3, value]", of_scalar]
        return [
            *lines,
            " kind = type(value)",
            " if kind is dict:",
            *self._of_object(reads),
            " if kind is list:",
            f"  return {self._of_array(reads)}",
            of_scalar,
        ]

    def _of_text(self, name: str, reads: ReadSet) -> list[str]:
        kept, look = f"kept_of_{name}", f"look_of_{name}"
        self.values[kept], self.values[look] = outcomes_of(reads.tests)
        return [
            " if type(value) is str:",
            f"  return {kept}.get(value) or {look}(value)",
        ]

    def _of_object(self, reads: ReadSet) -> list[str]:
        every = reads.children.get(EVERY_KEY)
        if not reads.children:
            return ["  return OBJECT"]
        if every is not None:
            of_every = self.function(every)
            of_names = [
                f"{name!r}: {self.function(below)}"
                for name in sorted(reads.children)
                if name != EVERY_KEY and (below := reads.at(name)) is not None
            ]
            if not of_names:
                members = f"{{key: {of_every}(item) for key, item in value.items()}}"
                return [f"  return [1, {members}]"]
            table = f"table_{self._tables}"
            self._tables += 1
            self.lines.append(f"{table} = {{{', '.join(of_names)}}}.get")
            members = f"{{key: {table}(key, {of_every})(item) for key, item in value.items()}}"
            return [f"  return [1, {members}]"]
        parts = [self._child(name, reads.children[name]) for name in sorted(reads.children)]
        return ["  get = value.get", f"  return [1, {', '.join(parts)}]"]

    def _child(self, name: str, reads: ReadSet) -> str:
        """Returns code for the value at a name, or for its absence."""
        at = f"MISSING if (at := get({name!r}, MISSING)) is MISSING else "
        if reads.whole:
            return f"{at}[3, at]"
        if reads.children or reads.tests:
            return f"{at}{self.function(reads)}(at)"
        if not reads.scalar:
            return f"{at}at is not False"
        return f"{at}at if type(at) not in CONTAINERS else {self.function(reads)}(at)"

    def _of_array(self, reads: ReadSet) -> str:
        every = reads.children.get(EVERY_KEY)
        if every is None:
            return "ARRAY"
        return f"[2, *[{self.function(every)}(item) for item in value]]"


def _key(reads: ReadSet) -> Any:
    """Returns a key that is equal for equal parts."""
    below = tuple((name, _key(reads.children[name])) for name in sorted(reads.children))
    return reads.whole, reads.scalar, below, reads.tests
