"""Schema documents checked as gqlparser's ``ValidateSchemaDocument`` checks them.

``graphql-core`` checks schemas too, but more than gqlparser does: a schema
without a query type, for one, is valid to OPA.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from functools import cache
from typing import Any, Final

from webhook.rego.builtins.graphql.sdl import parse_schema
from webhook.rego.builtins.graphql.tree import NULL, OBJECT, Node, make
from webhook.rego.errors import BuiltinError
from webhook.values import dataclass

_BUILT_IN_DIRECTIVES: Final = frozenset(
    ("include", "skip", "deprecated", "specifiedBy", "defer", "oneOf")
)
_OUTPUT_KINDS: Final = ("SCALAR", "OBJECT", "INTERFACE", "UNION", "ENUM")
_INPUT_KINDS: Final = ("SCALAR", "ENUM", "INPUT_OBJECT")

# The definitions in every schema (GraphQL, 3.5, 3.13 and 4.2).
_PRELUDE: Final = """
scalar Int scalar Float scalar String scalar Boolean scalar ID
directive @defer(if: Boolean = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT
directive @include(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
directive @skip(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
directive @deprecated(reason: String = "No longer supported")
  on FIELD_DEFINITION | ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION | ENUM_VALUE
    | DIRECTIVE_DEFINITION
directive @specifiedBy(url: String!) on SCALAR
directive @oneOf on INPUT_OBJECT
type __Schema { description: String types: [__Type!]! queryType: __Type! mutationType: __Type
  subscriptionType: __Type directives: [__Directive!]! }
type __Type { kind: __TypeKind! name: String description: String specifiedByURL: String
  fields(includeDeprecated: Boolean = false): [__Field!] interfaces: [__Type!]
  possibleTypes: [__Type!] enumValues(includeDeprecated: Boolean = false): [__EnumValue!]
  inputFields(includeDeprecated: Boolean = false): [__InputValue!] ofType: __Type
  isOneOf: Boolean }
enum __TypeKind { SCALAR OBJECT INTERFACE UNION ENUM INPUT_OBJECT LIST NON_NULL }
type __Field { name: String! description: String
  args(includeDeprecated: Boolean = false): [__InputValue!]! type: __Type!
  isDeprecated: Boolean! deprecationReason: String }
type __InputValue { name: String! description: String type: __Type! defaultValue: String
  isDeprecated: Boolean! deprecationReason: String }
type __EnumValue { name: String! description: String isDeprecated: Boolean!
  deprecationReason: String }
type __Directive { name: String! description: String isRepeatable: Boolean!
  locations: [__DirectiveLocation!]! args(includeDeprecated: Boolean = false): [__InputValue!]! }
enum __DirectiveLocation { QUERY MUTATION SUBSCRIPTION FIELD FRAGMENT_DEFINITION FRAGMENT_SPREAD
  INLINE_FRAGMENT VARIABLE_DEFINITION SCHEMA SCALAR OBJECT FIELD_DEFINITION ARGUMENT_DEFINITION
  INTERFACE UNION ENUM ENUM_VALUE INPUT_OBJECT INPUT_FIELD_DEFINITION
  DIRECTIVE_DEFINITION }
"""


@dataclass(slots=True)
class Schema:
    """A valid schema: types with their extensions merged in, directives, and root types."""

    types: dict[str, Node] = field(default_factory=dict)
    directives: dict[str, Node] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)
    built_in: frozenset[str] = frozenset()
    possible: dict[str, list[str]] = field(default_factory=dict)


@cache
def _prelude() -> Node:
    return parse_schema(_PRELUDE)


def _fault(node: Node, message: str) -> BuiltinError:
    place = node["Position"]
    where = "input" if place is None else f"input:{place[0]}:{place[1]}"
    return BuiltinError(
        f"Error in gqlparser SchemaDocument to Schema conversion: {where}: {message}"
    )


def check_schema(document: Node) -> Schema:
    """The schema that a document describes; raises :class:`BuiltinError` with gqlparser's words."""
    prelude = _prelude()
    schema = Schema(built_in=frozenset(node["Name"] for node in prelude["Definitions"]))
    for definition in [*prelude["Definitions"], *document["Definitions"]]:
        if definition["Name"] in schema.types:
            raise _fault(definition, f"Cannot redeclare type {definition['Name']}.")
        schema.types[definition["Name"]] = dict(definition)
    for extension in document["Extensions"]:
        _extend(schema, extension)
    _collect_possible(schema)
    for directive in [*prelude["Directives"], *document["Directives"]]:
        name = directive["Name"]
        if name in schema.directives and name not in _BUILT_IN_DIRECTIVES:
            raise _fault(directive, f"Cannot redeclare directive {name}.")
        schema.directives[name] = dict(directive)
    for extension in document["DirectiveExtensions"]:
        name = extension["Name"]
        if name not in schema.directives:
            message = f"Cannot extend directive @{name} because it is not defined."
            raise _fault(extension, message)
        extended = schema.directives[name]
        extended["Directives"] = [*extended["Directives"], *extension["Directives"]]
    entries = _roots(schema, document)
    for name in sorted(schema.types):
        _check_definition(schema, schema.types[name])
    _check_input_cycles(schema)
    for name in sorted(schema.directives):
        directive = schema.directives[name]
        _check_name(directive)
        _check_argument_names(directive["Arguments"], f"@{name}")
        _check_directives(
            schema, directive["Directives"], "DIRECTIVE_DEFINITION", current=directive
        )
        _check_arguments(schema, directive["Arguments"], directive)
    if not document["Schema"]:
        for operation in ("Query", "Mutation", "Subscription"):
            if operation in schema.types:
                schema.roots.setdefault(operation.lower(), operation)
    _check_roots(schema, entries)
    return schema


def _extend(schema: Schema, extension: Node) -> None:
    name = extension["Name"]
    if name not in schema.types:
        blank = make("Definition", Kind=extension["Kind"], Name=name)
        schema.types[name] = blank | {"Position": extension["Position"]}
    base = schema.types[name]
    if base["Kind"] != extension["Kind"]:
        message = (
            f"Cannot extend type {name} because the base type is a {base['Kind']}, "
            f"not {extension['Kind']}."
        )
        raise _fault(extension, message)
    for part in ("Directives", "Interfaces", "Fields", "Types", "EnumValues"):
        base[part] = [*base[part], *extension[part]]


def _collect_possible(schema: Schema) -> None:
    for name, definition in schema.types.items():
        if definition["Kind"] == "UNION":
            schema.possible.setdefault(name, []).extend(definition["Types"])
        for interface in definition["Interfaces"]:
            schema.possible.setdefault(interface, []).append(name)


def _roots(schema: Schema, document: Node) -> dict[str, Node]:
    """Sets the root types that the document names; returns their entries by operation."""
    entries: dict[str, Node] = {}
    if len(document["Schema"]) > 1:
        message = "Cannot have multiple schema entry points, consider schema extensions instead."
        raise _fault(document["Schema"][1], message)
    for node in [*document["Schema"], *document["SchemaExtension"]]:
        for entry in node["OperationTypes"]:
            if entry["Operation"] in entries:
                raise _fault(entry, f"There can be only one {entry['Operation']} type in schema.")
            entries[entry["Operation"]] = entry
            if entry["Type"] not in schema.types:
                message = (
                    f"Schema root {entry['Operation']} refers to a type {entry['Type']} that "
                    "does not exist."
                )
                raise _fault(entry, message)
            schema.roots[entry["Operation"]] = entry["Type"]
        _check_directives(schema, node["Directives"], "SCHEMA")
    return entries


def _check_roots(schema: Schema, entries: dict[str, Node]) -> None:
    """Checks that root types are objects; a root type by default name has no entry."""
    for operation in ("query", "mutation", "subscription"):
        name = schema.roots.get(operation)
        if name is None or schema.types[name]["Kind"] == "OBJECT":
            continue
        optional = "" if operation == "query" else " if provided"
        message = (
            f"{operation.title()} root type must be Object type{optional}, it cannot be {name}."
        )
        raise _fault(entries.get(operation, schema.types[name]), message)


def _check_name(node: Node) -> None:
    if node["Name"].startswith("__"):
        message = (
            f'Name "{node["Name"]}" must not begin with "__", which is reserved by GraphQL '
            "introspection."
        )
        raise _fault(node, message)


def type_text(node: Node | None) -> str:
    """Returns a type reference as it is written."""
    if node is None:
        return ""
    inner = node["NamedType"] or f"[{type_text(node['Elem'])}]"
    return f"{inner}{'!' if node['NonNull'] else ''}"


def _named(node: Node | None) -> str:
    while node is not None and not node["NamedType"]:
        node = node["Elem"]
    return "" if node is None else node["NamedType"]


def _check_type(schema: Schema, reference: Node | None) -> None:
    name = _named(reference)
    if name not in schema.types:
        raise _fault(reference or {"Position": None}, f"Undefined type {name}.")


def _check_definition(schema: Schema, definition: Node) -> None:
    kind, name = definition["Kind"], definition["Name"]
    is_input = kind == "INPUT_OBJECT"
    for declared in definition["Fields"]:
        _check_name(declared)
        _check_type(schema, declared["Type"])
        _check_object_fields(declared["DefaultValue"])
        _check_argument_names(declared["Arguments"], f"{name}.{declared['Name']}")
        _check_arguments(schema, declared["Arguments"], None)
        place = "INPUT_FIELD_DEFINITION" if is_input else "FIELD_DEFINITION"
        _check_directives(schema, declared["Directives"], place)
    for member in definition["Types"]:
        if member not in schema.types:
            raise _fault(definition, f'Undefined type "{member}".')
        if schema.types[member]["Kind"] != "OBJECT":
            raise _fault(definition, f'{kind} type "{member}" must be OBJECT.')
    for number, interface in enumerate(definition["Interfaces"]):
        if interface in definition["Interfaces"][:number]:
            raise _fault(definition, f"Type {name} can only implement {interface} once.")
        _check_implements(schema, definition, interface)
    _check_members(schema, definition)
    _check_unique(definition)
    if name not in schema.built_in:
        _check_name(definition)
    _check_directives(schema, definition["Directives"], kind, single=False)


def _check_members(schema: Schema, definition: Node) -> None:
    kind, name = definition["Kind"], definition["Name"]
    if kind == "ENUM":
        if not definition["EnumValues"]:
            message = f"{kind} {name}: must define one or more unique enum values."
            raise _fault(definition, message)
        for value in definition["EnumValues"]:
            _check_name(value)
            if value["Name"] in ("true", "false", "null"):
                raise _fault(value, f"{kind} {name}: non-enum value {value['Name']}.")
            _check_directives(schema, value["Directives"], "ENUM_VALUE")
        return
    if kind == "UNION" and not definition["Types"]:
        raise _fault(definition, f"{kind} {name}: must define one or more member types.")
    if kind not in ("OBJECT", "INTERFACE", "INPUT_OBJECT"):
        return
    is_input = kind == "INPUT_OBJECT"
    if not definition["Fields"]:
        noun = "input fields" if is_input else "fields"
        raise _fault(definition, f"{kind} {name}: must define one or more {noun}.")
    allowed = _INPUT_KINDS if is_input else _OUTPUT_KINDS
    for member in definition["Fields"]:
        declared = schema.types[_named(member["Type"])]["Kind"]
        if declared not in allowed:
            subject = f"{declared} {member['Name']}" if is_input else f"{kind} {name}"
            raise _fault(member, f"{subject}: field must be one of {', '.join(allowed)}.")


def _check_unique(definition: Node) -> None:
    name = definition["Name"]
    for members, words in (
        (definition["Fields"], "Field"),
        (definition["EnumValues"], "Enum value"),
    ):
        if repeated := _repeated(member["Name"] for member in members):
            node = [member for member in members if member["Name"] == repeated][1]
            raise _fault(node, f"{words} {name}.{repeated} can only be defined once.")
    if repeated := _repeated(definition["Types"]):
        message = f"Union type {name} can only include type {repeated} once."
        raise _fault(definition, message)


def _repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _check_argument_names(arguments: list[Node], owner: str) -> None:
    if repeated := _repeated(argument["Name"] for argument in arguments):
        node = [argument for argument in arguments if argument["Name"] == repeated][1]
        raise _fault(node, f"Argument {owner}({repeated}:) can only be defined once.")


def _check_object_fields(value: Node | None) -> None:
    """Raises for an object with a duplicate field, anywhere within a literal."""
    if value is None:
        return
    children = value["Children"]
    if value["Kind"] == OBJECT and (repeated := _repeated(child["Name"] for child in children)):
        node = [child for child in children if child["Name"] == repeated][1]
        raise _fault(node, f'There can be only one input field named "{repeated}".')
    for child in children:
        _check_object_fields(child["Value"])


def _check_arguments(schema: Schema, arguments: list[Node], current: Node | None) -> None:
    for argument in arguments:
        _check_name(argument)
        _check_type(schema, argument["Type"])
        _check_object_fields(argument["DefaultValue"])
        kind = schema.types[_named(argument["Type"])]["Kind"]
        if kind not in _INPUT_KINDS:
            message = (
                f"cannot use {type_text(argument['Type'])} as argument {argument['Name']} "
                f"because {kind} is not a valid input type"
            )
            raise _fault(argument, message)
        _check_directives(schema, argument["Directives"], "ARGUMENT_DEFINITION", current=current)


def _check_directives(
    schema: Schema,
    directives: list[Node],
    location: str,
    *,
    current: Node | None = None,
    single: bool = True,
) -> None:
    """Checks directives; ``single`` if they are at one place, not merged from extensions."""
    seen: set[str] = set()
    for directive in directives:
        name = directive["Name"]
        _check_name(directive)
        if current is not None and name == current["Name"]:
            raise _fault(directive, f"Directive {name} cannot refer to itself.")
        definition = schema.directives.get(name)
        if definition is None:
            raise _fault(directive, f"Undefined directive {name}.")
        if single and name in seen and not definition["IsRepeatable"]:
            message = f"The directive {name} can only be used once at this location."
            raise _fault(directive, message)
        seen.add(name)
        if location not in definition["Locations"]:
            raise _fault(directive, f"Directive {name} is not applicable on {location}.")
        _check_directive_arguments(directive, definition)


def _check_directive_arguments(directive: Node, definition: Node) -> None:
    name = directive["Name"]
    known = {argument["Name"] for argument in definition["Arguments"]}
    given = {argument["Name"]: argument for argument in directive["Arguments"]}
    seen: set[str] = set()
    for argument in directive["Arguments"]:
        if argument["Name"] not in known:
            message = f"Undefined argument {argument['Name']} for directive {name}."
            raise _fault(argument, message)
        if argument["Name"] in seen:
            raise _fault(argument, f"There can be only one argument named {argument['Name']}.")
        seen.add(argument["Name"])
    for required in definition["Arguments"]:
        if not required["Type"]["NonNull"] or required["DefaultValue"] is not None:
            continue
        passed = given.get(required["Name"])
        if passed is None or passed["Value"]["Kind"] == NULL:
            message = f"Argument {required['Name']} for directive {name} cannot be null."
            raise _fault(directive, message)
    for argument in directive["Arguments"]:
        _check_object_fields(argument["Value"])


def _check_implements(schema: Schema, definition: Node, name: str) -> None:
    interface = schema.types.get(name)
    if interface is None:
        raise _fault(definition, f'Undefined type "{name}".')
    if interface["Kind"] != "INTERFACE":
        raise _fault(definition, f'"{name}" is a non interface type {interface["Kind"]}.')
    if name == definition["Name"]:
        message = (
            f"Type {name} cannot implement itself because it would create a circular reference."
        )
        raise _fault(definition, message)
    subject = f"For {definition['Name']} to implement {name}"
    fields = {member["Name"]: member for member in definition["Fields"]}
    for required in interface["Fields"]:
        field = fields.get(required["Name"])
        if field is None:
            message = f"{subject} it must have a field called {required['Name']}."
            raise _fault(definition, message)
        if not _is_covariant(schema, required["Type"], field["Type"]):
            text = type_text(required["Type"])
            message = f"{subject} the field {required['Name']} must have type {text}."
            raise _fault(field, message)
        _check_implementing_arguments(subject, required, field)
    for other in interface["Interfaces"]:
        if other in definition["Interfaces"]:
            continue
        if other == definition["Name"]:
            message = (
                f"Type {other} cannot implement {name} because it would create a circular "
                "reference."
            )
            raise _fault(definition, message)
        message = (
            f"Type {definition['Name']} must implement {other} because it is implemented by {name}."
        )
        raise _fault(definition, message)


def _check_implementing_arguments(subject: str, expected: Node, field: Node) -> None:
    given = {argument["Name"]: argument for argument in field["Arguments"]}
    same = f"{subject} the field {expected['Name']} must have the same arguments but"
    for argument in expected["Arguments"]:
        name = argument["Name"]
        if name not in given:
            raise _fault(field, f"{same} it is missing {name}.")
        if not _is_compatible(argument["Type"], given[name]["Type"]):
            raise _fault(given[name], f"{same} {name} has the wrong type.")
    known = {argument["Name"] for argument in expected["Arguments"]}
    for name, argument in given.items():
        required = argument["Type"]["NonNull"] and argument["DefaultValue"] is None
        if name not in known and required:
            message = (
                f"{subject} any additional arguments on {field['Name']} must be optional or "
                f"have a default value but {name} is required."
            )
            raise _fault(argument, message)


def _is_compatible(ours: Any, other: Any) -> bool:
    if ours["NamedType"] != other["NamedType"] or (ours["Elem"] and not other["Elem"]):
        return False
    if ours["Elem"] and not _is_compatible(ours["Elem"], other["Elem"]):
        return False
    return bool(ours["NonNull"] or not other["NonNull"])


def _is_covariant(schema: Schema, required: Any, of: Any) -> bool:
    if required["NonNull"] and not of["NonNull"]:
        return False
    name = required["NamedType"]
    if name:
        return of["NamedType"] == name or of["NamedType"] in schema.possible.get(name, ())
    return bool(of["Elem"]) and _is_covariant(schema, required["Elem"], of["Elem"])


def _check_input_cycles(schema: Schema) -> None:
    """Raises for input objects that require themselves (GraphQL, 3.10)."""
    done: set[str] = set()
    for name in sorted(schema.types):
        if schema.types[name]["Kind"] == "INPUT_OBJECT":
            _follow_inputs(schema, name, [], {}, done)


def _follow_inputs(
    schema: Schema, name: str, path: list[Node], places: dict[str, int], done: set[str]
) -> None:
    if name in done:
        return
    done.add(name)
    places[name] = len(path)
    for member in schema.types[name]["Fields"]:
        reference = member["Type"]
        target = reference["NamedType"]
        if not reference["NonNull"] or schema.types.get(target, {}).get("Kind") != "INPUT_OBJECT":
            continue
        path.append(member)
        if target in places:
            cycle = path[places[target] :]
            names = ".".join(step["Name"] for step in cycle)
            message = (
                f'Cannot reference Input Object "{target}" within itself through a series of '
                f'non-null fields: "{names}".'
            )
            raise _fault(cycle[0], message)
        _follow_inputs(schema, target, path, places, done)
        path.pop()
    del places[name]
