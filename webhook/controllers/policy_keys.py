"""What readiness calls the objects of policy."""

from __future__ import annotations

from typing import Final, TypeAlias

from webhook.constraint import template
from webhook.policy_kinds.known import constraint_gvk

TEMPLATES: Final = template.KIND
"""The templates' name in readiness."""

PolicyKey: TypeAlias = tuple[str, str]
"""A constraint kind, or :data:`TEMPLATES`, or the kind of another policy with its group; and a name."""


def constraint_kind(kind: str) -> str:
    """A constraint kind's name in readiness."""
    return f"{kind}.{constraint_gvk(kind).group}"
