"""Equal items are left in the order of Go's ``sort.Slice``, which is not the one that they came in."""

import random

import pytest

from tests.webhook.cel.evaluation import evaluate
from webhook.cel.library.ordering import _Sorting, go_sorted


def nothing(_cost):
    pass


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("lists.range(12).sortBy(x, x % 3)", [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]),
        ("lists.range(13).sortBy(x, x % 3)", [6, 3, 0, 9, 12, 1, 4, 7, 10, 2, 5, 8, 11]),
        ("lists.range(13).sortBy(x, string(x % 3))", [6, 3, 0, 9, 12, 1, 4, 7, 10, 2, 5, 8, 11]),
        ("lists.range(20).sortBy(x, -x).slice(0, 3)", [19, 18, 17]),
        ("lists.range(60).map(x, x % 5).sort().slice(10, 14)", [0, 0, 1, 1]),
        # A number that is none is less than nothing, and nothing is less than it.
        (
            "[3.0, 1.0, 0.0 / 0.0, 0.5, 2.0].sort().map(x, string(x))",
            ["1", "3", "NaN", "0.5", "2"],
        ),
    ],
)
def test_equal_items_stand_where_go_leaves_them(source, found):
    assert evaluate(source) == found


# The order of these keys' places by sort.Slice of Go 1.26.
KEYS = [(at * 7919) % 61 % 5 for at in range(60)]
PLACES = """
13 1 37 56 31 43 25 7 55 49 50 19 0 18 24 12 42 30 36 11 5 54 48 6 53 23 22 47 10 29 17 4
16 41 59 35 15 52 58 3 40 33 9 28 34 21 46 27 26 45 20 51 44 14 32 8 39 57 38 2
"""


def test_a_long_list_is_divided_as_go_divides_it():
    places = go_sorted(list(range(60)), lambda one, other: KEYS[one] < KEYS[other], nothing)
    assert places == [int(place) for place in PLACES.split()]


@pytest.mark.parametrize("bad_left", [0, 1, 9])
def test_whatever_pivots_are_bad_all_are_sorted(bad_left):
    chance = random.Random(5)
    for size in (0, 1, 12, 13, 49, 50, 200):
        for most in (2, 10, 1000):
            keys = [chance.randrange(most) for _ in range(size)]
            sorting = _Sorting(keys, lambda one, other: one < other, nothing)
            sorting.sort(0, size, bad_left)
            assert sorting.items == sorted(keys)
