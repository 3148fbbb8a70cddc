"""Reads the descriptions of constraints from their annotations and those of their templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import object_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.constraint.snapshot import Snapshot

TITLES: Final = ("metadata.gatekeeper.sh/title", "policies.kyverno.io/title")
DESCRIPTIONS: Final = ("description", "policies.kyverno.io/description")
SEVERITY_ANNOTATIONS: Final = ("waddle.dev/severity", "policies.kyverno.io/severity")
CATEGORIES: Final = ("waddle.dev/category", "policies.kyverno.io/category")
OWNERS: Final = ("waddle.dev/owner", "owner")
"""On a constraint or its template, ours or Gatekeeper's before Kyverno's: libraries carry the latter."""

SEVERITIES: Final = frozenset({"critical", "high", "medium", "low", "info"})
"""The policy report API's enum; its first CRDs had the middle three alone."""


@dataclass(frozen=True, slots=True)
class Description:
    """A policy in words; a text that no annotation gives is empty, and so is an unknown severity."""

    title: str = ""
    description: str = ""
    severity: str = ""
    category: str = ""
    owner: str = ""


def describe(*documents: Mapping[str, Any]) -> Description:
    """Describe a policy by the annotations of its objects: the constraint first, then its template.

    Each text is that of the first object which has the annotation.
    """
    annotations = [_annotations(document) for document in documents]
    severity = _first(annotations, SEVERITY_ANNOTATIONS).lower()
    return Description(
        _first(annotations, TITLES),
        " ".join(_first(annotations, DESCRIPTIONS).split()),
        severity if severity in SEVERITIES else "",
        _first(annotations, CATEGORIES),
        _first(annotations, OWNERS),
    )


def described(snapshot: Snapshot) -> dict[tuple[str, str], Description]:
    """Describe every constraint in force, by its key."""
    return {
        constraint.key: describe(constraint.document, entry.template.document)
        for entry in snapshot.entries
        for constraint in entry.constraints
    }


def _annotations(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_of(object_of(document.get("metadata")).get("annotations"))


def _first(annotations: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str:
    texts = (one.get(name) for one in annotations for name in names)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")
