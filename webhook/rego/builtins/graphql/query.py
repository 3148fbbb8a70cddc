"""Queries checked against a schema, by ``graphql-core``'s rules.

Its rules are those of the specification, as gqlparser's are; its messages quote
with single quotes where gqlparser's use double ones. Trees are turned into its
nodes, each remembered with its place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import graphql
from graphql.language import ast as core

from webhook.rego.builtins.graphql import tree
from webhook.rego.builtins.graphql.parser import located
from webhook.rego.errors import BuiltinError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.rego.builtins.graphql.schema import Schema
    from webhook.rego.builtins.graphql.tree import Node

_UNKNOWN_TO_GQLPARSER: Final = frozenset(
    (
        "ExecutableDefinitionsRule",
        "DeferStreamDirectiveOnRootField",
        "DeferStreamDirectiveOnValidOperationsRule",
        "DeferStreamDirectiveLabel",
        "StreamDirectiveOnListField",
    )
)
_RULES: Final = [
    rule for rule in graphql.specified_rules if rule.__name__ not in _UNKNOWN_TO_GQLPARSER
]
_STANDARD_DIRECTIVES: Final = frozenset(
    directive.name for directive in graphql.specified_directives
)
_SCALARS: Final = {
    tree.INT: core.IntValueNode,
    tree.FLOAT: core.FloatValueNode,
    tree.STRING: core.StringValueNode,
    tree.BLOCK: core.StringValueNode,
    tree.ENUM: core.EnumValueNode,
}


def build_schema(schema: Schema) -> graphql.GraphQLSchema:
    """Returns the schema in ``graphql-core``'s form."""
    maker = _Maker()
    definitions = [
        maker.definition(node) for name, node in schema.types.items() if name not in schema.built_in
    ]
    directives = [
        maker.directive_definition(node)
        for name, node in schema.directives.items()
        if name not in _STANDARD_DIRECTIVES
    ]
    roots = [
        core.OperationTypeDefinitionNode(
            operation=core.OperationType(operation), type=maker.named(name)
        )
        for operation, name in schema.roots.items()
    ]
    entry = [core.SchemaDefinitionNode(operation_types=tuple(roots), directives=())]
    document = core.DocumentNode(definitions=(*definitions, *directives, *(entry if roots else ())))
    try:
        return graphql.build_ast_schema(document, assume_valid=True, assume_valid_sdl=True)
    except (TypeError, graphql.GraphQLError) as error:
        raise BuiltinError(f"GraphQL parse error: input: {error}") from None


def check_query(schema: graphql.GraphQLSchema, document: Node) -> None:
    """Raises :class:`BuiltinError`, in OPA's words, unless the query is valid."""
    maker = _Maker()
    nodes = [maker.operation(node) for node in document["Operations"]]
    fragments = [maker.fragment(node) for node in document["Fragments"]]
    query = core.DocumentNode(definitions=(*nodes, *fragments))
    errors = [error for error in graphql.validate(schema, query, _RULES) if not _is_int64(error)]
    if not errors:
        return
    places = [(_place(maker, error), _words(error)) for error in errors]
    place, message = places[0]
    lines = [message, *(f"{_prefix(where)}: {words}" for where, words in places[1:])]
    # OPA cuts the full stop of the last message, and the line end only with it.
    text = "\n".join((*lines, "")).removesuffix(".\n")
    if place is None:
        raise BuiltinError(f"GraphQL parse error: input: {text}")
    raise located(text, *place)


def _is_int64(error: graphql.GraphQLError) -> bool:
    """Returns whether an error is about an integer over 32 bits; gqlparser allows up to 64."""
    _, separator, number = error.message.partition("non 32-bit signed integer value: ")
    return bool(separator) and number.lstrip("-").isdecimal() and abs(int(number)) < 1 << 63


def _prefix(place: tuple[int, int] | None) -> str:
    return "input" if place is None else f"input:{place[0]}:{place[1]}"


# Of several places gqlparser names the last in these cases, else the first.
_AT_LAST: Final = (
    "There can be only one ",
    "The directive ",
    "Fields ",
    "Cannot spread fragment ",
)


def _place(maker: _Maker, error: graphql.GraphQLError) -> tuple[int, int] | None:
    nodes = list(error.nodes or ())
    if error.message.startswith(_AT_LAST) or "used in position" in error.message:
        nodes.reverse()
    if error.message.startswith("Unknown argument"):
        return maker.owners.get(id(nodes[0])) if nodes else None
    for node in nodes:
        place = maker.places.get(id(node))
        if place is not None:
            return place
    return None


_REWORDED: Final = (
    (
        re.compile(r"The (\w+) operation is not supported by the schema\."),
        r'Schema does not support operation type "\1"',
    ),
    (re.compile(r'Argument "@(\w+)\((\w+):\)"'), r'Directive "@\1" argument "\2"'),
    (re.compile(r'Argument "[^".]+\.(\w+)\((\w+):\)"'), r'Field "\1" argument "\2"'),
    (
        re.compile(r'Expected value of non-null type ("[^"]*") not to be None\.'),
        r"Expected value of type \1, found null.",
    ),
    (
        re.compile(r'Expected value of type ("[^"]*") to be an object, found: (.*)\.', re.DOTALL),
        r"Expected value of type \1, found \2.",
    ),
    (
        re.compile(
            r'Expected value of type ("[^"]*") not to include unknown field ("[^"]*")\.?(.*?)'
            r",? ?[Ff]ound: .*",
            re.DOTALL,
        ),
        r"Field \2 is not defined by type \1.\3",
    ),
)


def _words(error: graphql.GraphQLError) -> str:
    text = error.message.replace("'", '"')
    for pattern, words in _REWORDED:
        text, changed = pattern.subn(words, text)
        if changed:
            break
    return text


class _Maker:
    """Makes nodes, and records the place of each."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[int, int]] = {}
        self.owners: dict[int, tuple[int, int]] = {}  # of arguments
        self._kept: list[Any] = []  # an id is unique only while its object lives

    def _at(self, node: Node, built: Any) -> Any:
        if node["Position"] is not None:
            name, selections = getattr(built, "name", None), getattr(built, "selection_set", None)
            for part in (built, name, selections, getattr(built, "variable", None)):
                self.places.setdefault(id(part), node["Position"])
            for argument in getattr(built, "arguments", None) or ():
                self.owners[id(argument)] = node["Position"]
            self._kept.append(built)
        return built

    def name(self, text: str) -> core.NameNode:
        """Returns graphql-core's node of a name in OPA's document."""
        return core.NameNode(value=text)

    def named(self, text: str) -> core.NamedTypeNode:
        """Returns a type by its name."""
        return core.NamedTypeNode(name=self.name(text))

    def _type(self, node: Node) -> Any:
        built: Any
        if node["NamedType"]:
            built = self._at(node, self.named(node["NamedType"]))
        else:
            built = self._at(node, core.ListTypeNode(type=self._type(node["Elem"])))
        return self._at(node, core.NonNullTypeNode(type=built)) if node["NonNull"] else built

    def _value(self, node: Node) -> Any:
        kind, raw = node["Kind"], node["Raw"]
        if kind == tree.VARIABLE:
            return self._at(node, core.VariableNode(name=self.name(raw)))
        if kind == tree.BOOLEAN:
            return self._at(node, core.BooleanValueNode(value=raw == "true"))
        if kind == tree.NULL:
            return self._at(node, core.NullValueNode())
        if kind == tree.LIST:
            values = tuple(self._value(child["Value"]) for child in node["Children"])
            return self._at(node, core.ListValueNode(values=values))
        if kind == tree.OBJECT:
            fields = tuple(
                self._at(
                    child,
                    core.ObjectFieldNode(
                        name=self.name(child["Name"]), value=self._value(child["Value"])
                    ),
                )
                for child in node["Children"]
            )
            return self._at(node, core.ObjectValueNode(fields=fields))
        if kind not in _SCALARS:
            raise BuiltinError(f"unknown value kind {kind}")
        if kind in (tree.STRING, tree.BLOCK):
            built = core.StringValueNode(value=raw, block=kind == tree.BLOCK)
            return self._at(node, built)
        return self._at(node, _SCALARS[kind](value=raw))

    def _default(self, node: Node) -> Any:
        return None if node["DefaultValue"] is None else self._value(node["DefaultValue"])

    def _arguments(self, nodes: Iterable[Node]) -> Any:
        return tuple(
            self._at(
                node,
                core.ArgumentNode(name=self.name(node["Name"]), value=self._value(node["Value"])),
            )
            for node in nodes
        )

    def _directives(self, nodes: Iterable[Node]) -> Any:
        return tuple(
            self._at(
                node,
                core.DirectiveNode(
                    name=self.name(node["Name"]), arguments=self._arguments(node["Arguments"])
                ),
            )
            for node in nodes
        )

    # --- queries ----------------------------------------------------------------------------

    def operation(self, node: Node) -> Any:
        """A query, mutation or subscription with its variables; without a word it is a query."""
        built = core.OperationDefinitionNode(
            operation=core.OperationType(node["Operation"] or "query"),
            name=self.name(node["Name"]) if node["Name"] else None,
            variable_definitions=self._variables(node["VariableDefinitions"]),
            directives=self._directives(node["Directives"]),
            selection_set=self._selections(node["SelectionSet"]),
        )
        return self._at(node, built)

    def fragment(self, node: Node) -> Any:
        """Returns a fragment definition."""
        built = core.FragmentDefinitionNode(
            name=self.name(node["Name"]),
            variable_definitions=self._variables(node["VariableDefinition"]),
            type_condition=self.named(node["TypeCondition"]),
            directives=self._directives(node["Directives"]),
            selection_set=self._selections(node["SelectionSet"]),
        )
        return self._at(node, built)

    def _variables(self, nodes: Iterable[Node]) -> Any:
        return tuple(
            self._at(
                node,
                core.VariableDefinitionNode(
                    variable=core.VariableNode(name=self.name(node["Variable"])),
                    type=self._type(node["Type"]),
                    default_value=self._default(node),
                    directives=self._directives(node["Directives"]),
                ),
            )
            for node in nodes
        )

    def _selections(self, nodes: Iterable[Node]) -> Any:
        return core.SelectionSetNode(selections=tuple(map(self._selection, nodes)))

    def _selection(self, node: Node) -> Any:
        directives = self._directives(node["Directives"])
        if "Alias" in node:
            alias, name = node["Alias"], node["Name"]
            built: Any = core.FieldNode(
                name=self.name(name),
                alias=self.name(alias) if alias not in ("", name) else None,
                arguments=self._arguments(node["Arguments"]),
                directives=directives,
                selection_set=(
                    self._selections(node["SelectionSet"]) if node["SelectionSet"] else None
                ),
            )
        elif "TypeCondition" in node:
            condition = node["TypeCondition"]
            built = core.InlineFragmentNode(
                type_condition=self.named(condition) if condition else None,
                directives=directives,
                selection_set=self._selections(node["SelectionSet"]),
            )
        else:
            built = core.FragmentSpreadNode(name=self.name(node["Name"]), directives=directives)
        return self._at(node, built)

    # --- schemas ----------------------------------------------------------------------------

    def definition(self, node: Node) -> Any:
        """Returns a type."""
        kind = node["Kind"]
        common: dict[str, Any] = {
            "name": self.name(node["Name"]),
            "directives": self._directives(node["Directives"]),
        }
        if kind == "SCALAR":
            return core.ScalarTypeDefinitionNode(**common)
        if kind == "UNION":
            return core.UnionTypeDefinitionNode(
                **common, types=tuple(map(self.named, node["Types"]))
            )
        if kind == "ENUM":
            values = tuple(
                core.EnumValueDefinitionNode(
                    name=self.name(value["Name"]), directives=self._directives(value["Directives"])
                )
                for value in node["EnumValues"]
            )
            return core.EnumTypeDefinitionNode(**common, values=values)
        if kind == "INPUT_OBJECT":
            fields = self._inputs(node["Fields"])
            return core.InputObjectTypeDefinitionNode(**common, fields=fields)
        common["interfaces"] = tuple(map(self.named, node["Interfaces"]))
        common["fields"] = tuple(map(self._field, node["Fields"]))
        if kind == "INTERFACE":
            return core.InterfaceTypeDefinitionNode(**common)
        return core.ObjectTypeDefinitionNode(**common)

    def _field(self, node: Node) -> Any:
        return core.FieldDefinitionNode(
            name=self.name(node["Name"]),
            arguments=self._inputs(node["Arguments"]),
            type=self._type(node["Type"]),
            directives=self._directives(node["Directives"]),
        )

    def _inputs(self, nodes: Iterable[Node]) -> Any:
        return tuple(
            core.InputValueDefinitionNode(
                name=self.name(node["Name"]),
                type=self._type(node["Type"]),
                default_value=self._default(node),
                directives=self._directives(node["Directives"]),
            )
            for node in nodes
        )

    def directive_definition(self, node: Node) -> Any:
        """Returns a directive's declaration."""
        return core.DirectiveDefinitionNode(
            name=self.name(node["Name"]),
            arguments=self._inputs(node["Arguments"]),
            repeatable=node["IsRepeatable"],
            locations=tuple(map(self.name, node["Locations"])),
        )
