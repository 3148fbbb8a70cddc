"""Describes policies to a pipeline: their faults, and the changes that they would make."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.policies.effect import concerned, effect_on_data, only
from webhook.review.policy_set import PolicySet
from webhook.trials.validation import validate_tried

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.api.shapes import Json
    from webhook.constraint.client import Client
    from webhook.constraint.snapshot import Snapshot
    from webhook.trials.trials import Trials

EFFECT_SECONDS: Final = 5.0
"""The time limit for the comparison of synced objects, in one call."""


def validated(
    make_in_force: Callable[[], Client],
    documents: Sequence[Mapping[str, Any]],
    seconds: float,
    trials: Trials,
    *,
    around: PolicySet | None = None,
    with_effect: bool,
) -> Json:
    """Returns the problems of policies on top of those in force, and optionally their effect.

    The effect is on synced objects. ``make_in_force`` gives a client with the policies in force,
    for one call only; ``seconds`` bounds one evaluation of one constraint. ``around`` has the
    policies in force beside templates and constraints.
    """
    after = make_in_force()
    problems = validate_tried(after, documents, seconds, trials)
    answer: Json = {
        "valid": not any(problem.severity == "error" for problem in problems),
        "problems": [problem.document() for problem in problems],
    }
    if not with_effect:
        return answer
    before = make_in_force()
    keys = concerned(
        documents, [item.key for client in (before, after) for item in client.snapshot.constraints]
    )
    old, new = (_with(around, only(client, keys)) for client in (before, after))
    effect, is_whole = effect_on_data(old, new, keys, EFFECT_SECONDS)
    return answer | {"effect": {**effect.document(examples=False), "complete": is_whole}}


def _with(around: PolicySet | None, snapshot: Snapshot) -> PolicySet:
    return PolicySet(snapshot) if around is None else replace(around, snapshot=snapshot)
