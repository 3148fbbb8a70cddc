"""Declares objects by a schema: types and sizes (k8s.io/apiserver, pkg/cel/common/schemas.go).

The declarations are for checks only: an evaluation uses decoded JSON values, regardless of the
schema.
"""

from __future__ import annotations

import re
from dataclasses import field
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
from webhook.cel.syntax.identifiers import RESERVED
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
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)
_ESCAPED: Final = re.compile(r"__|[./-]")
_NAMED: Final[Schema] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}


REQUEST_BYTES: Final = 3 * 1024 * 1024
"""The largest request that an API server accepts, in bytes: no part of an object is longer."""

_MOMENT_BYTES: Final = {"duration": (3, 32), "date": (12, 12), "date-time": (21, 32)}
"""The least and greatest length of such texts, with quotation marks."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of values: their type, and how large they are at most."""

    type: Type
    elements: int = 0
    """The bytes of the longest text, the entries of the largest list or map."""
    json_bytes: int = 1
    """The length of the shortest as JSON."""
    fields: Mapping[str, Declared] = field(default_factory=dict)
    key: Declared | None = None
    item: Declared | None = None


_SCALARS: Final = {
    "boolean": Declared(BOOL, json_bytes=4),
    "number": Declared(DOUBLE),
    "integer": Declared(INT),
}
_KEY: Final = Declared(STRING, json_bytes=2)


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object's type, and the fields of each type within it by that type's name."""

    declared: Declared
    messages: Mapping[str, Mapping[str, Type]]

    @property
    def type(self) -> Type:
        """The type of the whole."""
        return self.declared.type


def object_type(kind: str, reference: str, definitions: Mapping[str, Schema]) -> ObjectType | None:
    """Returns the type of a kind with a named schema; None if the schema declares no type.

    Nested types are named after their path from ``kind``.
    """
    reader = _Reader(definitions)
    root = reader.declared({"$ref": f"{REF_PREFIX}{reference}"}, kind, (), is_root=True)
    return None if root is None else ObjectType(root, reader.messages)


def schema_type(schema: Schema, *, is_root: bool) -> ObjectType | None:
    """Returns the type of a custom resource's schema; None if it declares no type."""
    reader = _Reader({})
    root = reader.declared(schema, "object", (), is_root=is_root)
    return None if root is None else ObjectType(root, reader.messages)


class _Reader:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self.definitions = definitions
        self.messages: dict[str, dict[str, Type]] = {}

    def declared(
        self, given: Schema, name: str, within: tuple[str, ...], *, is_root: bool = False
    ) -> Declared | None:
        """Declares a schema, below the references that led to it.

        None for a schema without a type.
        """
        schema, within = self.resolved(given, within)
        # Documents of built-in types say so by a format, which means nothing in a CRD.
        is_text_or_number = self.definitions and schema.get("format") == "int-or-string"
        if is_text_or_number or _says(schema, "int-or-string"):
            return Declared(DYN, _longest_text(schema))
        if is_root or _says(schema, "embedded-resource"):
            schema = self.with_metadata(schema, within)
        kind = schema.get("type")
        if kind == "array":
            items = schema.get("items")
            item = None if items is None else self.declared(items, f"{name}.@idx", within)
            return None if item is None else _list_of(schema, item)
        if kind == "object":
            more = schema.get("additionalProperties")
            if type(more) is dict:
                value = self.declared(more, f"{name}.@elem", within)
                return None if value is None else _map_of(schema, value)
            return self.message(schema, name, within)
        if kind == "string" or (kind is None and _is_quantity(schema)):
            return _text(schema)
        return _SCALARS.get(kind or "")

    def message(self, schema: Schema, name: str, within: tuple[str, ...]) -> Declared:
        """Declares an object by its properties; those of unknown type, or without a name, are left out."""
        fields: dict[str, Declared] = {}
        types: dict[str, Type] = {}
        json_bytes, required = 2, schema.get("required") or ()
        for known, of in (schema.get("properties") or {}).items():
            declared = self.declared(of, f"{name}.{known}", within)
            if declared is None:
                continue
            if known in required and of.get("default") is None:
                json_bytes += len(known.encode()) + declared.json_bytes + 4
            escaped = escaped_field(known)
            if escaped is not None:
                fields[escaped] = declared
                types[escaped] = declared.type
                if known in RESERVED:
                    types[known] = declared.type
        self.messages[name] = types
        return Declared(Type(name, message=True), 0, json_bytes, fields)

    def resolved(self, schema: Schema, within: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Returns the schema behind a ``$ref`` or a single ``allOf``; an empty schema for a cycle."""
        reference = _reference(schema)
        if reference is None:
            return schema, within
        if reference in within or reference not in self.definitions:
            return _EMPTY, within
        return self.definitions[reference], (*within, reference)

    def with_metadata(self, schema: Schema, within: tuple[str, ...]) -> Schema:
        """Adds the fields that every object has, declared or not."""
        fields = schema.get("properties") or {}
        metadata, _ = self.resolved(fields.get("metadata") or {}, within)
        metadata_properties = metadata.get("properties") or {}
        texts = [fields.get("kind"), fields.get("apiVersion"), metadata_properties.get("name")]
        texts.append(metadata_properties.get("generateName"))
        if metadata.get("type") == "object" and all(
            text is not None and text.get("type") == "string" for text in texts
        ):
            return schema
        string = {"type": "string"}
        more = {"kind": string, "apiVersion": string, "metadata": _NAMED}
        return {**schema, "properties": {**fields, **more}}


def _reference(schema: Schema) -> str | None:
    reference = schema.get("$ref")
    if type(reference) is str:
        return reference.removeprefix(REF_PREFIX)
    for part in schema.get("allOf") or ():
        inner = _reference(part)
        if inner is not None:
            return inner
    return None


def _text(schema: Schema) -> Declared:
    """Declares a text; those of some formats are no texts in an expression."""
    form = schema.get("format", "")
    of = _STRINGS.get(form, STRING)
    if form in _MOMENT_BYTES:
        shortest, longest = _MOMENT_BYTES[form]
        return Declared(of, longest, shortest)
    if of is BYTES:
        limit = schema.get("maxLength")
        return Declared(of, REQUEST_BYTES - 2 if limit is None else max(0, limit), 2)
    enum = schema.get("enum")
    if enum and schema.get("maxLength") is None:
        longest = max(len(value.encode()) if type(value) is str else 0 for value in enum)
        return Declared(of, longest, 2)
    return Declared(of, _longest_text(schema), 2)


def _longest_text(schema: Schema) -> int:
    """Returns the longest text in bytes; a character has at most four."""
    limit = schema.get("maxLength")
    return REQUEST_BYTES - 2 if limit is None else max(0, limit) * 4


def _list_of(schema: Schema, item: Declared) -> Declared:
    """Returns a list, of which at most as many items as fit into a request, with a comma each."""
    limit = schema.get("maxItems")
    most = (REQUEST_BYTES - 2) // (item.json_bytes + 1) if limit is None else max(0, limit)
    return Declared(list_of(item.type), most, 2, item=item)


def _map_of(schema: Schema, value: Declared) -> Declared:
    """Returns a map, likewise: an entry has a key of two characters at least, a colon and a comma."""
    limit = schema.get("maxProperties")
    most = (REQUEST_BYTES - 2) // (value.json_bytes + 6) if limit is None else max(0, limit)
    return Declared(map_of(STRING, value.type), most, 2, key=_KEY, item=value)


def _says(schema: Schema, name: str) -> bool:
    return schema.get(f"x-kubernetes-{name}") is True


def _is_quantity(schema: Schema) -> bool:
    """Whether a schema is of a quantity, a text or a number, which built-in types define as a text."""
    return {alternative.get("type") for alternative in schema.get("oneOf") or ()} == {
        "string",
        "number",
    }


def escaped_field(field: str) -> str | None:
    """Returns a field's name in expressions (pkg/cel/escaping.go); None if it has none."""
    if field in RESERVED:
        return f"__{field}__"
    if _NAME.fullmatch(field) is None:
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], field)
