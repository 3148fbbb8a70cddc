"""The type of an object as an OpenAPI document declares it (k8s.io/apiserver, pkg/cel/common/schemas.go).

It is for warnings alone: what is evaluated are decoded JSON values, whatever a document says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
)
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    Schema = Mapping[str, Any]

REF_PREFIX: Final = "#/components/schemas/"

_EMPTY: Final[Schema] = {"type": "object"}
_STRINGS: Final = {
    "byte": BYTES,
    "duration": DURATION,
    "date": TIMESTAMP,
    "date-time": TIMESTAMP,
}
_SCALARS: Final = {"boolean": BOOL, "number": DOUBLE, "integer": INT}
_RESERVED: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)
_ESCAPED: Final = re.compile(r"__|[./-]")
_NAMED: Final[Schema] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object's type, and the fields of each type within it by that type's name."""

    type: Type
    messages: Mapping[str, Mapping[str, Type]]


def object_type(kind: str, reference: str, definitions: Mapping[str, Schema]) -> ObjectType | None:
    """The type of a kind whose schema has a name among the definitions; None where it says none.

    Types within it are named after the path to them from ``kind``.
    """
    reader = _Reader(definitions)
    root = reader.type_of({"$ref": f"{REF_PREFIX}{reference}"}, kind, (), is_root=True)
    return None if root is None else ObjectType(root, reader.messages)


def schema_type(schema: Schema, *, is_root: bool) -> ObjectType | None:
    """The type of what a schema of a custom resource describes; None where it says none."""
    reader = _Reader({})
    root = reader.type_of(schema, "object", (), is_root=is_root)
    return None if root is None else ObjectType(root, reader.messages)


class _Reader:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self.definitions = definitions
        self.messages: dict[str, dict[str, Type]] = {}

    def type_of(
        self, given: Schema, name: str, within: tuple[str, ...], *, is_root: bool = False
    ) -> Type | None:
        """The type of a schema below the references that led to it; None for one of no type."""
        schema, within = self.resolved(given, within)
        if schema.get("format") == "int-or-string" or _says(schema, "int-or-string"):
            return DYN
        if is_root or _says(schema, "embedded-resource"):
            schema = self.with_metadata(schema, within)
        kind = schema.get("type")
        if kind == "array":
            items = schema.get("items")
            item = None if items is None else self.type_of(items, f"{name}.@idx", within)
            return None if item is None else list_of(item)
        if kind == "object":
            more = schema.get("additionalProperties")
            if type(more) is dict:
                value = self.type_of(more, f"{name}.@elem", within)
                return None if value is None else map_of(STRING, value)
            return self.message(schema, name, within)
        if kind == "string":
            return _STRINGS.get(schema.get("format", ""), STRING)
        if kind is None and _is_quantity(schema):
            return STRING
        return _SCALARS.get(kind or "")

    def message(self, schema: Schema, name: str, within: tuple[str, ...]) -> Type:
        fields: dict[str, Type] = {}
        for field, of in (schema.get("properties") or {}).items():
            field_type = self.type_of(of, f"{name}.{field}", within)
            escaped = _escaped(field)
            if field_type is not None and escaped is not None:
                fields[escaped] = field_type
                if field in _RESERVED:
                    fields[field] = field_type
        self.messages[name] = fields
        return Type(name, message=True)

    def resolved(self, schema: Schema, within: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """The schema that one refers to, itself or by its only ``allOf``; a circle ends in nothing."""
        reference = _reference(schema)
        if reference is None:
            return schema, within
        if reference in within or reference not in self.definitions:
            return _EMPTY, within
        return self.definitions[reference], (*within, reference)

    def with_metadata(self, schema: Schema, within: tuple[str, ...]) -> Schema:
        """With what every object has, declared or not."""
        fields = schema.get("properties") or {}
        metadata, _ = self.resolved(fields.get("metadata") or {}, within)
        own = metadata.get("properties") or {}
        texts = [fields.get("kind"), fields.get("apiVersion"), own.get("name")]
        texts.append(own.get("generateName"))
        if metadata.get("type") == "object" and all(
            one is not None and one.get("type") == "string" for one in texts
        ):
            return schema
        string = {"type": "string"}
        more = {"kind": string, "apiVersion": string, "metadata": _NAMED}
        return {**schema, "properties": {**fields, **more}}


def _reference(schema: Schema) -> str | None:
    reference = schema.get("$ref")
    if type(reference) is str:
        return reference.removeprefix(REF_PREFIX)
    for one in schema.get("allOf") or ():
        inner = _reference(one)
        if inner is not None:
            return inner
    return None


def _says(schema: Schema, name: str) -> bool:
    return schema.get(f"x-kubernetes-{name}") is True


def _is_quantity(schema: Schema) -> bool:
    """A text or a number: as built-in types define it a text."""
    return {one.get("type") for one in schema.get("oneOf") or ()} == {"string", "number"}


def _escaped(field: str) -> str | None:
    """How an expression may write a field (k8s.io/apiserver, pkg/cel/escaping.go); None: not at all."""
    if field in _RESERVED:
        return f"__{field}__"
    if _NAME.fullmatch(field) is None:
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], field)
