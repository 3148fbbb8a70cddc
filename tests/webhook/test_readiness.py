"""Readiness: expectations, observations and what is said of the missing."""

import pytest

from webhook.readiness import Awaited, Tracker

TEMPLATES = "ConstraintTemplate"
LABELS = "K8sRequiredLabels.constraints.gatekeeper.sh"


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tracker(clock) -> Tracker:
    tracker = Tracker(clock)
    tracker.track(TEMPLATES)
    return tracker


def test_a_tracker_of_nothing_is_not_satisfied(clock):
    """Before any kind is tracked, start-up has not even begun."""
    assert not Tracker(clock).satisfied


def test_a_kind_whose_list_is_unknown_holds_readiness_back(tracker):
    assert not tracker.satisfied
    assert [str(item) for item in tracker.awaited()] == [
        "the list of ConstraintTemplate, for 0.0 s"
    ]


def test_an_empty_list_is_satisfied(tracker):
    tracker.expect(TEMPLATES, [])

    assert tracker.satisfied


def test_each_expected_object_must_be_observed(tracker):
    tracker.expect(TEMPLATES, ["a", "b"])
    tracker.observe(TEMPLATES, "a")
    assert not tracker.satisfied
    tracker.observe(TEMPLATES, "b")

    assert tracker.satisfied


def test_an_observation_may_come_before_the_expectation(tracker):
    tracker.observe(TEMPLATES, "a")
    tracker.expect(TEMPLATES, ["a"])

    assert tracker.satisfied


def test_a_cancelled_object_is_not_expected_again(tracker):
    tracker.cancel(TEMPLATES, "gone")
    tracker.expect(TEMPLATES, ["gone"])

    assert tracker.satisfied


def test_a_kind_found_on_the_way_is_waited_for(tracker):
    """A template's constraints are tracked before the template is observed."""
    tracker.expect(TEMPLATES, ["k8srequiredlabels"])
    tracker.track(LABELS)
    tracker.observe(TEMPLATES, "k8srequiredlabels")
    assert not tracker.satisfied
    tracker.expect(LABELS, ["owner"])
    tracker.observe(LABELS, "owner")

    assert tracker.satisfied


def test_a_kind_that_is_served_no_more_is_forgotten(tracker):
    tracker.expect(TEMPLATES, [])
    tracker.track(LABELS)
    tracker.forget(LABELS)

    assert tracker.satisfied


def test_what_is_satisfied_stays_so(tracker):
    tracker.expect(TEMPLATES, [])
    assert tracker.satisfied
    tracker.track(LABELS)
    tracker.expect(LABELS, ["late"])

    assert tracker.satisfied
    assert tracker.awaited() == []


def test_a_second_list_adds_nothing(tracker):
    """Objects of a relist did not exist at start."""
    tracker.expect(TEMPLATES, ["a"])
    tracker.expect(TEMPLATES, ["a", "later"])
    tracker.observe(TEMPLATES, "a")

    assert tracker.satisfied


def test_the_missing_say_since_when_and_why(tracker, clock):
    tracker.expect(TEMPLATES, ["a"])
    clock.now += 5
    tracker.track(LABELS)
    tracker.fail(TEMPLATES, "a", "rego_parse_error: unexpected eof")
    tracker.fail(LABELS, "", "connection refused")
    clock.now += 1

    assert tracker.awaited() == [
        Awaited(TEMPLATES, "a", 6.0, "rego_parse_error: unexpected eof"),
        Awaited(LABELS, "", 1.0, "connection refused"),
    ]
    assert str(tracker.awaited()[0]) == (
        "ConstraintTemplate a, for 6.0 s: rego_parse_error: unexpected eof"
    )


def test_a_failure_of_what_nobody_awaits_is_harmless(tracker):
    tracker.fail(TEMPLATES, "unknown", "no")
    tracker.fail("Unknown", "", "no")
    tracker.expect(TEMPLATES, [])

    assert tracker.satisfied
