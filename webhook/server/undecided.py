"""Answers for constraints for which a request's time was too short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from webhook.constraint import enforcement
from webhook.constraint.result import Responses, Undecided

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.server.responsibility import Responsible
    from webhook.serving.revision import Revision

UnreadAnswer: TypeAlias = Literal["refuse", "warn", "fail"]
"""``fail`` leaves it to failurePolicy."""

AnswerUnread: TypeAlias = "Callable[[str, Responsible], UnreadAnswer]"
"""The answer to a request about a namespace that is not read, by the party responsible."""

_REASONS: Final = {
    "object": "its review used up the time limit",
    "requester": "other requests of the same user used up the time limit",
}


def attributed(responses: Responses, responsible: Responsible) -> Responses:
    """Returns the responses with the cause of each missed deadline: the object or the requester.

    If others are responsible, undecided constraints that would reject are removed; failurePolicy
    then applies, because ``deadline_exceeded`` stays set.
    """
    if responsible == "others":
        return responses._replace(undecided=tuple(filter(_is_answered, responses.undecided)))
    why = _REASONS[responsible]
    undecided = tuple(
        [
            Undecided(item.target, item.constraint, responsible, item.answer, why)
            if item.cause == "deadline"
            else item
            for item in responses.undecided
        ]
    )
    return responses._replace(undecided=undecided, deadline_exceeded=False)


def _is_answered(item: Undecided) -> bool:
    return item.cause != "deadline" or item.answer != "reject"


def answer_unread(
    namespace: str,  # noqa: ARG001  # all are the same where there are no policies to ask
    responsible: Responsible,
) -> UnreadAnswer:
    """Refuses a request whose own object or user is responsible for the delay."""
    return "fail" if responsible == "others" else "refuse"


def answer_unread_by(
    revision: Revision | None, namespace: str, responsible: Responsible
) -> UnreadAnswer:
    """Refuses by the policies in force: only where one of them might deny."""
    if responsible == "others" or revision is None:
        return "fail"
    snapshot = revision.snapshot
    policy = snapshot.isolation
    if namespace in policy.spared_namespaces or policy.on_undecidable == "ignore":
        return "warn"
    if revision.policies.exclusions.webhook(namespace) or not any(
        "deny" in enforcement.actions_at(item, enforcement.WEBHOOK, snapshot.enforcement_points)
        for entry in snapshot.entries
        for item in entry.constraints
    ):
        return "warn"
    return "refuse"
