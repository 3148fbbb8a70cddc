"""Targets that review documents: files of any shape, split into parts.

No document is kept as data, none is needed to repair a cluster, and there is no index: every
constraint of the target is matched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, Final

from webhook.constraint.review import Document, Review
from webhook.constraint.target import CompiledMatch

_SPEC: Final = {"severity": {"type": "string"}, "constraintVersion": {"type": "string"}}


class DocumentTarget(ABC):
    """A target that splits a file into documents. Derive from it for a format of your own."""

    name: str
    """The target's name in templates."""

    @abstractmethod
    def match_schema(self) -> dict[str, Any]:
        """Returns the OpenAPI schema of ``spec.match``."""

    @abstractmethod
    def matcher(self, match: Mapping[str, Any]) -> Callable[[Document], bool]:
        """Returns a test of whether a document matches.

        Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
        """

    @abstractmethod
    def documents(self, value: Any, name: str) -> Iterable[Document]:
        """Splits a file's value into the named documents to review.

        Raises :class:`~webhook.constraint.errors.ReviewError` for another kind of file.
        """

    def spec_schema(self) -> Mapping[str, Any]:
        """Returns the schema of the descriptions in config-validator's constraints."""
        return _SPEC

    def validate_constraint(self, constraint: Mapping[str, Any]) -> None:
        """Checks nothing further: compiling the match checks the rest."""
        spec = constraint.get("spec")
        match = spec.get("match") if isinstance(spec, dict) else None
        self.matcher(match if isinstance(match, dict) else {})

    def compile_match(self, match: Mapping[str, Any]) -> CompiledMatch:
        """Compiles ``spec.match``."""
        matches = self.matcher(match)

        def full(review: Review) -> bool:
            return matches(review.subject)

        return CompiledMatch(selects=_any_key, residual=None, residual_key="", full=full)

    def key_of(self, value: Any) -> None:
        """Returns None: documents have no key."""
        del value

    def handle_review(self, value: Any, namespaces: Mapping[str, Any]) -> Review | None:
        """Returns the review of a document that this target split off; None for others."""
        del namespaces
        if type(value) is not Document or value.target != self.name:
            return None
        return Review(target=self.name, document=value.value, subject=value)

    def is_spared(self, review: Review, namespaces: Collection[str]) -> bool:
        """Returns False: only namespaces are spared, which documents do not have."""
        del review, namespaces
        return False

    def process_data(self, obj: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Returns None: documents are not kept as data."""
        del obj
        return None


def _any_key(key: Hashable) -> bool:
    del key
    return True
