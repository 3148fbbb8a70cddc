"""GraphQL's schema language parsed into gqlparser's trees."""

from __future__ import annotations

from typing import Any, Final

from webhook.rego.builtins.graphql import lexer
from webhook.rego.builtins.graphql.parser import Parser, located
from webhook.rego.builtins.graphql.tree import Node, comments, make

_KINDS: Final = {
    "scalar": "SCALAR",
    "type": "OBJECT",
    "interface": "INTERFACE",
    "union": "UNION",
    "enum": "ENUM",
    "input": "INPUT_OBJECT",
}
LOCATIONS: Final = frozenset(
    (
        *("QUERY", "MUTATION", "SUBSCRIPTION", "FIELD", "FRAGMENT_DEFINITION"),
        *("FRAGMENT_SPREAD", "INLINE_FRAGMENT", "VARIABLE_DEFINITION", "SCHEMA", "SCALAR"),
        *("OBJECT", "FIELD_DEFINITION", "ARGUMENT_DEFINITION", "INTERFACE", "UNION", "ENUM"),
        *("ENUM_VALUE", "INPUT_OBJECT", "INPUT_FIELD_DEFINITION", "DIRECTIVE_DEFINITION"),
    )
)
"""Where a directive may stand (GraphQL, 3.13)."""


def parse_schema(source: str) -> Node:
    """Returns the tree of a schema document; raises :class:`BuiltinError`."""
    return _SchemaParser(source).document()


class _SchemaParser(Parser):
    """Type system documents (GraphQL, 3)."""

    def document(self) -> Node:
        """Returns the whole document."""
        document = make("SchemaDocument")
        while not self.peek(lexer.END):
            description, before = self.description()
            if not self.peek(lexer.NAME):
                raise self.unexpected()
            about = {
                "Description": "" if description is None else description.value,
                "BeforeDescriptionComment": comments(before),
            }
            word = self.token.value
            if word in _KINDS:
                document["Definitions"].append(self._definition(about))
            elif word == "schema":
                document["Schema"].append(self._schema(about))
            elif word == "directive":
                document["Directives"].append(self._directive_definition(about))
            elif word == "extend":
                if about["Description"]:
                    assert description is not None
                    raise located(f"Unexpected {description}", description.line, description.column)
                self._extension(document)
            else:
                raise self.unexpected()
        document["Comment"] = self.comment
        return document

    def _schema(self, about: dict[str, Any]) -> Node:
        about = about | {"AfterDescriptionComment": self.comment}
        self.keyword("schema")
        node = make("SchemaDefinition", self.token, **about)
        node["Directives"] = self.directives(constant=True)
        self._operation_types(node)
        return node

    def _operation_types(self, node: Node) -> None:
        types, ending = self.some("{", "}", self._operation_type)
        node["OperationTypes"], node["EndOfDefinitionComment"] = types, ending

    def _operation_type(self) -> Node:
        node = make("OperationTypeDefinition", self.token, Comment=self.comment)
        node["Operation"] = self.operation()
        self.expect(":")
        node["Type"] = self.name()
        return node

    def _definition(self, about: dict[str, Any]) -> Node:
        about = about | {"AfterDescriptionComment": self.comment}
        kind = _KINDS[self.next().value]
        node = make("Definition", self.token, Kind=kind, **about)
        node["Name"] = self.name()
        if kind in ("OBJECT", "INTERFACE"):
            node["Interfaces"] = self._interfaces()
        node["Directives"] = self.directives(constant=True)
        self._members(node)
        return node

    def _members(self, node: Node) -> None:
        """Reads the members of a definition: those in braces, or after its equals sign."""
        kind = node["Kind"]
        if kind == "UNION":
            node["Types"] = self._union_members()
        elif kind != "SCALAR":
            field, read = {
                "ENUM": ("EnumValues", self._enum_value),
                "INPUT_OBJECT": ("Fields", self._input_field),
            }.get(kind, ("Fields", self._field))
            node[field], node["EndOfDefinitionComment"] = self.some("{", "}", read)

    def _interfaces(self) -> list[str]:
        if self.token.value != "implements":
            return []
        self.next()
        self.skip("&")
        interfaces = [self.name()]
        while self.skip("&"):
            interfaces.append(self.name())
        return interfaces

    def _union_members(self) -> list[str]:
        if not self.skip("="):
            return []
        self.skip("|")
        members = [self.name()]
        while self.skip("|"):
            members.append(self.name())
        return members

    def _described(self, structure: str) -> Node:
        """Returns a member's node with its description, comments, position and name."""
        description, before = self.description()
        node = make(structure)
        if description is not None and description.value:
            node["Description"] = description.value
            node["BeforeDescriptionComment"] = comments(before)
        node["AfterDescriptionComment"] = self.comment
        node["Position"] = (self.token.line, self.token.column)
        node["Name"] = self.name()
        return node

    def _field(self) -> Node:
        node = self._described("FieldDefinition")
        node["Arguments"] = self._argument_definitions()
        self.expect(":")
        node["Type"] = self.type_reference()
        node["Directives"] = self.directives(constant=True)
        return node

    def _argument_definitions(self) -> list[Node]:
        return self.some("(", ")", lambda: self._input_value("ArgumentDefinition"))[0]

    def _input_field(self) -> Node:
        return self._input_value("FieldDefinition")

    def _input_value(self, structure: str) -> Node:
        node = self._described(structure)
        self.expect(":")
        node["Type"] = self.type_reference()
        if self.skip("="):
            node["DefaultValue"] = self.value(constant=True)
        node["Directives"] = self.directives(constant=True)
        return node

    def _enum_value(self) -> Node:
        node = self._described("EnumValueDefinition")
        node["Directives"] = self.directives(constant=True)
        return node

    def _directive_definition(self, about: dict[str, Any]) -> Node:
        about = about | {"AfterDescriptionComment": self.comment}
        self.keyword("directive")
        self.expect("@")
        node = make("DirectiveDefinition", self.token, **about)
        node["Name"] = self.name()
        node["Arguments"] = self._argument_definitions()
        node["Directives"] = self.directives(constant=True)
        if self.peek(lexer.NAME, "repeatable"):
            node["IsRepeatable"] = True
            self.next()
        self.keyword("on")
        self.skip("|")
        node["Locations"] = [self._location()]
        while self.skip("|"):
            node["Locations"].append(self._location())
        return node

    def _location(self) -> str:
        token = self.expect(lexer.NAME)
        if token.value not in LOCATIONS:
            raise located(f"Unexpected {token}", token.line, token.column)
        return token.value

    def _extension(self, document: Node) -> None:
        comment = self.comment
        self.keyword("extend")
        word = self.token.value
        if word == "schema":
            self.next()
            node = make("SchemaDefinition", self.token, AfterDescriptionComment=comment)
            node["Directives"] = self.directives(constant=True)
            self._operation_types(node)
            document["SchemaExtension"].append(node)
            present: tuple[str, ...] = ("Directives", "OperationTypes")
        elif word in _KINDS:
            kind = _KINDS[self.next().value]
            node = make("Definition", self.token, Kind=kind, AfterDescriptionComment=comment)
            node["Name"] = self.name()
            if kind in ("OBJECT", "INTERFACE"):
                node["Interfaces"] = self._interfaces()
            node["Directives"] = self.directives(constant=kind != "INPUT_OBJECT")
            self._members(node)
            document["Extensions"].append(node)
            present = ("Interfaces", "Directives", "Fields", "Types", "EnumValues")
        elif word == "directive":
            self.next()
            self.expect("@")
            node = make("DirectiveDefinition", self.token, AfterDescriptionComment=comment)
            node["Name"] = self.name()
            node["Directives"] = self.directives(constant=True)
            document["DirectiveExtensions"].append(node)
            present = ("Directives",)
        else:
            raise self.unexpected()
        if not any(node[field] for field in present):
            raise self.unexpected()
