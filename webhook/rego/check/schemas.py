"""JSON schemas as types of documents, as OPA's type checker reads them (v1/ast/compile.go).

Only keywords that types can express are read: ``type``, ``properties``, ``items``, ``anyOf``,
``allOf``, and ``$ref`` within the schema. A schema elsewhere is not fetched. All keywords are
checked first, with gojsonschema's messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins.json_schema.compile import compile_schema
from webhook.rego.errors import BuiltinError
from webhook.rego.run.values import sort_key
from webhook.rego.types import (
    ANY,
    BOOLEAN,
    NUMBER,
    STRING,
    ArrayType,
    ObjectType,
    array_of,
    object_of,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.rego.types import Type

SchemaPath = tuple[str, ...]
"""``schema.a.b`` by its steps; the schema of the input is ``("schema",)``."""

_SCALARS: Final = {"boolean": BOOLEAN, "string": STRING, "integer": NUMBER, "number": NUMBER}


class SchemaError(Exception):
    """A schema that cannot be read as a type."""


def input_type(schemas: Mapping[SchemaPath, Any] | None) -> Type | None:
    """Returns the type of the input; raises :class:`SchemaError`."""
    schema = None if schemas is None else schemas.get(("schema",))
    return None if schema is None else type_of_schema(schema)


def annotated_type(
    annotation: Mapping[str, Any], schemas: Mapping[SchemaPath, Any] | None
) -> Type | None:
    """Returns the type that an annotation gives a document; None where no schemas are known.

    Raises :class:`SchemaError`.
    """
    if "definition" in annotation:
        return type_of_schema(annotation["definition"])
    if schemas is None:
        return None
    path = tuple(annotation["schema"])
    if path not in schemas:
        raise SchemaError(f"undefined schema: {'.'.join(path)}")
    return type_of_schema(schemas[path])


def overridden(type_: Type | None, path: list[Any], new: Type) -> Type:
    """Returns an object's type with another type at a path."""
    if not path:
        return new
    first, *rest = path
    static: dict[Any, Type | None] = {}
    dynamic: Any = (ANY, ANY)
    if isinstance(type_, ObjectType):
        static, dynamic = dict(type_.static), type_.dynamic
    static[first] = overridden(static.get(first), rest, new)
    return ObjectType(tuple(sorted(static.items(), key=lambda pair: sort_key(pair[0]))), dynamic)


def type_of_schema(schema: Any) -> Type:
    """Returns the type of all values that a schema allows; raises :class:`SchemaError`."""
    try:
        compile_schema(schema, lambda _steps: None, for_types=True)
    except BuiltinError as error:
        raise SchemaError(f"unable to compile the schema: {error.message}") from None
    except RecursionError:
        raise SchemaError("unable to compile the schema: it is nested too deeply") from None
    return _Reading(schema).type(schema, ())


class _Reading:
    """Reads one schema with the schemas that it refers to."""

    def __init__(self, whole: Any) -> None:
        self._whole = whole

    def type(self, schema: Any, within: tuple[str, ...]) -> Type:
        if not isinstance(schema, dict):
            return ANY
        if isinstance(ref := schema.get("$ref"), str):
            # A schema within itself has an endless type: from there on it has type any.
            return ANY if ref in within else self.type(self._referred(ref), (*within, ref))
        if "anyOf" in schema:
            return self._any_of(schema, within)
        if "allOf" in schema:
            return self.type(self._all_of(schema), within)
        return self._plain(schema, within)

    def _referred(self, ref: str) -> Any:
        if ref.startswith(("http://json-schema.org/draft-0", "https://json-schema.org/draft-0")):
            return True
        target = self._whole
        steps = [part.replace("~1", "/").replace("~0", "~") for part in ref[1:].split("/") if part]
        for step in steps:
            if isinstance(target, dict) and step in target:
                target = target[step]
            elif isinstance(target, list) and step.isdecimal() and int(step) < len(target):
                target = target[int(step)]
            else:
                raise SchemaError(f"unable to compile the schema: Object has no key '{step}'")
        return target

    def _any_of(self, schema: dict[str, Any], within: tuple[str, ...]) -> Type:
        either: Type | None = None
        if "type" in schema:
            core = self.type({k: v for k, v in schema.items() if k != "anyOf"}, within)
            if isinstance(core, ObjectType) and core.static and core.dynamic is None:
                either = core
        for choice in schema["anyOf"]:
            either = union(self.type(choice, within), either)
        return ANY if either is None else either

    def _all_of(self, schema: dict[str, Any]) -> Any:
        parts = [self._resolved(inner) for inner in schema["allOf"]]
        parts = [inner for inner in parts if not (isinstance(inner, dict) and _is_choice(inner))]
        if "type" in schema:
            parts.append({k: v for k, v in schema.items() if k != "allOf"})
        merged: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, dict):
                continue
            types = _types(merged), _types(part)
            if merged and types[0] != types[1]:
                raise SchemaError(
                    "type checking: unable to merge these schemas: type mismatch: "
                    f"{' '.join(types[0])} and {' '.join(types[1])}"
                )
            merged = {
                **merged,
                **part,
                "properties": {**merged.get("properties", {}), **part.get("properties", {})},
            }
        return merged or True

    def _resolved(self, schema: Any) -> Any:
        for _ in range(100):  # as deep as one refers to another; a circle ends there
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            schema = self._referred(schema["$ref"])
        return schema

    def _plain(self, schema: dict[str, Any], within: tuple[str, ...]) -> Type:
        types = _types(schema)
        for name in types:
            if name in _SCALARS:
                return _SCALARS[name]
        if "object" in types:
            properties = schema.get("properties")
            if not properties:
                return object_of(ANY, ANY)
            static = [
                (name, self.type(property_, within))
                for name, property_ in sorted(properties.items())
            ]
            return ObjectType(tuple(static), None)
        if "array" in types:
            items = schema.get("items")
            if isinstance(items, list) and items:
                return ArrayType(tuple(self.type(item, within) for item in items))
            return array_of(self.type(items, within) if isinstance(items, dict) else ANY)
        return ANY


def _is_choice(schema: dict[str, Any]) -> bool:
    return "anyOf" in schema and not _types(schema)


def _types(schema: dict[str, Any]) -> list[str]:
    """Returns the types named by a schema, or implied by its properties or items."""
    types = schema.get("type")
    if isinstance(types, str):
        return [types]
    if isinstance(types, list):
        return [str(type_) for type_ in types]
    if schema.get("properties"):
        return ["object"]
    return ["array"] if schema.get("items") else []
