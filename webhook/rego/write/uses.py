"""Stage 10: counts the uses of variables and paths in the terms of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.check import ir
from webhook.rego.check.variables import LEAVES, bodies_of, parts_of, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.rego.check.ir import Rule


class Uses:
    """Counts the uses of each variable in the terms of one function, and of paths of the input."""

    def __init__(self) -> None:
        self.variables: dict[str, int] = {}
        self.paths: dict[tuple[str, ...], int] = {}
        self.beginnings: dict[tuple[str, ...], int] = {}
        self.operands: dict[tuple[str, ...], int] = {}
        self._rules: dict[int, dict[str, int]] = {}

    def rule(self, rule: Rule) -> None:
        """Counts one branch of a rule; ``variables`` are then the counts of this branch."""
        self.variables = self._rules[id(rule)] = {}
        self._params = {
            arg.name: f"a{i}" for i, arg in enumerate(rule.args or ()) if isinstance(arg, ir.Var)
        }
        self._terms(rule.rest)
        self._terms(rule.args or ())
        self._terms([term for term in (rule.key, rule.value) if term is not None])
        self._body(rule.body)

    _params: dict[str, str] = {}  # noqa: RUF012  # never changed

    def of(self, rule: Rule) -> dict[str, int]:
        """How often a rule uses each of its variables."""
        counts = self._rules.get(id(rule))
        if counts is None:  # it is written in place of another
            counted = Uses()
            counted.rule(rule)
            counts = self._rules[id(rule)] = counted.variables
        return counts

    def body(self, terms: list[ir.Term], body: ir.Body) -> None:
        """Counts a query."""
        self._terms(terms)
        self._body(body)

    def _body(self, body: ir.Body) -> None:
        for lit in body:
            self._terms(terms_of(lit))
            for modifier in lit.withs:
                self._terms((modifier.value,))
            for inner in bodies_of(lit):
                self._body(inner)

    def _terms(self, terms: Iterable[ir.Term]) -> None:
        variables = self.variables
        for term in terms:
            if type(term) is ir.Var:
                variables[term.name] = variables.get(term.name, 0) + 1
            elif type(term) not in LEAVES:
                self._composite(term)

    def _composite(self, term: ir.Term) -> None:
        if isinstance(term, ir.Ref):
            if isinstance(term.head, ir.Var):
                if term.head.name == "input":
                    self._path(term)
                elif term.head.name in self._params:
                    path = (self._params[term.head.name], *_leading_names(term))
                    self.operands[path] = self.operands.get(path, 0) + 1
            self._terms((term.head,))
        elif isinstance(term, ir.Comprehension):
            if term.key is not None:
                self._terms((term.key,))
            self._terms((term.value,))
            self._body(term.body)
        self._terms(parts_of(term))

    def _path(self, ref: ir.Ref) -> None:
        path = _leading_names(ref)
        self.paths[path] = seen = self.paths.get(path, 0) + 1
        if seen > 1:
            return
        for length in range(2, len(path)):
            self.beginnings[path[:length]] = self.beginnings.get(path[:length], 0) + 1


def _leading_names(ref: ir.Ref) -> tuple[str, ...]:
    """The constant names with which a path begins."""
    names: list[str] = []
    for part in ref.path:
        if not (isinstance(part, ir.Const) and type(part.value) is str):
            break
        names.append(part.value)
    return tuple(names)
