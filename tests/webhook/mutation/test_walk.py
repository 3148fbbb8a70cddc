"""Mutators applied in one walk do what they do one by one, pass after pass."""

import random
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.differential.mutators.questions import question
from tests.json_patch import apply_patch
from tests.webhook.mutation.documents import (
    CREATE,
    assign,
    image,
    known,
    label,
    modify_set,
    mutator,
    pod,
)
from webhook.api.encoding import is_same_json
from webhook.api.gvk import gvk_of, namespace_of
from webhook.mutation.errors import InvalidMutator, MutationError
from webhook.mutation.pace import Pace
from webhook.mutation.passes import Passes
from webhook.mutation.patch import make_patch
from webhook.mutation.plan import Mutated, MutationPlan
from webhook.mutation.registry import Mutators
from webhook.mutation.setting import Context
from webhook.mutation.walk import ITEMS_MAX

TESTED = {"subPath": "spec.containers[name: *].x", "condition": "MustNotExist"}


def plan_for(obj: dict[str, Any], context: Context, mutators: Mutators) -> MutationPlan | None:
    """The mutators that are about an object."""
    return mutators.snapshot.plan(gvk_of(obj), context.operation)


def both_ways(obj: dict[str, Any], context: Context, mutators: Mutators) -> Mutated | None:
    """Returns the mutation by one walk, equal to the passes; None if one walk is not allowed."""
    plan = plan_for(obj, context, mutators)
    found = None if plan is None else plan.apply_at_once(obj, context)
    if plan is None or found is None:
        return None
    expected = Passes(plan, gvk_of(obj), context, "reject", 100).mutate(obj)
    assert is_same_json(found.object, expected.object)
    assert found.iterations == expected.iterations
    assert found.passes == expected.passes
    patch = found.patch.operations
    written = sorted(make_patch(obj, expected.object), key=lambda item: str(item["path"]))
    if len({item["op"] for item in written}) < 2:  # Places in a list depend on the order.
        assert sorted(patch, key=lambda item: str(item["path"])) == written
    assert is_same_json(apply_patch(obj, patch), expected.object)
    return found


def test_random_mutators_make_in_one_walk_what_they_make_one_by_one() -> None:
    walked = changed = 0
    for number in range(1500):
        case = question(random.Random(f"walk/{number}"))
        if "object" not in case or "expand" in case:
            continue
        mutators = Mutators()
        for document in case["mutators"]:
            try:
                mutators.add(document)
            except InvalidMutator:
                continue
        obj, namespace = case["object"], case["namespace"]
        place = namespace["metadata"]["name"] if namespace else namespace_of(obj)
        context = Context(case["operation"], namespace, place, case["username"], case["source"])
        try:
            found = both_ways(obj, context, mutators)
        except MutationError as error:
            pytest.fail(f"question {number}: the walk ended, and one by one: {error}")
        walked += found is not None
        changed += found is not None and found.iterations > 0
    assert walked > 100
    assert changed > 50


def test_what_is_alike_in_many_containers_is_put_there_together() -> None:
    mutators = known(
        *(assign(f"a{n}", f"spec.containers[name: *].security.x{n}", n) for n in range(8)),
        *(label(f"l{n}", f"key/{n}", "yes") for n in range(4)),
        modify_set("s", "spec.containers[name: *].sets.one", "merge", ["A", "B"]),
        modify_set("t", "spec.containers[name: *].sets.two", "merge", [1]),
        modify_set("u", "spec.containers[name: *].sets.three", "prune", [1]),
        image("i", "spec.containers[name: *].image", assignDomain="r.example"),
        assign("v", "spec.volumes[name: data]", {"name": "data", "emptyDir": {}}),
    )
    found = both_ways(pod("a:v1", "b"), CREATE, mutators)
    assert found is not None
    assert len(found.passes[0]) == 17
    again = both_ways(found.object, CREATE, mutators)
    assert again is not None
    assert again.object is found.object
    some = found.object["spec"]["containers"][0]
    partly = {**pod(), "spec": {"containers": [{**some, "security": {"x3": None}}, {"sets": {}}]}}
    assert both_ways(partly, CREATE, mutators) is not None


def test_images_that_a_mutator_remembers_are_patched_where_they_stand_and_only_if_they_change() -> (
    None
):
    domain, settled = "registry.example", "registry.example/team/app:1"
    mutators = known(
        image("i", "spec.containers[name: *].image", assignDomain=domain),
        modify_set("s", "spec.containers[name: *].set", "prune", ["A"]),
    )
    names = ["team/app:1", settled, "other:2", "x" * 600, "y" * 500]
    plan = plan_for(pod(), CREATE, mutators)
    assert plan is not None
    for turn in range(6):
        shown = names[turn % len(names) :] + names[: turn % len(names)]
        obj = pod(*shown)
        found = plan.apply_at_once(obj, CREATE)
        assert found is not None
        assert found.patch.operations == make_patch(obj, found.object), turn
        made = [item["image"] for item in found.object["spec"]["containers"]]
        assert made == [one if one == settled else f"{domain}/{one}" for one in shown]


def test_a_mutator_that_waits_for_a_label_is_applied_in_the_pass_after_it() -> None:
    waits = assign("w", "spec.y", 1, match={"labelSelector": {"matchLabels": {"new": "yes"}}})
    mutators = known(waits, label("z", "new", "yes"))
    assert both_ways(pod(), CREATE, mutators) is None
    assert mutators.snapshot.mutate(pod(), CREATE).object["spec"]["y"] == 1
    other = assign("w", "spec.y", 1, match={"labelSelector": {"matchLabels": {"old": "yes"}}})
    found = both_ways(pod(labels={"old": "yes"}), CREATE, known(other, label("z", "new", "yes")))
    assert found is not None
    assert len(found.passes[0]) == 2


@pytest.mark.parametrize(
    "documents",
    [
        [assign("a", "spec.x", {}), assign("b", "spec.x.y", 1)],
        [assign("a", "spec.x", 1), assign("b", "spec.x", 2)],
        [
            assign("a", "spec.containers[name: *].x", 1),
            assign("b", "spec.containers[name: new].y", 1),
        ],
        [
            assign("a", "spec.containers[name: *].x.y", 1, parameters={"pathTests": [TESTED]}),
            assign("b", "spec.containers[name: *].x.z", 1),
        ],
    ],
    ids=[
        "a place below another",
        "one place",
        "an item that one makes",
        "a test of what one makes",
    ],
)
def test_mutators_that_have_to_do_with_each_other_are_applied_one_by_one(
    documents: list[dict[str, Any]],
) -> None:
    assert both_ways(pod("a", "b"), CREATE, known(*documents)) is None


def test_a_provider_s_placeholder_is_put_by_the_passes() -> None:
    asks = {"externalData": {"provider": "p"}}
    mutators = known(
        mutator("Assign", "a", "spec.containers[name: *].image", parameters={"assign": asks})
    )
    assert both_ways(pod("a"), CREATE, mutators) is None


def test_a_mutator_that_finds_a_placeholder_says_whose_answer_it_is() -> None:
    location = "spec.containers[name: *].image"
    asks = {"externalData": {"provider": "p"}}
    mutators = known(
        mutator("Assign", "a", location, parameters={"assign": asks}),
        mutator("AssignImage", "b", location, parameters={"assignTag": ":v2"}),
    )
    plan = plan_for(pod("a"), CREATE, mutators)
    assert plan is not None
    with pytest.raises(MutationError, match="got an answer of the provider p of type"):
        Passes(plan, gvk_of(pod("a")), CREATE, "reject", 100).mutate(pod("a"))


def test_very_many_items_are_left_to_passes_that_look_at_the_clock() -> None:
    mutators = known(
        assign("a", "spec.containers[name: *].x", 1), assign("b", "spec.containers[name: *].y", 1)
    )
    assert both_ways(pod(*["i"] * ITEMS_MAX), CREATE, mutators) is not None
    obj = pod(*["i"] * (ITEMS_MAX + 1))
    assert both_ways(obj, CREATE, mutators) is None
    with pytest.raises(MutationError, match="time"):
        mutators.snapshot.mutate(obj, replace(CREATE, pace=Pace(time.monotonic())))


def test_a_field_of_another_type_is_left_to_passes_that_tell_it() -> None:
    mutators = known(assign("a", "spec.x.y", 1), assign("b", "spec.x.z", 1))
    assert both_ways({**pod(), "spec": {"x": "text"}}, CREATE, mutators) is None


def test_matches_are_asked_for_once_and_their_answers_known() -> None:
    shop = {"namespaces": ["shop"]}
    mutators = known(
        *(assign(f"a{n}", f"spec.a{n}", n, match=shop) for n in range(3)),
        assign("b", "spec.b", 1, match={"excludedNamespaces": ["shop"]}),
        assign("c", "spec.c", 1),
    )
    for place, names in {"shop": "a0 a1 a2 c", "other": "b c"}.items():
        namespace = {"metadata": {"name": place}}
        context = Context("CREATE", namespace, place)
        for _ in range(2):
            found = both_ways(pod(namespace=place), context, mutators)
            assert found is not None
            assert " ".join(one.id.name for one in found.passes[0]) == names


@pytest.mark.parametrize(
    "alone",
    [
        assign("a", "spec.containers[name: *].securityContext.run", {"as": 1}),
        assign("a", "spec.containers[name: c0].securityContext.run", 1),
        assign("a", "spec.a.b.c.d", 1),
        modify_set("a", "spec.containers[name: *].args", "merge", ["y"]),
        image("a", "spec.containers[name: *].image", assignDomain="reg.example"),
        label("a", "a", "1"),
    ],
    ids=["in all items", "in a named item", "deep", "a set", "images", "a label"],
)
def test_a_mutator_alone_makes_in_one_walk_what_it_makes_by_itself(alone: dict[str, Any]) -> None:
    mutators = known(alone)
    for obj in (pod(), pod("a"), pod("a", "b"), pod("b", labels={"a": "1"})):
        first = both_ways(obj, CREATE, mutators)
        assert first is not None
        again = both_ways(first.object, CREATE, mutators)
        assert again is not None
        assert again.iterations == 0
