"""Value classes: :func:`dataclasses.dataclass`, created in a third of its time.

A server has some two hundred such classes. Their creation took a quarter of the import time:
Python's decorator generates and compiles six functions for each. Here only ``__init__`` is
generated; the other methods are closures over the fields. ``dataclasses.fields``, ``replace``,
``asdict`` and ``is_dataclass`` accept these classes, and the type checker treats them as
dataclasses.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  # handed on

_MISSING: Final = dataclasses.MISSING
_set: Final = object.__setattr__


def made(
    *,
    slots: bool,
    frozen: bool = False,
    eq: bool = True,
    unsafe_hash: bool = False,
    weakref_slot: bool = False,
) -> Callable[[type], type]:
    """Returns the class as :func:`dataclasses.dataclass` makes it; its own methods stay.

    A subclass must be frozen exactly if its base is; this is not checked here.
    """

    def decorate(cls: type) -> type:
        cls.__doc__ = cls.__doc__ or cls.__name__  # or else dataclasses would look at the signature
        whole: type = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, weakref_slot=weakref_slot
        )(cls)
        given = cls.__dict__
        for name, function in _functions(whole, frozen=frozen, eq=eq, hashes=unsafe_hash).items():
            # A class with its own comparison and without its own hash has None for its hash.
            if name not in given or (name == "__hash__" and given[name] is None):
                setattr(whole, name, function)
        return whole

    return decorate


if not TYPE_CHECKING:
    dataclass = made


def _functions(cls: type, *, frozen: bool, eq: bool, hashes: bool) -> dict[str, Any]:
    """Returns the functions that a class gets, by name."""
    fields = dataclasses.fields(cls)
    functions: dict[str, Any] = {
        "__init__": _init(cls, fields, frozen=frozen),
        "__repr__": _repr([field.name for field in fields if field.repr]),
    }
    compared = _values([field.name for field in fields if field.compare])
    if eq:
        functions["__eq__"] = _eq(compared)
    if hashes or (eq and frozen):
        hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
        functions["__hash__"] = _hash(_values(hashed))
    elif eq:
        functions["__hash__"] = None
    if frozen:
        names = frozenset(field.name for field in fields)
        functions["__setattr__"], functions["__delattr__"] = _refusing(cls, names)
        functions["__getstate__"], functions["__setstate__"] = _state, _take_state
    return functions


def _init(cls: type, fields: tuple[dataclasses.Field[Any], ...], *, frozen: bool) -> Any:
    """Returns ``__init__``, the only generated function: its parameters are the fields."""
    known: dict[str, Any] = {"_set": _set, "_MISSING": _MISSING}
    descriptors: list[Any] = [getattr(cls, field.name, None) for field in fields]
    # A slot is set by its own descriptor, in half of the time; other fields have no descriptor
    # yet.
    by_slot = all(type(item) is MemberDescriptorType for item in descriptors)
    if frozen and by_slot:
        known |= {
            f"_set_{field.name}": item.__set__
            for field, item in zip(fields, descriptors, strict=True)
        }
    parameters, keywords, body = [], [], []
    for field in fields:
        name, value = field.name, field.name
        default = ""
        if field.default is not _MISSING:
            known[f"_default_{name}"] = field.default
            default = f"=_default_{name}"
        elif field.default_factory is not _MISSING:
            known[f"_make_{name}"] = field.default_factory
            default = "=_MISSING"
            value = f"_make_{name}() if {name} is _MISSING else {name}"
        if not field.init:
            value = default[1:] if field.default is not _MISSING else f"_make_{name}()"
        elif field.kw_only:
            keywords.append(name + default)
        else:
            parameters.append(name + default)
        if field.init or default:
            if not frozen:
                body.append(f"self.{name} = {value}")
            elif by_slot:
                body.append(f"_set_{name}(self, {value})")
            else:
                body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    listed = ", ".join(["self", *parameters, *(["*", *keywords] if keywords else [])])
    text = f"def __init__({listed}):\n " + "\n ".join(body or ["pass"])
    namespace: dict[str, Any] = {}
    exec(text, known, namespace)  # noqa: S102  # only names of fields are inserted
    function = namespace["__init__"]
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    return function


def _values(names: list[str]) -> Callable[[Any], Any]:
    """Returns a function that combines these fields into one comparable value."""
    if len(names) == 1:  # attrgetter gives the value by itself, which need not be equal to itself
        get = attrgetter(names[0])
        return lambda instance: (get(instance),)
    return attrgetter(*names) if names else lambda _: ()


def _eq(values: Callable[[Any], Any]) -> Any:
    def equal(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return equal


def _hash(values: Callable[[Any], Any]) -> Any:
    return lambda self: hash(values(self))


def _repr(names: list[str]) -> Any:
    @recursive_repr()
    def shown(self: Any) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({fields})"

    return shown


def _refusing(cls: Any, names: frozenset[str]) -> tuple[Any, Any]:
    """Returns the methods that refuse to set or delete attributes of a frozen class."""

    def set_(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return set_, delete


def _state(self: Any) -> list[Any]:
    """Returns the state for copying: frozen fields cannot be set one by one."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _take_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        _set(self, field.name, value)
