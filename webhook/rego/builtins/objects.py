"""Built-ins on objects.

Documented in OPA's reference under "Object"; behaviour from v1/topdown/object.go
and subset.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.rego.builtins.registry import Context, builtin, wrong_element, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run.runtime import index
from webhook.rego.run.values import (
    UNDEFINED,
    RegoObject,
    RegoSet,
    Value,
    equal,
    key,
    make_object,
    type_name,
)
from webhook.rego.run.weight import afford_smaller
from webhook.rego.types import ANY, ARRAY, BOOLEAN, OBJECT, SET, any_of, array_of

COLLECTION = any_of(ARRAY, SET, OBJECT)


@builtin("object.get", OBJECT, ANY, ANY, result=ANY, check=False)
def get(object_: Value, name: Value, default: Value) -> Value:
    """Returns the value under a key, or at the end of an array of keys, or the default."""
    if type(object_) is dict:
        if type(name) is str:
            return object_.get(name, default)
    elif type(object_) is not RegoObject:
        wrong_operand(1, object_, "object")
    value = object_
    if type(name) is list:
        for step in name:
            value = index(value, step)
            if value is UNDEFINED:
                return default
        return value
    value = index(object_, name)
    return default if value is UNDEFINED else value


@builtin("object.keys", OBJECT, result=SET, context=True)
def keys(context: Context, object_: Value) -> RegoSet:
    """Returns the names of an object's items, as a set."""
    context.charge(len(object_))
    return RegoSet(object_.keys())


def _keys_of(collection: Value) -> RegoSet:
    kind = type(collection)
    if kind is RegoSet:
        return collection  # type: ignore[no-any-return]  # just tested
    if kind is list:
        return RegoSet(collection)
    if kind is dict or kind is RegoObject:
        return RegoSet(collection.keys())
    return wrong_operand(2, collection, "object", "set", "array")


@builtin("object.remove", OBJECT, COLLECTION, result=OBJECT, context=True)
def remove(context: Context, object_: Value, names: Value) -> Value:
    """Returns the object without these keys."""
    dropped = _keys_of(names)
    context.charge(len(object_) + len(dropped))
    return make_object((k, v) for k, v in object_.items() if k not in dropped)


@builtin("object.filter", OBJECT, COLLECTION, result=OBJECT, context=True)
def filter_(context: Context, object_: Value, names: Value) -> Value:
    """Returns the object with only these keys."""
    kept = _keys_of(names)
    context.charge(len(object_) + len(kept))
    return make_object((k, v) for k, v in object_.items() if k in kept)


def _is_object(value: Value) -> bool:
    return type(value) is dict or type(value) is RegoObject


def merged(context: Context, a: Value, b: Value) -> Value:
    """Merges ``b`` into ``a``: objects in both are merged, else ``b`` wins."""
    afford_smaller(a, b)
    return _merged(context, a, b)


def _merged(context: Context, a: Value, b: Value) -> Value:
    context.charge(1 + len(a) + len(b))
    if type(a) is dict and type(b) is dict:
        result = dict(a)
        for name, value in b.items():
            ours = result.get(name, UNDEFINED)
            both = _is_object(ours) and _is_object(value)
            result[name] = _merged(context, ours, value) if both else value
        return result
    pairs = {key(k): (k, v) for k, v in a.items()}
    for name, value in b.items():
        entry = pairs.get(key(name))
        if entry is not None and _is_object(entry[1]) and _is_object(value):
            pairs[key(name)] = (entry[0], _merged(context, entry[1], value))
        else:
            pairs[key(name)] = (name, value)
    return make_object(pairs.values())


@builtin("object.union", OBJECT, OBJECT, result=OBJECT, context=True)
def union(context: Context, a: Value, b: Value) -> Value:
    """Merges two objects; ``b`` wins."""
    return merged(context, a, b)


@builtin("object.union_n", array_of(OBJECT), result=OBJECT, context=True)
def union_n(context: Context, objects: list[Value]) -> Value:
    """Merges all objects; the last wins."""
    for item in objects:
        if not _is_object(item):
            wrong_element(1, objects, item, "object")
    result: Value = {}
    for item in objects:
        result = merged(context, result, item)
    return result


# --- subsets ---------------------------------------------------------------------------------


@builtin("object.subset", COLLECTION, COLLECTION, result=BOOLEAN, context=True)
def subset(context: Context, super_: Value, sub: Value) -> bool:
    """Returns whether ``sub`` is contained in ``super_``: nested, and arrays as a run of items."""
    afford_smaller(super_, sub)
    is_subset = _subset(context, super_, sub)
    if is_subset is not None:
        return is_subset
    if type(super_) is list and type(sub) is RegoSet:
        return _array_has_members(context, super_, sub)
    raise BuiltinError(
        "both arguments object.subset must be of the same type or array and set", kind="type"
    )


def _subset(context: Context, super_: Value, sub: Value) -> bool | None:
    if _is_object(super_) and _is_object(sub):
        return all(_property_subset(context, super_, k, v) for k, v in sub.items())
    if type(super_) is RegoSet and type(sub) is RegoSet:
        context.charge(1 + len(sub))
        return all(item in super_ for item in sub)
    if type(super_) is list and type(sub) is list:
        return _array_subset(context, super_, sub)
    return None


def _property_subset(context: Context, super_: Value, name: Value, value: Value) -> bool:
    context.charge(1)
    ours = index(super_, name)
    if ours is UNDEFINED:
        return False
    return equal(ours, value) or bool(
        type_name(ours) == type_name(value) and _subset(context, ours, value)
    )


def _array_subset(context: Context, super_: list[Value], sub: list[Value]) -> bool:
    """Returns whether ``sub`` is a run of items; like OPA, retries at each next item."""
    if len(sub) > len(super_):
        return False
    at = matched = 0
    while matched < len(sub):
        if at + matched == len(super_):
            return False
        context.charge(8)
        if equal(super_[at + matched], sub[matched]):
            matched += 1
        else:
            at, matched = at + 1, 0
    return True


def _array_has_members(context: Context, super_: Iterable[Value], sub: RegoSet) -> bool:
    """Counts like OPA: a repeated item counts again, and an empty array contains nothing."""
    unmatched = len(sub)
    for item in super_:
        context.charge(1)
        if item in sub:
            unmatched -= 1
        if unmatched == 0:
            return True
    return False
