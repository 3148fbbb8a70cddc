"""What an admission's object implies, reviewed with it: a Deployment's Pods when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.constraint.limits import Limits
from webhook.review.evaluation import Reviewing, evaluation
from webhook.review.expanding import expand_value
from webhook.review.subject import Subject

if TYPE_CHECKING:
    from webhook.constraint.review import AugmentedReview
    from webhook.mutation.passes import MutationOnError
    from webhook.serving.revision import Revision


def reviewing(
    revision: Revision, subject: AugmentedReview, until: float, on_error: MutationOnError
) -> tuple[Reviewing, str]:
    """What reviews a request with all that its object implies; and why that is not known.

    A request of a kind that implies nothing costs one look-up.
    """
    snapshot, request = revision.snapshot, subject.request
    if not revision.expansion.is_of(request.kind):
        return evaluation(snapshot), ""
    asked = Subject(subject, limits=Limits(until), on_expansion_error=on_error)
    implied, fault = expand_value(revision.policies, asked, subject)
    if fault:
        return evaluation(snapshot), f"unable to expand object: {fault}"
    return evaluation(snapshot, implied), ""
