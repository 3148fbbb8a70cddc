"""The target ``json``: any JSON document, a Terraform plan for instance.

A template for it reads the document as ``input.review``. A constraint's match
may name documents; there is nothing else that every document has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.constraint import wildcard
from webhook.constraint.review import Document, Review
from webhook.constraint.target import CompiledMatch

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

NAME: Final = "json"

_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Which documents the constraint applies to.",
    "properties": {
        "names": {
            "type": "array",
            "description": "Names of documents; a * in front or at the end stands for anything.",
            "items": {"type": "string"},
        }
    },
}


class JsonTarget:
    """Reviews :class:`~webhook.constraint.review.Document`."""

    @property
    def name(self) -> str:
        """The target's name in templates."""
        return NAME

    def match_schema(self) -> dict[str, Any]:
        """The schema of ``spec.match``."""
        return _SCHEMA

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """The schema says everything."""

    def compile_match(self, match: Mapping[str, Any]) -> CompiledMatch:
        """Compile ``spec.match``: documents are keyed by their name."""
        names = match.get("names") or ()
        test = wildcard.any_of(names) if names else None

        def selects(key: Hashable) -> bool:
            return test is None or test(str(key))

        def full(review: Review) -> bool:
            return selects(review.key)

        return CompiledMatch(selects=selects, residual=None, residual_key="", full=full)

    def handle_review(self, value: Any, namespaces: Mapping[str, Any]) -> Review | None:
        """A document is reviewed as it is."""
        del namespaces
        if type(value) is not Document:
            return None
        return Review(target=NAME, document=value.value, key=value.name)

    def is_spared(self, review: Review, namespaces: Collection[str]) -> bool:
        """No document is."""
        del review, namespaces
        return False

    def process_data(self, obj: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Documents are not kept as data."""
        del obj
        return None
