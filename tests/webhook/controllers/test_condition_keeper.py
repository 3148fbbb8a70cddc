"""The state kept about conditions: counted states, and replicas that have been behind for long."""

from typing import Any

import pytest

from tests.webhook.controllers.pod_statuses import FAULT, pod, says, template
from webhook.controllers.status import condition_keeper
from webhook.controllers.status.condition_keeper import PRUNED_SECONDS, ConditionKeeper
from webhook.controllers.status.conditions import BEHIND_SECONDS
from webhook.controllers.status_kinds import LabelledSubject

NOBODY: Any = None
"""For what is never asked here."""


TEMPLATE = LabelledSubject("ConstraintTemplatePodStatus", "", "t")
CONSTRAINT = LabelledSubject("ConstraintPodStatus", "K8sAlways", "c")


class Lines:
    """A log whose lines a test looks at."""

    def __init__(self):
        self.messages = []

    def warning(self, message, **fields):
        """Keep a line."""
        self.messages.append((message, fields))


class Clock:
    """A clock that a test turns."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        """Seconds."""
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(condition_keeper, "time", made)
    return made


@pytest.fixture
def log():
    return Lines()


@pytest.fixture
def keeper(log, clock):
    return ConditionKeeper(NOBODY, NOBODY, log)


def merged(keeper, *statuses, document=None, status=None):
    pods = [pod(item["status"]["id"]) for item in statuses]
    return keeper.merged(TEMPLATE, document or template(), status, statuses, pods)


def state(status):
    return [item["type"] for item in status["conditions"] if item["status"] == "True"]


def test_what_differs_in_nothing_is_not_written(keeper):
    found = merged(keeper, says("a"))
    document = template() | {"status": found}

    assert state(found) == ["Active", "Enforced"]
    assert merged(keeper, says("a"), document=document) is None
    other = {"byPod": [1], "conditions": found["conditions"]}
    assert merged(keeper, says("a"), document=document, status=other) is other


def test_one_behind_is_waited_for_and_then_reported(keeper, clock):
    statuses = [says("a"), says("b", observed=1, active=1)]
    assert merged(keeper, *statuses) is None
    assert keeper.due(TEMPLATE) == clock.now + BEHIND_SECONDS
    clock.now += BEHIND_SECONDS

    assert state(merged(keeper, *statuses)) == ["Degraded"]
    assert keeper.due(TEMPLATE) is None
    assert state(merged(keeper, says("a"), says("b"))) == ["Active", "Enforced"]
    assert merged(keeper, *statuses) is None  # it has the whole time again


def test_a_new_generation_has_the_whole_time(keeper, clock):
    assert merged(keeper, says("a"), says("b", observed=1)) is None
    clock.now += BEHIND_SECONDS
    newer = [says("a", observed=3), says("b")]

    assert merged(keeper, *newer, document=template(3)) is None
    assert keeper.due(TEMPLATE) == clock.now + BEHIND_SECONDS


def test_states_are_counted_and_forgotten_with_their_objects(keeper):
    good, bad = ({"status": merged(keeper, says("a", errors=errors))} for errors in ([], [FAULT]))
    keeper.follow(["K8sAlways"])
    keeper.seen(TEMPLATE, good)
    keeper.seen(CONSTRAINT, bad)
    counts = keeper.counts
    assert (counts["template", "active"], counts["constraint", "error"]) == (1, 1)
    assert sum(counts.values()) == 2

    keeper.seen(TEMPLATE, bad)
    assert keeper.counts["template", "error"] == 1
    keeper.seen(TEMPLATE, None)
    assert sum(keeper.counts.values()) == 1
    keeper.follow([])
    assert sum(keeper.counts.values()) == 0


async def written(keeper, desired, after):
    await keeper.written(TEMPLATE, {}, desired, {"status": after})


def run(coroutine):
    with pytest.raises(StopIteration):
        coroutine.send(None)


def test_a_crd_that_keeps_no_conditions_is_not_written_to_again_and_again(keeper, clock, log):
    found = merged(keeper, says("a"))
    run(written(keeper, found, {"byPod": []}))
    run(written(keeper, found, {"byPod": []}))

    assert [message for message, _ in log.messages] == [
        "conditions are not written: the CRD does not keep them"
    ]
    assert merged(keeper, says("a")) is None
    clock.now += PRUNED_SECONDS
    assert state(merged(keeper, says("a"))) == state(found)


def test_a_status_without_conditions_says_nothing_of_the_crd(keeper, log):
    run(written(keeper, {"byPod": []}, {"byPod": []}))

    assert log.messages == []
    assert merged(keeper, says("a")) is not None
