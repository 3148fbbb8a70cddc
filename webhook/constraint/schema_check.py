"""Checks that a template's parameter schema makes a CRD that the API server accepts.

A schema must be *structural*: every level states its type outside of the logical operators, which
may only restrict it. Its defaults must be valid, and its rules must compile. Checks and messages
are those of apiextensions' validation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.api.names import LABEL_1035
from webhook.constraint.errors import invalid
from webhook.constraint.names import dns_label_faults
from webhook.constraint.schema_defaults import default_faults
from webhook.constraint.schema_expressions import expression_faults, rule_faults
from webhook.constraint.schema_types import type_faults
from webhook.constraint.template import OWN_KINDS, Template
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import pattern as compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Schema = Mapping[str, Any]

_ROOT: Final = "spec.validation.openAPIV3Schema"
_EMBEDDED: Final = (
    "must not be empty if x-kubernetes-embedded-resource is true without "
    "x-kubernetes-preserve-unknown-fields"
)
_LIST_TYPES: Final = ("atomic", "map", "set")
_MAP_TYPES: Final = ("atomic", "granular")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("$schema", "definitions", "id", "patternProperties")
"""Keywords that must be empty."""
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
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_NESTED_UNDEFINED: Final = (
    "additionalProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)
_META_TYPES: Final = {"apiVersion": "string", "kind": "string", "metadata": "object"}
_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
_TYPELESS: Final = {
    "field": "must not be empty for specified object fields",
    "item": "must not be empty for specified array items",
}
"""The error of a level without a type, by its position; the root needs none."""
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def schema_faults(template: Template, schema: Schema) -> list[str]:
    """Returns the faults of a template's names and schema, the latter sorted."""
    faults = list(_name_faults(template))
    checks: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: type_faults(schema, _ROOT),
        lambda: _level(schema, _ROOT, ""),
        lambda: default_faults(schema, _ROOT),
        lambda: expression_faults(schema, _ROOT),
    )
    # Each check relies on the success of those before it.
    of_schema = next((in_order for check in checks if (in_order := sorted(set(check())))), [])
    return faults + of_schema


def _name_faults(template: Template) -> Iterator[str]:
    kind = template.kind
    for field, name in (("kind", kind), ("listKind", f"{kind}List")):
        for why in dns_label_faults(name.lower()):
            mixed = f"may have mixed case, but should otherwise match: {why}"
            yield invalid(f"spec.names.{field}", name, mixed)
        if re.fullmatch(LABEL_1035, kind.lower()) is None:
            break  # Both would say the same.
    if kind.lower() in OWN_KINDS:
        yield invalid("spec.names.kind", kind, "is the kind of the templates themselves")
    for index, name in enumerate(template.short_names):
        for why in dns_label_faults(name):
            yield invalid(f"spec.names.shortNames[{index}]", name, why)


def _level(schema: Schema, path: str, where: str) -> Iterator[str]:
    """Yields the faults of one level outside of logical operators, and of the levels below."""
    yield from _own_faults(schema, path, where)
    yield from _keyword_faults(schema, path)
    yield from _logic(schema, path)
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in properties.items():
        yield from _level(item, f"{path}.properties[{name}]", "field")
    if type(more) is dict:
        yield from _level(more, f"{path}.additionalProperties", "field")
    if type(schema.get("items")) is dict:
        yield from _level(schema["items"], f"{path}.items", "item")
    elif schema.get("type") == "array":
        yield f"{path}.items: Required value: must be specified"


def _own_faults(schema: Schema, path: str, where: str) -> Iterator[str]:
    kind = schema.get("type") or ""
    flags = {flag: bool(schema.get(flag)) for flag in _FLAGS}
    preserve, embedded, int_or_string = flags.values()
    if not kind and not preserve and not int_or_string and where in _TYPELESS:
        yield f"{path}.type: Required value: {_TYPELESS[where]}"
    if int_or_string and preserve:
        why = "must be false if x-kubernetes-int-or-string is true"
        yield f"{path}.x-kubernetes-preserve-unknown-fields: Invalid value: true: {why}"
    if int_or_string and embedded:
        why = "must be false if x-kubernetes-int-or-string is true"
        yield f"{path}.x-kubernetes-embedded-resource: Invalid value: true: {why}"
    if embedded:
        yield from _embedded_faults(schema, path)
    if embedded and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield f"{path}.type: Required value: {why}" if not kind else invalid(path, kind, why)
    elif embedded and not preserve and not schema.get("properties"):
        yield f"{path}.properties: Required value: {_EMBEDDED}"


def _embedded_faults(schema: Schema, path: str) -> Iterator[str]:
    """Yields the faults of a schema with embedded Kubernetes objects."""
    if schema.get("additionalProperties") is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        yield f"{path}.additionalProperties: Forbidden: {why}"
    properties = schema.get("properties") or {}
    for name, expected in _META_TYPES.items():
        kind = properties.get(name, {}).get("type") or ""
        if name in properties and kind != expected:
            yield invalid(f"{path}.properties[{name}].type", kind, f"must be {expected}")
    if "metadata" in properties:
        yield from _inside_metadata(properties["metadata"], f"{path}.properties[metadata]")


def _inside_metadata(schema: Schema, path: str) -> Iterator[str]:
    """Yields the faults in the schema of an embedded object's metadata, at any depth."""
    if schema.get("x-kubernetes-embedded-resource"):
        why = "must not be used inside of resource meta"
        yield f"{path}.x-kubernetes-embedded-resource: Forbidden: {why}"
    more, items = schema.get("additionalProperties"), schema.get("items")
    if type(more) is dict:
        yield from _without_defaults(more, f"{path}.additionalProperties")
        yield from _inside_metadata(more, f"{path}.additionalProperties")
    if type(items) is dict:
        yield from _inside_metadata(items, f"{path}.items")
    for name, item in (schema.get("properties") or {}).items():
        yield from _inside_metadata(item, f"{path}.properties[{name}]")


def _without_defaults(schema: Schema, path: str) -> Iterator[str]:
    if schema.get("default") is not None:
        why = "must not be set inside additionalProperties applying to object metadata"
        yield f"{path}.default: Forbidden: {why}"
    for keyword in ("items", "additionalProperties"):
        if type(schema.get(keyword)) is dict:
            yield from _without_defaults(schema[keyword], f"{path}.{keyword}")
    for name, item in (schema.get("properties") or {}).items():
        yield from _without_defaults(item, f"{path}.properties[{name}]")


def _keyword_faults(schema: Schema, path: str) -> Iterator[str]:
    """Yields the faults of keywords, which are the same within logical operators."""
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        allowed = ", ".join(f'"{name}"' for name in _TYPES)
        yield f'{path}.type: Unsupported value: "{kind}": supported values: {allowed}'
    more = schema.get("additionalProperties")
    if schema.get("properties") and (type(more) is dict or more is False):
        why = "additionalProperties and properties are mutual exclusive"
        yield f"{path}.additionalProperties: Forbidden: {why}"
    if type(schema.get("items")) is list and schema["items"]:
        yield f"{path}.items: Forbidden: items must be a schema object and not an array"
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
    yield from rule_faults(schema, path)


def _merge_faults(schema: Schema, path: str) -> Iterator[str]:
    """Yields the faults of list and map merge strategies."""
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
    items = schema.get("items")
    if list_type in ("map", "set") and type(items) is dict:
        if items.get("nullable"):
            why = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
            yield f"{path}.items.nullable: Forbidden: {why}"
        if list_type == "set":
            yield from _set_faults(items, f"{path}.items")


def _set_faults(items: Schema, path: str) -> Iterator[str]:
    """Yields the faults of the items of a set, which are compared whole."""
    for kind, name, unset in (("array", "list", "atomic"), ("object", "map", "granular")):
        keyword = f"x-kubernetes-{name}-type"
        if items.get("type") == kind and items.get(keyword, unset) != "atomic":
            why = "must be atomic as item of a list with x-kubernetes-list-type=set"
            yield invalid(f"{path}.{keyword}", items.get(keyword), why)


def _map_list_faults(schema: Schema, path: str, keys: list[str]) -> Iterator[str]:
    """Yields the faults of a list whose items are identified by keys."""
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        yield f"{path}.{_MAP_KEYS}: Required value: {why}"
    items = schema.get("items")
    if items is None:
        yield f"{path}.items: Required value: must have a schema if x-kubernetes-list-type is map"
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


def _logic(schema: Schema, path: str, *, is_within: bool = False) -> Iterator[str]:
    """Yields the faults within allOf, anyOf, oneOf and not, and of the pattern.

    For ``x-kubernetes-int-or-string``, anyOf or the first of allOf may state the types.
    """
    for operator in ("allOf", "anyOf", "oneOf"):
        alternatives = schema.get(operator) or ()
        if operator == "anyOf" and alternatives == _INT_OR_STRING and not is_within:
            continue
        for index, item in enumerate(alternatives):
            first = operator == "allOf" and index == 0 and not is_within
            yield from _nested(item, f"{path}.{operator}[{index}]", first=first)
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
    """Yields the faults of a level within a logical operator, which may only restrict."""
    for name, why in _NESTED_FORBIDDEN:
        if schema.get(name):
            yield f"{path}.{name}: Forbidden: {why}"
    for name in _NESTED_UNDEFINED:
        if schema.get(name) is not None:
            yield f"{path}.{name}: Forbidden: must be undefined to be structural"
    yield from _keyword_faults(schema, path)
    if not (first and schema.get("anyOf") == _INT_OR_STRING):
        yield from _logic(schema, path, is_within=True)
    for name, item in (schema.get("properties") or {}).items():
        yield from _nested(item, f"{path}.properties[{name}]")
        if name == "metadata":
            why = "must not be specified in a nested context"
            yield f"{path}.properties[metadata]: Forbidden: {why}"
    if type(schema.get("items")) is dict:
        yield from _nested(schema["items"], f"{path}.items")
