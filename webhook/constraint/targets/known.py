"""The built-in targets; document targets by the short names of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.constraint import wildcard
from webhook.constraint.review import Document
from webhook.constraint.targets import admission
from webhook.constraint.targets.documents import DocumentTarget
from webhook.constraint.targets.gcp import GcpTarget
from webhook.constraint.targets.terraform import TerraformTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.constraint.target import Target


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
        """Returns the schema of ``spec.match``."""
        return _SCHEMA

    def matcher(self, match: Mapping[str, Any]) -> Callable[[Document], bool]:
        """Returns a test of the document's name."""
        names = match.get("names") or ()
        test = wildcard.any_of(names) if names else None
        return lambda document: test is None or test(document.name)

    def documents(self, value: Any, name: str) -> tuple[Document, ...]:
        """Returns a file's value as one document."""
        return (Document(value, name, NAME, name),)


DOCUMENT_TARGETS: Final[Mapping[str, DocumentTarget]] = {
    "json": JsonTarget(),
    "terraform": TerraformTarget(),
    "gcp": GcpTarget(),
}

TARGETS: Final[tuple[Target, ...]] = (admission.AdmissionTarget(), *DOCUMENT_TARGETS.values())
"""All built-in targets; admission first, which takes precedence in a template."""

ADMISSION_ALONE: Final = frozenset({admission.NAME})
"""The only target of a server's reviews."""
