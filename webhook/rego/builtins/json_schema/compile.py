"""JSON schemas checked and prepared for validation, with gojsonschema's messages.

References are made absolute first, as there: a ``$ref`` is resolved against the
nearest ``$id`` around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urldefrag, urljoin, urlsplit

from webhook.rego.builtins.json_schema.keywords import (
    array_keyword,
    array_keywords,
    canonical,
    compiled,
    invalid_type,
    number_keywords,
    object_sizes,
    required_keyword,
    sizes,
    string_keyword,
)
from webhook.rego.builtins.json_schema.nodes import Draft, Schema
from webhook.rego.errors import BuiltinError

_TYPES: Final = ("array", "boolean", "integer", "number", "null", "object", "string")
_STEPS_A_SCHEMA: Final = 400  # about 20 µs a subschema, at 50 ns a step
_LITERAL_KEYS: Final = frozenset(("const", "enum"))
_NAMED_KEYS: Final = frozenset(("properties", "dependencies", "patternProperties"))

_DRAFTS: Final = {
    "http://json-schema.org/draft-04/schema": Draft.DRAFT4,
    "http://json-schema.org/draft-06/schema": Draft.DRAFT6,
    "http://json-schema.org/draft-07/schema": Draft.DRAFT7,
}


def compile_schema(
    document: Any, charge: Callable[[int], None], *, for_types: bool = False
) -> Schema:
    """Returns the prepared schema; raises :class:`BuiltinError` with gojsonschema's message.

    ``charge`` takes steps of work before they are done. A schema ``for_types`` validates nothing:
    it may have patterns of other engines, and a draft of JSON Schema means any schema.
    """
    compiler = _Compiler(charge, for_types=for_types)
    resolved, draft = compiler.add_document(document, "")
    root = Schema("(Root)", Draft.HYBRID if draft is None else draft, "")
    compiler.fill(root, resolved)
    return root


def _draft(document: Any) -> Draft | None:
    """Returns the draft that ``$schema`` names, if it is a known one."""
    if isinstance(document, bool):
        return None
    if not isinstance(document, dict):
        raise BuiltinError("schema is invalid")
    if "$schema" not in document:
        return None
    address = document["$schema"]
    if not isinstance(address, str):
        raise BuiltinError("$schema must be of type string")
    return _DRAFTS.get(address.removesuffix("#"))


def _inherit(base: str, reference: str) -> str:
    """``reference`` as seen from ``base`` (gojsonreference, Inherits)."""
    joined = urljoin(base, reference)
    parts = urlsplit(joined)
    if not parts.scheme and parts.path and not parts.path.startswith("/"):
        joined = f"/{joined}"
    return joined.removesuffix("#")


class _Compiler:
    """The documents that references may name, and the schemas made of them."""

    def __init__(self, charge: Callable[[int], None], *, for_types: bool) -> None:
        self._charge = charge
        self._for_types = for_types
        self._documents: dict[str, tuple[Any, Draft | None]] = {}
        self._schemas: dict[str, Schema] = {}

    def add_document(self, document: Any, address: str) -> tuple[Any, Draft | None]:
        """Returns the document with absolute references, known under its address and its ids."""
        draft = _draft(document)
        resolved = self._resolve(document, address, draft)
        if address in self._documents and address:
            raise BuiltinError(f'Reference already exists: "{address}"')
        self._documents[address] = resolved, draft
        return resolved, draft

    def _resolve(self, node: Any, base: str, draft: Draft | None) -> Any:
        self._charge(_STEPS_A_SCHEMA // 20)
        if isinstance(node, list):
            return [self._resolve(item, base, draft) for item in node]
        if not isinstance(node, dict):
            return node
        resolved: dict[str, Any] = {}
        identifier = node.get("id" if "id" in node else "$id")
        if isinstance(identifier, str):
            base = _inherit(base, identifier)
            if base in self._documents:
                raise BuiltinError(f'Reference already exists: "{base}"')
            self._documents[base] = resolved, draft
        for name, value in node.items():
            if name in _LITERAL_KEYS:
                resolved[name] = value
            elif name in _NAMED_KEYS and isinstance(value, dict):
                resolved[name] = {
                    child: self._resolve(item, base, draft) for child, item in value.items()
                }
            else:
                resolved[name] = self._resolve(value, base, draft)
        if isinstance(node.get("$ref"), str):
            resolved["$ref"] = _inherit(base, node["$ref"])
        return resolved

    # --- references -------------------------------------------------------------------------

    def _referenced(self, address: str, parent: Schema) -> Schema:
        known = self._schemas.get(address)
        if known is not None:
            return known
        schema = self._schemas[address] = Schema("$ref", parent.draft, address)
        document, draft = self._document(address)
        if draft is not None:
            schema.draft = draft
        if not isinstance(document, bool | dict):
            raise BuiltinError("Valid Schema must be of type object")
        self.fill(schema, document)
        return schema

    def _document(self, address: str) -> tuple[Any, Draft | None]:
        if address in self._documents:
            return self._documents[address]
        place, fragment = urldefrag(address)
        if place not in self._documents:
            if self._for_types and place.replace("https:", "http:") in _DRAFTS:
                return True, None
            if not urlsplit(address).scheme:
                raise BuiltinError(f"Reference {address} must be canonical")
            raise BuiltinError(f"remote reference loading disabled: {address}")
        document, draft = self._documents[place]
        resolved = _pointed(document, fragment), draft
        self._documents[address] = resolved
        return resolved

    # --- one schema -------------------------------------------------------------------------

    def fill(self, schema: Schema, node: Any) -> None:
        """Reads ``node`` into ``schema``."""
        self._charge(_STEPS_A_SCHEMA)
        if isinstance(node, bool) and schema.draft >= Draft.DRAFT6:
            schema.accepts = node
            return
        if not isinstance(node, dict):
            raise BuiltinError("Expected: Valid Schema, given: Invalid JSON")
        self._identity(schema, node)
        if isinstance(node.get("$ref"), str):
            schema.reference = self._referenced(node["$ref"], schema)
            return
        self._types(schema, node)
        self._object_keywords(schema, node)
        self._array_keywords(schema, node)
        number_keywords(schema, node)
        self._text_keywords(schema, node)
        object_sizes(schema, node)
        required_keyword(schema, node)
        array_keywords(schema, node)
        self._combining_keywords(schema, node)
        self._conditions(schema, node)

    def _child(self, parent: Schema, node: Any, name: str) -> Schema:
        child = Schema(name, parent.draft, parent.base)
        self.fill(child, node)
        return child

    def _identity(self, schema: Schema, node: dict[str, Any]) -> None:
        old = schema.draft is Draft.DRAFT4 or (schema.draft is Draft.HYBRID and "id" in node)
        string_keyword(node, "id" if old else "$id")
        if "definitions" in node:
            definitions = node["definitions"]
            if not isinstance(definitions, dict):
                raise invalid_type("Array Of Schemas", "definitions")
            for definition in definitions.values():
                if not isinstance(definition, bool | dict):
                    raise invalid_type("Array Of Schemas", "definitions")
                self._child(schema, definition, "definitions")
        for name in ("title", "description", "$ref"):
            string_keyword(node, name)

    def _types(self, schema: Schema, node: dict[str, Any]) -> None:
        if "type" not in node:
            return
        given = node["type"]
        names = given if isinstance(given, list) else [given]
        for name in names:
            if not isinstance(name, str):
                raise invalid_type("type", "string/Array Of Strings")
            if name not in _TYPES:
                raise BuiltinError(
                    f"has a primitive type that is NOT VALID -- given: /{name}/ "
                    f"Expected valid values are:[{' '.join(_TYPES)}]"
                )
            if name in schema.types:
                raise BuiltinError(f"{name} type is duplicated")
            schema.types.append(name)

    def _object_keywords(self, schema: Schema, node: dict[str, Any]) -> None:
        if "properties" in node:
            properties = node["properties"]
            if not isinstance(properties, dict):
                raise BuiltinError("Properties must be of type object")
            for name in sorted(properties):
                schema.properties[name] = self._child(schema, properties[name], name)
        schema.additional_properties = self._additional(schema, node, "additionalProperties")
        if "patternProperties" in node:
            patterns = node["patternProperties"]
            if not isinstance(patterns, dict):
                raise invalid_type("Valid Schema", "patternProperties")
            for pattern in sorted(patterns):
                expression = compiled(pattern, f"Invalid regex pattern '{pattern}'")
                child = self._child(schema, patterns[pattern], pattern)
                schema.pattern_properties.append((expression, child))
        if "propertyNames" in node and schema.draft >= Draft.DRAFT6:
            names = node["propertyNames"]
            if not isinstance(names, bool | dict):
                raise invalid_type("Valid Schema", "patternProperties")
            schema.property_names = self._child(schema, names, "propertyNames")
        if "dependencies" in node:
            self._dependencies(schema, node["dependencies"])

    def _additional(self, schema: Schema, node: dict[str, Any], name: str) -> bool | Schema | None:
        value = node.get(name)
        if name not in node or isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            raise invalid_type("boolean/Valid Schema", name)
        return self._child(schema, value, name)

    def _dependencies(self, schema: Schema, given: Any) -> None:
        if not isinstance(given, dict):
            raise BuiltinError("dependencies must be of type object")
        fault = "Dependency must be of type Schema Or Array Of Strings"
        for name in sorted(given):
            value = given[name]
            if isinstance(value, list):
                if not all(isinstance(item, str) for item in value):
                    raise BuiltinError(fault)
                schema.dependencies[name] = value
            elif isinstance(value, bool | dict):
                schema.dependencies[name] = self._child(schema, value, name)
            else:
                raise BuiltinError(fault)

    def _array_keywords(self, schema: Schema, node: dict[str, Any]) -> None:
        if "items" in node:
            items = node["items"]
            schema.items_is_single = not isinstance(items, list)
            for item in items if isinstance(items, list) else [items]:
                if not isinstance(item, bool | dict):
                    raise invalid_type("Valid Schema/Array Of Schemas", "items")
                schema.items.append(self._child(schema, item, "items"))
        schema.additional_items = self._additional(schema, node, "additionalItems")

    def _text_keywords(self, schema: Schema, node: dict[str, Any]) -> None:
        sizes(schema, node, "minLength", "maxLength")
        pattern = string_keyword(node, "pattern")
        if pattern is not None and not self._for_types:
            schema.pattern = compiled(pattern, "pattern must be a valid regex")
            schema.pattern_text = pattern
        schema.format = string_keyword(node, "format") or ""

    def _combining_keywords(self, schema: Schema, node: dict[str, Any]) -> None:
        if "contains" in node and schema.draft >= Draft.DRAFT6:
            schema.contains = self._child(schema, node["contains"], "contains")
        if "const" in node and schema.draft >= Draft.DRAFT6:
            schema.const = canonical(node["const"])
        if (allowed := array_keyword(node, "enum")) is not None:
            schema.enum = []
            for text in map(canonical, allowed):
                if text in schema.enum:
                    raise BuiltinError("enum items must be unique")
                schema.enum.append(text)
        for name, members in (
            ("oneOf", schema.one_of),
            ("anyOf", schema.any_of),
            ("allOf", schema.all_of),
        ):
            for member in array_keyword(node, name) or ():
                members.append(self._child(schema, member, name))
        schema.not_ = self._optional(schema, node, "not")

    def _conditions(self, schema: Schema, node: dict[str, Any]) -> None:
        if schema.draft >= Draft.DRAFT7:
            schema.if_ = self._optional(schema, node, "if")
            schema.then = self._optional(schema, node, "then")
            schema.else_ = self._optional(schema, node, "else")

    def _optional(self, schema: Schema, node: dict[str, Any], name: str) -> Schema | None:
        if name not in node:
            return None
        if not isinstance(node[name], bool | dict):
            raise BuiltinError(f"{name} must be of an object")
        return self._child(schema, node[name], name)


def _pointed(document: Any, fragment: str) -> Any:
    """Resolve the JSON pointer in a fragment (gojsonpointer)."""
    if not fragment.startswith("/"):
        if fragment:
            raise BuiltinError('JSON pointer must be empty or start with a "/"')
        return document
    node = document
    for token in fragment[1:].split("/"):
        if isinstance(node, dict):
            name = token.replace("~1", "/").replace("~0", "~")
            if name not in node:
                raise BuiltinError(f"Object has no key '{name}'")
            node = node[name]
        elif isinstance(node, list):
            if not token.lstrip("+-").isdecimal():
                raise BuiltinError(f"Invalid array index '{token}'")
            if not 0 <= int(token) < len(node):
                raise BuiltinError(f"Out of bound array[0,{len(node)}] index '{int(token)}'")
            node = node[int(token)]
        else:
            raise BuiltinError(f"Invalid token reference '{token}'")
    return node
