"""Mutation checks the clock, however long one mutator, list or comparison takes."""

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.webhook.mutation.documents import CREATE, assign, known, modify_set
from webhook.api.encoding import is_same_json
from webhook.mutation.errors import OutOfTime, OverBudget
from webhook.mutation.pace import Pace
from webhook.mutation.patch import patch_between

ITEMS = 50_000
"""The number of items that takes tens of milliseconds at each of these."""


class Large(NamedTuple):
    """An object, an equal one, and one whose every container differs."""

    many: dict[str, Any]
    other: dict[str, Any]
    changed: dict[str, Any]


@cache
def large() -> Large:
    """Makes them, which takes seconds, for the first test that uses them."""
    many: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop"},
        "spec": {
            "containers": [{"name": f"c{number}", "args": [number]} for number in range(ITEMS)],
            "fields": {f"f{number}": [number] for number in range(ITEMS)},
            "words": [f"w{number}" for number in range(ITEMS)],
        },
    }
    other = copy.deepcopy(many)
    emptied = [{"name": f"c{number}", "args": []} for number in range(ITEMS)]
    return Large(many, other, many | {"spec": other["spec"] | {"containers": emptied}})


def mutating(document: dict[str, Any]) -> Callable[[Pace], Any]:
    """Returns a function that applies one mutator to the object."""
    snapshot = known(document).snapshot
    return lambda pace: snapshot.mutate(large().many, replace(CREATE, pace=pace))


def without_the_first(document: dict[str, Any]) -> dict[str, Any]:
    """Returns an object with its other containers alone."""
    return document | {"spec": {"containers": document["spec"]["containers"][1:]}}


WORK: dict[str, Callable[[Pace], Any]] = {
    "every item": mutating(assign("a", "spec.containers[name: *].image", "x")),
    "an item by its key": mutating(assign("a", "spec.containers[name: none]", {"name": "none"})),
    "a set": mutating(modify_set("a", "spec.words", "merge", ["x"])),
    "out of a set": mutating(modify_set("a", "spec.words", "prune", ["w1"])),
    "comparing": lambda pace: is_same_json(large().many, large().other, pace.look),
    "a patch": lambda pace: patch_between(large().many, large().changed, pace),
    "a patch of fewer items": lambda pace: patch_between(
        large().many, without_the_first(large().other), pace
    ),
}


@pytest.mark.parametrize("case", WORK)
def test_long_work_rests_again_and_again(case: str) -> None:
    rests: list[float] = []
    large()
    WORK[case](Pace(rest=rests.append))
    assert len(rests) > 2


@pytest.mark.parametrize("case", WORK)
def test_long_work_ends_within_itself_and_leaves_nothing_behind(case: str) -> None:
    def end(_worked: float) -> None:
        raise OutOfTime("no more", 1)

    many, other, _ = large()
    with pytest.raises(OutOfTime, match="no more"):
        WORK[case](Pace(rest=end))
    with pytest.raises(OverBudget):
        WORK[case](Pace(seconds=0.001))
    with pytest.raises(OutOfTime, match="passed"):
        WORK[case](Pace(time.monotonic()))
    WORK[case](Pace())
    assert many == other
