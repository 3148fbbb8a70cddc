"""Types of Rego terms, as OPA's type checker knows them.

Built-ins declare their operands and result with these types, and the static checker infers them.
They follow OPA's package ``v1/types``: a type prints as there (``array<number>[any]``), and
:func:`union`, :func:`select`, :func:`keys` and :func:`values` answer as there. "No type" (the type
without values) is ``None``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import reduce
from itertools import groupby
from typing import Any, Final, TypeAlias

from webhook.rego.run.values import compare as compare_values
from webhook.rego.run.values import sort_key
from webhook.values import dataclass


def _order() -> Any:
    """Returns a field for the result of :func:`order_key`."""
    return field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of the four scalar types, by name: null, boolean, number, string."""

    name: str
    order: tuple[Any, ...] = _order()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Any of the member types, sorted; without members, every type."""

    members: tuple[Type, ...] = ()
    order: tuple[Any, ...] = _order()

    def __str__(self) -> str:
        if not self.members:
            return "any"
        return f"any<{', '.join(map(str, self.members))}>"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array: types of its first items, then of every further one (None: no further)."""

    static: tuple[Type, ...] = ()
    dynamic: Type | None = None
    order: tuple[Any, ...] = _order()

    def __str__(self) -> str:
        first = f"<{', '.join(map(type_text, self.static))}>" if self.static else ""
        rest = f"[{self.dynamic}]" if self.dynamic is not None else ""
        return f"array{first}{rest}"


@dataclass(frozen=True, slots=True)
class SetType:
    """A set whose members have one type; None for the empty set."""

    of: Type | None = None
    order: tuple[Any, ...] = _order()

    def __str__(self) -> str:
        return "set" if self.of is None else f"set[{self.of}]"


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object: the properties known by key, sorted, then key and value of all others."""

    static: tuple[tuple[Any, Type | None], ...] = ()
    dynamic: tuple[Type | None, Type | None] | None = None
    order: tuple[Any, ...] = _order()

    def __str__(self) -> str:
        first = ", ".join(f"{_key_text(name)}: {type_text(value)}" for name, value in self.static)
        known = f"<{first}>" if first else ""
        if self.dynamic is None:
            return f"object{known}"
        return f"object{known}[{type_text(self.dynamic[0])}: {type_text(self.dynamic[1])}]"


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function; ``result`` is None for a function called for its effect (``print``)."""

    args: tuple[Type, ...]
    result: Type | None
    variadic: Type | None = None
    order: tuple[Any, ...] = _order()

    def __str__(self) -> str:
        return f"({self.args_text()}) => {type_text(self.result)}"

    def args_text(self) -> str:
        """Returns the parameters as OPA's messages show them, without parentheses."""
        shown = [type_text(arg) for arg in self.args]
        if self.variadic is not None:
            shown.append(f"{self.variadic}...")
        return ", ".join(shown)


Type: TypeAlias = Scalar | AnyOf | ArrayType | SetType | ObjectType | FunctionType

NULL: Final = Scalar("null")
BOOLEAN: Final = Scalar("boolean")
NUMBER: Final = Scalar("number")
STRING: Final = Scalar("string")
ANY: Final = AnyOf()


def array_of(item: Type) -> ArrayType:
    """Returns an array of any length."""
    return ArrayType((), item)


def static_array(*items: Type) -> ArrayType:
    """Returns an array of exactly these items."""
    return ArrayType(items)


def set_of(item: Type) -> SetType:
    """Returns the type of sets whose members have one type."""
    return SetType(item)


def object_of(key: Type, value: Type, **static: Type) -> ObjectType:
    """Returns an object with some properties known by name, and others."""
    return ObjectType(tuple(sorted(static.items())), (key, value))


def any_of(*members: Type) -> AnyOf:
    """Any of the types."""
    return AnyOf(tuple(sorted(members, key=order_key)))


ARRAY: Final = array_of(ANY)
OBJECT: Final = object_of(ANY, ANY)
NAMED: Final = object_of(STRING, ANY)
"""Returns the type of an object whose keys are strings."""
SET: Final = set_of(ANY)


def type_text(type_: Type | None) -> str:
    """Returns the type as OPA prints it; ``???`` for no type."""
    return "???" if type_ is None else str(type_)


def _key_text(name: Any) -> str:
    from webhook.rego.run.text import json_text  # noqa: PLC0415  # only to print rare keys

    return name if isinstance(name, str) else json_text(name)


def type_from_json(declared: Mapping[str, Any] | None) -> Type | None:
    """Returns the type declared in a capabilities file.

    Raises ValueError for an unknown type.
    """
    if declared is None:
        return None
    scalar = _SCALARS.get(declared["type"])
    if scalar is not None:
        return scalar
    match declared["type"]:
        case "any":
            return any_of(*_all_from_json(declared.get("of", ())))
        case "array":
            items = tuple(_all_from_json(declared.get("static", ())))
            return ArrayType(items, type_from_json(declared.get("dynamic")))
        case "set":
            return SetType(type_from_json(declared.get("of")))
        case "object":
            static = [(p["key"], type_from_json(p["value"])) for p in declared.get("static", ())]
            rest = declared.get("dynamic")
            dynamic = rest and (type_from_json(rest["key"]), type_from_json(rest["value"]))
            return ObjectType(tuple(sorted(static, key=lambda p: sort_key(p[0]))), dynamic)
        case "function":
            return FunctionType(
                tuple(_all_from_json(declared.get("args", ()))),
                type_from_json(declared.get("result")),
                type_from_json(declared.get("variadic")),
            )
    raise ValueError(f"unsupported type '{declared['type']}'")


def _all_from_json(declared: Iterable[Mapping[str, Any]]) -> list[Type]:
    return [type_ for item in declared if (type_ := type_from_json(item)) is not None]


_SCALARS: Final = {scalar.name: scalar for scalar in (NULL, BOOLEAN, NUMBER, STRING)}

_SCALAR_ORDER: Final = {"null": (0,), "boolean": (1,), "number": (2,), "string": (3,)}
_NONE_ORDER: Final = (9,)


def order_key(type_: Type | None) -> tuple[Any, ...]:
    """Returns the key by which OPA sorts types (``v1/types``, Compare); equal types have equal keys.

    Nested tuples, made once for a type: CPython compares them far sooner than a walk could, and
    programs have unions of hundreds of objects.
    """
    if type_ is None:
        return _NONE_ORDER
    try:
        return type_.order
    except AttributeError:
        key = _made_order(type_)
        object.__setattr__(type_, "order", key)  # frozen, and this is derived
        return key


def _made_order(type_: Type) -> tuple[Any, ...]:
    match type_:
        case Scalar(name):
            return _SCALAR_ORDER[name]
        case ArrayType(static, dynamic):
            return 4, _optional(dynamic), tuple(map(order_key, static))
        case ObjectType(static, dynamic):
            rest = () if dynamic is None else (order_key(dynamic[0]), order_key(dynamic[1]))
            return 5, rest, tuple((sort_key(name), order_key(value)) for name, value in static)
        case SetType(of):
            return 6, _optional(of)
        case AnyOf(members):
            return 7, tuple(map(order_key, members))
        case FunctionType(args, result, variadic):
            given = tuple(map(order_key, args))
            return 8, len(args), given, order_key(result), order_key(variadic)


def _optional(type_: Type | None) -> tuple[Any, ...]:
    return () if type_ is None else (order_key(type_),)


def contains(a: Type | None, b: Type | None) -> bool:
    """Whether ``a`` is ``b`` or a union with ``b`` among its members."""
    if isinstance(a, AnyOf):
        if isinstance(b, FunctionType):
            return False
        return not a.members or order_key(b) in map(order_key, a.members)
    return order_key(a) == order_key(b)


def union(a: Type | None, b: Type | None) -> Type | None:
    """Returns the union of two types."""
    if a is None or b is None:
        return b if a is None else a
    if a is b and type(a) is Scalar:  # most are
        return a
    if isinstance(a, FunctionType) or isinstance(b, FunctionType):
        if isinstance(a, FunctionType) and isinstance(b, FunctionType):
            return _union_functions(a, b)
        return None
    if not (isinstance(a, AnyOf) or isinstance(b, AnyOf)) and order_key(a) == order_key(b):
        return a
    ours = a.members if isinstance(a, AnyOf) else (a,)
    theirs = b.members if isinstance(b, AnyOf) else (b,)
    if not ours or not theirs:
        return ANY
    distinct = _distinct([*ours, *theirs])
    if len(distinct) == 1 and not isinstance(a, AnyOf):
        return a
    return AnyOf(tuple(distinct))


def union_all(types: Iterable[Type | None]) -> Type | None:
    """Returns the union of all these types: as :func:`union` of all, sorted once."""
    known = [type_ for type_ in types if type_ is not None]
    if len(known) < 3 or any(isinstance(type_, FunctionType) for type_ in known):
        return reduce(union, known, None)
    members: list[Type] = []
    for type_ in known:
        if not isinstance(type_, AnyOf):
            members.append(type_)
        elif type_.members:
            members.extend(type_.members)
        else:
            return ANY
    distinct = _distinct(members)
    if len(distinct) == 1 and not isinstance(known[0], AnyOf):
        return known[0]
    return AnyOf(tuple(distinct))


def _distinct(types: list[Type]) -> list[Type]:
    """Returns the types in order, without repeats: the first of equal types stays."""
    ordered = sorted(types, key=order_key)
    return [next(equal) for _, equal in groupby(ordered, key=order_key)]


def _union_functions(a: FunctionType, b: FunctionType) -> FunctionType | None:
    if len(a.args) != len(b.args) or (a.variadic is None) != (b.variadic is None):
        return None
    args = [union(x, y) for x, y in zip(a.args, b.args, strict=True)]
    known = tuple(ANY if arg is None else arg for arg in args)
    return FunctionType(known, union(a.result, b.result), union(a.variadic, b.variadic))


def select(a: Type | None, name: Any) -> Type | None:
    """The type of the property, item or member ``name`` of ``a``; None where it has none."""
    if a is ANY:  # most are
        return ANY
    if isinstance(a, ArrayType):
        if type(name) is not int or name < 0:
            return None
        return a.static[name] if name < len(a.static) else a.dynamic
    if isinstance(a, ObjectType):
        for known, value in a.static:
            if compare_values(known, name) == 0:
                return value
        if a.dynamic is not None and contains(a.dynamic[0], type_of(name)):
            return a.dynamic[1]
        return None
    if isinstance(a, SetType):
        return _select_member(a, type_of(name))
    if isinstance(a, AnyOf):
        if not a.members:
            return ANY
        return union_all(select(member, name) for member in a.members)
    return None


def _select_member(a: SetType, name: Type) -> Type | None:
    if order_key(a.of) == order_key(name):
        return a.of
    return name if isinstance(a.of, AnyOf) and contains(a.of, name) else None


def keys(a: Type | None) -> Type | None:
    """Returns the type of the keys in an iteration over ``a``."""
    if a is ANY:
        return ANY
    if isinstance(a, ArrayType):
        return NUMBER
    if isinstance(a, SetType):
        return a.of
    if isinstance(a, ObjectType):
        known = [type_of(name) for name, _ in a.static]
        return union_all([*known, None if a.dynamic is None else a.dynamic[0]])
    if isinstance(a, AnyOf):
        return union_all(map(keys, a.members)) if a.members else ANY
    return None


def values(a: Type | None) -> Type | None:
    """Returns the type of the values in an iteration over ``a``."""
    if a is ANY:
        return ANY
    if isinstance(a, SetType):
        return a.of
    if isinstance(a, ArrayType):
        return union_all([*a.static, a.dynamic])
    if isinstance(a, ObjectType):
        known = [value for _, value in a.static]
        return union_all([*known, None if a.dynamic is None else a.dynamic[1]])
    if isinstance(a, AnyOf):
        return union_all(map(values, a.members)) if a.members else ANY
    return None


def is_unknown(a: Type | None) -> bool:
    """Whether ``a`` is no type, or has a part without a type."""
    if type(a) is Scalar or type(a) is AnyOf:  # most are
        return False
    if isinstance(a, FunctionType):
        return any(map(is_unknown, a.args)) or is_unknown(a.result)
    if isinstance(a, ArrayType):
        parts = [*a.static, *([a.dynamic] if a.dynamic is not None else [])]
        return any(map(is_unknown, parts))
    if isinstance(a, ObjectType):
        return any(is_unknown(value) for _, value in a.static) or (
            a.dynamic is not None and any(map(is_unknown, a.dynamic))
        )
    if isinstance(a, SetType):
        return is_unknown(a.of)
    return a is None


_TYPE_OF: Final[dict[type, Type]] = {
    type(None): NULL,
    bool: BOOLEAN,
    int: NUMBER,
    float: NUMBER,
    str: STRING,
}


def type_of(value: Any) -> Type:
    """Returns the type of a value: arrays and objects item by item."""
    known = _TYPE_OF.get(type(value))
    if known is not None:
        return known
    if isinstance(value, float):  # of a kind of its own
        return NUMBER
    if isinstance(value, list):
        return ArrayType(tuple(map(type_of, value)))
    if hasattr(value, "items"):
        pairs = [(name, type_of(item)) for name, item in value.items()]
        return ObjectType(tuple(sorted(pairs, key=lambda pair: sort_key(pair[0]))))
    return SetType(union_all(map(type_of, value)))


PARTS_MAX: Final = 1_000
"""Types that a type may be made of before it is taken for any: each rule that names another twice
doubles them, so without a bound thirty short rules would never be checked to their end."""


def bounded(type_: Type | None) -> Type | None:
    """Returns the type, or any where it is made of too many."""
    if type_ is ANY or type(type_) is Scalar:  # most are
        return type_
    waiting: list[Type | None] = [type_]
    count = 0
    while waiting:
        part = waiting.pop()
        count += 1
        if count > PARTS_MAX:
            return ANY
        if isinstance(part, ArrayType):
            waiting += [*part.static, part.dynamic]
        elif isinstance(part, ObjectType):
            waiting += [value for _, value in part.static]
            waiting += part.dynamic or ()
        elif isinstance(part, SetType):
            waiting.append(part.of)
        elif isinstance(part, AnyOf):
            waiting += part.members
    return type_
