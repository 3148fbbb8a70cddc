"""One review within bounds, as rows for a page."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.console.sorts import severity_of
from webhook.constraint.limits import Budget
from webhook.review.loops import review as reviewed

if TYPE_CHECKING:
    from webhook.review.policy_set import PolicySet
    from webhook.review.subject import Subject

REVIEW_SECONDS: Final = 5.0
"""Of one object."""


def review(
    policies: PolicySet, subject: Subject, *, seconds: float = REVIEW_SECONDS
) -> tuple[list[dict[str, Any]], list[str]]:
    """What a review finds, and why that is not all there is; the subject's limits are set here."""
    limits = subject.limits._replace(deadline=time.monotonic() + seconds, budget=Budget.of(seconds))
    outcome = reviewed(policies, replace(subject, limits=limits))
    responses = outcome.responses
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
    faults = [*outcome.faults, *map(str, responses.faults), *map(str, responses.undecided)]
    if outcome.excluded is not None:
        faults.append(f"a Config excludes the namespace {outcome.excluded}: nothing is asked of it")
    if responses.deadline_exceeded:
        faults.append(f"the review took longer than {seconds:g} s")
    return rows, faults
