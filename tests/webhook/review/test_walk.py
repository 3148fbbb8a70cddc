"""The one walk: its stages, what a door leaves out by name, and what it needs first."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from tests.policies import expansion_template
from tests.webhook.constraint.policies import constraint, template
from tests.webhook.mutation.documents import known, label
from webhook.api.admission import InvalidReview
from webhook.constraint import enforcement
from webhook.constraint.breaker import Guard
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.expansion import Expansion, read_expansion_template
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.mutation.snapshot import MutationSnapshot
from webhook.review.loops import NamespaceGone, review, review_async
from webhook.review.outcome import Found, Needs
from webhook.review.policy_set import Exclusions, PolicySet
from webhook.review.subject import Subject, played, value_of
from webhook.review.walk import walk

UNLABELLED = """package p
violation[{"msg": msg}] {
  not input.review.object.metadata.labels.owner
  msg := sprintf("%v has no owner", [input.review.kind.kind])
}
"""
EXPANSION = read_expansion_template(expansion_template("e"))
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "shop"},
    "spec": {"template": {"spec": {}}},
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}


def policies(
    *,
    mutations: MutationSnapshot | None = None,
    expansion: Expansion | None = None,
    exclusions: Exclusions | None = None,
    rego: str = UNLABELLED,
    **spec: object,
) -> PolicySet:
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    client.add_template(template(rego=rego))
    client.add_constraint(constraint(**spec))
    return PolicySet(
        client.snapshot,
        mutations or MutationSnapshot(),
        expansion or Expansion(),
        exclusions or Exclusions(),
    )


def messages(found: Found) -> list[str]:
    return [one.msg for one in found.responses.results]


def test_what_is_reviewed_is_what_would_be_stored_unless_a_door_leaves_that_out() -> None:
    owned = policies(mutations=known(label("o", "owner", "me")).snapshot)
    found = review(owned, Subject(AugmentedObject(POD)))
    assert messages(found) == []
    assert found.object is not None
    assert found.object["metadata"]["labels"] == {"owner": "me"}
    assert messages(review(owned, Subject(AugmentedObject(POD), mutates=False))) == [
        "Pod has no owner"
    ]


def test_a_deleted_object_is_not_mutated_and_an_updated_one_is() -> None:
    owned = policies(mutations=known(label("o", "owner", "me")).snapshot)
    assert messages(review(owned, Subject(AugmentedObject(POD, operation="DELETE"))))
    update = played(POD, None, "UPDATE", POD)
    found = review(owned, Subject(update))
    assert messages(found) == []
    assert found.object is not None
    assert "labels" in found.object["metadata"]


def test_what_an_object_implies_is_reviewed_with_it_unless_a_door_leaves_that_out() -> None:
    expanding = policies(expansion=Expansion([EXPANSION]))
    found = review(expanding, Subject(AugmentedObject(DEPLOYMENT)))
    assert messages(found) == ["Deployment has no owner", "[Implied by e] Pod has no owner"]
    assert [one["kind"] for one in found.implied] == ["Pod"]
    found = review(expanding, Subject(AugmentedObject(DEPLOYMENT), expands=False))
    assert messages(found) == ["Deployment has no owner"]


def test_what_cannot_be_expanded_is_reviewed_by_itself_and_said() -> None:
    broken = {**DEPLOYMENT, "spec": {}}
    found = review(policies(expansion=Expansion([EXPANSION])), Subject(AugmentedObject(broken)))
    assert messages(found) == ["Deployment has no owner"]
    assert "spec.template" in found.unexpanded
    assert found.faults == (found.unexpanded,)


@pytest.mark.parametrize(("process", "excluded"), [("webhook", "shop"), ("audit", None)])
def test_a_namespace_is_spared_by_the_process_that_the_door_stands_for(
    process: str, excluded: str | None
) -> None:
    sparing = policies(exclusions=Exclusions(webhook=lambda name: name == "shop"))
    subject = Subject(AugmentedObject(POD), process=process)  # type: ignore[arg-type]
    found = review(sparing, subject)
    assert found.excluded == excluded
    assert bool(messages(found)) is (excluded is None)


def test_a_namespace_counts_as_its_own() -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    sparing = policies(exclusions=Exclusions(webhook=lambda name: name == "shop"))
    assert review(sparing, Subject(AugmentedObject(shop))).excluded == "shop"


def test_a_namespace_that_must_be_known_is_needed_and_fetched_by_either_loop() -> None:
    selecting = policies(match={"namespaceSelector": {"matchLabels": {"team": "a"}}})
    subject = Subject(AugmentedObject(POD), reads_namespace=True)
    assert walk(selecting, subject) == Needs(namespace="shop")

    def fetch(name: str) -> dict[str, object]:
        return {"metadata": {"name": name, "labels": {"team": "a"}}}

    async def fetch_later(name: str) -> dict[str, object]:
        return fetch(name)

    assert messages(review(selecting, subject, fetch)) == ["Pod has no owner"]
    found = asyncio.run(review_async(selecting, subject, fetch_later))
    assert messages(found) == ["Pod has no owner"]
    with pytest.raises(NamespaceGone):
        review(selecting, subject, lambda _: None)


def test_a_review_that_takes_too_long_where_it_was_begun_needs_time() -> None:
    endless = """package p
violation[{"msg": "x"}] { numbers.range(1, 3000000)[_] == -1 }
"""
    limits = Limits(time.monotonic() + 60, budget=Budget.of(0.001, guard=Guard(), deferrable=True))
    subject = Subject(AugmentedObject(POD), limits=limits, point=enforcement.WEBHOOK)
    assert walk(policies(rego=endless), subject) == Needs(time=True)


def review_document(**request: object) -> dict[str, object]:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, **request},
    }


def test_an_admission_review_is_the_request_that_it_holds() -> None:
    document = review_document(operation="UPDATE", object=POD, oldObject=POD, namespace="shop")
    value = value_of(document, {"shop": {"metadata": {"name": "shop"}}})
    assert isinstance(value, AugmentedReview)
    assert value.request.operation == "UPDATE"
    assert value.namespace == {"metadata": {"name": "shop"}}


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        ({"operation": "CREATE"}, "neither an object nor an oldObject"),
        ({"operation": "DELETE", "object": POD}, "holds no oldObject"),
        ({"operation": 1, "object": POD}, "operation must be a string"),
    ],
)
def test_an_admission_review_without_what_can_be_reviewed_is_refused(
    request_: dict[str, object], word: str
) -> None:
    with pytest.raises(InvalidReview, match=word):
        value_of(review_document(**request_), {})


def test_an_update_that_only_lets_an_object_go_is_spared_unless_a_door_says_otherwise() -> None:
    held: dict[str, object] = {**POD, "metadata": {**POD["metadata"], "finalizers": ["x"]}}
    subject = Subject(played(POD, None, "UPDATE", held, {}))
    assert not review(policies(), subject).responses.results
    assert review(policies(), replace(subject, releases=False)).responses.results
    changed = held | {"spec": {"nodeName": "a"}}
    subject = replace(subject, value=played(POD, None, "UPDATE", changed, {}))
    assert review(policies(), subject).responses.results
