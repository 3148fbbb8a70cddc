"""What an admission's object implies, reviewed with it: a Deployment's Pods when it is made."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from webhook.constraint import expansion
from webhook.constraint.limits import Limits
from webhook.review.evaluation import Reviewing, evaluation
from webhook.review.expanding import expand_value
from webhook.review.subject import Subject

if TYPE_CHECKING:
    from webhook.constraint.review import AugmentedReview
    from webhook.mutation.passes import MutationOnError
    from webhook.serving.revision import Revision

OUT_OF_TIME: Final = "unable to expand object: its time ended before all that it implies was known"
TOO_MUCH: Final = f"unable to expand object: {expansion.TOO_MUCH}"

UNDECIDABLE: Final = frozenset({OUT_OF_TIME, TOO_MUCH})
"""Why it is not known what an object implies that its own requester may have brought about."""


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
        is_late = time.monotonic() > until
        reason = OUT_OF_TIME if is_late else f"unable to expand object: {fault}"
        return evaluation(snapshot), reason
    return evaluation(snapshot, implied), ""
