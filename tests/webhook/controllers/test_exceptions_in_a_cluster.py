"""Exceptions of a cluster: in force by the clock alone, their statuses, their end."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.policies import exception
from tests.simulation.policies import constraint
from tests.webhook.controllers.session import (
    ALPHAS,
    EVERYTHING,
    NAMESPACE,
    Session,
    enforced,
    in_cel,
    session,
)
from webhook.api.timestamp import text_of
from webhook.constraint.review import AugmentedObject
from webhook.exceptions.reading import read_exception
from webhook.exceptions.state import ExceptionFacts, next_status
from webhook.review.loops import review
from webhook.review.subject import Subject

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "waddle.dev"
NAMESPACED = (GROUP, "policyexceptions")
WIDE = (GROUP, "clusterpolicyexceptions")
OPEN: Any = {"annotations": {"waddle.dev/exceptions": "all"}}


def status(
    replica: Session, group: str, plural: str, name: str, namespace: str = ""
) -> dict[str, Any]:
    found: dict[str, Any] = replica.get(group, plural, name, namespace).get("status", {})
    return found


def found(replica: Session, at: float | None = None) -> tuple[int, int]:
    """Returns the counts of violations and of excused ones, of an object in ``waddle``."""
    revision = replica.serving.revision
    assert revision is not None
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": NAMESPACE},
    }
    responses = review(revision.policies, Subject(AugmentedObject(obj), at=at)).responses
    replica.serving.uses.note(responses)
    return len(responses.results), len(responses.excused)


def test_an_exception_is_in_force_reported_and_noted_as_used(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica, **OPEN)
            replica.make(*NAMESPACED, exception("e", "Alpha/c", namespace=NAMESPACE), NAMESPACE)
            await replica.until(lambda: found(replica) == (0, 1), "the exception in force")
            await replica.until(
                lambda: status(replica, *NAMESPACED, "e", NAMESPACE).get("lastUsed"), "used"
            )
            written = status(replica, *NAMESPACED, "e", NAMESPACE)
            assert written["state"] == "Active"
            assert written["observedGeneration"] == 1
            assert "narrow it" in written["message"]

    asyncio.run(run())


def test_one_that_cannot_be_used_excuses_nothing_whatever_it_did_before(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            replica.make(*WIDE, exception("e", "Alpha/c", match={"name": "x"}))
            await replica.until(lambda: found(replica) == (0, 1), "the exception in force")
            replica.change(*WIDE, "e", spec={"reason": "no"})
            await replica.until(
                lambda: status(replica, *WIDE, "e").get("state") == "Invalid", "told"
            )
            assert "spec.constraints" in status(replica, *WIDE, "e")["message"]
            assert found(replica) == (1, 0)

    asyncio.run(run())


TEAM_OF_ALL = [{"name": "team", "expression": "object.metadata.labels.team == 'x'"}]
"""Conditions that have no value for objects without labels."""

NO_LABELS = (
    "could not be evaluated: expression 'object.metadata.labels.team == 'x'' resulted in error"
)


def test_an_error_of_its_conditions_is_in_its_status(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            document = exception("e", "Alpha/c", matchConditions=TEAM_OF_ALL)
            replica.make(*WIDE, document)
            await replica.until(lambda: status(replica, *WIDE, "e").get("state"), "in force")

            def is_reported() -> bool:
                # Each review may be of a set that the next change replaces, with its errors.
                assert found(replica) == (1, 0)
                return NO_LABELS in status(replica, *WIDE, "e").get("message", "")

            await replica.until(is_reported, "the error")

    asyncio.run(run())


def test_replicas_without_the_error_leave_it_in_the_status_until_the_spec_changes() -> None:
    document = exception("e", "Alpha/*", matchConditions=TEAM_OF_ALL)
    document["metadata"] |= {"generation": 1, "creationTimestamp": text_of(time.time())}
    item = read_exception(document)
    constraints: Any = {("Alpha", "c"): None}
    here = ExceptionFacts(item, constraints, condition_fault="no labels")
    elsewhere = ExceptionFacts(item, constraints)
    written = next_status(document, here, time.time())
    assert written is not None
    assert "could not be evaluated: no labels" in written["message"]
    document["status"] = written
    assert next_status(document, elsewhere, time.time()) is None
    other = ExceptionFacts(item, constraints, condition_fault="no team")
    assert next_status(document, other, time.time()) is None
    document["metadata"]["generation"] = 2
    # This replica has not read the new spec yet: its error is of the old one.
    written = next_status(document, here, time.time())
    assert written == {"state": "Active", "observedGeneration": 2}


def test_the_state_follows_the_clock_and_the_constraints(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            now = time.time()
            times = {
                "past": (now - 9e6, now - 9e5),
                "coming": (now + 9e5, now + 9e6),
                "soon": (now - 9e5, now + 9e4),
            }
            for name, (begins, ends) in times.items():
                begin, end = text_of(begins), text_of(ends)
                document = exception(
                    name, "Alpha/c", notBefore=begin, expires=end, match={"name": "x"}
                )
                replica.make(*WIDE, document)
            replica.make(
                *WIDE,
                exception("other", "Alpha/d", match={"name": "x"}, notBefore=text_of(now - 9)),
            )

            def states() -> dict[str, str]:
                return {
                    one["metadata"]["name"]: one.get("status", {}).get("state", "")
                    for one in replica.all(*WIDE)
                }

            await replica.until(lambda: states()["other"] == "Invalid", "nothing to except from")
            await enforced(replica)
            await replica.until(
                lambda: (
                    states()
                    == {
                        "past": "Expired",
                        "coming": "Pending",
                        "soon": "Active",
                        "other": "Invalid",
                    }
                ),
                "all states",
            )
            assert status(replica, *WIDE, "soon")["message"].startswith("it ends at ")
            document = constraint("Alpha", "d", 0)
            replica.make(*ALPHAS, document)
            await replica.until(lambda: states()["other"] == "Active", "the constraint has come")

            def in_force() -> set[tuple[str, str]]:
                events = replica.all("", "events")
                return {(one["involvedObject"]["name"], one["reason"]) for one in events}

            await replica.until(
                lambda: (
                    in_force() >= {("past", "Expired"), ("soon", "Expiring"), ("other", "Invalid")}
                ),
                "Events",
            )
            # By the clock alone: nobody writes anything for it to end.
            assert found(replica, at=now)[1] == 2
            assert found(replica, at=now + 9e4 + 1)[1] == 1

    asyncio.run(run())


def test_a_constraint_that_allows_none_any_more_is_in_the_status(tmp_path: Path) -> None:
    """The status said Active until the next hour, and until the end for a second constraint."""

    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica, **OPEN)
            for name in ("d", "e"):
                document = constraint("Alpha", name, 0)
                document["metadata"] |= OPEN
                replica.make(*ALPHAS, document)
            for named in (("Alpha/c",), ("Alpha/d", "Alpha/e")):
                begun = text_of(time.time() - 9)
                document = exception(named[0][-1], *named, namespace=NAMESPACE, notBefore=begun)
                replica.make(*NAMESPACED, document, NAMESPACE)

            def state_and_message(name: str) -> str:
                written = status(replica, *NAMESPACED, name, NAMESPACE)
                return f"{written.get('state')}: {written.get('message')}"

            await replica.until(
                lambda: all(state_and_message(name).startswith("Active") for name in ("c", "d")),
                "in force",
            )
            closed = {"annotations": {"waddle.dev/exceptions": "none"}}
            for name in ("c", "d"):
                metadata = replica.get(*ALPHAS, name)["metadata"] | closed
                replica.change(*ALPHAS, name, metadata=metadata)
            await replica.until(
                lambda: state_and_message("c").startswith("Invalid: Alpha c allows no"), "c"
            )
            await replica.until(
                lambda: (
                    state_and_message("d").startswith("Active")
                    and "Alpha d allows no" in state_and_message("d")
                ),
                "d",
            )

    asyncio.run(run())


def test_a_binding_is_withdrawn_while_an_exception_holds(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.make("templates.gatekeeper.sh", "constrainttemplates", in_cel())
            await replica.until(lambda: ALPHAS in replica.storage.kinds, "the constraint's kind")
            replica.make(*ALPHAS, constraint("Alpha", "c", 0))
            bindings = ("admissionregistration.k8s.io", "validatingadmissionpolicybindings")
            await replica.until(lambda: replica.all(*bindings), "a binding")
            replica.make(*WIDE, exception("e", "Alpha/c", match={"name": "x"}))
            await replica.until(lambda: not replica.all(*bindings), "withdrawn")

            def says() -> bool:
                statuses = replica.all("status.gatekeeper.sh", "constraintpodstatuses")
                points = [
                    entry
                    for one in statuses
                    for entry in one["status"].get("enforcementPointsStatus", ())
                ]
                return any(entry["state"] == "withdrawn" for entry in points)

            await replica.until(says, "the status says so")
            replica.drop(*WIDE, "e")
            await replica.until(lambda: replica.all(*bindings), "a binding again")

    asyncio.run(run())


DAY = 86400.0


def ending(name: str, seconds: float, begun: float = 20 * DAY) -> Any:
    """An exception of the cluster that began so long ago, and ends so long from now."""
    now = time.time()
    begins, ends = text_of(now - begun), text_of(now + seconds)
    return exception(name, "Alpha/c", notBefore=begins, expires=ends, match={"name": "x"})


def events_about(replica: Session, name: str) -> list[tuple[str, str]]:
    """The Events about an exception: reason and type."""
    return [
        (one["reason"], one["type"])
        for one in replica.all("", "events")
        if one["involvedObject"]["name"] == name
    ]


def is_expiring(replica: Session, name: str) -> bool:
    """Whether Events say that it is about to end, once, and nothing else."""
    return events_about(replica, name) == [("Expiring", "Warning")]


def test_events_tell_a_week_before_the_end_and_at_the_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            replica.make(*WIDE, ending("far", 8 * DAY))
            replica.make(*WIDE, ending("near", 6 * DAY))
            # Its last week begins while it is looked at: nobody writes anything for that.
            replica.make(*WIDE, ending("coming", 7 * DAY + 2))
            over = ending("over", -DAY)
            over["status"] = {"state": "Active", "message": "it ends at some time"}
            replica.make(*WIDE, over)
            for name in ("near", "coming"):
                await replica.until(partial(is_expiring, replica, name), name)
            await replica.until(
                lambda: events_about(replica, "over") == [("Expired", "Warning")], "the end"
            )
            assert status(replica, *WIDE, "far")["state"] == "Active"
            assert events_about(replica, "far") == []

    asyncio.run(run())


def test_one_that_is_unused_has_to_end_as_well(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            idle = ending("idle", 6 * DAY, begun=40 * DAY)
            idle["status"] = {"state": "Unused", "message": "it has excused nothing for 39 days"}
            replica.make(*WIDE, idle)
            await replica.until(lambda: is_expiring(replica, "idle"), "an Event")
            assert status(replica, *WIDE, "idle")["state"] == "Unused"
            assert "it ends at" in status(replica, *WIDE, "idle")["message"]

    asyncio.run(run())


def names(replica: Session) -> set[str]:
    """Returns the names of the existing exceptions."""
    return {one["metadata"]["name"] for one in replica.all(*WIDE)}


def test_expired_ones_are_deleted_when_they_were_kept_for_long_enough(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING, exceptions_keep_seconds=10 * DAY) as replica:
            await enforced(replica)
            replica.make(*WIDE, ending("old", -11 * DAY))
            replica.make(*WIDE, ending("recent", -9 * DAY))
            # Its time comes while it is looked at: nobody writes anything for that.
            replica.make(*WIDE, ending("due", 2 - 10 * DAY))
            replica.make(*WIDE, ending("in-force", DAY))
            replica.make(*WIDE, exception("broken", "Alpha/c", reason="no", expires=text_of(0)))
            await replica.until(
                lambda: names(replica) == {"recent", "in-force", "broken"}, "deleted"
            )
            await replica.until(
                lambda: status(replica, *WIDE, "recent").get("state") == "Expired", "kept and told"
            )
            assert any(b"expired exception deleted" in line for line in replica.lines)

    asyncio.run(run())


@pytest.mark.parametrize("keep_seconds", [10 * DAY, 0.0])
def test_without_the_right_or_the_wish_to_delete_they_stay(
    tmp_path: Path, keep_seconds: float
) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING, exceptions_keep_seconds=keep_seconds) as replica:
            await enforced(replica)
            replica.make(*WIDE, ending("old", -11 * DAY))
            replica.storage.refused["ClusterPolicyException"] = 403
            keeper = replica.following._exceptions
            if keep_seconds:
                await replica.until(
                    lambda: not keeper._may_delete(), "it was tried, and is not again"
                )
            await replica.until(
                lambda: status(replica, *WIDE, "old").get("state") == "Expired", "told"
            )
            replica.storage.refused.clear()
            replica.make(*WIDE, ending("later", -11 * DAY))
            await replica.until(
                lambda: status(replica, *WIDE, "later").get("state") == "Expired", "told"
            )
            assert names(replica) == {"old", "later"}
            assert keeper.keeper.failures == 0

    asyncio.run(run())


def test_one_that_is_prolonged_is_not_deleted_for_what_it_said_before(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING, exceptions_keep_seconds=10 * DAY) as replica:
            await enforced(replica)
            keeper = replica.following._exceptions
            before = ExceptionFacts(read_exception(ending("e", -11 * DAY)), {})
            facts = keeper._facts
            # The facts stay behind for good.
            keeper._facts = lambda key, at: before if key[2] == "e" else facts(key, at)
            replica.make(*WIDE, ending("e", DAY))
            await replica.until(
                lambda: status(replica, *WIDE, "e").get("state") == "Expired", "told"
            )
            replica.make(*WIDE, ending("old", -11 * DAY))
            await replica.until(lambda: names(replica) == {"e"}, "the other one is deleted")

    asyncio.run(run())


def test_nothing_is_said_of_one_before_it_is_read(tmp_path: Path) -> None:
    async def run() -> None:
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            keeper = replica.following._exceptions
            facts = keeper._facts
            keeper._facts = lambda *_: ExceptionFacts(None, {})  # the facts stay behind
            replica.make(*WIDE, ending("e", 20 * DAY))
            key = ("ClusterPolicyException", "", "e")
            await replica.until(lambda: key in keeper.keeper.queue._failing, "looked at")
            assert status(replica, *WIDE, "e") == {}
            keeper._facts = facts
            await replica.until(
                lambda: status(replica, *WIDE, "e").get("state") == "Active", "told"
            )

    asyncio.run(run())
