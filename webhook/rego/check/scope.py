"""Stage 3: names while a rule is lowered: where they are declared, and their meaning there.

As OPA, it keeps two sets: the names that a body declares anywhere (they hide imports and rules in
all of it), and the names declared, assigned or merely seen so far (v1/ast/compile.go,
declaredVarStack and localDeclaredVars).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.rego.check.strict import nodes
from webhook.rego.syntax import ast

SEEN, ARG, ASSIGNED, DECLARED = "seen", "arg", "assigned", "declared"

_COMPLAINTS: Final = {
    SEEN: "var {} referenced above",
    ASSIGNED: "var {} assigned above",
    DECLARED: "var {} declared above",
    ARG: "arg {} redeclared",
}


class Scopes:
    """The nested scopes of one rule or query."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        """The source name of each declared variable, by its unique name."""
        self.hidden: list[set[str]] = []
        self.levels: list[dict[str, tuple[str, str]]] = [{}]
        self.count = 0

    def fresh(self) -> str:
        """Returns a name that no source text can contain."""
        self.count += 1
        return f" {self.count}"

    def push(self, hidden: set[str]) -> None:
        """Enters a body that declares these names somewhere."""
        self.hidden.append(hidden)
        self.levels.append({})

    def pop(self) -> None:
        """Leaves it."""
        self.hidden.pop()
        self.levels.pop()

    def hides(self, name: str) -> bool:
        """Whether the name is declared somewhere around, so that it is no import or rule."""
        for hidden in self.hidden:  # noqa: SIM110  # a generator takes four times as long
            if name in hidden:
                return True
        return False

    def declared(self, name: str) -> str | None:
        """Returns the unique name, if the name has been declared by now."""
        for level in reversed(self.levels):
            known = level.get(name)
            if known is not None and known[0] != name:
                return known[0]
        return None

    def seen(self, name: str) -> None:
        """The name was used undeclared: it cannot be declared in this scope any more."""
        self.levels[-1].setdefault(name, (name, SEEN))

    def declare(self, name: str, how: str) -> tuple[str, str | None]:
        """The new variable's unique name, and OPA's complaint where it cannot be declared."""
        known = self.levels[-1].get(name)
        if known is not None:
            return name, _COMPLAINTS[known[1]].format(name)
        self.count += 1
        unique = f"{self.count} {name}" if name[0] != "$" else f"${self.count} {name}"
        self.levels[-1][name] = (unique, how)
        self.names[unique] = name
        return unique, None


def declared_in(body: Iterable[ast.Literal_]) -> set[str]:
    """Names that ``:=`` and ``some`` declare in the body, outside comprehensions."""
    names: set[str] = set()
    for literal in body:
        _declared(literal, names)
    return names


def _declared(literal: ast.Literal_, names: set[str]) -> None:
    if isinstance(literal, ast.Expr):
        term = literal.term
        if isinstance(term, ast.Call) and is_assignment(term) and term.args:
            target = term.args[0]
            if isinstance(target, ast.Var):
                names.add(target.name)
            else:
                names.update(term_vars(target))
    elif isinstance(literal, ast.SomeDecl):
        names.update(var.name for var in literal.names)
    elif isinstance(literal, ast.SomeIn):
        if literal.key is not None:
            names.update(_pattern_vars(literal.key))
        names.update(_pattern_vars(literal.value))
    elif isinstance(literal, (ast.Every, ast.Not)):
        for inner in literal.body:
            _declared(inner, names)
    elif isinstance(literal, ast.Logic):
        for inner in (*literal.left, *literal.right):
            _declared(inner, names)


def _pattern_vars(term: ast.Term) -> Iterator[str]:
    """Yields the variables of :func:`term_vars` and those shown by template strings."""
    yield from term_vars(term)
    if isinstance(term, ast.TemplateString):
        for part in term.parts:
            shown = part.term if isinstance(part, ast.Expr) else part
            if not isinstance(
                shown, (str, ast.Not, ast.Logic, ast.SomeDecl, ast.SomeIn, ast.Every)
            ):
                yield from term_vars(shown)
                yield from _closure_vars(shown)
    elif isinstance(term, ast.Array):
        for item in term.items:
            yield from _pattern_vars(item)
    elif isinstance(term, ast.Object):
        for pair in term.items:
            for item in pair:
                yield from _pattern_vars(item)


def _closure_vars(term: ast.Term) -> Iterator[str]:
    """Yields the variables in the comprehensions of a term, including nested bodies."""
    for node in nodes(term):
        if isinstance(node, ast.COMPREHENSIONS):
            called = {
                id(call.operator if isinstance(call.operator, ast.Var) else call.operator.head)
                for call in nodes(node)
                if isinstance(call, ast.Call)
            }
            for inner in nodes(node):
                if isinstance(inner, ast.Var) and id(inner) not in called:
                    yield inner.name


def is_assignment(call: ast.Call) -> bool:
    """Whether the call is ``:=``."""
    return isinstance(call.operator, ast.Var) and call.operator.name == "assign"


def term_vars(term: ast.Term) -> Iterator[str]:
    """Yields every variable in a term, heads of references included, comprehensions left out."""
    if isinstance(term, ast.Var):
        yield term.name
    elif isinstance(term, ast.Ref):
        yield from term_vars(term.head)
        for part in term.path:
            yield from term_vars(part)
    elif isinstance(term, (ast.Array, ast.Set)):
        for item in term.items:
            yield from term_vars(item)
    elif isinstance(term, ast.Object):
        for key, value in term.items:
            yield from term_vars(key)
            yield from term_vars(value)
    elif isinstance(term, ast.Call):
        for arg in term.args:
            yield from term_vars(arg)
