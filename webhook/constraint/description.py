"""Descriptions of constraints, from their annotations and those of their templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import annotations_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.constraint.snapshot import Snapshot

TITLES: Final = ("metadata.gatekeeper.sh/title", "policies.kyverno.io/title")
DESCRIPTIONS: Final = ("description", "policies.kyverno.io/description")
SEVERITY_ANNOTATIONS: Final = ("waddle.dev/severity", "policies.kyverno.io/severity")
CATEGORIES: Final = ("waddle.dev/category", "policies.kyverno.io/category")
OWNERS: Final = ("waddle.dev/owner", "owner")
"""The prefixes of annotations in order of preference: ours, Gatekeeper's, Kyverno's (used by
libraries).
"""

SEVERITIES: Final = frozenset({"critical", "high", "medium", "low", "info"})
"""The severities of the policy report API; its first CRDs had only the middle three."""


@dataclass(frozen=True, slots=True)
class Description:
    """The texts that describe a policy.

    An absent annotation or an unknown severity is an empty text.
    """

    title: str = ""
    description: str = ""
    severity: str = ""
    category: str = ""
    owner: str = ""


def describe(*documents: Mapping[str, Any]) -> Description:
    """Returns a policy's description: each text from the first object that has the annotation.

    The constraint comes first, then its template.
    """
    annotations = [annotations_of(document) for document in documents]
    severity = _first(annotations, SEVERITY_ANNOTATIONS).lower()
    return Description(
        _first(annotations, TITLES),
        " ".join(_first(annotations, DESCRIPTIONS).split()),
        severity if severity in SEVERITIES else "",
        _first(annotations, CATEGORIES),
        _first(annotations, OWNERS),
    )


def described(snapshot: Snapshot) -> dict[tuple[str, str], Description]:
    """Returns the description of every constraint in force, by its key."""
    return {
        constraint.key: describe(constraint.document, entry.template.document)
        for entry in snapshot.entries
        for constraint in entry.constraints
    }


def _first(annotations: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str:
    texts = (annotation.get(name) for annotation in annotations for name in names)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")
