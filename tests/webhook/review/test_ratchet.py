"""`waddle.dev/existing: allow`: an update is refused only for what the old object has not."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from tests.webhook.constraint.policies import client, constraint, deployment, expands, template
from webhook.api.admission import read_request
from webhook.constraint.breaker import Guard
from webhook.constraint.enforcement import AUDIT, WEBHOOK
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.expansion import ExpansionSet, read_expansion_template
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.result import DEFERRED
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject

IMAGES = template(
    "Images",
    """package images
violation[{"msg": msg, "details": {"image": image}}] {
  image := input.review.object.spec.containers[_].image
  endswith(image, ":latest")
  msg := sprintf("%v is latest", [image])
}
""",
)
SHRUNK = template(
    "Shrunk",
    """package shrunk
violation[{"msg": "it has fewer containers"}] {
  input.review.operation == "UPDATE"
  count(input.review.object.spec.containers) < count(input.review.oldObject.spec.containers)
}
""",
)
ALLOW = {"waddle.dev/existing": "allow"}


def ratcheted(kind: str = "Images", **spec: Any) -> dict[str, Any]:
    """A constraint that lets stay what was there."""
    document = constraint(kind, "c", **spec)
    document["metadata"]["annotations"] = dict(ALLOW)
    return document


def pod(*images: str, **metadata: Any) -> dict[str, Any]:
    """A Pod with these images."""
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", **metadata},
        "spec": {"containers": containers},
    }


def request(
    obj: dict[str, Any] | None, old: dict[str, Any] | None, operation: str = "UPDATE", **more: Any
) -> AugmentedReview:
    """A request."""
    kind = (obj or old or {}).get("kind", "")
    group, _, version = (obj or old or {})["apiVersion"].rpartition("/")
    document = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": kind},
        "operation": operation,
        "namespace": "shop",
        "name": "web",
        "userInfo": {"username": "jane"},
        "object": obj,
        "oldObject": old,
        **more,
    }
    return AugmentedReview(read_request(document), {"metadata": {"name": "shop"}})


def found(
    value: Any, *documents: dict[str, Any], expansions: Any = (), point: str = WEBHOOK
) -> list[tuple[str, tuple[str, ...], bool]]:
    """Message, actions and whether it was there, of each violation."""
    made = ExpansionSet()
    for item in expansions:
        made.add(read_expansion_template(item))
    policies = PolicySet(client(*documents).snapshot, expansion=made.expansion)
    responses = review(policies, Subject(value, point=point)).responses
    assert not responses.undecided
    return [(one.msg, one.actions, one.existing) for one in responses.results]


def test_what_was_there_is_warned_about_and_what_is_new_is_refused() -> None:
    value = request(pod("a:latest", "b:latest"), pod("a:latest", "b:1"))
    assert found(value, IMAGES, ratcheted()) == [
        ("b:latest is latest", ("deny",), False),
        ("a:latest is latest", ("warn",), True),
    ]
    assert {actions for _, actions, _ in found(value, IMAGES, constraint("Images"))} == {("deny",)}


def test_each_violation_of_before_stands_for_one() -> None:
    value = request(pod("a:latest", "a:latest"), pod("a:latest"))
    by_violation = [actions for _, actions, _ in found(value, IMAGES, ratcheted())]
    assert sorted(by_violation) == [("deny",), ("warn",)] or by_violation == [("warn",)], (
        "a set has it once"
    )


@pytest.mark.parametrize(
    "value",
    [
        request(pod("a:latest"), None, "CREATE"),
        request(pod("a:latest"), pod("a:1")),
        request(None, pod("a:latest"), "DELETE"),
        AugmentedObject(pod("a:latest")),
    ],
    ids=["a creation", "a better one before", "a deletion", "no request"],
)
def test_nothing_else_is_let_in(value: Any) -> None:
    assert [actions for _, actions, _ in found(value, IMAGES, ratcheted())] == [("deny",)]


def test_the_audit_counts_what_is_there() -> None:
    findings = found(AugmentedObject(pod("a:latest")), IMAGES, ratcheted(), point=AUDIT)
    assert findings == [("a:latest is latest", ("deny",), False)]


def test_what_an_update_itself_does_is_never_there_before() -> None:
    value = request(pod("a:1"), pod("a:1", "b:1"))
    findings = found(value, SHRUNK, ratcheted("Shrunk"))
    assert findings == [("it has fewer containers", ("deny",), False)]


def test_an_object_that_comes_into_the_match_by_the_update_is_refused() -> None:
    match = {"labelSelector": {"matchLabels": {"tier": "front"}}}
    old, new = pod("a:latest"), pod("a:latest", labels={"tier": "front"})
    findings = found(request(new, old), IMAGES, ratcheted(match=match))
    assert [actions for _, actions, _ in findings] == [("deny",)]


SPARING = template(
    "Sparing",
    """package sparing
violation[{"msg": msg, "details": {"field": field}}] {
  not unchanged
  image := input.review.object.spec.containers[i].image
  endswith(image, ":latest")
  field := sprintf("spec.containers[%d].image", [i])
  msg := sprintf("%v is latest", [field])
}
unchanged {
  input.review.operation == "UPDATE"
  input.review.object.spec == input.review.oldObject.spec
}
""",
)


def test_a_policy_that_spares_updates_without_changes_does_not_hide_what_was_there() -> None:
    """The library's templates do: each update of a Pod's spec was refused for what was there."""
    value = request(pod("a:latest", "b:latest"), pod("a:latest", "b:1"))
    assert found(value, SPARING, ratcheted("Sparing")) == [
        ("spec.containers[1].image is latest", ("deny",), False),
        ("spec.containers[0].image is latest", ("warn",), True),
    ]


def test_an_item_is_the_same_at_another_place_of_its_list() -> None:
    """Whoever removed the first of two bad containers was refused for the second."""
    old = pod("a:latest", "b:latest")
    new = copy.deepcopy(old)
    del new["spec"]["containers"][0]
    findings = found(request(new, old), SPARING, ratcheted("Sparing"))
    assert findings == [("spec.containers[0].image is latest", ("warn",), True)]
    new["spec"]["containers"][0]["name"] = "another"
    findings = found(request(new, old), SPARING, ratcheted("Sparing"))
    assert [actions for _, actions, _ in findings] == [("deny",)]


def test_an_item_of_an_implied_object_is_the_same_at_another_place_of_its_list() -> None:
    old = deployment()
    old["metadata"]["name"] = "web"
    old["spec"]["template"]["spec"] = pod("a:1", "b:latest")["spec"]
    new = copy.deepcopy(old)
    del new["spec"]["template"]["spec"]["containers"][0]
    findings = found(request(new, old), SPARING, ratcheted("Sparing"), expansions=[expands()])
    assert findings == [
        ("[Implied by pods] spec.containers[0].image is latest", ("warn",), True),
    ]


def test_scoped_actions_and_dry_runs_are_distinguished_too() -> None:
    points = [{"name": WEBHOOK}]
    scoped = ratcheted(
        enforcementAction="scoped",
        scopedEnforcementActions=[{"action": "deny", "enforcementPoints": points}],
    )
    value = request(pod("a:latest"), pod("a:latest"))
    assert found(value, IMAGES, scoped) == [("a:latest is latest", ("warn",), True)]
    dry = ratcheted(enforcementAction="dryrun")
    assert found(value, IMAGES, dry) == [("a:latest is latest", ("dryrun",), True)]


def test_groups_have_it_too() -> None:
    group = {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": "g", "annotations": dict(ALLOW)},
        "spec": {"members": {"images": {"kind": "Images"}}, "expression": "images()"},
    }
    stays = request(pod("a:latest", labels={"a": "b"}), pod("a:latest"))
    assert [actions for _, actions, _ in found(stays, IMAGES, group)] == [("warn",)]
    worse = request(pod("a:latest", "b:latest"), pod("a:latest"))
    assert [actions for _, actions, _ in found(worse, IMAGES, group)] == [("deny",)]


@pytest.mark.parametrize("message", ["", "Name a version."])
def test_a_group_lets_fewer_violations_of_the_same_members_stay(message: str) -> None:
    """Whoever mended one of two bad containers was refused for the other."""
    group = {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": "g", "annotations": dict(ALLOW)},
        "spec": {
            "message": message,
            "members": {"images": {"kind": "Images"}, "sparing": {"kind": "Sparing"}},
            "expression": "images() || sparing()",
        },
    }

    def actions(*images: str, was: tuple[str, ...]) -> list[tuple[str, ...]]:
        value = request(pod(*images), pod(*was))
        return [by for _, by, _ in found(value, IMAGES, SPARING, group)]

    two = ("a:latest", "b:latest")
    assert actions("a:1", "b:latest", was=two) == [("warn",)]
    assert actions("a:1", "c:latest", was=two) == [("deny",)]
    assert actions("a:1", "b:latest", "c:latest", was=two) == [("deny",)]
    assert actions("a:latest", "a:latest", was=("a:latest",)) == [("deny",)]
    assert actions("a:1", "b:1", was=two) == []


NO_LABEL = template(
    "NoLabel",
    """package nolabel
violation[{"msg": "has a label"}] { input.review.object.metadata.labels.bad }
""",
)
FAILING = template(
    "Failing",
    """package failing
violation[{"msg": "x"}] { f(input.review.object) == 3 }
f(x) = 1 { x.metadata.labels.bad }
f(x) = 2 { x.kind }
""",
)


def group_of(expression: str, **members: str) -> dict[str, Any]:
    """A group with these members' kinds that lets stay what was there."""
    return {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": "g", "annotations": dict(ALLOW)},
        "spec": {
            "message": "No.",
            "members": {name: {"kind": kind} for name, kind in members.items()},
            "expression": expression,
        },
    }


BAD = {"labels": {"bad": "x"}}


@pytest.mark.parametrize(
    ("expression", "new", "old", "action"),
    [
        ("a() && b()", pod("a:latest"), pod("a:latest", **BAD), "warn"),
        ("a() && b()", pod("a:latest"), pod("a:1", **BAD), "deny"),
        ("a() && b()", pod("a:latest", **BAD), pod("a:1", **BAD), "deny"),
        ("a() && b()", pod("a:1", **BAD), pod("a:latest", **BAD), "warn"),
        ("!a() && b()", pod("a:latest"), pod("a:latest", **BAD), "deny"),
        ("!(!a() || !b())", pod("a:latest"), pod("a:latest", **BAD), "warn"),
        ("(a() == true) && b()", pod("a:latest"), pod("a:latest", **BAD), "deny"),
    ],
    ids=[
        "the first is mended",
        "another takes its place",
        "another comes beside it",
        "the last is mended",
        "its acceptance is the reason",
        "it is negated twice",
        "it is compared",
    ],
)
def test_a_group_judges_members_that_did_not_matter_before(
    expression: str, new: dict[str, Any], old: dict[str, Any], action: str
) -> None:
    """The members behind the first that refused were not evaluated, and so not known."""
    group = group_of(expression, a="NoLabel", b="Images")
    assert found(request(new, old), NO_LABEL, IMAGES, group) == [
        ("No.", (action,), action == "warn")
    ]


def test_a_group_under_a_ratchet_says_why_an_update_is_refused() -> None:
    """The member that has a new violation is named, also where another had refused before it."""
    group = group_of("a() && b()", a="NoLabel", b="Images")
    del group["spec"]["message"]
    value = request(pod("a:latest", **BAD), pod("a:1", **BAD))
    ((message, actions, _),) = found(value, NO_LABEL, IMAGES, group)
    assert actions == ("deny",)
    assert message == "a() && b() is false: a: has a label; b: a:latest is latest"


def test_a_group_keeps_no_object_in_terminating_for_what_it_did_not_judge_before() -> None:
    """A finalizer's last update was refused where constraints of the same templates warn."""
    group = group_of("a() && b()", a="NoLabel", b="Images")
    del group["metadata"]["annotations"]
    ends = {"deletionTimestamp": "2026-11-01T10:00:00Z"}
    old = pod("a:latest", finalizers=["example.com/f"], **ends, **BAD)
    value = request(pod("a:latest", **ends), old)
    assert found(value, NO_LABEL, IMAGES, group) == [("No.", ("warn",), True)]
    value = request(pod("a:latest"), pod("a:latest", **BAD))
    assert found(value, NO_LABEL, IMAGES, group) == [("No.", ("deny",), False)]


def test_a_member_that_fails_ends_no_review() -> None:
    """The comparison looked for its verdict."""
    group = group_of("a() && b()", a="Failing", b="Images")
    bad, good = pod("a:latest", **BAD), pod("a:latest")
    value = request(bad, pod("a:latest", labels={"bad": "y"}))
    assert found(value, FAILING, IMAGES, group) == [("No.", ("warn",), True)]
    assert found(request(bad, good), FAILING, IMAGES, group) == [("No.", ("deny",), False)]
    assert found(request(good, bad), FAILING, IMAGES, group) == [("No.", ("warn",), True)]


ENDLESS = template(
    "Endless",
    """package endless
violation[{"msg": "x"}] { numbers.range(1, 3000000)[_] == -1 }
""",
)


def test_a_member_that_takes_long_is_compared_on_another_thread() -> None:
    """Such a member counted as failed, and the update was refused."""
    snapshot = client(IMAGES, ENDLESS, group_of("a() && b()", a="Images", b="Endless")).snapshot
    budget = Budget.of(0.001, guard=Guard(), deferrable=True)
    value = AugmentedObject(pod("a:latest"))
    assert snapshot.review(value, limits=Limits(budget=budget)) is DEFERRED
    last = Limits(budget=replace(budget, deferrable=False))
    (result,) = snapshot.review(value, limits=last).results
    assert "error" in result.details["members"]["b"]


def test_a_group_that_refuses_for_another_reason_is_not_the_same() -> None:
    group = {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "ConstraintGroup",
        "metadata": {"name": "g", "annotations": dict(ALLOW)},
        "spec": {
            "message": "Both or none.",
            "members": {"images": {"kind": "Images"}, "sparing": {"kind": "Sparing"}},
            "expression": "images() != sparing()",
        },
    }
    value = request(pod("a:1"), pod("a:latest"))
    assert found(value, IMAGES, SPARING, group) == [("Both or none.", ("deny",), False)]


def test_what_an_object_implied_before_it_may_go_on_implying() -> None:
    old = deployment()
    old["metadata"]["name"] = "web"
    old["spec"]["template"]["spec"] = pod("a:latest")["spec"]
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 3
    findings = found(request(new, old), IMAGES, ratcheted(), expansions=[expands()])
    assert findings == [("[Implied by pods] a:latest is latest", ("warn",), True)]
    new["spec"]["template"]["spec"] = pod("a:latest", "b:latest")["spec"]
    findings = found(request(new, old), IMAGES, ratcheted(), expansions=[expands()])
    assert ("[Implied by pods] b:latest is latest", ("deny",), False) in findings


@pytest.mark.parametrize(
    ("value", "spec", "why"),
    [
        ("maybe", {}, 'must be allow or refuse, got "maybe"'),
        (
            "allow",
            {
                "enforcementAction": "scoped",
                "scopedEnforcementActions": [
                    {"action": "deny", "enforcementPoints": [{"name": "vap.k8s.io"}]}
                ],
            },
            "the constraint is for vap.k8s.io alone",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(value: str, spec: dict[str, Any], why: str) -> None:
    document = ratcheted(**spec)
    document["metadata"]["annotations"]["waddle.dev/existing"] = value
    with pytest.raises(InvalidConstraint, match=why):
        client(IMAGES, document)
