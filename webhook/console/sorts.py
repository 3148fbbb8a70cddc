"""What a policy says of itself: its sort, title, description, owner, severity and action."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webhook.api.gvk import gvk_of
from webhook.api.shapes import object_of
from webhook.constraint import constraint, enforcement, expansion, template
from webhook.constraint.errors import InvalidConstraint
from webhook.mutation.reading import is_mutator
from webhook.reports.finding import SEVERITIES
from webhook.reports.results import SEVERITY_ANNOTATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from webhook.console.picture import Category, ShownPolicy

TITLE_ANNOTATIONS: Final = ("metadata.gatekeeper.sh/title", "policies.kyverno.io/title")
DESCRIPTION_ANNOTATIONS: Final = ("description", "policies.kyverno.io/description")
OWNER_ANNOTATIONS: Final = ("waddle.dev/owner", "owner")
"""Gatekeeper's library has the first two on each template."""


def category_of(document: Mapping[str, Any]) -> Category | None:
    """The sort of policy that an object is; None for any other object."""
    gvk = gvk_of(document)
    if gvk.group_kind == (template.GROUP, template.KIND):
        return "template"
    if gvk.group == constraint.GROUP:
        return "constraint"
    if is_mutator(document):
        return "mutator"
    return "expansion" if gvk.group_kind == (expansion.GROUP, expansion.KIND) else None


def severity_of(document: Mapping[str, Any]) -> str:
    """The severity in an object's annotations; empty where it has none that is known."""
    annotations = object_of(object_of(document.get("metadata")).get("annotations"))
    for name in SEVERITY_ANNOTATIONS:
        text = annotations.get(name)
        if isinstance(text, str) and text:
            return text.lower() if text.lower() in SEVERITIES else ""
    return ""


def described(policies: Iterable[ShownPolicy]) -> list[ShownPolicy]:
    """The policies with what they say of themselves; a constraint says what its template does."""
    listed = list(policies)
    templates = {item.name: item.document for item in listed if item.category == "template"}
    return [_described(item, templates.get(item.kind.lower(), {})) for item in listed]


def _described(item: ShownPolicy, template_document: Mapping[str, Any]) -> ShownPolicy:
    documents = (
        (item.document, template_document) if item.category == "constraint" else (item.document,)
    )
    return replace(
        item,
        severity=next(filter(None, map(severity_of, documents)), ""),
        title=_first(documents, TITLE_ANNOTATIONS),
        description=_first(documents, DESCRIPTION_ANNOTATIONS),
        owner=_first(documents, OWNER_ANNOTATIONS),
    )


def _first(documents: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str:
    """The first such annotation that is a text."""
    for document in documents:
        annotations = object_of(object_of(document.get("metadata")).get("annotations"))
        for name in names:
            text = annotations.get(name)
            if isinstance(text, str) and text.strip():
                return text.strip()
    return ""


def action_of(document: Mapping[str, Any]) -> str:
    """The action that a constraint asks for; empty where it says nothing that can be read."""
    try:
        return enforcement.action_of(document)
    except InvalidConstraint:
        return ""
