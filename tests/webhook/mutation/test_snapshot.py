"""Mutators applied to objects: order, passes, sharing, faults and bounds."""

import copy
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from webhook.api.gvk import GroupVersionKind
from webhook.mutation import schema
from webhook.mutation.annotations import annotated, id_for
from webhook.mutation.assigning import Assignment
from webhook.mutation.errors import (
    InvalidMutator,
    MutationError,
    NotConverging,
    OutOfTime,
)
from webhook.mutation.mutator import Mutator, MutatorId
from webhook.mutation.pace import Pace
from webhook.mutation.patch import make_patch
from webhook.mutation.reading import read_mutator, with_defaults
from webhook.mutation.registry import Mutators
from webhook.mutation.snapshot import MutationSnapshot


def test_what_was_not_changed_is_the_same_object() -> None:
    obj = pod("a", "b")
    before = copy.deepcopy(obj)
    snapshot = known(image("i", "spec.containers[name: c1].image", assignTag=":v2")).snapshot
    after = snapshot.mutate(obj, CREATE).object
    assert obj == before
    assert after["spec"]["containers"][1]["image"] == "b:v2"
    assert after["metadata"] is obj["metadata"]
    assert after["spec"]["containers"][0] is obj["spec"]["containers"][0]


def test_an_object_that_is_as_it_should_be_comes_back_itself() -> None:
    obj = pod("a:v1")
    mutated = known(
        image("i", "spec.containers[name: *].image", assignTag=":v1"),
        assign("a", "spec.containers[name: c0].name2", 1, parameters={}),
        assign("b", "spec.containers[name: c0].name2", 1.0),
    ).snapshot.mutate(
        {**obj, "spec": {"containers": [{"name": "c0", "image": "a:v1", "name2": 1}]}}, CREATE
    )
    assert mutated.iterations == 0
    assert not mutated.passes


def test_true_is_not_one() -> None:
    mutated = known(assign("a", "spec.x", True)).snapshot.mutate(
        {**pod(), "spec": {"x": 1}}, CREATE
    )
    assert mutated.object["spec"]["x"] is True
    assert mutated.iterations == 2


def test_a_value_that_a_glob_assigned_is_a_copy_in_each_item() -> None:
    after = known(
        assign("a", "spec.containers[name: *].env", {"x": 1}),
        assign("b", "spec.containers[name: c0].env.y", 2),
    ).snapshot.mutate(pod("a", "b"), CREATE)
    assert [item["env"] for item in after.object["spec"]["containers"]] == [
        {"x": 1, "y": 2},
        {"x": 1},
    ]


def test_a_mutator_about_other_kinds_makes_no_plan() -> None:
    snapshot = known(
        assign("a", "spec.x", 1), label("l", "a", "b", match={"kinds": [{"kinds": ["Pod"]}]})
    ).snapshot
    assert snapshot.plan(GroupVersionKind("apps", "v1", "Deployment"), "CREATE") is None
    obj = {"apiVersion": "apps/v1", "kind": "Deployment"}
    assert snapshot.mutate(obj, CREATE).object is obj


def test_a_label_that_a_mutator_adds_is_matched_by_another_in_the_next_pass() -> None:
    mutated = known(
        assign("a", "spec.x", 1, match={"labelSelector": {"matchLabels": {"new": "yes"}}}),
        label("z", "new", "yes"),
    ).snapshot.mutate(pod(), CREATE)
    assert mutated.object["spec"]["x"] == 1
    assert [[str(one) for one in found] for found in mutated.passes] == [
        ["AssignMetadata//z:0"],
        ["Assign//a:0"],
    ]
    assert mutated.iterations == 3


BROKEN = assign("broken", "spec.containers.x", 1)


def test_a_mutator_that_fails_refuses_the_request_or_is_skipped() -> None:
    snapshot = known(BROKEN, label("l", "a", "b")).snapshot
    with pytest.raises(MutationError, match="failed for  Pod shop p: mismatch") as raised:
        snapshot.mutate(pod("a"), replace(CREATE, namespace_name="shop"))
    assert raised.value.mutator == "Assign.mutations.gatekeeper.sh /broken"
    mutated = snapshot.mutate(pod("a"), CREATE, on_error="skip")
    assert mutated.object["metadata"]["labels"] == {"a": "b"}
    assert (
        "mismatch between path entry" in mutated.skipped["Assign.mutations.gatekeeper.sh /broken"]
    )


def test_a_mutator_that_fails_in_a_later_pass_leaves_nothing_behind() -> None:
    # `a` assigns in the first pass; then `b` makes a text of its object, and `a` fails.
    selector = {"labelSelector": {"matchLabels": {"new": "yes"}}}
    mutated = known(
        assign("a", "spec.p.q", 1),
        assign("b", "spec.p", "text", match=selector),
        label("z", "new", "yes"),
    ).snapshot.mutate(pod(), CREATE, on_error="skip")
    assert mutated.object["spec"]["p"] == "text"
    assert list(mutated.skipped) == ["Assign.mutations.gatekeeper.sh /a"]
    assert all(one.id.name != "a" for found in mutated.passes for one in found)


class _Growing:
    """Sets a text that grows for ever; no kind of mutators can be made to."""

    def __call__(self, existing: Any, _root: dict[str, Any], _context: object) -> Any:
        return f"{existing}+"


class _Turning:
    """Sets one of three texts after the other."""

    def __call__(self, existing: Any, _root: dict[str, Any], _context: object) -> Any:
        return {"a": "b", "b": "c"}.get(existing, "a")


@pytest.mark.parametrize("setter", [_Growing(), _Turning()])
def test_mutators_that_never_converge_are_reported(setter: Any) -> None:
    found = read_mutator(assign("a", "spec.x", 1))
    endless = replace(
        found, assignment=Assignment(found.location, found.assignment.allowed, setter)
    )
    others = [read_mutator(label(f"l{number}", "a", "b")) for number in range(40)]
    with pytest.raises(NotConverging, match="not converging for  Pod  p") as raised:
        MutationSnapshot([endless, *others]).mutate(pod(), CREATE)
    assert raised.value.iterations == 42


def test_five_hundred_mutators_and_ten_thousand_items_end_in_time() -> None:
    obj = pod()
    obj["spec"]["containers"] = [{"name": f"c{number}"} for number in range(10_000)]
    mutators = [
        assign(f"a{number:03}", f"spec.containers[name: *].f{number}", 1) for number in range(500)
    ]
    with pytest.raises(OutOfTime):
        known(*mutators).snapshot.mutate(obj, replace(CREATE, pace=Pace(time.monotonic())))
    mutated = known(*mutators[:3]).snapshot.mutate(obj, CREATE)
    assert all(item["f2"] == 1 for item in mutated.object["spec"]["containers"])
    assert "f2" not in obj["spec"]["containers"][0]


def test_an_object_nested_too_deeply_is_a_fault_of_the_mutator_alone() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    obj = {**pod(), "spec": {"set": [deep]}}
    snapshot = known(modify_set("s", "spec.set", "merge", [1]), label("l", "a", "b")).snapshot
    mutated = snapshot.mutate(obj, CREATE, on_error="skip")
    assert list(mutated.skipped.values()) == ["the object is nested too deeply for it"]
    assert mutated.object["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (mutator("Assign", "a", 5), "location must be a text"),  # type: ignore[arg-type]
        (assign("a", "spec.x", 1, applyTo="Pod"), "applyTo must be a list"),
        (assign("a", "spec.x", 1, applyTo=[5]), "fields of a wrong type"),
        (assign("a", "spec.x", 1, applyTo=[{"groups": [1]}]), "groups must be a list of strings"),
        (assign("a", "spec.x", 1, match=[]), "match must be an object"),
        (assign("a", "spec.x", 1, match={"namespaces": "a"}), "invalid match for Assign a"),
        (
            assign(
                "a",
                "spec.x",
                1,
                match={"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            ),
            "not a valid selector operator",
        ),
        (assign("a", ".".join(["a"] * 200), 1), "at most 128 nodes"),
        (assign("a", "spec[a: 99999999999999999999]", {}), "invalid integer"),
        (assign("a", "spec[a: " + "9" * 5000 + "]", {}), "invalid integer"),
        (assign("a" * 64, "spec.x", 1), "maximum name length is 63"),
        (assign("", "spec.x", 1), "no metadata.name"),
        (
            assign("a", "spec.x", 1, parameters={"pathTests": [5]}),
            "a path test that is not an object",
        ),
        (assign("a", "spec.x", 1, parameters={"pathTests": [{"subPath": 5}]}), "of a wrong type"),
        ({"apiVersion": "v1", "kind": "Pod"}, "is not a kind of mutators"),
    ],
)
def test_a_mutator_that_is_none_is_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidMutator) as raised:
        read_mutator(document)
    assert message in str(raised.value)


def test_a_mutator_nested_too_deeply_is_refused() -> None:
    value: Any = 1
    for _ in range(1000):
        value = [value]
    with pytest.raises(InvalidMutator, match="nests deeper than 100 levels"):
        read_mutator(assign("a", "spec.x", value))


def test_a_refused_generation_leaves_the_one_before() -> None:
    mutators = known(assign("a", "spec.x", 1))
    with pytest.raises(InvalidMutator):
        mutators.add(assign("a", "spec..x", 2))
    assert mutators.snapshot.mutate(pod(), CREATE).object["spec"]["x"] == 1


def test_a_conflict_is_known_of_every_party_and_ends_with_one_of_them() -> None:
    mutators = known(
        assign("a", "spec.l[name: x].y", 1), assign("b", "spec.l.y", 1), assign("c", "spec.z", 1)
    )
    a, b = MutatorId("Assign", "a"), MutatorId("Assign", "b")
    assert mutators.snapshot.conflicts == {a: (a, b), b: (a, b)}
    assert mutators.snapshot.mutate(pod(), CREATE).object["spec"] == {"containers": [], "z": 1}
    mutators.remove(b)
    assert mutators.snapshot.conflicts == {}
    assert [one.id.name for one in mutators.snapshot.mutators] == ["a", "c"]


def test_a_set_without_an_operation_is_merged_into() -> None:
    document = mutator("ModifySet", "s", "spec.l", parameters={"values": {"fromList": [1]}})
    assert with_defaults(document)["spec"]["parameters"]["operation"] == "merge"
    assert with_defaults(mutator("ModifySet", "s", "spec.l"))["spec"]["parameters"] == {
        "operation": "merge"
    }


def test_the_id_of_a_mutation_is_that_of_the_next_time() -> None:
    snapshot = known(label("l", "a", "b")).snapshot
    mutated, again = snapshot.mutate(pod(), CREATE), snapshot.mutate(pod("x"), CREATE)
    assert id_for(mutated.passes) == id_for(again.passes)
    found = annotated(mutated.object, mutated.passes, id_for(mutated.passes))
    assert found["metadata"]["annotations"]["gatekeeper.sh/mutations"] == "AssignMetadata//l:0"
    assert "annotations" not in mutated.object["metadata"]


def _applied(*names: str) -> list[Mutator]:
    return [read_mutator(assign(name, "spec.x", 1)) for name in names]


def test_who_assigned_is_named_once() -> None:
    found = annotated({}, [_applied("b", "a"), _applied("a")], "id")
    assert found["metadata"]["annotations"]["gatekeeper.sh/mutations"] == "Assign//a:0, Assign//b:0"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "c0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3)
    ),
    max_leaves=6,
)
LOCATIONS = st.sampled_from(
    [
        "spec.a",
        "spec.a.b",
        "spec.b",
        "spec.l[name: *].a",
        "spec.l[name: a].b",
        "spec.l[name: b].a.b",
    ]
)
MUTATORS = st.one_of(
    st.builds(
        assign, st.sampled_from("abc"), LOCATIONS, VALUES.filter(lambda item: item is not None)
    ),
    st.builds(
        modify_set,
        st.sampled_from("abc"),
        st.sampled_from(["spec.a", "spec.s", "spec.l[name: *].s"]),
        st.sampled_from(["merge", "prune"]),
        st.lists(VALUES, max_size=3),
    ),
    st.builds(label, st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from(["1", "2"])),
)


@given(
    st.lists(MUTATORS, max_size=5),
    st.dictionaries(st.sampled_from(["a", "b", "l", "s"]), VALUES, max_size=4),
)
def test_what_comes_out_is_settled_and_the_patch_makes_it(
    documents: list[dict[str, Any]], spec: dict[str, Any]
) -> None:
    snapshot = known(*documents).snapshot
    obj = {**pod(), "spec": spec}
    before = copy.deepcopy(obj)
    mutated = snapshot.mutate(obj, CREATE, on_error="skip")
    assert obj == before
    assert is_same_json(apply_patch(obj, make_patch(obj, mutated.object)), mutated.object)
    if not mutated.skipped:
        again = snapshot.mutate(mutated.object, CREATE, on_error="skip")
        assert is_same_json(again.object, mutated.object)


def looked_at(monkeypatch, count, *, kinds):
    """Returns the number of parties searched for conflicts, of so many previewed mutators."""
    gone_through = 0
    as_it_is = schema._Node.conflicting_at

    def counted(node, name):
        nonlocal gone_through
        found = as_it_is(node, name)
        gone_through += 1 + len(found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(schema._Node, "conflicting_at", counted)
        mutators = Mutators()
        for number in range(count):
            place = f"spec.l[name: n{number}].b" if number % 2 else f"spec.l.b{number}"
            applies = [
                {"groups": [""], "versions": ["v1"], "kinds": [f"Kind{number // 2 % kinds}"]}
            ]
            document = assign(f"m{number:05}", place, 1, applyTo=applies)
            document["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}
            mutators.add(document)
        would = mutators.snapshot.would_conflict
    assert len(would) == count
    assert len({id(parties) for parties in would.values()}) == kinds
    return gone_through


@pytest.mark.parametrize("kinds", [1, 50])
def test_twice_as_many_mutators_in_conflict_take_twice_the_work(monkeypatch, kinds):
    """Each was compared with each: 2,000 took 72 s a rebuild."""
    some, twice = (looked_at(monkeypatch, count, kinds=kinds) for count in (1_000, 2_000))
    assert twice <= 2.2 * some
    assert twice <= 10 * 2_000
