"""Reads a policy's category, title, description, owner, severity and action."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webhook.api.gvk import name_of, namespace_of
from webhook.constraint import enforcement
from webhook.constraint.description import Description, describe
from webhook.constraint.errors import InvalidConstraint
from webhook.policy_kinds.known import kind_of_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from webhook.console.picture import ShownPolicy

_ACTIONS: Final = ("deny", "fail", "error", "warn", "dryrun")
_SEVERITIES: Final = ("critical", "high", "medium", "low", "info")


def category_of(document: Mapping[str, Any]) -> str | None:
    """Returns the category of a policy; None for any other object."""
    row = kind_of_document(document)
    if row is None or row.role == "configuration":
        return None
    return row.role if row.part is None else row.part.name


def shown_name(document: Mapping[str, Any]) -> str:
    """Returns the name of a policy, with its namespace if the kind is namespaced."""
    row, name = kind_of_document(document), name_of(document)
    if row is None or not row.namespaced:
        return name
    return f"{namespace_of(document)}/{name}"


def severity_of(document: Mapping[str, Any]) -> str:
    """Returns the severity in an object's annotations; empty if it has no known one."""
    return describe(document).severity


def described(policies: Iterable[ShownPolicy]) -> list[ShownPolicy]:
    """Returns the policies with title, description, owner and severity.

    A constraint without a description of its own has its template's.
    """
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
    """Returns each policy with its description."""
    listed = list(policies)
    templates = {item.name: item.document for item in listed if item.category == "template"}
    return [
        (item, describe(item.document, templates.get(item.kind.lower(), {})))
        if item.category == "constraint"
        else (item, describe(item.document))
        for item in listed
    ]


def action_of(document: Mapping[str, Any]) -> str:
    """Returns the action of a constraint; empty if it cannot be read."""
    try:
        return enforcement.action_of(document)
    except InvalidConstraint:
        return ""


def rank(action: str, severity: str) -> tuple[int, int]:
    """Returns the place of an action and a severity among others, the gravest first."""
    gravest = min(_rank(_ACTIONS, word) for word in action.split(","))
    return gravest, _rank(_SEVERITIES, severity)


def _rank(words: tuple[str, ...], word: str) -> int:
    return words.index(word) if word in words else len(words)
