"""GraphQL's syntax trees in the JSON form of gqlparser's structures.

A node is a dict with every field of its structure, as Go marshals it, and under
``Position`` where it stands: line and column, which the shown form leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins.operands import plain
from webhook.rego.errors import BuiltinError
from webhook.rego.run.values import Value, type_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.rego.builtins.graphql.lexer import Token
    from webhook.rego.builtins.registry import Context

Node = dict[str, Any]

# Fields by structure: "" a string, False a flag, 0 a number, [""] a list of
# strings, "X" a structure, ["X"] a list of them; all zero where absent.
_COMMENTS: Final = {
    "BeforeDescriptionComment": "Comments",
    "AfterDescriptionComment": "Comments",
}
_STRUCTURES: Final[dict[str, dict[str, Any]]] = {
    "QueryDocument": {
        "Operations": ["OperationDefinition"],
        "Fragments": ["FragmentDefinition"],
        "Comment": "Comments",
    },
    "SchemaDocument": {
        "Schema": ["SchemaDefinition"],
        "SchemaExtension": ["SchemaDefinition"],
        "Directives": ["DirectiveDefinition"],
        "DirectiveExtensions": ["DirectiveDefinition"],
        "Definitions": ["Definition"],
        "Extensions": ["Definition"],
        "Comment": "Comments",
    },
    "OperationDefinition": {
        "Description": "",
        "Operation": "",
        "Name": "",
        "VariableDefinitions": ["VariableDefinition"],
        "Directives": ["Directive"],
        "SelectionSet": ["Field"],
        "Comment": "Comments",
    },
    "FragmentDefinition": {
        "Description": "",
        "Name": "",
        "VariableDefinition": ["VariableDefinition"],
        "TypeCondition": "",
        "Directives": ["Directive"],
        "SelectionSet": ["Field"],
        "Comment": "Comments",
    },
    "VariableDefinition": {
        "Description": "",
        "Variable": "",
        "Type": "Type",
        "DefaultValue": "Value",
        "Directives": ["Directive"],
        "Comment": "Comments",
        "Used": False,
    },
    "Field": {
        "Alias": "",
        "Name": "",
        "Arguments": ["Argument"],
        "Directives": ["Directive"],
        "SelectionSet": ["Field"],
        "Comment": "Comments",
    },
    "FragmentSpread": {"Name": "", "Directives": ["Directive"], "Comment": "Comments"},
    "InlineFragment": {
        "TypeCondition": "",
        "Directives": ["Directive"],
        "SelectionSet": ["Field"],
        "Comment": "Comments",
    },
    "Argument": {"Name": "", "Value": "Value", "Comment": "Comments"},
    "Directive": {"Name": "", "Arguments": ["Argument"], "Location": ""},
    "Type": {"NamedType": "", "Elem": "Type", "NonNull": False},
    "Value": {
        "Raw": "",
        "Children": ["ChildValue"],
        "Kind": 0,
        "Comment": "Comments",
        "ExpectedTypeHasDefault": False,
    },
    "ChildValue": {"Name": "", "Value": "Value", "Comment": "Comments"},
    "SchemaDefinition": {
        "Description": "",
        "Directives": ["Directive"],
        "OperationTypes": ["OperationTypeDefinition"],
        "EndOfDefinitionComment": "Comments",
        **_COMMENTS,
    },
    "OperationTypeDefinition": {"Operation": "", "Type": "", "Comment": "Comments"},
    "Definition": {
        "Kind": "",
        "Description": "",
        "Name": "",
        "Directives": ["Directive"],
        "Interfaces": [""],
        "Fields": ["FieldDefinition"],
        "Types": [""],
        "EnumValues": ["EnumValueDefinition"],
        "BuiltIn": False,
        "EndOfDefinitionComment": "Comments",
        **_COMMENTS,
    },
    "FieldDefinition": {
        "Description": "",
        "Name": "",
        "Arguments": ["ArgumentDefinition"],
        "DefaultValue": "Value",
        "Type": "Type",
        "Directives": ["Directive"],
        **_COMMENTS,
    },
    "ArgumentDefinition": {
        "Description": "",
        "Name": "",
        "DefaultValue": "Value",
        "Type": "Type",
        "Directives": ["Directive"],
        **_COMMENTS,
    },
    "EnumValueDefinition": {
        "Description": "",
        "Name": "",
        "Directives": ["Directive"],
        **_COMMENTS,
    },
    "DirectiveDefinition": {
        "Description": "",
        "Name": "",
        "Arguments": ["ArgumentDefinition"],
        "Directives": ["Directive"],
        "Locations": [""],
        "IsRepeatable": False,
        **_COMMENTS,
    },
    "Comments": {"List": ["Comment"]},
    "Comment": {"Value": ""},
}

VARIABLE: Final = 0
INT: Final = 1
FLOAT: Final = 2
STRING: Final = 3
BLOCK: Final = 4
BOOLEAN: Final = 5
NULL: Final = 6
ENUM: Final = 7
LIST: Final = 8
OBJECT: Final = 9
"""gqlparser's ValueKind constants."""


def make(structure: str, place: Token | None = None, **fields: Any) -> Node:
    """Returns a node of a structure: the given fields, and zero values for the rest."""
    node = {name: _zero(kind) for name, kind in _STRUCTURES[structure].items()}
    node |= fields
    node["Position"] = None if place is None else (place.line, place.column)
    return node


def _zero(kind: Any) -> Any:
    if isinstance(kind, list):
        return []
    return None if isinstance(kind, str) and kind else kind


def comments(tokens: Sequence[Token]) -> Node | None:
    """Returns a group of comments, or nothing."""
    if not tokens:
        return None
    return make("Comments", List=[make("Comment", token, Value=token.value) for token in tokens])


def from_value(context: Context, structure: str, value: Value) -> Node:
    """Returns a policy's tree; raises :class:`BuiltinError` for another shape."""
    return _decoded(structure, plain(context, value))


def _decoded(structure: str, value: Any) -> Node:
    if not isinstance(value, dict):
        raise _mismatch(value, f"ast.{structure}")
    known = _STRUCTURES[structure]
    node = make(structure)
    for name, item in value.items():
        if name in known and item is not None:
            node[name] = _field(known[name], item)
    return node


def _field(kind: Any, value: Any) -> Any:
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise _mismatch(value, "list")
        return [_field(kind[0], item) for item in value]
    if isinstance(kind, str) and kind:
        return _decoded(kind, value)
    if type(value) is not type(kind):
        raise _mismatch(value, {str: "string", bool: "bool", int: "int"}[type(kind)])
    return value


def _mismatch(value: Any, expected: str) -> BuiltinError:
    return BuiltinError(
        f"json: cannot unmarshal {type_name(value)} into Go value of type {expected}"
    )


def shown(node: Any) -> Any:
    """Returns the tree as a result: without positions, null and empty fields."""
    if isinstance(node, list):
        return [item for item in map(shown, node) if item is not None and item not in ([], {})]
    if isinstance(node, dict):
        items = ((name, shown(item)) for name, item in node.items() if name != "Position")
        return {name: item for name, item in items if not _is_empty(item)}
    return node


def _is_empty(item: Any) -> bool:
    return item is None or (isinstance(item, list | dict) and not item)
