"""Who asks, and the namespaces they ask about, come in turn."""

from __future__ import annotations

from webhook.server.fair_queue import FairQueue, Party

ALICE, BOB = "alice", "bob"


def queue(*works: str, waiting_max: int = 64, workers: int = 4) -> FairQueue[str]:
    """A queue of works named by user, namespace and number."""
    made: FairQueue[str] = FairQueue(waiting_max=waiting_max, workers=workers)
    for work in works:
        user, namespace, _ = work.split("/")
        assert made.put(Party(user, namespace), work)
    return made


def drained(waiting: FairQueue[str]) -> list[str]:
    """What a single worker takes, one after the other."""
    found = []
    while (taken := waiting.take()) is not None:
        found.append(taken[1])
        waiting.done(taken[0])
    return found


def test_one_who_asks_once_comes_before_the_second_of_many() -> None:
    waiting = queue("alice/a/1", "alice/a/2", "alice/a/3", "bob/b/1")
    assert drained(waiting) == ["alice/a/1", "bob/b/1", "alice/a/2", "alice/a/3"]
    assert waiting.size == 0


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
    assert waiting.put(Party(BOB, "a"), "bob/a/1")
    third = waiting.take()
    assert third is not None
    assert third[1] == "bob/a/1"
    waiting.done(first[0])
    following = waiting.take()
    assert following is not None
    assert following[1] == "alice/c/1"


def test_one_party_cannot_take_all_the_room() -> None:
    waiting = queue(waiting_max=4)
    assert waiting.put(Party(ALICE, "a"), "1")
    assert waiting.put(Party(ALICE, "a"), "2")
    assert not waiting.put(Party(ALICE, "a"), "3")
    assert waiting.put(Party(BOB, "b"), "4")
    assert waiting.put(Party(BOB, "c"), "5")
    assert not waiting.put(Party(BOB, "d"), "6")
    assert sorted(waiting.clear()) == ["1", "2", "4", "5"]
    assert waiting.take() is None
