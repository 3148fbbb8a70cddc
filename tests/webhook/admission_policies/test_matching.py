"""Requests that rules and selectors match."""

from typing import Any

import pytest

from tests.webhook.admission_policies.making import PODS, pod, request
from webhook.admission_policies.kinds import InvalidAdmissionPolicy
from webhook.admission_policies.matching import Matching
from webhook.api.gvk import plural_of

SHOP = {"metadata": {"name": "shop", "labels": {"env": "prod"}}}
EVENT = {"kind": {"group": "", "version": "v1", "kind": "Event"}, "resource": None}
RULE = {**PODS, "apiGroups": ["events.k8s.io"], "resources": ["events"]}
SCALER = {
    "kind": {"group": "autoscaling", "version": "v1", "kind": "HorizontalPodAutoscaler"},
    "resource": None,
}
SCALERS = {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}
CUSTOM = {"kind": {"group": "example.com", "version": "v2", "kind": "Thing"}, "resource": None}
THINGS = {"apiGroups": ["example.com"], "resources": ["things"]}
SCALE: dict[str, Any] = {
    "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
    "subResource": "scale",
}
EVICTION: dict[str, Any] = {
    "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "subResource": "eviction",
}


def kind_of(group, kind):
    return {"kind": {"group": group, "version": "v1", "kind": kind}, "resource": None}


def rules(**changed):
    return {"resourceRules": [{**PODS, **changed}]}


@pytest.mark.parametrize(
    ("resources", "sent", "matches"),
    [
        ({}, request(), True),
        (rules(), request(), True),
        (rules(), request(operation="DELETE"), False),
        (rules(operations=["*"]), request(operation="DELETE"), True),
        (rules(apiGroups=["apps"]), request(), False),
        (rules(resources=["*"]), request(), True),
        (rules(resources=["*"]), request(subResource="status"), False),
        (rules(resources=["pods/*"]), request(subResource="status"), True),
        (rules(resources=["*/status"]), request(subResource="status"), True),
        (rules(apiGroups=["apps"], resources=["deployments/scale"]), request(**SCALE), True),
        (
            rules(apiGroups=["autoscaling"], resources=["deployments/scale"]),
            request(**SCALE),
            False,
        ),
        (rules(resources=["pods/eviction"]), request(**EVICTION), True),
        (rules(apiGroups=["policy"], resources=["*/*"]), request(**EVICTION), False),
        (rules(scope="Cluster"), request(), False),
        (rules(scope="Namespaced"), request(), True),
        (rules(resourceNames=["web"]), request(), True),
        (rules(resourceNames=["db"]), request(), False),
        (rules(apiVersions=["v2"]), request(), False),
        (rules(apiVersions=["v2"]) | {"matchPolicy": "Exact"}, request(), False),
        ({"resourceRules": [RULE]}, request(**EVENT), True),
        ({"resourceRules": [RULE], "matchPolicy": "Exact"}, request(**EVENT), False),
        (rules(**SCALERS, apiVersions=["v2"]), request(**SCALER), True),
        (rules(**SCALERS, apiVersions=["v2beta2"]), request(**SCALER), False),
        (rules(**THINGS, apiVersions=["v1"]), request(**CUSTOM), True),
        (rules(**THINGS, apiVersions=["v1"]) | {"matchPolicy": "Exact"}, request(**CUSTOM), False),
        (
            rules(apiGroups=["*"], resources=["*"]),
            request(**kind_of("authentication.k8s.io", "TokenReview")),
            False,
        ),
        (
            rules(apiGroups=["*"], resources=["*"]),
            request(**kind_of("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")),
            True,
        ),
        (
            {**rules(), "excludeResourceRules": [{**PODS, "resourceNames": ["web"]}]},
            request(),
            False,
        ),
        ({**rules(), "excludeResourceRules": [{**PODS, "resourceNames": ["db"]}]}, request(), True),
        ({"namespaceSelector": {"matchLabels": {"env": "prod"}}}, request(), True),
        ({"namespaceSelector": {"matchLabels": {"env": "test"}}}, request(), False),
        ({"namespaceSelector": {"matchLabels": {"env": "test"}}}, request(namespace=""), True),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, request(), False),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, request(pod(a="b")), True),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, request(oldObject=pod(a="b")), True),
        (
            rules(apiGroups=["*"], resources=["*"]),
            request(
                kind={
                    "group": "admissionregistration.k8s.io",
                    "version": "v1",
                    "kind": "ValidatingAdmissionPolicy",
                },
                resource=None,
            ),
            False,
        ),
    ],
)
def test_rules_and_selectors_say_what_is_reviewed(resources, sent, matches):
    assert Matching(resources, "spec.matchConstraints")(sent, SHOP) is matches


def test_a_namespace_is_selected_by_its_own_labels():
    matches = Matching({"namespaceSelector": {"matchLabels": {"env": "prod"}}}, "at")
    kind = {"group": "", "version": "v1", "kind": "Namespace"}
    sent = {"kind": kind, "operation": "CREATE", "name": "shop", "object": SHOP}
    assert matches(sent, None)
    assert not matches({**sent, "object": {"metadata": {"name": "x"}}}, None)


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"matchPolicy": "Some"}, "at.matchPolicy: 'Some'"),
        ({"resourceRules": {}}, "at.resourceRules: is not a list"),
        ({"resourceRules": ["x"]}, "at.resourceRules[0]: is not a rule"),
        (rules(operations=["PATCH"]), 'at.resourceRules[0].operations: "PATCH"'),
        (rules(scope="Some"), 'at.resourceRules[0].scope: "Some"'),
        (rules(resources=[]), "at.resourceRules[0].resources: is not a list of names"),
        ({"objectSelector": {"matchExpressions": ["a"]}}, "at.objectSelector: is not a label"),
        (
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            "at.objectSelector.matchExpressions[0].operator: ",
        ),
    ],
)
def test_what_an_api_server_refuses_is_reported_with_its_field(resources, message):
    with pytest.raises(InvalidAdmissionPolicy) as raised:
        Matching(resources, "at")
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("NetworkPolicy", "networkpolicies"), ("Ingress", "ingresses"), ("Endpoints", "endpoints")],
)
def test_the_resource_of_a_kind_is_guessed_as_kubernetes_does(kind, plural):
    assert plural_of(kind) == plural
