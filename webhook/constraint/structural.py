"""Kubernetes' structural schemas: validation, unknown fields and defaults.

It does what the API server does with a custom resource, as Gatekeeper does for constraints, so
messages and their order are those of kube-openapi. Only the API server evaluates expressions
(``x-kubernetes-validations``), as with Gatekeeper.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final

import re2

from webhook.api.encoding import is_same_json
from webhook.constraint.errors import invalid, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Schema = Mapping[str, Any]

# The path of nothing: Gatekeeper's validation begins every path with it.
_ROOT: Final = "[]"

_TYPES: Final = {bool: "boolean", dict: "object", list: "array", str: "string", type(None): "null"}

_FLOAT_MAX: Final = (2 - 2**-23) * 2**127
_ANY_NUMBER: Final = (-math.inf, math.inf)
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "float": (-_FLOAT_MAX, _FLOAT_MAX),
}
"""The ranges of number formats."""

_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def faults(value: Any, schema: Schema, path: str = "") -> list[str]:
    """Returns the faults of a value by a schema; empty if it is valid."""
    problems = list(_type_faults(value, schema, path))
    if value is None:
        return problems
    problems += _logical_faults(value, schema, path)
    if type(value) is str:
        problems += _string_faults(value, schema, path)
    elif type(value) is dict:
        problems += _object_faults(value, schema, path)
    elif type(value) is list:
        problems += _array_faults(value, schema, path)
    elif type(value) is not bool:
        problems += _number_faults(value, schema, path)
    if (enum := schema.get("enum")) and not any(is_same_json(value, item) for item in enum):
        allowed = ", ".join(shown(item) for item in enum)
        problems.append(
            f"{_at(path)}: Unsupported value: {shown(value)}: supported values: {allowed}"
        )
    return problems


def _at(path: str) -> str:
    return f"{_ROOT}.{path}" if path else _ROOT


def _types(schema: Schema) -> tuple[str, ...]:
    if kind := schema.get("type"):
        return (kind,)
    return ("integer", "string") if schema.get("x-kubernetes-int-or-string") else ()


def type_name(value: Any) -> str:
    """JSON's name for the type of a value."""
    return _TYPES.get(type(value), "number")


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


def _type_faults(value: Any, schema: Schema, path: str) -> Iterator[str]:
    types = _types(schema)
    if not types or (value is None and schema.get("nullable")):
        return
    kind = type_name(value)
    if (
        schema.get("format")
        and kind in ("string", "array")
        and not {"integer", "number"} & {*types}
    ):
        return  # kube-openapi checks the format only
    if kind in types or (kind == "number" and "integer" in types and _is_integer(value)):
        return
    yield invalid(_at(path), kind, f'{path} in body must be of type {",".join(types)}: "{kind}"')
    if kind == "number" and "integer" in types:
        yield invalid(
            _ROOT, "", f"Checked value must be of type integer (default format) in {path}"
        )


def _string_faults(value: str, schema: Schema, path: str) -> Iterator[str]:
    if (longest := schema.get("maxLength")) is not None and len(value) > longest:
        yield f"{_at(path)}: Too long: may not be more than {longest} bytes"
    elif (shortest := schema.get("minLength")) is not None and len(value) < shortest:
        yield invalid(_at(path), value, f"{path} in body should be at least {shortest} chars long")
    elif (pattern := schema.get("pattern")) and not re2.search(pattern, value):
        yield invalid(_at(path), value, f"{path} in body should match '{pattern}'")
    if (name := schema.get("format")) and not _has_format(value, name):
        yield invalid(_at(path), value, f"{path} in body must be of type {name}: {shown(value)}")


def _has_format(value: str, name: str) -> bool:
    # Imported here: few schemas name a format, and the patterns take 9 ms of a start.
    from webhook.constraint import formats  # noqa: PLC0415

    return formats.holds(name, value)


def _number_faults(value: float, schema: Schema, path: str) -> Iterator[str]:
    factor = schema.get("multipleOf")
    if factor is not None and factor <= 0:
        why = f"factor MultipleOf declared for {path} must be positive: {_number(factor)}"
        yield invalid(_at(path), factor, why)
    elif factor is not None and value % factor:
        yield invalid(_at(path), value, f"{path} in body should be a multiple of {_number(factor)}")
    if (most := schema.get("maximum")) is not None:
        if schema.get("exclusiveMaximum"):
            if value >= most:
                why = f"{path} in body should be less than {_number(most)}"
                yield invalid(_at(path), value, why)
        elif value > most:
            why = f"{path} in body should be less than or equal to {_number(most)}"
            yield invalid(_at(path), value, why)
    if (least := schema.get("minimum")) is not None:
        if schema.get("exclusiveMinimum"):
            if value <= least:
                why = f"{path} in body should be greater than {_number(least)}"
                yield invalid(_at(path), value, why)
        elif value < least:
            why = f"{path} in body should be greater than or equal to {_number(least)}"
            yield invalid(_at(path), value, why)
    name = schema.get("format")
    least, most = _RANGES.get(name, _ANY_NUMBER) if type(name) is str else _ANY_NUMBER
    if not least <= value <= most:
        kind = schema.get("type", "number")
        why = f"Checked value must be of type {kind} with format {name} in {path}"
        yield invalid(_ROOT, "", why)


def _number(value: float) -> str:
    return str(int(value)) if _is_integer(value) else repr(value)


def _array_faults(value: list[Any], schema: Schema, path: str) -> Iterator[str]:
    items = schema.get("items")
    if type(items) is dict:
        for index, item in enumerate(value):
            yield from faults(item, items, f"{path}[{index}]")
    if (fewest := schema.get("minItems")) is not None and len(value) < fewest:
        yield invalid(_at(path), len(value), f"{path} in body should have at least {fewest} items")
    if (most := schema.get("maxItems")) is not None and len(value) > most:
        yield _too_many(path, len(value), most)


def _too_many(path: str, count: int, most: int) -> str:
    return f"{_at(path)}: Too many: {count}: must have at most {most} item{'s' * (most != 1)}"


def _object_faults(value: dict[str, Any], schema: Schema, path: str) -> Iterator[str]:
    if (fewest := schema.get("minProperties")) is not None and len(value) < fewest:
        why = f"{path} in body should have at least {fewest} properties"
        yield invalid(_at(path), len(value), why)
    if (most := schema.get("maxProperties")) is not None and len(value) > most:
        yield _too_many(path, len(value), most)
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for name, item in value.items():
        below = f"{path}.{name}" if path else name
        if name in properties:
            yield from faults(item, properties[name], below)
        elif type(more) is dict:
            yield from faults(item, more, below)
        elif more is False:
            yield invalid(_at(path), name, f"{below} in body is a forbidden property")
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{_at(f'{path}.{name}' if path else name)}: Required value"


def _logical_faults(value: Any, schema: Schema, path: str) -> Iterator[str]:
    if anyof := schema.get("anyOf"):
        tried = [faults(value, item, path) for item in anyof]
        if all(tried):
            yield invalid(_ROOT, "", f'"{path}" must validate at least one schema (anyOf)')
            yield from tried[0]
    if oneof := schema.get("oneOf"):
        tried = [faults(value, item, path) for item in oneof]
        valid = sum(not problems for problems in tried)
        why = f'"{path}" must validate one and only one schema (oneOf). '
        if valid > 1:
            yield invalid(_ROOT, "", f"{why}Found {valid} valid alternatives")
        elif not valid:
            yield invalid(_ROOT, "", f"{why}Found none valid")
            yield from tried[0]
    if allof := schema.get("allOf"):
        tried = [faults(value, item, path) for item in allof]
        for problems in tried:
            yield from problems
        if any(tried):
            none = ". None validated" if all(tried) else ""
            yield invalid(_ROOT, "", f'"{path}" must validate all the schemas (allOf){none}')
    if (not_ := schema.get("not")) is not None and not faults(value, not_, path):
        yield invalid(_ROOT, "", f'"{path}" must not validate the schema (not)')


def faults_at(at: str, value: Any, schema: Schema) -> Iterator[str]:
    """Yields the faults of a value within an object; messages begin with its path."""
    for fault in faults(value, schema):
        yield at + fault.removeprefix(_ROOT)


# --- unknown fields ------------------------------------------------------------------------


def unknown_fields(resource: Mapping[str, Any], schema: Schema) -> list[str]:
    """Returns the sorted paths of the fields that pruning would drop; the root is a resource."""
    fields: list[str] = []
    root = {**schema, "x-kubernetes-embedded-resource": True}
    _prune(resource, root, "", fields.append)
    return sorted(fields)


def is_pruned(value: Any, schema: Schema) -> bool:
    """Whether a value has fields that pruning would drop."""
    fields: list[str] = []
    _prune(value, schema, "value", fields.append)
    return bool(fields)


def _prune(value: Any, schema: Schema | None, path: str, record: Callable[[str], None]) -> None:
    if type(value) is list:
        items = (schema or {}).get("items")
        for index, item in enumerate(value):
            _prune(item, items, f"{path}[{index}]", record)
        return
    if type(value) is not dict:
        return
    schema = schema or {}
    preserved = schema.get("x-kubernetes-preserve-unknown-fields")
    embedded = schema.get("x-kubernetes-embedded-resource")
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for name, item in value.items():
        if embedded and name in _META_FIELDS:
            continue
        below = f"{path}.{name}" if path else name
        if name in properties:
            _prune(item, properties[name], below, record)
        elif type(more) is dict:
            _prune(item, more, below, record)
        elif not preserved and more is not True and (path or name not in _META_FIELDS):
            record(below)


# --- defaults ------------------------------------------------------------------------------


def with_defaults(value: Any, schema: Schema | None) -> Any:
    """Returns the value with the schema's defaults for absent fields; never changes ``value``.

    A value, or a part of one, that needs no default is returned as it is.
    """
    if schema is None:
        return value
    if type(value) is list:
        items = schema.get("items")
        if type(items) is not dict:
            return value
        filled = [with_defaults(_unless_null(item, items), items) for item in value]
        return value if _are_same(filled, value) else filled
    if type(value) is not dict:
        return value
    result = dict(value)
    properties = schema.get("properties") or {}
    for name, item in properties.items():
        default = item.get("default")
        absent = name not in result or (result[name] is None and not item.get("nullable"))
        if default is not None and absent:
            result[name] = default
    more = schema.get("additionalProperties")
    for name, item in result.items():
        if name in properties:
            result[name] = with_defaults(item, properties[name])
        elif type(more) is dict:
            result[name] = with_defaults(_unless_null(item, more), more)
    is_same = len(result) == len(value) and _are_same(result.values(), value.values())
    return value if is_same else result


def _are_same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether two collections hold the same objects, by identity."""
    return all(map(operator.is_, some, others))


def _unless_null(value: Any, schema: Schema) -> Any:
    """Returns the default instead of a null that the schema does not allow."""
    return schema.get("default") if value is None and not schema.get("nullable") else value
