"""Queries that return the values of expressions beside the bindings, as ``opa eval`` does."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins.registry import BUILTINS
from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.syntax import ast
from webhook.rego.syntax.parser import parse_query
from webhook.rego.syntax.unparse import unparse
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.rego.engine import EvaluationContext, Program
    from webhook.rego.location import Location
    from webhook.rego.run.values import Value

_CAPTURED: Final = "__value"
_CAPTURED_NAME: Final = re.compile(rf"\b{_CAPTURED}\d+\b")
_RELATIONS_OF_TERMS: Final = frozenset({"assign", "eq"})


@dataclass(frozen=True, slots=True)
class QueryExpression:
    """One expression of a query: its text, its place and, in one solution, its value."""

    text: str
    location: Location
    value: Any = True


@dataclass(frozen=True, slots=True)
class Solution:
    """One solution of a query."""

    expressions: tuple[QueryExpression, ...]
    bindings: dict[str, Any]


class ResultQuery:
    """A query over a program. Raises :class:`~webhook.rego.errors.RegoErrors`."""

    def __init__(
        self,
        program: Program,
        source: str,
        *,
        version: ast.RegoVersion = "v1",
        package: str = "",
        imports: Sequence[ast.Import] = (),
    ) -> None:
        body = parse_query(source, version)
        self._expressions = tuple(_expressions(source, body))
        self._captured: dict[int, str] = {}
        capturing = self._capturing(body)
        try:
            self._query = program.query(capturing, package=package, imports=imports)
        except RegoErrors as errors:
            raise RegoErrors([_unnamed(error) for error in errors.errors]) from None

    def __call__(
        self, input_value: Value, data: dict[str, Value], context: EvaluationContext
    ) -> Iterator[Solution]:
        """Yields every solution; raises :class:`~webhook.rego.errors.EvaluationError`."""
        for bindings in self._query(input_value, data, context):
            values = [
                bindings.get(self._captured.get(i, ""), True) for i in range(len(self._expressions))
            ]
            results = [
                replace(expression, value=value)
                for expression, value in zip(self._expressions, values, strict=True)
            ]
            named = {
                name: value for name, value in bindings.items() if not name.startswith(_CAPTURED)
            }
            yield Solution(tuple(results), named)

    def _capturing(self, body: ast.Body) -> ast.Body:
        """Returns the body with each expression's value in its own variable.

        A value may be false if the query is a single expression (OPA v1/rego/rego.go,
        rewriteQueryToCaptureValue).
        """
        captured: list[ast.Literal_] = []
        must_hold: list[ast.Literal_] = []
        for number, literal in enumerate(body):
            if not isinstance(literal, ast.Expr) or not _has_value(literal):
                captured.append(literal)
                continue
            name = self._captured[number] = f"{_CAPTURED}{number}"
            variable = ast.Var(name, location=literal.location)
            equal = ast.Call(ast.Var("eq"), (variable, literal.term), location=literal.location)
            captured.append(replace(literal, term=equal))
            must_hold.append(ast.Expr(variable, location=literal.location))
        return (*captured, *(must_hold if len(body) > 1 or _iterates(body) else ()))


def _unnamed(error: RegoLoadError) -> RegoLoadError:
    """Returns the fault without the names that are ours."""
    message = _CAPTURED_NAME.sub("_", error.message)
    return RegoLoadError(error.code, message, error.location, details=error.details)


def _has_value(literal: ast.Expr) -> bool:
    term = literal.term
    if literal.negated:
        return False
    if not isinstance(term, ast.Call):
        return True
    name = unparse(term.operator)
    builtin = BUILTINS.get(name)
    if name in _RELATIONS_OF_TERMS:
        return False
    return builtin is None or (
        builtin.result is not None and len(term.args) == len(builtin.operands)
    )


def _iterates(body: ast.Body) -> bool:
    """Whether a reference of the query has variables in its path, or a relation is called."""
    return any(_varies(part) for literal in body for part in _parts(literal))


def _varies(part: Any) -> bool:
    if isinstance(part, ast.Ref):
        return any(isinstance(step, ast.Var) for step in part.path)
    if isinstance(part, ast.Call):
        builtin = BUILTINS.get(unparse(part.operator))
        return builtin is not None and builtin.relation
    return False


def _parts(node: Any) -> Iterator[ast.Term]:
    """Yields all terms, except the terms of comprehensions."""
    if isinstance(node, ast.COMPREHENSIONS):
        return
    if isinstance(node, tuple):
        for item in node:
            yield from _parts(item)
    elif hasattr(node, "__dataclass_fields__"):
        yield node
        for name in node.__dataclass_fields__:
            if name != "location":
                yield from _parts(getattr(node, name))


def _expressions(source: str, body: ast.Body) -> Iterator[QueryExpression]:
    """Returns each literal with the source text up to the next literal."""
    starts = [literal.location.offset for literal in body]
    for literal, start, end in zip(body, starts, [*starts[1:], len(source)], strict=True):
        yield QueryExpression(source[start:end].strip().rstrip(";").rstrip(), literal.location)
