"""Threads that review what is slow keep nothing of it."""

import sys
import time
from functools import partial

from tests.patience import PATIENCE_SECONDS, until
from webhook.api.admission import read_request
from webhook.app.slow_reviews import SlowReviews
from webhook.constraint.breaker import Guard
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.result import Responses
from webhook.constraint.review import AugmentedReview
from webhook.constraint.snapshot import Snapshot
from webhook.server.deadline import RequestTime
from webhook.server.preparation import SlowReview
from webhook.server.responsibility import ProcessorTime


def reviewed(review: AugmentedReview, budget: Budget) -> Responses:
    """What no policy says of it."""
    return Snapshot(targets={}).review(review, limits=Limits(budget=budget))


def test_an_idle_thread_keeps_no_object_that_it_has_reviewed() -> None:
    """It may be of megabytes, and there is a thread for each of several."""
    subject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    reviews = SlowReviews(1.0, Guard(), ProcessorTime())
    held = sys.getrefcount(subject)
    try:
        review = AugmentedReview(read_request({"object": subject}))
        work = partial(reviewed, review)
        now = time.monotonic()
        span = RequestTime(now, now + PATIENCE_SECONDS)
        slow = reviews.begin(work, review.request, span)
        assert isinstance(slow, SlowReview)
        slow.future.result(PATIENCE_SECONDS)
        del review, slow, work
        until(lambda: sys.getrefcount(subject) == held, "nobody holds the object any more")
    finally:
        reviews.stop()
