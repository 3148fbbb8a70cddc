"""Many values are sorted as one call would, and no call takes long."""

import random
from operator import itemgetter

import pytest

from webhook.slices import SLICE, all_of_type, distinct_in_slices, sorted_in_slices


@pytest.mark.parametrize("count", [0, 1, SLICE, SLICE + 1, 3 * SLICE + 5])
def test_they_are_sorted_as_in_one_call(count: int) -> None:
    chance = random.Random(count)
    values = [(chance.randrange(100), number) for number in range(count)]
    assert sorted_in_slices(values) == sorted(values)
    assert sorted_in_slices(values, itemgetter(0)) == sorted(values, key=itemgetter(0))
    assert sorted_in_slices(dict(values)) == sorted(dict(values))


def test_no_more_are_compared_in_one_call_than_a_slice_has(monkeypatch) -> None:
    counts = []

    def counted(values, key=None):
        counts.append(len(values))
        return sorted(values, key=key)

    monkeypatch.setattr("webhook.slices.sorted", counted, raising=False)
    sorted_in_slices(list(range(2 * SLICE + 1, 0, -1)))
    assert counts == [SLICE, SLICE, 1]


def test_each_is_there_once() -> None:
    values = [number % (SLICE + 7) for number in range(3 * SLICE)]
    assert distinct_in_slices(values) == set(values)


def test_a_type_is_none_derived_from_it() -> None:
    assert all_of_type(["a", "b"], str)
    assert not all_of_type([1, True], int)
