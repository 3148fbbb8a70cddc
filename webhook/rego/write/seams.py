"""What the emitters of one function call of each other.

Terms hold references, references iterate and so unify, comprehensions hold bodies, and bodies hold
all of these. So no emitter's module can be below all others. Each knows these Protocols, and
:mod:`webhook.rego.write.emitters` puts the emitters together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.check import ir
    from webhook.rego.check.tree import Node
    from webhook.rego.run.values import Value
    from webhook.rego.write.expression import Expression


class TermEmitter(Protocol):
    """Writes terms: :class:`webhook.rego.write.terms.Terms`."""

    def operand(self, term: ir.Term) -> Expression:
        """The term's value; what must hold for it to have one is written before."""

    def atom(self, term: ir.Term) -> Expression:
        """The term's value as a name or scalar constant, which may be repeated at no cost."""

    def arguments(self, args: list[ir.Term]) -> list[Expression]:
        """The operands of a call; one may use what iterating another binds."""

    def constant(self, value: Value) -> Expression:
        """A known value; there is no solution where it is undefined."""

    def static(self, term: ir.Term) -> Value:
        """The term's value where that is known already, UNDEFINED included, else MISSING."""

    def known(self, name: str) -> Value:
        """A variable's value where that is known already, else MISSING."""

    def root(self, root: Literal["input", "data"]) -> Expression:
        """The input, where there is one, or the base documents."""

    def bound(self, term: ir.Term) -> bool:
        """Whether every variable of the term has a value."""

    def evaluable(self, term: ir.Term) -> bool:
        """Whether the term has values now: bound, or a reference that can be iterated."""

    def single_use(self, term: ir.Term) -> bool:
        """Whether it is a variable that nothing else reads."""


class ReferenceEmitter(Protocol):
    """Writes references: :class:`webhook.rego.write.references.References`."""

    def reference(self, ref: ir.Ref) -> Expression:
        """The value of a reference; loops are opened for its unbound variables."""

    def data(self, ref: ir.Ref) -> Expression:
        """The value of a reference below ``data``: documents of rules, base documents, or both."""

    def document(self, node: Node, path: list[ir.Term], at: int) -> Expression:
        """The document of the rules at a node, and the rest of the path in it."""

    def lookup(self, of: Expression, at: Expression) -> Expression:
        """``of[at]`` for a bound name."""


class PatternEmitter(Protocol):
    """Writes unification: :class:`webhook.rego.write.unification.Unification`."""

    def match(self, pattern: ir.Term, value: Expression) -> None:
        """What follows happens for a value that fits the pattern, whose variables it binds."""

    def unify(self, a: ir.Term, b: ir.Term) -> None:
        """Unify two terms; both may hold unbound variables."""

    def equality(self, a: Expression, b: Expression) -> Expression:
        """Whether two values are equal, as cheap as their kinds allow."""

    def true(self, value: Expression) -> None:
        """What follows happens where the (defined) value is not false."""

    def give(self, out: ir.Term | None, value: Expression) -> None:
        """The result of a call goes to its output, or must be true."""

    def truth(self, out: ir.Term | None, test: Expression) -> None:
        """The result of a test goes to its output, or the test must hold."""


class CallEmitter(Protocol):
    """Writes calls: :class:`webhook.rego.write.calls.Calls`."""

    def call(self, lit: ir.Call) -> None:
        """A call that is a literal."""


class BodyEmitter(Protocol):
    """Writes bodies: :class:`webhook.rego.write.bodies.Bodies`."""

    def body(self, body: ir.Body) -> None:
        """Open the nest of a body; what its solutions do is written next."""

    def exists(self, write: Callable[[], None]) -> Expression:
        """Whether a body, written by ``write``, has a solution."""

    def comprehension(self, term: ir.Comprehension) -> Expression:
        """The collection of a comprehension's solutions."""

    def collection(self, term: ir.Comprehension) -> Expression:
        """The collection of a comprehension's solutions, written in place."""

    def add_member(self, result: str, value: Expression) -> None:
        """Add to a set being built as a ``dict`` from key to member."""

    def template(self, term: ir.Template) -> Expression:
        """A template string."""
