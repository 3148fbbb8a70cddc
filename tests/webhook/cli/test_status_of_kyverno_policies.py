"""`waddle status` shows Kyverno's policies and exceptions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests import ROOT
from tests.webhook.kyverno.making import LABEL, applied
from webhook.cli.cluster_policies import KyvernoStanding, kyverno_mode, standings_of
from webhook.cli.status.report import ClusterStanding, as_table
from webhook.policies.manifests import read_file
from webhook.policies.request_coverage import read_coverage

CONFIGURATION = ROOT / "manifests" / "base" / "webhook-configuration.yaml"


def document(kind: str, name: str, namespace: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    head = {"apiVersion": "policies.kyverno.io/v1", "kind": kind}
    return {**head, "metadata": metadata, "spec": spec}


def standings(documents: list[dict[str, Any]], mode: str = "enforce") -> list[KyvernoStanding]:
    """Returns the standings beside the webhook configuration of the manifests."""
    around = [one.document for one in read_file(CONFIGURATION)]
    coverage = read_coverage(around, "waddle-system", ["ValidatingWebhookConfiguration"])
    return standings_of(documents, mode, coverage)


def pods_with(*arguments: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "webhook", "args": ["serve", *arguments]}]}}


def policy(name: str, expression: str, **spec: Any) -> dict[str, Any]:
    return document("ValidatingPolicy", name, validations=[{"expression": expression}], **spec)


def test_each_is_usable_or_not_with_what_is_odd_about_it() -> None:
    refs = [{"kind": "ValidatingPolicy", "name": "gone"}]
    listed = standings(
        [
            policy("unusable", "random() == ''"),
            policy("about-nothing", "true", validationActions=["Audit", "Warn"]),
            policy("http", "true", evaluation={"mode": "HTTP"}),
            document("PolicyException", "of-none", "shop", policyRefs=refs),
        ]
    )
    assert [(one.title, one.state) for one in listed] == [
        ("PolicyException/shop/of-none", "Usable"),
        ("ValidatingPolicy/about-nothing", "Usable"),
        ("ValidatingPolicy/http", "Unusable"),
        ("ValidatingPolicy/unusable", "Unusable"),
    ]
    assert all(one.notes for one in listed)
    shown = as_table(ClusterStanding([], [], [], {}, (), listed), "waddle-system")
    assert "Audit+Warn" in shown
    assert "ValidatingPolicy/http: spec.evaluation.mode HTTP: " in shown
    assert "PolicyException/shop/of-none: none of the policies that it names is there: V" in shown


LEASES = {
    "apiGroups": ["coordination.k8s.io"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["leases"],
}


def test_one_that_no_rule_sends_anything_of_is_not_asked() -> None:
    matched = {"resourceRules": [LEASES]}
    (found,) = standings([policy("leased", "true", matchConstraints=matched)])
    assert found.state == "NotAsked"
    assert "NotAsked: the matchCondition" in found.notes[0]
    shown = as_table(ClusterStanding([], [], [], {}, (), [found]), "waddle-system")
    assert "ValidatingPolicy/leased  NotAsked" in shown


def mutating(name: str, expression: str = LABEL, **spec: Any) -> dict[str, Any]:
    rules = {"resourceRules": [{**LEASES, "apiGroups": [""], "resources": ["secrets"]}]}
    return {
        **document(
            "MutatingPolicy",
            name,
            mutations=[applied(expression)],
            **{"matchConstraints": rules, **spec},
        )
    }


SENDS_CONFIG_MAPS = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "m"},
    "webhooks": [
        {
            "name": "mutation.gatekeeper.sh",
            "clientConfig": {
                "service": {"namespace": "waddle-system", "name": "s", "path": "/v1/mutate"}
            },
            "rules": [{**LEASES, "apiGroups": [""], "resources": ["configmaps"]}],
        }
    ],
}
COSTLY = (
    "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, d == a + b + c))))"
)


@pytest.mark.parametrize(
    ("policy_", "state", "noted"),
    [
        (mutating("m"), "NotAsked", "NotAsked: "),
        (mutating("m", "random()"), "Unusable", "spec.mutations[0].applyConfiguration.expression"),
        (
            mutating("m", evaluation={"mutateExisting": {"enabled": True}}),
            "Unusable",
            "spec.evaluation.mutateExisting",
        ),
        (
            mutating(
                "m",
                matchConstraints={
                    "resourceRules": [{**LEASES, "apiGroups": [""], "resources": ["configmaps"]}]
                },
                matchConditions=[{"name": "c", "expression": COSTLY}],
            ),
            "Usable",
            "matchConditions: Waddle would end it where lists and maps have",
        ),
    ],
)
def test_mutating_policies_have_the_same_states(
    policy_: dict[str, Any], state: str, noted: str
) -> None:
    read = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
    coverage = read_coverage([SENDS_CONFIG_MAPS], "waddle-system", read)
    (found,) = standings_of([policy_], "enforce", coverage)
    assert found.state == state
    assert noted in " ".join(found.notes)
    shown = as_table(ClusterStanding([], [], [], {}, (), [found]), "waddle-system")
    assert f"MutatingPolicy/m  {state}" in shown


@pytest.mark.parametrize(
    ("mode", "state", "note"),
    [
        ("off", "NotFollowed", "--kyverno-policies is off"),
        ("audit", "Audited", "--kyverno-policies is audit"),
        ("", "Usable", "it has no matchConstraints"),
    ],
)
def test_what_replicas_do_by_them_is_their_flag(mode: str, state: str, note: str) -> None:
    (found,) = standings([policy("p", "true")], mode)
    assert found.state == state
    assert note in found.notes[0]


def test_the_flag_is_read_from_the_pods_that_do_most() -> None:
    off, audit = pods_with("--kubernetes"), pods_with("--kyverno-policies=audit")
    enforce = pods_with("--kyverno-policies=off", "--kyverno-policies=enforce")
    assert kyverno_mode([]) == kyverno_mode([{"spec": {"containers": [{}]}}]) == ""
    assert kyverno_mode([off]) == "off"
    assert kyverno_mode([off, audit]) == "audit"
    assert kyverno_mode([off, enforce, audit]) == "enforce"
