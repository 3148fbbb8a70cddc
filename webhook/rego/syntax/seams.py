"""Stage 1: what the parsers of terms, collections and bodies call of each other.

A term may hold a body, and a body holds terms, so neither module can import the other. Each knows
these Protocols, and :mod:`webhook.rego.syntax.parser` puts the parsers together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from webhook.rego.syntax.ast import Body, Literal_, Term


class ReadsTerms(Protocol):
    """Reads terms: :class:`webhook.rego.syntax.parser_terms.TermParser`."""

    def expression(self, pairs: bool = True) -> Term:
        """Read a term with its operators; with ``pairs`` also ``k, v in xs``."""

    def term(self) -> Term:
        """Read one operand: a scalar, reference, call, collection, comprehension or group."""

    def rest(self, left: Term) -> Term:
        """Read the operators after ``left``, the first operand of an element of a list."""

    def listed(self, end: int, terms: list[Term]) -> tuple[Term, ...]:
        """Read terms separated by commas, and the token ``end`` behind them."""


class ReadsCollections(Protocol):
    """Reads ``[…]`` and ``{…}``: :class:`webhook.rego.syntax.parser_collections.CollectionParser`."""

    def collection(self, first: int, kind: int) -> Term:
        """Read a literal or comprehension; a second call for the same token is answered from memory."""


class ReadsBodies(Protocol):
    """Reads bodies and their literals: :class:`webhook.rego.syntax.parser_bodies.BodyParser`."""

    def body(self, end: int) -> Body:
        """Read literals up to the token ``end``, which is not consumed."""

    def literal(self) -> Literal_:
        """Read one literal."""
