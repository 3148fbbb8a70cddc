"""Breakers: when a constraint is suspended, tried, and evaluated again."""

from __future__ import annotations

import pytest

from tests.webhook.constraint.policies import client, constraint, echo_template
from webhook.constraint.breaker import (
    BACKOFF_SECONDS,
    BACKOFF_SECONDS_MAX,
    JITTER,
    OVERRUNS_MAX,
    REQUESTERS_MAX,
    SLOW_SECONDS,
    WINDOW_SECONDS,
    Guard,
)
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.review import AugmentedObject

KEY = ("K8sEcho", "c")


class Bench:
    """A guard on a clock of the test's, and a policy."""

    def __init__(self):
        self.now = 1000.0
        self.chance = 0.5
        self.states = []
        self.guard = Guard(lambda: self.now, lambda: self.chance)
        self.guard.notify = lambda view: self.states.append(view.state)
        self.client = client(echo_template("no"), constraint("K8sEcho"))

    @property
    def policy(self):
        """The entry and its constraint, as they are in force."""
        (entry,) = self.client.snapshot.entries
        return entry, entry.constraints[0]

    def overrun(self, times=1):
        """Take too long."""
        for _ in range(times):
            entry, of_it = self.policy
            self.guard.overran(entry, of_it, "too long")

    def admits(self):
        """Whether it is evaluated now."""
        return self.guard.admits(*self.policy)

    def state_or_closed(self):
        """Returns the state of the breaker, if there is one."""
        return self.state() if KEY in self.guard.views() else "closed"

    def state(self):
        """Returns the state of the breaker."""
        return self.guard.views()[KEY].state


@pytest.fixture
def bench():
    return Bench()


def test_a_healthy_constraint_is_unknown(bench):
    assert bench.admits()
    bench.guard.finished(*bench.policy)

    assert bench.guard.breakers == {}


def test_repeated_overruns_open_the_breaker(bench):
    bench.overrun(OVERRUNS_MAX - 1)
    assert bench.admits()
    assert bench.state() == "closed"

    bench.overrun()

    assert not bench.admits()
    assert bench.state() == "open"
    assert "suspended after repeated overruns: too long" in bench.guard.suspended(bench.policy[1])


def test_overruns_long_ago_do_not_count(bench):
    bench.overrun(OVERRUNS_MAX - 1)
    bench.now += WINDOW_SECONDS
    bench.overrun(OVERRUNS_MAX - 1)

    assert bench.admits()


def test_one_evaluation_is_tried_after_the_back_off(bench):
    bench.overrun(OVERRUNS_MAX)
    bench.now += BACKOFF_SECONDS - 0.1
    assert not bench.admits()
    bench.now += 0.1

    assert bench.admits()
    assert bench.state() == "half-open"
    assert not bench.admits()

    bench.guard.finished(*bench.policy)
    assert bench.admits()
    assert bench.states == ["open", "half-open", "closed"]


def test_a_trial_that_overruns_doubles_the_back_off_up_to_a_bound(bench):
    bench.overrun(OVERRUNS_MAX)
    waited = []
    for _ in range(8):
        breaker = bench.guard.breakers[KEY]
        waited.append(breaker.retry_at - bench.now)
        bench.now = breaker.retry_at
        assert bench.admits()
        bench.overrun()
        assert not bench.admits()

    assert waited[:3] == [BACKOFF_SECONDS, 2 * BACKOFF_SECONDS, 4 * BACKOFF_SECONDS]
    assert waited[-1] == BACKOFF_SECONDS_MAX


def test_back_offs_are_spread(bench):
    bench.chance = 0.0
    bench.overrun(OVERRUNS_MAX)

    earliest = bench.guard.breakers[KEY].retry_at - bench.now

    assert earliest == pytest.approx(BACKOFF_SECONDS * (1 - JITTER))


def test_a_trial_that_was_given_up_on_is_followed_by_another(bench):
    bench.overrun(OVERRUNS_MAX)
    bench.now += BACKOFF_SECONDS
    assert bench.admits()

    bench.now += BACKOFF_SECONDS
    assert bench.admits()


def test_after_a_trial_the_overruns_count_on(bench):
    bench.overrun(OVERRUNS_MAX)
    bench.now += BACKOFF_SECONDS
    assert bench.admits()
    bench.guard.finished(*bench.policy)

    bench.overrun()

    assert not bench.admits()


def test_a_changed_policy_begins_anew(bench):
    bench.overrun(OVERRUNS_MAX)
    bench.client.add_template(echo_template("other"))

    assert bench.admits()
    assert bench.guard.views() == {}


def test_a_slow_constraint_is_evaluated_elsewhere_for_a_while(bench):
    bench.guard.slowed(*bench.policy)

    assert bench.guard.is_slow(*bench.policy)
    assert bench.guard.views() == {}
    bench.now += SLOW_SECONDS
    assert not bench.guard.is_slow(*bench.policy)


def test_a_trial_is_never_made_where_it_would_hold_others_up(bench):
    bench.overrun(OVERRUNS_MAX)
    assert not bench.guard.is_slow(*bench.policy)  # not evaluated at all
    bench.now += BACKOFF_SECONDS

    assert bench.guard.is_slow(*bench.policy)


def test_what_is_well_again_or_gone_is_forgotten(bench):
    bench.overrun()
    bench.guard.keep([KEY])
    assert KEY in bench.guard.views()

    bench.now += WINDOW_SECONDS
    bench.guard.keep([KEY])
    assert bench.guard.breakers == {}

    bench.overrun(OVERRUNS_MAX)
    bench.guard.keep([])
    assert bench.guard.breakers == {}


def test_what_is_large_for_its_kind_teaches_nothing(bench):
    guard = bench.guard
    for _ in range(200):
        guard.saw("Pod", 3_000)
        guard.saw("CustomResource", 200_000)
    for _ in range(5):  # as many again, and none of them moves what is usual
        guard.saw("Pod", 369_000)
    assert guard.is_usual("Pod", 16_000)
    assert not guard.is_usual("Pod", 369_000)
    assert guard.is_usual("CustomResource", 369_000)
    assert not guard.is_usual("Unknown", 369_000)


def test_sizes_are_learnt_of_kinds_without_constraints_too(bench):
    """A constraint may come, and what is usual is known then."""
    limits = Limits(budget=Budget.of(1.0, guard=bench.guard))
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    snapshot = client().snapshot
    for _ in range(200):
        snapshot.review(AugmentedObject(config, size=200_000), limits=limits)
    assert bench.guard.is_usual(("", "ConfigMap"), 369_000)


def test_what_is_much_smaller_than_what_overran_is_evaluated_all_the_same(bench):
    for _ in range(OVERRUNS_MAX):
        bench.guard.overran(*bench.policy, "too long", 10_000)
    assert bench.state() == "open"
    assert not bench.guard.admits(*bench.policy, 10_000)
    assert not bench.guard.admits(*bench.policy, 6_000)
    assert bench.guard.admits(*bench.policy, 3_000)
    assert not bench.guard.is_slow(*bench.policy, 3_000)
    bench.guard.finished(*bench.policy, 3_000)
    assert bench.state() == "open"

    bench.guard.overran(*bench.policy, "too long", 3_000)
    assert not bench.guard.admits(*bench.policy, 3_000)
    assert bench.guard.admits(*bench.policy, 1_000)


def test_a_review_that_was_no_trial_does_not_close_a_breaker(bench):
    for _ in range(OVERRUNS_MAX):
        bench.guard.overran(*bench.policy, "too long", 10_000)
    bench.now += BACKOFF_SECONDS * (1 + JITTER)
    assert bench.guard.admits(*bench.policy, 10_000)
    assert bench.state() == "half-open"
    bench.guard.finished(*bench.policy, 100)
    assert bench.state() == "half-open"
    bench.guard.finished(*bench.policy, 10_000)
    assert bench.state() == "closed"


def test_only_what_is_as_large_as_what_was_slow_is_evaluated_elsewhere(bench):
    bench.guard.slowed(*bench.policy, 369_000)
    assert bench.guard.is_slow(*bench.policy, 200_000)
    assert not bench.guard.is_slow(*bench.policy, 3_000)
    bench.guard.slowed(*bench.policy, 3_000)
    assert bench.guard.is_slow(*bench.policy, 3_000)


def test_what_overruns_for_one_requester_suspends_it_for_that_one_alone(bench):
    """Three small objects of one user had suspended a policy for everybody."""
    for _ in range(2 * OVERRUNS_MAX):
        bench.guard.overran(*bench.policy, "too long", 0, "mallory")
    assert bench.state() == "closed"
    assert not bench.guard.admits(*bench.policy, 0, "mallory")
    assert bench.guard.admits(*bench.policy, 0, "bob")
    assert "for this user" in bench.guard.suspended(bench.policy[1], "mallory")
    assert "for this user" not in bench.guard.suspended(bench.policy[1], "bob")
    bench.now += BACKOFF_SECONDS_MAX * (1 + JITTER)
    assert bench.guard.is_slow(*bench.policy, 0, "mallory")
    assert bench.guard.admits(*bench.policy, 0, "mallory")  # a trial
    assert not bench.guard.admits(*bench.policy, 0, "mallory")
    bench.guard.finished(*bench.policy, 0, "mallory")
    assert bench.guard.admits(*bench.policy, 0, "mallory")
    bench.now += WINDOW_SECONDS + SLOW_SECONDS
    bench.guard.keep([KEY])
    assert bench.guard.breakers == {}


def test_what_overruns_for_several_requesters_is_suspended_for_everybody(bench):
    for number in range(OVERRUNS_MAX):
        assert bench.state_or_closed() == "closed"
        for _ in range(2):
            bench.guard.overran(*bench.policy, "too long", 0, f"user-{number}")
    assert bench.state() == "open"
    assert not bench.guard.admits(*bench.policy, 0, "another")


def test_requesters_that_overran_are_remembered_up_to_a_bound(bench):
    for number in range(REQUESTERS_MAX + 10):
        bench.guard.overran(*bench.policy, "too long", 0, f"user-{number}")
    assert len(bench.guard.breakers[KEY].by_requester) == REQUESTERS_MAX
