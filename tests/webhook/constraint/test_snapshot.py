"""Reviews: which constraints apply, what they report, in what order, and what failures become."""

from __future__ import annotations

import random
import time

import pytest

from tests.webhook.constraint.policies import (
    EchoEvaluator,
    client,
    constraint,
    echo_template,
    pod,
    template,
)
from webhook.api.admission import read_request
from webhook.constraint import enforcement
from webhook.constraint.errors import UnsupportedEnforcementPoint
from webhook.constraint.isolation import Isolation
from webhook.constraint.limits import Limits
from webhook.constraint.result import answer_order
from webhook.constraint.review import AugmentedObject, AugmentedReview, Document


def review(subject, thing=None, point=enforcement.WEBHOOK, **options):
    return subject.snapshot.review(
        thing or AugmentedObject(pod()), enforcement_point=point, **options
    )


def found(subject, thing=None, **options):
    return [
        (result.constraint.name, result.msg, result.enforcement_action)
        for result in review(subject, thing, **options).results
    ]


def test_results_are_in_gatekeepers_order_of_action_then_message():
    subject = client(
        echo_template("b", "a", kind="K8sB"),
        echo_template("c", kind="K8sA"),
        constraint("K8sB", "y"),
        constraint("K8sB", "x"),
        constraint("K8sA", "z", enforcementAction="warn"),
        constraint("K8sA", "w"),
    )

    assert found(subject) == [
        ("x", "a", "deny"),
        ("y", "a", "deny"),
        ("x", "b", "deny"),
        ("y", "b", "deny"),
        ("w", "c", "deny"),
        ("z", "c", "warn"),
    ]
    assert [result.constraint.key for result in review(subject).by_constraint()][:3] == [
        ("K8sA", "w"),
        ("K8sA", "z"),
        ("K8sB", "x"),
    ]


def test_ties_are_in_order_of_kind_and_name_however_constraints_were_evaluated():
    """Constraints of equal parameters are evaluated together, whatever others stand between them."""
    chance = random.Random(20261127)
    actions = ("deny", "warn", "dryrun")
    for _ in range(50):
        kinds = [f"K8s{letter}" for letter in "ABC"]
        messages = {kind: chance.choices("abc", k=3) for kind in kinds}
        subject = client(
            *[echo_template(*messages[kind], kind=kind) for kind in kinds],
            *[
                constraint(
                    kind,
                    name,
                    parameters={"group": chance.randrange(2)},
                    enforcementAction=chance.choice(actions),
                )
                for kind in kinds
                for name in "wxyz"
            ],
        )
        results = review(subject).results
        assert len(results) == 36
        assert list(results) == sorted(results, key=answer_order)


def test_only_constraints_that_match_are_evaluated():
    subject = client(
        echo_template("hi"),
        constraint("K8sEcho", "pods", match={"kinds": [{"kinds": ["Pod"]}]}),
        constraint("K8sEcho", "services", match={"kinds": [{"kinds": ["Service"]}]}),
        constraint("K8sEcho", "elsewhere", match={"namespaces": ["other"]}),
        constraint("K8sEcho", "all"),
    )

    answer = review(subject)

    assert {"pods", "all"} == {result.constraint.name for result in answer.results}
    assert answer.evaluated == 2


def test_a_constraint_that_cannot_be_matched_counts_as_violated():
    subject = client(
        echo_template("hi"),
        constraint(
            "K8sEcho",
            enforcementAction="warn",
            match={"namespaceSelector": {"matchLabels": {"a": "b"}}},
        ),
    )

    (result,) = review(subject).results

    assert result.autoreject
    assert result.actions == ("warn",)
    assert (
        result.msg
        == "unable to match constraints: error matching the requested object: web :failed to run "
        "Match criteria: namespace selector for namespace-scoped object but missing Namespace"
    )


def test_a_namespace_among_the_data_serves_the_selector():
    subject = client(
        echo_template("hi"),
        constraint("K8sEcho", match={"namespaceSelector": {"matchLabels": {"a": "b"}}}),
    )
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}

    subject.add_data(shop)
    assert found(subject) == []
    subject.add_data({**shop, "metadata": {"name": "shop", "labels": {"a": "b"}}})
    assert found(subject) == [("c", "hi", "deny")]


def test_an_evaluation_that_fails_is_a_violation_of_every_matching_constraint_of_its_template():
    subject = client(
        echo_template("fine", "!x"),
        constraint("K8sEcho", "fails", parameters={"fail": "x"}),
        constraint("K8sEcho", "works"),
        constraint("K8sEcho", "elsewhere", match={"namespaces": ["other"]}),
        template(),
        constraint(),
    )

    answer = review(subject)

    assert {("fails", "!x", True), ("works", "!x", True), ("c", "no", False)} == {
        (result.constraint.name, result.msg, result.error) for result in answer.results
    }
    assert answer.faults == ()


def test_constraints_of_equal_parameters_share_one_evaluation(monkeypatch):
    subject = client(
        echo_template("hi"),
        *(constraint("K8sEcho", name, parameters={"a": 1, "b": [2]}) for name in "abc"),
        constraint("K8sEcho", "d", parameters={"a": True, "b": [2]}),
        constraint("K8sEcho", "e", parameters={"b": [2], "a": 1}, enforcementAction="warn"),
    )
    evaluated = []
    evaluate = EchoEvaluator.evaluate

    def counted(self, parameters, reviewed, state):
        evaluated.append(parameters)
        return evaluate(self, parameters, reviewed, state)

    monkeypatch.setattr(EchoEvaluator, "evaluate", counted)
    answer = review(subject)

    assert evaluated == [{"a": 1, "b": [2]}, {"a": True, "b": [2]}]
    assert [(result.constraint.name, result.enforcement_action) for result in answer.results] == [
        ("a", "deny"),
        ("b", "deny"),
        ("c", "deny"),
        ("d", "deny"),
        ("e", "warn"),
    ]
    assert answer.evaluated == 5
    assert answer.results[3].details == {"parameters": {"a": True, "b": [2]}}


def test_an_evaluation_that_fails_is_a_fault_where_that_is_asked_for():
    subject = client(
        echo_template("!"),
        constraint("K8sEcho"),
        template(),
        constraint(),
        isolation=Isolation(error_is_violation=False),
    )

    answer = review(subject)

    assert [result.msg for result in answer.results] == ["no"]
    assert [str(fault) for fault in answer.faults] == ["admission.k8s.gatekeeper.sh: K8sEcho: !"]


def test_a_failure_after_the_deadline_is_no_verdict():
    subject = client(echo_template("!"), constraint("K8sEcho"))

    answer = review(subject, limits=Limits(deadline=time.monotonic() - 1))

    assert answer.deadline_exceeded
    assert answer.results == ()


def test_rego_that_runs_on_is_stopped_at_the_deadline():
    rego = """package p
violation[{"msg": "never"}] {
  x := numbers.range(1, 3000)[_]
  y := numbers.range(1, 3000)[_]
  z := numbers.range(1, 3000)[_]
  x + y + z == 0
}"""
    subject = client(template(rego=rego), constraint())

    answer = review(subject, limits=Limits(deadline=time.monotonic() + 0.2))

    assert answer.deadline_exceeded


def test_rego_over_its_budget_of_steps_is_no_violation():
    rego = 'package p\nviolation[{"msg": "x"}] { numbers.range(1, 100000)[_] == 0 }'
    subject = client(template(rego=rego), constraint())

    answer = review(subject, limits=Limits(steps=10_000))

    assert answer.results == ()
    (undecided,) = answer.undecided
    assert (undecided.cause, undecided.answer) == ("overrun", "reject")
    assert "eval_cancel_error" in undecided.message


SCOPED = [
    {"action": "warn", "enforcementPoints": [{"name": enforcement.WEBHOOK}]},
    {"action": "deny", "enforcementPoints": [{"name": enforcement.AUDIT}, {"name": "vap.k8s.io"}]},
    {"action": "dryrun", "enforcementPoints": [{"name": "*"}]},
]


@pytest.mark.parametrize(
    ("point", "actions"),
    [
        (enforcement.WEBHOOK, ("dryrun", "warn")),
        (enforcement.AUDIT, ("deny", "dryrun")),
        (enforcement.COMMAND_LINE, ("dryrun",)),
        (enforcement.ALL, ("deny", "dryrun", "warn")),
    ],
)
def test_scoped_actions_are_those_of_the_point_that_asks(point, actions):
    subject = client(
        echo_template("hi"),
        constraint("K8sEcho", enforcementAction="scoped", scopedEnforcementActions=SCOPED),
    )

    (result,) = review(subject, point=point).results

    assert result.enforcement_action == "scoped"
    assert actions == result.scoped_actions == result.actions


def test_a_constraint_scoped_to_other_points_is_not_even_matched():
    only_audit = [{"action": "deny", "enforcementPoints": [{"name": enforcement.AUDIT}]}]
    subject = client(
        echo_template("hi"),
        constraint(
            "K8sEcho",
            enforcementAction="scoped",
            scopedEnforcementActions=only_audit,
            match={"namespaceSelector": {"matchLabels": {"a": "b"}}},
        ),
    )

    assert review(subject, point=enforcement.WEBHOOK).results == ()
    assert len(review(subject, point=enforcement.AUDIT).results) == 1


def test_any_action_is_reported_as_it_is():
    subject = client(echo_template("hi"), constraint("K8sEcho", enforcementAction="shout"))

    assert found(subject) == [("c", "hi", "shout")]


def test_a_point_that_nobody_serves_is_an_error_naming_those_served():
    with pytest.raises(UnsupportedEnforcementPoint, match=r"\[validation.gatekeeper.sh audit"):
        review(client(), point="vap.k8s.io")


@pytest.mark.parametrize(
    ("operations", "expected"),
    [(["UPDATE"], 0), (["CREATE", "DELETE"], 1), (["*"], 1), ([], 1)],
)
def test_a_templates_operations_count_at_the_webhook_alone(operations, expected):
    subject = client(echo_template("hi", operations=operations), constraint("K8sEcho"))
    request = AugmentedReview(read_request({"operation": "CREATE", "object": pod()}))

    assert expected == len(review(subject, request).results)
    assert len(review(subject, request, point=enforcement.AUDIT).results) == 1


def test_a_delete_without_old_object_is_a_fault_with_gatekeepers_words():
    request = AugmentedReview(read_request({"operation": "DELETE", "object": pod()}))

    (fault,) = review(client(), request).faults

    assert (
        str(fault)
        == 'target.HandleReview failed for target "admission.k8s.gatekeeper.sh": oldObject cannot '
        "be nil for DELETE operations"
    )


def test_policies_see_the_request_the_namespace_and_the_parameters():
    rego = """package p
violation[{"msg": msg, "details": {"u": input.review.userInfo.username}}] {
  msg := sprintf("%v %v %v %v", [
    input.review.operation,
    input.review.namespaceObject.metadata.labels.team,
    input.review.object.metadata.name,
    input.parameters.x,
  ])
}"""
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    subject = client(template(rego=rego, schema=loose), constraint(parameters={"x": 5}))
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"team": "t"}}}
    request = read_request(
        {"operation": "CREATE", "userInfo": {"username": "jane"}, "object": pod()}
    )

    (result,) = review(subject, AugmentedReview(request, shop)).results

    assert result.msg == "CREATE t web 5"
    assert result.details == {"u": "jane"}


def test_a_request_without_a_namespace_has_an_empty_namespace_object():
    """As Gatekeeper: ``object.get`` finds nothing in it, where null would be undefined."""
    rego = """package p
violation[{"msg": msg}] {
  msg := object.get(input.review.namespaceObject, ["metadata", "labels", "t"], "none")
}"""
    subject = client(template(rego=rego), constraint())
    request = read_request({"operation": "CREATE", "object": pod()})

    (result,) = review(subject, AugmentedReview(request, None)).results

    assert result.msg == "none"


def test_an_object_outside_a_request_is_seen_as_one_with_empty_fields():
    rego = 'package p\nviolation[{"msg": msg}] { r := input.review; msg := json.marshal(r) }'
    subject = client(template(rego=rego), constraint())
    obj = {"apiVersion": "apps/v1", "kind": "D", "metadata": {"name": "d"}}

    (result,) = review(subject, AugmentedObject(obj)).results

    assert (
        result.msg
        == '{"kind":{"group":"apps","kind":"D","version":"v1"},"name":"d","namespaceObject":{},'
        '"object":{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"d"}},"oldObject":null,'
        '"operation":"","options":null,"resource":{"group":"","resource":"","version":""},'
        '"uid":"","userInfo":{}}'
    )


def test_the_second_target_reviews_any_document_with_the_same_client():
    plan = {"resource_changes": [{"type": "aws_s3_bucket", "name": "logs"}]}
    rego = """package terraform
violation[{"msg": msg}] {
  change := input.review.resource_changes[_]
  change.type == input.parameters.forbidden
  msg := sprintf("%v %v", [change.type, change.name])
}"""
    schema = {"type": "object", "properties": {"forbidden": {"type": "string"}}}
    subject = client(
        template("Forbidden", rego, schema=schema, target={"target": "json"}),
        constraint("Forbidden", "buckets", parameters={"forbidden": "aws_s3_bucket"}),
        constraint(
            "Forbidden",
            "elsewhere",
            parameters={"forbidden": "aws_s3_bucket"},
            match={"names": ["other*"]},
        ),
        template(),
        constraint(),
    )

    assert found(subject, Document(plan, "plan")) == [("buckets", "aws_s3_bucket logs", "deny")]
    assert [name for name, _, _ in found(subject, Document(plan, "other.json"))] == [
        "buckets",
        "elsewhere",
    ]
    assert found(subject) == [("c", "no", "deny")]
    assert found(subject, Document([1, 2], "plan")) == []


def test_plans_are_bounded_however_many_kinds_are_asked_about(monkeypatch):
    monkeypatch.setattr("webhook.constraint.snapshot.PLANS_MAX", 8)
    subject = client(echo_template("hi"), constraint("K8sEcho"))
    snapshot = subject.snapshot

    for number in range(30):
        obj = {"apiVersion": "v1", "kind": f"Kind{number}", "metadata": {"name": "x"}}
        assert len(snapshot.review(AugmentedObject(obj)).results) == 1

    assert len(snapshot._plans) <= 8
