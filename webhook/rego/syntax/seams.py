"""Stage 1: what the readers of terms, collections and bodies ask of each other: each may hold the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from webhook.rego.syntax.ast import Body, Literal_, Term


class ReadsTerms(Protocol):
    """What bodies and rules ask of the parser of terms, which needs them in turn."""

    def expression(self, pairs: bool = True) -> Term:
        """A term with operators; ``pairs`` where ``k, v in xs`` may stand."""

    def term(self) -> Term:
        """One operand: a scalar, reference, call, collection, comprehension or group."""

    def rest(self, left: Term) -> Term:
        """The operators after a first operand: an element of a list."""

    def listed(self, end: int, terms: list[Term]) -> tuple[Term, ...]:
        """TermParser with commas between up to the token ``end``, which is consumed."""


class ReadsCollections(Protocol):
    """Reads what stands in brackets and braces."""

    def collection(self, first: int, kind: int) -> Term:
        """A literal or comprehension, remembered by place: callers may come twice."""


class ReadsBodies(Protocol):
    """Reads what stands within comprehensions, template strings and operands of ``and`` and ``or``."""

    def body(self, end: int) -> Body:
        """Literals up to the token ``end``, which stays."""

    def literal(self) -> Literal_:
        """One literal of a body."""
