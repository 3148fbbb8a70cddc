"""Whether a template's parameter schema makes a CRD that the API server accepts.

A schema must be *structural*: every level states its type outside of the
logical operators, which may only restrict. The rules and messages are those of
apiextensions' validation; of its many, those that people meet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import re2

from webhook.constraint.field import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.constraint.template import Template

    Schema = Mapping[str, Any]

_ROOT: Final = "spec.validation.openAPIV3Schema"
_DNS_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS_1035_MESSAGE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', regex used for validation is '{_DNS_1035}')"
)
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = (
    "definitions",
    "dependencies",
    "patternProperties",
    "additionalItems",
    "id",
    "$ref",
)
_FLAGS: Final = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)
_NESTED_FORBIDDEN: Final = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    *((flag, "must be false to be structural") for flag in _FLAGS),
)
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def schema_faults(template: Template, schema: Schema) -> list[str]:
    """Everything against a template's names and schema, sorted within the schema."""
    found: list[str] = []
    kind = template.kind
    if not re.fullmatch(_DNS_1035, kind.lower()):
        found.append(
            invalid(
                "spec.names.kind",
                kind,
                f"may have mixed case, but should otherwise match: {_DNS_1035_MESSAGE}",
            )
        )
    for index, name in enumerate(template.short_names):
        if not re.fullmatch(_DNS_1035, name):
            found.append(invalid(f"spec.names.shortNames[{index}]", name, _DNS_1035_MESSAGE))
    return found + sorted(set(_level(schema, _ROOT, "")))


_WHERE: Final = {
    "field": "must not be empty for specified object fields",
    "item": "must not be empty for specified array items",
}


def _level(schema: Any, path: str, where: str) -> Iterator[str]:
    """The faults of one level outside of logical operators, and of those below."""
    if type(schema) is not dict:
        yield f"{path}: Invalid value: must be an object"
        return
    yield from _own_faults(schema, path, where)
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    if type(properties) is not dict:
        yield f"{path}.properties: Invalid value: must be an object"
        return
    for name, item in properties.items():
        yield from _level(item, f"{path}.properties[{name}]", "field")
    if type(more) is dict:
        if properties:
            yield (
                f"{path}.additionalProperties: Forbidden: "
                "additionalProperties and properties are mutual exclusive"
            )
        yield from _level(more, f"{path}.additionalProperties", "field")
    elif more is False:
        yield (
            f"{path}.additionalProperties: Forbidden: additionalProperties cannot be set to false"
        )
    if schema.get("items") is not None:
        yield from _level(schema["items"], f"{path}.items", "item")
    elif schema.get("type") == "array":
        yield f"{path}.items: Required value: must be specified"


def _own_faults(schema: Schema, path: str, where: str) -> Iterator[str]:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        allowed = ", ".join(f'"{name}"' for name in _TYPES)
        yield f'{path}.type: Unsupported value: "{kind}": supported values: {allowed}'
    flags = {flag: bool(schema.get(flag)) for flag in _FLAGS}
    preserve, embedded, int_or_string = flags.values()
    if not kind and not preserve and not int_or_string and where in _WHERE:
        yield f"{path}.type: Required value: {_WHERE[where]}"
    if int_or_string and preserve:
        why = "must be false if x-kubernetes-int-or-string is true"
        yield f"{path}.x-kubernetes-preserve-unknown-fields: Invalid value: true: {why}"
    if embedded and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield f"{path}.type: Required value: {why}" if not kind else invalid(path, kind, why)
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield f"{path}.{name}: Forbidden: {name} is not supported"
    if schema.get("uniqueItems"):
        yield (
            f"{path}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
            "complexity becomes quadratic"
        )
    yield from _logic(schema, path)


def _logic(schema: Schema, path: str) -> Iterator[str]:
    """The faults within allOf, anyOf, oneOf and not, and of the pattern."""
    for operator in ("allOf", "anyOf", "oneOf"):
        alternatives = schema.get(operator)
        if type(alternatives) is not list:
            continue
        if operator == "anyOf" and alternatives == _INT_OR_STRING:
            continue
        for index, item in enumerate(alternatives):
            yield from _nested(item, f"{path}.{operator}[{index}]", first=index == 0)
    if schema.get("not") is not None:
        yield from _nested(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if type(pattern) is str:
        try:
            re2.compile(pattern)
        except re2.error as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", pattern, why)


def _nested(schema: Any, path: str, *, first: bool = False) -> Iterator[str]:
    """The faults of a level within a logical operator, which may only restrict."""
    if type(schema) is not dict:
        yield f"{path}: Invalid value: must be an object"
        return
    for name, why in _NESTED_FORBIDDEN:
        if schema.get(name):
            yield f"{path}.{name}: Forbidden: {why}"
    if schema.get("additionalProperties") is not None:
        yield f"{path}.additionalProperties: Forbidden: must be undefined to be structural"
    if not (first and schema.get("anyOf") == _INT_OR_STRING):
        yield from _logic(schema, path)
    properties = schema.get("properties")
    if type(properties) is dict:
        for name, item in properties.items():
            yield from _nested(item, f"{path}.properties[{name}]")
    if schema.get("items") is not None:
        yield from _nested(schema["items"], f"{path}.items")
