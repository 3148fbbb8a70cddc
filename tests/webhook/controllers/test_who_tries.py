"""Of several replicas one tries a new policy, and the others hear what comes of it."""

import asyncio
import contextlib
import threading

import pytest

from tests.patience import PATIENCE_SECONDS, turns_until
from tests.webhook.controllers.bench import template
from tests.webhook.controllers.held_policies import event, large_template, played
from webhook import __version__
from webhook.api.revision import digest_of, name_of
from webhook.controllers.apply import prevalidation
from webhook.controllers.revisions import outcome_records
from webhook.controllers.revisions.policy_state import AppliedFault
from webhook.trials.trials import is_large


def test_what_another_replica_has_tried_is_not_tried_again(tmp_path, trials):
    """It is first in turn, says that it is at it, and comes to an end."""

    async def story(held):
        document = template()
        other = held.has_another_first(document)
        assert held.holds(document)
        held.arrives(document, "trying", other)
        await asyncio.sleep(0)
        assert held.released == []
        held.arrives(document, "passed", other)
        await held.until_released()
        assert held.server.requests == []

    played(tmp_path, trials, story)


@pytest.mark.parametrize(("version", "tries"), [(__version__, 0), ("0.0.1", 1)])
def test_what_is_written_already_and_was_not_heard_of_yet_is_not_tried_again(
    tmp_path, trials, tried, monkeypatch, version, tries
):
    """The write that says that we are at it finds it; what another version found is not ours."""
    monkeypatch.setattr(prevalidation, "TURN_SECONDS", 0.01)

    async def story(held):
        document = template()
        other = held.has_another_first(document)
        held.writes(document, "ended", other, version)
        assert held.holds(document)
        await held.until_released()
        assert len(tried) == tries
        assert held.last_outcome(document) == ("ended", other)

    played(tmp_path, trials, story)


def test_a_replica_that_is_first_and_says_nothing_is_not_waited_for_any_longer(
    tmp_path, trials, monkeypatch
):
    monkeypatch.setattr(prevalidation, "TURN_SECONDS", 0.01)

    async def story(held):
        held.has_another_first(template())
        assert held.holds(template())
        await held.until_released()
        assert held.last_outcome(template()) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def test_who_is_at_it_is_waited_for_though_no_status_of_it_was_heard_of(tmp_path, trials, tried):
    """Before the first policy there is none: each took the others' word for that of one gone."""
    large = large_template()
    name = name_of(large, digest_of(large))

    async def story(held):
        held.silent.add("uid-2")
        held.writes(large, "trying", "uid-2", __version__)
        assert held.holds(large)
        # The write that says that we are at it finds the other's word.
        await turns_until(lambda: held.revisions.known.named("large", name) is not None)
        for _ in range(10):
            await asyncio.sleep(0)
        held.arrives(large, "ended", "uid-2")
        await held.until_released()
        assert tried == []
        assert [method for method, _ in held.server.requests] == ["POST", "GET"]
        assert held.last_outcome(large) == ("ended", "uid-2")

    played(tmp_path, trials, story)


def test_who_is_at_it_by_a_revision_that_cannot_be_read_is_not_waited_for(tmp_path, trials, tried):
    """Its end would never be seen: it was requested again and again, without a pause."""
    large = large_template()

    async def story(held):
        held.silent.add("uid-2")
        made = held.writes(large, "trying", "uid-2", __version__)
        made["spec"]["generation"] = "no number"
        assert held.holds(large)
        await held.until_released()
        assert tried == [large]
        assert held.last_outcome(large) == ("passed", "uid-1")
        # Its claim, its outcome, and one more where a trial takes long: each looks, then writes.
        assert len(held.server.requests) <= 7

    played(tmp_path, trials, story)


def test_who_was_kept_from_trying_what_it_is_at_takes_its_word_back(tmp_path, trials, monkeypatch):
    """The others would hold the generation for as long as a trial may take."""
    large = large_template()

    def kept_from_it(requests, seconds, notify):
        for number in range(len(requests)):
            notify(number, None)

    monkeypatch.setattr(trials, "found_out_all", kept_from_it)

    async def story(held):
        assert held.holds(large)
        await held.until_released()
        await turns_until(lambda: held.last_outcome(large) == ("trying", ""))

    played(tmp_path, trials, story)


def test_what_nobody_is_at_any_more_is_tried(tmp_path, trials, tried):
    large = large_template()

    async def story(held):
        held.arrives(large, "trying", "")
        assert held.holds(large)
        await held.until_released()
        assert tried == [large]
        assert held.last_outcome(large) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def test_a_large_policy_is_not_tried_before_the_api_server_has_taken_its_word(
    tmp_path, trials, tried, monkeypatch
):
    """However long that takes: each replica would spend seconds of a processor on it."""
    monkeypatch.setattr(prevalidation, "RECORD_SECONDS", 0.0)
    for module in (prevalidation, outcome_records):
        monkeypatch.setattr(module, "WRITE_SECONDS", PATIENCE_SECONDS)
    large = large_template()

    async def story(held):
        held.server.held_name = name_of(large, digest_of(large))
        assert held.holds(large)
        await held.server.waits.wait()
        assert held.holds(template())  # goes all its way meanwhile
        await held.until_released()
        assert held.released == [event(template())]
        assert [is_large(one) for one in tried] == [False]
        held.server.opened.set()
        await held.until_released(2)
        assert [is_large(one) for one in tried] == [False, True]
        assert held.last_outcome(large) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def test_who_said_that_it_is_at_it_and_is_gone_is_not_waited_for(tmp_path, trials, monkeypatch):
    monkeypatch.setattr(prevalidation, "TURN_SECONDS", 0.01)

    async def story(held):
        document = template()
        other = held.has_another_first(document)
        assert held.holds(document)
        held.arrives(document, "trying", other)
        held.writers.discard(other)
        await held.until_released()
        assert held.last_outcome(document) == ("passed", "uid-1")

    played(tmp_path, trials, story)


def test_a_replica_that_may_not_write_waits_for_those_who_do(tmp_path, trials, monkeypatch):
    """It tries itself if no other replica reports an outcome."""
    monkeypatch.setattr(prevalidation, "TURN_SECONDS", 0.01)

    async def story(held):
        held.writers = {"uid-2", "uid-3"}
        held.server.refuses = True
        assert held.holds(template())
        await held.until_released()
        assert held.last_outcome(template()) is None

    played(tmp_path, trials, story)


def test_a_word_that_this_pod_is_at_it_is_withdrawn_where_it_is_not(tmp_path, trials, tried):
    """The container was killed at it, or the write of its word came after it had given up."""
    large = large_template()

    async def story(held):
        held.arrives(large, "trying", "uid-1")
        await turns_until(lambda: held.last_outcome(large) == ("trying", ""))
        held.arrives(large, "trying", "uid-2")
        for _ in range(10):
            await asyncio.sleep(0)
        assert held.last_outcome(large) == ("trying", "uid-2"), "another may be at it"
        assert tried == []

    played(tmp_path, trials, story)


def test_a_word_of_an_earlier_process_of_this_pod_is_withdrawn_at_the_start(tmp_path, trials):
    """The claim stayed in the revision for ever, and each new replica tried it once more."""
    large = large_template()

    async def story(held):
        held.running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await held.running
        held.arrives(large, "trying", "uid-1")
        assert held.last_outcome(large) == ("trying", "uid-1")
        async with asyncio.TaskGroup() as tasks:
            held.running = tasks.create_task(held.prevalidation.run())
            await turns_until(lambda: held.last_outcome(large) == ("trying", ""))
            held.running.cancel()

    played(tmp_path, trials, story)


def test_who_gives_up_what_it_is_at_withdraws_its_word(tmp_path, trials, monkeypatch):
    """The object has changed, or is gone, while it was tried."""
    large, begun = large_template(), threading.Event()
    end = threading.Event()

    def slow(requests, seconds, notify):
        begun.set()
        end.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(trials, "found_out_all", slow)

    async def story(held):
        assert held.holds(large)
        await turns_until(begun.is_set)
        await turns_until(lambda: held.last_outcome(large) == ("trying", "uid-1"))
        assert not held.holds(large, "delete")
        await turns_until(lambda: held.last_outcome(large) == ("trying", ""))
        end.set()

    played(tmp_path, trials, story)


def test_what_another_has_found_meanwhile_ends_our_trial(tmp_path, trials, monkeypatch):
    """The answer to our word that we are at it says so; it was not reviewed."""
    document, begun, end = template(), threading.Event(), threading.Event()

    def slow(requests, seconds, notify):
        begun.set()
        end.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(trials, "found_out_all", slow)

    async def story(held):
        assert held.holds(document)
        await turns_until(begun.is_set)
        held.writes(document, "ended", "uid-2", __version__)
        await held.until_released()
        assert not end.is_set()
        assert held.last_outcome(document) == ("ended", "uid-2")
        end.set()

    played(tmp_path, trials, story)


@pytest.mark.parametrize("verdict", ["refused", "ended"])
def test_what_is_found_as_policies_are_applied_is_kept_once(tmp_path, trials, verdict):
    """At a start nothing is held: what a replica found stood nowhere, and each found it again."""
    document = template()

    async def story(held):
        found = AppliedFault(document, verdict, "policy is too large")
        held.prevalidation.report_faults([found, found])
        await turns_until(lambda: held.last_outcome(document) == (verdict, "uid-1"))
        held.prevalidation.report_faults([found])
        for _ in range(10):
            await asyncio.sleep(0)
        assert [method for method, _ in held.server.requests] == ["POST"]
        assert (
            held.revisions.known.named(
                document["metadata"]["uid"], name_of(document, digest_of(document))
            )
            is not None
        )

    played(tmp_path, trials, story)


def test_a_word_of_a_pod_that_is_gone_gives_way_to_what_is_found(tmp_path, trials):
    large = large_template()

    async def story(held):
        held.arrives(large, "trying", "uid-9")
        held.prevalidation.report_faults([AppliedFault(large, "ended", "policy is too large")])
        await turns_until(lambda: held.last_outcome(large) == ("ended", "uid-1"))

    played(tmp_path, trials, story)
