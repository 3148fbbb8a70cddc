"""Reviews one object within limits, for the rows of a page."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.console.sorts import rank, severity_of
from webhook.constraint.limits import Budget
from webhook.review.loops import review as reviewed

if TYPE_CHECKING:
    from webhook.constraint.result import Remark, Result
    from webhook.external_data.exchange import Ask
    from webhook.review.policy_set import PolicySet
    from webhook.review.subject import Subject

REVIEW_SECONDS: Final = 5.0
"""The time limit for one object."""

EXCUSED: Final = "excused"
"""The action of a violation that an exception excuses; such rows follow the others."""


def review(
    policies: PolicySet,
    subject: Subject,
    *,
    seconds: float = REVIEW_SECONDS,
    ask: Ask | None = None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Reviews a subject; returns rows, the gravest first, and reasons why they may be incomplete.

    Sets the subject's limits. ``ask`` answers for external data providers.
    """
    limits = subject.limits._replace(deadline=time.monotonic() + seconds, budget=Budget.of(seconds))
    outcome = reviewed(policies, replace(subject, limits=limits), ask=ask)
    responses = outcome.responses
    rows = [_row(result, ",".join(result.actions)) for result in responses.by_constraint()]
    rows.sort(key=lambda row: rank(row["action"], row["severity"]))
    rows += [_row(result, EXCUSED) for result in responses.excused]
    rows += [_remark(remark) for remark in responses.remarks]
    faults = [*outcome.faults, *map(str, responses.faults), *map(str, responses.undecided)]
    if outcome.excluded is not None:
        faults.append(f"a Config excludes the namespace {outcome.excluded}: no policy reviews it")
    if responses.deadline_exceeded:
        faults.append(f"the review took longer than {seconds:g} s")
    return rows, faults


def _remark(remark: Remark) -> dict[str, Any]:
    """Returns the row of a policy's remark beside its verdict."""
    key = {"kind": remark.constraint.kind, "name": remark.constraint.name}
    row = {"action": "note", "message": remark.message}
    return {**key, **row, "severity": "", "details": {}, "exception": ""}


def _row(result: Result, action: str) -> dict[str, Any]:
    excuse = result.excuse
    return {
        "kind": result.constraint.kind,
        "name": result.constraint.name,
        "action": action,
        "message": result.msg,
        "severity": severity_of(result.constraint.document),
        "details": result.details,
        "exception": "" if excuse is None else excuse.title,
    }
