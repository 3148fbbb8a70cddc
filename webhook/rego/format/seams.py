"""What the writers of terms and of bodies ask of each other: each may hold the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from webhook.rego.format.nodes import BodyNode, ExprNode, Place


class WritesBodies(Protocol):
    """Writes what stands within comprehensions and template strings."""

    def expr(self, expr: ExprNode) -> None:
        """One literal."""

    def inner_body(self, brackets: str, body: BodyNode, before: Place, whole: Place) -> None:
        """A body within ``brackets``: on the line it is on, or on lines of its own."""
