"""A slow consumer gets the newest state of objects that change quickly."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.api.gvk import GroupVersionKind
from webhook.cluster.store import Key
from webhook.watch.queue import EventQueue

UNTIMED = settings(deadline=None)  # a busy machine is no fault

A = GroupVersionKind("", "v1", "A")
B = GroupVersionKind("", "v1", "B")


def drained_events(queue):
    async def take():
        return [await queue.get() for _ in range(drained)]

    events = []
    while len(queue):
        drained = 1
        events += asyncio.run(take())
    return [(e.kind, e.key.name if e.key else "", e.object and e.object.get("v")) for e in events]


def key(name):
    return Key("", name)


def test_only_the_latest_state_of_an_object_waits():
    queue = EventQueue()
    for version in range(1_000):
        queue.set(A, key("x"), {"v": version})
    queue.set(A, key("y"), {"v": 0})
    assert len(queue) == 2
    assert drained_events(queue) == [("set", "x", 999), ("set", "y", 0)]


def test_an_object_that_came_and_went_unseen_is_not_reported():
    queue = EventQueue()
    queue.set(A, key("x"), {"v": 1})
    queue.delete(A, key("x"), {"v": 1})
    assert drained_events(queue) == []


def test_a_deletion_is_reported_before_the_object_that_replaced_it():
    queue = EventQueue()
    queue.set(A, key("x"), {"v": 1})
    assert drained_events(queue) == [("set", "x", 1)]
    queue.delete(A, key("x"), {"v": 1})
    queue.set(A, key("x"), {"v": 2})
    assert drained_events(queue) == [("delete", "x", 1), ("set", "x", 2)]


def test_a_kind_that_is_forgotten_leaves_the_others():
    queue = EventQueue()
    queue.set(A, key("x"), {"v": 1})
    queue.set(B, key("x"), {"v": 2})
    queue.forget(A)
    assert drained_events(queue) == [("set", "x", 2)]


def test_synced_is_reported_after_what_was_there_before_it():
    queue = EventQueue()
    queue.set(A, key("x"), {"v": 1})
    queue.synced(A)
    queue.set(A, key("y"), {"v": 1})
    assert drained_events(queue) == [("set", "x", 1), ("synced", "", None), ("set", "y", 1)]


@UNTIMED
@given(
    st.lists(st.tuples(st.sampled_from(["set", "delete", "take"]), st.sampled_from("xyz"))),
)
def test_whoever_takes_all_events_knows_what_is_there(steps):
    """Model: the objects; and each deletion told belongs to an object that was told of."""
    queue, there, seen = EventQueue(), {}, {}

    def take():
        for kind, name, version in drained_events(queue):
            if kind == "set":
                seen[name] = version
            else:
                del seen[name]

    for version, (step, name) in enumerate(steps):
        if step == "take":
            take()
        elif step == "set":
            there[name] = version
            queue.set(A, key(name), {"v": version})
        elif name in there:
            queue.delete(A, key(name), {"v": there.pop(name)})
    take()
    assert seen == there


def test_states_of_a_kind_that_is_reported_anew_are_dropped_and_its_deletions_stay():
    queue = EventQueue()
    for name in "xyz":
        queue.set(A, key(name), {"v": 1})
    queue.set(B, key("x"), {"v": 2})
    queue.synced(A)
    assert len(drained_events(queue)) == 5
    queue.set(A, key("new"), {"v": 1})
    queue.delete(A, key("y"), {"v": 1})
    queue.delete(A, key("z"), {"v": 1})  # and made anew under its name
    queue.set(A, key("z"), {"v": 2})
    queue.set(B, key("x"), {"v": 3})
    queue.synced(A)
    queue.renew(A)
    # Another z comes with the list, in the place of the one that is known.
    assert drained_events(queue) == [("delete", "y", 1), ("set", "x", 3)]
    queue.set(A, key("z"), {"v": 2})
    queue.synced(A)
    assert drained_events(queue) == [("set", "z", 2), ("synced", "", None)]


def test_what_waits_of_a_kind_is_known_in_its_order():
    queue = EventQueue()
    for name in ("b", "a", "gone"):
        queue.set(A, key(name), {"v": name})
    queue.set(B, key("c"), {"v": "c"})
    queue.delete(A, key("gone"), {"v": "gone"})
    queue.synced(A)
    assert list(queue.waiting(A).items()) == [(key("b"), {"v": "b"}), (key("a"), {"v": "a"})]
    assert len(drained_events(queue)) == 4
    assert queue.waiting(A) == {}
