"""One review within bounds, as rows for a page."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from webhook.console.sorts import severity_of
from webhook.constraint import enforcement
from webhook.constraint.limits import Budget, Limits

if TYPE_CHECKING:
    from webhook.constraint.review import AugmentedObject, AugmentedReview
    from webhook.constraint.snapshot import Snapshot

REVIEW_SECONDS: Final = 5.0
"""Of one object."""


def review(
    snapshot: Snapshot,
    subject: AugmentedObject | AugmentedReview,
    *,
    point: str = enforcement.COMMAND_LINE,
    seconds: float = REVIEW_SECONDS,
) -> tuple[list[dict[str, Any]], list[str]]:
    """What a review finds, and why that is not all there is."""
    limits = Limits(deadline=time.monotonic() + seconds, budget=Budget.of(seconds))
    responses = snapshot.review(subject, enforcement_point=point, limits=limits)
    rows = [
        {
            "kind": result.constraint.kind,
            "name": result.constraint.name,
            "action": ",".join(result.actions),
            "message": result.msg,
            "severity": severity_of(result.constraint.document),
            "details": result.details,
        }
        for result in responses.by_constraint()
    ]
    faults = [*map(str, responses.faults), *map(str, responses.undecided)]
    if responses.deadline_exceeded:
        faults.append(f"the review took longer than {seconds:g} s")
    return rows, faults
