"""Reads a template's schema as Go decodes it into apiextensions' ``JSONSchemaProps``.

Gatekeeper and the API server decode a schema into Go types, which is lenient: null counts as
absent, unknown keywords are dropped, and ``items: string`` is an empty list. Values that Go refuses
are kept, and :mod:`webhook.constraint.schema_types` reports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"

_UNTYPED: Final = frozenset({"default", "dependencies", "example"})
"""Known keywords that may hold any value."""


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema as Go decodes it; recursive."""
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
    """Returns an inner schema; null becomes an empty one."""
    if schema is None:
        return {}
    return read_schema(schema) if type(schema) is dict else schema


def open_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Allows unknown fields at every level of a legacy schema from :func:`read_schema`.

    An array without ``items`` gets items of any type, since a structural schema requires them.
    Values of a wrong type are kept.
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
    """Whether some ``items`` of a legacy schema is a list of schemas."""
    items, properties = schema.get("items"), schema.get("properties")
    if type(items) is list:
        return True
    inner = [items, schema.get("additionalProperties")]
    if type(properties) is dict:
        inner += properties.values()
    return any(has_several_items(item) for item in inner if type(item) is dict)
