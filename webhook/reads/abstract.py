"""Abstract values: the places that a value may come from, and the values made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from webhook.reads.read_set import EVERY_KEY, ReadPath, ReadRecorder
from webhook.reads.text_tests import COUNT, EACH, TextTest, kind_after
from webhook.values import dataclass

Scalar: TypeAlias = tuple[str, Any]
"""A known scalar with the name of its type, so that true differs from 1."""

CONSTANT_PARTS_MAX: Final = 500
"""The largest constant that is followed part by part; a larger one may be any value."""

STEPS_MAX: Final = 200_000
"""Steps of an interpretation: some 0.2 s, a hundred times the largest template of the public library."""


class Unclear(Exception):
    """The reads of a policy cannot be found; it is assumed to read everything."""


@dataclass(frozen=True, slots=True, unsafe_hash=True)
class Abstract:
    """The possible values of a term: values at ``places``, known scalars, or collections.

    ``anything`` is any value that depends only on recorded reads. ``fields`` are an object's or
    array's values at known keys, ``items`` those at any key, ``members`` those of a set.
    ``container`` is a container that may be empty. ``text`` has the parts of a text whose reads are
    not recorded yet; ``anything`` is true then, too. So it is for ``tested``: results of tests of
    the texts at places, which are not recorded yet either. ``varies`` is whether some of the
    ``fields`` may be missing, as in arrays of several lengths.
    """

    places: frozenset[ReadPath] = frozenset()
    scalars: frozenset[Scalar] = frozenset()
    anything: bool = False
    fields: tuple[tuple[Any, Abstract], ...] = ()
    items: Abstract | None = None
    members: Abstract | None = None
    container: bool = False
    text: Abstract | None = None
    tested: frozenset[tuple[ReadPath, TextTest]] = frozenset()
    varies: bool = False

    @property
    def known(self) -> frozenset[Scalar] | None:
        """The possible scalars; None if other values are possible."""
        is_known = not (self.places or self.anything or self.fields or self.items)
        return self.scalars if is_known and not self.members and not self.container else None

    @property
    def only(self) -> Scalar | None:
        """The scalar, if only one value is possible."""
        known = self.known
        return next(iter(known)) if known is not None and len(known) == 1 else None

    @property
    def is_scalar(self) -> bool:
        """Whether all possible values are known scalars."""
        return self.known is not None

    @property
    def texts(self) -> frozenset[tuple[ReadPath, TextTest]]:
        """The places of which it may be texts, with the tests that give it.

        Empty if it may be a collection, or a text whose reads are not recorded.
        """
        if self.fields or self.items or self.members or self.container or self.text:
            return frozenset()
        return self.tested | {(place, ()) for place in self.places}

    @property
    def parts(self) -> list[Abstract]:
        """Returns the parts of the value."""
        parts = [value for _, value in self.fields]
        return parts + [part for part in (self.items, self.members, self.text) if part is not None]


ANYTHING: Final = Abstract(anything=True)
EMPTY: Final = Abstract(container=True)


def at_place(*path: str) -> Abstract:
    """Returns the value at a place of the input or of data."""
    return Abstract(places=frozenset((path,)))


def tested_text(place: ReadPath, test: TextTest) -> Abstract:
    """Returns the result of a test of the text at a place."""
    return Abstract(anything=True, tested=frozenset(((place, test),)))


def scalar(value: Any) -> Abstract:
    """Returns a known scalar."""
    return Abstract(scalars=frozenset((_scalar(value),)))


def _scalar(value: Any) -> Scalar:
    if value is None or isinstance(value, (bool, str, bytes)):
        return type(value).__name__, value
    return "number", value


def united(values: Iterable[Abstract | None]) -> Abstract | None:
    """Returns the union of values; None for no values."""
    result: Abstract | None = None
    for value in values:
        if value is not None and value is not result:
            result = value if result is None else _union(result, value)
    return result


def _union(first: Abstract, other: Abstract) -> Abstract:
    if first == other:
        return first
    fields: dict[Any, Abstract] = dict(first.fields)
    for name, value in other.fields:
        fields[name] = value if name not in fields else _union(fields[name], value)
    return Abstract(
        first.places | other.places,
        first.scalars | other.scalars,
        first.anything or other.anything,
        tuple(fields.items()),
        united((first.items, other.items)),
        united((first.members, other.members)),
        first.container or other.container,
        united((first.text, other.text)),
        first.tested | other.tested,
        first.varies or other.varies or len(fields) > min(len(first.fields), len(other.fields)),
    )


def are_different(a: Abstract, b: Abstract) -> bool:
    """Returns whether two values cannot be equal."""
    first, second = a.known, b.known
    if first is None or second is None:
        return False
    return first.isdisjoint(second) and not (_numbers(first) and _numbers(second))


def _numbers(scalars: frozenset[Scalar]) -> bool:
    return any(kind == "number" for kind, _ in scalars)


class AbstractReader:
    """Follows abstract values, and records the reads of their places.

    ``given`` has known values by place, None for one where nothing is.
    """

    def __init__(self, given: Mapping[ReadPath, Abstract | None]) -> None:
        self.record = ReadRecorder()
        self._given = given
        self._left = STEPS_MAX

    def pay(self) -> None:
        """Counts a step; raises :class:`Unclear` beyond the limit."""
        self._left -= 1
        if self._left < 0:
            raise Unclear

    def present(self, value: Abstract) -> None:
        """Records a check whether the value is defined and not false."""
        for place in value.places:
            self.record.present(place)
        for place, test in value.tested:
            # A list that a text gives is there, and so are as many items as are counted.
            if kind_after(test) == "scalar":
                self.tested(place, test)
            else:
                self._counted(place, test)

    def shallow(self, value: Abstract) -> None:
        """Records a shallow read: the type of the value, and the value of a scalar."""
        for place in value.places:
            self.record.shallow(place)
        for place, test in value.tested:
            self.tested(place, test)
        self.whole(value.text)

    def tested(self, place: ReadPath, test: TextTest) -> None:
        """Records a test of a text; without steps it is the text itself, of which all is read."""
        if test:
            self.record.tested(place, test)
        else:
            self.record.whole(place)

    def _counted(self, place: ReadPath, test: TextTest) -> None:
        """Records how many items the lists have that give a value."""
        lists = test[: -test[::-1].index(EACH) - 1] if EACH in test else test
        self.tested(place, (*lists, COUNT))

    def keys(self, value: Abstract) -> None:
        """Records a read of all keys, or of the number of items."""
        for place in value.places:
            self.record.present((*place, EVERY_KEY))
        for place, test in value.tested:
            self.tested(place, test)
        if value.members is not None:
            self.whole(value.members)

    def whole(self, value: Abstract | None) -> None:
        """Records a read of the whole value."""
        if value is None:
            return
        self.pay()
        for place in value.places:
            self.record.whole(place)
        for place, test in value.tested:
            self.tested(place, test)
        for part in value.parts:
            self.whole(part)

    def is_below(self, root: str, value: Abstract) -> bool:
        """Whether all places of a value are below a root."""
        self.pay()
        places = [*value.places, *(place for place, _ in value.tested)]
        return all(place[0] == root for place in places) and all(
            self.is_below(root, part) for part in value.parts
        )

    def compare(self, first: Abstract, other: Abstract) -> None:
        """Records a comparison; next to a scalar, the content of a container does not matter."""
        for value, beside in ((first, other), (other, first)):
            if beside.is_scalar:
                self.shallow(value)
            else:
                self.whole(value)

    def step(self, value: Abstract, key: Any = EVERY_KEY) -> Abstract | None:
        """Returns the value at a key, or at any key; None if there is none. Records nothing."""
        self.pay()
        results: list[Abstract | None] = []
        for place in value.places:
            below = (*place, key if isinstance(key, str) else EVERY_KEY)
            is_given = below in self._given
            results.append(self._given[below] if is_given else Abstract(places=frozenset((below,))))
        for name, field in value.fields:
            if key in (EVERY_KEY, name):
                results.append(field)
        for place, test in value.tested:
            if kind_after(test) == "texts":
                results.append(tested_text(place, (*test, EACH)))
        results += (value.items, value.members)
        if value.anything:
            results.append(ANYTHING)
        return united(results)

    def names(self, value: Abstract) -> Abstract | None:
        """Returns the possible keys of the value, or the members of a set."""
        results: list[Abstract | None] = [value.members]
        if value.places or value.anything or value.items is not None:
            results.append(ANYTHING)
        results += [scalar(name) for name, _ in value.fields]
        return united(results)


def constant(value: Any) -> Abstract:
    """Returns the abstract value of a policy's constant."""
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
    if parts is not None and not hasattr(value, "entries"):  # a set of Rego's
        members = united(_constant(item, budget) for item in parts())
        return Abstract(members=members, container=True)
    return ANYTHING
