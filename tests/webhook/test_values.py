"""Classes of values are what dataclasses makes of them, in all that anybody can see."""

import copy
import dataclasses
import math
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import pytest

from webhook.values import dataclass, made


class Body:
    """A class of every kind of field."""

    KNOWN: ClassVar[int] = 7
    name: str
    shown: list[int] = field(default_factory=list, compare=False)
    hidden: str = field(default="h", repr=False)
    unhashed: int = field(default=3, hash=False)
    ratio: float = 0.5
    found: dict[str, int] | None = field(default=None, init=False)
    where: str = field(default="here", kw_only=True)


class One:
    """A class of one field."""

    value: float


class Nothing:
    """A class without fields."""


class Checked:
    """A class that looks at what it is given, and compares and shows itself in its own way."""

    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("negative")

    def __repr__(self) -> str:
        return "mine"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __hash__(self) -> int:
        return 5


BODIES = (Body, One, Nothing, Checked)
WAYS: tuple[dict[str, bool], ...] = (
    {},
    {"frozen": True},
    {"eq": False},
    {"frozen": True, "eq": False},
    {"unsafe_hash": True},
    {"weakref_slot": True},
)


def pair(body: type, way: dict[str, bool]) -> tuple[Any, Any]:
    """The class as it is made here, and as dataclasses makes it."""
    makers: tuple[Callable[..., Any], ...] = (made, dataclasses.dataclass)
    ours, theirs = (maker(slots=True, **way)(_copied(body)) for maker in makers)
    return ours, theirs


def _copied(body: type) -> type:
    names = ("__dict__", "__weakref__")
    kept = {name: copy.copy(value) for name, value in vars(body).items() if name not in names}
    return type(body.__name__, (), kept)


def value_or_error(call: Callable[[], Any]) -> Any:
    """Returns the result of a call, or the class and text of its error."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  # whatever it is, both must say it
        return type(error), str(error)


ARGUMENTS: dict[type, list[dict[str, Any]]] = {
    Body: [{"name": "a"}, {"name": "a", "shown": [1], "hidden": "x", "where": "there"}, {}],
    One: [{"value": math.nan}, {}, {"value": 2.0, "other": 1}],
    Nothing: [{}, {"value": 1}],
    Checked: [{"value": 1}, {"value": -1}],
}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: str(body.__name__))
def test_what_a_class_does_is_what_dataclasses_would_have_it_do(
    body: type, way: dict[str, bool]
) -> None:
    """Instances are made, shown, compared, hashed, changed, replaced and taken apart."""
    for named in ARGUMENTS[body]:
        if body is Checked and "unsafe_hash" in way:
            continue  # dataclasses refuses to put a hash over one that is there
        ours, theirs = pair(body, way)
        assert repr(account(ours, named)) == repr(account(theirs, named))


def test_arguments_by_their_places_are_those_of_dataclasses() -> None:
    """In the order of the fields, without those that are given by name or not at all."""
    for number in range(8):
        places = [str(place) for place in range(number)]
        seen = [value_or_error(partial(cls, *places)) for cls in pair(Body, {})]
        assert repr(seen[0]) == repr(seen[1])


def account(cls: Any, named: dict[str, Any]) -> Any:
    """Returns the visible properties of a class and its instance, or the constructor's error."""
    one = value_or_error(partial(cls, **named))
    if isinstance(one, tuple):
        return one
    fields = dataclasses.fields(one)
    (name,) = [item.name for item in fields][:1] or ["none"]
    by_identity = cls.__hash__ is object.__hash__
    return (
        repr(one),
        one == cls(**named),
        one == 1,
        by_identity or value_or_error(partial(hash, one)),
        dataclasses.asdict(one),
        [(item.name, item.init, item.kw_only) for item in fields],
        (cls.__match_args__, cls.__slots__, hasattr(one, "__dict__"), cls.__doc__),
        fields
        and (
            value_or_error(partial(setattr, one, name, 9)),
            value_or_error(partial(delattr, one, name)),
        ),
        fields and value_or_error(partial(getattr, one, name)),
    )


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_there_is_no_place_for_other_attributes(way: dict[str, bool]) -> None:
    """Frozen or not."""
    with pytest.raises(AttributeError, match="unknown"):
        pair(One, way)[0](1.0).unknown = 9


def test_one_that_is_replaced_is_made_anew() -> None:
    """Fields without an argument are not copied."""
    for cls in pair(Body, {"frozen": True}):
        one = dataclasses.replace(cls("a", where="x"), ratio=2.0)
        assert (one.name, one.where, one.ratio) == ("a", "x", 2.0)


@dataclass(slots=True, frozen=True)
class Kept:
    """A class for copies."""

    name: str
    parts: tuple[int, ...] = ()


@dataclass(slots=True, frozen=True)
class Longer(Kept):
    """A class with fields of its own behind those of its base."""

    more: int = 0


@pytest.mark.parametrize("one", [Kept("a", (1,)), Longer("a", (1,), 5)])
def test_frozen_ones_can_be_copied(one: Any) -> None:
    """Though nothing of them can be set one by one."""
    assert copy.deepcopy(one) == one


def test_a_class_that_shows_itself_within_itself_is_shown() -> None:
    """However it came about."""
    for cls in pair(Body, {}):
        one = cls("a")
        one.shown.append(one)
        assert (
            repr(one)
            == "Body(name='a', shown=[...], unhashed=3, ratio=0.5, found=None, where='here')"
        )
