"""Values of an abstract interpretation: where a value may come from, and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.reads.read_set import EVERY_KEY, ReadRecorder
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.reads.read_set import ReadPath

Scalar: TypeAlias = tuple[str, Any]
"""A known scalar with the name of its kind, so that true is not 1."""

CONSTANT_PARTS_MAX: Final = 500
"""Parts of a constant that are followed one by one; of a larger one any may be met."""

STEPS_MAX: Final = 200_000
"""Steps of an interpretation: some 0.2 s, a hundred times the largest template of the public library."""


class Unclear(Exception):
    """The reads of a policy cannot be found: then it is taken to read everything."""


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class Abstract:
    """The possible values of a term: those at ``places``, a known scalar, or a collection of others.

    ``anything`` is any value that depends on nothing but what has been recorded. ``fields`` and
    ``items`` are of objects and arrays (by known keys, and at any), ``members`` of sets.
    ``container`` is one that may hold nothing. ``told`` is what a text is made of that nobody has
    looked at yet: it stands beside ``anything``.
    """

    places: frozenset[ReadPath] = frozenset()
    scalars: frozenset[Scalar] = frozenset()
    anything: bool = False
    fields: tuple[tuple[Any, Abstract], ...] = ()
    items: Abstract | None = None
    members: Abstract | None = None
    container: bool = False
    text: Abstract | None = None

    @property
    def known(self) -> frozenset[Scalar] | None:
        """The scalars that it can be; None where it may be something else."""
        is_known = not (self.places or self.anything or self.fields or self.items)
        return self.scalars if is_known and not self.members and not self.container else None

    @property
    def only(self) -> Scalar | None:
        """The one scalar that it is."""
        known = self.known
        return next(iter(known)) if known is not None and len(known) == 1 else None

    @property
    def is_scalar(self) -> bool:
        """Whether it is some scalar that is known."""
        return self.known is not None

    @property
    def parts(self) -> list[Abstract]:
        """Return the parts of the value."""
        parts = [value for _, value in self.fields]
        return parts + [part for part in (self.items, self.members, self.text) if part is not None]


ANYTHING: Final = Abstract(anything=True)
EMPTY: Final = Abstract(container=True)


def at_place(*path: str) -> Abstract:
    """Return the value at a place of the input or of data."""
    return Abstract(places=frozenset((path,)))


def scalar(value: Any) -> Abstract:
    """A known scalar."""
    return Abstract(scalars=frozenset((_scalar(value),)))


def _scalar(value: Any) -> Scalar:
    if value is None or isinstance(value, (bool, str, bytes)):
        return type(value).__name__, value
    return "number", value


def united(values: Iterable[Abstract | None]) -> Abstract | None:
    """Unite values; None where there are none."""
    result: Abstract | None = None
    for value in values:
        if value is not None and value is not result:
            result = value if result is None else _union(result, value)
    return result


def _union(one: Abstract, other: Abstract) -> Abstract:
    if one == other:
        return one
    fields: dict[Any, Abstract] = dict(one.fields)
    for name, value in other.fields:
        fields[name] = value if name not in fields else _union(fields[name], value)
    return Abstract(
        one.places | other.places,
        one.scalars | other.scalars,
        one.anything or other.anything,
        tuple(fields.items()),
        united((one.items, other.items)),
        united((one.members, other.members)),
        one.container or other.container,
        united((one.text, other.text)),
    )


def are_different(one: Abstract, other: Abstract) -> bool:
    """Whether two values cannot be equal."""
    first, second = one.known, other.known
    if first is None or second is None:
        return False
    return first.isdisjoint(second) and not (_numbers(first) and _numbers(second))


def _numbers(scalars: frozenset[Scalar]) -> bool:
    return any(kind == "number" for kind, _ in scalars)


class AbstractReader:
    """Follows abstract values, and records what is read of the places that they are.

    ``given`` says what is known to be at a place.
    """

    def __init__(self, given: Mapping[ReadPath, Abstract]) -> None:
        self.record = ReadRecorder()
        self._given = given
        self._left = STEPS_MAX

    def pay(self) -> None:
        """Count a step; raises :class:`Unclear` beyond the bound."""
        self._left -= 1
        if self._left < 0:
            raise Unclear

    def present(self, value: Abstract) -> None:
        """Look whether there is something, and not false."""
        for place in value.places:
            self.record.present(place)

    def shallow(self, value: Abstract) -> None:
        """Record a shallow read: the kind of the value, and which scalar."""
        for place in value.places:
            self.record.shallow(place)
        self.whole(value.text)

    def keys(self, value: Abstract) -> None:
        """Look at all keys, or how many items there are."""
        for place in value.places:
            self.record.present((*place, EVERY_KEY))
        if value.members is not None:
            self.whole(value.members)

    def whole(self, value: Abstract | None) -> None:
        """Look at all of it."""
        if value is None:
            return
        self.pay()
        for place in value.places:
            self.record.whole(place)
        for part in value.parts:
            self.whole(part)

    def compare(self, one: Abstract, other: Abstract) -> None:
        """Look whether two values are equal: beside a scalar nothing within a container matters."""
        for value, beside in ((one, other), (other, one)):
            if beside.is_scalar:
                self.shallow(value)
            else:
                self.whole(value)

    def step(self, value: Abstract, key: Any = EVERY_KEY) -> Abstract | None:
        """Return the value at a key, or at any key; None where there can be none. Nothing is recorded."""
        self.pay()
        results: list[Abstract | None] = []
        for place in value.places:
            below = (*place, key if isinstance(key, str) else EVERY_KEY)
            results.append(self._given.get(below) or Abstract(places=frozenset((below,))))
        for name, field in value.fields:
            if key in (EVERY_KEY, name):
                results.append(field)
        results += (value.items, value.members)
        if value.anything:
            results.append(ANYTHING)
        return united(results)

    def names(self, value: Abstract) -> Abstract | None:
        """Return the possible keys of the value, or the members of a set."""
        results: list[Abstract | None] = [value.members]
        if value.places or value.anything or value.items is not None:
            results.append(ANYTHING)
        results += [scalar(name) for name, _ in value.fields]
        return united(results)


def constant(value: Any) -> Abstract:
    """A value that is written in a policy."""
    budget = [CONSTANT_PARTS_MAX]
    abstract = _constant(value, budget)
    return ANYTHING if budget[0] < 0 else abstract


def _constant(value: Any, budget: list[int]) -> Abstract:
    budget[0] -= 1
    if budget[0] < 0:
        return ANYTHING
    if isinstance(value, dict):
        return Abstract(
            fields=tuple((name, _constant(item, budget)) for name, item in value.items()),
            container=True,
        )
    if isinstance(value, (list, tuple)):
        return Abstract(
            fields=tuple((at, _constant(item, budget)) for at, item in enumerate(value)),
            container=True,
        )
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return scalar(value)
    parts = getattr(value, "parts", None)
    if parts is not None and not hasattr(value, "keys"):  # a set of Rego's
        members = united(_constant(item, budget) for item in parts())
        return Abstract(members=members, container=True)
    return ANYTHING
