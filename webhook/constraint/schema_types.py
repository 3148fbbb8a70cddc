"""The types of a schema's keywords, as the API server decodes them (apiextensions/v1).

Wrong types are refused before all other checks. Unknown keywords are dropped, and null is absent.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

_INT64: Final = 1 << 63
_DOUBLE_MAX: Final = sys.float_info.max

TEXT: Final = "a string"
FLAG: Final = "a boolean"
INTEGER: Final = "an integer of 64 bits"
NUMBER: Final = "a number"
TEXTS: Final = "an array of strings"
ARRAY: Final = "an array"
OBJECT: Final = "an object"
SCHEMA: Final = "a schema, which is an object"
SCHEMAS: Final = "an array of schemas, which are objects"
NAMED_SCHEMAS: Final = "an object of schemas, which are objects"
SCHEMA_OR_FLAG: Final = "a schema, which is an object, or a boolean"
SCHEMA_OR_SCHEMAS: Final = "a schema"
DOCS: Final = "an object with the texts description and url"
RULES: Final = "an array of rules, which are objects of texts"

_RULE: Final[Mapping[str, type]] = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), str),
    "optionalOldSelf": bool,
}
_DOCS: Final[Mapping[str, type]] = {"description": str, "url": str}

KEYWORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("$ref", "$schema", "description", "format", "id", "pattern", "title", "type"), TEXT
    ),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), TEXT),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems"), FLAG),
    **dict.fromkeys(
        (
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
            "x-kubernetes-preserve-unknown-fields",
        ),
        FLAG,
    ),
    **dict.fromkeys(
        ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"),
        INTEGER,
    ),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), NUMBER),
    **dict.fromkeys(("required", "x-kubernetes-list-map-keys"), TEXTS),
    "enum": ARRAY,
    "externalDocs": DOCS,
    "x-kubernetes-validations": RULES,
    "not": SCHEMA,
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), SCHEMAS),
    **dict.fromkeys(("definitions", "patternProperties", "properties"), NAMED_SCHEMAS),
    **dict.fromkeys(("additionalItems", "additionalProperties"), SCHEMA_OR_FLAG),
    "items": SCHEMA_OR_SCHEMAS,
}


def type_faults(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yields the type faults in a schema and in its inner schemas; recursive."""
    for keyword, value in schema.items():
        value_type = KEYWORDS.get(keyword)
        if value is None or value_type is None:
            continue
        below = f"{path}.{keyword}"
        if not _is(value, value_type):
            yield f"{below}: Invalid value: {_type(value)}: must be {value_type}"
        elif value_type in (SCHEMA, SCHEMA_OR_FLAG, SCHEMA_OR_SCHEMAS) and type(value) is dict:
            yield from type_faults(value, below)
        elif value_type in (SCHEMAS, SCHEMA_OR_SCHEMAS) and type(value) is list:
            for index, item in enumerate(value):
                yield from _inner(item, f"{below}[{index}]")
        elif value_type == NAMED_SCHEMAS:
            for name, item in value.items():
                yield from _inner(item, f"{below}[{name}]")


def unsatisfiable(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yields the positions where no value can be valid, though the API server accepts the schema."""
    factor = schema.get("multipleOf")
    if factor is not None and factor <= 0:
        yield f"{path}.multipleOf: Invalid value: {factor}: must be positive, or no value fits"
    for keyword, value in schema.items():
        value_type = KEYWORDS.get(keyword)
        below = f"{path}.{keyword}"
        if value_type in (SCHEMA, SCHEMA_OR_FLAG, SCHEMA_OR_SCHEMAS) and type(value) is dict:
            yield from unsatisfiable(value, below)
        elif value_type == SCHEMAS:
            for index, item in enumerate(value or ()):
                yield from unsatisfiable(item or {}, f"{below}[{index}]")
        elif value_type == NAMED_SCHEMAS:
            for name, item in (value or {}).items():
                yield from unsatisfiable(item or {}, f"{below}[{name}]")


def _inner(schema: Any, path: str) -> Iterator[str]:
    if type(schema) is dict:
        yield from type_faults(schema, path)
    elif schema is not None:
        yield f"{path}: Invalid value: must be an object"


def _is(value: Any, value_type: str) -> bool:
    kind = type(value)
    match value_type:
        case "a string":
            return kind is str
        case "a boolean":
            return kind is bool
        case "an integer of 64 bits":
            return kind is int and -_INT64 <= value < _INT64
        case "a number":
            # Go reads it into a double.
            return kind is float or (kind is int and abs(value) <= _DOUBLE_MAX)
        case "an array of strings":
            return kind is list and all(type(item) is str for item in value)
        case "an array" | "an array of schemas, which are objects":
            return kind is list
        case "an object with the texts description and url":
            return _has_fields(value, _DOCS)
        case "an array of rules, which are objects of texts":
            return kind is list and all(item is None or _has_fields(item, _RULE) for item in value)
        case "a schema, which is an object, or a boolean":
            return kind is dict or kind is bool
        case "a schema":  # Another rule forbids a list.
            return kind is dict or kind is list
    return kind is dict


def _has_fields(value: Any, fields: Mapping[str, type]) -> bool:
    """Whether a value is an object whose known fields have these types."""
    return type(value) is dict and all(
        item is None or name not in fields or type(item) is fields[name]
        for name, item in value.items()
    )


def _type(value: Any) -> str:
    names = {str: '"string"', bool: '"boolean"', list: '"array"', dict: '"object"'}
    return names.get(type(value), f"{value!r:.40}")
