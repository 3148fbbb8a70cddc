"""Updates by which objects that violate a policy go, and what may not come in with them."""

from typing import Any

import pytest

from tests.behaviour.serving import REQUIRED_LABELS, constraint, pod, thing
from tests.webhook.server.admitting import CONSTRAINT, TEMPLATE, Admitting, request_of
from webhook.api.admission import AdmissionResponse
from webhook.review.releasing import GARBAGE_COLLECTORS, RELEASED
from webhook.server.namespace_label import Exemptions, decide

DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
OWNERS: list[dict[str, Any]] = [
    {"kind": "ReplicaSet", "name": "a", "uid": "1", "blockOwnerDeletion": True},
    {"kind": "ReplicaSet", "name": "b", "uid": "2"},
]
COLLECTOR = min(GARBAGE_COLLECTORS)


def violating(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """A Pod without the label."""
    made = pod()
    made["metadata"] |= metadata
    return made | {"spec": spec or {"nodeName": "a"}}


def ask(old: dict[str, Any], new: dict[str, Any], user: str = "alice") -> AdmissionResponse:
    """The answer to an update, by a policy that refuses the object."""
    request = request_of(
        new, operation="UPDATE", oldObject=old, userInfo={"username": user}, options=None
    )
    return Admitting(REQUIRED_LABELS, constraint("a", "owner")).ask(request)


def is_allowed(old: dict[str, Any], new: dict[str, Any], user: str = "alice") -> bool:
    """Whether an update is, and unreviewed."""
    found = ask(old, new, user)
    assert found.allowed == (found.message == RELEASED)
    return bool(found.allowed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (violating(finalizers=["x", "y"]), violating(finalizers=["y"])),
        (violating(finalizers=["x"]), violating()),
        (violating(finalizers=["x"], **DELETED), violating(**DELETED)),
        (
            violating(finalizers=["x"], resourceVersion="1", generation=1, managedFields=[1]),
            violating(resourceVersion="1", generation=2, managedFields=[2], **DELETED),
        ),
        (violating(finalizers=["x"], **DELETED), violating(finalizers=["x"], **DELETED)),
        (
            violating(ownerReferences=OWNERS),
            violating(ownerReferences=[{**OWNERS[0], "blockOwnerDeletion": False}, OWNERS[1]]),
        ),
    ],
)
def test_what_only_lets_an_object_go_is_not_refused(old: Any, new: Any) -> None:
    assert is_allowed(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (violating(), violating()),
        (violating(), violating(finalizers=["x"])),
        (violating(finalizers=["x"]), violating(finalizers=["y"])),
        (violating(finalizers=["x"]), violating({"nodeName": "b"})),
        (violating(finalizers=["x"], **DELETED), violating({"nodeName": "b"}, **DELETED)),
        (violating(finalizers=["x"]), violating(annotations={"a": "b"})),
        (violating(finalizers=["x"]), violating() | {"status": {"phase": "Failed"}}),
        (violating(labels={"owner": "a"}, **DELETED), violating(**DELETED)),
        (violating(ownerReferences=OWNERS), violating(ownerReferences=OWNERS[1:])),
        (violating(ownerReferences=OWNERS[1:]), violating(ownerReferences=OWNERS)),
        (violating(finalizers="x"), violating(finalizers=["x"])),
        (violating(finalizers=["x"]), violating(ownerReferences=5)),
        (violating({"host": 1}, finalizers=["x"]), violating({"host": True})),
        (violating({"host": 0}, **DELETED), violating({"host": False}, **DELETED)),
        (violating({"ports": [1.0]}, finalizers=["x"]), violating({"ports": [1]})),
    ],
)
def test_what_brings_anything_in_is_reviewed(old: Any, new: Any) -> None:
    assert not is_allowed(old, new)


@pytest.mark.parametrize(
    "new",
    [
        violating(annotations={"cleaned": "yes"}, **DELETED),
        violating(labels={"app": "b"}, finalizers=["x"], **DELETED),
        violating(**DELETED) | {"status": {"phase": "Failed"}},
    ],
)
def test_what_is_noted_on_an_object_that_is_being_deleted_is_not_refused_for_what_was_there(
    new: Any,
) -> None:
    """Whoever cleans up says so as it takes its finalizer: the object stayed in Terminating."""
    found = ask(violating(finalizers=["x"], **DELETED), new)
    assert found.allowed
    assert found.warnings == ("[a] label <owner> is missing",)


@pytest.mark.parametrize("sub_resource", ["status", "finalize", "resize", ""])
def test_a_finalizer_goes_through_any_subresource(sub_resource: str) -> None:
    """A cloud's controller takes its finalizer by ``services/status``: such Services hung."""
    old, new = violating(finalizers=["x"], **DELETED), violating(**DELETED)
    more: dict[str, Any] = {"operation": "UPDATE", "subResource": sub_resource}
    admitting = Admitting(REQUIRED_LABELS, constraint("a", "owner"))
    found = admitting.ask(request_of(new, oldObject=old, **more))
    assert (found.allowed, found.message) == (True, RELEASED)
    other = violating({"nodeName": "b"}, **DELETED)
    assert not admitting.ask(request_of(other, oldObject=old, **more)).allowed


def test_the_garbage_collector_takes_owners_from_what_outlives_them() -> None:
    old, new = violating(ownerReferences=OWNERS), violating(ownerReferences=OWNERS[:1])
    assert is_allowed(old, new, COLLECTOR)
    assert not is_allowed(new, old, COLLECTOR)


def test_a_namespace_is_finalized() -> None:
    old = thing("Namespace", "a", **DELETED) | {"spec": {"finalizers": ["kubernetes"]}}
    new = thing("Namespace", "a", **DELETED) | {"spec": {"finalizers": []}}
    assert is_allowed(old, new)
    assert not is_allowed(new | {"spec": {"x": 1}}, old)
    labels = {"admission.gatekeeper.sh/ignore": ""}
    old["metadata"]["labels"] = new["metadata"]["labels"] = labels
    more = {"operation": "UPDATE", "oldObject": old, "subResource": "finalize"}
    assert decide(request_of(new, **more), Exemptions()).allowed
    more["oldObject"] = thing("Namespace", "a", finalizers=["x"])
    assert not decide(request_of(new, **more), Exemptions()).allowed


@pytest.mark.parametrize(
    "policy",
    [
        thing("RequiredLabel", "a", CONSTRAINT) | {"spec": {"parameters": {"label": 5}}},
        thing("RequiredLabel", "a" * 64, CONSTRAINT) | {"spec": {"match": 5}},
        thing("NoSuchTemplate", "a", CONSTRAINT),
        thing("ConstraintTemplate", "other", TEMPLATE) | {"spec": {"targets": 5}},
        thing("Assign", "a", "mutations.gatekeeper.sh/v1") | {"spec": 5},
        thing("ExpansionTemplate", "a", "expansion.gatekeeper.sh/v1alpha1") | {"spec": 5},
        thing("Config", "other", "config.gatekeeper.sh/v1alpha1"),
    ],
)
def test_a_policy_that_is_broken_can_be_deleted_and_may_lose_its_finalizers(policy: Any) -> None:
    admitting = Admitting(REQUIRED_LABELS)
    assert not admitting.ask(request_of(policy)).allowed
    assert admitting.ask(request_of(policy, operation="DELETE")).allowed
    held = policy | {"metadata": policy["metadata"] | {"finalizers": ["x"]}}
    assert admitting.ask(request_of(policy, operation="UPDATE", oldObject=held)).allowed
