"""Whether a template's parameter schema makes a CRD that the API server accepts.

A schema must be *structural*: every level states its type outside of the
logical operators, which may only restrict. The rules and messages are those of
apiextensions' validation; of its many, those that people meet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.api.patterns import LABEL_1035
from webhook.constraint.field import invalid
from webhook.constraint.schema_types import type_faults
from webhook.constraint.template import OWN_KINDS
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import pattern as compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.constraint.template import Template

    Schema = Mapping[str, Any]

_ROOT: Final = "spec.validation.openAPIV3Schema"
_DNS_1035_MESSAGE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', regex used for validation is '{LABEL_1035}')"
)
_EMBEDDED: Final = (
    "must not be empty if x-kubernetes-embedded-resource is true without "
    "x-kubernetes-preserve-unknown-fields"
)
_LABEL_MAX: Final = 63
_LIST_TYPES: Final = ("atomic", "map", "set")
_MAP_TYPES: Final = ("atomic", "granular")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("$schema", "definitions", "id", "patternProperties")
"""Forbidden, unless they are empty."""
_UNSUPPORTED_AT_ALL: Final = ("$ref", "additionalItems", "dependencies")
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
    faults = list(_name_faults(template))
    types = sorted(type_faults(schema, _ROOT))
    return faults + (types or sorted(set(_level(schema, _ROOT, ""))))


def _name_faults(template: Template) -> Iterator[str]:
    kind = template.kind
    for field, name in (("kind", kind), ("listKind", f"{kind}List")):
        for why in _label_faults(name.lower()):
            mixed = f"may have mixed case, but should otherwise match: {why}"
            yield invalid(f"spec.names.{field}", name, mixed)
        if re.fullmatch(LABEL_1035, kind.lower()) is None:
            break  # Both would say the same.
    if kind.lower() in OWN_KINDS:
        yield invalid("spec.names.kind", kind, "is the kind of the templates themselves")
    for index, name in enumerate(template.short_names):
        for why in _label_faults(name):
            yield invalid(f"spec.names.shortNames[{index}]", name, why)


def _label_faults(name: str) -> Iterator[str]:
    """What is wrong with a DNS-1035 label (apimachinery)."""
    if len(name) > _LABEL_MAX:
        yield f"must be no more than {_LABEL_MAX} characters"
    if not re.fullmatch(LABEL_1035, name):
        yield _DNS_1035_MESSAGE


_WHERE: Final = {
    "field": "must not be empty for specified object fields",
    "item": "must not be empty for specified array items",
}


def _level(schema: Schema, path: str, where: str) -> Iterator[str]:
    """The faults of one level outside of logical operators, and of those below."""
    yield from _own_faults(schema, path, where)
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in properties.items():
        yield from _level(item or {}, f"{path}.properties[{name}]", "field")
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
    if type(schema.get("items")) is list:
        yield f"{path}.items: Forbidden: items must be a schema object and not an array"
    elif schema.get("items") is not None:
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
    elif embedded and not preserve and not schema.get("properties"):
        yield f"{path}.properties: Required value: {_EMBEDDED}"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        why = "must be true or undefined"
        yield f"{path}.x-kubernetes-preserve-unknown-fields: Invalid value: false: {why}"
    yield from _merge_faults(schema, path)
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield f"{path}.{name}: Forbidden: {name} is not supported"
    for name in _UNSUPPORTED_AT_ALL:
        if schema.get(name) is not None:
            yield f"{path}.{name}: Forbidden: {name} is not supported"
    if schema.get("uniqueItems"):
        yield (
            f"{path}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
            "complexity becomes quadratic"
        )
    yield from _logic(schema, path)


def _merge_faults(schema: Schema, path: str) -> Iterator[str]:
    """The faults of how lists and maps are merged."""
    for name, known in (("list", _LIST_TYPES), ("map", _MAP_TYPES)):
        keyword = f"x-kubernetes-{name}-type"
        value = schema.get(keyword)
        if value is not None and value not in known:
            allowed = ", ".join(f'"{item}"' for item in known)
            yield f'{path}.{keyword}: Unsupported value: "{value}": supported values: {allowed}'
    kind, list_type, keys = (
        schema.get(name) for name in ("type", "x-kubernetes-list-type", _MAP_KEYS)
    )
    if list_type is not None and kind != "array":
        why = "must be array if x-kubernetes-list-type is specified"
        yield invalid(f"{path}.type", kind or "", why)
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        at = f"{path}.x-kubernetes-list-type"
        yield f"{at}: Required value: {why}" if list_type is None else invalid(at, list_type, why)
    if schema.get("x-kubernetes-map-type") is not None and kind != "object":
        why = "must be object if x-kubernetes-map-type is specified"
        yield invalid(f"{path}.type", kind or "", why)
    if list_type == "map":
        yield from _map_list_faults(schema, path, keys or [])


_MAP_KEYS: Final = "x-kubernetes-list-map-keys"


def _map_list_faults(schema: Schema, path: str, keys: list[str]) -> Iterator[str]:
    """The faults of a list whose items are told by keys."""
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        yield f"{path}.{_MAP_KEYS}: Required value: {why}"
    items = schema.get("items")
    if type(items) is not dict:
        return  # Another rule says so.
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", why)
        return
    known = items.get("properties") or {}
    if len(set(keys)) < len(keys):
        yield invalid(f"{path}.{_MAP_KEYS}", keys, "must not contain duplicate entries")
    for key in keys:
        inner = known.get(key) or {}
        if key not in known:
            yield invalid(
                f"{path}.{_MAP_KEYS}", keys, "entries must all be names of item properties"
            )
        elif inner.get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", inner["type"], why)
        elif inner.get("nullable"):
            why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield f"{path}.items.properties[{key}].nullable: Forbidden: {why}"
        elif "default" not in inner and key not in (items.get("required") or ()):
            why = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be "
                "a required property"
            )
            yield f"{path}.items.properties[{key}].default: Required value: {why}"


def _logic(schema: Schema, path: str) -> Iterator[str]:
    """The faults within allOf, anyOf, oneOf and not, and of the pattern."""
    for operator in ("allOf", "anyOf", "oneOf"):
        alternatives = schema.get(operator) or ()
        if operator == "anyOf" and alternatives == _INT_OR_STRING:
            continue
        for index, item in enumerate(alternatives):
            yield from _nested(item, f"{path}.{operator}[{index}]", first=index == 0)
    if schema.get("not") is not None:
        yield from _nested(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern is not None:
        try:
            compile_pattern(pattern)
        except BuiltinError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", pattern, why)


def _nested(schema: Any, path: str, *, first: bool = False) -> Iterator[str]:
    """The faults of a level within a logical operator, which may only restrict."""
    schema = schema or {}
    for name, why in _NESTED_FORBIDDEN:
        if schema.get(name):
            yield f"{path}.{name}: Forbidden: {why}"
    if schema.get("additionalProperties") is not None:
        yield f"{path}.additionalProperties: Forbidden: must be undefined to be structural"
    if not (first and schema.get("anyOf") == _INT_OR_STRING):
        yield from _logic(schema, path)
    for name, item in (schema.get("properties") or {}).items():
        yield from _nested(item, f"{path}.properties[{name}]")
    if type(schema.get("items")) is dict:
        yield from _nested(schema["items"], f"{path}.items")
