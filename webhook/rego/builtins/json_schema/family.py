"""``json.match_schema`` and ``json.verify_schema`` (OPA reference, "JSON Schema").

OPA validates with its copy of gojsonschema, whose results list each fault's
place, type and wording, in an order and with a choice among the branches of
``anyOf`` and ``oneOf`` of its own. ``jsonschema-rs`` reports other faults in
another order and knows nothing of that choice, so no mapping exists and the
drafts that gojsonschema reads (4, 6, 7 and its hybrid of them) are read here.
Remote references are never fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins import go_json
from webhook.rego.builtins.json_schema.compile import compile_schema
from webhook.rego.builtins.json_schema.validate import validate
from webhook.rego.builtins.operands import plain
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.values import RegoObject
from webhook.rego.types import (
    BOOLEAN,
    NULL,
    OBJECT,
    STRING,
    ObjectType,
    any_of,
    array_of,
    static_array,
)

if TYPE_CHECKING:
    from webhook.rego.builtins.json_schema.nodes import Schema
    from webhook.rego.run.values import Value

_DOCUMENT: Final = any_of(STRING, OBJECT)
_FAULT: Final = ObjectType(
    (("desc", STRING), ("error", STRING), ("field", STRING), ("type", STRING))
)
_CACHE: Final = "json.match_schema"
"""The key under which an evaluation keeps its compiled schemas."""

_CHARACTERS_A_STEP: Final = 8
"""Characters of JSON text that are decoded in one step of work."""


@builtin(
    "json.verify_schema",
    _DOCUMENT,
    result=static_array(BOOLEAN, any_of(NULL, STRING)),
    context=True,
    deterministic=False,
)
def json_verify_schema(context: Context, schema: Value) -> list[Value]:
    """Returns ``[true, null]`` for a valid schema, else ``[false, message]``."""
    try:
        _compiled(context, schema)
    except BuiltinError as error:
        return [False, f"jsonschema: {error.message}"]
    return [True, None]


@builtin(
    "json.match_schema",
    _DOCUMENT,
    _DOCUMENT,
    result=static_array(BOOLEAN, array_of(_FAULT)),
    context=True,
    deterministic=False,
)
def json_match_schema(context: Context, document: Value, schema: Value) -> list[Value]:
    """Returns ``[matches, faults]``; each fault is an object of desc, error, field and type."""
    try:
        decoded = _decoded(context, document)
        faults = validate(_compiled(context, schema), decoded, context)
    except RecursionError:
        raise _too_deep() from None
    return [not faults, [fault.json() for fault in faults]]


def _compiled(context: Context, schema: Value) -> Schema:
    """Compiles a schema, once in an evaluation; raises :class:`BuiltinError` for an invalid one."""
    cache: dict[str | int, tuple[Value, Schema]] = context.cache.setdefault(_CACHE, {})
    # By identity: a key of the whole schema would take as long as compiling it. The cache holds the
    # schema too, so that no other object gets its id meanwhile.
    key = schema if isinstance(schema, str) else id(schema)
    cached, compiled = cache.get(key, (None, None))
    if compiled is None or cached is not schema:
        try:
            compiled = compile_schema(_decoded(context, schema), context.charge)
        except RecursionError:
            raise _too_deep() from None
        cache[key] = schema, compiled
    return compiled


def _decoded(context: Context, value: Value) -> Any:
    """Returns a document as plain JSON: a string is JSON text, anything else a value."""
    if isinstance(value, str):
        context.charge(len(value) // _CHARACTERS_A_STEP)
        try:
            return go_json.decode(value)
        except BuiltinError:
            raise BuiltinError("invalid JSON string") from None
    if isinstance(value, dict | list | RegoObject):
        return plain(context, value)
    raise BuiltinError("wrong type, expected string or object")


def _too_deep() -> EvaluationError:
    return EvaluationError("eval_cancel_error", "schema or document is nested too deeply")
