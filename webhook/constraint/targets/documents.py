"""Targets whose reviews are documents: files of any shape, split into what is reviewed.

They have in common that no document is kept as data, that nothing repairs a cluster, and that
there is no index: a document is asked for by every constraint of its target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.review import Document, Review
from webhook.constraint.target import CompiledMatch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping


_SPEC: Final = {"severity": {"type": "string"}, "constraintVersion": {"type": "string"}}


class DocumentTarget(ABC):
    """A target that knows what of a file is reviewed. Write one for a format of your own."""

    name: str
    """The target's name in templates."""

    @abstractmethod
    def match_schema(self) -> dict[str, Any]:
        """The OpenAPI schema of ``spec.match``."""

    @abstractmethod
    def matcher(self, match: Mapping[str, Any]) -> Callable[[Document], bool]:
        """Whether a document is meant by a constraint.

        Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
        """

    @abstractmethod
    def documents(self, value: Any, name: str) -> Iterable[Document]:
        """Split a file's value into the documents to review, each under its name.

        Raises :class:`~webhook.constraint.errors.ReviewError` for what is no such file.
        """

    def spec_schema(self) -> Mapping[str, Any]:
        """Return the schema of the descriptions in config-validator's constraints."""
        return _SPEC

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """Compiling the match checks what the schema cannot."""
        spec = constraint.get("spec")
        match = spec.get("match") if isinstance(spec, dict) else None
        self.matcher(match if isinstance(match, dict) else {})

    def compile_match(self, match: Mapping[str, Any]) -> CompiledMatch:
        """Compile ``spec.match``."""
        matches = self.matcher(match)

        def full(review: Review) -> bool:
            return matches(review.subject)

        return CompiledMatch(selects=_any_key, residual=None, residual_key="", full=full)

    def handle_review(self, value: Any, namespaces: Mapping[str, Any]) -> Review | None:
        """A document is reviewed as it is, by the target that it was split by."""
        del namespaces
        if type(value) is not Document or value.target != self.name:
            return None
        return Review(target=self.name, document=value.value, subject=value)

    def is_spared(self, review: Review, namespaces: Collection[str]) -> bool:
        """Nothing is spared: Config excludes namespaces, which documents do not have."""
        del review, namespaces
        return False

    def process_data(self, obj: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Documents are not kept as data."""
        del obj
        return None


def _any_key(key: Hashable) -> bool:
    del key
    return True
