"""What has one value in all evaluations: nothing in it reads what may be another the next time.

And what has one in all that a review asks of its policies: those with the same library share it.
"""

from __future__ import annotations

import hashlib
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol

from webhook.rego.check import ir
from webhook.rego.run.memo import shared_name
from webhook.rego.run.runtime import MISSING
from webhook.rego.write.constants import (
    PARAMETERS,
    gets_parameters,
    is_computable,
    is_input,
    is_of_parameters,
)
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.check.ir import Body, Lit, Term
    from webhook.rego.check.tree import Node, Tree
    from webhook.rego.run.values import Value


class PurityFacts(Protocol):
    """What decides it: the rules, the built-ins, and what modifiers replace."""

    tree: Tree
    builtins: Mapping[str, Builtin]
    mocked: frozenset[ir.Function]

    def replaceable(self, path: tuple[Value, ...]) -> bool:
        """Whether some modifier of the program may replace the document at this path."""


class Purity:
    """Which terms and documents of a program read neither input nor base documents.

    They ask no built-in either that may answer otherwise another time. With ``parameters``
    they may read ``input.parameters``: they have one value for each constraint.
    """

    def __init__(self, program: PurityFacts, *, parameters: bool = False) -> None:
        self._program = program
        self._parameters = parameters
        self._known: dict[int, bool] = {}

    def term(self, term: Term) -> bool:
        """Whether a term has one value."""
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
        if isinstance(lit, ir.Eq):
            return self.term(lit.a) and self.term(lit.b)
        if isinstance(lit, ir.Test):
            return self.term(lit.term)
        if isinstance(lit, ir.Call):
            out = () if lit.out is None else (lit.out,)
            read = self._parameters and gets_parameters(lit)
            args = lit.args[1:] if read else lit.args
            return self._function(lit.name) and self._terms((*args, *out))
        if isinstance(lit, ir.Not):
            return self._body(lit.body)
        if isinstance(lit, ir.Every):
            return self.term(lit.domain) and self._body(lit.body)
        if isinstance(lit, ir.Logic):
            return self._body(lit.left) and self._body(lit.right)
        return False

    def _function(self, name: ir.Function) -> bool:
        if name in self._program.mocked:
            return False
        if isinstance(name, str):
            return name == "walk" or is_computable(self._program.builtins[name])
        node = self._program.tree.function(name)
        return node is not None and self.document(node)


REVIEW: Final = "review"
"""What of the input all policies that a review asks are given alike."""


@dataclass(slots=True, eq=False)
class _Reach:
    """What a document reads, directly or not."""

    parameters: set[str] = field(default_factory=set)
    """Fields of ``input.parameters``."""
    modules: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Versions and texts of the modules with the rules, by identity."""

    def add(self, other: _Reach) -> None:
        """All that the other one reads, too."""
        self.parameters |= other.parameters
        self.modules |= other.modules


class Sharing(Purity):
    """Which documents are a function of ``input.review`` and some parameters, and by which text.

    Programs whose modules have the same texts compute the same of the same: a review asks one of
    them. Parameters that are going to be bound are looked at before.
    """

    def __init__(self, program: PurityFacts) -> None:
        super().__init__(program)
        self._reaches: dict[int, _Reach] = {}
        self._reach = _Reach()
        self._bound: Value = MISSING

    def bind(self, parameters: Value) -> None:
        """Look at all documents, whose references to parameters are about to be replaced."""
        for node in self._program.tree.root.walk():
            if node.rules:
                self.document(node)
        self._bound = parameters

    def named(self, node: Node, kind: str, own: Collection[int]) -> tuple[str, tuple[str, ...]]:
        """The name under which the document at a node is shared, and parameters that add to it.

        Empty where it is not shared: it may have other values, or reads what is in one of its
        program's ``own`` modules, which no other has.
        """
        if any(id(rule.module) in own for rule in node.rules) or not self.document(node):
            return "", ()
        reach = self._reaches[id(node)]
        if not reach.modules.keys().isdisjoint(own):
            return "", ()
        text = repr((kind, node.path, sorted(reach.modules.values())))
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        fields = tuple(sorted(reach.parameters))
        return (
            (name, fields)
            if self._bound is MISSING
            else (shared_name(name, fields, self._bound), ())
        )

    def term(self, term: Term) -> bool:
        """Whether a term has one value for a review and parameters."""
        if not isinstance(term, ir.Ref) or not is_input(term.head):
            return super().term(term)
        names = [part.value if isinstance(part, ir.Const) else MISSING for part in term.path[:2]]
        if names[:1] == [PARAMETERS]:
            return len(names) > 1 and self._reads(names[1]) and self._terms(term.path)
        return names[:1] == [REVIEW] and self._terms(term.path)

    def document(self, node: Node) -> bool:
        """Whether the rules at a node, a function's included, have."""
        reach = self._reaches.get(id(node))
        if reach is None:
            modules = {id(rule.module): rule.module for rule in node.rules}
            reach = self._reaches[id(node)] = _Reach()
            reach.modules = {at: (one.version, one.source) for at, one in modules.items()}
            outer, self._reach = self._reach, reach
            super().document(node)
            self._reach = outer
        self._reach.add(reach)
        return super().document(node)

    def _literal(self, lit: Lit) -> bool:
        if isinstance(lit, ir.Call) and lit.name == "object.get" and not lit.withs:
            of, name = lit.args[:2]
            if isinstance(of, ir.Ref) and is_of_parameters(of) and len(of.path) == 1:
                out = () if lit.out is None else (lit.out,)
                is_field = isinstance(name, ir.Const) and self._reads(name.value)
                return is_field and self._terms((*lit.args[2:], *out))
        return super()._literal(lit)

    def _reads(self, name: Value) -> bool:
        """Note that a field of the parameters is read; False for what is no name of one."""
        if type(name) is not str:
            return False
        self._reach.parameters.add(name)
        return True
