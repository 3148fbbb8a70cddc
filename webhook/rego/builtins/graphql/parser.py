"""GraphQL's documents parsed into gqlparser's trees, with its messages.

``graphql-core`` parses GraphQL too, but into other trees without comments, and
words its faults differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.golang.strings import quote
from webhook.rego.builtins.graphql import lexer, tree
from webhook.rego.builtins.graphql.tree import Node, comments, make
from webhook.rego.errors import BuiltinError, EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.rego.builtins.graphql.lexer import Token

DEPTH_MAX: Final = 100
"""The deepest nesting of selections, lists and types; practice needs about ten."""

_LITERALS: Final = {
    lexer.INT: tree.INT,
    lexer.FLOAT: tree.FLOAT,
    lexer.STRING: tree.STRING,
    lexer.BLOCK_STRING: tree.BLOCK,
}
_NAMED_LITERALS: Final = {"true": tree.BOOLEAN, "false": tree.BOOLEAN, "null": tree.NULL}
_OPERATIONS: Final = ("query", "mutation", "subscription")


def located(message: str, line: int, column: int) -> BuiltinError:
    """Returns an error with a place, in OPA's words."""
    return BuiltinError(f"{message} in GraphQL string at location {line}:{column}")


class Parser:
    """A position in a source's tokens, and the rules common to queries and schemas."""

    def __init__(self, source: str) -> None:
        self._tokens = lexer.Lexer(source).tokens()
        self._depth = 0
        self.token: Token
        self.comments: tuple[Token, ...] = ()
        self._advance()

    def _advance(self) -> None:
        gathered = []
        for token in self._tokens:
            if token.kind != lexer.COMMENT:
                self.token = token
                break
            gathered.append(token)
        self.comments = tuple(gathered)

    @property
    def comment(self) -> Node | None:
        """The comments before the token."""
        return comments(self.comments)

    def error(self, message: str) -> BuiltinError:
        """Returns a fault at the token."""
        return located(message, self.token.line, self.token.column)

    def unexpected(self) -> BuiltinError:
        """Returns the error that the token is unexpected."""
        return self.error(f"Unexpected {self.token}")

    def peek(self, kind: str, value: str | None = None) -> bool:
        """Returns whether the token is of this kind, and this text."""
        return self.token.kind == kind and (value is None or self.token.value == value)

    def next(self) -> Token:
        """Consumes and returns the token."""
        token = self.token
        self._advance()
        return token

    def skip(self, kind: str) -> bool:
        """Goes past the token if it is of this kind."""
        if not self.peek(kind):
            return False
        self.next()
        return True

    def expect(self, kind: str) -> Token:
        """Consumes and returns the token, which must be of this kind."""
        if not self.peek(kind):
            raise self.error(f"Expected {kind}, found {self.token.kind}")
        return self.next()

    def keyword(self, value: str) -> None:
        """Consumes a name that must be ``value``."""
        if not self.peek(lexer.NAME, value):
            raise self.error(f"Expected {quote(value)}, found {self.token}")
        self.next()

    def description(self) -> tuple[Token | None, Sequence[Token]]:
        """Returns the string before a definition, if there is one, and the comments before it."""
        if not self.peek(lexer.STRING) and not self.peek(lexer.BLOCK_STRING):
            return None, ()
        before = self.comments
        return self.next(), before

    def name(self) -> str:
        """Consumes and returns a name."""
        return self.expect(lexer.NAME).value

    def some(self, start: str, end: str, read: Callable[[], Any]) -> tuple[list[Any], Node | None]:
        """At least one item between brackets, if there are brackets; the comments at their end."""
        if not self.skip(start):
            return [], None
        items = self._until(end, read)
        if not items:
            raise self.error(f"expected at least one definition, found {self.token.kind}")
        ending = self.comment
        self.next()
        return items, ending

    def many(self, start: str, end: str, read: Callable[[], Any]) -> list[Any]:
        """Any number of items between brackets."""
        self.expect(start)
        items = self._until(end, read)
        self.next()
        return items

    def _until(self, end: str, read: Callable[[], Any]) -> list[Any]:
        self._enter()
        items = []
        while not self.peek(end):
            items.append(read())
        self._depth -= 1
        return items

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise EvaluationError("eval_cancel_error", "GraphQL is nested too deeply")

    # --- what both kinds of document have -------------------------------------------------

    def directives(self, *, constant: bool) -> list[Node]:
        """``@name(args) …``."""
        directives = []
        while self.skip("@"):
            place = self.token
            name = self.name()
            arguments = self.arguments(constant=constant)
            directives.append(make("Directive", place, Name=name, Arguments=arguments))
        return directives

    def arguments(self, *, constant: bool) -> list[Node]:
        """``(name: value …)``, or nothing."""
        return self.some("(", ")", lambda: self._argument(constant=constant))[0]

    def _argument(self, *, constant: bool) -> Node:
        place, comment = self.token, self.comment
        name = self.name()
        self.expect(":")
        value = self.value(constant=constant)
        return make("Argument", place, Name=name, Value=value, Comment=comment)

    def value(self, *, constant: bool) -> Node:
        """Returns a literal, or a variable where the value need not be constant."""
        place, comment = self.token, self.comment
        if self.peek("["):
            children = self.many(
                "[", "]", lambda: make("ChildValue", Value=self.value(constant=constant))
            )
            return make("Value", place, Kind=tree.LIST, Children=children, Comment=comment)
        if self.peek("{"):
            fields = self.many("{", "}", lambda: self._object_field(constant=constant))
            return make("Value", place, Kind=tree.OBJECT, Children=fields, Comment=comment)
        if self.peek("$") and not constant:
            name = self.variable()
            return make("Value", place, Kind=tree.VARIABLE, Raw=name)
        if self.peek(lexer.NAME):
            kind = _NAMED_LITERALS.get(place.value, tree.ENUM)
        elif place.kind in _LITERALS:
            kind = _LITERALS[place.kind]
        else:
            raise self.unexpected()
        self.next()
        return make("Value", place, Kind=kind, Raw=place.value)

    def _object_field(self, *, constant: bool) -> Node:
        place, comment = self.token, self.comment
        name = self.name()
        self.expect(":")
        value = self.value(constant=constant)
        return make("ChildValue", place, Name=name, Value=value, Comment=comment)

    def variable(self) -> str:
        """``$name``."""
        self.expect("$")
        return self.name()

    def type_reference(self) -> Node:
        """``Name``, ``[Type]``, and either with ``!``."""
        if self.skip("["):
            place = self.token
            self._enter()
            reference = make("Type", place, Elem=self.type_reference())
            self._depth -= 1
            self.expect("]")
        else:
            place = self.token
            reference = make("Type", place, NamedType=self.name())
        reference["NonNull"] = self.skip("!")
        return reference

    def operation(self) -> str:
        """``query``, ``mutation`` or ``subscription``."""
        if not self.peek(lexer.NAME) or self.token.value not in _OPERATIONS:
            raise self.unexpected()
        return self.next().value


def parse_query(source: str) -> Node:
    """Returns the tree of a query document; raises :class:`BuiltinError`."""
    return _QueryParser(source).document()


class _QueryParser(Parser):
    """Executable documents (GraphQL, 2.2)."""

    def document(self) -> Node:
        """Returns the whole document."""
        document = make("QueryDocument")
        while not self.peek(lexer.END):
            description, before = self.description()
            if description is not None and self.peek("{"):
                raise located(f"Unexpected {description}", description.line, description.column)
            documentation = {
                "Description": "" if description is None else description.value,
                "Comment": comments([*before, *self.comments]),
            }
            if self.peek(lexer.NAME, "fragment"):
                document["Fragments"].append(self._fragment_definition(documentation))
            elif self.peek("{") or (self.peek(lexer.NAME) and self.token.value in _OPERATIONS):
                document["Operations"].append(self._operation_definition(documentation))
            else:
                raise self.unexpected()
        return document

    def _operation_definition(self, documentation: Node) -> Node:
        node = make("OperationDefinition", self.token, Operation="query")
        if not self.peek("{"):  # gqlparser keeps no comment of the short form
            node |= documentation
            node["Operation"] = self.operation()
            if self.peek(lexer.NAME):
                node["Name"] = self.next().value
            node["VariableDefinitions"] = self._variables()
            node["Directives"] = self.directives(constant=False)
        node["SelectionSet"] = self._selections()
        return node

    def _variables(self) -> list[Node]:
        return self.some("(", ")", self._variable_definition)[0]

    def _variable_definition(self) -> Node:
        description, before = self.description()
        node = make("VariableDefinition", self.token, Comment=comments([*before, *self.comments]))
        node["Description"] = "" if description is None else description.value
        node["Variable"] = self.variable()
        self.expect(":")
        node["Type"] = self.type_reference()
        if self.skip("="):
            node["DefaultValue"] = self.value(constant=True)
        node["Directives"] = self.directives(constant=False)
        return node

    def _selections(self) -> list[Node]:
        if not self.peek("{"):
            raise self.error(f"Expected {{, found {self.token.kind}")
        return self.some("{", "}", self._selection)[0]

    def _selection(self) -> Node:
        return self._fragment() if self.peek("...") else self._field()

    def _field(self) -> Node:
        node = make("Field", self.token, Comment=self.comment)
        node["Alias"] = self.name()
        node["Name"] = self.name() if self.skip(":") else node["Alias"]
        node["Arguments"] = self.arguments(constant=False)
        node["Directives"] = self.directives(constant=False)
        if self.peek("{"):
            node["SelectionSet"] = self._selections()
        return node

    def _fragment(self) -> Node:
        comment = self.comment
        self.expect("...")
        if self.peek(lexer.NAME) and self.token.value != "on":
            node = make("FragmentSpread", self.token, Comment=comment, Name=self.name())
            node["Directives"] = self.directives(constant=False)
            return node
        node = make("InlineFragment", self.token, Comment=comment)
        if self.token.value == "on":
            self.next()
            node["TypeCondition"] = self.name()
        node["Directives"] = self.directives(constant=False)
        node["SelectionSet"] = self._selections()
        return node

    def _fragment_definition(self, documentation: Node) -> Node:
        node = make("FragmentDefinition", self.token, **documentation)
        self.keyword("fragment")
        if self.token.value == "on":
            raise self.unexpected()
        node["Name"] = self.name()
        node["VariableDefinition"] = self._variables()
        self.keyword("on")
        node["TypeCondition"] = self.name()
        node["Directives"] = self.directives(constant=False)
        node["SelectionSet"] = self._selections()
        return node
