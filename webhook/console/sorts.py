"""Reads a policy's own description: its sort, title, description, owner, severity and action."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.api.gvk import name_of, namespace_of
from webhook.constraint import enforcement
from webhook.constraint.description import describe
from webhook.constraint.errors import InvalidConstraint
from webhook.policy_kinds.known import kind_of_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from webhook.console.picture import ShownPolicy
    from webhook.constraint.description import Description


def category_of(document: Mapping[str, Any]) -> str | None:
    """The sort of policy that an object is; None for any other object."""
    row = kind_of_document(document)
    if row is None or row.role == "configuration":
        return None
    return row.role if row.part is None else row.part.name


def shown_name(document: Mapping[str, Any]) -> str:
    """The name of a policy, with its namespace where its kind lives in one."""
    row, name = kind_of_document(document), name_of(document)
    if row is None or not row.namespaced:
        return name
    return f"{namespace_of(document)}/{name}"


def severity_of(document: Mapping[str, Any]) -> str:
    """The severity in an object's annotations; empty where it has none that is known."""
    return describe(document).severity


def described(policies: Iterable[ShownPolicy]) -> list[ShownPolicy]:
    """The policies with what they say of themselves; a constraint says what its template does."""
    return [
        replace(
            item,
            severity=description.severity,
            title=description.title,
            description=description.description,
            owner=description.owner,
        )
        for item, description in descriptions(policies)
    ]


def descriptions(policies: Iterable[ShownPolicy]) -> list[tuple[ShownPolicy, Description]]:
    """Each policy, and what it says of itself."""
    listed = list(policies)
    templates = {item.name: item.document for item in listed if item.category == "template"}
    return [
        (item, describe(item.document, templates.get(item.kind.lower(), {})))
        if item.category == "constraint"
        else (item, describe(item.document))
        for item in listed
    ]


def action_of(document: Mapping[str, Any]) -> str:
    """The action that a constraint asks for; empty where it says nothing that can be read."""
    try:
        return enforcement.action_of(document)
    except InvalidConstraint:
        return ""
