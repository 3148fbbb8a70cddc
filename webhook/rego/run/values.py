"""Rego's values in Python, their equality, order and JSON form.

========  =======================================================================
null      ``None``
boolean   ``bool``
number    ``int`` or ``float``; integers are exact, of any size
string    ``str``
array     ``list``
object    ``dict`` when every key is a string, else :class:`RegoObject`
set       :class:`RegoSet`
========  =======================================================================

Values as decoded from JSON are used as they are: never copied, never frozen and
never changed. :data:`UNDEFINED` is no value; it is tested by identity.

Python says ``True == 1`` and Rego does not. So callers compare by :func:`equal` and
:func:`compare`, and store values in a ``dict`` by :func:`key`:

>>> equal(1, 1.0), equal(True, 1), key(True)
(True, False, ('true',))

These weigh a large value first and charge its weight to the evaluation
(:mod:`webhook.rego.run.weight`); a value beyond the bound raises ``eval_cancel_error``.
A function whose name ends in ``_affordable`` does not: its caller has weighed the values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, ValuesView
from functools import cmp_to_key
from typing import Any, Final, TypeAlias

from webhook.rego.run.weight import (
    FREE_STEPS,
    SCALARS,
    afford_smaller,
    afford_tree,
    charge,
    tree_steps,
)
from webhook.slices import sorted_in_slices

Value: TypeAlias = Any
"""A Rego value, as in the table above."""

Key: TypeAlias = Any
"""The key of a value in a ``dict``: it is hashable, and equal only for equal values."""


class _Undefined:
    """The type of :data:`UNDEFINED`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        raise TypeError("undefined has no truth: test it by identity")


UNDEFINED: Final = _Undefined()


_TRUE: Final = ("true",)
_FALSE: Final = ("false",)


def key(value: Value) -> Key:
    """Returns the key of a value. Scalars but booleans are their own keys."""
    kind = type(value)
    if kind is str or kind is int or kind is float or value is None:
        return value
    if kind is bool:
        return _TRUE if value else _FALSE
    afford_tree(value)
    return key_of_affordable(value)


def key_of_affordable(value: Value) -> Key:
    """Returns the key of a value that the caller has weighed."""
    kind = type(value)
    if kind is str or kind is int or kind is float or value is None:
        return value
    if kind is bool:
        return _TRUE if value else _FALSE
    if kind is list:
        return ("[", *map(key_of_affordable, value))
    if kind is dict:
        for item in value.values():
            if type(item) is not str:
                return (
                    "{",
                    frozenset((name, key_of_affordable(item)) for name, item in value.items()),
                )
        return ("{", frozenset(value.items()))  # labels and such: texts are their own keys
    if kind is RegoSet:
        return ("<", frozenset(value.keys()))
    if kind is RegoObject:
        return (
            "{",
            frozenset((name, key_of_affordable(item)) for name, (_, item) in value.entries.items()),
        )
    if isinstance(value, float | int):
        return value
    raise TypeError(f"not a Rego value: {kind.__name__}")


class RegoSet:
    """A set of values. Iteration is in order of insertion; :func:`ordered` gives Rego's order.

    A set made by :func:`lazy_set` has only ``_list``, perhaps with repeated members. Its ``_items``
    are made when they are first read: many sets are only iterated or returned.
    """

    __slots__ = ("_items", "_list")

    _items: dict[Key, Value]
    _list: list[Value] | None

    def __init__(self, items: Iterable[Value] = ()) -> None:
        self._items = _keyed(items)
        self._list = None

    def __getattr__(self, name: str) -> dict[Key, Value]:
        # Only reached while _items is not set: see lazy_set().
        if name != "_items" or self._list is None:
            raise AttributeError(name)
        items = self._items = _keyed(
            self._list
        )  # assigned whole: another thread may read meanwhile
        return items

    def add(self, item: Value) -> None:
        """Adds a member. Only the code that makes a set adds to it; afterwards it never changes."""
        self._items.setdefault(key(item), item)
        self._list = None

    def keys(self) -> Iterable[Key]:
        """Returns the keys of the members."""
        return self._items.keys()

    def parts(self) -> Collection[Value]:
        """Returns the members in any order, perhaps repeated, without making keys."""
        return self._items.values() if self._list is None else self._list

    def union(self, other: RegoSet) -> RegoSet:
        """Returns the members of either set."""
        return RegoSet._of(self._items | other._items)

    def intersection(self, other: RegoSet) -> RegoSet:
        """Returns the members of both sets."""
        return RegoSet._of({k: v for k, v in self._items.items() if k in other._items})

    def difference(self, other: RegoSet) -> RegoSet:
        """Returns the members that ``other`` lacks."""
        return RegoSet._of({k: v for k, v in self._items.items() if k not in other._items})

    @classmethod
    def _of(cls, items: dict[Key, Value]) -> RegoSet:
        result = cls.__new__(cls)
        result._items = items  # noqa: SLF001  # our own
        result._list = None  # noqa: SLF001  # our own
        return result

    def __iter__(self) -> Iterator[Value]:
        if self._list is not None and len(self._list) == 1:
            return iter(self._list)
        return iter(self._items.values())

    def __len__(self) -> int:
        if self._list is not None and len(self._list) == 1:
            return 1
        return len(self._items)

    def __contains__(self, item: Value) -> bool:
        return key(item) in self._items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegoSet) and self._items.keys() == other._items.keys()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RegoSet({list(self)!r})"


def _keyed(items: Iterable[Value]) -> dict[Key, Value]:
    """Returns members by key. The weights of small members add up, and are charged together."""
    members: dict[Key, Value] = {}
    uncharged = 0
    for item in items:
        if type(item) in SCALARS:
            members.setdefault(key(item), item)
            continue
        uncharged += tree_steps(item)
        if uncharged > FREE_STEPS:
            charge(uncharged)
            uncharged = 0
        members.setdefault(key_of_affordable(item), item)
    return members


_EMPTY: Final = RegoSet()
"""Most partial rules give the empty set. It is shared, so nothing is ever added to it."""

_new: Final = object.__new__


def lazy_set(items: list[Value]) -> RegoSet:
    """Returns a set of members, which may repeat; their keys are computed at the first use."""
    if not items:
        return _EMPTY
    result: RegoSet = _new(RegoSet)
    result._list = items  # noqa: SLF001  # our own
    return result


class RegoObject:
    """An object with a key that is no string: ``{1: "a", true: "b"}``."""

    __slots__ = ("entries",)

    def __init__(self, items: Iterable[tuple[Value, Value]] = ()) -> None:
        self.entries: dict[Key, tuple[Value, Value]] = {key(k): (k, v) for k, v in items}

    def get(self, name: Value, default: Value = None) -> Value:
        """Returns the value under ``name``, or ``default``."""
        entry = self.entries.get(key(name))
        return default if entry is None else entry[1]

    def items(self) -> ValuesView[tuple[Value, Value]]:
        """Returns pairs of key and value, in order of insertion."""
        return self.entries.values()

    def parts(self) -> list[Value]:
        """Returns the keys and values, in any order."""
        return [part for entry in self.entries.values() for part in entry]

    def keys(self) -> list[Value]:
        """Returns the keys, in order of insertion."""
        return [k for k, _ in self.entries.values()]

    def values(self) -> list[Value]:
        """Returns the values, in order of insertion."""
        return [v for _, v in self.entries.values()]

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: Value) -> bool:
        return key(name) in self.entries

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegoObject) and key(self) == key(other)

    def __repr__(self) -> str:
        return f"RegoObject({list(self.items())!r})"


def make_object(items: Iterable[tuple[Value, Value]]) -> dict[str, Value] | RegoObject:
    """Returns the object with these pairs: a ``dict`` where every key is a string."""
    pairs = list(items)
    if all(type(k) is str for k, _ in pairs):
        return dict(pairs)
    return RegoObject(pairs)


def equal(a: Value, b: Value) -> bool:
    """Returns whether two values are equal in Rego: ``1 == 1.0``, and a boolean equals no number."""
    kind = type(a)
    if kind is str or type(b) is str:
        return bool(a == b)
    if a is b:
        return True
    if kind in SCALARS:
        return equal_affordable(a, b)
    other = type(b)
    if kind is other and (kind is list or kind is dict) and len(a) != len(b):
        return False
    if other not in SCALARS:
        afford_smaller(a, b)
    return equal_affordable(a, b)


def equal_affordable(a: Value, b: Value) -> bool:
    """Returns whether two values are equal; the caller has weighed one of the two."""
    kind = type(a)
    if a is b or kind is str or type(b) is str:
        return bool(a == b)
    if kind is not type(b):
        return compare_affordable(a, b) == 0
    if kind is dict:
        if len(a) != len(b):
            return False
        for name, item in a.items():
            if name not in b or not equal_affordable(item, b[name]):
                return False
        return True
    if kind is list:
        return len(a) == len(b) and all(map(equal_affordable, a, b))
    if kind is int or kind is bool or kind is RegoSet:
        return bool(a == b)
    return compare_affordable(a, b) == 0


def type_name(value: Value) -> str:
    """Returns the type's name: null, boolean, number, string, array, object or set."""
    return _NAMES[_rank(value)]


# OPA sorts by type first: v1/ast/compare.go, sortOrder.
_NAMES: Final = ("null", "boolean", "number", "string", "array", "object", "set")
_RANKS: Final[dict[type, int]] = {
    type(None): 0,
    bool: 1,
    int: 2,
    float: 2,
    str: 3,
    list: 4,
    dict: 5,
    RegoObject: 5,
    RegoSet: 6,
}


def _rank(value: Value) -> int:
    rank = _RANKS.get(type(value))
    if rank is None:
        for kind, rank in _RANKS.items():  # a subclass of float or int
            if isinstance(value, kind):
                return rank
        raise TypeError(f"not a Rego value: {type(value).__name__}")
    return rank


def compare(a: Value, b: Value) -> int:
    """Returns -1, 0 or 1 as ``a`` sorts before, with or after ``b`` in OPA's order of all values."""
    if type(a) not in SCALARS and type(b) not in SCALARS and a is not b:
        afford_tree(a)
        afford_tree(b)
    return compare_affordable(a, b)


def compare_affordable(a: Value, b: Value) -> int:
    """Compares two values that the caller has weighed: by type first, then within the type."""
    kind = type(a)
    if kind is type(b):
        if kind is str or kind is int or kind is bool:
            return int(a > b) - int(a < b)
        if a is b:
            return 0
        if kind is dict:
            return _compare_dicts(a, b)
    rank, other = _rank(a), _rank(b)
    if rank != other:
        return -1 if rank < other else 1
    if rank == 0:
        return 0
    if rank <= 3:  # boolean, number, string: Python's order is Rego's
        return int(a > b) - int(a < b)
    if rank == 4:  # array
        return _compare_sequences(a, b)
    if rank == 6:  # set
        return _compare_sequences(ordered_affordable(a), ordered_affordable(b))
    return _compare_objects(a, b)


def _compare_sequences(a: list[Value], b: list[Value]) -> int:
    for x, y in zip(a, b, strict=False):
        if order := compare_affordable(x, y):
            return order
    return (len(a) > len(b)) - (len(a) < len(b))


def _compare_dicts(a: dict[str, Value], b: dict[str, Value]) -> int:
    if len(a) > 1 or len(b) > 1:
        for x, y in zip(sorted(a), sorted(b), strict=False):
            if x != y:
                return -1 if x < y else 1
            if order := compare_affordable(a[x], b[y]):
                return order
        return (len(a) > len(b)) - (len(a) < len(b))
    for x, y in zip(a, b, strict=False):
        if x != y:
            return -1 if x < y else 1
        return compare_affordable(a[x], b[y])
    return (len(a) > len(b)) - (len(a) < len(b))


def _compare_objects(a: Value, b: Value) -> int:
    ours = sorted(a.items(), key=_by_name)
    theirs = sorted(b.items(), key=_by_name)
    for (k, v), (other_k, other_v) in zip(ours, theirs, strict=False):
        if order := compare_affordable(k, other_k) or compare_affordable(v, other_v):
            return order
    return (len(a) > len(b)) - (len(a) < len(b))


sort_key = cmp_to_key(compare)
"""``sorted(values, key=sort_key)`` gives OPA's order."""

sort_key_of_affordable = cmp_to_key(compare_affordable)


def _by_name(item: tuple[Value, Value]) -> Any:
    return sort_key_of_affordable(item[0])


def ordered(items: Iterable[Value]) -> list[Value]:
    """Returns the values in OPA's order."""
    values = list(items)
    steps = sum([tree_steps(item) for item in values if type(item) not in SCALARS])
    if steps > FREE_STEPS:
        # Sorting compares each value with about log2(n) others.
        charge(steps * len(values).bit_length())
    return ordered_affordable(values)


def ordered_affordable(items: Iterable[Value]) -> list[Value]:
    """Returns values that the caller has weighed, in OPA's order."""
    values = list(items)
    kinds = set(map(type, values))
    if (len(kinds) == 1 and kinds <= {str, bool}) or kinds <= {int, float}:
        return sorted_in_slices(values)
    return sorted_in_slices(values, sort_key_of_affordable)


def parts(value: Value) -> Iterator[Value]:
    """Yields a value and all its parts, keys included; stops with its caller."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, (dict, RegoObject)):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, (list, RegoSet)):
            waiting += part


def is_small(value: Value, most: int) -> bool:
    """Returns whether a value has at most ``most`` parts and characters; stops at the first beyond."""
    size = 0
    for part in parts(value):
        size += 1
        if isinstance(part, str):
            size += len(part)
        elif isinstance(part, int):
            size += part.bit_length() // 8
        elif isinstance(part, (list, dict, RegoSet, RegoObject)):
            size += len(part)
        if size > most:
            return False
    return True
