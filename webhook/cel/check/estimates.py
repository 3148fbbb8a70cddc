"""Sizes and places that an estimate of cost goes by, with the arithmetic of cel-go's (checker/cost.go)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.cel.check.types import Type
    from webhook.cel.syntax.ast import Expr

MOST: Final = 2**64 - 1
"""Sums and products end here."""

CHARACTER: Final = 0.1
"""The cost of going through one character of a text."""

PATTERN: Final = 0.25
"""The compiled parts of a regular expression for each of its characters: four are thought to make
one."""

LIST: Final = 10
MAP: Final = 30
MESSAGE: Final = 40

Size: TypeAlias = tuple[int, int]
"""The least and the most characters or entries."""

ANY_SIZE: Final[Size] = (0, MOST)
ONE: Final[Size] = (1, 1)

_SCALARS: Final = frozenset(
    {"bool", "double", "int", "uint", "google.protobuf.Duration", "google.protobuf.Timestamp"}
)


def plus(x: int, y: int) -> int:
    """Returns a sum that does not grow beyond MOST."""
    return min(x + y, MOST)


def times(x: int, y: int) -> int:
    """Returns a product, or the maximum of cel-go."""
    return min(x * y, MOST)


def by_factor(x: int, factor: float) -> int:
    """Returns a product with a fraction, rounded up."""
    return min(math.ceil(float(x) * factor), MOST)


def sum_of(first: Size, other: Size) -> Size:
    """Returns the size of both together."""
    return plus(first[0], other[0]), plus(first[1], other[1])


def product_of(first: Size, other: Size) -> Size:
    """Returns the size of each of one as large as the other."""
    return times(first[0], other[0]), times(first[1], other[1])


def union(first: Size, other: Size) -> Size:
    """Returns the range that includes both sizes."""
    return min(first[0], other[0]), max(first[1], other[1])


def size_of_type(of: Type) -> Size | None:
    """Returns the size of a type's values, where all have the same."""
    if of.name == "optional_type" and of.parts:
        return size_of_type(of.parts[0])
    return ONE if of.name in _SCALARS else None


@dataclass(frozen=True, slots=True)
class Path:
    """A path in a declaration: a name, then fields, ``@items``, ``@keys``, ``@values``.

    In Go, the slice of a path has spare capacity. Two paths that continue the same path write into
    the same memory, so that the earlier path then has the later one's end: estimates depend on it.
    """

    cells: list[str]
    length: int

    @classmethod
    def of(cls, name: str) -> Path:
        """Returns the path to a variable."""
        return cls([name], 1)

    @property
    def names(self) -> list[str]:
        """Returns the path's names so far."""
        return self.cells[: self.length]


def onward(path: Path | None, name: str) -> Path:
    """Returns the path continued by a step: in its spare memory, or in twice as much elsewhere."""
    if path is None:
        return Path.of(name)
    cells = path.cells
    if path.length == len(cells):
        cells = [*cells, *[""] * len(cells)]
    cells[path.length] = name
    return Path(cells, path.length + 1)


@dataclass(frozen=True, slots=True)
class Entries:
    """The sizes of keys and values of a list or map that was computed."""

    is_list: bool
    key: Size
    value: Size


def union_of_entries(first: Entries | None, other: Entries | None) -> Entries | None:
    """Returns the entries of a value that is one of two."""
    if first is None or other is None:
        return None
    return Entries(first.is_list, union(first.key, other.key), union(first.value, other.value))


@dataclass(frozen=True, slots=True)
class SizedOperand:
    """An operand of a call, with its path and size if they are known."""

    node: Expr
    type: Type
    path: Path | None
    computed: Size | None

    @property
    def size(self) -> Size:
        """The size; any size if it is unknown."""
        return ANY_SIZE if self.computed is None else self.computed
