"""Built-ins that read, write and reshape JSON.

Documented in OPA's reference under "Object" and "Encoding"; behaviour from
v1/topdown/json.go and encoding.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from webhook.rego.builtins import go_json
from webhook.rego.builtins.json_patch import apply_patches, read_path
from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run.text import MAX_CHARACTERS, display, json_indented, json_text, text_too_large
from webhook.rego.run.values import (
    UNDEFINED,
    Key,
    RegoObject,
    RegoSet,
    Value,
    key,
    make_object,
    ordered,
    type_name,
)
from webhook.rego.run.weight import CHARACTERS_A_STEP
from webhook.rego.types import (
    ANY,
    ARRAY,
    BOOLEAN,
    OBJECT,
    STRING,
    ObjectType,
    any_of,
    array_of,
    set_of,
)

PATH = any_of(STRING, ARRAY)
PATHS = any_of(array_of(PATH), set_of(PATH))


# --- text ------------------------------------------------------------------------------------


@builtin("json.marshal", ANY, result=STRING, context=True)
def marshal(context: Context, x: Value) -> str:
    """Returns the value as JSON."""
    text = json_text(x)
    context.charge(1 + len(text) // CHARACTERS_A_STEP)
    return text


_OPTIONS = ObjectType((("indent", STRING), ("prefix", STRING), ("pretty", BOOLEAN)), (STRING, ANY))


@builtin("json.marshal_with_options", ANY, _OPTIONS, result=STRING, context=True)
def marshal_with_options(context: Context, x: Value, options: Value) -> str:
    """Returns the value as JSON, indented when ``pretty``, ``indent`` or ``prefix`` says so."""
    _check_options(options)
    indent: str = options.get("indent", "\t")
    prefix: str = options.get("prefix", "")
    pretty = options.get("pretty", "indent" in options or "prefix" in options)
    plain = json_text(x)
    context.charge(1 + len(plain) // CHARACTERS_A_STEP)
    if not pretty:
        return plain
    # A line for each value at most, each with an indentation for each level.
    lines = plain.count(",") + 2 * plain.count("[") + 2 * plain.count("{") + 1
    depth = min(plain.count("[") + plain.count("{"), 1000)
    context.charge(lines * (len(prefix) + len(indent) * depth) // CHARACTERS_A_STEP)
    if lines * (len(prefix) + len(indent)) > MAX_CHARACTERS:
        raise text_too_large()
    return prefix + json_indented(x, prefix, indent)


def _check_options(options: Value) -> None:
    """Raises :class:`BuiltinError` for an unknown option, or one of a wrong type."""
    for index, (name, value) in enumerate(options.items()):
        if type(name) is not str:
            raise BuiltinError(
                f"operand 2 failed to stringify key {display(name)} at index {index}: "
                f"operand {index} must be string but got {type_name(name)}",
                kind="type",
            )
        if name in {"prefix", "indent"} and type(value) is not str:
            raise BuiltinError(
                f'operand 2 key "{name}" failed cast to string: '
                f"operand {index} must be string but got {type_name(value)}",
                kind="type",
            )
        if name == "pretty" and type(value) is not bool:
            raise BuiltinError('operand 2 key "pretty" failed cast to bool', kind="type")
        if name not in {"prefix", "indent", "pretty"}:
            raise BuiltinError(
                f"operand 2 object contained unknown key {display(name)}", kind="type"
            )


@builtin("json.unmarshal", STRING, result=ANY, context=True)
def unmarshal(context: Context, x: str) -> Value:
    """Returns the value of a JSON string."""
    context.charge(1 + len(x) // CHARACTERS_A_STEP)
    try:
        return go_json.decode(x)
    except BuiltinError:
        following = _following_token(x)
        if following is None:
            raise
        raise BuiltinError(
            f"error: invalid character '{following}' after top-level value"
        ) from None


def _following_token(x: str) -> str | None:
    """Returns the token after the first value, for OPA's message (v1/util/json.go, UnmarshalJSON)."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    text = x.lstrip(" \t\r\n")
    try:
        _, end = decoder.raw_decode(text)
        rest = text[end:].lstrip(" \t\r\n")
        if rest[:1] in {"{", "["}:
            return rest[0]
        token, _ = decoder.raw_decode(rest)
    except (ValueError, RecursionError):
        return None
    return str(token).lower() if isinstance(token, bool) else token


@builtin("json.is_valid", STRING, result=BOOLEAN, context=True, check=False)
def is_valid(context: Context, x: Value) -> bool:
    """Returns whether the string is JSON."""
    if type(x) is not str:
        return False
    context.charge(1 + len(x) // CHARACTERS_A_STEP)
    return go_json.is_valid(x)


# --- filter and remove -----------------------------------------------------------------------

DocumentTree = dict[Any, Any]
"""Paths merged: each step's key, and below it a tree, or None where a path ends."""


def _tree(context: Context, paths: Value) -> DocumentTree:
    if type(paths) is list:
        members = paths
    elif type(paths) is RegoSet:
        members = ordered(paths)
    else:
        wrong_operand(2, paths, "set", "array")
    root: DocumentTree = {}
    for path in [read_path(member) for member in members]:
        context.charge(1 + len(path))
        _add_path(root, path)
    return root


def _add_path(root: DocumentTree, path: list[Value]) -> None:
    node = root
    for step in path[:-1]:
        following = node.setdefault(key(step), {})
        if following is None:
            return
        node = following
    if path:
        node[key(path[-1])] = None


def _object(pairs: Iterable[tuple[Value, Value]]) -> Value:
    return make_object((k, v) for k, v in pairs if v is not UNDEFINED)


def _filtered(context: Context, value: Value, tree: DocumentTree | None) -> Value:
    if tree is None:
        return value
    context.charge(1 + len(tree))
    kind = type(value)
    if kind is dict or kind is RegoObject:
        return _object(
            (k, _filtered(context, v, tree[name]))
            for k, v in value.items()
            if (name := key(k)) in tree
        )
    if kind is list:
        return [
            _filtered(context, item, tree[str(at)])
            for at, item in enumerate(value)
            if str(at) in tree
        ]
    if kind is RegoSet:
        return RegoSet(
            _filtered(context, item, tree[name])
            for item in ordered(value)
            if (name := key(item)) in tree
        )
    return value


@builtin("json.filter", OBJECT, PATHS, result=OBJECT, context=True)
def filter_(context: Context, object_: Value, paths: Value) -> Value:
    """Returns the object reduced to the paths."""
    return _filtered(context, object_, _tree(context, paths))


def _removed(context: Context, value: Value, tree: DocumentTree, name: Key) -> Value:
    """Returns ``value`` without the tree's paths; UNDEFINED if a path ends at it."""
    below = tree.get(name, UNDEFINED)
    if below is None:
        return UNDEFINED
    return value if below is UNDEFINED else _without(context, value, below)


def _without(context: Context, value: Value, tree: DocumentTree) -> Value:
    kind = type(value)
    if kind is dict or kind is RegoObject:
        context.charge(1 + len(value))
        return _object((k, _removed(context, v, tree, key(k))) for k, v in value.items())
    if kind is list:
        context.charge(1 + len(value))
        kept = [_removed(context, item, tree, str(at)) for at, item in enumerate(value)]
        return [item for item in kept if item is not UNDEFINED]
    if kind is RegoSet:
        context.charge(1 + len(value))
        kept = [_removed(context, item, tree, key(item)) for item in ordered(value)]
        return RegoSet(item for item in kept if item is not UNDEFINED)
    return value


@builtin("json.remove", OBJECT, PATHS, result=OBJECT, context=True)
def remove(context: Context, object_: Value, paths: Value) -> Value:
    """Returns the object without the paths."""
    return _without(context, object_, _tree(context, paths))


# --- patch -----------------------------------------------------------------------------------

_PATCHES = array_of(ObjectType((("op", STRING), ("path", ANY)), (ANY, ANY)))


@builtin("json.patch", ANY, _PATCHES, result=ANY, context=True, check=False)
def patch(context: Context, value: Value, operations: Value) -> Value:
    """Returns the value after the operations of a JSON patch (RFC 6902)."""
    if type(operations) is not list:
        wrong_operand(2, operations, "array")
    return apply_patches(context, value, operations)
