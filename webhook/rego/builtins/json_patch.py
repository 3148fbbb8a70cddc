"""JSON patch (RFC 6902) over Rego values, sets among them.

Behaviour and messages are those of OPA's v1/topdown/json.go and internal/edittree. Values are
immutable: an edit copies the values on its path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import as_index
from webhook.rego.run.text import display
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.builtins.registry import Context

_GO_TYPES: Final = {
    "null": "ast.Null",
    "boolean": "ast.Boolean",
    "number": "ast.Number",
    "string": "ast.String",
}

_DELETED: Final = "deleted node encountered during delete operation"


def read_path(path: Value) -> list[Value]:
    """Returns the steps of a path; raises BuiltinError for an invalid path."""
    if type(path) is list:
        return path
    if type(path) is not str:
        raise BuiltinError(
            "operand 2 must be one of {set, array} containing string paths or array of path "
            f"segments but got {type_name(path)}",
            kind="type",
        )
    if not path:
        return []
    parts = path.lstrip("/").split("/")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def apply_patches(context: Context, document: Value, operations: list[Value]) -> Value:
    """Returns the document after all operations; raises BuiltinError at the first failure."""
    for operation in operations:
        if type(operation) is not dict and type(operation) is not RegoObject:
            raise BuiltinError(
                "must be an array of JSON-Patch objects, but at least one element is not an object"
            )
        document = _apply(context, document, operation)
    return document


def _attribute(operation: Value, name: str) -> Value:
    value = operation.get(name, UNDEFINED)
    if value is UNDEFINED:
        raise BuiltinError(f"missing required attribute '{name}'")
    return value


def _apply(context: Context, document: Value, operation: Value) -> Value:
    where = _attribute(operation, "path")
    name = _attribute(operation, "op")
    if type(name) is not str:
        raise BuiltinError(f"attribute 'op' must be a string but found: {type_name(name)}")
    path = read_path(where)
    match name:
        case "add":
            return _insert(context, document, path, _attribute(operation, "value"))
        case "remove":
            return _delete(context, document, path)
        case "replace":
            document = _delete(context, document, path)
            return _insert(context, document, path, _attribute(operation, "value"))
        case "move":
            start = read_path(_attribute(operation, "from"))
            moved = _find(context, document, start)
            return _insert(context, _delete(context, document, start), path, moved)
        case "copy":
            start = read_path(_attribute(operation, "from"))
            return _insert(context, document, path, _find(context, document, start))
        case "test":
            value = _find(context, document, path)
            new_value = _attribute(operation, "value")
            if not equal(value, new_value):
                raise BuiltinError(
                    "value from EditTree != patch value.\n\n"
                    f"Expected: {display(new_value)}\n\nFound: {display(value)}"
                )
            return document
    raise BuiltinError(f"unrecognized op: '{name}'")


def _index(size: int, step: Value) -> int:
    """Returns the index of a step into an array; ``-`` is the index behind its end."""
    if type(step) is str:
        if step == "-":
            return size
        digits = step.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            raise BuiltinError("invalid string for indexing")
        if step != "0" and step.startswith("0"):
            raise BuiltinError("leading zeros are not allowed in JSON paths")
        return int(step)
    if type_name(step) != "number":
        raise BuiltinError("invalid type for indexing")
    at = as_index(step)
    if at is None:
        raise BuiltinError("invalid number type for indexing")
    return at


def _child(value: Value, step: Value) -> Value:
    """Returns the child one step into a value."""
    if value is UNDEFINED:
        raise BuiltinError("nil value encountered where composite value was expected")
    kind = type(value)
    if kind is list:
        at = _index(len(value), step)
        if 0 <= at < len(value):
            return value[at]
        raise BuiltinError(f"path {at} does not exist in array term {display(value)}")
    if kind is dict or kind is RegoObject:
        member = _get(value, step)
        if member is UNDEFINED:
            raise BuiltinError(
                f"path {display(step)} does not exist in object term {display(value)}"
            )
        return member
    if kind is RegoSet:
        if step not in value:
            raise BuiltinError(f"path {_ref(step)} does not exist in set term {display(value)}")
        return step
    raise BuiltinError(
        f"expected composite type for path {display(step)}, "
        f"found value: {display(value)} (type: {_GO_TYPES[type_name(value)]})"
    )


def _ref(step: Value) -> str:
    return step if type(step) is str else display(step)


def _get(value: Value, step: Value) -> Value:
    if type(value) is dict:
        return value.get(step, UNDEFINED) if type(step) is str else UNDEFINED
    return value.get(step, UNDEFINED)


def _find(context: Context, document: Value, path: list[Value]) -> Value:
    for step in path:
        context.charge(1)
        document = _child(document, step)
    if document is UNDEFINED:
        raise BuiltinError("nil value encountered where composite value was expected")
    return document


def _edit(
    context: Context, value: Value, path: list[Value], change: Callable[[Value, Value], Value]
) -> Value:
    """Returns ``value`` after ``change(container, last step)`` at the end of ``path``."""
    step, *rest = path
    if not rest:
        _charge_copy(context, value)
        return change(value, step)
    below = _edit(context, _child(value, step), rest, change)
    _charge_copy(context, value)
    if type(value) is list:
        at = _index(len(value), step)
        return [*value[:at], below, *value[at + 1 :]]
    if type(value) is RegoSet:
        return RegoSet([below if equal(item, step) else item for item in value])
    return _with_property(value, step, below)


def _charge_copy(context: Context, value: Value) -> None:
    if type(value) in {list, dict, RegoObject, RegoSet}:
        context.charge(1 + len(value))


def _with_property(value: Value, name: Value, item: Value) -> Value:
    if type(value) is dict and type(name) is str:
        return value | {name: item}
    pairs = {key(k): (k, v) for k, v in value.items()}
    pairs[key(name)] = (name, item)
    return make_object(pairs.values())


def _not_composite(value: Value) -> BuiltinError:
    if value is UNDEFINED:
        return BuiltinError("deleted node encountered during insert operation")
    return BuiltinError(
        f"expected composite type, found value: {display(value)} "
        f"(type: {_GO_TYPES[type_name(value)]})"
    )


def _insert(context: Context, document: Value, path: list[Value], item: Value) -> Value:
    def change(container: Value, step: Value) -> Value:
        kind = type(container)
        if kind is list:
            at = _index(len(container), step)
            if not 0 <= at <= len(container):
                raise BuiltinError("index for array insertion out of bounds")
            return [*container[:at], item, *container[at:]]
        if kind is dict or kind is RegoObject:
            return _with_property(container, step, item)
        if kind is RegoSet:
            if not equal(step, item):
                raise BuiltinError(
                    f"set key {display(step)} does not equal value to be inserted {display(item)}"
                )
            return RegoSet([*container, item])
        raise _not_composite(container)

    return _edit(context, document, path, change) if path else item


def _delete(context: Context, document: Value, path: list[Value]) -> Value:
    def change(container: Value, step: Value) -> Value:
        kind = type(container)
        if container is UNDEFINED:
            raise BuiltinError(_DELETED)
        if kind is list:
            at = _index(len(container), step)
            if not 0 <= at < len(container):
                raise BuiltinError("index for array delete out of bounds")
            return container[:at] + container[at + 1 :]
        if kind is dict or kind is RegoObject:
            if _get(container, step) is UNDEFINED:
                raise BuiltinError(f"cannot delete child key {display(step)} that does not exist")
            name = key(step)
            return make_object((k, v) for k, v in container.items() if key(k) != name)
        if kind is RegoSet:
            if step not in container:
                raise BuiltinError(f"cannot delete child key {display(step)} that does not exist")
            return container.difference(RegoSet([step]))
        raise _not_composite(container)

    if path:
        return _edit(context, document, path, change)
    if document is UNDEFINED:
        raise BuiltinError(_DELETED)
    return UNDEFINED
