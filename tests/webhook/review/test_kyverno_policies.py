"""The stage of Kyverno's policies: which of them are asked about a request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.webhook.kyverno.making import pod
from webhook.api.admission import read_request
from webhook.cli.clients import new_client
from webhook.constraint import enforcement
from webhook.constraint.limits import UNLIMITED, Limits
from webhook.constraint.result import Responses
from webhook.constraint.review import AugmentedReview
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.validating_policy import ValidatingPolicy, read_kyverno
from webhook.kyverno.world import World, objects_known
from webhook.reports.finding import digest
from webhook.reports.report import finding_in
from webhook.reports.report import result as report_entry
from webhook.reports.results import Descriptions, findings_of
from webhook.review.kyverno_policies import KyvernoPolicies
from webhook.review.loops import review
from webhook.review.policy_set import PolicySet
from webhook.review.subject import Subject

Json = dict[str, Any]
SNAPSHOT = new_client(native_validation=True).snapshot


def policy(name: str, *, constraints: Json | None = None, **rule: Any) -> Json:
    rules = [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
            **rule,
        }
    ]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules, **(constraints or {})},
            "validations": [{"expression": "false", "message": name}],
        },
    }


def request(resource: str = "pods", kind: str = "Pod", group: str = "", **more: Any) -> Any:
    return read_request(
        {
            "uid": "u",
            "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": resource},
            "operation": "CREATE",
            "name": "web",
            "namespace": "shop",
            "object": pod() | {"kind": kind},
            **more,
        }
    )


class Examined(NamedTuple):
    """A review of a value, as a stage sees it."""

    value: Any
    limits: Limits = UNLIMITED
    snapshot: Any = SNAPSHOT
    point: str = enforcement.WEBHOOK
    at: float = 0.0

    def again(self, value: Any) -> Responses:
        raise NotImplementedError


@pytest.fixture
def messages():
    """The messages about a request, by policies that are kept from one to the next."""
    stage = KyvernoPolicies(
        [
            read_kyverno(policy("pods")),
            read_kyverno(policy("services", resources=["services"])),
            read_kyverno(policy("named", resourceNames=["db"])),
            read_kyverno(policy("updates", operations=["UPDATE"])),
            read_kyverno(policy("clustered", scope="Cluster", resources=["*"])),
            read_kyverno(
                policy("labelled", constraints={"objectSelector": {"matchLabels": {"a": "b"}}})
            ),
        ]
    )
    policies = PolicySet(SNAPSHOT, stages=(stage,))

    def messages_about(**more: Any) -> set[str]:
        value = AugmentedReview(request(**more))
        found = review(policies, Subject(value, enforcement.WEBHOOK))
        return {one.msg for one in found.responses.results}

    return messages_about


def test_each_request_is_reviewed_by_the_policies_that_are_about_it(messages) -> None:
    for _ in range(2):  # the first result does not change the next
        assert messages() == {"pods"}
        assert messages(name="db") == {"pods", "named"}
        assert messages(operation="UPDATE") == {"updates"}
        assert messages(resource="services", kind="Service") == {"services"}
        assert messages(resource="configmaps", kind="ConfigMap", namespace="") == {"clustered"}
        assert messages(subResource="status") == set()
        labelled = pod() | {"metadata": {"name": "web", "labels": {"a": "b"}}}
        assert messages(object=labelled) == {"pods", "labelled"}


def labelled(label: str, *, deleted: bool = True, **more: Any) -> Json:
    """A Pod with a label, which is being deleted."""
    metadata: Json = {"name": "web", "labels": {"a": label}, "finalizers": ["x"]}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod() | {"metadata": metadata, **more}


@pytest.mark.parametrize(
    ("old", "new", "denied"),
    [
        (labelled("b"), labelled("b", status={"phase": "Failed"}), set()),
        (labelled("b"), labelled("c"), {"no c"}),
        (labelled("c"), labelled("c", status={"phase": "Failed"}), set()),
        (labelled("b"), labelled("b", spec={"nodeName": "n"}), {"updates"}),
        (labelled("b", deleted=False), labelled("b", deleted=False, status={}), {"updates"}),
    ],
    ids=["noted", "new violation", "both were there", "spec", "not deleted"],
)
def test_an_object_that_is_being_deleted_is_not_refused_for_what_was_there(
    old: Json, new: Json, denied: set[str]
) -> None:
    labels = policy("no c", operations=["UPDATE"])
    labels["spec"]["validations"][0]["expression"] = "object.metadata.labels.a != 'c'"
    items = [policy("updates", operations=["UPDATE"]), labels]
    policies = PolicySet(SNAPSHOT, stages=(KyvernoPolicies(map(read_kyverno, items)),))
    value = AugmentedReview(request(operation="UPDATE", object=new, oldObject=old))
    found = review(policies, Subject(value, enforcement.WEBHOOK)).responses.results
    assert {one.msg for one in found if "deny" in one.actions} == denied
    assert {one.msg for one in found if one.existing} == {one.msg for one in found} - denied
    assert "updates" in {one.msg for one in found}


def test_pod_controllers_are_reviewed_by_what_is_generated(messages) -> None:
    # Not of a policy with a selector.
    assert messages(resource="deployments", kind="Deployment", group="apps") == {"pods"}


def test_policies_of_namespaces_audits_or_admissions_alone_are_left_out_elsewhere() -> None:
    of_audits = policy("audits")
    of_audits["spec"]["evaluation"] = {"admission": {"enabled": False}}
    of_admissions = policy("admissions")
    of_admissions["spec"]["evaluation"] = {"background": {"enabled": False}}
    own = policy("own") | {"kind": "NamespacedValidatingPolicy"}
    own["metadata"]["namespace"] = "shop"
    stage = KyvernoPolicies(map(read_kyverno, (of_audits, of_admissions, own)))
    policies = PolicySet(SNAPSHOT, stages=(stage,))

    def messages_at(point: str, namespace: str) -> set[str]:
        value = AugmentedReview(request(namespace=namespace))
        found = review(policies, Subject(value, point))
        return {one.msg for one in found.responses.results}

    for _ in range(2):  # each request is about the same resource
        assert messages_at(enforcement.WEBHOOK, "shop") == {"admissions", "own"}
        assert messages_at(enforcement.WEBHOOK, "other") == {"admissions"}
        assert messages_at(enforcement.AUDIT, "shop") == {"audits", "own"}
        assert messages_at(enforcement.AUDIT, "other") == {"audits"}


def test_an_exception_is_about_the_policies_that_it_names_alone() -> None:
    excepted = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "shop"},
        "spec": {"policyRefs": [{"kind": "ValidatingPolicy", "name": "excused"}]},
    }
    items = [policy("excused"), policy("other"), excepted]
    policies = PolicySet(SNAPSHOT, stages=(KyvernoPolicies(map(read_kyverno, items)),))
    found = review(policies, Subject(AugmentedReview(request()), enforcement.WEBHOOK)).responses
    assert [one.msg for one in found.results] == ["other"]
    assert [one.msg for one in found.excused] == ["excused"]
    assert found.evaluated == 2


@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        ("oldObject == null", "oldObject"),
        ("oldObject == {}", "oldObject"),
        ("object == null", "object"),
        ("object == {}", "object"),
    ],
)
def test_a_missing_object_is_what_it_is_to_the_policy_alone(expression: str, missing: str) -> None:
    """Kyverno's engine has an empty map, and no null."""
    document = policy("one", operations=["CREATE", "DELETE"])
    document["spec"]["validations"] = [{"expression": expression}]
    read = read_kyverno(document)
    assert isinstance(read, ValidatingPolicy)
    deleted: Json = {"operation": "DELETE", "oldObject": pod(), "object": None}
    of_request = request(**(deleted if missing == "object" else {}))
    verdict = read.say(PolicyQuestion(of_request.document, None, World(objects_known(()))))
    assert verdict.result == ("pass" if expression.endswith("{}") else "fail")
    found = KyvernoPolicies([read])(Examined(AugmentedReview(of_request)), Responses())
    assert [item.cause for item in found.results] == ["violation"] * (verdict.result == "fail")


def test_a_policy_that_exceeds_the_time_of_the_review_is_undecided_and_others_are_not() -> None:
    long = policy("long")
    turns = "object.spec.containers.all(c, object.spec.containers.all(d, d.name != c.image))"
    long["spec"]["validations"] = [{"expression": turns}]
    stage = KyvernoPolicies([read_kyverno(long), read_kyverno(policy("short"))])
    many = [{"name": f"c{number}", "image": "i"} for number in range(100)]
    value = AugmentedReview(request(object=pod() | {"spec": {"containers": many}}))
    found = stage(Examined(value, limits=Limits(deadline=0)), Responses())
    assert [one.msg for one in found.results] == ["short"]
    assert [(one.constraint.name, one.cause) for one in found.undecided] == [("long", "deadline")]
    assert found.evaluated == 2
    assert [one.msg for one in stage(Examined(value), Responses()).results] == ["short"]


@pytest.mark.parametrize("result", ["skip", "pass"])
def test_an_excused_violation_is_reported_as_the_exception_says(result: str) -> None:
    exception = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "shop"},
        "spec": {
            "policyRefs": [{"name": "pods", "kind": "ValidatingPolicy"}],
            "reportResult": result,
        },
    }
    stage = KyvernoPolicies([read_kyverno(policy("pods")), read_kyverno(exception)])
    responses = review(
        PolicySet(SNAPSHOT, stages=(stage,)), Subject(AugmentedReview(request()), enforcement.AUDIT)
    ).responses
    (finding,) = findings_of(responses, SNAPSHOT, Descriptions(), frozenset({"fail"}))
    assert (finding.verdict, finding.exception) == (result, "PolicyException shop/e")
    assert report_entry(finding, 0)["scored"] is (result == "pass")


def test_audit_annotations_are_in_details_reports_and_remarks() -> None:
    items = [policy("violated"), policy("passed")]
    items[1]["spec"]["validations"] = [{"expression": "true"}]
    for item in items:
        item["spec"]["auditAnnotations"] = [
            {"key": "who", "valueExpression": "string(object.metadata.name)"},
            {"key": "none", "valueExpression": "''"},
            {"key": "reason", "valueExpression": "'a name that reports use themselves'"},
        ]
    policies = PolicySet(SNAPSHOT, stages=(KyvernoPolicies(map(read_kyverno, items)),))
    responses = review(policies, Subject(AugmentedReview(request()), enforcement.AUDIT)).responses
    (violation,) = responses.results
    assert violation.details["auditAnnotations"]["who"] == "web"
    assert "none" not in violation.details["auditAnnotations"]
    of_who = [str(remark) for remark in responses.remarks if "who" in remark.message]
    assert of_who == [
        "ValidatingPolicy/violated: audit annotation who: web",
        "ValidatingPolicy/passed: audit annotation who: web",
    ]
    (finding,) = findings_of(responses, SNAPSHOT, Descriptions(), frozenset({"fail"}))
    entry = report_entry(finding, 0)
    assert entry["properties"] == {"enforcementAction": "deny", "who": "web"}
    assert finding_in(entry) == finding, "an unchanged report is not written again"
    other = replace(finding, annotations=(("who", "db"),))
    assert digest([other]) != digest([finding]), "a changed annotation is written"
