"""Requests of users and namespaces are served in turn."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from webhook.server.http.fair_queue import DEBT_SECONDS_MAX, USERS_MAX, FairQueue, Flow
from webhook.server.responsibility import responsible_for

if TYPE_CHECKING:
    from collections.abc import Callable

ALICE, BOB = "alice", "bob"


def queue(
    *works: str,
    waiting_max: int = 64,
    workers: int = 4,
    clock: Callable[[], float] = lambda: 0.0,
) -> FairQueue[str]:
    """A queue of works named by user, namespace and number."""
    made: FairQueue[str] = FairQueue(waiting_max=waiting_max, workers=workers, clock=clock)
    for work in works:
        user, namespace, _ = work.split("/")
        assert made.put(Flow(user, namespace), work) is None
    return made


def drained(waiting: FairQueue[str]) -> list[str]:
    """Returns the items that a single worker takes, one after the other."""
    found = []
    while (taken := waiting.take()) is not None:
        found.append(taken[1])
        waiting.done(taken[0])
    return found


def test_one_who_asks_once_comes_before_the_second_of_many() -> None:
    waiting = queue("alice/a/1", "alice/a/2", "alice/a/3", "bob/b/1")
    assert drained(waiting) == ["alice/a/1", "bob/b/1", "alice/a/2", "alice/a/3"]
    assert waiting.size == 0


def test_one_piece_of_work_is_next() -> None:
    waiting = queue("alice/a/1", "alice/b/1", "bob/b/1")
    works = list(waiting)
    assert [waiting.is_next(work) for work in works] == [True, False, False]
    drained(waiting)
    assert not waiting.is_next(works[0]), "nothing waits"


def test_work_elsewhere_counts_for_its_user_up_to_a_bound() -> None:
    """A user with four busy threads came as soon as one with small requests alone."""
    waiting = queue("alice/a/1", "bob/b/1")
    waiting.charge(ALICE, 0.001)
    assert drained(waiting) == ["bob/b/1", "alice/a/1"]
    waiting.charge(ALICE, 3600.0)
    waiting.put(Flow(ALICE, "a"), "alice/a/2")
    waiting.put(Flow(BOB, "b"), "bob/b/2")
    seconds = 0.0
    while waiting.is_next("bob/b/2"):
        assert waiting.take() is not None
        waiting.done(Flow(BOB, "b"), 0.005)
        waiting.put(Flow(BOB, "b"), "bob/b/2")
        seconds += 0.005
    assert 0.0 < seconds <= DEBT_SECONDS_MAX + 0.01


def test_time_without_work_pays_for_earlier_work() -> None:
    """Work on other threads moves no account: a light user waited behind all who came anew."""
    now = 0.0
    waiting = queue("alice/a/1", clock=lambda: now)
    flow, _ = waiting.take() or (Flow("", ""), "")
    waiting.done(flow, 0.001)
    now = 0.02
    for name in (BOB, "carol"):
        waiting.put(Flow(name, "a"), f"{name}/a/1", expected_seconds=0.003)
    waiting.put(Flow(ALICE, "a"), "alice/a/2")
    assert drained(waiting) == ["alice/a/2", "bob/a/1", "carol/a/1"]


def test_work_elsewhere_counts_among_equals() -> None:
    now = 0.0
    waiting = queue("alice/a/1", "bob/b/1", clock=lambda: now)
    for _ in range(2):
        taken = waiting.take()
        assert taken is not None
        waiting.done(taken[0], 0.002 if taken[0].user == ALICE else 0.001)
    waiting.charge(BOB, 0.002)
    now = 1.0
    waiting.put(Flow(BOB, "b"), "bob/b/2")
    waiting.put(Flow(ALICE, "a"), "alice/a/2")
    assert drained(waiting) == ["alice/a/2", "bob/b/2"]


def test_namespaces_of_one_user_come_in_turn() -> None:
    waiting = queue("alice/a/1", "alice/a/2", "alice/b/1", "alice/c/1")
    assert drained(waiting) == ["alice/a/1", "alice/b/1", "alice/c/1", "alice/a/2"]


def test_a_party_has_one_piece_under_way_and_a_user_leaves_a_worker_to_others() -> None:
    waiting = queue("alice/a/1", "alice/a/2", "alice/b/1", "alice/c/1", "alice/d/1", workers=3)
    first = waiting.take()
    second = waiting.take()
    assert first is not None
    assert second is not None
    assert {first[1], second[1]} == {"alice/a/1", "alice/b/1"}
    assert waiting.take() is None
    assert waiting.put(Flow(BOB, "a"), "bob/a/1") is None
    third = waiting.take()
    assert third is not None
    assert third[1] == "bob/a/1"
    waiting.done(first[0])
    following = waiting.take()
    assert following is not None
    assert following[1] == "alice/c/1"


def test_who_has_the_most_gives_way_however_many_namespaces_it_asks_about() -> None:
    waiting = queue("alice/a/1", "alice/b/1", "alice/c/1", "alice/c/2", waiting_max=4)
    assert waiting.put(Flow(ALICE, "d"), "alice/d/1") == "alice/d/1"
    assert waiting.put(Flow(BOB, "b"), "bob/b/1") == "alice/c/2"
    assert waiting.put(Flow(BOB, "b"), "bob/b/2") is not None
    assert waiting.size == 4
    assert waiting.put(Flow(BOB, "b"), "bob/b/3") == "bob/b/3", "each has half"
    assert len(waiting.clear()) == 4
    assert waiting.take() is None


@pytest.mark.parametrize("users", [1, 2, 3, 5, 7, 10, 13, 32])
def test_of_users_who_all_ask_for_more_than_there_is_each_is_informed_of_its_own(
    users: int,
) -> None:
    """Of seven with nine places of 64 each, none was to blame for a tenth: all of it was let in."""
    waiting = queue()
    refused = 0
    for number in range(6 * 64):
        flow = Flow(f"user-{number % users}", "")
        if number % 5 == 0 and (taken := waiting.take()) is not None and number % 3:
            waiting.done(taken[0], 0.01)
        displaced = waiting.put(flow, flow.user)
        if displaced is not None:
            refused += 1
            assert responsible_for(waiting.delay(Flow(displaced, ""))) == "requester"
    assert refused > 64
    assert responsible_for(waiting.delay(Flow("bystander", ""))) == "others"


def test_of_many_who_ask_once_nobody_is_to_blame() -> None:
    waiting = queue(*(f"user-{number}/a/1" for number in range(64)))
    assert waiting.put(Flow(ALICE, "a"), "alice/a/1") == "alice/a/1"
    assert responsible_for(waiting.delay(Flow(ALICE, "a"))) == "others"


def test_who_has_used_less_of_a_processor_comes_first() -> None:
    waiting = queue("alice/a/1", "alice/a/2", "alice/a/3", "bob/b/1", "bob/b/2")
    taken = waiting.take()
    assert taken == (Flow(ALICE, "a"), "alice/a/1")
    waiting.done(taken[0], 3.0)
    assert drained(waiting) == ["bob/b/1", "bob/b/2", "alice/a/2", "alice/a/3"]


def test_who_comes_back_has_saved_up_nothing() -> None:
    waiting = queue("alice/a/1", "bob/b/1")
    for _ in range(2):
        taken = waiting.take()
        assert taken is not None
        waiting.done(taken[0], 1.0)
    for number in range(2, 6):
        assert waiting.put(Flow(ALICE, "a"), f"alice/a/{number}") is None
        flow, work = waiting.take() or (Flow("", ""), "")
        assert work == f"alice/a/{number}"
        waiting.done(flow, 1.0)
    for number in range(2, 4):
        assert waiting.put(Flow(BOB, "b"), f"bob/b/{number}") is None
        assert waiting.put(Flow(ALICE, "a"), f"alice/a/{number + 4}") is None
    served = []
    while (taken := waiting.take()) is not None:
        waiting.done(taken[0], 1.0)
        served.append(taken[1].split("/")[0])
    assert served == ["bob", "alice", "bob", "alice"]


def test_what_is_heavy_waits_for_room_and_leaves_a_worker_to_what_is_light() -> None:
    made: FairQueue[str] = FairQueue(waiting_max=64, workers=3, weight_max=10, clock=lambda: 0.0)
    for name, weight in (("a", 50), ("b", 5), ("c", 5), ("d", 1), ("light", 0)):
        assert made.put(Flow(name, ""), name, weight) is None
    first = made.take()
    assert first == (Flow("a", ""), "a"), "what is alone has room, whatever it weighs"
    assert made.take() == (Flow("light", ""), "light")
    assert made.take() is None
    made.done(first[0], 1.0)
    assert [made.take() for _ in range(3)] == [
        (Flow("b", ""), "b"),
        (Flow("c", ""), "c"),
        None,
    ], "two that are heavy leave a worker of three"


def test_time_is_shared_by_users_and_not_by_their_threads() -> None:
    waiting = queue("alice/a/1", "alice/b/1", "bob/b/1")
    while waiting.take() is not None:
        pass
    assert waiting.parts(Flow(ALICE, "a")) == 4
    assert waiting.parts(Flow(BOB, "b")) == 2


def test_users_who_come_once_are_forgotten() -> None:
    waiting = queue()
    for number in range(3 * USERS_MAX):
        waiting.put(Flow(f"user-{number}", ""), "x")
        taken = waiting.take()
        assert taken is not None
        waiting.done(taken[0], 0.001)
    assert len(waiting._users) <= USERS_MAX + 1


def test_of_those_who_begin_alike_the_one_whose_last_work_was_short_comes_first() -> None:
    """Users who each had nothing under way were served in the order in which they came."""
    waiting: FairQueue[str] = FairQueue(waiting_max=64, workers=1, clock=lambda: 0.0)
    for user, seconds in (("mallory", 0.02), (ALICE, 0.001)):
        assert waiting.put(Flow(user, "a"), user) is None
        taken = waiting.take()
        assert taken is not None
        waiting.done(taken[0], seconds)
    assert waiting.put(Flow("eve", "a"), "eve") is None
    taken = waiting.take()
    assert taken is not None
    waiting.done(taken[0], 0.5)  # All who come now begin alike.
    assert waiting.put(Flow("eve", "a"), "eve") is None
    taken = waiting.take()
    assert taken is not None
    for user in ("mallory", ALICE):
        assert waiting.put(Flow(user, "a"), user) is None
    waiting.done(taken[0], 0.5)
    assert drained(waiting) == [ALICE, "mallory"]


def of_user(user: str) -> Callable[[str], bool]:
    """Whether a work is of a user."""
    return lambda work: work.startswith(user)


def test_users_with_work_are_counted_whatever_becomes_of_it() -> None:
    """Work is queued, displaced, taken, ended and removed in an order drawn by chance."""
    drawn = random.Random(7)
    waiting = queue(waiting_max=6)
    running: list[Flow] = []
    for number in range(2_000):
        user = drawn.choice("abcdef")
        match drawn.choice(["put", "put", "put", "take", "done", "remove", "clear"]):
            case "put":
                waiting.put(Flow(user, drawn.choice("xy")), f"{user}{number}")
            case "take" if (taken := waiting.take()) is not None:
                running.append(taken[0])
            case "done" if running:
                waiting.done(running.pop(drawn.randrange(len(running))), 0.001)
            case "remove":
                waiting.remove(of_user(user))
            case "clear" if number % 10 == 0:
                waiting.clear()
        users = {work[0] for work in waiting} | {flow.user for flow in running}
        assert waiting.before(Flow(user, "x")).requesters == len(users)
        assert waiting.others_than(user) == len(users - {user})
