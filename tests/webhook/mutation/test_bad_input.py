"""Bad input of mutation: a clear error, in bounded work, and never an object that is half mutated."""

import copy
from typing import Any

import pytest

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
from webhook.mutation.errors import InvalidMutator, MutationError
from webhook.mutation.patch import make_patch
from webhook.mutation.registry import Mutators


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, " is not a kind of mutators"),
        ({"apiVersion": "mutations.gatekeeper.sh/v1", "kind": "Assign"}, "has no metadata.name"),
        (assign("n" * 64, "spec.a", 1), "maximum name length is 63 characters"),
        (mutator("Assign", "m", "spec.a"), "assign must set one of"),
        ({**assign("m", "spec.a", 1), "spec": []}, "spec must be an object, got []"),
        (assign("m", "spec..a", 1), "invalid location format `spec..a` for Assign m"),
        (assign("m", "spec.a[", 1), 'expected keyField in listSpec, got: EOF: ""'),
        (assign("m", "spec." + "a." * 200 + "b", 1), "a location has at most 128 nodes"),
        (assign("m", "", 1), "empty path"),
        (assign("m", "metadata.name", "x"), "assign m can't change metadata"),
        (modify_set("m", "metadata.finalizers", "merge", []), "modifyset m can't change metadata"),
        (image("m", "metadata.x", assignTag=":a"), "assignImage m can't change metadata"),
        (mutator("AssignMetadata", "m", "metadata.name"), "invalid location for assignmetadata m"),
        (label("m", "a", "b", match={"labelSelector": {"matchLabels": 7}}), "invalid match"),
        (label("m", "a", "b", match={"kinds": "Pod"}), "invalid match"),
        (assign("m", "spec.l[name: a].name", "b"), "changing the item key is not allowed"),
        (assign("m", "spec.l[name: *]", {"name": "b"}), "can't append to a globbed list"),
        (assign("m", "spec.l[name: a]", "text"), "only objects can be added to keyed lists"),
    ],
)
def test_a_mutator_that_cannot_work_is_refused_and_says_why(
    document: dict[str, Any], message: str
) -> None:
    mutators = Mutators()
    with pytest.raises(InvalidMutator) as refusal:
        mutators.add(document)
    assert message in str(refusal.value)
    assert not mutators.snapshot


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: Any = 1
    for _ in range(10_000):
        value = [value]
    with pytest.raises(InvalidMutator, match="nests deeper than 100 levels"):
        Mutators().add(assign("m", "spec.a", value))


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": None},
        {"containers": {}},
        {"containers": "text"},
        {"containers": [None]},
        {"containers": [{"name": "a", "securityContext": None}]},
        {"containers": [{"name": "a", "securityContext": []}]},
        {"containers": [{"name": "a"}, {"name": "b", "securityContext": 7}]},
    ],
)
def test_an_object_of_another_shape_is_an_error_or_goes_without_that_mutator_whole(
    spec: dict[str, Any],
) -> None:
    """The first container was written already when the second is found to be wrong."""
    mutators = known(
        assign("a", "spec.containers[name: *].securityContext.privileged", value=False),
        label("owner", "owner", "nobody"),
    )
    obj = {**pod(), "spec": spec}
    before = copy.deepcopy(obj)
    with pytest.raises(MutationError, match=r"Assign\.mutations\.gatekeeper\.sh /a failed for"):
        mutators.snapshot.mutate(obj, CREATE)
    assert obj == before
    found = mutators.snapshot.mutate(obj, CREATE, on_error="skip")
    assert found.object["spec"] == spec
    assert found.object["metadata"]["labels"] == {"owner": "nobody"}
    assert list(found.skipped) == ["Assign.mutations.gatekeeper.sh /a"]
    assert obj == before


def test_a_mutator_that_fails_in_a_later_pass_leaves_nothing_behind() -> None:
    """The mutator was applied in the first pass; that change is removed, too."""
    mutators = known(
        assign("a", "spec.x.y", "1"),
        assign("z", "spec.x", "text", match={"labelSelector": {"matchLabels": {"second": "yes"}}}),
        label("second", "second", "yes"),
    )
    found = mutators.snapshot.mutate(pod(), CREATE, on_error="skip")
    assert found.object["metadata"]["labels"] == {"second": "yes"}
    assert found.object["spec"]["x"] == "text"
    assert list(found.skipped) == ["Assign.mutations.gatekeeper.sh /a"]


def test_ten_thousand_items_under_a_glob_are_written_once_each_and_the_patch_gives_the_object() -> (
    None
):
    mutators = known(image("tag", "spec.containers[name: *].image", assignTag=":v1"))
    obj = pod(*["app"] * 10_000)
    found = mutators.snapshot.mutate(obj, CREATE)
    patch = make_patch(obj, found.object)
    assert len(patch) == 10_000
    assert found.iterations == 2
    assert apply_patch(obj, patch) == found.object
    assert mutators.snapshot.mutate(found.object, CREATE).object is found.object


def test_five_hundred_mutators_of_a_kind_take_two_passes() -> None:
    mutators = known(*(assign(f"m{at}", f"spec.f{at}", at) for at in range(500)))
    found = mutators.snapshot.mutate(pod(), CREATE)
    assert found.iterations == 2
    assert [len(one) for one in found.passes] == [500]
    assert found.object["spec"]["f499"] == 499
