"""What a policy says of itself: what sort it is, its severity, and the action that it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api.gvk import gvk_of
from webhook.constraint import constraint, enforcement, expansion, template
from webhook.constraint.description import describe
from webhook.constraint.errors import InvalidConstraint
from webhook.mutation.reading import is_mutator

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from webhook.console.picture import Category


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
    return describe(document).severity


def action_of(document: Mapping[str, Any]) -> str:
    """The action that a constraint asks for; empty where it says nothing that can be read."""
    try:
        return enforcement.action_of(document)
    except InvalidConstraint:
        return ""
