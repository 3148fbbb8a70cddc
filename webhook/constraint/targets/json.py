"""The target ``json``: any JSON document, a Terraform plan for instance.

A template for it reads the document as ``input.review``. A constraint's match
may name documents; there is nothing else that every document has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.constraint import wildcard
from webhook.constraint.review import Document
from webhook.constraint.targets.documents import DocumentTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


class JsonTarget(DocumentTarget):
    """Reviews each document whole, under its file's name."""

    name = NAME

    def match_schema(self) -> dict[str, Any]:
        """The schema of ``spec.match``."""
        return _SCHEMA

    def matcher(self, match: Mapping[str, Any]) -> Callable[[Document], bool]:
        """By the document's name."""
        names = match.get("names") or ()
        test = wildcard.any_of(names) if names else None
        return lambda document: test is None or test(document.name)

    def documents(self, value: Any, name: str) -> tuple[Document, ...]:
        """A file's value is one document, whatever it is."""
        return (Document(value, name, NAME, name),)
