"""Finds the documents that several policies of one review can share: libraries of equal text.

The first policy that reads such a document computes it (:func:`webhook.rego.run.memo.shared`).
"""

from __future__ import annotations

import hashlib
from dataclasses import field
from typing import TYPE_CHECKING, Final

from webhook.rego.check import ir
from webhook.rego.run.memo import shared_name
from webhook.rego.run.runtime import MISSING
from webhook.rego.write.constants import PARAMETERS, is_input, is_of_parameters
from webhook.rego.write.purity import Purity, PurityFacts
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection

    from webhook.rego.check.ir import Lit, Term
    from webhook.rego.check.tree import Node
    from webhook.rego.run.values import Value

REVIEW: Final = "review"
"""The field of the input that is the same for all policies of a review."""


@dataclass(slots=True, eq=False)
class _Reach:
    """The parameters and modules that a document depends on, directly or not."""

    parameters: set[str] = field(default_factory=set)
    """Fields of ``input.parameters``."""
    modules: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Versions and texts of the modules with the rules, by identity."""

    def add(self, other: _Reach) -> None:
        """Adds all that the other document depends on."""
        self.parameters |= other.parameters
        self.modules |= other.modules


class Sharing(Purity):
    """Names documents that depend only on ``input.review``, some parameters and the rules' text.

    Programs whose modules have the same texts compute the same value, so a review computes it once.
    The document must be pure in the sense of :class:`Purity`: it reads no other part of the input.
    """

    def __init__(self, program: PurityFacts) -> None:
        super().__init__(program)
        self._reaches: dict[int, _Reach] = {}
        self._reach = _Reach()
        self._bound: Value = MISSING

    def bind(self, parameters: Value) -> None:
        """Examines all documents now, before values replace their references to parameters."""
        for node in self._program.tree.root.walk():
            if node.rules:
                self.document(node)
        self._bound = parameters

    def named(
        self, node: Node, kind: str, module_ids: Collection[int]
    ) -> tuple[str, tuple[str, ...]]:
        """Returns the shared name of the document at a node, and the parameters that it reads.

        The name is empty where the document is not shared. There are two cases: its value depends on
        more than the review, or its rules are in one of the program's own modules (``module_ids``), or read one.
        """
        if any(id(rule.module) in module_ids for rule in node.rules) or not self.document(node):
            return "", ()
        reach = self._reaches[id(node)]
        if not reach.modules.keys().isdisjoint(module_ids):
            return "", ()
        text = repr((kind, node.path, sorted(reach.modules.values())))
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        fields = tuple(sorted(reach.parameters))
        if self._bound is MISSING:
            return name, fields
        return shared_name(name, fields, self._bound), ()

    def term(self, term: Term) -> bool:
        """Returns whether a term has one value for a review and parameters."""
        if not isinstance(term, ir.Ref) or not is_input(term.head):
            return super().term(term)
        names = [part.value if isinstance(part, ir.Const) else MISSING for part in term.path[:2]]
        if names[:1] == [PARAMETERS]:
            return len(names) > 1 and self._reads(names[1]) and self._terms(term.path)
        return names[:1] == [REVIEW] and self._terms(term.path)

    def document(self, node: Node) -> bool:
        """Returns whether the rules at a node have one value for a review and parameters."""
        reach = self._reaches.get(id(node))
        if reach is None:
            modules = {id(rule.module): rule.module for rule in node.rules}
            reach = self._reaches[id(node)] = _Reach()
            reach.modules = {at: (module.version, module.source) for at, module in modules.items()}
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
        """Notes a read field of the parameters; returns False if the term is no field name."""
        if type(name) is not str:
            return False
        self._reach.parameters.add(name)
        return True
