"""Selects the constraints that match an object, without evaluating them.

For callers that report which constraints were satisfied;
:meth:`~webhook.constraint.snapshot.Snapshot.review` returns violations only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.constraint.errors import MatchError, ReviewError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.review import Review
    from webhook.constraint.snapshot import Snapshot
    from webhook.constraint.target import Matcher


class Selection(NamedTuple):
    """The constraints that match, and those of the same kind that do not.

    A constraint whose match is unknown, or that matches and cannot be evaluated, is in neither.
    """

    matching: tuple[Constraint, ...]
    others: tuple[Constraint, ...]


def select(snapshot: Snapshot, value: Any, enforcement_point: str) -> Selection:
    """Returns the constraints that :meth:`Snapshot.review` would evaluate, and the others."""
    matching: list[Constraint] = []
    others: list[Constraint] = []
    for target in snapshot.targets.values():
        try:
            review = target.handle_review(value, snapshot.namespaces)
        except ReviewError:
            continue
        if review is None:
            continue
        plan = snapshot.plan(enforcement_point, review.target, review.key)
        outcomes = [_matches(matcher, review) for matcher in plan.matchers]
        for step in plan.steps:
            for constraint, number in step.constraints:
                outcome = True if number < 0 else outcomes[number]
                if outcome is not None:
                    (matching if outcome else others).append(constraint)
        others += [
            item.constraint
            for item in plan.broken
            if item.number >= 0 and outcomes[item.number] is False
        ]
    return Selection(tuple(matching), tuple(others))


def about(snapshot: Snapshot, key: Hashable, enforcement_point: str) -> tuple[Constraint, ...]:
    """Returns the constraints that may match values with this key of the index (a group and kind)."""
    constraints: list[Constraint] = []
    for target in snapshot.targets:
        plan = snapshot.plan(enforcement_point, target, key)
        constraints += [constraint for step in plan.steps for constraint, _ in step.constraints]
        constraints += [item.constraint for item in plan.broken]
    return tuple(constraints)


def _matches(matcher: Matcher, review: Review) -> bool | None:
    try:
        return matcher(review)
    except MatchError:
        return None
