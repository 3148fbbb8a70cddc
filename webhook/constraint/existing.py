"""The annotation ``waddle.dev/existing: allow`` of a constraint or group.

An UPDATE is refused only for violations that the old object does not have. New objects are never
excused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.constraint import enforcement
from webhook.constraint.errors import InvalidConstraint

ANNOTATION: Final = "waddle.dev/existing"
ALLOW: Final = "allow"
REFUSE: Final = "refuse"
"""The behaviour without the annotation."""


def allows_existing(document: Mapping[str, Any]) -> bool:
    """Whether violations of old objects are tolerated.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    annotations = (document.get("metadata") or {}).get("annotations")
    value = annotations.get(ANNOTATION) if type(annotations) is dict else None
    if value in (None, REFUSE):
        return False
    if value != ALLOW:
        raise InvalidConstraint(
            f"invalid Constraint: annotation {ANNOTATION} must be {ALLOW} or {REFUSE}, "
            f'got "{value}"'
        )
    if enforcement.action_of(document) == "scoped" and not any(
        enforcement.points_of(document, enforcement.POINTS).values()
    ):
        raise InvalidConstraint(
            f"invalid Constraint: {ANNOTATION}: {ALLOW} is for the webhook to follow, and "
            f"the constraint is for {enforcement.VAP} alone"
        )
    return True


def is_allowed_to_exist(document: Mapping[str, Any]) -> bool:
    """Whether violations of old objects are tolerated; False for an invalid annotation."""
    try:
        return allows_existing(document)
    except InvalidConstraint:
        return False
