"""Slow objects of a user do not get past policies."""

import sys
import time

import pytest

from webhook.api.admission import read_request
from webhook.server.responsibility import (
    NOTES_MAX,
    ORDINARY_SECONDS,
    SMALL_MAX,
    Delay,
    ProcessorTime,
    acting_user,
    decisive,
    requester_of,
    responsible_for,
)


@pytest.mark.parametrize(
    ("delay", "responsible"),
    [
        (Delay(), "others"),
        (Delay(worked_seconds=ORDINARY_SECONDS), "object"),
        (Delay(worked_seconds=0.01, requester_seconds=ORDINARY_SECONDS), "requester"),
        (Delay(worked_seconds=0.01, requester_seconds=0.02, all_seconds=0.1), "others"),
        (Delay(worked_seconds=0.01, requester_seconds=0.02, all_seconds=0.04), "requester"),
        (Delay(requester_seconds=0.009, all_seconds=0.009), "others"),
        # Alone, on a busy machine: there is nothing else that it could send less of.
        (Delay(worked_seconds=0.02, requester_seconds=0.025, all_seconds=0.03), "object"),
        (Delay(0.02, 0.025, 0.03, places_taken=1, places=1), "object"),
        (Delay(0.02, 0.025, 0.03, places_taken=2, places=2), "requester"),
        (Delay(worked_seconds=0.009, requester_seconds=0.009, all_seconds=0.01), "others"),
        (Delay(worked_seconds=0.02, requester_seconds=0.02, all_seconds=0.1), "others"),
        (Delay(places=64, places_taken=32), "requester"),
        (Delay(places=64, places_taken=31), "others"),
        (Delay(places=64, places_taken=16, requesters=4), "requester"),
        (Delay(places=64, places_taken=15, requesters=4), "others"),
        (Delay(places=64, places_taken=0, requesters=64), "others"),
        # Of seven who fill 64 places each has nine, and a tenth is too many.
        (Delay(places=64, places_taken=9, requesters=7), "requester"),
        (Delay(places=64, places_taken=8, requesters=7), "others"),
        (Delay(places=120, places_taken=17, requesters=7), "requester"),
        # Each of many with one request: nobody can send less.
        (Delay(places=256, places_taken=1, requesters=256), "others"),
        (Delay(places=64, places_taken=1, requesters=64), "others"),
    ],
)
def test_a_delay_is_the_doing_of_who_had_enough_for_an_ordinary_object(
    delay: Delay, responsible: str
) -> None:
    assert responsible_for(delay) == responsible


@pytest.mark.parametrize(
    ("username", "namespace", "user"),
    [
        ("ada", "shop", "ada"),
        ("system:serviceaccount:shop:a", "bank", "system:serviceaccount:shop"),
        ("system:serviceaccount:kube-system:job-controller", "shop", "system:serviceaccount:shop"),
        ("system:kube-controller-manager", "shop", "system:serviceaccount:shop"),
        (
            "system:serviceaccount:kube-system:namespace-controller",
            "",
            "system:serviceaccount:kube-system",
        ),
    ],
)
def test_a_controller_acts_for_the_namespace_of_its_request(
    username: str, namespace: str, user: str
) -> None:
    document = {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": namespace,
        "userInfo": {"username": username},
        "object": {},
    }
    request = read_request(document)
    assert acting_user(request) == user
    assert acting_user(request._replace(stranger="10.0.0.1")) == "10.0.0.1"


def test_the_service_accounts_of_a_namespace_are_one_requester() -> None:
    assert requester_of("system:serviceaccount:shop:a") == requester_of(
        "system:serviceaccount:shop:b"
    )
    assert requester_of("system:serviceaccount:shop:a") != requester_of(
        "system:serviceaccount:shops:a"
    )
    for name in ("alice", "system:node:a", "system:serviceaccount:odd", ""):
        assert requester_of(name) == name


def test_time_is_counted_for_each_requester_since_a_moment() -> None:
    times = ProcessorTime()
    times.note("alice", 0.5)
    moment = time.monotonic() - 10
    times.note("bob", 0.25)
    times.note("alice", 0.125)
    times.note("alice", 0.0001)  # too short to be noted alone
    assert times.since(moment, "alice") == Delay(requester_seconds=0.625, all_seconds=0.875)
    assert times.since(moment, "bob").requester_seconds == 0.25
    assert times.since(moment, "carol").requester_seconds == 0
    assert times.since(time.monotonic() + 1, "alice") == Delay()


def test_work_that_began_before_a_moment_counts_from_that_moment_on() -> None:
    times = ProcessorTime()
    moment = time.monotonic()
    times.note("alice", 1_000.0)
    assert times.since(moment, "alice").requester_seconds < 1_000


def test_notes_are_bounded() -> None:
    times = ProcessorTime()
    for _ in range(2 * NOTES_MAX):
        times.note("alice", 0.001)
    assert times.since(0.0, "alice").requester_seconds == pytest.approx(NOTES_MAX * 0.001)


def test_notes_keep_no_objects() -> None:
    """Made between the parts of large requests, each kept a MiB from the system when these had gone."""
    times = ProcessorTime()
    times.note("alice", 1.0)
    before = sys.getallocatedblocks()
    for number in range(NOTES_MAX):
        times.note(f"user-{number % 100}", 1.0 + number)
    assert sys.getallocatedblocks() - before < 100


def test_many_short_pieces_of_work_count_as_a_long_one() -> None:
    """Of a hundred small requests at once the last came late, and nobody was blamed for it."""
    times = ProcessorTime()
    moment = time.monotonic() - 10
    for _ in range(100):
        times.note("mallory", 0.0005)
        times.note("bob", 0.00001)
    delay = times.since(moment, "mallory")
    assert delay.requester_seconds == pytest.approx(0.05)
    assert responsible_for(times.since(moment, "bob")) == "others"
    for number in range(2 * SMALL_MAX):
        times.note(f"user-{number}", 0.0005)
    assert len(times._small) <= SMALL_MAX


def test_who_has_several_requests_under_way_is_asked_for_its_places_too() -> None:
    """With no time for anything, nothing was noted for anybody: its crowd was nobody's doing."""
    times, moment = ProcessorTime(), time.monotonic()
    for taken, responsible in {1: "others", 2: "others", 30: "requester"}.items():
        times.places_of = lambda _, taken=taken: Delay(  # type: ignore[misc]
            places_taken=taken, places=40, requesters=2
        )
        assert responsible_for(times.since(moment, "mallory")) == responsible
    times.places_of = lambda _: Delay(places_taken=1, places=1)
    assert responsible_for(times.since(moment, "bob")) == "others", "alone it crowds nobody out"


def test_whoever_is_to_blame_by_one_of_several_delays_is() -> None:
    full, worked = Delay(places=64, places_taken=1), Delay(worked_seconds=1.0)
    assert decisive(full, worked) is worked
    assert decisive(full, Delay()) is full


def test_work_beside_the_answering_thread_is_taken_once() -> None:
    times = ProcessorTime()
    times.note("alice", 0.5)
    times.note_beside("bob", 0.25)
    times.note_beside("bob", 0.25)
    assert times.take_beside() == {"bob": 0.5}
    assert times.take_beside() == {}
    assert times.since(0.0, "bob").all_seconds == pytest.approx(1.0)
    for number in range(SMALL_MAX + 1):
        times.note_beside(f"user-{number}", 0.1)
    assert len(times.take_beside()) <= SMALL_MAX
