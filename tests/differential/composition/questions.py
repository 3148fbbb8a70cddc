"""Compositions to compare: all of them, or as many as the time allows."""

import random
from collections.abc import Iterator

from tests.differential.composition.bodies import Bodies
from tests.differential.composition.comparison import ComposedRule
from tests.differential.composition.forms import Form, forms
from tests.differential.composition.places import PLACES, Pair

TURNS = 5040
"""Ways to write a pair: a multiple of what each place and form has."""


def every_pair(seed: int) -> Iterator[ComposedRule]:
    """Each ordered pair of forms in each place, in an order by chance."""
    chance = random.Random(seed)
    found = forms()
    places = list(PLACES)
    numbers = list(range(len(found) ** 2 * len(places)))
    chance.shuffle(numbers)
    for count, number in enumerate(numbers):
        pair, place = divmod(number, len(places))
        first, second = divmod(pair, len(found))
        yield _composed(count, places[place], found[first], found[second], chance)


def some_pairs(seed: int, count: int) -> Iterator[ComposedRule]:
    """Yields so many pairs: each form comes first, and second, in each place equally often."""
    chance = random.Random(seed)
    found = list(forms())
    places = list(PLACES)
    seconds: list[Form] = []
    firsts: list[tuple[Form, str]] = []
    for number in range(count):
        if not firsts:
            firsts = [(form, place) for form in found for place in places]
            chance.shuffle(firsts)
        if not seconds:
            seconds = list(found)
            chance.shuffle(seconds)
        first, place = firsts.pop()
        yield _composed(number, place, first, seconds.pop(), chance)


def _composed(
    number: int, place: str, first: Form, second: Form, chance: random.Random
) -> ComposedRule:
    pair = Pair(first, second, chance.choice(forms()), chance.randrange(TURNS))
    name = f"r{number}"
    return ComposedRule(name, place, PLACES[place](name, pair))


def some_bodies(seed: int, count: int) -> Iterator[ComposedRule]:
    """Yields so many random bodies of three to eight literals."""
    make = Bodies(random.Random(seed))
    for number in range(count):
        name = f"b{number}"
        yield ComposedRule(name, "random body", make.rule(name))
