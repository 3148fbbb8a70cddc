"""A template's schema as Go reads it into apiextensions' ``JSONSchemaProps``.

Gatekeeper and the API server decode a schema into Go's types, which forgives some of what people
write: null is as if nothing were there, a keyword that nobody knows is dropped, and ``items: string``
is a list of nothing in particular. What Go refuses is left as it is, and told by
:mod:`webhook.constraint.schema_types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.schema_types import (
    ARRAY,
    INTEGER,
    KEYWORDS,
    NAMED_SCHEMAS,
    SCHEMA,
    SCHEMA_OR_FLAG,
    SCHEMA_OR_SCHEMAS,
    SCHEMAS,
    TEXTS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"

_UNTYPED: Final = frozenset({"default", "dependencies", "example"})
"""Keywords that are known, and hold anything."""


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as Go has it; recurses by schema."""
    read: dict[str, Any] = {}
    for keyword, value in schema.items():
        value_type = KEYWORDS.get(keyword)
        if value is None or (value_type is None and keyword not in _UNTYPED):
            continue
        if keyword == "dependencies" and value == {}:
            continue  # Go does not write it
        read[keyword] = value if value_type is None else _as_read(value, value_type)
    if not (
        type(schema.get("items")) is dict or (type(schema.get("items")) is list and schema["items"])
    ):
        read.pop("items", None)
    return read


def _as_read(value: Any, value_type: str) -> Any:
    kind = type(value)
    if value_type == INTEGER and kind is float and value.is_integer():
        return int(value)  # JSON has one kind of number, and YAML's 5.0 is written 5 there
    if value_type in (SCHEMA, SCHEMA_OR_FLAG, SCHEMA_OR_SCHEMAS) and kind is dict:
        return read_schema(value)
    if value_type in (SCHEMAS, SCHEMA_OR_SCHEMAS) and kind is list:
        return [_inner(item) for item in value]
    if value_type == NAMED_SCHEMAS and kind is dict:
        return {name: _inner(item) for name, item in value.items()}
    if value_type == TEXTS and kind is list:
        return ["" if item is None else item for item in value]
    if value_type == ARRAY and kind is list:
        return list(value)
    return value


def _inner(schema: Any) -> Any:
    """A schema within another: null is one that says nothing."""
    if schema is None:
        return {}
    return read_schema(schema) if type(schema) is dict else schema


def open_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Allow unknown fields at every level of a schema that was read, as a legacy schema does.

    An array without items gets items that may be anything, since a structural schema must have
    them. What is of a wrong type is left as it is.
    """
    result = dict(schema)
    kind = schema.get("type", "")
    if kind in ("", "object") and type(schema.get(_PRESERVE, True)) is bool:
        result[_PRESERVE] = True
    elif kind == "array" and "items" not in schema:
        result["items"] = {_PRESERVE: True}
    properties = schema.get("properties")
    if type(properties) is dict:
        result["properties"] = {
            name: open_schema(item) if type(item) is dict else item
            for name, item in properties.items()
        }
    for keyword in ("items", "additionalProperties"):
        inner = schema.get(keyword)
        if type(inner) is dict:
            result[keyword] = open_schema(inner)
    return result


def has_several_items(schema: Mapping[str, Any]) -> bool:
    """Whether a list of schemas stands for items, where a legacy schema is opened."""
    items, more, properties = (
        schema.get(name) for name in ("items", "additionalProperties", "properties")
    )
    if type(items) is list:
        return True
    inner = [items, more, *(properties.values() if type(properties) is dict else ())]
    return any(has_several_items(item) for item in inner if type(item) is dict)
