"""Fights: the same change again and again is one, many changes of many objects are none."""

from tests.webhook.mutation.documents import known, label
from webhook.mutation.fights import OBJECTS_MAX, WINDOW_SECONDS, Fights
from webhook.mutation.mutator import Mutator, MutatorId


def owner(generation: int = 1) -> Mutator:
    """A mutator of some generation."""
    document = label("owner", "owner", "nobody")
    document["metadata"]["generation"] = generation
    (found,) = known(document).snapshot.mutators
    return found


OWNER = MutatorId("AssignMetadata", "owner")


def test_the_same_change_beyond_the_limit_is_a_fight_and_reported_once() -> None:
    fights = Fights(3)
    began = [fights.note("change", "Pod shop/web", [owner()], float(at)) for at in range(6)]
    assert began == [False, False, False, True, False, False]
    found = fights.going_on(5.0)[OWNER]
    assert (found.object, found.count, found.generation) == ("Pod shop/web", 4, 1)


def test_changes_of_many_objects_and_of_many_hours_are_none() -> None:
    fights = Fights(3)
    for at in range(100):
        assert not fights.note(("object", at), "Pod", [owner()], 0.0)
        assert not fights.note("slow", "Pod", [owner()], at * WINDOW_SECONDS / 2)
    assert fights.going_on(0.0) == {}


def test_a_fight_is_over_an_hour_after_its_last_change_and_may_begin_anew() -> None:
    fights = Fights(1)
    assert not fights.note("change", "Pod", [owner()], 0.0)
    assert fights.note("change", "Pod", [owner()], 1.0)
    assert OWNER in fights.going_on(WINDOW_SECONDS)
    assert fights.going_on(WINDOW_SECONDS + 1.0) == {}
    assert not fights.note("change", "Pod", [owner()], 3 * WINDOW_SECONDS)
    assert fights.note("change", "Pod", [owner()], 3 * WINDOW_SECONDS + 1)


def test_another_generation_of_the_mutator_fights_no_more() -> None:
    fights = Fights(1)
    for at in range(3):
        fights.note("change", "Pod", [owner()], float(at))
    fights.keep([owner()])
    assert OWNER in fights.going_on(3.0)
    fights.keep([owner(2)])
    assert fights.going_on(3.0) == {}


def test_what_is_remembered_is_bounded() -> None:
    fights = Fights(1)
    fights.note("first", "Pod", [owner()], 0.0)
    for at in range(OBJECTS_MAX):
        fights.note(at, "Pod", [owner()], 0.0)
    assert not fights.note("first", "Pod", [owner()], 1.0)
    assert len(fights._times) == OBJECTS_MAX


def test_nothing_is_counted_where_that_is_off() -> None:
    fights = Fights(0)
    assert not any(fights.note("change", "Pod", [owner()], 0.0) for _ in range(10))
    assert fights.going_on(0.0) == {}
