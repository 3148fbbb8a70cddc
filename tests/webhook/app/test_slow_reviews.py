"""Threads that review what is slow keep nothing of it."""

import sys
import threading
import time
from collections import Counter
from functools import partial

import pytest

from tests.patience import PATIENCE_SECONDS, until
from webhook.api.admission import AdmissionRequest, read_request
from webhook.app import slow_reviews
from webhook.app.slow_reviews import RESTS, WORKED_SECONDS_MIN, SlowReviews
from webhook.constraint.breaker import Guard
from webhook.constraint.constraint import Constraint
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.result import Responses, Result
from webhook.constraint.review import AugmentedReview
from webhook.constraint.snapshot import Snapshot
from webhook.rego.errors import EvaluationError
from webhook.review.outcome import Found
from webhook.server.deadline import RequestTime
from webhook.server.preparation import SlowReview
from webhook.server.responsibility import ProcessorTime


def reviewed(review: AugmentedReview, budget: Budget) -> Responses:
    """Returns the review of an object without any policy."""
    return Snapshot(targets={}).review(review, limits=Limits(budget=budget))


def test_an_idle_thread_keeps_no_object_that_it_has_reviewed() -> None:
    """The object may have megabytes, and there are several threads."""
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


def test_many_results_are_freed_by_the_thread_that_reviewed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that answers took 2 ms for twelve thousand, while all requests waited."""
    monkeypatch.setattr(slow_reviews, "KEPT_SECONDS_MAX", PATIENCE_SECONDS)
    freed = Counter[str]()

    class Details:
        def __del__(self) -> None:
            freed[threading.current_thread().name] += 1

    def compute(_: Budget) -> Found:
        subject = Constraint("Kind", "name", {})
        results = [Result("t", subject, "x", Details(), "deny") for _ in range(2_000)]
        return Found(Responses(tuple(results)))

    reviews = SlowReviews(1.0, Guard(), ProcessorTime())
    now = time.monotonic()
    try:
        span = RequestTime(now, now + PATIENCE_SECONDS)
        slow = reviews.begin(compute, read_request({}), span)
        assert isinstance(slow, SlowReview)
        slow.future.result(PATIENCE_SECONDS)
        assert not freed
        del slow
        until(lambda: freed.total() == 2_000, "all results are freed")
        assert threading.current_thread().name not in freed
    finally:
        reviews.stop()


def test_one_thread_computes_while_the_others_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that answers waited for the interpreter behind four, one after the other."""
    monkeypatch.setattr(slow_reviews, "TURN_WAIT_SECONDS", PATIENCE_SECONDS)
    reviews = SlowReviews(1.0, Guard(), ProcessorTime())
    events: list[str] = []

    def compute(budget: Budget) -> None:
        events.append("computes")
        until(lambda: reviews._active == 2, "another thread has work")
        events.append("rests")
        assert budget.rest is not None
        while "another computes" not in events:
            budget.rest(0.0)

    def compute_another(_: Budget) -> None:
        events.append("another computes")

    now = time.monotonic()
    span = RequestTime(now, now + PATIENCE_SECONDS)
    works = {"alice": compute, "bob": compute_another}
    try:
        for user, work in works.items():
            slow = reviews.begin(work, read_request({"userInfo": {"username": user}}), span)
            assert isinstance(slow, SlowReview)
            if user == "alice":
                first = slow
                until(lambda: events, "the first has begun")
        first.future.result(PATIENCE_SECONDS)
        assert events == ["computes", "rests", "another computes"]
    finally:
        reviews.stop()


def test_what_is_as_large_as_one_of_its_users_that_goes_on_is_begun_behind_it() -> None:
    """Each took the thread that answers for 10 ms, and then its place in the line all the same."""
    reviews = SlowReviews(1.0, Guard(), ProcessorTime())
    begun, ended = threading.Event(), threading.Event()

    def work(_: Budget) -> None:
        begun.set()
        ended.wait(PATIENCE_SECONDS)

    def of(user: str, namespace: str, size: int) -> AdmissionRequest:
        return read_request({"userInfo": {"username": user}, "namespace": namespace}, size=size)

    now = time.monotonic()
    span = RequestTime(now, now + PATIENCE_SECONDS)
    try:
        first = reviews.begin(work, of("mallory", "shop", 2_000), span)
        assert isinstance(first, SlowReview)
        assert begun.wait(PATIENCE_SECONDS)
        assert reviews.is_behind(of("mallory", "shop", 2_000))
        assert not reviews.is_behind(of("mallory", "shop", 1_999))
        assert not reviews.is_behind(of("mallory", "other", 2_000))
        assert not reviews.is_behind(of("bob", "shop", 2_000))
        second = reviews.begin(work, of("mallory", "shop", 2_000), span)
        assert isinstance(second, SlowReview)
        assert second.answer_at < first.answer_at <= span.until, "one answer at a time"
        assert second.before.places_taken == second.before.places == 1
        ended.set()
        for slow in (first, second):
            slow.future.result(PATIENCE_SECONDS)
        until(
            lambda: not reviews.is_behind(of("mallory", "shop", 9_000)), "nothing goes on any more"
        )
    finally:
        ended.set()
        reviews.stop()


def test_a_thread_rests_between_evaluations_without_an_error() -> None:
    """Nobody would catch it there: the answer was 500, and denials found so far were lost."""
    reviews = SlowReviews(1.0, Guard(), ProcessorTime())

    def compute(budget: Budget) -> str:
        rest = budget.rest
        assert rest is not None
        worked = time.thread_time() + 2 * WORKED_SECONDS_MIN
        until(lambda: time.thread_time() > worked, "it has worked")
        reviews.stop()
        rest(0.0)
        with pytest.raises(EvaluationError, match="the process is stopping"):
            rest(1e-6)
        return "the answer"

    now = time.monotonic()
    try:
        span = RequestTime(now, now + PATIENCE_SECONDS)
        slow = reviews.begin(compute, read_request({}), span)
        assert isinstance(slow, SlowReview)
        assert slow.future.result(PATIENCE_SECONDS) == "the answer"
    finally:
        reviews.stop()


def test_other_work_of_a_user_rests_while_another_user_is_reviewed() -> None:
    reviews = SlowReviews(1.0, Guard(), ProcessorTime())
    ended = threading.Event()
    request = read_request({"userInfo": {"username": "alice"}, "namespace": "shop"})
    now = time.monotonic()
    try:
        assert not reviews.rests_of("mallory")
        slow = reviews.begin(
            lambda _: ended.wait(PATIENCE_SECONDS),
            request,
            RequestTime(now, now + PATIENCE_SECONDS),
        )
        assert isinstance(slow, SlowReview)
        assert reviews.rests_of("mallory") == 2 * (RESTS + 1) - 1, "half of what all may have"
        assert not reviews.rests_of("alice")
        ended.set()
        slow.future.result(PATIENCE_SECONDS)
        until(lambda: not reviews.rests_of("mallory"), "nobody is reviewed any more")
    finally:
        ended.set()
        reviews.stop()
