"""What readiness calls the objects of policy."""

from __future__ import annotations

from typing import Final

from webhook.constraint import constraint as constraints

TEMPLATES: Final = "ConstraintTemplate"
"""The templates' name in readiness."""


def constraint_kind(kind: str) -> str:
    """A constraint kind's name in readiness."""
    return f"{kind}.{constraints.GROUP}"
