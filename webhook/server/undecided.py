"""What becomes of constraints for which a request's time was too short."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.constraint.result import Responses, Undecided
    from webhook.server.responsibility import Responsible

_REASONS: Final = {
    "object": "its review took all the time there is",
    "requester": "the time went to this request and others of the same user",
}


def attributed(responses: Responses, whose: Responsible) -> Responses:
    """The same, with what the time did not suffice for laid at the door of who took it.

    What is nobody's own doing is left to failurePolicy: then it is ``deadline_exceeded``.
    """
    if whose == "others":
        return responses._replace(undecided=tuple(filter(_is_answered, responses.undecided)))
    undecided = tuple(
        replace(item, cause=whose, message=_REASONS[whose]) if item.cause == "deadline" else item
        for item in responses.undecided
    )
    return responses._replace(undecided=undecided, deadline_exceeded=False)


def _is_answered(item: Undecided) -> bool:
    return item.cause != "deadline" or item.answer != "reject"
