"""Changes that mutators would make to existing objects."""

from typing import Any

from tests.webhook.mutation.documents import PODS, assign, known, label, mutator, pod
from webhook.api.gvk import GroupVersionKind, gvk_of
from webhook.mutation.drift import drifts_of, names_kind
from webhook.mutation.setting import Context

POD = GroupVersionKind("", "v1", "Pod")
SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def drift_texts(obj: dict[str, Any], *documents: dict[str, Any]) -> dict[str, str]:
    """Returns the change that each mutator would make, by its name."""
    found = drifts_of(known(*documents).snapshot, obj, SHOP, "shop")
    return {item.mutator.name: str(item) for item in found}


def test_each_mutator_tells_the_fields_that_it_would_change() -> None:
    documents = [
        assign("a", "spec.containers[name: *].tty", True),
        label("l", "team", "shop"),
        label("there", "here", "already"),
        assign("same", "spec.done", 1),
    ]
    obj = pod("x", "y", "z", "w", labels={"here": "otherwise"})
    obj["spec"]["done"] = 1.0
    assert drift_texts(obj, *documents) == {
        "a": "would change /spec/containers/0/tty, /spec/containers/1/tty, "
        "/spec/containers/2/tty and 1 more when the object is written",
        "l": "would change /metadata/labels/team when the object is written",
    }


def test_an_object_that_is_as_mutators_want_it_has_no_drift() -> None:
    mutators = known(assign("a", "spec.x", 1), label("l", "k", "v"))
    drifted = pod("a")
    obj = mutators.snapshot.mutate(drifted, Context("UPDATE")).object
    assert drifts_of(mutators.snapshot, drifted, SHOP, "shop") != ()
    assert drifts_of(mutators.snapshot, obj, SHOP, "shop") == ()


def test_a_previewed_mutator_tells_what_it_would_change_once_it_is_enforced() -> None:
    previewed = assign("p", "spec.x", 1)
    previewed["metadata"]["annotations"] = {"waddle.dev/mode": "preview"}
    assert drift_texts(pod(), previewed) == {
        "p": "once it is enforced, would change /spec/x when the object is written"
    }


def test_mutators_of_creations_fault_and_providers_tell_nothing() -> None:
    created = assign("c", "spec.x", 1)
    created["spec"]["applyTo"] = [{**PODS[0], "operations": ["CREATE"]}]
    asks = {"assign": {"externalData": {"provider": "p"}}}
    documents = [
        created,
        assign("broken", "spec.containers.x", 1),
        mutator("Assign", "asks", "spec.containers[name: *].image", parameters=asks),
        label("l", "k", "v"),
    ]
    assert list(drift_texts(pod("a"), *documents)) == ["l"]


def test_kinds_that_a_mutator_names_are_worth_listing_and_everything_is_not() -> None:
    named = label("l", "k", "v", match={"kinds": [{"apiGroups": [""], "kinds": ["Secret"]}]})
    snapshot = known(assign("a", "spec.x", 1), label("all", "k", "v"), named).snapshot
    assert names_kind(snapshot, POD)
    assert names_kind(snapshot, GroupVersionKind("", "v1", "Secret"))
    assert not names_kind(snapshot, GroupVersionKind("", "v1", "ConfigMap"))
    assert gvk_of(pod()) == POD
