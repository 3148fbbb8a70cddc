"""Finds terms and documents with one value in all evaluations: they read no changing data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.check import ir
from webhook.rego.check.variables import bodies_of, terms_of
from webhook.rego.write.constants import gets_parameters, is_computable, is_of_parameters
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.check.ir import Body, Lit, Term
    from webhook.rego.check.tree import Node, Tree
    from webhook.rego.run.values import Value


@dataclass(frozen=True, slots=True)
class PurityFacts:
    """The facts that decide purity: the rules, the built-ins, and the targets of modifiers."""

    tree: Tree
    builtins: Mapping[str, Builtin]
    mocked: frozenset[ir.Function]
    replaced: frozenset[tuple[str, ...]]

    def replaceable(self, path: tuple[Value, ...]) -> bool:
        """Whether some modifier of the program may replace the document at this path."""
        return any(path[: len(target)] == target for target in self.replaced)


class Purity:
    """Finds the terms and documents of a program that read neither input nor base documents.

    They call no built-in whose result may vary either. With ``parameters`` they may read
    ``input.parameters`` and have one value for each constraint.
    """

    def __init__(self, program: PurityFacts, *, parameters: bool = False) -> None:
        self._program = program
        self._parameters = parameters
        self._known: dict[int, bool] = {}

    def term(self, term: Term) -> bool:
        """Whether a term has the same value in all evaluations."""
        if isinstance(term, ir.Const):
            return True
        if isinstance(term, ir.Var):
            return term.name not in ("input", "data")
        if isinstance(term, ir.Ref):
            if isinstance(term.head, ir.Var) and term.head.name == "data":
                return self._reference(term.path) and self._terms(term.path)
            if self._parameters and is_of_parameters(term):
                return self._terms(term.path)
            return self.term(term.head) and self._terms(term.path)
        if isinstance(term, (ir.Array, ir.Set)):
            return self._terms(term.items)
        if isinstance(term, ir.Object):
            return all(self._terms(item) for item in term.items)
        if isinstance(term, ir.Comprehension):
            parts = (term.value,) if term.key is None else (term.key, term.value)
            return self._terms(parts) and self._body(term.body)
        return False

    def _terms(self, terms: Iterable[Term]) -> bool:
        return all(map(self.term, terms))

    def _reference(self, path: list[Term]) -> bool:
        """Whether the path leads to rules, and these are pure."""
        node = self._program.tree.root
        for part in path:
            below = node.child(part.value) if isinstance(part, ir.Const) else None
            if below is None:
                return False
            node = below
            if node.rules:
                return node.rules[0].args is None and self.document(node)
        return False

    def document(self, node: Node) -> bool:
        """Whether the rules at a node, a function's included, have."""
        known = self._known.get(id(node))
        if known is None:
            self._known[id(node)] = known = self._rules(node)
        return known

    def _rules(self, node: Node) -> bool:
        if node.dynamic or self._program.replaceable(node.path):
            return False
        for rule in node.rules:
            for branch in rule.branches():
                terms = [*(branch.args or ()), branch.key, branch.value]
                if not self._terms(term for term in terms if term is not None):
                    return False
                if not self._body(branch.body):
                    return False
        return True

    def _body(self, body: Body) -> bool:
        return all(map(self._literal, body))

    def _literal(self, lit: Lit) -> bool:
        if lit.withs:
            return False
        terms = terms_of(lit)
        if isinstance(lit, ir.Call):
            if self._parameters and gets_parameters(lit):
                terms = terms[1:]
            return self._function(lit.name) and self._terms(terms)
        is_visible = isinstance(lit, ir.Print)
        return not is_visible and self._terms(terms) and all(map(self._body, bodies_of(lit)))

    def _function(self, name: ir.Function) -> bool:
        if name in self._program.mocked:
            return False
        if isinstance(name, str):
            return name == "walk" or is_computable(self._program.builtins[name])
        node = self._program.tree.function(name)
        return node is not None and self.document(node)
