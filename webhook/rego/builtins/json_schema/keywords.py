"""The keywords of JSON Schema without subschemas, with gojsonschema's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.golang.floats import json_number
from webhook.rego.builtins.json_schema.nodes import Draft
from webhook.rego.errors import BuiltinError
from webhook.rego.run import numbers
from webhook.rego.run.patterns import pattern as compile_pattern
from webhook.rego.run.text import json_string, json_text

if TYPE_CHECKING:
    from webhook.rego.builtins.json_schema.nodes import Schema


def invalid_type(expected: str, given: str) -> BuiltinError:
    """Returns the complaint about a value of the wrong type."""
    return BuiltinError(f"Invalid type. Expected: {expected}, given: {given}")


def string_keyword(node: dict[str, Any], name: str) -> str | None:
    """Returns a keyword that must be a string; None where it is absent."""
    if name not in node:
        return None
    if not isinstance(node[name], str):
        raise invalid_type("string", name)
    return str(node[name])


def array_keyword(node: dict[str, Any], name: str) -> list[Any] | None:
    """Returns a keyword that must be an array; None where it is absent."""
    if name not in node:
        return None
    value = node[name]
    if not isinstance(value, list):
        raise BuiltinError(f"{name} must be of an array")
    return value


def compiled(text: str, fault: str) -> Any:
    """Returns the compiled pattern; ``fault`` is the error for an invalid one."""
    try:
        return compile_pattern(text)
    except BuiltinError:
        raise BuiltinError(fault) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_keywords(schema: Schema, node: dict[str, Any]) -> None:
    """Reads the constraints of numbers: multiples, limits and exclusive limits."""
    if "multipleOf" in node:
        if not _is_number(node["multipleOf"]):
            raise invalid_type("Number", "multipleOf")
        schema.numbers["multipleOf"] = numbers.exact(node["multipleOf"])
        if schema.numbers["multipleOf"] <= 0:
            raise BuiltinError("multipleOf must be strictly greater than 0")
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if limit in node:
            if not _is_number(node[limit]):
                raise BuiltinError(f"{limit} must be of a Number")
            schema.numbers[limit] = numbers.exact(node[limit])
        if exclusive in node:
            _exclusive(schema, node[exclusive], limit, exclusive)


def _exclusive(schema: Schema, value: Any, limit: str, exclusive: str) -> None:
    """Reads an exclusive limit: a flag in draft 4, a limit since draft 6, both in the hybrid."""
    takes_flag = schema.draft in (Draft.DRAFT4, Draft.HYBRID)
    if takes_flag and isinstance(value, bool):
        if limit not in schema.numbers:
            raise BuiltinError(f"{exclusive} cannot be used without {limit}")
        if value:
            schema.numbers[exclusive] = schema.numbers.pop(limit)
        return
    if schema.draft is Draft.DRAFT4 or not _is_number(value):
        expected = {Draft.DRAFT4: "boolean", Draft.HYBRID: "boolean/number"}
        raise invalid_type(expected.get(schema.draft, "number"), exclusive)
    schema.numbers[exclusive] = numbers.exact(value)


def _size(schema: Schema, node: dict[str, Any], name: str) -> None:
    if name not in node:
        return
    value = numbers.as_int(node[name]) if _is_number(node[name]) else None
    # Go converts the number's text: 1.0 is an integer to it but no int64.
    if value is None or not isinstance(node[name], int):
        raise BuiltinError(f"{name} must be of an integer")
    if value < 0:
        raise BuiltinError(f"{name} must be greater than or equal to 0")
    schema.sizes[name] = value


def sizes(schema: Schema, node: dict[str, Any], least: str, most: str) -> None:
    """Reads the least and greatest size, of which the first must not be larger."""
    _size(schema, node, least)
    _size(schema, node, most)
    if least in schema.sizes and most in schema.sizes and schema.sizes[least] > schema.sizes[most]:
        raise BuiltinError(f"{least} cannot be greater than {most}")


def object_sizes(schema: Schema, node: dict[str, Any]) -> None:
    """Reads the limits of an object's number of properties."""
    sizes(schema, node, "minProperties", "maxProperties")


def array_keywords(schema: Schema, node: dict[str, Any]) -> None:
    """Reads the limits of an array's number of items, and whether they must be unique."""
    _size(schema, node, "minItems")
    _size(schema, node, "maxItems")
    if "uniqueItems" in node:
        if not isinstance(node["uniqueItems"], bool):
            raise BuiltinError("uniqueItems must be of a boolean")
        schema.unique_items = node["uniqueItems"]


def required_keyword(schema: Schema, node: dict[str, Any]) -> None:
    """Reads the required properties."""
    for name in array_keyword(node, "required") or ():
        if not isinstance(name, str):
            raise invalid_type("string", "required")
        if name in schema.required:
            raise BuiltinError("required items must be unique")
        schema.required.append(name)


def canonical(value: Any) -> str:
    """The JSON text by which ``const``, ``enum`` and ``uniqueItems`` compare: numbers as floats."""
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, dict):
        members = (f"{json_string(name)}:{canonical(value[name])}" for name in sorted(value))
        return f"{{{','.join(members)}}}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _float_json(value)
    return json_text(value)


def _float_json(value: float) -> str:
    """The number as ``encoding/json`` writes a float64: an exponent below 1e-6 and from 1e21."""
    try:
        plain = float(numbers.exact(value))
    except OverflowError:
        return numbers.number_text(value)
    return json_number(plain) if plain else "0"
