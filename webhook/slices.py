"""Goes through very many values in slices: a single call in C never releases the interpreter.

A policy can find 200,000 violations in an object of 2 MB. Sorting their messages in one call took
227 ms, during which all other requests waited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")

SLICE: Final = 16_384
"""Values sorted in one call: 5 to 10 ms for unordered texts."""


def sorted_in_slices(values: Collection[T], key: Callable[[T], Any] | None = None) -> list[T]:
    """Returns the sorted values; equal values keep their order, as with ``sorted``."""
    if len(values) <= SLICE:
        return sorted(values, key=key)  # type: ignore[type-var,arg-type]  # as the caller has them
    all_values = list(values)
    slices = [
        sorted(all_values[start : start + SLICE], key=key)  # type: ignore[type-var,arg-type]
        for start in range(0, len(all_values), SLICE)
    ]
    return list(merge(*slices, key=key))  # type: ignore[arg-type]


def in_slices(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yields values in lists of at most this size."""
    left = iter(values)
    while part := list(islice(left, size)):
        yield part


def distinct_in_slices(values: list[T]) -> set[T]:
    """Returns values once each."""
    distinct: set[T] = set()
    for start in range(0, len(values), SLICE):
        distinct.update(values[start : start + SLICE])
    return distinct


def all_of_type(values: Iterable[object], kind: type) -> bool:
    """Returns whether all values are of a type and of none derived from it."""
    return all(type(value) is kind for value in values)
