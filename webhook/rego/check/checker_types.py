"""Stage 8: which types unify: the leaf questions of the type checker (OPA's unifies)."""

from __future__ import annotations

from typing import Final

from webhook.rego.types import (
    ANY,
    AnyOf,
    ArrayType,
    FunctionType,
    ObjectType,
    Scalar,
    SetType,
    Type,
    any_of,
    select,
    union,
    union_all,
)

EMPTY: Final = ObjectType()


def unifies(a: Type | None, b: Type | None) -> bool:
    """Whether some value may have both types.

    There are six cases: 1. two scalars: of one name. 2. an ``any``: some member unifies. 3. two
    arrays: item by item. 4. two objects: property by property. 5. two sets: their members. 6. two
    functions: their arguments. All others do not unify, and a missing type unifies with none.
    """
    if a is None or b is None:
        return False
    if type(a) is Scalar and type(b) is Scalar:  # most are
        return a.name == b.name
    if isinstance(a, AnyOf) and _unifies_any(a, b):
        return True
    if isinstance(b, AnyOf) and _unifies_any(b, a):
        return True
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        return _unifies_arrays(a, b)
    if isinstance(a, ObjectType) and isinstance(b, ObjectType):
        return _unifies_objects(a, b)
    if isinstance(a, SetType) and isinstance(b, SetType):
        return a.of is None or b.of is None or unifies(a.of, b.of)
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        return len(a.args) == len(b.args) and all(map(unifies, a.args, b.args))
    return False


def _unifies_any(a: AnyOf, b: Type) -> bool:
    if isinstance(b, FunctionType):
        return False
    return not a.members or any(unifies(member, b) for member in a.members)


def _unifies_arrays(a: ArrayType, b: ArrayType) -> bool:
    for mine, theirs in ((a, b), (b, a)):
        for i, item in enumerate(mine.static):
            if not unifies(item, select(theirs, i)):
                return False
    return a.dynamic is None or b.dynamic is None or unifies(a.dynamic, b.dynamic)


def _unifies_objects(a: ObjectType, b: ObjectType) -> bool:
    for mine, theirs in ((a, b), (b, a)):
        for name, value in mine.static:
            other = select(theirs, name)
            if other is None:
                if _dynamic_value(a) is None and _dynamic_value(b) is None:
                    return False
            elif not unifies(value, other):
                return False
    if _dynamic_value(a) is None or _dynamic_value(b) is None:
        return True
    return unifies(_dynamic_value(a), _dynamic_value(b))


def _dynamic_value(a: ObjectType) -> Type | None:
    return None if a.dynamic is None else a.dynamic[1]


def merge(a: Type | None, b: Type | None) -> Type | None:
    """Returns the type of a document that two rules define.

    There are three cases: 1. two sets: a set of the union of their members. 2. an object of unknown
    keys and another, also within an ``any``: one object of the union. 3. all others: a union.
    """
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, SetType) and isinstance(b, SetType):
        return SetType(union(a.of, b.of))
    if isinstance(a, AnyOf) and not isinstance(b, AnyOf):
        a, b = b, a
    if isinstance(a, ObjectType) and not a.static:
        merged = _merge_object(a, b)
        if merged is not None:
            return merged
    return union(a, b)


def _merge_object(a: ObjectType, b: Type) -> Type | None:
    """Merges an object of unknown keys with another; None where they stay apart."""
    if isinstance(b, ObjectType) and not b.static:
        if a.dynamic is None or b.dynamic is None:
            return b if a.dynamic is None else a
        key, value = union(a.dynamic[0], b.dynamic[0]), merge(a.dynamic[1], b.dynamic[1])
        return ObjectType((), (key, value))
    if isinstance(b, AnyOf) and a.dynamic is not None:
        for i, member in enumerate(b.members):
            if isinstance(member, ObjectType) and not member.static and member.dynamic:
                key = union(member.dynamic[0], a.dynamic[0])
                value = union(member.dynamic[1], a.dynamic[1])
                members = [*b.members]
                members[i] = ObjectType((), (key, value))
                return any_of(*members)
    return None


def insert(into: ObjectType, path: tuple[Type | None, ...], type_: Type | None) -> ObjectType:
    """Returns an object type with a property of ``type_`` added below keys of these types."""
    key, *rest = path
    below = insert(EMPTY, tuple(rest), type_) if rest else type_
    if into.dynamic is not None:
        key, below = union(into.dynamic[0], key), union(into.dynamic[1], below)
    return ObjectType(into.static, (key, below))


def is_empty(type_: Type) -> bool:
    """Whether it is the type of a collection that can hold nothing."""
    if isinstance(type_, ObjectType | ArrayType):
        return not type_.static and type_.dynamic is None
    return isinstance(type_, SetType) and type_.of is None


def opened(type_: Type | None) -> Type:
    """Returns the type of a constant whose empty collections may hold anything."""
    if isinstance(type_, ArrayType):
        return ArrayType(tuple(map(opened, type_.static)), None if type_.static else ANY)
    if isinstance(type_, ObjectType):
        static = tuple([(name, opened(value)) for name, value in type_.static])
        return ObjectType(static, None if static else (ANY, ANY))
    if isinstance(type_, SetType):
        return SetType(opened(type_.of))
    if isinstance(type_, AnyOf):
        return union_all(map(opened, type_.members)) or ANY
    return ANY if type_ is None else type_


def relaxed(type_: Type) -> Type:
    """Returns the type with anything in the place of each collection that can hold nothing."""
    if is_empty(type_):
        return ANY
    if isinstance(type_, ArrayType):
        return ArrayType(tuple(map(relaxed, type_.static)), _relaxed(type_.dynamic))
    if isinstance(type_, ObjectType):
        static = tuple([(name, _relaxed(value)) for name, value in type_.static])
        items = type_.dynamic
        return ObjectType(static, None if items is None else (items[0], _relaxed(items[1])))
    if isinstance(type_, SetType):
        return SetType(_relaxed(type_.of))
    if isinstance(type_, AnyOf) and type_.members:
        return union_all(map(relaxed, type_.members)) or ANY
    return type_


def _relaxed(type_: Type | None) -> Type | None:
    return None if type_ is None else relaxed(type_)
