"""A new policy is held until one replica has said what comes of it, and then applied by each."""

import asyncio
import json
import threading

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.controllers.bench import REGO, constraint, template
from tests.webhook.controllers.held_policies import event, played
from webhook.controllers.apply import prevalidation
from webhook.controllers.revisions import outcome_records
from webhook.policy_kinds.known import TEMPLATE
from webhook.watch.queue import Event

BROKEN = template(rego="package a\nviolation[")


def test_a_new_policy_is_tried_reported_and_then_applied(tmp_path, trials):
    async def story(held):
        assert held.holds(template())
        assert held.released == []
        await held.until_released()
        assert held.released == [event(template())]
        assert held.last_outcome(template()) == ("passed", "uid-1")
        held.policies.add_template(template())
        assert held.holds(constraint())
        await held.until_released(2)
        assert held.last_outcome(constraint()) == ("passed", "uid-1")
        assert not held.holds(constraint())  # Its outcome is known.

    played(tmp_path, trials, story)


def test_what_changes_while_it_is_held_is_applied_as_it_is_at_last(tmp_path, trials):
    async def story(held):
        first, second = template(), template(generation=2)
        second["spec"] = {**second["spec"], "a": 1}
        labelled = template(generation=2)
        labelled["spec"] = second["spec"]
        labelled["metadata"]["labels"] = {"a": "b"}
        assert all(held.holds(one) for one in (first, second, labelled))
        await held.until_released()
        assert [one.object for one in held.released] == [labelled]
        assert held.last_outcome(labelled) == ("passed", "uid-1")

    played(tmp_path, trials, story)


@pytest.mark.parametrize("goes", ["itself", "its template"])
def test_what_goes_while_it_is_held_is_not_applied(tmp_path, trials, goes):
    async def story(held):
        held.policies.add_template(template())
        assert held.holds(constraint())
        gone = constraint() if goes == "itself" else template()
        assert not held.holds(gone, "delete")
        assert held.holds({**template(), "metadata": {**template()["metadata"], "uid": "new"}})
        await held.until_released()
        assert [one.gvk for one in held.released] == [TEMPLATE]

    played(tmp_path, trials, story)


def test_what_is_being_deleted_is_not_held(tmp_path, trials):
    async def story(held):
        going = template()
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert not held.holds(going)

    played(tmp_path, trials, story)


def test_nothing_is_held_that_need_not_be_tried_or_cannot_be(tmp_path, trials):
    async def story(held):
        assert not held.holds(constraint())  # Its template is not in force.
        held.is_serving = False
        assert not held.holds(template())
        held.is_serving, held.is_known = True, True
        assert not held.holds(template())
        held.is_known = False
        held.arrives(template(), "refused")
        assert not held.holds(template())
        held.arrives(template(uid="other"), "refused", version="0.0.0-other")
        assert held.holds(template(uid="other"))  # Another version may take less.
        synced = Event("synced", TEMPLATE)
        assert not held.prevalidation.holds(synced)

    played(tmp_path, trials, story)


def test_beyond_a_number_of_changes_the_others_are_tried_as_they_are_applied(
    tmp_path, trials, monkeypatch
):
    monkeypatch.setattr(prevalidation, "HELD_MAX", 0)

    async def story(held):
        assert not held.holds(template())

    played(tmp_path, trials, story)


@pytest.mark.parametrize("turns", range(8))
def test_a_replica_that_ends_as_it_is_about_to_say_something_ends_without_a_fault(
    tmp_path, trials, monkeypatch, turns
):
    """Whichever of the two comes first: that it has its turn to say so, or that all of it ends."""
    monkeypatch.setattr(prevalidation, "CLAIM_SECONDS", 0)
    reported = threading.Event()
    monkeypatch.setattr(trials, "found_out_all", lambda *_: reported.wait(PATIENCE_SECONDS))

    async def story(held):
        assert held.holds(template())
        for _ in range(turns):
            await asyncio.sleep(0)
        held.running.cancel()
        await asyncio.wait({held.running})
        reported.set()
        assert [line for line in held.lines if b"stacktrace" in line] == []
        assert held.released == []

    played(tmp_path, trials, story)


def test_what_changes_as_a_replica_ends_is_not_held_any_more(tmp_path, trials):
    async def story(held):
        assert held.holds(template())
        held.running.cancel()
        for number in range(1, 9):
            is_held = held.holds(template(rego=REGO + "#" * number))
            await asyncio.sleep(0)
        assert not is_held

    played(tmp_path, trials, story)


def test_a_bug_in_writing_an_outcome_costs_its_policy_alone(tmp_path, trials, monkeypatch):
    """It ended the session at the cluster, also where nobody waited for the write any more."""

    async def story(held):
        def broken(*_, **__):
            raise ZeroDivisionError("a bug")

        with monkeypatch.context() as patched:
            patched.setattr(outcome_records.OutcomeRecords, "_standing", broken)
            assert held.holds(template())
            await held.until_released()
        assert held.released == [event(template())]
        (line,) = map(json.loads, held.lines)
        assert "ZeroDivisionError" in line["stacktrace"]
        other = template(rego=REGO + "# other", uid="other")
        other["metadata"]["name"] = "k8sother"
        other["spec"]["crd"]["spec"]["names"]["kind"] = "K8sOther"
        assert held.holds(other)
        await held.until_released(2)
        assert held.last_outcome(other) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def test_a_bug_in_a_write_that_nobody_waits_for_any_more_is_reported(tmp_path, trials, monkeypatch):
    monkeypatch.setattr(prevalidation, "WRITE_SECONDS", 0.0)
    standing, written = outcome_records.OutcomeRecords._standing, asyncio.Event()

    def broken(self, made):
        written.set()
        standing(self, made)
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(outcome_records.OutcomeRecords, "_standing", broken)

    async def story(held):
        assert held.holds(template())
        await held.until_released()
        await written.wait()
        for _ in range(3):
            await asyncio.sleep(0)
        (line,) = map(json.loads, held.lines)
        assert "ZeroDivisionError" in line["stacktrace"]

    played(tmp_path, trials, story)
